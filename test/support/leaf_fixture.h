/*
 * leaf_fixture.h
 *		An instance that keeps images of leaves (tree/lock/leaf_cache.c), with a tree and two clients.
 */
#ifndef SHERMAN_TEST_LEAF_FIXTURE_H
#define SHERMAN_TEST_LEAF_FIXTURE_H

#include "tree/lock/leaf_cache.h"
#include "tree_fixture.h"

/* Entries of a tree of some leaves. */
#define KEYS 2000u
/* Frames for all of them. */
#define ROOMY (2u << 20)
/* One set. */
#define SCARCE frames_set_bytes(LEAF_WAYS, NODE_MAX_BYTES / LEAF_GROUP)

/* A handle of a client. */
typedef struct LeafHandle
{
	Tree *tree;
	TreeScan *scan;
} LeafHandle;

extern LeafHandle mine;   /* of the fixture's client */
extern LeafHandle theirs; /* of the other one */

extern void handle_open(LeafHandle *handle, TestClient *with);
extern void handle_close(LeafHandle *handle);

/* Starts it, with so much room for images and an empty tree; so many of 100 leaves are admitted, 0: as ever. */
extern void begin(const TreeFormat *format, uint64_t bytes, uint32_t percent);
extern void end(void);

extern TreeKey key_of(uint32_t i);
extern void insert(const LeafHandle *handle, uint32_t i);
/* Numbers 0..count-1. */
extern void fill(uint32_t count);

/* As a lookup of an index does: all entries of the key, which is one. */
extern TreeStatus look_up(const LeafHandle *handle, const TreeKey *key);
/* Looks number i up; returns the round trips. */
extern uint64_t trips(const LeafHandle *handle, uint32_t i, bool expected);

extern TreeLeafCounts counts_of(const LeafHandle *handle);
extern LeafTable *table(void);

#endif /* SHERMAN_TEST_LEAF_FIXTURE_H */

/*
 * offload_fixture.h
 *		An instance that may let its memory node descend (tree/descent/offload.c), with a tree and a client whose calls can be meddled with.
 */
#ifndef SHERMAN_TEST_OFFLOAD_FIXTURE_H
#define SHERMAN_TEST_OFFLOAD_FIXTURE_H

#include "rdma/base/transport.h"
#include "tree/client/directory.h"
#include "tree/descent/offload.h"
#include "cost.h"
#include "look_up.h"
#include "tree_fixture.h"

/* Enough for three levels. */
#define NUMBERS 20000u
#define STRINGS 6000u

extern TreeTechniques techniques;
extern TreeRecord record;
extern Tree *tree;
extern TreeScan *scan;

/* What is done to a call: to its answer, or in place of it. */
typedef FabricStatus (*Meddle)(FabricEndpoint *endpoint, const DirectoryDescent *request,
                               DirectoryDescended *answer, uint32_t *bytes);

extern const FabricTransport *below; /* the client's own */
extern FabricTransport between;      /* what it uses in its place */
extern Meddle meddle;                /* NULL: calls are as ever */

/* The call as it is. */
extern FabricStatus honest(FabricEndpoint *endpoint, const DirectoryDescent *request,
                           DirectoryDescended *answer, uint32_t *bytes);

extern void begin(const TreeFormat *format, TreeOffload offload);
extern void end(void);

/* Key number i; `string` has room for 24 bytes where the format has images. */
extern TreeKey key_of(const TreeFormat *format, char *string, uint32_t i);
/* Entries 0, 2, 4, ... */
extern void fill(const TreeFormat *format, uint32_t count);
/* Looks up number i of those that fill() made, which is there if it is even: what that took. */
extern Cost look_up(const TreeFormat *format, uint32_t i);
/* Of the tree's inner nodes the cache has the root alone, or none where keys have images. */
extern void forget(void);
extern TreeOffloads offloads(void);
/* The leaf that a number is in, by READs. */
extern uint64_t leaf_of(Tree *of, uint64_t number);

#endif /* SHERMAN_TEST_OFFLOAD_FIXTURE_H */

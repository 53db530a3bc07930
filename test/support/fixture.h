/*
 * fixture.h
 *		The one fixture of the tests of tree/: memory nodes, an instance or two, clients of this process, and trees.  A test says
 *		what of it differs from the usual one; what it finds there are the variables below.
 *
 * A group of tests that share a fixture has fixture_start() and fixture_stop(), with fixture_options set before that where it
 * differs.  A test with a fixture of its own calls fixture_open() and fixture_close().  A program has one at a time.
 */
#ifndef SHERMAN_TEST_FIXTURE_H
#define SHERMAN_TEST_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "environment.h"
#include "internal.h"
#include "testing.h"

/* 0 everywhere: the usual one. */
typedef struct FixtureOptions
{
	uint32_t nodes;           /* memory nodes; 0: one */
	uint64_t node_bytes;      /* of each; 0: FIXTURE_NODE_BYTES */
	uint32_t slots;           /* of an instance; 0: FIXTURE_SLOTS */
	uint64_t cache_bytes;     /* of an instance; 0: FIXTURE_CACHE_BYTES */
	bool two_instances;       /* other_instance is started, too */
	bool two_clients;         /* other_client is opened, too */
	bool no_client;           /* none is left open: for processes that open one each */
	uint32_t trees;           /* that are created */
	const TreeFormat *format; /* of these; NULL: `narrow` */
} FixtureOptions;

#define FIXTURE_NODE_BYTES (256 * MEGABYTE)
#define FIXTURE_CACHE_BYTES (4 * MEGABYTE)
#define FIXTURE_SLOTS 8
#define FIXTURE_TREES 2u

/* What fixture_start() opens. */
extern FixtureOptions fixture_options;

extern TestNode nodes[TREE_MAX_NODES];
extern TestInstance instance;
extern TestInstance other_instance;
extern TestClient client;       /* with slot 0 */
extern TestClient other_client; /* of the same instance, with slot 1 */
extern TreeRecord records[FIXTURE_TREES];

extern const TreeFormat narrow; /* lossless, 16-byte cells */
extern const TreeFormat middle; /* lossless, 32-byte cells */
extern const TreeFormat text;   /* lossy, 64-byte cells */
extern const TreeFormat whole;  /* the same with full separators */

extern void fixture_open(const FixtureOptions *options);
/* Closes clients that are open, and stops memory nodes that run.  No lock was left behind. */
extern void fixture_close(void);
/* Group setup and teardown of cmocka. */
extern int fixture_start(void **state);
extern int fixture_stop(void **state);

/* The next incarnation of the instance, with a new client in the place of the one that there was: as after a crash. */
extern void fixture_reattach(void);
/* A memory node that was killed or ended, or is killed here, is there again; then fixture_reattach(). */
extern void fixture_node_restart(void);

/* Fails the test with the tree's detail. */
extern void require_ok(TreeStatus status);

/* A comparator: images as bytes, then the shorter one first; nothing is held. */
extern int compare_images(void *argument, const TreeBound *bound, const TreeKey *entry);
/* Mixes the bits of a number: another one for each. */
extern uint64_t scramble(uint64_t i);

/* What a memory node says of itself. */
extern TreeNodeStatus fixture_node_status(uint32_t node);

/* A child's assertions: cmocka's jumps stay in its own process. */
#define CHILD_ASSERT(condition)                                                                              \
	do                                                                                                       \
	{                                                                                                        \
		if (!(condition))                                                                                    \
		{                                                                                                    \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                  \
			_exit(1);                                                                                        \
		}                                                                                                    \
	} while (0)

#endif /* SHERMAN_TEST_FIXTURE_H */

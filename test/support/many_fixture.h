/*
 * many_fixture.h
 *		What the tests of tree_insert_many() share: an instance that has its trees for itself, on two memory nodes; keys in several
 *		orders.
 */
#ifndef SHERMAN_TEST_MANY_FIXTURE_H
#define SHERMAN_TEST_MANY_FIXTURE_H

#include "tree_fixture.h"

#define MANY_NODES 2

enum
{
	MANY_RANDOM,
	MANY_ASCENDING,
	MANY_DESCENDING,
	MANY_FEW, /* of some hundred keys */
	MANY_ORDERS
};

extern const TreeWalPosition many_stamp;
extern uint64_t many_bytes; /* of each memory node, as FixtureOptions.node_bytes */
extern bool many_mapped;    /* memory nodes are used as mapped ones: waves of one leaf */

/* `--network`: memory nodes are reached by tcp; `--mapped`: they are used as mapped ones.  True: by tcp. */
extern bool many_arguments(int argc, char **argv);

/*
 * Group setup of cmocka, to which fixture_stop() belongs; techniques are those of PostgreSQL, with the local lock table
 * alone.
 */
extern int many_start(void **state);

extern Tree *many_tree(const TreeFormat *format);
extern Tree *many_open(TestClient *with);
/* Entry number i; its TID is i. An image lies in memory that is used again after some thousand calls. */
extern TreeKey many_key_of(const TreeFormat *format, int order, uint32_t i);
/* Inserts entries first..last - 1 by calls of so many. */
extern void many_insert(Tree *tree, int order, uint32_t first, uint32_t last, uint32_t together);
/* Entries 0..count - 1 are there, each once, with their keys, and nothing else; the tree is sound. */
extern void many_verify(Tree *tree, int order, uint32_t count);

/* How many entries the sound tree has, and, if not NULL, how many of its nodes have no downlink. */
extern uint64_t many_entries(Tree *tree, uint64_t *incomplete);

/*
 * From now on the chain that the client posts at this step, counted from 1, is lost, wherever it goes: at once, or `late` with an effect
 * that comes late.
 */
extern void many_lose(uint64_t step, bool late);
/* No chain is lost any more.  True: the client has not come to that step. */
extern bool many_lose_end(void);

/* Processes of a crowd; number n inserts entries n, n + MANY_CROWD, ... */
#define MANY_CROWD 4

/* For each order a tree into which the processes insert `each` entries at once: `body` is given their number and the order. */
extern void many_crowd(void (*body)(int number, void *order), uint32_t each);

#endif /* SHERMAN_TEST_MANY_FIXTURE_H */

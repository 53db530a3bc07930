/*
 * cost.h
 *		What one operation cost a client: the difference of all counters, its trees' and its fabric's.
 */
#ifndef SHERMAN_TEST_COST_H
#define SHERMAN_TEST_COST_H

#include "environment.h"

typedef struct Cost
{
	TreeCounters tree;
	FabricCounters fabric; /* of memory node 0 */
} Cost;

extern void cost_begin(const TestClient *client, Cost *cost);
/* Aborts the process if the tree did not count what the fabric did, all on memory node 0. */
extern void cost_end(const TestClient *client, Cost *cost);

#endif /* SHERMAN_TEST_COST_H */

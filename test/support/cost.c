/*
 * cost.c
 *		See cost.h.
 */
#include "cost.h"
#include "require.h"

void
cost_begin(const TestClient *client, Cost *cost)
{
	tree_client_counters(client->tree, &cost->tree);
	fabric_counters(client->endpoints[0], &cost->fabric);
}

void
cost_end(const TestClient *client, Cost *cost)
{
	Cost now;

	cost_begin(client, &now);
	for (size_t i = 0; i < sizeof(TreeCounters) / 8; i++)
		((uint64_t *) &cost->tree)[i] = ((uint64_t *) &now.tree)[i] - ((uint64_t *) &cost->tree)[i];
	for (size_t i = 0; i < sizeof(FabricCounters) / 8; i++)
		((uint64_t *) &cost->fabric)[i] = ((uint64_t *) &now.fabric)[i] - ((uint64_t *) &cost->fabric)[i];
	REQUIRE(
		cost->tree.round_trips == cost->fabric.round_trips &&
			cost->tree.read_bytes == cost->fabric.read_bytes &&
			cost->tree.written_bytes == cost->fabric.written_bytes,
		"the tree counts %llu round trips, %llu bytes read and %llu written, the fabric %llu, %llu and %llu",
		(unsigned long long) cost->tree.round_trips, (unsigned long long) cost->tree.read_bytes,
		(unsigned long long) cost->tree.written_bytes, (unsigned long long) cost->fabric.round_trips,
		(unsigned long long) cost->fabric.read_bytes, (unsigned long long) cost->fabric.written_bytes);
}

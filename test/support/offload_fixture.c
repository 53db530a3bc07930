/*
 * offload_fixture.c
 *		See offload_fixture.h.
 */
#include <stdio.h>

#include "offload_fixture.h"
#include "tree/descent/descent.h"

TreeTechniques techniques;
TreeRecord record;
Tree *tree;
TreeScan *scan;
const FabricTransport *below;
FabricTransport between;
Meddle meddle;

/* ---- the calls' way, where tests stand ---- */

static FabricStatus
call_between(FabricEndpoint *endpoint, uint16_t method, const void *request, uint32_t request_bytes,
             void *reply, uint32_t *reply_bytes)
{
	if (method == DIRECTORY_DESCEND && meddle != NULL)
		return meddle(endpoint, request, reply, reply_bytes);
	return below->call(endpoint, method, request, request_bytes, reply, reply_bytes);
}

FabricStatus
honest(FabricEndpoint *endpoint, const DirectoryDescent *request, DirectoryDescended *answer, uint32_t *bytes)
{
	return below->call(endpoint, DIRECTORY_DESCEND, request, sizeof(*request), answer, bytes);
}

/* ---- stage ---- */

void
begin(const TreeFormat *format, TreeOffload offload)
{
	techniques = tree_techniques;
	techniques.offload = offload;
	test_techniques = &techniques;
	assert_int_equal(fixture_start(NULL), 0);
	tree = new_tree(format, &record);
	assert_int_equal(tree_scan_open(tree, &scan), TREE_OK);
	below = client.endpoints[0]->transport;
	between = *below;
	between.call = call_between;
	client.endpoints[0]->transport = &between;
	meddle = NULL;
}

void
end(void)
{
	tree_scan_close(scan);
	tree_close(tree);
	assert_int_equal(fixture_stop(NULL), 0);
	test_techniques = NULL;
}

TreeKey
key_of(const TreeFormat *format, char *string, uint32_t i)
{
	if (format->lossless)
		return number_key(scramble(i) | 1, i);
	snprintf(string, 24, "%08x-%u", (uint32_t) scramble(i), i);
	return text_key(string, i);
}

void
fill(const TreeFormat *format, uint32_t count)
{
	for (uint32_t i = 0; i < count; i += 2)
	{
		char string[24];
		TreeKey key = key_of(format, string, i);

		must_insert(tree, &key, false);
	}
}

void
forget(void)
{
	TreeKey key = number_key(0, 0);
	uint64_t node[INNER_BYTES / 8];

	cache_drop_tree(client.tree->shared, tree->tree);
	if (tree->geometry.format.lossless)
	{
		TreeOffload offload = client.tree->techniques.offload;

		client.tree->techniques.offload = TREE_OFFLOAD_ALWAYS;
		(void) look_up_key(scan, tree, &key);
		client.tree->techniques.offload = offload;
		assert_int_equal(cache_copy(tree, tree->root, node), TREE_OK);
		assert_int_equal(node_level(node), 2);
	}
}

Cost
look_up(const TreeFormat *format, uint32_t i)
{
	char string[24];
	TreeKey key = key_of(format, string, i);
	Cost cost;

	cost_begin(&client, &cost);
	assert_int_equal(look_up_key(scan, tree, &key), i % 2 == 0 ? TREE_OK : TREE_END);
	cost_end(&client, &cost);
	return cost;
}

TreeOffloads
offloads(void)
{
	TreeOffloads counts;

	tree_client_offloads(client.tree, &counts);
	return counts;
}

uint64_t
leaf_of(Tree *of, uint64_t number)
{
	TreeKey key = number_key(number, 1);
	TreeBound bound;
	int section;
	Path path;

	bound_of_key(&of->geometry, &key, &bound);
	assert_int_equal(critical_enter(of, &section), TREE_OK);
	assert_int_equal(search_descend(of, &bound, 0, true, &path), TREE_OK);
	critical_leave(of, section);
	return path.pointer;
}

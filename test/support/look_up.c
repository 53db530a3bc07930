/*
 * look_up.c
 *		See look_up.h.
 */
#include "testing.h"
#include "look_up.h"

TreeStatus
look_up_key(TreeScan *scan, const Tree *tree, const TreeKey *key)
{
	TreeBound low, high;
	const TreeBatch *batch;
	TreeStatus status;

	bound_of_key(&tree->geometry, key, &low);
	low.side = -1;
	high = low;
	high.side = 1;
	assert_int_equal(tree_scan_seek(scan, TREE_FORWARD, &low, &high), TREE_OK);
	status = tree_scan_next(scan, &batch);
	if (status != TREE_OK)
		return status;
	assert_int_equal(batch->count, 1);
	assert_int_equal(batch->entries[0].block, key->block);
	assert_int_equal(batch->entries[0].offset, key->offset);
	return TREE_OK;
}

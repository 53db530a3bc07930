/*
 * batch_open.c
 *		Begins a scan's batch: the fields that describe its leaf, and the entries that were returned before.
 */
#include "tree/scan/scan.h"

bool
batch_same_entry(const NodeGeometry *g, const uint64_t *a, const uint64_t *b)
{
	return ((a[0] ^ b[0]) & CELL_TID_MASK) == 0 && cell_same_key(g, a, b);
}

bool
batch_is_passed(const TreeScan *scan, const uint64_t *cell)
{
	const NodeGeometry *g = &scan->tree->geometry;
	int order;

	assert(scan->leaf != NULL && scan->has_last);
	order = cell_order(g, cell, scan->last);
	if (scan->direction == TREE_BACKWARD)
		order = -order;
	return order < 0 || (order == 0 && batch_same_entry(g, cell, scan->last));
}

void
batch_open(TreeScan *scan)
{
	assert(pointer_address(scan->pointer) != POINTER_NONE);
	scan->batch.count = 0;
	scan->batch.whole = true;
	scan->batch.wal.epoch = (uint32_t) node_word(scan->leaf, HEADER_EPOCH);
	scan->batch.wal.lsn = node_word(scan->leaf, HEADER_LSN);
	scan->batch.unverified = leaf_is_unverified(&scan->tree->geometry, scan->leaf);
	scan->batch.marks_void = leaf_marks_void(&scan->tree->geometry, scan->leaf);
	scan->batch.leaf = (TreeLeafSeen){
		.pointer = scan->pointer,
		.generation = scan->leaf[HEADER_GENERATION],
		.epoch = scan->leaf_epoch,
	};
	scan->batch.right = scan->leaf[HEADER_RIGHT];
}

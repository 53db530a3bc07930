/*
 * failover.c
 *		Calls of the tree that are made again when one of the two memory nodes of an index with a copy was lost
 *		under them, so that the statement goes on with the other one.
 *
 * Reads can be made again at any time: a scan goes on where it was, as its position is a fence, and the two have
 * the same nodes at the same addresses.  So can an insert: an entry that is there already is found, and stays one.
 * VACUUM goes on at the leaf where it was, and finds those of its victims that are there still.
 * What goes on is decided as for any other statement, by judging the index anew, which waits until it is known
 * (sherman_index_recheck(); for changes sherman_index_for_insert()).
 */
#include "am/base/sherman.h"

#include "miscadmin.h"

#include "am/base/shared.h"
#include "am/index/index.h"
#include "am/nodes/nodes.h"

bool
sherman_try_again(ShermanIndex *index, Relation relation, TreeStatus status, int *attempts)
{
	if (likely(status != TREE_UNREACHABLE && status != TREE_FENCED) || index->meta.replica == 0 ||
		*attempts == SHERMAN_ATTEMPTS_MOST)
		return false;
	(*attempts)++;
	/* The memory node that did not answer is closed: from now on the launcher decides. */
	(void) sherman_connection_trouble();
	CHECK_FOR_INTERRUPTS();
	sherman_wait_while(sherman_replicas_suspected, &index->meta);
	/* A standby that has replayed that the half is given up has another handle for the next statement. */
	if (sherman_connection_is_reader())
		sherman_metapage_check(index, relation);
	sherman_index_recheck(index, relation);
	sherman_connection_refresh();
	return true;
}

bool
sherman_change_again(ShermanIndex *index, Relation relation, TreeStatus status, int *attempts)
{
	while (sherman_try_again(index, relation, status, attempts))
	{
		if (sherman_replicas_before_change(relation, index))
			return true;
	}
	return false;
}

void
sherman_record_note(ShermanIndex *index, Relation relation, TreeRecord *record)
{
	int			attempts = 0;
	TreeStatus	status;

	do
		status = sherman_record_update(&index->meta, record);
	while (sherman_change_again(index, relation, status, &attempts));
	if (status != TREE_OK)
		sherman_report_failure(status, relation);
}

TreeStatus
sherman_scan_again(ShermanIndex *index, Relation relation, TreeScan *scan, const TreeBatch **batch, TreeStatus status)
{
	int			attempts = 0;

	while (sherman_try_again(index, relation, status, &attempts))
		status = tree_scan_next(scan, batch);
	return status;
}

TreeStatus
sherman_scan_load(ShermanIndex *index, Relation relation, TreeScan *scan)
{
	int			attempts = 0;
	TreeStatus	status;

	do
		status = tree_scan_load(scan);
	while (sherman_try_again(index, relation, status, &attempts));
	return status;
}

TreeStatus
sherman_batch_key(ShermanIndex *index, Relation relation, TreeScan *scan, const TreeBatch *batch, int position, TreeKey *key)
{
	int			attempts = 0;
	TreeStatus	status;

	do
		status = tree_batch_key(scan, batch, position, key);
	while (sherman_try_again(index, relation, status, &attempts));
	return status;
}

TreeStatus
sherman_batch_unchanged(ShermanIndex *index, Relation relation, TreeScan *scan, const TreeBatch *batch, bool *unchanged)
{
	int			attempts = 0;
	TreeStatus	status;

	do
		status = tree_batch_unchanged(scan, batch, unchanged);
	while (sherman_try_again(index, relation, status, &attempts));
	return status;
}

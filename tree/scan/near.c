/*
 * near.c
 *		Whether what a caller wants next lies in the leaf that its scan is about to read: then the scan is to stop behind that.
 *
 * A caller that looks up many keys in order has its scan load the leaf of the first one, asks of the next ones whether they begin
 * before the leaf ends, and moves the stop bound behind the last that does.  What is between is returned with them.  The stop alone
 * says where the scan ends, so a wrong answer costs time and no entries: one that would take a round trip is "no".  A leaf that is read
 * anew may end earlier than it did: then what lies before the stop comes out of the leaves behind, too.
 */
#include "tree/scan/scan.h"
#include "tree/descent/descent.h"

TreeStatus
tree_scan_load(TreeScan *scan)
{
	int section;
	TreeStatus status;

	assert(!scan->tree->client->holding);
	if (!scan->sought)
		return client_fail(scan->tree->client, TREE_INVALID, "a scan without a seek");
	if (scan->loaded || scan->ended)
		return scan->loaded ? TREE_OK : TREE_END;
	status = critical_enter(scan->tree, &section);
	if (status != TREE_OK)
		return status;
	scan_refresh(scan);
	status = scan_load(scan, false);
	scan->loaded = status == TREE_OK;
	critical_leave(scan->tree, section);
	return status;
}

bool
tree_scan_reaches(const TreeScan *scan, const TreeBound *bound)
{
	const bool forward = scan->direction == TREE_FORWARD;
	const uint64_t *fence;

	assert(scan->loaded);
	fence = scan->taking ? scan->taken_end : scan_fence(scan, scan->leaf, forward);
	/* What begins before the place where the scan goes on may have entries there. */
	if (scan->begun && search_far_fence(scan->tree, bound, scan->want, forward) <= 0)
		return false;
	return search_far_fence(scan->tree, bound, fence, forward) < 0;
}

void
tree_scan_stop_at(TreeScan *scan, const TreeBound *stop)
{
	assert(scan->loaded);
	assert(stop->norm_length <= scan->tree->geometry.format.norm_bytes);
	scan->has_stop = true;
	scan->stop = *stop;
}

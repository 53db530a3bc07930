/*
 * scan_take.c
 *		One scan by several processes: each takes the leaves that its next chain reads, and passes on the place where
 *		they end.
 *
 * The place behind a leaf is known as soon as the leaf has been read: it is the far fence in the same copy. A process
 * that goes on there accepts only a leaf whose near fence is that one, byte for byte, as every scan does (scan.c); so
 * the leaves of all tile the key space, and no entry is returned twice or missed, whatever is split in between.
 * Leaves that were read ahead and tile are taken together, for otherwise each would cost a round trip during which
 * the others wait.
 *
 * The end of what was taken is a fence and not a count of leaves: one of them may have to be read anew, and may have
 * been split by then. Its far fence is still where one of its parts ends (I-T6, I-T7), or it lies inside of a leaf
 * that emptied ones were merged into: then the scan ends there (taken_judge()).
 */
#include "tree/scan/scan.h"

static_assert(sizeof(((TreeScanPosition *) NULL)->want) == LINE_BYTES, "a fence fits into a position");

/* The fence where the scan leaves a leaf. */
static const uint64_t *
far_fence(const TreeScan *scan, const uint64_t *leaf)
{
	assert(leaf != NULL);
	return scan_fence(scan, leaf, scan->direction == TREE_FORWARD);
}

/*
 * Keeps of the leaves that were read ahead those that follow the current one without a gap.  Returns the last
 * leaf, and its pointer.
 */
static const uint64_t *
keep_tiling(TreeScan *scan, uint64_t *pointer)
{
	const NodeGeometry *g = &scan->tree->geometry;
	ScanAhead *ahead = &scan->ahead;
	const uint64_t *last = scan->leaf;
	int i = ahead->next;

	assert(i <= ahead->count);
	*pointer = scan->pointer;
	for (; i < ahead->count && ahead->verdicts[i] == NODE_GOOD; i++)
	{
		const uint64_t *near = scan_fence(scan, ahead->images[i], scan->direction == TREE_BACKWARD);

		if (separator_infinite(near) || !separator_equal(g, near, far_fence(scan, last)))
			break;
		last = ahead->images[i];
		*pointer = ahead->pointers[i];
	}
	ahead->count = i;
	return last;
}

/*
 * Whether nothing follows behind this fence, as far as integers decide. Where they do not, the next process finds
 * out.
 */
static bool
is_end(const TreeScan *scan, const uint64_t *fence)
{
	Decision decision;

	if (separator_infinite(fence))
		return true;
	if (!scan->has_stop)
		return false;
	decision = node_decide(&scan->tree->geometry, &scan->stop, fence, true);
	/* An entry may be equal to a low fence, but never to a high one. */
	return decision == DECIDE_EQUAL ||
	       decision == (scan->direction == TREE_FORWARD ? DECIDE_BELOW : DECIDE_ABOVE);
}

/* tree_scan_take(), inside its critical section. */
static TreeStatus
scan_take(TreeScan *scan, TreeScanPosition *behind)
{
	const uint64_t *last;
	TreeStatus status;

	scan_refresh(scan);
	status = scan_load(scan, false);
	if (status != TREE_OK)
		return status;
	scan->loaded = true;
	scan->taking = true;
	memset(behind, 0, sizeof(*behind));
	last = keep_tiling(scan, &behind->left);
	node_get_fence(&scan->tree->geometry, last, scan->direction == TREE_FORWARD, behind->want);
	memcpy(scan->taken_end, behind->want, sizeof(scan->taken_end));
	behind->right = last[HEADER_RIGHT];
	behind->parent = scan->parent.pointer;
	behind->epoch = scan->epoch;
	/* Leaves some for the other processes. */
	behind->depth = (uint32_t) (scan->depth < TREE_PREFETCH_MAX ? scan->depth : TREE_PREFETCH_MAX);
	behind->ended = is_end(scan, behind->want);
	return TREE_OK;
}

TreeStatus
tree_scan_take(TreeScan *scan, TreeScanPosition *behind)
{
	TreeClient *client = scan->tree->client;
	int section;
	TreeStatus status;

	assert(behind != NULL);
	assert(!client->holding);
	if (!scan->sought || scan->taking)
		return client_fail(client, TREE_INVALID, "leaves are taken after a seek or a resume");
	status = critical_enter(scan->tree, &section);
	if (status != TREE_OK)
		return status;
	status = scan_take(scan, behind);
	critical_leave(scan->tree, section);
	return status;
}

void
tree_scan_take_to(TreeScan *scan, const TreeBound *stop, TreeScanPosition *behind)
{
	assert(scan->taking);
	tree_scan_stop_at(scan, stop);
	behind->ended = is_end(scan, behind->want);
}

TreeStatus
tree_scan_resume(TreeScan *scan, TreeDirection direction, const TreeBound *stop,
                 const TreeScanPosition *position)
{
	TreeStatus status = tree_scan_seek(scan, direction, NULL, stop);

	if (status != TREE_OK)
		return status;
	if (position->ended || position->depth < 1 || position->depth > TREE_PREFETCH_MAX ||
	    separator_infinite(position->want))
	{
		scan->sought = false;
		return client_fail(scan->tree->client, TREE_INVALID, "not a position to go on from");
	}
	memcpy(scan->want, position->want, sizeof(scan->want));
	scan->left = position->left;
	scan->right = position->right;
	scan->parent.pointer = position->parent;
	scan->depth = (int) position->depth;
	scan->epoch = position->epoch;
	scan->begun = true;
	return TREE_OK;
}

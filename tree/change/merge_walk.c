/*
 * merge_walk.c
 *		Chooses the nodes that a merge examines: leaves that a vacuum's walk found empty or sparse, and on the levels above,
 *		parents whose children have gone.
 *
 * A vacuum remembers ranges of keys whose leaves were empty, or fit into the one before them (vacuum.c), and a merge
 * goes from parent to parent along them: it examines the children that cover them, the one before each range, into which they may be merged, and the
 * one behind it, which shows whether a split is incomplete. So its cost is proportional to what can be merged; it
 * costs nothing where nothing can be: the leftmost leaf, which is empty in every queue, is in no range.
 *
 * On each higher level it examines nodes that have lost children, or whose first child could be merged if it had a
 * left neighbor with the same parent. If inner nodes were merged there, some first children have a left neighbor now,
 * and the walk is repeated for these, until it merges no inner node. Between two calls only keys are kept, which stay
 * valid whatever happens to the nodes.
 */
#include "tree/change/merge.h"
#include "tree/scan/scan.h"
#include "tree/descent/descent.h"

/* Tries to find a parent that does not change meanwhile; each fails by a change of another process. */
#define PARENT_ATTEMPTS 8
/* The walk ends after so many parents in a row could not be merged: other processes are using the tree for long. */
#define MISSED_MAX 3

/* What is known of a range. */
#define RANGE_LOOK 1u  /* it is looked at on this level */
#define RANGE_RISES 2u /* and on the next one */
#define RANGE_RISEN 4u /* the walk has reached the level above the parents of leaves */

TreeStatus
tree_merge_open(Tree *handle, const TreeVacuum *vacuum, TreeMerge **merge)
{
	const size_t head = (sizeof(TreeMerge) + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
	const size_t nodes = (2 + TREE_PREFETCH_MAX) * NODE_MAX_BYTES;
	/* Of each run half a leaf. */
	const size_t moved = MERGE_RUNS_MAX * (handle->geometry.leaf_bytes / 2);
	TreeMerge *f;
	char *place;

	assert(handle->client != NULL);
	assert(merge != NULL);
	*merge = NULL;
	f = client_allocate(handle->client, head + LINE_BYTES + nodes + moved + FENCE_IMAGE_BYTES);
	if (f == NULL)
		return client_fail(handle->client, TREE_NO_MEMORY, "no memory to merge leaves");
	memset(f, 0, sizeof(*f));
	f->tree = handle;
	f->level = 1;
	f->root_level = 1;
	f->sparse = vacuum_sparse_ranges(vacuum);
	for (uint32_t i = 0; i < f->sparse->count; i++)
		f->marks[i] = RANGE_LOOK;
	place = (char *) (((uintptr_t) f + head + LINE_BYTES - 1) & ~(uintptr_t) (LINE_BYTES - 1));
	f->parent = (uint64_t *) place;
	f->gathered = (uint64_t *) (place + NODE_MAX_BYTES);
	for (int i = 0; i < TREE_PREFETCH_MAX; i++)
		f->children[i] = (uint64_t *) (place + (2 + i) * NODE_MAX_BYTES);
	f->moved = (uint64_t *) (place + nodes);
	f->image = (uint8_t *) place + nodes + moved;
	*merge = f;
	return TREE_OK;
}

void
tree_merge_close(TreeMerge *merge)
{
	if (merge == NULL)
		return;
	assert(merge->tree != NULL);
	assert(!merge->tree->client->holding);
	client_release(merge->tree->client, merge);
}

/* The next range to examine on this level, from number i on; count: there is none. */
static uint32_t
range_from(const TreeMerge *merge, uint32_t i)
{
	assert(i <= merge->sparse->count);
	while (i < merge->sparse->count && (merge->marks[i] & RANGE_LOOK) == 0)
		i++;
	return i;
}

/* ---- the children of one parent ---- */

/* Descends to the parent that covers merge->place and reads it; *first is the child there.  TREE_RETRY: it changes. */
static TreeStatus
parent_find(TreeMerge *merge, uint32_t *first)
{
	Tree *tree = merge->tree;
	ChildChoice choice;
	TreeBound bound;
	Path path;
	TreeStatus status = search_separator_bound(tree, merge->place, 0, &bound, merge->image);

	assert(merge->placed);
	if (status == TREE_OK)
		status = search_descend(tree, &bound, merge->level, false, &path);
	if (status != TREE_OK)
		return status;
	merge->root_level = path.root_level;
	merge->next = path.pointer;
	status = access_read_node(tree, merge->next, (int) merge->level, merge->parent);
	if (status == TREE_OK)
		status = search_inner(tree, merge->parent, &bound, &choice);
	if (status != TREE_OK)
		return status;
	*first = choice.index;
	return choice.bound_below || choice.bound_above ? TREE_RETRY : TREE_OK;
}

/* The child of the parent that covers the keys from a range's beginning on; *behind: the range begins behind the parent. */
static TreeStatus
range_first(TreeMerge *merge, uint32_t range, uint32_t *first, bool *behind)
{
	ChildChoice choice;
	TreeBound bound;
	TreeStatus status =
		search_separator_bound(merge->tree, merge->sparse->ranges[range].low, 0, &bound, merge->image);

	if (status == TREE_OK)
		status = search_inner(merge->tree, merge->parent, &bound, &choice);
	if (status != TREE_OK)
		return status;
	*first = choice.index;
	*behind = choice.bound_above;
	return choice.bound_below ? TREE_RETRY : TREE_OK;
}

/* The child that covers the last keys of a range; *goes_on: it goes on behind the parent. */
static TreeStatus
range_last(TreeMerge *merge, uint32_t range, uint32_t *last, bool *goes_on)
{
	const uint64_t *high = merge->sparse->ranges[range].high;
	ChildChoice choice;
	TreeBound bound;
	TreeStatus status = TREE_OK;

	if (separator_infinite(high))
		bound_of_end(&merge->tree->geometry, true, &bound);
	else
		status = search_separator_bound(merge->tree, high, -1, &bound, merge->image);
	if (status == TREE_OK)
		status = search_inner(merge->tree, merge->parent, &bound, &choice);
	if (status != TREE_OK)
		return status;
	*goes_on = choice.bound_above;
	*last = choice.bound_above ? node_count(merge->parent) - 1 : choice.index;
	return choice.bound_below ? TREE_RETRY : TREE_OK;
}

/* Marks the children first..last to be examined, with the one before them and the one behind. */
static void
look_at(TreeMerge *merge, uint32_t first, uint32_t last)
{
	uint32_t count = node_count(merge->parent);

	assert(first <= last && last < count);
	for (uint32_t i = first > 0 ? first - 1 : 0; i <= last + 1 && i < count; i++)
		merge->look[i] = true;
}

/* Marks the children to be examined, of all ranges that have some in this parent. */
static TreeStatus
children_choose(TreeMerge *merge, uint32_t first)
{
	uint32_t range = merge->range, last;
	bool behind = false;
	TreeStatus status = TREE_OK;

	assert(range < merge->sparse->count);
	memset(merge->look, 0, sizeof(merge->look));
	merge->goes_on = false;
	while (status == TREE_OK && range < merge->sparse->count && !merge->goes_on)
	{
		if (range > merge->range)
			status = range_first(merge, range, &first, &behind);
		if (behind)
			break;
		if (status == TREE_OK)
			status = range_last(merge, range, &last, &merge->goes_on);
		if (status != TREE_OK)
			return status;
		look_at(merge, first, last);
		if (!merge->goes_on)
			range = range_from(merge, range + 1);
	}
	merge->behind = range;
	if (merge->goes_on)
		node_get_fence(&merge->tree->geometry, merge->parent, true, merge->place_after);
	return status;
}

/* ---- the walk ---- */

/* To the ranges behind those in the parent. */
static void
parent_pass(TreeMerge *merge, bool rises)
{
	for (uint32_t i = merge->range; rises && (i < merge->behind || (i == merge->behind && merge->goes_on));
	     i++)
		if ((merge->marks[i] & RANGE_LOOK) != 0)
			merge->marks[i] |= RANGE_RISES;
	assert(merge->goes_on || merge->behind > merge->range);
	merge->range = merge->behind;
	merge->placed = merge->goes_on;
	memcpy(merge->place, merge->place_after, sizeof(merge->place));
	merge->tries = 0;
}

/* The ranges that are marked with `mark` are next, from the first on. */
static void
level_begin(TreeMerge *merge, uint32_t level, uint8_t mark)
{
	assert(level > 0);
	for (uint32_t i = 0; i < merge->sparse->count; i++)
	{
		bool look = (merge->marks[i] & mark) != 0;
		bool risen = level > 1 && (look || (merge->marks[i] & RANGE_RISEN) != 0);

		merge->marks[i] = (uint8_t) ((look ? RANGE_LOOK : 0) | (risen ? RANGE_RISEN : 0));
	}
	merge->level = level;
	merge->range = 0;
	merge->placed = false;
}

/* Behind the last range on a level: the next level, or the first again, or the end. */
static void
level_end(TreeMerge *merge)
{
	bool top = merge->level >= merge->root_level;

	assert(!merge->ended);
	if (!top)
		level_begin(merge, merge->level + 1, RANGE_RISES);
	if (!top && range_from(merge, 0) < merge->sparse->count)
		return;
	merge->ended = !merge->inner;
	merge->inner = false;
	level_begin(merge, 1, RANGE_RISEN);
}

/* Finds the next parent and its children. TREE_RETRY: not yet. */
static TreeStatus
merge_find(TreeMerge *merge)
{
	uint32_t first = 0;
	TreeStatus status;

	assert(merge->range < merge->sparse->count);
	if (!merge->placed)
		memcpy(merge->place, merge->sparse->ranges[merge->range].low, sizeof(merge->place));
	merge->placed = true;
	status = parent_find(merge, &first);
	return status == TREE_OK ? children_choose(merge, first) : status;
}

/* A parent is left as it is. */
static void
parent_miss(TreeMerge *merge, TreeMergeCounts *counts)
{
	counts->missed++;
	merge->missed++;
	merge->ended = merge->missed >= MISSED_MAX;
}

/* The parent was not found, or it changed: again, or without the rest of this range. */
static void
parent_retry(TreeMerge *merge, TreeMergeCounts *counts)
{
	assert(merge->tries < PARENT_ATTEMPTS);
	if (++merge->tries < PARENT_ATTEMPTS)
		return;
	parent_miss(merge, counts);
	merge->range++;
	merge->placed = false;
	merge->tries = 0;
}

/* tree_merge_next(), inside its critical section. */
static TreeStatus
merge_next(TreeMerge *merge, TreeMergeCounts *counts)
{
	bool alone;
	uint32_t merged;
	TreeStatus status;

	merge->range = range_from(merge, merge->range);
	if (merge->range == merge->sparse->count)
	{
		level_end(merge);
		return TREE_OK;
	}
	status = merge_find(merge);
	if (status == TREE_OK)
		status = merge_children(merge, counts, &alone, &merged);
	if (status != TREE_OK && status != TREE_RETRY)
		return status;
	if (status == TREE_RETRY || merge->changed)
	{
		parent_retry(merge, counts);
		return TREE_OK;
	}
	if (alone)
		merge->missed = 0;
	else
		parent_miss(merge, counts);
	merge->inner = merge->inner || (merge->level > 1 && merged > 0);
	parent_pass(merge, merged > 0 || merge->first_waits);
	return TREE_OK;
}

TreeStatus
tree_merge_next(TreeMerge *merge, TreeMergeCounts *counts)
{
	int section;
	TreeStatus status;

	assert(counts != NULL);
	assert(!merge->tree->client->holding);
	if (merge->ended || merge->sparse->count == 0)
		return TREE_END;
	/* Inside of another call, or before tree_client_rest(): this client itself is in the way. */
	if (merge->tree->client->sections > 0)
	{
		counts->missed++;
		merge->ended = true;
		return TREE_END;
	}
	status = critical_enter(merge->tree, &section);
	if (status != TREE_OK)
		return status;
	status = merge_next(merge, counts);
	critical_leave(merge->tree, section);
	return status;
}

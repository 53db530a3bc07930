/*
 * fold_walk.c
 *		Where a fold looks: at the leaves that a vacuum's walk saw empty, and above them at what became of their parents.
 *
 * A vacuum remembers ranges of keys whose leaves were empty (vacuum.c), and a fold goes from parent to parent along
 * them: it looks at the children that cover them, at the one in front of each range, which may take them, and at the one
 * behind it, which shows whether a posting is owed.  So it costs what there is to fold, and nothing where nothing can be:
 * the leftmost leaf, the empty one of every queue, is in no range.
 *
 * On the level above, and so on, it looks where children have gone, or where a first child would go if it had a left
 * neighbor with the same parent.  If inner nodes were folded there some have one now: all is done once more for these.
 *
 * Between two calls there are keys alone, which stay what they are whatever happens to the nodes.
 */
#include "tree/change/fold.h"
#include "tree/scan/scan.h"

/* Tries to find a parent that stays as it is; each is lost to somebody else's change. */
#define PARENT_ATTEMPTS 8
/* So many parents in a row that were missed end the walk: somebody is busy in the tree for long. */
#define MISSED_MAX 3

/* What is known of a range. */
#define RANGE_LOOK 1u  /* it is looked at on this level */
#define RANGE_RISES 2u /* and on the next one */
#define RANGE_RISEN 4u /* it was looked at above the parents of leaves */

TreeStatus
tree_fold_open(Tree *handle, const TreeVacuum *vacuum, TreeFold **fold)
{
	const size_t head = (sizeof(TreeFold) + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
	const size_t nodes = (2 + TREE_PREFETCH_MAX) * NODE_MAX_BYTES;
	TreeFold *f;
	char *place;

	assert(handle->client != NULL);
	assert(fold != NULL);
	*fold = NULL;
	f = client_allocate(handle->client, head + LINE_BYTES + nodes + FENCE_IMAGE_BYTES);
	if (f == NULL)
		return client_fail(handle->client, TREE_NO_MEMORY, "no memory to fold leaves");
	memset(f, 0, sizeof(*f));
	f->tree = handle;
	f->level = 1;
	f->root_level = 1;
	f->empty = vacuum_empty_ranges(vacuum);
	for (uint32_t i = 0; i < f->empty->count; i++)
		f->marks[i] = RANGE_LOOK;
	place = (char *) (((uintptr_t) f + head + LINE_BYTES - 1) & ~(uintptr_t) (LINE_BYTES - 1));
	f->parent = (uint64_t *) place;
	f->gathered = (uint64_t *) (place + NODE_MAX_BYTES);
	for (int i = 0; i < TREE_PREFETCH_MAX; i++)
		f->children[i] = (uint64_t *) (place + (2 + i) * NODE_MAX_BYTES);
	f->image = (uint8_t *) place + nodes;
	*fold = f;
	return TREE_OK;
}

void
tree_fold_close(TreeFold *fold)
{
	if (fold == NULL)
		return;
	assert(fold->tree != NULL);
	assert(!fold->tree->client->holding);
	client_release(fold->tree->client, fold);
}

/* The next range to look at on this level, from number i on; count: there is none. */
static uint32_t
range_from(const TreeFold *fold, uint32_t i)
{
	assert(i <= fold->empty->count);
	while (i < fold->empty->count && (fold->marks[i] & RANGE_LOOK) == 0)
		i++;
	return i;
}

/* ---- the children of one parent ---- */

/* Descends to the parent that covers fold->place and reads it; *first is the child there.  TREE_RETRY: it changes. */
static TreeStatus
parent_find(TreeFold *fold, uint32_t *first)
{
	Tree *tree = fold->tree;
	ChildChoice choice;
	TreeBound bound;
	Path path;
	TreeStatus status = search_separator_bound(tree, fold->place, 0, &bound, fold->image);

	assert(fold->placed);
	if (status == TREE_OK)
		status = search_descend(tree, &bound, fold->level, false, &path);
	if (status != TREE_OK)
		return status;
	fold->root_level = path.root_level;
	fold->next = path.pointer;
	status = access_read_node(tree, fold->next, (int) fold->level, fold->parent);
	if (status == TREE_OK)
		status = search_inner(tree, fold->parent, &bound, &choice);
	if (status != TREE_OK)
		return status;
	*first = choice.index;
	return choice.bound_below || choice.bound_above ? TREE_RETRY : TREE_OK;
}

/* The child of the parent that covers the keys from a range's beginning on; *behind: the range begins behind the parent. */
static TreeStatus
range_first(TreeFold *fold, uint32_t range, uint32_t *first, bool *behind)
{
	ChildChoice choice;
	TreeBound bound;
	TreeStatus status =
		search_separator_bound(fold->tree, fold->empty->ranges[range].low, 0, &bound, fold->image);

	if (status == TREE_OK)
		status = search_inner(fold->tree, fold->parent, &bound, &choice);
	if (status != TREE_OK)
		return status;
	*first = choice.index;
	*behind = choice.bound_above;
	return choice.bound_below ? TREE_RETRY : TREE_OK;
}

/* The child that covers the last keys of a range; *goes_on: it goes on behind the parent. */
static TreeStatus
range_last(TreeFold *fold, uint32_t range, uint32_t *last, bool *goes_on)
{
	const uint64_t *high = fold->empty->ranges[range].high;
	ChildChoice choice;
	TreeBound bound;
	TreeStatus status = TREE_OK;

	if (separator_infinite(high))
		bound_of_end(&fold->tree->geometry, true, &bound);
	else
		status = search_separator_bound(fold->tree, high, -1, &bound, fold->image);
	if (status == TREE_OK)
		status = search_inner(fold->tree, fold->parent, &bound, &choice);
	if (status != TREE_OK)
		return status;
	*goes_on = choice.bound_above;
	*last = choice.bound_above ? node_count(fold->parent) - 1 : choice.index;
	return choice.bound_below ? TREE_RETRY : TREE_OK;
}

/* The children first..last are to be looked at, with the one in front of them and the one behind. */
static void
look_at(TreeFold *fold, uint32_t first, uint32_t last)
{
	uint32_t count = node_count(fold->parent);

	assert(first <= last && last < count);
	for (uint32_t i = first > 0 ? first - 1 : 0; i <= last + 1 && i < count; i++)
		fold->look[i] = true;
}

/* Which children are to be looked at: of all ranges that have some in this parent. */
static TreeStatus
children_choose(TreeFold *fold, uint32_t first)
{
	uint32_t range = fold->range, last;
	bool behind = false;
	TreeStatus status = TREE_OK;

	assert(range < fold->empty->count);
	memset(fold->look, 0, sizeof(fold->look));
	fold->goes_on = false;
	while (status == TREE_OK && range < fold->empty->count && !fold->goes_on)
	{
		if (range > fold->range)
			status = range_first(fold, range, &first, &behind);
		if (behind)
			break;
		if (status == TREE_OK)
			status = range_last(fold, range, &last, &fold->goes_on);
		if (status != TREE_OK)
			return status;
		look_at(fold, first, last);
		if (!fold->goes_on)
			range = range_from(fold, range + 1);
	}
	fold->behind = range;
	if (fold->goes_on)
		node_get_fence(&fold->tree->geometry, fold->parent, true, fold->place_after);
	return status;
}

/* ---- the walk ---- */

/* To the ranges behind those in the parent. */
static void
parent_pass(TreeFold *fold, bool rises)
{
	for (uint32_t i = fold->range; rises && (i < fold->behind || (i == fold->behind && fold->goes_on)); i++)
		if ((fold->marks[i] & RANGE_LOOK) != 0)
			fold->marks[i] |= RANGE_RISES;
	assert(fold->goes_on || fold->behind > fold->range);
	fold->range = fold->behind;
	fold->placed = fold->goes_on;
	memcpy(fold->place, fold->place_after, sizeof(fold->place));
	fold->tries = 0;
}

/* Ranges that are marked with `mark` are looked at next, from the first on. */
static void
level_begin(TreeFold *fold, uint32_t level, uint8_t mark)
{
	assert(level > 0);
	for (uint32_t i = 0; i < fold->empty->count; i++)
	{
		bool look = (fold->marks[i] & mark) != 0;
		bool risen = level > 1 && (look || (fold->marks[i] & RANGE_RISEN) != 0);

		fold->marks[i] = (uint8_t) ((look ? RANGE_LOOK : 0) | (risen ? RANGE_RISEN : 0));
	}
	fold->level = level;
	fold->range = 0;
	fold->placed = false;
}

/* Behind the last range on a level: the next level, or once more the first, or the end. */
static void
level_end(TreeFold *fold)
{
	bool top = fold->level >= fold->root_level;

	assert(!fold->ended);
	if (!top)
		level_begin(fold, fold->level + 1, RANGE_RISES);
	if (!top && range_from(fold, 0) < fold->empty->count)
		return;
	fold->ended = fold->again || !fold->inner;
	fold->again = true;
	level_begin(fold, 1, RANGE_RISEN);
}

/* Finds the next parent and its children. TREE_RETRY: not yet. */
static TreeStatus
fold_find(TreeFold *fold)
{
	uint32_t first = 0;
	TreeStatus status;

	assert(fold->range < fold->empty->count);
	if (!fold->placed)
		memcpy(fold->place, fold->empty->ranges[fold->range].low, sizeof(fold->place));
	fold->placed = true;
	status = parent_find(fold, &first);
	return status == TREE_OK ? children_choose(fold, first) : status;
}

/* A parent is left as it is. */
static void
parent_miss(TreeFold *fold, TreeFoldCounts *counts)
{
	counts->missed++;
	fold->missed++;
	fold->ended = fold->missed >= MISSED_MAX;
}

/* The parent was not found, or it changed: again, or without the rest of this range. */
static void
parent_retry(TreeFold *fold, TreeFoldCounts *counts)
{
	assert(fold->tries < PARENT_ATTEMPTS);
	if (++fold->tries < PARENT_ATTEMPTS)
		return;
	parent_miss(fold, counts);
	fold->range++;
	fold->placed = false;
	fold->tries = 0;
}

/* tree_fold_next(), inside its critical section. */
static TreeStatus
fold_next(TreeFold *fold, TreeFoldCounts *counts)
{
	bool alone;
	uint32_t folded;
	TreeStatus status;

	fold->range = range_from(fold, fold->range);
	if (fold->range == fold->empty->count)
	{
		level_end(fold);
		return TREE_OK;
	}
	status = fold_find(fold);
	if (status == TREE_OK)
		status = fold_children(fold, counts, &alone, &folded);
	if (status != TREE_OK && status != TREE_RETRY)
		return status;
	if (status == TREE_RETRY || fold->changed)
	{
		parent_retry(fold, counts);
		return TREE_OK;
	}
	if (alone)
		fold->missed = 0;
	else
		parent_miss(fold, counts);
	fold->inner = fold->inner || (fold->level > 1 && folded > 0);
	parent_pass(fold, folded > 0 || fold->first_waits);
	return TREE_OK;
}

TreeStatus
tree_fold_next(TreeFold *fold, TreeFoldCounts *counts)
{
	int section;
	TreeStatus status;

	assert(counts != NULL);
	assert(!fold->tree->client->holding);
	if (fold->ended || fold->empty->count == 0)
		return TREE_END;
	/* Inside of another call, or before tree_client_rest(): this client itself is in the way. */
	if (fold->tree->client->sections > 0)
	{
		counts->missed++;
		fold->ended = true;
		return TREE_END;
	}
	status = critical_enter(fold->tree, &section);
	if (status != TREE_OK)
		return status;
	status = fold_next(fold, counts);
	critical_leave(fold->tree, section);
	return status;
}

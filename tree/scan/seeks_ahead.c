/*
 * seeks_ahead.c
 *		Leaves where later seeks of a scan begin, read together before they are asked for.
 *
 * A caller that looks up many keys one after the other announces some of them to the scan first: a descent for each through the
 * cache finds its leaf, and one wave reads all of these.  A seek that begins in one of them takes its image instead of a READ.  The
 * image is as good as that: it was read after the scan was asked for these keys, in this epoch of the tree, and was validated as
 * any other; the caller's snapshot does not see what was added since.  One that does not do (torn, or its overflow keys are gone)
 * is read anew.
 */
#include "tree/scan/scan.h"
#include "tree/descent/descent.h"

struct SeeksAhead
{
	uint64_t epoch;   /* of the tree, when the leaves were found */
	bool forward;     /* their order */
	int count;        /* leaves that were found */
	int read;         /* that have images: all of them, or none yet */
	int next;         /* those before are behind the scan */
	bool fence_known; /* of the last one, its far fence as its parent has it */
	uint64_t fence[LINE_WORDS];
	uint64_t pointers[SEEKS_AHEAD_MAX];
	uint64_t parents[SEEKS_AHEAD_MAX];
	NodeVerdict verdicts[SEEKS_AHEAD_MAX];
	uint64_t *images[SEEKS_AHEAD_MAX];
};

static void
seeks_empty(SeeksAhead *f)
{
	f->count = f->read = f->next = 0;
}

void
tree_scan_forget_ahead(TreeScan *scan)
{
	if (scan->seeks != NULL)
		seeks_empty(scan->seeks);
}

/* The scan's memory for it. NULL: there is none. */
static SeeksAhead *
seeks_begin(TreeScan *scan, bool forward)
{
	const size_t head = (sizeof(SeeksAhead) + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
	const size_t leaf = scan->tree->geometry.leaf_bytes;
	SeeksAhead *f = scan->seeks;

	if (f == NULL)
	{
		uintptr_t place;

		f = client_allocate_beside(scan->tree->client, scan, head + LINE_BYTES + SEEKS_AHEAD_MAX * leaf);
		if (f == NULL)
			return NULL;
		scan->seeks = f;
		memset(f, 0, sizeof(*f));
		place = ((uintptr_t) f + head + LINE_BYTES - 1) & ~(uintptr_t) (LINE_BYTES - 1);
		for (int i = 0; i < SEEKS_AHEAD_MAX; i++, place += leaf)
			f->images[i] = (uint64_t *) place;
	}
	/* What has images was for earlier keys. */
	if (f->epoch != scan->tree->epoch || f->read > 0 || f->forward != forward)
		seeks_empty(f);
	f->epoch = scan->tree->epoch;
	f->forward = forward;
	return f;
}

/* Whether this bound lies in the leaf found last, too, as far as that is known without a round trip. */
static bool
is_in_last(Tree *tree, const SeeksAhead *f, const TreeBound *start)
{
	return f->count > 0 && f->fence_known && search_far_fence(tree, start, f->fence, f->forward) < 0;
}

bool
tree_scan_ahead_reaches(const TreeScan *scan, const TreeBound *start)
{
	return scan->seeks != NULL && is_in_last(scan->tree, scan->seeks, start);
}

/* tree_scan_seek_ahead(), as a critical section. */
static TreeStatus
seek_ahead(TreeScan *scan, SeeksAhead *f, const TreeBound *start)
{
	Tree *tree = scan->tree;
	Path path;
	TreeStatus status;

	if (is_in_last(tree, f, start))
		return TREE_OK;
	status = search_descend(tree, start, 0, false, &path);
	/* The root has no image here, and none is needed if it is a leaf. */
	if (status != TREE_OK || pointer_address(path.pointer) == tree->root)
		return status == TREE_RETRY ? TREE_OK : status;
	f->fence_known = path.fences_known;
	memset(f->fence, 0, sizeof(f->fence));
	memcpy(f->fence, f->forward ? path.high : path.low, tree->geometry.cell_bytes);
	if (f->count > 0 && pointer_address(f->pointers[f->count - 1]) == pointer_address(path.pointer))
		return TREE_OK;
	f->pointers[f->count] = path.pointer;
	f->parents[f->count] = path.parents[1];
	f->count++;
	return TREE_OK;
}

TreeStatus
tree_scan_seek_ahead(TreeScan *scan, TreeDirection direction, const TreeBound *start, int most, bool *more)
{
	SeeksAhead *f;
	int section;
	TreeStatus status;

	assert(!scan->tree->client->holding);
	assert(most >= 1);
	*more = false;
	status = critical_enter(scan->tree, &section);
	if (status != TREE_OK)
		return status;
	f = seeks_begin(scan, direction == TREE_FORWARD);
	if (f != NULL && f->count < most && f->count < SEEKS_AHEAD_MAX)
	{
		status = seek_ahead(scan, f, start);
		*more = status == TREE_OK && f->count < most && f->count < SEEKS_AHEAD_MAX;
	}
	critical_leave(scan->tree, section);
	return status;
}

TreeStatus
tree_scan_fetch_ahead(TreeScan *scan)
{
	SeeksAhead *f = scan->seeks;
	int section;
	TreeStatus status;

	assert(!scan->tree->client->holding);
	if (f == NULL || f->count == 0 || f->read > 0)
		return TREE_OK;
	status = critical_enter(scan->tree, &section);
	if (status != TREE_OK)
		return status;
	if (f->epoch != scan->tree->epoch)
		seeks_empty(f);
	if (f->count > 0)
	{
		leaves_mark(scan, f->pointers, f->count);
		status = leaf_cache_read_leaves(scan->tree, f->pointers, f->count, f->images, f->verdicts);
	}
	if (status == TREE_OK)
		f->read = f->count;
	else
		seeks_empty(f);
	critical_leave(scan->tree, section);
	return status == TREE_RETRY ? TREE_OK : status;
}

TreeStatus
seeks_take(TreeScan *scan, uint64_t **leaf, uint64_t *pointer, uint64_t *parent)
{
	Tree *tree = scan->tree;
	SeeksAhead *f = scan->seeks;

	*leaf = NULL;
	if (f->epoch != tree->epoch)
		return TREE_OK;
	for (; f->next < f->read; f->next++)
	{
		int low = -1, high = -1;
		TreeStatus status = TREE_OK;

		if (f->verdicts[f->next] != NODE_GOOD)
			continue;
		status = search_compare_fence(tree, &scan->start, f->images[f->next], false, &low);
		if (status == TREE_OK && low >= 0)
			status = search_compare_fence(tree, &scan->start, f->images[f->next], true, &high);
		if (status != TREE_OK)
			return status == TREE_RETRY ? TREE_OK : status;
		if (low >= 0 && high < 0)
			break;
		/* It lies before all that is left. */
		if (f->forward ? low < 0 : high >= 0)
			return TREE_OK;
	}
	if (f->next >= f->read)
		return TREE_OK;
	*leaf = f->images[f->next];
	*pointer = f->pointers[f->next];
	*parent = f->parents[f->next];
	return TREE_OK;
}

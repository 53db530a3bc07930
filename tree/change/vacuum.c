/*
 * vacuum.c
 *		Removing entries: from the leftmost leaf along the right links to the last one, many at once where that is possible
 *		(vacuum_wave.c).
 *
 * A leaf is read and judged without a lock. Only one with victims is locked, and they are removed by a rewrite, with
 * the next generation, if it still is the generation that was judged: inside one nothing leaves its slot (I-T5), and
 * an insert that finds its own entry there raises it (I-P3). Entries only move right in an epoch of the tree, so the walk
 * sees each that was there at its start at least once. An empty leaf, or one that is nearly so, stays where it is and may be
 * filled again, or it is merged into its left neighbor after the walk; its range is remembered for that (merge_walk.c).
 */
#include "tree/change/vacuum.h"
#include "tree/scan/scan.h"
#include "tree/descent/descent.h"
#include "tree/change/change.h"

/* Room for a wave's leaves, each twice: those of an inner node at least. */
#define WAVE_BYTES (1024u * 1024u)

/*
 * Tries at one leaf, in a row, that end without a judged leaf and without a sign of anybody else's work: so many are none on a
 * sound tree.  Where others change the leaf between the judgment and the lock a try says nothing of the tree; it is made again for
 * as long as a lock is waited for, and at least so often.
 */
#define JUDGE_ATTEMPTS 1000

/* How many leaves a wave has room for. */
static uint32_t
wave_leaves(const NodeGeometry *g)
{
	uint32_t most = WAVE_BYTES / (2 * g->leaf_bytes);

	if (most < g->inner_cells)
		most = g->inner_cells;
	return most < READ_TOGETHER_MAX ? most : READ_TOGETHER_MAX;
}

TreeStatus
tree_vacuum_open(Tree *handle, TreeVacuum **vacuum)
{
	const size_t head = (sizeof(TreeVacuum) + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
	const size_t leaf = handle->geometry.leaf_bytes;
	const uint32_t most = wave_leaves(&handle->geometry);
	TreeVacuum *v;
	char *place;

	assert(handle->client != NULL);
	assert(vacuum != NULL);
	*vacuum = NULL;
	v = client_allocate(handle->client,
	                    head + LINE_BYTES + 2 * NODE_MAX_BYTES + 2 * most * leaf + FENCE_IMAGE_BYTES);
	if (v == NULL)
		return client_fail(handle->client, TREE_NO_MEMORY, "no memory for a vacuum");
	memset(v, 0, sizeof(*v));
	v->tree = handle;
	v->depth = v->most = (int) most;
	place = (char *) (((uintptr_t) v + head + LINE_BYTES - 1) & ~(uintptr_t) (LINE_BYTES - 1));
	v->single.image = (uint64_t *) place;
	v->parent = (uint64_t *) (place + NODE_MAX_BYTES);
	place += 2 * NODE_MAX_BYTES;
	for (uint32_t i = 0; i < most; i++, place += 2 * leaf)
	{
		v->wave[i].image = (uint64_t *) place;
		v->wave[i].locked = (uint64_t *) (place + leaf);
	}
	v->fence_image = (uint8_t *) place;
	*vacuum = v;
	return TREE_OK;
}

void
tree_vacuum_close(TreeVacuum *vacuum)
{
	if (vacuum == NULL)
		return;
	assert(vacuum->tree != NULL);
	assert(!vacuum->tree->client->holding);
	client_release(vacuum->tree->client, vacuum);
}

const SparseRanges *
vacuum_sparse_ranges(const TreeVacuum *vacuum)
{
	assert(vacuum->tree != NULL);
	return &vacuum->sparse;
}

/* Finds the leftmost leaf. Not through the cache: the height goes into the estimates. */
static TreeStatus
vacuum_begin(TreeVacuum *vacuum)
{
	TreeBound bound;
	Path path;
	TreeStatus status;

	assert(!vacuum->begun);
	assert(!vacuum->tree->client->holding);
	bound_of_end(&vacuum->tree->geometry, false, &bound);
	status = search_descend(vacuum->tree, &bound, 0, true, &path);
	if (status != TREE_OK)
		return status;
	vacuum->next = path.pointer;
	vacuum->height = path.root_level + 1;
	vacuum->walk.steps = 0;
	vacuum->left_cells = FOLD_NEVER;
	vacuum->begun = true;
	return TREE_OK;
}

/*
 * Removes the victims under the leaf's lock. TREE_RETRY: its generation has changed since it was judged, or a chain
 * was indeterminate and is settled now: read it again.
 */
static TreeStatus
vacuum_remove(TreeVacuum *vacuum, VacuumLeaf *leaf)
{
	Tree *tree = vacuum->tree;
	uint64_t *old = tree->client->image;
	uint32_t bytes = tree_node_bytes(tree, leaf->pointer, 0);
	LockHandle lock;
	TreeStatus status;

	assert(leaf->victim_count > 0);
	status = lock_and_read(tree, leaf->pointer, bytes, old, &lock);
	if (status != TREE_OK)
		return status;
	if (!vacuum_unchanged(&tree->geometry, leaf, old))
	{
		vacuum->outrun = true;
		status = lock_release(tree, &lock, leaf->pointer, old, bytes);
		return status == TREE_OK ? TREE_RETRY : status;
	}
	vacuum_mark(&tree->geometry, leaf, old);
	status = leaf_rewrite(tree, &lock, leaf->pointer, old, &leaf->live);
	if (status != TREE_OK)
		return status;
	leaf->cells = fold_cells(&tree->geometry, tree->client->image_left);
	TREE_COUNT(tree, deletes, leaf->victim_count);
	return TREE_OK;
}

/* One try at the leaf vacuum->next; TREE_RETRY: again. */
static TreeStatus
vacuum_visit(TreeVacuum *vacuum, TreeIsDead is_dead, void *argument)
{
	Tree *tree = vacuum->tree;
	VacuumLeaf *leaf = &vacuum->single;
	TreeStatus status = access_read_node(tree, vacuum->next, 0, leaf->image);

	assert(vacuum->begun);
	/* Where the only leaf has become the root of more, they are all still to be visited. */
	if (status == TREE_RETRY && pointer_address(vacuum->next) == tree->root)
		vacuum->begun = false;
	if (status != TREE_OK)
		return status;
	leaf->pointer = vacuum->next;
	if (!vacuum_is_at(vacuum, leaf))
		return client_fail(tree->client, TREE_DAMAGED,
		                   "leaf %llx: does not begin where the one before it ends",
		                   (unsigned long long) vacuum->next);
	vacuum_choose(vacuum, leaf, is_dead, argument);
	return leaf->victim_count > 0 ? vacuum_remove(vacuum, leaf) : TREE_OK;
}

/* At the end of the walk its count is the tree's number of entries, but for changes meanwhile. */
static void
vacuum_end(TreeVacuum *vacuum)
{
	Tree *tree = vacuum->tree;
	TreeStatistics before;
	uint64_t inner = 0;
	bool known;

	assert(vacuum->leaves > 0);
	assert(vacuum->height > 0);
	vacuum->ended = true;
	tree_count_flush(tree);
	state_read(tree->state, &before, &known);
	if (vacuum->height > 1)
	{
		/* Inner nodes were not walked: those known, or as many as half-filled ones would be. */
		inner = before.inner_nodes;
		if (!known || inner == 0)
			inner = 1 + vacuum->leaves / (tree->geometry.inner_cells / 2);
	}
	state_set(tree->state, vacuum->entries, vacuum->leaves, inner, vacuum->height);
}

/* Another process has taken leaves out of the tree since the last call: the walk begins anew. */
static void
vacuum_refresh(TreeVacuum *vacuum)
{
	assert(!vacuum->ended);
	assert(vacuum->tree->client->sections > 0);
	if (vacuum->epoch == vacuum->tree->epoch)
		return;
	vacuum->epoch = vacuum->tree->epoch;
	vacuum->begun = false;
	vacuum->parent_known = false;
	vacuum->wave_count = 0;
	vacuum->leaves = 0;
	vacuum->entries = 0;
	vacuum->sparse.count = 0;
}

/* Whether a leaf that others have changed meanwhile is tried again: TREE_RETRY; or the error that the walk ends with. */
static TreeStatus
vacuum_outrun(TreeVacuum *vacuum)
{
	TreeClient *client = vacuum->tree->client;

	assert(vacuum->outrun);
	vacuum->outrun = false;
	if (client_outrun(client, &vacuum->outruns, JUDGE_ATTEMPTS))
		return TREE_RETRY;
	return client_fail(client, TREE_TIMED_OUT,
	                   "leaf %llx: changed by others in %u tries to remove its entries",
	                   (unsigned long long) vacuum->next, vacuum->outruns.tries);
}

/* Tries at the leaf vacuum->next, or at the first one, until it is judged and rid of its victims. */
static TreeStatus
vacuum_tries(TreeVacuum *vacuum, TreeIsDead is_dead, void *argument)
{
	TreeClient *client = vacuum->tree->client;
	TreeStatus status = TREE_RETRY;

	vacuum->outrun = false;
	vacuum->outruns = (Outrun){0};
	for (int attempts = 0; status == TREE_RETRY && attempts < JUDGE_ATTEMPTS; attempts++)
	{
		status = vacuum->begun ? TREE_OK : vacuum_begin(vacuum);
		if (status == TREE_OK)
			status = vacuum_visit(vacuum, is_dead, argument);
		if (status == TREE_RETRY && client_should_stop(client))
			return client_fail(client, TREE_STOPPED, "stopped between two tries at a leaf");
		if (status == TREE_RETRY && vacuum->outrun)
		{
			status = vacuum_outrun(vacuum);
			attempts = 0;
		}
	}
	if (status != TREE_RETRY)
		return status;
	return client_fail(client, TREE_DAMAGED, "leaf %llx: not the same in %d tries",
	                   (unsigned long long) vacuum->next, JUDGE_ATTEMPTS);
}

/* The walk goes on behind a leaf whose victims are removed. */
static TreeStatus
vacuum_pass(TreeVacuum *vacuum, const VacuumLeaf *leaf, TreeVacuumCounts *counts)
{
	const NodeGeometry *g = &vacuum->tree->geometry;
	bool sparse = leaf->live > 0 && fold_fits(g, vacuum->left_cells, leaf->cells);

	assert(pointer_address(leaf->pointer) == pointer_address(vacuum->next));
	counts->leaves++;
	counts->entries += leaf->live;
	counts->empty += leaf->live == 0;
	counts->sparse += sparse;
	if (leaf->live == 0 || sparse)
		sparse_ranges_add(g, &vacuum->sparse, leaf->image);
	vacuum->left_cells = leaf->cells;
	vacuum->leaves++;
	vacuum->entries += leaf->live;
	if (!walk_goes_on(&vacuum->walk, vacuum->next, 0))
		return access_ring(vacuum->tree, vacuum->next);
	vacuum->next = leaf->image[HEADER_RIGHT];
	node_get_fence(g, leaf->image, true, vacuum->low);
	if (vacuum->next == POINTER_NONE)
		vacuum_end(vacuum);
	return TREE_OK;
}

/* The wave's image of the current leaf; NULL: there is none. */
static VacuumLeaf *
wave_head(TreeVacuum *vacuum)
{
	VacuumLeaf *leaf = vacuum->wave_next < vacuum->wave_count ? &vacuum->wave[vacuum->wave_next] : NULL;

	return leaf != NULL && !vacuum->ended && vacuum_is_at(vacuum, leaf) ? leaf : NULL;
}

/* Passes the current leaf and the following ones of the wave, as far as they have no victims any more. */
static TreeStatus
pass_done(TreeVacuum *vacuum, TreeVacuumCounts *counts)
{
	VacuumLeaf *leaf = wave_head(vacuum);
	TreeStatus status = TREE_OK;

	while (status == TREE_OK && leaf != NULL && leaf->done)
	{
		status = vacuum_pass(vacuum, leaf, counts);
		vacuum->wave_next++;
		leaf = wave_head(vacuum);
	}
	return status;
}

/* Handles the current leaf alone: as the wave has judged it, or, if that is not valid any more, read anew. */
static TreeStatus
pass_single(TreeVacuum *vacuum, TreeIsDead is_dead, void *argument, TreeVacuumCounts *counts)
{
	VacuumLeaf *leaf = wave_head(vacuum);
	TreeStatus status = TREE_RETRY;

	if (leaf != NULL)
		status = vacuum_remove(vacuum, leaf);
	if (status == TREE_RETRY)
	{
		leaf = &vacuum->single;
		status = vacuum_tries(vacuum, is_dead, argument);
	}
	if (status != TREE_OK)
		return status;
	vacuum->wave_next++;
	counts->removed += leaf->victim_count;
	counts->rewritten += leaf->victim_count > 0;
	return vacuum_pass(vacuum, leaf, counts);
}

/* tree_vacuum_next(), as a critical section. */
static TreeStatus
vacuum_next(TreeVacuum *vacuum, TreeIsDead is_dead, void *argument, TreeVacuumCounts *counts)
{
	const VacuumLeaf *leaf;
	TreeStatus status = TREE_OK;

	vacuum_refresh(vacuum);
	if (!vacuum->begun)
		status = vacuum_begin(vacuum);
	if (status == TREE_OK && wave_head(vacuum) == NULL)
		status = vacuum_wave(vacuum, is_dead, argument, counts);
	if (status != TREE_OK && status != TREE_RETRY)
		return status;
	leaf = status == TREE_OK ? wave_head(vacuum) : NULL;
	if (leaf != NULL && leaf->done)
		return pass_done(vacuum, counts);
	return pass_single(vacuum, is_dead, argument, counts);
}

TreeStatus
tree_vacuum_next(TreeVacuum *vacuum, TreeIsDead is_dead, void *argument, TreeVacuumCounts *counts)
{
	Tree *tree = vacuum->tree;
	int section;
	TreeStatus status;

	assert(counts != NULL);
	assert(!tree->client->holding);
	if (vacuum->ended)
		return TREE_END;
	status = critical_enter(tree, &section);
	if (status != TREE_OK)
		return status;
	status = vacuum_next(vacuum, is_dead, argument, counts);
	critical_leave(tree, section);
	return status;
}

/*
 * vacuum_wave.c
 *		Many leaves of a vacuum's walk at once.
 *
 *		choose		the leaf at hand and those behind it, as copies of their parents name them
 *		READs		one wave, with nothing held
 *		tile		the authority is the leaves': each is the right sibling of the one before it, and begins where that one ends
 *		judge		with nothing held
 *		locks		of the leaves with victims, by try
 *		READs		one wave, of leaves that may have been written meanwhile: has the leaf still its generation, and each victim
 *					its slot?
 *		WRITEs		one wave
 *
 * A copy of a parent may have any age within the tree's epoch: the leaves that it names are leaves of the tree. The
 * leaves of a wave are read in no order, and tile nevertheless: an entry that moves goes to a new leaf on the right
 * of its own, and then the copy of one of the two shows that a leaf lies between.
 *
 * Victims are removed by waves where the local lock table is all that excludes others, and where no redo image goes
 * in front of a leaf (a channel has room for one, and a death may come between any two). Elsewhere, and for a leaf
 * that another process has locked or that has changed since it was judged, vacuum.c removes them leaf by leaf.
 */
#include "tree/change/vacuum.h"

#include "tree/client/wave.h"
#include "tree/lock/lock_many.h"
#include "tree/scan/scan.h"
#include "tree/descent/descent.h"
#include "tree/change/change.h"

/* Words of the local lock table guard several nodes: those that had to wait for another of the wave come in the next turn. */
#define LOCK_TURNS 2

/* ---- choosing ---- */

/* Makes vacuum->parent a copy of this node. It is known if it is of level 1. */
static TreeStatus
parent_copy(TreeVacuum *vacuum, uint64_t pointer)
{
	TreeStatus status = TREE_RETRY;

	vacuum->parent_known = false;
	if (pointer_address(pointer) == POINTER_NONE)
		return TREE_OK;
	if (cache_copy(vacuum->tree, pointer, vacuum->parent) == TREE_OK && node_level(vacuum->parent) == 1)
		status = TREE_OK;
	else
		status = access_read_node(vacuum->tree, pointer, 1, vacuum->parent);
	vacuum->parent_known = status == TREE_OK;
	return status == TREE_RETRY ? TREE_OK : status;
}

/* Finds the parent of the current leaf by a descent. */
static TreeStatus
parent_descend(TreeVacuum *vacuum)
{
	Tree *tree = vacuum->tree;
	TreeBound bound;
	Path path;
	TreeStatus status = TREE_OK;

	bound_of_end(&tree->geometry, false, &bound);
	if (vacuum->leaves > 0)
		status = search_separator_bound(tree, vacuum->low, 0, &bound, vacuum->fence_image);
	if (status == TREE_OK)
		status = search_descend(tree, &bound, 0, false, &path);
	if (status == TREE_OK && path.parents[1] != 0)
		status = parent_copy(vacuum, path.parents[1]);
	return status == TREE_RETRY ? TREE_OK : status;
}

/* The number of the current leaf among the children of the parent's copy; their count: it is none of them. */
static uint32_t
parent_place(const TreeVacuum *vacuum)
{
	const NodeGeometry *g = &vacuum->tree->geometry;
	uint32_t count = vacuum->parent_known ? node_count(vacuum->parent) : 0;
	uint32_t place = 0;

	while (place < count &&
	       pointer_address(vacuum->parent[inner_cell_word(g, place)]) != pointer_address(vacuum->next))
		place++;
	return place;
}

/*
 * Finds a parent that names the current leaf, without round trips where other processes split leaves: *place as
 * parent_place().
 */
static TreeStatus
parent_find(TreeVacuum *vacuum, uint32_t *place)
{
	const NodeGeometry *g = &vacuum->tree->geometry;
	TreeStatus status = TREE_OK;

	*place = parent_place(vacuum);
	if (!vacuum->parent_known)
		status = parent_descend(vacuum);
	else if (*place == node_count(vacuum->parent) && vacuum->leaves > 0 &&
	         separator_equal(g, vacuum->parent + g->high_word, vacuum->low))
		status = parent_copy(vacuum, vacuum->parent[HEADER_RIGHT]);
	else
		return TREE_OK;
	*place = parent_place(vacuum);
	return status;
}

/*
 * Takes children of the parent's copy, from number `place` on, into the wave.  Whether there is room for those of the next parent, and
 * something is gained by that: where a memory node is mapped nobody waits for it.
 */
static bool
parent_take(TreeVacuum *vacuum, uint32_t place, int *count)
{
	const NodeGeometry *g = &vacuum->tree->geometry;
	TreeClient *client = vacuum->tree->client;

	for (; place < node_count(vacuum->parent) && *count < vacuum->depth; place++)
		vacuum->wave[(*count)++].pointer = vacuum->parent[inner_cell_word(g, place)];
	return *count < vacuum->depth && vacuum->parent[HEADER_RIGHT] != POINTER_NONE &&
	       access_endpoint(client, pointer_memory_node(vacuum->next)) != NULL &&
	       !access_is_mapped(client, pointer_memory_node(vacuum->next));
}

/* The current leaf and those behind it, as long as their parents are to be had. *count is 0 if no parent names it. */
static TreeStatus
wave_choose(TreeVacuum *vacuum, int *count)
{
	uint32_t place;
	TreeStatus status = parent_find(vacuum, &place);

	*count = 0;
	if (status != TREE_OK || !vacuum->parent_known || place == node_count(vacuum->parent))
		return status;
	while (parent_take(vacuum, place, count))
	{
		status = parent_copy(vacuum, vacuum->parent[HEADER_RIGHT]);
		if (status != TREE_OK || !vacuum->parent_known)
			return status;
		place = 0;
	}
	return TREE_OK;
}

/* ---- READs ---- */

/* How many of the leaves that were read, from the first on, are valid and follow each other. */
static uint32_t
wave_tile(const TreeVacuum *vacuum, int count, const NodeVerdict *verdicts)
{
	const NodeGeometry *g = &vacuum->tree->geometry;
	int tiled = 0;

	while (tiled < count && verdicts[tiled] == NODE_GOOD)
	{
		const VacuumLeaf *leaf = &vacuum->wave[tiled];
		const uint64_t *before = tiled > 0 ? leaf[-1].image : NULL;

		if (before == NULL ? !vacuum_is_at(vacuum, leaf)
		                   : !vacuum_follows(g, leaf, before[HEADER_RIGHT], before + g->high_word))
			break;
		tiled++;
	}
	return (uint32_t) tiled;
}

/*
 * If most of the leaves that were read are of no use, as the READs took too long or other processes split leaves, the
 * next wave is smaller.
 */
static void
wave_adapt(TreeVacuum *vacuum, int read)
{
	if ((int) vacuum->wave_count < read / 2)
		vacuum->depth = vacuum->depth > 2 ? vacuum->depth / 2 : 1;
	else
		vacuum->depth = vacuum->depth * 2 < vacuum->most ? vacuum->depth * 2 : vacuum->most;
	/* The parent's copy is of the leaves at the wave's end. */
	if ((int) vacuum->wave_count < read)
		vacuum->parent_known = false;
}

static TreeStatus
wave_read(TreeVacuum *vacuum, int count)
{
	uint64_t pointers[READ_TOGETHER_MAX];
	uint64_t *images[READ_TOGETHER_MAX];
	NodeVerdict verdicts[READ_TOGETHER_MAX];
	LeafKey keys[READ_TOGETHER_MAX];
	TreeStatus status;
	int read = 0;

	assert(count > 0 && count <= vacuum->most);
	do
	{
		pointers[read] = vacuum->wave[read].pointer;
		images[read] = vacuum->wave[read].image;
	} while (++read < count);
	status = leaf_cache_pass_leaves(vacuum->tree, pointers, count, images, verdicts, keys);
	for (int i = 0; i < count; i++)
		vacuum->wave[i].key = keys[i];
	vacuum->wave_count = status == TREE_OK ? wave_tile(vacuum, count, verdicts) : 0;
	wave_adapt(vacuum, count);
	return status == TREE_RETRY ? TREE_OK : status;
}

/* ---- removals ---- */

/* Whether victims can be removed by waves at this memory node. Nothing is held. */
static bool
place_does(Tree *tree, uint32_t memory_node)
{
	return place_is_ready(tree->client, memory_node) == TREE_OK && lock_many_usable(tree, memory_node) &&
	       tree->geometry.leaf_bytes <= access_capabilities(tree->client, memory_node)->one_packet;
}

/* The memory nodes, a bit each, of leaves whose victims can be removed by a wave. */
static uint64_t
wave_places(const TreeVacuum *vacuum)
{
	uint64_t asked = 0, places = 0;

	for (uint32_t i = 0; i < vacuum->wave_count; i++)
	{
		uint32_t memory_node = pointer_memory_node(vacuum->wave[i].pointer);
		uint64_t bit = 1ull << memory_node;

		if (vacuum->wave[i].done || (asked & bit) != 0)
			continue;
		asked |= bit;
		if (place_does(vacuum->tree, memory_node))
			places |= bit;
	}
	return places;
}

/* Whether the leaf's copy under its lock is to be had without a READ: it is what was judged, or has an image. */
static bool
locked_known(Tree *tree, VacuumLeaf *leaf)
{
	if (!leaf_cache_unwritten(tree, &leaf->key))
		return leaf_cache_take_locked(tree, leaf->pointer, leaf->locked);
	memcpy(leaf->locked, leaf->image, tree->geometry.leaf_bytes);
	return true;
}

/* Reads the leaves that are locked. */
static TreeStatus
locked_read(TreeVacuum *vacuum, Wave *wave)
{
	Tree *tree = vacuum->tree;
	TreeStatus status = TREE_OK;

	wave_begin(wave, tree);
	for (uint32_t i = 0; i < vacuum->wave_count; i++)
	{
		VacuumLeaf *leaf = &vacuum->wave[i];
		FabricOp op = {.opcode = FABRIC_READ,
		               .region = FABRIC_NODES,
		               .length = tree->geometry.leaf_bytes,
		               .offset = pointer_offset(leaf->pointer),
		               .buffer = leaf->locked};

		if (leaf->lock.held && !locked_known(tree, leaf))
			wave_add(wave, leaf->lock.place, &op);
	}
	wave_end(wave);
	for (uint32_t i = 0; status == TREE_OK && i < vacuum->wave_count; i++)
		if (vacuum->wave[i].lock.held)
			status = wave_status(wave, vacuum->wave[i].lock.place);
	return status;
}

/* Adds the rewrite of a locked leaf to the wave, if the leaf is still the one that was judged. */
static void
leaf_add(Tree *tree, VacuumLeaf *leaf, Wave *wave)
{
	const NodeGeometry *g = &tree->geometry;
	FabricOp op = {.opcode = FABRIC_WRITE,
	               .region = FABRIC_NODES,
	               .length = g->leaf_bytes,
	               .offset = pointer_offset(leaf->pointer),
	               .buffer = leaf->image};

	if (node_check_locked(g, leaf->locked, tree->tree, leaf->pointer) != NODE_GOOD ||
	    !vacuum_unchanged(g, leaf, leaf->locked))
		return;
	vacuum_mark(g, leaf, leaf->locked);
	leaf->live = leaf_rewrite_image(g, leaf->pointer, leaf->locked, leaf->image);
	leaf->cells = fold_cells(g, leaf->image);
	lock_many_writes(tree, leaf->pointer, &leaf->lock);
	leaf->writes = true;
	wave_add(wave, leaf->lock.place, &op);
}

/* Rewrites the leaves that are locked. TREE_RETRY: some of them, perhaps. */
static TreeStatus
locked_write(TreeVacuum *vacuum, Wave *wave)
{
	Tree *tree = vacuum->tree;
	TreeStatus status = TREE_OK;

	wave_begin(wave, tree);
	for (uint32_t i = 0; i < vacuum->wave_count; i++)
		if (vacuum->wave[i].lock.held)
			leaf_add(tree, &vacuum->wave[i], wave);
	wave_end(wave);
	for (uint32_t i = 0; i < vacuum->wave_count; i++)
	{
		VacuumLeaf *leaf = &vacuum->wave[i];
		TreeStatus wrote = leaf->writes ? wave_status(wave, leaf->lock.place) : TREE_OK;

		if (leaf->writes && wrote == TREE_OK)
		{
			leaf->done = true;
			leaf_cache_passed(tree, leaf->pointer, leaf->image);
		}
		status = status == TREE_OK ? wrote : status;
	}
	return status;
}

/*
 * After acknowledged rewrites: counts the entries that they have removed, and gives back their blocks. Nothing is
 * held.
 */
static void
removed_count(TreeVacuum *vacuum, TreeVacuumCounts *counts)
{
	Tree *tree = vacuum->tree;

	for (uint32_t i = 0; i < vacuum->wave_count; i++)
	{
		VacuumLeaf *leaf = &vacuum->wave[i];

		if (!leaf->writes || !leaf->done)
			continue;
		counts->removed += leaf->victim_count;
		counts->rewritten++;
		TREE_COUNT(tree, deletes, leaf->victim_count);
		TREE_COUNT(tree, leaf_rewrites, 1);
		leaf_free_blocks(tree, leaf->locked, LEAF_NO_SLOT, NULL);
	}
}

/*
 * The wave ends before a leaf that may or may not have been written: its image that was judged is not valid any more.
 */
static void
unknown_drop(VacuumLeaf *wave, uint32_t *count)
{
	uint32_t known = 0;

	while (known < *count && (wave[known].done || !wave[known].writes))
		known++;
	*count = known;
}

/* Removes the victims of all leaves of the wave that can be locked at once. */
static TreeStatus
wave_remove(TreeVacuum *vacuum, Wave *wave, uint64_t places, TreeVacuumCounts *counts)
{
	Tree *tree = vacuum->tree;
	TreeStatus status = lock_many_begin(tree);

	if (status != TREE_OK)
		return status;
	for (uint32_t i = 0; i < vacuum->wave_count; i++)
	{
		VacuumLeaf *leaf = &vacuum->wave[i];

		leaf->lock.held = false;
		leaf->writes = false;
		if (!leaf->done && (places & 1ull << pointer_memory_node(leaf->pointer)) != 0)
			(void) lock_many_try(tree, leaf->pointer, &leaf->lock);
	}
	status = locked_read(vacuum, wave);
	if (status == TREE_OK)
		status = locked_write(vacuum, wave);
	for (uint32_t i = 0; i < vacuum->wave_count; i++)
		if (vacuum->wave[i].lock.held)
			lock_many_release(tree, &vacuum->wave[i].lock);
	lock_many_end(tree);
	removed_count(vacuum, counts);
	unknown_drop(vacuum->wave, &vacuum->wave_count);
	return status == TREE_RETRY ? TREE_OK : status;
}

static bool
wave_is_done(const TreeVacuum *vacuum)
{
	for (uint32_t i = 0; i < vacuum->wave_count; i++)
		if (!vacuum->wave[i].done)
			return false;
	return true;
}

/* ---- the wave ---- */

TreeStatus
vacuum_wave(TreeVacuum *vacuum, TreeIsDead is_dead, void *argument, TreeVacuumCounts *counts)
{
	Tree *tree = vacuum->tree;
	Wave *wave;
	int chosen;
	TreeStatus status;

	vacuum->wave_count = vacuum->wave_next = 0;
	if (pointer_address(vacuum->next) == tree->root)
		return TREE_OK;
	status = wave_choose(vacuum, &chosen);
	if (status == TREE_OK && chosen > 0)
		status = wave_read(vacuum, chosen);
	if (status != TREE_OK)
		return status;
	for (uint32_t i = 0; i < vacuum->wave_count; i++)
	{
		vacuum_choose(vacuum, &vacuum->wave[i], is_dead, argument);
		vacuum->wave[i].done = vacuum->wave[i].victim_count == 0;
	}
	wave = access_wave(tree);
	for (int turn = 0; wave != NULL && turn < LOCK_TURNS && status == TREE_OK && !wave_is_done(vacuum);
	     turn++)
	{
		uint64_t places = wave_places(vacuum);

		if (places == 0)
			break;
		status = wave_remove(vacuum, wave, places, counts);
	}
	return status;
}

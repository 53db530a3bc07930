/*
 * downlink_wave.c
 *		See downlink_wave.h.
 *
 * A parent gets all of its downlinks by one rewrite: where each of them goes is found as downlink.c finds it, in the image that
 * has those before it, under the parent's lock and by integers.  A downlink that is missing costs readers a step to the right,
 * never an answer: so a parent whose chain was lost is simply tried again by itself.
 */
#include "tree/descent/downlink_wave.h"

#include "tree/descent/downlink.h"

/* Parents of a wave. */
#define PARENTS_MAX 64u

/* Waves for the same downlinks; between two of them full parents are split, which leaves room for half as many as a node has. */
#define TURNS_MAX 8

typedef struct Parent
{
	uint64_t pointer;
	uint64_t *image;
	LockHandle lock;
	RedoHeader redo;
	uint32_t first; /* its downlinks: [first, end) */
	uint32_t end;
	uint32_t added;
} Parent;

typedef struct Parents
{
	Tree *tree;
	Downlink *links;
	Wave *wave;
	uint32_t count;
	Parent parents[PARENTS_MAX];
} Parents;

/* Whether nodes at this memory node can be locked and written by waves now. */
static bool
memory_node_usable(const Tree *tree, uint32_t memory_node)
{
	return memory_node < tree->client->options.nodes &&
	       place_is_ready(tree->client, memory_node) == TREE_OK && lock_many_usable(tree, memory_node);
}

/* Takes the parents of the downlinks that are left, as far as there is room. */
static void
parents_take(Parents *parents, uint32_t links, const DownlinkRoom *room)
{
	uint32_t end;

	parents->count = 0;
	for (uint32_t i = 0; i < links; i = end)
	{
		uint64_t pointer = parents->links[i].parent;
		Parent *parent = &parents->parents[parents->count];

		end = i + 1;
		if (parents->links[i].done)
			continue;
		while (end < links && pointer_address(parents->links[end].parent) == pointer_address(pointer))
			end++;
		if (parents->count == PARENTS_MAX || parents->count == room->count)
			return;
		if (pointer == 0 || !memory_node_usable(parents->tree, pointer_memory_node(pointer)))
			continue;
		*parent = (Parent){.pointer = pointer, .first = i, .end = end};
		parent->image = room->images + parents->count * INNER_BYTES / 8;
		parents->count++;
	}
}

static void
parents_read(Parents *parents)
{
	wave_begin(parents->wave, parents->tree);
	for (uint32_t i = 0; i < parents->count; i++)
	{
		const Parent *parent = &parents->parents[i];
		FabricOp op = {.opcode = FABRIC_READ,
		               .region = FABRIC_NODES,
		               .length = INNER_BYTES,
		               .offset = pointer_offset(parent->pointer),
		               .buffer = parent->image};

		if (parent->lock.held)
			wave_add(parents->wave, parent->lock.place, &op);
	}
	wave_end(parents->wave);
}

/* Puts the parent's downlinks into its image, as far as integers place them and it has room. */
static void
parent_place(const Parents *parents, Parent *parent)
{
	Tree *tree = parents->tree;
	const NodeGeometry *g = &tree->geometry;
	uint64_t *node = parent->image;
	DownlinkInsertion insertion;

	if (wave_status(parents->wave, parent->lock.place) != TREE_OK ||
	    node_check_locked(g, node, tree->tree, parent->pointer) != NODE_GOOD || node_level(node) != 1)
		return;
	for (uint32_t i = parent->first; i < parent->end; i++)
	{
		Downlink *link = &parents->links[i];
		uint32_t index;
		DownlinkPlace place;

		if (link->done)
			continue;
		downlink_begin(&insertion, tree, 0, link->left, link->separator, link->right, link->path);
		place = downlink_place(&insertion, node, &index);
		link->done = place == DOWNLINK_PRESENT;
		link->full = place == DOWNLINK_HERE && node_count(node) == g->inner_cells;
		if (place != DOWNLINK_HERE || link->full)
			continue;
		downlink_put(g, node, index, link->right, insertion.separator);
		link->done = true;
		parent->added++;
	}
	if (parent->added == 0)
		return;
	node_next_generation(node);
	node_seal(g, node);
}

static void
parents_write(Parents *parents)
{
	Tree *tree = parents->tree;

	wave_begin(parents->wave, tree);
	for (uint32_t i = 0; i < parents->count; i++)
	{
		Parent *parent = &parents->parents[i];
		FabricOp ops[REDO_OPS + 1];
		int count;

		if (parent->added == 0)
			continue;
		lock_many_writes(tree, parent->pointer, &parent->lock);
		count = lock_many_rewrite_ops(tree, &parent->lock, &parent->redo, parent->pointer, parent->image,
		                              INNER_BYTES, ops);
		wave_add_together(parents->wave, parent->lock.place, ops, count);
	}
	wave_end(parents->wave);
}

/* What was written is acknowledged, or not: then its downlinks are inserted by themselves. */
static void
parent_wrote(Parents *parents, Parent *parent)
{
	Tree *tree = parents->tree;

	if (parent->added == 0)
		return;
	if (wave_status(parents->wave, parent->lock.place) == TREE_OK)
	{
		TREE_COUNT(tree, parent_posts, parent->added);
		return;
	}
	for (uint32_t i = parent->first; i < parent->end; i++)
		parents->links[i].done = false;
	parent->added = 0;
}

/* The new image is what descents find from now on. */
static void
parent_cache(const Parents *parents, const Parent *parent)
{
	if (parent->added > 0)
		downlink_cache(parents->tree, parent->pointer, parents->links[parent->first].above, parent->image);
}

static void
parents_insert(Parents *parents)
{
	Tree *tree = parents->tree;

	if (parents->count == 0 || lock_many_begin(tree) != TREE_OK)
		return;
	for (uint32_t i = 0; i < parents->count; i++)
		(void) lock_many_try(tree, parents->parents[i].pointer, &parents->parents[i].lock);
	parents_read(parents);
	for (uint32_t i = 0; i < parents->count; i++)
		if (parents->parents[i].lock.held)
			parent_place(parents, &parents->parents[i]);
	parents_write(parents);
	for (uint32_t i = 0; i < parents->count; i++)
		parent_wrote(parents, &parents->parents[i]);
	for (uint32_t i = 0; i < parents->count; i++)
		if (parents->parents[i].lock.held)
			lock_many_release(tree, &parents->parents[i].lock);
	lock_many_end(tree);
	for (uint32_t i = 0; i < parents->count; i++)
		parent_cache(parents, &parents->parents[i]);
}

/* Inserts a downlink by itself. */
static TreeStatus
link_insert(Tree *tree, Downlink *link)
{
	Path path = *link->path;

	path.parents[1] = link->parent;
	path.parents[2] = link->above;
	link->done = true;
	return downlink_insert(tree, 0, link->left, link->separator, link->right, &path);
}

/* Where a downlink goes, after its parent has been split. */
static TreeStatus
link_find(Tree *tree, Downlink *link)
{
	_Alignas(uint64_t) uint8_t image[TREE_IMAGE_MAX_BYTES];
	TreeBound bound;
	Path path;
	TreeStatus status = search_separator_bound(tree, link->separator, 0, &bound, image);

	if (status == TREE_OK)
		status = search_descend(tree, &bound, 1, false, &path);
	link->parent = status == TREE_OK ? path.pointer : 0;
	link->above = status == TREE_OK ? path.parents[2] : 0;
	return status == TREE_RETRY ? TREE_OK : status;
}

/*
 * Of the downlinks that a wave has left, inserts those that no other wave does either, and of each full parent the first one, which
 * splits it.  The others are counted, and found anew; unless `last`.
 */
static TreeStatus
links_left(Tree *tree, Downlink *links, uint32_t count, bool last, uint32_t *left)
{
	uint64_t split = 0;
	TreeStatus status = TREE_OK;

	*left = 0;
	for (uint32_t i = 0; status == TREE_OK && i < count; i++)
	{
		bool waits = !last && links[i].full && pointer_address(links[i].parent) == split;

		if (links[i].full)
			split = pointer_address(links[i].parent);
		links[i].full = waits;
		*left += waits;
		if (!waits && !links[i].done)
			status = link_insert(tree, &links[i]);
	}
	for (uint32_t i = 0; status == TREE_OK && *left > 0 && i < count; i++)
		if (!links[i].done)
			status = link_find(tree, &links[i]);
	return status;
}

TreeStatus
downlinks_insert(Tree *tree, Downlink *links, uint32_t count, const DownlinkRoom *room)
{
	Parents parents = {.tree = tree, .links = links, .wave = room->wave};
	uint32_t left = count;
	TreeStatus status = TREE_OK;

	assert(!tree->client->holding);
	for (uint32_t i = 0; i < count; i++)
	{
		links[i].done = links[i].full = false;
		links[i].parent = links[i].path->parents[1];
		links[i].above = links[i].path->parents[2];
	}
	for (int turn = 1; status == TREE_OK && left > 0; turn++)
	{
		parents_take(&parents, count, room);
		parents_insert(&parents);
		status = links_left(tree, links, count, turn == TURNS_MAX, &left);
	}
	return status;
}

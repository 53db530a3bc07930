/*
 * downlink_wave.c
 *		See downlink_wave.h.
 *
 * A parent gets all of its downlinks by one rewrite: where each of them goes is found as downlink.c finds it, in the image that
 * has those before it, under the parent's lock and by integers.  A downlink that is missing costs readers a step to the right,
 * never an answer: so a parent whose chain was lost is simply tried again by itself.
 */
#include "tree/descent/downlink.h"
#include "tree/descent/parent.h"

/* Waves for the same downlinks. */
#define TURNS_MAX 8

_Static_assert(DOWNLINK_ROOM_BYTES == PIECES_MAX * INNER_BYTES, "room for each image");

/* Whether nodes at this memory node can be locked and written by waves now. */
static bool
memory_node_usable(const Tree *tree, uint32_t memory_node)
{
	return memory_node < tree->client->options.nodes &&
	       place_is_ready(tree->client, memory_node) == TREE_OK && lock_many_usable(tree, memory_node);
}

/* Takes the parents of the downlinks that are left, as far as there is room. */
static void
parents_take(Parents *parents, uint32_t links)
{
	uint32_t end;

	parents->count = parents->piece_count = parents->short_of = 0;
	for (uint32_t i = 0; i < links; i = end)
	{
		uint64_t pointer = parents->links[i].parent;
		Parent *parent = &parents->parents[parents->count];

		end = i + 1;
		if (parents->links[i].done)
			continue;
		while (end < links && (parents->links[end].done ||
		                       pointer_address(parents->links[end].parent) == pointer_address(pointer)))
			end++;
		for (uint32_t j = i; j < end; j++)
			parents->links[j].waits = parents->count == PARENTS_MAX;
		if (parents->count == PARENTS_MAX || pointer == 0 ||
		    !memory_node_usable(parents->tree, pointer_memory_node(pointer)))
			continue;
		*parent = (Parent){.pointer = pointer, .first = i, .end = end, .pieces = 1};
		parent->leftmost = piece_begin(parents, pointer);
		parents->count++;
	}
}

/* Waits for the wave's READs of all parents that are locked. */
static void
parents_read(Parents *parents)
{
	Wave *wave = parents->room->wave;

	wave_begin(wave, parents->tree);
	for (uint32_t i = 0; i < parents->count; i++)
	{
		const Parent *parent = &parents->parents[i];
		FabricOp op = {.opcode = FABRIC_READ,
		               .region = FABRIC_NODES,
		               .length = INNER_BYTES,
		               .offset = pointer_offset(parent->pointer),
		               .buffer = parent->leftmost->image};

		if (parent->lock.held)
			wave_add(wave, parent->lock.place, &op);
	}
	wave_end(wave);
}

/* The downlinks of the parent from number i on that are not done. */
static uint32_t
links_rest(const Parents *parents, const Parent *parent, uint32_t i)
{
	uint32_t rest = 0;

	for (; i < parent->end; i++)
		rest += !parents->links[i].done;
	return rest;
}

/*
 * Puts downlink number i into the image of the piece where it goes, as far as integers tell that.  Downlinks ascend, so it is *piece,
 * where the last one went, or further right.
 */
static void
link_place(Parents *parents, Parent *parent, uint32_t i, Piece **piece)
{
	Tree *tree = parents->tree;
	const NodeGeometry *g = &tree->geometry;
	Downlink *link = &parents->links[i];
	DownlinkInsertion insertion;
	DownlinkPlace place;
	uint32_t index;

	downlink_begin(&insertion, tree, parents->level - 1, link->left, link->separator, link->right,
	               link->path);
	for (;;)
	{
		place = downlink_place(&insertion, (*piece)->image, &index);
		if (place == DOWNLINK_RIGHT && (*piece)->next != NULL)
			*piece = (*piece)->next;
		else if (place != DOWNLINK_HERE || node_count((*piece)->image) < g->inner_cells)
			break;
		else if (!parent_split(parents, parent, *piece, index, links_rest(parents, parent, i)))
		{
			link->waits = true;
			return;
		}
	}
	link->done = place == DOWNLINK_PRESENT || place == DOWNLINK_HERE;
	if (place != DOWNLINK_HERE)
		return;
	downlink_put(g, (*piece)->image, index, link->right, insertion.separator);
	parent->added++;
}

static bool
parent_is_written(const Parent *parent)
{
	return parent->status == TREE_OK && (parent->added > 0 || parent->pieces > 1);
}

/* Puts the parent's downlinks into its image, and into new nodes where it has no room. */
static void
parent_place(Parents *parents, Parent *parent)
{
	Tree *tree = parents->tree;
	Piece *piece = parent->leftmost;

	if (wave_status(parents->room->wave, parent->lock.place) != TREE_OK ||
	    node_check_locked(&tree->geometry, piece->image, tree->tree, parent->pointer) != NODE_GOOD ||
	    node_level(piece->image) != parents->level)
		return;
	for (uint32_t i = parent->first; i < parent->end; i++)
		if (!parents->links[i].done)
			link_place(parents, parent, i, &piece);
	if (parent_is_written(parent))
		parent_complete(parents, parent);
}

/* The first of a parent's new nodes: that it is split into, but for itself. */
static const Piece *
parent_new(const Parent *parent)
{
	return parent->root != NULL ? parent->leftmost : parent->leftmost->next;
}

/* Adds the WRITEs of a parent's new nodes.  Whether one of them lies at another memory node than the parent. */
static bool
pieces_write(Parents *parents, const Parent *parent)
{
	bool apart = false;

	for (const Piece *piece = parent_new(parent); piece != NULL; piece = piece->next)
	{
		uint32_t memory_node = pointer_memory_node(piece->pointer);
		FabricOp op = {.opcode = FABRIC_WRITE,
		               .region = FABRIC_NODES,
		               .length = INNER_BYTES,
		               .offset = pointer_offset(piece->pointer),
		               .buffer = piece->image};

		wave_add(parents->room->wave, memory_node, &op);
		apart = apart || memory_node != parent->lock.place;
	}
	return apart;
}

/* What became of new nodes that were waited for: a parent links to all of them, or is not written. */
static void
pieces_wrote(const Parents *parents, Parent *parent)
{
	for (const Piece *piece = parent_new(parent); piece != NULL; piece = piece->next)
		if (parent->status == TREE_OK)
			parent->status = wave_status(parents->room->wave, pointer_memory_node(piece->pointer));
}

/* Adds the WRITE of the parent, or of the root above what it was split into. */
static void
parent_write(Parents *parents, Parent *parent)
{
	Tree *tree = parents->tree;
	const Piece *piece = parent->root != NULL ? parent->root : parent->leftmost;
	FabricOp ops[REDO_OPS + 1];
	int count;

	lock_many_writes(tree, parent->pointer, &parent->lock);
	count = lock_many_rewrite_ops(tree, &parent->lock, &parent->redo, parent->pointer, piece->image,
	                              INNER_BYTES, ops);
	wave_add_together(parents->room->wave, parent->lock.place, ops, count);
}

/* New nodes first: in the same wave as what links them where one memory node has both, as it keeps the order. */
static void
parents_write(Parents *parents)
{
	Wave *wave = parents->room->wave;
	bool apart = false;

	wave_begin(wave, parents->tree);
	for (uint32_t i = 0; i < parents->count; i++)
		if (parent_is_written(&parents->parents[i]) && pieces_write(parents, &parents->parents[i]))
			apart = true;
	if (apart)
	{
		wave_end(wave);
		for (uint32_t i = 0; i < parents->count; i++)
			pieces_wrote(parents, &parents->parents[i]);
		wave_begin(wave, parents->tree);
	}
	for (uint32_t i = 0; i < parents->count; i++)
		if (parent_is_written(&parents->parents[i]))
			parent_write(parents, &parents->parents[i]);
	wave_end(wave);
}

static void
parent_count(Tree *tree, const Parent *parent)
{
	TREE_COUNT(tree, parent_posts, parent->added);
	TREE_COUNT(tree, inner_splits, parent->pieces - 1);
	TREE_COUNT(tree, root_splits, parent->root != NULL ? 1 : 0);
}

/* What was written is acknowledged, or not: then its downlinks are inserted by themselves. */
static void
parent_wrote(Parents *parents, Parent *parent)
{
	if (parent_is_written(parent))
		parent->status = wave_status(parents->room->wave, parent->lock.place);
	if (parent_is_written(parent))
	{
		parent_count(parents->tree, parent);
		return;
	}
	for (uint32_t i = parent->first; parent->status != TREE_OK && i < parent->end; i++)
		parents->links[i].done = parents->links[i].waits = false;
}

/* Gives back the new nodes of a parent that does not link to them, as a chain was lost.  Nothing is held. */
static void
parent_lost(const Parents *parents, const Parent *parent)
{
	const Piece *stays = parent->root != NULL ? parent->root : parent->leftmost;

	if (parent->status != TREE_RETRY || parent->pieces < 2 ||
	    !split_is_undone(parents->tree, parent->pointer, stays->image[HEADER_GENERATION] - 1))
		return;
	for (const Piece *piece = parent_new(parent); piece != NULL; piece = piece->next)
		spare_written_return(parents->tree, piece->pointer, parents->level, piece->image[HEADER_GENERATION]);
}

/* The new images are what descents find from now on. */
static void
parent_cache(const Parents *parents, const Parent *parent)
{
	Tree *tree = parents->tree;
	uint64_t above = parent->root != NULL ? tree->root : parents->links[parent->first].above;

	if (!parent_is_written(parent))
		return;
	if (parent->root != NULL)
		downlink_cache(tree, tree->root, 0, parent->root->image);
	for (const Piece *piece = parent->leftmost; piece != NULL; piece = piece->next)
		downlink_cache(tree, piece->pointer, above, piece->image);
}

/* The downlinks of the nodes that parents were split into; a root links to them already.  Returns their number. */
static uint32_t
parents_links(const Parents *parents, Downlink *above)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < parents->count; i++)
	{
		const Parent *parent = &parents->parents[i];
		const Downlink *first = &parents->links[parent->first];

		if (!parent_is_written(parent) || parent->root != NULL)
			continue;
		for (const Piece *left = parent->leftmost; left->next != NULL; left = left->next)
		{
			Downlink *link = &above[count++];

			*link = (Downlink){.path = first->path, .left = left->pointer, .right = left->next->pointer};
			node_get_fence(&parents->tree->geometry, left->next->image, false, link->separator);
			link->parent = first->above;
			if (parents->level + 2 < LEVELS_MAX)
				link->above = first->path->parents[parents->level + 2];
		}
	}
	return count;
}

/* One wave; it has taken the parents. */
static void
parents_insert(Parents *parents)
{
	Tree *tree = parents->tree;

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
	{
		parent_lost(parents, &parents->parents[i]);
		parent_cache(parents, &parents->parents[i]);
	}
}

/* Inserts a downlink of a node of this level by itself. */
static TreeStatus
link_insert(Tree *tree, uint32_t level, Downlink *link)
{
	Path path = *link->path;

	path.parents[level + 1] = link->parent;
	if (level + 2 < LEVELS_MAX)
		path.parents[level + 2] = link->above;
	link->done = true;
	return downlink_insert(tree, level, link->left, link->separator, link->right, &path);
}

/* Where a downlink goes, now that parents have been split. */
static TreeStatus
link_find(Tree *tree, uint32_t level, Downlink *link)
{
	_Alignas(uint64_t) uint8_t image[TREE_IMAGE_MAX_BYTES];
	TreeBound bound;
	Path path;
	TreeStatus status = search_separator_bound(tree, link->separator, 0, &bound, image);

	if (status == TREE_OK)
		status = search_descend(tree, &bound, level + 1, false, &path);
	link->parent = status == TREE_OK ? path.pointer : 0;
	link->above = status == TREE_OK && level + 2 < LEVELS_MAX ? path.parents[level + 2] : 0;
	return status == TREE_RETRY ? TREE_OK : status;
}

/* Of the downlinks that a wave has left, inserts those that no other wave does either, and finds anew where the others go. */
static TreeStatus
links_left(Tree *tree, uint32_t level, Downlink *links, uint32_t count, bool last, uint32_t *left)
{
	TreeStatus status = TREE_OK;

	*left = 0;
	for (uint32_t i = 0; status == TREE_OK && i < count; i++)
		if (!links[i].done && (last || !links[i].waits))
			status = link_insert(tree, level, &links[i]);
	for (uint32_t i = 0; status == TREE_OK && i < count; i++)
	{
		links[i].waits = false;
		if (links[i].done)
			continue;
		(*left)++;
		status = link_find(tree, level, &links[i]);
	}
	return status;
}

/*
 * Takes nodes ahead for parents that have no room: as many as the downlinks fill by half, one or two for each parent that was short
 * of them in the last wave, and one once there was need of any.  False: there are none, so no other wave does more.
 */
static bool
nodes_reserve(const Parents *parents, uint32_t links)
{
	Tree *tree = parents->tree;
	uint32_t wanted = parents->short_of + links / (tree->geometry.inner_cells / 2);

	if (wanted == 0 && tree->spare_inner != NULL)
		wanted = 1;
	return spare_fill(tree, parents->level, wanted) == TREE_OK;
}

static TreeStatus links_insert(Tree *tree, uint32_t level, Downlink *links, uint32_t count,
                               const DownlinkRoom *room);

/*
 * One wave, and one for each level above where nodes were split, before any downlink is looked for anew.
 */
static TreeStatus
links_wave(Parents *parents, uint32_t links)
{
	Downlink above[SPARE_INNER];
	uint32_t count;

	parents_take(parents, links);
	if (parents->count == 0 || lock_many_begin(parents->tree) != TREE_OK)
		return TREE_OK;
	parents_insert(parents);
	count = parents_links(parents, above);
	return count == 0 ? TREE_OK : links_insert(parents->tree, parents->level, above, count, parents->room);
}

/* Inserts downlinks of nodes of this level, which know where they go. */
static TreeStatus
links_insert(Tree *tree, uint32_t level, Downlink *links, uint32_t count, const DownlinkRoom *room)
{
	/* Its arrays, which are long, are filled as far as they are used. */
	Parents parents;
	TreeStatus status = TREE_OK;
	uint32_t left = count;

	if (level + 1 >= LEVELS_MAX)
		return access_damaged(tree, links[0].left);
	parents.tree = tree;
	parents.level = level + 1;
	parents.links = links;
	parents.room = room;
	parents.short_of = 0;
	for (int turn = 1; status == TREE_OK && left > 0; turn++)
	{
		bool last = !nodes_reserve(&parents, left) || turn == TURNS_MAX;

		status = links_wave(&parents, count);
		if (status == TREE_OK)
			status = links_left(tree, level, links, count, last, &left);
	}
	return status;
}

TreeStatus
downlinks_insert(Tree *tree, Downlink *links, uint32_t count, const DownlinkRoom *room)
{
	assert(!tree->client->holding);
	for (uint32_t i = 0; i < count; i++)
	{
		links[i].done = links[i].waits = false;
		links[i].parent = links[i].path->parents[1];
		links[i].above = links[i].path->parents[2];
	}
	return links_insert(tree, 0, links, count, room);
}

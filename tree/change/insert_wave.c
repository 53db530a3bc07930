/*
 * insert_wave.c
 *		A wave of tree_insert_many(): many leaves are locked, read, filled and written together.
 *
 *		descents		the leaves of the next entries, through the cache of inner nodes; nothing is held
 *		locks			of all of them, by try: what is locked by somebody waits for a later wave
 *		READs			one wave
 *		placing			integers only (I-T2): an entry that they do not place goes by itself
 *		WRITEs			one wave: of each leaf its (lsn, epoch) if that is too low, and one run of cells of its tail
 *
 * Under its lock each leaf is treated as insert.c treats one: the fences in its image decide, a TID that is there is a hit.
 * A WRITE of several cells that a death cuts short leaves each of them whole or empty, as it does a single one: it is
 * atomic, or is stored from its last word to its first (tree/lock/lock.c says where lock words are used instead).
 * A lost READ costs the wave for its memory node; behind a lost WRITE the entries are placed once more, and find themselves.
 */
#include "tree/change/insert_many.h"

/* ---- descents ---- */

/* Whether the entry lies below the separator, by integers. */
static bool
entry_below(const Many *many, uint32_t entry, const uint64_t *separator)
{
	TreeBound bound;

	if (separator_infinite(separator))
		return true;
	bound_of_key(&many->tree->geometry, many_key(many, entry), &bound);
	return node_decide(&many->tree->geometry, &bound, separator, true) == DECIDE_BELOW;
}

/* Whether waves can be at this memory node: asked once in a wave, with nothing held. */
static TreeStatus
memory_node_ready(Many *many, uint32_t memory_node, bool *usable)
{
	Tree *tree = many->tree;
	TreeStatus status;

	*usable = true;
	if (memory_node >= tree->client->options.nodes)
		return client_fail(tree->client, TREE_DAMAGED, "tree %llx: pointer to memory node %u of %u",
		                   (unsigned long long) tree->tree, memory_node, tree->client->options.nodes);
	if ((many->memory_nodes & 1ull << memory_node) != 0)
		return TREE_OK;
	status = place_is_ready(tree->client, memory_node);
	if (status != TREE_OK)
		return status;
	*usable = lock_many_usable(tree, memory_node);
	if (*usable)
		many->memory_nodes |= 1ull << memory_node;
	return TREE_OK;
}

/* The entries behind the first one that the separators around the leaf give to it, too. */
static uint32_t
leaf_entries_end(const Many *many, const ManyLeaf *leaf)
{
	uint32_t end = leaf->first + 1;

	while (end < many->count && entry_below(many, end, leaf->path.high))
		end++;
	return end;
}

/* Finds the leaf of the entry at many->end, and takes it and what follows it there into the wave. */
static TreeStatus
wave_take(Many *many)
{
	Tree *tree = many->tree;
	ManyEntry *entry = &many->entries[many->end];
	ManyLeaf *leaf = &many->leaves[many->leaf_count];
	TreeBound bound;
	bool usable = false;
	TreeStatus status = TREE_OK;

	if (!cell_needs_overflow(&tree->geometry, many_key(many, many->end)))
	{
		bound_of_key(&tree->geometry, many_key(many, many->end), &bound);
		status = search_descend(tree, &bound, 0, false, &leaf->path);
		if (status == TREE_OK && pointer_address(leaf->path.pointer) != tree->root)
			status = memory_node_ready(many, pointer_memory_node(leaf->path.pointer), &usable);
	}
	if (status != TREE_OK)
		return status;
	leaf->first = many->end;
	leaf->end = many->end + 1;
	if (usable)
	{
		assert(leaf->path.fences_known);
		leaf->end = leaf_entries_end(many, leaf);
		leaf->image = many->images + many->leaf_count * tree->geometry.leaf_bytes / 8;
		leaf->lock.held = false;
		leaf->placed = 0;
		leaf->written = false;
		many->leaf_count++;
	}
	else
		entry->state = MANY_SINGLE;
	many->end = leaf->end;
	return TREE_OK;
}

/* ---- READs ---- */

static void
wave_read(Many *many)
{
	Tree *tree = many->tree;

	wave_begin(&many->wave, tree);
	for (uint32_t i = 0; i < many->leaf_count; i++)
	{
		const ManyLeaf *leaf = &many->leaves[i];
		FabricOp op = {.opcode = FABRIC_READ,
		               .region = FABRIC_NODES,
		               .length = tree->geometry.leaf_bytes,
		               .offset = pointer_offset(leaf->path.pointer),
		               .buffer = leaf->image};

		if (leaf->lock.held)
			wave_add(&many->wave, leaf->lock.place, &op);
	}
	wave_end(&many->wave);
}

/* ---- placing ---- */

/* What integers say of an entry and one of the leaf's fences. */
static Decision
entry_decide(const Many *many, uint32_t entry, const uint64_t *fence, Decision infinite)
{
	TreeBound bound;

	if (separator_infinite(fence))
		return infinite;
	bound_of_key(&many->tree->geometry, many_key(many, entry), &bound);
	return node_decide(&many->tree->geometry, &bound, fence, true);
}

/* Puts the entry into the next slot of the image. False: it has its TID already, or no room. */
static bool
entry_place(const Many *many, ManyLeaf *leaf, uint32_t entry)
{
	const NodeGeometry *g = &many->tree->geometry;
	const TreeKey *key = many_key(many, entry);
	LeafSurvey survey;

	if (cell_needs_overflow(g, key))
		return false;
	leaf_survey(g, leaf->image, key->block, key->offset, &survey);
	if (survey.same_tid != LEAF_NO_SLOT || survey.empty == LEAF_NO_SLOT)
		return false;
	/* One WRITE is for slots side by side. */
	if (leaf->placed == 0)
		leaf->slot = survey.empty;
	else if (survey.empty != leaf->slot + leaf->placed)
		return false;
	cell_make(g, leaf->image + leaf_cell_word(g, survey.empty), key, leaf->image[HEADER_GENERATION], NULL);
	leaf->placed++;
	return true;
}

/*
 * Places the leaf's entries.  Where one is not below the high fence, or the leaf is full, it goes by itself, and that mends what is
 * known of the way, or splits the leaf; those behind it wait.
 */
static void
leaf_place(Many *many, ManyLeaf *leaf)
{
	const NodeGeometry *g = &many->tree->geometry;
	bool above = false;

	for (uint32_t i = leaf->first; i < leaf->end; i++)
	{
		ManyEntry *entry = &many->entries[i];
		Decision low = DECIDE_ABOVE, high;

		/* Integers that are above the fence stay so: entries ascend. */
		if (!above)
			low = entry_decide(many, i, leaf->image + g->low_word, DECIDE_ABOVE);
		above = low == DECIDE_ABOVE || low == DECIDE_EQUAL;
		high = entry_decide(many, i, leaf->image + g->high_word, DECIDE_BELOW);
		if (above && high == DECIDE_BELOW && entry_place(many, leaf, i))
		{
			entry->state = MANY_PLACED;
			continue;
		}
		entry->state = MANY_SINGLE;
		if (low == DECIDE_BELOW || high == DECIDE_ABOVE || high == DECIDE_EQUAL)
			return;
	}
}

/* Judges what was read of a leaf, and places its entries. Not TREE_OK: the wave is over. */
static TreeStatus
leaf_judge(Many *many, ManyLeaf *leaf)
{
	Tree *tree = many->tree;
	TreeStatus status = wave_status(&many->wave, leaf->lock.place);

	if (status == TREE_RETRY)
		return TREE_OK;
	if (status != TREE_OK)
		return status;
	/* What else it may be, the single way finds out. */
	if (node_check_locked(&tree->geometry, leaf->image, tree->tree, leaf->path.pointer) == NODE_GOOD &&
	    node_level(leaf->image) == 0)
		leaf_place(many, leaf);
	else
		many->entries[leaf->first].state = MANY_SINGLE;
	return TREE_OK;
}

/* ---- WRITEs ---- */

/* Adds the leaf's WRITEs to the wave: first what readers judge the cells by. */
static void
leaf_write(Many *many, ManyLeaf *leaf)
{
	Tree *tree = many->tree;
	const NodeGeometry *g = &tree->geometry;
	uint64_t *node = leaf->image;
	uint64_t offset = pointer_offset(leaf->path.pointer);
	bool summed = (node_flags(node) & NODE_SUM_VALID) != 0;
	FabricOp op = {.opcode = FABRIC_WRITE, .region = FABRIC_NODES};

	assert(leaf->lock.held && leaf->placed > 0);
	leaf->stamped = insert_set_wal_position(tree, many->wal, node);
	if (summed)
		node[HEADER_SUM] = node_sum(node, g->leaf_bytes);
	leaf->version = lock_many_writes(tree, &leaf->lock);
	if (leaf->stamped || summed)
	{
		op.length = summed ? 24 : 16;
		op.offset = offset + HEADER_LSN * 8;
		op.buffer = node + HEADER_LSN;
		wave_add(&many->wave, leaf->lock.place, &op);
	}
	op.length = leaf->placed * g->cell_bytes;
	op.offset = offset + leaf_cell_word(g, leaf->slot) * 8;
	op.buffer = node + leaf_cell_word(g, leaf->slot);
	wave_add(&many->wave, leaf->lock.place, &op);
}

static void
wave_write(Many *many)
{
	wave_begin(&many->wave, many->tree);
	for (uint32_t i = 0; i < many->leaf_count; i++)
		if (many->leaves[i].lock.held && many->leaves[i].placed > 0)
			leaf_write(many, &many->leaves[i]);
	wave_end(&many->wave);
}

/* What was written of the leaf is acknowledged, or not: its entries are done, or wait on. */
static TreeStatus
leaf_wrote(Many *many, ManyLeaf *leaf)
{
	Tree *tree = many->tree;
	TreeStatus status = wave_status(&many->wave, leaf->lock.place);

	assert(leaf->lock.held && leaf->placed > 0);
	for (uint32_t i = leaf->first; i < leaf->end; i++)
		if (many->entries[i].state == MANY_PLACED)
			many->entries[i].state = status == TREE_OK ? MANY_DONE : MANY_WAITS;
	if (status == TREE_RETRY)
		return TREE_OK;
	if (status != TREE_OK)
		return status;
	leaf->written = true;
	TREE_COUNT(tree, inserts, leaf->placed);
	TREE_COUNT(tree, stamp_writes, leaf->stamped ? 1 : 0);
	return TREE_OK;
}

/* ---- the wave ---- */

/* With all locks that were to be had. */
static TreeStatus
wave_locked(Many *many)
{
	TreeStatus status = TREE_OK;

	wave_read(many);
	for (uint32_t i = 0; status == TREE_OK && i < many->leaf_count; i++)
		if (many->leaves[i].lock.held)
			status = leaf_judge(many, &many->leaves[i]);
	if (status != TREE_OK)
		return status;
	wave_write(many);
	for (uint32_t i = 0; i < many->leaf_count; i++)
		if (many->leaves[i].lock.held && many->leaves[i].placed > 0)
		{
			TreeStatus wrote = leaf_wrote(many, &many->leaves[i]);

			status = status == TREE_OK ? wrote : status;
		}
	return status;
}

/* Locks what can be locked of the leaves of the wave, and fills them. */
static TreeStatus
wave_fill(Many *many)
{
	Tree *tree = many->tree;
	TreeStatus status = lock_many_begin(tree);

	if (status != TREE_OK)
		return status;
	for (uint32_t i = 0; i < many->leaf_count; i++)
		(void) lock_many_try(tree, many->leaves[i].path.pointer, &many->leaves[i].lock);
	status = wave_locked(many);
	for (uint32_t i = 0; i < many->leaf_count; i++)
		if (many->leaves[i].lock.held)
			lock_many_release(tree, &many->leaves[i].lock);
	lock_many_end(tree);
	for (uint32_t i = 0; i < many->leaf_count; i++)
		if (many->leaves[i].written)
			leaf_cache_wrote(tree, many->leaves[i].path.pointer, many->leaves[i].version,
			                 many->leaves[i].image, tree->geometry.leaf_bytes);
	return status;
}

TreeStatus
many_wave(Many *many)
{
	Tree *tree = many->tree;
	TreeStatus status;
	int section;

	assert(!tree->client->holding);
	status = critical_enter(tree, &section);
	if (status != TREE_OK)
		return status;
	many->leaf_count = 0;
	many->memory_nodes = 0;
	many->end = many->next;
	while (status == TREE_OK && many->end < many->count && many->leaf_count < many->leaves_max)
		status = wave_take(many);
	if (status == TREE_OK && many->leaf_count > 0)
		status = wave_fill(many);
	critical_leave(tree, section);
	return status;
}

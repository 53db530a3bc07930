/*
 * insert_wave.c
 *		A wave of tree_insert_many(): many leaves are locked, read, filled and written together.
 *
 *		descents the leaves of the next entries, through the cache of inner nodes; nothing is held locks of all of
 *		them, by try: leaves that another process has locked wait for a later wave READs one wave placing integers
 *		only (I-T2): an entry that they do not place goes by itself WRITEs one wave: of each leaf its (lsn, epoch) if
 *		that is too low, and one run of cells of its tail; or
 *						new siblings, and the leaf that links them (insert_spread.c)
 *		downlinks		of new siblings, with no leaf locked any more
 *
 * Under its lock each leaf is treated as insert.c treats one: the fences in its image decide, a TID that is there is a hit.
 * A WRITE of several cells that a death cuts short leaves each of them whole or empty, as it does a single one: it is
 * atomic, or is stored from its last word to its first (tree/lock/lock.c says where lock words are used instead).
 * A lost READ costs the wave for its memory node; behind a lost WRITE the entries are placed once more, and find themselves.
 */
#include "tree/change/insert_many.h"
#include "tree/change/change.h"

/* ---- descents ---- */

/* What integers say of an entry and a separator or fence; `infinite`: what they say of one that is at the end. */
static Decision
entry_decide(const Many *many, uint32_t entry, const uint64_t *separator, Decision infinite)
{
	const ManyEntry *e = &many->entries[entry];
	TreeBound bound;

	if (separator_infinite(separator))
		return infinite;
	/* As node_decide() would: most often the first word tells. */
	if (e->high == ((separator[0] & CELL_HIGH_BIT) != 0) && e->rank != separator[1])
		return e->rank < separator[1] ? DECIDE_BELOW : DECIDE_ABOVE;
	bound_of_key(&many->tree->geometry, many_key(many, entry), &bound);
	return node_decide(&many->tree->geometry, &bound, separator, true);
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

/*
 * Where the entries end that the separators around the leaf give to it: they ascend, so those behind the first one are looked
 * for in steps that double, and then by halves.
 */
static uint32_t
leaf_entries_end(const Many *many, const ManyLeaf *leaf)
{
	uint32_t inside = leaf->first;
	uint32_t outside = many->count;

	if (leaf->root)
		return many->count;
	for (uint32_t step = 1; step < outside - inside; step *= 2)
	{
		if (entry_decide(many, inside + step, leaf->path.high, DECIDE_BELOW) != DECIDE_BELOW)
		{
			outside = inside + step;
			break;
		}
		inside += step;
	}
	while (outside - inside > 1)
	{
		uint32_t middle = inside + (outside - inside) / 2;

		if (entry_decide(many, middle, leaf->path.high, DECIDE_BELOW) == DECIDE_BELOW)
			inside = middle;
		else
			outside = middle;
	}
	return outside;
}

/* Finds the leaf of the entry at many->end. *usable: waves can be there. */
static TreeStatus
leaf_find(Many *many, ManyLeaf *leaf, bool *usable)
{
	Tree *tree = many->tree;
	TreeBound bound;
	TreeStatus status;

	*usable = false;
	if (cell_needs_overflow(&tree->geometry, many_key(many, many->end)))
		return TREE_OK;
	bound_of_key(&tree->geometry, many_key(many, many->end), &bound);
	status = search_descend(tree, &bound, 0, false, &leaf->path);
	if (status != TREE_OK)
		return status;
	leaf->root = pointer_address(leaf->path.pointer) == tree->root;
	assert(leaf->root || leaf->path.fences_known);
	return memory_node_ready(many, pointer_memory_node(leaf->path.pointer), usable);
}

static void
leaf_begin(Many *many, ManyLeaf *leaf)
{
	leaf->image = many->images + many->leaf_count * many->tree->geometry.leaf_bytes / 8;
	leaf->lock.held = false;
	leaf->placed = leaf->siblings = 0;
	leaf->written = leaf->stamped = false;
	leaf->whole = NULL;
	leaf->status = TREE_OK;
	many->leaf_count++;
}

/* Of the leaf's entries before `end`: those that the wave can place, as far as that is known before the leaf is read. */
static uint32_t
leaf_entries_limit(const Many *many, const ManyLeaf *leaf, uint32_t end)
{
	uint32_t used = many->spread_foreseen + many->siblings_foreseen;
	uint32_t most = many->tree->geometry.leaf_cells + many_new_cells(many, many->whole_max - used);

	return end - leaf->first < most ? end : leaf->first + most;
}

/* Inserts the entry by itself, into the leaf that a descent has just led to. */
static TreeStatus
entry_insert(Many *many, uint32_t entry, const Path *path)
{
	const TreeKey *key = many_key(many, entry);
	bool alone = true;
	TreeStatus status;

	if (many->alone)
		status = insert_found_alone(many->tree, key, many->wal, many->permit, path, &alone);
	else
		status = insert_found(many->tree, key, many->wal, path);
	many->entries[entry].state = alone ? MANY_DONE : MANY_BARRED;
	return status;
}

/*
 * Takes the leaf of the entry at many->end, and the entries behind it that belong there, into the wave; those that no wave
 * could place in one leaf wait on.  Where the memory node is mapped there is nothing to wait for with others: an entry that
 * is alone goes at once, and several make a wave of one leaf.  False: the wave is complete.
 */
static bool
wave_take(Many *many, TreeStatus *status)
{
	ManyEntry *entry = &many->entries[many->end];
	ManyLeaf *leaf = &many->leaves[many->leaf_count];
	uint32_t end;
	bool usable, mapped;

	*status = leaf_find(many, leaf, &usable);
	if (*status != TREE_OK)
		return false;
	leaf->first = many->end;
	leaf->end = many->end + 1;
	if (!usable)
	{
		entry->state = MANY_SINGLE;
		many->end++;
		return !many->alone;
	}
	mapped = many->mapped = access_is_mapped(many->tree->client, pointer_memory_node(leaf->path.pointer));
	end = leaf_entries_end(many, leaf);
	if (mapped && many->leaf_count > 0 && (many->alone || end > leaf->first + 1))
		return false;
	if (mapped && end == leaf->first + 1)
	{
		*status = entry_insert(many, many->end++, &leaf->path);
		return *status == TREE_OK && entry->state == MANY_DONE;
	}
	leaf->end = leaf_entries_limit(many, leaf, end);
	leaf_begin(many, leaf);
	many_foresee(many, leaf);
	many->end = end;
	return !mapped && (!many->alone || leaf->end == end);
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
		               .length = tree_node_bytes(tree, leaf->path.pointer, 0),
		               .offset = pointer_offset(leaf->path.pointer),
		               .buffer = leaf->image};

		assert(!leaf->root || many->leaf_count == 1);
		if (leaf->lock.held && !leaf_cache_take_locked(tree, leaf->path.pointer, leaf->image))
			wave_add(&many->wave, leaf->lock.place, &op);
	}
	wave_end(&many->wave);
}

/* ---- placing ---- */

/* Whether the entry can be placed by this wave: not one whose TID the leaf has, or the entry before, and no image goes elsewhere. */
static bool
entry_is_plain(const Many *many, const ManyLeaf *leaf, uint32_t entry)
{
	const NodeGeometry *g = &many->tree->geometry;
	const TreeKey *key = many_key(many, entry);
	LeafSurvey survey;

	if (cell_needs_overflow(g, key))
		return false;
	if (entry > leaf->first && many_key(many, entry - 1)->block == key->block &&
	    many_key(many, entry - 1)->offset == key->offset)
		return false;
	leaf_survey(g, leaf->image, key->block, key->offset, &survey);
	return survey.same_tid == LEAF_NO_SLOT;
}

/* Whether an entry that can be placed may be: where keys have one entry only, not if there is another one, or may be soon. */
static bool
entry_may_be_placed(Many *many, const ManyLeaf *leaf, uint32_t entry)
{
	return !many->alone || (many_shown_alone(many, leaf, entry) && many_permitted(many, entry));
}

/*
 * Marks the entries that belong into the leaf as MANY_PLACED. An entry that is not below the high fence is inserted
 * alone, which corrects the cached path, and those behind it wait; where they go in their order, behind any that is not placed.
 */
static void
leaf_accept(Many *many, ManyLeaf *leaf)
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
		entry->state = MANY_SINGLE;
		if (above && high == DECIDE_BELOW && entry_is_plain(many, leaf, i))
			entry->state = entry_may_be_placed(many, leaf, i) ? MANY_PLACED : MANY_BARRED;
		if (entry->state == MANY_PLACED)
		{
			leaf->placed++;
			continue;
		}
		if (many->alone || low == DECIDE_BELOW || high == DECIDE_ABOVE || high == DECIDE_EQUAL)
			return;
	}
}

/* The leaf's first empty slots, side by side, as one WRITE can fill them: how many. */
static uint32_t
leaf_empty(const NodeGeometry *g, const uint64_t *node, uint32_t *slot)
{
	uint32_t end;

	for (*slot = node_count(node); *slot < g->leaf_cells; (*slot)++)
		if (cell_state(node[leaf_cell_word(g, *slot)]) == CELL_EMPTY)
			break;
	for (end = *slot; end < g->leaf_cells; end++)
		if (cell_state(node[leaf_cell_word(g, end)]) != CELL_EMPTY)
			break;
	return end - *slot;
}

/* Puts the first `room` entries that are placed into the image; the next one is `next`, those behind it wait. */
static void
leaf_fill_slots(Many *many, ManyLeaf *leaf, uint32_t room, ManyState next)
{
	const NodeGeometry *g = &many->tree->geometry;
	uint64_t *node = leaf->image;

	leaf->placed = 0;
	for (uint32_t i = leaf->first; i < leaf->end; i++)
	{
		ManyEntry *entry = &many->entries[i];

		if (entry->state != MANY_PLACED)
			continue;
		if (leaf->placed < room)
		{
			cell_make(g, node + leaf_cell_word(g, leaf->slot + leaf->placed), many_key(many, i),
			          node[HEADER_GENERATION], NULL);
			leaf->placed++;
			continue;
		}
		entry->state = next;
		next = MANY_WAITS;
	}
}

/*
 * Places the leaf's entries. If they do not fit the leaf is spread; where that is impossible, the first of the rest
 * is inserted alone, by insert.c's rules.
 */
static void
leaf_place(Many *many, ManyLeaf *leaf)
{
	Tree *tree = many->tree;
	uint32_t room = leaf_empty(&tree->geometry, leaf->image, &leaf->slot);
	uint32_t short_of = many->short_of;

	leaf_accept(many, leaf);
	if (leaf->placed <= room)
		leaf_fill_slots(many, leaf, room, MANY_WAITS);
	else if (leaf->root || room_is_asked(tree, leaf->image) || !many_spread(many, leaf))
		leaf_fill_slots(many, leaf, room,
		                many->short_of > short_of && !many->full ? MANY_WAITS : MANY_SINGLE);
}

/* Checks the image of a leaf that was read, and places its entries. Not TREE_OK: it could not be read. */
static TreeStatus
leaf_judge(Many *many, ManyLeaf *leaf)
{
	Tree *tree = many->tree;
	TreeStatus status = wave_status(&many->wave, leaf->lock.place);

	if (status == TREE_RETRY)
		return TREE_OK;
	if (status != TREE_OK)
		return status;
	/* All other cases are left to the insertion of single entries. */
	if (node_check_locked(&tree->geometry, leaf->image, tree->tree, leaf->path.pointer) == NODE_GOOD &&
	    node_level(leaf->image) == 0)
		leaf_place(many, leaf);
	else
		many->entries[leaf->first].state = MANY_SINGLE;
	return TREE_OK;
}

/* ---- WRITEs ---- */

/* Adds the WRITEs of cells in empty slots to the wave: first the words by which readers judge the cells. */
static void
slots_write(Many *many, ManyLeaf *leaf)
{
	Tree *tree = many->tree;
	const NodeGeometry *g = &tree->geometry;
	uint64_t *node = leaf->image;
	uint64_t offset = pointer_offset(leaf->path.pointer);
	bool summed = (node_flags(node) & NODE_SUM_VALID) != 0;
	FabricOp op = {.opcode = FABRIC_WRITE, .region = FABRIC_NODES};

	leaf->stamped = insert_set_wal_position(tree, many->wal, node);
	if (summed)
		node[HEADER_SUM] = node_sum(node, g->leaf_bytes);
	if (leaf->stamped || summed)
	{
		op.length = summed ? 24 : 16;
		op.offset = offset + HEADER_LSN * 8;
		op.buffer = node + HEADER_LSN;
		wave_add(&many->wave, leaf->lock.place, &op);
	}
	for (uint32_t done = 0, written; done < leaf->placed; done += written)
	{
		FabricOp ops[CELL_WRITE_OPS];
		int count = cells_write_ops(tree, leaf->path.pointer, node, leaf->slot + done, leaf->placed - done,
		                            ops, &written);

		for (int i = 0; i < count; i++)
			wave_add(&many->wave, leaf->lock.place, &ops[i]);
	}
}

/* Adds the WRITE of the leaf's next image. */
static void
whole_write(Many *many, ManyLeaf *leaf)
{
	FabricOp ops[REDO_OPS + 1];
	int count = lock_many_rewrite_ops(many->tree, &leaf->lock, &leaf->redo, leaf->path.pointer, leaf->whole,
	                                  many->tree->geometry.leaf_bytes, ops);

	wave_add_together(&many->wave, leaf->lock.place, ops, count);
}

/* Adds the WRITEs of the leaf's new siblings.  Whether one of them lies at another memory node than the leaf. */
static bool
siblings_write(Many *many, const ManyLeaf *leaf)
{
	bool apart = false;

	for (uint32_t i = 0; i < leaf->siblings; i++)
	{
		ManySibling *sibling = &many->siblings[leaf->first_sibling + i];
		FabricOp op = {.opcode = FABRIC_WRITE,
		               .region = FABRIC_NODES,
		               .length = many->tree->geometry.leaf_bytes,
		               .offset = pointer_offset(sibling->pointer),
		               .buffer = sibling->image};

		sibling->key = leaf_cache_key(many->tree, sibling->pointer);
		wave_add(&many->wave, pointer_memory_node(sibling->pointer), &op);
		apart = apart || pointer_memory_node(sibling->pointer) != leaf->lock.place;
	}
	return apart;
}

/* The results for the siblings that were waited for: a leaf is linked to all of its siblings, or not written. */
static void
siblings_wrote(Many *many, ManyLeaf *leaf)
{
	for (uint32_t i = 0; i < leaf->siblings && leaf->status == TREE_OK; i++)
		leaf->status =
			wave_status(&many->wave, pointer_memory_node(many->siblings[leaf->first_sibling + i].pointer));
}

static bool
leaf_is_written(const ManyLeaf *leaf)
{
	return leaf->lock.held && leaf->placed > 0 && leaf->status == TREE_OK;
}

/* New siblings first: in the same wave as what links them where one memory node has both, as it keeps the order. */
static void
wave_write(Many *many)
{
	bool apart = false;

	wave_begin(&many->wave, many->tree);
	for (uint32_t i = 0; i < many->leaf_count; i++)
		if (leaf_is_written(&many->leaves[i]) && siblings_write(many, &many->leaves[i]))
			apart = true;
	if (apart)
	{
		wave_end(&many->wave);
		for (uint32_t i = 0; i < many->leaf_count; i++)
			if (leaf_is_written(&many->leaves[i]))
				siblings_wrote(many, &many->leaves[i]);
		wave_begin(&many->wave, many->tree);
	}
	for (uint32_t i = 0; i < many->leaf_count; i++)
	{
		ManyLeaf *leaf = &many->leaves[i];

		if (!leaf_is_written(leaf))
			continue;
		lock_many_writes(many->tree, leaf->path.pointer, &leaf->lock);
		if (leaf->whole != NULL)
			whole_write(many, leaf);
		else
			slots_write(many, leaf);
	}
	wave_end(&many->wave);
}

static void
leaf_count(Tree *tree, const ManyLeaf *leaf)
{
	TREE_COUNT(tree, inserts, leaf->placed);
	TREE_COUNT(tree, leaf_splits, leaf->siblings);
	if (leaf->whole == NULL)
		TREE_COUNT(tree, stamp_writes, leaf->stamped ? 1 : 0);
	else if (leaf->siblings == 0)
		TREE_COUNT(tree, leaf_rewrites, 1);
	if (leaf->whole != NULL)
		TREE_COUNT(tree, dead_removals, leaf->dropped);
}

/* The leaf's new siblings are what was written, unless others, who can reach them now, have begun to write them. */
static void
siblings_cache(Many *many, const ManyLeaf *leaf)
{
	for (uint32_t i = 0; i < leaf->siblings; i++)
	{
		const ManySibling *sibling = &many->siblings[leaf->first_sibling + i];

		leaf_cache_split(many->tree, leaf->path.pointer, &sibling->key, sibling->image);
	}
}

/* The leaf's WRITEs are acknowledged, or not: its entries are done, or wait on. */
static TreeStatus
leaf_wrote(Many *many, ManyLeaf *leaf)
{
	Tree *tree = many->tree;
	TreeStatus status = leaf->status;

	assert(leaf->lock.held && leaf->placed > 0);
	if (status == TREE_OK)
		status = wave_status(&many->wave, leaf->lock.place);
	for (uint32_t i = leaf->first; i < leaf->end; i++)
		if (many->entries[i].state == MANY_PLACED)
			many->entries[i].state = status == TREE_OK ? MANY_DONE : MANY_WAITS;
	for (uint32_t i = 0; i < leaf->siblings; i++)
		split_over(tree, status);
	leaf->status = status;
	leaf->written = status == TREE_OK;
	if (leaf->written)
	{
		leaf_cache_wrote(tree, leaf->path.pointer, leaf->whole != NULL ? leaf->whole : leaf->image,
		                 tree->geometry.leaf_bytes);
		siblings_cache(many, leaf);
		leaf_count(tree, leaf);
	}
	return status == TREE_RETRY ? TREE_OK : status;
}

/* ---- the wave ---- */

/* Whether all entries up to those of the next leaf are placed. */
static bool
leaf_is_through(const Many *many, uint32_t leaf)
{
	uint32_t end = leaf + 1 < many->leaf_count ? many->leaves[leaf + 1].first : many->end;

	return many->leaves[leaf].placed == end - many->leaves[leaf].first;
}

/*
 * Judges the leaves that were read. A memory node that cannot be read keeps nothing from the others, but where entries go
 * in their order.
 */
static TreeStatus
wave_judge(Many *many)
{
	TreeStatus status = TREE_OK;

	for (uint32_t i = 0; i < many->leaf_count; i++)
	{
		ManyLeaf *leaf = &many->leaves[i];
		TreeStatus judged = leaf->lock.held ? leaf_judge(many, leaf) : TREE_OK;

		status = status == TREE_OK ? judged : status;
		if (many->alone && !leaf_is_through(many, i))
			break;
	}
	return status;
}

/* With all locks that were to be had. */
static TreeStatus
wave_locked(Many *many)
{
	TreeStatus status;

	wave_read(many);
	status = wave_judge(many);
	wave_write(many);
	for (uint32_t i = 0; i < many->leaf_count; i++)
		if (many->leaves[i].lock.held && many->leaves[i].placed > 0)
		{
			TreeStatus wrote = leaf_wrote(many, &many->leaves[i]);

			status = status == TREE_OK ? wrote : status;
		}
	return status;
}

/*
 * Gives back the new siblings of a leaf that does not link to them, as a chain was lost; and frees the blocks that no entry has any
 * more after the WRITEs.  Nothing is held.
 */
static void
leaf_ends(Many *many, const ManyLeaf *leaf)
{
	if (leaf->siblings > 0 && leaf->status == TREE_RETRY &&
	    split_is_undone(many->tree, leaf->path.pointer, leaf->image[HEADER_GENERATION]))
		for (uint32_t i = 0; i < leaf->siblings; i++)
		{
			const ManySibling *sibling = &many->siblings[leaf->first_sibling + i];

			spare_written_return(many->tree, sibling->pointer, 0, sibling->generation);
		}
	if (leaf->written && leaf->whole != NULL)
		leaf_free_blocks(many->tree, leaf->image, LEAF_NO_SLOT, NULL);
}

/* Locks the leaves of the wave as far as possible, and fills them. */
static TreeStatus
wave_fill(Many *many)
{
	Tree *tree = many->tree;
	TreeStatus status = lock_many_begin(tree);

	if (status != TREE_OK)
		return status;
	for (uint32_t i = 0; i < many->leaf_count; i++)
		if (!lock_many_try(tree, many->leaves[i].path.pointer, &many->leaves[i].lock) && many->alone)
			break;
	status = wave_locked(many);
	for (uint32_t i = 0; i < many->leaf_count; i++)
		if (many->leaves[i].lock.held)
			lock_many_release(tree, &many->leaves[i].lock);
	many_permits_end(many);
	lock_many_end(tree);
	for (uint32_t i = 0; i < many->leaf_count; i++)
		leaf_ends(many, &many->leaves[i]);
	return status;
}

/* The parents of leaves that were spread get their downlinks; what only delays that is no error, as the entries are in. */
static TreeStatus
wave_downlinks(Many *many)
{
	DownlinkRoom room = {&many->wave, many->whole};
	uint32_t count = 0;

	for (uint32_t i = 0; i < many->leaf_count; i++)
	{
		const ManyLeaf *leaf = &many->leaves[i];
		uint64_t left = leaf->path.pointer;

		for (uint32_t s = 0; leaf->written && s < leaf->siblings; s++)
		{
			const ManySibling *sibling = &many->siblings[leaf->first_sibling + s];
			Downlink *link = &many->downlinks[count++];

			link->path = &leaf->path;
			link->left = left;
			link->right = sibling->pointer;
			memcpy(link->separator, sibling->separator, sizeof(link->separator));
			left = sibling->pointer;
		}
	}
	return count == 0 ? TREE_OK
	                  : downlink_delayed(downlinks_insert(many->tree, many->downlinks, count, &room));
}

/* Takes new leaves ahead, as nothing is asked for under a lock. Not TREE_OK: as reserve_fill(). */
static TreeStatus
wave_reserve(Many *many)
{
	TreeStatus status = spare_fill(many->tree, 0, many_siblings_wanted(many));

	many->short_of = 0;
	many->full = status == TREE_MEMORY_FULL;
	return many->full ? TREE_OK : status;
}

/* Whether there is room for another leaf in the wave, and for what the leaves that it has become. */
static bool
wave_has_room(const Many *many)
{
	return many->leaf_count < many->leaves_max &&
	       many->spread_foreseen + many->siblings_foreseen < many->whole_max;
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
	many->leaf_count = many->whole_count = many->sibling_count = 0;
	many->spread_foreseen = many->siblings_foreseen = many->few = 0;
	many->memory_nodes = 0;
	many->end = many->next;
	for (uint32_t taken = 0;
	     taken < LOCK_MANY_MAX && many->end < many->count && wave_has_room(many) && wave_take(many, &status);)
		taken++;
	if (status == TREE_OK && many->leaf_count > 0)
		status = wave_reserve(many);
	if (status == TREE_OK && many->leaf_count > 0)
		status = wave_fill(many);
	if (status == TREE_OK)
		status = wave_downlinks(many);
	critical_leave(tree, section);
	return status;
}

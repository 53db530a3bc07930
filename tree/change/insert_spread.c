/*
 * insert_spread.c
 *		A leaf of a wave whose entries do not fit into its empty slots: its cells and the new ones are put in order,
 *		and written into it and as many new siblings as needed.
 *
 * As insert_full.c does for one entry, and by the same rules for what is worth a rewrite in place. Where keys ascend
 * at the right end of the tree new leaves are filled for good, else so that each has room for what comes next. Cuts
 * are where integers decide (I-T2): a leaf that has none is left to insert_full.c. The siblings are written before
 * the leaf that links to them (T3), and before that the hook of predicate locks is called for them (predicate.c).
 */
#include "tree/change/change.h"
#include "tree/change/insert_many.h"

/* New leaves are filled to that: half-way between those that a split leaves and full ones. */
#define SPREAD_PERCENT 70u

/* ---- what is to be written ---- */

/* Makes cells of the leaf's placed entries, as many as may be; the others wait. Returns their number. */
static uint32_t
cells_make(Many *many, const ManyLeaf *leaf)
{
	const NodeGeometry *g = &many->tree->geometry;
	uint32_t most = many_new_cells(many, many->whole_max - many->whole_count);
	uint32_t count = 0;

	for (uint32_t i = leaf->first; i < leaf->end && count < most; i++)
		if (many->entries[i].state == MANY_PLACED)
			cell_make(g, many->made + count++ * g->cell_words, many_key(many, i), 0, NULL);
	return count;
}

/* Puts the new cells among the old ones. */
static void
cells_merge(Many *many, uint32_t made)
{
	const NodeGeometry *g = &many->tree->geometry;
	ManyCells *cells = &many->cells;
	uint32_t o = 0, n = 0;
	bool new_before = false;

	cells->count = cells->old.count + made;
	cells->ordered = cells->old.ordered;
	for (uint32_t i = 0; i < cells->count; i++)
	{
		const uint64_t *added = many->made + n * g->cell_words;
		bool is_new = o == cells->old.count || (n < made && cell_order(g, added, cells->old.cells[o]) < 0);

		cells->cells[i] = is_new ? added : cells->old.cells[o];
		n += is_new;
		o += !is_new;
		if (i > 0 && (is_new || new_before) && cell_order(g, cells->cells[i - 1], cells->cells[i]) == 0)
			cells->ordered = false;
		new_before = is_new;
	}
}

/* As leaf_pack(). */
static void
cells_pack(Many *many)
{
	const NodeGeometry *g = &many->tree->geometry;
	ManyCells *cells = &many->cells;
	Packer packer = {.cells = cells->packed};
	bool pays = false;

	for (uint32_t i = 2; g->format.postings && !pays && i < cells->count; i++)
		pays = cell_same_key(g, cells->cells[i - 2], cells->cells[i]);
	if (!pays)
		return;
	for (uint32_t i = 0; i < cells->count; i++)
		packer_add(g, &packer, cells->cells[i]);
	cells->count = packer.count;
	for (uint32_t i = 0; i < cells->count; i++)
		cells->cells[i] = cells->packed + i * g->cell_words;
}

/* ---- where it goes ---- */

/* Whether keys ascend here: most of the new entries are behind all others of the tree. */
static bool
leaf_ascends(const Many *many, const ManyLeaf *leaf, uint32_t made)
{
	const NodeGeometry *g = &many->tree->geometry;
	const LeafCells *old = &many->cells.old;
	const uint64_t *middle = many->made + made / 2 * g->cell_words;

	return separator_infinite(leaf->image + g->high_word) &&
	       (old->count == 0 || cell_order(g, old->cells[old->count - 1], middle) < 0);
}

/* The separator in front of cell number `cut`, if integers make one there. */
static bool
cut_separator(const Many *many, uint32_t cut, uint64_t *separator)
{
	const NodeGeometry *g = &many->tree->geometry;
	const uint64_t *const *cells = many->cells.cells;

	if (!leaf_cut_possible(g, cells, cut))
		return false;
	leaf_separator(g, leaf_cut_left(cells, cut), cells[cut], separator);
	if (cell_state(separator[0]) != SEPARATOR_FULL || g->format.lossless)
		return true;
	/*
	 * A whole separator is the least of what is behind it, and its image is a block of its own:
	 * insert_split_unlocked().
	 */
	return (separator[0] & CELL_OVERFLOW_BIT) == 0 &&
	       (cut + 1 == many->cells.count || cell_order(g, cells[cut], cells[cut + 1]) != 0);
}

/* The cut nearest to `wanted` that leaves a leaf of the cells from `start` on; 0: there is none. */
static uint32_t
cut_find(const Many *many, uint32_t start, uint32_t wanted, uint64_t *separator)
{
	uint32_t last = start + many->tree->geometry.leaf_cells;

	if (last >= many->cells.count)
		last = many->cells.count - 1;
	if (wanted > last)
		wanted = last;
	for (uint32_t distance = 0; distance <= last - start; distance++)
	{
		if (wanted + distance <= last && cut_separator(many, wanted + distance, separator))
			return wanted + distance;
		if (wanted >= start + 1 + distance && cut_separator(many, wanted - distance, separator))
			return wanted - distance;
	}
	return 0;
}

/* How many cells the next leaf gets, of those from `start` on. */
static uint32_t
share_of(const Many *many, uint32_t start, bool ascends)
{
	uint32_t room = many->tree->geometry.leaf_cells;
	uint32_t left = many->cells.count - start;
	uint32_t full = room * SPREAD_PERCENT / 100;
	uint32_t leaves = (left + full - 1) / full;

	if (ascends)
		return room * SPLIT_ASCENDING_PERCENT / 100;
	return left / (leaves < 2 ? 2 : leaves);
}

/*
 * Cuts what was gathered: cuts[i] is where sibling number i begins. Returns their number; 0: integers do not decide
 * where to cut, or there is no room for so many.
 */
static uint32_t
cuts_find(Many *many, bool ascends, uint32_t *cuts)
{
	uint32_t most = many->whole_max - many->whole_count;
	uint32_t count = 0, start = 0;

	if (most > MANY_WHOLE_MAX - many->sibling_count)
		most = MANY_WHOLE_MAX - many->sibling_count;
	while (count == 0 || many->cells.count - start > many->tree->geometry.leaf_cells)
	{
		uint64_t *separator = many->siblings[many->sibling_count + count].separator;

		if (count + 1 >= most)
		{
			many->short_of++;
			return 0;
		}
		start = cut_find(many, start, start + share_of(many, start, ascends), separator);
		if (start == 0)
			return 0;
		cuts[count++] = start;
	}
	return count;
}

/* ---- images ---- */

static uint64_t *
whole_image(Many *many)
{
	assert(many->whole_count < many->whole_max);
	return many->whole + many->whole_count++ * many->tree->geometry.leaf_bytes / 8;
}

/* Begins the images of the leaf and its siblings, and links them. */
static void
images_begin(Many *many, ManyLeaf *leaf)
{
	Tree *tree = many->tree;
	const NodeGeometry *g = &tree->geometry;
	uint64_t *left;

	left = leaf->whole = whole_image(many);
	node_begin_like(g, left, leaf->image, leaf->path.pointer, leaf->image[HEADER_GENERATION] + 1);
	for (uint32_t i = 0; i < leaf->siblings; i++)
	{
		ManySibling *sibling = &many->siblings[leaf->first_sibling + i];

		spare_take(tree, 0, &sibling->pointer, &sibling->generation);
		sibling->image = whole_image(many);
		node_begin_like(g, sibling->image, leaf->image, sibling->pointer, sibling->generation);
		left[HEADER_RIGHT] = sibling->pointer;
		node_set_fence(g, left, true, sibling->separator);
		node_set_fence(g, sibling->image, false, sibling->separator);
		left = sibling->image;
	}
}

static void
images_fill(const Many *many, const ManyLeaf *leaf, const uint32_t *cuts)
{
	const NodeGeometry *g = &many->tree->geometry;
	const ManyCells *cells = &many->cells;
	uint32_t from = 0;

	for (uint32_t i = 0; i <= leaf->siblings; i++)
	{
		uint64_t *image = i == 0 ? leaf->whole : many->siblings[leaf->first_sibling + i - 1].image;
		uint32_t to = i == leaf->siblings ? cells->count : cuts[i];

		leaf_fill_cells(g, image, cells->cells + from, to - from, cells->ordered);
		node_seal(g, image);
		from = to;
	}
}

/* ---- the plan ---- */

uint32_t
many_new_cells(const Many *many, uint32_t images)
{
	const NodeGeometry *g = &many->tree->geometry;
	uint32_t most = MANY_NEW_BYTES / g->cell_bytes;

	/* Wherever the cuts are, as leaves are filled by more than half. */
	if (most > images * g->leaf_cells / 2)
		most = images * g->leaf_cells / 2;
	return many->mapped && most > MANY_MAPPED_CELLS ? MANY_MAPPED_CELLS : most;
}

void
many_foresee(Many *many, const ManyLeaf *leaf)
{
	const NodeGeometry *g = &many->tree->geometry;
	uint32_t entries = leaf->end - leaf->first;
	uint32_t percent = SPREAD_PERCENT;

	if (leaf->root)
		return;
	if (entries < g->leaf_cells / 4)
	{
		many->few += entries;
		return;
	}
	if (separator_infinite(leaf->path.high))
		percent = SPLIT_ASCENDING_PERCENT;
	many->siblings_foreseen += entries / (g->leaf_cells * percent / 100) + 1;
	many->spread_foreseen++;
}

uint32_t
many_siblings_wanted(const Many *many)
{
	uint32_t foreseen = many->siblings_foreseen + many->few * 2 / many->tree->geometry.leaf_cells;
	uint32_t there = spare_count(many->tree, 0);

	/* The last wave was short of so many beside those that there are. */
	return many->short_of + (many->short_of > 0 && there > foreseen ? there : foreseen);
}

/* The entries that were not made cells of wait for another wave. */
static void
entries_limit(Many *many, ManyLeaf *leaf, uint32_t made)
{
	uint32_t placed = 0;

	for (uint32_t i = leaf->first; i < leaf->end; i++)
		if (many->entries[i].state == MANY_PLACED && placed++ >= made)
			many->entries[i].state = MANY_WAITS;
	leaf->placed = made;
}

bool
many_spread(Many *many, ManyLeaf *leaf)
{
	Tree *tree = many->tree;
	const NodeGeometry *g = &tree->geometry;
	uint32_t cuts[MANY_WHOLE_MAX];
	uint32_t siblings = 0;
	uint32_t made;

	assert(leaf->lock.held && leaf->placed > 0);
	if (many->whole_count == many->whole_max)
	{
		many->short_of++;
		return false;
	}
	made = cells_make(many, leaf);
	leaf_gather(g, leaf->image, LEAF_NO_SLOT, NULL, &many->cells.old);
	leaf->dropped = leaf_proven_dead(g, leaf->image);
	cells_merge(many, made);
	cells_pack(many);
	if (!leaf_worth_rewrite(g->leaf_cells, many->cells.count, leaf->dropped))
	{
		siblings = cuts_find(many, leaf_ascends(many, leaf, made), cuts);
		if (siblings > spare_count(tree, 0))
			many->short_of += siblings - spare_count(tree, 0);
		if (siblings == 0 || siblings > spare_count(tree, 0))
			return false;
	}
	leaf->first_sibling = many->sibling_count;
	leaf->siblings = siblings;
	many->sibling_count += siblings;
	leaf->stamped = insert_set_wal_position(tree, many->wal, leaf->image);
	images_begin(many, leaf);
	images_fill(many, leaf, cuts);
	entries_limit(many, leaf, made);
	for (uint32_t i = 0; i < siblings; i++)
		leaf_split_announce(tree, leaf->path.pointer, many->siblings[leaf->first_sibling + i].pointer);
	return true;
}

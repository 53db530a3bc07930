/*
 * batch.c
 *		The entries of one leaf within a scan's bounds, in order.
 *
 * The leaf is a private copy. Its base is sorted as far as integers decide, so the bounds are found in it by binary
 * search; its tail is examined cell by cell, and the cells taken from it are sorted and merged. Posting lists are
 * expanded into cells here, so that later steps do not know of them. Where normalized keys tie, the comparator
 * decides: in a base that it has ordered (NODE_BASE_ORDERED) by binary search, too, and only the tail is sorted into
 * such a base; elsewhere for every cell that ties.
 *
 * The overflow keys of all cells that tie with a bound, or with a neighbor whose order is open, are
 * fetched by one chain before the first comparison, also for a search by halves: that would look at few of
 * them, but by a chain for each.  In the first leaf the far fence's image, if the stop bound ties with it,
 * comes with them.
 */
#include "tree/scan/scan.h"
#include "tree/descent/descent.h"

/*
 * Steps from the begin of a range to its end before it is looked for by halves: most lookups find one entry
 * or none.
 */
#define RANGE_STEPS 3

/* Stands for the leaf's far fence among the slots whose images are fetched. */
#define FENCE_SLOT LEAF_CELLS_TARGET

/* A cell that may be in the batch. */
typedef struct Candidate
{
	const uint64_t *cell;
	uint64_t rank; /* first word of its normalized key */
	uint16_t slot;
	bool lower_tie; /* its bytes tie with those of the lower bound */
	bool upper_tie;
	bool overflow; /* the comparator will want its image, which is out of line */
	bool placed;   /* of an ordered base: within the bounds, and in its place among others of its kind */
} Candidate;

typedef struct Candidates
{
	uint32_t count;
	Candidate items[LEAF_ENTRIES_MAX];
} Candidates;

/* The bounds in the order of keys; NULL = the whole leaf is within. */
typedef struct Range
{
	const TreeBound *lower;
	const TreeBound *upper;
} Range;

/*
 * Compares only the bytes that bind: < 0, 0, > 0 as the bound's are below, the same as, or above the cell's.
 */
static inline int
bound_bytes(const TreeBound *bound, const uint64_t *cell)
{
	bool high = (cell[0] & CELL_HIGH_BIT) != 0;
	uint32_t words = bound->norm_length / 8u;
	uint32_t rest = bound->norm_length % 8u;

	if (!bound->norm_bits_valid)
		return 0;
	if (bound->key.high != high)
		return bound->key.high ? 1 : -1;
	for (uint32_t i = 0; i < words; i++)
		if (bound->key.norm[i] != cell[1 + i])
			return bound->key.norm[i] < cell[1 + i] ? -1 : 1;
	if (rest != 0)
	{
		uint64_t mask = ~0ull << (64 - 8 * rest);
		uint64_t mine = bound->key.norm[words] & mask;
		uint64_t theirs = cell[1 + words] & mask;

		if (mine != theirs)
			return mine < theirs ? -1 : 1;
	}
	return 0;
}

/* Slots [begin, end) of the base. */
typedef struct Slots
{
	uint32_t begin;
	uint32_t end;
} Slots;

/* The next base slot behind this one that has no posting cell. */
static inline uint32_t
base_next(const NodeGeometry *g, const uint64_t *leaf, uint32_t slot)
{
	assert(slot < node_count(leaf));
	do
		slot++;
	while (slot < node_count(leaf) && cell_is_posting(leaf + leaf_cell_word(g, slot)));
	return slot;
}

/*
 * The first base slot in [from, count) whose bytes are not below the bound's, or with `above`, above them. Neither it nor
 * `from` is a posting cell's: those have the key of the cell in front.
 */
static uint32_t
base_find(const NodeGeometry *g, const uint64_t *leaf, const TreeBound *bound, uint32_t from, bool above)
{
	uint32_t low = from;
	uint32_t high = node_count(leaf);
	int limit = above ? 0 : 1; /* a cell stays below as long as bound_bytes() is at least this */

	assert(from <= high && high <= g->leaf_cells);
	assert(bound != NULL);

	for (int i = 0; above && i < RANGE_STEPS && low < high; i++)
	{
		if (bound_bytes(bound, leaf + leaf_cell_word(g, low)) < limit)
			return low;
		low = base_next(g, leaf, low);
	}
	/* The cell that is searched for mostly follows the cells whose first word is below the bound's. */
	if (!above && bound_has_word(bound) && (node_flags(leaf) & NODE_POSTINGS) == 0)
	{
		low += cells_below(g, leaf, leaf_cell_word(g, low), g->cell_words, high - low, &bound->key);
		if (low < high && bound_bytes(bound, leaf + leaf_cell_word(g, low)) < limit)
			return low;
	}
	while (low < high)
	{
		uint32_t middle = posting_head(g, leaf, (low + high) / 2);

		if (bound_bytes(bound, leaf + leaf_cell_word(g, middle)) >= limit)
			low = base_next(g, leaf, middle);
		else
			high = middle;
	}
	return low;
}

/* Compares a cell's bytes, which its posting list shares, with the bounds. */
typedef struct Sides
{
	int lower; /* of the lower bound: as bound_bytes(); < 0 if there is none */
	int upper; /* > 0 if there is none */
} Sides;

static inline Sides
cell_sides(const uint64_t *cell, const Range *range)
{
	Sides sides = {-1, 1};

	if (range->lower != NULL)
		sides.lower = bound_bytes(range->lower, cell);
	if (range->upper != NULL)
		sides.upper = bound_bytes(range->upper, cell);
	return sides;
}

/* Puts a cell at the end if its bytes are within the bounds or tie with them. */
static inline void
candidate_add(Candidates *candidates, const uint64_t *cell, uint32_t slot, Sides sides)
{
	Candidate *candidate = &candidates->items[candidates->count];

	assert(candidates->count < LEAF_ENTRIES_MAX);
	if (sides.lower > 0 || sides.upper < 0)
		return;
	candidate->cell = cell;
	candidate->rank = cell[1];
	candidate->slot = (uint16_t) slot;
	candidate->lower_tie = sides.lower == 0;
	candidate->upper_tie = sides.upper == 0;
	candidate->overflow = false;
	candidate->placed = false;
	candidates->count++;
}

/* Puts a posting cell's entries at the end likewise, made in the scan's memory behind the *made cells that are there. */
static void
candidates_add_posting(TreeScan *scan, Candidates *candidates, const uint64_t *head, uint32_t slot,
                       Sides sides, uint32_t *made)
{
	const NodeGeometry *g = &scan->tree->geometry;
	const uint64_t *cell = scan->leaf + leaf_cell_word(g, slot);

	assert(scan->entries != NULL);
	assert(*made + g->posting_tids <= LEAF_ENTRIES_MAX);
	for (uint32_t i = 0; i < g->posting_tids && posting_get(cell, i) != 0; i++)
	{
		uint64_t *entry = scan->entries + (*made)++ * g->cell_words;

		memcpy(entry, head, g->cell_bytes);
		entry[0] = posting_word0(head, posting_get(cell, i));
		candidate_add(candidates, entry, slot, sides);
	}
}

static inline int
candidate_order(const NodeGeometry *g, const Candidate *a, const Candidate *b)
{
	if (a->rank != b->rank && ((a->cell[0] ^ b->cell[0]) & CELL_HIGH_BIT) == 0)
		return a->rank < b->rank ? -1 : 1;
	return cell_order(g, a->cell, b->cell);
}

/*
 * Whether integers or, later, the comparator keep a candidate that ties with a bound. UNKNOWN: the
 * comparator.
 */
static Decision
candidate_decide(const NodeGeometry *g, const Range *range, const Candidate *candidate)
{
	Decision lower = DECIDE_BELOW, upper = DECIDE_ABOVE;

	assert(candidate->lower_tie || candidate->upper_tie);
	assert(!candidate->lower_tie || range->lower != NULL);
	if (candidate->lower_tie)
		lower = node_decide(g, range->lower, candidate->cell, false);
	if (candidate->upper_tie)
		upper = node_decide(g, range->upper, candidate->cell, false);
	if (lower == DECIDE_ABOVE || lower == DECIDE_EQUAL || upper == DECIDE_BELOW || upper == DECIDE_EQUAL)
		return DECIDE_ABOVE; /* out */
	return lower == DECIDE_UNKNOWN || upper == DECIDE_UNKNOWN ? DECIDE_UNKNOWN : DECIDE_EQUAL;
}

/* Drops cells that integers find outside the range; clears the ties that they decide. */
static void
candidates_filter(const NodeGeometry *g, const Range *range, Candidates *candidates)
{
	uint32_t kept = 0;

	assert(candidates->count <= LEAF_ENTRIES_MAX);
	for (uint32_t i = 0; i < candidates->count; i++)
	{
		Candidate *candidate = &candidates->items[i];
		Decision decision = DECIDE_EQUAL;

		if (candidate->lower_tie || candidate->upper_tie)
			decision = candidate_decide(g, range, candidate);
		if (decision == DECIDE_ABOVE)
			continue;
		if (decision == DECIDE_EQUAL)
			candidate->lower_tie = candidate->upper_tie = false;
		candidates->items[kept++] = *candidate;
	}
	assert(kept <= candidates->count);
	candidates->count = kept;
}

/* Whether candidates i - 1 and i have one normalized key, so that only the comparator orders them. */
static bool
candidates_tie(const NodeGeometry *g, const Candidates *candidates, uint32_t i)
{
	assert(i < candidates->count);
	assert(!g->format.lossless);
	return i > 0 && candidate_order(g, &candidates->items[i - 1], &candidates->items[i]) == 0;
}

static const uint8_t *
scan_image(const TreeScan *scan, uint32_t slot)
{
	assert(slot <= FENCE_SLOT);
	assert(scan->images[slot] <= scan->pool_used);
	return scan->images[slot] != 0 ? scan->pool + (scan->images[slot] - 1) : NULL;
}

/* Makes room for `bytes` more in the pool; images keep their places in it. */
static TreeStatus
scan_pool_grow(TreeScan *scan, uint32_t bytes)
{
	TreeClient *client = scan->tree->client;
	uint8_t *pool;
	uint32_t wanted = scan->pool_used + bytes;

	assert(scan->pool_used <= scan->pool_bytes);
	assert(bytes <= LEAF_CELLS_TARGET * (TREE_IMAGE_MAX_BYTES + OVERFLOW_ALIGN));
	if (wanted <= scan->pool_bytes)
		return TREE_OK;
	pool = client_allocate_beside(client, scan, wanted);
	if (pool == NULL)
		return client_fail(client, TREE_NO_MEMORY, "no memory for %u bytes of keys", wanted);
	if (scan->pool_used > 0)
		memcpy(pool, scan->pool, scan->pool_used);
	client_release(client, scan->pool);
	scan->pool = pool;
	scan->pool_bytes = wanted;
	return TREE_OK;
}

/* The fence where the scan leaves the leaf. */
static const uint64_t *
far_fence(const TreeScan *scan)
{
	const NodeGeometry *g = &scan->tree->geometry;

	assert(node_level(scan->leaf) == 0);
	return scan->leaf + (scan->direction == TREE_FORWARD ? g->high_word : g->low_word);
}

/*
 * Fetches the images of these slots, which are out of line, by one chain for each FABRIC_MAX_CHAIN of them; those
 * that were fetched before are left alone.
 */
static TreeStatus
scan_fetch(TreeScan *scan, const uint16_t *slots, uint32_t count)
{
	const NodeGeometry *g = &scan->tree->geometry;
	OverflowReference references[LEAF_CELLS_TARGET];
	uint8_t *buffers[LEAF_CELLS_TARGET];
	uint32_t places[LEAF_CELLS_TARGET];
	uint32_t used = scan->pool_used;
	int fetched = 0;
	TreeStatus status;

	assert(count <= LEAF_CELLS_TARGET);
	assert(!g->format.lossless);

	for (uint32_t i = 0; i < count; i++)
	{
		if (scan->images[slots[i]] != 0)
			continue;
		cell_overflow(g, slots[i] == FENCE_SLOT ? far_fence(scan) : scan->leaf + leaf_cell_word(g, slots[i]),
		              &references[fetched]);
		if (references[fetched].bytes == 0 || references[fetched].bytes > TREE_IMAGE_MAX_BYTES)
			return TREE_RETRY;
		places[fetched] = used;
		used += (references[fetched].bytes + OVERFLOW_ALIGN - 1) / OVERFLOW_ALIGN * OVERFLOW_ALIGN;
		fetched++;
	}
	if (fetched == 0)
		return TREE_OK;
	status = scan_pool_grow(scan, used - scan->pool_used);
	for (int i = 0; i < fetched; i++)
		buffers[i] = scan->pool + places[i];
	if (status == TREE_OK)
		status = access_read_overflow(scan->tree, references, fetched, buffers);
	if (status != TREE_OK)
		return status;
	fetched = 0;
	for (uint32_t i = 0; i < count; i++)
		if (scan->images[slots[i]] == 0)
			scan->images[slots[i]] = places[fetched++] + 1;
	scan->pool_used = used;
	return TREE_OK;
}

/*
 * Adds a slot to those whose overflow keys are to be fetched, if it has one that the comparator will
 * want.
 */
static void
bound_wants(const TreeScan *scan, const TreeBound *bound, uint32_t slot, uint16_t *slots, uint32_t *count)
{
	const NodeGeometry *g = &scan->tree->geometry;
	const uint64_t *cell = scan->leaf + leaf_cell_word(g, slot);

	assert(slot < g->leaf_cells);
	assert(*count <= slot + 1);
	if (cell_state(cell[0]) == CELL_EMPTY || (cell[0] & CELL_OVERFLOW_BIT) == 0)
		return;
	if (node_decide(g, bound, cell, false) != DECIDE_UNKNOWN)
		return;
	if (*count == 0 || slots[*count - 1] != slot)
		slots[(*count)++] = (uint16_t) slot;
}

TreeStatus
batch_compare_stop(TreeScan *scan, int *result)
{
	Tree *tree = scan->tree;
	const NodeGeometry *g = &tree->geometry;
	const uint64_t *fence = far_fence(scan);
	uint16_t slots[LEAF_CELLS_TARGET];
	uint32_t count = 0;
	TreeStatus status;

	assert(scan->has_stop && !separator_infinite(fence));
	if (scan->begun || (fence[0] & CELL_OVERFLOW_BIT) == 0 ||
	    node_decide(g, &scan->stop, fence, true) != DECIDE_UNKNOWN)
		return search_compare(tree, &scan->stop, fence, true, result);
	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
		bound_wants(scan, &scan->start, slot, slots, &count);
	slots[count++] = FENCE_SLOT;
	status = scan_fetch(scan, slots, count);
	if (status == TREE_OK)
		*result = search_compare_image(tree, &scan->stop, fence, true, scan_image(scan, FENCE_SLOT));
	return status;
}

/* Fetches the images of the base's slots whose bytes tie with a bound, and of the tail's, by one chain. */
static TreeStatus
base_fetch(TreeScan *scan, const Range *range, const Slots *ties)
{
	const NodeGeometry *g = &scan->tree->geometry;
	uint16_t slots[LEAF_CELLS_TARGET];
	uint32_t count = 0;

	assert(!g->format.lossless);
	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
	{
		bool tail = slot >= node_count(scan->leaf);

		if (range->lower != NULL && (tail || (slot >= ties[0].begin && slot < ties[0].end)))
			bound_wants(scan, range->lower, slot, slots, &count);
		if (range->upper != NULL && (tail || (slot >= ties[1].begin && slot < ties[1].end)))
			bound_wants(scan, range->upper, slot, slots, &count);
	}
	return count > 0 ? scan_fetch(scan, slots, count) : TREE_OK;
}

/*
 * The position of the bound among these slots of an ordered base: the first slot above a lower bound, or not below an
 * upper one, which mostly is one of the first.
 */
static uint32_t
base_search(const TreeScan *scan, const TreeBound *bound, uint32_t low, uint32_t high, bool upper)
{
	const NodeGeometry *g = &scan->tree->geometry;

	assert(low <= high && high <= node_count(scan->leaf));
	assert(!scan->tree->client->holding);
	for (int i = 0; low < high; i++)
	{
		uint32_t middle = upper && i < RANGE_STEPS ? low : (low + high) / 2;
		const uint64_t *cell = scan->leaf + leaf_cell_word(g, middle);

		if (search_compare_image(scan->tree, bound, cell, false, scan_image(scan, middle)) < (upper ? 1 : 0))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/*
 * Narrows the slots of an ordered base, which integers have chosen, to those within the range: by the
 * comparator.
 */
static TreeStatus
base_narrow(TreeScan *scan, const Range *range, Slots *slots)
{
	const NodeGeometry *g = &scan->tree->geometry;
	Slots ties[2] = {{slots->begin, slots->begin}, {slots->end, slots->end}};
	TreeStatus status;

	assert((node_flags(scan->leaf) & NODE_BASE_ORDERED) != 0);
	assert(slots->begin <= slots->end);
	if (range->lower != NULL)
		ties[0].end = base_find(g, scan->leaf, range->lower, slots->begin, true);
	if (range->upper != NULL)
		ties[1].begin = base_find(g, scan->leaf, range->upper, 0, false);
	status = base_fetch(scan, range, ties);
	if (status != TREE_OK)
		return status;
	if (range->lower != NULL)
		slots->begin = base_search(scan, range->lower, ties[0].begin, ties[0].end, false);
	if (range->upper != NULL)
	{
		uint32_t from = ties[1].begin > slots->begin ? ties[1].begin : slots->begin;

		slots->end = from < slots->end ? base_search(scan, range->upper, from, slots->end, true) : from;
	}
	return TREE_OK;
}

/* Adds the live entries of some slots that are within the range or may be. TREE_DAMAGED. */
static TreeStatus
candidates_take(TreeScan *scan, const Slots *slots, const Range *range, Candidates *candidates)
{
	const NodeGeometry *g = &scan->tree->geometry;
	const uint64_t *head = NULL;
	Sides sides = {1, -1};
	uint32_t made = 0;

	assert(slots->end <= g->leaf_cells);
	assert(candidates->count == 0);
	for (uint32_t slot = slots->begin; slot < slots->end; slot++)
	{
		const uint64_t *cell = scan->leaf + leaf_cell_word(g, slot);

		if (cell_state(cell[0]) == CELL_EMPTY)
			continue;
		if (!cell_is_posting(cell))
		{
			head = cell;
			sides = cell_sides(cell, range);
			if (cell_state(cell[0]) == CELL_LIVE)
				candidate_add(candidates, cell, slot, sides);
		}
		else if (head == NULL || scan->entries == NULL || slot >= node_count(scan->leaf))
			return client_fail(scan->tree->client, TREE_DAMAGED, "leaf %llx: a posting that is none",
			                   (unsigned long long) scan->pointer);
		else
			candidates_add_posting(scan, candidates, head, slot, sides, &made);
	}
	return TREE_OK;
}

/*
 * Puts each of the tail's into its place among the base's, behind those that it ties with: few, and mostly
 * near the end of a growing index.
 */
static void
candidates_merge(const NodeGeometry *g, Candidates *candidates, const Candidates *tail)
{
	assert(candidates->count + tail->count <= LEAF_ENTRIES_MAX);
	for (uint32_t t = 0; t < tail->count; t++)
	{
		uint32_t place = candidates->count++;

		assert(!tail->items[t].placed);
		while (place > 0 && candidate_order(g, &tail->items[t], &candidates->items[place - 1]) < 0)
		{
			candidates->items[place] = candidates->items[place - 1];
			place--;
		}
		candidates->items[place] = tail->items[t];
	}
}

/*
 * The live cells within the range, in cell_order(): the base's, merged with the tail's. TREE_DAMAGED, as
 * scan_fetch().
 */
static TreeStatus
candidates_collect(TreeScan *scan, const Range *range, Candidates *candidates)
{
	const NodeGeometry *g = &scan->tree->geometry;
	const uint64_t *leaf = scan->leaf;
	const Range whole = {NULL, NULL};
	bool ordered = !g->format.lossless && (node_flags(leaf) & NODE_BASE_ORDERED) != 0;
	Slots base = {0, node_count(leaf)};
	Slots rest = {node_count(leaf), g->leaf_cells};
	Candidates tail;
	TreeStatus status = TREE_OK;

	assert(node_level(leaf) == 0 && base.end <= g->leaf_cells);
	candidates->count = tail.count = 0;
	if (range->lower != NULL)
		base.begin = base_find(g, leaf, range->lower, 0, false);
	if (range->upper != NULL)
		base.end = base_find(g, leaf, range->upper, base.begin, true);
	if (ordered)
		status = base_narrow(scan, range, &base);
	if (status == TREE_OK)
		status = candidates_take(scan, &base, ordered ? &whole : range, candidates);
	for (uint32_t i = 0; ordered && i < candidates->count; i++)
		candidates->items[i].placed = true;
	if (status == TREE_OK)
		status = candidates_take(scan, &rest, range, &tail);
	if (status != TREE_OK)
		return status;
	candidates_merge(g, candidates, &tail);
	return TREE_OK;
}

/* The end of the run of candidates that begins at `from` and has one normalized key. */
static uint32_t
candidates_run(const NodeGeometry *g, const Candidates *candidates, uint32_t from)
{
	uint32_t to = from + 1;

	assert(from < candidates->count);
	while (to < candidates->count && candidates_tie(g, candidates, to))
		to++;
	assert(to <= candidates->count);
	return to;
}

/* Fetches all images that comparisons of these candidates, with bounds or with each other, will want. */
static TreeStatus
candidates_fetch(TreeScan *scan, Candidates *candidates)
{
	const NodeGeometry *g = &scan->tree->geometry;
	uint16_t slots[LEAF_CELLS_TARGET];
	uint32_t count = 0, to;

	assert(!g->format.lossless);
	assert(candidates->count <= LEAF_CELLS_TARGET);
	for (uint32_t from = 0; from < candidates->count; from = to)
	{
		bool open;

		to = candidates_run(g, candidates, from);
		/* Those in their places come first: if the last is one of them all are. */
		open = to - from > 1 && !candidates->items[to - 1].placed;
		for (uint32_t i = from; i < to; i++)
		{
			Candidate *candidate = &candidates->items[i];
			bool wanted = open || candidate->lower_tie || candidate->upper_tie;

			candidate->overflow = wanted && (candidate->cell[0] & CELL_OVERFLOW_BIT) != 0;
			if (candidate->overflow)
				slots[count++] = candidate->slot;
		}
	}
	return count > 0 ? scan_fetch(scan, slots, count) : TREE_OK;
}

/* The comparator decides against the bounds what integers left open. */
static void
candidates_compare(TreeScan *scan, const Range *range, Candidates *candidates)
{
	Tree *tree = scan->tree;
	uint32_t kept = 0;

	assert(!tree->client->holding);
	assert(candidates->count <= LEAF_ENTRIES_MAX);
	for (uint32_t i = 0; i < candidates->count; i++)
	{
		const Candidate *candidate = &candidates->items[i];
		const uint8_t *image = scan_image(scan, candidate->slot);

		if (candidate->lower_tie &&
		    search_compare_image(tree, range->lower, candidate->cell, false, image) >= 0)
			continue;
		if (candidate->upper_tie &&
		    search_compare_image(tree, range->upper, candidate->cell, false, image) <= 0)
			continue;
		candidates->items[kept++] = *candidate;
	}
	candidates->count = kept;
}

/*
 * Sorts candidates [from, to), which have one normalized key, by the comparator and then TID: binary
 * insertion of those that are not in their places.
 */
static void
candidates_sort_tied(TreeScan *scan, Candidates *candidates, uint32_t from, uint32_t to)
{
	Tree *tree = scan->tree;

	assert(from < to && to <= candidates->count);
	assert(!tree->client->holding);
	for (uint32_t i = from + 1; i < to; i++)
	{
		Candidate item = candidates->items[i];
		uint32_t low = from, high = i;
		TreeBound bound;
		TreeKey key;

		if (item.placed)
			continue;
		cell_key(&tree->geometry, item.cell, false, &key);
		if (item.overflow)
			key.image = scan_image(scan, item.slot);
		bound_of_key(&tree->geometry, &key, &bound);
		while (low < high)
		{
			uint32_t middle = (low + high) / 2;
			const Candidate *other = &candidates->items[middle];

			if (search_compare_image(tree, &bound, other->cell, false, scan_image(scan, other->slot)) < 0)
				high = middle;
			else
				low = middle + 1;
		}
		memmove(&candidates->items[low + 1], &candidates->items[low], (i - low) * sizeof(Candidate));
		candidates->items[low] = item;
	}
}

static void
candidates_sort(TreeScan *scan, Candidates *candidates)
{
	const NodeGeometry *g = &scan->tree->geometry;
	uint32_t to;

	assert(!g->format.lossless);
	assert(candidates->count <= LEAF_CELLS_TARGET);
	for (uint32_t from = 0; from < candidates->count; from = to)
	{
		to = candidates_run(g, candidates, from);
		if (to - from > 1)
			candidates_sort_tied(scan, candidates, from, to);
	}
}

/* Candidates to batch, in the order of the scan, equal neighbors once. */
static void
batch_emit(TreeScan *scan, const Candidates *candidates)
{
	const NodeGeometry *g = &scan->tree->geometry;
	TreeBatch *batch = &scan->batch;
	const uint64_t *before = NULL;
	bool forward = scan->direction == TREE_FORWARD;

	assert(candidates->count <= TREE_BATCH_MAX);
	batch_open(scan);
	for (uint32_t i = 0; i < candidates->count; i++)
	{
		const Candidate *candidate = &candidates->items[forward ? i : candidates->count - 1 - i];
		const uint64_t *cell = candidate->cell;

		if (before != NULL && batch_same_entry(g, before, cell))
			continue;
		if (before == NULL && batch_returned_before(scan, cell))
		{
			batch->whole = false;
			continue;
		}
		before = cell;
		batch->entries[batch->count].block = cell_block(cell[0]);
		batch->entries[batch->count].offset = cell_offset(cell[0]);
		batch->entries[batch->count].cell = candidate->slot;
		batch->count++;
	}
	if (before != NULL)
	{
		memcpy(scan->last, before, g->cell_bytes);
		scan->has_last = true;
	}
}

void
batch_begin(TreeScan *scan)
{
	assert(scan->leaf != NULL);
	if (!scan->tree->geometry.format.lossless)
		memset(scan->images, 0, sizeof(scan->images));
	scan->pool_used = 0;
	scan->keys_fetched = false;
	if (leaf_marks_void(&scan->tree->geometry, scan->leaf))
		leaf_revive(&scan->tree->geometry, scan->leaf);
}

TreeStatus
batch_fill(TreeScan *scan)
{
	const NodeGeometry *g = &scan->tree->geometry;
	bool forward = scan->direction == TREE_FORWARD;
	const TreeBound *begin = scan->near_inside ? &scan->near : NULL;
	const TreeBound *start = scan->begun ? begin : (scan->from_end ? NULL : &scan->start);
	const TreeBound *end = scan->far_inside ? &scan->limit : NULL;
	const TreeBound *stop = scan->stop_inside ? &scan->stop : end;
	Range range = {forward ? start : stop, forward ? stop : start};
	Candidates candidates;
	TreeStatus status;

	assert(scan->leaf != NULL && node_level(scan->leaf) == 0);
	assert(!scan->stop_inside || scan->has_stop);

	if (start == NULL && stop == NULL && batch_fill_whole(scan))
		return TREE_OK;
	status = candidates_collect(scan, &range, &candidates);
	if (status != TREE_OK)
		return status;
	candidates_filter(g, &range, &candidates);
	if (!g->format.lossless && candidates.count > 0)
	{
		status = candidates_fetch(scan, &candidates);
		if (status != TREE_OK)
			return status;
		candidates_compare(scan, &range, &candidates);
		candidates_sort(scan, &candidates);
	}
	else
		candidates_compare(scan, &range, &candidates);
	batch_emit(scan, &candidates);
	if (start != NULL || stop != NULL)
		scan->batch.whole = false;
	return TREE_OK;
}

TreeStatus
tree_batch_key(TreeScan *scan, const TreeBatch *batch, int i, TreeKey *key)
{
	const NodeGeometry *g = &scan->tree->geometry;
	uint16_t slots[LEAF_CELLS_TARGET];
	uint32_t count = 0;
	uint32_t slot;
	const uint64_t *cell;
	TreeStatus status = TREE_OK;

	assert(batch == &scan->batch);
	assert(i >= 0 && i < batch->count);

	slot = posting_head(g, scan->leaf, batch->entries[i].cell);
	cell = scan->leaf + leaf_cell_word(g, slot);
	cell_key(g, cell, false, key);
	key->block = batch->entries[i].block;
	key->offset = batch->entries[i].offset;
	if (g->format.lossless || (cell[0] & CELL_OVERFLOW_BIT) == 0)
		return TREE_OK;
	if (!scan->keys_fetched)
	{
		/*
		 * One chain for the whole batch: a caller that wants one key wants all. The pool does not move after this.
		 */
		for (int j = 0; j < batch->count; j++)
			if ((scan->leaf[leaf_cell_word(g, batch->entries[j].cell)] & CELL_OVERFLOW_BIT) != 0)
				slots[count++] = batch->entries[j].cell;
		status = scan_fetch(scan, slots, count);
		scan->keys_fetched = status == TREE_OK || status == TREE_RETRY;
	}
	if (scan->images[slot] == 0 && (status == TREE_OK || status == TREE_RETRY))
	{
		slots[0] = (uint16_t) slot;
		status = scan_fetch(scan, slots, 1);
	}
	else if (scan->images[slot] != 0)
		status = TREE_OK;
	if (status == TREE_RETRY)
		return client_fail(scan->tree->client, TREE_NOT_FOUND, "leaf %llx: the entry was removed",
		                   (unsigned long long) scan->pointer);
	if (status == TREE_OK)
		key->image = scan_image(scan, slot);
	return status;
}

void
tree_batch_views(const TreeScan *scan, const TreeBatch *batch, TreeKeyView *views)
{
	const NodeGeometry *g = &scan->tree->geometry;
	const bool lossless = g->format.lossless;

	assert(batch == &scan->batch);
	assert(batch->count == 0 || scan->leaf != NULL);
	for (int i = 0; i < batch->count; i++)
	{
		uint32_t slot = batch->entries[i].cell;
		const uint64_t *cell = scan->leaf + leaf_cell_word(g, slot);

		if (i > 0 && slot == batch->entries[i - 1].cell)
		{
			views[i] = views[i - 1];
			continue;
		}
		if (cell_is_posting(cell))
			cell = scan->leaf + leaf_cell_word(g, posting_head(g, scan->leaf, slot));
		views[i].norm = cell + 1;
		views[i].image = NULL;
		views[i].image_bytes = lossless ? 0 : cell_image(g, cell, &views[i].image);
		views[i].high = (cell[0] & CELL_HIGH_BIT) != 0;
	}
}

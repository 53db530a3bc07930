/*
 * batch_whole.c
 *		The entries of a leaf that lies within a scan's bounds from end to end: of a long scan, every leaf but
 *		the first and the last.
 *
 * Nothing has to be searched or compared with bounds: the base is in order, the tail is sorted and merged into it,
 * and both go straight to the batch. Leaves that integers do not order, and leaves that look damaged, are left to
 * batch.c.
 */
#include "tree/scan/scan.h"

/* The tail's live cells, in order. */
typedef struct Tail
{
	uint32_t count;
	uint32_t next; /* of those that are not in the batch yet */
	uint16_t slots[LEAF_CELLS_TARGET];
} Tail;

static inline const uint64_t *
slot_cell(const TreeScan *scan, uint32_t slot)
{
	return scan->leaf + leaf_cell_word(&scan->tree->geometry, slot);
}

/* cell_order(), which the first word mostly decides. */
static inline int
quick_order(const NodeGeometry *g, const uint64_t *a, const uint64_t *b)
{
	if (((a[0] ^ b[0]) & CELL_HIGH_BIT) == 0 && a[1] != b[1])
		return a[1] < b[1] ? -1 : 1;
	return cell_order(g, a, b);
}

/* Sorts a slot of the tail into its place. False: integers do not decide it. */
static bool
tail_insert(const TreeScan *scan, Tail *tail, uint32_t slot)
{
	const NodeGeometry *g = &scan->tree->geometry;
	uint32_t place = tail->count;
	int order = 1;

	while (place > 0 &&
	       (order = quick_order(g, slot_cell(scan, slot), slot_cell(scan, tail->slots[place - 1]))) < 0)
	{
		tail->slots[place] = tail->slots[place - 1];
		place--;
	}
	tail->slots[place] = (uint16_t) slot;
	tail->count++;
	return place == 0 || order > 0;
}

static bool
tail_sort(const TreeScan *scan, Tail *tail)
{
	const NodeGeometry *g = &scan->tree->geometry;

	assert(node_count(scan->leaf) <= g->leaf_cells);
	tail->count = tail->next = 0;
	for (uint32_t slot = node_count(scan->leaf); slot < g->leaf_cells; slot++)
	{
		uint32_t state = cell_state(slot_cell(scan, slot)[0]);

		if (state == CELL_POSTING || (state == CELL_LIVE && !tail_insert(scan, tail, slot)))
			return false;
	}
	return true;
}

static inline void
batch_put(TreeBatch *batch, uint64_t word0, uint32_t slot)
{
	assert(batch->count < TREE_BATCH_MAX);
	batch->entries[batch->count].block = cell_block(word0);
	batch->entries[batch->count].offset = cell_offset(word0);
	batch->entries[batch->count].cell = (uint16_t) slot;
	batch->count++;
}

/* Puts the tail's cells that come before the cell into the batch. False: integers do not decide. */
static bool
tail_put_before(TreeScan *scan, Tail *tail, const uint64_t *cell)
{
	const NodeGeometry *g = &scan->tree->geometry;

	for (; tail->next < tail->count; tail->next++)
	{
		uint32_t slot = tail->slots[tail->next];
		int order = quick_order(g, slot_cell(scan, slot), cell);

		if (order >= 0)
			return order > 0;
		batch_put(&scan->batch, slot_cell(scan, slot)[0], slot);
	}
	return true;
}

/* Puts a posting list's entries, and the tail's cells that come before them, into the batch. False: as above. */
static bool
posting_put(TreeScan *scan, Tail *tail, const uint64_t *head, uint32_t slot)
{
	const NodeGeometry *g = &scan->tree->geometry;
	const uint64_t *cell = slot_cell(scan, slot);
	uint64_t entry[LINE_WORDS];

	assert(cell_is_posting(cell));
	memcpy(entry, head, g->cell_bytes);
	for (uint32_t i = 0; i < g->posting_tids && posting_get(cell, i) != 0; i++)
	{
		entry[0] = posting_word0(head, posting_get(cell, i));
		if (tail->next < tail->count && !tail_put_before(scan, tail, entry))
			return false;
		batch_put(&scan->batch, entry[0], slot);
	}
	return true;
}

/*
 * Puts the base, and the tail's cells that come before its end, into the batch. False: as above, or the leaf looks
 * damaged.
 */
static bool
base_put(TreeScan *scan, Tail *tail)
{
	const NodeGeometry *g = &scan->tree->geometry;
	const uint64_t *head = NULL;
	const uint64_t *cell = slot_cell(scan, 0);
	uint32_t count = node_count(scan->leaf);

	for (uint32_t slot = 0; slot < count; slot++, cell += g->cell_words)
	{
		uint32_t state = cell_state(cell[0]);

		if (state == CELL_POSTING)
		{
			if (head == NULL || !g->format.postings || !posting_put(scan, tail, head, slot))
				return false;
			continue;
		}
		if (state == CELL_EMPTY)
			continue;
		head = cell;
		if (state != CELL_LIVE)
			continue;
		if (tail->next < tail->count && !tail_put_before(scan, tail, cell))
			return false;
		batch_put(&scan->batch, cell[0], slot);
	}
	return true;
}

/* The cell of the batch's entry i, which a posting has not: made. */
static void
entry_cell(const TreeScan *scan, int i, uint64_t *cell)
{
	const NodeGeometry *g = &scan->tree->geometry;
	const TreeBatch *batch = &scan->batch;
	const uint64_t *head = slot_cell(scan, posting_head(g, scan->leaf, batch->entries[i].cell));
	bool overflow = (head[0] & CELL_OVERFLOW_BIT) != 0;

	assert(i >= 0 && i < batch->count);
	memcpy(cell, head, g->cell_bytes);
	cell[0] = cell_word0(head[0], batch->entries[i].block, batch->entries[i].offset, CELL_LIVE,
	                     (head[0] & CELL_HIGH_BIT) != 0, overflow);
}

/* Puts the batch into the scan's order, and drops the entries at its beginning that were returned before. */
static void
batch_settle(TreeScan *scan)
{
	TreeBatch *batch = &scan->batch;
	uint64_t cell[LINE_WORDS];
	int returned = 0;

	for (int i = 0, j = batch->count - 1; scan->direction == TREE_BACKWARD && i < j; i++, j--)
	{
		TreeBatchEntry swap = batch->entries[i];

		batch->entries[i] = batch->entries[j];
		batch->entries[j] = swap;
	}
	for (; returned < batch->count; returned++)
	{
		entry_cell(scan, returned, cell);
		if (!batch_returned_before(scan, cell))
			break;
	}
	if (returned == batch->count)
	{
		batch->count = 0;
		return;
	}
	entry_cell(scan, batch->count - 1, scan->last);
	scan->has_last = true;
	if (returned == 0)
		return;
	batch->count -= returned;
	memmove(batch->entries, batch->entries + returned, (size_t) batch->count * sizeof(batch->entries[0]));
}

bool
batch_fill_whole(TreeScan *scan)
{
	const NodeGeometry *g = &scan->tree->geometry;
	Tail tail;

	assert(scan->leaf != NULL && node_level(scan->leaf) == 0);
	if (!g->format.lossless && (node_flags(scan->leaf) & NODE_BASE_ORDERED) == 0)
		return false;
	batch_open(scan);
	if (!tail_sort(scan, &tail) || !base_put(scan, &tail))
		return false;
	for (; tail.next < tail.count; tail.next++)
		batch_put(&scan->batch, slot_cell(scan, tail.slots[tail.next])[0], tail.slots[tail.next]);
	batch_settle(scan);
	return true;
}

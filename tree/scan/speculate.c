/*
 * speculate.c
 *		Speculative lookups, after SMART: the entry cache in shared memory remembers in which cell a key was found, and the next
 * lookup reads that cell's line alone, or the cell alone where cells cross lines.
 *
 * An entry of it is a hint. The line is accepted if the cell is live and has the key, byte for byte: cells are not
 * torn (memory nodes that may tear them are not read in this way), and a cell that is live in a leaf of the tree is
 * an entry of the tree at that instant. The cell lies in a leaf of the tree because only cells are remembered of
 * leaves that were read in this epoch of the tree (quiesce.c): within one epoch leaves stay leaves, but for the root,
 * whose cells are not remembered, and slots keep their places, so that no fence is taken for a cell. No stamp is
 * checked: whatever was rewritten meanwhile, the leaf has the cell.
 *
 * A line proves nothing about entries that are not in it: a caller that wants all entries of a key scans.
 */
#include "tree/scan/scan.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/*
 * A cell and the check of whose it is: the hash of tree, epoch and key, combined with the cell's place, so that two words
 * of different writers do not fit.
 */
typedef struct EntryHint
{
	uint64_t place; /* address of the leaf, and the slot where pointers have their stamp; 0 = empty */
	uint64_t check;
} EntryHint;

/* The largest power of two that there is room for, as lookups find their hint by a mask; 0: for none. */
static uint64_t
hints_of(const TreeSharedOptions *options)
{
	uint64_t room = options->entry_cache_bytes / sizeof(EntryHint);

	return room == 0 ? 0 : 1ull << (63 - __builtin_clzll(room));
}

size_t
speculate_shared_bytes(const TreeSharedOptions *options)
{
	return hints_of(options) * sizeof(EntryHint);
}

void
speculate_shared_reset(TreeShared *shared)
{
	assert(shared->hints != NULL);
	memset(shared->hints, 0, speculate_shared_bytes(&shared->options));
}

/* The cell that an entry with this key would have, and its hash in this epoch. */
static uint64_t
key_hash(const Tree *tree, const uint64_t *cell, uint64_t epoch)
{
	uint64_t bytes[LINE_WORDS + 2];

	assert(tree->geometry.cell_words <= LINE_WORDS);
	memset(bytes, 0, sizeof(bytes));
	bytes[0] = tree->tree;
	bytes[1] = epoch;
	memcpy(bytes + 2, cell, tree->geometry.cell_bytes);
	bytes[2] &= CELL_HIGH_BIT;
	return XXH3_64bits(bytes, sizeof(bytes));
}

/* NULL: there is no entry cache. */
static EntryHint *
hint_of(const Tree *tree, uint64_t hash)
{
	const TreeShared *shared = tree->client->shared;
	uint64_t hints = hints_of(&shared->options);

	return hints == 0 ? NULL : (EntryHint *) shared->hints + (hash & (hints - 1));
}

/* The place that was remembered for this hash; 0: none. */
static uint64_t
hint_load(const EntryHint *hint, uint64_t hash)
{
	uint64_t place = __atomic_load_n(&hint->place, __ATOMIC_RELAXED);
	uint64_t check = __atomic_load_n(&hint->check, __ATOMIC_RELAXED);

	return (check ^ place) == hash ? place : 0;
}

static void
hint_store(EntryHint *hint, uint64_t hash, uint64_t place)
{
	__atomic_store_n(&hint->place, place, __ATOMIC_RELAXED);
	__atomic_store_n(&hint->check, place == 0 ? 0 : hash ^ place, __ATOMIC_RELAXED);
}

/* Whether this cell is an entry with the key of `wanted`. */
static bool
cell_fits(const NodeGeometry *g, const uint64_t *cell, const uint64_t *wanted)
{
	return cell_state(cell[0]) == CELL_LIVE && cell_offset(cell[0]) != 0 &&
	       cell_block(cell[0]) != UINT32_MAX && cell_same_key(g, cell, wanted);
}

/*
 * Reads the line of the cell that is remembered.  TREE_OK: it has the key.  TREE_NOT_FOUND: nothing is remembered, or it has
 * not, which is forgotten then.  Else as access_execute(), but for TREE_RETRY.
 */
static TreeStatus
guess(TreeScan *scan, const uint64_t *wanted, TreeFound *found)
{
	Tree *tree = scan->tree;
	const NodeGeometry *g = &tree->geometry;
	uint64_t hash = key_hash(tree, wanted, tree->epoch);
	EntryHint *hint = hint_of(tree, hash);
	uint64_t place = hint != NULL ? hint_load(hint, hash) : 0;
	uint32_t word = leaf_cell_word(g, (uint32_t) (place & STAMP_MASK));
	uint32_t first = g->lines_whole ? word / LINE_WORDS * LINE_WORDS : word;
	const uint64_t *cell = scan->reread + (word - first);
	FabricOp op = {.opcode = FABRIC_READ,
	               .region = FABRIC_NODES,
	               .length = g->lines_whole ? LINE_BYTES : g->cell_bytes,
	               .offset = pointer_offset(place) + first * 8,
	               .buffer = scan->reread};
	TreeStatus status;

	assert(tree->client->sections > 0);
	/*
	 * A leaf in the leaf cache takes no round trip. Whether lines may be torn is known of connected memory nodes
	 * only.
	 */
	if (place == 0 || leaf_cache_has(tree, pointer_address(place)) ||
	    access_endpoint(tree->client, tree_place(tree, pointer_memory_node(place))) == NULL ||
	    leaf_needs_sum(g, place))
		return TREE_NOT_FOUND;
	tree->client->guesses.tried++;
	status = access_execute(tree, pointer_memory_node(place), &op, 1);
	if (status != TREE_OK)
		return status == TREE_RETRY ? TREE_NOT_FOUND : status;
	if (!cell_fits(g, cell, wanted))
	{
		hint_store(hint, 0, 0);
		return TREE_NOT_FOUND;
	}
	tree->client->guesses.right++;
	*found = (TreeFound){.block = cell_block(cell[0]), .offset = cell_offset(cell[0])};
	return TREE_OK;
}

/* Remembers the cell of the scan's leaf that the first entry of its batch has, if it can be found by the key alone. */
static void
remember(const TreeScan *scan, const uint64_t *wanted)
{
	const Tree *tree = scan->tree;
	const NodeGeometry *g = &tree->geometry;
	uint64_t hash = key_hash(tree, wanted, scan->leaf_epoch);
	EntryHint *hint = hint_of(tree, hash);
	uint32_t slot = scan->batch.entries[0].cell;

	assert(scan->batch.count > 0);
	if (hint == NULL || scan->batch.unverified || scan->batch.marks_void ||
	    pointer_address(scan->pointer) == tree->root ||
	    !cell_fits(g, scan->leaf + leaf_cell_word(g, slot), wanted))
		return;
	hint_store(hint, hash, pointer_address(scan->pointer) | slot);
}

/* The first entry with the key, as a scan finds it. */
static TreeStatus
find_by_scan(TreeScan *scan, const TreeKey *key, TreeFound *found)
{
	const TreeBatch *batch;
	TreeBound low, high;
	TreeStatus status;

	bound_of_key(&scan->tree->geometry, key, &low);
	low.side = -1;
	high = low;
	high.side = 1;
	status = tree_scan_seek(scan, TREE_FORWARD, &low, &high);
	do
	{
		if (status == TREE_OK)
			status = tree_scan_next(scan, &batch);
	} while (status == TREE_OK && batch->count == 0);
	if (status != TREE_OK)
		return status;
	*found = (TreeFound){.block = batch->entries[0].block,
	                     .offset = batch->entries[0].offset,
	                     .unverified = batch->unverified || batch->marks_void};
	return TREE_OK;
}

TreeStatus
tree_find(TreeScan *scan, const TreeKey *key, TreeFound *found)
{
	Tree *tree = scan->tree;
	bool inside = !key->cut && !cell_needs_overflow(&tree->geometry, key) && scan->leaf_hook == NULL &&
	              tree->replicas == NULL;
	uint64_t wanted[LINE_WORDS];
	TreeStatus status = TREE_NOT_FOUND;
	int section;

	assert(!tree->client->holding);
	if (inside)
	{
		cell_make(&tree->geometry, wanted, key, 0, NULL);
		status = critical_enter(tree, &section);
		if (status != TREE_OK)
			return status;
		status = guess(scan, wanted, found);
		critical_leave(tree, section);
	}
	if (status == TREE_OK)
		TREE_COUNT(tree, lookups, 1);
	if (status != TREE_NOT_FOUND)
		return status;
	status = find_by_scan(scan, key, found);
	if (status == TREE_OK && inside)
		remember(scan, wanted);
	return status;
}

void
tree_client_guesses(const TreeClient *client, TreeGuesses *guesses)
{
	assert(client != NULL);
	*guesses = client->guesses;
}

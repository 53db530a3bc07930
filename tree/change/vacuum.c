/*
 * vacuum.c
 *		Removing entries: from the leftmost leaf along the right links to the last one.
 *
 * A leaf is read and judged without a lock.  Only one with victims is locked, and they are removed by a
 * rewrite, with the next generation, if it still is the generation that was judged: inside one nothing leaves
 * its slot (I-T5), and an insert that finds its own entry there raises it (I-P3).  Entries only move right,
 * so each that was there at the start of a walk is met at least once.  An empty leaf stays where it is, and
 * is filled again, or merged into its left neighbor behind the walk: where that is to be looked for is remembered
 * (merge_walk.c).
 */
#include "tree/change/merge.h"
#include "tree/scan/scan.h"

/*
 * Tries at one leaf, in a row, that end without a judged leaf and without a sign of anybody else's work: so many are none on a
 * sound tree.  Where others change the leaf between the judgment and the lock a try says nothing of the tree; it is made again for
 * as long as a lock is waited for, and at least so often.
 */
#define JUDGE_ATTEMPTS 1000

struct TreeVacuum
{
	Tree *tree;
	bool begun;
	bool ended;
	uint64_t epoch;           /* of the tree, when `next` was read */
	uint64_t next;            /* the leaf to visit */
	RightWalk walk;           /* from the first one to it */
	uint64_t low[LINE_WORDS]; /* where it begins, unless it is the first: the last one's high fence */
	uint32_t height;          /* of the tree when the walk began */
	uint64_t leaves;          /* visited so far, for the estimates */
	uint64_t entries;
	uint64_t *leaf;                     /* NODE_MAX_BYTES: the copy that was judged */
	uint8_t victims[LEAF_CELLS_TARGET]; /* by slot: bit 0, or of a posting cell a bit for each TID */
	uint32_t victim_count;
	bool outrun;       /* the last try met a leaf that others had changed since the judgment */
	Outrun outruns;    /* such tries at this leaf */
	EmptyRanges empty; /* where leaves were left without an entry */
};

TreeStatus
tree_vacuum_open(Tree *handle, TreeVacuum **vacuum)
{
	const size_t head = (sizeof(TreeVacuum) + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
	TreeVacuum *v;

	assert(handle->client != NULL);
	assert(vacuum != NULL);
	*vacuum = NULL;
	v = client_allocate(handle->client, head + NODE_MAX_BYTES + LINE_BYTES);
	if (v == NULL)
		return client_fail(handle->client, TREE_NO_MEMORY, "no memory for a vacuum");
	memset(v, 0, sizeof(*v));
	v->tree = handle;
	v->leaf = (uint64_t *) (((uintptr_t) v + head + LINE_BYTES - 1) & ~(uintptr_t) (LINE_BYTES - 1));
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

const EmptyRanges *
vacuum_empty_ranges(const TreeVacuum *vacuum)
{
	assert(vacuum->tree != NULL);
	return &vacuum->empty;
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
	vacuum->begun = true;
	return TREE_OK;
}

/* Which TIDs of a posting cell are dead: a bit for each. */
static uint8_t
posting_judge(const NodeGeometry *g, const uint64_t *head, const uint64_t *cell, TreeIsDead is_dead,
              void *argument)
{
	uint8_t dead = 0;

	assert(cell_is_posting(cell) && !cell_is_posting(head));
	assert(g->posting_tids <= 8 || !g->format.postings);
	for (uint32_t i = 0; i < g->posting_tids; i++)
	{
		uint64_t word0 = posting_word0(head, posting_get(cell, i));

		if (posting_get(cell, i) != 0 && is_dead(argument, cell_block(word0), cell_offset(word0)))
			dead |= (uint8_t) (1u << i);
	}
	return dead;
}

/* Marks the victims in the copy. Calls is_dead: nothing is held. */
static void
vacuum_judge(TreeVacuum *vacuum, TreeIsDead is_dead, void *argument)
{
	const NodeGeometry *g = &vacuum->tree->geometry;
	const uint64_t *head = NULL;

	assert(!vacuum->tree->client->holding);
	assert(node_level(vacuum->leaf) == 0);
	memset(vacuum->victims, 0, sizeof(vacuum->victims));
	vacuum->victim_count = 0;
	for (uint32_t slot = 0; is_dead != NULL && slot < g->leaf_cells; slot++)
	{
		const uint64_t *cell = vacuum->leaf + leaf_cell_word(g, slot);

		/* Dead-marked ones, too: their TIDs are given free like those of others. */
		if (cell_is_posting(cell))
			vacuum->victims[slot] = posting_judge(g, head, cell, is_dead, argument);
		else
		{
			head = cell;
			vacuum->victims[slot] =
				leaf_keeps(cell[0], false) && is_dead(argument, cell_block(cell[0]), cell_offset(cell[0]));
		}
		vacuum->victim_count += (uint32_t) __builtin_popcount(vacuum->victims[slot]);
	}
}

/* Whether the locked leaf still has each victim as it was judged. */
static bool
victims_unchanged(const TreeVacuum *vacuum, const uint64_t *node)
{
	const NodeGeometry *g = &vacuum->tree->geometry;

	assert(vacuum->victim_count > 0);
	if (node_level(node) != 0 || node[HEADER_GENERATION] != vacuum->leaf[HEADER_GENERATION])
		return false;
	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
	{
		uint32_t word = leaf_cell_word(g, slot);

		if (vacuum->victims[slot] != 0 && memcmp(node + word, vacuum->leaf + word, g->cell_bytes) != 0)
			return false;
	}
	return true;
}

/* Takes the victims out of the image that the rewrite is made from. */
static void
victims_mark(const TreeVacuum *vacuum, uint64_t *node)
{
	const NodeGeometry *g = &vacuum->tree->geometry;

	assert(vacuum->victim_count > 0);
	assert(node != vacuum->leaf);
	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
	{
		uint64_t *cell = node + leaf_cell_word(g, slot);

		for (uint32_t i = 0; cell_is_posting(cell) && i < g->posting_tids; i++)
			if ((vacuum->victims[slot] & 1u << i) != 0)
				posting_remove(cell, i);
		if (vacuum->victims[slot] != 0 && !cell_is_posting(cell))
			cell[0] &= ~(3ull << CELL_STATE_SHIFT);
	}
}

/*
 * Removes the victims under the leaf's lock; *live is what is left.  TREE_RETRY: it is not the generation
 * that was judged, or doubt was settled: read it again.
 */
static TreeStatus
vacuum_remove(TreeVacuum *vacuum, uint32_t *live)
{
	Tree *tree = vacuum->tree;
	uint64_t *old = tree->client->image;
	uint32_t bytes = tree_node_bytes(tree, vacuum->next, 0);
	LockHandle lock;
	TreeStatus status;

	assert(vacuum->victim_count > 0);
	status = lock_and_read(tree, vacuum->next, bytes, old, &lock);
	if (status != TREE_OK)
		return status;
	if (!victims_unchanged(vacuum, old))
	{
		vacuum->outrun = true;
		status = lock_release(tree, &lock, vacuum->next, old, bytes);
		return status == TREE_OK ? TREE_RETRY : status;
	}
	victims_mark(vacuum, old);
	status = leaf_rewrite(tree, &lock, vacuum->next, old, live);
	if (status == TREE_OK)
		TREE_COUNT(tree, deletes, vacuum->victim_count);
	return status;
}

/* Whether the leaf begins where the one before it ended: a walk that always goes up comes to an end. */
static bool
vacuum_goes_up(const TreeVacuum *vacuum)
{
	const NodeGeometry *g = &vacuum->tree->geometry;

	assert(vacuum->begun);
	return vacuum->leaves == 0 || separator_equal(g, vacuum->leaf + g->low_word, vacuum->low);
}

/* One try at the leaf vacuum->next; TREE_RETRY: again. */
static TreeStatus
vacuum_visit(TreeVacuum *vacuum, TreeIsDead is_dead, void *argument, uint32_t *live)
{
	Tree *tree = vacuum->tree;
	TreeStatus status = access_read_node(tree, vacuum->next, 0, vacuum->leaf);

	assert(vacuum->begun);
	assert(live != NULL);
	/* Where the only leaf has become the root of more, they are all still to be visited. */
	if (status == TREE_RETRY && pointer_address(vacuum->next) == tree->root)
		vacuum->begun = false;
	if (status != TREE_OK)
		return status;
	if (!vacuum_goes_up(vacuum))
		return client_fail(tree->client, TREE_DAMAGED,
		                   "leaf %llx: does not begin where the one before it ends",
		                   (unsigned long long) vacuum->next);
	vacuum_judge(vacuum, is_dead, argument);
	*live = leaf_live(&tree->geometry, vacuum->leaf);
	return vacuum->victim_count > 0 ? vacuum_remove(vacuum, live) : TREE_OK;
}

/* The walk is over: what it counted is what the tree has, but for what changed meanwhile. */
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

/* Leaves were taken out of the tree since the last call, by somebody else: the walk begins anew. */
static void
vacuum_refresh(TreeVacuum *vacuum)
{
	assert(!vacuum->ended);
	assert(vacuum->tree->client->sections > 0);
	if (vacuum->epoch == vacuum->tree->epoch)
		return;
	vacuum->epoch = vacuum->tree->epoch;
	vacuum->begun = false;
	vacuum->leaves = 0;
	vacuum->entries = 0;
	vacuum->empty.count = 0;
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
vacuum_tries(TreeVacuum *vacuum, TreeIsDead is_dead, void *argument, uint32_t *live)
{
	TreeClient *client = vacuum->tree->client;
	TreeStatus status = TREE_RETRY;

	vacuum->outrun = false;
	vacuum->outruns = (Outrun){0};
	for (int attempts = 0; status == TREE_RETRY && attempts < JUDGE_ATTEMPTS; attempts++)
	{
		status = vacuum->begun ? TREE_OK : vacuum_begin(vacuum);
		if (status == TREE_OK)
			status = vacuum_visit(vacuum, is_dead, argument, live);
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

/* tree_vacuum_next(), inside its critical section. */
static TreeStatus
vacuum_next(TreeVacuum *vacuum, TreeIsDead is_dead, void *argument, TreeVacuumCounts *counts)
{
	Tree *tree = vacuum->tree;
	uint32_t live = 0;
	TreeStatus status;

	vacuum_refresh(vacuum);
	status = vacuum_tries(vacuum, is_dead, argument, &live);
	if (status != TREE_OK)
		return status;
	counts->leaves++;
	counts->entries += live;
	counts->removed += vacuum->victim_count;
	counts->empty += live == 0;
	if (live == 0)
		empty_ranges_add(&tree->geometry, &vacuum->empty, vacuum->leaf);
	vacuum->leaves++;
	vacuum->entries += live;
	if (!walk_goes_on(&vacuum->walk, vacuum->next))
		return access_ring(tree, vacuum->next);
	vacuum->next = vacuum->leaf[HEADER_RIGHT];
	node_get_fence(&tree->geometry, vacuum->leaf, true, vacuum->low);
	if (vacuum->next == POINTER_NONE)
		vacuum_end(vacuum);
	return TREE_OK;
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

/*
 * fold.c
 *		Taking emptied leaves out of the tree, and inner nodes of few children.
 *
 * A node is folded into its left neighbor, where both are children of one parent: the neighbor gets its keys'
 * range (a leaf that is folded has no entry), its children, its high fence and its right link.  Two writes do
 * it, in this order:
 *
 *		1	the parent, without the cells of the nodes that go;
 *		2	the left neighbor, which from this write on covers them all: they are linked from nowhere.
 *
 * Between the two the tree is as it is between a split and its posting: readers go right, and whoever does
 * posts the node anew.  So whatever ends us, every prefix is a valid tree (I-T3).
 *
 * Low fences stay (I-T6), but a high fence rises here and a fence ceases to be one, and what is between L and
 * E is not looked for there again.  No reader is made to bear that in the middle of a call: it is done while
 * this is the only call in progress on the tree (quiesce.c), for the children of one node at a time.  Each child
 * is looked at without that first; only where something is to be folded the barrier is closed, and what was seen
 * is looked at anew.  Which children are looked at, and in which order, says fold_walk.c.  Scans between two calls and positions know
 * by the tree's epoch that their pointers are old; they go on by a descent to the fence where they are, which may lie inside a leaf
 * now (scan.c).  Of cached inner nodes only what they say of a folded node, and of the left neighbor, is old (cache.c).
 *
 * Then no pointer to a folded node is left, and the next nodes of its kind are taken from them at once
 * (freed.c).  Not before its lock word was seen free: a writer whose chain is in doubt holds it still, and
 * what he wrote may come late.
 */
#include "tree/change/fold.h"

/* An inner node is folded into its neighbor if both together fill no more than this part of a node. */
#define INNER_FULL_NUMERATOR 3
#define INNER_FULL_DENOMINATOR 4

/* Tries to have the tree alone for one parent. */
#define BARRIER_ATTEMPTS 4
/* The child that was looked at last. */
typedef struct FoldNeighbor
{
	bool there;        /* it could be read */
	uint32_t left;     /* the child that it is, or is to be folded into */
	uint32_t children; /* inner nodes: that this one would have */
	uint64_t pointer;
	uint64_t right;
	uint64_t high[LINE_WORDS];
} FoldNeighbor;

static uint64_t
child_pointer(const TreeFold *fold, uint32_t i)
{
	assert(i < node_count(fold->parent));
	return fold->parent[inner_cell_word(&fold->tree->geometry, i)];
}

/* ---- what can be folded ---- */

/* A leaf without any cell, dead-marked ones included: so it has no image out of line either. */
static bool
leaf_is_empty(const NodeGeometry *g, const uint64_t *leaf)
{
	assert(node_level(leaf) == 0);
	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
		if (cell_state(leaf[leaf_cell_word(g, slot)]) != CELL_EMPTY)
			return false;
	return true;
}

/* Whether the node may be folded into the neighbor on its left, for what it holds. */
static bool
node_is_light(const NodeGeometry *g, const FoldNeighbor *neighbor, const uint64_t *node)
{
	uint32_t children = neighbor->children + node_count(node);

	if (node_level(node) == 0)
		return leaf_is_empty(g, node);
	return children * INNER_FULL_DENOMINATOR <= g->inner_cells * INNER_FULL_NUMERATOR;
}

/* Whether parent, neighbor and node agree that the node stands right behind the neighbor. */
static bool
node_follows(const TreeFold *fold, const FoldNeighbor *neighbor, uint32_t i, const uint64_t *node)
{
	const NodeGeometry *g = &fold->tree->geometry;

	assert(i > 0);
	return neighbor->there && pointer_address(neighbor->right) == pointer_address(child_pointer(fold, i)) &&
	       separator_equal(g, neighbor->high, node + g->low_word) &&
	       separator_equal(g, fold->parent + inner_cell_word(g, i) + 1, node + g->low_word);
}

/* Adds child i to what is folded into the neighbor. */
static void
plan_add(TreeFold *fold, FoldNeighbor *neighbor, uint32_t i, const uint64_t *node)
{
	FoldPlan *plan = &fold->plan;
	FoldRun *run;

	assert(neighbor->left < i);
	if (plan->runs == 0 || plan->run[plan->runs - 1].left != neighbor->left)
		plan->run[plan->runs++].left = neighbor->left;
	assert(plan->runs <= INNER_CELLS_MAX / 2 + 1);
	run = &plan->run[plan->runs - 1];
	run->last = i;
	run->right = node[HEADER_RIGHT];
	node_get_fence(&fold->tree->geometry, node, true, run->high);
	neighbor->children += node_count(node);
}

/* Notes that the first child stays only for want of a left neighbor with the same parent. */
static void
plan_first(TreeFold *fold, const uint64_t *node)
{
	const NodeGeometry *g = &fold->tree->geometry;

	assert(node_level(node) + 1 == fold->level);
	if (!separator_infinite(node + g->low_word))
		fold->first_waits = node_level(node) > 0 || leaf_is_empty(g, node);
}

/*
 * A child whose right sibling the parent does not name: the last step of a split, or the second of a fold, is
 * owed.
 */
static TreeStatus
plan_owed(TreeFold *fold, const FoldNeighbor *neighbor, uint32_t i)
{
	TreeStatus status;

	if (fold->alone || !neighbor->there || neighbor->right == POINTER_NONE ||
	    pointer_address(neighbor->right) == pointer_address(child_pointer(fold, i)) ||
	    separator_infinite(neighbor->high))
		return TREE_OK;
	status =
		parent_post(fold->tree, fold->level - 1, neighbor->pointer, neighbor->high, neighbor->right, NULL);
	return status == TREE_MEMORY_FULL || status == TREE_TIMED_OUT ? TREE_OK : status;
}

/* Looks at child i in `node`; NULL: it could not be read. */
static TreeStatus
plan_child(TreeFold *fold, FoldNeighbor *neighbor, uint32_t i, const uint64_t *node)
{
	const NodeGeometry *g = &fold->tree->geometry;
	uint64_t pointer = child_pointer(fold, i);
	bool folds = false, free = true;
	TreeStatus status = TREE_OK;

	if (node == NULL)
	{
		neighbor->there = false;
		return TREE_OK;
	}
	fold->plan.generations[i] = node[HEADER_GENERATION];
	if (i == 0)
		plan_first(fold, node);
	else
		folds = node_follows(fold, neighbor, i, node) && node_is_light(g, neighbor, node);
	if (i > 0 && !folds)
		status = plan_owed(fold, neighbor, i);
	if (folds && fold->alone)
		status = lock_is_free(fold->tree, pointer, &free);
	if (status != TREE_OK)
		return status;
	if (folds && free)
		plan_add(fold, neighbor, i, node);
	else
	{
		neighbor->left = i;
		neighbor->children = node_count(node);
	}
	neighbor->there = true;
	neighbor->pointer = pointer;
	neighbor->right = node[HEADER_RIGHT];
	memset(neighbor->high, 0, sizeof(neighbor->high));
	node_get_fence(g, node, true, neighbor->high);
	return TREE_OK;
}

/* Reads child `from` and those behind it that can be read by the same chain; *count of them. */
static TreeStatus
children_read(TreeFold *fold, uint32_t from, uint32_t *count)
{
	Tree *tree = fold->tree;
	uint64_t pointers[TREE_PREFETCH_MAX];
	uint32_t last = node_count(fold->parent);
	TreeStatus status;

	assert(from < last && fold->look[from]);
	*count = 0;
	while (*count < TREE_PREFETCH_MAX && from + *count < last && fold->look[from + *count])
	{
		uint64_t pointer = child_pointer(fold, from + *count);

		if (pointer_address(pointer) == tree->root)
			return client_fail(tree->client, TREE_DAMAGED, "node %llx: the root is its child",
			                   (unsigned long long) fold->next);
		if (*count > 0 &&
		    (fold->level > 1 || pointer_memory_node(pointer) != pointer_memory_node(pointers[0])))
			break;
		pointers[(*count)++] = pointer;
	}
	if (fold->level == 1)
		return access_read_leaves(tree, pointers, (int) *count, fold->children, fold->verdicts);
	status = access_read_node(tree, pointers[0], (int) fold->level - 1, fold->children[0]);
	fold->verdicts[0] = status == TREE_OK ? NODE_GOOD : NODE_STALE;
	return status == TREE_RETRY ? TREE_OK : status;
}

/* Makes the plan for those of the parent's children that are to be looked at. */
static TreeStatus
plan_make(TreeFold *fold)
{
	FoldNeighbor neighbor = {.there = false};
	uint32_t count;
	TreeStatus status = TREE_OK;

	assert(node_level(fold->parent) == fold->level);
	fold->plan.runs = 0;
	for (uint32_t i = 0; i < node_count(fold->parent); i += count)
	{
		if (!fold->look[i])
		{
			neighbor.there = false;
			count = 1;
			continue;
		}
		status = children_read(fold, i, &count);
		for (uint32_t k = 0; k < count && status == TREE_OK; k++)
			status =
				plan_child(fold, &neighbor, i + k, fold->verdicts[k] == NODE_GOOD ? fold->children[k] : NULL);
		if (status != TREE_OK)
			break;
	}
	return status;
}

/* ---- folding, alone in the tree ---- */

/*
 * Writes client->image_left over the locked node, which is then not locked any more.  TREE_OK: it is written.
 * TREE_RETRY: it is not.
 */
static TreeStatus
node_replace(TreeFold *fold, LockHold *hold, uint64_t pointer, uint32_t level)
{
	Tree *tree = fold->tree;
	uint64_t *node = tree->client->image_left;
	uint64_t generation = node[HEADER_GENERATION];
	FabricOp ops[REDO_OPS + 2];
	int count = lock_rewrite_ops(tree, hold, pointer, node, node_bytes(&tree->geometry, level), ops);
	TreeStatus status =
		lock_write_and_release(tree, hold, ops, count, pointer, node, tree_node_bytes(tree, pointer, level));

	assert(fold->alone);
	if (status != TREE_RETRY)
		return status;
	/* The chain was lost, and a part of it may have landed: nobody else writes. */
	status = access_read_node(tree, pointer, (int) level, tree->client->image);
	if (status == TREE_OK && tree->client->image[HEADER_GENERATION] != generation)
		status = TREE_RETRY;
	return status;
}

/*
 * Locks a node that was seen in this generation; TREE_RETRY: it has another one, which cannot be while we are
 * alone.
 */
static TreeStatus
node_lock(TreeFold *fold, uint64_t pointer, uint32_t level, uint64_t generation, LockHold *hold)
{
	Tree *tree = fold->tree;
	uint32_t bytes = tree_node_bytes(tree, pointer, level);
	TreeStatus status = lock_and_read(tree, pointer, bytes, tree->client->image, hold);

	assert(fold->alone);
	if (status != TREE_OK ||
	    (node_level(tree->client->image) == level && tree->client->image[HEADER_GENERATION] == generation))
		return status;
	status = lock_release(tree, hold, pointer, tree->client->image, bytes);
	return status == TREE_OK ? TREE_RETRY : status;
}

/* Begins the next image of the locked node in client->image_left: the same bytes. */
static uint64_t *
image_begin(const Tree *tree, uint32_t level)
{
	uint64_t *node = tree->client->image_left;

	memcpy(node, tree->client->image, node_bytes(&tree->geometry, level));
	node[HEADER_GENERATION]++;
	assert(node_level(node) == level);
	return node;
}

/* The parent without the children that go. */
static TreeStatus
parent_write(TreeFold *fold)
{
	Tree *tree = fold->tree;
	const NodeGeometry *g = &tree->geometry;
	const FoldPlan *plan = &fold->plan;
	uint32_t kept = 0, run = 0;
	uint64_t *node;
	LockHold hold;
	TreeStatus status = node_lock(fold, fold->next, fold->level, fold->parent[HEADER_GENERATION], &hold);

	if (status != TREE_OK)
		return status;
	node = image_begin(tree, fold->level);
	for (uint32_t i = 0; i < node_count(fold->parent); i++)
	{
		if (run < plan->runs && i > plan->run[run].last)
			run++;
		if (run < plan->runs && i > plan->run[run].left)
			continue;
		memcpy(node + inner_cell_word(g, kept++), fold->parent + inner_cell_word(g, i), g->inner_stride * 8);
	}
	assert(kept >= 1 && kept < node_count(fold->parent));
	memset(node + inner_cell_word(g, kept), 0, (node_count(fold->parent) - kept) * g->inner_stride * 8);
	node[HEADER_STATE] = node_state_word(node[HEADER_GENERATION], fold->level, kept, node_flags(node));
	node_seal(g, node);
	return node_replace(fold, &hold, fold->next, fold->level);
}

/* Collects the cells of inner nodes that go, from fold->gathered on; *count of them. */
static TreeStatus
run_gather(TreeFold *fold, const FoldRun *run, uint32_t *count)
{
	Tree *tree = fold->tree;
	const NodeGeometry *g = &tree->geometry;
	const uint64_t *node = fold->children[0];

	*count = 0;
	for (uint32_t i = run->left + 1; fold->level > 1 && i <= run->last; i++)
	{
		TreeStatus status =
			access_read_node(tree, child_pointer(fold, i), (int) fold->level - 1, fold->children[0]);

		if (status != TREE_OK)
			return status;
		if (node[HEADER_GENERATION] != fold->plan.generations[i] ||
		    *count + node_count(node) > g->inner_cells)
			return TREE_RETRY;
		memcpy(fold->gathered + *count * g->inner_stride, node + inner_cell_word(g, 0),
		       (size_t) node_count(node) * g->inner_stride * 8);
		*count += node_count(node);
	}
	return TREE_OK;
}

/* Who locks predicates by leaf hears that the left one gets the keys of those that go. */
static void
run_announce(const TreeFold *fold, const FoldRun *run)
{
	const Tree *tree = fold->tree;

	if (tree->split_hook == NULL || fold->level > 1)
		return;
	assert(fold->alone);
	for (uint32_t i = run->left + 1; i <= run->last; i++)
		tree->split_hook(tree->split_argument, pointer_address(child_pointer(fold, i)),
		                 pointer_address(child_pointer(fold, run->left)));
}

/* The left one with all that the others have; then they are linked from nowhere. */
static TreeStatus
run_write(TreeFold *fold, const FoldRun *run)
{
	Tree *tree = fold->tree;
	const NodeGeometry *g = &tree->geometry;
	uint64_t pointer = child_pointer(fold, run->left);
	uint32_t level = fold->level - 1;
	uint32_t gathered;
	uint64_t *node;
	LockHold hold;
	TreeStatus status = run_gather(fold, run, &gathered);

	if (status == TREE_OK)
		status = node_lock(fold, pointer, level, fold->plan.generations[run->left], &hold);
	if (status != TREE_OK)
		return status;
	run_announce(fold, run);
	node = image_begin(tree, level);
	node[HEADER_RIGHT] = run->right;
	node_set_fence(g, node, true, run->high);
	if (gathered > 0)
	{
		uint32_t count = node_count(node);

		assert(level > 0 && count + gathered <= g->inner_cells);
		memcpy(node + inner_cell_word(g, count), fold->gathered, (size_t) gathered * g->inner_stride * 8);
		node[HEADER_STATE] =
			node_state_word(node[HEADER_GENERATION], level, count + gathered, node_flags(node));
	}
	node_seal(g, node);
	status = node_replace(fold, &hold, pointer, level);
	for (uint32_t i = run->left + 1; status == TREE_OK && i <= run->last; i++)
		fold->nodes[fold->folded++] = (FoldedNode){child_pointer(fold, i), fold->plan.generations[i]};
	return status;
}

/*
 * Folds what can be folded of the parent's children, as they are now that nobody else is in the tree; nothing if the
 * parent is another one by now, as its children have other numbers.
 */
static TreeStatus
fold_alone(TreeFold *fold)
{
	uint64_t generation = fold->parent[HEADER_GENERATION];
	TreeStatus status = access_read_node(fold->tree, fold->next, (int) fold->level, fold->parent);

	assert(fold->alone);
	fold->begun = false;
	fold->changed =
		status == TREE_RETRY || (status == TREE_OK && fold->parent[HEADER_GENERATION] != generation);
	if (fold->changed)
		return TREE_OK;
	if (status == TREE_OK)
		status = plan_make(fold);
	if (status != TREE_OK || fold->plan.runs == 0)
		return status;
	fold->begun = true;
	status = parent_write(fold);
	for (uint32_t i = 0; i < fold->plan.runs && status == TREE_OK; i++)
	{
		status = run_write(fold, &fold->plan.run[i]);
		/* What is not folded after all is owed to the parent again. */
		if (status == TREE_RETRY)
			status = TREE_OK;
	}
	return status;
}

/* The calls that come do not believe what was cached of the nodes that go, and of those that they go into. */
static void
runs_touched(const TreeFold *fold)
{
	assert(fold->alone && fold->begun);
	for (uint32_t i = 0; i < fold->plan.runs; i++)
		for (uint32_t k = fold->plan.run[i].left; k <= fold->plan.run[i].last; k++)
			cache_touched(fold->tree, child_pointer(fold, k));
}

/* Has the tree alone for a while, and folds. *alone: that was so. */
static TreeStatus
fold_closed(TreeFold *fold, bool *alone)
{
	Tree *tree = fold->tree;
	const TreeEnvironment *environment = &tree->client->options.environment;
	TreeStatus status;

	assert(!fold->alone);
	for (int attempt = 0; attempt < BARRIER_ATTEMPTS && !fold->alone; attempt++)
	{
		if (attempt > 0)
			environment->sleep(environment->argument, tree->client->slot, 1);
		fold->alone = barrier_close(tree);
	}
	*alone = fold->alone;
	if (!fold->alone)
		return TREE_OK;
	status = fold_alone(fold);
	if (fold->begun)
	{
		barrier_next_epoch(tree);
		runs_touched(fold);
	}
	fold->alone = false;
	barrier_open(tree->client);
	return status;
}

/* Nobody can reach what was folded any more: it is kept for the next nodes. */
static TreeStatus
fold_keep(TreeFold *fold, TreeFoldCounts *counts)
{
	Tree *tree = fold->tree;
	uint32_t level = fold->level - 1;
	uint32_t bytes = node_bytes(&tree->geometry, level);
	TreeStatus status = TREE_OK;

	assert(!fold->alone);
	if (level == 0)
		counts->leaves += fold->folded;
	else
		counts->inner_nodes += fold->folded;
	counts->bytes += (uint64_t) fold->folded * bytes;
	tree_count_flush(tree);
	state_add(tree->state, 0, level == 0 ? -(int64_t) fold->folded : 0,
	          level > 0 ? -(int64_t) fold->folded : 0);
	/* The lowest address goes last, to be the first that is taken. */
	for (uint32_t i = fold->folded; i > 0 && status == TREE_OK; i--)
		status = freed_put(tree, fold->nodes[i - 1].pointer, level, fold->nodes[i - 1].generation);
	fold->folded = 0;
	return status == TREE_RETRY ? TREE_OK : status;
}

TreeStatus
fold_children(TreeFold *fold, TreeFoldCounts *counts, bool *alone, uint32_t *folded)
{
	TreeStatus kept, status;

	assert(!fold->tree->client->holding);
	*alone = true;
	fold->first_waits = false;
	fold->changed = false;
	status = plan_make(fold);
	if (status == TREE_OK && fold->plan.runs > 0)
	{
		/* What is free from now on is not to be found by who looks for what was free before. */
		*alone = salvage_end(fold->tree);
		if (*alone)
			status = fold_closed(fold, alone);
	}
	*folded = fold->folded;
	kept = fold_keep(fold, counts);
	if (status == TREE_OK)
		status = kept;
	return status == TREE_RETRY ? TREE_OK : status;
}

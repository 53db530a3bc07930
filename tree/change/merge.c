/*
 * merge.c
 *		Taking leaves out of the tree that are empty or sparse, and inner nodes of few children.
 *
 * A node is merged into its left neighbor, where both are children of one parent: the neighbor gets its keys'
 * range, its entries, if it has any (merge_fold.c), or its children, its high fence and its right link.  Two writes
 * do it, in this order:
 *
 *		1	the parent, without the cells of the nodes that go;
 *		2	the left neighbor, which from this write on covers them all: they are linked from nowhere.
 *
 * Between the two WRITEs the tree is like one with an incomplete split: readers go right, and a process that does so
 * inserts the downlink again. So whatever ends the merge, every prefix is a valid tree (I-T3).
 *
 * Low fences stay (I-T6), but here a high fence rises and a fence vanishes. A reader must not see that in the middle
 * of a call: merging is done while this is the only call in progress on the tree (quiesce.c), for the children of one
 * node at a time. Each child is first examined without that; the barrier is closed only where something can be
 * merged, and then the children are read again. merge_walk.c chooses the children and their order. Scans between two
 * calls, and positions, see by the tree's epoch that their pointers are old; they go on by a descent to the fence
 * where they are, which may lie inside a leaf now (scan.c). Cached inner nodes are only wrong about merged nodes and
 * their left neighbors (inner_cache.c).
 *
 * Readers of other servers (doc/internals/standby.md) do not see the barrier, and may still have pointers to merged nodes. So these
 * say of themselves that they are in no tree before the barrier opens, which is before anything can be added to the node that has
 * their keys now.
 *
 * Then no pointer of this instance to a merged node is left, and the next nodes of its kind are taken from them at once (freed.c). A
 * node is not merged before its lock word was seen free: a writer with an indeterminate chain still holds it, and its
 * WRITEs may come late.
 */
#include "tree/change/merge.h"
#include "tree/descent/descent.h"
#include "tree/space/allocate.h"

/* An inner node is merged into its neighbor if both together fill no more than this part of a node. */
#define INNER_FULL_NUMERATOR 3
#define INNER_FULL_DENOMINATOR 4

/* Tries to have the tree alone for one parent. */
#define BARRIER_ATTEMPTS 4
/* The child that was looked at last. */
typedef struct MergeNeighbor
{
	bool there;        /* it could be read */
	uint32_t left;     /* the child that it is, or is to be merged into */
	uint32_t children; /* inner nodes: that this one would have */
	uint32_t cells;    /* leaves: in use, with those that it would get; FOLD_NEVER: it gets none */
	uint64_t pointer;
	uint64_t right;
	uint64_t high[LINE_WORDS];
} MergeNeighbor;

static uint64_t
child_pointer(const TreeMerge *merge, uint32_t i)
{
	assert(i < node_count(merge->parent));
	return merge->parent[inner_cell_word(&merge->tree->geometry, i)];
}

/* ---- what can be merged ---- */

/*
 * A leaf without any cell, dead-marked ones included.  One whose unit is void, which does not tell what
 * was removed from it, stays until it is healed.
 */
static bool
leaf_is_empty(const NodeGeometry *g, const uint64_t *leaf)
{
	assert(node_level(leaf) == 0);
	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
		if (cell_state(leaf[leaf_cell_word(g, slot)]) != CELL_EMPTY)
			return false;
	return !leaf_marks_void(g, leaf);
}

/* Whether the node holds little enough to be merged into the neighbor on its left. */
static bool
node_is_light(const NodeGeometry *g, const MergeNeighbor *neighbor, const uint64_t *node)
{
	uint32_t children = neighbor->children + node_count(node);

	if (node_level(node) == 0)
		return leaf_is_empty(g, node) || fold_fits(g, neighbor->cells, fold_cells(g, node));
	return children * INNER_FULL_DENOMINATOR <= g->inner_cells * INNER_FULL_NUMERATOR;
}

/* Whether parent, neighbor and node agree that the node directly follows the neighbor. */
static bool
node_follows(const TreeMerge *merge, const MergeNeighbor *neighbor, uint32_t i, const uint64_t *node)
{
	const NodeGeometry *g = &merge->tree->geometry;

	assert(i > 0);
	return neighbor->there && pointer_address(neighbor->right) == pointer_address(child_pointer(merge, i)) &&
	       separator_equal(g, neighbor->high, node + g->low_word) &&
	       separator_equal(g, merge->parent + inner_cell_word(g, i) + 1, node + g->low_word);
}

/* Adds child i to the nodes that are merged into the neighbor. */
static void
plan_add(TreeMerge *merge, MergeNeighbor *neighbor, uint32_t i, const uint64_t *node)
{
	MergePlan *plan = &merge->plan;
	MergeRun *run;
	uint32_t cells;

	assert(neighbor->left < i);
	if (plan->runs == 0 || plan->run[plan->runs - 1].left != neighbor->left)
	{
		uint32_t moved =
			plan->runs == 0 ? 0 : plan->run[plan->runs - 1].moved + plan->run[plan->runs - 1].cells;

		plan->run[plan->runs++] = (MergeRun){.left = neighbor->left, .moved = moved};
	}
	assert(plan->runs <= MERGE_RUNS_MAX);
	run = &plan->run[plan->runs - 1];
	run->last = i;
	run->right = node[HEADER_RIGHT];
	node_get_fence(&merge->tree->geometry, node, true, run->high);
	neighbor->children += node_count(node);
	cells = node_level(node) == 0 ? leaf_used(&merge->tree->geometry, node) : 0;
	plan->folded[i] = cells > 0;
	neighbor->cells += cells;
	if (cells > 0 && merge->alone)
		fold_take(merge, run, node);
	if (node_level(node) == 0)
		leaf_youngest_dead(node, &run->dead);
}

/* Notes that the first child stays only for want of a left neighbor with the same parent. */
static void
plan_first(TreeMerge *merge, const uint64_t *node)
{
	const NodeGeometry *g = &merge->tree->geometry;

	assert(node_level(node) + 1 == merge->level);
	if (!separator_infinite(node + g->low_word))
		merge->first_waits =
			node_level(node) > 0 || leaf_is_empty(g, node) || fold_sparse(g, fold_cells(g, node));
}

/*
 * A child whose right sibling the parent does not name: a split is incomplete, or a merge has ended between its two
 * writes.
 */
static TreeStatus
plan_complete_split(TreeMerge *merge, const MergeNeighbor *neighbor, uint32_t i)
{
	TreeStatus status;

	if (merge->alone || !neighbor->there || neighbor->right == POINTER_NONE ||
	    pointer_address(neighbor->right) == pointer_address(child_pointer(merge, i)) ||
	    separator_infinite(neighbor->high))
		return TREE_OK;
	status = downlink_insert(merge->tree, merge->level - 1, neighbor->pointer, neighbor->high,
	                         neighbor->right, NULL);
	return status == TREE_MEMORY_FULL || status == TREE_TIMED_OUT ? TREE_OK : status;
}

/* Looks at child i in `node`; NULL: it could not be read. */
static TreeStatus
plan_child(TreeMerge *merge, MergeNeighbor *neighbor, uint32_t i, const uint64_t *node)
{
	const NodeGeometry *g = &merge->tree->geometry;
	uint64_t pointer = child_pointer(merge, i);
	bool merges = false, free = true;
	TreeStatus status = TREE_OK;

	if (node == NULL)
	{
		neighbor->there = false;
		return TREE_OK;
	}
	merge->plan.generations[i] = node[HEADER_GENERATION];
	if (i == 0)
		plan_first(merge, node);
	else
		merges = node_follows(merge, neighbor, i, node) && node_is_light(g, neighbor, node);
	if (i > 0 && !merges)
		status = plan_complete_split(merge, neighbor, i);
	if (merges && merge->alone)
		status = lock_is_free(merge->tree, pointer, &free);
	if (status != TREE_OK)
		return status;
	if (merges && free)
		plan_add(merge, neighbor, i, node);
	else
	{
		neighbor->left = i;
		neighbor->children = node_count(node);
		neighbor->cells = node_level(node) == 0 ? fold_cells(g, node) : 0;
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
children_read(TreeMerge *merge, uint32_t from, uint32_t *count)
{
	Tree *tree = merge->tree;
	uint64_t pointers[TREE_PREFETCH_MAX];
	uint32_t last = node_count(merge->parent);
	TreeStatus status;

	assert(from < last && merge->look[from]);
	*count = 0;
	while (*count < TREE_PREFETCH_MAX && from + *count < last && merge->look[from + *count])
	{
		uint64_t pointer = child_pointer(merge, from + *count);

		if (pointer_address(pointer) == tree->root)
			return client_fail(tree->client, TREE_DAMAGED, "node %llx: the root is its child",
			                   (unsigned long long) merge->next);
		if (*count > 0 &&
		    (merge->level > 1 || pointer_memory_node(pointer) != pointer_memory_node(pointers[0])))
			break;
		pointers[(*count)++] = pointer;
	}
	if (merge->level == 1)
		return access_read_leaves(tree, pointers, (int) *count, merge->children, merge->verdicts);
	status = access_read_node(tree, pointers[0], (int) merge->level - 1, merge->children[0]);
	merge->verdicts[0] = status == TREE_OK ? NODE_GOOD : NODE_STALE;
	return status == TREE_RETRY ? TREE_OK : status;
}

/* Makes the plan for those of the parent's children that are to be examined. */
static TreeStatus
plan_make(TreeMerge *merge)
{
	MergeNeighbor neighbor = {.there = false};
	uint32_t count;
	TreeStatus status = TREE_OK;

	assert(node_level(merge->parent) == merge->level);
	merge->plan.runs = 0;
	for (uint32_t i = 0; i < node_count(merge->parent); i += count)
	{
		if (!merge->look[i])
		{
			neighbor.there = false;
			count = 1;
			continue;
		}
		status = children_read(merge, i, &count);
		for (uint32_t k = 0; k < count && status == TREE_OK; k++)
			status = plan_child(merge, &neighbor, i + k,
			                    merge->verdicts[k] == NODE_GOOD ? merge->children[k] : NULL);
		if (status != TREE_OK)
			break;
	}
	return status;
}

/* ---- merging, alone in the tree ---- */

/*
 * Writes client->image_left over the locked node, which is then not locked any more.  TREE_OK: it is written.
 * TREE_RETRY: it is not.
 */
static TreeStatus
node_replace(TreeMerge *merge, LockHandle *lock, uint64_t pointer, uint32_t level)
{
	Tree *tree = merge->tree;
	uint64_t *node = tree->client->image_left;
	uint64_t generation = node[HEADER_GENERATION];
	FabricOp ops[REDO_OPS + 2];
	int count = lock_rewrite_ops(tree, lock, pointer, node, node_bytes(&tree->geometry, level), ops);
	TreeStatus status =
		lock_write_and_release(tree, lock, ops, count, pointer, node, tree_node_bytes(tree, pointer, level));

	assert(merge->alone);
	if (status != TREE_RETRY)
		return status;
	/*
	 * The chain was lost, and a prefix of it may have taken effect. It may be repeated, as no other process writes
	 * the node.
	 */
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
node_lock(TreeMerge *merge, uint64_t pointer, uint32_t level, uint64_t generation, LockHandle *lock)
{
	Tree *tree = merge->tree;
	uint32_t bytes = tree_node_bytes(tree, pointer, level);
	TreeStatus status = lock_and_read(tree, pointer, bytes, tree->client->image, lock);

	assert(merge->alone);
	if (status != TREE_OK ||
	    (node_level(tree->client->image) == level && tree->client->image[HEADER_GENERATION] == generation))
		return status;
	status = lock_release(tree, lock, pointer, tree->client->image, bytes);
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
parent_write(TreeMerge *merge)
{
	Tree *tree = merge->tree;
	const NodeGeometry *g = &tree->geometry;
	const MergePlan *plan = &merge->plan;
	uint32_t kept = 0, run = 0;
	uint64_t *node;
	LockHandle lock;
	TreeStatus status = node_lock(merge, merge->next, merge->level, merge->parent[HEADER_GENERATION], &lock);

	if (status != TREE_OK)
		return status;
	node = image_begin(tree, merge->level);
	for (uint32_t i = 0; i < node_count(merge->parent); i++)
	{
		if (run < plan->runs && i > plan->run[run].last)
			run++;
		if (run < plan->runs && i > plan->run[run].left)
			continue;
		memcpy(node + inner_cell_word(g, kept++), merge->parent + inner_cell_word(g, i), g->inner_stride * 8);
	}
	assert(kept >= 1 && kept < node_count(merge->parent));
	memset(node + inner_cell_word(g, kept), 0, (node_count(merge->parent) - kept) * g->inner_stride * 8);
	node[HEADER_STATE] = node_state_word(node[HEADER_GENERATION], merge->level, kept, node_flags(node));
	node_seal(g, node);
	return node_replace(merge, &lock, merge->next, merge->level);
}

/* Collects the cells of inner nodes that go, from merge->gathered on; *count of them. */
static TreeStatus
run_gather(TreeMerge *merge, const MergeRun *run, uint32_t *count)
{
	Tree *tree = merge->tree;
	const NodeGeometry *g = &tree->geometry;
	const uint64_t *node = merge->children[0];

	*count = 0;
	for (uint32_t i = run->left + 1; merge->level > 1 && i <= run->last; i++)
	{
		TreeStatus status =
			access_read_node(tree, child_pointer(merge, i), (int) merge->level - 1, merge->children[0]);

		if (status != TREE_OK)
			return status;
		if (node[HEADER_GENERATION] != merge->plan.generations[i] ||
		    *count + node_count(node) > g->inner_cells)
			return TREE_RETRY;
		memcpy(merge->gathered + *count * g->inner_stride, node + inner_cell_word(g, 0),
		       (size_t) node_count(node) * g->inner_stride * 8);
		*count += node_count(node);
	}
	return TREE_OK;
}

/* The caller's hook, which locks predicates by leaf, is called: the left leaf gets the keys of those that go. */
static void
run_announce(const TreeMerge *merge, const MergeRun *run)
{
	const Tree *tree = merge->tree;

	if (tree->split_hook == NULL || merge->level > 1)
		return;
	assert(merge->alone);
	for (uint32_t i = run->left + 1; i <= run->last; i++)
		tree->split_hook(tree->split_argument, pointer_address(child_pointer(merge, i)),
		                 pointer_address(child_pointer(merge, run->left)));
}

/* The left one with all that the others have; then they are linked from nowhere. */
static TreeStatus
run_write(TreeMerge *merge, const MergeRun *run)
{
	Tree *tree = merge->tree;
	const NodeGeometry *g = &tree->geometry;
	uint64_t pointer = child_pointer(merge, run->left);
	uint32_t level = merge->level - 1;
	uint32_t gathered;
	uint64_t *node;
	LockHandle lock;
	TreeStatus status = run_gather(merge, run, &gathered);

	if (status == TREE_OK)
		status = node_lock(merge, pointer, level, merge->plan.generations[run->left], &lock);
	if (status != TREE_OK)
		return status;
	if (run->cells > 0 && !fold_image(merge, run, pointer))
	{
		status =
			lock_release(tree, &lock, pointer, tree->client->image, tree_node_bytes(tree, pointer, level));
		return status == TREE_OK ? TREE_RETRY : status;
	}
	run_announce(merge, run);
	node = run->cells > 0 ? tree->client->image_left : image_begin(tree, level);
	node[HEADER_RIGHT] = run->right;
	node_set_fence(g, node, true, run->high);
	/* Entries were removed from the range that it gets. */
	if (level == 0 && !leaf_marks_void(g, node))
		leaf_raise_dead(node, run->dead.epoch, run->dead.lsn);
	if (gathered > 0)
	{
		uint32_t count = node_count(node);

		assert(level > 0 && count + gathered <= g->inner_cells);
		memcpy(node + inner_cell_word(g, count), merge->gathered, (size_t) gathered * g->inner_stride * 8);
		node[HEADER_STATE] =
			node_state_word(node[HEADER_GENERATION], level, count + gathered, node_flags(node));
	}
	node_seal(g, node);
	status = node_replace(merge, &lock, pointer, level);
	for (uint32_t i = run->left + 1; status == TREE_OK && i <= run->last; i++)
	{
		merge->nodes[merge->merged++] = (MergedNode){child_pointer(merge, i), merge->plan.generations[i]};
		merge->folded += merge->plan.folded[i];
	}
	return status;
}

/* Those of the merged nodes, from number `from` on, that lie on one memory node say that they are in no tree; *done is behind them. */
static TreeStatus
some_disown(TreeMerge *merge, uint32_t from, uint32_t *done)
{
	uint32_t memory_node = pointer_memory_node(merge->nodes[from].pointer);
	FabricOp ops[FABRIC_MAX_CHAIN];
	uint64_t states[FABRIC_MAX_CHAIN];
	TreeStatus status;
	int count = 0;

	for (*done = from; *done < merge->merged && count < (int) FABRIC_MAX_CHAIN; (*done)++, count++)
	{
		const MergedNode *node = &merge->nodes[*done];

		if (pointer_memory_node(node->pointer) != memory_node)
			break;
		states[count] = node_state_word(node->generation, merge->level - 1, 0, NODE_FREE);
		ops[count] = (FabricOp){.opcode = FABRIC_WRITE,
		                        .region = FABRIC_NODES,
		                        .length = sizeof(states[0]),
		                        .offset = pointer_offset(node->pointer) + HEADER_STATE * sizeof(states[0]),
		                        .buffer = &states[count]};
	}
	/* Done twice it is the same. */
	status = access_repeat(merge->tree, memory_node, ops, count, "writes of merged nodes");
	/* What is in no tree may differ from its copy; and the home is read by others when the copy is back. */
	if (status != TREE_OK && merge->tree->replicas != NULL)
		(void) replicas_execute_at_home(merge->tree, memory_node, ops, count);
	return status;
}

/* The nodes that are linked from nowhere any more say so, all those that can be reached. */
static TreeStatus
nodes_disown(TreeMerge *merge)
{
	TreeStatus first = TREE_OK;

	assert(merge->alone);
	for (uint32_t i = 0; i < merge->merged;)
	{
		TreeStatus status = some_disown(merge, i, &i);

		if (first == TREE_OK)
			first = status;
	}
	return first;
}

/*
 * Merges the parent's children as far as possible, now that no other process is in the tree; nothing if the parent
 * has changed meanwhile, as its children may have other numbers.
 */
static TreeStatus
merge_alone(TreeMerge *merge)
{
	uint64_t generation = merge->parent[HEADER_GENERATION];
	TreeStatus status = access_read_node(merge->tree, merge->next, (int) merge->level, merge->parent);
	TreeStatus disowned;

	assert(merge->alone);
	merge->begun = false;
	merge->changed =
		status == TREE_RETRY || (status == TREE_OK && merge->parent[HEADER_GENERATION] != generation);
	if (merge->changed)
		return TREE_OK;
	if (status == TREE_OK)
		status = plan_make(merge);
	if (status != TREE_OK || merge->plan.runs == 0)
		return status;
	merge->begun = true;
	status = parent_write(merge);
	for (uint32_t i = 0; i < merge->plan.runs && status == TREE_OK; i++)
	{
		status = run_write(merge, &merge->plan.run[i]);
		/* Nodes that are not merged after all get their downlinks back. */
		if (status == TREE_RETRY)
			status = TREE_OK;
	}
	disowned = nodes_disown(merge);
	return status == TREE_OK ? disowned : status;
}

/* Later calls do not use what is cached of the nodes that go, and of those that they are merged into. */
static void
runs_touched(const TreeMerge *merge)
{
	assert(merge->alone && merge->begun);
	for (uint32_t i = 0; i < merge->plan.runs; i++)
		for (uint32_t k = merge->plan.run[i].left; k <= merge->plan.run[i].last; k++)
			cache_touched(merge->tree, child_pointer(merge, k));
}

/* Has the tree alone for a while, and merges. *alone: that was so. */
static TreeStatus
merge_closed(TreeMerge *merge, bool *alone)
{
	Tree *tree = merge->tree;
	const TreeEnvironment *environment = &tree->client->options.environment;
	TreeStatus status;

	assert(!merge->alone);
	for (int attempt = 0; attempt < BARRIER_ATTEMPTS && !merge->alone; attempt++)
	{
		if (attempt > 0)
			environment->sleep(environment->argument, tree->client->slot, 1);
		merge->alone = barrier_close(tree);
	}
	*alone = merge->alone;
	if (!merge->alone)
		return TREE_OK;
	status = merge_alone(merge);
	if (merge->begun)
	{
		barrier_next_epoch(tree);
		runs_touched(merge);
	}
	merge->alone = false;
	barrier_open(tree->client);
	return status;
}

/* No process can reach the merged nodes any more: they are kept for reuse. */
static TreeStatus
merge_keep(TreeMerge *merge, TreeMergeCounts *counts)
{
	Tree *tree = merge->tree;
	uint32_t level = merge->level - 1;
	uint32_t bytes = node_bytes(&tree->geometry, level);
	TreeStatus status = TREE_OK;

	assert(!merge->alone);
	counts->folded += merge->folded;
	merge->folded = 0;
	if (level == 0)
		counts->leaves += merge->merged;
	else
		counts->inner_nodes += merge->merged;
	counts->bytes += (uint64_t) merge->merged * bytes;
	tree_count_flush(tree);
	state_add(tree->state, 0, level == 0 ? -(int64_t) merge->merged : 0,
	          level > 0 ? -(int64_t) merge->merged : 0);
	/* The lowest address goes last, to be the first that is taken.  One that others are in the way of is lost until the next incarnation. */
	for (uint32_t i = merge->merged; i > 0 && status == TREE_OK; i--)
	{
		status = freed_put(tree, merge->nodes[i - 1].pointer, level, merge->nodes[i - 1].generation);
		if (status == TREE_RETRY)
			status = TREE_OK;
	}
	merge->merged = 0;
	return status;
}

TreeStatus
merge_children(TreeMerge *merge, TreeMergeCounts *counts, bool *alone, uint32_t *merged)
{
	TreeStatus kept, status;

	assert(!merge->tree->client->holding);
	*alone = true;
	merge->first_waits = false;
	merge->changed = false;
	status = plan_make(merge);
	if (status == TREE_OK && merge->plan.runs > 0)
	{
		/* Nodes that become free from now on must not be found by the search for memory of earlier incarnations. */
		*alone = reclaim_end(merge->tree);
		if (*alone)
			status = merge_closed(merge, alone);
	}
	*merged = merge->merged;
	kept = merge_keep(merge, counts);
	if (status == TREE_OK)
		status = kept;
	return status == TREE_RETRY ? TREE_OK : status;
}

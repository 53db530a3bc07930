/*
 * freed.c
 *		Nodes that left the tree, in lists for reuse by nodes of their kind.
 *
 * Each is written as a free node, which no reader accepts, and names the next one of its list as its right sibling.
 * Each unit of node memory has a list (tree/shared/units.c), as long as shared memory has room for its head. The heads are
 * lost with the instance; the next incarnation finds the nodes again (reclaim.c).
 *
 * A node is put here when no pointer to it is left (merge.c), and it is reused with a higher generation: a process
 * that had read it before sees that it has changed (I-T4).
 */
#include "tree/shared/state.h"
#include "tree/space/allocate.h"

/* Tries to change a list that others change at the same time. */
#define LIST_ATTEMPTS 16

static uint32_t
kind_of(uint32_t level)
{
	assert(level < LEVELS_MAX);
	return level == 0 ? 0 : 1;
}

/* What a list looked like. */
typedef struct ListHead
{
	uint64_t first;
	uint64_t changes;
	bool rest; /* of units that cannot be told apart */
} ListHead;

/* The list that a node at this offset goes to. */
static ListHead
list_of(StateTable *table, TreeState *state, const StateAtNode *at, uint32_t kind, uint64_t offset)
{
	const StateUnit *unit;
	ListHead head = {.first = POINTER_NONE};

	assert(kind <= 1);
	spin_lock(&state->spin);
	unit = unit_find(table, at, offset);
	head.rest = unit == NULL && !units_left(table);
	if (head.rest)
		unit = &at->rest;
	if (unit != NULL)
		head.first = unit->first[kind];
	head.changes = at->freed_changes[kind];
	spin_unlock(&state->spin);
	return head;
}

/* A list that has a node to take; `first` is POINTER_NONE: there is none. */
static ListHead
list_with_node(StateTable *table, TreeState *state, StateAtNode *at, uint32_t kind)
{
	const StateUnit *unit;
	ListHead head = {.first = POINTER_NONE};

	assert(kind <= 1);
	spin_lock(&state->spin);
	unit = unit_first(table, at, kind);
	if (unit != NULL)
		head.first = unit->first[kind];
	head.changes = at->freed_changes[kind];
	head.rest = unit == &at->rest;
	spin_unlock(&state->spin);
	return head;
}

/* Puts the node, which names `seen` as the next one, in front of its list, unless the lists have changed since. */
static bool
list_push(StateTable *table, TreeState *state, StateAtNode *at, uint32_t kind, const ListHead *seen,
          uint64_t pointer)
{
	StateUnit *unit = NULL;

	spin_lock(&state->spin);
	if (at->freed_changes[kind] == seen->changes)
		unit = seen->rest ? &at->rest : unit_make(table, at, pointer_offset(pointer));
	if (unit != NULL)
		unit_set(table, at, unit, kind, pointer_address(pointer), unit->count[kind] + 1);
	spin_unlock(&state->spin);
	return unit != NULL;
}

/*
 * Takes the first node, behind which `next` is, unless the lists have changed since.  A list whose end and count do not fit is
 * forgotten, as one that is damaged: what is lost is only room.
 */
static bool
list_pop(StateTable *table, TreeState *state, StateAtNode *at, uint32_t kind, const ListHead *seen,
         uint64_t next)
{
	StateUnit *unit;
	bool same;

	spin_lock(&state->spin);
	same = at->freed_changes[kind] == seen->changes;
	if (same)
	{
		unit = unit_first(table, at, kind);
		assert(unit != NULL && unit->first[kind] == seen->first);
		if (next == POINTER_NONE || unit->count[kind] == 1)
			unit_set(table, at, unit, kind, POINTER_NONE, 0);
		else
			unit_set(table, at, unit, kind, next, unit->count[kind] - 1);
	}
	spin_unlock(&state->spin);
	return same;
}

TreeStatus
freed_put(Tree *tree, uint64_t pointer, uint32_t level, uint64_t generation)
{
	const NodeGeometry *g = &tree->geometry;
	StateTable *table = tree->client->shared->states;
	uint64_t *node = tree->client->image_left;
	StateAtNode *at = tree_part(tree, pointer_memory_node(pointer));
	uint32_t kind = kind_of(level);

	assert(!tree->client->holding);
	assert(pointer_address(pointer) != tree->root);
	if (at == NULL)
		return TREE_RETRY;
	for (int attempt = 0; attempt < LIST_ATTEMPTS; attempt++)
	{
		ListHead head = list_of(table, tree->state, at, kind, pointer_offset(pointer));
		FabricOp op = {.opcode = FABRIC_WRITE,
		               .region = FABRIC_NODES,
		               .length = node_bytes(g, level),
		               .offset = pointer_offset(pointer),
		               .buffer = node};
		TreeStatus status;

		node_begin(g, node, tree->tree, pointer, level, generation + 1, NODE_FREE);
		node[HEADER_RIGHT] = head.first;
		node_seal(g, node);
		status = access_execute(tree, pointer_memory_node(pointer), &op, 1);
		if (status != TREE_OK && status != TREE_RETRY)
			return status;
		if (status == TREE_OK && list_push(table, tree->state, at, kind, &head, pointer))
			return TREE_OK;
	}
	return TREE_RETRY;
}

/* How many free nodes of a kind a memory node has. Under the state's spin lock. */
static uint64_t
count_at(const Tree *tree, uint32_t memory_node, uint32_t kind)
{
	const StateAtNode *at = state_part(tree->client->shared->states, tree->state, memory_node);

	assert(kind <= 1);
	return at == NULL ? 0 : at->freed_count[kind];
}

uint32_t
freed_choose(const Tree *tree, uint32_t memory_node, uint32_t level)
{
	const TreeClient *client = tree->client;
	uint32_t kind = kind_of(level);
	uint32_t most = memory_node;
	uint64_t count;
	bool own;

	assert(memory_node < client->options.nodes);
	spin_lock(&tree->state->spin);
	count = count_at(tree, memory_node, kind);
	own = count > 0;
	for (uint32_t i = 0; i < client->options.nodes; i++)
		if (node_is_open(client->shared, i) && count_at(tree, i, kind) > count &&
		    (client->doubt & 1ull << i) == 0)
		{
			count = count_at(tree, i, kind);
			most = i;
		}
	spin_unlock(&tree->state->spin);
	return own ? memory_node : most;
}

/* Whether what a node of the list names as the next one can be such a node. */
static bool
next_is_good(const Tree *tree, const ListHead *head, uint32_t level, uint64_t next)
{
	if (next == POINTER_NONE)
		return true;
	return pointer_address(next) == next && pointer_memory_node(next) == pointer_memory_node(head->first) &&
	       pointer_offset(next) % node_bytes(&tree->geometry, level) == 0 &&
	       (head->rest ||
	        pointer_offset(next) / STATE_UNIT_BYTES == pointer_offset(head->first) / STATE_UNIT_BYTES);
}

TreeStatus
freed_take(Tree *tree, uint32_t memory_node, uint32_t level, uint64_t *pointer, uint64_t *generation)
{
	StateTable *table = tree->client->shared->states;
	StateAtNode *at = tree_part(tree, memory_node);
	uint32_t kind = kind_of(level);
	_Alignas(LINE_BYTES) uint64_t header[LINE_WORDS];

	assert(!tree->client->holding);
	if (at == NULL)
		return TREE_NOT_FOUND;
	for (int attempt = 0; attempt < LIST_ATTEMPTS; attempt++)
	{
		ListHead head = list_with_node(table, tree->state, at, kind);
		FabricOp op = {.opcode = FABRIC_READ,
		               .region = FABRIC_NODES,
		               .length = sizeof(header),
		               .offset = pointer_offset(head.first),
		               .buffer = header};
		bool good;
		TreeStatus status;

		if (head.first == POINTER_NONE)
			return TREE_NOT_FOUND;
		status = access_execute(tree, memory_node, &op, 1);
		if (status == TREE_RETRY)
			continue;
		if (status != TREE_OK)
			return status;
		good = header[HEADER_TREE] == tree->tree && header[HEADER_SELF] == head.first &&
		       (node_flags(header) & NODE_FREE) != 0 && (node_level(header) == 0) == (kind == 0) &&
		       next_is_good(tree, &head, level, header[HEADER_RIGHT]);
		/* The node that was read is still the list's first one only if no process has taken it meanwhile. */
		if (!list_pop(table, tree->state, at, kind, &head, good ? header[HEADER_RIGHT] : POINTER_NONE))
			continue;
		if (!good)
			continue; /* to another unit */
		*generation = header[HEADER_GENERATION] + 1;
		*pointer = head.first;
		return TREE_OK;
	}
	return TREE_NOT_FOUND;
}

uint64_t
tree_freed_bytes(const Tree *handle)
{
	uint64_t bytes = 0;

	assert(handle->state != NULL);
	spin_lock(&handle->state->spin);
	for (uint32_t i = 0; i < handle->client->options.nodes; i++)
		bytes += count_at(handle, i, 0) * handle->geometry.leaf_bytes +
		         count_at(handle, i, 1) * (uint64_t) INNER_BYTES;
	spin_unlock(&handle->state->spin);
	return bytes;
}

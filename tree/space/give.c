/*
 * give.c
 *		Extents in which nothing is used go back to their memory node.
 *
 * All places of an extent are free if the free nodes of its units (tree/shared/units.c) and the runs in it (runs.c) are as
 * many bytes as the extent has behind its header: each free place is counted once. A process that has taken a node and
 * not used it yet, or a node that was lost, keeps its extent. An extent is given in this order:
 *
 *		1	The barrier of the tree is closed (quiesce.c), so no other process is about to take a node or a chunk of the
 *			extent. Its free nodes and runs are forgotten: from here on no process of the instance uses it. No pointer into
 *			it is left, as all of its nodes were free.
 *		2	The first lines of its places are read. If one of them does not say that it is free, the extent stays.
 *		3	The memory node is called. It makes the header of the next newer extent name the one before (service_calls.c).
 *
 * If the process ends between two of them, the next incarnation finds the extent free (reclaim.c), or the memory node has
 * it. An extent that stays after step 1 is lost for this incarnation.
 *
 * Several processes may walk along the list of extents. One that takes an extent out makes the others begin anew.
 *
 * A quarter of a tree's memory may stay free for later nodes: extents are as much ahead of a tree's content.
 */
#include "tree/space/space.h"
#include "tree/space/allocate.h"

/* Extents that one call checks. */
#define LOOKS 64
/* This part of the tree's memory at a memory node may stay free. */
#define KEEP_PART 4u
/* Tries to close the barrier for one extent. */
#define BARRIER_ATTEMPTS 4

/* ---- what is free ---- */

/* Bytes of an extent that places are in. */
static uint64_t
room_of(const ExtentHeader *header)
{
	return header->bytes - FABRIC_STRIPE_BYTES;
}

static uint64_t
unit_bytes(const Tree *tree, StateTable *table, const StateAtNode *at, uint64_t offset)
{
	const StateUnit *unit = unit_find(table, at, offset);

	if (unit == NULL)
		return 0;
	return (uint64_t) unit->count[0] * tree->geometry.leaf_bytes + (uint64_t) unit->count[1] * INNER_BYTES;
}

/* Is every place of the extent free?  Under the state's spin lock. */
static bool
extent_is_free(const Tree *tree, const StateAtNode *at, uint64_t extent, const ExtentHeader *header)
{
	StateTable *table = tree->client->shared->states;
	uint64_t end = extent + header->bytes;
	uint64_t bytes = runs_bytes(at, extent, end);

	for (uint64_t unit = extent; unit < end; unit += STATE_UNIT_BYTES)
	{
		/* Often the first unit tells. */
		if (bytes + (end - unit) < room_of(header))
			return false;
		bytes += unit_bytes(tree, table, at, unit);
	}
	return bytes == room_of(header);
}

/* Forgets what is free in the extent: no other process takes it from then on. Under the state's spin lock. */
static void
extent_forget(const Tree *tree, StateAtNode *at, uint64_t extent, const ExtentHeader *header)
{
	StateTable *table = tree->client->shared->states;
	uint64_t end = extent + header->bytes;

	for (uint64_t offset = extent; offset < end; offset += STATE_UNIT_BYTES)
		for (uint32_t kind = 0; kind <= 1; kind++)
		{
			StateUnit *unit = unit_find(table, at, offset);

			if (unit != NULL && unit->count[kind] > 0)
				unit_set(table, at, unit, kind, POINTER_NONE, 0);
		}
	runs_forget(at, extent, end);
}

static bool
extent_seems_free(const Tree *tree, StateAtNode *at, uint64_t extent, const ExtentHeader *header)
{
	bool free;

	spin_lock(&tree->state->spin);
	free = extent_is_free(tree, at, extent, header);
	spin_unlock(&tree->state->spin);
	return free;
}

/* Has the walks of others begin anew.  Under the state's spin lock. */
static void
list_changes(Tree *tree, TreeGive *give)
{
	give->gives = ++tree->state->gives;
}

/* Whether others have changed the list of extents since the walk has looked at it. */
static bool
list_has_changed(Tree *tree, const TreeGive *give)
{
	bool changed;

	spin_lock(&tree->state->spin);
	changed = tree->state->gives != give->gives;
	spin_unlock(&tree->state->spin);
	return changed;
}

/* Forgets what is free in an extent, if that is all of it: step 1. False: it is not, or calls in progress took too long. */
static bool
extent_take_out(Tree *tree, TreeGive *give, StateAtNode *at, const ExtentHeader *header)
{
	const TreeEnvironment *environment = &tree->client->options.environment;
	bool alone = false, free;

	for (int attempt = 0; attempt < BARRIER_ATTEMPTS && !alone; attempt++)
	{
		if (attempt > 0)
			environment->sleep(environment->argument, tree->client->slot, 1);
		alone = barrier_close(tree);
	}
	give->missed += !alone;
	if (!alone)
		return false;
	spin_lock(&tree->state->spin);
	free = tree->state->gives == give->gives && extent_is_free(tree, at, give->extent, header);
	if (free)
	{
		extent_forget(tree, at, give->extent, header);
		list_changes(tree, give);
	}
	spin_unlock(&tree->state->spin);
	barrier_open(tree->client);
	return free;
}

/* ---- what the places themselves say ---- */

static bool
stripe_is_free(const Tree *tree, uint32_t memory_node, uint64_t (*lines)[LINE_WORDS], uint64_t offset)
{
	uint32_t leaf_bytes = tree->geometry.leaf_bytes;

	if (stripe_is_whole(tree, memory_node, lines[0], offset))
		return place_is_free_node(tree, memory_node, lines[0], offset, node_level(lines[0]));
	for (uint32_t i = 0; i < FABRIC_STRIPE_BYTES / leaf_bytes; i++)
		if (!place_is_empty(lines[i]) &&
		    !place_is_free_node(tree, memory_node, lines[i], offset + (uint64_t) i * leaf_bytes, 0))
			return false;
	return true;
}

/* Does each place of the extent say that it is free? */
static TreeStatus
places_are_free(Tree *tree, uint32_t memory_node, uint64_t extent, const ExtentHeader *header, bool *free)
{
	uint64_t lines[CHUNK_PLACES_MAX][LINE_WORDS];
	uint32_t stripe = FABRIC_STRIPE_BYTES / tree->geometry.leaf_bytes;
	uint64_t offset = extent + FABRIC_STRIPE_BYTES, end = extent + header->bytes;
	TreeStatus status = TREE_OK;

	*free = true;
	for (uint64_t bytes; offset < end && status == TREE_OK && *free; offset += bytes)
	{
		uint32_t places;

		bytes = end - offset < CHUNK_BYTES ? end - offset : CHUNK_BYTES;
		places = (uint32_t) bytes / tree->geometry.leaf_bytes;
		status = places_read(tree, memory_node, offset, places, lines);
		for (uint32_t i = 0; i < places && status == TREE_OK && *free; i += stripe)
			*free = stripe_is_free(tree, memory_node, lines + i,
			                       offset + (uint64_t) i * tree->geometry.leaf_bytes);
	}
	return status;
}

/* ---- giving ---- */

/* Learns how much the tree has at the memory node now, unless it has got an extent since. */
static TreeStatus
bytes_learn(Tree *tree, uint32_t memory_node, StateAtNode *at)
{
	TreeRecord record;
	TreeStatus status = directory_record(tree->client, memory_node, tree->tree, &record);

	if (status != TREE_OK)
		return status;
	spin_lock(&tree->state->spin);
	if (record.extents == at->extents)
	{
		__atomic_fetch_add(&tree->state->extent_bytes, record.bytes - at->tree_bytes, __ATOMIC_RELAXED);
		at->tree_bytes = record.bytes;
	}
	spin_unlock(&tree->state->spin);
	return TREE_OK;
}

/* Gives the extent, all of whose places seem free, if they are. */
static TreeStatus
extent_give(Tree *tree, TreeGive *give, StateAtNode *at, const ExtentHeader *header, bool *given)
{
	DirectoryGive request = {tree->tree, give->extent, header->number, give->newer};
	TreeStatus status;

	*given = extent_take_out(tree, give, at, header);
	if (!*given)
		return TREE_OK;
	status = places_are_free(tree, give->memory_node, give->extent, header, given);
	if (status != TREE_OK || !*given)
		return status;
	status = directory_give(tree->client, give->memory_node, &request);
	spin_lock(&tree->state->spin);
	list_changes(tree, give);
	spin_unlock(&tree->state->spin);
	/* It is refused if a process died between the two: the list is not what it seems. */
	*given = status == TREE_OK;
	if (status != TREE_OK)
		return status == TREE_INVALID ? TREE_OK : status;
	give->bytes += header->bytes;
	return bytes_learn(tree, give->memory_node, at);
}

/* ---- the walk, from the newest extent of each memory node to older ones ---- */

/* Is more free at the memory node than may stay, and may it be given?  *newest is the newest extent then. */
static bool
may_give(const Tree *tree, uint32_t memory_node, StateAtNode *at, uint64_t *newest)
{
	uint64_t free;
	bool may;

	spin_lock(&tree->state->spin);
	free = at->freed_count[0] * tree->geometry.leaf_bytes + at->freed_count[1] * INNER_BYTES;
	/* What earlier incarnations have left is known, and no chain of the tree may land there any more. */
	may = at->extents > 0 && at->past.look == STATE_LOOK_OVER && free * KEEP_PART > at->tree_bytes &&
	      (__atomic_load_n(&tree->state->unsettled, __ATOMIC_ACQUIRE) & 1u << memory_node) == 0;
	*newest = at->extent_offset;
	spin_unlock(&tree->state->spin);
	return may;
}

/* To the extent before this one, which its header names. */
static void
walk_on(TreeGive *give, const ExtentHeader *header)
{
	give->newer = give->extent;
	give->number = header->number;
	give->extent = header->previous;
}

static void
walk_end(TreeGive *give)
{
	give->extent = 0;
	give->memory_node++;
}

/* Begins the walk at the first memory node that has something to give. TREE_END: none has. */
static TreeStatus
walk_begin(Tree *tree, TreeGive *give)
{
	TreeClient *client = tree->client;

	for (; give->memory_node < client->options.nodes; give->memory_node++)
	{
		uint32_t node = give->memory_node;
		StateAtNode *at = state_part(client->shared->states, tree->state, node);
		ExtentHeader header;
		bool good;
		TreeStatus status;

		if (!node_is_open(client->shared, node) || at == NULL || !may_give(tree, node, at, &give->extent))
			continue;
		status = extent_header_read(tree, node, give->extent, &header, &good);
		if (status != TREE_OK)
			return status;
		if (!good)
			continue;
		walk_on(give, &header);
		if (give->extent != 0)
			return TREE_OK;
	}
	return TREE_END;
}

/* Checks one extent, and gives it if it is free. */
static TreeStatus
walk_look(Tree *tree, TreeGive *give, bool *given)
{
	StateAtNode *at = tree_part(tree, give->memory_node);
	ExtentHeader header;
	uint64_t newest;
	bool good;
	TreeStatus status = extent_header_read(tree, give->memory_node, give->extent, &header, &good);

	*given = false;
	if (status != TREE_OK)
		return status;
	if (!good || header.number >= give->number || !may_give(tree, give->memory_node, at, &newest))
	{
		walk_end(give);
		return TREE_OK;
	}
	if (extent_seems_free(tree, at, give->extent, &header))
		status = extent_give(tree, give, at, &header, given);
	if (*given)
		give->extent = header.previous;
	else
		walk_on(give, &header);
	if (give->extent == 0)
		walk_end(give);
	return status;
}

/* tree_give_next(), as a critical section. */
static TreeStatus
give_next(Tree *tree, TreeGive *give)
{
	bool given = false;
	TreeStatus status = TREE_OK;

	if (give->extent == 0 || list_has_changed(tree, give))
	{
		spin_lock(&tree->state->spin);
		give->gives = tree->state->gives;
		spin_unlock(&tree->state->spin);
		status = walk_begin(tree, give);
	}

	/* Behind a barrier that was closed the list may be another one. */
	for (int look = 0;
	     look < LOOKS && !list_has_changed(tree, give) && status == TREE_OK && give->extent != 0 && !given;
	     look++)
		status = walk_look(tree, give, &given);
	return status;
}

TreeStatus
tree_give_next(Tree *handle, TreeGive *give)
{
	TreeClient *client = handle->client;
	int section;
	TreeStatus status;

	assert(!client->holding);
	assert(give != NULL);
	/* Inside of another call this client itself would be in the way. */
	if (!client->shared->options.alone || handle->replicas != NULL || client->sections > 0)
		return TREE_END;
	if (client_should_stop(client))
		return client_fail(client, TREE_STOPPED, "stopped between two extents that may be given back");
	status = critical_enter(handle, &section);
	if (status != TREE_OK)
		return status;
	status = give_next(handle, give);
	critical_leave(handle, section);
	return status;
}

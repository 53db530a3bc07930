/*
 * replicas.c
 *		Trees with a replica: WRITEs go to the replica first and then to the home; if the home is lost, the replica
 *		takes its place.
 *
 * All nodes of such a tree lie at one memory node, its home, which pointers name; for each extent there the replica's
 * memory node has one, or several shorter ones, with the same bytes. Lock words, extents' headers and reads are the
 * home's alone. Once the home is given up, each chain for an address there goes to the replica of that address, and
 * the lock words are those of the replica's memory node; nodes that are allocated from then on have pointers that
 * name it. doc/internals/replicas.md explains why this is right.
 */
#include "tree/client/replicas.h"
#include "tree/node/redo.h"

/* Room for pieces at first; doubles. */
#define PIECES_FIRST 16u

/* ---- what is known of the instance ---- */

TreeReplicaState
replicas_state(const Tree *tree)
{
	assert(tree->replicas != NULL);
	/* The half that a reader reads does not change under it. */
	return tree->client->options.reader ? tree->replicas->reads : state_replicas(tree->state);
}

uint32_t
replicas_place(const Tree *tree, uint32_t memory_node)
{
	const Replicas *replicas = tree->replicas;

	return memory_node == replicas->home && replicas_state(tree) == TREE_REPLICAS_SECOND ? replicas->node
	                                                                                     : memory_node;
}

uint32_t
replicas_source(const Tree *tree)
{
	return replicas_state(tree) == TREE_REPLICAS_SECOND ? tree->replicas->node : tree->replicas->home;
}

uint32_t
replicas_copy(const Tree *tree)
{
	return replicas_state(tree) == TREE_REPLICAS_BOTH ? tree->replicas->node : replicas_source(tree);
}

bool
tree_replicas_in_doubt(const Tree *handle)
{
	bool open;

	assert(handle->replicas != NULL);
	(void) state_replicas_doubts(handle->state, &open);
	return open;
}

void
tree_replicas_set(Tree *handle, TreeReplicaState state)
{
	assert(handle->replicas != NULL && !handle->client->holding);
	assert(state == TREE_REPLICAS_FIRST || state == TREE_REPLICAS_SECOND);
	state_replicas_set(handle->state, state);
}

TreeReplicaState
tree_replicas_get(const Tree *handle)
{
	return handle->replicas == NULL ? TREE_REPLICAS_NONE : replicas_state(handle);
}

TreeStatus
tree_set_replica(Tree *handle, uint32_t node, TreeReplicaState state, bool doubt)
{
	TreeClient *client = handle->client;
	Replicas *replicas;

	assert(handle->replicas == NULL && !client->holding);
	if (node >= client->options.nodes || node == tree_home(handle->root) || state == TREE_REPLICAS_NONE)
		return client_fail(client, TREE_INVALID, "tree %llx: memory node %u cannot have its copies",
		                   (unsigned long long) handle->tree, node);
	replicas = client_allocate_beside(client, handle, sizeof(*replicas));
	if (replicas == NULL)
		return client_fail(client, TREE_NO_MEMORY, "no memory for a tree's copies");
	memset(replicas, 0, sizeof(*replicas));
	replicas->home = tree_home(handle->root);
	replicas->node = node;
	handle->replicas = replicas;
	handle->geometry.twins = 1ull << replicas->home | 1ull << node;
	replicas->reads = state;
	if (client->options.reader)
		state_replicas_read(client->shared, handle->state, state);
	else
		state_replicas_begin(client, handle->state, state, doubt);
	return TREE_OK;
}

void
replicas_close(Tree *tree)
{
	if (tree->replicas == NULL)
		return;
	client_release(tree->client, tree->replicas->pieces);
	client_release(tree->client, tree->replicas);
	tree->replicas = NULL;
}

/* ---- where copies are ---- */

/* Where the copy of this place is; NULL: it is not known. */
static const ReplicaPiece *
piece_find(const Replicas *replicas, uint64_t offset)
{
	uint32_t low = 0, high = replicas->count;

	while (low < high)
	{
		uint32_t middle = low + (high - low) / 2;

		if (replicas->pieces[middle].offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || offset - replicas->pieces[low - 1].offset >= replicas->pieces[low - 1].bytes)
		return NULL;
	return &replicas->pieces[low - 1];
}

/* Remembers a piece, unless it is known. */
static TreeStatus
piece_add(Tree *tree, const ReplicaPiece *piece)
{
	Replicas *replicas = tree->replicas;
	uint32_t i = replicas->count;

	assert(piece->bytes > 0);
	if (piece_find(replicas, piece->offset) != NULL)
		return TREE_OK;
	if (replicas->count == replicas->room)
	{
		uint32_t room = replicas->room == 0 ? PIECES_FIRST : replicas->room * 2;
		ReplicaPiece *more = client_allocate_beside(tree->client, tree, room * sizeof(*more));

		if (more == NULL)
			return client_fail(tree->client, TREE_NO_MEMORY, "no memory for the places of copies");
		if (replicas->count > 0)
			memcpy(more, replicas->pieces, replicas->count * sizeof(*more));
		client_release(tree->client, replicas->pieces);
		replicas->pieces = more;
		replicas->room = room;
	}
	for (; i > 0 && replicas->pieces[i - 1].offset > piece->offset; i--)
		replicas->pieces[i] = replicas->pieces[i - 1];
	replicas->pieces[i] = *piece;
	replicas->count++;
	return TREE_OK;
}

/* Asks the copy's memory node for all pieces. */
static TreeStatus
pieces_read(Tree *tree)
{
	uint64_t position = 0;
	TreeStatus status = TREE_OK;

	assert(!tree->client->holding);
	while (status == TREE_OK)
	{
		DirectoryReplicas replicas;

		status = directory_replicas(tree->client, tree->replicas->node, tree->tree, &position, &replicas);
		if (status != TREE_OK || replicas.count == 0)
			break;
		for (uint32_t i = 0; i < replicas.count && status == TREE_OK; i++)
		{
			const DirectoryReplica *copy = &replicas.replicas[i];

			if (copy->bytes > 0)
				status = piece_add(tree, &(ReplicaPiece){copy->offset, copy->bytes, copy->copy});
		}
	}
	return status;
}

TreeStatus
replicas_know(Tree *tree, uint64_t offset, const ReplicaPiece **piece)
{
	TreeStatus status = TREE_OK;

	*piece = piece_find(tree->replicas, offset);
	if (*piece != NULL)
		return TREE_OK;
	if (!tree->client->holding)
		status = pieces_read(tree);
	if (status != TREE_OK)
		return status;
	*piece = piece_find(tree->replicas, offset);
	if (*piece == NULL)
		status =
			client_fail(tree->client, TREE_DAMAGED, "tree %llx: no copy of %llx at memory node %u",
		                (unsigned long long) tree->tree, (unsigned long long) offset, tree->replicas->node);
	return status;
}

TreeStatus
replicas_extend(Tree *tree, uint64_t offset, uint64_t bytes)
{
	TreeStatus status = TREE_OK;

	assert(!tree->client->holding);
	if (replicas_state(tree) != TREE_REPLICAS_BOTH)
		return TREE_OK;
	for (uint64_t done = 0; done < bytes && status == TREE_OK;)
	{
		const ReplicaPiece *piece = piece_find(tree->replicas, offset + done);
		DirectoryReplica copy;

		if (piece != NULL)
		{
			done = piece->offset + piece->bytes - offset;
			continue;
		}
		status = directory_replica(tree->client, tree->replicas->node, tree->tree, offset + done,
		                           bytes - done, &copy);
		if (status == TREE_OK && offset + done - copy.offset >= copy.bytes)
			return client_fail(tree->client, TREE_DAMAGED,
			                   "memory node %u: a copy of another place than %llx", tree->replicas->node,
			                   (unsigned long long) (offset + done));
		if (status == TREE_OK)
			status = piece_add(tree, &(ReplicaPiece){copy.offset, copy.bytes, copy.copy});
	}
	return status;
}

TreeStatus
replicas_prepare(Tree *tree, uint64_t pointer)
{
	const Replicas *replicas = tree->replicas;
	TreeReplicaState state = replicas_state(tree);
	const ReplicaPiece *piece;
	TreeStatus status = TREE_OK;

	assert(!tree->client->holding);
	if (pointer_memory_node(pointer) != replicas->home || state == TREE_REPLICAS_FIRST)
		return TREE_OK;
	if (state == TREE_REPLICAS_BOTH)
		status = place_is_ready(tree->client, replicas->node);
	return status == TREE_OK ? replicas_know(tree, pointer_offset(pointer), &piece) : status;
}

/* ---- chains ---- */

/* A chain for the copy's memory node, made from one for the home. */
typedef struct ReplicaChain
{
	FabricOp ops[FABRIC_MAX_CHAIN];
	int origin[FABRIC_MAX_CHAIN]; /* of each: number in the chain that it was made from */
	int count;
	const FabricCapabilities *capabilities;
} ReplicaChain;

/*
 * The number of the operation that writes the header of a redo image, or -1; the image's is in front of it.
 */
static int
redo_header(const Tree *tree, const FabricOp *ops, int count)
{
	for (int i = 1; i < count; i++)
		if (ops[i].opcode == FABRIC_WRITE && ops[i].buffer == &tree->client->redo)
			return i;
	return -1;
}

/* Adds the WRITE of a redo header, which is to name the copy of the node whose image is in front of it. */
static TreeStatus
redo_header_add(Tree *tree, ReplicaChain *chain, const FabricOp *op, int origin)
{
	RedoHeader *redo = &tree->replicas->redo;
	uint64_t offset = pointer_offset(tree->client->redo.target);
	const ReplicaPiece *piece;
	TreeStatus status = replicas_know(tree, offset, &piece);

	if (status != TREE_OK)
		return status;
	*redo = tree->client->redo;
	redo->target = pointer_make(tree->replicas->node, piece->copy + (offset - piece->offset));
	redo->sum = redo_sum(redo, op[-1].buffer);
	chain->origin[chain->count] = origin;
	chain->ops[chain->count] = *op;
	chain->ops[chain->count++].buffer = redo;
	return TREE_OK;
}

static TreeStatus
chain_execute(Tree *tree, ReplicaChain *chain)
{
	TreeStatus status = TREE_OK;

	if (chain->count > 0)
		status = access_execute_at(tree, tree->replicas->node, chain->ops, chain->count);
	chain->count = 0;
	return status;
}

/* Adds an operation on nodes to the chain, at the copy's place, in as many parts as it lies in pieces. */
static TreeStatus
node_op_add(Tree *tree, ReplicaChain *chain, const FabricOp *op, int origin)
{
	for (uint32_t done = 0; done < op->length;)
	{
		uint64_t offset = op->offset + done;
		const ReplicaPiece *piece;
		TreeStatus status = replicas_know(tree, offset, &piece);
		FabricOp part = *op;

		if (status != TREE_OK)
			return status;
		part.offset = piece->copy + (offset - piece->offset);
		part.buffer = op->buffer == NULL ? NULL : (char *) op->buffer + done;
		if (part.length - done > piece->offset + piece->bytes - offset)
			part.length = (uint32_t) (piece->offset + piece->bytes - offset);
		else
			part.length -= done;
		if (chain->count == (int) chain->capabilities->max_chain)
		{
			status = chain_execute(tree, chain);
			if (status != TREE_OK)
				return status;
		}
		chain->origin[chain->count] = origin;
		chain->ops[chain->count++] = part;
		done += part.length;
	}
	return TREE_OK;
}

/*
 * Makes the chain for the copy's memory node, of all operations or of the WRITEs alone, and executes it. While both
 * are written there is no redo image at the replica: a process that dies in the middle leaves the two unequal, and
 * then the home's node is the right one.
 */
static TreeStatus
chain_run(Tree *tree, FabricOp *ops, int count, bool writes_only)
{
	ReplicaChain chain = {.count = 0};
	int header = redo_header(tree, ops, count);
	TreeStatus status = TREE_OK;

	if (access_endpoint(tree->client, tree->replicas->node) == NULL)
		return client_away(tree->client, tree->replicas->node);
	chain.capabilities = access_capabilities(tree->client, tree->replicas->node);
	for (int i = 0; i < count && status == TREE_OK; i++)
	{
		bool redo = header >= 0 && (i == header || i == header - 1);

		if (writes_only && (redo || ops[i].opcode != FABRIC_WRITE))
			continue;
		if (i == header)
			status = redo_header_add(tree, &chain, &ops[i], i);
		else if (ops[i].region == FABRIC_NODES && !redo)
			status = node_op_add(tree, &chain, &ops[i], i);
		else
		{
			chain.origin[chain.count] = i;
			chain.ops[chain.count++] = ops[i];
		}
	}
	if (status != TREE_OK || chain.count == 0)
		return status;
	status = access_execute_at(tree, tree->replicas->node, chain.ops, chain.count);
	for (int i = 0; i < chain.count; i++)
		ops[chain.origin[i]].result = chain.ops[i].result;
	return status;
}

/*
 * Executes the chain's WRITEs at the replica, and waits for them; repeats them where they were lost, as no process
 * reads them before they are written at home.
 */
static TreeStatus
replica_write(Tree *tree, FabricOp *ops, int count)
{
	TreeClient *client = tree->client;
	TreeStatus status = TREE_RETRY;
	bool writes = false;

	for (int i = 0; i < count; i++)
		writes |= ops[i].opcode == FABRIC_WRITE && ops[i].region == FABRIC_NODES;
	if (!writes)
		return TREE_OK;
	for (int attempt = 0; status == TREE_RETRY && client_tries_again(client, attempt); attempt++)
		status = chain_run(tree, ops, count, true);
	if (status == TREE_RETRY)
		status = client_unanswered(client, tree->replicas->node, "writes of copies");
	if (status == TREE_OK)
		TREE_COUNT(tree, copy_writes, 1);
	return status;
}

TreeStatus
replicas_execute(Tree *tree, uint32_t memory_node, FabricOp *ops, int count)
{
	TreeStatus status = TREE_OK;

	assert(count > 0 && (uint32_t) count <= FABRIC_MAX_CHAIN);
	if (memory_node != tree->replicas->home)
		return access_execute_at(tree, memory_node, ops, count);
	switch (replicas_state(tree))
	{
		case TREE_REPLICAS_SECOND:
			return chain_run(tree, ops, count, false);
		case TREE_REPLICAS_BOTH:
			status = replica_write(tree, ops, count);
			break;
		default:
			break;
	}
	return status == TREE_OK ? access_execute_at(tree, memory_node, ops, count) : status;
}

TreeStatus
replicas_execute_at_home(Tree *tree, uint32_t memory_node, FabricOp *ops, int count)
{
	if (memory_node != tree->replicas->home || replicas_state(tree) != TREE_REPLICAS_BOTH)
		return TREE_OK;
	return access_execute_at(tree, memory_node, ops, count);
}

TreeStatus
replicas_restore(Tree *tree, uint64_t pointer, uint32_t bytes)
{
	FabricOp op = {
		.opcode = FABRIC_READ,
		.region = FABRIC_NODES,
		.length = bytes,
		.offset = pointer_offset(pointer),
		.buffer = tree->replicas->node_image,
	};
	TreeStatus status;

	assert(tree->client->holding);
	assert(bytes > 0 && bytes <= NODE_MAX_BYTES);
	if (replicas_state(tree) != TREE_REPLICAS_BOTH || pointer_memory_node(pointer) != tree->replicas->home)
		return TREE_OK;
	status = access_repeat(tree, tree->replicas->home, &op, 1, "reads of a locked node");
	op.opcode = FABRIC_WRITE;
	return status == TREE_OK ? replica_write(tree, &op, 1) : status;
}

/* ---- chains of any tree ---- */

TreeStatus
access_repeat(Tree *tree, uint32_t memory_node, FabricOp *ops, int count, const char *what)
{
	TreeStatus status = TREE_RETRY;

	assert(count > 0 && what != NULL);
	for (int attempt = 0; status == TREE_RETRY && client_tries_again(tree->client, attempt); attempt++)
		status = access_execute(tree, memory_node, ops, count);
	if (status == TREE_RETRY)
		status = client_unanswered(tree->client, tree_place(tree, memory_node), what);
	return status;
}

/*
 * node_read.c
 *		Validated reads of nodes: torn ones are repeated, in the end under the lock.
 */
#include "tree/client/wave.h"
#include "tree/lock/lock.h"

/* Pause before a torn node is read again: doubles from this, so that eight reads span half a millisecond. */
#define TORN_PAUSE_US 2u

/*
 * One chain of READs, with a limit on its time: where READs are not atomic, stamps may have wrapped around during a
 * chain that took too long, and then all of its images count as torn.
 */
static TreeStatus
read_in_time(Tree *tree, uint32_t memory_node, FabricOp *ops, int count, bool *late)
{
	TreeClient *client = tree->client;
	uint64_t begin = 0;
	uint32_t place;
	bool timed;
	TreeStatus status;

	assert(count > 0);
	assert(late != NULL);
	*late = false;
	if (memory_node >= client->options.nodes)
		return client_fail(client, TREE_DAMAGED, "tree %llx: pointer to memory node %u of %u",
		                   (unsigned long long) tree->tree, memory_node, client->options.nodes);
	place = tree_place(tree, memory_node);
	if (access_endpoint(client, place) == NULL)
		return client_away(client, place);
	timed = (access_capabilities(client, place)->flags & FABRIC_CAP_OPERATION_ATOMIC) == 0;
	if (timed)
		begin = client_now_us(client);
	status = access_execute(tree, memory_node, ops, count);
	if (status == TREE_OK && timed)
		*late = client_now_us(client) - begin > READ_BOUND_US;
	return status;
}

/*
 * Repairs the sum of a locked leaf. The process that wrote its last cell may have died before the sum was written; or
 * the leaf was written when no READ was known to tear it, and has no sum. A reader between the two WRITEs waits for
 * the second one.
 */
static TreeStatus
leaf_sum_repair(Tree *tree, LockHandle *lock, uint64_t pointer, uint32_t bytes)
{
	static const uint32_t words[] = {HEADER_STATE, HEADER_SUM};
	uint64_t *node = tree->client->image;
	int first = (node_flags(node) & NODE_SUM_VALID) != 0 ? 1 : 0;
	FabricOp ops[3];

	assert(lock->held);
	leaf_sum_set(&tree->geometry, node);
	for (int i = first; i < 2; i++)
		ops[i - first] = (FabricOp){.opcode = FABRIC_WRITE,
		                            .region = FABRIC_NODES,
		                            .length = 8,
		                            .offset = pointer_offset(pointer) + words[i] * 8,
		                            .buffer = node + words[i]};
	return lock_write_and_release(tree, lock, ops, 2 - first, pointer, node, bytes);
}

/*
 * Locks a node, so that no process writes it, reads it, and unlocks it. Nothing is changed but a leaf's sum, if it
 * has to be repaired.
 */
static TreeStatus
read_locked(Tree *tree, uint64_t pointer, uint32_t bytes, uint64_t *image)
{
	TreeClient *client = tree->client;
	LockHandle lock;
	TreeStatus status;

	assert(bytes <= NODE_MAX_BYTES);
	status = lock_and_read(tree, pointer, bytes, client->image, &lock);
	if (status != TREE_OK)
		return status;
	assert(lock.held);
	if (leaf_sum_is_due(&tree->geometry, client->image))
		status = leaf_sum_repair(tree, &lock, pointer, bytes);
	else
		status = lock_release(tree, &lock, pointer, client->image, bytes);
	if (image != client->image)
		memcpy(image, client->image, bytes);
	return status;
}

/* The verdict on an image for which so many bytes were read: of an inner node at a leaf's old place that is not all of it. */
static NodeVerdict
image_judge(const Tree *tree, uint64_t pointer, const uint64_t *image, uint32_t bytes, bool whole)
{
	if (bytes < INNER_BYTES && node_level(image) > 0)
		return NODE_STALE;
	return whole ? node_check_whole(&tree->geometry, image, tree->tree, pointer)
	             : node_check(&tree->geometry, image, tree->tree, pointer);
}

/* ---- what a leaf says of the WAL */

/*
 * Whether a reader's image of a leaf may have a cell that was added behind the position that the image has: a READ that is not atomic
 * may sample line 0 before the writer has raised the position, and a later line when the cell is there.  A sum excludes that.
 */
static bool
position_may_be_old(Tree *tree, uint64_t pointer, const uint64_t *image)
{
	return node_level(image) == 0 && (node_flags(image) & NODE_SUM_VALID) == 0 &&
	       (access_capabilities(tree->client, tree_place(tree, pointer_memory_node(pointer)))->flags &
	        FABRIC_CAP_OPERATION_ATOMIC) == 0;
}

/* Gives the image the position of its leaf's line 0 as it was read behind it; torn: the leaf is another one by now. */
static void
position_take(uint64_t *image, const uint64_t *line, NodeVerdict *verdict)
{
	if (line[HEADER_TREE] != image[HEADER_TREE] || line[HEADER_SELF] != image[HEADER_SELF] ||
	    line[HEADER_GENERATION] != image[HEADER_GENERATION])
		*verdict = NODE_TORN;
	image[HEADER_LSN] = line[HEADER_LSN];
	image[HEADER_EPOCH] = line[HEADER_EPOCH];
}

/* Line 0 of some leaves of one memory node, read again by one chain. */
typedef struct LinesAgain
{
	int count;
	int places[FABRIC_MAX_CHAIN]; /* of the leaves, among those that were read */
	FabricOp ops[FABRIC_MAX_CHAIN];
	_Alignas(LINE_BYTES) uint64_t lines[FABRIC_MAX_CHAIN][LINE_WORDS];
} LinesAgain;

/* Chooses the next leaves, from `from` on, whose positions may be old; returns behind which one to go on. */
static int
lines_choose(Tree *tree, LinesAgain *again, const uint64_t *pointers, int from, int count,
             uint64_t *const *images, const NodeVerdict *verdicts)
{
	int i = from;

	again->count = 0;
	for (; i < count && again->count < (int) FABRIC_MAX_CHAIN; i++)
	{
		if (verdicts[i] != NODE_GOOD || !position_may_be_old(tree, pointers[i], images[i]))
			continue;
		if (again->count > 0 &&
		    pointer_memory_node(pointers[i]) != pointer_memory_node(pointers[again->places[0]]))
			break;
		again->ops[again->count] = node_op(pointers[i], LINE_BYTES, again->lines[again->count]);
		again->places[again->count++] = i;
	}
	return i;
}

/*
 * Reads the positions of a reader's leaves once more, where they may be older than the cells: in chains that begin when the
 * images are there.  A writer raises a position before it adds the cell, so what is read now is behind all cells of the image.
 */
static TreeStatus
positions_read_again(Tree *tree, const uint64_t *pointers, int count, uint64_t *const *images,
                     NodeVerdict *verdicts)
{
	LinesAgain again;
	TreeStatus status;

	for (int next = 0; tree->client->options.reader && next < count;)
	{
		next = lines_choose(tree, &again, pointers, next, count, images, verdicts);
		if (again.count == 0)
			break;
		status = access_execute(tree, pointer_memory_node(pointers[again.places[0]]), again.ops, again.count);
		if (status != TREE_OK && status != TREE_RETRY)
			return status;
		for (int i = 0; i < again.count; i++)
		{
			position_take(images[again.places[i]], again.lines[i], &verdicts[again.places[i]]);
			if (status == TREE_RETRY)
				verdicts[again.places[i]] = NODE_TORN;
		}
	}
	return TREE_OK;
}

void
access_note_leaf(Tree *tree, const uint64_t *leaf)
{
	assert(node_level(leaf) == 0);
	if (!tree->client->options.reader)
		return;
	tree_wal_position_raise(&tree->seen.added, (uint32_t) node_word(leaf, HEADER_EPOCH),
	                        node_word(leaf, HEADER_LSN));
	leaf_youngest_dead(leaf, &tree->seen.removed);
}

void
tree_seen(const Tree *handle, TreeSeen *seen)
{
	assert(handle->client->options.reader);
	*seen = handle->seen;
}

void
tree_seen_forget(Tree *handle)
{
	assert(handle->client->options.reader);
	memset(&handle->seen, 0, sizeof(handle->seen));
}

TreeStatus
access_read(Tree *tree, uint64_t pointer, int level, uint64_t *image, bool whole)
{
	TreeClient *client = tree->client;
	uint32_t bytes = tree_node_bytes(tree, pointer, level < 0 ? 1 : (uint32_t) level);
	NodeVerdict verdict = NODE_TORN;
	TreeStatus status;

	assert(level < LEVELS_MAX && !client->holding);
	assert(image != NULL);

	for (int attempt = 0; attempt < READ_ATTEMPTS && verdict == NODE_TORN; attempt++)
	{
		FabricOp op = node_op(pointer, bytes, image);
		bool late;

		if (attempt > 0)
		{
			TREE_COUNT(tree, torn_reads, 1);
			if (client_should_stop(client))
				return TREE_STOPPED;
			access_pause(client, (uint64_t) TORN_PAUSE_US << attempt);
		}
		status = read_in_time(tree, pointer_memory_node(pointer), &op, 1, &late);
		if (status == TREE_RETRY)
			continue;
		if (status != TREE_OK)
			return status;
		if (!late)
			verdict = image_judge(tree, pointer, image, bytes, whole);
		status = positions_read_again(tree, &pointer, 1, &image, &verdict);
		if (status != TREE_OK)
			return status;
	}
	if (verdict == NODE_DAMAGED)
		return access_damaged(tree, pointer);
	/* It may be no node of the tree any more: the reader looks for the way to it anew. */
	if (verdict == NODE_TORN && client->options.reader)
	{
		tree->torn = true;
		return TREE_RETRY;
	}
	if (verdict == NODE_TORN)
	{
		status = read_locked(tree, pointer, bytes, image);
		if (status != TREE_OK)
			return status;
		verdict = NODE_GOOD;
	}
	if (verdict == NODE_GOOD && pointer_address(pointer) == tree->root)
		tree->root_is_leaf = node_level(image) == 0;
	if (verdict != NODE_GOOD || (level >= 0 && node_level(image) != (uint32_t) level))
		return TREE_RETRY;
	if (node_level(image) == 0)
	{
		access_note_leaf(tree, image);
		TREE_COUNT(tree, leaf_reads, 1);
	}
	return TREE_OK;
}

bool
access_descends_again(Tree *tree, Outrun *descents)
{
	bool in_time = client_outrun(tree->client, descents, DESCENT_ATTEMPTS);
	bool torn = tree->torn;

	if (descents->tries >= DESCENT_ATTEMPTS && !(torn && in_time))
		return false;
	tree->torn = false;
	return true;
}

TreeStatus
access_no_way(Tree *tree, const char *where, const Outrun *descents)
{
	if (tree->torn)
		return client_fail(tree->client, TREE_TIMED_OUT, "tree %llx: a node %s is torn in all of %u descents",
		                   (unsigned long long) tree->tree, where, descents->tries);
	return client_fail(tree->client, TREE_DAMAGED, "tree %llx: no way %s in %u descents",
	                   (unsigned long long) tree->tree, where, descents->tries);
}

/* ---- several leaves ---- */

/* Checks the image of a leaf that was read together with others; it may be the root, which is no leaf any more. */
static NodeVerdict
leaf_judge(Tree *tree, uint64_t pointer, const uint64_t *image)
{
	NodeVerdict verdict = image_judge(tree, pointer, image, tree_node_bytes(tree, pointer, 0), false);

	if (verdict == NODE_GOOD && node_level(image) != 0)
	{
		tree->root_is_leaf = false;
		return NODE_STALE;
	}
	/* It is read again alone, and reported as damaged then. */
	return verdict == NODE_DAMAGED ? NODE_TORN : verdict;
}

/* READs of leaves on one memory node by one chain. */
static TreeStatus
read_chain(Tree *tree, const uint64_t *pointers, int count, uint64_t *const *images, NodeVerdict *verdicts)
{
	FabricOp ops[FABRIC_MAX_CHAIN];
	bool late;
	TreeStatus status;

	assert(count > 0 && count <= (int) FABRIC_MAX_CHAIN);
	for (int i = 0; i < count; i++)
		ops[i] = node_op(pointers[i], tree_node_bytes(tree, pointers[i], 0), images[i]);
	status = read_in_time(tree, pointer_memory_node(pointers[0]), ops, count, &late);
	if (status != TREE_OK)
		return status;
	for (int i = 0; i < count; i++)
		verdicts[i] = late ? NODE_TORN : leaf_judge(tree, pointers[i], images[i]);
	return TREE_OK;
}

Wave *
access_wave(Tree *tree)
{
	TreeClient *client = tree->client;

	if (tree->replicas != NULL)
		return NULL;
	if (client->wave == NULL)
		client->wave = client_allocate_beside(client, client, sizeof(Wave));
	return client->wave;
}

/*
 * The same of leaves on any memory nodes by one wave. Where time matters, each READ counts as having taken as long as
 * the slowest chain may have. Leaves whose chain was lost are read again alone.
 */
static TreeStatus
read_wave(Tree *tree, Wave *wave, const uint64_t *pointers, int count, uint64_t *const *images,
          NodeVerdict *verdicts)
{
	TreeClient *client = tree->client;
	uint64_t begin = client_now_us(client);
	bool late;

	wave_begin(wave, tree);
	for (int i = 0; i < count; i++)
	{
		FabricOp op = node_op(pointers[i], tree_node_bytes(tree, pointers[i], 0), images[i]);

		wave_add(wave, pointer_memory_node(pointers[i]), &op);
	}
	wave_end(wave);
	late = client_now_us(client) - begin > READ_BOUND_US;
	for (int i = 0; i < count; i++)
	{
		uint32_t node = pointer_memory_node(pointers[i]);
		TreeStatus status = wave_status(wave, node);

		if (status != TREE_OK && status != TREE_RETRY)
			return status;
		if (status == TREE_RETRY ||
		    (late && (access_capabilities(client, node)->flags & FABRIC_CAP_OPERATION_ATOMIC) == 0))
			verdicts[i] = NODE_TORN;
		else
			verdicts[i] = leaf_judge(tree, pointers[i], images[i]);
	}
	return TREE_OK;
}

/* The number of leading leaves that lie on one memory node and fit into one chain. */
static int
chain_length(const uint64_t *pointers, int count)
{
	int n = 1;

	while (n < count && n < (int) FABRIC_MAX_CHAIN &&
	       pointer_memory_node(pointers[n]) == pointer_memory_node(pointers[0]))
		n++;
	return n;
}

TreeStatus
access_read_leaves(Tree *tree, const uint64_t *pointers, int count, uint64_t *const *images,
                   NodeVerdict *verdicts)
{
	TreeClient *client = tree->client;
	Wave *wave = NULL;
	TreeStatus status = TREE_OK;

	assert(count > 0 && count <= READ_TOGETHER_MAX);
	assert(!client->holding);
	for (int i = 0; i < count; i++)
		if (pointer_memory_node(pointers[i]) >= client->options.nodes)
			return client_fail(client, TREE_DAMAGED, "tree %llx: pointer to memory node %u of %u",
			                   (unsigned long long) tree->tree, pointer_memory_node(pointers[i]),
			                   client->options.nodes);
	if (chain_length(pointers, count) < count)
		wave = access_wave(tree);
	if (wave != NULL)
		status = read_wave(tree, wave, pointers, count, images, verdicts);
	for (int i = 0, n; wave == NULL && status == TREE_OK && i < count; i += n)
	{
		n = chain_length(pointers + i, count - i);
		status = read_chain(tree, pointers + i, n, images + i, verdicts + i);
	}
	if (status == TREE_OK)
		status = positions_read_again(tree, pointers, count, images, verdicts);
	if (status != TREE_OK)
		return status;
	TREE_COUNT(tree, leaf_reads, (uint64_t) count);
	for (int i = 0; i < count; i++)
	{
		if (verdicts[i] == NODE_GOOD)
			access_note_leaf(tree, images[i]);
		if (verdicts[i] == NODE_TORN)
			TREE_COUNT(tree, torn_reads, 1);
	}
	return TREE_OK;
}

/*
 * A block's READ: whole words, as the fabric demands; blocks are aligned to 16 bytes, so that none ends inside
 * another one's word.
 */
static FabricOp
overflow_op(const OverflowReference *reference, uint8_t *buffer)
{
	FabricOp op = {
		.opcode = FABRIC_READ,
		.region = FABRIC_NODES,
		.length = (reference->bytes + 7) / 8 * 8,
		.offset = reference->offset,
		.buffer = buffer,
	};

	assert(reference->offset % OVERFLOW_ALIGN == 0);
	assert((uintptr_t) buffer % 8 == 0);
	return op;
}

TreeStatus
access_read_overflow(Tree *tree, const OverflowReference *references, int count, uint8_t *const *buffers)
{
	FabricOp ops[FABRIC_MAX_CHAIN];
	uint64_t done = 0;
	int left = count;

	assert(count > 0 && count <= 64);
	assert(!tree->client->holding);

	/* One chain for each memory node, until all are read. */
	while (left > 0)
	{
		uint32_t memory_node = 0;
		int posted = 0;
		TreeStatus status;

		for (int i = 0; i < count && posted < (int) FABRIC_MAX_CHAIN; i++)
		{
			if ((done & 1ull << i) != 0 || (posted > 0 && references[i].memory_node != memory_node))
				continue;
			if (references[i].bytes == 0 || references[i].bytes > TREE_IMAGE_MAX_BYTES)
				return TREE_RETRY;
			memory_node = references[i].memory_node;
			ops[posted++] = overflow_op(&references[i], buffers[i]);
			done |= 1ull << i;
			left--;
		}
		/* TREE_RETRY tells the callers that an image has changed meanwhile. */
		status = access_repeat(tree, memory_node, ops, posted, "reads of images");
		if (status != TREE_OK)
			return status;
	}
	for (int i = 0; i < count; i++)
		if (image_hash(buffers[i], references[i].bytes) != references[i].hash)
			return TREE_RETRY;
	return TREE_OK;
}

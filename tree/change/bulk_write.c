/*
 * bulk_write.c
 *		What a bulk load writes: windows, which are images of stripes side by side, by long chains of WRITEs.
 *
 * Across a network full windows wait for each other, and go by one wave to all memory nodes.  None of what is written is part of the
 * tree yet, so it may land in any order, in part, and twice: a chain that was lost is done again.  Where a memory node is mapped, or a
 * tree has copies, there is nothing to be waited for together, and a window goes when it is full.
 */
#include "tree/change/bulk_write.h"

#include "tree/client/wave.h"
#include "tree/lock/lock.h"

void
bulk_writes_begin(BulkWrites *writes, Tree *tree, const void *beside)
{
	memset(writes, 0, sizeof(*writes));
	writes->tree = tree;
	writes->beside = beside;
}

static void
window_empty(BulkWindow *window)
{
	window->count = 0;
	window->bytes = 0;
	window->full = false;
}

/* Sends one window, and waits for it. */
static TreeStatus
window_send(BulkWrites *writes, BulkWindow *window)
{
	TreeClient *client = writes->tree->client;
	TreeStatus status = TREE_OK;
	uint32_t most;

	assert(!client->holding);
	if (access_endpoint(client, window->memory_node) == NULL)
		return client_away(client, window->memory_node);
	most = access_capabilities(client, window->memory_node)->max_chain;
	assert(most > 0 && most <= FABRIC_MAX_CHAIN);
	for (int i = 0; i < window->count && status == TREE_OK; i += (int) most)
	{
		int left = window->count - i;

		status = access_repeat(writes->tree, window->memory_node, window->ops + i,
		                       left < (int) most ? left : (int) most, "chains of a build");
	}
	window_empty(window);
	return status;
}

/* Sends the full windows together. */
static TreeStatus
windows_send(BulkWrites *writes, Wave *wave)
{
	TreeStatus status = TREE_OK;

	wave_begin(wave, writes->tree);
	for (uint32_t i = 0; i < BULK_WINDOWS; i++)
		for (int op = 0; writes->windows[i].full && op < writes->windows[i].count; op++)
			wave_add(wave, writes->windows[i].memory_node, &writes->windows[i].ops[op]);
	wave_end(wave);
	for (uint32_t i = 0; i < BULK_WINDOWS && status == TREE_OK; i++)
	{
		BulkWindow *window = &writes->windows[i];

		if (!window->full)
			continue;
		status = wave_status(wave, window->memory_node);
		if (status == TREE_RETRY)
			status = window_send(writes, window);
		else if (status == TREE_OK)
			window_empty(window);
	}
	return status;
}

/* Sends the full windows, and waits for them. */
static TreeStatus
full_send(BulkWrites *writes)
{
	Wave *wave = writes->full > 1 ? access_wave(writes->tree) : NULL;
	TreeStatus status = TREE_OK;

	assert(!writes->tree->client->holding);
	writes->full = 0;
	if (wave != NULL)
		return windows_send(writes, wave);
	for (uint32_t i = 0; i < BULK_WINDOWS && status == TREE_OK; i++)
		if (writes->windows[i].full)
			status = window_send(writes, &writes->windows[i]);
	return status;
}

/* Whether the window goes at once: nothing is gained if it waits for others. */
static bool
goes_alone(BulkWrites *writes, const BulkWindow *window)
{
	TreeClient *client = writes->tree->client;

	return writes->tree->replicas != NULL || access_endpoint(client, window->memory_node) == NULL ||
	       access_is_mapped(client, window->memory_node);
}

TreeStatus
bulk_window_end(BulkWrites *writes, BulkKind kind)
{
	BulkWindow *window = writes->open[kind];

	if (window == NULL || window->count == 0)
		return TREE_OK;
	if (goes_alone(writes, window))
		return window_send(writes, window);
	window->full = true;
	writes->open[kind] = NULL;
	return ++writes->full == BULK_FULL_MAX ? full_send(writes) : TREE_OK;
}

/* Has a window filled with this kind. */
static TreeStatus
window_begin(BulkWrites *writes, BulkKind kind)
{
	TreeClient *client = writes->tree->client;
	BulkWindow *window = writes->windows;

	while (window->full || window == writes->open[BULK_LEAVES] || window == writes->open[BULK_IMAGES] ||
	       window == writes->open[BULK_INNER])
		window++;
	assert(window < writes->windows + BULK_WINDOWS);
	if (window->memory == NULL)
		window->memory = client_allocate_beside(client, writes->beside, WINDOW_BYTES);
	if (window->memory == NULL)
		return client_fail(client, TREE_NO_MEMORY, "no memory for a bulk load");
	writes->open[kind] = window;
	return TREE_OK;
}

TreeStatus
bulk_window(BulkWrites *writes, BulkKind kind, uint32_t memory_node, uint64_t bytes, BulkWindow **window)
{
	const BulkWindow *open = writes->open[kind];
	/* Leaves lie side by side, so that a WRITE of a stripe takes several. */
	int most = kind == BULK_LEAVES ? (int) FABRIC_MAX_CHAIN + 1 : (int) FABRIC_MAX_CHAIN;
	TreeStatus status = TREE_OK;

	assert(bytes <= WINDOW_BYTES);
	if (open != NULL && (open->count == most || open->bytes + bytes > WINDOW_BYTES ||
	                     (open->count > 0 && open->memory_node != memory_node)))
		status = bulk_window_end(writes, kind);
	if (status == TREE_OK && writes->open[kind] == NULL)
		status = window_begin(writes, kind);
	*window = writes->open[kind];
	return status;
}

void
bulk_write(BulkWindow *window, uint32_t memory_node, uint64_t offset, void *buffer, uint32_t bytes)
{
	FabricOp *last = window->count > 0 ? &window->ops[window->count - 1] : NULL;

	assert(offset / FABRIC_STRIPE_BYTES == (offset + bytes - 1) / FABRIC_STRIPE_BYTES);
	assert(window->count == 0 || window->memory_node == memory_node);
	window->memory_node = memory_node;
	if (last != NULL && last->offset + last->length == offset &&
	    (uint8_t *) last->buffer + last->length == (uint8_t *) buffer && offset % FABRIC_STRIPE_BYTES != 0)
	{
		last->length += bytes;
		return;
	}
	assert(window->count < (int) FABRIC_MAX_CHAIN);
	window->ops[window->count++] = (FabricOp){
		.opcode = FABRIC_WRITE, .region = FABRIC_NODES, .length = bytes, .offset = offset, .buffer = buffer};
}

TreeStatus
bulk_send(BulkWrites *writes)
{
	TreeStatus status = TREE_OK;

	for (int kind = 0; kind < BULK_KINDS && status == TREE_OK; kind++)
		status = bulk_window_end(writes, (BulkKind) kind);
	return status == TREE_OK ? full_send(writes) : status;
}

void
bulk_writes_free(BulkWrites *writes)
{
	for (uint32_t i = 0; i < BULK_WINDOWS; i++)
		client_release(writes->tree->client, writes->windows[i].memory);
}

/*
 * blocks.c
 *		Free blocks for overflow keys.
 *
 * VACUUM gives back as many as it removes long keys, and inserts take them again: a tree that forgot them
 * would grow with every round.  They are remembered in shared memory, in a pool that all trees share, by
 * lists of one length each, so that the shortest that is long enough is found at once.
 */
#include "tree/shared/state.h"

static StateBlock *
pool_block(StateTable *table, uint32_t number)
{
	assert(number >= 1 && number <= table->pool_blocks);
	assert(table->pool % LINE_BYTES == 0);
	return (StateBlock *) ((char *) table + table->pool) + (number - 1);
}

size_t
blocks_pool_bytes(const TreeSharedOptions *options)
{
	assert(options->trees > 0);
	assert(options->trees <= UINT32_MAX / STATE_BLOCKS_PER_TREE);
	return (size_t) options->trees * STATE_BLOCKS_PER_TREE * sizeof(StateBlock);
}

void
blocks_pool_reset(StateTable *table)
{
	assert(table != NULL);
	assert(table->pool != 0);
	table->pool_blocks = table->options.trees * STATE_BLOCKS_PER_TREE;
	table->pool_used = 0;
	table->pool_full = 0;
	table->pool_free = 0;
	table->pool_spin = 0;
}

/* A block of the pool that is not in use; 0: all are, or for a rest half of them. */
static uint32_t
pool_take(StateTable *table, bool rest)
{
	uint32_t room;
	uint32_t number = 0;

	spin_lock(&table->pool_spin);
	assert(table->pool_full <= table->pool_used && table->pool_used <= table->pool_blocks);
	room = rest ? table->pool_blocks / 2 : table->pool_blocks;
	if (table->pool_full >= room)
		number = 0;
	else if (table->pool_free != 0)
	{
		number = table->pool_free;
		table->pool_free = pool_block(table, number)->next;
	}
	else
		number = ++table->pool_used;
	table->pool_full += number != 0;
	spin_unlock(&table->pool_spin);
	assert(number <= table->pool_used);
	return number;
}

static void
pool_give(StateTable *table, uint32_t number)
{
	assert(number >= 1 && number <= table->pool_used);
	assert(table->pool_blocks >= table->pool_used);
	spin_lock(&table->pool_spin);
	pool_block(table, number)->next = table->pool_free;
	table->pool_free = number;
	table->pool_full--;
	spin_unlock(&table->pool_spin);
}

void
blocks_put(StateTable *table, StateAtNode *at, uint64_t offset, uint32_t bytes, bool rest)
{
	uint32_t length = bytes / OVERFLOW_ALIGN;
	uint32_t number;

	assert(offset % OVERFLOW_ALIGN == 0);
	assert(bytes % OVERFLOW_ALIGN == 0 && length < STATE_BLOCK_LENGTHS);
	number = bytes != 0 ? pool_take(table, rest) : 0;
	if (number == 0)
		return;
	pool_block(table, number)->offset = offset;
	pool_block(table, number)->next = at->blocks[length];
	at->blocks[length] = number;
	at->lengths[length / 64] |= 1ull << length % 64;
}

/* The first list from `length` on that is not empty; STATE_BLOCK_LENGTHS: all are. */
static uint32_t
lengths_find(const StateAtNode *at, uint32_t length)
{
	uint64_t skip = ~0ull << length % 64;

	assert(length < STATE_BLOCK_LENGTHS);
	assert(STATE_BLOCK_LENGTHS % 64 == 0);
	for (uint32_t i = length / 64; i < STATE_BLOCK_LENGTHS / 64; i++, skip = ~0ull)
	{
		if ((at->lengths[i] & skip) != 0)
			return i * 64 + (uint32_t) __builtin_ctzll(at->lengths[i] & skip);
	}
	return STATE_BLOCK_LENGTHS;
}

bool
blocks_take(StateTable *table, StateAtNode *at, uint32_t bytes, uint64_t *offset)
{
	uint32_t wanted = bytes / OVERFLOW_ALIGN;
	uint32_t length, number;

	assert(bytes > 0 && bytes % OVERFLOW_ALIGN == 0);
	assert(offset != NULL);
	length = lengths_find(at, wanted);
	if (length == STATE_BLOCK_LENGTHS)
		return false;
	number = at->blocks[length];
	*offset = pool_block(table, number)->offset;
	at->blocks[length] = pool_block(table, number)->next;
	if (at->blocks[length] == 0)
		at->lengths[length / 64] &= ~(1ull << length % 64);
	pool_give(table, number);
	blocks_put(table, at, *offset + bytes, (length - wanted) * OVERFLOW_ALIGN, true);
	return true;
}

void
blocks_forget(StateTable *table, StateAtNode *at)
{
	assert(table != NULL);
	assert(at != NULL);
	for (uint32_t length = lengths_find(at, 0); length < STATE_BLOCK_LENGTHS; length = lengths_find(at, 0))
	{
		while (at->blocks[length] != 0)
		{
			uint32_t number = at->blocks[length];

			at->blocks[length] = pool_block(table, number)->next;
			pool_give(table, number);
		}
		at->lengths[length / 64] &= ~(1ull << length % 64);
	}
}

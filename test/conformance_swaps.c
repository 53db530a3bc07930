/*
 * conformance_swaps.c
 *		Conformance, contract 4: the swap of 16 bits, where it is offered, and its refusal where it is not.
 */
#define _GNU_SOURCE 1
#include <string.h>

#include "conformance.h"

#define SWAPPED_LOCK_WORD 200u
#define FIRST_WORD 0x0123456789abcdefull
#define SWAP_ROUNDS 20000u
/* Lanes 0 to 2 have a process each; lane 3 is a lock that two more take. */
#define OWNERS 3
#define CONTENDERS 2

/* A channel that has the operation; else the test is skipped. */
static TestChannel
open_swapping_channel(void)
{
	TestChannel channel = open_channel();

	if ((fabric_capabilities(channel.endpoint)->flags & FABRIC_CAP_MASKED_SWAP) == 0)
	{
		channel_close(&channel);
		skip();
	}
	return channel;
}

static uint64_t
with_lane(uint64_t word, uint32_t lane, uint64_t value)
{
	uint32_t shift = lane * FABRIC_LANE_BITS;

	return (word & ~((uint64_t) FABRIC_LANE_MAX << shift)) | value << shift;
}

static uint64_t
lane_of(uint64_t word, uint32_t lane)
{
	return word >> lane * FABRIC_LANE_BITS & FABRIC_LANE_MAX;
}

/* Executes one atomic and returns what it found. */
static uint64_t
run_atomic(TestChannel *channel, FabricOp op)
{
	assert_int_equal(fabric_execute(channel->endpoint, &op, 1), FABRIC_OK);
	return op.result;
}

/* Sets a word by swaps, in either region. */
static void
set_word(TestChannel *channel, FabricRegion region, uint64_t offset, uint64_t value)
{
	uint64_t old = run_atomic(channel, op_fetch_add(region, offset, 0));

	assert_true(run_atomic(channel, op_compare_swap(region, offset, old, value)) == old);
}

static void
swap_lanes(TestChannel *channel, FabricRegion region, uint64_t offset)
{
	uint64_t word = FIRST_WORD;

	set_word(channel, region, offset - 8, FIRST_WORD);
	set_word(channel, region, offset, FIRST_WORD);
	set_word(channel, region, offset + 8, FIRST_WORD);
	for (uint8_t lane = 0; lane < FABRIC_LANES; lane++)
	{
		uint64_t values[] = {lane_of(word, lane), 0x8001, 0, 0xffff, 0xff00, 0x00ff};

		for (size_t i = 0; i + 1 < sizeof(values) / sizeof(values[0]); i++)
		{
			/* Another value, though the neighbors have it, changes nothing. */
			assert_true(run_atomic(channel,
			                       op_masked_swap(region, offset, lane,
			                                      lane_of(word, (lane + 1) % FABRIC_LANES), 0x1234)) == word);
			assert_true(run_atomic(channel, op_masked_swap(region, offset, lane, values[i], values[i + 1])) ==
			            word);
			word = with_lane(word, lane, values[i + 1]);
			assert_true(run_atomic(channel, op_fetch_add(region, offset, 0)) == word);
		}
	}
	assert_true(run_atomic(channel, op_fetch_add(region, offset - 8, 0)) == FIRST_WORD);
	assert_true(run_atomic(channel, op_fetch_add(region, offset + 8, 0)) == FIRST_WORD);
	for (uint64_t at = offset - 8; at <= offset + 8; at += 8)
		set_word(channel, region, at, 0);
}

void
test_masked_swap(void **state)
{
	TestChannel channel = open_swapping_channel();

	(void) state;
	clear_stripe(&channel, 0);
	swap_lanes(&channel, FABRIC_NODES, stripe_offset(0) + 64);
	swap_lanes(&channel, FABRIC_LOCKS, SWAPPED_LOCK_WORD * 8);
	channel_close(&channel);
}

void
test_masked_swap_range(void **state)
{
	TestChannel channel = open_swapping_channel();
	uint64_t locks = fabric_capabilities(channel.endpoint)->region_bytes[FABRIC_LOCKS];
	uint64_t nodes = fabric_capabilities(channel.endpoint)->region_bytes[FABRIC_NODES];
	const FabricOp bad[] = {
		op_masked_swap(FABRIC_NODES, stripe_offset(0), FABRIC_LANES, 0, 1),
		op_masked_swap(FABRIC_NODES, stripe_offset(0), 255, 0, 1),
		op_masked_swap(FABRIC_NODES, stripe_offset(0), 0, FABRIC_LANE_MAX + 1, 1),
		op_masked_swap(FABRIC_NODES, stripe_offset(0), 0, 0, FABRIC_LANE_MAX + 1),
		op_masked_swap(FABRIC_NODES, stripe_offset(0), 3, 0, UINT64_MAX),
		op_masked_swap(FABRIC_NODES, stripe_offset(0) + 2, 0, 0, 1),
		op_masked_swap(FABRIC_NODES, stripe_offset(0) + 4, 0, 0, 1),
		op_masked_swap(FABRIC_NODES, nodes, 0, 0, 1),
		op_masked_swap(FABRIC_LOCKS, locks, 0, 0, 1),
		op_masked_swap(FABRIC_LOCKS, 6, 0, 0, 1),
	};
	FabricOp short_one = op_masked_swap(FABRIC_NODES, stripe_offset(0), 0, 0, 1);
	uint64_t word = 1;

	(void) state;
	clear_stripe(&channel, 0);
	short_one.length = 2;
	for (size_t i = 0; i <= sizeof(bad) / sizeof(bad[0]); i++)
	{
		FabricOp ops[] = {op_write(stripe_offset(0), &word, 8),
		                  i < sizeof(bad) / sizeof(bad[0]) ? bad[i] : short_one};

		assert_int_equal(fabric_execute(channel.endpoint, ops, 2), FABRIC_RANGE);
	}
	{
		/* It is an atomic: no WRITE follows it. */
		FabricOp ops[] = {op_masked_swap(FABRIC_NODES, stripe_offset(0), 0, 0, 1),
		                  op_write(stripe_offset(0) + 8, &word, 8)};

		assert_int_equal(fabric_execute(channel.endpoint, ops, 2), FABRIC_PROTOCOL);
	}
	channel_read(&channel, stripe_offset(0), &word, 8);
	assert_true(word == 0);
	/* The last lane of the last lock word. */
	assert_true(run_atomic(&channel, op_masked_swap(FABRIC_LOCKS, locks - 8, 3, 0, FABRIC_LANE_MAX)) == 0);
	assert_true(run_atomic(&channel, op_masked_swap(FABRIC_LOCKS, locks - 8, 3, FABRIC_LANE_MAX, 0)) ==
	            0xffffull << 48);
	channel_close(&channel);
}

void
test_masked_swap_order(void **state)
{
	TestChannel channel = open_swapping_channel();
	uint64_t word = FIRST_WORD;
	uint64_t found[3];
	FabricOp ops[] = {
		op_write(stripe_offset(0), &word, 8),
		op_masked_swap(FABRIC_NODES, stripe_offset(0), 1, 0x89ab, 0x1111),
		op_read(stripe_offset(0), &found[0], 8),
		op_masked_swap(FABRIC_NODES, stripe_offset(0), 1, 0x89ab, 0x2222),
		op_read(stripe_offset(0), &found[1], 8),
		op_fetch_add(FABRIC_NODES, stripe_offset(0), 1ull << 48),
		op_masked_swap(FABRIC_NODES, stripe_offset(0), 3, 0x0124, 0),
		op_compare_swap(FABRIC_NODES, stripe_offset(0), 0x000045671111cdefull, 5),
		op_masked_swap(FABRIC_NODES, stripe_offset(0), 0, 5, 6),
		op_read(stripe_offset(0), &found[2], 8),
	};

	(void) state;
	for (int round = 0; round < 20; round++)
	{
		memset(found, 0, sizeof(found));
		assert_int_equal(fabric_execute(channel.endpoint, ops, (int) (sizeof(ops) / sizeof(ops[0]))),
		                 FABRIC_OK);
		assert_true(ops[1].result == FIRST_WORD);
		/* What follows a failed one runs all the same. */
		assert_true(ops[3].result == 0x012345671111cdefull && found[0] == ops[3].result);
		assert_true(found[1] == 0x012345671111cdefull && ops[5].result == found[1]);
		assert_true(ops[6].result == 0x012445671111cdefull);
		assert_true(ops[7].result == 0x000045671111cdefull && ops[8].result == 5 && found[2] == 6);
	}
	channel_close(&channel);
}

typedef struct SharedWord
{
	uint64_t cluster;
	uint32_t incarnation;
	uint32_t rounds;
} SharedWord;

/* Counts the own lane up: whatever the neighbors do, none of its swaps fails. */
static void
count_own_lane(TestChannel *channel, uint8_t lane, uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds; i++)
	{
		FabricOp swaps[] = {op_masked_swap(FABRIC_LOCKS, SWAPPED_LOCK_WORD * 8, lane, i, i + 1),
		                    op_masked_swap(FABRIC_NODES, stripe_offset(1), lane, i, i + 1)};

		CHECK(fabric_execute(channel->endpoint, swaps, 2) == FABRIC_OK);
		CHECK(lane_of(swaps[0].result, lane) == i && lane_of(swaps[1].result, lane) == i);
	}
}

/* Takes the lock in the last lane, counts a word of node memory that it protects, and gives it back. */
static void
count_under_lock(TestChannel *channel, uint64_t me, uint32_t rounds)
{
	uint64_t lock = SWAPPED_LOCK_WORD * 8;
	uint64_t counted;

	for (uint32_t i = 0; i < rounds;)
	{
		FabricOp take[] = {op_masked_swap(FABRIC_LOCKS, lock, 3, 0, me),
		                   op_read(stripe_offset(2), &counted, 8)};
		FabricOp give[] = {op_write(stripe_offset(2), &counted, 8),
		                   op_masked_swap(FABRIC_LOCKS, lock, 3, me, 0)};

		CHECK(fabric_execute(channel->endpoint, take, 2) == FABRIC_OK);
		if (lane_of(take[0].result, 3) != 0)
			continue;
		counted++;
		CHECK(fabric_execute(channel->endpoint, give, 2) == FABRIC_OK);
		CHECK(lane_of(give[1].result, 3) == me);
		i++;
	}
}

static void
swap_beside_others(void *argument, int number)
{
	const SharedWord *shared = argument;
	TestChannel channel;

	channel_open(&channel, suite.address, shared->cluster, shared->incarnation);
	if (number < OWNERS)
		count_own_lane(&channel, (uint8_t) number, shared->rounds);
	else
		count_under_lock(&channel, (uint64_t) number, shared->rounds);
	channel_close(&channel);
}

void
test_masked_swap_neighbors(void **state)
{
	TestChannel channel = open_swapping_channel();
	SharedWord shared = {.rounds = chain_rounds(SWAP_ROUNDS)};
	uint64_t counted, word, lanes = 0;

	(void) state;
	if (shared.rounds == 0)
		shared.rounds = 1;
	shared.cluster = new_cluster(&shared.incarnation);
	clear_stripe(&channel, 1);
	clear_stripe(&channel, 2);
	run_processes(OWNERS + CONTENDERS, swap_beside_others, &shared);
	for (uint32_t lane = 0; lane < OWNERS; lane++)
		lanes = with_lane(lanes, lane, shared.rounds);
	channel_read(&channel, stripe_offset(1), &word, 8);
	channel_read(&channel, stripe_offset(2), &counted, 8);
	assert_true(word == lanes);
	assert_int_equal(counted, (uint64_t) CONTENDERS * shared.rounds);
	assert_true(run_atomic(&channel, op_compare_swap(FABRIC_LOCKS, SWAPPED_LOCK_WORD * 8, lanes, 0)) ==
	            lanes);
	channel_close(&channel);
}

/* Where it is not offered it is refused before anything happens, and the channel is as good as before. */
void
test_masked_swap_not_offered(void **state)
{
	TestChannel channel = open_channel();
	uint64_t word = 7;
	uint64_t ticket;
	FabricOp ops[] = {op_write(stripe_offset(0), &word, 8),
	                  op_masked_swap(FABRIC_NODES, stripe_offset(0), 0, 0, 1)};
	const FabricCapabilities *capabilities = fabric_capabilities(channel.endpoint);

	(void) state;
	if ((capabilities->flags & FABRIC_CAP_MASKED_SWAP) != 0)
	{
		assert_string_equal(capabilities->no_masked_swap, "");
		channel_close(&channel);
		skip();
	}
	clear_stripe(&channel, 0);
	assert_int_equal(fabric_execute(channel.endpoint, ops, 2), FABRIC_NOT_SUPPORTED);
	assert_int_equal(fabric_post(channel.endpoint, ops, 2, &ticket), FABRIC_NOT_SUPPORTED);
	channel_read(&channel, stripe_offset(0), &word, 8);
	assert_true(word == 0);
	channel_close(&channel);
}

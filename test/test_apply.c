/*
 * test_apply.c
 *		A READ that WRITEs are always in the way of: it takes the stripe in the end, and its record says so.
 *
 * The memory segment is made of plain arrays, and whoever is in the way is this test.
 */
#include <string.h>

#include "support/testing.h"
#include "rdma/memory/apply.h"

#define WORDS (FABRIC_STRIPE_BYTES / 8)
#define CHANNEL 7u
#define OTHER 8u
#define SERIAL 5ull

static uint64_t nodes[WORDS];
static uint64_t stripe;
static uint8_t units[1];
static MemoryChannel record;
static const Memory memory = {.units = units, .stripes = &stripe, .nodes = (uint8_t *) nodes};
static const ApplyChannel channel = {.memory = &memory,
                                     .record = &record,
                                     .live = SERIAL << MEMORY_STATE_BITS | MEMORY_CHANNEL_LIVE,
                                     .idle = SERIAL << 1,
                                     .channel = CHANNEL};

static uint64_t found[WORDS];
static FabricOp operation;

/* A chain of one READ that was begun. */
static ApplyRun
begin_read(void)
{
	ApplyRun run = {.ops = &operation, .count = 1};

	stripe = 0;
	units[0] = 1;
	for (uint32_t i = 0; i < WORDS; i++)
		nodes[i] = i + 1;
	memset(found, 0, sizeof(found));
	record = (MemoryChannel){.state = channel.live, .active = channel.idle};
	operation = (FabricOp){
		.opcode = FABRIC_READ, .region = FABRIC_NODES, .length = FABRIC_STRIPE_BYTES, .buffer = found};
	assert_int_equal(apply_start(&channel, &run), APPLY_DONE);
	return run;
}

static uint64_t
take(void)
{
	uint64_t odd = 0;

	assert_true(stripe_try_take(&stripe, OTHER, &odd));
	return odd;
}

/* As many WRITEs in its way as it lets pass; the last one's stripe word is odd still. */
static uint64_t
overtake(ApplyRun *run)
{
	uint64_t odd = 0;

	for (uint32_t i = 1; i <= APPLY_READ_ATTEMPTS; i++)
	{
		odd = take();
		/* One that stays is one. */
		for (int looks = 0; looks < 3; looks++)
		{
			assert_int_equal(apply_steps(&channel, run), APPLY_STRIPE_TAKEN);
			assert_int_equal(run->overtaken, i);
			assert_true(run->awaited == odd && run->stripe == &stripe);
			if (i == APPLY_READ_ATTEMPTS)
				return odd;
		}
		assert_true(record.intent == 0 && record.active == channel.idle);
		stripe_release(&stripe, odd);
	}
	return odd;
}

static void
test_overtaken_read_takes_the_stripe(void **state)
{
	const uint64_t intent = memory_intent(0, FABRIC_STRIPE_BYTES) | MEMORY_INTENT_READ;
	ApplyRun run = begin_read();
	uint64_t odd = overtake(&run);

	/* From now on it is one that changes, and says what its death would leave: nothing to be written. */
	assert_int_equal(apply_steps(&channel, &run), APPLY_STRIPE_TAKEN);
	assert_true(run.active && record.active == (channel.idle | MEMORY_ACTIVE_BUSY));
	assert_true(record.intent == intent);
	assert_true(stripe == odd);
	stripe_release(&stripe, odd);
	/* Its own look at a free stripe is enough again. */
	assert_int_equal(apply_steps(&channel, &run), APPLY_DONE);
	assert_memory_equal(found, nodes, sizeof(nodes));
	apply_leave(&channel, &run);
	assert_true(record.active == channel.idle);
}

/* The same without a free moment: the stripe is free when it is taken, and not before. */
static void
test_read_as_writer(void **state)
{
	ApplyRun run = begin_read();
	uint64_t odd = overtake(&run);

	stripe_release(&stripe, odd);
	assert_int_equal(apply_contended_read(&channel, &run, &operation), APPLY_DONE);
	assert_memory_equal(found, nodes, sizeof(nodes));
	/* Taken once and given back, with nothing left in the record. */
	assert_true(stripe == stripe_next_even(odd) + 2);
	assert_true(record.intent == 0);
	assert_true(record.active == (channel.idle | MEMORY_ACTIVE_BUSY));
	run.next = 1;
	apply_leave(&channel, &run);
	assert_true(record.active == channel.idle && record.intent == 0);
}

/* A channel that was killed meanwhile takes nothing and says nothing. */
static void
test_dead_channel_takes_no_stripe(void **state)
{
	ApplyRun run = begin_read();
	uint64_t odd = overtake(&run);

	record.state = SERIAL << MEMORY_STATE_BITS | MEMORY_CHANNEL_KILLED;
	assert_int_equal(apply_steps(&channel, &run), APPLY_FENCED);
	stripe_release(&stripe, odd);
	assert_int_equal(apply_contended_read(&channel, &run, &operation), APPLY_FENCED);
	assert_true(stripe == stripe_next_even(odd));
	assert_true(record.intent == 0 && record.active == channel.idle);
	assert_false(run.active);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_overtaken_read_takes_the_stripe),
		cmocka_unit_test(test_read_as_writer),
		cmocka_unit_test(test_dead_channel_takes_no_stripe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

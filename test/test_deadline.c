/*
 * test_deadline.c
 *		Operations that meet no answers: their waits share one deadline, and what others break goes on within it.
 *
 * Time is a word of this test, which the tree is lent as its clock.
 */
#include <stdlib.h>
#include <string.h>

#include "rdma/base/transport.h"
#include "support/tree_fixture.h"
#include "tree/lock/lock.h"

#define MS 1000000ull
#define OPERATION_MS 10000

/* ---- the fabric's half: how long a wait may last ---- */

static uint64_t silence;

/* The deadline of a wait that begins now, `after_ms` after the first one: what is left to it. */
static uint64_t
left_ms(Fabric *fabric, FabricWait wait, uint64_t after_ms, uint64_t *latest)
{
	uint64_t now = fabric_now();
	uint64_t deadline;

	/* The clock begins with the machine: a silence of minutes would have begun before it on one that was just started. */
	assert_true(now > after_ms * MS);
	silence = now - after_ms * MS;
	deadline = fabric_deadline(fabric, wait);
	/* What the test itself took is between the two. */
	*latest = (deadline - now) / MS;
	return (deadline - fabric_now()) / MS;
}

static void
test_shares(void **state)
{
	static const struct
	{
		FabricWait wait;
		uint64_t after_ms;
		uint64_t left_ms;
	} cases[] = {
		{FABRIC_WAIT_CHAIN, 0, 500},     {FABRIC_WAIT_CONNECT, 0, 1000},  {FABRIC_WAIT_CALL, 0, 500},
		{FABRIC_WAIT_CONNECT, 500, 500}, {FABRIC_WAIT_CHAIN, 600, 200},   {FABRIC_WAIT_CALL, 600, 200},
		{FABRIC_WAIT_CHAIN, 990, 62},    {FABRIC_WAIT_CONNECT, 990, 125}, {FABRIC_WAIT_CALL, 9000, 125},
	};
	FabricOptions options = {.operation_timeout_ms = 500, .connect_timeout_ms = 1000, .silence = &silence};
	Fabric *fabric;

	assert_int_equal(fabric_open(&options, &fabric), FABRIC_OK);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		uint64_t latest;
		uint64_t least = left_ms(fabric, cases[i].wait, cases[i].after_ms, &latest);

		assert_in_range(cases[i].left_ms, least, latest + 1);
	}
	/* The first wait starts the clock, and the end of it is the same for all. */
	silence = 0;
	assert_true(fabric_deadline(fabric, FABRIC_WAIT_CONNECT) == silence + 1000 * MS);
	assert_true(silence != 0);
	fabric_close(fabric);
}

/* ---- the tree's half: what goes on, and what ends ---- */

static uint64_t clock_us;
static uint64_t step_us; /* that each look at the clock takes */
static int losses;       /* chains and calls that are still to be lost, one after the other */
static const FabricTransport *below;
static FabricTransport losing; /* the endpoint's transport, but for those losses */

static uint64_t
own_clock(void *argument)
{
	return clock_us += step_us;
}

static FabricStatus
lose_execute(FabricEndpoint *endpoint, FabricOp *ops, int count)
{
	return losses > 0 ? losses--, FABRIC_LOST : below->execute(endpoint, ops, count);
}

static FabricStatus
lose_call(FabricEndpoint *endpoint, uint16_t method, const void *request, uint32_t request_bytes, void *reply,
          uint32_t *reply_bytes)
{
	return losses > 0  ? losses--,
	       FABRIC_LOST : below->call(endpoint, method, request, request_bytes, reply, reply_bytes);
}

/* From now on so many chains and calls are lost, and each look at the clock takes so long. */
static void
begin_losses(int count, uint64_t step)
{
	TreeClientOptions *options = &client.tree->options;

	options->environment.now_us = own_clock;
	options->operation_timeout_ms = OPERATION_MS;
	options->silence = &silence;
	silence = 0;
	clock_us = 1000000;
	step_us = step;
	losses = count;
	below = client.endpoints[0]->transport;
	losing = *below;
	losing.execute = lose_execute;
	losing.call = lose_call;
	client.endpoints[0]->transport = &losing;
}

static uint64_t
resets(void)
{
	FabricCounters counters;

	fabric_counters(client.endpoints[0], &counters);
	return counters.resets;
}

/* A tree of 500 entries; the body inserts another. */
static void
with_losses(void (*body)(Tree *tree))
{
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);
	const TreeClientOptions before = client.tree->options;
	WalkResult result;

	for (uint32_t tid = 0; tid < 500; tid++)
	{
		TreeKey key = number_key(scramble(tid), tid);

		must_insert(tree, &key, false);
	}
	body(tree);
	client.endpoints[0]->transport = below;
	client.tree->options.environment = before.environment;
	client.tree->options.operation_timeout_ms = before.operation_timeout_ms;
	client.tree->options.silence = before.silence;
	verify_tids(tree, 501, &result);
	walk_free(&result);
	tree_close(tree);
}

static TreeStatus
insert_last(Tree *tree)
{
	TreeKey key = number_key(scramble(500), 500);
	bool hit;

	return tree_insert(tree, &key, &wal, &hit);
}

/*
 * On a channel that many share, the resets of others lose chain after chain, and so do calls: as long as there is time, that
 * is no error, whatever the chain is for.
 */
static void
lost_in_a_row(Tree *tree)
{
	uint64_t before = resets();
	LockHandle lock;
	uint64_t image[NODE_MAX_BYTES / 8];
	TreeRecord record;

	begin_losses(40, 1000);
	assert_int_equal(insert_last(tree), TREE_OK);
	assert_int_equal(losses, 0);
	assert_int_equal(resets() - before, 40);
	assert_int_equal(silence, 0);

	assert_int_equal(lock_and_read(tree, tree->root, NODE_MAX_BYTES, image, &lock), TREE_OK);
	losses = 40;
	assert_int_equal(lock_release(tree, &lock, tree->root, NULL, 0), TREE_RETRY);
	assert_int_equal(losses, 0);
	assert_int_equal(instance.environment->slots[0].holds, 0);

	losses = 40;
	test_tree_create(&client, &narrow, &record);
	assert_int_equal(losses, 0);
	assert_int_equal(resets() - before, 120);
	assert_int_equal(silence, 0);
}

/* A memory node that can be connected to and answers nothing: the deadline holds for all attempts together. */
static void
never_answered(Tree *tree)
{
	uint64_t before = resets();
	TreeRecord record;

	begin_losses(INT32_MAX, 1000000);
	assert_int_equal(insert_last(tree), TREE_UNREACHABLE);
	/* Each attempt looks at the clock, a second each; more than one look of them may be. */
	assert_in_range(resets() - before, 3, OPERATION_MS / 1000 + 2);
	assert_int_equal(instance.environment->slots[0].holds, 0);
	assert_int_equal(tree_client_trouble(client.tree), 1);
	assert_int_equal(silence, 0);

	before = resets();
	memset(&record, 0, sizeof(record));
	record.format = narrow;
	assert_int_equal(tree_create(client.tree, &record), TREE_UNREACHABLE);
	assert_in_range(resets() - before, 3, OPERATION_MS / 1000 + 2);
	assert_int_equal(tree_client_trouble(client.tree), 1);

	losses = 0;
	assert_int_equal(insert_last(tree), TREE_OK);
}

static void
test_lost_in_a_row(void **state)
{
	with_losses(lost_in_a_row);
}

static void
test_never_answered(void **state)
{
	with_losses(never_answered);
}

/* What the operation has waited for already counts for the wait for a lock, too. */
static void
test_lock_wait(void **state)
{
	TestClient other;
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);
	Tree *theirs;
	LockHandle lock, mine;
	uint64_t image[NODE_MAX_BYTES / 8];
	uint64_t theirs_image[NODE_MAX_BYTES / 8];
	uint32_t bytes = tree->geometry.leaf_bytes;
	uint32_t sleeps = instance.environment->slots[0].sleeps;
	uint32_t patience = client.tree->options.operation_timeout_ms;

	test_client_open(&other, &instance, 1);
	theirs = open_tree(&other, &record);
	assert_int_equal(lock_and_read(theirs, theirs->root, bytes, theirs_image, &lock), TREE_OK);
	/* It waits since the machine's first microsecond. */
	*client.tree->options.silence = 1000;
	client.tree->options.operation_timeout_ms = 1;
	assert_int_equal(lock_and_read(tree, tree->root, bytes, image, &mine), TREE_TIMED_OUT);
	assert_int_equal(instance.environment->slots[0].sleeps, sleeps);
	assert_int_equal(*client.tree->options.silence, 0);
	client.tree->options.operation_timeout_ms = patience;
	assert_int_equal(lock_release(theirs, &lock, theirs->root, NULL, 0), TREE_OK);
	assert_int_equal(lock_and_read(tree, tree->root, bytes, image, &mine), TREE_OK);
	assert_int_equal(lock_release(tree, &mine, tree->root, NULL, 0), TREE_OK);
	tree_close(theirs);
	tree_close(tree);
	assert_int_equal(test_client_close(&other), TREE_OK);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_lost_in_a_row),
		cmocka_unit_test(test_never_answered),
		cmocka_unit_test(test_lock_wait),
	};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}

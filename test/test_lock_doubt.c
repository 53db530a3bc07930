/*
 * test_lock_doubt.c
 *		HOCL when something fails: holders that die or are fenced, indeterminate chains, holds that are stranded.
 */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "support/testing.h"
#include "support/lock_fixture.h"
#include "../rdma/fault.h"

static void
die_holding_body(uint32_t slot)
{
	LockUser user;

	user_open(&user, &instance, slot, 0);
	CHILD_ASSERT(user_lock(&user) == TREE_OK);
	kill(getpid(), SIGKILL);
}

/* An instance that is killed while it holds: others wait until it is fenced, and then have the lock. */
static void
test_death_and_attach(void **state)
{
	LockUser user;
	pid_t child;
	int status;

	locks_open(16384, true);
	child = start_child(1, die_holding_body);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	user_open(&user, &other_instance, 0, 0);
	user.client.tree->options.operation_timeout_ms = 100;
	assert_int_equal(user_lock(&user), TREE_TIMED_OUT);
	test_instance_attach(&instance);
	assert_int_equal(user_lock(&user), TREE_OK);
	assert_int_equal(user_release(&user), TREE_OK);
	assert_int_equal(user_close(&user), TREE_OK);

	/* Its own next incarnation has it too. */
	user_open(&user, &instance, 0, 0);
	assert_int_equal(user_lock(&user), TREE_OK);
	assert_int_equal(user_release(&user), TREE_OK);
	assert_int_equal(user_close(&user), TREE_OK);
	fixture_close();
}

/* A holder that was fenced meanwhile: its unlock tells it. */
static void
test_fenced_holder(void **state)
{
	LockUser user;
	TestInstance successor;
	TreeStatus status;

	locks_open(16384, false);
	user_open(&user, &instance, 0, 0);
	assert_int_equal(user_lock(&user), TREE_OK);
	/* Same cluster, shared memory of its own: a takeover. */
	test_instance_start(&successor, &nodes[0], 1, 4, MEGABYTE);
	successor.cluster[0] = instance.cluster[0];
	successor.cluster[1] = instance.cluster[1];
	test_instance_attach(&successor);
	status = user_write(&user, 99);
	assert_int_equal(status, TREE_FENCED);
	assert_int_equal(instance.environment->slots[0].holds, 0);
	assert_int_equal(user_lock(&user), TREE_FENCED);
	(void) user_close(&user);

	user_open(&user, &successor, 0, 0);
	assert_int_equal(user_lock(&user), TREE_OK);
	assert_int_not_equal(user.image[HEADER_LSN], 99);
	assert_int_equal(user_release(&user), TREE_OK);
	assert_int_equal(user_close(&user), TREE_OK);
	test_instance_stop(&successor);
	fixture_close();
}

/* The word under index 0, when there is but one. */
static uint64_t
only_word(LockUser *user)
{
	uint64_t word = 1;
	FabricOp op;

	memset(&op, 0, sizeof(op));
	op.opcode = FABRIC_READ;
	op.region = FABRIC_LOCKS;
	op.length = 8;
	op.buffer = &word;
	assert_int_equal(fabric_execute(user->client.endpoints[0], &op, 1), FABRIC_OK);
	return word;
}

/* The same by a connection of its own. */
static uint64_t
only_word_of(void)
{
	LockUser user;
	uint64_t word;

	user_open(&user, &instance, 14, 0);
	word = only_word(&user);
	assert_int_equal(user_close(&user), TREE_OK);
	return word;
}

/*
 * Each operation of lock, write, unlock is lost once, and so is what follows in its chain; or it is applied late, when
 * the channel is reset.  In the end the write is there, the word is free, and nothing lands afterwards.
 */
static void
test_doubt_is_ended(void **state)
{
	LockUser user;
	uint64_t value = 0;

	locks_open(1, false);
	user_open(&user, &instance, 0, 0);
	for (int late = 0; late < 2; late++)
	{
		bool met = true;

		for (uint64_t n = 1; met; n++)
		{
			FabricFaultPlan plan = {.seed = n};
			int attempts = 0;
			TreeStatus status;

			value++;
			assert_true(n < 20);
			if (late)
				plan.late_operation = n;
			else
				plan.fail_operation = n;
			assert_int_equal(fabric_fault_set(user.client.endpoints[0], &plan), FABRIC_OK);
			do
			{
				assert_true(++attempts <= 3);
				status = user_lock(&user);
				if (status == TREE_OK)
					status = user_write(&user, value);
			} while (status == TREE_RETRY);
			assert_int_equal(status, TREE_OK);
			met = fabric_fault_operations(user.client.endpoints[0]) >= n;
			fabric_fault_deliver(user.client.endpoints[0]);
			assert_int_equal(fabric_fault_set(user.client.endpoints[0], NULL), FABRIC_OK);
			assert_int_equal(only_word(&user), 0);
			assert_int_equal(instance.environment->slots[0].holds, 0);
			assert_int_equal(user_lock(&user), TREE_OK);
			assert_int_equal(user.image[HEADER_LSN], value);
			assert_int_equal(user_release(&user), TREE_OK);
		}
	}
	assert_int_equal(user_close(&user), TREE_OK);
	fixture_close();
}

/* A chain whose doubt cannot be ended strands the hold; the record lets lock_clean_up() end it. */
static void
test_leaked_lock(void **state)
{
	LockUser user;
	FabricFaultPlan plan = {.seed = 1, .fail_operation = 2};
	FabricEndpoint *endpoint;
	pid_t child;

	locks_open(1, false);
	instance.scratch[LATE_GATE] = 1;
	child = start_child(1, late_body);
	test_await(&instance, LATE_READY, 1);
	user_open(&user, &instance, 0, 0);
	assert_int_equal(user_lock(&user), TREE_OK);
	endpoint = user.client.endpoints[0];
	/* {WRITE, unlock}: the unlock is lost, and no daemon is there to reset the channel. */
	assert_int_equal(fabric_fault_set(endpoint, &plan), FABRIC_OK);
	test_node_kill(&nodes[0]);
	assert_int_equal(user_write(&user, 5), TREE_UNREACHABLE);
	assert_int_equal(instance.environment->slots[0].holds, 0);
	assert_int_equal(user_lock(&user), TREE_UNREACHABLE);
	/* Another process of the instance does not get in. */
	test_say(&instance, LATE_READY, 2);
	test_say(&instance, LATE_GATE, 0);
	join_child(child);

	/* With the memory node back, leaving frees the word, and the lock is to be had without fencing. */
	test_node_restart(&nodes[0]);
	assert_int_not_equal(only_word_of(), 0);
	assert_int_equal(lock_clean_up(user.client.tree), TREE_OK);
	assert_int_equal(only_word_of(), 0);
	assert_int_equal(user_lock(&user), TREE_OK);
	assert_int_equal(user.image[HEADER_LSN], 5);
	assert_int_equal(user_release(&user), TREE_OK);
	assert_int_equal(user_close(&user), TREE_OK);
	fixture_close();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_death_and_attach),
		cmocka_unit_test(test_fenced_holder),
		cmocka_unit_test(test_doubt_is_ended),
		cmocka_unit_test(test_leaked_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

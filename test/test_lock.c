/*
 * test_lock.c
 *		HOCL: exclusion within and between instances, the queue, handover.
 *
 * The nodes that are locked are real leaves of real trees; what is counted under the lock is the leaf's LSN word.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/testing.h"
#include "support/lock_fixture.h"

#define PROCESSES 6
#define ROUNDS 2000

/* Word of the scratch: how many processes are ready. */
#define READY 202

/* Holds the lock now and then so long that the others surely queue up behind it. */
static void
linger(int round)
{
	if (round % 64 == 0)
		test_sleep_us(1000);
}

/* ---- exclusion ---- */

static void
count_body(int number, void *argument)
{
	bool second = other_instance.shared != NULL && number % 2 == 1;
	TestInstance *own = second ? &other_instance : &instance;
	LockUser user;

	user_open(&user, own, (uint32_t) number, 0);
	test_meet(&instance, READY, PROCESSES);
	for (int i = 0; i < ROUNDS; i++)
	{
		CHILD_ASSERT(user_lock(&user) == TREE_OK);
		linger(i);
		CHILD_ASSERT(own->environment->slots[number].holds == 1);
		CHILD_ASSERT(user_write(&user, user.image[HEADER_LSN] + 1) == TREE_OK);
		CHILD_ASSERT(own->environment->slots[number].holds == 0);
	}
	CHILD_ASSERT(user_close(&user) == TREE_OK);
}

/* The tree's counters over all processes of the instance. */
static TreeCounters
counters_of(TestInstance *of, uint64_t *lsn)
{
	TreeCounters counters;
	LockUser user;

	user_open(&user, of, 15, 0);
	tree_counters(user.tree, &counters);
	assert_int_equal(user_lock(&user), TREE_OK);
	*lsn = user.image[HEADER_LSN];
	assert_int_equal(user_release(&user), TREE_OK);
	assert_int_equal(user_close(&user), TREE_OK);
	return counters;
}

/* A memory node that is about to stop is waited for by those who hold a lock, and gives no more of them. */
static void
test_no_lock_while_draining(void **state)
{
	LockUser first, second;

	locks_open(16384, false);
	test_node_terminate(&nodes[0]);
	nodes[0].drain_ms = 60000;
	test_node_restart(&nodes[0]);
	test_instance_attach(&instance);
	user_open(&first, &instance, 0, 0);
	user_open(&second, &instance, 1, 1);
	assert_int_equal(user_lock(&first), TREE_OK);
	test_node_drain(&nodes[0]);
	for (int i = 0; i < 6000 && !fabric_is_draining(second.client.endpoints[0]); i++)
		test_sleep_us(5000);
	assert_true(fabric_is_draining(second.client.endpoints[0]));
	assert_int_equal(user_lock(&second), TREE_UNREACHABLE);
	assert_non_null(strstr(tree_detail(second.client.tree), "shutting down"));
	assert_int_equal(user_write(&first, 7), TREE_OK);
	test_node_wait(&nodes[0]);

	test_node_restart(&nodes[0]);
	(void) user_close(&first);
	(void) user_close(&second);
	test_instance_attach(&instance);
	user_open(&first, &instance, 0, 0);
	assert_int_equal(user_lock(&first), TREE_OK);
	assert_true(first.image[HEADER_LSN] == 7);
	assert_int_equal(user_release(&first), TREE_OK);
	assert_int_equal(user_close(&first), TREE_OK);
	fixture_close();
}

static void
test_exclusion(void **state)
{
	TreeCounters counters;
	uint64_t lsn;

	locks_open(16384, false);
	assert_int_equal(test_processes(PROCESSES, count_body, NULL), 0);
	counters = counters_of(&instance, &lsn);
	assert_int_equal(lsn, PROCESSES * ROUNDS);
	/* Each lock was won or handed over, and no more than four times in a row. */
	assert_int_equal(counters.lock_acquisitions + counters.handovers, PROCESSES * ROUNDS);
	assert_true(counters.handovers <= counters.lock_acquisitions * HANDOVER_MAX);
	assert_true(counters.handovers > 0);
	assert_int_equal(counters.handover_images, counters.handovers);
	assert_int_equal(counters.lock_retries, 0);
	/* Won: lock and read, write (and unlock). Handed over: nothing, write. The unlock goes with the write but rarely. */
	assert_true(counters.round_trips >= 2 * counters.lock_acquisitions + counters.handovers);
	assert_true(counters.round_trips <= 3 * counters.lock_acquisitions + counters.handovers);
	fixture_close();
}

static void
test_exclusion_between_instances(void **state)
{
	TreeCounters first, second;
	uint64_t lsn;

	locks_open(16384, true);
	assert_int_equal(test_processes(PROCESSES, count_body, NULL), 0);
	first = counters_of(&instance, &lsn);
	second = counters_of(&other_instance, &lsn);
	assert_int_equal(lsn, PROCESSES * ROUNDS);
	assert_true(first.lock_retries + second.lock_retries > 0);
	fixture_close();
}

/* ---- the queue ---- */

/* Waits until the slot sleeps in the queue. */
static void
wait_queued(TestInstance *instance, uint32_t slot)
{
	uint64_t deadline = test_now_us() + TEST_PATIENCE_US;

	while (__atomic_load_n(&instance->environment->slots[slot].sleeps, __ATOMIC_ACQUIRE) == 0)
	{
		assert_true(test_now_us() < deadline);
		test_sleep_us(500);
	}
}

/* Locks once and notes its turn: scratch[0] counts, scratch[slot] is the turn, scratch[64 + slot] the round trips. */
static void
queue_body(uint32_t slot)
{
	uint64_t *scratch = instance.scratch;
	TreeCounters counters;
	LockUser user;

	user_open(&user, &instance, slot, (int) scratch[128 + slot]);
	CHILD_ASSERT(user_lock(&user) == TREE_OK);
	scratch[slot] = __atomic_add_fetch(&scratch[0], 1, __ATOMIC_ACQ_REL);
	CHILD_ASSERT(user_write(&user, user.image[HEADER_LSN] + 1) == TREE_OK);
	tree_client_counters(user.client.tree, &counters);
	scratch[64 + slot] = counters.round_trips;
	CHILD_ASSERT(user_close(&user) == TREE_OK);
}

#define QUEUED 8

/* First come, first served; five locks by one win, then the others; with the image one round trip each. */
static void
test_queue_and_handover(void **state)
{
	LockUser user;
	pid_t children[QUEUED];
	TreeCounters counters;
	uint64_t *scratch;
	uint64_t lsn;

	locks_open(16384, false);
	scratch = instance.scratch;
	user_open(&user, &instance, 0, 0);
	assert_int_equal(user_lock(&user), TREE_OK);
	for (uint32_t i = 0; i < QUEUED; i++)
	{
		children[i] = start_child(i + 1, queue_body);
		wait_queued(&instance, i + 1);
	}
	assert_int_equal(user_write(&user, 1), TREE_OK);
	for (uint32_t i = 0; i < QUEUED; i++)
		join_child(children[i]);
	assert_int_equal(user_close(&user), TREE_OK);
	for (uint32_t i = 0; i < QUEUED; i++)
	{
		bool won = (i + 1) % (HANDOVER_MAX + 1) == 0;

		assert_int_equal(scratch[i + 1], i + 1);
		/* The last of the queue finds nobody when it has written, as nobody was there when it looked. */
		assert_int_equal(scratch[64 + i + 1], won ? 2 : 1);
	}
	counters = counters_of(&instance, &lsn);
	assert_int_equal(lsn, QUEUED + 1);
	assert_int_equal(counters.lock_acquisitions, 2);
	assert_int_equal(counters.handovers, QUEUED - 1);
	assert_int_equal(counters.handover_images, QUEUED - 1);
	assert_int_equal(counters.lock_waits, QUEUED);
	fixture_close();
}

/* Two nodes under one word: the word is handed over, the image is not. */
static void
test_handover_of_another_node(void **state)
{
	LockUser user;
	pid_t child;

	locks_open(1, false);
	user_open(&user, &instance, 0, 0);
	assert_int_equal(user_lock(&user), TREE_OK);
	instance.scratch[128 + 1] = 1; /* the other tree */
	child = start_child(1, queue_body);
	wait_queued(&instance, 1);
	assert_int_equal(user_write(&user, 1), TREE_OK);
	join_child(child);
	/* READ, then WRITE with the unlock. */
	assert_int_equal(instance.scratch[64 + 1], 2);
	assert_int_equal(user_close(&user), TREE_OK);
	fixture_close();
}

static void
canceled_body(uint32_t slot)
{
	LockUser user;

	user_open(&user, &instance, slot, 0);
	CHILD_ASSERT(user_lock(&user) == TREE_STOPPED);
	CHILD_ASSERT(!user.lock.held);
	CHILD_ASSERT(instance.environment->slots[slot].holds == 0);
	CHILD_ASSERT(user_close(&user) == TREE_OK);
}

/* The second of three leaves the queue; the others get the lock, in order. */
static void
test_cancel_in_queue(void **state)
{
	LockUser user;
	TreeEnvironment environment;
	pid_t children[3];

	locks_open(16384, false);
	user_open(&user, &instance, 0, 0);
	environment = test_environment(&instance);
	for (int last = 0; last < 2; last++)
	{
		/* The one that leaves is in the middle, or the last one. */
		assert_int_equal(user_lock(&user), TREE_OK);
		memset(instance.scratch, 0, 64 * 8);
		memset(instance.environment->slots + 1, 0, 3 * sizeof(TestSlot));
		for (uint32_t i = 0; i < 3; i++)
		{
			children[i] = start_child(i + 1, i == 1 + (uint32_t) last ? canceled_body : queue_body);
			wait_queued(&instance, i + 1);
		}
		__atomic_store_n(&instance.environment->slots[2 + last].stop, 1, __ATOMIC_RELEASE);
		environment.wake(environment.argument, 2 + (uint32_t) last);
		join_child(children[1 + last]);
		assert_int_equal(user_release(&user), TREE_OK);
		join_child(children[0]);
		join_child(children[2 - last]);
		assert_int_equal(instance.scratch[1], 1);
		assert_int_equal(instance.scratch[3 - last], 2);
	}
	assert_int_equal(user_close(&user), TREE_OK);
	fixture_close();
}

/* Words of the scratch: the waiter asks whether to stop; it was chosen meanwhile. */
#define STOP_ASKED 203
#define STOP_CHOSEN 204

static TestInstance *stop_instance;

/* should_stop() of a waiter: yes, but only once it was made the owner. */
static bool
stop_when_chosen(void *argument)
{
	test_say(stop_instance, STOP_ASKED, 1);
	test_await(stop_instance, STOP_CHOSEN, 1);
	return true;
}

static void
chosen_body(uint32_t slot)
{
	LockUser user;

	user_open(&user, &instance, slot, 0);
	stop_instance = &instance;
	user.client.tree->options.environment.should_stop = stop_when_chosen;
	CHILD_ASSERT(user_lock(&user) == TREE_STOPPED);
	CHILD_ASSERT(!user.lock.held);
	CHILD_ASSERT(instance.environment->slots[slot].holds == 0);
	CHILD_ASSERT(user_lock(&user) == TREE_OK);
	CHILD_ASSERT(user_release(&user) == TREE_OK);
	CHILD_ASSERT(user_close(&user) == TREE_OK);
}

/*
 * A process that queues and does not go on before it is chosen, with the word or to win it; then all have the
 * lock.
 */
static void
choose(void (*body)(uint32_t slot))
{
	for (uint32_t handovers = 0; handovers <= HANDOVER_MAX; handovers += HANDOVER_MAX)
	{
		LockUser user;
		pid_t child;

		locks_open(16384, false);
		user_open(&user, &instance, 0, 0);
		assert_int_equal(user_lock(&user), TREE_OK);
		child = start_child(1, body);
		test_await(&instance, STOP_ASKED, 1);
		user.lock.handovers = handovers; /* at the limit the word is freed, and who is chosen has to win it */
		assert_int_equal(user_write(&user, 1), TREE_OK);
		test_say(&instance, STOP_CHOSEN, 1);
		join_child(child);
		assert_int_equal(user_lock(&user), TREE_OK);
		assert_int_equal(user.image[HEADER_LSN], 1);
		assert_int_equal(user_release(&user), TREE_OK);
		assert_int_equal(user_close(&user), TREE_OK);
		fixture_close();
	}
}

/* Stopped just when it was chosen: it takes what it was given and gives it up again. */
static void
test_cancel_when_chosen(void **state)
{
	choose(chosen_body);
}

/* Of a waiter: pauses since it slept last, and before it slept first; and how often it slept. */
static struct
{
	uint32_t since;
	uint32_t before_sleep;
	uint32_t sleeps;
} pauses;

static void
sleep_counted(void *argument, uint32_t slot, uint32_t milliseconds)
{
	if (pauses.sleeps++ == 0)
		pauses.before_sleep = pauses.since;
	pauses.since = 0;
}

/* In the last pause before it would sleep again it is chosen, and the wake-up is used up. */
static void
pause_until_chosen(void *argument)
{
	TestEnvironment *environment = argument;

	if (++pauses.since != pauses.before_sleep)
		return;
	(void) stop_when_chosen(argument);
	__atomic_store_n(&environment->slots[1].wakes, 0, __ATOMIC_RELEASE);
}

static void
paused_body(uint32_t slot)
{
	TreeEnvironment *environment;
	LockUser user;

	CHILD_ASSERT(slot == 1);
	user_open(&user, &instance, slot, 0);
	stop_instance = &instance;
	environment = &user.client.tree->options.environment;
	environment->pause = pause_until_chosen;
	environment->sleep = sleep_counted;
	CHILD_ASSERT(user_lock(&user) == TREE_OK);
	CHILD_ASSERT(pauses.before_sleep > 0 && pauses.sleeps == 1);
	CHILD_ASSERT(user_release(&user) == TREE_OK);
	CHILD_ASSERT(user_close(&user) == TREE_OK);
}

/* Who pauses looks once more before it sleeps. */
static void
test_pause_wakes(void **state)
{
	choose(paused_body);
}

/* Processes that are stopped at random moments, also just when they are chosen: no lock is lost, none is had twice. */
static void
storm_body(int number, void *argument)
{
	TestSlot *place = &instance.environment->slots[number];
	TreeEnvironment environment = test_environment(&instance);
	LockUser user;

	user_open(&user, &instance, (uint32_t) number, 0);
	test_meet(&instance, READY, PROCESSES);
	for (int i = 0; i < ROUNDS / 2; i++)
	{
		TreeStatus status = user_lock(&user);

		CHILD_ASSERT(status == TREE_OK || status == TREE_STOPPED);
		if (status == TREE_OK)
		{
			uint64_t next = user.image[HEADER_LSN] + 1;

			/* Somebody is stopped while we hold, or nobody. */
			uint32_t victim = (uint32_t) (next * 7 + (uint64_t) i) % (PROCESSES + 2);

			if (victim < PROCESSES)
			{
				__atomic_store_n(&instance.environment->slots[victim].stop, 1, __ATOMIC_RELEASE);
				environment.wake(environment.argument, victim);
			}
			linger(i);
			CHILD_ASSERT(user_write(&user, next) == TREE_OK);
			__atomic_fetch_add(&instance.scratch[0], 1, __ATOMIC_RELAXED);
		}
		else
			__atomic_fetch_add(&instance.scratch[1], 1, __ATOMIC_RELAXED);
		CHILD_ASSERT(place->holds == 0);
		__atomic_store_n(&place->stop, 0, __ATOMIC_RELEASE);
	}
	CHILD_ASSERT(user_close(&user) == TREE_OK);
}

static void
test_cancel_storm(void **state)
{
	uint64_t lsn;

	locks_open(16384, false);
	assert_int_equal(test_processes(PROCESSES, storm_body, NULL), 0);
	(void) counters_of(&instance, &lsn);
	assert_int_equal(lsn, instance.scratch[0]);
	assert_true(instance.scratch[1] > 0);
	fixture_close();
}

/* Deadlines hold against a holder of the same instance and of another one; the lock is had afterwards. */
static void
test_timeout(void **state)
{
	for (int two = 0; two < 2; two++)
	{
		LockUser user;

		locks_open(16384, two == 1);
		user_open(&user, &instance, 0, 0);
		assert_int_equal(user_lock(&user), TREE_OK);
		join_child(start_child(1, late_body));
		assert_int_equal(user_release(&user), TREE_OK);
		join_child(start_child(2, queue_body));
		assert_int_equal(user_close(&user), TREE_OK);
		fixture_close();
	}
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest threads[] = {
		cmocka_unit_test(test_exclusion),
		cmocka_unit_test(test_exclusion_between_instances),
		cmocka_unit_test(test_cancel_storm),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exclusion),
		cmocka_unit_test(test_exclusion_between_instances),
		cmocka_unit_test(test_queue_and_handover),
		cmocka_unit_test(test_handover_of_another_node),
		cmocka_unit_test(test_cancel_in_queue),
		cmocka_unit_test(test_cancel_when_chosen),
		cmocka_unit_test(test_pause_wakes),
		cmocka_unit_test(test_cancel_storm),
		cmocka_unit_test(test_timeout),
		cmocka_unit_test(test_no_lock_while_draining),
	};

	if (test_threads_wanted(argc, argv))
		return cmocka_run_group_tests(threads, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

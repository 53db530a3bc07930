/*
 * test_process.c
 *		Other processes: one is its number and its start time, and is gone as soon as it is a zombie.
 */
#define _GNU_SOURCE 1
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "support/testing.h"
#include "rdma/memory/process.h"
#include "support/fabric_process.h"

/* A child that waits for its end. */
static pid_t
start_sleeper(void)
{
	pid_t child = start_child();

	if (child == 0)
	{
		for (;;)
			pause();
	}
	return child;
}

/* The command may look like the fields behind it. */
static void
test_start_time(void **state)
{
	uint64_t mine = process_start_time((uint32_t) getpid());
	char name[16];

	assert_true(mine != 0);
	assert_int_equal(prctl(PR_GET_NAME, name), 0);
	assert_int_equal(prctl(PR_SET_NAME, "a) R 1 (b) 2 3"), 0);
	assert_true(process_start_time((uint32_t) getpid()) == mine);
	assert_int_equal(prctl(PR_SET_NAME, name), 0);
}

/* A later owner of the number started at another time. */
static void
test_open(void **state)
{
	uint32_t mine = (uint32_t) getpid();
	uint64_t start_time = process_start_time(mine);
	int handle = process_open(mine, start_time);

	assert_true(handle >= 0);
	assert_false(process_is_gone(handle));
	close(handle);
	assert_int_equal(process_open(mine, start_time + 1), -1);
	assert_int_equal(process_open(mine, 0), -1);
	assert_int_equal(process_open(0, 0), -1);
}

static void
test_end(void **state)
{
	pid_t child = start_sleeper();
	uint64_t start_time = process_start_time((uint32_t) child);
	int handle = process_open((uint32_t) child, start_time);
	siginfo_t end;

	assert_true(handle >= 0);
	assert_false(process_is_gone(handle));
	assert_true(process_kill(handle));
	/* A zombie is gone, and still has its number. */
	assert_int_equal(waitid(P_PID, (id_t) child, &end, WEXITED | WNOWAIT), 0);
	assert_true(process_is_gone(handle));
	assert_int_equal(wait_for_child(child), 128 + SIGKILL);
	assert_true(process_is_gone(handle));
	/* There is nothing left to be ended, nor to be found by the number. */
	assert_true(process_kill(handle));
	assert_int_equal(process_open((uint32_t) child, start_time), -1);
	assert_true(process_start_time((uint32_t) child) != start_time);
	close(handle);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start_time),
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

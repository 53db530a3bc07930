/*
 * lock_fixture.c
 *		See lock_fixture.h.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "testing.h"
#include "lock_fixture.h"

void
locks_open(uint32_t lock_words, bool two_instances)
{
	test_lock_words = lock_words;
	fixture_open(&(FixtureOptions){.node_bytes = 8 * MEGABYTE,
	                               .slots = 16,
	                               .trees = 2,
	                               .two_instances = two_instances,
	                               .no_client = true});
}

void
user_open(LockUser *user, TestInstance *of, uint32_t slot, int tree)
{
	memset(user, 0, sizeof(*user));
	test_client_open(&user->client, of, slot);
	if (tree_open(user->client.tree, records[tree].tree, records[tree].root, &narrow, NULL, NULL,
	              &user->tree) != TREE_OK)
		abort();
}

TreeStatus
user_close(LockUser *user)
{
	tree_close(user->tree);
	return test_client_close(&user->client);
}

TreeStatus
user_lock(LockUser *user)
{
	return lock_and_read(user->tree, user->tree->root, user->tree->geometry.leaf_bytes, user->image,
	                     &user->lock);
}

TreeStatus
user_write(LockUser *user, uint64_t value)
{
	FabricOp ops[2];

	memset(ops, 0, sizeof(ops));
	user->image[HEADER_LSN] = value;
	ops[0].opcode = FABRIC_WRITE;
	ops[0].length = 16;
	ops[0].offset = pointer_offset(user->tree->root) + HEADER_LSN * 8;
	ops[0].buffer = &user->image[HEADER_LSN];
	return lock_write_and_release(user->tree, &user->lock, ops, 1, user->tree->root, user->image,
	                              user->tree->geometry.leaf_bytes);
}

TreeStatus
user_release(LockUser *user)
{
	return lock_release(user->tree, &user->lock, user->tree->root, user->image,
	                    user->tree->geometry.leaf_bytes);
}

pid_t
start_child(uint32_t slot, void (*body)(uint32_t))
{
	pid_t child;

	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
	{
		body(slot);
		_exit(0);
	}
	return child;
}

void
join_child(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

void
late_body(uint32_t slot)
{
	uint64_t before;
	LockUser user;

	user_open(&user, other_instance.shared != NULL ? &other_instance : &instance, slot, 0);
	user.client.tree->options.operation_timeout_ms = 100;
	test_say(&instance, LATE_READY, 1);
	while (__atomic_load_n(&instance.scratch[LATE_GATE], __ATOMIC_ACQUIRE) != 0)
		test_sleep_us(500);
	before = test_now_us();
	CHILD_ASSERT(user_lock(&user) == TREE_TIMED_OUT);
	CHILD_ASSERT(test_now_us() - before >= 100000);
	CHILD_ASSERT(test_now_us() - before < TEST_PATIENCE_US);
	CHILD_ASSERT(instance.environment->slots[slot].holds == 0);
	if (instance.scratch[LATE_READY] != 2)
		CHILD_ASSERT(user_close(&user) == TREE_OK);
}

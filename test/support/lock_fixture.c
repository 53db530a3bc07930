/*
 * lock_fixture.c
 *		See lock_fixture.h.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "testing.h"
#include "lock_fixture.h"

static const TreeFormat narrow = {.cell_bytes = 16, .norm_bytes = 8, .lossless = true, .fill_percent = 90};

void
stage_open(Stage *stage, uint32_t lock_words, bool two_instances)
{
	TestClient client;

	memset(stage, 0, sizeof(*stage));
	test_lock_words = lock_words;
	test_node_start(&stage->node, 8 * MEGABYTE);
	test_instance_start(&stage->instance, &stage->node, 1, 16, MEGABYTE);
	if (two_instances)
		test_instance_start(&stage->other, &stage->node, 1, 16, MEGABYTE);
	test_client_open(&client, &stage->instance, 0);
	for (int i = 0; i < 2; i++)
		test_tree_create(&client, &narrow, &stage->records[i]);
	assert_int_equal(test_client_close(&client), TREE_OK);
}

void
stage_close(Stage *stage)
{
	test_node_stop(&stage->node);
	test_instance_stop(&stage->instance);
	if (stage->other.shared != NULL)
		test_instance_stop(&stage->other);
}

void
actor_open(Actor *actor, Stage *stage, TestInstance *instance, uint32_t slot, int tree)
{
	memset(actor, 0, sizeof(*actor));
	test_client_open(&actor->client, instance, slot);
	if (tree_open(actor->client.tree, stage->records[tree].tree, stage->records[tree].root, &narrow, NULL,
	              NULL, &actor->tree) != TREE_OK)
		abort();
}

TreeStatus
actor_close(Actor *actor)
{
	tree_close(actor->tree);
	return test_client_close(&actor->client);
}

TreeStatus
actor_lock(Actor *actor)
{
	return lock_and_read(actor->tree, actor->tree->root, actor->tree->geometry.leaf_bytes, actor->image,
	                     &actor->lock);
}

TreeStatus
actor_write(Actor *actor, uint64_t value)
{
	FabricOp ops[2];

	memset(ops, 0, sizeof(ops));
	actor->image[HEADER_LSN] = value;
	ops[0].opcode = FABRIC_WRITE;
	ops[0].length = 16;
	ops[0].offset = pointer_offset(actor->tree->root) + HEADER_LSN * 8;
	ops[0].buffer = &actor->image[HEADER_LSN];
	return lock_write_and_release(actor->tree, &actor->lock, ops, 1, actor->tree->root, actor->image,
	                              actor->tree->geometry.leaf_bytes);
}

TreeStatus
actor_release(Actor *actor)
{
	return lock_release(actor->tree, &actor->lock, actor->tree->root, actor->image,
	                    actor->tree->geometry.leaf_bytes);
}

pid_t
start_child(Stage *stage, uint32_t slot, void (*body)(Stage *, uint32_t))
{
	pid_t child;

	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
	{
		body(stage, slot);
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
late_body(Stage *stage, uint32_t slot)
{
	uint64_t before;
	Actor actor;

	actor_open(&actor, stage, stage->other.shared != NULL ? &stage->other : &stage->instance, slot, 0);
	actor.client.tree->options.operation_timeout_ms = 100;
	test_say(&stage->instance, LATE_READY, 1);
	while (__atomic_load_n(&stage->instance.scratch[LATE_GATE], __ATOMIC_ACQUIRE) != 0)
		test_sleep_us(500);
	before = test_now_us();
	CHILD_ASSERT(actor_lock(&actor) == TREE_TIMED_OUT);
	CHILD_ASSERT(test_now_us() - before >= 100000);
	CHILD_ASSERT(test_now_us() - before < TEST_PATIENCE_US);
	CHILD_ASSERT(stage->instance.environment->slots[slot].holds == 0);
	if (stage->instance.scratch[LATE_READY] != 2)
		CHILD_ASSERT(actor_close(&actor) == TREE_OK);
}

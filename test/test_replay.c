/*
 * test_replay.c
 *		Whose WRITE is it that left a node torn, where nobody knows which one a dead channel was in: through a device.
 *
 * The memory is that of shm; only its header says that it is used through a device, as the simulator has it.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "environment.h"
#include "rdma/shm/shm.h"
#include "tree/lock/lock_table.h"

#define MEGABYTE (1ull << 20)
/* Words of the scratch: what a client says of itself. */
#define WROTE 1
#define TOOK_OVER 2
/* Generations are those of the root, raised. */
#define LATER 100u

static const TreeFormat format = {.cell_bytes = 16, .norm_bytes = 8, .lossless = true, .fill_percent = 90};

typedef struct Stage
{
	TestNode node;
	TestInstance instance;
	TreeRecord record;
	uint64_t expected[NODE_MAX_BYTES / 8]; /* image of an inner node in the root's place */
	uint64_t next[NODE_MAX_BYTES / 8];     /* of the generation behind it */
} Stage;

static void
check(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s\n", what);
	_exit(1);
}

/* An inner node of this generation, with one child, itself; all other words of its cells are the generation, too. */
static void
make_image(const Stage *stage, uint64_t generation, uint64_t *image)
{
	NodeGeometry geometry = node_geometry(&format);

	memset(image, 0, NODE_MAX_BYTES);
	node_begin(&geometry, image, stage->record.tree, stage->record.root, 1, generation, 0);
	for (uint32_t word = geometry.first_word; word < INNER_BYTES / 8; word++)
		image[word] = generation;
	image[inner_cell_word(&geometry, 0)] = stage->record.root;
	for (uint32_t word = inner_cell_word(&geometry, 0) + 1; word < inner_cell_word(&geometry, 1); word++)
		image[word] = 0;
	image[HEADER_STATE] = node_state_word(generation, 1, 1, 0);
	node_seal(&geometry, image);
}

static FabricOp
write_op(const Stage *stage, const uint64_t *image, uint32_t from, uint32_t to)
{
	return (FabricOp){.opcode = FABRIC_WRITE,
	                  .region = FABRIC_NODES,
	                  .length = to - from,
	                  .offset = pointer_offset(stage->record.root) + from,
	                  .buffer = (uint64_t *) image + from / 8};
}

static void
stage_open(Stage *stage)
{
	TestClient client;
	FabricOp op;

	memset(stage, 0, sizeof(*stage));
	test_node_start(&stage->node, 4 * MEGABYTE);
	test_instance_start(&stage->instance, &stage->node, 1, 4, MEGABYTE);
	test_client_open(&client, &stage->instance, 0);
	test_tree_create(&client, &format, &stage->record);
	shm_channel(client.endpoints[0])->memory->header->through_device = 1;
	make_image(stage, LATER, stage->expected);
	op = write_op(stage, stage->expected, 0, INNER_BYTES);
	assert_int_equal(fabric_execute(client.endpoints[0], &op, 1), FABRIC_OK);
	make_image(stage, LATER + 1, stage->expected);
	make_image(stage, LATER + 2, stage->next);
	assert_int_equal(test_client_close(&client), TREE_OK);
}

static void
stage_close(Stage *stage)
{
	test_node_stop(&stage->node);
	test_instance_stop(&stage->instance);
}

/* A client in a process of its own. */
typedef struct Actor
{
	TestClient client;
	Tree *tree;
	LockHandle lock;
	uint64_t image[NODE_MAX_BYTES / 8];
} Actor;

static void
actor_lock(Actor *actor, Stage *stage, uint32_t slot)
{
	memset(actor, 0, sizeof(*actor));
	test_client_open(&actor->client, &stage->instance, slot);
	check(tree_open(actor->client.tree, stage->record.tree, stage->record.root, &format, NULL, NULL,
	                &actor->tree) == TREE_OK,
	      "no tree");
	check(lock_and_read(actor->tree, actor->tree->root, INNER_BYTES, actor->image, &actor->lock) == TREE_OK,
	      "no lock");
}

/* Runs it, until it is killed. */
static pid_t
start(Stage *stage, void (*body)(Stage *stage, Actor *actor))
{
	static Actor actor;
	pid_t child;

	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (child != 0)
		return child;
	body(stage, &actor);
	for (;;)
		pause();
}

static void
kill_and_join(pid_t child)
{
	int status;

	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
}

/* Writes the redo image and the first half of the node: there its process ends. */
static void
write_half(Stage *stage, Actor *actor)
{
	FabricOp ops[REDO_OPS + 2];
	int count;

	actor_lock(actor, stage, 0);
	count = lock_rewrite_ops(actor->tree, &actor->lock, actor->tree->root, stage->expected, INNER_BYTES, ops);
	check(count == REDO_OPS + 1, "no redo image");
	ops[count - 1] = write_op(stage, stage->expected, 0, INNER_BYTES / 2);
	check(fabric_execute(actor->client.endpoints[0], ops, count) == FABRIC_OK, "half a chain");
}

static void
die_half_way(Stage *stage, Actor *actor)
{
	write_half(stage, actor);
	test_say(&stage->instance, WROTE, 1);
}

/* And its lock word is lost with the device that it was on. */
static void
lose_word(Stage *stage, Actor *actor)
{
	FabricOp op;

	write_half(stage, actor);
	op = (FabricOp){.opcode = FABRIC_COMPARE_SWAP,
	                .region = FABRIC_LOCKS,
	                .length = 8,
	                .offset = (uint64_t) actor->lock.index * 8,
	                .compare = actor->lock.word};
	check(fabric_execute(actor->client.endpoints[0], &op, 1) == FABRIC_OK && op.result == actor->lock.word,
	      "the word is not ours");
	test_say(&stage->instance, WROTE, 1);
}

/* Rewrites the node to the end, and hands it over. */
static void
write_and_pass_on(Stage *stage, Actor *actor)
{
	const TestSlot *other = &stage->instance.environment->slots[1];
	uint64_t deadline = test_now_us() + TEST_PATIENCE_US;
	FabricOp ops[REDO_OPS + 2];
	int count;

	actor_lock(actor, stage, 0);
	test_say(&stage->instance, WROTE, 1);
	while (__atomic_load_n(&other->sleeps, __ATOMIC_ACQUIRE) == 0)
	{
		check(test_now_us() < deadline, "nobody queues up");
		test_sleep_us(500);
	}
	count = lock_rewrite_ops(actor->tree, &actor->lock, actor->tree->root, stage->expected, INNER_BYTES, ops);
	check(lock_write_and_release(actor->tree, &actor->lock, ops, count, actor->tree->root, stage->expected,
	                             INNER_BYTES) == TREE_OK,
	      "not written");
}

/* Has the lock by a handover, and has written the node's second half, and its first line not yet. */
static void
take_over(Stage *stage, Actor *actor)
{
	FabricOp op = write_op(stage, stage->next, INNER_BYTES / 2, INNER_BYTES);

	test_await(&stage->instance, WROTE, 1);
	actor_lock(actor, stage, 1);
	check(actor->lock.handovers == 1, "not handed over");
	check(memcmp(actor->image, stage->expected, INNER_BYTES) == 0, "another image");
	check(fabric_execute(actor->client.endpoints[0], &op, 1) == FABRIC_OK, "not written");
	test_say(&stage->instance, TOOK_OVER, 1);
}

/* The node as it is. */
static void
read_root(Stage *stage, uint64_t *image)
{
	TestClient client;
	FabricOp op;

	test_client_open(&client, &stage->instance, 3);
	op = write_op(stage, image, 0, INNER_BYTES);
	op.opcode = FABRIC_READ;
	assert_int_equal(fabric_execute(client.endpoints[0], &op, 1), FABRIC_OK);
	assert_int_equal(test_client_close(&client), TREE_OK);
}

/* What its own client left half-way is made whole, also if the lock words went with the memory node's end. */
static void
test_own_write(void **state)
{
	uint64_t image[NODE_MAX_BYTES / 8];

	(void) state;
	for (int restart = 0; restart < 2; restart++)
	{
		Stage stage;
		pid_t child;

		stage_open(&stage);
		child = start(&stage, restart ? lose_word : die_half_way);
		test_await(&stage.instance, WROTE, 1);
		if (restart)
			test_node_kill(&stage.node);
		kill_and_join(child);
		if (restart)
			test_node_restart(&stage.node);
		test_instance_attach(&stage.instance);
		read_root(&stage, image);
		assert_memory_equal(image, stage.expected, INNER_BYTES);
		stage_close(&stage);
	}
}

/*
 * A client dies that has rewritten the node and handed it over within its instance: what is torn there is the next one's, whose
 * first line has not landed yet.
 */
static void
test_successors_write(void **state)
{
	uint64_t image[NODE_MAX_BYTES / 8];
	Stage stage;
	pid_t first, second;

	(void) state;
	stage_open(&stage);
	first = start(&stage, write_and_pass_on);
	second = start(&stage, take_over);
	test_await(&stage.instance, TOOK_OVER, 1);
	kill_and_join(first);
	test_instance_attach(&stage.instance);
	kill_and_join(second);
	read_root(&stage, image);
	assert_memory_equal(image, stage.expected, INNER_BYTES / 2);
	assert_memory_equal((uint8_t *) image + INNER_BYTES / 2, (uint8_t *) stage.next + INNER_BYTES / 2,
	                    INNER_BYTES / 2);
	stage_close(&stage);
}

/* A handover's chain in doubt, whose client leaves: whether the other word landed or not, the lock is free afterwards. */
static void
test_left_in_doubt(void **state)
{
	(void) state;
	for (int landed = 0; landed < 2; landed++)
	{
		static Actor actor;
		Stage stage;
		LockWaiter *waiter;
		bool free = false;

		stage_open(&stage);
		actor_lock(&actor, &stage, 0);
		waiter = table_waiter(stage.instance.shared->locks, 0);
		waiter->next_word = actor.lock.word + 1;
		if (landed)
		{
			FabricOp op = {.opcode = FABRIC_COMPARE_SWAP,
			               .region = FABRIC_LOCKS,
			               .length = 8,
			               .offset = (uint64_t) actor.lock.index * 8,
			               .compare = actor.lock.word,
			               .operand = waiter->next_word};

			assert_int_equal(fabric_execute(actor.client.endpoints[0], &op, 1), FABRIC_OK);
			assert_true(op.result == actor.lock.word);
		}
		assert_int_equal(lock_clean_up(actor.client.tree), TREE_OK);
		assert_int_equal(lock_is_free(actor.tree, actor.tree->root, &free), TREE_OK);
		assert_true(free);
		tree_close(actor.tree);
		assert_int_equal(test_client_close(&actor.client), TREE_OK);
		stage_close(&stage);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_write),
		cmocka_unit_test(test_successors_write),
		cmocka_unit_test(test_left_in_doubt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_replay.c
 *		Whose WRITE is it that left a node torn, where nobody knows which one a dead channel was in: through a device.
 *
 * The memory is that of shm; only its header says that it is used through a device, as the simulator has it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/lock_fixture.h"
#include "rdma/shm/shm.h"
#include "tree/lock/local_lock_table.h"

/* Words of the scratch: what a client says of itself. */
#define WROTE 1
#define TOOK_OVER 2
/* Generations are those of the root, raised. */
#define LATER 100u

static uint64_t expected[NODE_MAX_BYTES / 8]; /* image of an inner node in the root's place */
static uint64_t next[NODE_MAX_BYTES / 8];     /* of the generation behind it */

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
make_image(uint64_t generation, uint64_t *image)
{
	NodeGeometry geometry = node_geometry(&narrow);

	memset(image, 0, NODE_MAX_BYTES);
	node_begin(&geometry, image, records[0].tree, records[0].root, 1, generation, 0);
	for (uint32_t word = geometry.first_word; word < INNER_BYTES / 8; word++)
		image[word] = generation;
	image[inner_cell_word(&geometry, 0)] = records[0].root;
	for (uint32_t word = inner_cell_word(&geometry, 0) + 1; word < inner_cell_word(&geometry, 1); word++)
		image[word] = 0;
	image[HEADER_STATE] = node_state_word(generation, 1, 1, 0);
	node_seal(&geometry, image);
}

static FabricOp
write_op(const uint64_t *image, uint32_t from, uint32_t to)
{
	return (FabricOp){.opcode = FABRIC_WRITE,
	                  .region = FABRIC_NODES,
	                  .length = to - from,
	                  .offset = pointer_offset(records[0].root) + from,
	                  .buffer = (uint64_t *) image + from / 8};
}

/* The root is an inner node, of memory that is used through a device. */
static void
images_open(void)
{
	FabricOp op;

	fixture_open(&(FixtureOptions){.node_bytes = 4 * MEGABYTE, .trees = 1});
	shm_channel(client.endpoints[0])->memory->header->through_device = 1;
	make_image(LATER, expected);
	op = write_op(expected, 0, INNER_BYTES);
	assert_int_equal(fabric_execute(client.endpoints[0], &op, 1), FABRIC_OK);
	make_image(LATER + 1, expected);
	make_image(LATER + 2, next);
	assert_int_equal(test_client_close(&client), TREE_OK);
}

static void
user_begin(LockUser *user, uint32_t slot)
{
	user_open(user, &instance, slot, 0);
	check(lock_and_read(user->tree, user->tree->root, INNER_BYTES, user->image, &user->lock) == TREE_OK,
	      "no lock");
}

/* Runs it, until it is killed. */
static pid_t
start(void (*body)(LockUser *user))
{
	static LockUser user;
	pid_t child;

	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (child != 0)
		return child;
	body(&user);
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
write_half(LockUser *user)
{
	FabricOp ops[REDO_OPS + 2];
	int count;

	user_begin(user, 0);
	count = lock_rewrite_ops(user->tree, &user->lock, user->tree->root, expected, INNER_BYTES, ops);
	check(count == REDO_OPS + 1, "no redo image");
	ops[count - 1] = write_op(expected, 0, INNER_BYTES / 2);
	check(fabric_execute(user->client.endpoints[0], ops, count) == FABRIC_OK, "half a chain");
}

static void
die_half_way(LockUser *user)
{
	write_half(user);
	test_say(&instance, WROTE, 1);
}

/* And its lock word is lost with the device that it was on. */
static void
lose_word(LockUser *user)
{
	FabricOp op;

	write_half(user);
	op = (FabricOp){.opcode = FABRIC_COMPARE_SWAP,
	                .region = FABRIC_LOCKS,
	                .length = 8,
	                .offset = (uint64_t) user->lock.index * 8,
	                .compare = user->lock.word};
	check(fabric_execute(user->client.endpoints[0], &op, 1) == FABRIC_OK && op.result == user->lock.word,
	      "the word is not ours");
	test_say(&instance, WROTE, 1);
}

/* Rewrites the node to the end, and hands it over. */
static void
write_and_pass_on(LockUser *user)
{
	const TestSlot *other = &instance.environment->slots[1];
	uint64_t deadline = test_now_us() + TEST_PATIENCE_US;
	FabricOp ops[REDO_OPS + 2];
	int count;

	user_begin(user, 0);
	test_say(&instance, WROTE, 1);
	while (__atomic_load_n(&other->sleeps, __ATOMIC_ACQUIRE) == 0)
	{
		check(test_now_us() < deadline, "nobody queues up");
		test_sleep_us(500);
	}
	count = lock_rewrite_ops(user->tree, &user->lock, user->tree->root, expected, INNER_BYTES, ops);
	check(lock_write_and_release(user->tree, &user->lock, ops, count, user->tree->root, expected,
	                             INNER_BYTES) == TREE_OK,
	      "not written");
}

/* Has the lock by a handover, and has written the node's second half, and its first line not yet. */
static void
take_over(LockUser *user)
{
	FabricOp op = write_op(next, INNER_BYTES / 2, INNER_BYTES);

	test_await(&instance, WROTE, 1);
	user_begin(user, 1);
	check(user->lock.handovers == 1, "not handed over");
	check(memcmp(user->image, expected, INNER_BYTES) == 0, "another image");
	check(fabric_execute(user->client.endpoints[0], &op, 1) == FABRIC_OK, "not written");
	test_say(&instance, TOOK_OVER, 1);
}

/* The node as it is. */
static void
read_root(uint64_t *image)
{
	TestClient client;
	FabricOp op;

	test_client_open(&client, &instance, 3);
	op = write_op(image, 0, INNER_BYTES);
	op.opcode = FABRIC_READ;
	assert_int_equal(fabric_execute(client.endpoints[0], &op, 1), FABRIC_OK);
	assert_int_equal(test_client_close(&client), TREE_OK);
}

/* What its own client left half-way is made whole, also if the lock words went with the memory node's end. */
static void
test_own_write(void **state)
{
	uint64_t image[NODE_MAX_BYTES / 8];

	for (int restart = 0; restart < 2; restart++)
	{
		pid_t child;

		images_open();
		child = start(restart ? lose_word : die_half_way);
		test_await(&instance, WROTE, 1);
		if (restart)
			test_node_kill(&nodes[0]);
		kill_and_join(child);
		if (restart)
			test_node_restart(&nodes[0]);
		test_instance_attach(&instance);
		read_root(image);
		assert_memory_equal(image, expected, INNER_BYTES);
		fixture_close();
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
	pid_t first, second;

	images_open();
	first = start(write_and_pass_on);
	second = start(take_over);
	test_await(&instance, TOOK_OVER, 1);
	kill_and_join(first);
	test_instance_attach(&instance);
	kill_and_join(second);
	read_root(image);
	assert_memory_equal(image, expected, INNER_BYTES / 2);
	assert_memory_equal((uint8_t *) image + INNER_BYTES / 2, (uint8_t *) next + INNER_BYTES / 2,
	                    INNER_BYTES / 2);
	fixture_close();
}

/* A handover's chain in doubt, whose client leaves: whether the other word landed or not, the lock is free afterwards. */
static void
test_left_in_doubt(void **state)
{
	for (int landed = 0; landed < 2; landed++)
	{
		static LockUser user;
		LockWaiter *waiter;
		bool free = false;

		images_open();
		user_begin(&user, 0);
		waiter = table_waiter(instance.shared->locks, 0);
		waiter->next_word = user.lock.word + 1;
		if (landed)
		{
			FabricOp op = {.opcode = FABRIC_COMPARE_SWAP,
			               .region = FABRIC_LOCKS,
			               .length = 8,
			               .offset = (uint64_t) user.lock.index * 8,
			               .compare = user.lock.word,
			               .operand = waiter->next_word};

			assert_int_equal(fabric_execute(user.client.endpoints[0], &op, 1), FABRIC_OK);
			assert_true(op.result == user.lock.word);
		}
		assert_int_equal(lock_clean_up(user.client.tree), TREE_OK);
		assert_int_equal(lock_is_free(user.tree, user.tree->root, &free), TREE_OK);
		assert_true(free);
		assert_int_equal(user_close(&user), TREE_OK);
		fixture_close();
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

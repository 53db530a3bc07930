/*
 * test_calls.c
 *		Calls whose answer is lost: each may be repeated, and is then as if it had come once.
 *
 * The answer is lost for good: the memory node is stopped when the call is sent, and goes on when the caller has given it
 * up.  So the call runs, before its repetition or behind it, and nobody hears of it.
 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>

#include "support/fixture.h"
#include "tree/client/directory.h"

/* A connection of its own. */
typedef struct Caller
{
	Fabric *fabric;
	FabricEndpoint *endpoint;
	bool hopeless; /* it gives up as soon as it would have to wait, with FABRIC_STOPPED */
} Caller;

static int
caller_wait(void *argument, const int *descriptors, int count, int milliseconds)
{
	struct pollfd polled[4];
	int ready;

	if (((Caller *) argument)->hopeless)
		return -1;
	assert_true(count <= 4);
	for (int i = 0; i < count; i++)
		polled[i] = (struct pollfd){.fd = descriptors[i], .events = POLLIN};
	ready = poll(polled, (nfds_t) count, milliseconds);
	return ready < 0 ? 0 : ready;
}

static FabricStatus
caller_open(Caller *caller, uint32_t incarnation, bool hopeless)
{
	FabricOptions options = {.wait = caller_wait, .wait_argument = caller};

	options.operation_timeout_ms = options.connect_timeout_ms = TEST_PATIENCE_US / 1000;
	caller->hopeless = hopeless;
	options.cluster[0] = instance.cluster[0];
	options.cluster[1] = instance.cluster[1];
	options.incarnation = incarnation;
	assert_int_equal(fabric_open(&options, &caller->fabric), FABRIC_OK);
	return fabric_connect(caller->fabric, nodes[0].address, &caller->endpoint);
}

/* Stops the memory node, for all of its clients. */
static void
node_freeze(void)
{
	int state;

	assert_int_equal(kill(nodes[0].pid, SIGSTOP), 0);
	assert_true(waitpid(nodes[0].pid, &state, WUNTRACED) == nodes[0].pid && WIFSTOPPED(state));
}

static void
node_thaw(void)
{
	assert_int_equal(kill(nodes[0].pid, SIGCONT), 0);
}

/* What a call came to. */
typedef struct Outcome
{
	FabricStatus status;
	uint32_t bytes;
	uint64_t reply[FABRIC_MAX_CALL_BYTES / 8];
} Outcome;

static void
call(FabricEndpoint *endpoint, DirectoryMethod method, const void *request, uint32_t bytes, Outcome *outcome)
{
	memset(outcome, 0, sizeof(*outcome));
	outcome->bytes = sizeof(outcome->reply);
	outcome->status =
		fabric_call(endpoint, (uint16_t) method, request, bytes, outcome->reply, &outcome->bytes);
	if (outcome->status != FABRIC_OK)
		outcome->bytes = 0;
}

/* Until so many channels are left; the test's time is the bound. */
static void
wait_for_channels(uint32_t channels)
{
	while (fixture_node_status(0).channels != channels)
		test_sleep_us(1000);
}

/*
 * The call is made once and its answer lost, then repeated on another connection, and once more when the first has run for
 * sure: both repetitions are answered with the same bytes, into *outcome.
 */
static void
call_thrice(DirectoryMethod method, const void *request, uint32_t bytes, Outcome *outcome)
{
	Caller caller;
	Outcome lost, again;

	assert_int_equal(caller_open(&caller, instance.incarnation, false), FABRIC_OK);
	node_freeze();
	caller.hopeless = true;
	call(caller.endpoint, method, request, bytes, &lost);
	assert_int_equal(lost.status, FABRIC_STOPPED);
	node_thaw();
	call(client.endpoints[0], method, request, bytes, outcome);
	/* What is left of the first runs before its connection's end is seen. */
	fabric_close(caller.fabric);
	wait_for_channels(1);
	call(client.endpoints[0], method, request, bytes, &again);
	assert_int_equal(again.status, outcome->status);
	assert_int_equal(again.bytes, outcome->bytes);
	/* What the node's status tells goes on changing: channels come and go. */
	if (method != DIRECTORY_STATUS)
		assert_memory_equal(again.reply, outcome->reply, outcome->bytes);
}

static void
test_trees(void **state)
{
	DirectoryCreate create = {.token = {11, 12}, .record = {.database = 5, .format = narrow}};
	DirectoryExtentRequest extent = {.extents = 1};
	DirectoryTree tree;
	DirectoryPosition position = {0};
	Outcome outcome;
	DirectoryCreated created;
	DirectoryExtent grown;
	DirectoryGive give;

	fixture_open(&(FixtureOptions){.node_bytes = 16 * MEGABYTE});
	call_thrice(DIRECTORY_CREATE, &create, sizeof(create), &outcome);
	assert_int_equal(outcome.status, FABRIC_OK);
	memcpy(&created, outcome.reply, sizeof(created));
	assert_int_equal(fixture_node_status(0).trees, 1);
	assert_int_equal(fixture_node_status(0).bytes_used, EXTENT_MIN_BYTES);

	extent.tree = tree.tree = created.record.tree;
	call_thrice(DIRECTORY_EXTENT, &extent, sizeof(extent), &outcome);
	assert_int_equal(outcome.status, FABRIC_OK);
	memcpy(&grown, outcome.reply, sizeof(grown));
	assert_int_equal(grown.extents, 2);
	assert_int_equal(fixture_node_status(0).bytes_used, grown.tree_bytes);

	call_thrice(DIRECTORY_READ, &tree, sizeof(tree), &outcome);
	assert_int_equal(outcome.status, FABRIC_OK);
	assert_int_equal(((const TreeRecord *) (const void *) outcome.reply)->extents, 2);
	call_thrice(DIRECTORY_LIST, &position, sizeof(position), &outcome);
	assert_int_equal(outcome.status, FABRIC_OK);
	call_thrice(DIRECTORY_STATUS, NULL, 0, &outcome);
	assert_int_equal(outcome.status, FABRIC_OK);

	/* Repeated, these two find that it is done. */
	give = (DirectoryGive){.tree = tree.tree, .offset = grown.offset, .number = 2};
	extent.extents = 2;
	call(client.endpoints[0], DIRECTORY_EXTENT, &extent, sizeof(extent), &outcome);
	assert_int_equal(outcome.status, FABRIC_OK);
	memcpy(&grown, outcome.reply, sizeof(grown));
	give.newer = grown.offset;
	call_thrice(DIRECTORY_GIVE, &give, sizeof(give), &outcome);
	assert_int_equal(outcome.status, FABRIC_NOT_FOUND);
	assert_int_equal(fixture_node_status(0).bytes_used, EXTENT_MIN_BYTES + grown.bytes);

	call_thrice(DIRECTORY_DROP, &tree, sizeof(tree), &outcome);
	assert_int_equal(outcome.status, FABRIC_NOT_FOUND);
	assert_int_equal(fixture_node_status(0).trees, 0);
	assert_int_equal(fixture_node_status(0).bytes_used, 0);
	fixture_close();
}

static void
test_records_and_epochs(void **state)
{
	TreeRecord record, update, read;
	DirectoryEpoch epoch = {.epoch = 4};
	Outcome outcome;

	fixture_open(&(FixtureOptions){.node_bytes = 16 * MEGABYTE});
	test_tree_create(&client, &narrow, &record);
	update = (TreeRecord){
		.tree = record.tree, .root = record.root, .flags = TREE_RECORD_BUILT, .mutated_epoch = 3, .nonce = 9};
	call_thrice(DIRECTORY_UPDATE, &update, sizeof(update), &outcome);
	assert_int_equal(outcome.status, FABRIC_OK);
	assert_int_equal(tree_record_read(client.tree, record.tree, 0, &read), TREE_OK);
	assert_int_equal(read.flags, TREE_RECORD_BUILT);
	assert_int_equal(read.mutated_epoch, 3);
	assert_int_equal(read.nonce, 9);

	call_thrice(DIRECTORY_EPOCH_OPEN, &epoch, sizeof(epoch), &outcome);
	assert_int_equal(outcome.status, FABRIC_OK);
	assert_int_equal(fixture_node_status(0).epoch, 4);
	assert_int_equal(fixture_node_status(0).epoch_clean, 0);
	call_thrice(DIRECTORY_EPOCH_CLOSE, &epoch, sizeof(epoch), &outcome);
	assert_int_equal(outcome.status, FABRIC_OK);
	assert_int_equal(fixture_node_status(0).epoch_clean, 1);
	/* Closed is closed: an opening that comes late opens nothing. */
	call_thrice(DIRECTORY_EPOCH_OPEN, &epoch, sizeof(epoch), &outcome);
	assert_int_equal(outcome.status, FABRIC_RANGE);
	assert_int_equal(fixture_node_status(0).epoch_clean, 1);
	fixture_close();
}

/* An update that was given up does not come behind a later one: the reset in between has ended it. */
static void
test_late_update(void **state)
{
	Caller caller;
	TreeRecord record, update, read;
	Outcome outcome;

	fixture_open(&(FixtureOptions){.node_bytes = 16 * MEGABYTE});
	test_tree_create(&client, &narrow, &record);
	update = (TreeRecord){.tree = record.tree, .root = record.root, .nonce = 1};
	assert_int_equal(caller_open(&caller, instance.incarnation, false), FABRIC_OK);
	node_freeze();
	caller.hopeless = true;
	call(caller.endpoint, DIRECTORY_UPDATE, &update, sizeof(update), &outcome);
	assert_int_equal(outcome.status, FABRIC_STOPPED);
	node_thaw();
	caller.hopeless = false;
	assert_int_equal(fabric_reset(caller.endpoint), FABRIC_OK);
	update.nonce = 2;
	call(caller.endpoint, DIRECTORY_UPDATE, &update, sizeof(update), &outcome);
	assert_int_equal(outcome.status, FABRIC_OK);
	for (int i = 0; i < 100; i++)
	{
		assert_int_equal(tree_record_read(client.tree, record.tree, 0, &read), TREE_OK);
		assert_int_equal(read.nonce, 2);
	}
	fabric_close(caller.fabric);
	fixture_close();
}

/* The fabric's own calls: what was granted and not heard of is taken back, and harms nobody. */
static void
test_connections(void **state)
{
	Caller caller;
	uint32_t number, incarnation;

	fixture_open(&(FixtureOptions){.node_bytes = 16 * MEGABYTE});

	/* HELLO: the channel goes with the connection. */
	node_freeze();
	assert_int_equal(caller_open(&caller, instance.incarnation, true), FABRIC_STOPPED);
	fabric_close(caller.fabric);
	node_thaw();
	assert_int_equal(caller_open(&caller, instance.incarnation, false), FABRIC_OK);
	wait_for_channels(2);

	/* RESET: again, and it is one channel. */
	node_freeze();
	caller.hopeless = true;
	assert_int_equal(fabric_reset(caller.endpoint), FABRIC_STOPPED);
	node_thaw();
	caller.hopeless = false;
	assert_int_equal(fabric_reset(caller.endpoint), FABRIC_OK);
	wait_for_channels(2);
	fabric_close(caller.fabric);

	/* ATTACH: again, and an incarnation was skipped. */
	assert_int_equal(caller_open(&caller, 0, false), FABRIC_OK);
	node_freeze();
	caller.hopeless = true;
	assert_int_equal(fabric_attach(caller.endpoint, false, 7, &number, &incarnation), FABRIC_STOPPED);
	fabric_close(caller.fabric);
	node_thaw();
	assert_int_equal(caller_open(&caller, 0, false), FABRIC_OK);
	/* The first one was done when the node saw its connection's end: there was no older channel at work. */
	assert_int_equal(fabric_attach(caller.endpoint, false, 8, &number, &incarnation), FABRIC_OK);
	assert_int_equal(incarnation, instance.incarnation + 2);
	fabric_close(caller.fabric);
	fixture_close();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trees),
		cmocka_unit_test(test_records_and_epochs),
		cmocka_unit_test(test_late_update),
		cmocka_unit_test(test_connections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

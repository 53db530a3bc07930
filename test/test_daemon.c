/*
 * test_daemon.c
 *		A running msd and its clients, over the network and on the machine: tenants, keys and quotas that
 *		change, the end of service, death, metrics.
 *
 * The daemon is the program beside this one.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/fixture.h"
#include "support/daemon.h"
#include "tree/client/directory.h"
#include "tree/service/service.h"

/* ---- clients ---- */

static void
instance_start(TestInstance *instance, Daemon *msd, const char *key_file)
{
	test_key_file = key_file;
	test_instance_start(instance, &msd->node, 1, 4, MEGABYTE);
}

/* Can a client of this instance with that key file connect? */
static FabricStatus
try_connect(const TestInstance *instance, const Daemon *msd, const char *key_file, uint32_t incarnation)
{
	FabricOptions options = {.connect_timeout_ms = TEST_PATIENCE_US / 1000, .key_file = key_file};
	Fabric *fabric;
	FabricEndpoint *endpoint;
	FabricStatus status;

	options.cluster[0] = instance->cluster[0];
	options.cluster[1] = instance->cluster[1];
	options.incarnation = incarnation;
	assert_int_equal(fabric_open(&options, &fabric), FABRIC_OK);
	status = fabric_connect(fabric, msd->node.address, &endpoint);
	fabric_close(fabric);
	return status;
}

/* One word of node memory. */
static FabricStatus
word_access(TestClient *client, FabricOpcode opcode, uint64_t offset, uint64_t *word)
{
	FabricOp op = {.opcode = (uint8_t) opcode, .length = 8, .offset = offset, .buffer = word};

	return fabric_execute(client->endpoints[0], &op, 1);
}

static TreeNodeStatus
node_status(TestClient *client)
{
	TreeNodeStatus status;

	assert_int_equal(tree_node_status(client->tree, 0, &status), TREE_OK);
	return status;
}

/* Takes extents for a tree until there are no more; bytes that it has then. */
static uint64_t
fill(TestClient *client, const TreeRecord *record)
{
	DirectoryExtent extent = {.extents = 1};

	while (directory_extent(client->tree, 0, record->tree, 0, extent.extents, &extent) == TREE_OK)
		;
	return extent.tree_bytes;
}

/* Takes or gives back the lock word at 0. */
static void
swap_lock(TestClient *client, uint64_t compare, uint64_t operand)
{
	FabricOp op = {.opcode = FABRIC_COMPARE_SWAP,
	               .region = FABRIC_LOCKS,
	               .length = 8,
	               .compare = compare,
	               .operand = operand};

	assert_int_equal(fabric_execute(client->endpoints[0], &op, 1), FABRIC_OK);
	assert_true(op.result == compare);
}

static uint64_t
lock_word(const TestClient *client)
{
	const FabricCapabilities *capabilities = fabric_capabilities(client->endpoints[0]);

	return fabric_lock_word(capabilities->instance, capabilities->incarnation, 1);
}

/* What put_word() writes. */
#define WORD 77

/* Writes a word of a tree's memory, behind its root. */
static void
put_word(TestClient *client, const TreeRecord *record)
{
	uint64_t word = WORD;

	assert_int_equal(
		word_access(client, FABRIC_WRITE, pointer_offset(record->root) + FABRIC_STRIPE_BYTES, &word),
		FABRIC_OK);
}

/* It is there still. */
static void
expect_word(TestClient *client, const TreeRecord *record)
{
	uint64_t word = 0;

	assert_int_equal(
		word_access(client, FABRIC_READ, pointer_offset(record->root) + FABRIC_STRIPE_BYTES, &word),
		FABRIC_OK);
	assert_true(word == WORD);
}

/* The lock that a dead incarnation held is to be had. */
static void
expect_lock_freed(TestClient *client, const Daemon *msd)
{
	swap_lock(client, 0, lock_word(client));
	swap_lock(client, lock_word(client), 0);
	wait_for_metric(msd, "locks_recovered_total", 1);
}

/* ---- tests ---- */

/* A tenant sees, reaches and drops its own; what it had is zero when another gets it. */
static void
test_tenants(void **state)
{
	Daemon *msd = *state;
	TestInstance a, b, local;
	TestClient client_a, client_b, client_local;
	TreeRecord record, other;
	TreeRecord listed;
	uint32_t position = 0;
	uint64_t word = 0x5ec2e7; /* a's secret */
	uint64_t offset;

	daemon_configure(msd, "tenant-quota = a 2M\ntenant-quota = local 1M\n");
	daemon_start(msd);
	instance_start(&a, msd, msd->tenant_a);
	instance_start(&b, msd, msd->tenant_b);
	test_client_open(&client_a, &a, 0);
	test_client_open(&client_b, &b, 0);
	test_tree_create(&client_a, &narrow, &record);
	offset = pointer_offset(record.root) + FABRIC_STRIPE_BYTES;
	assert_int_equal(word_access(&client_a, FABRIC_WRITE, offset, &word), FABRIC_OK);
	word = 0;
	assert_int_equal(word_access(&client_a, FABRIC_READ, offset, &word), FABRIC_OK);
	assert_true(word == 0x5ec2e7);

	/* b: not in its list, not by its number, not by its address, not in its name. */
	assert_int_equal(tree_record_list(client_b.tree, 0, &position, &listed), TREE_END);
	assert_int_equal(tree_record_read(client_b.tree, record.tree, 0, &listed), TREE_NOT_FOUND);
	assert_int_equal(tree_drop(client_b.tree, record.tree, 0), TREE_OK); /* as if it were gone */
	assert_int_equal(tree_record_read(client_a.tree, record.tree, 0, &listed), TREE_OK);
	assert_int_equal(word_access(&client_b, FABRIC_READ, offset, &word), FABRIC_OK);
	assert_true(word == 0); /* where a client has no memory it reads zeroes */
	assert_int_equal(word_access(&client_b, FABRIC_WRITE, offset, &word), FABRIC_RANGE);
	assert_int_equal(word_access(&client_a, FABRIC_READ, offset, &word), FABRIC_OK);
	assert_true(word == 0x5ec2e7);
	assert_int_equal(try_connect(&a, msd, msd->tenant_b, 0), FABRIC_DENIED);
	assert_int_not_equal(try_connect(&a, msd, NULL, 0), FABRIC_OK);

	/* Quotas by name; each tells of its own. */
	assert_int_equal(fill(&client_a, &record), 2 * MEGABYTE);
	assert_int_equal(tree_full_by(client_a.tree), TREE_FULL_QUOTA);
	assert_int_equal(node_status(&client_a).tenant_bytes, 2 * MEGABYTE);
	assert_int_equal(node_status(&client_a).tenant_quota, 2 * MEGABYTE);
	test_tree_create(&client_b, &narrow, &other);
	assert_int_equal(node_status(&client_b).tenant_bytes, EXTENT_MIN_BYTES);
	assert_int_equal(node_status(&client_b).tenant_quota, 0);

	/* On the machine, without a key: a third one. */
	{
		TestNode here = msd->node;

		strcpy(here.address, msd->shm);
		test_key_file = NULL;
		test_instance_start(&local, &here, 1, 4, MEGABYTE);
		test_client_open(&client_local, &local, 0);
		assert_int_equal(node_status(&client_local).tenant_quota, MEGABYTE);
		assert_int_equal(node_status(&client_local).tenant_bytes, 0);
		assert_int_equal(tree_record_read(client_local.tree, record.tree, 0, &listed), TREE_NOT_FOUND);
		assert_int_equal(test_client_close(&client_local), TREE_OK);
		test_instance_stop(&local);
	}

	/* a drops; b gets everything there is, and nothing of a's is in it. */
	assert_int_equal(tree_drop(client_a.tree, record.tree, 0), TREE_OK);
	assert_int_equal(node_status(&client_a).tenant_bytes, 0);
	assert_int_equal(fill(&client_b, &other), 16 * MEGABYTE);
	assert_int_equal(word_access(&client_b, FABRIC_READ, offset, &word), FABRIC_OK);
	assert_true(word != 0x5ec2e7);
	assert_int_equal(word_access(&client_b, FABRIC_WRITE, offset, &word), FABRIC_OK);
	assert_int_equal(word_access(&client_a, FABRIC_READ, offset, &word), FABRIC_OK);
	assert_true(word == 0);
	wait_for_metric(msd, "tenant_memory_bytes{tenant=\"b\"}", 16 * MEGABYTE);
	assert_true(metric(msd, "tenant_memory_bytes{tenant=\"a\"}") == 0);
	assert_true(metric(msd, "tenant_quota_bytes{tenant=\"a\"}") == 2 * MEGABYTE);
	assert_int_equal(tree_create(client_a.tree, &listed), TREE_MEMORY_FULL);
	assert_int_equal(tree_full_by(client_a.tree), TREE_FULL_MEMORY);
	assert_int_equal(test_client_close(&client_a), TREE_OK);
	assert_int_equal(test_client_close(&client_b), TREE_OK);

	/* b is gone for good. */
	assert_int_equal(daemon_drop_tenant(msd, "b"), 1); /* not while it is served */
	daemon_end(msd, SIGTERM, 0);
	assert_int_equal(daemon_drop_tenant(msd, "nobody"), 1);
	assert_int_equal(daemon_drop_tenant(msd, "b"), 0);
	assert_int_equal(daemon_drop_tenant(msd, "b"), 1); /* nobody knows it any more */
	daemon_start(msd);
	assert_true(metric(msd, "tenant_memory_bytes{tenant=\"b\"}") == -1);
	assert_true(metric(msd, "memory_used_bytes") == 0);
	test_instance_attach(&a);
	test_client_open(&client_a, &a, 0);
	test_tree_create(&client_a, &narrow, &record);
	assert_int_equal(test_client_close(&client_a), TREE_OK);
	test_instance_stop(&a);
	test_instance_stop(&b);
	daemon_end(msd, SIGTERM, 0);
}

/*
 * A key is changed without a pause: old and new side by side, then the old one goes, and with it who uses it.
 */
static void
test_keys_and_quotas_change(void **state)
{
	Daemon *msd = *state;
	TestInstance a;
	TestClient client;
	TreeRecord record;
	size_t from;

	daemon_configure(msd, "");
	daemon_start(msd);
	instance_start(&a, msd, msd->tenant_a);
	test_client_open(&client, &a, 0);
	test_tree_create(&client, &narrow, &record);
	write_file(msd->tenant_b, "%s", key_line("a", KEY_NEW));
	assert_int_equal(try_connect(&a, msd, msd->tenant_b, 0), FABRIC_DENIED);

	/* Both. */
	write_file(msd->keys, "%s%s", key_line("a", KEY_OLD), key_line("a", KEY_NEW));
	from = strlen(read_log(msd));
	daemon_reload(msd);
	(void) wait_for_log(msd, from, "info: key a/");
	assert_null(strstr(read_log(msd), "2222222222222222"));
	assert_int_equal(try_connect(&a, msd, msd->tenant_a, a.incarnation), FABRIC_OK);
	assert_int_equal(try_connect(&a, msd, msd->tenant_b, a.incarnation), FABRIC_OK);
	assert_int_equal(node_status(&client).trees, 1);

	/* What is wrong changes nothing. */
	write_file(msd->keys, "a 12\n");
	from = strlen(read_log(msd));
	daemon_reload(msd);
	(void) wait_for_log(msd, from, "the old keys stay in force");
	assert_int_equal(try_connect(&a, msd, msd->tenant_a, a.incarnation), FABRIC_OK);
	write_file(msd->keys, "%s", key_line("a", KEY_WRONG));
	assert_int_equal(chmod(msd->keys, 0644), 0);
	from = strlen(read_log(msd));
	daemon_reload(msd);
	(void) wait_for_log(msd, from, "the old keys stay in force");
	assert_int_equal(chmod(msd->keys, 0600), 0);

	/* A quota comes. */
	daemon_configure(msd, "tenant-quota = a 1M\n");
	write_file(msd->keys, "%s%s", key_line("a", KEY_OLD), key_line("a", KEY_NEW));
	daemon_reload(msd);
	assert_int_equal(fill(&client, &record), MEGABYTE);
	daemon_configure(msd, "tenant-quota = a 3M\n");
	daemon_reload(msd);
	assert_int_equal(fill(&client, &record), 3 * MEGABYTE);

	/* The old key goes. */
	write_file(msd->keys, "%s", key_line("a", KEY_NEW));
	from = strlen(read_log(msd));
	daemon_reload(msd);
	(void) wait_for_log(msd, from, "is removed");
	assert_int_equal(try_connect(&a, msd, msd->tenant_a, 0), FABRIC_DENIED);
	assert_int_equal(try_connect(&a, msd, msd->tenant_b, a.incarnation), FABRIC_OK);
	assert_int_not_equal(fabric_reset(client.endpoints[0]), FABRIC_OK);
	wait_for_metric(msd, "authentication_failures_total", 2);
	(void) test_client_close(&client);
	test_instance_stop(&a);
	daemon_end(msd, SIGTERM, 0);
}

/*
 * SIGTERM: who holds a lock over the network is waited for, nobody new is let in; then the memory is clean.
 */
static void
test_drain(void **state)
{
	Daemon *msd = *state;
	TestInstance a;
	TestClient client;
	TreeRecord record, read;
	uint64_t word = 0;
	size_t from;

	msd->keyed = false;
	daemon_configure(msd, "drain-seconds = 600\n");
	daemon_start(msd);
	assert_true(metric(msd, "generation") == 1);
	instance_start(&a, msd, NULL);
	test_client_open(&client, &a, 0);
	test_tree_create(&client, &narrow, &record);
	swap_lock(&client, 0, lock_word(&client));
	from = strlen(read_log(msd));
	assert_int_equal(kill(msd->node.pid, SIGTERM), 0);
	(void) wait_for_log(msd, from, "info: stopping");
	while (!fabric_is_draining(client.endpoints[0]))
		assert_int_equal(word_access(&client, FABRIC_READ, pointer_offset(record.root), &word), FABRIC_OK);
	assert_int_equal(try_connect(&a, msd, NULL, a.incarnation), FABRIC_DRAINING);
	assert_int_equal(try_connect(&a, msd, NULL, 0), FABRIC_DRAINING);
	wait_for_metric(msd, "state{state=\"draining\"}", 1);
	swap_lock(&client, lock_word(&client), 0);
	daemon_end(msd, 0, 0);
	assert_int_not_equal(word_access(&client, FABRIC_READ, pointer_offset(record.root), &word), FABRIC_OK);
	(void) test_client_close(&client);

	daemon_start(msd);
	assert_true(metric(msd, "generation") == 2);
	(void) wait_for_log(msd, from, "(kept)");
	test_instance_attach(&a);
	test_client_open(&client, &a, 0);
	assert_int_equal(tree_record_read(client.tree, record.tree, 0, &read), TREE_OK);
	assert_int_equal(test_client_close(&client), TREE_OK);
	test_instance_stop(&a);
	daemon_end(msd, SIGTERM, 0);
}

/*
 * SIGKILL with a lock held and channels open: the memory is there again, and the next incarnation gets the
 * lock.
 */
static void
test_death(void **state)
{
	Daemon *msd = *state;
	TestInstance a;
	TestClient client;
	TreeRecord record;
	size_t from;

	msd->keyed = false;
	daemon_configure(msd, "");
	daemon_start(msd);
	instance_start(&a, msd, NULL);
	test_client_open(&client, &a, 0);
	test_tree_create(&client, &narrow, &record);
	put_word(&client, &record);
	swap_lock(&client, 0, lock_word(&client));
	daemon_end(msd, SIGKILL, -1);
	(void) test_client_close(&client);

	from = strlen(read_log(msd));
	daemon_start(msd);
	(void) wait_for_log(msd, from, "(recovered)");
	assert_true(metric(msd, "generation") == 2);
	test_instance_attach(&a);
	test_client_open(&client, &a, 0);
	expect_word(&client, &record);
	expect_lock_freed(&client, msd);
	assert_int_equal(test_client_close(&client), TREE_OK);
	test_instance_stop(&a);
	daemon_end(msd, SIGTERM, 0);
}

/* What clients do is counted. */
static void
test_metrics(void **state)
{
	Daemon *msd = *state;
	TestInstance a;
	TestClient clients[2];
	TreeRecord record;
	uint64_t word = 0;

	daemon_configure(msd, "");
	daemon_start(msd);
	assert_true(metric(msd, "chains_total") == 0);
	instance_start(&a, msd, msd->tenant_a);
	test_client_open(&clients[0], &a, 0);
	test_client_open(&clients[1], &a, 1);
	test_tree_create(&clients[0], &narrow, &record);
	for (int i = 0; i < 100; i++)
		assert_int_equal(word_access(&clients[i % 2], FABRIC_READ, pointer_offset(record.root), &word),
		                 FABRIC_OK);
	wait_for_metric(msd, "chains_total", 100);
	wait_for_metric(msd, "chain_operations_total", 100);
	wait_for_metric(msd, "chain_read_bytes_total", 800);
	wait_for_metric(msd, "chain_written_bytes_total", 1024); /* the root */
	wait_for_metric(msd, "channels{transport=\"tcp\"}", 2);
	assert_true(metric(msd, "channels{transport=\"shm\"}") == 0);
	wait_for_metric(msd, "trees", 1);
	wait_for_metric(msd, "extents", 1);
	wait_for_metric(msd, "memory_used_bytes", (double) EXTENT_MIN_BYTES);
	wait_for_metric(msd, "tenant_trees{tenant=\"a\"}", 1);
	wait_for_metric(msd, "call_duration_seconds_count{method=\"create\"}", 1);
	assert_int_equal(tree_record_read(clients[0].tree, 12345, 0, &record), TREE_NOT_FOUND);
	wait_for_metric(msd, "call_failures_total{method=\"read\"}", 1);
	wait_for_metric(msd, "incarnations_total", 1);
	write_file(msd->tenant_b, "%s", key_line("a", KEY_WRONG));
	assert_int_equal(try_connect(&a, msd, msd->tenant_b, 0), FABRIC_DENIED);
	wait_for_metric(msd, "authentication_failures_total", 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(test_client_close(&clients[i]), TREE_OK);
	wait_for_metric(msd, "channels_killed_total", 2);
	test_instance_stop(&a);
	daemon_end(msd, SIGTERM, 0);
}

/* Takes away what a restart of the machine takes away. */
static void
lose_memory(const Daemon *msd)
{
	assert_int_equal(unlink(msd->node.memory_path), 0);
}

/*
 * Listens as the service manager does, for daemons that are started from now on; a descriptor to hear them
 * by.
 */
static int
listen_as_manager(const Daemon *msd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	place(msd, "manager", address.sun_path, sizeof(address.sun_path));
	assert_true(descriptor >= 0);
	assert_int_equal(bind(descriptor, (struct sockaddr *) &address, sizeof(address)), 0);
	assert_int_equal(setenv("NOTIFY_SOCKET", address.sun_path, 1), 0);
	return descriptor;
}

/* Did the manager hear a request for more time with this text?  Takes all messages that came meanwhile. */
static bool
manager_heard(int descriptor, const char *text)
{
	char message[512];
	bool heard = false;
	ssize_t got;

	while ((got = recv(descriptor, message, sizeof(message) - 1, 0)) > 0)
	{
		message[got] = '\0';
		heard |= strstr(message, "EXTEND_TIMEOUT_USEC=") == message && strstr(message, text) != NULL;
	}
	return heard;
}

/*
 * The memory outlives the machine: trees, their content, epochs, lock words of the dead.  Ids go on in
 * another series.  A second signal ends the daemon without a snapshot.
 */
static void
test_snapshot(void **state)
{
	Daemon *msd = *state;
	TestInstance a;
	TestClient client;
	TreeRecord record, later, found;
	char saved[128], setting[160];
	int manager = listen_as_manager(msd);
	size_t from;

	place(msd, "saved", saved, sizeof(saved));
	snprintf(setting, sizeof(setting), "snapshot = %s\n", saved);
	daemon_configure(msd, setting);
	daemon_start(msd);
	daemon_end(msd, SIGTERM, 0);
	(void) wait_for_log(msd, 0, "no snapshot is needed");
	assert_int_not_equal(access(saved, F_OK), 0);
	daemon_start(msd);
	instance_start(&a, msd, msd->tenant_a);
	test_client_open(&client, &a, 0);
	test_tree_create(&client, &narrow, &record);
	assert_int_equal(tree_epoch_open(client.tree, 0, 41), TREE_OK);
	put_word(&client, &record);
	swap_lock(&client, 0, lock_word(&client));
	(void) test_client_close(&client);
	/* Its queue is short. */
	(void) manager_heard(manager, "");
	from = strlen(read_log(msd));
	daemon_end(msd, SIGTERM, 0);
	(void) wait_for_log(msd, from, "the memory is saved");
	assert_true(manager_heard(manager, "STATUS=saving the snapshot: "));
	lose_memory(msd);

	from = strlen(read_log(msd));
	daemon_start(msd);
	(void) wait_for_log(msd, from, "(loaded)");
	assert_true(manager_heard(manager, "STATUS=loading the snapshot: "));
	assert_int_not_equal(access(saved, F_OK), 0);
	wait_for_metric(msd, "trees", 1);
	test_instance_attach(&a);
	test_client_open(&client, &a, 0);
	assert_int_equal(node_status(&client).epoch, 41);
	expect_word(&client, &record);
	expect_lock_freed(&client, msd);
	assert_int_equal(tree_record_read(client.tree, record.tree, tree_home(record.root), &found), TREE_OK);
	assert_memory_equal(&found, &record, sizeof(record));
	test_tree_create(&client, &narrow, &later);
	assert_true(later.tree >> 32 != record.tree >> 32);
	assert_int_equal(test_client_close(&client), TREE_OK);

	/* Both signals are there when it goes on. */
	from = strlen(read_log(msd));
	assert_int_equal(kill(msd->node.pid, SIGSTOP), 0);
	assert_int_equal(kill(msd->node.pid, SIGTERM), 0);
	assert_int_equal(kill(msd->node.pid, SIGINT), 0);
	daemon_end(msd, SIGCONT, 0);
	(void) wait_for_log(msd, from, "not saved to the snapshot");
	assert_int_not_equal(access(saved, F_OK), 0);
	from = strlen(read_log(msd));
	daemon_start(msd);
	(void) wait_for_log(msd, from, "(kept)");
	test_instance_stop(&a);
	daemon_end(msd, SIGTERM, 0);
	unsetenv("NOTIFY_SOCKET");
	close(manager);
}

#define DAEMON_TEST(name) cmocka_unit_test_setup_teardown(name, daemon_prepare, daemon_remove)

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		DAEMON_TEST(test_tenants), DAEMON_TEST(test_keys_and_quotas_change),
		DAEMON_TEST(test_drain),   DAEMON_TEST(test_death),
		DAEMON_TEST(test_metrics), DAEMON_TEST(test_snapshot),
	};

	daemon_find(argv[0]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

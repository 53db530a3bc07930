/*
 * test_listen.c
 *		Who comes in at a memory node's network address: keys that come and go, addresses to listen at, addresses that
 *		nobody is at.
 *
 * Server and clients are one thread: the clients' wait hook drives the server.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "support/testing.h"
#include "support/fabric_process.h"

#define CLUSTER 55u
#define NODE_BYTES (2u << 20)
#define MAX_CHANNELS 12u

static FabricProcess node; /* of the test that runs: its files; it is not started */

static int
make_directory(void **state)
{
	fabric_process_prepare(&node, NODE_BYTES, MAX_CHANNELS);
	return 0;
}

static int
remove_directory(void **state)
{
	fabric_process_remove(&node);
	return 0;
}

/* Writes a key file of one key, whose digits are all `digit`, and reads it. */
static void
make_key(const char *path, const char *tenant, char digit, FabricKeys *keys)
{
	char line[128];
	char detail[FABRIC_DETAIL_BYTES];
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int length = snprintf(line, sizeof(line), "%s %064d\n", tenant, 0);

	assert_true(file >= 0);
	for (char *at = strchr(line, ' ') + 1; *at != '\n'; at++)
		*at = digit;
	assert_int_equal(write(file, line, (size_t) length), length);
	close(file);
	assert_int_equal(fabric_keys_read(path, keys, detail), FABRIC_OK);
}

/* A client in the server's own thread: attaches and gets a channel. */
static FabricStatus
join(FabricServer *server, const char *key_file, uint64_t cluster, TestChannel *channel)
{
	FabricOptions options = {.wait = serve_while_waiting, .wait_argument = server, .key_file = key_file};
	char address[64];
	uint32_t instance;
	uint32_t granted = 0;
	FabricStatus status;

	snprintf(address, sizeof(address), "tcp:127.0.0.1:%u", fabric_server_port(server));
	status = channel_try_open(channel, address, cluster, 0, &options);
	if (status != FABRIC_OK)
		return status;
	status = fabric_attach(channel->endpoint, false, 1, &instance, &granted);
	channel_close(channel);
	return status != FABRIC_OK ? status : channel_try_open(channel, address, cluster, granted, &options);
}

/* Two tenants, then other keys for both, then one of them without. */
static void
test_keys_come_and_go(void **state)
{
	LocalServer local = local_server(&node);
	char paths[3][192];
	FabricKeys one[3];
	FabricKeys keys = {0};
	TestChannel channels[3];
	uint64_t first;
	uint64_t end;
	uint64_t word = 9;
	FabricOp write;
	FabricOp read;

	for (int i = 0; i < 3; i++)
		snprintf(paths[i], sizeof(paths[i]), "%s/key%d", node.directory, i);
	make_key(paths[0], "red", '1', &one[0]);
	make_key(paths[1], "blue", '2', &one[1]);
	make_key(paths[2], "red", '3', &one[2]);
	for (int i = 0; i < 2; i++)
		keys.keys[keys.count++] = one[i].keys[0];
	local.options.listen = "127.0.0.1:0";
	local.options.keys = &keys;
	assert_int_equal(local_server_open(&local), FABRIC_OK);
	assert_int_not_equal(fabric_server_port(local.server), 0);
	assert_int_equal(join(local.server, paths[0], 1001, &channels[0]), FABRIC_OK);
	assert_int_equal(join(local.server, paths[1], 1002, &channels[1]), FABRIC_OK);
	assert_int_equal(join(local.server, paths[2], 1003, &channels[2]), FABRIC_DENIED);
	assert_int_equal(join(local.server, paths[1], 1001, &channels[2]), FABRIC_DENIED);
	assert_string_equal(fabric_server_tenant(local.server, 1), "red");
	assert_string_equal(fabric_server_tenant(local.server, 2), "blue");

	/* What is red's, blue can neither see nor change; each has lock words of its own. */
	fabric_server_node_range(local.server, &first, &end);
	assert_int_equal(fabric_server_commit(local.server, 1, first, FABRIC_UNIT_BYTES), FABRIC_OK);
	write = op_write(first, &word, 8);
	read = op_read(first, &word, 8);
	assert_int_equal(fabric_execute(channels[0].endpoint, &write, 1), FABRIC_OK);
	assert_int_equal(fabric_execute(channels[1].endpoint, &write, 1), FABRIC_RANGE);
	assert_int_equal(fabric_execute(channels[1].endpoint, &read, 1), FABRIC_OK);
	assert_true(word == 0);
	assert_int_equal(fabric_execute(channels[0].endpoint, &read, 1), FABRIC_OK);
	assert_true(word == 9);
	for (int i = 0; i < 2; i++)
	{
		FabricOp swap = op_compare_swap(FABRIC_LOCKS, 8, 0, 77);

		assert_int_equal(fabric_execute(channels[i].endpoint, &swap, 1), FABRIC_OK);
		assert_true(swap.result == 0);
	}

	/* Red gets a second key: nobody is disturbed.  Its first one goes: who came with that does, too. */
	keys.keys[keys.count++] = one[2].keys[0];
	assert_int_equal(fabric_server_set_keys(local.server, &keys), FABRIC_OK);
	assert_int_equal(fabric_execute(channels[0].endpoint, &read, 1), FABRIC_OK);
	assert_int_equal(join(local.server, paths[2], 1003, &channels[2]), FABRIC_OK);
	keys.keys[0] = keys.keys[--keys.count];
	assert_int_equal(fabric_server_set_keys(local.server, &keys), FABRIC_OK);
	assert_int_equal(fabric_server_channels(local.server), 2);
	assert_int_equal(fabric_execute(channels[0].endpoint, &read, 1), FABRIC_LOST);
	assert_int_equal(fabric_reset(channels[0].endpoint), FABRIC_DENIED);
	assert_int_equal(fabric_execute(channels[1].endpoint, &read, 1), FABRIC_OK);
	assert_int_equal(fabric_execute(channels[2].endpoint, &read, 1), FABRIC_OK);
	assert_true(word == 9);
	for (int i = 0; i < 3; i++)
		channel_close(&channels[i]);
	fabric_server_close(local.server, 0, false);

	/* The numbers stay with the names, whoever comes first. */
	assert_int_equal(local_server_open(&local), FABRIC_OK);
	assert_int_equal(local.memory_state, FABRIC_MEMORY_CLEAN);
	assert_int_equal(join(local.server, paths[1], 1002, &channels[1]), FABRIC_OK);
	assert_string_equal(fabric_server_tenant(local.server, 1), "red");
	assert_string_equal(fabric_server_tenant(local.server, 2), "blue");
	assert_string_equal(fabric_server_tenant(local.server, 3), "");
	channel_close(&channels[1]);
	fabric_server_close(local.server, 0, false);
	for (int i = 0; i < 3; i++)
		unlink(paths[i]);
}

/* Serves this tenant's key and no other, and has it come: to attach a cluster, or with 0 to say HELLO. */
static FabricStatus
come(FabricServer *server, uint32_t number, uint64_t cluster)
{
	FabricOptions options = {.wait = serve_while_waiting, .wait_argument = server};
	char path[192], name[16], address[64];
	TestChannel channel;
	FabricKeys keys;
	FabricStatus status;

	snprintf(path, sizeof(path), "%s/key", node.directory);
	snprintf(name, sizeof(name), "tenant%u", number);
	make_key(path, name, (char) ('1' + number % 9), &keys);
	assert_int_equal(fabric_server_set_keys(server, &keys), FABRIC_OK);
	options.key_file = path;
	snprintf(address, sizeof(address), "tcp:127.0.0.1:%u", fabric_server_port(server));
	status = cluster == 0 ? channel_try_open(&channel, address, 9999, 0, &options)
	                      : join(server, path, cluster, &channel);
	if (status == FABRIC_OK)
		channel_close(&channel);
	unlink(path);
	/* The server sees its end. */
	for (int i = 0; i < 3; i++)
		assert_int_equal(fabric_server_step(server, 0), FABRIC_OK);
	return status;
}

/*
 * Numbers of tenants are few: only who has proven a key takes one, who left nothing keeps none, and who is dropped gives it to
 * whoever comes next, with nothing of what was his.
 */
static void
test_numbers_of_tenants(void **state)
{
	LocalServer local = local_server(&node);
	FabricKeys keys;
	char path[192];
	TestChannel channel;

	snprintf(path, sizeof(path), "%s/key", node.directory);
	make_key(path, "unproven", '7', &keys);
	/* The identity is that of a key here, and what is behind it another one. */
	keys.keys[0].key[0] ^= 1;
	local.options.listen = "127.0.0.1:0";
	local.options.keys = &keys;
	assert_int_equal(local_server_open(&local), FABRIC_OK);
	assert_int_equal(join(local.server, path, 1001, &channel), FABRIC_DENIED);
	assert_string_equal(fabric_server_tenant(local.server, 1), "");

	for (uint32_t i = 100; i < 100 + 3 * FABRIC_MAX_TENANTS; i++)
		assert_int_equal(come(local.server, i, 0), FABRIC_OK);
	for (uint32_t i = 1; i <= FABRIC_MAX_TENANTS; i++)
		assert_int_equal(come(local.server, i, 1000 + i), FABRIC_OK);
	assert_int_equal(come(local.server, 50, 1050), FABRIC_DENIED);
	assert_int_equal(come(local.server, 50, 0), FABRIC_DENIED);
	/* Who has a number is not concerned. */
	assert_int_equal(come(local.server, 4, 1004), FABRIC_OK);

	fabric_server_close(local.server, 0, false);
	assert_int_equal(local_server_open(&local), FABRIC_OK);
	for (uint32_t i = 1; i <= FABRIC_MAX_TENANTS; i++)
	{
		if (strcmp(fabric_server_tenant(local.server, i), "tenant3") == 0)
			fabric_server_forget_tenant(local.server, i);
	}
	/* Its cluster is anybody's. */
	assert_int_equal(come(local.server, 4, 1003), FABRIC_OK);
	assert_int_equal(come(local.server, 50, 1050), FABRIC_OK);
	assert_int_equal(come(local.server, 3, 1103), FABRIC_DENIED);
	fabric_server_close(local.server, 0, false);
	unlink(path);
}

static void
test_listening(void **state)
{
	LocalServer local = local_server(&node);
	FabricKeys keys = {.count = 1};
	const struct
	{
		const char *listen;
		bool keyed;
		bool insecure;
		FabricStatus status;
	} cases[] = {
		{"127.0.0.1:0", false, false, FABRIC_DENIED},
		{"127.0.0.1:0", false, true, FABRIC_OK},
		{"0.0.0.0:0", false, true, FABRIC_DENIED},
		{"*:0", false, true, FABRIC_DENIED},
		{":0", false, true, FABRIC_DENIED},
		{"*:0", true, false, FABRIC_OK},
		{"localhost:0", false, true, FABRIC_OK},
		{"127.0.0.1", false, true, FABRIC_UNREACHABLE},
		{"127.0.0.1:x", false, true, FABRIC_UNREACHABLE},
		{"127.0.0.1:65536", false, true, FABRIC_UNREACHABLE},
		{"::1:0", false, true, FABRIC_UNREACHABLE},
		{"[::1:0", false, true, FABRIC_UNREACHABLE},
		{"192.0.2.1:0", true, false, FABRIC_UNREACHABLE},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		FabricStatus status;

		local.options.listen = cases[i].listen;
		local.options.keys = cases[i].keyed ? &keys : NULL;
		local.options.insecure_loopback = cases[i].insecure;
		status = local_server_open(&local);
		if (status != cases[i].status)
			fail_msg("%s: %s: %s", cases[i].listen, fabric_status_name(status), local.detail);
		if (status == FABRIC_OK)
		{
			assert_int_not_equal(fabric_server_port(local.server), 0);
			assert_int_equal(fabric_server_set_keys(local.server, &keys),
			                 cases[i].keyed ? FABRIC_OK : FABRIC_NOT_SUPPORTED);
			fabric_server_close(local.server, 0, false);
		}
		else
			assert_true(strlen(local.detail) > 0);
	}
}

/* Addresses that nobody is at, and one where somebody listens who says nothing. */
static void
test_nobody_there(void **state)
{
	FabricOptions quick = {.connect_timeout_ms = 300};
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char location[64];
	TestChannel channel;
	const char *const nowhere[] = {"tcp:127.0.0.1", "tcp::1", "tcp:127.0.0.1:99999",
	                               "tcp:no.such.host.invalid:1"};

	for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++)
		assert_int_equal(channel_try_open(&channel, nowhere[i], CLUSTER, 0, &quick), FABRIC_UNREACHABLE);
	assert_int_equal(bind(silent, (struct sockaddr *) &address, length), 0);
	assert_int_equal(getsockname(silent, (struct sockaddr *) &address, &length), 0);
	snprintf(location, sizeof(location), "tcp:127.0.0.1:%u", ntohs(address.sin_port));
	assert_int_equal(channel_try_open(&channel, location, CLUSTER, 0, &quick), FABRIC_UNREACHABLE);
	assert_int_equal(listen(silent, 1), 0);
	assert_int_equal(channel_try_open(&channel, location, CLUSTER, 0, &quick), FABRIC_UNREACHABLE);
	close(silent);
}

#define LISTEN_TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		LISTEN_TEST(test_keys_come_and_go),
		LISTEN_TEST(test_numbers_of_tenants),
		LISTEN_TEST(test_listening),
		LISTEN_TEST(test_nobody_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

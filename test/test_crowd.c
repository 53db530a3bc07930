/*
 * test_crowd.c
 *		A memory node and too many at its door, or too slow ones: half-open connections, handshakes that fail
 *		by the hundred, clients that send byte by byte, clients that do not read, tenants that take all they
 *		can get.  A witness is served all the while, as a client that is there and as one that comes.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdma/server/server_state.h"
#include "support/hostile_node.h"

#define ENEMY 666u
/* Half-open connections, where the limit of descriptors allows them. */
#define CROWD 10000
/* Descriptors that the test needs for everything else: the greedy tenant is the other one who takes many. */
#define OWN_DESCRIPTORS 400
/* With fewer the memory node could not be distinguished from the one who crowds it. */
#define LEAST_DESCRIPTORS 800
/* The crowd comes in parts; between them the witness is looked at. */
#define CROWD_PART 500
#define FAILED_HANDSHAKES 600
#define REFUSED_REQUESTS 600
#define ATTACHES 200
/* An endless stranger would give up after 40 seconds; it has 10. */
#define ENDLESS_BYTES 400
#define ENDLESS_PAUSE_MS 100
/* What a memory node has by itself (FabricServerOptions.max_connections). */
#define MOST_CONNECTIONS (4 * HOSTILE_CHANNELS + 64)
/* Of the witness, of one who asks, and one that is just being closed. */
#define OWN_CONNECTIONS 5u
/*
 * What the memory node reads for a client that does not: 64 KB, and what fits between two sockets. What is
 * asked for is several times as much.
 */
#define SLOW_READER_BYTES (16ull << 20)
#define SLOW_READER_CHAINS 1000
#define SLOW_READER_BUFFER 65536

static HostileNode node;

static void
open_enemy(RawClient *raw)
{
	raw_open(raw, &node.process, node.keyed ? &node.key : NULL);
}

/* ---- Too many, too slow to say who they are */

/* The first flight of a client with a key of a tenant that nobody knows. */
static size_t
unknown_hello(uint8_t *bytes, size_t room)
{
	FabricKey key = node.key;
	StreamContext *context = stream_context_open();
	Stream *client;
	ssize_t count;
	int ends[2];

	key.identity[0] = 'X';
	assert_non_null(context);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
	client = stream_client(ends[0], context, &key);
	assert_int_equal(stream_handshake(client), STREAM_WANT_READ);
	count = recv(ends[1], bytes, room, 0);
	assert_true(count > 0);
	stream_close(client);
	close(ends[1]);
	stream_context_close(context);
	return (size_t) count;
}

/* How many of the crowd there can be: as many as wanted, or as the limit of descriptors allows. */
static int
crowd_size(void)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	return limit.rlim_cur > CROWD + OWN_DESCRIPTORS ? CROWD : (int) limit.rlim_cur - OWN_DESCRIPTORS;
}

/* Who takes too long to say who he is goes, though he never stops sending. */
static void
endless_stranger(void)
{
	/* What announces more than ever comes: a record of TLS, or a frame. */
	uint8_t beginning[FRAME_HEAD_BYTES] = {22, 3, 1, 3, 0xe8};
	const FrameHead frame = {FRAME_MAX_PAYLOAD, CONTROL_HELLO, FRAME_VERSION, 1};
	int descriptor = raw_socket(&node.process);
	size_t sent = 0;

	if (!node.keyed)
		frame_encode(&frame, beginning);
	while (send(descriptor, sent < sizeof(beginning) ? beginning + sent : (const uint8_t *) "", 1,
	            MSG_NOSIGNAL) == 1)
	{
		sent++;
		assert_true(sent < ENDLESS_BYTES);
		sleep_ms(ENDLESS_PAUSE_MS);
	}
	/* What it said was not what it was sent away for. */
	assert_true(sent > sizeof(beginning));
	close(descriptor);
}

static void
test_half_open_connections(void **state)
{
	uint8_t hello[2048] = {16};
	size_t hello_bytes = node.keyed ? unknown_hello(hello, sizeof(hello)) : sizeof(hello);
	int count = crowd_size();
	int *crowd = calloc((size_t) count, sizeof(int));

	assert_non_null(crowd);
	for (int i = 0; i < count; i++)
	{
		crowd[i] = raw_socket(&node.process);
		/* They say nothing, a byte, or half of what they have to say. */
		if (i % 3 > 0)
			send(crowd[i], hello, i % 3 == 1 ? 1 : hello_bytes / 2, MSG_NOSIGNAL);
		if (i % CROWD_PART == CROWD_PART - 1)
			witness_expect(&node.witness, 1);
	}
	print_message("%d half-open connections%s\n", count,
	              count < CROWD ? ": the limit of descriptors allows no more" : "");
	witness_expect(&node.witness, 3);
	/* The memory node keeps a few of them, and in the end none. */
	hostile_node_expect_connections(&node, SERVER_MAX_STRANGERS + OWN_CONNECTIONS);
	endless_stranger();
	hostile_node_expect_connections(&node, OWN_CONNECTIONS);
	for (int i = 0; i < count; i++)
		close(crowd[i]);
	free(crowd);
	witness_expect(&node.witness, 3);
}

/* What the memory node has said of one kind since `began`: something, and so little that nobody fills its log. */
static void
expect_few_lines(const char *text, uint64_t began)
{
	hostile_node_expect_log(&node, text);
	/* Five in two seconds and the number of the rest, and what begins or ends in the middle of that. */
	assert_in_range(hostile_node_log_lines(&node, text), 1, 6 * ((now_ms() - began) / 2000 + 2));
}

/*
 * Strangers by the hundred, each of whom the memory node has to look at: refused, and the log does not grow
 * with them.
 */
static void
test_failed_handshakes(void **state)
{
	uint8_t hello[2048];
	size_t hello_bytes = unknown_hello(hello, sizeof(hello));
	uint8_t answer[64];
	uint64_t began = now_ms();

	for (int i = 0; i < FAILED_HANDSHAKES; i++)
	{
		int descriptor = raw_socket(&node.process);

		assert_int_equal(send(descriptor, hello, hello_bytes, MSG_NOSIGNAL), hello_bytes);
		assert_int_equal(fcntl(descriptor, F_SETFL, 0), 0);
		while (recv(descriptor, answer, sizeof(answer), 0) > 0)
			;
		close(descriptor);
		if (i % 100 == 99)
			witness_expect(&node.witness, 1);
	}
	assert_int_equal(service_info(node.process.network_address).authentication_failures, FAILED_HANDSHAKES);
	hostile_node_expect_log(&node, "more of this kind");
	expect_few_lines("no key of the identity", began);
}

/* The same for what somebody with a key asks for and may not have, and for what he may have as often as he likes. */
static void
test_refused_requests(void **state)
{
	const uint32_t attach[3] = {0, 1, 1};
	uint64_t word = 0;
	uint64_t began = now_ms();
	FabricCapabilities capabilities;
	RawClient raw;

	open_enemy(&raw);
	assert_int_equal(
		raw_hello(&raw, ENEMY, cluster_attach(node.process.network_address, ENEMY), &capabilities),
		FABRIC_OK);
	for (int i = 0; i < REFUSED_REQUESTS; i++)
	{
		FabricOp write = op_write(
			i % 2 == 0 ? capabilities.region_bytes[FABRIC_NODES] : capabilities.redo_offset + 4, &word, 8);

		assert_int_equal(raw_chain(&raw, &write, 1), FABRIC_RANGE);
		assert_int_equal(raw_call(&raw, CONTROL_FIRST_METHOD + 99, NULL, 0, NULL, NULL), FABRIC_PROTOCOL);
		if (i % 100 == 99)
			witness_expect(&node.witness, 1);
	}
	assert_int_equal(service_info(node.process.network_address).chains_refused, REFUSED_REQUESTS);
	for (int i = 0; i < ATTACHES; i++)
		assert_int_equal(raw_call(&raw, CONTROL_ATTACH, attach, sizeof(attach), NULL, NULL), FABRIC_OK);
	raw_close(&raw);
	hostile_node_expect_log(&node, "a chain was refused: out of range");
	expect_few_lines("a chain was refused: ", began);
	expect_few_lines("request 0xff63 of cluster ", began);
	expect_few_lines(" granted, ", began);
	witness_expect(&node.witness, 3);
}

/* ---- Too slow */

/* Sends a frame byte by byte. */
static bool
dribble(RawClient *raw, const uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
	{
		if (!raw_send(raw, bytes + i, 1))
			return false;
	}
	return true;
}

static void
test_byte_by_byte(void **state)
{
	static uint8_t bytes[RAW_FRAME_BYTES];
	uint8_t payload[200];
	uint32_t flags;
	FrameHead frame;
	RawClient raw;

	open_enemy(&raw);
	assert_int_equal(raw_hello(&raw, ENEMY, 0, NULL), FABRIC_OK);
	for (size_t length = 0; length < sizeof(payload); length += 66)
	{
		size_t count;

		memset(payload, (int) length, length);
		count = raw_frame(bytes, SERVICE_ECHO, 900 + length, payload, length);
		assert_true(dribble(&raw, bytes, count));
		assert_true(raw_receive(&raw, &frame, bytes));
		assert_int_equal(frame.request, 900 + length);
		assert_int_equal(frame.length, FRAME_STATUS_BYTES + length);
		assert_int_equal(frame_status(bytes, &flags), FABRIC_OK);
		assert_memory_equal(bytes + FRAME_STATUS_BYTES, payload, length);
		witness_expect(&node.witness, 1);
	}
	raw_close(&raw);
}

/*
 * Asks for much and takes nothing: it is not read from any more, costs little, and has its answers when it
 * wants them.
 */
static void
test_slow_reader(void **state)
{
	static uint8_t bytes[RAW_FRAME_BYTES];
	static uint8_t stripe[FABRIC_STRIPE_BYTES];
	static uint8_t requests[SLOW_READER_CHAINS * 1024];
	uint8_t payload[CHAIN_HEAD_BYTES + FABRIC_MAX_CHAIN * CHAIN_OPERATION_BYTES];
	FabricOp ops[FABRIC_MAX_CHAIN];
	FabricCapabilities capabilities;
	uint32_t incarnation = cluster_attach(node.process.network_address, ENEMY);
	uint64_t before;
	uint64_t answered;
	size_t count = 0;
	size_t sent;
	size_t frame_bytes = 0;
	int descriptor = raw_socket(&node.process);
	int small = SLOW_READER_BUFFER;
	RawClient raw;

	assert_int_equal(setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	assert_int_equal(setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	raw_start(&raw, descriptor, node.keyed ? &node.key : NULL);
	assert_int_equal(raw_hello(&raw, ENEMY, incarnation, &capabilities), FABRIC_OK);
	for (uint32_t i = 0; i < FABRIC_MAX_CHAIN; i++)
		ops[i] = op_read(capabilities.redo_offset, stripe, sizeof(stripe));
	chain_encode(ops, FABRIC_MAX_CHAIN, payload);
	for (uint64_t i = 0; i < SLOW_READER_CHAINS; i++)
	{
		frame_bytes = raw_frame(requests + count, CONTROL_CHAIN, i + 1, payload, sizeof(payload));
		count += frame_bytes;
	}
	before = service_info(node.process.network_address).chain_read_bytes;
	sent = raw_send_some(&raw, requests, count);
	witness_expect(&node.witness, 3);
	answered = service_info(node.process.network_address).chain_read_bytes - before;
	print_message("%zu KB were asked for, %llu KB read\n",
	              sent / frame_bytes * (chain_reply_bytes(ops, FABRIC_MAX_CHAIN) >> 10),
	              (unsigned long long) answered >> 10);
	assert_true(sent / frame_bytes * chain_reply_bytes(ops, FABRIC_MAX_CHAIN) > 2 * SLOW_READER_BYTES);
	assert_in_range(answered, 1, SLOW_READER_BYTES);
	for (uint64_t i = 0; i < sent / frame_bytes; i++)
	{
		FrameHead frame;

		assert_true(raw_receive(&raw, &frame, bytes));
		assert_int_equal(frame.request, i + 1);
		assert_int_equal(frame.length, FRAME_STATUS_BYTES + chain_reply_bytes(ops, FABRIC_MAX_CHAIN));
	}
	raw_close(&raw);
	witness_expect(&node.witness, 3);
}

/* ---- Too greedy */

/* One tenant takes all connections and channels that it can get: the other's clients still come and go. */
static void
test_greedy_tenant(void **state)
{
	static RawClient greedy[MOST_CONNECTIONS + 100];
	const size_t most = sizeof(greedy) / sizeof(greedy[0]);
	uint32_t attach[3] = {0, 1, 1};
	uint32_t granted[2];
	uint32_t granted_bytes = sizeof(granted);
	size_t served = 0;
	size_t channels = 0;
	size_t count = 0;

	raw_open(&greedy[0], &node.process, &node.foreign_key);
	assert_int_equal(raw_hello(&greedy[0], ENEMY, 0, NULL), FABRIC_OK);
	assert_int_equal(
		raw_call(&greedy[0], CONTROL_ATTACH, attach, sizeof(attach), (uint8_t *) granted, &granted_bytes),
		FABRIC_OK);
	for (count = 1; count < most; count++)
	{
		FabricStatus status;

		/* Channels first, then connections alone. */
		raw_open(&greedy[count], &node.process, &node.foreign_key);
		status = raw_hello(&greedy[count], ENEMY, count <= HOSTILE_CHANNELS ? granted[1] : 0, NULL);
		served += status == FABRIC_OK;
		channels += status == FABRIC_OK && count <= HOSTILE_CHANNELS;
		assert_true(status == FABRIC_OK || status == FABRIC_NO_MEMORY || status == FABRIC_LOST);
		if (count % 20 == 0)
			witness_expect(&node.witness, 1);
	}
	print_message("a greedy tenant has %zu channels, %zu connections\n", channels, served);
	assert_in_range(channels, 1, HOSTILE_CHANNELS - 2);
	assert_in_range(served, 1, MOST_CONNECTIONS - 1);
	/* The other one has room for channels, too, as one that comes now. */
	{
		uint32_t incarnation = cluster_attach(node.process.network_address, ENEMY + 1);
		TestChannel channel;

		channel_open(&channel, node.process.network_address, ENEMY + 1, incarnation);
		channel_close(&channel);
	}
	while (count-- > 0)
		raw_close(&greedy[count]);
	witness_expect(&node.witness, 3);
}

/* A file with the key of the tenant that the witness is not of. */
static void
write_foreign_key(const char *path)
{
	int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(file >= 0);
	assert_true(dprintf(file, "%s ", node.foreign_key.tenant) > 0);
	for (uint32_t i = 0; i < FABRIC_KEY_BYTES; i++)
		assert_true(dprintf(file, "%02x", node.foreign_key.key[i]) == 2);
	close(file);
}

/* A reader of the cluster is refused, and told why. */
static void
expect_readers_full(const char *key_file)
{
	const FabricOptions options = {
		.cluster = {ENEMY, ~(uint64_t) ENEMY}, .reader = true, .key_file = key_file};
	FabricEndpoint *endpoint;
	Fabric *fabric;

	assert_int_equal(fabric_open(&options, &fabric), FABRIC_OK);
	assert_int_equal(fabric_connect(fabric, node.process.network_address, &endpoint), FABRIC_NO_MEMORY);
	assert_non_null(strstr(fabric_detail(fabric), "\"channels\" is not for standbys"));
	fabric_close(fabric);
	hostile_node_expect_log(&node, "those that are left are for the server whose indexes it reads");
}

/* Readers take all channels that they can get: the instance that they read has some left, and gets back what they give up. */
static void
test_greedy_readers(void **state)
{
	const FabricOptions options = {
		.operation_timeout_ms = PATIENCE_MS, .connect_timeout_ms = PATIENCE_MS, .reader = true};
	const char *address = node.process.network_address;
	TestChannel readers[HOSTILE_CHANNELS], owner, last;
	char path[256];
	const char *key_file = node.keyed ? path : NULL;
	uint32_t incarnation;
	uint32_t count = 0;

	snprintf(path, sizeof(path), "%s/foreign", node.process.directory);
	if (node.keyed)
		write_foreign_key(path);
	channel_defaults(key_file, NULL);
	incarnation = cluster_attach(address, ENEMY);
	while (count < HOSTILE_CHANNELS &&
	       channel_try_open(&readers[count], address, ENEMY, 0, &options) == FABRIC_OK)
		count++;
	print_message("%u readers\n", count);
	assert_in_range(count, 2, HOSTILE_CHANNELS - 2);
	expect_readers_full(key_file);
	channel_open(&owner, address, ENEMY, incarnation);
	/* One that resets its channel gives up what is not for readers any more. */
	assert_int_equal(fabric_reset(readers[0].endpoint), FABRIC_NO_MEMORY);
	channel_open(&last, address, ENEMY, incarnation);
	channel_close(&last);
	channel_close(&readers[0]);
	channel_close(&readers[1]);
	assert_int_equal(channel_try_open(&readers[1], address, ENEMY, 0, &options), FABRIC_OK);
	while (--count > 0)
		channel_close(&readers[count]);
	channel_close(&owner);
	unlink(path);
	witness_expect(&node.witness, 3);
}

#define KEYED(function) HOSTILE_KEYED(function, &node)
#define OPEN(function) HOSTILE_OPEN(function, &node)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		KEYED(test_half_open_connections), OPEN(test_half_open_connections), KEYED(test_failed_handshakes),
		KEYED(test_refused_requests),      OPEN(test_refused_requests),      KEYED(test_byte_by_byte),
		OPEN(test_byte_by_byte),           KEYED(test_slow_reader),          OPEN(test_slow_reader),
		KEYED(test_greedy_tenant),         KEYED(test_greedy_readers),       OPEN(test_greedy_readers),
	};
	struct rlimit limit;

	/* Both the crowd and the memory node need many. */
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return 1;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max < LEAST_DESCRIPTORS)
	{
		printf("skipped: a process may have %llu descriptors here, %u are needed\n",
		       (unsigned long long) limit.rlim_max, LEAST_DESCRIPTORS);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

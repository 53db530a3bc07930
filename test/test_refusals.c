/*
 * test_refusals.c
 *		What a client is told that cannot come in: no key, a wrong one, one that is not wanted, a key file that cannot
 *		be used, another version.  What those are told who do not speak our protocol: nothing.  And memory nodes that say
 *		what none says.
 */
#define _GNU_SOURCE 1
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/hostile_node.h"
#include "rdma/verbs/verbs.h"

#define CLUSTER 17u
/* Of a memory node or a client to come. */
#define NEXT_VERSION (FRAME_VERSION + 1)

static HostileNode node;

static void
write_key_file(const char *path, const char *text, mode_t mode)
{
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	assert_true(file >= 0);
	assert_int_equal(write(file, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(file, mode), 0);
	close(file);
}

/* Connects as any client does; its status and its detail must be these. */
static void
expect_connect(const char *address, const char *key_file, FabricStatus status, const char *detail)
{
	const FabricOptions options = {.operation_timeout_ms = PATIENCE_MS,
	                               .connect_timeout_ms = PATIENCE_MS,
	                               .cluster = {CLUSTER, ~(uint64_t) CLUSTER},
	                               .key_file = key_file};
	FabricEndpoint *endpoint;
	Fabric *fabric;

	assert_int_equal(fabric_open(&options, &fabric), FABRIC_OK);
	assert_int_equal(fabric_connect(fabric, address, &endpoint), status);
	if (strstr(fabric_detail(fabric), detail) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", fabric_detail(fabric), detail);
	fabric_close(fabric);
}

/* ---- Keys */

static void
test_keys_wanted(void **state)
{
	const char *address = node.process.network_address;
	char path[192];
	char line[200];

	snprintf(path, sizeof(path), "%s/mine", node.process.directory);
	expect_connect(address, node.process.key_file, FABRIC_OK, "");
	expect_connect(address, NULL, FABRIC_DENIED, "serves only clients with a key");
	/* Another key of a tenant that is known, and any of one that is not. */
	for (int i = 0; i < 2; i++)
	{
		snprintf(line, sizeof(line), "%s %064x\n", i == 0 ? "tests" : "nobody", 0x1234u);
		write_key_file(path, line, 0600);
		expect_connect(address, path, FABRIC_DENIED, "it does not know our key");
	}
	/* A file that is not to be used is as good as none, and says what is wrong. */
	write_key_file(path, line, 0644);
	expect_connect(address, path, FABRIC_DENIED, "wanted is mode 0600");
	write_key_file(path, "tests 0\n", 0600);
	expect_connect(address, path, FABRIC_DENIED, "line 1");
	unlink(path);
	expect_connect(address, path, FABRIC_DENIED, "No such file");
	expect_connect(address, node.process.key_file, FABRIC_OK, "");
}

static void
test_key_not_wanted(void **state)
{
	char path[192];

	snprintf(path, sizeof(path), "%s/mine", node.process.directory);
	write_key_file(path, "tests 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n", 0600);
	expect_connect(node.process.network_address, path, FABRIC_DENIED, "it has no keys");
	hostile_node_expect_log(&node, "a client shows a key, and there are no keys here");
	unlink(path);
	expect_connect(node.process.network_address, NULL, FABRIC_OK, "");
}

/* Whoever does not say HELLO to a memory node with keys is told nothing, not even whose port that is. */
static void
test_others_told_nothing(void **state)
{
	static const char *const words[] = {"GET / HTTP/1.1\r\nHost: here\r\n\r\n", "HELO",
	                                    "\x08\0\0\0\x04\xff\x02\0\1\0\0\0\0\0\0\0abcdefgh"};
	static const size_t counts[] = {28, 4, 24};
	uint8_t byte;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
	{
		int descriptor = raw_socket(&node.process);

		assert_int_equal(send(descriptor, words[i], counts[i], MSG_NOSIGNAL), counts[i]);
		assert_int_equal(fcntl(descriptor, F_SETFL, 0), 0);
		assert_true(recv(descriptor, &byte, 1, 0) <= 0);
		close(descriptor);
	}
	hostile_node_expect_log(&node, "does not speak TLS");
	witness_expect(&node.witness, 1);
}

/* ---- Devices */

/* HELLO, with the address of a queue pair behind it if `verbs`; the bytes of the reply's data are in *bytes. */
static FabricStatus
say_hello(RawClient *raw, uint32_t incarnation, bool verbs, uint32_t *bytes)
{
	static const VerbsAddress address = {.queue = 1, .mtu = 1024, .reads = 1};
	const FrameHello hello = {.cluster = {CLUSTER, ~(uint64_t) CLUSTER},
	                          .incarnation = incarnation,
	                          .old_channel = CONTROL_NO_CHANNEL};
	uint8_t request[128];
	uint8_t reply[RAW_FRAME_BYTES];
	FramePayload payload = {.data = request, .bytes = sizeof(request)};

	frame_put_hello(&payload, &hello);
	if (verbs)
		verbs_put_address(&payload, &address);
	*bytes = sizeof(reply);
	return raw_call(raw, CONTROL_HELLO, request, payload.position, reply, bytes);
}

/* A client that was refused for its device is answered as any other when it comes again without: nothing of a grant is left. */
static void
test_device_not_here(void **state)
{
	uint32_t incarnation;
	uint32_t usual;
	uint32_t bytes;
	RawClient raw;

	raw_open(&raw, &node.process, NULL);
	assert_int_equal(say_hello(&raw, 0, false, &usual), FABRIC_OK);
	raw_close(&raw);
	incarnation = cluster_attach(node.process.network_address, CLUSTER);
	for (uint32_t with_channel = 0; with_channel < 2; with_channel++)
	{
		raw_open(&raw, &node.process, NULL);
		assert_int_equal(say_hello(&raw, incarnation, true, &bytes), FABRIC_NOT_SUPPORTED);
		assert_int_equal(say_hello(&raw, with_channel * incarnation, false, &bytes), FABRIC_OK);
		assert_int_equal(bytes, usual);
		raw_close(&raw);
	}
	witness_expect(&node.witness, 1);
}

/* ---- Versions */

/* A frame as the next version has it, behind which nothing is known. */
static size_t
next_version_frame(uint8_t *place, uint16_t method)
{
	const FrameHead frame = {64, method, NEXT_VERSION, 1};

	memset(place, 0, FRAME_HEAD_BYTES + 64);
	frame_encode(&frame, place);
	return FRAME_HEAD_BYTES + 64;
}

/* A client of the next version learns which one this memory node speaks, and is sent away. */
static void
expect_version_told(RawClient *raw)
{
	uint8_t bytes[RAW_FRAME_BYTES];
	FrameHead frame;
	uint32_t flags;

	assert_true(raw_send(raw, bytes, next_version_frame(bytes, CONTROL_HELLO)));
	assert_true(raw_receive(raw, &frame, bytes));
	assert_int_equal(frame.version, FRAME_VERSION);
	assert_int_equal(frame.method, CONTROL_HELLO);
	assert_int_equal(frame_status(bytes, &flags), FABRIC_PROTOCOL);
	raw_expect_closed(raw);
	raw_close(raw);
}

/* A socket at a path, however long that is: connected, or listening. */
static int
local_socket(const char *path, int (*enter)(int, const struct sockaddr *, socklen_t))
{
	int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;
	socklen_t length;
	int directory;

	assert_true(control_address(path, &address, &length, &directory));
	assert_int_equal(enter(descriptor, (struct sockaddr *) &address, length), 0);
	if (directory >= 0)
		close(directory);
	return descriptor;
}

static void
test_next_client(void **state)
{
	char told[FABRIC_DETAIL_BYTES];
	int descriptor;
	uint8_t bytes[RAW_FRAME_BYTES];
	RawClient raw;

	raw_open(&raw, &node.process, node.keyed ? &node.key : NULL);
	expect_version_told(&raw);
	snprintf(told, sizeof(told), "a client speaks version %u of the protocol, and this is version %u",
	         NEXT_VERSION, FRAME_VERSION);
	hostile_node_expect_log(&node, told);
	descriptor = local_socket(node.process.socket_path, connect);
	assert_int_equal(fcntl(descriptor, F_SETFL, O_NONBLOCK), 0);
	raw_start(&raw, descriptor, NULL);
	expect_version_told(&raw);
	/* Who has said HELLO has no reason to do it. */
	raw_open(&raw, &node.process, node.keyed ? &node.key : NULL);
	assert_int_equal(raw_hello(&raw, CLUSTER, 0, NULL), FABRIC_OK);
	assert_true(raw_send(&raw, bytes, next_version_frame(bytes, CONTROL_HELLO)));
	raw_expect_closed(&raw);
	raw_close(&raw);
	witness_expect(&node.witness, 1);
}

/* A memory node of the next version: it answers what it has to, whatever it is asked, to one client. */
static pid_t
start_next_node(int listener)
{
	pid_t child = start_child();
	uint8_t bytes[RAW_FRAME_BYTES];
	int descriptor;

	if (child != 0)
		return child;
	descriptor = accept(listener, NULL, NULL);
	CHECK(descriptor >= 0 && recv(descriptor, bytes, sizeof(bytes), 0) > 0);
	CHECK(send(descriptor, bytes, next_version_frame(bytes, CONTROL_HELLO), MSG_NOSIGNAL) > 0);
	while (recv(descriptor, bytes, sizeof(bytes), 0) > 0)
		;
	_exit(0);
}

static void
test_next_node(void **state)
{
	struct sockaddr_in network = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(network);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char told[FABRIC_DETAIL_BYTES];
	char path[160];
	char address[200];
	pid_t child;

	snprintf(told, sizeof(told), "the memory node speaks version %u of the protocol, and this is version %u",
	         NEXT_VERSION, FRAME_VERSION);
	assert_int_equal(bind(listener, (struct sockaddr *) &network, sizeof(network)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *) &network, &length), 0);
	child = start_next_node(listener);
	snprintf(address, sizeof(address), "tcp:127.0.0.1:%u", ntohs(network.sin_port));
	expect_connect(address, NULL, FABRIC_PROTOCOL, told);
	assert_int_equal(wait_for_child(child), 0);
	close(listener);

	snprintf(path, sizeof(path), "%s/next", node.process.directory);
	listener = local_socket(path, bind);
	assert_int_equal(listen(listener, 1), 0);
	child = start_next_node(listener);
	snprintf(address, sizeof(address), "shm:%s", path);
	expect_connect(address, NULL, FABRIC_PROTOCOL, told);
	assert_int_equal(wait_for_child(child), 0);
	unlink(path);
	close(listener);
}

/* ---- Wild ones */

/* What a memory node says of itself, and of a channel of CLUSTER's first incarnation. */
static const FabricCapabilities sane = {
	.flags = FABRIC_CAP_LINE_ATOMIC,
	.max_chain = FABRIC_MAX_CHAIN,
	.max_outstanding = 4,
	.one_packet = 8,
	.lock_words = 64,
	.region_bytes = {1u << 20, 512},
	.instance = 1,
	.incarnation = 1,
};

/* Each breaks the contract in one way; the first does not. */
static FabricCapabilities
wild_capabilities(int which)
{
	FabricCapabilities wild = sane;

	switch (which)
	{
		case 1:
			wild.max_chain = 0;
			break;
		case 2:
			wild.max_chain = FABRIC_MAX_CHAIN + 1;
			break;
		case 3:
			wild.max_outstanding = 0;
			break;
		case 4:
			wild.one_packet = 0;
			break;
		case 5:
			wild.lock_words = 0;
			break;
		case 6:
			wild.lock_words = wild.region_bytes[FABRIC_LOCKS] = 0;
			break;
		case 7:
			wild.lock_words = 63;
			wild.region_bytes[FABRIC_LOCKS] = 63 * 8;
			break;
		case 8:
			wild.region_bytes[FABRIC_LOCKS] = UINT64_MAX;
			break;
		case 9:
			wild.region_bytes[FABRIC_NODES] = 0;
			break;
		case 10:
			wild.region_bytes[FABRIC_NODES] = UINT64_MAX;
			break;
		case 11:
			wild.instance = 0;
			break;
		case 12:
			wild.instance = UINT16_MAX + 1;
			break;
		case 13:
			wild.incarnation = 2;
			break;
		case 14:
			wild.channel = UINT32_MAX;
			break;
		case 15:
			wild.redo_offset = UINT64_MAX - 4095;
			break;
		case 16:
			wild.redo_offset = 8;
			break;
		case 17:
			wild.redo_offset = 1u << 20;
			break;
		default:
			break;
	}
	return wild;
}

#define WILD_CAPABILITIES 18

/* Answers the HELLO of the next client with these. The client's connection. */
static int
answer_hello(int listener, const FabricCapabilities *capabilities)
{
	uint8_t bytes[RAW_FRAME_BYTES];
	uint8_t data[256];
	FramePayload payload = {.data = data, .bytes = sizeof(data)};
	FrameHead frame;
	int descriptor = accept(listener, NULL, NULL);

	CHECK(descriptor >= 0 && recv(descriptor, bytes, sizeof(bytes), 0) >= FRAME_HEAD_BYTES);
	CHECK(frame_decode(bytes, &frame) && frame.method == CONTROL_HELLO);
	frame_put_capabilities(&payload, capabilities, 1);
	frame.length = payload.position;
	memcpy(frame_begin_reply(&frame, FABRIC_OK, 0, bytes), data, payload.position);
	CHECK(send(descriptor, bytes, frame_wire_bytes(payload.position + FRAME_STATUS_BYTES), MSG_NOSIGNAL) > 0);
	return descriptor;
}

/* Until the client goes. */
static void
see_off(int descriptor)
{
	uint8_t bytes[RAW_FRAME_BYTES];

	while (recv(descriptor, bytes, sizeof(bytes), 0) > 0)
		;
	close(descriptor);
}

/* A memory node that answers one HELLO after the other with these. */
static pid_t
start_wild_node(int listener)
{
	pid_t child = start_child();

	if (child != 0)
		return child;
	for (int i = 0; i < WILD_CAPABILITIES; i++)
	{
		FabricCapabilities wild = wild_capabilities(i);

		see_off(answer_hello(listener, &wild));
	}
	_exit(0);
}

/* A listening socket of a memory node that is played, and its address. */
static int
played_node(char address[200])
{
	struct sockaddr_in network = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(network);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(listener, (struct sockaddr *) &network, sizeof(network)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *) &network, &length), 0);
	snprintf(address, 200, "tcp:127.0.0.1:%u", ntohs(network.sin_port));
	return listener;
}

/* Of the clients of memory nodes that are played. */
static const FabricOptions played_options = {.operation_timeout_ms = PATIENCE_MS,
                                             .connect_timeout_ms = PATIENCE_MS,
                                             .cluster = {CLUSTER, ~(uint64_t) CLUSTER},
                                             .incarnation = 1};

/* What a memory node says is looked at before anything goes by it. */
static void
test_wild_node(void **state)
{
	char address[200];
	int listener = played_node(address);
	pid_t child;

	child = start_wild_node(listener);
	for (int i = 0; i < WILD_CAPABILITIES; i++)
	{
		FabricEndpoint *endpoint;
		Fabric *fabric;
		FabricStatus status;

		assert_int_equal(fabric_open(&played_options, &fabric), FABRIC_OK);
		status = fabric_connect(fabric, address, &endpoint);
		if (status != (i == 0 ? FABRIC_OK : FABRIC_PROTOCOL))
			fail_msg("capabilities %d: %s", i, fabric_status_name(status));
		fabric_close(fabric);
	}
	assert_int_equal(wait_for_child(child), 0);
	close(listener);
}

/* What a memory node says to one HELLO of a reader after the other, and what that comes to. */
typedef struct ReadersAnswer
{
	uint32_t incarnation;
	uint64_t uuid; /* half of it */
	FabricStatus status;
} ReadersAnswer;

/* The first ones answer connects, those from READERS_RESET on resets. */
static const ReadersAnswer readers_answers[] = {
	{0, 5, FABRIC_PROTOCOL},    {UINT16_MAX + 1, 5, FABRIC_PROTOCOL},
	{UINT16_MAX, 5, FABRIC_OK}, {UINT16_MAX, 5, FABRIC_OK},
	{1, 5, FABRIC_FENCED},      {UINT16_MAX, 6, FABRIC_FENCED},
	{UINT16_MAX, 5, FABRIC_OK},
};

#define READERS_ANSWERS ((int) (sizeof(readers_answers) / sizeof(readers_answers[0])))
#define READERS_RESET 3

static pid_t
start_readers_node(int listener)
{
	pid_t child = start_child();

	if (child != 0)
		return child;
	for (int i = 0; i < READERS_ANSWERS; i++)
	{
		FabricCapabilities said = sane;

		said.incarnation = readers_answers[i].incarnation;
		said.node_uuid[1] = readers_answers[i].uuid;
		see_off(answer_hello(listener, &said));
	}
	_exit(0);
}

/* A reader takes the incarnation that it is told, if it is one; and a reset no other, and none of another memory. */
static void
test_reader_is_told(void **state)
{
	FabricOptions options = played_options;
	char address[200];
	int listener = played_node(address);
	pid_t child = start_readers_node(listener);
	FabricEndpoint *endpoint = NULL;
	Fabric *fabric;

	options.reader = true;
	assert_int_equal(fabric_open(&options, &fabric), FABRIC_OK);
	for (int i = 0; i < READERS_ANSWERS; i++)
	{
		FabricStatus status =
			i < READERS_RESET ? fabric_connect(fabric, address, &endpoint) : fabric_reset(endpoint);

		if (status != readers_answers[i].status)
			fail_msg("answer %d: %s", i, fabric_status_name(status));
	}
	assert_int_equal(fabric_capabilities(endpoint)->incarnation, UINT16_MAX);
	fabric_close(fabric);
	assert_int_equal(wait_for_child(child), 0);
	close(listener);
}

/* An answer to a chain of one READ of 8 bytes, and what it comes to. */
typedef struct WildAnswer
{
	uint32_t bytes;      /* of data */
	FabricStatus says;   /* its status */
	uint64_t other;      /* added to the request's number */
	int times;           /* so often */
	FabricStatus status; /* the client's */
} WildAnswer;

static const WildAnswer wild_answers[] = {
	{8, FABRIC_OK, 0, 1, FABRIC_OK},      {0, FABRIC_RANGE, 0, 1, FABRIC_RANGE},
	{0, FABRIC_OK, 0, 1, FABRIC_LOST},    {16, FABRIC_OK, 0, 1, FABRIC_LOST},
	{8, FABRIC_RANGE, 0, 1, FABRIC_LOST}, {8, FABRIC_OK, 1, 1, FABRIC_LOST},
	{8, FABRIC_OK, 0, 2, FABRIC_LOST},
};

#define WILD_ANSWERS (sizeof(wild_answers) / sizeof(wild_answers[0]))
#define WILD_DATA 0x5a

/* A memory node that answers one chain of each client in these ways. */
static pid_t
start_answering_node(int listener)
{
	pid_t child = start_child();

	if (child != 0)
		return child;
	for (size_t i = 0; i < WILD_ANSWERS; i++)
	{
		const WildAnswer *answer = &wild_answers[i];
		int descriptor = answer_hello(listener, &sane);
		uint32_t whole = frame_wire_bytes(answer->bytes + FRAME_STATUS_BYTES);
		uint8_t bytes[RAW_FRAME_BYTES];
		FrameHead frame;

		CHECK(recv(descriptor, bytes, sizeof(bytes), 0) >= FRAME_HEAD_BYTES);
		CHECK(frame_decode(bytes, &frame) && frame.method == CONTROL_CHAIN);
		frame.request += answer->other;
		frame.length = answer->bytes;
		memset(bytes, WILD_DATA, sizeof(bytes));
		(void) frame_begin_reply(&frame, answer->says, 0, bytes);
		memcpy(bytes + whole, bytes, whole);
		/* At once, so that the client has the second when it takes the first. */
		CHECK(send(descriptor, bytes, whole * (size_t) answer->times, MSG_NOSIGNAL) > 0);
		see_off(descriptor);
	}
	_exit(0);
}

/* An answer is that to the chain which was sent, and once, or the connection is given up, and nothing of it is taken. */
static void
test_wild_answers(void **state)
{
	char address[200];
	int listener = played_node(address);
	pid_t child;

	child = start_answering_node(listener);
	for (size_t i = 0; i < WILD_ANSWERS; i++)
	{
		const WildAnswer *answer = &wild_answers[i];
		uint64_t word = 1;
		FabricOp op = {.opcode = FABRIC_READ, .region = FABRIC_NODES, .length = 8, .buffer = &word};
		FabricEndpoint *endpoint;
		Fabric *fabric;
		FabricStatus status;

		assert_int_equal(fabric_open(&played_options, &fabric), FABRIC_OK);
		assert_int_equal(fabric_connect(fabric, address, &endpoint), FABRIC_OK);
		status = fabric_execute(endpoint, &op, 1);
		if (status != answer->status)
			fail_msg("answer %zu: %s", i, fabric_status_name(status));
		/* The first of two that are alike was taken. */
		if (answer->bytes != 8 || answer->says != FABRIC_OK || answer->other != 0)
			assert_int_equal(word, 1);
		else
			assert_int_equal(word, 0x0101010101010101ull * WILD_DATA);
		if (status == FABRIC_LOST)
			assert_int_equal(fabric_execute(endpoint, &op, 1), FABRIC_LOST);
		fabric_close(fabric);
	}
	assert_int_equal(wait_for_child(child), 0);
	close(listener);
}

/* ---- Ends of chains */

/* A memory node that is played by a process of its own, and its client. */
typedef struct Play
{
	int listener;
	pid_t node;
	Fabric *fabric;
	FabricEndpoint *endpoint;
	uint64_t words[2];
	FabricOp ops[2]; /* each a READ of 8 bytes into its word */
} Play;

static void
play_begin(Play *play, void (*node_does)(int listener), uint32_t operation_timeout_ms)
{
	FabricOptions options = played_options;
	char address[200];

	play->listener = played_node(address);
	play->node = start_child();
	if (play->node == 0)
	{
		node_does(play->listener);
		_exit(0);
	}
	options.operation_timeout_ms = operation_timeout_ms;
	assert_int_equal(fabric_open(&options, &play->fabric), FABRIC_OK);
	assert_int_equal(fabric_connect(play->fabric, address, &play->endpoint), FABRIC_OK);
	for (int i = 0; i < 2; i++)
	{
		play->words[i] = 1;
		play->ops[i] =
			(FabricOp){.opcode = FABRIC_READ, .region = FABRIC_NODES, .length = 8, .buffer = &play->words[i]};
	}
}

static void
play_end(Play *play)
{
	fabric_close(play->fabric);
	assert_int_equal(wait_for_child(play->node), 0);
	close(play->listener);
}

static uint64_t
play_post(Play *play, int which)
{
	uint64_t ticket = 0;

	assert_int_equal(fabric_post(play->endpoint, &play->ops[which], 1, &ticket), FABRIC_OK);
	return ticket;
}

/* The next chain of the client. */
static FrameHead
receive_chain(int descriptor)
{
	uint8_t bytes[RAW_FRAME_BYTES];
	FrameHead frame;

	CHECK(recv(descriptor, bytes, sizeof(bytes), 0) >= FRAME_HEAD_BYTES);
	CHECK(frame_decode(bytes, &frame) && frame.method == CONTROL_CHAIN);
	return frame;
}

/* Answers it with so many bytes of data; false: the client is gone. */
static bool
send_answer(int descriptor, FrameHead frame, FabricStatus status, uint32_t data)
{
	uint8_t bytes[RAW_FRAME_BYTES];

	frame.length = data;
	memset(bytes, WILD_DATA, sizeof(bytes));
	(void) frame_begin_reply(&frame, status, 0, bytes);
	return send(descriptor, bytes, frame_wire_bytes(data + FRAME_STATUS_BYTES), MSG_NOSIGNAL) > 0;
}

/* On the new connection the answer is one to a chain of the old one. */
static void
answer_after_reset(int listener)
{
	int descriptor = answer_hello(listener, &sane);
	FrameHead before = receive_chain(descriptor);

	see_off(descriptor);
	descriptor = answer_hello(listener, &sane);
	receive_chain(descriptor);
	CHECK(send_answer(descriptor, before, FABRIC_OK, 8));
	close(descriptor);
}

/* What a reset has ended is answered by nobody: its buffers are the caller's. */
static void
test_answer_to_chain_before_reset(void **state)
{
	Play play;

	play_begin(&play, answer_after_reset, PATIENCE_MS);
	play_post(&play, 0);
	assert_int_equal(fabric_reset(play.endpoint), FABRIC_OK);
	assert_int_equal(fabric_wait(play.endpoint, play_post(&play, 1)), FABRIC_LOST);
	assert_true(play.words[0] == 1 && play.words[1] == 1);
	play_end(&play);
}

static void
hang_up(int listener)
{
	int descriptor = answer_hello(listener, &sane);

	receive_chain(descriptor);
	close(descriptor);
}

/* After a break that fabric_ended() met nothing more is posted. */
static void
test_post_after_break(void **state)
{
	uint64_t until = now_ms() + PATIENCE_MS;
	Play play;
	uint64_t tickets[2];

	play_begin(&play, hang_up, PATIENCE_MS);
	tickets[0] = play_post(&play, 0);
	while (!fabric_ended(play.endpoint, tickets[0]))
		assert_true(now_ms() < until);
	assert_int_equal(fabric_post(play.endpoint, &play.ops[1], 1, &tickets[1]), FABRIC_LOST);
	assert_int_equal(fabric_wait(play.endpoint, tickets[0]), FABRIC_LOST);
	play_end(&play);
}

static void
fence_first_chain(int listener)
{
	int descriptor = answer_hello(listener, &sane);

	CHECK(send_answer(descriptor, receive_chain(descriptor), FABRIC_FENCED, 0));
	see_off(descriptor);
}

/* A client whose channel is closed learns that of all its chains, of those that are not answered, too. */
static void
test_all_chains_are_fenced(void **state)
{
	Play play;
	uint64_t tickets[2];

	play_begin(&play, fence_first_chain, PATIENCE_MS);
	for (int i = 0; i < 2; i++)
		tickets[i] = play_post(&play, i);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fabric_wait(play.endpoint, tickets[i]), FABRIC_FENCED);
	play_end(&play);
}

static void
offer_many_places(int listener)
{
	FabricCapabilities many = sane;

	many.max_outstanding = TRANSPORT_TICKETS + 1;
	see_off(answer_hello(listener, &many));
}

/* No more chains are under way than the client has places for, whatever the memory node offers. */
static void
test_more_places_than_ours(void **state)
{
	Play play;

	play_begin(&play, offer_many_places, PATIENCE_MS);
	assert_int_equal(fabric_capabilities(play.endpoint)->max_outstanding, TRANSPORT_TICKETS);
	play_end(&play);
}

/* Answers that come late, and say nothing of the chain: far longer than a client waits, or until it goes. */
#define LATE_ANSWERS 1500
#define LATE_MS 20

static void
answer_late_only(int listener)
{
	const FrameHead hello = {.method = CONTROL_HELLO, .request = 1};
	int descriptor = answer_hello(listener, &sane);

	receive_chain(descriptor);
	for (int i = 0; i < LATE_ANSWERS && send_answer(descriptor, hello, FABRIC_OK, 0); i++)
		sleep_ms(LATE_MS);
	close(descriptor);
}

/* A wait has one deadline, whatever else arrives meanwhile. */
static void
test_one_deadline(void **state)
{
	Play play;

	play_begin(&play, answer_late_only, 10 * LATE_MS);
	assert_int_equal(fabric_wait(play.endpoint, play_post(&play, 0)), FABRIC_TIMED_OUT);
	play_end(&play);
}

#define KEYED(function) HOSTILE_KEYED(function, &node)
#define OPEN(function) HOSTILE_OPEN(function, &node)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		KEYED(test_keys_wanted),
		OPEN(test_key_not_wanted),
		KEYED(test_others_told_nothing),
		KEYED(test_next_client),
		OPEN(test_next_client),
		OPEN(test_next_node),
		OPEN(test_device_not_here),
		OPEN(test_wild_node),
		cmocka_unit_test(test_reader_is_told),
		OPEN(test_wild_answers),
		cmocka_unit_test(test_answer_to_chain_before_reset),
		cmocka_unit_test(test_post_after_break),
		cmocka_unit_test(test_all_chains_are_fenced),
		cmocka_unit_test(test_more_places_than_ours),
		cmocka_unit_test(test_one_deadline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

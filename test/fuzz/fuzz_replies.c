/*
 * fuzz_replies.c
 *		Any bytes from a memory node to a client: replies to HELLO, to a call and to chains.
 *
 * The first byte says whether a proper reply to HELLO comes first, so that what follows meets a client with a channel;
 * the rest is what the memory node says.  The client gets a status or an error, and its buffers are its own.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdma/base/control.h"
#include "fabric.h"
#include "fuzz.h"

#define REPLY_BYTES 64u
#define GUARD 0x5au

/* What the memory node says, and when. */
typedef struct Script
{
	int listener;
	int connection;       /* -1: not yet accepted */
	const uint8_t *hello; /* said when the client has connected */
	size_t hello_bytes;
	const uint8_t *rest; /* said when it asks for something */
	size_t rest_bytes;
} Script;

/* The client waits: the memory node says what is due.  After that it hangs up. */
static int
say_what_is_due(void *argument, const int *descriptors, int count, int milliseconds)
{
	Script *script = argument;

	(void) descriptors;
	(void) count;
	(void) milliseconds;
	if (script->connection < 0)
	{
		script->connection = accept4(script->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		fuzz_require(script->connection >= 0);
	}
	if (script->hello_bytes > 0)
	{
		fuzz_require(send(script->connection, script->hello, script->hello_bytes, MSG_NOSIGNAL) ==
		             (ssize_t) script->hello_bytes);
		script->hello_bytes = 0;
	}
	else
	{
		if (script->rest_bytes > 0)
			(void) !send(script->connection, script->rest, script->rest_bytes, MSG_NOSIGNAL);
		script->rest_bytes = 0;
		shutdown(script->connection, SHUT_WR);
	}
	return 1;
}

static int
listen_here(char *address, size_t room)
{
	struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(here);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	fuzz_require(listener >= 0 && bind(listener, (struct sockaddr *) &here, length) == 0);
	fuzz_require(listen(listener, 8) == 0 && getsockname(listener, (struct sockaddr *) &here, &length) == 0);
	snprintf(address, room, "tcp:127.0.0.1:%u", ntohs(here.sin_port));
	return listener;
}

/* The reply to HELLO that a good memory node gives. */
static size_t
good_hello(uint8_t *place)
{
	static uint8_t data[512];
	FramePayload payload = {.data = data, .bytes = sizeof(data)};
	FabricCapabilities capabilities = {
		.flags = FABRIC_CAP_LINE_ATOMIC,
		.max_chain = FABRIC_MAX_CHAIN,
		.max_outstanding = 4,
		.one_packet = 8,
		.lock_words = 64,
		.region_bytes = {1u << 20, 512},
		.instance = 1,
		.incarnation = 1,
	};
	FrameHead frame = {0, CONTROL_HELLO, FRAME_VERSION, 1};

	frame_put_capabilities(&payload, &capabilities, 1);
	frame.length = payload.position;
	memcpy(frame_begin_reply(&frame, FABRIC_OK, 0, place), data, payload.position);
	return frame_wire_bytes(FRAME_STATUS_BYTES + payload.position);
}

/* A call and a chain: whatever is answered, only their own buffers change. */
static void
ask(FabricEndpoint *endpoint, bool chain_first)
{
	static uint64_t buffers[3][REPLY_BYTES / 8 + 1];
	FabricOp ops[3] = {
		{.opcode = FABRIC_READ, .length = REPLY_BYTES, .offset = 0, .buffer = buffers[0]},
		{.opcode = FABRIC_COMPARE_SWAP, .region = FABRIC_LOCKS, .length = 8, .offset = 8},
		{.opcode = FABRIC_READ, .length = 8, .offset = 4096, .buffer = buffers[1]},
	};
	uint32_t bytes = REPLY_BYTES;

	memset(buffers, GUARD, sizeof(buffers));
	if (chain_first)
		fabric_execute(endpoint, ops, 3);
	fabric_call(endpoint, 3, "question", 8, buffers[2], &bytes);
	fuzz_require(bytes <= REPLY_BYTES);
	if (!chain_first)
		fabric_execute(endpoint, ops, 3);
	for (int i = 0; i < 3; i++)
		fuzz_require(((uint8_t *) buffers[i])[REPLY_BYTES] == GUARD);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char address[64];
	static int listener = -1;
	static uint8_t hello[1024];
	FuzzInput input = {data, size};
	uint8_t first = fuzz_byte(&input);
	Script script = {.connection = -1, .rest = input.data, .rest_bytes = input.size, .hello = hello};
	FabricOptions options = {
		.cluster = {1, 2}, .incarnation = 1, .wait = say_what_is_due, .wait_argument = &script};
	struct linger hard = {.l_onoff = 1, .l_linger = 0};
	Fabric *fabric;
	FabricEndpoint *endpoint;

	if (listener < 0)
		listener = listen_here(address, sizeof(address));
	script.listener = listener;
	if ((first & 1) != 0)
		script.hello_bytes = good_hello(hello);
	fuzz_require(fabric_open(&options, &fabric) == FABRIC_OK);
	if (fabric_connect(fabric, address, &endpoint) == FABRIC_OK)
		ask(endpoint, (first & 2) != 0);
	/* No connection waits for its end: there are a hundred thousand of them. */
	if (script.connection < 0)
		script.connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	setsockopt(script.connection, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(script.connection);
	fabric_close(fabric);
	return 0;
}

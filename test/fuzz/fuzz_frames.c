/*
 * fuzz_frames.c
 *		Any bytes from a network client to a memory node: headers, calls and chains.
 *
 * The first byte says whether the client has said HELLO before, and has a channel, perhaps a reader's; the rest is what it
 * sends, in parts whose lengths are in it: a byte, then so many bytes, 255 for all that is left.  Memory of another tenant
 * stays as it is, that of its own as well if it is a reader; and a client of good will is served afterwards.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdma/server/server_state.h"
#include "tree/client/directory.h"
#include "fuzz.h"
#include "node.h"

#define NODE_BYTES (1u << 20)
#define CLUSTER 5u
#define ALL_THE_REST 255u
/* Bits of the first byte. */
#define INTRODUCED 0x01u
#define WITH_CHANNEL 0x02u
#define READER 0x04u
/* Rounds of the server's loop that finish whatever was sent at once. */
#define ROUNDS 20

static Service *service;
static uint64_t foreign; /* offset of a unit of another tenant */
static uint64_t own;     /* and of the client's, behind the service's back */

static int
connect_client(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct linger hard = {.l_onoff = 1, .l_linger = 0};
	int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_port = htons(fabric_server_port(service->server));
	fuzz_require(descriptor >= 0 && connect(descriptor, (struct sockaddr *) &address, sizeof(address)) == 0);
	/* No connection waits for its end when it is closed: there are a hundred thousand of them. */
	setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	fuzz_require(fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0);
	return descriptor;
}

/* Runs the server, and takes what it says: the last bytes of that, at most `room`, into `reply`. */
static size_t
serve(int descriptor, uint8_t *reply, size_t room)
{
	static uint8_t bytes[65536];
	size_t length = 0;

	for (int i = 0; i < ROUNDS; i++)
	{
		ssize_t count;

		fuzz_require(service_step(service, 0) == FABRIC_OK);
		count = recv(descriptor, bytes, sizeof(bytes), 0);
		if (count > 0 && (size_t) count <= room)
		{
			memcpy(reply, bytes, (size_t) count);
			length = (size_t) count;
		}
	}
	return length;
}

/* A call, whose status is the reply's; UINT32_MAX: there is no reply. */
static uint32_t
call(int descriptor, uint16_t method, const void *payload, size_t bytes, void *reply, size_t room)
{
	static uint8_t place[FRAME_MAX_BYTES];
	FrameHead frame = {(uint32_t) bytes, method, FRAME_VERSION, 1};
	uint8_t *data = frame_begin(&frame, place);
	uint32_t flags;
	size_t length;

	if (bytes > 0)
		memcpy(data, payload, bytes);
	fuzz_require(send(descriptor, place, frame_wire_bytes((uint32_t) bytes), MSG_NOSIGNAL) > 0);
	length = serve(descriptor, place, sizeof(place));
	if (length < FRAME_HEAD_BYTES + FRAME_STATUS_BYTES)
		return UINT32_MAX;
	length -= FRAME_HEAD_BYTES + FRAME_STATUS_BYTES;
	if (reply != NULL && length > 0)
		memcpy(reply, place + FRAME_HEAD_BYTES + FRAME_STATUS_BYTES, length < room ? length : room);
	return frame_status(place + FRAME_HEAD_BYTES, &flags);
}

static uint32_t
hello(int descriptor, uint64_t cluster, uint32_t incarnation)
{
	uint8_t request[128];
	FramePayload payload = {.data = request, .bytes = sizeof(request)};
	FrameHello said = {
		.cluster = {cluster, cluster}, .incarnation = incarnation, .old_channel = CONTROL_NO_CHANNEL};

	frame_put_hello(&payload, &said);
	return call(descriptor, CONTROL_HELLO, request, payload.position, NULL, 0);
}

/* The next incarnation of the client's cluster. */
static uint32_t
attach(void)
{
	int descriptor = connect_client();
	uint32_t request[3] = {0, 1, 1};
	uint32_t granted[2] = {0, 0};

	fuzz_require(hello(descriptor, CLUSTER, 0) == FABRIC_OK);
	fuzz_require(call(descriptor, CONTROL_ATTACH, request, sizeof(request), granted, sizeof(granted)) ==
	             FABRIC_OK);
	close(descriptor);
	return granted[1];
}

/* A client of good will. */
static void
check_service(void)
{
	int descriptor = connect_client();

	fuzz_require(hello(descriptor, CLUSTER + 1, 0) == FABRIC_OK);
	fuzz_require(call(descriptor, DIRECTORY_STATUS, NULL, 0, NULL, 0) == FABRIC_OK);
	close(descriptor);
}

/* A unit that nobody may have changed, as start() left it. */
static void
check_memory(uint64_t unit)
{
	const uint8_t *bytes = fabric_server_node(service->server, unit, FABRIC_UNIT_BYTES);

	for (uint32_t i = 0; i < FABRIC_UNIT_BYTES; i++)
		fuzz_require(bytes[i] == 0x77);
}

/* A unit of the tenant. */
static void
take_unit(uint32_t tenant, uint64_t unit)
{
	fuzz_require(fabric_server_commit(service->server, tenant, unit, FABRIC_UNIT_BYTES) == FABRIC_OK);
	memset(fabric_server_node(service->server, unit, FABRIC_UNIT_BYTES), 0x77, FABRIC_UNIT_BYTES);
}

/* The last unit belongs to tenant 9, who is not here, and the one before to whoever comes. */
static void
start(void)
{
	uint64_t first;
	uint64_t end;

	service = fuzz_node_open(NODE_BYTES);
	fabric_server_node_range(service->server, &first, &end);
	foreign = end - FABRIC_UNIT_BYTES;
	own = foreign - FABRIC_UNIT_BYTES;
	take_unit(9, foreign);
	take_unit(0, own);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FuzzInput input = {data, size};
	uint8_t first = fuzz_byte(&input);
	bool reader = (first & READER) != 0 && (first & INTRODUCED) != 0 && (first & WITH_CHANNEL) != 0;
	int descriptor;

	start();
	descriptor = connect_client();
	if ((first & INTRODUCED) != 0)
	{
		/* Ten channels at most are alive: each input closes its connection. */
		uint32_t incarnation = (first & WITH_CHANNEL) != 0 ? attach() : 0;

		fuzz_require(hello(descriptor, CLUSTER, reader ? CONTROL_READER : incarnation) == FABRIC_OK);
	}
	while (input.size > 0)
	{
		size_t wanted = fuzz_byte(&input);
		size_t count;
		const uint8_t *bytes = fuzz_bytes(&input, wanted == ALL_THE_REST ? input.size : wanted, &count);
		uint8_t reply[8];

		if (count > 0 && send(descriptor, bytes, count, MSG_NOSIGNAL) < 0)
			break;
		serve(descriptor, reply, sizeof(reply));
	}
	check_service();
	close(descriptor);
	check_memory(foreign);
	if (reader)
	{
		check_memory(own);
		fuzz_require(service->tables.trees == 0);
	}
	fuzz_node_close(service);
	return 0;
}

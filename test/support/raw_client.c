/*
 * raw_client.c
 *		See raw_client.h.
 */
#define _GNU_SOURCE 1
#include "raw_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

/* Who does not take bytes for so long will not take any before others are taken from him. */
#define STUCK_MS 1000
/* Nothing depends on whether it comes in time. */
#define MOMENT_MS 5

int
raw_socket(const FabricProcess *node)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const char *port = strrchr(node->listen, ':');
	int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1;

	CHECK(descriptor >= 0 && port != NULL);
	address.sin_port = htons((uint16_t) atoi(port + 1));
	CHECK(connect(descriptor, (struct sockaddr *) &address, sizeof(address)) == 0);
	CHECK(fcntl(descriptor, F_SETFL, O_NONBLOCK) == 0);
	setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return descriptor;
}

/* Waits for what the stream wants; false: it did not come in time. */
static bool
wait_ready(const RawClient *raw, StreamStatus wanted, int milliseconds)
{
	struct pollfd polled = {.fd = stream_descriptor(raw->stream),
	                        .events = wanted == STREAM_WANT_WRITE ? POLLOUT : POLLIN};

	return poll(&polled, 1, milliseconds) > 0;
}

void
raw_start(RawClient *raw, int descriptor, const FabricKey *key)
{
	StreamStatus status;

	memset(raw, 0, sizeof(*raw));
	if (key == NULL)
		raw->stream = stream_plain(descriptor);
	else
	{
		raw->context = stream_context_open();
		CHECK(raw->context != NULL);
		raw->stream = stream_client(descriptor, raw->context, key);
	}
	CHECK(raw->stream != NULL);
	while ((status = stream_handshake(raw->stream)) != STREAM_OK)
		CHECK((status == STREAM_WANT_READ || status == STREAM_WANT_WRITE) &&
		      wait_ready(raw, status, PATIENCE_MS));
}

void
raw_open(RawClient *raw, const FabricProcess *node, const FabricKey *key)
{
	raw_start(raw, raw_socket(node), key);
}

void
raw_close(RawClient *raw)
{
	stream_close(raw->stream);
	stream_context_close(raw->context);
	memset(raw, 0, sizeof(*raw));
}

/* Sends until all is gone, the connection is closed, or nothing goes for so long. */
static size_t
send_for(RawClient *raw, const uint8_t *bytes, size_t count, int milliseconds, bool *closed)
{
	size_t sent = 0;

	*closed = false;
	while (sent < count)
	{
		size_t done;
		StreamStatus status = stream_write(raw->stream, bytes + sent, count - sent, &done);

		sent += done;
		if (status == STREAM_WANT_READ || status == STREAM_WANT_WRITE)
		{
			if (!wait_ready(raw, status, milliseconds))
				break;
		}
		else if (status != STREAM_OK)
		{
			*closed = true;
			break;
		}
	}
	return sent;
}

bool
raw_send(RawClient *raw, const void *bytes, size_t count)
{
	bool closed;
	size_t sent = send_for(raw, bytes, count, PATIENCE_MS, &closed);

	CHECK(closed || sent == count);
	return !closed;
}

size_t
raw_send_some(RawClient *raw, const void *bytes, size_t count)
{
	bool closed;
	size_t sent = send_for(raw, bytes, count, STUCK_MS, &closed);

	CHECK(!closed);
	return sent;
}

size_t
raw_frame(uint8_t *place, uint16_t method, uint64_t request, const void *payload, size_t count)
{
	FrameHead frame = {(uint32_t) count, method, FRAME_VERSION, request};
	uint8_t *data = frame_begin(&frame, place);

	if (count > 0)
		memcpy(data, payload, count);
	return frame_wire_bytes((uint32_t) count);
}

/* Receives exactly so many bytes; false: the connection is closed. */
static bool
receive_all(RawClient *raw, uint8_t *bytes, size_t count)
{
	while (count > 0)
	{
		size_t done;
		StreamStatus status = stream_read(raw->stream, bytes, count, &done);

		if (status == STREAM_WANT_READ || status == STREAM_WANT_WRITE)
			CHECK(wait_ready(raw, status, PATIENCE_MS));
		else if (status != STREAM_OK)
			return false;
		bytes += done;
		count -= done;
	}
	return true;
}

bool
raw_receive(RawClient *raw, FrameHead *frame, uint8_t *payload)
{
	uint8_t header[FRAME_HEAD_BYTES];

	if (!receive_all(raw, header, sizeof(header)))
		return false;
	CHECK(frame_decode(header, frame));
	return receive_all(raw, payload, frame_wire_bytes(frame->length) - FRAME_HEAD_BYTES);
}

bool
raw_try_receive(RawClient *raw, FrameHead *frame, uint8_t *payload)
{
	if (!stream_pending(raw->stream) && !wait_ready(raw, STREAM_WANT_READ, MOMENT_MS))
		return false;
	return raw_receive(raw, frame, payload);
}

FabricStatus
raw_call(RawClient *raw, uint16_t method, const void *request, size_t count, uint8_t *reply,
         uint32_t *reply_bytes)
{
	static uint8_t bytes[RAW_FRAME_BYTES];
	size_t length = raw_frame(bytes, method, ++raw->request, request, count);
	FrameHead frame;
	uint32_t flags;

	if (!raw_send(raw, bytes, length) || !raw_receive(raw, &frame, bytes))
		return FABRIC_LOST;
	CHECK(frame.request == raw->request && frame.method == method && frame.length >= FRAME_STATUS_BYTES);
	frame.length -= FRAME_STATUS_BYTES;
	if (reply_bytes != NULL)
	{
		CHECK(frame.length <= *reply_bytes);
		*reply_bytes = frame.length;
		memcpy(reply, bytes + FRAME_STATUS_BYTES, frame.length);
	}
	return frame_status(bytes, &flags);
}

FabricStatus
raw_hello(RawClient *raw, uint64_t cluster, uint32_t incarnation, FabricCapabilities *capabilities)
{
	uint8_t request[128];
	uint8_t reply[256];
	uint32_t reply_bytes = sizeof(reply);
	FramePayload payload = {.data = request, .bytes = sizeof(request)};
	FramePayload answer = {.data = reply};
	FrameHello hello = {
		.cluster = {cluster, ~cluster}, .incarnation = incarnation, .old_channel = CONTROL_NO_CHANNEL};
	FabricCapabilities unused;
	uint64_t serial;
	FabricStatus status;

	frame_put_hello(&payload, &hello);
	status = raw_call(raw, CONTROL_HELLO, request, payload.position, reply, &reply_bytes);
	if (status != FABRIC_OK)
		return status;
	answer.bytes = reply_bytes;
	frame_get_capabilities(&answer, capabilities == NULL ? &unused : capabilities, &serial);
	CHECK(!answer.failed);
	return FABRIC_OK;
}

FabricStatus
raw_chain(RawClient *raw, FabricOp *ops, int count)
{
	static uint8_t request[CHAIN_MAX_BYTES];
	static uint8_t reply[CHAIN_MAX_BYTES];
	uint32_t reply_bytes = sizeof(reply);
	FabricStatus status;

	chain_encode(ops, count, request);
	status = raw_call(raw, CONTROL_CHAIN, request, chain_request_bytes(ops, count), reply, &reply_bytes);
	if (status != FABRIC_OK)
		return status;
	CHECK(reply_bytes == chain_reply_bytes(ops, count));
	chain_take_reply(ops, count, reply);
	return FABRIC_OK;
}

void
raw_expect_closed(RawClient *raw)
{
	uint8_t byte;

	CHECK(!receive_all(raw, &byte, 1));
}

/* ---- The witness */

typedef struct WitnessPage
{
	uint64_t rounds;
	uint64_t offset;
	bool stop;
} WitnessPage;

/* One round: what is written is what is read, a lock word is taken and freed, and a newcomer is served. */
static void
witness_round(TestChannel *channel, const char *address, uint64_t offset, uint64_t round)
{
	uint64_t words[64];
	uint64_t read[64];
	TestChannel newcomer;
	char echo[8];
	uint32_t echo_bytes = sizeof(echo);
	FabricOp take = op_compare_swap(FABRIC_LOCKS, 0, 0, round);
	FabricOp give = op_compare_swap(FABRIC_LOCKS, 0, round, 0);

	for (uint64_t i = 0; i < 64; i++)
		words[i] = round * 64 + i;
	channel_write(channel, offset, words, sizeof(words));
	CHECK(fabric_execute(channel->endpoint, &take, 1) == FABRIC_OK && take.result == 0);
	channel_read(channel, offset, read, sizeof(read));
	CHECK(memcmp(words, read, sizeof(read)) == 0);
	CHECK(fabric_execute(channel->endpoint, &give, 1) == FABRIC_OK && give.result == round);
	/* A crowd at the door may push him out, but not for long. */
	for (uint64_t end = now_ms() + PATIENCE_MS;
	     channel_try_open(&newcomer, address, 0xbeef, 0, NULL) != FABRIC_OK;)
		CHECK(now_ms() < end);
	CHECK(fabric_call(newcomer.endpoint, SERVICE_ECHO, "newcomer", 8, echo, &echo_bytes) == FABRIC_OK);
	CHECK(echo_bytes == 8 && memcmp(echo, "newcomer", 8) == 0);
	channel_close(&newcomer);
}

static void
witness_run(WitnessPage *page, const char *address, uint64_t cluster)
{
	uint32_t incarnation = cluster_attach(address, cluster);
	uint64_t offset = service_info(address).first_unit;
	TestChannel channel;

	CHECK(service_commit(address, offset, FABRIC_UNIT_BYTES) == FABRIC_OK);
	__atomic_store_n(&page->offset, offset, __ATOMIC_RELEASE);
	channel_open(&channel, address, cluster, incarnation);
	for (uint64_t round = 1; !__atomic_load_n(&page->stop, __ATOMIC_ACQUIRE); round++)
	{
		witness_round(&channel, address, offset, round);
		__atomic_fetch_add(&page->rounds, 1, __ATOMIC_RELEASE);
	}
	channel_close(&channel);
}

void
witness_start(Witness *witness, const char *address, uint64_t cluster)
{
	witness->page =
		mmap(NULL, sizeof(WitnessPage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(witness->page != MAP_FAILED);
	witness->pid = start_child();
	if (witness->pid == 0)
	{
		witness_run(witness->page, address, cluster);
		_exit(0);
	}
	witness_expect(witness, 1);
}

void
witness_expect(Witness *witness, uint64_t rounds)
{
	uint64_t wanted = __atomic_load_n(&witness->page->rounds, __ATOMIC_ACQUIRE) + rounds;

	for (uint32_t waited = 0; __atomic_load_n(&witness->page->rounds, __ATOMIC_ACQUIRE) < wanted; waited++)
	{
		CHECK(waited < PATIENCE_MS);
		sleep_ms(1);
	}
}

uint64_t
witness_offset(const Witness *witness)
{
	return __atomic_load_n(&witness->page->offset, __ATOMIC_ACQUIRE);
}

void
witness_stop(Witness *witness)
{
	__atomic_store_n(&witness->page->stop, true, __ATOMIC_RELEASE);
	CHECK(wait_for_child(witness->pid) == 0);
	munmap(witness->page, sizeof(WitnessPage));
	memset(witness, 0, sizeof(*witness));
}

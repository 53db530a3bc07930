/*
 * frame_client.c
 *		See frame_client.h.
 */
#define _GNU_SOURCE 1
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rdma/keys.h"
#include "rdma/stream/frame_client.h"
#include "rdma/stream/network.h"

/* Bytes asked from the socket at once: a batch of replies, or most of a long one. */
#define READ_BYTES (64u << 10)

/* An empty buffer is kept up to this. */
#define SET_ASIDE_BYTES (256u << 10)

void
link_init(Link *link, Fabric *fabric, LinkTake take, void *argument)
{
	*link = (Link){.fabric = fabric, .take = take, .argument = argument};
}

void
link_close(Link *link)
{
	stream_close(link->stream);
	link->stream = NULL;
	link->draining = false;
	buffer_free(&link->input);
	buffer_free(&link->output);
}

/* The connection is of no more use. */
static FabricStatus
link_broken(Link *link, const char *what)
{
	fabric_set_detail(link->fabric, "connection to the memory node: %s", what);
	link_close(link);
	return FABRIC_LOST;
}

/* Reads the key that the options name: the first one of its file. FABRIC_DENIED: we have none to show. */
static FabricStatus
read_key(const Link *link, FabricKey *key)
{
	FabricKeys *keys = malloc(sizeof(FabricKeys));
	FabricStatus status;

	if (keys == NULL)
		return FABRIC_NO_MEMORY;
	status = fabric_keys_read(link->fabric->options.key_file, keys, link->fabric->detail);
	if (status == FABRIC_OK)
		*key = keys->keys[0];
	fabric_keys_forget(keys);
	free(keys);
	return status == FABRIC_OK ? FABRIC_OK : FABRIC_DENIED;
}

/* Makes the stream over a connected socket, which belongs to it. */
static FabricStatus
make_stream(Link *link, int descriptor, const FabricKey *key)
{
	StreamContext **tls = &link->fabric->tls;

	if (key != NULL && *tls == NULL && (*tls = stream_context_open()) == NULL)
	{
		close(descriptor);
		return FABRIC_NO_MEMORY;
	}
	link->stream = key == NULL ? stream_plain(descriptor) : stream_client(descriptor, *tls, key);
	return link->stream == NULL ? FABRIC_NO_MEMORY : FABRIC_OK;
}

static FabricStatus
shake_hands(Link *link, uint64_t deadline)
{
	for (;;)
	{
		StreamStatus progress = stream_handshake(link->stream);
		FabricStatus status;

		if (progress == STREAM_OK)
			return FABRIC_OK;
		if (progress != STREAM_WANT_READ && progress != STREAM_WANT_WRITE)
		{
			fabric_set_detail(link->fabric, "the memory node refused the connection: %s",
			                  stream_detail(link->stream));
			if (progress == STREAM_NO_MEMORY)
				return FABRIC_NO_MEMORY;
			return progress == STREAM_REFUSED ? FABRIC_DENIED : FABRIC_UNREACHABLE;
		}
		status = network_sleep(link->fabric, stream_descriptor(link->stream), progress == STREAM_WANT_WRITE,
		                       deadline);
		if (status == FABRIC_TIMED_OUT)
		{
			fabric_set_detail(link->fabric, "the memory node does not answer");
			return FABRIC_UNREACHABLE;
		}
		if (status != FABRIC_OK)
			return status;
	}
}

/* A socket that is connected with the memory node. */
static FabricStatus
connect_socket(const Link *link, const char *location, uint64_t deadline, int *descriptor)
{
	ControlClient control = {.descriptor = -1};
	FabricStatus status;

	if (!link->local)
		return network_connect(link->fabric, location, deadline, descriptor);
	status = control_connect(&control, link->fabric, location);
	*descriptor = control.descriptor;
	return status;
}

FabricStatus
link_open(Link *link, const char *location)
{
	uint64_t deadline = fabric_deadline(link->fabric, FABRIC_WAIT_CONNECT);
	bool keyed = !link->local && link->fabric->options.key_file != NULL;
	FabricKey key;
	FabricStatus status = FABRIC_OK;
	int descriptor;

	link_close(link);
	link->deadline = deadline;
	link->other_version = false;
	if (keyed)
		status = read_key(link, &key);
	if (status == FABRIC_OK)
		status = connect_socket(link, location, deadline, &descriptor);
	if (status == FABRIC_OK)
		status = make_stream(link, descriptor, keyed ? &key : NULL);
	explicit_bzero(&key, sizeof(key));
	if (status == FABRIC_OK)
		status = shake_hands(link, deadline);
	if (status != FABRIC_OK)
		link_close(link);
	return status;
}

uint8_t *
link_put(Link *link, uint16_t method, uint64_t request, uint32_t bytes)
{
	FrameHead frame = {bytes, method, FRAME_VERSION, request};
	uint8_t *payload;

	if (!buffer_reserve(&link->output, frame_wire_bytes(bytes)))
		return NULL;
	payload = frame_begin(&frame, link->output.data + link->output.end);
	link->output.end += frame_wire_bytes(bytes);
	return payload;
}

FabricStatus
link_send(Link *link)
{
	if (link->stream == NULL)
		return link_broken(link, "not connected");
	while (buffer_used(&link->output) > 0)
	{
		size_t done;
		StreamStatus status = stream_write(link->stream, link->output.data + link->output.begin,
		                                   buffer_used(&link->output), &done);

		if (status == STREAM_OK)
			link->output.begin += (uint32_t) done;
		else if (status == STREAM_WANT_READ || status == STREAM_WANT_WRITE)
			return FABRIC_OK;
		else
			return link_broken(link, stream_detail(link->stream));
	}
	buffer_trim(&link->output, SET_ASIDE_BYTES);
	return FABRIC_OK;
}

/* Takes a reply to a call; false: it belongs to no call that was ever made. */
static bool
take_reply(Link *link, const FrameHead *frame, FabricStatus status, const uint8_t *data)
{
	LinkCall *call = link->call;

	if (call == NULL || frame->request < call->request)
		return frame->request <= link->request;
	if (frame->request > call->request || frame->method != call->method)
		return false;
	call->answered = true;
	call->status = status;
	call->length = frame->length;
	if (call->length > 0 && call->length <= call->room)
		memcpy(call->reply, data, call->length);
	return true;
}

/* Takes a whole frame. False: it was not asked for. */
static bool
take_frame(Link *link, FrameHead *frame, const uint8_t *payload)
{
	FabricStatus status;
	uint32_t flags;

	if (frame->length < FRAME_STATUS_BYTES)
		return false;
	status = frame_status(payload, &flags);
	link->draining |= (flags & CONTROL_DRAINING) != 0;
	if ((flags & CONTROL_KEY_WANTED) != 0)
		fabric_set_detail(link->fabric, "the memory node serves only clients with a key");
	if ((flags & CONTROL_NO_PART) != 0)
		fabric_set_detail(link->fabric, "the memory node has no memory left that is this tenant's alone");
	if ((flags & CONTROL_NO_TENANT) != 0)
		fabric_set_detail(link->fabric, "the memory node has memory of as many other tenants as it can");
	if ((flags & CONTROL_READERS_FULL) != 0)
		fabric_set_detail(link->fabric, "what is left of the memory node's \"channels\" is not for standbys");
	frame->length -= FRAME_STATUS_BYTES;
	payload += FRAME_STATUS_BYTES;
	if (frame->method != CONTROL_CHAIN)
		return take_reply(link, frame, status, payload);
	return link->take != NULL && link->take(link->argument, frame, status, payload);
}

/*
 * Takes the frames that have arrived whole; *wanted: bytes of the frame that has not, 0 if that is not
 * known.
 */
static FabricStatus
take_frames(Link *link, uint32_t *wanted)
{
	Buffer *input = &link->input;

	*wanted = 0;
	while (buffer_used(input) >= FRAME_HEAD_BYTES)
	{
		const uint8_t *place = input->data + input->begin;
		FrameHead frame;
		uint32_t whole;

		if (!frame_decode(place, &frame))
		{
			link_broken(link, "no reply");
			link->other_version = frame_other_version(link->fabric, &frame);
			return FABRIC_LOST;
		}
		whole = frame_wire_bytes(frame.length);
		if (buffer_used(input) < whole)
		{
			*wanted = whole;
			return FABRIC_OK;
		}
		if (!take_frame(link, &frame, place + FRAME_HEAD_BYTES))
			return link_broken(link, "a reply that nobody asked for");
		input->begin += whole;
		link->frames++;
	}
	return FABRIC_OK;
}

/* Takes what is there, without waiting. */
static FabricStatus
link_receive(Link *link)
{
	Buffer *input = &link->input;
	uint32_t wanted = 0;
	FabricStatus status;

	do
	{
		uint32_t room = wanted > buffer_used(input) ? wanted - buffer_used(input) : READ_BYTES;
		StreamStatus progress;
		size_t done;

		/* A long frame is received whole; what is behind it may come with it. */
		if (!buffer_reserve(input, room > READ_BYTES ? room : READ_BYTES))
			return link_broken(link, "no memory");
		progress = stream_read(link->stream, input->data + input->end, buffer_room(input), &done);
		if (progress == STREAM_WANT_READ || progress == STREAM_WANT_WRITE)
			return FABRIC_OK;
		if (progress != STREAM_OK)
			return link_broken(link, stream_detail(link->stream));
		input->end += (uint32_t) done;
		status = take_frames(link, &wanted);
		buffer_trim(input, SET_ASIDE_BYTES);
	} while (status == FABRIC_OK && stream_pending(link->stream));
	return status;
}

FabricStatus
link_poll(Link *link)
{
	FabricStatus status = link_send(link);

	return status == FABRIC_OK ? link_receive(link) : status;
}

FabricStatus
link_wait(Link *link, uint64_t deadline)
{
	uint64_t before = link->frames;

	for (;;)
	{
		FabricStatus status = link_poll(link);

		if (status != FABRIC_OK || link->frames != before)
		{
			spin_success(&link->spin);
			return status;
		}
		if (spin_again(&link->spin))
			continue;
		status = network_sleep(link->fabric, stream_descriptor(link->stream), buffer_used(&link->output) > 0,
		                       deadline);
		if (status != FABRIC_OK)
			return status;
	}
}

FabricStatus
link_call(Link *link, uint16_t method, const void *request, uint32_t request_bytes, void *reply,
          uint32_t *reply_bytes)
{
	uint64_t deadline =
		method == CONTROL_HELLO ? link->deadline : fabric_deadline(link->fabric, control_wait(method));
	LinkCall call = {.method = method, .reply = reply, .room = reply_bytes == NULL ? 0 : *reply_bytes};
	FabricStatus status = FABRIC_OK;
	uint8_t *payload;

	if (reply_bytes != NULL)
		*reply_bytes = 0;
	if (link->stream == NULL)
		return link_broken(link, "not connected");
	call.request = ++link->request;
	payload = link_put(link, method, call.request, request_bytes);
	if (payload == NULL)
		return FABRIC_NO_MEMORY;
	if (request_bytes > 0)
		memcpy(payload, request, request_bytes);
	link->call = &call;
	while (status == FABRIC_OK && !call.answered)
		status = link_wait(link, deadline);
	link->call = NULL;
	if (status == FABRIC_TIMED_OUT)
		fabric_set_detail(link->fabric, "connection to the memory node: no answer in time");
	if (status == FABRIC_LOST && method == CONTROL_HELLO && link->other_version)
		status = FABRIC_PROTOCOL;
	if (status != FABRIC_OK)
		return status;
	if (call.length > call.room)
	{
		fabric_set_detail(link->fabric, "a reply of %u bytes does not fit %u", call.length, call.room);
		return FABRIC_PROTOCOL;
	}
	if (reply_bytes != NULL)
		*reply_bytes = call.length;
	return call.status;
}

static FabricStatus
call_for_attach(void *link, uint16_t method, const void *request, uint32_t request_bytes, void *reply,
                uint32_t *reply_bytes)
{
	return link_call(link, method, request, request_bytes, reply, reply_bytes);
}

FabricStatus
link_attach(Link *link, bool resume, uint64_t launcher_nonce, uint32_t *instance, uint32_t *incarnation)
{
	return control_attach(call_for_attach, link, resume, launcher_nonce, instance, incarnation);
}

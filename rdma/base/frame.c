/*
 * frame.c
 *		Frames: the heads of all of them, and what those of the fabric's own calls carry.  Here a frame is parsed.
 */
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rdma/base/control.h"
#include "rdma/base/wire.h"

/* No region is longer: pointers have 48 bits for offsets. */
#define MAX_NODES_BYTES (1ull << 48)

void
frame_encode(const FrameHead *frame, uint8_t bytes[FRAME_HEAD_BYTES])
{
	wire_put64(bytes, frame->length | (uint64_t) frame->method << 32 | (uint64_t) frame->version << 48);
	wire_put64(bytes + 8, frame->request);
}

bool
frame_decode(const uint8_t bytes[FRAME_HEAD_BYTES], FrameHead *frame)
{
	uint64_t head = wire_get64(bytes);

	frame->length = (uint32_t) head;
	frame->method = (uint16_t) (head >> 32);
	frame->version = (uint16_t) (head >> 48);
	frame->request = wire_get64(bytes + 8);
	return frame->version == FRAME_VERSION &&
	       frame->length <= (frame->method == CONTROL_CHAIN ? CHAIN_MAX_BYTES : FRAME_MAX_PAYLOAD);
}

bool
frame_other_version(Fabric *fabric, const FrameHead *frame)
{
	if (frame->version == FRAME_VERSION)
		return false;
	fabric_set_detail(fabric, "the memory node speaks version %u of the protocol, and this is version %u",
	                  frame->version, FRAME_VERSION);
	return true;
}

uint8_t *
frame_begin(const FrameHead *frame, uint8_t *place)
{
	uint32_t end = FRAME_HEAD_BYTES + frame->length;

	frame_encode(frame, place);
	memset(place + end, 0, frame_wire_bytes(frame->length) - end);
	return place + FRAME_HEAD_BYTES;
}

uint8_t *
frame_begin_reply(const FrameHead *frame, FabricStatus status, uint32_t flags, uint8_t *place)
{
	FrameHead reply = *frame;
	uint8_t *payload;

	reply.length += FRAME_STATUS_BYTES;
	reply.version = FRAME_VERSION;
	payload = frame_begin(&reply, place);
	wire_put64(payload, (uint64_t) status | (uint64_t) flags << 32);
	return payload + FRAME_STATUS_BYTES;
}

FabricStatus
frame_status(const uint8_t *payload, uint32_t *flags)
{
	uint32_t status = wire_get32(payload);

	*flags = wire_get32(payload + 4);
	return status <= FABRIC_LAST_STATUS ? (FabricStatus) status : FABRIC_PROTOCOL;
}

static uint8_t *
payload_take(FramePayload *payload, uint32_t count)
{
	uint8_t *place = payload->data + payload->position;

	if (payload->failed || payload->bytes - payload->position < count)
	{
		payload->failed = true;
		return NULL;
	}
	payload->position += count;
	return place;
}

void
frame_put32(FramePayload *payload, uint32_t value)
{
	uint8_t *place = payload_take(payload, 4);

	if (place != NULL)
		wire_put32(place, value);
}

void
frame_put64(FramePayload *payload, uint64_t value)
{
	uint8_t *place = payload_take(payload, 8);

	if (place != NULL)
		wire_put64(place, value);
}

uint32_t
frame_get32(FramePayload *payload)
{
	uint8_t *place = payload_take(payload, 4);

	return place == NULL ? 0 : wire_get32(place);
}

uint64_t
frame_get64(FramePayload *payload)
{
	uint8_t *place = payload_take(payload, 8);

	return place == NULL ? 0 : wire_get64(place);
}

void
frame_put_hello(FramePayload *payload, const FrameHello *hello)
{
	frame_put64(payload, hello->cluster[0]);
	frame_put64(payload, hello->cluster[1]);
	frame_put32(payload, hello->incarnation);
	frame_put32(payload, hello->old_channel);
	frame_put64(payload, hello->old_serial);
	frame_put64(payload, hello->old_node_uuid[0]);
	frame_put64(payload, hello->old_node_uuid[1]);
}

void
frame_put_own_hello(FramePayload *payload, const FabricEndpoint *endpoint)
{
	const FabricOptions *options = &endpoint->fabric->options;
	FrameHello hello = {
		.cluster = {options->cluster[0], options->cluster[1]},
		.incarnation = options->reader ? CONTROL_READER : options->incarnation,
		.old_channel = CONTROL_NO_CHANNEL,
	};

	if (endpoint->channel.serial != 0)
	{
		hello.old_channel = endpoint->channel.channel;
		hello.old_serial = endpoint->channel.serial;
		memcpy(hello.old_node_uuid, endpoint->channel.node_uuid, sizeof(hello.old_node_uuid));
	}
	frame_put_hello(payload, &hello);
}

void
frame_get_hello(FramePayload *payload, FrameHello *hello)
{
	hello->cluster[0] = frame_get64(payload);
	hello->cluster[1] = frame_get64(payload);
	hello->incarnation = frame_get32(payload);
	hello->old_channel = frame_get32(payload);
	hello->old_serial = frame_get64(payload);
	hello->old_node_uuid[0] = frame_get64(payload);
	hello->old_node_uuid[1] = frame_get64(payload);
}

void
frame_put_capabilities(FramePayload *payload, const FabricCapabilities *capabilities, uint64_t serial)
{
	frame_put32(payload, capabilities->flags);
	frame_put32(payload, capabilities->max_chain);
	frame_put32(payload, capabilities->max_outstanding);
	frame_put32(payload, capabilities->one_packet);
	frame_put32(payload, capabilities->lock_words);
	frame_put32(payload, capabilities->channel);
	frame_put64(payload, capabilities->redo_offset);
	frame_put64(payload, capabilities->region_bytes[FABRIC_NODES]);
	frame_put64(payload, capabilities->region_bytes[FABRIC_LOCKS]);
	frame_put64(payload, capabilities->node_uuid[0]);
	frame_put64(payload, capabilities->node_uuid[1]);
	frame_put64(payload, capabilities->generation);
	frame_put32(payload, capabilities->instance);
	frame_put32(payload, capabilities->incarnation);
	frame_put64(payload, serial);
}

void
frame_get_capabilities(FramePayload *payload, FabricCapabilities *capabilities, uint64_t *serial)
{
	capabilities->flags = frame_get32(payload);
	capabilities->max_chain = frame_get32(payload);
	capabilities->max_outstanding = frame_get32(payload);
	capabilities->one_packet = frame_get32(payload);
	capabilities->lock_words = frame_get32(payload);
	capabilities->channel = frame_get32(payload);
	capabilities->redo_offset = frame_get64(payload);
	capabilities->region_bytes[FABRIC_NODES] = frame_get64(payload);
	capabilities->region_bytes[FABRIC_LOCKS] = frame_get64(payload);
	capabilities->node_uuid[0] = frame_get64(payload);
	capabilities->node_uuid[1] = frame_get64(payload);
	capabilities->generation = frame_get64(payload);
	capabilities->instance = frame_get32(payload);
	capabilities->incarnation = frame_get32(payload);
	*serial = frame_get64(payload);
}

/* May a channel be of that incarnation?  A reader is told it; all others have said it. */
static bool
incarnation_keeps_contract(uint32_t incarnation, const FabricOptions *options)
{
	if (options->reader)
		return incarnation > 0 && incarnation <= UINT16_MAX;
	return incarnation == options->incarnation;
}

/*
 * Is that what a memory node may say of itself and of our channel?  All else of this process goes by it: tables have so many places, and
 * chains so many operations.
 */
static bool
capabilities_keep_contract(const FabricCapabilities *capabilities, const FabricEndpoint *endpoint)
{
	uint64_t nodes = capabilities->region_bytes[FABRIC_NODES];

	if (capabilities->lock_words == 0 || (capabilities->lock_words & (capabilities->lock_words - 1)) != 0 ||
	    capabilities->region_bytes[FABRIC_LOCKS] != capabilities->lock_words * sizeof(uint64_t) ||
	    nodes < FABRIC_REDO_BYTES || nodes > MAX_NODES_BYTES)
		return false;
	if (!endpoint->data)
		return true;
	return capabilities->max_chain > 0 && capabilities->max_chain <= FABRIC_MAX_CHAIN &&
	       capabilities->max_outstanding > 0 && capabilities->one_packet >= sizeof(uint64_t) &&
	       capabilities->instance > 0 && capabilities->instance <= UINT16_MAX &&
	       incarnation_keeps_contract(capabilities->incarnation, &endpoint->fabric->options) &&
	       capabilities->channel < UINT16_MAX && capabilities->redo_offset % FABRIC_STRIPE_BYTES == 0 &&
	       capabilities->redo_offset <= nodes - FABRIC_REDO_BYTES;
}

/* Has the instance been attached anew, or the memory been replaced, since the endpoint got its last channel? */
static bool
reader_is_fenced(const FabricEndpoint *endpoint, const FabricCapabilities *capabilities)
{
	const FabricCapabilities *last = &endpoint->capabilities;

	return endpoint->fabric->options.reader && last->incarnation != 0 &&
	       (capabilities->incarnation != last->incarnation ||
	        memcmp(capabilities->node_uuid, last->node_uuid, sizeof(last->node_uuid)) != 0);
}

FabricStatus
frame_get_channel(FramePayload *payload, const FabricEndpoint *endpoint, FabricCapabilities *capabilities,
                  FabricChannel *channel)
{
	uint64_t serial;

	memset(capabilities, 0, sizeof(*capabilities));
	frame_get_capabilities(payload, capabilities, &serial);
	if (payload->failed)
		return FABRIC_PROTOCOL;
	if (!capabilities_keep_contract(capabilities, endpoint))
	{
		fabric_set_detail(endpoint->fabric, "the memory node says of itself what no memory node is");
		return FABRIC_PROTOCOL;
	}
	if (reader_is_fenced(endpoint, capabilities))
	{
		fabric_set_detail(endpoint->fabric, "the owner of what is read has attached anew");
		return FABRIC_FENCED;
	}
	snprintf(capabilities->transport, sizeof(capabilities->transport), "%s", endpoint->transport->name);
	*channel = endpoint->channel;
	if (endpoint->data)
		*channel = (FabricChannel){
			capabilities->channel, serial, {capabilities->node_uuid[0], capabilities->node_uuid[1]}};
	else
		capabilities->max_chain = 0;
	return FABRIC_OK;
}

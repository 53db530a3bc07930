/*
 * frame.c
 *		Frames: the heads of all of them, and what those of control carry.  Here a frame is parsed.
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
control_encode(const ControlFrame *frame, uint8_t bytes[CONTROL_HEADER_BYTES])
{
	wire_put64(bytes, frame->length | (uint64_t) frame->method << 32 | (uint64_t) frame->version << 48);
	wire_put64(bytes + 8, frame->request);
}

bool
control_decode(const uint8_t bytes[CONTROL_HEADER_BYTES], ControlFrame *frame)
{
	uint64_t head = wire_get64(bytes);

	frame->length = (uint32_t) head;
	frame->method = (uint16_t) (head >> 32);
	frame->version = (uint16_t) (head >> 48);
	frame->request = wire_get64(bytes + 8);
	return frame->version == CONTROL_VERSION &&
	       frame->length <= (frame->method == CONTROL_CHAIN ? CHAIN_MAX_BYTES : CONTROL_MAX_PAYLOAD);
}

bool
control_other_version(Fabric *fabric, const ControlFrame *frame)
{
	if (frame->version == CONTROL_VERSION)
		return false;
	fabric_set_detail(fabric, "the memory node speaks version %u of the protocol, and this is version %u",
	                  frame->version, CONTROL_VERSION);
	return true;
}

uint8_t *
control_frame(const ControlFrame *frame, uint8_t *place)
{
	uint32_t end = CONTROL_HEADER_BYTES + frame->length;

	control_encode(frame, place);
	memset(place + end, 0, control_frame_bytes(frame->length) - end);
	return place + CONTROL_HEADER_BYTES;
}

uint8_t *
control_reply_frame(const ControlFrame *frame, FabricStatus status, uint32_t flags, uint8_t *place)
{
	ControlFrame reply = *frame;
	uint8_t *payload;

	reply.length += CONTROL_STATUS_BYTES;
	reply.version = CONTROL_VERSION;
	payload = control_frame(&reply, place);
	wire_put64(payload, (uint64_t) status | (uint64_t) flags << 32);
	return payload + CONTROL_STATUS_BYTES;
}

FabricStatus
control_status(const uint8_t *payload, uint32_t *flags)
{
	uint32_t status = wire_get32(payload);

	*flags = wire_get32(payload + 4);
	return status <= FABRIC_LAST_STATUS ? (FabricStatus) status : FABRIC_PROTOCOL;
}

static uint8_t *
payload_take(ControlPayload *payload, uint32_t count)
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
control_put32(ControlPayload *payload, uint32_t value)
{
	uint8_t *place = payload_take(payload, 4);

	if (place != NULL)
		wire_put32(place, value);
}

void
control_put64(ControlPayload *payload, uint64_t value)
{
	uint8_t *place = payload_take(payload, 8);

	if (place != NULL)
		wire_put64(place, value);
}

uint32_t
control_get32(ControlPayload *payload)
{
	uint8_t *place = payload_take(payload, 4);

	return place == NULL ? 0 : wire_get32(place);
}

uint64_t
control_get64(ControlPayload *payload)
{
	uint8_t *place = payload_take(payload, 8);

	return place == NULL ? 0 : wire_get64(place);
}

void
control_put_hello(ControlPayload *payload, const ControlHello *hello)
{
	control_put64(payload, hello->cluster[0]);
	control_put64(payload, hello->cluster[1]);
	control_put32(payload, hello->incarnation);
	control_put32(payload, hello->old_channel);
	control_put64(payload, hello->old_serial);
	control_put64(payload, hello->old_node_uuid[0]);
	control_put64(payload, hello->old_node_uuid[1]);
}

void
control_put_own_hello(ControlPayload *payload, const FabricEndpoint *endpoint)
{
	const FabricOptions *options = &endpoint->fabric->options;
	ControlHello hello = {
		.cluster = {options->cluster[0], options->cluster[1]},
		.incarnation = options->incarnation,
		.old_channel = CONTROL_NO_CHANNEL,
	};

	if (endpoint->channel.serial != 0)
	{
		hello.old_channel = endpoint->channel.channel;
		hello.old_serial = endpoint->channel.serial;
		memcpy(hello.old_node_uuid, endpoint->channel.node_uuid, sizeof(hello.old_node_uuid));
	}
	control_put_hello(payload, &hello);
}

void
control_get_hello(ControlPayload *payload, ControlHello *hello)
{
	hello->cluster[0] = control_get64(payload);
	hello->cluster[1] = control_get64(payload);
	hello->incarnation = control_get32(payload);
	hello->old_channel = control_get32(payload);
	hello->old_serial = control_get64(payload);
	hello->old_node_uuid[0] = control_get64(payload);
	hello->old_node_uuid[1] = control_get64(payload);
}

void
control_put_capabilities(ControlPayload *payload, const FabricCapabilities *capabilities, uint64_t serial)
{
	control_put32(payload, capabilities->flags);
	control_put32(payload, capabilities->max_chain);
	control_put32(payload, capabilities->max_outstanding);
	control_put32(payload, capabilities->one_packet);
	control_put32(payload, capabilities->lock_words);
	control_put32(payload, capabilities->channel);
	control_put64(payload, capabilities->redo_offset);
	control_put64(payload, capabilities->region_bytes[FABRIC_NODES]);
	control_put64(payload, capabilities->region_bytes[FABRIC_LOCKS]);
	control_put64(payload, capabilities->node_uuid[0]);
	control_put64(payload, capabilities->node_uuid[1]);
	control_put64(payload, capabilities->generation);
	control_put32(payload, capabilities->instance);
	control_put32(payload, capabilities->incarnation);
	control_put64(payload, serial);
}

void
control_get_capabilities(ControlPayload *payload, FabricCapabilities *capabilities, uint64_t *serial)
{
	capabilities->flags = control_get32(payload);
	capabilities->max_chain = control_get32(payload);
	capabilities->max_outstanding = control_get32(payload);
	capabilities->one_packet = control_get32(payload);
	capabilities->lock_words = control_get32(payload);
	capabilities->channel = control_get32(payload);
	capabilities->redo_offset = control_get64(payload);
	capabilities->region_bytes[FABRIC_NODES] = control_get64(payload);
	capabilities->region_bytes[FABRIC_LOCKS] = control_get64(payload);
	capabilities->node_uuid[0] = control_get64(payload);
	capabilities->node_uuid[1] = control_get64(payload);
	capabilities->generation = control_get64(payload);
	capabilities->instance = control_get32(payload);
	capabilities->incarnation = control_get32(payload);
	*serial = control_get64(payload);
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
	       capabilities->incarnation == endpoint->fabric->options.incarnation &&
	       capabilities->channel < UINT16_MAX && capabilities->redo_offset % FABRIC_STRIPE_BYTES == 0 &&
	       capabilities->redo_offset <= nodes - FABRIC_REDO_BYTES;
}

FabricStatus
control_get_channel(ControlPayload *payload, const FabricEndpoint *endpoint, FabricCapabilities *capabilities,
                    FabricChannel *channel)
{
	uint64_t serial;

	memset(capabilities, 0, sizeof(*capabilities));
	control_get_capabilities(payload, capabilities, &serial);
	if (payload->failed)
		return FABRIC_PROTOCOL;
	if (!capabilities_keep_contract(capabilities, endpoint))
	{
		fabric_set_detail(endpoint->fabric, "the memory node says of itself what no memory node is");
		return FABRIC_PROTOCOL;
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

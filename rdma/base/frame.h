/*
 * frame.h
 *		Frames, of which everything between a client and the memory node consists that is not memory: their heads, and the
 *		payloads of the fabric's own calls.  Private to rdma/.
 *
 * A frame is a head of 16 bytes {length of the payload (4), method (2), version (2), request id (8)} and the payload,
 * all little endian, with zeroes behind it up to a multiple of 8 bytes.  A reply repeats method and request id; its
 * payload begins with the status (4 bytes) and flags (4 bytes).  Chains have frames of their own (chain.h).
 */
#ifndef SHERMAN_FRAME_H
#define SHERMAN_FRAME_H

#include "rdma/base/transport.h"

#define FRAME_VERSION 5u
#define FRAME_HEAD_BYTES 16u
#define FRAME_STATUS_BYTES 8u
#define FRAME_MAX_PAYLOAD (FABRIC_MAX_CALL_BYTES + FRAME_STATUS_BYTES)
#define FRAME_MAX_BYTES (FRAME_HEAD_BYTES + FRAME_MAX_PAYLOAD)
#define FRAME_ALIGNMENT 8u

_Static_assert(FRAME_MAX_BYTES % FRAME_ALIGNMENT == 0, "the longest frame needs no padding");

typedef struct FrameHead
{
	uint32_t length;
	uint16_t method;
	uint16_t version;
	uint64_t request;
} FrameHead;

/* Bytes of a frame with a payload of `length`, on the wire. */
static inline uint32_t
frame_wire_bytes(uint32_t length)
{
	return FRAME_HEAD_BYTES + (length + FRAME_ALIGNMENT - 1) / FRAME_ALIGNMENT * FRAME_ALIGNMENT;
}

extern void frame_encode(const FrameHead *frame, uint8_t bytes[FRAME_HEAD_BYTES]);
/* False: another version, or a length that no frame of that method has. *frame is what was read in any case. */
extern bool frame_decode(const uint8_t bytes[FRAME_HEAD_BYTES], FrameHead *frame);

/*
 * Begins a frame at `place`, which has room for all of it: writes the header and the zeroes behind the
 * payload; returns the payload's place.
 */
extern uint8_t *frame_begin(const FrameHead *frame, uint8_t *place);
/*
 * The same for a reply: its status, too. `frame->length` counts the data behind that, whose place is
 * returned.
 */
extern uint8_t *frame_begin_reply(const FrameHead *frame, FabricStatus status, uint32_t flags,
                                  uint8_t *place);
/* The status of a reply; one that there is not is FABRIC_PROTOCOL. */
extern FabricStatus frame_status(const uint8_t *payload, uint32_t *flags);

/* A payload that is being built or taken apart. Running over its end sets `failed` and yields zeroes. */
typedef struct FramePayload
{
	uint8_t *data;
	uint32_t bytes;
	uint32_t position;
	bool failed;
} FramePayload;

extern void frame_put32(FramePayload *payload, uint32_t value);
extern void frame_put64(FramePayload *payload, uint64_t value);
extern uint32_t frame_get32(FramePayload *payload);
extern uint64_t frame_get64(FramePayload *payload);

/* The request of CONTROL_HELLO. */
typedef struct FrameHello
{
	uint64_t cluster[2];
	uint32_t incarnation; /* 0: control only; CONTROL_READER */
	uint32_t old_channel; /* of a channel to be killed first, or CONTROL_NO_CHANNEL */
	uint64_t old_serial;
	uint64_t old_node_uuid[2];
} FrameHello;

/* Puts what an endpoint says: endpoint->channel, if there is one, must be dead before it gets another. */
extern void frame_put_own_hello(FramePayload *payload, const FabricEndpoint *endpoint);
extern void frame_put_hello(FramePayload *payload, const FrameHello *hello);
extern void frame_get_hello(FramePayload *payload, FrameHello *hello);

/* The reply of CONTROL_HELLO and CONTROL_RESET: capabilities and the serial of the channel record's use. */
extern void frame_put_capabilities(FramePayload *payload, const FabricCapabilities *capabilities,
                                   uint64_t serial);
extern void frame_get_capabilities(FramePayload *payload, FabricCapabilities *capabilities, uint64_t *serial);

/*
 * Gets the same for an endpoint, into the two that it will have if the transport agrees: the name of the transport is
 * filled in, and one for calls alone has no chains and no channel.  FABRIC_PROTOCOL: the reply is cut short, or breaks what
 * FabricCapabilities promises.  FABRIC_FENCED: a reader's, of another incarnation or memory than the endpoint's last channel.
 */
extern FabricStatus frame_get_channel(FramePayload *payload, const FabricEndpoint *endpoint,
                                      FabricCapabilities *capabilities, FabricChannel *channel);

/* Is a reply that frame_decode() refused of another version?  Then the fabric's detail says of which. */
extern bool frame_other_version(Fabric *fabric, const FrameHead *frame);

#endif /* SHERMAN_FRAME_H */

/*
 * control.h
 *		The protocol between a client and the memory node, over a local socket or a network stream.  Private
 *		to rdma/.
 *
 * A frame is a header of 16 bytes {length of the payload (4), method (2), version (2), request id (8)} and
 * the payload, all little endian, with zeroes behind it up to a multiple of 8 bytes.  A reply repeats method
 * and request id; its payload begins with the status (4 bytes) and flags (4 bytes).  One call at a time is
 * outstanding on a connection; a reply to a call that was given up is known by its id and dropped.  Chains of
 * network clients are frames of their own (chain.h), of which many may be outstanding.
 */
#ifndef SHERMAN_CONTROL_H
#define SHERMAN_CONTROL_H

#include <sys/socket.h>
#include <sys/un.h>

#include "rdma/base/chain.h"
#include "rdma/base/transport.h"

#define CONTROL_VERSION 5u
#define CONTROL_HEADER_BYTES 16u
#define CONTROL_STATUS_BYTES 8u
#define CONTROL_MAX_PAYLOAD (FABRIC_MAX_CALL_BYTES + CONTROL_STATUS_BYTES)
#define CONTROL_MAX_FRAME (CONTROL_HEADER_BYTES + CONTROL_MAX_PAYLOAD)
#define CONTROL_ALIGNMENT 8u

_Static_assert(CONTROL_MAX_FRAME % CONTROL_ALIGNMENT == 0, "the longest frame needs no padding");

/* Methods of the fabric itself; those below belong to the service. */
#define CONTROL_FIRST_METHOD 0xff00u
#define CONTROL_HELLO 0xff01u  /* cluster, incarnation, old channel -> capabilities, memory segment */
#define CONTROL_ATTACH 0xff02u /* resume, nonce -> instance, incarnation */
#define CONTROL_RESET 0xff03u  /* -> capabilities with a new channel */
#define CONTROL_CHAIN 0xff04u  /* network clients: chain.h */
#define CONTROL_NO_CHANNEL UINT32_MAX

/* Flags of replies. */
#define CONTROL_DRAINING 0x01u   /* the memory node is about to stop (fabric_is_draining()) */
#define CONTROL_KEY_WANTED 0x02u /* FABRIC_DENIED, as this memory node serves only clients with a key */
/* Behind HELLO over a control socket: the client sends its chains. Then no memory is passed. */
#define CONTROL_FRAMES 1u
#define CONTROL_NO_TENANT 0x08u /* FABRIC_DENIED, as there are as many tenants as can be */
#define CONTROL_NO_PART 0x04u   /* FABRIC_DENIED, as no part of node memory is left for the tenant (verbs) */

typedef struct ControlFrame
{
	uint32_t length;
	uint16_t method;
	uint16_t version;
	uint64_t request;
} ControlFrame;

/* Bytes of a frame with a payload of `length`, on the wire. */
static inline uint32_t
control_frame_bytes(uint32_t length)
{
	return CONTROL_HEADER_BYTES + (length + CONTROL_ALIGNMENT - 1) / CONTROL_ALIGNMENT * CONTROL_ALIGNMENT;
}

extern void control_encode(const ControlFrame *frame, uint8_t bytes[CONTROL_HEADER_BYTES]);
/* False: another version, or a length that no frame of that method has. *frame is what was read in any case. */
extern bool control_decode(const uint8_t bytes[CONTROL_HEADER_BYTES], ControlFrame *frame);

/*
 * Begins a frame at `place`, which has room for all of it: writes the header and the zeroes behind the
 * payload; returns the payload's place.
 */
extern uint8_t *control_frame(const ControlFrame *frame, uint8_t *place);
/*
 * The same for a reply: its status, too. `frame->length` counts the data behind that, whose place is
 * returned.
 */
extern uint8_t *control_reply_frame(const ControlFrame *frame, FabricStatus status, uint32_t flags,
                                    uint8_t *place);
/* The status of a reply; one that there is not is FABRIC_PROTOCOL. */
extern FabricStatus control_status(const uint8_t *payload, uint32_t *flags);

/* A payload that is being built or taken apart. Running over its end sets `failed` and yields zeroes. */
typedef struct ControlPayload
{
	uint8_t *data;
	uint32_t bytes;
	uint32_t position;
	bool failed;
} ControlPayload;

extern void control_put32(ControlPayload *payload, uint32_t value);
extern void control_put64(ControlPayload *payload, uint64_t value);
extern uint32_t control_get32(ControlPayload *payload);
extern uint64_t control_get64(ControlPayload *payload);

/* The request of CONTROL_HELLO. */
typedef struct ControlHello
{
	uint64_t cluster[2];
	uint32_t incarnation; /* 0: control only */
	uint32_t old_channel; /* of a channel to be killed first, or CONTROL_NO_CHANNEL */
	uint64_t old_serial;
	uint64_t old_node_uuid[2];
} ControlHello;

/* Puts what an endpoint says: endpoint->channel, if there is one, must be dead before it gets another. */
extern void control_put_own_hello(ControlPayload *payload, const FabricEndpoint *endpoint);
extern void control_put_hello(ControlPayload *payload, const ControlHello *hello);
extern void control_get_hello(ControlPayload *payload, ControlHello *hello);

/* The reply of CONTROL_HELLO and CONTROL_RESET: capabilities and the serial of the channel record's use. */
extern void control_put_capabilities(ControlPayload *payload, const FabricCapabilities *capabilities,
                                     uint64_t serial);
extern void control_get_capabilities(ControlPayload *payload, FabricCapabilities *capabilities,
                                     uint64_t *serial);

/*
 * Gets the same for an endpoint, into the two that it will have if the transport agrees: the name of the transport is
 * filled in, and one for calls alone has no chains and no channel.  FABRIC_PROTOCOL: the reply is cut short, or breaks what
 * FabricCapabilities promises.
 */
extern FabricStatus control_get_channel(ControlPayload *payload, const FabricEndpoint *endpoint,
                                        FabricCapabilities *capabilities, FabricChannel *channel);

/*
 * Fills the address of a unix socket, however long its path: a long one goes through a descriptor of its
 * directory, *directory (else -1), which the caller closes after bind or connect.  False: errno is set.
 */
extern bool control_address(const char *path, struct sockaddr_un *address, socklen_t *length, int *directory);

/* Is a reply that control_decode() refused of another version?  Then the fabric's detail says of which. */
extern bool control_other_version(Fabric *fabric, const ControlFrame *frame);

/* The client's end. */
typedef struct ControlClient
{
	Fabric *fabric;
	int descriptor;     /* -1: not connected */
	bool other_version; /* the memory node has answered in one */
	uint64_t request;
	uint32_t received;
	uint8_t buffer[CONTROL_MAX_FRAME]; /* what arrived of the next reply */
} ControlClient;

/* Connects to the socket at `path`. FABRIC_UNREACHABLE, FABRIC_DENIED, FABRIC_STOPPED. */
extern FabricStatus control_connect(ControlClient *client, Fabric *fabric, const char *path);
extern void control_disconnect(ControlClient *client);

/*
 * One call: status of the reply, or FABRIC_TIMED_OUT, FABRIC_STOPPED, FABRIC_LOST.  A descriptor that came
 * with the reply is given to *passed (else -1), or closed if `passed` is NULL.  FABRIC_PROTOCOL: the reply
 * does not fit, or is one to HELLO from a memory node of another version.
 */
extern FabricStatus control_call(ControlClient *client, uint16_t method, const void *request,
                                 uint32_t request_bytes, void *reply, uint32_t *reply_bytes, int *passed);

/* The fabric's own calls make, end and renew connections. */
static inline FabricWait
control_wait(uint16_t method)
{
	return method >= CONTROL_FIRST_METHOD ? FABRIC_WAIT_CONNECT : FABRIC_WAIT_CALL;
}

/* Is the memory node's end of the connection closed?  Never blocks. */
extern bool control_is_closed(const ControlClient *client);

/* A call over some connection, as control_call() without descriptors. */
typedef FabricStatus (*ControlCall)(void *connection, uint16_t method, const void *request,
                                    uint32_t request_bytes, void *reply, uint32_t *reply_bytes);

/* The call ATTACH; as fabric_attach(). */
extern FabricStatus control_attach(ControlCall call, void *connection, bool resume, uint64_t launcher_nonce,
                                   uint32_t *instance, uint32_t *incarnation);

#endif /* SHERMAN_CONTROL_H */

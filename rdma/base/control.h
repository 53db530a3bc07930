/*
 * control.h
 *		The fabric's own calls, and the client's end of a control socket.  Private to rdma/.
 *
 * One call at a time is outstanding on a connection; a reply to a call that was given up is known by its id and dropped.
 * Chains of network clients are frames of their own (chain.h), of which many may be outstanding.
 */
#ifndef SHERMAN_CONTROL_H
#define SHERMAN_CONTROL_H

#include <sys/socket.h>
#include <sys/un.h>

#include "rdma/base/chain.h"
#include "rdma/base/frame.h"
#include "rdma/base/transport.h"

/* Methods of the fabric itself; those below belong to the service. */
#define CONTROL_FIRST_METHOD 0xff00u
#define CONTROL_HELLO 0xff01u  /* cluster, incarnation, old channel -> capabilities, memory segment */
#define CONTROL_ATTACH 0xff02u /* resume, nonce -> instance, incarnation */
#define CONTROL_RESET 0xff03u  /* -> capabilities with a new channel */
#define CONTROL_CHAIN 0xff04u  /* network clients: chain.h */
#define CONTROL_NO_CHANNEL UINT32_MAX
/* HELLO's incarnation: the current one, whichever it is, for a channel that only reads. No incarnation is so high. */
#define CONTROL_READER UINT32_MAX

/* Flags of replies. */
#define CONTROL_DRAINING 0x01u   /* the memory node is about to stop (fabric_is_draining()) */
#define CONTROL_KEY_WANTED 0x02u /* FABRIC_DENIED, as this memory node serves only clients with a key */
/* Behind HELLO over a control socket: the client sends its chains. Then no memory is passed. */
#define CONTROL_FRAMES 1u
#define CONTROL_NO_TENANT 0x08u /* FABRIC_DENIED, as there are as many tenants as can be */
#define CONTROL_NO_PART 0x04u   /* FABRIC_DENIED, as no part of node memory is left for the tenant (verbs) */
#define CONTROL_READERS_FULL 0x10u /* FABRIC_NO_MEMORY, as the channels that are left are not for readers */

/*
 * Fills the address of a unix socket, however long its path: a long one goes through a descriptor of its
 * directory, *directory (else -1), which the caller closes after bind or connect.  False: errno is set.
 */
extern bool control_address(const char *path, struct sockaddr_un *address, socklen_t *length, int *directory);

/* The client's end. */
typedef struct ControlClient
{
	Fabric *fabric;
	int descriptor;     /* -1: not connected */
	bool other_version; /* the memory node has answered in one */
	uint64_t request;
	uint32_t received;
	uint8_t buffer[FRAME_MAX_BYTES]; /* what arrived of the next reply */
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

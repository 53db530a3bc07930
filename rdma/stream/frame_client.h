/*
 * frame_client.h
 *		The client's end of a network connection to a memory node: frames in both directions, and calls.
 *		Private to rdma/.
 *
 * Everything is sent as far as the socket takes it; the rest goes when the client waits. Frames are handled as they
 * arrive: replies to calls here, all others by the owner of the link.
 */
#ifndef SHERMAN_LINK_H
#define SHERMAN_LINK_H

#include "rdma/base/buffer.h"
#include "rdma/base/control.h"
#include "rdma/base/spin.h"
#include "rdma/stream/stream.h"

/*
 * Takes a reply that is not for a call; false: it was not asked for. `data`: the bytes after the status, 8-aligned;
 * frame->length counts these alone.
 */
typedef bool (*LinkTake)(void *argument, const FrameHead *frame, FabricStatus status, const uint8_t *data);

/* The call under way. */
typedef struct LinkCall
{
	uint64_t request;
	uint16_t method;
	bool answered;
	FabricStatus status;
	void *reply;
	uint32_t room;
	uint32_t length; /* of the data that came; only `room` of it was kept */
} LinkCall;

typedef struct Link
{
	Fabric *fabric;
	Stream *stream; /* NULL: not connected */
	bool local;     /* over a control socket, whose path is the location; without a key */
	LinkTake take;
	void *argument;
	uint64_t deadline; /* of the last link_open(), and of the HELLO that follows it */
	uint64_t request;  /* of the last call */
	LinkCall *call;
	uint64_t frames;    /* that were taken */
	bool draining;      /* the memory node has said so */
	bool other_version; /* the memory node has answered in one */
	Spin spin;
	Buffer input;
	Buffer output;
} Link;

/* A link that is not connected. `take` may be NULL: only calls are made. */
extern void link_init(Link *link, Fabric *fabric, LinkTake take, void *argument);

/*
 * Connects to "host:port", or the control socket, and proves the key, if there is one; closes an earlier connection
 * first. FABRIC_UNREACHABLE, FABRIC_DENIED (also: the key file cannot be used), FABRIC_STOPPED, FABRIC_NO_MEMORY.
 */
extern FabricStatus link_open(Link *link, const char *location);
/* Closes the connection and gives all memory back. */
extern void link_close(Link *link);

/*
 * Puts a frame behind the others that are to be sent; returns the place of its payload, or NULL: no memory,
 * nothing happened.
 */
extern uint8_t *link_put(Link *link, uint16_t method, uint64_t request, uint32_t bytes);

/* Sends what the socket takes. FABRIC_LOST: the connection is gone, and closed. */
extern FabricStatus link_send(Link *link);

/* Sends and takes what it can without waiting. FABRIC_LOST as link_send(). */
extern FabricStatus link_poll(Link *link);

/*
 * Sends, and waits until at least one frame was taken.  FABRIC_TIMED_OUT, FABRIC_STOPPED: the connection is
 * as good as before; FABRIC_LOST: it is closed.
 */
extern FabricStatus link_wait(Link *link, uint64_t deadline);

/*
 * A call, as control_call() (control.h) without descriptors; its deadline is the fabric's for calls, HELLO's that of
 * link_open().
 */
extern FabricStatus link_call(Link *link, uint16_t method, const void *request, uint32_t request_bytes,
                              void *reply, uint32_t *reply_bytes);

/* fabric_attach() by such a call. */
extern FabricStatus link_attach(Link *link, bool resume, uint64_t launcher_nonce, uint32_t *instance,
                                uint32_t *incarnation);

#endif /* SHERMAN_LINK_H */

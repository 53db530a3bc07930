/*
 * raw_client.h
 *		For the tests of a memory node's security: a network client that sends whatever it likes, and a
 *		witness that shows whether the others are served meanwhile.
 */
#ifndef SHERMAN_RAW_CLIENT_H
#define SHERMAN_RAW_CLIENT_H

#include "rdma/base/control.h"
#include "rdma/stream/stream.h"
#include "support/fabric_process.h"

/* Longest frame with its payload. */
#define RAW_FRAME_BYTES (FRAME_HEAD_BYTES + CHAIN_MAX_BYTES + FRAME_STATUS_BYTES + FRAME_ALIGNMENT)

typedef struct RawClient
{
	StreamContext *context;
	Stream *stream;
	uint64_t request;
} RawClient;

/* A connected non-blocking socket to the memory node's network address. */
extern int raw_socket(const FabricProcess *node);

/*
 * A connection, with the handshake done where the memory node has keys: `key` is then the key of the client,
 * else NULL.
 */
extern void raw_open(RawClient *raw, const FabricProcess *node, const FabricKey *key);
/* The same over a connected socket. */
extern void raw_start(RawClient *raw, int descriptor, const FabricKey *key);
extern void raw_close(RawClient *raw);

/* Sends all; false: the memory node has closed the connection. */
extern bool raw_send(RawClient *raw, const void *bytes, size_t count);
/* Sends as much as the memory node takes in a while; returns how much that was. */
extern size_t raw_send_some(RawClient *raw, const void *bytes, size_t count);

/* A frame with its padding at `place` (RAW_FRAME_BYTES); returns its bytes. */
extern size_t raw_frame(uint8_t *place, uint16_t method, uint64_t request, const void *payload, size_t count);

/* Receives the next frame, its payload at `payload` (RAW_FRAME_BYTES); false: the connection is closed. */
extern bool raw_receive(RawClient *raw, FrameHead *frame, uint8_t *payload);

/* The same, if anything comes within a moment; false also if nothing does. */
extern bool raw_try_receive(RawClient *raw, FrameHead *frame, uint8_t *payload);

/* A request and its reply, whose data is left behind the status. FABRIC_LOST: the connection is closed. */
extern FabricStatus raw_call(RawClient *raw, uint16_t method, const void *request, size_t count,
                             uint8_t *reply, uint32_t *reply_bytes);

/* HELLO; `capabilities` may be NULL. */
extern FabricStatus raw_hello(RawClient *raw, uint64_t cluster, uint32_t incarnation,
                              FabricCapabilities *capabilities);
/* A chain that is not checked before it is sent; READs get their bytes, atomics their results. */
extern FabricStatus raw_chain(RawClient *raw, FabricOp *ops, int count);

/* Waits until the memory node has closed the connection, without an answer. */
extern void raw_expect_closed(RawClient *raw);

/* ---- The witness */

typedef struct Witness
{
	pid_t pid;
	struct WitnessPage *page;
} Witness;

/*
 * A process that attaches `cluster`, takes a unit of node memory, and goes on writing and reading there, with
 * a lock word, and connecting anew.  channel_defaults() are its as well.
 */
extern void witness_start(Witness *witness, const char *address, uint64_t cluster);
/* Waits until it has done so many more rounds, of which each was answered rightly. */
extern void witness_expect(Witness *witness, uint64_t rounds);
/* Offset in NODES of its unit. */
extern uint64_t witness_offset(const Witness *witness);
extern void witness_stop(Witness *witness);

#endif /* SHERMAN_RAW_CLIENT_H */

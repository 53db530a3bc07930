/*
 * stream.h
 *		A byte stream between a client and a memory node: a non-blocking socket, plain or under TLS 1.3 with
 *		a pre-shared key.  Private to rdma/.
 *
 * Nothing here waits: each call does what it can now and says for which readiness of the descriptor to wait;
 * readiness is to be asked for by level, not by edge.  No call raises SIGPIPE.
 *
 * Both sides prove that they know the key: an external PSK of TLS 1.3, without certificates, with (EC)DHE.
 * OpenSSL does it.  It keeps a queue of errors per thread, which is emptied at the start and at the end of
 * each call here.
 */
#ifndef SHERMAN_STREAM_H
#define SHERMAN_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rdma/keys.h"

typedef struct Stream Stream;

/*
 * What streams under TLS have in common. To make it costs as much as a handshake: one for each Fabric or
 * server.  It outlives its streams.
 */
typedef struct StreamContext StreamContext;

/*
 * Readies OpenSSL, if nobody in this process has used it yet, without what it does at the exit of a process: it would
 * take itself to pieces in each one that is forked from this one, whether that has used it or not.
 */
extern void stream_prepare(void);
/* NULL: no memory. */
extern StreamContext *stream_context_open(void);
/* NULL is fine. */
extern void stream_context_close(StreamContext *context);

typedef enum StreamStatus
{
	STREAM_OK = 0,
	STREAM_WANT_READ,  /* come again when the descriptor is readable */
	STREAM_WANT_WRITE, /* ... writable */
	STREAM_CLOSED,     /* the peer closed or the connection broke */
	STREAM_REFUSED,    /* the handshake failed: no or a wrong key, not TLS, another version */
	STREAM_NO_MEMORY
} StreamStatus;

/*
 * Finds the key of a PSK identity (server side), which the peer chose and which is not verified; false: there is
 * none. The tenant's number is kept by the stream, the key is overwritten when the handshake has read it.
 */
typedef bool (*StreamFindKey)(void *argument, const char *identity, FabricKey *key, uint32_t *tenant);

/*
 * Make a stream over a connected non-blocking socket, which belongs to the stream from then on; NULL: no
 * memory (the socket is closed then, too).  A plain stream needs no handshake.  `key` is copied, and
 * overwritten when the handshake is over; `find` is called in stream_handshake() only.
 */
extern Stream *stream_plain(int descriptor);
extern Stream *stream_client(int descriptor, StreamContext *context, const FabricKey *key);
extern Stream *stream_server(int descriptor, StreamContext *context, StreamFindKey find, void *argument);

/* Does a peer that has a key begin so? */
extern bool stream_is_hello(const void *bytes, size_t count);
/*
 * Tells the peer of a plain stream that has begun so that there are no keys here, as far as it goes without
 * waiting: its handshake then fails, and says why.
 */
extern void stream_refuse_hello(Stream *stream);

/* Goes on with the handshake. STREAM_OK: done, the peer is authenticated. */
extern StreamStatus stream_handshake(Stream *stream);

/*
 * Reads or writes at least one byte, at most `bytes` (> 0); *done says how many.  Not before the handshake is
 * done. A write that did not return STREAM_OK goes on with the same bytes, perhaps at another address, and
 * not fewer.
 */
extern StreamStatus stream_read(Stream *stream, void *buffer, size_t bytes, size_t *done);
extern StreamStatus stream_write(Stream *stream, const void *buffer, size_t bytes, size_t *done);

/* Bytes that were read from the socket and can be had by stream_read() without its becoming readable. */
extern bool stream_pending(const Stream *stream);

extern int stream_descriptor(const Stream *stream);
/* Tenant of the authenticated peer (server side), 0 for a plain stream and before the handshake is done. */
extern uint32_t stream_tenant(const Stream *stream);
/* Why the last call failed, for a log; never NULL. */
extern const char *stream_detail(const Stream *stream);

/*
 * Closes the socket (with TLS's close notification if it can be sent without waiting) and frees the stream;
 * NULL is fine.
 */
extern void stream_close(Stream *stream);

#endif /* SHERMAN_STREAM_H */

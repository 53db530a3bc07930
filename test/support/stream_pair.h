/*
 * stream_pair.h
 *		For the tests of streams: keys, both ends in one process, and a wire between them that a test holds.
 */
#ifndef SHERMAN_STREAM_PAIR_H
#define SHERMAN_STREAM_PAIR_H

#include "rdma/stream/stream.h"
#include "testing.h"

/* Enough for the flights of a handshake and a few records. */
#define PAIR_WIRE_BYTES 65536u

/* A key of this tenant as its file would give it; the same number is the same key. */
extern void pair_key(FabricKey *key, const char *tenant, unsigned number);

/*
 * A memory node's keys: the argument of pair_find(). Tenants have the numbers 1, 2, ... in the order of keys.
 */
typedef struct PairKeys
{
	uint32_t count;
	FabricKey keys[4];
	uint32_t asked; /* calls of pair_find() */
} PairKeys;

extern bool pair_find(void *argument, const char *identity, FabricKey *key, uint32_t *tenant);

typedef struct StreamPair
{
	PairKeys keys;
	StreamContext *context;
	Stream *client;
	Stream *server;
	/* The test's ends of a wire, or -1: then the two ends are connected directly. */
	int to_client;
	int to_server;
	StreamStatus client_status; /* of the handshake */
	StreamStatus server_status;
} StreamPair;

/* Two connected non-blocking sockets. */
extern void pair_sockets(int sockets[2]);

/*
 * Both ends, with TLS: the client with the first key of the tenant "alpha", the server with that and one of
 * "beta". With `wire` whatever they say goes through the test.
 */
extern void pair_open(StreamPair *pair, bool wire);
extern void pair_open_keys(StreamPair *pair, bool wire, const FabricKey *client, const PairKeys *server);
extern void pair_open_plain(StreamPair *pair);
/* Closes what is open. */
extern void pair_close(StreamPair *pair);

/*
 * Runs the handshake of both ends until neither has anything left to do; a wire passes on all that is said.
 */
extern void pair_handshake(StreamPair *pair);

/* What arrived at a socket and nobody has taken, as far as there is room. */
extern size_t pair_take(int descriptor, uint8_t *bytes, size_t room);
extern void pair_put(int descriptor, const uint8_t *bytes, size_t count);

/* One stream_read(), one stream_write(): the status must be STREAM_OK; all bytes are moved. */
extern void pair_send(Stream *stream, const void *bytes, size_t count);
extern void pair_receive(Stream *stream, void *bytes, size_t count);

/* Has either status an end: authenticated or failed? */
extern bool pair_is_settled(StreamStatus status);

/* Descriptors that this process has open. */
extern int pair_open_descriptors(void);

/* Fixtures of cmocka: a test leaves no descriptor open, and no error in OpenSSL's queue. */
extern int pair_count_leavings(void **state);
extern int pair_check_leavings(void **state);

#endif /* SHERMAN_STREAM_PAIR_H */

/*
 * door.h
 *		A memory node in this process, and clients of its tenants that send whatever they like, behind the handshake that
 *		proved their keys.  The node runs while a test takes its rounds, so that these can be counted.
 */
#ifndef SHERMAN_TEST_DOOR_H
#define SHERMAN_TEST_DOOR_H

#include "rdma/server/server_state.h"
#include "tree/service/service_state.h"

#define DOOR_TENANTS 2u

typedef struct Door
{
	char directory[128];
	char memory[160];
	char socket[160];
	FabricKeys keys;
	ServiceOptions options;
	Service *service;
	uint32_t tenants[DOOR_TENANTS]; /* their numbers */
} Door;

typedef struct DoorClient
{
	int descriptor; /* -1: not connected, or the memory node has closed it */
	uint64_t request;
	size_t received;
	uint8_t input[FRAME_HEAD_BYTES + CHAIN_MAX_BYTES + 64];
} DoorClient;

/* Opens a memory node with empty memory, for tenants of these names and quotas (0 = none). */
extern void door_open(Door *door, uint64_t node_bytes, uint32_t max_trees,
                      const char *const names[DOOR_TENANTS], const uint64_t quotas[DOOR_TENANTS]);
/* Closes it and opens it again over its memory. All clients are gone. */
extern void door_reopen(Door *door);
extern void door_close(Door *door);
/* One round of the memory node. */
extern void door_step(Door *door);

/* A connection of the tenant, by its position in `names`. */
extern void door_connect(Door *door, uint32_t which, DoorClient *client);
extern void door_disconnect(DoorClient *client);

/* A frame at `place`; returns its bytes. Its request id is client->request then. */
extern size_t door_frame(DoorClient *client, uint8_t *place, uint16_t method, const void *payload,
                         size_t bytes);
/* Sends a frame; returns its request id. */
extern uint64_t door_send(DoorClient *client, uint16_t method, const void *payload, size_t bytes);
/* Sends bytes as they are. */
extern void door_send_bytes(DoorClient *client, const void *bytes, size_t count);
/*
 * Takes the next reply that has come, if one has: its id, status, and data (CHAIN_MAX_BYTES).
 */
extern bool door_take(DoorClient *client, uint64_t *request, FabricStatus *status, uint8_t *data,
                      uint32_t *bytes);

/* A call with as many rounds as it takes; `rounds` at most. FABRIC_LOST: the connection was closed; FABRIC_TIMED_OUT: no answer. */
extern FabricStatus door_call(Door *door, DoorClient *client, uint32_t rounds, uint16_t method,
                              const void *payload, size_t payload_bytes, void *reply, uint32_t *reply_bytes);
/* HELLO and ATTACH, as calls. What they answer may be NULL. */
extern FabricStatus door_hello(Door *door, DoorClient *client, const FrameHello *hello,
                               FabricCapabilities *capabilities, uint64_t *serial);
extern FabricStatus door_attach(Door *door, DoorClient *client, uint64_t nonce, uint32_t *incarnation);

/* Ends all quarantines, as if the time had passed. */
extern void door_end_quarantine(Door *door);

#endif /* SHERMAN_TEST_DOOR_H */

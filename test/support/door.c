/*
 * door.c
 *		See door.h.
 */
#define _GNU_SOURCE 1
#include "door.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../sim/files.h"
#include "require.h"

static void
open_service(Door *door)
{
	char detail[FABRIC_DETAIL_BYTES] = "";

	REQUIRE(service_open(&door->options, &door->service, detail) == FABRIC_OK, "service_open: %s", detail);
	for (uint32_t i = 0; i < DOOR_TENANTS; i++)
		door->tenants[i] = tenant_number(door->service->server, door->keys.keys[i].tenant);
}

void
door_open(Door *door, uint64_t node_bytes, uint32_t max_trees, const char *const names[DOOR_TENANTS],
          const uint64_t quotas[DOOR_TENANTS])
{
	memset(door, 0, sizeof(*door));
	REQUIRE(files_make(door->directory, sizeof(door->directory), "sherman-door"), "no directory");
	snprintf(door->memory, sizeof(door->memory), "%s/memory", door->directory);
	snprintf(door->socket, sizeof(door->socket), "%s/socket", door->directory);
	door->options = (ServiceOptions){.memory_path = door->memory,
	                                 .socket_path = door->socket,
	                                 .node_bytes = node_bytes,
	                                 .max_channels = 64,
	                                 .max_trees = max_trees,
	                                 .keys = &door->keys};
	door->keys.count = DOOR_TENANTS;
	for (uint32_t i = 0; i < DOOR_TENANTS; i++)
	{
		ServiceQuota *quota = &door->options.quotas.quotas[door->options.quotas.count];

		snprintf(door->keys.keys[i].tenant, sizeof(door->keys.keys[i].tenant), "%s", names[i]);
		snprintf(quota->tenant, sizeof(quota->tenant), "%s", names[i]);
		quota->bytes = quotas[i];
		door->options.quotas.count += quotas[i] > 0;
	}
	open_service(door);
}

void
door_reopen(Door *door)
{
	service_close(door->service, 0, false);
	open_service(door);
}

void
door_close(Door *door)
{
	service_close(door->service, 0, true);
	files_remove(door->directory);
}

void
door_step(Door *door)
{
	REQUIRE(service_step(door->service, 0) == FABRIC_OK, "the memory node's round failed");
}

void
door_connect(Door *door, uint32_t which, DoorClient *client)
{
	FabricServer *server = door->service->server;
	ServerConnection *connection;
	int pair[2];

	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0, "socketpair: %s",
	        strerror(errno));
	connection = connection_make(server, pair[0]);
	REQUIRE(connection != NULL, "no connection");
	/* As accept_handshake() leaves it. */
	connection->stream = stream_plain(pair[0]);
	connection->tenant = door->tenants[which];
	connection->counted = true;
	server->network_connections++;
	server->tenants[connection->tenant].connections++;
	REQUIRE(connection->stream != NULL && connection_watch(server, connection, EPOLLIN | EPOLLRDHUP),
	        "no connection");
	TAILQ_INSERT_TAIL(&server->connections, connection, all);
	client->descriptor = pair[1];
	client->received = 0;
}

void
door_disconnect(DoorClient *client)
{
	if (client->descriptor >= 0)
		close(client->descriptor);
	client->descriptor = -1;
}

void
door_send_bytes(DoorClient *client, const void *bytes, size_t count)
{
	if (client->descriptor >= 0 && send(client->descriptor, bytes, count, MSG_NOSIGNAL) != (ssize_t) count)
		door_disconnect(client);
}

size_t
door_frame(DoorClient *client, uint8_t *place, uint16_t method, const void *payload, size_t bytes)
{
	FrameHead frame = {(uint32_t) bytes, method, FRAME_VERSION, ++client->request};
	uint8_t *data = frame_begin(&frame, place);

	if (bytes > 0)
		memcpy(data, payload, bytes);
	return frame_wire_bytes((uint32_t) bytes);
}

uint64_t
door_send(DoorClient *client, uint16_t method, const void *payload, size_t bytes)
{
	static uint8_t place[FRAME_HEAD_BYTES + CHAIN_MAX_BYTES + FRAME_ALIGNMENT];

	door_send_bytes(client, place, door_frame(client, place, method, payload, bytes));
	return client->request;
}

bool
door_take(DoorClient *client, uint64_t *request, FabricStatus *status, uint8_t *data, uint32_t *bytes)
{
	FrameHead frame;
	uint32_t flags, whole;
	ssize_t count = 0;

	if (client->descriptor >= 0)
		count = recv(client->descriptor, client->input + client->received,
		             sizeof(client->input) - client->received, 0);
	if (count > 0)
		client->received += (size_t) count;
	else if (count == 0 || (errno != EAGAIN && errno != EINTR))
		door_disconnect(client);
	if (client->received < FRAME_HEAD_BYTES)
		return false;
	REQUIRE(frame_decode(client->input, &frame), "the memory node's reply is none");
	whole = frame_wire_bytes(frame.length);
	if (client->received < whole)
		return false;
	REQUIRE(frame.length >= FRAME_STATUS_BYTES, "a reply of %u bytes", frame.length);
	*request = frame.request;
	*status = frame_status(client->input + FRAME_HEAD_BYTES, &flags);
	*bytes = frame.length - FRAME_STATUS_BYTES;
	memcpy(data, client->input + FRAME_HEAD_BYTES + FRAME_STATUS_BYTES, *bytes);
	client->received -= whole;
	memmove(client->input, client->input + whole, client->received);
	return true;
}

FabricStatus
door_call(Door *door, DoorClient *client, uint32_t rounds, uint16_t method, const void *payload,
          size_t payload_bytes, void *reply, uint32_t *reply_bytes)
{
	static uint8_t data[CHAIN_MAX_BYTES + 64];
	uint64_t mine = door_send(client, method, payload, payload_bytes);
	uint64_t request;
	FabricStatus status;
	uint32_t bytes;

	for (uint32_t i = 0; i < rounds; i++)
	{
		door_step(door);
		while (door_take(client, &request, &status, data, &bytes))
		{
			if (request != mine)
				continue;
			if (reply != NULL)
				memcpy(reply, data, bytes);
			if (reply_bytes != NULL)
				*reply_bytes = bytes;
			return status;
		}
		if (client->descriptor < 0)
			return FABRIC_LOST;
	}
	return FABRIC_TIMED_OUT;
}

/* Rounds in which HELLO and ATTACH are answered: one for each. */
#define DOOR_ROUNDS 4u

FabricStatus
door_hello(Door *door, DoorClient *client, const FrameHello *hello, FabricCapabilities *capabilities,
           uint64_t *serial)
{
	uint8_t request[128];
	uint8_t reply[FRAME_MAX_BYTES];
	FramePayload payload = {.data = request, .bytes = sizeof(request)};
	FabricCapabilities granted;
	uint64_t number;
	uint32_t bytes = 0;
	FabricStatus status;

	frame_put_hello(&payload, hello);
	status = door_call(door, client, DOOR_ROUNDS, CONTROL_HELLO, request, payload.position, reply, &bytes);
	if (status != FABRIC_OK)
		return status;
	payload = (FramePayload){.data = reply, .bytes = bytes};
	frame_get_capabilities(&payload, capabilities != NULL ? capabilities : &granted,
	                       serial != NULL ? serial : &number);
	REQUIRE(!payload.failed, "the answer to HELLO is cut short");
	return FABRIC_OK;
}

FabricStatus
door_attach(Door *door, DoorClient *client, uint64_t nonce, uint32_t *incarnation)
{
	uint8_t request[12];
	uint8_t reply[FRAME_MAX_BYTES];
	FramePayload payload = {.data = request, .bytes = sizeof(request)};
	uint32_t bytes = 0;
	FabricStatus status;

	frame_put32(&payload, 0);
	frame_put64(&payload, nonce);
	status = door_call(door, client, DOOR_ROUNDS, CONTROL_ATTACH, request, payload.position, reply, &bytes);
	if (status != FABRIC_OK)
		return status;
	payload = (FramePayload){.data = reply, .bytes = bytes};
	(void) frame_get32(&payload);
	*incarnation = frame_get32(&payload);
	return FABRIC_OK;
}

void
door_end_quarantine(Door *door)
{
	ServiceTables *tables = &door->service->tables;

	while (tables->quarantined > 0)
		tables_quarantine_end(tables, UINT64_MAX, service_release_units, door->service);
}

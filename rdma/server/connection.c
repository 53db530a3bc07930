/*
 * connection.c
 *		The memory node's end of a connection: the client's identity, the replies, the end of it.
 *
 * A local client comes over a unix socket, is known by its user, and maps the memory segment itself, or sends its
 * chains if that is a device's (class NIC).  A network client comes over a Stream, is known by its tenant's key, and
 * sends its chains, or has a device of its own (verbs).  Nothing here waits (connection_loop.c).
 *
 * The end of a connection kills its channel, and the end of a channel (channel.c) is told to its connection, or ends it.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdma/stream/network.h"
#include "rdma/server/server_state.h"
#include "rdma/server/verbs_server.h"

/* Room for input at first: HELLO. It grows with the frames that come. */
#define INPUT_BYTES 512u

void
chains_forget(ServerConnection *connection)
{
	free(connection->chain);
	connection->chain = NULL;
}

void
connection_free(ServerConnection *connection)
{
	if (connection->stream != NULL)
		stream_close(connection->stream);
	else
		close(connection->descriptor);
	if (connection->process >= 0)
		close(connection->process);
	if (connection->passed >= 0)
		close(connection->passed);
	buffer_free(&connection->input);
	buffer_free(&connection->output);
	chains_forget(connection);
	free(connection);
}

bool
connection_watch(const FabricServer *server, ServerConnection *connection, uint32_t interest)
{
	struct epoll_event event = {.events = interest, .data.ptr = connection};

	if (interest == connection->interest)
		return true;
	if (epoll_ctl(server->events, connection->interest == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD,
	              connection->descriptor, &event) != 0)
		return false;
	connection->interest = interest;
	return true;
}

ServerConnection *
connection_make(FabricServer *server, int descriptor)
{
	ServerConnection *connection = calloc(1, sizeof(ServerConnection));

	if (connection == NULL || !buffer_reserve(&connection->input, INPUT_BYTES))
	{
		free(connection);
		close(descriptor);
		return NULL;
	}
	server->figures.connections_accepted++;
	connection->server = server;
	connection->descriptor = descriptor;
	connection->process = -1;
	connection->passed = -1;
	connection->channel = CONTROL_NO_CHANNEL;
	return connection;
}

static void
no_more_stranger(FabricServer *server, ServerConnection *connection)
{
	if (!connection->stranger)
		return;
	connection->stranger = false;
	TAILQ_REMOVE(&server->strangers, connection, list);
	server->stranger_count -= !connection->counted;
}

void
connection_count(FabricServer *server, ServerConnection *connection)
{
	if (connection->counted || connection->stream == NULL)
		return;
	connection->counted = true;
	server->stranger_count--;
	server->network_connections++;
	server->tenants[connection->tenant].connections++;
}

void
connection_introduced(FabricServer *server, ServerConnection *connection)
{
	connection->introduced = true;
	connection_count(server, connection);
	no_more_stranger(server, connection);
}

void
connection_not_due(FabricServer *server, ServerConnection *connection)
{
	if (!connection->is_due)
		return;
	connection->is_due = false;
	TAILQ_REMOVE(&server->due, connection, due);
}

void
connection_make_due(FabricServer *server, ServerConnection *connection)
{
	if (connection->is_due || connection->closing)
		return;
	connection->is_due = true;
	TAILQ_INSERT_TAIL(&server->due, connection, due);
}

void
connection_close(FabricServer *server, ServerConnection *connection)
{
	uint32_t channel = connection->channel;

	if (connection->closing)
		return;
	connection->closing = true;
	if (server->talker == connection)
		server->talker = NULL;
	no_more_stranger(server, connection);
	connection_not_due(server, connection);
	TAILQ_REMOVE(&server->connections, connection, all);
	TAILQ_INSERT_TAIL(&server->closed, connection, list);
	server->network_connections -= connection->counted;
	server->tenants[connection->tenant].connections -= connection->counted;
	server->attaching -= connection->attaching;
	epoll_ctl(server->events, EPOLL_CTL_DEL, connection->descriptor, NULL);
	if (connection->process >= 0)
		epoll_ctl(server->events, EPOLL_CTL_DEL, connection->process, NULL);
	/* The peer learns at once; the descriptor itself is closed at the end of the round. */
	shutdown(connection->descriptor, SHUT_RDWR);
	if (channel == CONTROL_NO_CHANNEL)
		return;
	channel_kill(server, channel);
	channel_settle(server, channel);
}

/* ---- output */

uint8_t *
connection_reply_place(FabricServer *server, ServerConnection *connection, uint32_t bytes)
{
	Buffer *output = &connection->output;

	if (!buffer_reserve(output, frame_wire_bytes(FRAME_STATUS_BYTES + bytes)))
	{
		server_log(server, FABRIC_LOG_WARNING, "no memory for a reply: disconnected");
		connection_close(server, connection);
		return NULL;
	}
	return output->data + output->end + FRAME_HEAD_BYTES + FRAME_STATUS_BYTES;
}

/* What a reply says beside its status. */
static uint32_t
reply_flags(const ServerConnection *connection, FabricStatus status)
{
	const FabricServer *server = connection->server;
	uint32_t flags = server->draining ? CONTROL_DRAINING : 0;

	if (status == FABRIC_DENIED && !verbs_server_serves(server, connection->tenant))
		flags |= CONTROL_NO_PART;
	if (connection->denied && connection->stream != NULL)
		flags |= CONTROL_NO_TENANT;
	if (status == FABRIC_NO_MEMORY && connection->readers_full)
		flags |= CONTROL_READERS_FULL;
	return flags;
}

void
connection_reply(FabricServer *server, ServerConnection *connection, const FrameHead *request,
                 FabricStatus status, uint32_t bytes)
{
	FrameHead reply = *request;
	Buffer *output = &connection->output;

	if (bytes == 0 && connection_reply_place(server, connection, 0) == NULL)
		return;
	reply.length = bytes;
	frame_begin_reply(&reply, status, reply_flags(connection, status), output->data + output->end);
	output->end += frame_wire_bytes(FRAME_STATUS_BYTES + bytes);
}

/* Sends bytes over a local socket, with the descriptor that is to be passed; as stream_write(). */
static StreamStatus
send_local(ServerConnection *connection, const uint8_t *bytes, size_t count, size_t *sent)
{
	union
	{
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} ancillary;
	struct iovec part = {(void *) (uintptr_t) bytes, count};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t done;

	*sent = 0;
	if (connection->passed >= 0)
	{
		memset(&ancillary, 0, sizeof(ancillary));
		message.msg_control = ancillary.bytes;
		message.msg_controllen = sizeof(ancillary.bytes);
		CMSG_FIRSTHDR(&message)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&message)->cmsg_type = SCM_RIGHTS;
		CMSG_FIRSTHDR(&message)->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &connection->passed, sizeof(int));
	}
	do
		done = sendmsg(connection->descriptor, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (done < 0 && errno == EINTR);
	if (done < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? STREAM_WANT_WRITE : STREAM_CLOSED;
	if (connection->passed >= 0)
		close(connection->passed);
	connection->passed = -1;
	*sent = (size_t) done;
	return STREAM_OK;
}

bool
connection_send(FabricServer *server, ServerConnection *connection)
{
	Buffer *output = &connection->output;

	while (buffer_used(output) > 0)
	{
		const uint8_t *bytes = output->data + output->begin;
		size_t sent;
		StreamStatus status = connection->stream != NULL
		                          ? stream_write(connection->stream, bytes, buffer_used(output), &sent)
		                          : send_local(connection, bytes, buffer_used(output), &sent);

		if (status == STREAM_WANT_WRITE || status == STREAM_WANT_READ)
			break;
		if (status != STREAM_OK)
		{
			connection_close(server, connection);
			return false;
		}
		output->begin += (uint32_t) sent;
	}
	return true;
}

void
connection_notify(FabricServer *server, ServerConnection *connection, FabricStatus status)
{
	FrameHead unasked = {.method = CONTROL_CHAIN, .version = FRAME_VERSION};

	if (connection->closing)
		return;
	connection_reply(server, connection, &unasked, status, 0);
	connection_make_due(server, connection);
}

/*
 * connection.c
 *		The memory node's end of a control connection: who it is, its requests and their replies.
 *
 * Nothing here waits: sockets are non-blocking, and a reply that is owed later (ATTACH, while older channels
 * are dying) is sent by connections_round().
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "process.h"
#include "server_state.h"

/* A process out of descriptors cannot accept: it tries again after this. */
#define ACCEPT_PAUSE_MS 100u

/* Connections taken in one round, so that nobody waits for a crowd at the door. */
#define ACCEPT_ROUND 64

static bool
peer_is_allowed(const FabricServer *server, uid_t user)
{
	return server->options.allow_other_users || user == 0 || user == geteuid();
}

static void
connection_free(ServerConnection *connection)
{
	close(connection->descriptor);
	if (connection->process >= 0)
		close(connection->process);
	if (connection->passed >= 0)
		close(connection->passed);
	free(connection);
}

/* Makes the connection for an accepted socket, or closes it. */
static void
connection_start(FabricServer *server, int descriptor)
{
	ServerConnection *connection = calloc(1, sizeof(ServerConnection));
	struct ucred peer = {0};
	socklen_t length = sizeof(peer);
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = connection};

	if (connection == NULL)
	{
		close(descriptor);
		return;
	}
	server->figures.connections_accepted++;
	connection->descriptor = descriptor;
	connection->process = -1;
	connection->passed = -1;
	connection->channel = CONTROL_NO_CHANNEL;
	if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 ||
	    epoll_ctl(server->events, EPOLL_CTL_ADD, descriptor, &event) != 0)
	{
		connection_free(connection);
		return;
	}
	connection->denied = !peer_is_allowed(server, peer.uid);
	connection->pid = (uint32_t) peer.pid;
	/*
	 * Should the number have a new owner already, then the socket shows its end, and nothing is granted on
	 * it.
	 */
	connection->process_start = process_start_time(connection->pid);
	connection->process = process_open(connection->pid, connection->process_start);
	if (connection->process >= 0)
	{
		/*
		 * A forked child may hold the socket longer than its owner lives: the process's own end counts too.
		 */
		event = (struct epoll_event){.events = EPOLLIN, .data.ptr = connection_process_tag(connection)};
		epoll_ctl(server->events, EPOLL_CTL_ADD, connection->process, &event);
	}
	connection->next = server->connections;
	server->connections = connection;
}

void
connection_accept(FabricServer *server)
{
	for (int i = 0; i < ACCEPT_ROUND; i++)
	{
		int descriptor = accept4(server->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (descriptor >= 0)
			connection_start(server, descriptor);
		else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
		{
			server_log(server, FABRIC_LOG_WARNING, "cannot accept a connection: %s", strerror(errno));
			epoll_ctl(server->events, EPOLL_CTL_DEL, server->listener, NULL);
			server->listener_paused = true;
			server->listener_resume = fabric_now() + (uint64_t) ACCEPT_PAUSE_MS * 1000000;
			return;
		}
		else if (errno != EINTR && errno != ECONNABORTED)
			return;
	}
}

void
connection_close(FabricServer *server, ServerConnection *connection)
{
	uint32_t channel = connection->channel;

	if (connection->closing)
		return;
	connection->closing = true;
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

/* Sends what is left of the output; asks for a wake-up when the socket takes no more. */
static void
connection_send(FabricServer *server, ServerConnection *connection)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = connection};

	while (connection->output_sent < connection->output_bytes)
	{
		union
		{
			struct cmsghdr align;
			char bytes[CMSG_SPACE(sizeof(int))];
		} ancillary;
		struct iovec part = {connection->output + connection->output_sent,
		                     connection->output_bytes - connection->output_sent};
		struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
		ssize_t done;

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
		done = sendmsg(connection->descriptor, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (done >= 0)
		{
			connection->output_sent += (uint32_t) done;
			if (connection->passed >= 0)
				close(connection->passed);
			connection->passed = -1;
		}
		else if (errno == EAGAIN || errno == EWOULDBLOCK)
		{
			/* No more requests of this client before it has taken its reply. */
			event.events = EPOLLOUT | EPOLLRDHUP;
			break;
		}
		else if (errno != EINTR)
		{
			connection_close(server, connection);
			return;
		}
	}
	if (connection->output_sent == connection->output_bytes)
		connection->output_bytes = connection->output_sent = 0;
	epoll_ctl(server->events, EPOLL_CTL_MOD, connection->descriptor, &event);
}

/* The place for a reply's data. */
static ControlPayload
reply_payload(ServerConnection *connection)
{
	return (ControlPayload){
		.data = connection->output + CONTROL_HEADER_BYTES + CONTROL_STATUS_BYTES,
		.bytes = FABRIC_MAX_CALL_BYTES,
	};
}

/* Sends the reply to the request being answered; its data is in the output already. */
static void
connection_reply(FabricServer *server, ServerConnection *connection, FabricStatus status, uint32_t bytes)
{
	ControlFrame frame = connection->request;
	ControlPayload head = {.data = connection->output + CONTROL_HEADER_BYTES, .bytes = CONTROL_STATUS_BYTES};

	frame.length = CONTROL_STATUS_BYTES + bytes;
	frame.version = CONTROL_VERSION;
	control_encode(&frame, connection->output);
	control_put32(&head, (uint32_t) status);
	control_put32(&head, 0);
	connection->output_bytes = CONTROL_HEADER_BYTES + frame.length;
	connection->output_sent = 0;
	connection_send(server, connection);
}

/* Replies with what the client has now: the memory node's properties and its channel, if any. */
static void
reply_capabilities(FabricServer *server, ServerConnection *connection)
{
	const MemoryHeader *header = server->memory.header;
	MemoryInstance *instance = instance_find(server, connection->cluster, false);
	ControlPayload payload = reply_payload(connection);
	FabricCapabilities capabilities = {
		.flags = FABRIC_CAP_LINE_ATOMIC | FABRIC_CAP_OPERATION_ATOMIC | FABRIC_CAP_ORDERED_CAS_READ,
		.max_chain = FABRIC_MAX_CHAIN,
		.max_outstanding = TRANSPORT_TICKETS,
		/* A dying client's stores end after any of them: one word. */
		.one_packet = sizeof(uint64_t),
		.lock_words = MEMORY_LOCK_WORDS,
		.channel = connection->channel,
		.region_bytes = {header->region_bytes, MEMORY_LOCK_WORDS * sizeof(uint64_t)},
		.node_uuid = {header->node_uuid[0], header->node_uuid[1]},
		.generation = header->generation,
		.instance = instance == NULL || instance->incarnation == 0 ? 0 : instance_number(server, instance),
		.incarnation = connection->incarnation,
	};
	uint64_t serial = 0;

	if (connection->channel != CONTROL_NO_CHANNEL)
	{
		capabilities.redo_offset = (uint64_t) connection->channel * FABRIC_REDO_BYTES;
		serial = server->memory.channels[connection->channel].state >> MEMORY_STATE_BITS;
	}
	control_put_capabilities(&payload, &capabilities, serial);
	connection_reply(server, connection, FABRIC_OK, payload.position);
}

/* May this connection have a data channel now? */
static FabricStatus
check_incarnation(FabricServer *server, const ServerConnection *connection)
{
	MemoryInstance *instance = instance_find(server, connection->cluster, false);

	if (server->draining)
		return FABRIC_DRAINING;
	if (instance == NULL || instance->incarnation == 0 || instance->incarnation != connection->incarnation)
		return FABRIC_FENCED;
	/* While the next incarnation waits for this one's death, nothing of it may start. */
	for (ServerConnection *other = server->connections; other != NULL; other = other->next)
	{
		if (other->attaching && !other->closing && memcmp(other->cluster, connection->cluster, 16) == 0)
			return FABRIC_FENCED;
	}
	return FABRIC_OK;
}

/*
 * Kills the channel that a reconnecting client names, if it is still there. FABRIC_TIMED_OUT: it would not
 * die.
 */
static FabricStatus
kill_old_channel(FabricServer *server, const ControlHello *hello)
{
	const MemoryHeader *header = server->memory.header;
	MemoryChannel *record;
	ServerConnection *old;

	if (hello->old_channel >= header->max_channels ||
	    memcmp(hello->old_node_uuid, header->node_uuid, 16) != 0)
		return FABRIC_OK;
	record = &server->memory.channels[hello->old_channel];
	if (record->state >> MEMORY_STATE_BITS != hello->old_serial)
		return FABRIC_OK;
	old = server->channels[hello->old_channel].connection;
	/* A channel is killed by its own instance only. */
	if (old != NULL && memcmp(old->cluster, hello->cluster, sizeof(old->cluster)) != 0)
		return FABRIC_DENIED;
	channel_kill(server, hello->old_channel);
	if (old != NULL)
		connection_close(server, old);
	return channel_settle(server, hello->old_channel) ? FABRIC_OK : FABRIC_TIMED_OUT;
}

/* A descriptor of the memory object that shares nothing with ours: the client's own, with its own lock. */
static int
open_for_client(const FabricServer *server)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", server->memory.descriptor);
	return open(path, O_RDWR | O_CLOEXEC);
}

static void
handle_hello(FabricServer *server, ServerConnection *connection, ControlPayload *request)
{
	ControlHello hello;
	FabricStatus status = FABRIC_OK;

	control_get_hello(request, &hello);
	if (request->failed || request->position != request->bytes || connection->introduced)
	{
		connection_reply(server, connection, FABRIC_PROTOCOL, 0);
		return;
	}
	memcpy(connection->cluster, hello.cluster, sizeof(connection->cluster));
	connection->incarnation = hello.incarnation;
	if (server->draining)
		status = FABRIC_DRAINING;
	if (status == FABRIC_OK && hello.old_channel != CONTROL_NO_CHANNEL)
		status = kill_old_channel(server, &hello);
	if (status == FABRIC_OK && hello.incarnation != 0)
	{
		status = check_incarnation(server, connection);
		if (status == FABRIC_OK)
		{
			connection->passed = open_for_client(server);
			status = connection->passed < 0 ? FABRIC_NO_MEMORY : FABRIC_OK;
		}
		if (status == FABRIC_OK)
			status = channel_grant(server, connection,
			                       instance_number(server, instance_find(server, hello.cluster, false)),
			                       hello.incarnation);
	}
	if (status != FABRIC_OK)
	{
		if (connection->passed >= 0)
			close(connection->passed);
		connection->passed = -1;
		server->figures.connections_refused++;
		connection_reply(server, connection, status, 0);
		return;
	}
	connection->introduced = true;
	reply_capabilities(server, connection);
}

static void
handle_reset(FabricServer *server, ServerConnection *connection)
{
	uint32_t old = connection->channel;
	FabricStatus status;

	if (connection->incarnation == 0)
	{
		connection_reply(server, connection, FABRIC_PROTOCOL, 0);
		return;
	}
	if (old != CONTROL_NO_CHANNEL)
	{
		/* The client is in this call, and so in no chain: the channel is quiet. */
		channel_kill(server, old);
		if (!channel_settle(server, old))
		{
			connection_reply(server, connection, FABRIC_TIMED_OUT, 0);
			return;
		}
	}
	status = check_incarnation(server, connection);
	if (status == FABRIC_OK)
		status = channel_grant(server, connection,
		                       instance_number(server, instance_find(server, connection->cluster, false)),
		                       connection->incarnation);
	if (status == FABRIC_OK)
		reply_capabilities(server, connection);
	else
		connection_reply(server, connection, status, 0);
}

static void
reply_attach(FabricServer *server, ServerConnection *connection, const MemoryInstance *instance)
{
	ControlPayload payload = reply_payload(connection);

	connection->attaching = false;
	control_put32(&payload, instance_number(server, instance));
	control_put32(&payload, instance->incarnation);
	connection_reply(server, connection, FABRIC_OK, payload.position);
}

/* Grants the next incarnation as soon as the last channel of the older ones is dead. */
static void
continue_attach(FabricServer *server, ServerConnection *connection)
{
	MemoryInstance *instance = instance_find(server, connection->cluster, false);

	if (instance_kill(server, instance_number(server, instance)))
	{
		uint32_t next = instance->incarnation >= 65535 ? 1 : instance->incarnation + 1;

		instance_advance(server, instance, next, connection->attach_nonce);
		reply_attach(server, connection, instance);
	}
	else if (fabric_now() > connection->attach_deadline)
	{
		server_log(server, FABRIC_LOG_ERROR,
		           "instance %u: an older channel cannot be proven dead, attach refused",
		           instance_number(server, instance));
		connection->attaching = false;
		connection_reply(server, connection, FABRIC_BUSY, 0);
	}
}

static void
handle_attach(FabricServer *server, ServerConnection *connection, ControlPayload *request)
{
	bool resume = control_get32(request) != 0;
	uint64_t nonce = control_get64(request);
	MemoryInstance *instance;
	FabricStatus status = FABRIC_OK;

	if (request->failed || request->position != request->bytes)
		status = FABRIC_PROTOCOL;
	else if (server->draining)
		status = FABRIC_DRAINING;
	for (ServerConnection *other = server->connections; other != NULL && status == FABRIC_OK;
	     other = other->next)
	{
		if (other->attaching && !other->closing && memcmp(other->cluster, connection->cluster, 16) == 0)
			status = FABRIC_BUSY;
	}
	instance = status == FABRIC_OK ? instance_find(server, connection->cluster, true) : NULL;
	if (status == FABRIC_OK && instance == NULL)
		status = FABRIC_NO_MEMORY;
	if (status != FABRIC_OK)
	{
		connection_reply(server, connection, status, 0);
		return;
	}
	if (resume && instance->incarnation != 0 && instance->launcher_nonce == nonce)
	{
		reply_attach(server, connection, instance);
		return;
	}
	connection->attaching = true;
	connection->attach_nonce = nonce;
	connection->attach_deadline = fabric_now() + (uint64_t) SERVER_REFUSE_AFTER_MS * 1000000;
	continue_attach(server, connection);
}

static void
handle_service_call(FabricServer *server, ServerConnection *connection, ControlPayload *request)
{
	MemoryInstance *instance = instance_find(server, connection->cluster, false);
	FabricPeer peer = {
		.cluster = {connection->cluster[0], connection->cluster[1]},
		.instance = instance == NULL || instance->incarnation == 0 ? 0 : instance_number(server, instance),
		.incarnation = connection->incarnation,
		.channel = connection->channel,
	};
	ControlPayload reply = reply_payload(connection);
	uint32_t bytes = FABRIC_MAX_CALL_BYTES;
	FabricStatus status = FABRIC_NOT_SUPPORTED;

	/* An older incarnation may change nothing at the memory node, by a call either. */
	if (connection->incarnation != 0 &&
	    (instance == NULL || instance->incarnation != connection->incarnation))
		status = FABRIC_FENCED;
	else if (server->service.call != NULL)
		status = server->service.call(server->service.argument, &peer, connection->request.method,
		                              request->data, request->bytes, reply.data, &bytes);
	if (status != FABRIC_OK || bytes > FABRIC_MAX_CALL_BYTES)
		bytes = 0;
	connection_reply(server, connection, status, bytes);
}

static void
handle_request(FabricServer *server, ServerConnection *connection, uint8_t *data, uint32_t bytes)
{
	ControlPayload request = {.data = data, .bytes = bytes};
	uint16_t method = connection->request.method;

	if (connection->denied)
	{
		server->figures.connections_refused++;
		connection_reply(server, connection, FABRIC_DENIED, 0);
	}
	else if (method == CONTROL_HELLO)
		handle_hello(server, connection, &request);
	else if (!connection->introduced)
		connection_reply(server, connection, FABRIC_PROTOCOL, 0);
	else if (method == CONTROL_ATTACH)
		handle_attach(server, connection, &request);
	else if (method == CONTROL_RESET)
		handle_reset(server, connection);
	else if (method >= CONTROL_FIRST_METHOD)
		connection_reply(server, connection, FABRIC_PROTOCOL, 0);
	else
		handle_service_call(server, connection, &request);
}

/* Answers the requests that are in the input, one at a time. */
static void
connection_work(FabricServer *server, ServerConnection *connection)
{
	while (!connection->closing && !connection->attaching && connection->output_bytes == 0 &&
	       connection->received >= CONTROL_HEADER_BYTES)
	{
		uint32_t whole;

		if (!control_decode(connection->input, &connection->request))
		{
			server_log(server, FABRIC_LOG_WARNING, "process %u speaks another protocol: disconnected",
			           connection->pid);
			server->figures.connections_refused++;
			connection_close(server, connection);
			return;
		}
		whole = CONTROL_HEADER_BYTES + connection->request.length;
		if (connection->received < whole)
			return;
		handle_request(server, connection, connection->input + CONTROL_HEADER_BYTES,
		               connection->request.length);
		connection->received -= whole;
		memmove(connection->input, connection->input + whole, connection->received);
	}
}

void
connection_ready(FabricServer *server, ServerConnection *connection, uint32_t events)
{
	ssize_t count;

	if (connection->closing)
		return;
	if (events & EPOLLOUT)
	{
		connection_send(server, connection);
		connection_work(server, connection);
	}
	/* While the buffer is full, a request is being answered: only the end of the peer is of interest. */
	if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP)) && !connection->closing)
	{
		if (connection->received < sizeof(connection->input))
		{
			count = recv(connection->descriptor, connection->input + connection->received,
			             sizeof(connection->input) - connection->received, MSG_DONTWAIT);
			if (count > 0)
				connection->received += (uint32_t) count;
			else if (count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
				connection_close(server, connection);
		}
		else if (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP))
			connection_close(server, connection);
		connection_work(server, connection);
	}
}

void
connections_round(FabricServer *server)
{
	for (ServerConnection *connection = server->connections; connection != NULL;
	     connection = connection->next)
	{
		if (connection->attaching && !connection->closing)
		{
			continue_attach(server, connection);
			connection_work(server, connection);
		}
	}
	for (ServerConnection **link = &server->connections; *link != NULL;)
	{
		ServerConnection *connection = *link;

		if (connection->closing)
		{
			*link = connection->next;
			connection_free(connection);
		}
		else
			link = &connection->next;
	}
}

/*
 * accept.c
 *		Accepts connections: their sockets, users and keys, and limits on their number. A network client is a stranger
 *		until it has sent HELLO, for which it has not much time; if there are too many strangers the oldest are closed
 *		for newer ones.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdma/stream/network.h"
#include "rdma/memory/process.h"
#include "rdma/server/server_state.h"

/* A process out of descriptors cannot accept: it tries again after this. */
#define ACCEPT_PAUSE_MS 100u

/* Connections accepted in one round, so that a crowd of new ones does not delay the others. */
#define ACCEPT_ROUND 64

/* The most bytes that are read of a stranger before it is closed: a HELLO. */
#define STRANGER_BYTES 512u

/* Steps of handshakes in one round, for the same reason: one costs as much as a hundred chains. */
#define ROUND_HANDSHAKES 4u

/* The groups of a process that are looked at beside its own. */
#define PEER_GROUPS 1024

static bool
is_among(uint32_t number, const uint32_t *numbers, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
	{
		if (numbers[i] == number)
			return true;
	}
	return false;
}

/* Is the process at the other end one that may map the memory?  As it was when it connected. */
static bool
peer_is_allowed(const FabricServer *server, int descriptor, const struct ucred *peer)
{
	const FabricUsers *users = &server->options.users;
	gid_t groups[PEER_GROUPS];
	socklen_t length = sizeof(groups);

	if (peer->uid == 0 || peer->uid == geteuid() || is_among(peer->uid, users->users, users->user_count) ||
	    is_among(peer->gid, users->groups, users->group_count))
		return true;
	if (users->group_count == 0 || getsockopt(descriptor, SOL_SOCKET, SO_PEERGROUPS, groups, &length) != 0)
		return false;
	for (size_t i = 0; i < length / sizeof(groups[0]); i++)
	{
		if (is_among(groups[i], users->groups, users->group_count))
			return true;
	}
	return false;
}

static void
start_local(FabricServer *server, int descriptor)
{
	ServerConnection *connection = connection_make(server, descriptor);
	struct ucred peer = {0};
	socklen_t length = sizeof(peer);

	if (connection == NULL)
		return;
	if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 ||
	    !connection_watch(server, connection, EPOLLIN | EPOLLRDHUP))
	{
		connection_free(connection);
		return;
	}
	connection->denied = !peer_is_allowed(server, descriptor, &peer);
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
		struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection_process_tag(connection)};

		epoll_ctl(server->events, EPOLL_CTL_ADD, connection->process, &event);
	}
	TAILQ_INSERT_TAIL(&server->connections, connection, all);
}

/* The key of an identity that a network client shows. */
static bool
find_key(void *argument, const char *identity, FabricKey *key, uint32_t *tenant)
{
	ServerConnection *connection = argument;
	const FabricKey *found = fabric_keys_find(connection->server->keys, identity);

	if (found == NULL)
		return false;
	*key = *found;
	snprintf(connection->identity, sizeof(connection->identity), "%s", identity);
	/* The tenant counts once its key is proven: naming an identity alone takes no tenant's place. */
	*tenant = 1;
	return true;
}

/* The tenant of a key that was proven. False: the key is none any more. */
static bool
find_tenant(FabricServer *server, ServerConnection *connection)
{
	const FabricKey *key = fabric_keys_find(server->keys, connection->identity);

	if (key == NULL)
		return false;
	connection->tenant = tenant_number(server, key->tenant);
	/* It is refused at its HELLO, and has no more time than any stranger. */
	connection->denied = connection->tenant == 0;
	return true;
}

/* Closes the oldest strangers that have not proven a key. False: there is none. */
static bool
send_away(FabricServer *server, int count)
{
	ServerConnection *oldest = TAILQ_FIRST(&server->strangers);
	bool sent = false;

	while (oldest != NULL && count > 0)
	{
		ServerConnection *next = TAILQ_NEXT(oldest, list);

		if (!oldest->counted)
		{
			server->figures.connections_refused++;
			connection_close(server, oldest);
			sent = true;
			count--;
		}
		oldest = next;
	}
	return sent;
}

static void
start_network(FabricServer *server, int descriptor)
{
	ServerConnection *connection;

	if (server->stranger_count >= SERVER_MAX_STRANGERS)
		send_away(server, 1);
	connection = connection_make(server, descriptor);
	if (connection == NULL)
		return;
	network_tune(descriptor);
	connection->stream = server->keys == NULL ? stream_plain(descriptor)
	                                          : stream_server(descriptor, server->tls, find_key, connection);
	if (connection->stream == NULL)
	{
		/* The socket went with the stream. */
		connection->descriptor = -1;
		connection_free(connection);
		return;
	}
	if (!connection_watch(server, connection, EPOLLIN | EPOLLRDHUP))
	{
		connection_free(connection);
		return;
	}
	connection->handshake = server->keys != NULL;
	connection->stranger = true;
	connection->stranger_deadline = fabric_now() + (uint64_t) SERVER_STRANGER_MS * 1000000;
	TAILQ_INSERT_TAIL(&server->connections, connection, all);
	TAILQ_INSERT_TAIL(&server->strangers, connection, list);
	server->stranger_count++;
}

void
connection_accept(FabricServer *server, int listener)
{
	for (int i = 0; i < ACCEPT_ROUND; i++)
	{
		int descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (descriptor >= 0 && listener == server->listener)
			start_local(server, descriptor);
		else if (descriptor >= 0)
			start_network(server, descriptor);
		else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
		{
			server_complain(server, COMPLAINT_ACCEPT, "cannot accept a connection: %s", strerror(errno));
			/* Their descriptors are free in the next round. */
			if (!send_away(server, ACCEPT_ROUND))
				listen_pause(server, ACCEPT_PAUSE_MS);
			return;
		}
		else if (errno != EINTR && errno != ECONNABORTED)
			return;
	}
}

/* Answers a client that has sent HELLO without a key that it needs one; other clients get no answer. */
static void
ask_for_key(const ServerConnection *connection)
{
	uint8_t bytes[STRANGER_BYTES];
	uint8_t reply[FRAME_HEAD_BYTES + FRAME_STATUS_BYTES];
	ssize_t count = recv(connection->descriptor, bytes, sizeof(bytes), MSG_DONTWAIT);
	FrameHead frame;

	if (count < (ssize_t) FRAME_HEAD_BYTES || !frame_decode(bytes, &frame) || frame.method != CONTROL_HELLO)
		return;
	frame.length = 0;
	frame_begin_reply(&frame, FABRIC_DENIED, CONTROL_KEY_WANTED, reply);
	(void) send(connection->descriptor, reply, sizeof(reply), MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool
accept_handshake(FabricServer *server, ServerConnection *connection)
{
	StreamStatus status;

	/* The others wait for the next round: their sockets stay ready. */
	if (server->handshakes++ >= ROUND_HANDSHAKES)
		return false;
	status = stream_handshake(connection->stream);
	if (status == STREAM_WANT_READ || status == STREAM_WANT_WRITE)
	{
		if (!connection_watch(server, connection,
		                      EPOLLRDHUP | (status == STREAM_WANT_READ ? EPOLLIN : EPOLLOUT)))
			connection_close(server, connection);
		return false;
	}
	if (status != STREAM_OK)
	{
		if (status == STREAM_REFUSED)
		{
			server->figures.authentication_failures++;
			server_complain(server, COMPLAINT_REFUSED, "a client was refused: %s",
			                stream_detail(connection->stream));
			ask_for_key(connection);
		}
		connection_close(server, connection);
		return false;
	}
	connection->handshake = false;
	if (!find_tenant(server, connection))
	{
		connection_close(server, connection);
		return false;
	}
	if (connection->denied)
		return true;
	if (!tenant_may_have_connection(server, connection->tenant))
	{
		server->figures.connections_refused++;
		server_complain(server, COMPLAINT_REFUSED, "tenant \"%s\" has all the connections that it can have",
		                fabric_server_tenant(server, connection->tenant));
		connection_close(server, connection);
		return false;
	}
	/* Among its tenant's connections from now on, and no more among the strangers'. */
	connection_count(server, connection);
	return true;
}

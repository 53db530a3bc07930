/*
 * connection_loop.c
 *		Connections are served: bytes come in, requests are answered one after the other, replies go out, each round.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "rdma/stream/network.h"
#include "rdma/server/server_state.h"
#include "rdma/server/verbs_server.h"

/* Room for a batch of chains, of a client that has a channel. */
#define CHAIN_INPUT_BYTES (32u << 10)
/* An empty buffer is kept up to this. */
#define SET_ASIDE_BYTES (128u << 10)
/* Reads of one connection in a round: then it is the others' turn. */
#define ROUND_TURNS 8
/* How long a parked chain is tried again without sleep; a preempted writer runs again within a time slice. */
#define PARKED_YIELD_NANOSECONDS 200000u
#define PARKED_SLEEP_MS 1

/* ---- input */

/* Does a chain of the connection wait for a stripe, or does a call go on? */
static inline bool
parked(const ServerConnection *connection)
{
	return connection->calling || (connection->chain != NULL && connection->chain->parked != 0);
}

/* Does the connection take another request now? */
static bool
takes_requests(const ServerConnection *connection)
{
	return !connection->closing && !connection->attaching && !parked(connection) &&
	       buffer_used(&connection->output) < SERVER_OUTPUT_BYTES;
}

/*
 * Closes a connection whose bytes are no frame. If it has not sent HELLO yet, the reason is sent where the client can
 * understand it: it uses a key and there are none here, or it speaks another version.
 */
static void
refuse_protocol(FabricServer *server, ServerConnection *connection)
{
	const Buffer *input = &connection->input;
	const FrameHead *frame = &connection->request;

	if (!connection->introduced && connection->stream != NULL && server->keys == NULL &&
	    stream_is_hello(input->data + input->begin, buffer_used(input)))
	{
		server_complain(server, COMPLAINT_PROTOCOL, "a client shows a key, and there are no keys here");
		stream_refuse_hello(connection->stream);
	}
	else if (!connection->introduced && frame->method == CONTROL_HELLO && frame->version != FRAME_VERSION)
	{
		server_complain(server, COMPLAINT_PROTOCOL,
		                "a client speaks version %u of the protocol, and this is version %u", frame->version,
		                FRAME_VERSION);
		connection_reply(server, connection, frame, FABRIC_PROTOCOL, 0);
		if (!connection_send(server, connection))
			return;
	}
	else
		server_complain(server, COMPLAINT_PROTOCOL, "a client speaks another protocol: disconnected");
	server->figures.connections_refused++;
	connection_close(server, connection);
}

/*
 * The frame at the beginning of the input: its length on the wire, 0: not yet whole, and there is room for
 * the rest of it. UINT32_MAX: the connection is closed.
 */
static uint32_t
next_frame(FabricServer *server, ServerConnection *connection)
{
	Buffer *input = &connection->input;
	uint32_t whole;

	if (buffer_used(input) < FRAME_HEAD_BYTES)
		return 0;
	/* A client without a channel sends no chains: its buffer stays short. */
	if (!frame_decode(input->data + input->begin, &connection->request) ||
	    (connection->request.method == CONTROL_CHAIN && connection->chain == NULL))
	{
		refuse_protocol(server, connection);
		return UINT32_MAX;
	}
	whole = frame_wire_bytes(connection->request.length);
	if (buffer_used(input) >= whole)
		return whole;
	if (!buffer_reserve(input, whole - buffer_used(input)))
	{
		server_log(server, FABRIC_LOG_WARNING, "no memory for a request: disconnected");
		connection_close(server, connection);
		return UINT32_MAX;
	}
	return 0;
}

/*
 * Answers the requests that are in the input, one after the other.  True: there is more, and it is the others' turn: of requests that
 * are not chains a connection has one in a round, for a call may take as long as a hundred chains.
 */
static bool
handle_input(FabricServer *server, ServerConnection *connection)
{
	Buffer *input = &connection->input;

	while (takes_requests(connection))
	{
		uint32_t whole = next_frame(server, connection);
		uint8_t *payload;

		if (whole == 0 || whole == UINT32_MAX)
			return false;
		if (connection->request.method != CONTROL_CHAIN && connection->asked == server->round)
			return true;
		payload = input->data + input->begin + FRAME_HEAD_BYTES;
		/* The bytes stay where they are while a parked chain or a call needs them: nothing more is read meanwhile. */
		input->begin += whole;
		if (connection->request.method == CONTROL_CHAIN)
			chains_handle(server, connection, payload, connection->request.length);
		else
		{
			connection->asked = server->round;
			request_handle(server, connection, payload, connection->request.length);
		}
	}
	return false;
}

/* Reads once. False: there is no more for now, or the connection is closed. */
static bool
read_input(FabricServer *server, ServerConnection *connection)
{
	Buffer *input = &connection->input;
	StreamStatus status = STREAM_OK;
	size_t done = 0;
	uint32_t room;

	/* A small rest is moved to the front; the next frame has room in any case. */
	if (!buffer_reserve(input, connection->chain != NULL ? CHAIN_INPUT_BYTES / 2 : BUFFER_ALIGNMENT))
		return false;
	room = buffer_room(input);
	if (connection->stream != NULL)
		status = stream_read(connection->stream, input->data + input->end, room, &done);
	else
	{
		ssize_t count = recv(connection->descriptor, input->data + input->end, room, MSG_DONTWAIT);

		if (count > 0)
			done = (size_t) count;
		else if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
			status = STREAM_WANT_READ;
		else
			status = STREAM_CLOSED;
	}
	input->end += (uint32_t) done;
	if (status == STREAM_WANT_READ || status == STREAM_WANT_WRITE)
		return false;
	if (status != STREAM_OK)
	{
		connection_close(server, connection);
		return false;
	}
	return done == room || (connection->stream != NULL && stream_pending(connection->stream));
}

/* What the connection waits for now. */
static void
watch_again(FabricServer *server, ServerConnection *connection)
{
	uint32_t interest = EPOLLRDHUP;

	if (connection->closing)
		return;
	if (buffer_used(&connection->output) > 0)
		interest |= EPOLLOUT;
	if (takes_requests(connection))
		interest |= EPOLLIN;
	if (!connection_watch(server, connection, interest))
		connection_close(server, connection);
}

/*
 * Does all that can be done for the connection now; `readable`: its socket may have something.  What is
 * left to do without the socket's becoming ready is done in the next round.
 */
static void
connection_pump(FabricServer *server, ServerConnection *connection, bool readable)
{
	bool more = readable || (connection->stream != NULL && stream_pending(connection->stream));
	bool unfinished = false;

	for (int turns = 0; !connection->closing; turns++)
	{
		unfinished = handle_input(server, connection);
		if (connection->closing || !connection_send(server, connection))
			return;
		unfinished |= takes_requests(connection) && turns == ROUND_TURNS;
		if (!takes_requests(connection) || unfinished)
			break;
		if (more)
			more = read_input(server, connection);
		/* Else unsent replies may have been in the way of a request that has come already. */
		else if (next_frame(server, connection) == 0)
			break;
	}
	if (connection->closing)
		return;
	/*
	 * Long frames do not keep their room for ever; those of a parked chain are in both buffers, behind the
	 * end, and that of a call that goes on in the one for input.
	 */
	if (!parked(connection))
	{
		buffer_trim(&connection->input, SET_ASIDE_BYTES);
		buffer_trim(&connection->output, SET_ASIDE_BYTES);
	}
	if (unfinished)
		connection_make_due(server, connection);
	else if (!parked(connection))
		connection_not_due(server, connection);
	watch_again(server, connection);
}

void
connection_ready(FabricServer *server, ServerConnection *connection, uint32_t events)
{
	bool readable = (events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0;

	if (connection->closing)
		return;
	if (connection->handshake && !accept_handshake(server, connection))
		return;
	/* While a request is being answered, only the end of the peer is of interest. */
	if ((events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0 && !takes_requests(connection))
	{
		connection_close(server, connection);
		return;
	}
	connection_pump(server, connection, readable);
}

bool
connection_look(FabricServer *server, ServerConnection *connection)
{
	uint64_t before = server->figures.chains;

	if (connection->closing || connection->handshake || !takes_requests(connection))
		return false;
	server->round++;
	connection_pump(server, connection, true);
	return server->figures.chains != before;
}

/* ---- rounds */

int
connections_patience(const FabricServer *server, int milliseconds)
{
	ServerConnection *connection;
	uint64_t now;

	if (!TAILQ_EMPTY(&server->strangers) && milliseconds > SERVER_ROUND_MS)
		milliseconds = SERVER_ROUND_MS;
	if (TAILQ_EMPTY(&server->due))
		return milliseconds;
	now = fabric_now();
	TAILQ_FOREACH(connection, &server->due, due)
	{
		const ServerChain *chain = connection->chain;

		if (connection->calling && connection->waits)
			continue;
		if (chain == NULL || chain->parked == 0 || now - chain->parked < PARKED_YIELD_NANOSECONDS)
			return 0;
	}
	return milliseconds < PARKED_SLEEP_MS ? milliseconds : PARKED_SLEEP_MS;
}

void
connections_round(FabricServer *server)
{
	ServerConnection *connection;
	ServerConnection *next;

	for (connection = TAILQ_FIRST(&server->due); connection != NULL; connection = next)
	{
		next = TAILQ_NEXT(connection, due);
		if (!connection->closing && !chains_continue(server, connection) &&
		    !request_continue(server, connection))
			connection_pump(server, connection, false);
	}
	for (connection = TAILQ_FIRST(&server->connections); connection != NULL && server->attaching > 0;
	     connection = next)
	{
		next = TAILQ_NEXT(connection, all);
		if (!connection->attaching || connection->closing)
			continue;
		request_continue_attach(server, connection);
		if (!connection->attaching)
			connection_pump(server, connection, true);
	}
	while ((connection = TAILQ_FIRST(&server->strangers)) != NULL &&
	       fabric_now() > connection->stranger_deadline)
		connection_close(server, connection);
	while ((connection = TAILQ_FIRST(&server->closed)) != NULL)
	{
		TAILQ_REMOVE(&server->closed, connection, list);
		connection_free(connection);
	}
}

/*
 * peers.c
 *		Redis and memcached under the load that bench/fabric puts on a memory node: what one would reach for as remote
 *		memory.
 *
 * Usage: peers --peer redis|memcached --port N [--server-pid N] [--clients N] [--outstanding N] [--seconds N]
 * GET of values of 64 bytes and of 1 KB, SET of 16 bytes, keys from as many nodes of 1 KB as bench/fabric uses.  The lines are
 * those of load.h.  A client sends its outstanding requests by one write and then takes the replies, as pipelining
 * clients of both do.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "load.h"

#define KEYS 1024u
#define LARGEST_VALUE 1024u
/* Room for the largest request or reply with its frame. */
#define MESSAGE_BYTES (LARGEST_VALUE + 128u)

typedef enum Protocol
{
	PROTOCOL_REDIS,
	PROTOCOL_MEMCACHED
} Protocol;

typedef struct Operation
{
	const char *name;
	bool get;
	uint32_t bytes; /* of the value */
} Operation;

static const Operation operations[] = {{"get64", true, 64}, {"get1k", true, 1024}, {"set16", false, 16}};

typedef struct Peer
{
	Protocol protocol;
	uint16_t port;
	const Operation *operation;
} Peer;

/* One client's connection. */
typedef struct Connection
{
	int descriptor;
	uint32_t received; /* bytes in input */
	uint32_t taken;    /* of them, by replies that were counted */
	char input[LOAD_MAX_OUTSTANDING * MESSAGE_BYTES];
	char output[LOAD_MAX_OUTSTANDING * MESSAGE_BYTES];
} Connection;

/* ---- the two protocols ---- */

/* Writes a request at `output`; returns its length.  Keys of one size do not stand in the way of those of another. */
static uint32_t
put_request(const Peer *peer, bool get, uint32_t bytes, uint32_t key, char *output)
{
	static char value[LARGEST_VALUE + 1];
	int length;

	memset(value, 'v', LARGEST_VALUE);
	if (peer->protocol == PROTOCOL_REDIS && get)
		length = sprintf(output, "*2\r\n$3\r\nGET\r\n$9\r\n%04u:%04u\r\n", bytes, key);
	else if (peer->protocol == PROTOCOL_REDIS)
		length = sprintf(output, "*3\r\n$3\r\nSET\r\n$9\r\n%04u:%04u\r\n$%u\r\n%.*s\r\n", bytes, key, bytes,
		                 (int) bytes, value);
	else if (get)
		length = sprintf(output, "get %04u:%04u\r\n", bytes, key);
	else
		length = sprintf(output, "set %04u:%04u 0 0 %u\r\n%.*s\r\n", bytes, key, bytes, (int) bytes, value);
	return (uint32_t) length;
}

/* Length of the reply to a request that succeeded: both servers' replies have one length for each operation. */
static uint32_t
reply_bytes(const Peer *peer, bool get, uint32_t bytes)
{
	char text[MESSAGE_BYTES];

	if (peer->protocol == PROTOCOL_REDIS)
		return get ? (uint32_t) sprintf(text, "$%u\r\n", bytes) + bytes + 2 : (uint32_t) strlen("+OK\r\n");
	if (get)
		return (uint32_t) sprintf(text, "VALUE %04u:%04u 0 %u\r\n", bytes, 0u, bytes) + bytes +
		       (uint32_t) strlen("\r\nEND\r\n");
	return (uint32_t) strlen("STORED\r\n");
}

/* Is this the first byte of such a reply? */
static bool
reply_is_good(const Peer *peer, bool get, const char *reply)
{
	if (peer->protocol == PROTOCOL_REDIS)
		return get ? reply[0] == '$' && reply[1] != '-' : reply[0] == '+';
	return get ? reply[0] == 'V' : reply[0] == 'S' && reply[1] == 'T';
}

/* ---- a client ---- */

static bool
connect_to(Connection *connection, uint16_t port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int on = 1;

	memset(connection, 0, sizeof(*connection));
	connection->descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return connection->descriptor >= 0 &&
	       connect(connection->descriptor, (struct sockaddr *) &address, sizeof(address)) == 0 &&
	       setsockopt(connection->descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0;
}

static bool
send_all(Connection *connection, uint32_t bytes)
{
	for (uint32_t sent = 0; sent < bytes;)
	{
		ssize_t done = send(connection->descriptor, connection->output + sent, bytes - sent, MSG_NOSIGNAL);

		if (done <= 0)
			return false;
		sent += (uint32_t) done;
	}
	return true;
}

/* Waits for one more whole reply. */
static bool
take_reply(Connection *connection, const Peer *peer, bool get, uint32_t bytes)
{
	uint32_t length = reply_bytes(peer, get, bytes);

	while (connection->received - connection->taken < length)
	{
		ssize_t done;

		if (connection->taken > 0)
		{
			connection->received -= connection->taken;
			memmove(connection->input, connection->input + connection->taken, connection->received);
			connection->taken = 0;
		}
		done = recv(connection->descriptor, connection->input + connection->received,
		            sizeof(connection->input) - connection->received, 0);
		if (done <= 0)
			return false;
		connection->received += (uint32_t) done;
	}
	if (!reply_is_good(peer, get, connection->input + connection->taken))
		return false;
	connection->taken += length;
	return true;
}

/* `count` requests in one write, then their replies. */
static bool
exchange(const Load *load, uint32_t client, Connection *connection, uint32_t count, uint64_t *random)
{
	const Peer *peer = load->argument;
	const Operation *operation = peer->operation;
	uint32_t bytes = 0;
	uint64_t began = load_now();

	for (uint32_t i = 0; i < count; i++)
	{
		*random = *random * 6364136223846793005ull + 1442695040888963407ull;
		bytes += put_request(peer, operation->get, operation->bytes, (uint32_t) (*random >> 33) % KEYS,
		                     connection->output + bytes);
	}
	if (!send_all(connection, bytes))
		return false;
	for (uint32_t i = 0; i < count; i++)
	{
		if (!take_reply(connection, peer, operation->get, operation->bytes))
			return false;
		load_time(load, client, load_now() - began);
	}
	load_count(load, client, count);
	return true;
}

static int
run_client(const Load *load, uint32_t client)
{
	static Connection connection;
	const Peer *peer = load->argument;
	uint64_t random = client + 1;
	bool good = connect_to(&connection, peer->port);

	load_begin(load);
	while (good && !load_is_over(load))
		good = exchange(load, client, &connection, load->outstanding, &random);
	close(connection.descriptor);
	return good ? 0 : 1;
}

/* Stores the values that are got later. */
static bool
fill(const Peer *peer)
{
	static Connection connection;
	bool good = connect_to(&connection, peer->port);

	for (uint32_t key = 0; good && key < KEYS; key++)
	{
		uint32_t bytes = peer->operation->bytes;

		good = send_all(&connection, put_request(peer, false, bytes, key, connection.output)) &&
		       take_reply(&connection, peer, false, bytes);
	}
	close(connection.descriptor);
	return good;
}

static bool
parse_arguments(Load *load, Peer *peer, int count, char **arguments)
{
	for (int i = 1; i < count; i += 2)
	{
		const char *name = arguments[i];
		const char *value = i + 1 < count ? arguments[i + 1] : NULL;

		if (value == NULL)
			return false;
		if (strcmp(name, "--peer") == 0)
			load->peer = value;
		else if (strcmp(name, "--port") == 0)
			peer->port = (uint16_t) atoi(value);
		else if (strcmp(name, "--server-pid") == 0)
			load->server = atoi(value);
		else if (!load_option(load, name, value))
			return false;
	}
	peer->protocol = strcmp(load->peer, "redis") == 0 ? PROTOCOL_REDIS : PROTOCOL_MEMCACHED;
	return peer->port != 0 && load_options_valid(load);
}

int
main(int count, char **arguments)
{
	Peer peer = {0};
	Load load = {
		.peer = "redis", .clients = 1, .outstanding = 1, .seconds = 2, .run = run_client, .argument = &peer};
	bool good = true;

	if (!parse_arguments(&load, &peer, count, arguments) || !load_open(&load))
	{
		fprintf(stderr, "usage: peers --peer redis|memcached --port N [--server-pid N] [--clients N]\n"
		                "             [--outstanding N] [--seconds N]\n");
		return 2;
	}
	for (size_t i = 0; good && i < sizeof(operations) / sizeof(operations[0]); i++)
	{
		peer.operation = &operations[i];
		load.operation = operations[i].name;
		good = fill(&peer) && load_execute(&load);
	}
	if (!good)
		fprintf(stderr, "%s at port %u: no connection, or a reply that is none\n", load.peer, peer.port);
	return good ? 0 : 1;
}

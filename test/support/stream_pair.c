/*
 * stream_pair.c
 *		See stream_pair.h.
 */
#define _GNU_SOURCE 1
#include "stream_pair.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/err.h>

/* Turns of both ends that no handshake needs. */
#define MANY_TURNS 100

void
pair_key(FabricKey *key, const char *tenant, unsigned number)
{
	char path[] = "/tmp/sherman-key-XXXXXX";
	char detail[FABRIC_DETAIL_BYTES];
	FabricKeys keys;
	int file = mkstemp(path);

	assert_true(file >= 0);
	dprintf(file, "%s ", tenant);
	for (unsigned i = 1; i <= FABRIC_KEY_BYTES / sizeof(unsigned); i++)
		dprintf(file, "%08x", (number + 1) * i * 0x9e3779b9u);
	close(file);
	assert_int_equal(fabric_keys_read(path, &keys, detail), FABRIC_OK);
	unlink(path);
	*key = keys.keys[0];
	fabric_keys_forget(&keys);
}

bool
pair_find(void *argument, const char *identity, FabricKey *key, uint32_t *tenant)
{
	PairKeys *keys = argument;

	keys->asked++;
	for (uint32_t i = 0; i < keys->count; i++)
	{
		if (strcmp(keys->keys[i].identity, identity) == 0)
		{
			*key = keys->keys[i];
			*tenant = i + 1;
			return true;
		}
	}
	return false;
}

void
pair_sockets(int sockets[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets), 0);
}

/* The descriptors for both ends, and those of the wire. */
static void
make_wire(StreamPair *pair, bool wire, int ends[2])
{
	int sockets[2];

	pair->to_client = pair->to_server = -1;
	pair_sockets(ends);
	if (!wire)
		return;
	pair_sockets(sockets);
	pair->to_client = ends[1];
	pair->to_server = sockets[1];
	ends[1] = sockets[0];
}

void
pair_open_keys(StreamPair *pair, bool wire, const FabricKey *client, const PairKeys *server)
{
	int ends[2];

	memset(pair, 0, sizeof(*pair));
	make_wire(pair, wire, ends);
	pair->keys = *server;
	pair->client_status = pair->server_status = STREAM_WANT_READ;
	pair->context = stream_context_open();
	assert_non_null(pair->context);
	pair->client = stream_client(ends[0], pair->context, client);
	pair->server = stream_server(ends[1], pair->context, pair_find, &pair->keys);
	assert_non_null(pair->client);
	assert_non_null(pair->server);
}

void
pair_open(StreamPair *pair, bool wire)
{
	PairKeys keys = {.count = 2};

	pair_key(&keys.keys[0], "alpha", 1);
	pair_key(&keys.keys[1], "beta", 2);
	pair_open_keys(pair, wire, &keys.keys[0], &keys);
}

void
pair_open_plain(StreamPair *pair)
{
	int ends[2];

	memset(pair, 0, sizeof(*pair));
	make_wire(pair, false, ends);
	pair->client = stream_plain(ends[0]);
	pair->server = stream_plain(ends[1]);
	assert_non_null(pair->client);
	assert_non_null(pair->server);
}

void
pair_close(StreamPair *pair)
{
	stream_close(pair->client);
	stream_close(pair->server);
	stream_context_close(pair->context);
	if (pair->to_client >= 0)
		close(pair->to_client);
	if (pair->to_server >= 0)
		close(pair->to_server);
	memset(pair, 0, sizeof(*pair));
	pair->to_client = pair->to_server = -1;
}

bool
pair_is_settled(StreamStatus status)
{
	return status != STREAM_WANT_READ && status != STREAM_WANT_WRITE;
}

size_t
pair_take(int descriptor, uint8_t *bytes, size_t room)
{
	size_t count = 0;
	ssize_t done = 1;

	while (done > 0 && count < room)
	{
		done = recv(descriptor, bytes + count, room - count, MSG_DONTWAIT);
		if (done > 0)
			count += (size_t) done;
	}
	return count;
}

void
pair_put(int descriptor, const uint8_t *bytes, size_t count)
{
	ssize_t done = send(descriptor, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);

	/* The other end may have closed already. */
	assert_true(done == (ssize_t) count || (done < 0 && errno == EPIPE));
}

/* Passes on what both ends of a wire have said. */
static void
pass_on(const StreamPair *pair)
{
	uint8_t bytes[PAIR_WIRE_BYTES];
	size_t count;

	if (pair->to_client < 0)
		return;
	count = pair_take(pair->to_client, bytes, sizeof(bytes));
	if (count > 0)
		pair_put(pair->to_server, bytes, count);
	count = pair_take(pair->to_server, bytes, sizeof(bytes));
	if (count > 0)
		pair_put(pair->to_client, bytes, count);
}

void
pair_handshake(StreamPair *pair)
{
	for (int turn = 0; turn < MANY_TURNS; turn++)
	{
		pair->client_status = stream_handshake(pair->client);
		pass_on(pair);
		pair->server_status = stream_handshake(pair->server);
		pass_on(pair);
		if (pair_is_settled(pair->client_status) && pair_is_settled(pair->server_status))
			return;
	}
}

void
pair_send(Stream *stream, const void *bytes, size_t count)
{
	const uint8_t *next = bytes;

	while (count > 0)
	{
		size_t done;

		assert_int_equal(stream_write(stream, next, count, &done), STREAM_OK);
		assert_in_range(done, 1, count);
		next += done;
		count -= done;
	}
}

void
pair_receive(Stream *stream, void *bytes, size_t count)
{
	uint8_t *next = bytes;

	while (count > 0)
	{
		size_t done;

		assert_int_equal(stream_read(stream, next, count, &done), STREAM_OK);
		assert_in_range(done, 1, count);
		next += done;
		count -= done;
	}
}

int
pair_open_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(directory);
	while (readdir(directory) != NULL)
		count++;
	closedir(directory);
	return count;
}

static int descriptors;

int
pair_count_leavings(void **state)
{
	descriptors = pair_open_descriptors();
	return 0;
}

int
pair_check_leavings(void **state)
{
	assert_int_equal(pair_open_descriptors(), descriptors);
	assert_true(ERR_peek_error() == 0);
	return 0;
}

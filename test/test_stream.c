/*
 * test_stream.c
 *		Streams between ends that mean well: bytes both ways, keys in rotation, small buffers, an end at every point,
 *		and what is left in memory.  What an enemy does is in test_handshake.c.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>

#include "support/stream_pair.h"

/* Much more than the buffers of a socket and several times what one record of TLS holds. */
#define LARGE_BYTES (3u << 20)
/* The least that the kernel gives a socket. */
#define SMALL_BUFFER_BYTES 4608
/* Mappings beyond this are a sanitizer's. */
#define LARGEST_MAPPING (64ull << 20)

/* Bytes both ways. */
static void
converse(StreamPair *pair)
{
	char bytes[6];

	pair_send(pair->client, "query", 6);
	pair_receive(pair->server, bytes, 6);
	assert_string_equal(bytes, "query");
	pair_send(pair->server, "reply", 6);
	pair_receive(pair->client, bytes, 6);
	assert_string_equal(bytes, "reply");
}

static void
test_handshake(void **state)
{
	StreamPair pair;
	uint8_t byte;
	size_t done;

	pair_open(&pair, false);
	/* Nobody has said anything: nothing can be read or written, and nobody is authenticated. */
	assert_int_equal(stream_handshake(pair.server), STREAM_WANT_READ);
	assert_int_equal(stream_write(pair.server, "x", 1, &done), STREAM_REFUSED);
	assert_int_equal(stream_read(pair.client, &byte, 1, &done), STREAM_REFUSED);
	assert_int_equal(stream_tenant(pair.server), 0);
	assert_false(stream_pending(pair.server));
	pair_handshake(&pair);
	assert_int_equal(pair.client_status, STREAM_OK);
	assert_int_equal(pair.server_status, STREAM_OK);
	assert_int_equal(stream_tenant(pair.server), 1);
	assert_int_equal(stream_tenant(pair.client), 0);
	assert_int_equal(stream_handshake(pair.server), STREAM_OK);
	assert_int_equal(stream_read(pair.server, &byte, 1, &done), STREAM_WANT_READ);
	assert_int_equal(done, 0);
	converse(&pair);
	pair_close(&pair);
}

static void
test_plain(void **state)
{
	StreamPair pair;
	uint8_t byte;
	size_t done;

	pair_open_plain(&pair);
	assert_int_equal(stream_handshake(pair.client), STREAM_OK);
	assert_int_equal(stream_tenant(pair.server), 0);
	assert_int_equal(stream_read(pair.server, &byte, 1, &done), STREAM_WANT_READ);
	converse(&pair);
	pair_send(pair.client, "rest", 4);
	stream_close(pair.client);
	pair.client = NULL;
	assert_int_equal(stream_read(pair.server, &byte, 1, &done), STREAM_OK);
	assert_false(stream_pending(pair.server));
	assert_int_equal(stream_write(pair.server, "x", 1, &done), STREAM_CLOSED);
	assert_true(strlen(stream_detail(pair.server)) > 0);
	assert_int_equal(stream_read(pair.server, &byte, 1, &done), STREAM_CLOSED);
	pair_close(&pair);
}

/* A record is taken from the socket as a whole: what is left of it is not seen by poll(2). */
static void
test_pending(void **state)
{
	StreamPair pair;
	struct pollfd polled;
	char bytes[8];

	pair_open(&pair, false);
	pair_handshake(&pair);
	assert_int_equal(pair.server_status, STREAM_OK);
	pair_send(pair.client, "eight by", 8);
	pair_receive(pair.server, bytes, 3);
	polled = (struct pollfd){.fd = stream_descriptor(pair.server), .events = POLLIN};
	assert_int_equal(poll(&polled, 1, 0), 0);
	assert_true(stream_pending(pair.server));
	pair_receive(pair.server, bytes + 3, 5);
	assert_memory_equal(bytes, "eight by", 8);
	assert_false(stream_pending(pair.server));
	pair_close(&pair);
}

/* Part of a record is nothing to come back for before the rest is there. */
static void
test_part_of_record_is_not_pending(void **state)
{
	StreamPair pair;
	uint8_t bytes[PAIR_WIRE_BYTES];
	size_t count;
	size_t done;

	pair_open(&pair, true);
	pair_handshake(&pair);
	assert_int_equal(pair.server_status, STREAM_OK);
	pair_send(pair.client, "whole", 6);
	count = pair_take(pair.to_client, bytes, sizeof(bytes));
	for (size_t i = 0; i < count; i++)
	{
		char text[6];

		pair_put(pair.to_server, bytes + i, 1);
		if (i + 1 == count)
			pair_receive(pair.server, text, 6);
		else
			assert_int_equal(stream_read(pair.server, text, 6, &done), STREAM_WANT_READ);
		assert_false(stream_pending(pair.server));
	}
	pair_close(&pair);
}

static void
test_rotation(void **state)
{
	PairKeys keys = {.count = 3};

	pair_key(&keys.keys[0], "alpha", 10);
	pair_key(&keys.keys[1], "beta", 20);
	pair_key(&keys.keys[2], "alpha", 30);
	for (uint32_t i = 0; i < keys.count; i++)
	{
		StreamPair pair;

		pair_open_keys(&pair, false, &keys.keys[i], &keys);
		pair_handshake(&pair);
		assert_int_equal(pair.client_status, STREAM_OK);
		assert_int_equal(stream_tenant(pair.server), i + 1);
		assert_int_equal(pair.keys.asked, 1);
		converse(&pair);
		pair_close(&pair);
	}
}

/* The byte at a place of a long transfer. */
static uint8_t
large_byte(size_t place, uint8_t direction)
{
	return (uint8_t) (place * 31 + (place >> 12) + direction);
}

/* One step of a transfer in one direction; the bytes are made where they are sent, in another buffer each time. */
static void
transfer(Stream *from, Stream *to, size_t *sent, size_t *received, uint8_t direction)
{
	static uint8_t buffers[3][50000];
	static unsigned turn;
	uint8_t *buffer = buffers[turn++ % 3];
	size_t done;

	if (*sent < LARGE_BYTES)
	{
		size_t count = LARGE_BYTES - *sent < sizeof(buffers[0]) ? LARGE_BYTES - *sent : sizeof(buffers[0]);
		StreamStatus status;

		for (size_t i = 0; i < count; i++)
			buffer[i] = large_byte(*sent + i, direction);
		status = stream_write(from, buffer, count, &done);
		assert_true(status == STREAM_OK || status == STREAM_WANT_WRITE);
		*sent += done;
	}
	while (stream_read(to, buffer, sizeof(buffers[0]), &done) == STREAM_OK)
	{
		size_t same = 0;

		while (same < done && buffer[same] == large_byte(*received + same, direction))
			same++;
		assert_int_equal(same, done);
		*received += done;
	}
}

static void
transfer_both_ways(StreamPair *pair)
{
	size_t sent[2] = {0};
	size_t received[2] = {0};
	int small = SMALL_BUFFER_BYTES;

	for (int i = 0; i < 2; i++)
	{
		int descriptor = stream_descriptor(i == 0 ? pair->client : pair->server);

		assert_int_equal(setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
		assert_int_equal(setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	}
	while (received[0] < LARGE_BYTES || received[1] < LARGE_BYTES)
	{
		transfer(pair->client, pair->server, &sent[0], &received[0], 0);
		transfer(pair->server, pair->client, &sent[1], &received[1], 100);
	}
	assert_true(received[0] == LARGE_BYTES && received[1] == LARGE_BYTES);
}

static void
test_large_transfers(void **state)
{
	StreamPair pair;

	pair_open_plain(&pair);
	transfer_both_ways(&pair);
	pair_close(&pair);
	pair_open(&pair, false);
	pair_handshake(&pair);
	assert_int_equal(pair.server_status, STREAM_OK);
	transfer_both_ways(&pair);
	pair_close(&pair);
}

/* One step of a connection's life: handshake, then bytes both ways for ever. */
static StreamStatus
live_one_step(Stream *stream)
{
	uint8_t bytes[64] = {0};
	size_t done;
	StreamStatus status = stream_handshake(stream);

	if (status == STREAM_OK)
		status = stream_write(stream, bytes, sizeof(bytes), &done);
	if (status == STREAM_OK || status == STREAM_WANT_WRITE)
		status = stream_read(stream, bytes, sizeof(bytes), &done);
	return status;
}

/*
 * One end goes after so many steps: the other sees it at its next one or the one after, and no signal comes (nothing
 * here ignores SIGPIPE).
 */
static void
end_after(int steps, bool client_goes)
{
	StreamPair pair;
	Stream *left;
	StreamStatus status = STREAM_WANT_READ;

	pair_open(&pair, false);
	for (int i = 0; i < steps; i++)
		live_one_step(i % 2 == 0 ? pair.client : pair.server);
	stream_close(client_goes ? pair.client : pair.server);
	left = client_goes ? pair.server : pair.client;
	for (int i = 0; i < 4; i++)
		status = live_one_step(left);
	assert_int_equal(status, STREAM_CLOSED);
	assert_true(strlen(stream_detail(left)) > 0);
	if (client_goes)
		pair.client = NULL;
	else
		pair.server = NULL;
	pair_close(&pair);
}

static void
test_end_at_every_point(void **state)
{
	signal(SIGPIPE, SIG_DFL);
	for (int steps = 0; steps < 12; steps++)
	{
		end_after(steps, true);
		end_after(steps, false);
	}
}

/* Errors that others left in OpenSSL's queue are not taken for ours. */
static void
test_errors_of_others(void **state)
{
	StreamPair pair;
	uint8_t byte;
	size_t done;

	ERR_raise(ERR_LIB_USER, ERR_R_INTERNAL_ERROR);
	pair_open(&pair, false);
	ERR_raise(ERR_LIB_USER, ERR_R_INTERNAL_ERROR);
	assert_int_equal(stream_handshake(pair.client), STREAM_WANT_READ);
	pair_handshake(&pair);
	assert_int_equal(pair.server_status, STREAM_OK);
	ERR_raise(ERR_LIB_USER, ERR_R_INTERNAL_ERROR);
	assert_int_equal(stream_read(pair.server, &byte, 1, &done), STREAM_WANT_READ);
	ERR_raise(ERR_LIB_USER, ERR_R_INTERNAL_ERROR);
	converse(&pair);
	ERR_raise(ERR_LIB_USER, ERR_R_INTERNAL_ERROR);
	pair_close(&pair);
}

/* ---- The key in memory */

/* How often the bytes, given with all bits inverted, stand in [start, end) of this process. */
static int
occurrences_between(int memory, uint64_t start, uint64_t end, const uint8_t inverted[FABRIC_KEY_BYTES])
{
	static uint8_t window[(1u << 16) + FABRIC_KEY_BYTES];
	int found = 0;

	for (uint64_t place = start; place < end; place += 1u << 16)
	{
		size_t wanted = end - place < sizeof(window) ? end - place : sizeof(window);
		ssize_t count = pread(memory, window, wanted, (off_t) place);

		for (ssize_t i = 0; i + (ssize_t) FABRIC_KEY_BYTES <= count && i < 1 << 16; i++)
		{
			const uint8_t *first = memchr(window + i, inverted[0] ^ 0xff, (size_t) count - (size_t) i);
			uint32_t same = 0;

			if (first == NULL || first + FABRIC_KEY_BYTES > window + count)
				break;
			i = first - window;
			while (same < FABRIC_KEY_BYTES && (first[same] ^ inverted[same]) == 0xff)
				same++;
			/* The window itself is memory, too. */
			if (same == FABRIC_KEY_BYTES && (place + (uint64_t) i < (uintptr_t) window ||
			                                 place + (uint64_t) i >= (uintptr_t) window + sizeof(window)))
				found++;
		}
	}
	explicit_bzero(window, sizeof(window));
	return found;
}

/* How often the bytes stand in the writable memory of this process. */
static int
occurrences(const uint8_t inverted[FABRIC_KEY_BYTES])
{
	FILE *maps = fopen("/proc/self/maps", "r");
	int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	char line[512];
	int found = 0;

	assert_true(maps != NULL && memory >= 0);
	while (fgets(line, sizeof(line), maps) != NULL)
	{
		uint64_t start;
		uint64_t end;
		char rights[5];

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &start, &end, rights) == 3 && rights[0] == 'r' &&
		    rights[1] == 'w' && end - start < LARGEST_MAPPING)
			found += occurrences_between(memory, start, end, inverted);
	}
	fclose(maps);
	close(memory);
	return found;
}

static void
test_key_leaves_no_trace(void **state)
{
	static PairKeys keys;
	uint8_t inverted[FABRIC_KEY_BYTES];
	StreamPair pair;

	keys.count = 1;
	pair_key(&keys.keys[0], "alpha", 77);
	for (uint32_t i = 0; i < FABRIC_KEY_BYTES; i++)
		inverted[i] = keys.keys[0].key[i] ^ 0xff;
	assert_true(occurrences(inverted) > 0);
	pair_open_keys(&pair, false, &keys.keys[0], &keys);
	pair_handshake(&pair);
	assert_int_equal(pair.server_status, STREAM_OK);
	/* The owners of the key forget it; the streams have done so already. */
	explicit_bzero(&keys, sizeof(keys));
	explicit_bzero(&pair.keys, sizeof(pair.keys));
	assert_int_equal(occurrences(inverted), 0);
	converse(&pair);
	pair_close(&pair);

	/* So when the handshake never ends. */
	keys.count = 1;
	pair_key(&keys.keys[0], "alpha", 77);
	pair_open_keys(&pair, false, &keys.keys[0], &keys);
	assert_int_equal(stream_handshake(pair.client), STREAM_WANT_READ);
	explicit_bzero(&keys, sizeof(keys));
	explicit_bzero(&pair.keys, sizeof(pair.keys));
	pair_close(&pair);
	assert_int_equal(occurrences(inverted), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, pair_count_leavings, pair_check_leavings)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_handshake),
		TEST(test_plain),
		TEST(test_pending),
		TEST(test_part_of_record_is_not_pending),
		TEST(test_rotation),
		TEST(test_large_transfers),
		TEST(test_end_at_every_point),
		TEST(test_errors_of_others),
		TEST(test_key_leaves_no_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

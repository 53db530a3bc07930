/*
 * test_wire.c
 *		Streams against whoever holds the wire: what is no TLS, handshakes that are replayed, cut short or changed, records in
 *		another order.
 */
#define _GNU_SOURCE 1
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/stream_pair.h"

/* Turns of an end that no handshake needs. */
#define MANY_TURNS 20

/* ---- Handshakes */

/* A stranger's bytes to a server: what becomes of it, and of a client to which they are the answer. */
static void
say_to_both(const void *bytes, size_t count, bool then_close)
{
	for (int i = 0; i < 2; i++)
	{
		StreamPair pair;
		Stream *stream;
		StreamStatus status = STREAM_WANT_READ;
		int *end;

		pair_open(&pair, true);
		stream = i == 0 ? pair.server : pair.client;
		end = i == 0 ? &pair.to_server : &pair.to_client;
		pair_put(*end, bytes, count);
		if (then_close)
			shutdown(*end, SHUT_WR);
		for (int turn = 0; turn < MANY_TURNS; turn++)
			status = stream_handshake(stream);
		if (then_close)
			assert_true(status == STREAM_REFUSED || status == STREAM_CLOSED);
		else
			assert_true(status == STREAM_REFUSED);
		assert_true(strlen(stream_detail(stream)) > 0);
		pair_close(&pair);
	}
}

static void
test_not_tls(void **state)
{
	static const char zeroes[64];

	say_to_both("GET / HTTP/1.1\r\nHost: node\r\n\r\n", 30, false);
	say_to_both("\n", 1, true);
	say_to_both(zeroes, sizeof(zeroes), false);
	say_to_both("", 0, true);
	/* A record that says to be longer than any; a first message that says to have 16 MB; no messages at all. */
	say_to_both("\x16\x03\x01\xff\xff\x01\x00\x10\x00\x03\x03", 11, false);
	say_to_both("\x16\x03\x01\x00\x40\x01\xff\xff\xff\x03\x03", 11, true);
	say_to_both("\x15\x03\x01\x00\x02\x02\x28", 7, false);
	say_to_both("\x17\x03\x03\x00\x02\x02\x28", 7, false);
}

/* A first message that says to have 16 MB is refused when that is read, not when the 16 MB have come. */
static void
test_endless_hello(void **state)
{
	static uint8_t record[5 + 16384] = {0x16, 0x03, 0x01, 0x40, 0x00, 0x01, 0xff, 0xff, 0xff, 0x03, 0x03};

	say_to_both(record, sizeof(record), false);
}

static void
test_random_bytes(void **state)
{
	uint8_t bytes[600];
	uint32_t seed = 12345;

	for (int round = 0; round < 200; round++)
	{
		for (size_t i = 0; i < sizeof(bytes); i++)
		{
			seed = seed * 1664525 + 1013904223;
			bytes[i] = (uint8_t) (seed >> 24);
		}
		/* Half of them begin like a handshake. */
		if (round % 2 == 0)
			memcpy(bytes, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
		say_to_both(bytes, sizeof(bytes), true);
	}
}

/* What both ends said in a handshake that went well, and in it the client's first words after it. */
typedef struct Recording
{
	uint8_t hello[PAIR_WIRE_BYTES]; /* the client's first flight */
	size_t hello_bytes;
	uint8_t answer[PAIR_WIRE_BYTES]; /* the server's */
	size_t answer_bytes;
	uint8_t rest[PAIR_WIRE_BYTES]; /* the client's last flight, and a record */
	size_t rest_bytes;
} Recording;

static Recording recording;

static int
record(void **state)
{
	StreamPair pair;

	signal(SIGPIPE, SIG_DFL);
	pair_open(&pair, true);
	assert_int_equal(stream_handshake(pair.client), STREAM_WANT_READ);
	recording.hello_bytes = pair_take(pair.to_client, recording.hello, PAIR_WIRE_BYTES);
	pair_put(pair.to_server, recording.hello, recording.hello_bytes);
	assert_int_equal(stream_handshake(pair.server), STREAM_WANT_READ);
	recording.answer_bytes = pair_take(pair.to_server, recording.answer, PAIR_WIRE_BYTES);
	pair_put(pair.to_client, recording.answer, recording.answer_bytes);
	assert_int_equal(stream_handshake(pair.client), STREAM_OK);
	pair_send(pair.client, "transfer", 8);
	recording.rest_bytes = pair_take(pair.to_client, recording.rest, PAIR_WIRE_BYTES);
	pair_put(pair.to_server, recording.rest, recording.rest_bytes);
	assert_int_equal(stream_handshake(pair.server), STREAM_OK);
	pair_close(&pair);
	return 0;
}

/* Somebody who saw a connection says the same again: to the server as a client, to a client as a server. */
static void
test_replay(void **state)
{
	StreamPair pair;

	pair_open(&pair, true);
	pair_put(pair.to_server, recording.hello, recording.hello_bytes);
	for (int turn = 0; turn < MANY_TURNS; turn++)
		assert_int_equal(stream_handshake(pair.server), STREAM_WANT_READ);
	assert_int_equal(stream_tenant(pair.server), 0);
	assert_false(stream_pending(pair.server));
	pair_put(pair.to_server, recording.rest, recording.rest_bytes);
	assert_int_equal(stream_handshake(pair.server), STREAM_REFUSED);
	assert_int_equal(stream_tenant(pair.server), 0);
	pair_close(&pair);

	pair_open(&pair, true);
	assert_int_equal(stream_handshake(pair.client), STREAM_WANT_READ);
	pair_put(pair.to_client, recording.answer, recording.answer_bytes);
	assert_int_equal(stream_handshake(pair.client), STREAM_REFUSED);
	pair_close(&pair);

	/* A server that gets its own answer, a client its own question. */
	say_to_both(recording.answer, recording.answer_bytes, true);
	pair_open(&pair, true);
	pair_put(pair.to_client, recording.hello, recording.hello_bytes);
	assert_int_equal(stream_handshake(pair.client), STREAM_REFUSED);
	pair_close(&pair);
}

/* What becomes of one flight of a live handshake (0: hello, 1: answer, 2: the client's last). */
typedef struct Damage
{
	int flight;
	size_t place; /* beyond its end: nothing is done */
	bool cut;     /* nothing comes from there on; else a bit of the byte there is changed */
} Damage;

/* The handshake with the damage, to its end as far as it goes; the pair is left open. */
static void
damaged_handshake(StreamPair *pair, const Damage *damage)
{
	uint8_t bytes[PAIR_WIRE_BYTES];

	pair_open(pair, true);
	pair->client_status = stream_handshake(pair->client);
	for (int flight = 0; flight < 3; flight++)
	{
		bool to_server = flight != 1;
		int to = to_server ? pair->to_server : pair->to_client;
		size_t count = pair_take(to_server ? pair->to_client : pair->to_server, bytes, sizeof(bytes));
		bool hit = flight == damage->flight && damage->place < count;

		if (hit && damage->cut)
			count = damage->place;
		else if (hit)
			bytes[damage->place] ^= 0x10;
		if (count > 0)
			pair_put(to, bytes, count);
		if (hit && damage->cut)
			shutdown(to, SHUT_WR);
		if (to_server)
			pair->server_status = stream_handshake(pair->server);
		else
			pair->client_status = stream_handshake(pair->client);
	}
}

static void
test_cut_short(void **state)
{
	const size_t lengths[3] = {recording.hello_bytes, recording.answer_bytes, 64};

	for (int flight = 0; flight < 3; flight++)
	{
		for (size_t place = 0; place < lengths[flight]; place += 3)
		{
			const Damage damage = {flight, place, true};
			StreamPair pair;
			StreamStatus status;

			damaged_handshake(&pair, &damage);
			status = flight == 1 ? pair.client_status : pair.server_status;
			assert_true(status == STREAM_CLOSED || status == STREAM_REFUSED);
			pair_close(&pair);
		}
	}
}

static void
pass_to_server(const StreamPair *pair)
{
	uint8_t bytes[256];
	size_t count = pair_take(pair->to_client, bytes, sizeof(bytes));

	pair_put(pair->to_server, bytes, count);
}

static void
test_changed_bytes(void **state)
{
	const size_t lengths[3] = {recording.hello_bytes, recording.answer_bytes, 64};
	int harmless = 0;

	for (int flight = 0; flight < 3; flight++)
	{
		for (size_t place = 0; place < lengths[flight]; place++)
		{
			const Damage damage = {flight, place, false};
			StreamPair pair;
			char bytes[8];

			damaged_handshake(&pair, &damage);
			if (pair.server_status == STREAM_OK)
			{
				/* What is in front of a record and means nothing. */
				harmless++;
				assert_int_equal(pair.client_status, STREAM_OK);
				pair_send(pair.client, "harmless", 8);
				pass_to_server(&pair);
				pair_receive(pair.server, bytes, 8);
				assert_memory_equal(bytes, "harmless", 8);
			}
			pair_close(&pair);
		}
	}
	assert_in_range(harmless, 0, 12);
}

/* ---- Records */

/* Two records from the client, as they stand on the wire. */
static void
make_records(StreamPair *pair, uint8_t bytes[2][256], size_t counts[2])
{
	pair_open(pair, true);
	pair_handshake(pair);
	assert_int_equal(pair->server_status, STREAM_OK);
	for (int i = 0; i < 2; i++)
	{
		pair_send(pair->client, i == 0 ? "first" : "other", 5);
		counts[i] = pair_take(pair->to_client, bytes[i], 256);
	}
}

/* The server's next read fails for good. */
static void
expect_broken(StreamPair *pair)
{
	char bytes[16];
	size_t done;

	assert_int_equal(stream_read(pair->server, bytes, sizeof(bytes), &done), STREAM_CLOSED);
	assert_int_equal(stream_read(pair->server, bytes, sizeof(bytes), &done), STREAM_CLOSED);
	assert_int_equal(stream_write(pair->server, bytes, sizeof(bytes), &done), STREAM_CLOSED);
	assert_true(strlen(stream_detail(pair->server)) > 0);
	pair_close(pair);
}

static void
test_records_in_another_order(void **state)
{
	StreamPair pair;
	uint8_t records[2][256];
	size_t counts[2];
	char bytes[5];

	/* The second first; the first twice; the first changed; half of the second, and the end. */
	make_records(&pair, records, counts);
	pair_put(pair.to_server, records[1], counts[1]);
	expect_broken(&pair);

	make_records(&pair, records, counts);
	pair_put(pair.to_server, records[0], counts[0]);
	pair_put(pair.to_server, records[0], counts[0]);
	pair_receive(pair.server, bytes, 5);
	expect_broken(&pair);

	make_records(&pair, records, counts);
	records[0][counts[0] / 2] ^= 1;
	pair_put(pair.to_server, records[0], counts[0]);
	expect_broken(&pair);

	make_records(&pair, records, counts);
	pair_put(pair.to_server, records[0], counts[0]);
	pair_put(pair.to_server, records[1], counts[1] / 2);
	shutdown(pair.to_server, SHUT_WR);
	pair_receive(pair.server, bytes, 5);
	expect_broken(&pair);

	/* Text after the handshake; a record of another connection. */
	make_records(&pair, records, counts);
	pair_put(pair.to_server, (const uint8_t *) "plain text, not a record", 24);
	expect_broken(&pair);
	make_records(&pair, records, counts);
	pair_put(pair.to_server, recording.rest + recording.rest_bytes - counts[0], counts[0]);
	expect_broken(&pair);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, pair_count_leavings, pair_check_leavings)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_not_tls),
		TEST(test_endless_hello),
		TEST(test_random_bytes),
		TEST(test_replay),
		TEST(test_cut_short),
		TEST(test_changed_bytes),
		TEST(test_records_in_another_order),
	};

	return cmocka_run_group_tests(tests, record, NULL);
}

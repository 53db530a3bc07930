/*
 * test_security.c
 *		A memory node and enemies on its network address: keys, frames and chains that it must refuse, with
 *		and without TLS.  A witness is served all the while.  Crowds and slow ones are in test_crowd.c.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "support/hostile_node.h"

#define ENEMY 666u
#define RANDOM_ROUNDS 400
/* Of the witness, of one who asks, and one that is just being closed. */
#define OWN_CONNECTIONS 5u

static HostileNode node;

/* ---- Keys */

/* A client with that key file tries to connect. */
static FabricStatus
try_key_file(const char *path)
{
	const FabricOptions options = {.key_file = path};
	TestChannel channel;
	FabricStatus status = channel_try_open(&channel, node.process.network_address, ENEMY, 0, &options);

	if (status == FABRIC_OK)
		channel_close(&channel);
	return status;
}

static void
write_file(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(file >= 0);
	assert_int_equal(write(file, text, strlen(text)), strlen(text));
	close(file);
}

static void
test_keys(void **state)
{
	char path[192];
	char line[200];
	FabricKey key;
	RawClient raw;

	snprintf(path, sizeof(path), "%s/enemy", node.process.directory);
	/* Its own key passes: what follows fails for what it is. */
	assert_int_equal(try_key_file(node.process.key_file), FABRIC_OK);
	/* A key that nobody knows, of a tenant that is known and of one that is not. */
	for (int i = 0; i < 2; i++)
	{
		snprintf(line, sizeof(line), "%s %064x\n", i == 0 ? "tests" : "nobody", 0x1234u);
		write_file(path, line);
		assert_int_equal(try_key_file(path), FABRIC_DENIED);
		hostile_node_expect_log(&node, i == 0 ? "no key of the identity \"tests/"
		                                      : "no key of the identity \"nobody/");
	}
	/* The identity is right, the key is not. */
	key = node.key;
	key.key[5] ^= 1;
	assert_int_equal(hostile_node_handshake(&node, &key), STREAM_REFUSED);
	hostile_node_expect_log(&node, "not proven to be \"tests/");
	/* No key at all: he is told, and no more (test_refusals). */
	raw_open(&raw, &node.process, NULL);
	assert_int_equal(raw_hello(&raw, ENEMY, 0, NULL), FABRIC_DENIED);
	raw_expect_closed(&raw);
	hostile_node_expect_log(&node, "does not speak TLS");
	raw_close(&raw);
	unlink(path);
	witness_expect(&node.witness, 3);
}

/* Contexts of OpenSSL that this process has made since they are counted. */
static int contexts_made;

static void
count_context(void *parent, void *pointer, CRYPTO_EX_DATA *data, int index, long number, void *argument)
{
	contexts_made++;
}

/* What connections have in common is lent to fabrics, here and in a process that is forked, and outlives them. */
static void
test_lent_tls(void **state)
{
	struct StreamContext *tls = fabric_tls_open();
	FabricOptions options = {.key_file = node.process.key_file, .tls = tls};
	TestChannel channel;
	pid_t child;

	assert_non_null(tls);
	assert_true(SSL_CTX_get_ex_new_index(0, NULL, count_context, NULL, NULL) >= 0);
	assert_int_equal(try_key_file(node.process.key_file), FABRIC_OK);
	assert_int_equal(contexts_made, 1);
	for (int i = 0; i < 2; i++)
	{
		assert_int_equal(channel_try_open(&channel, node.process.network_address, ENEMY, 0, &options),
		                 FABRIC_OK);
		channel_close(&channel);
	}
	child = start_child();
	if (child == 0)
		_exit(channel_try_open(&channel, node.process.network_address, ENEMY, 0, &options) != FABRIC_OK ||
		      contexts_made != 1);
	assert_int_equal(wait_for_child(child), 0);
	assert_int_equal(contexts_made, 1);
	fabric_tls_close(tls);
	witness_expect(&node.witness, 3);
}

/* A key where none is wanted: the client notices, for it must know whom it talks to. */
static void
test_key_without_need(void **state)
{
	char path[192];

	snprintf(path, sizeof(path), "%s/enemy", node.process.directory);
	write_file(path, "tests 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n");
	assert_int_equal(try_key_file(path), FABRIC_DENIED);
	unlink(path);
	witness_expect(&node.witness, 3);
}

/* ---- A recorded connection */

/* What a client said in a session that went well: handshake, HELLO, ATTACH. */
typedef struct Session
{
	uint8_t said[65536];
	size_t bytes;
} Session;

/* Passes bytes on between two sockets until one has nothing more to say, and keeps those of the client. */
static void
relay(int client, int server, Session *session)
{
	struct pollfd polled[2] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};
	uint8_t bytes[16384];

	while (poll(polled, 2, -1) > 0)
	{
		for (int i = 0; i < 2; i++)
		{
			ssize_t count = polled[i].revents == 0 ? -1 : recv(polled[i].fd, bytes, sizeof(bytes), 0);

			if (polled[i].revents == 0)
				continue;
			if (count <= 0)
				return;
			if (i == 0)
			{
				CHECK(session->bytes + (size_t) count <= sizeof(session->said));
				memcpy(session->said + session->bytes, bytes, (size_t) count);
				session->bytes += (size_t) count;
			}
			CHECK(send(polled[1 - i].fd, bytes, (size_t) count, MSG_NOSIGNAL) == count);
		}
	}
}

/* Records a session: a client in a process of its own, and the test between it and the memory node. */
static void
record_session(Session *session)
{
	int ends[2];
	int server = raw_socket(&node.process);
	pid_t child;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(fcntl(server, F_SETFL, 0), 0);
	child = start_child();
	if (child == 0)
	{
		RawClient raw;
		uint32_t words[3] = {0, 7, 7};

		close(ends[0]);
		raw_start(&raw, ends[1], node.keyed ? &node.key : NULL);
		CHECK(raw_hello(&raw, ENEMY, 0, NULL) == FABRIC_OK);
		CHECK(raw_call(&raw, CONTROL_ATTACH, words, sizeof(words), NULL, NULL) == FABRIC_OK);
		raw_close(&raw);
		_exit(0);
	}
	close(ends[1]);
	session->bytes = 0;
	relay(ends[0], server, session);
	close(ends[0]);
	close(server);
	assert_int_equal(wait_for_child(child), 0);
}

/* The incarnation that the enemy's cluster would get next tells whether an ATTACH of it was heard. */
static uint32_t
enemy_incarnation(void)
{
	return cluster_attach(node.process.network_address, ENEMY);
}

/* Says it all again on a connection of its own. */
static void
test_replayed_session(void **state)
{
	static Session session;
	uint8_t bytes[4096];
	uint32_t before;
	struct pollfd polled = {.events = POLLIN};
	size_t answered = 0;

	record_session(&session);
	before = enemy_incarnation();
	polled.fd = raw_socket(&node.process);
	assert_int_equal(send(polled.fd, session.said, session.bytes, MSG_NOSIGNAL), session.bytes);
	/* The memory node answers the first flight, and is done with us. */
	while (poll(&polled, 1, 60000) > 0)
	{
		ssize_t count = recv(polled.fd, bytes, sizeof(bytes), 0);

		if (count <= 0)
			break;
		answered += (size_t) count;
	}
	assert_in_range(answered, 1, 1000);
	close(polled.fd);
	assert_int_equal(enemy_incarnation(), before + 1);
	hostile_node_expect_log(&node, "not proven to be \"tests/");
	witness_expect(&node.witness, 3);
}

/* A session that ends at any byte leaves nothing behind. */
static void
test_truncated_session(void **state)
{
	static Session session;

	record_session(&session);
	for (size_t length = 0; length <= session.bytes; length += node.keyed ? 7 : 3)
	{
		int descriptor = raw_socket(&node.process);
		/* Half of them just end, half of them break. */
		struct linger hard = {.l_onoff = length % 2, .l_linger = 0};

		assert_int_equal(send(descriptor, session.said, length, MSG_NOSIGNAL), length);
		setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
		close(descriptor);
	}
	witness_expect(&node.witness, 3);
	hostile_node_expect_connections(&node, OWN_CONNECTIONS);
}

/* ---- Frames */

static void
open_enemy(RawClient *raw)
{
	raw_open(raw, &node.process, node.keyed ? &node.key : NULL);
}

/* An enemy with a channel. */
static void
open_channel(RawClient *raw, FabricCapabilities *capabilities)
{
	uint32_t incarnation = enemy_incarnation();

	open_enemy(raw);
	assert_int_equal(raw_hello(raw, ENEMY, incarnation, capabilities), FABRIC_OK);
}

static void
test_oversized_frames(void **state)
{
	static const uint32_t lengths[] = {FRAME_MAX_PAYLOAD + 1, 1u << 20, INT32_MAX, UINT32_MAX - 7,
	                                   UINT32_MAX};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
	{
		for (int introduced = 0; introduced < 2; introduced++)
		{
			FrameHead frame = {lengths[i], SERVICE_ECHO, FRAME_VERSION, 1};
			uint8_t header[FRAME_HEAD_BYTES];
			RawClient raw;

			open_enemy(&raw);
			if (introduced)
				assert_int_equal(raw_hello(&raw, ENEMY, 0, NULL), FABRIC_OK);
			frame_encode(&frame, header);
			raw_send(&raw, header, sizeof(header));
			raw_expect_closed(&raw);
			raw_close(&raw);
		}
	}
	hostile_node_expect_log(&node, "another protocol");
	witness_expect(&node.witness, 3);
}

static void
test_strange_headers(void **state)
{
	static const uint8_t text[64] = "GET / HTTP/1.1\r\nHost: memory\r\nConnection: keep-alive\r\n\r\n";
	uint8_t header[FRAME_HEAD_BYTES];
	RawClient raw;

	open_enemy(&raw);
	raw_send(&raw, text, sizeof(text));
	raw_expect_closed(&raw);
	raw_close(&raw);
	for (uint16_t version = 0; version < FRAME_VERSION + 2; version++)
	{
		FrameHead frame = {0, SERVICE_ECHO, version, 1};

		if (version == FRAME_VERSION)
			continue;
		open_enemy(&raw);
		frame_encode(&frame, header);
		raw_send(&raw, header, sizeof(header));
		raw_expect_closed(&raw);
		raw_close(&raw);
	}
	witness_expect(&node.witness, 3);
}

/* Who was refused a channel, as there is none left, has no chains, neither before HELLO nor behind one for calls alone. */
static void
test_chain_without_channel(void **state)
{
	uint32_t incarnation = enemy_incarnation();
	RawClient held[HOSTILE_CHANNELS];
	uint32_t count = 0;
	uint64_t word = 0;
	FabricOp read = op_read(0, &word, 8);
	RawClient raw;

	open_enemy(&raw);
	while (raw_hello(&raw, ENEMY, incarnation, NULL) == FABRIC_OK)
	{
		assert_in_range(count, 0, HOSTILE_CHANNELS - 1);
		held[count++] = raw;
		open_enemy(&raw);
	}
	assert_int_equal(raw_chain(&raw, &read, 1), FABRIC_LOST);
	raw_close(&raw);
	open_enemy(&raw);
	assert_int_equal(raw_hello(&raw, ENEMY, incarnation, NULL), FABRIC_NO_MEMORY);
	assert_int_equal(raw_hello(&raw, ENEMY, 0, NULL), FABRIC_OK);
	assert_int_equal(raw_chain(&raw, &read, 1), FABRIC_LOST);
	raw_close(&raw);
	while (count > 0)
		raw_close(&held[--count]);
	witness_expect(&node.witness, 3);
}

/* What is right in itself, and not now. */
static void
test_reordered_frames(void **state)
{
	uint32_t attach[3] = {0, 1, 1};
	uint64_t word = 0;
	FabricOp read = op_read(0, &word, 8);
	uint8_t *reply = NULL;
	FabricCapabilities capabilities;
	RawClient raw;

	/* Before HELLO: calls and ATTACH are refused; a chain ends the connection, as without a channel later. */
	open_enemy(&raw);
	assert_int_equal(raw_call(&raw, SERVICE_ECHO, "x", 1, reply, NULL), FABRIC_PROTOCOL);
	assert_int_equal(raw_call(&raw, CONTROL_ATTACH, attach, sizeof(attach), NULL, NULL), FABRIC_PROTOCOL);
	assert_int_equal(raw_call(&raw, CONTROL_RESET, NULL, 0, NULL, NULL), FABRIC_PROTOCOL);
	assert_int_equal(raw_chain(&raw, &read, 1), FABRIC_LOST);
	raw_close(&raw);
	open_enemy(&raw);
	assert_int_equal(raw_hello(&raw, ENEMY, 0, NULL), FABRIC_OK);
	assert_int_equal(raw_hello(&raw, ENEMY + 1, 0, NULL), FABRIC_PROTOCOL);
	assert_int_equal(raw_call(&raw, CONTROL_RESET, NULL, 0, NULL, NULL), FABRIC_PROTOCOL);
	assert_int_equal(raw_call(&raw, 0xffff, NULL, 0, NULL, NULL), FABRIC_PROTOCOL);
	assert_int_equal(raw_call(&raw, CONTROL_ATTACH, attach, sizeof(attach) - 1, NULL, NULL), FABRIC_PROTOCOL);
	assert_int_equal(raw_chain(&raw, &read, 1), FABRIC_LOST);
	raw_close(&raw);
	/* An incarnation that is not the current one, and one that never was. */
	open_enemy(&raw);
	assert_int_equal(raw_hello(&raw, ENEMY, enemy_incarnation() + 1, NULL), FABRIC_FENCED);
	assert_int_equal(raw_hello(&raw, ENEMY + 99, 1, NULL), FABRIC_FENCED);
	raw_close(&raw);
	/* With the same request id again and again, and with one that goes back: each is answered once. */
	open_channel(&raw, &capabilities);
	for (int i = 0; i < 10; i++)
	{
		raw.request = i < 5 ? 41 : (uint64_t) (1000 - i);
		read = op_read(capabilities.redo_offset, &word, 8);
		assert_int_equal(raw_chain(&raw, &read, 1), FABRIC_OK);
	}
	raw_close(&raw);
	witness_expect(&node.witness, 3);
}

static uint32_t
next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* A frame with a header that is right in the main, and a payload that is not. */
static size_t
random_frame(uint8_t *place, uint32_t *seed, uint64_t request)
{
	static const uint16_t methods[] = {CONTROL_HELLO, CONTROL_ATTACH, CONTROL_RESET, CONTROL_CHAIN,
	                                   CONTROL_CHAIN, CONTROL_CHAIN,  SERVICE_ECHO,  SERVICE_PEER,
	                                   SERVICE_INFO,  0xfff0};
	uint8_t payload[512];
	size_t count = next_random(seed) % 16 * 8 + (next_random(seed) % 4 == 0 ? next_random(seed) % 8 : 0);
	uint16_t method = methods[next_random(seed) % (sizeof(methods) / sizeof(methods[0]))];

	for (size_t i = 0; i < count; i++)
		payload[i] = (uint8_t) (next_random(seed) % 3 == 0 ? next_random(seed) : 0);
	/* A chain that begins like one. */
	if (method == CONTROL_CHAIN && count >= 16)
	{
		memset(payload, 0, 16);
		payload[0] = (uint8_t) (next_random(seed) % 4);
		payload[8] = (uint8_t) (next_random(seed) % 5);
		payload[9] = (uint8_t) (next_random(seed) % 2);
		payload[12] = 8;
	}
	return raw_frame(place, method, request, payload, count);
}

static void
test_random_frames(void **state)
{
	static uint8_t bytes[RAW_FRAME_BYTES];
	uint32_t seed = node.keyed ? 1 : 2;
	RawClient raw;
	bool open = false;

	for (int round = 0; round < RANDOM_ROUNDS; round++)
	{
		size_t count = random_frame(bytes, &seed, (uint64_t) round);
		FrameHead frame;

		if (!open && round % 3 == 0)
			open_channel(&raw, NULL);
		else if (!open)
			open_enemy(&raw);
		/* Now and then its length is wrong, or nothing is right. */
		if (next_random(&seed) % 20 == 0)
			bytes[next_random(&seed) % 4] ^= (uint8_t) next_random(&seed);
		else if (next_random(&seed) % 20 == 0)
			memset(bytes, (int) next_random(&seed), count);
		open = raw_send(&raw, bytes, count) && next_random(&seed) % 8 != 0;
		/* What is answered is answered as it should be; whoever is waited for may have been told nonsense. */
		if (open && raw_try_receive(&raw, &frame, bytes))
			open = frame.length >= FRAME_STATUS_BYTES;
		if (!open)
			raw_close(&raw);
	}
	if (open)
		raw_close(&raw);
	witness_expect(&node.witness, 3);
}

/* ---- Chains */

/* Words of a chain's request: how many operations, and those of the first. */
typedef struct ChainWords
{
	uint64_t count;
	uint64_t head;
	uint64_t offset;
	uint64_t rest[4];
} ChainWords;

static uint64_t
operation(uint64_t opcode, uint64_t region, uint64_t length)
{
	return opcode | region << 8 | length << 32;
}

static void
test_forbidden_chains(void **state)
{
	FabricCapabilities capabilities;
	RawClient raw;

	open_channel(&raw, &capabilities);
	{
		const uint64_t redo = capabilities.redo_offset;
		const uint64_t end = capabilities.region_bytes[FABRIC_NODES];
		const uint64_t locks = capabilities.region_bytes[FABRIC_LOCKS];
		const struct
		{
			ChainWords words;
			size_t bytes; /* of the request */
			FabricStatus status;
		} chains[] = {
			/* The contract as it is. */
			{{1, operation(FABRIC_READ, FABRIC_NODES, 64), redo, {0}}, 24, FABRIC_OK},
			{{1, operation(FABRIC_WRITE, FABRIC_NODES, 8), redo, {1}}, 32, FABRIC_OK},
			{{1, operation(FABRIC_FETCH_ADD, FABRIC_LOCKS, 8), 8, {0}}, 32, FABRIC_OK},
			/* Beyond the region, by one, by much, and around the end of all numbers. */
			{{1, operation(FABRIC_READ, FABRIC_NODES, 64), end, {0}}, 24, FABRIC_RANGE},
			{{1, operation(FABRIC_READ, FABRIC_NODES, 64), end - 56, {0}}, 24, FABRIC_RANGE},
			{{1, operation(FABRIC_READ, FABRIC_NODES, 64), UINT64_MAX - 7, {0}}, 24, FABRIC_RANGE},
			{{1, operation(FABRIC_READ, FABRIC_NODES, 64), 1ull << 63, {0}}, 24, FABRIC_RANGE},
			{{1, operation(FABRIC_WRITE, FABRIC_NODES, 8), end, {0}}, 32, FABRIC_RANGE},
			{{1, operation(FABRIC_FETCH_ADD, FABRIC_LOCKS, 8), locks, {0}}, 32, FABRIC_RANGE},
			{{1, operation(FABRIC_READ, FABRIC_LOCKS, 8), UINT64_MAX - 7, {0}}, 24, FABRIC_RANGE},
			/* Not aligned; no length; too long; across two stripes. */
			{{1, operation(FABRIC_READ, FABRIC_NODES, 64), redo + 4, {0}}, 24, FABRIC_RANGE},
			{{1, operation(FABRIC_READ, FABRIC_NODES, 63), redo, {0}}, 24, FABRIC_RANGE},
			{{1, operation(FABRIC_READ, FABRIC_NODES, 0), redo, {0}}, 24, FABRIC_RANGE},
			{{1, operation(FABRIC_READ, FABRIC_NODES, 4104), redo, {0}}, 24, FABRIC_RANGE},
			{{1, operation(FABRIC_READ, FABRIC_NODES, UINT32_MAX - 7), redo, {0}}, 24, FABRIC_RANGE},
			{{1, operation(FABRIC_READ, FABRIC_NODES, 16), redo + 4088, {0}}, 24, FABRIC_RANGE},
			{{1, operation(FABRIC_COMPARE_SWAP, FABRIC_LOCKS, 8), 4, {0}}, 40, FABRIC_RANGE},
			{{1, operation(FABRIC_FETCH_ADD, FABRIC_NODES, 16), redo, {0}}, 32, FABRIC_RANGE},
			{{1, operation(FABRIC_READ, FABRIC_LOCKS, 16), 0, {0}}, 24, FABRIC_RANGE},
			/* No such operation or region; what must be zero and is not; a WRITE to lock words. */
			{{1, operation(4, FABRIC_NODES, 8), redo, {0}}, 24, FABRIC_PROTOCOL},
			{{1, operation(255, FABRIC_NODES, 8), redo, {0}}, 24, FABRIC_PROTOCOL},
			{{1, operation(FABRIC_READ, 2, 8), redo, {0}}, 24, FABRIC_PROTOCOL},
			{{1, operation(FABRIC_READ, 255, 8), redo, {0}}, 24, FABRIC_PROTOCOL},
			{{1, operation(FABRIC_READ, FABRIC_NODES, 8) | 1u << 16, redo, {0}}, 24, FABRIC_PROTOCOL},
			{{1, operation(FABRIC_WRITE, FABRIC_LOCKS, 8), 8, {0}}, 32, FABRIC_PROTOCOL},
			/* A WRITE behind an atomic. */
			{{2,
		      operation(FABRIC_FETCH_ADD, FABRIC_LOCKS, 8),
		      8,
		      {0, operation(FABRIC_WRITE, FABRIC_NODES, 8), redo}},
		     56,
		     FABRIC_PROTOCOL},
			/* No operations, more than there are, more than there may be, fewer than there are. */
			{{0, 0, 0, {0}}, 8, FABRIC_PROTOCOL},
			{{2, operation(FABRIC_READ, FABRIC_NODES, 8), redo, {0}}, 24, FABRIC_PROTOCOL},
			{{FABRIC_MAX_CHAIN + 1, operation(FABRIC_READ, FABRIC_NODES, 8), redo, {0}}, 24, FABRIC_PROTOCOL},
			{{1ull << 32 | 1, operation(FABRIC_READ, FABRIC_NODES, 8), redo, {0}}, 24, FABRIC_PROTOCOL},
			{{UINT64_MAX, operation(FABRIC_READ, FABRIC_NODES, 8), redo, {0}}, 24, FABRIC_PROTOCOL},
			{{1, operation(FABRIC_READ, FABRIC_NODES, 8), redo, {0}}, 32, FABRIC_PROTOCOL},
			/* Cut off: in the count, the operation, the bytes of a WRITE, the words of an atomic. */
			{{1, 0, 0, {0}}, 0, FABRIC_PROTOCOL},
			{{1, 0, 0, {0}}, 4, FABRIC_PROTOCOL},
			{{1, operation(FABRIC_READ, FABRIC_NODES, 8), 0, {0}}, 16, FABRIC_PROTOCOL},
			{{1, operation(FABRIC_WRITE, FABRIC_NODES, 64), redo, {0}}, 32, FABRIC_PROTOCOL},
			{{1, operation(FABRIC_WRITE, FABRIC_NODES, UINT32_MAX - 7), redo, {0}}, 32, FABRIC_PROTOCOL},
			{{1, operation(FABRIC_COMPARE_SWAP, FABRIC_LOCKS, 8), 8, {0}}, 32, FABRIC_PROTOCOL},
		};

		for (size_t i = 0; i < sizeof(chains) / sizeof(chains[0]); i++)
		{
			static uint8_t reply[RAW_FRAME_BYTES];
			uint32_t reply_bytes = sizeof(reply);
			FabricStatus status =
				raw_call(&raw, CONTROL_CHAIN, &chains[i].words, chains[i].bytes, reply, &reply_bytes);

			if (status != chains[i].status)
				fail_msg("chain %zu: %s", i, fabric_status_name(status));
			assert_true(status == FABRIC_OK || reply_bytes == 0);
		}
	}
	/* Nothing of the refused WRITEs happened. */
	{
		uint64_t word;
		FabricOp read = op_read(capabilities.redo_offset, &word, 8);

		assert_int_equal(raw_chain(&raw, &read, 1), FABRIC_OK);
		assert_true(word == 1);
	}
	raw_close(&raw);
	witness_expect(&node.witness, 3);
}

/*
 * Memory that was never granted, the memory node's own tables, redo slots of others: nothing is seen or
 * changed there.
 */
static void
test_memory_of_nobody(void **state)
{
	FabricCapabilities capabilities;
	RawClient raw;
	uint64_t words[8];
	uint64_t places[3];

	open_channel(&raw, &capabilities);
	places[0] = capabilities.region_bytes[FABRIC_NODES] - FABRIC_UNIT_BYTES;
	places[1] = capabilities.redo_offset + FABRIC_REDO_BYTES;
	places[2] = capabilities.redo_offset == 0 ? 2 * FABRIC_REDO_BYTES : 0;
	for (size_t i = 0; i < 3; i++)
	{
		FabricOp read = op_read(places[i], words, sizeof(words));
		FabricOp write = op_write(places[i], words, sizeof(words));
		FabricOp add = op_fetch_add(FABRIC_NODES, places[i], 1);
		FabricOp swap = op_compare_swap(FABRIC_NODES, places[i], 0, 1);

		memset(words, 0xff, sizeof(words));
		assert_int_equal(raw_chain(&raw, &write, 1), FABRIC_RANGE);
		assert_int_equal(raw_chain(&raw, &add, 1), FABRIC_RANGE);
		assert_int_equal(raw_chain(&raw, &swap, 1), FABRIC_RANGE);
		assert_int_equal(raw_chain(&raw, &read, 1), FABRIC_OK);
		assert_true(words[0] == 0 && words[7] == 0);
	}
	raw_close(&raw);
	witness_expect(&node.witness, 3);
}

/* ---- Readers */

/* The operation as a chain behind a READ. */
static FabricStatus
read_and(RawClient *raw, FabricOp op)
{
	uint64_t word;
	FabricOp chain[] = {op_read(witness_offset(&node.witness), &word, 8), op};

	return raw_chain(raw, chain, 2);
}

/* What a reader's library does not send is refused by the memory node, too, before any of it has an effect. */
static void
test_reader(void **state)
{
	const uint64_t attach[] = {0, 1};
	uint32_t incarnation = enemy_incarnation();
	FabricCapabilities capabilities;
	RawClient raw, owner;
	uint64_t word = 77, found;
	uint64_t place;
	FabricOp read;

	open_enemy(&owner);
	assert_int_equal(raw_hello(&owner, ENEMY, incarnation, &capabilities), FABRIC_OK);
	open_enemy(&raw);
	/* A refused HELLO leaves nothing of it behind. */
	assert_int_equal(raw_hello(&raw, ENEMY + 1, CONTROL_READER, NULL), FABRIC_FENCED);
	assert_int_equal(raw_hello(&raw, ENEMY, CONTROL_READER, &capabilities), FABRIC_OK);
	assert_int_equal(capabilities.incarnation, incarnation);
	/* Even in its own redo slot. */
	place = capabilities.redo_offset;
	assert_int_equal(read_and(&raw, op_write(place, &word, 8)), FABRIC_PROTOCOL);
	assert_int_equal(read_and(&raw, op_compare_swap(FABRIC_NODES, place, 0, 77)), FABRIC_PROTOCOL);
	assert_int_equal(read_and(&raw, op_fetch_add(FABRIC_NODES, place, 77)), FABRIC_PROTOCOL);
	assert_int_equal(read_and(&raw, op_fetch_add(FABRIC_LOCKS, 64, 77)), FABRIC_PROTOCOL);
	read = op_read(64, &found, 8);
	read.region = FABRIC_LOCKS;
	assert_int_equal(raw_chain(&raw, &read, 1), FABRIC_PROTOCOL);
	read = op_read(place, &found, 8);
	assert_int_equal(raw_chain(&raw, &read, 1), FABRIC_OK);
	assert_true(found == 0);
	assert_int_equal(raw_call(&raw, CONTROL_ATTACH, attach, 12, NULL, NULL), FABRIC_DENIED);
	assert_int_equal(raw_hello(&raw, ENEMY, incarnation, NULL), FABRIC_PROTOCOL);
	assert_int_equal(read_and(&raw, op_write(place, &word, 8)), FABRIC_PROTOCOL);
	/* Another channel of the connection is a reader's again. */
	assert_int_equal(raw_call(&raw, CONTROL_RESET, NULL, 0, NULL, NULL), FABRIC_OK);
	assert_int_equal(read_and(&raw, op_write(place, &word, 8)), FABRIC_PROTOCOL);
	read = op_fetch_add(FABRIC_LOCKS, 64, 0);
	assert_int_equal(raw_chain(&owner, &read, 1), FABRIC_OK);
	assert_true(read.result == 0);
	raw_close(&raw);
	/* A client that is none, on a connection that said it were one and was refused. */
	open_enemy(&raw);
	assert_int_equal(raw_hello(&raw, ENEMY + 1, CONTROL_READER, NULL), FABRIC_FENCED);
	assert_int_equal(raw_hello(&raw, ENEMY, incarnation, &capabilities), FABRIC_OK);
	assert_int_equal(read_and(&raw, op_write(capabilities.redo_offset, &word, 8)), FABRIC_OK);
	raw_close(&raw);
	raw_close(&owner);
	witness_expect(&node.witness, 3);
}

/* ---- Tenants */

static void
test_foreign_tenant(void **state)
{
	const uint64_t offset = witness_offset(&node.witness);
	FabricCapabilities capabilities;
	RawClient raw;
	uint32_t attach[3] = {0, 1, 1};
	uint32_t granted[2];
	uint32_t granted_bytes = sizeof(granted);
	uint64_t words[8];
	FabricOp read = op_read(offset, words, sizeof(words));
	FabricOp write = op_write(offset, words, sizeof(words));
	FabricOp swap = op_compare_swap(FABRIC_NODES, offset, 0, 1);
	FabricOp lock = op_fetch_add(FABRIC_LOCKS, 0, 7);

	/* The witness's cluster is not for us: neither by name nor to be attached. */
	raw_open(&raw, &node.process, &node.foreign_key);
	assert_int_equal(raw_hello(&raw, HOSTILE_WITNESS, 0, NULL), FABRIC_DENIED);
	assert_int_equal(raw_hello(&raw, HOSTILE_WITNESS, 1, NULL), FABRIC_DENIED);
	assert_int_equal(raw_hello(&raw, HOSTILE_WITNESS, CONTROL_READER, NULL), FABRIC_DENIED);
	assert_int_equal(raw_hello(&raw, ENEMY, 0, NULL), FABRIC_OK);
	assert_int_equal(
		raw_call(&raw, CONTROL_ATTACH, attach, sizeof(attach), (uint8_t *) granted, &granted_bytes),
		FABRIC_OK);
	raw_close(&raw);

	raw_open(&raw, &node.process, &node.foreign_key);
	assert_int_equal(raw_hello(&raw, ENEMY, granted[1], &capabilities), FABRIC_OK);
	for (int i = 0; i < 20; i++)
	{
		memset(words, 0xff, sizeof(words));
		assert_int_equal(raw_chain(&raw, &write, 1), FABRIC_RANGE);
		assert_int_equal(raw_chain(&raw, &swap, 1), FABRIC_RANGE);
		assert_int_equal(raw_chain(&raw, &read, 1), FABRIC_OK);
		assert_true(words[0] == 0 && words[7] == 0);
		/* The same number is another word: the witness takes and frees its own meanwhile. */
		assert_int_equal(raw_chain(&raw, &lock, 1), FABRIC_OK);
		assert_true(lock.result == 7 * (uint64_t) i);
		witness_expect(&node.witness, 1);
	}
	raw_close(&raw);
}

/* A client cannot have the channel of another cluster killed, by naming it as its own of before. */
static void
test_foreign_channel(void **state)
{
	FabricCapabilities capabilities;
	RawClient raw;

	raw_open(&raw, &node.process, node.keyed ? &node.foreign_key : NULL);
	assert_int_equal(raw_hello(&raw, ENEMY, 0, &capabilities), FABRIC_OK);
	raw_close(&raw);
	for (uint32_t channel = 0; channel < node.process.max_channels; channel++)
	{
		for (uint64_t serial = 0; serial < 4; serial++)
		{
			uint8_t request[128];
			FramePayload payload = {.data = request, .bytes = sizeof(request)};
			FrameHello hello = {.cluster = {ENEMY, ~(uint64_t) ENEMY},
			                    .old_channel = channel,
			                    .old_serial = serial,
			                    .old_node_uuid = {capabilities.node_uuid[0], capabilities.node_uuid[1]}};
			FabricStatus status;

			raw_open(&raw, &node.process, node.keyed ? &node.foreign_key : NULL);
			frame_put_hello(&payload, &hello);
			status = raw_call(&raw, CONTROL_HELLO, request, payload.position, NULL, NULL);
			assert_true(status == FABRIC_OK || status == FABRIC_DENIED);
			raw_close(&raw);
		}
	}
	witness_expect(&node.witness, 3);
}

#define KEYED(function) HOSTILE_KEYED(function, &node)
#define OPEN(function) HOSTILE_OPEN(function, &node)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		KEYED(test_keys),
		KEYED(test_lent_tls),
		OPEN(test_key_without_need),
		KEYED(test_replayed_session),
		KEYED(test_truncated_session),
		OPEN(test_truncated_session),
		KEYED(test_oversized_frames),
		OPEN(test_oversized_frames),
		KEYED(test_strange_headers),
		OPEN(test_strange_headers),
		KEYED(test_reordered_frames),
		OPEN(test_reordered_frames),
		KEYED(test_chain_without_channel),
		OPEN(test_chain_without_channel),
		KEYED(test_random_frames),
		OPEN(test_random_frames),
		KEYED(test_forbidden_chains),
		OPEN(test_forbidden_chains),
		KEYED(test_memory_of_nobody),
		OPEN(test_memory_of_nobody),
		KEYED(test_reader),
		OPEN(test_reader),
		KEYED(test_foreign_tenant),
		KEYED(test_foreign_channel),
		OPEN(test_foreign_channel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_handshake.c
 *		Streams against an enemy that speaks TLS: wrong and unknown keys, other versions, certificates in place of keys, floods;
 *		and no memory.
 *
 * Enemies are OpenSSL itself, set up to do what ours never does.
 */
#define _GNU_SOURCE 1
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "support/stream_pair.h"

/* Turns of both ends that no handshake needs. */
#define MANY_TURNS 20
/* What one call may take from the socket at most, with room: a few records. */
#define MOST_TAKEN_AT_ONCE (100u << 10)
#define FLOOD_BYTES (160u << 10)
/* OpenSSL allocates about 1500 times in one exchange: each of so many of them is made to fail. */
#define ALLOCATION_STRIDE 5

/* Of our ends, where the other is OpenSSL's own. */
static StreamContext *our_context;

static int
open_context(void **state)
{
	our_context = stream_context_open();
	assert_non_null(our_context);
	signal(SIGPIPE, SIG_DFL);
	return 0;
}

static int
close_context(void **state)
{
	stream_context_close(our_context);
	return 0;
}

/* ---- An end of OpenSSL's own */

typedef struct RawEnd
{
	SSL_CTX *context;
	SSL *ssl;
	const FabricKey *key; /* NULL: offers none */
	const char *identity; /* in place of the key's own */
	size_t identity_bytes;
	uint32_t early_bytes; /* early data that the session allows */
	int tickets;          /* that were received */
} RawEnd;

static SSL_SESSION *
raw_session(SSL *ssl, const RawEnd *raw)
{
	static const unsigned char suites[2][2] = {{0x13, 0x01}, {0x13, 0x02}};
	SSL_SESSION *session = SSL_SESSION_new();
	const SSL_CIPHER *cipher = NULL;

	/* With the hash of the first suite that this end has at all. */
	for (int i = 1; i >= 0; i--)
	{
		const SSL_CIPHER *one = SSL_CIPHER_find(ssl, suites[i]);

		if (sk_SSL_CIPHER_find(SSL_get_ciphers(ssl), (SSL_CIPHER *) one) >= 0)
			cipher = one;
	}
	assert_true(session != NULL && cipher != NULL);
	assert_int_equal(SSL_SESSION_set1_master_key(session, raw->key->key, FABRIC_KEY_BYTES), 1);
	assert_int_equal(SSL_SESSION_set_cipher(session, cipher), 1);
	assert_int_equal(SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION), 1);
	assert_int_equal(SSL_SESSION_set_max_early_data(session, raw->early_bytes), 1);
	return session;
}

static int
raw_use_session(SSL *ssl, const EVP_MD *digest, const unsigned char **identity, size_t *bytes,
                SSL_SESSION **session)
{
	RawEnd *raw = SSL_get_app_data(ssl);

	*identity = (const unsigned char *) raw->identity;
	*bytes = raw->identity_bytes;
	*session = raw->key == NULL ? NULL : raw_session(ssl, raw);
	return 1;
}

static unsigned
raw_use_psk(SSL *ssl, const char *hint, char *identity, unsigned room, unsigned char *psk, unsigned psk_room)
{
	RawEnd *raw = SSL_get_app_data(ssl);

	if (raw->key == NULL)
		return 0;
	assert_true(raw->identity_bytes < room && psk_room >= FABRIC_KEY_BYTES);
	memcpy(identity, raw->identity, raw->identity_bytes + 1);
	memcpy(psk, raw->key->key, FABRIC_KEY_BYTES);
	return FABRIC_KEY_BYTES;
}

static int
raw_new_session(SSL *ssl, SSL_SESSION *session)
{
	RawEnd *raw = SSL_get_app_data(ssl);

	raw->tickets++;
	return 0;
}

/* Certificate and key of an end that everybody may be. */
static void
give_certificate(SSL_CTX *context)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *certificate = X509_new();
	X509_NAME *name = X509_get_subject_name(certificate);

	assert_non_null(key);
	X509_set_version(certificate, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
	X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
	X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
	X509_set_pubkey(certificate, key);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *) "node", -1, -1, 0);
	X509_set_issuer_name(certificate, name);
	assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
	assert_int_equal(SSL_CTX_use_certificate(context, certificate), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(context, key), 1);
	X509_free(certificate);
	EVP_PKEY_free(key);
}

/* A client that offers `key` with its identity and would talk to anybody; its version is set by the caller. */
static void
raw_prepare(RawEnd *raw, const FabricKey *key, bool client)
{
	memset(raw, 0, sizeof(*raw));
	raw->context = SSL_CTX_new(TLS_method());
	assert_non_null(raw->context);
	raw->key = key;
	if (key != NULL)
	{
		raw->identity = key->identity;
		raw->identity_bytes = strlen(key->identity);
	}
	if (client)
	{
		SSL_CTX_set_psk_use_session_callback(raw->context, raw_use_session);
		SSL_CTX_set_session_cache_mode(raw->context, SSL_SESS_CACHE_CLIENT);
		SSL_CTX_sess_set_new_cb(raw->context, raw_new_session);
	}
}

/* Makes the connection of what was prepared; the descriptor stays the caller's. */
static void
raw_start(RawEnd *raw, int descriptor, bool client)
{
	raw->ssl = SSL_new(raw->context);
	assert_non_null(raw->ssl);
	SSL_set_app_data(raw->ssl, raw);
	SSL_set_fd(raw->ssl, descriptor);
	if (client)
		SSL_set_connect_state(raw->ssl);
	else
		SSL_set_accept_state(raw->ssl);
}

static void
raw_close(RawEnd *raw)
{
	SSL_free(raw->ssl);
	SSL_CTX_free(raw->context);
	ERR_clear_error();
}

/* Both ends in turn; the verdict on ours. *reason is that of the raw end's failure, or 0. */
static StreamStatus
shake_hands(RawEnd *raw, Stream *stream, int *reason)
{
	StreamStatus status = STREAM_WANT_READ;
	bool raw_failed = false;
	char byte;

	*reason = 0;
	for (int turn = 0; turn < MANY_TURNS; turn++)
	{
		ERR_clear_error();
		if (!raw_failed && SSL_do_handshake(raw->ssl) != 1 && ERR_peek_error() != 0)
		{
			raw_failed = true;
			*reason = ERR_GET_REASON(ERR_peek_error());
		}
		else if (SSL_is_init_finished(raw->ssl))
			/* There is nothing to read, but perhaps a ticket. */
			SSL_peek(raw->ssl, &byte, 1);
		ERR_clear_error();
		status = stream_handshake(stream);
	}
	return status;
}

/* A raw client, set up by the caller, against our server, which has the keys of alpha and beta. */
static StreamStatus
raw_client_against_server(RawEnd *raw, int *reason)
{
	PairKeys keys = {.count = 2};
	int ends[2];
	Stream *server;
	StreamStatus status;

	pair_key(&keys.keys[0], "alpha", 1);
	pair_key(&keys.keys[1], "beta", 2);
	pair_sockets(ends);
	raw_start(raw, ends[0], true);
	server = stream_server(ends[1], our_context, pair_find, &keys);
	status = shake_hands(raw, server, reason);
	assert_true(status == STREAM_OK || strlen(stream_detail(server)) > 0);
	/* Whatever the peer calls itself can stand in a log. */
	for (const char *c = stream_detail(server); *c != '\0'; c++)
		assert_true(*c >= ' ' && *c < 0x7f && *c != '%');
	assert_true(status == STREAM_OK || stream_tenant(server) == 0);
	stream_close(server);
	close(ends[0]);
	return status;
}

/* The same of our client with the key of alpha. */
static StreamStatus
raw_server_against_client(RawEnd *raw)
{
	FabricKey key;
	int ends[2];
	int reason;
	Stream *client;
	StreamStatus status;

	pair_key(&key, "alpha", 1);
	pair_sockets(ends);
	raw_start(raw, ends[0], false);
	client = stream_client(ends[1], our_context, &key);
	status = shake_hands(raw, client, &reason);
	stream_close(client);
	close(ends[0]);
	return status;
}

/* ---- Who does not know the key */

static void
test_wrong_key(void **state)
{
	StreamPair pair;
	PairKeys keys = {.count = 1};
	FabricKey wrong;

	pair_key(&keys.keys[0], "alpha", 1);
	for (unsigned bit = 0; bit < 8 * FABRIC_KEY_BYTES; bit += 17)
	{
		/* The identity is right, as if somebody had seen it on the wire. */
		wrong = keys.keys[0];
		wrong.key[bit / 8] ^= (uint8_t) (1u << bit % 8);
		pair_open_keys(&pair, false, &wrong, &keys);
		pair_handshake(&pair);
		/* Nothing of it is left for other users of OpenSSL. */
		assert_true(ERR_peek_error() == 0);
		assert_int_equal(pair.keys.asked, 1);
		assert_int_equal(pair.server_status, STREAM_REFUSED);
		assert_int_equal(pair.client_status, STREAM_REFUSED);
		assert_int_equal(stream_tenant(pair.server), 0);
		assert_non_null(strstr(stream_detail(pair.server), "not proven to be \"alpha/"));
		assert_true(strlen(stream_detail(pair.client)) > 0);
		assert_int_equal(stream_handshake(pair.server), STREAM_REFUSED);
		pair_close(&pair);
	}
}

static void
test_unknown_identity(void **state)
{
	StreamPair pair;
	PairKeys keys = {.count = 1};
	FabricKey unknown;

	pair_key(&keys.keys[0], "alpha", 1);
	pair_key(&unknown, "gamma", 1);
	pair_open_keys(&pair, false, &unknown, &keys);
	pair_handshake(&pair);
	assert_int_equal(pair.server_status, STREAM_REFUSED);
	assert_int_equal(pair.client_status, STREAM_REFUSED);
	assert_non_null(strstr(stream_detail(pair.server), "no key of the identity \"gamma/"));
	pair_close(&pair);
}

static void
test_strange_identities(void **state)
{
	static const struct
	{
		const char *text;
		size_t bytes;
	} strange[] = {
		{"", 0}, {"\0", 1}, {"alpha", 5}, {"alpha/", 6}, {"alpha/%s%n%99999d", 17}, {"alpha\0beta", 10},
	};
	char text[PSK_MAX_IDENTITY_LEN + 1];
	FabricKey key;
	RawEnd raw;
	int reason;

	pair_key(&key, "alpha", 1);
	for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++)
	{
		raw_prepare(&raw, &key, true);
		raw.identity = strange[i].text;
		raw.identity_bytes = strange[i].bytes;
		assert_int_equal(raw_client_against_server(&raw, &reason), STREAM_REFUSED);
		raw_close(&raw);
	}
	/* The right one with a tail, behind a zero and without; longer than any. */
	memset(text, 'x', sizeof(text));
	for (int i = 0; i < 3; i++)
	{
		raw_prepare(&raw, &key, true);
		if (i < 2)
			strcpy(text, key.identity);
		text[strlen(key.identity)] = i == 1 ? 'x' : '\0';
		if (i == 2)
			memset(text, 'x', sizeof(text));
		raw.identity = text;
		raw.identity_bytes = i == 2 ? sizeof(text) - 1 : strlen(key.identity) + 2;
		assert_int_equal(raw_client_against_server(&raw, &reason), STREAM_REFUSED);
		raw_close(&raw);
	}
}

static void
test_no_key(void **state)
{
	RawEnd raw;
	int reason;

	/* Without a key, with a certificate or none. */
	for (int i = 0; i < 2; i++)
	{
		raw_prepare(&raw, NULL, true);
		if (i == 1)
			give_certificate(raw.context);
		assert_int_equal(raw_client_against_server(&raw, &reason), STREAM_REFUSED);
		raw_close(&raw);
	}
}

/* Somebody in the middle who shows a certificate and takes any key, or speaks another version. */
static void
test_server_with_certificate(void **state)
{
	RawEnd raw;

	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++)
	{
		raw_prepare(&raw, NULL, false);
		assert_int_equal(SSL_CTX_set_max_proto_version(raw.context, version), 1);
		give_certificate(raw.context);
		assert_int_equal(raw_server_against_client(&raw), STREAM_REFUSED);
		raw_close(&raw);
	}
}

/* ---- Other ways of TLS, with the right key */

static void
test_right_key_by_another_hand(void **state)
{
	FabricKey key;
	RawEnd raw;
	int reason;

	/* The enemies below fail for what they do, and not for being strange. */
	pair_key(&key, "alpha", 1);
	raw_prepare(&raw, &key, true);
	assert_int_equal(
		SSL_CTX_set_ciphersuites(raw.context, "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256"), 1);
	assert_int_equal(raw_client_against_server(&raw, &reason), STREAM_OK);
	/* It got no ticket by which to come back without the key. */
	assert_int_equal(raw.tickets, 0);
	raw_close(&raw);
}

static void
test_older_versions(void **state)
{
	FabricKey key;
	RawEnd raw;
	int reason;

	pair_key(&key, "alpha", 1);
	for (int version = TLS1_VERSION; version <= TLS1_2_VERSION; version++)
	{
		raw_prepare(&raw, &key, true);
		SSL_CTX_set_security_level(raw.context, 0);
		assert_int_equal(SSL_CTX_set_min_proto_version(raw.context, version), 1);
		assert_int_equal(SSL_CTX_set_max_proto_version(raw.context, version), 1);
		SSL_CTX_set_psk_client_callback(raw.context, raw_use_psk);
		assert_int_equal(SSL_CTX_set_cipher_list(raw.context, "PSK:ECDHEPSK:ALL"), 1);
		assert_int_equal(raw_client_against_server(&raw, &reason), STREAM_REFUSED);
		/* For its version, before anything else is looked at. */
		assert_int_equal(reason, SSL_R_TLSV1_ALERT_PROTOCOL_VERSION);
		raw_close(&raw);
	}
}

static void
test_other_hash(void **state)
{
	FabricKey key;
	RawEnd raw;
	int reason;

	pair_key(&key, "alpha", 1);
	raw_prepare(&raw, &key, true);
	assert_int_equal(SSL_CTX_set_ciphersuites(raw.context, "TLS_AES_256_GCM_SHA384"), 1);
	assert_int_equal(raw_client_against_server(&raw, &reason), STREAM_REFUSED);
	raw_close(&raw);
}

/* A client that would do without Diffie-Hellman: who learns the key later could read what was said. */
static void
test_no_key_exchange(void **state)
{
	FabricKey key;
	RawEnd raw;
	int reason;

	pair_key(&key, "alpha", 1);
	raw_prepare(&raw, &key, true);
	assert_int_equal(SSL_CTX_set_ciphersuites(raw.context, "TLS_AES_128_GCM_SHA256"), 1);
	assert_int_equal(SSL_CTX_set1_groups_list(raw.context, "P-521"), 1);
	SSL_CTX_set_options(raw.context, SSL_OP_ALLOW_NO_DHE_KEX);
	assert_int_equal(raw_client_against_server(&raw, &reason), STREAM_REFUSED);
	raw_close(&raw);
}

/* Early data could be replayed: it is not taken, and what comes after the handshake is. */
static void
test_early_data(void **state)
{
	PairKeys keys = {.count = 1};
	RawEnd raw;
	Stream *server;
	int ends[2];
	int reason;
	size_t done;
	char bytes[16];

	pair_key(&keys.keys[0], "alpha", 1);
	raw_prepare(&raw, &keys.keys[0], true);
	assert_int_equal(SSL_CTX_set_ciphersuites(raw.context, "TLS_AES_128_GCM_SHA256"), 1);
	raw.early_bytes = 1000;
	pair_sockets(ends);
	raw_start(&raw, ends[0], true);
	assert_int_equal(SSL_write_early_data(raw.ssl, "early", 5, &done), 1);
	server = stream_server(ends[1], our_context, pair_find, &keys);
	assert_int_equal(shake_hands(&raw, server, &reason), STREAM_OK);
	assert_int_equal(SSL_get_early_data_status(raw.ssl), SSL_EARLY_DATA_REJECTED);
	assert_int_equal(stream_read(server, bytes, sizeof(bytes), &done), STREAM_WANT_READ);
	assert_int_equal(SSL_write(raw.ssl, "later", 5), 5);
	pair_receive(server, bytes, 5);
	assert_memory_equal(bytes, "later", 5);
	stream_close(server);
	close(ends[0]);
	raw_close(&raw);
}

/* ---- Floods */

/* A client that is authenticated and then says nothing but that keys are to be updated. */
static void
flood(RawEnd *raw, int descriptor, int update)
{
	static uint8_t bytes[FLOOD_BYTES];
	BIO *memory = BIO_new(BIO_s_mem());
	int room = 4 * FLOOD_BYTES;
	int count;

	assert_non_null(memory);
	SSL_set0_wbio(raw->ssl, memory);
	while (BIO_ctrl_pending(memory) < FLOOD_BYTES - 256)
	{
		assert_int_equal(SSL_key_update(raw->ssl, update), 1);
		assert_int_equal(SSL_do_handshake(raw->ssl), 1);
	}
	assert_int_equal(SSL_write(raw->ssl, "at last", 7), 7);
	count = BIO_read(memory, bytes, sizeof(bytes));
	assert_true(count > (int) MOST_TAKEN_AT_ONCE);
	setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	assert_int_equal(send(descriptor, bytes, (size_t) count, MSG_DONTWAIT | MSG_NOSIGNAL), count);
}

static void
test_floods_of_key_updates(void **state)
{
	static const int updates[] = {SSL_KEY_UPDATE_NOT_REQUESTED, SSL_KEY_UPDATE_REQUESTED};

	for (int i = 0; i < 2; i++)
	{
		PairKeys keys = {.count = 1};
		RawEnd raw;
		Stream *server;
		int ends[2];
		int reason;
		int before;
		int after;
		int calls = 0;
		size_t done;
		char bytes[7];
		StreamStatus status = STREAM_WANT_READ;

		pair_key(&keys.keys[0], "alpha", 1);
		raw_prepare(&raw, &keys.keys[0], true);
		assert_int_equal(SSL_CTX_set_ciphersuites(raw.context, "TLS_AES_128_GCM_SHA256"), 1);
		pair_sockets(ends);
		raw_start(&raw, ends[0], true);
		server = stream_server(ends[1], our_context, pair_find, &keys);
		assert_int_equal(shake_hands(&raw, server, &reason), STREAM_OK);
		flood(&raw, ends[0], updates[i]);
		/* One call does a bounded part of it. */
		assert_int_equal(ioctl(ends[1], FIONREAD, &before), 0);
		status = stream_read(server, bytes, sizeof(bytes), &done);
		assert_true(status == STREAM_WANT_READ ||
		            (status == STREAM_WANT_WRITE && updates[i] == SSL_KEY_UPDATE_REQUESTED));
		assert_int_equal(ioctl(ends[1], FIONREAD, &after), 0);
		assert_in_range(before - after, 1, MOST_TAKEN_AT_ONCE);
		/* Nobody takes the answers: the server stops, or comes to the end of it. */
		while (status != STREAM_OK && status != STREAM_WANT_WRITE && calls++ < MANY_TURNS)
			status = stream_read(server, bytes, sizeof(bytes), &done);
		if (status == STREAM_OK)
			assert_memory_equal(bytes, "at last", 7);
		else
			assert_int_equal(status, STREAM_WANT_WRITE);
		stream_close(server);
		close(ends[0]);
		raw_close(&raw);
	}
}

/* ---- No memory */

/* Counts down to the allocation that fails; beyond it none does. */
static int allocations_left;

static bool
allocation_fails(void)
{
	return allocations_left > 0 && --allocations_left == 0;
}

/* All that there were. */
static uint64_t allocations;

static void *
failing_malloc(size_t bytes, const char *file, int line)
{
	allocations++;
	return allocation_fails() ? NULL : malloc(bytes);
}

static void *
failing_realloc(void *memory, size_t bytes, const char *file, int line)
{
	return allocation_fails() ? NULL : realloc(memory, bytes);
}

static void
failing_free(void *memory, const char *file, int line)
{
	free(memory);
}

/* Both ends from their making to a few bytes, as far as it goes; true if it went to the end. */
static bool
exchange(const PairKeys *keys)
{
	StreamPair pair = {.keys = *keys};
	int ends[2];
	char bytes[5];
	size_t done;
	bool whole = false;

	pair.to_client = pair.to_server = -1;
	pair.context = stream_context_open();
	if (pair.context == NULL)
		return false;
	pair_sockets(ends);
	pair.client = stream_client(ends[0], pair.context, &pair.keys.keys[0]);
	pair.server = stream_server(ends[1], pair.context, pair_find, &pair.keys);
	assert_non_null(pair.server);
	if (pair.client != NULL)
	{
		pair_handshake(&pair);
		whole = pair.client_status == STREAM_OK && pair.server_status == STREAM_OK &&
		        stream_write(pair.client, "bytes", 5, &done) == STREAM_OK &&
		        stream_read(pair.server, bytes, 5, &done) == STREAM_OK;
	}
	if (whole)
		assert_memory_equal(bytes, "bytes", 5);
	pair_close(&pair);
	assert_true(ERR_peek_error() == 0);
	return whole;
}

static void
test_no_memory(void **state)
{
	PairKeys keys = {.count = 1};
	int failed = 0;

	pair_key(&keys.keys[0], "alpha", 1);
	assert_true(exchange(&keys));
	for (int number = 1; allocations_left == 0; number += ALLOCATION_STRIDE)
	{
		allocations_left = number;
		failed += !exchange(&keys);
	}
	allocations_left = 0;
	assert_true(failed > 0);
	assert_true(exchange(&keys));
}

/* ---- Half of it */

/* A client that has not yet said all of its first words costs OpenSSL's memory nothing; when they are whole it is served. */
static void
test_half_a_hello(void **state)
{
	uint8_t hello[PAIR_WIRE_BYTES];
	StreamPair pair;
	size_t bytes;

	pair_open(&pair, true);
	assert_int_equal(stream_handshake(pair.client), STREAM_WANT_READ);
	bytes = pair_take(pair.to_client, hello, sizeof(hello));
	assert_in_range(bytes, 100, 1000);
	for (size_t i = 0; i + 1 < bytes; i++)
	{
		uint64_t before = allocations;

		pair_put(pair.to_server, hello + i, 1);
		assert_int_equal(stream_handshake(pair.server), STREAM_WANT_READ);
		assert_int_equal(allocations, before);
	}
	pair_put(pair.to_server, hello + bytes - 1, 1);
	pair_handshake(&pair);
	assert_int_equal(pair.server_status, STREAM_OK);
	assert_int_equal(pair.client_status, STREAM_OK);
	pair_close(&pair);
}

/* Bytes of a hello that nobody of ours says, or that is to be followed by another one: the server does not wait for more. */
static void
test_hello_of_others(void **state)
{
	static const uint8_t longer[] = {SSL3_RT_HANDSHAKE, 3, 1, 4, 0};
	static const uint8_t part[] = {SSL3_RT_HANDSHAKE, 3, 1, 0, 4, SSL3_MT_CLIENT_HELLO, 0, 0, 200};
	StreamPair pair;
	RawEnd raw;
	int ends[2];
	Stream *server;

	for (int i = 0; i < 2; i++)
	{
		pair_open(&pair, true);
		pair_put(pair.to_server, i == 0 ? longer : part, i == 0 ? sizeof(longer) : sizeof(part));
		assert_int_equal(stream_handshake(pair.server), STREAM_REFUSED);
		pair_close(&pair);
	}
	raw_prepare(&raw, NULL, true);
	/* The share that it sends is of the first, which we do not take; it could be asked for one of the second. */
	assert_int_equal(SSL_CTX_set1_groups_list(raw.context, "P-521:X25519"), 1);
	pair_sockets(ends);
	raw_start(&raw, ends[0], true);
	server = stream_server(ends[1], our_context, pair_find, &(PairKeys){0});
	assert_int_equal(SSL_do_handshake(raw.ssl), -1);
	assert_int_equal(stream_handshake(server), STREAM_REFUSED);
	stream_close(server);
	close(ends[0]);
	raw_close(&raw);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, pair_count_leavings, pair_check_leavings)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_wrong_key),
		TEST(test_unknown_identity),
		TEST(test_strange_identities),
		TEST(test_no_key),
		TEST(test_server_with_certificate),
		TEST(test_right_key_by_another_hand),
		TEST(test_older_versions),
		TEST(test_other_hash),
		TEST(test_no_key_exchange),
		TEST(test_early_data),
		TEST(test_floods_of_key_updates),
		TEST(test_no_memory),
		TEST(test_half_a_hello),
		TEST(test_hello_of_others),
	};

	/* Before OpenSSL allocates anything. */
	if (CRYPTO_set_mem_functions(failing_malloc, failing_realloc, failing_free) != 1)
		return 1;
	return cmocka_run_group_tests(tests, open_context, close_context);
}

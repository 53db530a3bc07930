/*
 * stream.c
 *		See stream.h.
 *
 * Nothing is shared with other users of OpenSSL in the process (PostgreSQL is one), and nothing stays behind.
 * OpenSSL reads and writes through a BIO of ours, because its own would raise SIGPIPE.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "rdma/stream/stream.h"

/* Both have SHA-256, to which the key is bound. */
#define CIPHER_SUITES "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"
/* Cheap ones only: a stranger must not choose what our side of a handshake costs. */
#define GROUPS "X25519:P-256"
/*
 * Reads from the socket in one call: a peer that sends nothing but TLS's own messages cannot keep us in it.
 */
#define READS_PER_CALL 4u
/*
 * The longest first record of a client, header included; ours has some 300 bytes.  A server keeps so much of a client that has not yet said
 * all of it, in place of a connection of OpenSSL with a hundred times as much.
 */
#define HELLO_BYTES 1024u
#define RECORD_HEADER_BYTES ((size_t) SSL3_RT_HEADER_LENGTH)

/* What a memory node without keys answers to a handshake; OpenSSL itself has no use for it. */
#define NO_KEYS_ALERT TLS1_AD_ACCESS_DENIED

/* TLS_AES_128_GCM_SHA256, as encoded in a handshake. */
static const unsigned char psk_cipher[2] = {0x13, 0x01};

struct StreamContext
{
	SSL_CTX *tls;
	BIO_METHOD *method;
};

struct Stream
{
	int descriptor;
	SSL *ssl;                             /* NULL: plain, or a server to which nothing was said yet */
	StreamContext *context;               /* NULL: plain */
	SSL_SESSION *psk;                     /* a client's key until the handshake is over */
	uint8_t *hello;                       /* the first record of a server's client, until OpenSSL has it */
	size_t hello_bytes;                   /* that came */
	size_t hello_taken;                   /* of these, by OpenSSL */
	char identity[FABRIC_IDENTITY_BYTES]; /* a server's peer has offered it last; fit to be printed */
	StreamFindKey find;
	void *argument;
	uint32_t tenant;
	bool ready;          /* the handshake is done */
	bool drained;        /* no whole record is left of what was read from the socket */
	bool ended;          /* the socket has shown its end */
	int error;           /* errno of the socket's failure, or 0 */
	StreamStatus broken; /* a failure for good, or STREAM_OK */
	uint32_t reads_left; /* from the socket, in this call */
	char detail[FABRIC_DETAIL_BYTES];
};

static void
set_detail(Stream *stream, const char *doing, const char *what)
{
	snprintf(stream->detail, sizeof(stream->detail), "%s: %.200s", doing, what);
}

static bool
would_wait(int error)
{
	return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

static void
forget_hello(Stream *stream)
{
	free(stream->hello);
	stream->hello = NULL;
}

/* ---- OpenSSL's way to the socket */

/* What was read before OpenSSL was asked. */
static int
hello_read(Stream *stream, char *buffer, size_t bytes)
{
	size_t count = stream->hello_bytes - stream->hello_taken;

	if (count > bytes)
		count = bytes;
	memcpy(buffer, stream->hello + stream->hello_taken, count);
	stream->hello_taken += count;
	if (stream->hello_taken == stream->hello_bytes)
		forget_hello(stream);
	return (int) count;
}

static int
socket_read(BIO *bio, char *buffer, int bytes)
{
	Stream *stream = BIO_get_data(bio);
	ssize_t done = -1;

	BIO_clear_retry_flags(bio);
	if (stream->hello != NULL)
		return hello_read(stream, buffer, (size_t) bytes);
	errno = EAGAIN;
	if (stream->reads_left > 0)
	{
		stream->reads_left--;
		done = recv(stream->descriptor, buffer, (size_t) bytes, MSG_DONTWAIT);
	}
	if (done == 0)
		stream->ended = true;
	else if (done < 0 && would_wait(errno))
		BIO_set_retry_read(bio);
	else if (done < 0)
		stream->error = errno;
	return (int) done;
}

static int
socket_write(BIO *bio, const char *buffer, int bytes)
{
	Stream *stream = BIO_get_data(bio);
	ssize_t done = send(stream->descriptor, buffer, (size_t) bytes, MSG_DONTWAIT | MSG_NOSIGNAL);

	BIO_clear_retry_flags(bio);
	if (done < 0 && would_wait(errno))
		BIO_set_retry_write(bio);
	else if (done < 0)
		stream->error = errno;
	return (int) done;
}

static long
socket_control(BIO *bio, int command, long number, void *pointer)
{
	const Stream *stream = BIO_get_data(bio);

	(void) number;
	(void) pointer;
	if (command == BIO_CTRL_EOF)
		return stream->ended;
	/* Nothing is held back that would have to be flushed. */
	return command == BIO_CTRL_FLUSH;
}

/* ---- The key in OpenSSL's terms */

/* A key takes the form of a session to be resumed; NULL: no memory. */
static SSL_SESSION *
make_session(SSL *ssl, const FabricKey *key)
{
	SSL_SESSION *session = SSL_SESSION_new();
	const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, psk_cipher);

	if (session != NULL && cipher != NULL &&
	    SSL_SESSION_set1_master_key(session, key->key, sizeof(key->key)) == 1 &&
	    SSL_SESSION_set_cipher(session, cipher) == 1 &&
	    SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
		return session;
	SSL_SESSION_free(session);
	return NULL;
}

/* Client: what to offer. OpenSSL owns a reference to the session. */
static int
offer_key(SSL *ssl, const EVP_MD *digest, const unsigned char **identity, size_t *bytes,
          SSL_SESSION **session)
{
	Stream *stream = SSL_get_app_data(ssl);

	/* With a digest, the server has chosen a cipher suite: ours all have the same. */
	(void) digest;
	if (stream->psk == NULL || SSL_SESSION_up_ref(stream->psk) != 1)
		return 0;
	*session = stream->psk;
	*identity = (const unsigned char *) stream->identity;
	*bytes = strlen(stream->identity);
	return 1;
}

/* What a stranger calls itself, as a log may show it. */
static void
remember_identity(Stream *stream, const unsigned char *identity, size_t bytes)
{
	static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./";
	size_t length = bytes < sizeof(stream->identity) ? bytes : sizeof(stream->identity) - 1;

	for (size_t i = 0; i < length; i++)
		stream->identity[i] =
			memchr(harmless, identity[i], sizeof(harmless) - 1) != NULL ? (char) identity[i] : '?';
	stream->identity[length] = '\0';
}

/*
 * Server: the key of an identity that is offered. Without one the handshake fails, as there are no
 * certificates.
 */
static int
find_session(SSL *ssl, const unsigned char *identity, size_t bytes, SSL_SESSION **session)
{
	Stream *stream = SSL_get_app_data(ssl);
	char name[FABRIC_IDENTITY_BYTES];
	FabricKey key;
	int good = 1;

	*session = NULL;
	stream->tenant = 0;
	remember_identity(stream, identity, bytes);
	if (bytes >= sizeof(name) || memchr(identity, '\0', bytes) != NULL)
		return 1;
	memcpy(name, identity, bytes);
	name[bytes] = '\0';
	if (stream->find(stream->argument, name, &key, &stream->tenant))
	{
		*session = make_session(ssl, &key);
		good = *session != NULL;
	}
	explicit_bzero(&key, sizeof(key));
	return good;
}

/* After the handshake: OpenSSL would keep the key as long as the connection, of which it has no more use. */
static void
forget_key(Stream *stream)
{
	static const unsigned char zeroes[FABRIC_KEY_BYTES];
	SSL_SESSION *session = SSL_get_session(stream->ssl);

	if (session != NULL)
		SSL_SESSION_set1_master_key(session, zeroes, sizeof(zeroes));
	SSL_SESSION_free(stream->psk);
	stream->psk = NULL;
}

/* ---- Opening */

/* Frees all but the socket. */
static void
stream_free(Stream *stream)
{
	SSL_SESSION_free(stream->psk);
	SSL_free(stream->ssl);
	forget_hello(stream);
	ERR_clear_error();
	free(stream);
}

static Stream *
stream_make(int descriptor)
{
	Stream *stream = calloc(1, sizeof(Stream));

	if (stream == NULL)
	{
		close(descriptor);
		return NULL;
	}
	stream->descriptor = descriptor;
	stream->drained = true;
	return stream;
}

Stream *
stream_plain(int descriptor)
{
	Stream *stream = stream_make(descriptor);

	if (stream != NULL)
		stream->ready = true;
	return stream;
}

/*
 * What both sides agree on.  The system's configuration of OpenSSL may have set other values: all that we
 * rely on is set here.
 */
static bool
configure(SSL_CTX *tls)
{
	SSL_CTX_clear_options(tls, SSL_OP_ALLOW_NO_DHE_KEX | SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_options(tls, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF | SSL_SESS_CACHE_NO_INTERNAL);
	/* A record is read by one call, and a connection that rests holds no buffers. */
	SSL_CTX_set_read_ahead(tls, 1);
	SSL_CTX_set_mode(tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
	                          SSL_MODE_AUTO_RETRY | SSL_MODE_RELEASE_BUFFERS);
	return SSL_CTX_set_min_proto_version(tls, TLS1_3_VERSION) == 1 &&
	       SSL_CTX_set_max_proto_version(tls, TLS1_3_VERSION) == 1 &&
	       SSL_CTX_set_ciphersuites(tls, CIPHER_SUITES) == 1 && SSL_CTX_set1_groups_list(tls, GROUPS) == 1 &&
	       SSL_CTX_set_num_tickets(tls, 0) == 1 && SSL_CTX_set_max_early_data(tls, 0) == 1;
}

void
stream_prepare(void)
{
	(void) OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
	ERR_clear_error();
}

StreamContext *
stream_context_open(void)
{
	StreamContext *context = calloc(1, sizeof(StreamContext));

	if (context == NULL)
		return NULL;
	ERR_clear_error();
	context->tls = SSL_CTX_new(TLS_method());
	context->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "sherman stream");
	if (context->tls == NULL || context->method == NULL || !configure(context->tls) ||
	    BIO_meth_set_read(context->method, socket_read) != 1 ||
	    BIO_meth_set_write(context->method, socket_write) != 1 ||
	    BIO_meth_set_ctrl(context->method, socket_control) != 1)
	{
		stream_context_close(context);
		return NULL;
	}
	ERR_clear_error();
	return context;
}

void
stream_context_close(StreamContext *context)
{
	if (context == NULL)
		return;
	SSL_CTX_free(context->tls);
	BIO_meth_free(context->method);
	free(context);
	ERR_clear_error();
}

/* Gives the stream its TLS connection; false: no memory. */
static bool
start_tls(Stream *stream)
{
	BIO *bio;

	stream->ssl = SSL_new(stream->context->tls);
	if (stream->ssl == NULL || SSL_set_app_data(stream->ssl, stream) != 1)
		return false;
	bio = BIO_new(stream->context->method);
	if (bio == NULL)
		return false;
	BIO_set_data(bio, stream);
	BIO_set_init(bio, 1);
	SSL_set_bio(stream->ssl, bio, bio);
	return true;
}

Stream *
stream_client(int descriptor, StreamContext *context, const FabricKey *key)
{
	Stream *stream = stream_make(descriptor);

	if (stream == NULL)
		return NULL;
	stream->context = context;
	ERR_clear_error();
	if (start_tls(stream))
		stream->psk = make_session(stream->ssl, key);
	ERR_clear_error();
	if (stream->psk == NULL)
	{
		close(descriptor);
		stream_free(stream);
		return NULL;
	}
	memcpy(stream->identity, key->identity, sizeof(stream->identity));
	/* It takes no certificate in place of the key: there is none that it trusts. */
	SSL_set_verify(stream->ssl, SSL_VERIFY_PEER, NULL);
	SSL_set_psk_use_session_callback(stream->ssl, offer_key);
	SSL_set_connect_state(stream->ssl);
	return stream;
}

Stream *
stream_server(int descriptor, StreamContext *context, StreamFindKey find, void *argument)
{
	Stream *stream = stream_make(descriptor);

	if (stream == NULL)
		return NULL;
	stream->context = context;
	stream->find = find;
	stream->argument = argument;
	return stream;
}

bool
stream_is_hello(const void *bytes, size_t count)
{
	const uint8_t *record = bytes;

	return count >= 2 && record[0] == SSL3_RT_HANDSHAKE && record[1] == SSL3_VERSION_MAJOR;
}

void
stream_refuse_hello(Stream *stream)
{
	static const uint8_t alert[] = {SSL3_RT_ALERT, SSL3_VERSION_MAJOR, 3, 0, 2, SSL3_AL_FATAL, NO_KEYS_ALERT};

	(void) send(stream->descriptor, alert, sizeof(alert), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* ---- Moving bytes */

static StreamStatus
fail(Stream *stream, StreamStatus status, const char *doing, const char *what)
{
	set_detail(stream, doing, what);
	stream->broken = status;
	return status;
}

/* What a call of the socket that did not succeed means: `done` is 0 at its end, else errno counts. */
static StreamStatus
socket_status(Stream *stream, ssize_t done, StreamStatus want, const char *doing)
{
	if (done < 0 && would_wait(errno))
		return want;
	return fail(stream, STREAM_CLOSED, doing, done == 0 ? "closed by the peer" : strerror(errno));
}

/*
 * Before a call of OpenSSL: its verdict on the call stands in the queue of errors, which must be empty then.
 */
static void
prepare(Stream *stream)
{
	ERR_clear_error();
	stream->reads_left = READS_PER_CALL;
}

/* The handshake failed: OpenSSL's reason, and whose it was. */
static StreamStatus
refuse(Stream *stream, int code, const char *reason)
{
	char text[FABRIC_IDENTITY_BYTES + 100];

	if (stream->find == NULL && code == SSL_AD_REASON_OFFSET + NO_KEYS_ALERT)
		snprintf(text, sizeof(text), "it has no keys, and serves those who show none");
	else if (stream->find == NULL)
		/* Codes of this kind say what the other side has sent. */
		snprintf(text, sizeof(text), "%s (%.60s)",
		         code > SSL_AD_REASON_OFFSET ? "it does not know our key"
		                                     : "it does not prove to know our key",
		         reason);
	else if (stream->identity[0] == '\0')
		snprintf(text, sizeof(text), "no key was offered (%.60s)", reason);
	else
		snprintf(text, sizeof(text), "%s \"%s\" (%.60s)",
		         stream->tenant == 0 ? "no key of the identity" : "not proven to be", stream->identity,
		         reason);
	return fail(stream, STREAM_REFUSED, "TLS handshake", text);
}

/* What a call of OpenSSL that did not succeed means. */
static StreamStatus
tls_status(Stream *stream, int result, const char *doing)
{
	int verdict = SSL_get_error(stream->ssl, result);
	unsigned long reason = ERR_peek_error();
	const char *text = ERR_reason_error_string(reason);
	StreamStatus status;

	if (text == NULL)
		text = "TLS failed";
	if (verdict == SSL_ERROR_WANT_READ)
		status = STREAM_WANT_READ;
	else if (verdict == SSL_ERROR_WANT_WRITE)
		status = STREAM_WANT_WRITE;
	else if (verdict == SSL_ERROR_ZERO_RETURN || stream->ended)
		status = fail(stream, STREAM_CLOSED, doing, "closed by the peer");
	else if (stream->error != 0)
		status = fail(stream, STREAM_CLOSED, doing, strerror(stream->error));
	else if (ERR_GET_REASON(reason) == ERR_R_MALLOC_FAILURE)
		status = fail(stream, STREAM_NO_MEMORY, doing, "no memory");
	else if (stream->ready)
		status = fail(stream, STREAM_CLOSED, doing, text);
	else
		status = refuse(stream, ERR_GET_REASON(reason), text);
	ERR_clear_error();
	return status;
}

/* Takes more of the client's first record, up to `wanted` bytes of it. */
static StreamStatus
hear_until(Stream *stream, size_t wanted)
{
	while (stream->hello_bytes < wanted)
	{
		ssize_t done = recv(stream->descriptor, stream->hello + stream->hello_bytes,
		                    wanted - stream->hello_bytes, MSG_DONTWAIT);

		if (done <= 0)
			return socket_status(stream, done, STREAM_WANT_READ, "TLS handshake");
		stream->hello_bytes += (size_t) done;
	}
	return STREAM_OK;
}

/*
 * Waits for the client's whole first record, so that a client that sends nothing, or only a part of it, takes next to
 * no memory.
 */
static StreamStatus
hear_hello(Stream *stream)
{
	StreamStatus status;
	size_t whole;
	uint8_t first;

	if (stream->hello == NULL)
	{
		ssize_t done = recv(stream->descriptor, &first, 1, MSG_DONTWAIT | MSG_PEEK);

		if (done != 1)
			return socket_status(stream, done, STREAM_WANT_READ, "TLS handshake");
		if (first != SSL3_RT_HANDSHAKE)
			return fail(stream, STREAM_REFUSED, "TLS handshake", "the peer does not speak TLS");
		stream->hello = malloc(HELLO_BYTES);
		if (stream->hello == NULL)
			return fail(stream, STREAM_NO_MEMORY, "TLS handshake", "no memory");
	}
	status = hear_until(stream, RECORD_HEADER_BYTES);
	if (status != STREAM_OK)
		return status;
	whole = RECORD_HEADER_BYTES + ((size_t) stream->hello[3] << 8) + stream->hello[4];
	if (whole > HELLO_BYTES)
		return fail(stream, STREAM_REFUSED, "TLS handshake",
		            "the peer begins with more than any client of ours");
	return hear_until(stream, whole);
}

/* A server's stream, when OpenSSL is asked. */
static StreamStatus
start_server(Stream *stream)
{
	StreamStatus status = hear_hello(stream);

	if (status != STREAM_OK)
		return status;
	ERR_clear_error();
	if (!start_tls(stream))
	{
		ERR_clear_error();
		return fail(stream, STREAM_NO_MEMORY, "TLS handshake", "no memory");
	}
	/* Its peer has no certificate to show. */
	SSL_set_verify(stream->ssl, SSL_VERIFY_NONE, NULL);
	SSL_set_psk_find_session_callback(stream->ssl, find_session);
	SSL_set_accept_state(stream->ssl);
	return STREAM_OK;
}

StreamStatus
stream_handshake(Stream *stream)
{
	StreamStatus status = STREAM_OK;
	int result;

	if (stream->ready || stream->broken != STREAM_OK)
		return stream->broken;
	if (stream->ssl == NULL)
		status = start_server(stream);
	if (status != STREAM_OK)
		return status;
	prepare(stream);
	result = SSL_do_handshake(stream->ssl);
	if (result != 1)
		status = tls_status(stream, result, "TLS handshake");
	/* A hello in several parts, or one that wants to be asked for another: nothing is kept for it. */
	if (status == STREAM_WANT_READ && stream->find != NULL && stream->tenant == 0)
		return fail(stream, STREAM_REFUSED, "TLS handshake", "no key was offered in the first words");
	if (status != STREAM_OK)
		return status;
	ERR_clear_error();
	forget_key(stream);
	/* The peer is who it says by the key alone. */
	if (SSL_session_reused(stream->ssl) != 1)
		return fail(stream, STREAM_REFUSED, "TLS handshake", "without the pre-shared key");
	stream->ready = true;
	stream->drained = false;
	return STREAM_OK;
}

/* Whether it can be read and written: its handshake has ended, and nothing has failed since. */
static StreamStatus
carries_bytes(const Stream *stream)
{
	if (stream->broken != STREAM_OK)
		return stream->broken;
	return stream->ready ? STREAM_OK : STREAM_REFUSED;
}

StreamStatus
stream_read(Stream *stream, void *buffer, size_t bytes, size_t *done)
{
	StreamStatus status = carries_bytes(stream);
	ssize_t count;
	int result;

	*done = 0;
	if (status != STREAM_OK)
		return status;
	if (stream->context == NULL)
	{
		count = recv(stream->descriptor, buffer, bytes, MSG_DONTWAIT);
		if (count <= 0)
			return socket_status(stream, count, STREAM_WANT_READ, "read");
		*done = (size_t) count;
		return STREAM_OK;
	}
	prepare(stream);
	result = SSL_read_ex(stream->ssl, buffer, bytes, done);
	stream->drained = result != 1;
	return result == 1 ? STREAM_OK : tls_status(stream, result, "read");
}

StreamStatus
stream_write(Stream *stream, const void *buffer, size_t bytes, size_t *done)
{
	StreamStatus status = carries_bytes(stream);
	ssize_t count;
	int result;

	*done = 0;
	if (status != STREAM_OK)
		return status;
	if (stream->context == NULL)
	{
		count = send(stream->descriptor, buffer, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (count <= 0)
			return socket_status(stream, count, STREAM_WANT_WRITE, "write");
		*done = (size_t) count;
		return STREAM_OK;
	}
	prepare(stream);
	result = SSL_write_ex(stream->ssl, buffer, bytes, done);
	return result == 1 ? STREAM_OK : tls_status(stream, result, "write");
}

bool
stream_pending(const Stream *stream)
{
	return stream->context != NULL && stream->ready && !stream->drained && SSL_has_pending(stream->ssl) == 1;
}

int
stream_descriptor(const Stream *stream)
{
	return stream->descriptor;
}

uint32_t
stream_tenant(const Stream *stream)
{
	return stream->ready ? stream->tenant : 0;
}

const char *
stream_detail(const Stream *stream)
{
	return stream->detail;
}

void
stream_close(Stream *stream)
{
	if (stream == NULL)
		return;
	if (stream->context != NULL && stream->ready && stream->broken == STREAM_OK)
	{
		prepare(stream);
		SSL_shutdown(stream->ssl);
	}
	close(stream->descriptor);
	stream_free(stream);
}

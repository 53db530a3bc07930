/*
 * initialized.c
 *		What clang's memory sanitizer has to know of the functions that it cannot look into, and the look at each reply.
 *
 * Linked into every program with SANITIZE=memory, which wraps these functions in the code that it is linked with (test/Makefile).
 * What the memory node or a client sends over a plain socket the sanitizer looks at itself, in send() and sendmsg(); what goes into TLS
 * is looked at here.  A reply's place counts as unset until somebody has written there, whatever an earlier reply has left.
 */
#include <sanitizer/msan_interface.h>
#include <stdlib.h>

#include <openssl/evp.h>
#include <openssl/ssl.h>

#include "rdma/server/server_state.h"

/*
 * Memory of libraries counts as set, as they are not compiled for the sanitizer; our own is poisoned below.  What a library has on its
 * stack still has the marks of our functions that were there before: comparisons there say nothing.
 */
extern const char *__msan_default_options(void);

const char *
__msan_default_options(void)
{
	return "poison_in_malloc=0:poison_in_free=0:intercept_strcmp=0:intercept_memcmp=0:intercept_strlen=0";
}

extern void *__real_malloc(size_t bytes);
extern void *__wrap_malloc(size_t bytes);

void *
__wrap_malloc(size_t bytes)
{
	void *memory = __real_malloc(bytes);

	if (memory != NULL)
		__msan_poison(memory, bytes);
	return memory;
}

extern int __real_EVP_Digest(const void *data, size_t count, unsigned char *hash, unsigned int *bytes,
                             const EVP_MD *type, ENGINE *engine);
extern int __wrap_EVP_Digest(const void *data, size_t count, unsigned char *hash, unsigned int *bytes,
                             const EVP_MD *type, ENGINE *engine);

int
__wrap_EVP_Digest(const void *data, size_t count, unsigned char *hash, unsigned int *bytes,
                  const EVP_MD *type, ENGINE *engine)
{
	__msan_unpoison(hash, (size_t) EVP_MD_get_size(type));
	return __real_EVP_Digest(data, count, hash, bytes, type, engine);
}

extern int __real_SSL_read_ex(SSL *ssl, void *buffer, size_t bytes, size_t *done);
extern int __wrap_SSL_read_ex(SSL *ssl, void *buffer, size_t bytes, size_t *done);

int
__wrap_SSL_read_ex(SSL *ssl, void *buffer, size_t bytes, size_t *done)
{
	int result = __real_SSL_read_ex(ssl, buffer, bytes, done);

	__msan_unpoison(done, sizeof(*done));
	if (result == 1)
		__msan_unpoison(buffer, *done);
	return result;
}

extern int __real_SSL_write_ex(SSL *ssl, const void *buffer, size_t bytes, size_t *done);
extern int __wrap_SSL_write_ex(SSL *ssl, const void *buffer, size_t bytes, size_t *done);

int
__wrap_SSL_write_ex(SSL *ssl, const void *buffer, size_t bytes, size_t *done)
{
	__msan_check_mem_is_initialized(buffer, bytes);
	__msan_unpoison(done, sizeof(*done));
	return __real_SSL_write_ex(ssl, buffer, bytes, done);
}

extern uint8_t *__real_connection_reply_place(FabricServer *server, ServerConnection *connection,
                                              uint32_t bytes);
extern uint8_t *__wrap_connection_reply_place(FabricServer *server, ServerConnection *connection,
                                              uint32_t bytes);

uint8_t *
__wrap_connection_reply_place(FabricServer *server, ServerConnection *connection, uint32_t bytes)
{
	uint8_t *place = __real_connection_reply_place(server, connection, bytes);

	if (place != NULL)
		__msan_poison(place, (bytes + FRAME_ALIGNMENT - 1) / FRAME_ALIGNMENT * FRAME_ALIGNMENT);
	return place;
}

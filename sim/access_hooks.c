/*
 * access_hooks.c
 *		What code calls that was compiled with -fsanitize=thread and linked without that sanitizer: it tells of its
 *		accesses (accesses.h), and atomics are done here.
 *
 * Linked with --wrap for memcpy(), memmove(), memset() and memcmp(), whose accesses no compiler tells of.  Of atomics each
 * that is not a load counts as one that may change the word.
 */
#include <string.h>

#include "accesses.h"

/* Declared here, as they are nobody else's to call. */
#define TELLS_OF(name, access)                                                                               \
	extern void __tsan_##name(void *address);                                                                \
	void __tsan_##name(void *address)                                                                        \
	{                                                                                                        \
		accesses_##access;                                                                                   \
	}

#define TELLS_OF_BYTES(bytes)                                                                                \
	TELLS_OF(read##bytes, read(address, bytes))                                                              \
	TELLS_OF(write##bytes, write(address, bytes))                                                            \
	TELLS_OF(unaligned_read##bytes, read(address, bytes))                                                    \
	TELLS_OF(unaligned_write##bytes, write(address, bytes))                                                  \
	TELLS_OF(volatile_read##bytes, read(address, bytes))                                                     \
	TELLS_OF(volatile_write##bytes, write(address, bytes))                                                   \
	TELLS_OF(read_write##bytes, write(address, bytes))                                                       \
	TELLS_OF(unaligned_read_write##bytes, write(address, bytes))

TELLS_OF_BYTES(1)
TELLS_OF_BYTES(2)
TELLS_OF_BYTES(4)
TELLS_OF_BYTES(8)
TELLS_OF_BYTES(16)

extern void __tsan_init(void);
extern void __tsan_read_range(void *address, size_t bytes);
extern void __tsan_write_range(void *address, size_t bytes);
extern void __tsan_atomic_thread_fence(int order);
extern void __tsan_func_entry(void *caller);
extern void __tsan_func_exit(void);

void
__tsan_init(void)
{
	accesses_report();
}

void
__tsan_func_entry(void *caller)
{
	(void) caller;
}

void
__tsan_func_exit(void)
{
}

void
__tsan_read_range(void *address, size_t bytes)
{
	accesses_read(address, bytes);
}

void
__tsan_write_range(void *address, size_t bytes)
{
	accesses_write(address, bytes);
}

void
__tsan_atomic_thread_fence(int order)
{
	(void) order;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* ---- atomics ---- */

#define CHANGES(bits, name, builtin)                                                                         \
	extern uint##bits##_t __tsan_atomic##bits##_##name(uint##bits##_t *word, uint##bits##_t value,           \
	                                                   int order);                                           \
	uint##bits##_t __tsan_atomic##bits##_##name(uint##bits##_t *word, uint##bits##_t value, int order)       \
	{                                                                                                        \
		(void) order;                                                                                        \
		accesses_write(word, sizeof(*word));                                                                 \
		return __atomic_##builtin(word, value, __ATOMIC_SEQ_CST);                                            \
	}

#define SWAPS(bits, name, weak)                                                                              \
	extern int __tsan_atomic##bits##_compare_exchange_##name(uint##bits##_t *word, uint##bits##_t *expected, \
	                                                         uint##bits##_t value, int order, int failed);   \
	int __tsan_atomic##bits##_compare_exchange_##name(uint##bits##_t *word, uint##bits##_t *expected,        \
	                                                  uint##bits##_t value, int order, int failed)           \
	{                                                                                                        \
		(void) order;                                                                                        \
		(void) failed;                                                                                       \
		accesses_write(word, sizeof(*word));                                                                 \
		return __atomic_compare_exchange_n(word, expected, value, weak, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
	}

#define ATOMICS(bits)                                                                                        \
	extern uint##bits##_t __tsan_atomic##bits##_load(const uint##bits##_t *word, int order);                 \
	uint##bits##_t __tsan_atomic##bits##_load(const uint##bits##_t *word, int order)                         \
	{                                                                                                        \
		(void) order;                                                                                        \
		accesses_read(word, sizeof(*word));                                                                  \
		return __atomic_load_n(word, __ATOMIC_SEQ_CST);                                                      \
	}                                                                                                        \
	extern void __tsan_atomic##bits##_store(uint##bits##_t *word, uint##bits##_t value, int order);          \
	void __tsan_atomic##bits##_store(uint##bits##_t *word, uint##bits##_t value, int order)                  \
	{                                                                                                        \
		(void) order;                                                                                        \
		accesses_write(word, sizeof(*word));                                                                 \
		__atomic_store_n(word, value, __ATOMIC_SEQ_CST);                                                     \
	}                                                                                                        \
	extern uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(                                        \
		uint##bits##_t *word, uint##bits##_t expected, uint##bits##_t value, int order, int failed);         \
	uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(uint##bits##_t *word, uint##bits##_t expected, \
	                                                          uint##bits##_t value, int order, int failed)   \
	{                                                                                                        \
		(void) __tsan_atomic##bits##_compare_exchange_strong(word, &expected, value, order, failed);         \
		return expected;                                                                                     \
	}                                                                                                        \
	CHANGES(bits, exchange, exchange_n)                                                                      \
	CHANGES(bits, fetch_add, fetch_add)                                                                      \
	CHANGES(bits, fetch_sub, fetch_sub)                                                                      \
	CHANGES(bits, fetch_and, fetch_and)                                                                      \
	CHANGES(bits, fetch_or, fetch_or)                                                                        \
	CHANGES(bits, fetch_xor, fetch_xor)

SWAPS(8, strong, false)
SWAPS(16, strong, false)
SWAPS(32, strong, false)
SWAPS(64, strong, false)
SWAPS(8, weak, false)
SWAPS(16, weak, false)
SWAPS(32, weak, false)
SWAPS(64, weak, false)
ATOMICS(8)
ATOMICS(16)
ATOMICS(32)
ATOMICS(64)

/* ---- functions of the system ---- */

extern void *__real_memcpy(void *to, const void *from, size_t bytes);
extern void *__real_memmove(void *to, const void *from, size_t bytes);
extern void *__real_memset(void *to, int byte, size_t bytes);
extern int __real_memcmp(const void *a, const void *b, size_t bytes);
extern void *__wrap_memcpy(void *to, const void *from, size_t bytes);
extern void *__wrap_memmove(void *to, const void *from, size_t bytes);
extern void *__wrap_memset(void *to, int byte, size_t bytes);
extern int __wrap_memcmp(const void *a, const void *b, size_t bytes);

void *
__wrap_memcpy(void *to, const void *from, size_t bytes)
{
	accesses_read(from, bytes);
	accesses_write(to, bytes);
	return __real_memcpy(to, from, bytes);
}

void *
__wrap_memmove(void *to, const void *from, size_t bytes)
{
	accesses_read(from, bytes);
	accesses_write(to, bytes);
	return __real_memmove(to, from, bytes);
}

void *
__wrap_memset(void *to, int byte, size_t bytes)
{
	accesses_write(to, bytes);
	return __real_memset(to, byte, bytes);
}

int
__wrap_memcmp(const void *a, const void *b, size_t bytes)
{
	accesses_read(a, bytes);
	accesses_read(b, bytes);
	return __real_memcmp(a, b, bytes);
}

/*
 * test_access_hooks.c
 *		sim/access_hooks.c: each function that compiled code calls tells of the bytes that it is about, and atomics are done.
 */
#include <string.h>

#include "support/testing.h"
#include "../sim/accesses.h"

#define WORDS 8

/* What the compiler calls. */
extern void __tsan_read1(void *address);
extern void __tsan_read8(void *address);
extern void __tsan_read16(void *address);
extern void __tsan_unaligned_read4(void *address);
extern void __tsan_write2(void *address);
extern void __tsan_write16(void *address);
extern void __tsan_unaligned_write8(void *address);
extern void __tsan_read_range(void *address, size_t bytes);
extern void __tsan_write_range(void *address, size_t bytes);
extern uint64_t __tsan_atomic64_load(const uint64_t *word, int order);
extern void __tsan_atomic64_store(uint64_t *word, uint64_t value, int order);
extern uint64_t __tsan_atomic64_exchange(uint64_t *word, uint64_t value, int order);
extern uint64_t __tsan_atomic64_fetch_add(uint64_t *word, uint64_t value, int order);
extern uint64_t __tsan_atomic64_fetch_sub(uint64_t *word, uint64_t value, int order);
extern uint64_t __tsan_atomic64_fetch_and(uint64_t *word, uint64_t value, int order);
extern uint64_t __tsan_atomic64_fetch_or(uint64_t *word, uint64_t value, int order);
extern uint64_t __tsan_atomic64_fetch_xor(uint64_t *word, uint64_t value, int order);
extern int __tsan_atomic64_compare_exchange_strong(uint64_t *word, uint64_t *expected, uint64_t value,
                                                   int order, int failed);
extern uint64_t __tsan_atomic64_compare_exchange_val(uint64_t *word, uint64_t expected, uint64_t value,
                                                     int order, int failed);

static uint64_t words[WORDS];
/* Bits of the words that the step has read, and changed. */
static uint32_t read_words;
static uint32_t changed_words;

static int
begin(void **state)
{
	memset(words, 0, sizeof(words));
	accesses_of(words, sizeof(words));
	accesses_begin();
	return 0;
}

static void
note(uint64_t from, uint64_t to, ExplorerMode mode)
{
	for (; from < to; from += sizeof(uint64_t))
		*(mode == EXPLORER_READ ? &read_words : &changed_words) |=
			1u << (from - (uintptr_t) words) / sizeof(uint64_t);
}

static void
assert_reported(uint32_t is_read, uint32_t is_changed)
{
	read_words = changed_words = 0;
	assert_true(accesses_end(note));
	assert_int_equal(read_words, is_read);
	assert_int_equal(changed_words, is_changed);
	accesses_begin();
}

static void
test_reads(void **state)
{
	uint8_t *bytes = (uint8_t *) words;

	__tsan_read1(&bytes[15]);
	assert_reported(2, 0);
	__tsan_read8(&words[3]);
	assert_reported(8, 0);
	__tsan_read16(&words[2]);
	assert_reported(12, 0);
	__tsan_unaligned_read4(&bytes[6]);
	assert_reported(3, 0);
	__tsan_read_range(&words[1], 3 * sizeof(uint64_t));
	assert_reported(14, 0);
	/* Of none of these words. */
	__tsan_read8(&words[WORDS]);
	assert_reported(0, 0);
}

static void
test_writes(void **state)
{
	uint8_t *bytes = (uint8_t *) words;

	__tsan_write2(&bytes[8]);
	bytes[8] = 1;
	assert_reported(0, 2);
	__tsan_write16(&words[4]);
	words[5] = 1;
	assert_reported(16, 32);
	__tsan_unaligned_write8(&bytes[4]);
	memset(&bytes[4], 7, 8);
	assert_reported(0, 3);
	__tsan_write_range(words, sizeof(words));
	words[7] = 1;
	assert_reported(127, 128);
}

static void
test_atomics(void **state)
{
	uint64_t expected = 1;

	assert_int_equal(__tsan_atomic64_load(&words[0], __ATOMIC_RELAXED), 0);
	assert_reported(1, 0);
	__tsan_atomic64_store(&words[0], 6, __ATOMIC_RELEASE);
	assert_reported(0, 1);
	assert_int_equal(__tsan_atomic64_exchange(&words[0], 7, __ATOMIC_RELAXED), 6);
	assert_reported(0, 1);
	assert_int_equal(__tsan_atomic64_fetch_add(&words[0], 2, __ATOMIC_RELAXED), 7);
	assert_reported(0, 1);
	assert_int_equal(__tsan_atomic64_fetch_sub(&words[0], 1, __ATOMIC_RELAXED), 9);
	assert_reported(0, 1);
	assert_int_equal(__tsan_atomic64_fetch_and(&words[0], 0xc, __ATOMIC_RELAXED), 8);
	assert_reported(1, 0);
	assert_int_equal(__tsan_atomic64_fetch_or(&words[0], 1, __ATOMIC_RELAXED), 8);
	assert_reported(0, 1);
	assert_int_equal(__tsan_atomic64_fetch_xor(&words[0], 3, __ATOMIC_RELAXED), 9);
	assert_reported(0, 1);
	/* It fails: nothing is changed. */
	assert_int_equal(
		__tsan_atomic64_compare_exchange_strong(&words[0], &expected, 5, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED),
		0);
	assert_int_equal(expected, 10);
	assert_reported(1, 0);
	assert_int_equal(
		__tsan_atomic64_compare_exchange_val(&words[0], 10, 5, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED), 10);
	assert_reported(0, 1);
	assert_int_equal(words[0], 5);
}

/* Their length is not known to the compiler, which would do them itself. */
static void
test_functions_of_the_system(void **state)
{
	volatile size_t bytes = 2 * sizeof(uint64_t);

	words[4] = 1;
	memcpy(&words[0], &words[4], bytes);
	assert_reported(32 + 16 + 2, 1);
	memmove(&words[1], &words[0], bytes);
	assert_reported(1 + 4, 2);
	memset(&words[6], 1, bytes);
	assert_reported(0, 64 + 128);
	assert_true(memcmp(&words[6], &words[5], bytes) > 0);
	assert_reported(32 + 64 + 128, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_reads, begin),
		cmocka_unit_test_setup(test_writes, begin),
		cmocka_unit_test_setup(test_atomics, begin),
		cmocka_unit_test_setup(test_functions_of_the_system, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

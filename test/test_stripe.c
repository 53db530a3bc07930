/*
 * test_stripe.c
 *		The striped seqlock by threads on one mapping, so that ThreadSanitizer sees readers and writers meet.
 */
#include <pthread.h>
#include <string.h>

#include "support/testing.h"
#include "rdma/memory/stripe.h"

#define WORDS 64u
#define WRITERS 2
#define READERS 2
#define ROUNDS 20000u

static uint64_t stripe;
static uint64_t shared[WORDS];
static uint64_t plain; /* not atomic: the stripe alone keeps writers apart */

static void *
write_rounds(void *argument)
{
	uint32_t owner = *(uint32_t *) argument;
	uint64_t words[WORDS];

	for (uint32_t i = 0; i < ROUNDS; i++)
	{
		uint64_t odd;

		for (uint32_t word = 0; word < WORDS; word++)
			words[word] = (uint64_t) owner << 32 | i;
		while (!stripe_try_take(&stripe, owner, &odd))
			;
		plain++;
		stripe_copy_in(shared, words, WORDS, 0);
		stripe_release(&stripe, odd);
	}
	return NULL;
}

/* Returns how many READs mixed two WRITEs. */
static void *
read_rounds(void *argument)
{
	uint64_t *torn = argument;
	uint64_t words[WORDS];

	for (uint32_t i = 0; i < ROUNDS; i++)
	{
		while (!stripe_try_read(&stripe, shared, words, WORDS))
			;
		for (uint32_t word = 1; word < WORDS; word++)
			*torn += words[word] != words[0];
	}
	return NULL;
}

static void
test_readers_and_writers(void **state)
{
	pthread_t threads[WRITERS + READERS];
	uint32_t owners[WRITERS] = {1, 65534};
	uint64_t torn[READERS] = {0};

	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_rounds, &owners[i]), 0);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&threads[WRITERS + i], NULL, read_rounds, &torn[i]), 0);
	for (int i = 0; i < WRITERS + READERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(torn[i], 0);
	assert_int_equal(plain, WRITERS * ROUNDS);
	assert_int_equal(stripe, 2ull * WRITERS * ROUNDS);
}

static void
test_words(void **state)
{
	uint64_t source[WORDS];
	uint64_t target[WORDS + 2];
	uint64_t word = 0;
	uint64_t odd = 0;

	for (uint32_t i = 0; i < WORDS; i++)
		source[i] = i + 1;
	/* Every length and every place to stop, and nothing beside. */
	for (uint32_t count = 1; count <= WORDS; count++)
	{
		for (uint32_t first = 0; first <= count; first++)
		{
			memset(target, 0, sizeof(target));
			stripe_copy_in(target + 1, source, count, first);
			for (uint32_t i = 0; i < WORDS + 2; i++)
				assert_true(target[i] == (i > first && i <= count ? i : 0));
		}
		memset(target, 0, sizeof(target));
		stripe_copy_out(target + 1, source, count);
		for (uint32_t i = 0; i < WORDS + 2; i++)
			assert_true(target[i] == (i > 0 && i <= count ? i : 0));
	}
	/* The owner stands in the word while it is odd, and leaves no trace; the count wraps inside its bits. */
	word = MEMORY_STRIPE_COUNT_MASK - 1;
	assert_true(stripe_try_take(&word, 0xabcd, &odd));
	assert_true(stripe_is_odd(word) && stripe_owner(word) == 0xabcd && word == odd);
	assert_false(stripe_try_take(&word, 1, &odd));
	assert_false(stripe_try_read(&word, source, target, 1));
	stripe_release(&word, odd);
	assert_true(word == 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_readers_and_writers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * stripe.h
 *		The striped 64-bit seqlock that makes each shm operation atomic.  Private to rdma/.
 *
 * Why it is right under C11: the writer's data stores are release stores that follow the swap which made the
 * stripe odd; the reader's data loads are acquire loads that precede its second look.  A reader that took any
 * word of a WRITE therefore sees the stripe changed.  No fences, so that ThreadSanitizer understands it; on
 * x86 these are plain moves.
 *
 * A WRITE stores its words from the last to the first, so that after the writer's death the first word shows whether
 * all the others were stored.
 */
#ifndef SHERMAN_STRIPE_H
#define SHERMAN_STRIPE_H

#include "rdma/memory/memory.h"

static inline bool
stripe_is_odd(uint64_t word)
{
	return (word & 1) != 0;
}

static inline uint32_t
stripe_owner(uint64_t word)
{
	return (uint32_t) (word >> MEMORY_STRIPE_OWNER_SHIFT);
}

static inline uint64_t
stripe_next_even(uint64_t odd)
{
	return ((odd & MEMORY_STRIPE_COUNT_MASK) + 1) & MEMORY_STRIPE_COUNT_MASK;
}

static inline void
stripe_copy_out(uint64_t *target, const uint64_t *source, uint32_t words)
{
	uint32_t i = 0;

	for (; i + 8 <= words; i += 8)
	{
		target[i] = __atomic_load_n(&source[i], __ATOMIC_ACQUIRE);
		target[i + 1] = __atomic_load_n(&source[i + 1], __ATOMIC_ACQUIRE);
		target[i + 2] = __atomic_load_n(&source[i + 2], __ATOMIC_ACQUIRE);
		target[i + 3] = __atomic_load_n(&source[i + 3], __ATOMIC_ACQUIRE);
		target[i + 4] = __atomic_load_n(&source[i + 4], __ATOMIC_ACQUIRE);
		target[i + 5] = __atomic_load_n(&source[i + 5], __ATOMIC_ACQUIRE);
		target[i + 6] = __atomic_load_n(&source[i + 6], __ATOMIC_ACQUIRE);
		target[i + 7] = __atomic_load_n(&source[i + 7], __ATOMIC_ACQUIRE);
	}
	for (; i < words; i++)
		target[i] = __atomic_load_n(&source[i], __ATOMIC_ACQUIRE);
}

/* Stores source[first .. words) from the last word to the first. */
static inline void
stripe_copy_in(uint64_t *target, const uint64_t *source, uint32_t words, uint32_t first)
{
	uint32_t i = words;

	for (; i >= first + 8; i -= 8)
	{
		__atomic_store_n(&target[i - 1], source[i - 1], __ATOMIC_RELEASE);
		__atomic_store_n(&target[i - 2], source[i - 2], __ATOMIC_RELEASE);
		__atomic_store_n(&target[i - 3], source[i - 3], __ATOMIC_RELEASE);
		__atomic_store_n(&target[i - 4], source[i - 4], __ATOMIC_RELEASE);
		__atomic_store_n(&target[i - 5], source[i - 5], __ATOMIC_RELEASE);
		__atomic_store_n(&target[i - 6], source[i - 6], __ATOMIC_RELEASE);
		__atomic_store_n(&target[i - 7], source[i - 7], __ATOMIC_RELEASE);
		__atomic_store_n(&target[i - 8], source[i - 8], __ATOMIC_RELEASE);
	}
	for (; i > first; i--)
		__atomic_store_n(&target[i - 1], source[i - 1], __ATOMIC_RELEASE);
}

/* One attempt at an atomic READ: false if a WRITE is or was in the way. */
static inline bool
stripe_try_read(const uint64_t *stripe, const uint64_t *source, uint64_t *target, uint32_t words)
{
	uint64_t before = __atomic_load_n(stripe, __ATOMIC_ACQUIRE);

	if (stripe_is_odd(before))
		return false;
	stripe_copy_out(target, source, words);
	return __atomic_load_n(stripe, __ATOMIC_RELAXED) == before;
}

/*
 * One attempt at taking the stripe for `owner`: false if another has it. *odd is what stripe_release()
 * needs.
 */
static inline bool
stripe_try_take(uint64_t *stripe, uint32_t owner, uint64_t *odd)
{
	uint64_t before = __atomic_load_n(stripe, __ATOMIC_RELAXED);

	if (stripe_is_odd(before))
		return false;
	*odd = ((uint64_t) owner << MEMORY_STRIPE_OWNER_SHIFT) | (before + 1);
	return __atomic_compare_exchange_n(stripe, &before, *odd, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static inline void
stripe_release(uint64_t *stripe, uint64_t odd)
{
	__atomic_store_n(stripe, stripe_next_even(odd), __ATOMIC_RELEASE);
}

#endif /* SHERMAN_STRIPE_H */

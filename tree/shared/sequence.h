/*
 * sequence.h
 *		Frames in shared memory that are read without waiting: each has a 64-bit sequence, which is odd while the
 *		frame is being filled.
 *
 * A reader uses what it read if the sequence is even and unchanged; until then the bytes may be anything. A process
 * that is killed while it fills a frame leaves the sequence odd, and the frame unused from then on.
 */
#ifndef SHERMAN_TREE_SEQUENCE_H
#define SHERMAN_TREE_SEQUENCE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Gcc's thread sanitizer warns that it does not follow fences; the words that they order here are atomic, so it
 * reports no races.
 */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#pragma GCC diagnostic ignored "-Wtsan"
#endif

static inline uint64_t
sequence_begin_read(const uint64_t *sequence)
{
	return __atomic_load_n(sequence, __ATOMIC_ACQUIRE);
}

/* Whether all that was read since sequence_begin_read() was of one filling. */
static inline bool
sequence_end_read(const uint64_t *sequence, uint64_t begun)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return (begun & 1) == 0 && __atomic_load_n(sequence, __ATOMIC_RELAXED) == begun;
}

/* Claims the frame for filling. False: another process has; the caller does not wait. */
static inline bool
sequence_claim(uint64_t *sequence, uint64_t begun)
{
	if ((begun & 1) != 0 ||
	    !__atomic_compare_exchange_n(sequence, &begun, begun + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return false;
	__atomic_thread_fence(__ATOMIC_RELEASE);
	return true;
}

static inline void
sequence_release(uint64_t *sequence)
{
	assert((__atomic_load_n(sequence, __ATOMIC_RELAXED) & 1) == 1);
	__atomic_fetch_add(sequence, 1, __ATOMIC_RELEASE);
}

/* A word of a frame, which may change at any time. */
static inline uint64_t
word_load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline void
word_store(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

/* Copies `bytes` of a frame into private memory: they may be anything before sequence_end_read(). */
static inline void
words_load(uint64_t *copy, const uint64_t *words, uint32_t bytes)
{
	assert(bytes % 8 == 0);
	for (uint32_t word = 0; word < bytes / 8; word++)
		copy[word] = word_load(&words[word]);
}

/* Copies private memory into a frame that this process has claimed. */
static inline void
words_store(uint64_t *words, const uint64_t *from, uint32_t bytes)
{
	assert(bytes % 8 == 0);
	for (uint32_t word = 0; word < bytes / 8; word++)
		word_store(&words[word], from[word]);
}

#endif /* SHERMAN_TREE_SEQUENCE_H */

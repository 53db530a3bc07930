/*
 * swap_test.h
 *		Does a device do a MASKED_SWAP as the contract has it?  One chain tells.  Private to rdma/.
 *
 * A device that claims to have it may do something else all the same: compare or change the whole word, take the bytes in another
 * order, refuse, or not answer.  So it is used only where this chain, on three words that nobody else uses, brought what the
 * memory should hold, each step's old word and the words at the end.  What it does not show: that it is atomic against others.
 */
#ifndef SHERMAN_SWAP_TEST_H
#define SHERMAN_SWAP_TEST_H

#include "fabric.h"

/* The word in the middle is swapped, its neighbors stay. */
#define SWAP_TEST_WORDS 3u
#define SWAP_TEST_BYTES (SWAP_TEST_WORDS * 8u)
/* WRITE; three operations for each lane, two of a lane that is free, one of the whole word; READ. */
#define SWAP_TEST_OPS (1 + 3 * FABRIC_LANES + 3 + 1)

_Static_assert(SWAP_TEST_OPS <= FABRIC_MAX_CHAIN, "one chain");

typedef struct SwapTest
{
	FabricOp ops[SWAP_TEST_OPS];
	uint64_t before[SWAP_TEST_OPS]; /* what each atomic should find */
	uint64_t written[SWAP_TEST_WORDS];
	uint64_t expected[SWAP_TEST_WORDS];
	uint64_t found[SWAP_TEST_WORDS];
	FabricOp clean; /* a chain of its own, after the test: makes the words 0 */
	uint64_t zeroes[SWAP_TEST_WORDS];
} SwapTest;

/* Fills in the chain, `ops`, for the words at the offset in NODES. */
extern void swap_test_prepare(SwapTest *test, uint64_t offset);

/* After the chain ended well: NULL, or what was wrong, a constant text. */
extern const char *swap_test_judge(const SwapTest *test);

#endif /* SHERMAN_SWAP_TEST_H */

/*
 * swap_test.c
 *		See swap_test.h.
 */
#include <string.h>

#include "swap_test.h"

/* No two bytes of it are equal, nor two of what the lanes become: bytes in another order are other words. */
#define FIRST_WORD 0x0123456789abcdefull
#define LEFT_WORD 0x1122334455667788ull
#define RIGHT_WORD 0x99aabbccddeeff10ull
#define LAST_WORD 0xfedcba9876543211ull
static const uint16_t new_lanes[FABRIC_LANES] = {0x1f2e, 0x3d4c, 0x5b6a, 0x7988};

static uint64_t
lane_of(uint64_t word, uint32_t lane)
{
	return word >> lane * FABRIC_LANE_BITS & FABRIC_LANE_MAX;
}

/* Adds an atomic to the chain; *word is what it should find, and then what it should leave. */
static void
add_atomic(SwapTest *test, int *count, FabricOp op, uint64_t *word)
{
	uint32_t shift = op.lane * FABRIC_LANE_BITS;

	op.region = FABRIC_NODES;
	op.length = sizeof(uint64_t);
	op.offset = test->ops[0].offset + sizeof(uint64_t);
	test->before[*count] = *word;
	test->ops[(*count)++] = op;
	if (op.opcode == FABRIC_FETCH_ADD)
		*word += op.operand;
	else if (op.opcode == FABRIC_COMPARE_SWAP && *word == op.compare)
		*word = op.operand;
	else if (op.opcode == FABRIC_MASKED_SWAP && lane_of(*word, op.lane) == op.compare)
		*word = (*word & ~((uint64_t) FABRIC_LANE_MAX << shift)) | op.operand << shift;
}

static void
add_masked(SwapTest *test, int *count, uint32_t lane, uint64_t compare, uint64_t operand, uint64_t *word)
{
	add_atomic(
		test, count,
		(FabricOp){
			.opcode = FABRIC_MASKED_SWAP, .lane = (uint8_t) lane, .compare = compare, .operand = operand},
		word);
}

void
swap_test_prepare(SwapTest *test, uint64_t offset)
{
	uint64_t word = FIRST_WORD;
	int count = 1;

	memset(test, 0, sizeof(*test));
	memcpy(test->written, (uint64_t[]){LEFT_WORD, FIRST_WORD, RIGHT_WORD}, SWAP_TEST_BYTES);
	test->ops[0] = (FabricOp){
		.opcode = FABRIC_WRITE, .offset = offset, .length = SWAP_TEST_BYTES, .buffer = test->written};
	for (uint32_t lane = 0; lane < FABRIC_LANES; lane++)
	{
		uint64_t old = lane_of(word, lane);

		/* It matches; it does not, though the rest of the word is as it was; and a neighbor changes. */
		add_masked(test, &count, lane, old, new_lanes[lane], &word);
		add_masked(test, &count, lane, old, 0, &word);
		add_atomic(test, &count,
		           (FabricOp){.opcode = FABRIC_FETCH_ADD,
		                      .operand = 1ull << (lane + 1) % FABRIC_LANES * FABRIC_LANE_BITS},
		           &word);
	}
	/* A lane becomes free, and is taken: 0 is a value like others. */
	add_masked(test, &count, 1, lane_of(word, 1), 0, &word);
	add_masked(test, &count, 1, 0, new_lanes[0], &word);
	add_atomic(test, &count, (FabricOp){.opcode = FABRIC_COMPARE_SWAP, .compare = word, .operand = LAST_WORD},
	           &word);
	test->ops[count] =
		(FabricOp){.opcode = FABRIC_READ, .offset = offset, .length = SWAP_TEST_BYTES, .buffer = test->found};
	memcpy(test->expected, (uint64_t[]){LEFT_WORD, word, RIGHT_WORD}, SWAP_TEST_BYTES);
	test->clean = (FabricOp){
		.opcode = FABRIC_WRITE, .offset = offset, .length = SWAP_TEST_BYTES, .buffer = test->zeroes};
}

const char *
swap_test_judge(const SwapTest *test)
{
	for (size_t i = 1; i + 1 < SWAP_TEST_OPS; i++)
	{
		if (test->ops[i].result != test->before[i])
			return "the device swaps other bits than it is told to";
	}
	if (memcmp(test->found, test->expected, SWAP_TEST_BYTES) != 0)
		return "the device changes other memory than it is told to";
	return NULL;
}

/*
 * lock_word.c
 *		Lock words of memory nodes: which one guards a node, and operations on it.
 */
#include "tree/lock/lock_handle.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint32_t
lock_word_of(const TreeClient *client, uint32_t memory_node, uint64_t pointer)
{
	const LockTable *table = client->shared->locks;
	uint32_t words = access_capabilities(client, memory_node)->lock_words;

	if (words > table->options.lock_words)
		words = table->options.lock_words;
	assert(words > 0 && (words & (words - 1)) == 0);
	return (uint32_t) XXH3_64bits(&(uint64_t){pointer_offset(pointer)}, sizeof(uint64_t)) & (words - 1);
}

FabricOp
word_op(FabricOpcode opcode, uint32_t index, uint64_t compare, uint64_t operand)
{
	FabricOp op;

	memset(&op, 0, sizeof(op));
	op.opcode = (uint8_t) opcode;
	op.region = FABRIC_LOCKS;
	op.length = 8;
	op.offset = (uint64_t) index * 8;
	op.compare = compare;
	op.operand = operand;
	return op;
}

/*
 * chain.h
 *		Checks of chains by the contract of fabric.h, and the encoding of a chain in a frame. Private to rdma/.
 *
 * A request is the number of operations (4 bytes), 4 bytes of zero, and the operations: a word {opcode (1),
 * region (1), zero (2), length (4)}, the offset (8); then COMPARE_SWAP has compare and operand, FETCH_ADD has
 * operand, WRITE its bytes.  The frame's request id is the ticket.
 *
 * A reply is the status as of any reply and, if that is FABRIC_OK, in the order of the operations the bytes
 * of each READ and the word of each atomic.  Everything is a multiple of 8 bytes.
 */
#ifndef SHERMAN_CHAIN_H
#define SHERMAN_CHAIN_H

#include "rdma/fabric.h"

#define CHAIN_HEAD_BYTES 8u
#define CHAIN_OPERATION_BYTES 16u
/* The longest request: WRITEs of whole stripes. A reply is never longer. */
#define CHAIN_MAX_BYTES (CHAIN_HEAD_BYTES + FABRIC_MAX_CHAIN * (CHAIN_OPERATION_BYTES + FABRIC_STRIPE_BYTES))

static inline bool
chain_is_atomic(const FabricOp *op)
{
	return op->opcode != FABRIC_READ && op->opcode != FABRIC_WRITE;
}

/*
 * Checks one operation against the contract, its buffer excepted; *atomic_seen says whether an atomic came
 * before it.
 */
static inline FabricStatus
chain_check(const uint64_t region_bytes[2], const FabricOp *op, bool *atomic_seen)
{
	bool atomic = chain_is_atomic(op);
	uint64_t limit;

	if (op->opcode > FABRIC_FETCH_ADD || op->region > FABRIC_LOCKS)
		return FABRIC_PROTOCOL;
	if (op->opcode == FABRIC_WRITE && (*atomic_seen || op->region == FABRIC_LOCKS))
		return FABRIC_PROTOCOL;
	if (((op->offset | op->length) & 7) != 0 || op->length == 0 || op->length > FABRIC_STRIPE_BYTES)
		return FABRIC_RANGE;
	if ((op->region == FABRIC_LOCKS || atomic) && op->length != 8)
		return FABRIC_RANGE;
	limit = region_bytes[op->region];
	if (op->offset >= limit || op->length > limit - op->offset)
		return FABRIC_RANGE;
	if ((op->offset & (FABRIC_STRIPE_BYTES - 1)) + op->length > FABRIC_STRIPE_BYTES)
		return FABRIC_RANGE;
	*atomic_seen |= atomic;
	return FABRIC_OK;
}

/* May a reader post it?  Of chains that keep the contract. */
static inline bool
chain_is_readers(const FabricOp *ops, int count)
{
	for (int i = 0; i < count; i++)
	{
		if (ops[i].opcode != FABRIC_READ || ops[i].region != FABRIC_NODES)
			return false;
	}
	return true;
}

/* Bytes of the request's payload. */
extern uint32_t chain_request_bytes(const FabricOp *ops, int count);
/* Bytes of the reply's payload behind the status, if the chain is successful. */
extern uint32_t chain_reply_bytes(const FabricOp *ops, int count);

/* Writes the request: chain_request_bytes() at `payload`, which is 8-aligned. */
extern void chain_encode(const FabricOp *ops, int count, uint8_t *payload);

/*
 * Takes a request apart: fills `ops` (room for FABRIC_MAX_CHAIN) and *count.  The buffers of WRITEs point
 * into the payload, which is 8-aligned; those of READs are left NULL.  FABRIC_PROTOCOL: not a request, or a
 * chain that the contract forbids; FABRIC_RANGE as the contract has it.
 */
extern FabricStatus chain_decode(uint8_t *payload, uint32_t bytes, const uint64_t region_bytes[2],
                                 FabricOp *ops, int *count);

/* Gives the READs their places in a reply, which is 8-aligned; and later the atomics their results there. */
extern void chain_place_reads(FabricOp *ops, int count, uint8_t *reply);
extern void chain_put_results(const FabricOp *ops, int count, uint8_t *reply);

/* Takes a reply apart: into the buffers of the READs, and the results of the atomics. */
extern void chain_take_reply(FabricOp *ops, int count, const uint8_t *reply);

#endif /* SHERMAN_CHAIN_H */

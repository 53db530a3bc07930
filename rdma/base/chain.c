/*
 * chain.c
 *		See chain.h.
 */
#define _GNU_SOURCE 1
#include <string.h>

#include "rdma/base/chain.h"
#include "rdma/base/wire.h"

/* Bytes that follow the operation's first two words in a request. */
static inline uint32_t
argument_bytes(const FabricOp *op)
{
	switch (op->opcode)
	{
		case FABRIC_WRITE:
			return op->length;
		case FABRIC_COMPARE_SWAP:
			return 16;
		case FABRIC_FETCH_ADD:
			return 8;
		default:
			return 0;
	}
}

/* Bytes of the operation in a reply. */
static inline uint32_t
result_bytes(const FabricOp *op)
{
	return op->opcode == FABRIC_WRITE ? 0 : op->length;
}

uint32_t
chain_request_bytes(const FabricOp *ops, int count)
{
	uint32_t bytes = CHAIN_HEAD_BYTES;

	for (int i = 0; i < count; i++)
		bytes += CHAIN_OPERATION_BYTES + argument_bytes(&ops[i]);
	return bytes;
}

uint32_t
chain_reply_bytes(const FabricOp *ops, int count)
{
	uint32_t bytes = 0;

	for (int i = 0; i < count; i++)
		bytes += result_bytes(&ops[i]);
	return bytes;
}

void
chain_encode(const FabricOp *ops, int count, uint8_t *payload)
{
	wire_put64(payload, (uint64_t) (uint32_t) count);
	payload += CHAIN_HEAD_BYTES;
	for (int i = 0; i < count; i++)
	{
		const FabricOp *op = &ops[i];

		wire_put64(payload, op->opcode | (uint64_t) op->region << 8 | (uint64_t) op->length << 32);
		wire_put64(payload + 8, op->offset);
		payload += CHAIN_OPERATION_BYTES;
		if (op->opcode == FABRIC_WRITE)
			memcpy(payload, op->buffer, op->length);
		else if (op->opcode == FABRIC_COMPARE_SWAP)
		{
			wire_put64(payload, op->compare);
			wire_put64(payload + 8, op->operand);
		}
		else if (op->opcode == FABRIC_FETCH_ADD)
			wire_put64(payload, op->operand);
		payload += argument_bytes(op);
	}
}

/*
 * Takes the operation at `place`, of which `bytes` are left; returns how many it has, or 0: not an
 * operation.
 */
static uint32_t
decode_operation(uint8_t *place, uint32_t bytes, FabricOp *op)
{
	uint64_t head;

	if (bytes < CHAIN_OPERATION_BYTES)
		return 0;
	head = wire_get64(place);
	op->opcode = (uint8_t) head;
	op->region = (uint8_t) (head >> 8);
	op->length = (uint32_t) (head >> 32);
	op->offset = wire_get64(place + 8);
	op->buffer = NULL;
	if ((head >> 16 & 0xffff) != 0 || bytes - CHAIN_OPERATION_BYTES < argument_bytes(op))
		return 0;
	place += CHAIN_OPERATION_BYTES;
	if (op->opcode == FABRIC_WRITE)
		op->buffer = place;
	else if (op->opcode == FABRIC_COMPARE_SWAP)
	{
		op->compare = wire_get64(place);
		op->operand = wire_get64(place + 8);
	}
	else if (op->opcode == FABRIC_FETCH_ADD)
		op->operand = wire_get64(place);
	return CHAIN_OPERATION_BYTES + argument_bytes(op);
}

FabricStatus
chain_decode(uint8_t *payload, uint32_t bytes, const uint64_t region_bytes[2], FabricOp *ops, int *count)
{
	bool atomic_seen = false;
	uint64_t head;

	if (bytes < CHAIN_HEAD_BYTES)
		return FABRIC_PROTOCOL;
	head = wire_get64(payload);
	if (head < 1 || head > FABRIC_MAX_CHAIN)
		return FABRIC_PROTOCOL;
	*count = (int) head;
	payload += CHAIN_HEAD_BYTES;
	bytes -= CHAIN_HEAD_BYTES;
	for (int i = 0; i < *count; i++)
	{
		uint32_t taken = decode_operation(payload, bytes, &ops[i]);
		FabricStatus status = taken == 0 ? FABRIC_PROTOCOL : chain_check(region_bytes, &ops[i], &atomic_seen);

		if (status != FABRIC_OK)
			return status;
		payload += taken;
		bytes -= taken;
	}
	return bytes == 0 ? FABRIC_OK : FABRIC_PROTOCOL;
}

void
chain_place_reads(FabricOp *ops, int count, uint8_t *reply)
{
	for (int i = 0; i < count; i++)
	{
		if (ops[i].opcode == FABRIC_READ)
			ops[i].buffer = reply;
		reply += result_bytes(&ops[i]);
	}
}

void
chain_put_results(const FabricOp *ops, int count, uint8_t *reply)
{
	for (int i = 0; i < count; i++)
	{
		if (chain_is_atomic(&ops[i]))
			wire_put64(reply, ops[i].result);
		reply += result_bytes(&ops[i]);
	}
}

void
chain_take_reply(FabricOp *ops, int count, const uint8_t *reply)
{
	for (int i = 0; i < count; i++)
	{
		if (ops[i].opcode == FABRIC_READ)
			memcpy(ops[i].buffer, reply, ops[i].length);
		else if (chain_is_atomic(&ops[i]))
			ops[i].result = wire_get64(reply);
		reply += result_bytes(&ops[i]);
	}
}

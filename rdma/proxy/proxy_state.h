/*
 * proxy_state.h
 *		The area that clients and connection workers share.  Private to rdma/.
 *
 * A slot belongs to one endpoint of one client at a time, and is served by one worker:
 *
 *		FREE --client: slot_take--> TAKEN --client: disconnect, or its end--> CLOSING --worker: slot_free--> FREE
 *
 * A place of a slot's ring holds one request:
 *
 *		EMPTY --client: place_post--> POSTED --worker: place_done--> DONE --client: place_reap--> EMPTY
 *
 * The owner of a state may write what the state guards: the client an EMPTY or DONE place and its piece of the room,
 * the worker a POSTED one.  A client that stops waiting leaves its place POSTED; the worker, which writes into the
 * room only, never into the client's memory, finishes it in its own time.  So a slot becomes FREE only when the
 * worker has no request of it left, and what arrives late meets no new owner.
 *
 * The two sides access two words in opposite orders, and therefore sequentially consistent: the side that posts sets
 * the doorbell and then reads whether the other one sleeps; the side that goes to sleep notes it and then reads the
 * doorbell (a client: its place).
 */
#ifndef SHERMAN_PROXY_STATE_H
#define SHERMAN_PROXY_STATE_H

#include "rdma/proxy.h"
#include "rdma/base/spin.h"
#include "rdma/base/transport.h"

#define PROXY_MAGIC 0x70726f7879617265ull

/* Requests of one slot at most: a power of two.  One is kept for PROXY_ESTABLISH. */
#define PROXY_PLACES 8u

/*
 * Room for the data of a slot's requests: a chain of 8 leaves read ahead, or 10 KB of redo image and nodes with every
 * other part of a split, as a whole.  Longer chains go in parts.
 */
#define PROXY_ROOM_BYTES 40960u

/* Pieces of the room are aligned to this. */
#define PROXY_ALIGN 64u

/* Endpoints of one worker: as many as a server has memory nodes (32), twice while the incarnation changes. */
#define PROXY_LINKS 64u

/* Of a memory node's address, with the closing zero. */
#define PROXY_ADDRESS_BYTES 256u

/* Sleeps are cut into slices up to this, to look for the other side's death and the wait hook's wish. */
#define PROXY_SLICE_MS 50

typedef enum ProxyKind
{
	PROXY_ESTABLISH, /* make sure that the slot's endpoint is there and nothing of the slot is under way */
	PROXY_CHAIN,
	PROXY_CALL,
	PROXY_ATTACH
} ProxyKind;

typedef enum ProxyPlaceState
{
	PROXY_EMPTY,
	PROXY_POSTED,
	PROXY_DONE
} ProxyPlaceState;

typedef enum ProxySlotState
{
	PROXY_FREE,
	PROXY_TAKEN,
	PROXY_CLOSING
} ProxySlotState;

/* An operation in the room: the READs' and WRITEs' data follow the chain's last operation, in order. */
typedef struct ProxyOp
{
	uint8_t opcode;
	uint8_t region;
	uint16_t reserved;
	uint32_t length;
	uint64_t offset;
	uint64_t compare;
	uint64_t operand;
	uint64_t result;
} ProxyOp;

_Static_assert(sizeof(ProxyOp) == 40, "packed by hand");

typedef struct ProxyPlace
{
	uint32_t state; /* ProxyPlaceState */
	uint32_t kind;
	uint64_t position; /* counts the slot's requests */
	uint64_t epoch;    /* PROXY_CHAIN, PROXY_CALL: of the endpoint that the client means */
	uint32_t start;    /* of its piece of the room */
	uint32_t bytes;    /* of the request in it */
	uint32_t count;    /* PROXY_CHAIN: operations; PROXY_CALL: the method */
	uint32_t room;     /* PROXY_CALL: for the reply, UINT32_MAX: none is expected */
	uint32_t answer;   /* bytes of the reply */
	uint32_t draining; /* the memory node is about to stop */
	uint32_t status;   /* FabricStatus */
	uint64_t asked;    /* PROXY_ESTABLISH: when it was posted, as fabric_now() */
	char detail[FABRIC_DETAIL_BYTES];
} ProxyPlace;

/* What PROXY_ESTABLISH answers. */
typedef struct ProxyAnswer
{
	FabricCapabilities capabilities;
	uint64_t epoch;
	uint64_t life; /* of the worker that answered */
} ProxyAnswer;

typedef struct ProxySlot
{
	uint32_t sleeping; /* the client wants to be woken */
	uint32_t reserved;
	uint64_t taken; /* position that the worker takes next; survives it */
	/* The client's wish, for PROXY_ESTABLISH. */
	char address[PROXY_ADDRESS_BYTES];
	uint64_t cluster[2];
	uint32_t incarnation;
	ProxyAnswer answer;
	ProxyPlace places[PROXY_PLACES];
	uint8_t room[PROXY_ROOM_BYTES] __attribute__((aligned(PROXY_ALIGN)));
} ProxySlot;

/*
 * The record of a worker's endpoint, which outlives the worker: the channel that its successor has to kill before its
 * chains are determinate. Written before the first chain goes over the channel.
 */
typedef struct ProxyRecord
{
	uint32_t used;
	uint32_t incarnation;
	uint64_t cluster[2];
	FabricChannel channel; /* serial 0: nothing of it can land */
	char address[PROXY_ADDRESS_BYTES];
} ProxyRecord;

typedef struct ProxyWorkerState
{
	uint64_t life;     /* count of lives << 1 | 1 while it serves */
	uint32_t sleeping; /* it wants to be woken */
	uint32_t sweep_wanted;
	uint32_t sweeps; /* follows sweep_wanted */
	uint32_t endpoints;
	uint64_t epochs; /* counts connects and resets: one number for each use of each channel */
	uint64_t chains;
	uint64_t operations;
	uint64_t calls;
	uint64_t resets;
	uint64_t lost;
	uint64_t sleeps;
	ProxyRecord records[PROXY_LINKS];
} __attribute__((aligned(128))) ProxyWorkerState;

struct FabricProxyArea
{
	uint64_t magic;
	uint32_t workers;
	uint32_t slots;
	uint64_t workers_offset;
	uint64_t doorbells_offset;
	uint64_t states_offset;
	uint64_t slots_offset;
};

/*
 * A slot's state word: its state, its owner, and a serial that is different for each use. The words lie together, as
 * a client that connects examines all of them.
 */
#define PROXY_STATE_BITS 2
#define PROXY_WORKER_BITS 6
#define PROXY_SERIAL_SHIFT 40

static inline uint64_t
proxy_slot_word(uint64_t serial, uint32_t owner, uint32_t worker, ProxySlotState state)
{
	return serial << PROXY_SERIAL_SHIFT | (uint64_t) owner << (PROXY_STATE_BITS + PROXY_WORKER_BITS) |
	       (uint64_t) worker << PROXY_STATE_BITS | (uint64_t) state;
}

static inline ProxySlotState
proxy_slot_state(uint64_t word)
{
	return (ProxySlotState) (word & ((1u << PROXY_STATE_BITS) - 1));
}

static inline uint32_t
proxy_slot_worker(uint64_t word)
{
	return (uint32_t) (word >> PROXY_STATE_BITS) & ((1u << PROXY_WORKER_BITS) - 1);
}

static inline uint32_t
proxy_slot_owner(uint64_t word)
{
	return (uint32_t) (word >> (PROXY_STATE_BITS + PROXY_WORKER_BITS));
}

static inline uint64_t
proxy_slot_serial(uint64_t word)
{
	return word >> PROXY_SERIAL_SHIFT;
}

_Static_assert(PROXY_STATE_BITS + PROXY_WORKER_BITS + 32 == PROXY_SERIAL_SHIFT, "a state word's parts");
_Static_assert(FABRIC_PROXY_MAX_WORKERS <= 1u << PROXY_WORKER_BITS, "a worker's number fits");

static inline ProxyWorkerState *
proxy_worker(FabricProxyArea *area, uint32_t worker)
{
	return (ProxyWorkerState *) (void *) ((char *) area + area->workers_offset) + worker;
}

static inline uint64_t *
proxy_state_word(FabricProxyArea *area, uint32_t slot)
{
	return (uint64_t *) (void *) ((char *) area + area->states_offset) + slot;
}

static inline ProxySlot *
proxy_slot(FabricProxyArea *area, uint32_t slot)
{
	return (ProxySlot *) (void *) ((char *) area + area->slots_offset) + slot;
}

/* Words of a worker's doorbell: a bit for each slot, set when there may be something to do for it. */
static inline uint32_t
proxy_doorbell_words(uint32_t slots)
{
	return (slots + 63) / 64;
}

/* The doorbell of a worker, on lines of its own. */
static inline uint64_t *
proxy_doorbell(FabricProxyArea *area, uint32_t worker)
{
	uint32_t words = (proxy_doorbell_words(area->slots) + 15) / 16 * 16;

	return (uint64_t *) (void *) ((char *) area + area->doorbells_offset) + (size_t) worker * words;
}

static inline bool
proxy_life_serves(uint64_t life)
{
	return (life & 1) != 0;
}

static inline bool
proxy_touches_redo(const FabricOp *op, const FabricCapabilities *capabilities)
{
	return op->region == FABRIC_NODES && op->opcode != FABRIC_READ &&
	       op->offset - capabilities->redo_offset < FABRIC_REDO_BYTES;
}

#endif /* SHERMAN_PROXY_STATE_H */

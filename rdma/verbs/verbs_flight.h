/*
 * verbs_flight.h
 *		Chains in flight on one queue pair: the client's data path of the verbs transport.  Private to rdma/.
 *
 * It knows the queue pair, the arena that data pass through, and the chains; it never waits and knows no connection: verbs.c
 * does and does.
 */
#ifndef SHERMAN_VERBS_FLIGHT_H
#define SHERMAN_VERBS_FLIGHT_H

#include "rdma/verbs/verbs.h"

/* Chains posted and not yet waited for; a power of two. */
#define VERBS_CHAINS 16u

/* Work requests in flight: of all chains, and what a small device has. */
#define VERBS_QUEUE_DEPTH (VERBS_CHAINS * FABRIC_MAX_CHAIN)

/* Four of the largest chains, or many small ones; well below the usual limit of locked memory, 8 MB. */
#define VERBS_ARENA_BYTES (512u * 1024u)

typedef struct VerbsChain
{
	uint64_t ticket; /* fabric.c's; 0 = it is awaited by its number */
	bool used;       /* posted and not yet waited for */
	bool done;       /* completed, or given up with the queue */
	FabricStatus status;
	FabricOp *ops;
	int count;
	uint32_t start; /* of its data in the arena */
	uint32_t taken; /* bytes of the arena, with what was skipped at its end */
	uint64_t last;  /* number of its last request */
	VerbsRequest requests[FABRIC_MAX_CHAIN];
} VerbsChain;

typedef struct VerbsFlight
{
	const VerbsDriver *driver;
	VerbsQueue *queue;     /* NULL: there is none */
	uint8_t *arena;        /* registered */
	uint32_t arena_bytes;  /* its length: one of the largest chains fits */
	VerbsMemoryKeys keys;  /* of the arena */
	VerbsGrant grant;      /* what the memory node gave */
	FabricStatus broken;   /* what became of the queue; FABRIC_OK: it works */
	bool device_fences;    /* the device keeps fences; else we wait in its stead */
	bool reads_pending;    /* READs are not fenced or known to be done */
	bool atomics_pending;  /* atomics are not */
	uint32_t arena_next;   /* first free byte */
	uint32_t arena_taken;  /* bytes of chains in flight */
	uint64_t missing;      /* the result of an atomic until the real one comes */
	uint64_t requests;     /* of all chains, counted from the queue's beginning */
	uint64_t posted;       /* of these, to the queue */
	uint64_t completed;    /* of these */
	uint64_t first_flying; /* number of the oldest chain that has not completed */
	uint64_t next_posted;  /* number of the oldest chain that is not all posted */
	uint64_t next_chain;   /* number of the next chain */
	VerbsChain chains[VERBS_CHAINS];
} VerbsFlight;

/* Forgets all chains, and makes ready for a new queue pair, which the caller sets. No queue is left: it was destroyed. */
extern void flight_clear(VerbsFlight *flight);

/*
 * Posts a chain and sets *posted to its place, which is the caller's until it clears `used`.  FABRIC_BUSY: no room now;
 * FABRIC_RANGE: it changes what the channel does not reach, FABRIC_NOT_SUPPORTED: the device is not known to do it; nothing
 * happened.  FABRIC_LOST: the queue is of no more use (flight_break() is done).  Adds to *fences what the order cost.  A part of
 * the chain that has to wait for others is posted by flight_poll().
 */
extern FabricStatus flight_post(VerbsFlight *flight, FabricOp *ops, int count, uint64_t ticket,
                                uint64_t *fences, VerbsChain **posted);

/*
 * Takes what has completed.  VERBS_NONE: nothing more for now.  Anything else: the queue is of no more use, *reason says why, and
 * the caller ends all chains by flight_break().
 */
extern VerbsOutcome flight_poll(VerbsFlight *flight, const char **reason);

/* The queue is of no more use: every chain in flight ends with this status. */
extern void flight_break(VerbsFlight *flight, FabricStatus status);

/* The posted chain with this ticket, or NULL: a reset has forgotten it. */
extern VerbsChain *flight_find(VerbsFlight *flight, uint64_t ticket);

#endif /* SHERMAN_VERBS_FLIGHT_H */

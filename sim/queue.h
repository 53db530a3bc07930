/*
 * queue.h
 *		How chains of the transport "sim" take effect: a queue for each endpoint, which takes a step at a time.
 */
#ifndef SHERMAN_SIM_QUEUE_H
#define SHERMAN_SIM_QUEUE_H

#include "rdma/shm/shm.h"
#include "scheduler.h"
#include "simulator.h"

#define LINE_BYTES 64u
#define WORD_BYTES 8u
/* Units of an operation that are read or placed at once: lines, or words. */
#define UNITS_MAX (FABRIC_STRIPE_BYTES / WORD_BYTES)

/* Without an adversary: half a round trip, and an operation behind another one. */
#define CALM_TRAVEL_NANOSECONDS 900u
#define CALM_STEP_NANOSECONDS 100u

typedef struct SimChain
{
	struct SimChain *next;
	uint64_t ticket;
	uint32_t posted_in; /* step of an exploration */
	FabricOp *caller;   /* where results go */
	int count;
	int done;             /* operations that took effect */
	int lost_behind;      /* the channel is lost when so many took effect; -1: it is not */
	uint32_t lost_offset; /* ... and so many bytes of the next one: whole packets */
	bool lands_late;      /* ... or is said to be, and the rest takes effect all the same */
	bool ended;           /* the client may know */
	bool abandoned;       /* the client has it back */
	bool vain;            /* its lock was not to be had: nobody looks at what it reads */
	FabricStatus status;
	FabricOp ops[FABRIC_MAX_CHAIN]; /* with buffers of their own, in `data` */
	uint64_t data[];
} SimChain;

typedef struct SimQueue
{
	struct SimQueue *next;
	FabricEndpoint *endpoint; /* NULL: it has another queue by now, or is gone */
	ApplyChannel channel;
	uint32_t actor;   /* of an exploration; the next one is for completions */
	bool delivers;    /* a completion is offered */
	ApplyRun run;     /* says whether the record is busy */
	SimChain *chains; /* that were not given back, in order */
	bool moving;      /* a step is due */
	bool held;        /* no part begins */
	bool broken;      /* nothing takes effect any more */
	uint64_t delivered;
	uint64_t to_cut;   /* until then nothing of its client arrives at the memory node */
	uint64_t from_cut; /* ... and nothing of the memory node at its client */
	Coroutine *waiter;
	/* The part that is under way. */
	uint32_t part_offset; /* in the operation's bytes */
	uint32_t part_bytes;
	uint32_t units_left;
	uint16_t units[UNITS_MAX];
} SimQueue;

typedef struct Simulator
{
	SimulatorOptions options;
	SimQueue *queues;
	uint64_t steps;
	uint64_t tickets; /* of chains that were executed, not posted */
} Simulator;

/* Of this process: transport.c. */
extern Simulator simulator;

/* How long something takes, in nanoseconds: `calm`, or with an adversary a random time. */
extern uint64_t sim_delay(uint64_t calm);
/* Whole WRITEs are one packet each. */
extern uint32_t sim_packet_bytes(void);
/* The endpoint's; NULL: it has no data channel. */
extern SimQueue *queue_of(const FabricEndpoint *endpoint);
/* The first chain that has not taken effect. */
extern SimChain *queue_first(const SimQueue *queue);
/* Has it take its next step in so many nanoseconds, or, in an exploration, offers that. */
extern void queue_move(SimQueue *queue, uint64_t nanoseconds);
/* NULL: there is no such chain. */
extern SimChain *queue_find(const SimQueue *queue, uint64_t ticket);
/* Takes it out of the queue and frees it. */
extern void chain_remove(SimQueue *queue, SimChain *removed);
/* Its client may know how it ended, from now on. */
extern void chain_end(SimQueue *queue, SimChain *chain, FabricStatus status);
/* Nothing takes effect any more; its clients learn why. No part is under way. */
extern void queue_break(SimQueue *queue, FabricStatus status);
/* What a client learns of a channel that the memory node has killed. */
extern FabricStatus killed_status(const SimQueue *queue);
/* The endpoint's channel, once it has one. */
extern FabricStatus queue_begin(FabricEndpoint *endpoint);
/* What is under way comes to its end now. */
extern void part_finish(SimQueue *queue);
/*
 * Its channel is dead, or its client is gone: what is under way comes to its end now, and nothing else does.
 */
extern void queue_end(SimQueue *queue);

#endif /* SHERMAN_SIM_QUEUE_H */

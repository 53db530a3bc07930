/*
 * cost.h
 *		What operations cost: network cards, their hosts' PCIe and the wire as queues in virtual time.
 *
 * A chain leaves its requester's card (cost_send()), and its operations are served one after another by the
 * responder's (cost_serve()); the answer goes back (cost_answer()).  Every resource is first come first
 * served, in the order of these calls, which callers make at the virtual time that each of them names. Times
 * are picoseconds since the simulation's start.
 *
 * The parameters are fitted to micro-benchmarks of published hardware alone, and doc/internals/simulator.md has the
 * source of each: what comes out of them are a model's figures, not a machine's.
 */
#ifndef SHERMAN_COST_H
#define SHERMAN_COST_H

#include "../rdma/fabric.h"

#define PICOSECONDS_PER_NS ((uint64_t) 1000)

/*
 * Atomics in host memory are kept apart by locks inside the card, one for each of so many addresses (low 12
 * bits, words).
 */
#define COST_BUCKETS 512u

/* All times in picoseconds. */
typedef struct CostParameters
{
	/* Client: from the call to the card's doorbell, and from the completion to the caller. */
	uint64_t post;
	uint64_t complete;
	/* Card: how long one operation keeps a pipeline busy, and how long it is in there. */
	uint64_t request; /* READs and atomics that are sent */
	uint64_t request_write;
	uint64_t request_latency;
	uint64_t respond; /* operations that are served */
	uint64_t respond_latency;
	/*
	 * Wire and switch, one way; a byte in one direction; bytes of headers of a packet, and of payload at
	 * most.
	 */
	uint64_t wire_latency;
	uint64_t wire_byte;
	uint32_t packet_header;
	uint32_t packet_payload;
	/* PCIe: a READ of host memory, a byte in one direction. */
	uint64_t pcie_read;
	uint64_t pcie_byte;
	uint32_t inline_bytes; /* a WRITE up to this goes to the card with its request */
	/* An atomic in host memory holds its bucket: PCIe READ and write. */
	uint64_t bucket;
	/* The answer inside the requester's card. */
	uint64_t answer_latency;
	/* Client: a byte of node that was read is checked and searched. The memory node's processors: the same, for a call. */
	uint64_t check_byte;
	/* Memory node: a call takes one of its processors so long, beside what it is about. */
	uint64_t call;
	uint32_t processors;  /* that answer calls */
	uint32_t call_header; /* bytes of a call's and an answer's frame */
} CostParameters;

/* The paper's cluster: ConnectX-5 at 100 Gb/s, PCIe 3.0 x16. */
extern const CostParameters cost_parameters;

typedef enum CostResource
{
	COST_REQUEST, /* pipelines of the card */
	COST_RESPOND,
	COST_OUT, /* wire */
	COST_IN,
	COST_PCIE_READ,
	COST_PCIE_WRITE,
	COST_PROCESSORS, /* of its host, all together */
	COST_RESOURCES
} CostResource;

/* A card, with the processors behind it: until when each of its resources is busy, and how long it was in all. */
typedef struct CostCard
{
	uint64_t busy[COST_RESOURCES];
	uint64_t used[COST_RESOURCES];
	uint64_t buckets[COST_BUCKETS];
	uint64_t bucket_used[COST_BUCKETS];
	uint64_t served; /* operations */
} CostCard;

/* Where lock words are, and how they are freed. */
typedef struct CostPlacement
{
	bool chip_locks; /* in the card's own memory */
	/* A swap that frees a lock word is charged as the WRITE that Sherman frees it with. */
	bool release_by_write;
} CostPlacement;

/*
 * A chain on its way; zeroed before cost_send(). Times but `now` are without what there was to wait since
 * then.
 */
typedef struct CostFlight
{
	uint64_t bytes; /* on the wire, of all that is asked */
	uint64_t now;   /* when it was looked at last */
	uint64_t wait;  /* for the longest queue that it met then */
	uint64_t order; /* the operations before have been served by then */
	uint64_t answer_bytes;
	uint64_t answered; /* the last answer is ready */
} CostFlight;

extern const char *cost_resource_name(CostResource resource);

/* Posted `delay` after `now`: when it has reached the responder's card. */
extern uint64_t cost_send(CostCard *requester, uint64_t now, uint64_t delay, const FabricOp *ops, int count,
                          CostFlight *flight);
/* It has reached the responder's card. */
extern void cost_arrive(CostCard *responder, uint64_t now, CostFlight *flight);
/*
 * The next operation of the chain, to be served now or later: when it takes effect.  It is to do so then,
 * before any other that is told a later time.
 */
extern uint64_t cost_serve(CostCard *responder, const CostPlacement *placement, uint64_t now,
                           const FabricOp *op, CostFlight *flight);
/* All operations have taken effect: when the client knows. */
extern uint64_t cost_answer(CostCard *responder, CostCard *requester, uint64_t now, CostFlight *flight);

/*
 * A message, for a processor that polls: a SEND of so many bytes and their frame, into a buffer that waits there.  Posted `delay` after
 * `now`: when it has reached the receiver's card; and when the processor knows.
 */
extern uint64_t cost_message(CostCard *sender, uint64_t now, uint64_t delay, uint32_t bytes,
                             CostFlight *flight);
extern uint64_t cost_received(CostCard *receiver, uint64_t now, uint32_t bytes, CostFlight *flight);
/* A call is answered that looks at so many bytes of nodes: when a processor is through with it. */
extern uint64_t cost_process(CostCard *host, uint64_t now, uint32_t touched);

#endif /* SHERMAN_COST_H */

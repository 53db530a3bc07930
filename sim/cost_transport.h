/*
 * cost_transport.h
 *		The transport "cost": chains on the memory of memory nodes, each in the time that the cost model says.
 *
 *		scheduler_open(seed); cost_open(&options); ... in coroutines: memory nodes that serve; cost_node() for
 *		each; clients with FabricOptions.transport = &cost_transport, whose endpoints are "cost:" and the
 *		node's number, connected between cost_client_begin() and the next one scheduler_run(limit);
 *		cost_close(); scheduler_close();
 *
 * All endpoints of a memory node share one channel over shm: nobody dies here.  So redo slots have the bytes
 * of many, and the fabric's resets are refused.
 */
#ifndef SHERMAN_COST_TRANSPORT_H
#define SHERMAN_COST_TRANSPORT_H

#include "rdma/base/transport.h"
#include "cost.h"
#include "scheduler.h"

typedef struct CostOptions
{
	CostPlacement placement;
	uint32_t hosts; /* each has a card */
	bool
		posts; /* a client has several chains under way, if it posts them; else each is waited for when it is posted */
} CostOptions;

struct CostNode;

/* Memory that is fetched before it is touched. */
typedef struct CostMemory
{
	const void *begin;
	uint32_t bytes;
} CostMemory;

/* Of a chain so many operations are noted; and of a client so many handles. */
#define COST_NOTED_OPERATIONS 2
#define COST_NOTED_HANDLES 10

/* A client: one thread of a compute server, which has one chain under way at a time. */
typedef struct CostClient
{
	uint32_t host;
	uint64_t debt; /* nanoseconds of processor time that it has used since its last chain */
	/* The chain: */
	const struct CostNode *node; /* where to; NULL: none is under way */
	FabricEndpoint *endpoint;
	Coroutine *waiter;
	FabricOp *ops;
	int count;
	int next; /* operation to be served */
	CostFlight flight;
	/* What will be touched: by the chain, and by whatever the client does next. */
	uint32_t handle_count;
	CostMemory places[COST_NOTED_OPERATIONS];
	CostMemory buffers[COST_NOTED_OPERATIONS];
	CostMemory handles[COST_NOTED_HANDLES];
} CostClient;

extern const FabricTransport cost_transport;

/* Aborts without memory. */
extern void cost_open(const CostOptions *options);
extern void cost_close(void);

/*
 * The calls of one method, whose costs the model knows: what a memory node's processors do for one, at once.  As FabricService.call;
 * *touched: bytes of nodes that were looked at.
 */
typedef struct CostService
{
	uint16_t method; /* 0: none */
	FabricStatus (*answer)(void *argument, const void *request, uint32_t request_bytes, void *reply,
	                       uint32_t *reply_bytes, uint32_t *touched);
	void *argument;
} CostService;

/*
 * Memory node `node` (0, 1, ...) is on this host; `carrier` is a connection to it over shm, with a data
 * channel, that outlives all endpoints: all other calls go over it, and take what time that takes.
 */
extern void cost_node(uint32_t node, uint32_t host, FabricEndpoint *carrier, const CostService *service);
/* Endpoints that are connected from now on are this client's, which outlives them. */
extern void cost_client_begin(CostClient *client);
/* What the client looks at whatever it does: such handles are fetched before it goes on, as many as can be noted. */
extern void cost_client_handle(CostClient *client, const void *handle, uint32_t bytes);

/* What a card has done so far. */
extern const CostCard *cost_card(uint32_t host);

#endif /* SHERMAN_COST_TRANSPORT_H */

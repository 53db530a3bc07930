/*
 * proxy.h
 *		Connection workers: a few processes hold the connections to memory nodes and run the chains of many.
 *
 * The parties share one area of memory, which the caller lends.  A client connects to "proxy:ADDRESS" with
 * FabricOptions.proxy set: its endpoint is a slot of the area with a ring of requests and room for their data.  A
 * worker takes the requests of its slots in turn and runs them on one endpoint of its own for each address,
 * cluster and incarnation.  doc/internals/fabric.md ("Connection workers") says why death, doubt and shared channels are
 * right.
 *
 * Nothing here knows how processes are woken: the caller lends that.  A wake-up that comes before the sleep must not
 * be lost; spurious ones do no harm.
 */
#ifndef SHERMAN_PROXY_H
#define SHERMAN_PROXY_H

#include "fabric.h"

/* A worker's number is a few bits of a slot's state. */
#define FABRIC_PROXY_MAX_WORKERS 16u

/* Descriptors that a worker's wait hook is given at most: one of each endpoint, and some of what one of them does. */
#define FABRIC_WORKER_DESCRIPTORS 68u

typedef struct FabricProxyArea FabricProxyArea;
typedef struct FabricWorker FabricWorker;

/* Bytes of an area; only what is used of a slot is ever touched. */
extern size_t fabric_proxy_bytes(uint32_t workers, uint32_t slots);

/* Makes an area of zeroed memory that is aligned to 128 bytes: 1..FABRIC_PROXY_MAX_WORKERS workers, slots >= 1. */
extern FabricProxyArea *fabric_proxy_initialize(void *memory, uint32_t workers, uint32_t slots);

/* ---- clients ---- */

/* What a client process lends; it outlives the fabric that uses it. */
typedef struct FabricProxy
{
	FabricProxyArea *area;
	uint32_t owner; /* names this process to the workers' wake_client() and owner_is_gone() */
	void *argument;
	void (*wake_worker)(void *argument, uint32_t worker);
	/* Sleeps until a worker calls wake_client() for this owner, or the time is over. */
	void (*sleep)(void *argument, int milliseconds);
} FabricProxy;

/* ---- workers ---- */

typedef struct FabricWorkerOptions
{
	FabricProxyArea *area;
	uint32_t worker; /* own number; its last owner has ended */
	FabricOptions
		fabric; /* for the worker's own endpoints; cluster, incarnation, wait and proxy are not used */
	void *argument;
	void (*wake_client)(void *argument, uint32_t owner);
	/* FabricWaitHook, which a client's wake_worker() ends as well. */
	int (*wait)(void *argument, const int *descriptors, int count, int milliseconds);
	/* Has the process ended?  Then its slot is given to others.  NULL: clients always disconnect before they end. */
	bool (*owner_is_gone)(void *argument, uint32_t owner);
	/* After each connect and reset of an own endpoint; NULL: nothing is done.  Lets tests put a fault plan on it. */
	void (*connected)(void *argument, FabricEndpoint *endpoint);
} FabricWorkerOptions;

/*
 * Takes over the worker's slots: requests that its predecessor had begun are indeterminate (FABRIC_LOST at the
 * client). FABRIC_NO_MEMORY.
 */
extern FabricStatus fabric_worker_open(const FabricWorkerOptions *options, FabricWorker **worker);

/* Serves for about so long, asleep while there is nothing to do.  FABRIC_STOPPED: the wait hook asked to stop. */
extern FabricStatus fabric_worker_step(FabricWorker *worker, int milliseconds);

/* Slots that are not free. */
extern uint32_t fabric_worker_clients(const FabricWorker *worker);

/* Ends the worker: its clients learn it at once, and wait for the next worker of this number when they reset. */
extern void fabric_worker_close(FabricWorker *worker);

/* What a worker has done since the area was made, and what it has now. */
typedef struct FabricWorkerFigures
{
	bool serves;
	uint32_t clients;
	uint32_t endpoints;  /* connections to memory nodes */
	uint64_t lives;      /* how often it was opened */
	uint64_t chains;     /* taken from clients */
	uint64_t operations; /* in them */
	uint64_t calls;      /* calls, attaches and connects of clients */
	uint64_t resets;     /* of its endpoints */
	uint64_t lost;       /* chains that were answered FABRIC_LOST */
	uint64_t sleeps;
} FabricWorkerFigures;

extern void fabric_worker_figures(FabricProxyArea *area, uint32_t worker, FabricWorkerFigures *figures);

#endif /* SHERMAN_PROXY_H */

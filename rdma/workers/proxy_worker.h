/*
 * proxy_worker.h
 *		What the two files of a connection worker share: proxy_worker.c (slots and the loop), proxy_link.c (its
 *		endpoints and the chains under way on them).  Private to rdma/.
 */
#ifndef SHERMAN_PROXY_WORKER_H
#define SHERMAN_PROXY_WORKER_H

#include "rdma/proxy/proxy_state.h"

/* A chain that was posted on an endpoint and has not ended. */
typedef struct ProxyFlight
{
	struct ProxyFlight *next;
	uint32_t slot;
	ProxyPlace *place;
	uint64_t ticket;
	uint64_t deadline; /* then waiting for it ends at once */
	int count;
	FabricOp ops[FABRIC_MAX_CHAIN];
} ProxyFlight;

/*
 * An endpoint of the worker: to one address, for one incarnation of one cluster.
 *
 * Without `endpoint` it is a name in the record only, perhaps with a channel of a former worker. A link needs a reset
 * when a chain on it failed, or a call found the connection gone; link_ready() does that.
 */
typedef struct ProxyLink
{
	ProxyRecord *record;
	Fabric *fabric;
	FabricEndpoint *endpoint;
	uint64_t epoch;  /* of the present use of its channel */
	bool unverified; /* a call was lost: the connection is gone */
	bool fenced;     /* the memory node says that the incarnation has ended: nothing of it can take effect */
	uint64_t tried;  /* when the last connect or reset that failed began */
	FabricStatus failure; /* of that */
	ProxyFlight *first;
	ProxyFlight **last;
} ProxyLink;

/* What the worker alone knows of a slot. */
typedef struct ProxyClient
{
	ProxyLink *link;  /* that it established; NULL: none yet */
	uint32_t flights; /* requests of it under way: its room is in use */
} ProxyClient;

struct FabricWorker
{
	FabricWorkerOptions options;
	FabricProxyArea *area;
	ProxyWorkerState *state;
	ProxyClient *clients; /* by slot */
	uint64_t *todo;       /* a bit for each slot that may have something to do */
	uint32_t turn;        /* slot that comes first in the next round */
	/* The wait hook of its endpoints: serves the clients of other endpoints meanwhile. */
	int (*wait)(void *argument, const int *descriptors, int count, int milliseconds);
	ProxyLink *busy; /* the link in whose call we are */
	bool nested;     /* inside the wait hook of that call */
	bool stopped;    /* the wait hook asked for it */
	ProxyFlight *spare;
	uint64_t next_sweep;
	Spin spin;
	ProxyLink links[PROXY_LINKS];
};

static inline void
worker_count_up(uint64_t *counter, uint64_t by)
{
	__atomic_store_n(counter, *counter + by, __ATOMIC_RELAXED);
}

/* ---- proxy_finish.c ---- */

/* Wakes the client of a slot, if it sleeps. */
extern void worker_wake_client(FabricWorker *worker, uint32_t number);

/* Gives the request back to its client, with the detail of `fabric` (or NULL) if it failed. */
extern void place_finish(FabricWorker *worker, uint32_t slot, ProxyPlace *place, FabricStatus status,
                         const char *detail);

/* ---- proxy_link.c ---- */

/* The link that the slot's client wishes for. NULL: the table is full. */
extern ProxyLink *link_find(FabricWorker *worker, uint32_t slot);

/* Is there something on the link that only link_ready() can end? */
static inline bool
link_in_doubt(const ProxyLink *link)
{
	return link->endpoint == NULL ? link->record->channel.serial != 0
	                              : link->endpoint->doubt || link->unverified;
}

/*
 * Connects or resets it, as needed; nothing is in flight on it if it needs a reset. A request from before the last
 * attempt that failed (`asked`, as fabric_now()) gets that attempt's result: many clients may wait for one memory
 * node, and an attempt for each of them would delay the others.
 */
extern FabricStatus link_ready(FabricWorker *worker, ProxyLink *link, uint64_t asked);

/*
 * Runs or starts the operations, whose buffers lie in the slot's room.  FABRIC_BUSY: later.  FABRIC_OK: place_finish()
 * was called, or will be.
 */
extern FabricStatus link_chain(FabricWorker *worker, ProxyLink *link, uint32_t slot, ProxyPlace *place,
                               FabricOp *ops, int count);

/* Finishes the chains that have ended, on all links but the busy one; true if there were any. */
extern bool links_round(FabricWorker *worker);

/* Descriptors to poll while chains are under way; *flying: they are. */
extern int links_descriptors(const FabricWorker *worker, int *descriptors, bool *flying);

/* Drops unused links that a later incarnation has replaced. */
extern void links_trim(FabricWorker *worker);

/* Closes all: channels with indeterminate chains stay named in the records. */
extern void links_close(FabricWorker *worker);

#endif /* SHERMAN_PROXY_WORKER_H */

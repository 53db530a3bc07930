/*
 * transport.h
 *		What a transport provides, and the endpoint that it fills.  Private to rdma/.
 *
 * fabric.c checks every chain before a transport sees it, counts, and keeps the state of indeterminate chains; a
 * transport only moves bytes. A new transport is one FabricTransport and one line in fabric.c's table
 * (doc/internals/fabric.md).
 */
#ifndef SHERMAN_TRANSPORT_H
#define SHERMAN_TRANSPORT_H

#include "rdma/fabric.h"

/* Chains that a transport that runs them inside post remembers until their wait; a power of two. */
#define TRANSPORT_TICKETS 64u
/* Of the processor's caches. */
#define TRANSPORT_LINE_BYTES 64u

typedef struct FabricTransport
{
	const char *name; /* the address scheme in front of ':' */
	bool readers;     /* it has channels that only read (FabricOptions.reader) */

	/*
	 * Connects to `location`, the address behind the scheme: sets endpoint->state, ->capabilities and ->channel.
	 * If endpoint->channel names a channel at entry, the memory node has to kill that one first.  Statuses as
	 * fabric_connect(), and FABRIC_LOST and FABRIC_TIMED_OUT, for which the caller says FABRIC_UNREACHABLE.  After a
	 * failure the caller disconnects, if ->state is set.  It may hand over to another transport, and sets ->transport then.
	 */
	FabricStatus (*connect)(FabricEndpoint *endpoint, const char *location);
	/* Releases endpoint->state; nothing is in flight. */
	void (*disconnect)(FabricEndpoint *endpoint);

	/*
	 * Runs a checked chain to its end. FABRIC_RANGE, FABRIC_PROTOCOL, FABRIC_BUSY: nothing happened; after every
	 * other failure the chain is indeterminate.
	 */
	FabricStatus (*execute)(FabricEndpoint *endpoint, FabricOp *ops, int count);
	/* Starts a chain; NULL where execute() is all there is: then fabric.c runs it inside fabric_post(). */
	FabricStatus (*post)(FabricEndpoint *endpoint, FabricOp *ops, int count, uint64_t ticket);
	FabricStatus (*wait)(FabricEndpoint *endpoint, uint64_t ticket);
	/* Would wait() return at once?  And what to poll until it may.  NULL: always; nothing. */
	bool (*ended)(FabricEndpoint *endpoint, uint64_t ticket);
	int (*descriptor)(const FabricEndpoint *endpoint);

	FabricStatus (*call)(FabricEndpoint *endpoint, uint16_t method, const void *request,
	                     uint32_t request_bytes, void *reply, uint32_t *reply_bytes);
	FabricStatus (*attach)(FabricEndpoint *endpoint, bool resume, uint64_t launcher_nonce, uint32_t *instance,
	                       uint32_t *incarnation);
	FabricStatus (*reset)(FabricEndpoint *endpoint);
	/* As fabric_is_draining(). NULL: the client never knows. */
	bool (*is_draining)(const FabricEndpoint *endpoint);

	/*
	 * For the fault layer: begins the WRITE `op`, stores `lines` lines of it in the transport's own order,
	 * and leaves it unfinished; the caller ends the process.  NULL: this transport's WRITEs cannot end
	 * half-way.
	 */
	void (*abandon_write)(FabricEndpoint *endpoint, const FabricOp *op, uint32_t lines);
} FabricTransport;

/* A chain that was posted and not yet waited for. */
typedef struct FabricTicket
{
	uint64_t ticket; /* 0 = the place is free */
	FabricOp *ops;
	int count;
	FabricStatus status; /* of a chain that ran inside post */
} FabricTicket;

struct Fabric
{
	FabricOptions options;
	FabricEndpoint *endpoints; /* list of the open ones */
	struct StreamContext
		*tls; /* of all connections with a key: options.tls, or its own; NULL: there was none yet */
	char detail[FABRIC_DETAIL_BYTES];
};

struct FabricEndpoint
{
	/* One line: what every chain reads, to the capabilities' region_bytes. */
	_Alignas(TRANSPORT_LINE_BYTES) const FabricTransport *transport;
	void *state;          /* the transport's */
	bool data;            /* it has a data channel */
	bool reader;          /* which only reads */
	bool doubt;           /* a chain is indeterminate: nothing is posted before a reset */
	uint32_t outstanding; /* tickets that are not waited for yet */
	FabricCapabilities capabilities;
	/* One more: what every chain counts. */
	_Alignas(TRANSPORT_LINE_BYTES) FabricCounters counters;
	uint64_t next_ticket;
	Fabric *fabric;
	void *fault;           /* the fault layer's, NULL without it */
	FabricChannel channel; /* the one it has, or had last */
	FabricEndpoint *next;
	FabricTicket tickets[TRANSPORT_TICKETS]; /* behind what every chain reads: they take 1.5 kB */
};

_Static_assert(offsetof(FabricEndpoint, capabilities.region_bytes) + 2 * sizeof(uint64_t) <=
                   TRANSPORT_LINE_BYTES,
               "what every chain reads is one line");

extern const FabricTransport shm_transport;
extern const FabricTransport verbs_transport;
extern const FabricTransport tcp_transport;
extern const FabricTransport proxy_transport;

/* tcp's connect() over the control socket at `path`; sets ->transport.  For local clients of a device's memory node. */
extern FabricStatus tcp_connect_local(FabricEndpoint *endpoint, const char *path);

/* Frees the fault layer's state and puts the transport below back (fault.c); without a plan, or the layer, a no-op. */
#ifdef SHERMAN_PRODUCTION
static inline void
fault_release(FabricEndpoint *endpoint)
{
	(void) endpoint;
}
#else
extern void fault_release(FabricEndpoint *endpoint);
#endif

/* Sets the fabric's error detail. */
extern void fabric_set_detail(Fabric *fabric, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Monotonic time in nanoseconds. */
extern uint64_t fabric_now(void);

typedef enum FabricWait
{
	FABRIC_WAIT_CHAIN,
	FABRIC_WAIT_CALL,
	FABRIC_WAIT_CONNECT /* or reset, or attach */
} FabricWait;

/* When a wait that begins now must be over (FabricOptions.silence). */
extern uint64_t fabric_deadline(const Fabric *fabric, FabricWait wait);

/* What a client sleeps by that lends no wait of its own: poll(2). */
extern int fabric_default_wait(void *argument, const int *descriptors, int count, int milliseconds);
/* Calls the wait hook of the options. */
extern int fabric_sleep(const Fabric *fabric, const int *descriptors, int count, int milliseconds);

#endif /* SHERMAN_TRANSPORT_H */

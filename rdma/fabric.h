/*
 * fabric.h
 *		The fabric: chains of one-sided operations on the memory of memory nodes.
 *
 * The unit of the interface is the chain: a list of operations that are posted together and cost one
 * round trip.  Transports fill the table in transport.h (shm, tcp, verbs; sim of the simulator); all of them
 * pass test/conformance.c, which is written against this header alone.
 *
 * Contract (doc/internals/rules.md, I-F1 to I-F6):
 *
 * 1. Order.  The operations of a chain, and the chains of one endpoint, take effect at the memory node in
 *    program order.  There is no order between endpoints or memory nodes.
 * 2. Not conditional, not atomic.  What follows a failed compare-and-swap runs all the same; therefore
 *    fabric_post() refuses (FABRIC_PROTOCOL) a WRITE that follows an atomic in one chain.  Other clients
 *    may see any prefix of a chain.
 * 3. Death and doubt.  After FABRIC_LOST, FABRIC_TIMED_OUT or FABRIC_STOPPED some prefix of the chain has
 *    been or will be applied.  Only fabric_reset() returning FABRIC_OK ends the doubt: the memory node has
 *    then killed the old channel, and nothing of it can land any more.
 * 4. Atomicity.  Atomics work on aligned 8-byte words and are atomic against each other in the memory
 *    node's one domain; they are never mixed with WRITE on one word of the LOCKS region.  What a READ
 *    promises follows from the capabilities: see FABRIC_CAP_*.
 * 5. No operation crosses an aligned unit of FABRIC_STRIPE_BYTES (FABRIC_RANGE if it would).  A WRITE or
 * atomic in node memory that the memory node has not granted is FABRIC_RANGE, too, where the transport can
 * tell; a READ there yields bytes without meaning, zeroes as a rule.
 * 6. Buffers belong to the fabric from fabric_post() until fabric_wait() has returned.
 * 7. Nothing here exits, prints, jumps or waits for ever.  No call may be used by two threads at once on
 *    one endpoint.  Connections are opened lazily in the process that uses them, never before a fork.
 */
#ifndef SHERMAN_FABRIC_H
#define SHERMAN_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One stripe: the unit that an operation never crosses, and that shm makes atomic. The largest node. */
#define FABRIC_STRIPE_BYTES 4096u

/* Operations in one chain: prefetch of 16 nodes, or redo + two children + root + unlock, with room. */
#define FABRIC_MAX_CHAIN 32u

/* Bytes of request or reply of one call; a call carries control data only. */
#define FABRIC_MAX_CALL_BYTES 8192u

/* Bytes of the human-readable detail that goes with an error. */
#define FABRIC_DETAIL_BYTES 256u

/* Tenants of one memory node, and a tenant's name, with the closing zero. */
#define FABRIC_MAX_TENANTS 15u
#define FABRIC_TENANT_BYTES 64u

typedef struct Fabric Fabric;
typedef struct FabricEndpoint FabricEndpoint;

typedef enum FabricStatus
{
	FABRIC_OK = 0,
	FABRIC_BUSY,          /* not posted: too many chains outstanding; nothing happened */
	FABRIC_TIMED_OUT,     /* deadline passed: perhaps applied, reset needed */
	FABRIC_STOPPED,       /* the wait hook asked to stop: perhaps applied, reset needed */
	FABRIC_LOST,          /* channel or memory node gone: perhaps applied, reset needed */
	FABRIC_FENCED,        /* the memory node refuses this instance or channel: nothing lands any more */
	FABRIC_DENIED,        /* authentication or permission */
	FABRIC_RANGE,         /* offset, length or alignment outside the contract: nothing happened */
	FABRIC_PROTOCOL,      /* chain or call that the contract forbids: nothing happened */
	FABRIC_NOT_SUPPORTED, /* this transport or memory node cannot do it: nothing happened */
	FABRIC_NO_MEMORY,     /* the memory node is full, or the process has no memory: nothing happened */
	FABRIC_DRAINING,      /* the memory node is shutting down: nothing happened */
	FABRIC_UNREACHABLE,   /* no connection could be made: nothing happened */
	FABRIC_NOT_FOUND,     /* call: the thing named does not exist */
	FABRIC_EXISTS,        /* call: the thing named exists already */
	FABRIC_QUOTA,         /* call: the tenant has as much as it may; nothing happened */
	FABRIC_TOO_MANY,      /* call: there are as many of them as there can be; nothing happened */
	FABRIC_HOST_FULL      /* call: the memory node has room, and its file system has none; nothing happened */
} FabricStatus;

#define FABRIC_LAST_STATUS ((uint32_t) FABRIC_HOST_FULL)

typedef enum FabricOpcode
{
	FABRIC_READ,         /* length bytes at offset -> buffer */
	FABRIC_WRITE,        /* length bytes of buffer -> offset */
	FABRIC_COMPARE_SWAP, /* if word == compare then word := operand; the old word -> result */
	FABRIC_FETCH_ADD     /* word += operand; the old word -> result */
} FabricOpcode;

typedef enum FabricRegion
{
	FABRIC_NODES = 0, /* node memory, offsets from 0; holds the channels' redo slots too */
	FABRIC_LOCKS = 1  /* lock words of 8 bytes; only atomics and aligned 8-byte READs */
} FabricRegion;

typedef struct FabricOp
{
	uint8_t opcode;   /* FabricOpcode */
	uint8_t region;   /* FabricRegion */
	uint32_t length;  /* bytes; a multiple of 8 for READ and WRITE, 8 for atomics */
	uint64_t offset;  /* bytes from the region's start; 8-aligned */
	void *buffer;     /* READ, WRITE: 8-aligned memory of the caller */
	uint64_t compare; /* COMPARE_SWAP: expected word */
	uint64_t operand; /* COMPARE_SWAP: new word; FETCH_ADD: addend */
	uint64_t result;  /* atomics: the word before the operation, valid after FABRIC_OK */
} FabricOp;

/* What a memory node vouches for over this transport. */
#define FABRIC_CAP_LINE_ATOMIC 0x01u      /* an aligned 64-byte line is never torn in a READ */
#define FABRIC_CAP_OPERATION_ATOMIC 0x02u /* a READ or WRITE is one atomic operation */
#define FABRIC_CAP_ORDERED_CAS_READ                                                                          \
	0x04u                               /* a READ after a COMPARE_SWAP in one chain sees what the swap saw */
#define FABRIC_CAP_SHARED_CHANNEL 0x08u /* other endpoints of the instance may use the same channel (proxy) */
#define FABRIC_CAP_DEVICE_LOCKS 0x10u   /* the LOCKS region lies in the network card's own memory */

typedef struct FabricCapabilities
{
	/* What every chain asks for comes first: with the endpoint's own such fields it is one line (transport.h). */
	uint32_t flags;           /* FABRIC_CAP_* */
	uint32_t max_chain;       /* operations in a chain, <= FABRIC_MAX_CHAIN */
	uint32_t lock_words;      /* words in the LOCKS region, a power of two */
	uint32_t instance;        /* number of the compute instance at this memory node, 1..65535 */
	uint32_t incarnation;     /* incarnation of that instance, 1..65535 */
	uint32_t max_outstanding; /* chains posted and not yet waited for */
	uint64_t region_bytes[2]; /* length of each region, by FabricRegion */
	uint32_t one_packet;      /* bytes: a WRITE up to this size cannot be torn by its client's death */
	uint32_t channel;         /* this channel's number at the memory node */
	uint64_t redo_offset;     /* this channel's redo slot in NODES: FABRIC_REDO_BYTES, stripe-aligned */
	uint64_t node_uuid[2];    /* identity of the memory node's memory: a new one each time it starts empty */
	uint64_t generation;      /* starts of the daemon over this memory, from 1 */
	char transport[8];        /* "shm", ... */
} FabricCapabilities;

/* Names one use of a channel for ever: numbers are used again, with the next serial. */
typedef struct FabricChannel
{
	uint32_t channel;
	uint64_t serial; /* from 1; 0 = no channel */
	uint64_t node_uuid[2];
} FabricChannel;

/*
 * A redo slot: one node image with its header; the tree owns the format (tree/node/node.h). Two stripes, image
 * in the second.
 */
#define FABRIC_REDO_BYTES (2u * FABRIC_STRIPE_BYTES)

/* Counters of one endpoint or of one Fabric, since it was opened. */
typedef struct FabricCounters
{
	uint64_t round_trips; /* chains completed */
	uint64_t operations;  /* operations in them */
	uint64_t reads;       /* READ operations */
	uint64_t writes;      /* WRITE operations */
	uint64_t atomics;     /* COMPARE_SWAP and FETCH_ADD operations */
	uint64_t read_bytes;
	uint64_t written_bytes; /* WRITE bytes and 8 for each atomic */
	uint64_t calls;         /* fabric_call() completed */
	uint64_t resets;
	uint64_t errors; /* chains and calls that did not return FABRIC_OK */
	uint64_t fences; /* waits inside the network that the order of chains asked for: a round trip each */
} FabricCounters;

/*
 * Wait hook: sleep until one of the `count` descriptors (perhaps none) is readable or `milliseconds` passed.
 * Returns > 0 if one is readable, 0 when the time is over, < 0 to stop the wait (query cancel; death of the
 * postmaster).
 */
typedef int (*FabricWaitHook)(void *argument, const int *descriptors, int count, int milliseconds);

typedef struct FabricOptions
{
	uint32_t operation_timeout_ms; /* deadline of a chain, from its wait on; 0 = FABRIC_DEFAULT_TIMEOUT_MS */
	uint32_t connect_timeout_ms;   /* deadline of connect, call and reset; 0 = the same default */
	/*
	 * What makes one deadline of several: the time (CLOCK_MONOTONIC, nanoseconds) since which the caller has had no
	 * answer.  The first wait sets it; the caller makes it 0 when a chain or call was answered.  The waits of all
	 * fabrics that share the word have connect_timeout_ms together: a connect or reset gets what is left of that, a
	 * chain or call half of it, as a reset may have to follow; each at most its own deadline, and an eighth of
	 * that at least.  NULL: each wait has its own deadline and no other.
	 */
	uint64_t *silence;
	FabricWaitHook wait; /* NULL: poll(2) */
	void *wait_argument;
	uint64_t cluster[2];  /* identity of the compute instance (a UUID): channels belong to it */
	uint32_t incarnation; /* its incarnation as granted by fabric_attach(); 0 for control-only channels */
	/*
	 * The channels are readers of the instance `cluster`, which other processes attach and use: they READ its NODES and do
	 * nothing else.  Each belongs to the incarnation that is the current one when it connects, whatever `incarnation` is; the
	 * capabilities say which, and it dies with it.  A chain of anything else is FABRIC_PROTOCOL, a call that changes something
	 * FABRIC_DENIED, and so is fabric_attach().  A drain does not wait for readers.  They are over "tcp:" and "verbs:"; over all
	 * other transports FABRIC_NOT_SUPPORTED.
	 */
	bool reader;
	const char
		*key_file; /* of the tenant, for the network transports (keys.h); read at each connect, and only
	                       * then; it outlives the fabric.  NULL: no key, for a memory node that wants none */
	struct StreamContext
		*tls; /* fabric_tls_open()'s, lent; NULL: the fabric makes its own, if it needs one */
	const struct FabricProxy *proxy; /* for "proxy:" addresses (proxy.h), else NULL */
	const struct FabricTransport
		*transport; /* one more than there are (transport.h): the simulator's; else NULL */
} FabricOptions;

#define FABRIC_DEFAULT_TIMEOUT_MS 10000u

/*
 * Makes what fabrics of this process, and of those that are forked from it, need for connections with a key,
 * whichever the key: OpenSSL reads its configuration and finds its algorithms, which takes several times as long as
 * a connection. No process's exit takes longer by it, as by OpenSSL's own first use. NULL: no memory.
 */
extern struct StreamContext *fabric_tls_open(void);
/* Behind all fabrics that have it.  NULL is fine. */
extern void fabric_tls_close(struct StreamContext *tls);

/*
 * Opens the fabric for this process.  Cheap: nothing is connected.  FABRIC_NO_MEMORY.
 * The caller frees it with fabric_close(), which closes all of its endpoints.
 */
extern FabricStatus fabric_open(const FabricOptions *options, Fabric **fabric);
extern void fabric_close(Fabric *fabric);

/*
 * Connects to a memory node.  `address` is "shm:/path/of/control.socket" or "tcp:host:port" (a name, an IPv4
 * address, or an IPv6 address in brackets), or "proxy:" in front of an address that a connection worker connects
 * to: FABRIC_BUSY if no worker serves.  Returns FABRIC_UNREACHABLE, FABRIC_DENIED (a wrong key, none, one that
 * is not wanted, or a key file that cannot be used; another tenant's cluster), FABRIC_FENCED (the
 * incarnation is not the current one; a reader's cluster is not attached, or is just being), FABRIC_NO_MEMORY (no
 * channel left), FABRIC_PROTOCOL (version), FABRIC_NOT_SUPPORTED (unknown transport, or one without readers).  With incarnation 0 the endpoint has no data channel: only
 * fabric_call() and fabric_attach() work on it.
 */
extern FabricStatus fabric_connect(Fabric *fabric, const char *address, FabricEndpoint **endpoint);
extern void fabric_disconnect(FabricEndpoint *endpoint);

/*
 * As fabric_connect(); before it returns FABRIC_OK or FABRIC_FENCED the memory node has killed the channel `old` of
 * this instance, whose process has ended: its chains are not indeterminate any more.  FABRIC_DENIED: a reader, and
 * `old` is none.
 */
extern FabricStatus fabric_connect_after(Fabric *fabric, const char *address, const FabricChannel *old,
                                         FabricEndpoint **endpoint);

/* The channel that the endpoint has now; serial 0 for a control-only endpoint. A reset changes it. */
extern void fabric_channel(const FabricEndpoint *endpoint, FabricChannel *channel);

/* The capabilities agreed at connect; valid while the endpoint lives. */
extern const FabricCapabilities *fabric_capabilities(const FabricEndpoint *endpoint);

/*
 * Posts a chain of `count` operations.  Either the whole chain is taken and *ticket names it, or nothing
 * happened (FABRIC_BUSY, FABRIC_RANGE, FABRIC_PROTOCOL, FABRIC_LOST or FABRIC_FENCED before posting).  `ops`
 * and the buffers in it stay untouched by the caller until fabric_wait() returns.
 */
extern FabricStatus fabric_post(FabricEndpoint *endpoint, FabricOp *ops, int count, uint64_t *ticket);

/*
 * Waits for the chain; results are valid only after FABRIC_OK. After FABRIC_TIMED_OUT, FABRIC_STOPPED, FABRIC_LOST
 * and FABRIC_FENCED the chain is indeterminate (contract 3). Tickets are waited for in any order.
 */
extern FabricStatus fabric_wait(FabricEndpoint *endpoint, uint64_t ticket);

/*
 * Would fabric_wait() return at once?  Never waits; moves bytes where that is needed.  To sleep until it may be
 * true, poll fabric_descriptor() for reading, unless that is -1.
 */
extern bool fabric_ended(FabricEndpoint *endpoint, uint64_t ticket);
extern int fabric_descriptor(const FabricEndpoint *endpoint);

/* fabric_post() and fabric_wait() in one. */
extern FabricStatus fabric_execute(FabricEndpoint *endpoint, FabricOp *ops, int count);

/*
 * Calls a procedure of the memory node over the control connection (rare: microseconds, not one-sided).
 * `reply_bytes` holds the room at entry and the length at exit; both may be NULL where no data are expected.
 * Returns the procedure's status, or FABRIC_TIMED_OUT / FABRIC_LOST when it is not known whether it ran:
 * calls are made idempotent by the callee.
 */
extern FabricStatus fabric_call(FabricEndpoint *endpoint, uint16_t method, const void *request,
                                uint32_t request_bytes, void *reply, uint32_t *reply_bytes);

/*
 * Makes this cluster's next incarnation the current one at the memory node: every channel of an older
 * incarnation is killed, its redo slot replayed, its stripes settled, its lock words freed; then the new
 * incarnation is granted.  With `resume` the current incarnation is returned if it still has this cluster's
 * launcher nonce (a restarted launcher, no fencing).  Called once by the instance's launcher.
 */
extern FabricStatus fabric_attach(FabricEndpoint *endpoint, bool resume, uint64_t launcher_nonce,
                                  uint32_t *instance, uint32_t *incarnation);

/*
 * After this no chain is indeterminate: the memory node kills the endpoint's old channel first (drains, replays,
 * settles), then gives it a new one; fabric_capabilities() may change. Lock words stay as they are: they belong to
 * the instance. FABRIC_FENCED when the incarnation is no longer current: a reader may connect anew then;
 * FABRIC_UNREACHABLE / FABRIC_TIMED_OUT: chains are still indeterminate.
 */
extern FabricStatus fabric_reset(FabricEndpoint *endpoint);

/*
 * Whether the memory node is known to be draining, before it stops. It serves on for a while, for clients that hold
 * locks: no new ones should be taken. Costs nothing.
 */
extern bool fabric_is_draining(const FabricEndpoint *endpoint);

extern void fabric_counters(const FabricEndpoint *endpoint, FabricCounters *counters);

/* One line about the last error on this fabric, for a log or an error message; never NULL. */
extern const char *fabric_detail(const Fabric *fabric);
extern const char *fabric_status_name(FabricStatus status);

/* A lock word: the instance, its incarnation, and a ticket that is different each time. 0 = free. */
static inline uint64_t
fabric_lock_word(uint32_t instance, uint32_t incarnation, uint32_t ticket)
{
	return (uint64_t) instance << 48 | (uint64_t) (incarnation & 0xffff) << 32 | ticket;
}

#endif /* SHERMAN_FABRIC_H */

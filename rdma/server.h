/*
 * server.h
 *		The memory node's half of the fabric: the memory segment, its channels and the control socket.
 *
 * tree/msd builds the daemon on this.  The server knows nothing of trees: it keeps the memory segment (a file
 * on tmpfs: header, service area for the daemon's own tables, lock words, channel records with their redo
 * slots, stripe words, node memory), accepts channels, and calls the service for everything else.
 *
 * Layout of the segment (all offsets in its header, rdma/memory/memory.h): the node region begins with the redo slots
 * of all channels, then node memory, which the service grants in extents of whole units.
 */
#ifndef SHERMAN_SERVER_H
#define SHERMAN_SERVER_H

#include <limits.h>

#include "fabric.h"
#include "rdma/keys.h"

/* Bytes of a line of the log at most: it may name two files. */
#define FABRIC_LOG_BYTES (2u * PATH_MAX + 512u)

/* Node memory is granted in units of 64 KB: the smallest extent. */
#define FABRIC_UNIT_BYTES 65536u

/*
 * Node memory of one segment at most: 2 TB. The segment's file, which is sparse, is longer by the largest size of its
 * tables. Machines with more memory run several memory nodes.
 */
#define FABRIC_MAX_NODE_BYTES (1ull << 41)

/* Areas for the service's own tables, and the length of one at most: two words for each unit. */
#define FABRIC_SERVICE_AREAS 2u
#define FABRIC_SERVICE_BYTES (FABRIC_MAX_NODE_BYTES / FABRIC_UNIT_BYTES * 2 * sizeof(uint64_t))

typedef struct FabricServer FabricServer;

/* The caller: an authenticated control connection. */
typedef struct FabricPeer
{
	uint64_t cluster[2];  /* identity that the peer gave at connect */
	uint32_t instance;    /* its instance number, 0 before attach */
	uint32_t incarnation; /* its incarnation, 0 for a control-only channel */
	uint32_t channel;     /* its data channel, or UINT32_MAX */
	bool reader;          /* it may change nothing, by calls either */
	uint32_t tenant;      /* 0: over the local socket, or the network without keys; else 1 to 15 */
	uint64_t *
		progress; /* of this call: 0 at its begin, then what the service has left there; FabricService.call */
} FabricPeer;

/* A channel that died, as its channel record in the memory segment shows it. */
typedef struct FabricDeadChannel
{
	uint32_t channel;
	uint64_t cluster[2];   /* whose it was */
	uint32_t tenant;       /* likewise; FABRIC_NO_TENANT: nobody can say */
	uint64_t redo_offset;  /* its redo slot in NODES */
	uint64_t write_offset; /* the WRITE that was in progress (NODES), or UINT64_MAX: none */
	uint32_t write_bytes;
	bool write_unknown; /* its WRITEs went through a device: it is not known which one was in progress */
	bool others_dead;   /* all other channels are dead, too: no process changes the memory now */
} FabricDeadChannel;

/* What the daemon built on the server provides. All callbacks run in the server's one thread. */
typedef struct FabricService
{
	void *argument;

	/*
	 * A call from a client: fills reply (room FABRIC_MAX_CALL_BYTES) and its length.  FABRIC_DENIED: not for a reader, as it
	 * changes something.  FABRIC_BUSY: not yet: the server makes the call again in a later round, with the same request and
	 * progress, until it returns something else or the client goes.
	 */
	FabricStatus (*call)(void *argument, const FabricPeer *peer, uint16_t method, const void *request,
	                     uint32_t request_bytes, void *reply, uint32_t *reply_bytes);

	/*
	 * A channel is dead and can write no more: replay its redo slot where that is due.  The server makes the
	 * stripe even afterwards.
	 */
	void (*recover)(void *argument, const FabricDeadChannel *dead);

	/*
	 * All channels of an instance's incarnations before `incarnation` are dead and recovered; their lock
	 * words are about to be freed and `incarnation` to be granted.
	 */
	void (*fenced)(void *argument, uint32_t instance, uint32_t incarnation);

	/*
	 * The most bytes of node memory that the tenant may have, 0: no limit; NULL: no tenant has one. Asked from within
	 * fabric_server_open(), too: *server is set by then, and tenants have their names.
	 */
	uint64_t (*quota)(void *argument, uint32_t tenant);
} FabricService;

typedef enum FabricLogLevel
{
	FABRIC_LOG_DEBUG,
	FABRIC_LOG_INFO,
	FABRIC_LOG_WARNING,
	FABRIC_LOG_ERROR
} FabricLogLevel;

/* Whether the memory segment is to be made of huge pages. */
typedef enum FabricHugePages
{
	FABRIC_HUGE_OFF = 0, /* nothing is done for it */
	FABRIC_HUGE_TRY,     /* where the file system of memory_path has some */
	FABRIC_HUGE_ON       /* refused (FABRIC_NOT_SUPPORTED) where it cannot have any */
} FabricHugePages;

/* Users and groups of this machine whose processes are served at the control socket, beside root and the daemon's own. */
#define FABRIC_MAX_USERS 16u

typedef struct FabricUsers
{
	uint32_t user_count;
	uint32_t group_count;
	uint32_t users[FABRIC_MAX_USERS];
	uint32_t groups[FABRIC_MAX_USERS];
} FabricUsers;

typedef struct FabricServerOptions
{
	const char *memory_path; /* the memory segment: a file on tmpfs or hugetlbfs */
	const char *socket_path; /* the control socket (AF_UNIX), mode 0600 unless the service says otherwise */
	uint64_t node_bytes;     /* node memory at most; taken as extents are granted */
	uint32_t max_channels;   /* data channels at most */
	FabricHugePages huge_pages;
	/*
	 * Access class NIC: the RDMA device through which the memory is used, by clients with verbs, and for all others by the
	 * server; all of node_bytes is taken at once, and each tenant's part of it pinned.  NULL: access class CPU.
	 */
	const char *verbs_device;
	FabricUsers users; /* users and groups that may map the memory, too (SO_PEERCRED, SO_PEERGROUPS) */

	/*
	 * Network clients: NULL: none; else "host:port", with "*" for every address and 0 for a free port. They show one
	 * of the keys, which are copied. Without keys (NULL) the address must be a loopback one, and insecure_loopback be
	 * set: then all users of this machine are served, as tenant 0.
	 */
	const char *listen;
	const FabricKeys *keys;
	bool insecure_loopback;
	/*
	 * A file on disk that the memory is saved to by fabric_server_save(), and loaded from if its segment is not
	 * there; NULL: none.  It is removed at each start.  snapshot_go_on() is called all the time that takes, with
	 * bytes; false breaks it off.  NULL: it goes on.
	 */
	const char *snapshot_path;
	bool (*snapshot_go_on)(void *argument, bool saving, uint64_t done, uint64_t total);
	void *snapshot_argument;
	const char *
		set_aside_hint; /* for the log: how files that were set aside (set_aside.h) are listed and removed; NULL: nothing */
	uint32_t max_connections; /* of network clients; 0 = four for each channel, and 64 */
	/*
	 * While network clients are active, poll for some microseconds before sleeping: their round trips take a third of
	 * the time then. Only where no other process wants the processor; not for a server inside another program.
	 */
	bool spin;

	/* `message` has at most FABRIC_LOG_BYTES, and no end of line. */
	void (*log)(void *argument, FabricLogLevel level, const char *message);
	void *log_argument;
	/*
	 * Called about every 100 ms and before each sleep; returns true to stop: drain and close. NULL: signals
	 * only
	 */
	bool (*should_stop)(void *argument);
	void *should_stop_argument;
} FabricServerOptions;

/* How the memory was found at fabric_server_open(). */
typedef enum FabricMemoryState
{
	FABRIC_MEMORY_NEW,   /* created empty: new node_uuid */
	FABRIC_MEMORY_CLEAN, /* kept from a shutdown of the daemon with no lock held and no chain in progress */
	FABRIC_MEMORY_RECOVERED, /* kept from an unclean end in the same boot: settled and replayed */
	FABRIC_MEMORY_LOADED     /* it was gone, and is as the snapshot has it: all instances attach anew */
} FabricMemoryState;

/*
 * Opens or creates the memory segment and the control socket.  A file with another magic, layout version,
 * or boot id is discarded and made anew (FABRIC_MEMORY_NEW).  One of other sizes gets those of the options, and
 * keeps its content: it is not made smaller than what is in use, and stays as it is if there is no room for more
 * (fabric_server_sizes()).  FABRIC_EXISTS: another daemon serves this segment;
 * FABRIC_NOT_SUPPORTED: huge pages or verbs are asked for and cannot be had; FABRIC_NO_MEMORY: no room for the
 * tables; FABRIC_UNREACHABLE: socket or file cannot be made (detail says why); FABRIC_BUSY: a client of the
 * segment's last daemon is in the middle of a chain and can be neither waited for nor killed; FABRIC_DENIED:
 * network clients without keys where that is not allowed; FABRIC_STOPPED: snapshot_go_on() broke it off.
 * `detail` has room for FABRIC_DETAIL_BYTES, or is
 * NULL. On a segment that was kept, `service->recover` runs for each channel that was in use before this
 * returns: *server is set by then, and the functions for service area and node memory below work on it.
 */
extern FabricStatus fabric_server_open(const FabricServerOptions *options, const FabricService *service,
                                       FabricServer **server, FabricMemoryState *state, char *detail);

/* Serves until should_stop() says so or fabric_server_stop() is called (async-signal-safe). */
extern FabricStatus fabric_server_run(FabricServer *server);
extern void fabric_server_stop(FabricServer *server);

/*
 * Serves whatever is ready now and for at most `milliseconds`: for daemons with a loop of their own, and
 * tests.
 */
extern FabricStatus fabric_server_step(FabricServer *server, int milliseconds);

/*
 * Closes: refuses new channels (FABRIC_DRAINING), notifies the open ones (fabric_is_draining()) and gives them
 * `drain_ms` to give up their locks, kills them, marks the segment clean if nothing was held or in progress then, and
 * removes the socket. The memory segment stays, unless `discard`.
 */
extern void fabric_server_close(FabricServer *server, int drain_ms, bool discard);

/*
 * To be called before fabric_server_close(): ends the service as that does, with the same `drain_ms`, and saves
 * the memory to the options' snapshot_path.  The log says how it goes.  FABRIC_NOT_SUPPORTED: there is no such
 * path; any other error: there is no snapshot.  Afterwards the server can only be closed.
 */
extern FabricStatus fabric_server_save(FabricServer *server, int drain_ms);

/*
 * One of the service areas, kept with the segment across restarts: the service's own tables.  It does not move while
 * the server is open.  *bytes: how long it is; 0 in a segment that the service has not seen yet.
 */
extern void *fabric_server_service_area(FabricServer *server, uint32_t area, uint64_t *bytes);

/* Makes it so long, at any time: what is added is zero. FABRIC_NO_MEMORY: no room, and nothing has changed. */
extern FabricStatus fabric_server_service_resize(FabricServer *server, uint32_t area, uint64_t bytes);

/* Node memory and channels that the segment has: what the options asked for, or what had to be kept. */
extern void fabric_server_sizes(const FabricServer *server, uint64_t *node_bytes, uint32_t *max_channels);

/* Node memory, mapped: offset is in NODES. Only for the service, in callbacks or between steps. */
extern void *fabric_server_node(FabricServer *server, uint64_t offset, uint64_t bytes);

/*
 * Copies granted node memory inside of one stripe, in words, at one instant: no WRITE or atomic of a client is seen
 * in part. False: WRITEs are in the way, the memory is not granted, or it is a device's (class NIC), whose WRITEs
 * cannot be seen.
 */
extern bool fabric_server_read(FabricServer *server, uint64_t offset, uint32_t bytes, uint64_t *buffer);

/*
 * A lock word as it is now, of the tenant whose channel this is, or was last. False: there is none of this index, or the device does not
 * answer.
 */
extern bool fabric_server_lock_word(FabricServer *server, uint32_t channel, uint64_t index, uint64_t *word);

/* First offset in NODES behind the redo slots, a multiple of FABRIC_UNIT_BYTES, and the region's end. */
extern void fabric_server_node_range(FabricServer *server, uint64_t *first, uint64_t *end);

/*
 * Where in NODES the tenant may be granted units: everywhere; if the memory node serves verbs, in [*first, *end),
 * which no other tenant has, and which stays the same until the next start. False: nothing is left for it.
 */
extern bool fabric_server_part(FabricServer *server, uint32_t tenant, uint64_t *first, uint64_t *end);

/*
 * Takes (and zeroes) or gives back the pages behind [offset, offset + bytes), whole units. commit returns
 * FABRIC_NO_MEMORY when the file system is full: then nothing is taken, and no process gets a SIGBUS later. Network
 * clients of other tenants than `tenant` (FabricPeer) can neither read nor change the memory.
 */
extern FabricStatus fabric_server_commit(FabricServer *server, uint32_t tenant, uint64_t offset,
                                         uint64_t bytes);
extern void fabric_server_release(FabricServer *server, uint64_t offset, uint64_t bytes);

/* The tenant for which the unit of the offset was taken last. FABRIC_NO_TENANT: it belongs to none. */
#define FABRIC_NO_TENANT UINT32_MAX
extern uint32_t fabric_server_unit_tenant(const FabricServer *server, uint64_t offset);

/* How often the daemon started over this memory, and the memory's identity. */
extern uint64_t fabric_server_generation(const FabricServer *server);
extern void fabric_server_uuid(const FabricServer *server, uint64_t uuid[2]);

/* The port at which network clients are served; 0: they are not. */
extern uint16_t fabric_server_port(const FabricServer *server);

/*
 * Other keys from now on (FABRIC_NOT_SUPPORTED: the server was opened without).  Connections whose key is
 * no longer there are closed, and their channels dead.
 */
extern FabricStatus fabric_server_set_keys(FabricServer *server, const FabricKeys *keys);

/*
 * Forgets a tenant that has no units any more, and its clusters: another one may have its place. Not number 0; while
 * no client is served.
 */
extern void fabric_server_forget_tenant(FabricServer *server, uint32_t tenant);

/* The name of a tenant that ever came, by FabricPeer's number; empty: there is none of that number. */
extern const char *fabric_server_tenant(const FabricServer *server, uint32_t tenant);

/*
 * Whether the tenant may have one more of a resource of the service, of which there are `most`, and each tenant has
 * used[]. As for channels: half is first come first served, of the rest each tenant with a key has an equal part. The
 * local tenant always may, for local clients are trusted.
 */
extern bool fabric_server_leaves_enough(const FabricServer *server, uint32_t tenant, uint32_t most,
                                        const uint32_t used[FABRIC_MAX_TENANTS + 1]);

/* Warns of what clients can cause at will: a few times in a while; then it is counted. */
extern void fabric_server_warn(FabricServer *server, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Number of live data channels, for views and tests: of all, and of one tenant. */
extern uint32_t fabric_server_channels(const FabricServer *server);
extern uint32_t fabric_server_tenant_channels(const FabricServer *server, uint32_t tenant);

/* What a server has and did, for its operator. Counters begin with the daemon. */
typedef struct FabricServerFigures
{
	uint64_t channels;       /* live data channels now */
	uint64_t channels_tcp;   /* of them: of clients whose chains come in frames */
	uint64_t channels_verbs; /* of them: of clients of a device */
	uint64_t connections;    /* control connections now */
	uint64_t connections_accepted;
	uint64_t connections_refused;     /* ended by us: denied, draining, no channel left, another protocol */
	uint64_t authentication_failures; /* no key or a wrong one */
	uint64_t channels_granted;
	uint64_t channels_killed;  /* closed, by their client or by us */
	uint64_t channels_settled; /* of them: died inside an operation and were made whole */
	uint64_t processes_killed; /* clients that would not leave the memory */
	uint64_t incarnations;     /* granted: all older channels of the instance were fenced */
	uint64_t locks_recovered;  /* lock words of fenced incarnations that were freed */
	uint64_t chains;           /* executed for clients without the memory mapped */
	uint64_t operations;       /* in them */
	uint64_t chains_refused;   /* outside of the contract, or of what their client may reach */
	uint64_t chain_read_bytes;
	uint64_t chain_written_bytes;
} FabricServerFigures;

extern void fabric_server_figures(const FabricServer *server, FabricServerFigures *figures);

/*
 * Moves a memory segment away that no daemon serves and no process maps: it is set aside with this reason
 * (set_aside.h), under the name `kept` (PATH_MAX), or, with nothing in it, removed (`kept` is ""). FABRIC_NOT_FOUND:
 * there is none; FABRIC_DENIED: what is there is not such a file; FABRIC_EXISTS, FABRIC_BUSY: it is in use;
 * FABRIC_UNREACHABLE.
 */
extern FabricStatus fabric_segment_set_aside(const char *path, const char *why, char *kept, char *detail);

/* Is there a finished memory segment at the path that this user may serve, and does a daemon (*served)?  Nothing is changed. */
extern bool fabric_segment_is_there(const char *path, bool *served);

#endif /* SHERMAN_SERVER_H */

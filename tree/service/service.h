/*
 * service.h
 *		The memory node as a whole: rdma/'s server with the directory of trees on top.
 *
 * Two callers: msd.c, the standalone daemon, and am/, whose background worker is the embedded node.  Use:
 *
 *		ServiceOptions options = {.memory_path = "/dev/shm/x", .socket_path = "...", .node_bytes = 1 << 30};
 *		Service *service;
 *		char detail[FABRIC_DETAIL_BYTES];
 *
 *		if (service_open(&options, &service, detail) != FABRIC_OK)
 *			report(detail);
 *		service_run(service);				-- until should_stop() is true or service_stop() was called
 *		service_close(service, 2000, false);
 *
 * Everything runs in the caller's one thread; nothing here forks, exits, prints, jumps or handles signals.  Callbacks
 * may not jump out (no ereport(ERROR)): should_stop() answers, log() writes.
 *
 * The service's data lie in the service area of the memory segment and survive the end of the daemon at any
 * instruction: see service.c.
 */
#ifndef SHERMAN_SERVICE_H
#define SHERMAN_SERVICE_H

#include "rdma/memory/set_aside.h"
#include "rdma/keys.h"
#include "rdma/server.h"

typedef struct Service Service;

/* The most tenants, number 0 included: clients without a key, on the local socket. */
#define SERVICE_MAX_TENANTS (FABRIC_MAX_TENANTS + 1)
/* The name of number 0 in quotas and figures. */
#define SERVICE_LOCAL_TENANT "local"
#define SERVICE_MAX_QUOTAS SERVICE_MAX_TENANTS

/* Node memory that a tenant may have at most. */
typedef struct ServiceQuota
{
	char tenant[FABRIC_TENANT_BYTES];
	uint64_t bytes;
} ServiceQuota;

typedef struct ServiceQuotas
{
	uint32_t count;
	ServiceQuota quotas[SERVICE_MAX_QUOTAS];
} ServiceQuotas;

/* Data channels at most (one for each process that uses the node), if the options do not say. */
#define SERVICE_DEFAULT_CHANNELS 256u
/* Node memory may not be smaller: 16 units. */
#define SERVICE_MIN_BYTES (1u << 20)
#define SERVICE_MAX_BYTES FABRIC_MAX_NODE_BYTES
/* Trees that one memory node can hold: their records take room as they come. */
#define SERVICE_MAX_TREES (1u << 20)

typedef struct ServiceOptions
{
	const char *memory_path; /* the memory segment: a file on tmpfs or hugetlbfs; made if it is not there */
	const char *socket_path; /* the control socket; clients connect to "shm:" and this path */
	/*
	 * Node memory at most, rounded down to 64 KB, taken as it is used; and channels. Memory that had others keeps its
	 * content: service_sizes() returns its present sizes.
	 */
	uint64_t node_bytes;
	uint32_t max_channels;      /* 0 = SERVICE_DEFAULT_CHANNELS */
	uint32_t max_trees;         /* 0 = SERVICE_MAX_TREES; those that are there stay */
	const char *verbs_device;   /* access class NIC, as in FabricServerOptions; NULL: class CPU */
	FabricUsers users;          /* as in FabricServerOptions */
	FabricHugePages huge_pages; /* likewise */
	const char *snapshot_path;  /* as in FabricServerOptions: the file of service_save(); NULL: none */
	bool (*snapshot_go_on)(void *argument, bool saving, uint64_t done, uint64_t total); /* likewise */
	void *snapshot_argument;
	const char *set_aside_hint;                                             /* likewise */
	void (*log)(void *argument, FabricLogLevel level, const char *message); /* NULL: no log */
	void *log_argument;
	ServiceQuotas quotas;   /* of tenants by name; without one a tenant may have all */
	const char *listen;     /* clients across the network, as in FabricServerOptions; NULL: none */
	const FabricKeys *keys; /* likewise */
	bool insecure_loopback; /* likewise */
	bool (*should_stop)(void *argument); /* asked about every 100 ms; NULL: only service_stop() ends it */
	void *should_stop_argument;
} ServiceOptions;

/*
 * Opens or makes the memory segment, repairs what an unclean end left (lock words, stripes, redo slots, tables), and
 * listens.  The strings in `options` must outlive the service.  `detail` (FABRIC_DETAIL_BYTES) says why it failed:
 * FABRIC_RANGE (options), FABRIC_EXISTS (another daemon serves this segment), FABRIC_NO_MEMORY (no room on the file
 * system, or in this process), FABRIC_UNREACHABLE (file or socket cannot be made, the snapshot not removed),
 * FABRIC_DENIED, FABRIC_STOPPED (snapshot_go_on() said so).
 */
extern FabricStatus service_open(const ServiceOptions *options, Service **service, char *detail);

/*
 * The present node memory and number of channels: as in the options, or more node memory, if that is in use, or less
 * of either, if there was no room.
 */
extern void service_sizes(const Service *service, uint64_t *node_bytes, uint32_t *max_channels);

/* How the memory was found: new, kept from a clean end, recovered, or loaded from the snapshot. */
extern FabricMemoryState service_memory_state(const Service *service);

/* Serves until should_stop() or service_stop(). */
extern FabricStatus service_run(Service *service);

/* Serves what is ready now, and waits for more for at most `milliseconds`: for loops of one's own, and tests. */
extern FabricStatus service_step(Service *service, int milliseconds);

/* Makes service_run() return soon; async-signal-safe. */
extern void service_stop(Service *service);

/*
 * Refuses new channels, gives the open ones `drain_ms` to go, marks the memory clean if no lock is held and no chain is
 * inside an operation, removes the socket and frees the service.  The memory segment stays unless `discard`.
 */
extern void service_close(Service *service, int drain_ms, bool discard);

/*
 * To be called before service_close(), for a planned end: gives the channels `drain_ms` to go, and saves the
 * memory to the snapshot, if one is configured and there is a tree.  False: there is none, and the log says why;
 * but a node without trees needs none.
 */
extern bool service_save(Service *service, int drain_ms);

/* Other quotas from now on. A tenant that has more than its new quota keeps it, and gets no more. */
extern void service_set_quotas(Service *service, const ServiceQuotas *quotas);

/*
 * Drops all trees of a tenant, of all its clusters, gives their memory back, and forgets the tenant and its clusters:
 * for a tenant that is gone, while no client is served. *trees and *bytes: what was dropped. FABRIC_NOT_FOUND: no
 * tenant of that name ever came.
 */
extern FabricStatus service_drop_tenant(Service *service, const char *name, uint64_t *trees, uint64_t *bytes);

/* The server below. */
extern FabricServer *service_server(Service *service);

/* ---- figures, for the operator ---- */

/* Upper bounds in microseconds of all but the last bucket of a histogram of times, which has none. */
#define SERVICE_BUCKETS 12u
extern const uint32_t service_bucket_us[SERVICE_BUCKETS - 1];

/* Calls of one method, since the daemon started. */
typedef struct ServiceCalls
{
	uint64_t buckets[SERVICE_BUCKETS]; /* by the time that they took */
	uint64_t total_us;
	uint64_t failed; /* of them: did not return FABRIC_OK */
} ServiceCalls;

/* Methods that are counted: those of directory.h; 0 stands for unknown ones. */
#define SERVICE_METHODS 14u
/* The name of a method, for figures. */
extern const char *service_method_name(uint32_t method);

typedef struct ServiceTenant
{
	char name[FABRIC_TENANT_BYTES];
	uint64_t bytes; /* of node memory */
	uint64_t quota; /* 0 = none */
	uint64_t trees;
} ServiceTenant;

typedef struct ServiceFigures
{
	FabricServerFigures server;
	ServiceCalls calls[SERVICE_METHODS];
	uint64_t generation;
	uint64_t bytes_total; /* node memory that may be granted */
	uint64_t bytes_used;
	uint64_t bytes_quarantined;
	uint64_t trees;
	uint64_t extents;
	uint64_t memory_state; /* FabricMemoryState */
	uint64_t tenants;
	ServiceTenant tenant[SERVICE_MAX_TENANTS];
} ServiceFigures;

/* Reads them; from the service's own thread. */
extern void service_figures(Service *service, ServiceFigures *figures);

/* ---- for the tests of service.c ---- */

/*
 * Whether a channel died inside the WRITE of its redo image into `target`, the memory of its target node. The caller
 * has checked with redo_valid() that the image is complete, and that the target lies in the tree that it names.
 *
 * Through a device nobody knows which WRITE was in progress (write_unknown): there the node has to be a mixture of
 * exactly the slot's generation and the one before, as packets that land in order leave it (test/models/redo.pml,
 * case NODE). A later WRITE of a living client may look the same, so the lock word must also show that no other
 * process had the lock after the dead channel's chain.
 */
extern bool service_half_landed(const FabricDeadChannel *dead, const void *image, uint64_t target_offset,
                                uint32_t target_bytes, const void *target);

/* Stores the image. */
extern void service_replay(const FabricDeadChannel *dead, const void *image, uint32_t target_bytes,
                           void *target);

#endif /* SHERMAN_SERVICE_H */

/*
 * service_state.h
 *		Shared by the files of the memory node's service. Private to them, and to callers without a connection: the
 *		simulator, tests.
 *
 * service.c: opening, serving, closing, redo slots.  service_calls.c: the calls of directory.h.
 * service_descend.c: lookups that a client gives away.  service_tables.c, service_units.c, service_runs.c: what outlives the
 * daemon.
 *
 * A call's time does not depend on the amount of memory or the number of trees. A call that has to wait, or has much
 * to examine, returns FABRIC_BUSY and is made again in the next round; *peer->progress keeps its state between
 * rounds.
 */
#ifndef SHERMAN_SERVICE_STATE_H
#define SHERMAN_SERVICE_STATE_H

#include "tree/service/service.h"
#include "tree/service/service_tables.h"

/* A client's description of a tree that it has made. */
#define SERVICE_FLAGS_OF_CLIENTS                                                                             \
	(TREE_RECORD_BROKEN | TREE_RECORD_BUILT | TREE_RECORD_REPLICA_MASK << TREE_RECORD_REPLICA_SHIFT)

struct Service
{
	ServiceOptions options;
	FabricServer *server;
	FabricMemoryState state;
	ServiceTables tables;
	ServiceCalls calls[SERVICE_METHODS];
	uint32_t max_trees;
};

/* service.c */
extern uint64_t service_now_us(void);
extern uint64_t service_random(void);
extern void service_log(const Service *service, FabricLogLevel level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* A TablesRelease: gives the pages of units back to the server. `argument` is the service. */
extern void service_release_units(void *argument, uint64_t offset, uint64_t bytes);

/* Node memory that may be granted, in bytes: as much as is asked for, though the memory may have more. */
extern uint64_t service_bytes_total(const Service *service);

/* Whom the peer's trees belong to. */
extern TablesOwner service_owner(const FabricPeer *peer);
/* The peer's tree, or NULL: trees of others do not exist for it. */
extern ServiceRecord *service_peer_tree(Service *service, const FabricPeer *peer, uint64_t tree);

/* The name of a tenant that ever came; empty: there is none of this number. */
extern const char *service_tenant_name(const Service *service, uint32_t tenant);

/* The quota of a tenant in bytes; 0: it has none. */
extern uint64_t service_quota(const Service *service, uint32_t tenant);

/*
 * FabricService.recover: a channel died: if it died inside the rewrite of a node, the node is restored from the redo
 * slot.
 */
extern void service_recover(void *argument, const FabricDeadChannel *dead);

/* service_space.c */

/*
 * Waits for freed memory whose quarantine is about to end, and gives some of it back. Only while no client is served.
 */
extern void service_quarantine_wait(Service *service);
/*
 * Takes units for an extent of *bytes for the slot, or for a shorter one if there is no run so long or the quota is
 * smaller. They stay pending. FABRIC_BUSY: there may be some when a quarantine is over.
 */
extern FabricStatus service_extent_take(Service *service, const ServiceRecord *slot, uint32_t tenant,
                                        uint64_t *bytes, uint64_t *offset);
/* A free slot for one more record of the tenant, of which others leave it enough. FABRIC_BUSY, FABRIC_TOO_MANY, FABRIC_NO_MEMORY. */
extern FabricStatus service_slot(Service *service, uint32_t tenant, ServiceRecord **slot);

/* service_calls.c */

/* FabricService.call. */
extern FabricStatus service_call(void *argument, const FabricPeer *peer, uint16_t method, const void *request,
                                 uint32_t request_bytes, void *reply, uint32_t *reply_bytes);

/* service_replicas.c: two of the calls */
extern FabricStatus service_replica(Service *service, const FabricPeer *peer,
                                    const DirectoryReplicaRequest *request, DirectoryReplica *reply);
extern FabricStatus service_replicas(Service *service, const FabricPeer *peer,
                                     const DirectoryReplicasRequest *request, DirectoryReplicas *reply);

/* service_descend.c: one of the calls */
extern FabricStatus service_descend(Service *service, const FabricPeer *peer, const DirectoryDescent *request,
                                    DirectoryDescended *reply);

#endif /* SHERMAN_SERVICE_STATE_H */

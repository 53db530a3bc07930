/*
 * verbs_server.h
 *		The memory node's half of the verbs transport.  Private to rdma/.
 *
 * A memory node that serves verbs is of access class NIC: its data and lock words are touched through the device alone, by
 * clients and by the memory node itself (over a loopback queue pair), with two exceptions that no atomic meets: redo
 * slots are cleared and replayed, and newly granted units are zeroed, by the processor.
 */
#ifndef SHERMAN_VERBS_SERVER_H
#define SHERMAN_VERBS_SERVER_H

#include "server_state.h"
#include "verbs.h"

/*
 * Opens the device, pins the memory and registers it, and probes what of a WRITE a READ can see.  FABRIC_NOT_SUPPORTED: no driver, no such device,
 * or one without atomics; FABRIC_NO_MEMORY: it cannot be pinned.  `detail` says why.
 */
extern FabricStatus verbs_server_open(FabricServer *server, char *detail);
extern void verbs_server_close(FabricServer *server);

/*
 * Gives a channel its queue pair, connected with the client's.  FABRIC_DENIED: the node serves another tenant;
 * FABRIC_NO_MEMORY: the log says why.
 */
extern FabricStatus verbs_server_connect(FabricServer *server, uint32_t channel, const VerbsAddress *client,
                                         VerbsGrant *grant);
/* Destroys the channel's queue pair, if it has one: nothing of it can land afterwards. */
extern void verbs_server_kill(FabricServer *server, uint32_t channel);

/* Fills in what clients of verbs are told of this node. */
extern void verbs_server_capabilities(const FabricServer *server, FabricCapabilities *capabilities);

/*
 * May clients of the tenant come over the network?  A node that serves verbs is for the tenant whose client got the first
 * channel after the start, as a device could not keep two apart; any other serves all.
 */
extern bool verbs_server_serves(const FabricServer *server, uint32_t tenant);

/* Are the tenant's lock words used through the device?  Not before its first client has a channel. */
extern bool verbs_server_has_locks(const FabricServer *server, uint32_t tenant);

/* These lock words as they are now: where they lie, or a copy of those on the device. */
extern const uint64_t *verbs_server_locks(const FabricServer *server);

/*
 * Frees the lock words of the instance's other incarnations.  False: the device failed, and not all of them are free.
 */
extern bool verbs_server_free_locks(FabricServer *server, uint32_t instance, uint32_t incarnation,
                                    uint32_t *freed);

#endif /* SHERMAN_VERBS_SERVER_H */

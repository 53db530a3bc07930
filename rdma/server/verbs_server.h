/*
 * verbs_server.h
 *		The memory node's half of the verbs transport.  Private to rdma/.
 *
 * A memory node that serves verbs is of access class NIC: its data and lock words are touched through the device alone, by clients
 * of verbs over queue pairs of their own, and by the memory node itself over loopback queue pairs, for all other clients; with two
 * exceptions that no atomic meets: redo slots are cleared and replayed, and newly granted units are zeroed, by the processor.
 */
#ifndef SHERMAN_VERBS_SERVER_H
#define SHERMAN_VERBS_SERVER_H

#include "rdma/server/server_state.h"
#include "rdma/verbs/verbs.h"

/*
 * Opens the device, deals the parts of the tenants, pins and registers them, and probes what of a WRITE a READ can see.
 * FABRIC_NOT_SUPPORTED: no driver, no such device, one without atomics, or the memory of several tenants is mixed; FABRIC_NO_MEMORY:
 * it cannot be pinned.  `detail` says why.
 */
extern FabricStatus verbs_server_open(FabricServer *server, char *detail);
extern void verbs_server_close(FabricServer *server);

/*
 * Makes sure that the tenant has a part of node memory and a domain on the device.  FABRIC_DENIED: no memory is left for it;
 * FABRIC_NO_MEMORY: the log says why.  FABRIC_OK without a device.
 */
extern FabricStatus verbs_server_admit(FabricServer *server, uint32_t tenant);
/* Has the tenant memory here?  True without a device. */
extern bool verbs_server_serves(const FabricServer *server, uint32_t tenant);

/*
 * Gives a channel its queue pair, connected with the client's; or one with both ends here, for a client whose chains come in
 * frames.  FABRIC_NO_MEMORY: the log says why.
 */
extern FabricStatus verbs_server_connect(FabricServer *server, uint32_t channel, const VerbsAddress *client,
                                         VerbsGrant *grant);
extern FabricStatus verbs_server_loop(FabricServer *server, uint32_t channel);
/* Destroys the channel's queue pair, if it has one: nothing of it can land afterwards. */
extern void verbs_server_kill(FabricServer *server, uint32_t channel);

/*
 * Hands a chain to the device for a channel of frames. `ops` and their buffers stay until verbs_server_poll() does
 * not say FABRIC_BUSY any more: FABRIC_OK: it is done; else it is indeterminate, and *reason says why: the channel
 * has to be killed.
 */
extern FabricStatus verbs_server_post(FabricServer *server, uint32_t channel, FabricOp *ops, int count);
extern FabricStatus verbs_server_poll(FabricServer *server, uint32_t channel, const char **reason);

/* Fills in the description of this node for clients of a tenant. */
extern void verbs_server_capabilities(const FabricServer *server, uint32_t tenant,
                                      FabricCapabilities *capabilities);

/* Are the tenant's lock words used through the device?  Not before it has a domain. */
extern bool verbs_server_has_locks(const FabricServer *server, uint32_t tenant);

/* These lock words as they are now: where they lie, or a copy of those on the device; NULL: it does not answer. */
extern const uint64_t *verbs_server_locks(const FabricServer *server, uint32_t tenant);

/* Frees the lock words of the instance's other incarnations.  False: the device failed, and not all of them are free. */
extern bool verbs_server_free_locks(FabricServer *server, uint32_t tenant, uint32_t instance,
                                    uint32_t incarnation, uint32_t *freed);

#endif /* SHERMAN_VERBS_SERVER_H */

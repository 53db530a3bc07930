/*
 * verbs_domain.h
 *		What a tenant has on the memory node's device: a protection domain with its part of NODES, its lock words, and a
 * loopback queue pair for what the memory node itself does with them.  Private to rdma/.
 *
 * A queue pair reaches what is registered in its own domain, so a client of one tenant can touch nothing of another's, whatever
 * keys and addresses it makes up.
 */
#ifndef SHERMAN_VERBS_DOMAIN_H
#define SHERMAN_VERBS_DOMAIN_H

#include "rdma/server/server_state.h"
#include "rdma/verbs/verbs.h"

typedef struct VerbsDomain
{
	const VerbsDriver *driver;
	VerbsDevice *device; /* opened for this tenant: with a protection domain of its own */
	VerbsMemory *nodes;  /* the tenant's part */
	VerbsMemory *locks;
	uint64_t *host_locks; /* where they lie in the memory segment; NULL: on the device */
	VerbsQueue *active;   /* the loopback's end that posts */
	VerbsQueue *passive;
	uint64_t *copy; /* of the lock table, for the loopback */
	VerbsMemory *copy_memory;
} VerbsDomain;

/*
 * Opens the device and registers the tenant's part, which is pinned with that, and lock words.  NULL, and `detail` says why: the
 * device fails, or the memory cannot be pinned.  The caller closes it; nothing else of the domain is left by then.
 */
extern VerbsDomain *domain_open(const FabricServer *server, const VerbsDriver *driver, uint32_t tenant,
                                char *detail);
/* NULL is fine. */
extern void domain_close(VerbsDomain *domain);

/* Connects two queue pairs of one domain with each other: the active one posts up to `depth` requests. False: `detail`. */
extern bool domain_loopback(const VerbsDomain *domain, uint32_t depth, VerbsQueue **active,
                            VerbsQueue **passive, char *detail);

/* The lock words as they are now: where they lie, or a copy of those on the device; NULL: the device does not answer. */
extern const uint64_t *domain_locks(VerbsDomain *domain);

/* Frees the lock words of the instance's other incarnations, by the device. False: it failed, not all of them are free. */
extern bool domain_free_locks(VerbsDomain *domain, uint32_t instance, uint32_t incarnation, uint32_t *freed);

#endif /* SHERMAN_VERBS_DOMAIN_H */

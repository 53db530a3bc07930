/*
 * verbs_domain.c
 *		See verbs_domain.h.
 */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>

#include "rdma/server/verbs_domain.h"

/* A loopback queue pair answers in microseconds; after this its device is broken. */
#define LOOPBACK_MS 5000u

/* The lock table is read by one chain. */
#define LOCK_READS (MEMORY_LOCK_BYTES / FABRIC_STRIPE_BYTES)

_Static_assert(LOCK_READS <= VERBS_MAX_POST, "the lock table fits one chain");

void
domain_close(VerbsDomain *domain)
{
	if (domain == NULL)
		return;
	if (domain->active != NULL)
		domain->driver->queue_destroy(domain->active);
	if (domain->passive != NULL)
		domain->driver->queue_destroy(domain->passive);
	if (domain->copy_memory != NULL)
		domain->driver->memory_release(domain->copy_memory);
	if (domain->locks != NULL)
		domain->driver->memory_release(domain->locks);
	if (domain->nodes != NULL)
		domain->driver->memory_release(domain->nodes);
	if (domain->device != NULL)
		domain->driver->device_close(domain->device);
	free(domain->copy);
	free(domain);
}

/* Registers the part and the lock words, which lie on the device if it has room for them. */
static bool
register_memory(const FabricServer *server, VerbsDomain *domain, uint32_t tenant, char *detail)
{
	const VerbsDriver *driver = domain->driver;
	const ServerPart *part = &server->parts[tenant];
	VerbsProperties properties;

	domain->nodes = driver->memory_register(domain->device, server->memory.nodes + part->first,
	                                        part->end - part->first, VERBS_CHANGES, detail);
	if (domain->nodes == NULL)
		return false;
	driver->device_properties(domain->device, &properties);
	if (properties.lock_memory >= MEMORY_LOCK_BYTES)
	{
		domain->locks = driver->memory_on_device(domain->device, MEMORY_LOCK_BYTES, detail);
		if (domain->locks != NULL)
			return true;
		server_log(server, FABRIC_LOG_WARNING, "%s: they stay in the host's memory", detail);
	}
	domain->host_locks = memory_tenant_locks(&server->memory, tenant);
	domain->locks =
		driver->memory_register(domain->device, domain->host_locks, MEMORY_LOCK_BYTES, VERBS_CHANGES, detail);
	return domain->locks != NULL;
}

bool
domain_loopback(const VerbsDomain *domain, uint32_t depth, VerbsQueue **active, VerbsQueue **passive,
                char *detail)
{
	const VerbsDriver *driver = domain->driver;
	VerbsAddress posting, serving;

	*active = driver->queue_create(domain->device, NULL, depth, false, &posting, detail);
	*passive =
		*active == NULL ? NULL : driver->queue_create(domain->device, NULL, 0, false, &serving, detail);
	return *passive != NULL && driver->queue_connect(*active, &serving, detail) &&
	       driver->queue_connect(*passive, &posting, detail);
}

VerbsDomain *
domain_open(const FabricServer *server, const VerbsDriver *driver, uint32_t tenant, char *detail)
{
	VerbsDomain *domain = calloc(1, sizeof(VerbsDomain));
	uint64_t *copy = aligned_alloc(MEMORY_PAGE_BYTES, MEMORY_LOCK_BYTES);

	if (domain == NULL || copy == NULL)
	{
		free(domain);
		free(copy);
		snprintf(detail, FABRIC_DETAIL_BYTES, "out of memory");
		return NULL;
	}
	domain->driver = driver;
	domain->copy = copy;
	domain->device = driver->device_open(server->options.verbs_device, NULL, detail);
	if (domain->device != NULL && register_memory(server, domain, tenant, detail))
		domain->copy_memory =
			driver->memory_register(domain->device, domain->copy, MEMORY_LOCK_BYTES, VERBS_NOTHING, detail);
	if (domain->copy_memory != NULL &&
	    domain_loopback(domain, VERBS_MAX_POST, &domain->active, &domain->passive, detail))
		return domain;
	domain_close(domain);
	return NULL;
}

/* Runs a chain on the loopback queue pair to its end. */
static bool
run_loopback(VerbsDomain *domain, const VerbsRequest *requests, int count)
{
	uint64_t deadline = fabric_now() + (uint64_t) LOOPBACK_MS * 1000000;
	VerbsOutcome outcome = VERBS_NONE;
	const char *reason;
	uint64_t id;

	if (domain->driver->queue_post(domain->active, requests, count, 1) != VERBS_DONE)
		return false;
	while (outcome == VERBS_NONE && fabric_now() < deadline)
		outcome = domain->driver->queue_poll(domain->active, &id, &reason);
	return outcome == VERBS_DONE;
}

/* Reads the lock table into the copy. */
static bool
read_locks(VerbsDomain *domain)
{
	VerbsRequest requests[LOCK_READS];
	VerbsMemoryKeys locks, copy;

	domain->driver->memory_keys(domain->locks, &locks);
	domain->driver->memory_keys(domain->copy_memory, &copy);
	for (uint32_t i = 0; i < LOCK_READS; i++)
		requests[i] = (VerbsRequest){
			.opcode = VERBS_READ,
			.length = FABRIC_STRIPE_BYTES,
			.buffer = (uint8_t *) domain->copy + (size_t) i * FABRIC_STRIPE_BYTES,
			.local_key = copy.local,
			.remote_key = locks.remote,
			.remote_address = locks.base + (uint64_t) i * FABRIC_STRIPE_BYTES,
		};
	return run_loopback(domain, requests, LOCK_READS);
}

const uint64_t *
domain_locks(VerbsDomain *domain)
{
	if (domain->host_locks != NULL)
		return domain->host_locks;
	return read_locks(domain) ? domain->copy : NULL;
}

bool
domain_free_locks(VerbsDomain *domain, uint32_t instance, uint32_t incarnation, uint32_t *freed)
{
	VerbsMemoryKeys locks, copy;
	bool good;

	domain->driver->memory_keys(domain->locks, &locks);
	domain->driver->memory_keys(domain->copy_memory, &copy);
	*freed = 0;
	good = read_locks(domain);
	for (uint32_t i = 0; good && i < MEMORY_LOCK_WORDS; i++)
	{
		uint64_t word = domain->copy[i];
		VerbsRequest swap = {
			.opcode = VERBS_COMPARE_SWAP,
			.length = sizeof(uint64_t),
			.buffer = &domain->copy[i],
			.local_key = copy.local,
			.remote_key = locks.remote,
			.remote_address = locks.base + (uint64_t) i * sizeof(uint64_t),
			.compare = word,
			.operand = 0,
		};

		if (word == 0 || !memory_lock_is_stale(word, instance, incarnation))
			continue;
		/* By the device: a store of ours could be undone by a failing swap of another client, which writes back. */
		good = run_loopback(domain, &swap, 1);
		*freed += good;
	}
	return good;
}

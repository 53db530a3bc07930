/*
 * verbs_server.c
 *		The memory node's half of the verbs transport: memory for the device, a queue pair for each channel, and a loopback
 * queue pair for what the memory node itself does with lock words.
 */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "verbs_server.h"

/* How long the device is watched for tears at the start. */
#define PROBE_MS 300u

/* A loopback queue pair answers in microseconds; after this its device is broken. */
#define LOOPBACK_MS 5000u

/* The lock table is read by one chain. */
#define LOCK_READS (MEMORY_LOCK_BYTES / FABRIC_STRIPE_BYTES)

/* All clients of the device can reach all of NODES: they are of one tenant. */
#define NO_TENANT UINT32_MAX

_Static_assert(LOCK_READS <= VERBS_MAX_POST, "the lock table fits one chain");

struct VerbsServer
{
	const VerbsDriver *driver;
	VerbsDevice *device;
	VerbsProperties properties;
	VerbsMemory *regions[2]; /* by FabricRegion; LOCKS of the tenant, once there is one */
	bool device_locks;       /* LOCKS lies on the device */
	uint32_t tenant;         /* whose clients have the channels, or NO_TENANT before the first */
	VerbsQueue *active;      /* the loopback's end that posts */
	VerbsQueue *passive;
	uint64_t *copy; /* of the lock table, for the loopback */
	VerbsMemory *copy_memory;
	bool line_atomic;
	VerbsQueue **queues; /* of the channels */
};

void
verbs_server_close(FabricServer *server)
{
	VerbsServer *verbs = server->verbs;

	if (verbs == NULL)
		return;
	for (uint32_t i = 0; verbs->queues != NULL && i < server->memory.header->max_channels; i++)
		verbs_server_kill(server, i);
	if (verbs->active != NULL)
		verbs->driver->queue_destroy(verbs->active);
	if (verbs->passive != NULL)
		verbs->driver->queue_destroy(verbs->passive);
	if (verbs->copy_memory != NULL)
		verbs->driver->memory_release(verbs->copy_memory);
	for (int region = FABRIC_NODES; region <= FABRIC_LOCKS; region++)
	{
		if (verbs->regions[region] != NULL)
			verbs->driver->memory_release(verbs->regions[region]);
	}
	if (verbs->device != NULL)
		verbs->driver->device_close(verbs->device);
	free(verbs->copy);
	free(verbs->queues);
	free(verbs);
	server->verbs = NULL;
}

/* Pins all of node memory, for the device needs it where it is, and registers both regions. */
static FabricStatus
register_regions(FabricServer *server, char *detail)
{
	VerbsServer *verbs = server->verbs;
	Memory *memory = &server->memory;
	uint64_t bytes = memory->header->region_bytes;

	if (memory_allocate(memory, memory->nodes, bytes) != FABRIC_OK)
	{
		snprintf(detail, FABRIC_DETAIL_BYTES,
		         "no room for %llu bytes of node memory, which verbs needs at once",
		         (unsigned long long) bytes);
		return FABRIC_NO_MEMORY;
	}
	verbs->regions[FABRIC_NODES] =
		verbs->driver->memory_register(verbs->device, memory->nodes, bytes, true, detail);
	if (verbs->regions[FABRIC_NODES] == NULL)
		return FABRIC_NO_MEMORY;
	if (verbs->properties.lock_memory < MEMORY_LOCK_BYTES)
		return FABRIC_OK;
	verbs->regions[FABRIC_LOCKS] = verbs->driver->memory_on_device(verbs->device, MEMORY_LOCK_BYTES, detail);
	verbs->device_locks = verbs->regions[FABRIC_LOCKS] != NULL;
	if (!verbs->device_locks)
		server_log(server, FABRIC_LOG_WARNING, "%s: they stay in the host's memory", detail);
	return FABRIC_OK;
}

/* The first client with a channel decides for which tenant this node is. */
static FabricStatus
admit_tenant(FabricServer *server, uint32_t tenant)
{
	VerbsServer *verbs = server->verbs;
	char detail[FABRIC_DETAIL_BYTES];

	if (verbs->tenant == tenant)
		return FABRIC_OK;
	if (verbs->tenant != NO_TENANT)
		return FABRIC_DENIED;
	if (!verbs->device_locks)
		verbs->regions[FABRIC_LOCKS] = verbs->driver->memory_register(
			verbs->device, memory_tenant_locks(&server->memory, tenant), MEMORY_LOCK_BYTES, true, detail);
	if (verbs->regions[FABRIC_LOCKS] == NULL)
	{
		server_log(server, FABRIC_LOG_WARNING, "%s", detail);
		return FABRIC_NO_MEMORY;
	}
	verbs->tenant = tenant;
	return FABRIC_OK;
}

static FabricStatus
open_loopback(VerbsServer *verbs, char *detail)
{
	VerbsAddress active, passive;

	verbs->copy = aligned_alloc(MEMORY_PAGE_BYTES, MEMORY_LOCK_BYTES);
	if (verbs->copy == NULL)
		return FABRIC_NO_MEMORY;
	verbs->copy_memory =
		verbs->driver->memory_register(verbs->device, verbs->copy, MEMORY_LOCK_BYTES, false, detail);
	if (verbs->copy_memory == NULL)
		return FABRIC_NO_MEMORY;
	verbs->active = verbs->driver->queue_create(verbs->device, NULL, VERBS_MAX_POST, &active, detail);
	verbs->passive = verbs->driver->queue_create(verbs->device, NULL, 0, &passive, detail);
	if (verbs->active == NULL || verbs->passive == NULL)
		return FABRIC_NO_MEMORY;
	if (!verbs->driver->queue_connect(verbs->active, &passive, detail) ||
	    !verbs->driver->queue_connect(verbs->passive, &active, detail))
		return FABRIC_NOT_SUPPORTED;
	return FABRIC_OK;
}

/*
 * Decides whether a line of this device is ever torn.  A software device copies with the processor, by bytes if it likes: it
 * is not believed, whatever the probe saw.
 */
static FabricStatus
probe_device(FabricServer *server, char *detail)
{
	VerbsServer *verbs = server->verbs;
	VerbsTears tears;

	if (!verbs->driver->device_probe_tears(verbs->device, PROBE_MS, &tears, detail))
		return FABRIC_NOT_SUPPORTED;
	verbs->line_atomic = verbs->properties.hardware && tears.torn_lines == 0;
	server_log(server, FABRIC_LOG_INFO,
	           "verbs on %s: packets of %u bytes, lock words in the %s's memory, lines %s (%s device; %llu "
	           "of %llu probes torn, %llu lines, %llu words), native 16-bit swaps: no",
	           verbs->properties.name, verbs->properties.mtu, verbs->device_locks ? "device" : "host",
	           verbs->line_atomic ? "atomic" : "not atomic: leaves carry sums",
	           verbs->properties.hardware ? "hardware" : "software", (unsigned long long) tears.torn_reads,
	           (unsigned long long) tears.reads, (unsigned long long) tears.torn_lines,
	           (unsigned long long) tears.torn_words);
	return FABRIC_OK;
}

/*
 * Lock words on the device are free again at every start: who held one before must not go on.  Every instance has to attach
 * anew.
 */
static void
fence_instances(FabricServer *server)
{
	for (uint32_t i = 0; i < MEMORY_MAX_INSTANCES; i++)
	{
		MemoryInstance *instance = &server->memory.instances[i];

		if (!instance->used || instance->incarnation == 0)
			continue;
		instance->launcher_nonce = 0;
		instance->incarnation = incarnation_next(instance->incarnation);
	}
}

FabricStatus
verbs_server_open(FabricServer *server, char *detail)
{
	VerbsServer *verbs = calloc(1, sizeof(VerbsServer));
	char unused[FABRIC_DETAIL_BYTES];
	FabricStatus status;

	if (detail == NULL)
		detail = unused;
	if (verbs == NULL)
		return FABRIC_NO_MEMORY;
	server->verbs = verbs;
	verbs->tenant = NO_TENANT;
	verbs->queues = calloc(server->memory.header->max_channels, sizeof(VerbsQueue *));
	verbs->driver = verbs_load(detail);
	if (verbs->queues == NULL || verbs->driver == NULL)
		return verbs->queues == NULL ? FABRIC_NO_MEMORY : FABRIC_NOT_SUPPORTED;
	verbs->device = verbs->driver->device_open(server->options.verbs_device, NULL, detail);
	if (verbs->device == NULL)
		return FABRIC_NOT_SUPPORTED;
	verbs->driver->device_properties(verbs->device, &verbs->properties);
	if (!verbs->properties.atomics)
	{
		snprintf(detail, FABRIC_DETAIL_BYTES, "device %s has no atomic operations", verbs->properties.name);
		return FABRIC_NOT_SUPPORTED;
	}
	status = register_regions(server, detail);
	if (status == FABRIC_OK)
		status = open_loopback(verbs, detail);
	if (status == FABRIC_OK)
		status = probe_device(server, detail);
	if (status == FABRIC_OK && verbs->device_locks)
		fence_instances(server);
	return status;
}

FabricStatus
verbs_server_connect(FabricServer *server, uint32_t channel, const VerbsAddress *client, VerbsGrant *grant)
{
	VerbsServer *verbs = server->verbs;
	ServerConnection *connection = server->channels[channel].connection;
	struct sockaddr_storage address;
	const struct sockaddr *local = (const struct sockaddr *) &address;
	socklen_t length = sizeof(address);
	char detail[FABRIC_DETAIL_BYTES];
	VerbsQueue *queue;
	FabricStatus status = admit_tenant(server, connection->tenant);

	if (status != FABRIC_OK)
		return status;
	if (getsockname(connection->descriptor, (struct sockaddr *) &address, &length) != 0)
		local = NULL;
	queue = verbs->driver->queue_create(verbs->device, local, 0, &grant->address, detail);
	if (queue == NULL || !verbs->driver->queue_connect(queue, client, detail))
	{
		server_complain(server, COMPLAINT_REFUSED, "channel %u: %s", channel, detail);
		if (queue != NULL)
			verbs->driver->queue_destroy(queue);
		return FABRIC_NO_MEMORY;
	}
	verbs->queues[channel] = queue;
	for (int region = FABRIC_NODES; region <= FABRIC_LOCKS; region++)
	{
		VerbsMemoryKeys keys;

		verbs->driver->memory_keys(verbs->regions[region], &keys);
		grant->base[region] = keys.base;
		grant->key[region] = keys.remote;
	}
	return FABRIC_OK;
}

void
verbs_server_kill(FabricServer *server, uint32_t channel)
{
	VerbsServer *verbs = server->verbs;

	if (verbs == NULL || verbs->queues[channel] == NULL)
		return;
	verbs->driver->queue_destroy(verbs->queues[channel]);
	verbs->queues[channel] = NULL;
}

void
verbs_server_capabilities(const FabricServer *server, FabricCapabilities *capabilities)
{
	const VerbsServer *verbs = server->verbs;

	capabilities->flags = FABRIC_CAP_ORDERED_CAS_READ | (verbs->line_atomic ? FABRIC_CAP_LINE_ATOMIC : 0) |
	                      (verbs->device_locks ? FABRIC_CAP_DEVICE_LOCKS : 0);
	capabilities->one_packet = verbs->properties.mtu;
}

/* Runs a chain on the loopback queue pair to its end. */
static bool
run_loopback(VerbsServer *verbs, const VerbsRequest *requests, int count)
{
	uint64_t deadline = fabric_now() + (uint64_t) LOOPBACK_MS * 1000000;
	VerbsOutcome outcome = VERBS_NONE;
	const char *reason;
	uint64_t id;

	if (verbs->driver->queue_post(verbs->active, requests, count, 1) != VERBS_DONE)
		return false;
	while (outcome == VERBS_NONE && fabric_now() < deadline)
		outcome = verbs->driver->queue_poll(verbs->active, &id, &reason);
	return outcome == VERBS_DONE;
}

/* Reads the lock table into the copy. */
static bool
read_locks(VerbsServer *verbs)
{
	VerbsRequest requests[LOCK_READS];
	VerbsMemoryKeys locks, copy;

	verbs->driver->memory_keys(verbs->regions[FABRIC_LOCKS], &locks);
	verbs->driver->memory_keys(verbs->copy_memory, &copy);
	for (uint32_t i = 0; i < LOCK_READS; i++)
		requests[i] = (VerbsRequest){
			.opcode = VERBS_READ,
			.length = FABRIC_STRIPE_BYTES,
			.buffer = (uint8_t *) verbs->copy + (size_t) i * FABRIC_STRIPE_BYTES,
			.local_key = copy.local,
			.remote_key = locks.remote,
			.remote_address = locks.base + (uint64_t) i * FABRIC_STRIPE_BYTES,
		};
	return run_loopback(verbs, requests, LOCK_READS);
}

const uint64_t *
verbs_server_locks(const FabricServer *server)
{
	VerbsServer *verbs = server->verbs;

	if (!verbs->device_locks)
		return memory_tenant_locks(&server->memory, verbs->tenant);
	if (!read_locks(verbs))
		server_log(server, FABRIC_LOG_WARNING, "the lock words on %s cannot be read", verbs->properties.name);
	return verbs->copy;
}

bool
verbs_server_serves(const FabricServer *server, uint32_t tenant)
{
	const VerbsServer *verbs = server->verbs;

	return verbs == NULL || verbs->tenant == NO_TENANT || verbs->tenant == tenant;
}

bool
verbs_server_has_locks(const FabricServer *server, uint32_t tenant)
{
	return server->verbs != NULL && server->verbs->tenant == tenant;
}

bool
verbs_server_free_locks(FabricServer *server, uint32_t instance, uint32_t incarnation, uint32_t *freed)
{
	VerbsServer *verbs = server->verbs;
	VerbsMemoryKeys locks, copy;
	bool good;

	verbs->driver->memory_keys(verbs->regions[FABRIC_LOCKS], &locks);
	verbs->driver->memory_keys(verbs->copy_memory, &copy);
	*freed = 0;
	good = read_locks(verbs);
	for (uint32_t i = 0; good && i < MEMORY_LOCK_WORDS; i++)
	{
		uint64_t word = verbs->copy[i];
		VerbsRequest swap = {
			.opcode = VERBS_COMPARE_SWAP,
			.length = sizeof(uint64_t),
			.buffer = &verbs->copy[i],
			.local_key = copy.local,
			.remote_key = locks.remote,
			.remote_address = locks.base + (uint64_t) i * sizeof(uint64_t),
			.compare = word,
			.operand = 0,
		};

		if (word == 0 || !memory_lock_is_stale(word, instance, incarnation))
			continue;
		/* By the device: a store of ours could be undone by a failing swap of another client, which writes back. */
		good = run_loopback(verbs, &swap, 1);
		*freed += good;
	}
	return good;
}

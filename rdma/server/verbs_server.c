/*
 * verbs_server.c
 *		The memory node's half of the verbs transport: the device, the domains of the tenants, and a queue pair for each
 * channel.
 */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "rdma/server/verbs_domain.h"
#include "rdma/verbs/verbs_flight.h"
#include "rdma/server/verbs_server.h"

/* How long the device is watched for tears at the start. */
#define PROBE_MS 300u

/* One chain of a client whose chains come in frames. */
#define LOOP_ARENA_BYTES (FABRIC_MAX_CHAIN * FABRIC_STRIPE_BYTES)

/* What a channel of frames has in place of a client with a device. */
typedef struct VerbsLoop
{
	VerbsFlight flight; /* its queue posts to the channel's */
	VerbsMemory *memory;
	VerbsChain *chain; /* under way; NULL: none is */
} VerbsLoop;

typedef struct VerbsChannel
{
	VerbsQueue *queue; /* serves the client; NULL: there is none */
	VerbsMemory *redo; /* the channel's redo slot, in the domain of whose it is now */
	VerbsLoop *loop;
} VerbsChannel;

struct VerbsServer
{
	const VerbsDriver *driver;
	VerbsProperties properties;
	bool line_atomic;
	VerbsDomain *domains[MEMORY_MAX_TENANTS]; /* NULL: the tenant has none yet */
	VerbsChannel *channels;
};

void
verbs_server_close(FabricServer *server)
{
	VerbsServer *verbs = server->verbs;

	if (verbs == NULL)
		return;
	for (uint32_t i = 0; verbs->channels != NULL && i < server->memory.header->max_channels; i++)
		verbs_server_kill(server, i);
	for (uint32_t i = 0; i < MEMORY_MAX_TENANTS; i++)
		domain_close(verbs->domains[i]);
	free(verbs->channels);
	free(verbs);
	server->verbs = NULL;
}

/* Takes all of node memory, for the device needs it where it is, and opens the domains of the tenants that have a part of it. */
static FabricStatus
open_domains(FabricServer *server, char *detail)
{
	VerbsServer *verbs = server->verbs;
	Memory *memory = &server->memory;
	uint64_t bytes = memory->header->region_bytes - MEMORY_FIRST_UNIT;
	FabricStatus status = parts_deal(server, detail);

	if (status != FABRIC_OK)
		return status;
	if (memory_allocate(memory, memory->nodes + MEMORY_FIRST_UNIT, bytes) != FABRIC_OK)
	{
		snprintf(detail, FABRIC_DETAIL_BYTES,
		         "no room for %llu bytes of node memory, which verbs needs at once",
		         (unsigned long long) bytes);
		return FABRIC_NO_MEMORY;
	}
	for (uint32_t i = 0; i < MEMORY_MAX_TENANTS; i++)
	{
		if (server->parts[i].first == server->parts[i].end)
			continue;
		verbs->domains[i] = domain_open(server, verbs->driver, i, detail);
		if (verbs->domains[i] == NULL)
			return FABRIC_NO_MEMORY;
	}
	return FABRIC_OK;
}

/*
 * Decides whether a line of this device is ever torn. A software device copies with the processor, perhaps bytewise:
 * the probe's result does not count there.
 */
static FabricStatus
probe_device(FabricServer *server, VerbsDevice *device, char *detail)
{
	VerbsServer *verbs = server->verbs;
	VerbsTears tears;

	if (!verbs->driver->device_probe_tears(device, PROBE_MS, &tears, detail))
		return FABRIC_NOT_SUPPORTED;
	verbs->line_atomic = verbs->properties.hardware && tears.torn_lines == 0;
	server_log(server, FABRIC_LOG_INFO,
	           "verbs on %s: packets of %u bytes, lock words in the %s's memory, lines %s (%s device; "
	           "%llu of %llu probes torn, %llu lines, %llu words)",
	           verbs->properties.name, verbs->properties.mtu,
	           verbs->properties.lock_memory >= MEMORY_LOCK_BYTES ? "device" : "host",
	           verbs->line_atomic ? "atomic" : "not atomic: leaves carry sums",
	           verbs->properties.hardware ? "hardware" : "software", (unsigned long long) tears.torn_reads,
	           (unsigned long long) tears.reads, (unsigned long long) tears.torn_lines,
	           (unsigned long long) tears.torn_words);
	return FABRIC_OK;
}

/* Learns what the device is. */
static FabricStatus
open_device(FabricServer *server, char *detail)
{
	VerbsServer *verbs = server->verbs;
	VerbsDevice *device = verbs->driver->device_open(server->options.verbs_device, NULL, detail);
	FabricStatus status = FABRIC_NOT_SUPPORTED;

	if (device == NULL)
		return status;
	verbs->driver->device_properties(device, &verbs->properties);
	if (verbs->properties.atomics)
		status = probe_device(server, device, detail);
	else
		snprintf(detail, FABRIC_DETAIL_BYTES, "device %s has no atomic operations", verbs->properties.name);
	verbs->driver->device_close(device);
	return status;
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
	verbs->channels = calloc(server->memory.header->max_channels, sizeof(VerbsChannel));
	verbs->driver = verbs_load(detail);
	if (verbs->channels == NULL || verbs->driver == NULL)
		return verbs->channels == NULL ? FABRIC_NO_MEMORY : FABRIC_NOT_SUPPORTED;
	status = open_device(server, detail);
	if (status == FABRIC_OK)
		status = open_domains(server, detail);
	/* Lock words on the device are free again at every start: clients that held one before must not go on. */
	if (status == FABRIC_OK && verbs->properties.lock_memory >= MEMORY_LOCK_BYTES)
		instances_fence(server);
	return status;
}

FabricStatus
verbs_server_admit(FabricServer *server, uint32_t tenant)
{
	VerbsServer *verbs = server->verbs;
	char detail[FABRIC_DETAIL_BYTES];

	if (verbs == NULL || verbs->domains[tenant] != NULL)
		return FABRIC_OK;
	if (!part_make(server, tenant))
		return FABRIC_DENIED;
	verbs->domains[tenant] = domain_open(server, verbs->driver, tenant, detail);
	if (verbs->domains[tenant] != NULL)
		return FABRIC_OK;
	server_log(server, FABRIC_LOG_WARNING, "tenant %u: %s", tenant, detail);
	return FABRIC_NO_MEMORY;
}

bool
verbs_server_serves(const FabricServer *server, uint32_t tenant)
{
	return server->verbs == NULL || server->parts[tenant].first != server->parts[tenant].end;
}

/* ---- channels ---- */

static VerbsDomain *
domain_of(const FabricServer *server, uint32_t channel)
{
	return server->verbs->domains[server->channels[channel].connection->tenant];
}

static VerbsWindow
make_window(const VerbsDomain *domain, const VerbsMemory *memory, uint64_t first, uint64_t end)
{
	VerbsMemoryKeys keys;

	domain->driver->memory_keys(memory, &keys);
	return (VerbsWindow){.first = first, .end = end, .base = keys.base, .key = keys.remote};
}

/*
 * Registers the channel's redo slot, and says what the channel reaches. False: `detail`.  A reader learns of nothing that it needs
 * not: it has no lock words, and may only READ its slot.  The part is registered once for all of its tenant's channels: what a
 * reader may do there its queue pair says.
 */
static bool
open_windows(FabricServer *server, uint32_t channel, VerbsGrant *grant, char *detail)
{
	const VerbsDomain *domain = domain_of(server, channel);
	VerbsChannel *own = &server->verbs->channels[channel];
	const ServerPart *part = &server->parts[server->channels[channel].connection->tenant];
	uint64_t slot = (uint64_t) channel * FABRIC_REDO_BYTES;
	bool reader = server->channels[channel].reader;

	own->redo =
		domain->driver->memory_register(domain->device, server->memory.nodes + slot, FABRIC_REDO_BYTES,
	                                    reader ? VERBS_READS : VERBS_CHANGES, detail);
	if (own->redo == NULL)
		return false;
	grant->windows[VERBS_PART] = make_window(domain, domain->nodes, part->first, part->end);
	grant->windows[VERBS_REDO] = make_window(domain, own->redo, slot, slot + FABRIC_REDO_BYTES);
	grant->windows[VERBS_LOCKS] =
		reader ? (VerbsWindow){0} : make_window(domain, domain->locks, 0, MEMORY_LOCK_BYTES);
	return true;
}

static FabricStatus
refuse_channel(FabricServer *server, uint32_t channel, const char *detail)
{
	server_complain(server, COMPLAINT_REFUSED, "channel %u: %s", channel, detail);
	verbs_server_kill(server, channel);
	return FABRIC_NO_MEMORY;
}

FabricStatus
verbs_server_connect(FabricServer *server, uint32_t channel, const VerbsAddress *client, VerbsGrant *grant)
{
	const VerbsDomain *domain = domain_of(server, channel);
	VerbsChannel *own = &server->verbs->channels[channel];
	int descriptor = server->channels[channel].connection->descriptor;
	struct sockaddr_storage address;
	const struct sockaddr *local = (const struct sockaddr *) &address;
	socklen_t length = sizeof(address);
	char detail[FABRIC_DETAIL_BYTES];

	if (getsockname(descriptor, (struct sockaddr *) &address, &length) != 0)
		local = NULL;
	own->queue = domain->driver->queue_create(domain->device, local, 0, server->channels[channel].reader,
	                                          &grant->address, detail);
	if (own->queue == NULL || !domain->driver->queue_connect(own->queue, client, detail) ||
	    !open_windows(server, channel, grant, detail))
		return refuse_channel(server, channel, detail);
	return FABRIC_OK;
}

/* ---- clients whose chains come in frames ---- */

static void
loop_close(const VerbsServer *verbs, VerbsLoop *loop)
{
	if (loop == NULL)
		return;
	if (loop->flight.queue != NULL)
		verbs->driver->queue_destroy(loop->flight.queue);
	if (loop->memory != NULL)
		verbs->driver->memory_release(loop->memory);
	if (loop->flight.arena != NULL)
		munmap(loop->flight.arena, LOOP_ARENA_BYTES);
	free(loop);
}

/* A flight with an arena, and no queue yet. NULL: `detail`. */
static VerbsLoop *
loop_open(const VerbsServer *verbs, const VerbsDomain *domain, char *detail)
{
	VerbsLoop *loop = calloc(1, sizeof(VerbsLoop));
	void *arena = mmap(NULL, LOOP_ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (loop == NULL || arena == MAP_FAILED)
	{
		if (arena != MAP_FAILED)
			munmap(arena, LOOP_ARENA_BYTES);
		free(loop);
		snprintf(detail, FABRIC_DETAIL_BYTES, "out of memory");
		return NULL;
	}
	flight_clear(&loop->flight);
	loop->flight.driver = domain->driver;
	loop->flight.arena = arena;
	loop->flight.arena_bytes = LOOP_ARENA_BYTES;
	loop->flight.device_fences = verbs->properties.hardware;
	loop->memory =
		domain->driver->memory_register(domain->device, arena, LOOP_ARENA_BYTES, VERBS_NOTHING, detail);
	if (loop->memory == NULL)
	{
		munmap(arena, LOOP_ARENA_BYTES);
		free(loop);
		return NULL;
	}
	domain->driver->memory_keys(loop->memory, &loop->flight.keys);
	return loop;
}

FabricStatus
verbs_server_loop(FabricServer *server, uint32_t channel)
{
	const VerbsDomain *domain = domain_of(server, channel);
	VerbsChannel *own = &server->verbs->channels[channel];
	char detail[FABRIC_DETAIL_BYTES];

	own->loop = loop_open(server->verbs, domain, detail);
	if (own->loop == NULL ||
	    !domain_loopback(domain, FABRIC_MAX_CHAIN, &own->loop->flight.queue, &own->queue, detail) ||
	    !open_windows(server, channel, &own->loop->flight.grant, detail))
		return refuse_channel(server, channel, detail);
	own->loop->flight.broken = FABRIC_OK;
	return FABRIC_OK;
}

FabricStatus
verbs_server_post(FabricServer *server, uint32_t channel, FabricOp *ops, int count)
{
	VerbsLoop *loop = server->verbs->channels[channel].loop;
	uint64_t fences = 0;

	return flight_post(&loop->flight, ops, count, 0, &fences, &loop->chain);
}

FabricStatus
verbs_server_poll(FabricServer *server, uint32_t channel, const char **reason)
{
	VerbsLoop *loop = server->verbs->channels[channel].loop;
	VerbsChain *chain = loop->chain;

	*reason = "";
	if (!chain->done && flight_poll(&loop->flight, reason) != VERBS_NONE)
		flight_break(&loop->flight, FABRIC_LOST);
	if (!chain->done)
		return FABRIC_BUSY;
	chain->used = false;
	loop->chain = NULL;
	return chain->status;
}

void
verbs_server_kill(FabricServer *server, uint32_t channel)
{
	VerbsServer *verbs = server->verbs;
	VerbsChannel *own;

	if (verbs == NULL)
		return;
	own = &verbs->channels[channel];
	/* What serves goes first: then nothing lands, whatever is still posted. */
	if (own->queue != NULL)
		verbs->driver->queue_destroy(own->queue);
	loop_close(verbs, own->loop);
	if (own->redo != NULL)
		verbs->driver->memory_release(own->redo);
	*own = (VerbsChannel){0};
}

/* ---- what the memory node says and does itself ---- */

void
verbs_server_capabilities(const FabricServer *server, uint32_t tenant, FabricCapabilities *capabilities)
{
	const VerbsServer *verbs = server->verbs;
	const VerbsDomain *domain = verbs->domains[tenant];
	bool device_locks = domain != NULL && domain->host_locks == NULL;

	capabilities->flags = FABRIC_CAP_ORDERED_CAS_READ | (verbs->line_atomic ? FABRIC_CAP_LINE_ATOMIC : 0) |
	                      (device_locks ? FABRIC_CAP_DEVICE_LOCKS : 0);
	capabilities->one_packet = verbs->properties.mtu;
}

bool
verbs_server_has_locks(const FabricServer *server, uint32_t tenant)
{
	return server->verbs != NULL && server->verbs->domains[tenant] != NULL;
}

const uint64_t *
verbs_server_locks(const FabricServer *server, uint32_t tenant)
{
	const uint64_t *locks = domain_locks(server->verbs->domains[tenant]);

	if (locks == NULL)
		server_log(server, FABRIC_LOG_WARNING, "the lock words of tenant %u on %s cannot be read", tenant,
		           server->verbs->properties.name);
	return locks;
}

bool
verbs_server_free_locks(FabricServer *server, uint32_t tenant, uint32_t instance, uint32_t incarnation,
                        uint32_t *freed)
{
	return domain_free_locks(server->verbs->domains[tenant], instance, incarnation, freed);
}

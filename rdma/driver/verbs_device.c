/*
 * verbs_device.c
 *		Devices, their addresses and registered memory, and the table that sherman_verbs.so exports.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdma/driver/verbs_device.h"

/* FABRIC_DETAIL_BYTES of fabric.h, which this object does not know. */
#define DETAIL_BYTES 256

/* GIDs of a port that are looked at: a host has a few addresses. */
#define MAX_GIDS 256

/* READs and atomics in flight on one queue pair, if the device can do more. */
#define WANTED_READS 16

void
verbs_detail(char *detail, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(detail, DETAIL_BYTES, format, arguments);
	va_end(arguments);
}

/* The GID of an address: IPv4 as ::ffff:a.b.c.d. False: the address is of another family. */
static bool
gid_of_address(const struct sockaddr *address, uint8_t gid[VERBS_GID_BYTES])
{
	if (address->sa_family == AF_INET6)
	{
		memcpy(gid, &((const struct sockaddr_in6 *) (const void *) address)->sin6_addr, VERBS_GID_BYTES);
		return true;
	}
	if (address->sa_family != AF_INET)
		return false;
	memset(gid, 0, 10);
	gid[10] = gid[11] = 0xff;
	memcpy(gid + 12, &((const struct sockaddr_in *) (const void *) address)->sin_addr, 4);
	return true;
}

/* Within a host the connection's address says nothing of the network. */
static bool
is_loopback(const struct sockaddr *address)
{
	uint8_t gid[VERBS_GID_BYTES];

	if (!gid_of_address(address, gid))
		return true;
	if (gid[10] == 0xff && gid[11] == 0xff)
		return gid[12] == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK((const struct in6_addr *) (const void *) gid);
}

/* A usable GID of the port for the address, or for any if `local` is NULL; -1: there is none. */
static int
search_gid(struct ibv_context *context, uint8_t port_number, const struct ibv_port_attr *port,
           const struct sockaddr *local)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct ibv_gid_entry *entries;
	uint8_t wanted[VERBS_GID_BYTES];
	int found = -1;
	ssize_t count;

	if (local != NULL && (is_loopback(local) || !gid_of_address(local, wanted)))
		local = NULL;
	entries = calloc(MAX_GIDS, sizeof(*entries));
	if (entries == NULL)
		return -1;
	count = ibv_query_gid_table(context, entries, MAX_GIDS, 0);
	for (ssize_t i = 0; i < count; i++)
	{
		const struct ibv_gid_entry *entry = &entries[i];
		bool routable = entry->gid_type == IBV_GID_TYPE_ROCE_V2;

		if (entry->port_num != port_number)
			continue;
		if (port->link_layer != IBV_LINK_LAYER_ETHERNET)
			routable = entry->gid_type == IBV_GID_TYPE_IB;
		if (!routable)
			continue;
		if (local != NULL && memcmp(entry->gid.raw, wanted, VERBS_GID_BYTES) == 0)
		{
			found = (int) entry->gid_index;
			break;
		}
		/* Without a wish: the first, but an IPv4 address before a link-local one. */
		if (local == NULL && (found < 0 || memcmp(entry->gid.raw, mapped, sizeof(mapped)) == 0))
		{
			found = (int) entry->gid_index;
			if (memcmp(entry->gid.raw, mapped, sizeof(mapped)) == 0)
				break;
		}
	}
	free(entries);
	return found;
}

int
verbs_find_gid(const VerbsDevice *device, const struct sockaddr *local)
{
	int found = -1;

	if (local != NULL)
		found = search_gid(device->context, device->port_number, &device->port, local);
	return found < 0 ? device->gid_index : found;
}

/* Software devices have no bus device behind them. */
static bool
is_hardware(const struct ibv_device *device)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/device", device->ibdev_path);
	return access(path, F_OK) == 0;
}

/* Chooses an active port with a GID for the address. False: the device has none. */
static bool
choose_port(VerbsDevice *device, uint8_t ports, const struct sockaddr *local)
{
	for (uint8_t port = 1; port <= ports; port++)
	{
		if (ibv_query_port(device->context, port, &device->port) != 0 ||
		    device->port.state != IBV_PORT_ACTIVE)
			continue;
		device->gid_index = search_gid(device->context, port, &device->port, local);
		device->port_number = port;
		if (device->gid_index >= 0)
			return true;
	}
	return false;
}

/* Fills what is known of an open device and makes its protection domain. False: not usable. */
static bool
device_prepare(VerbsDevice *device, const struct sockaddr *local, char *detail)
{
	struct ibv_device_attr_ex attributes;
	const char *name = ibv_get_device_name(device->context->device);

	memset(&attributes, 0, sizeof(attributes));
	if (ibv_query_device_ex(device->context, NULL, &attributes) != 0)
	{
		verbs_detail(detail, "device %s cannot be queried: %s", name, strerror(errno));
		return false;
	}
	if (!choose_port(device, attributes.orig_attr.phys_port_cnt, local))
	{
		verbs_detail(detail, "device %s has no active port with this address", name);
		return false;
	}
	device->mtu = 128u << device->port.active_mtu;
	device->max_reads = (uint32_t) attributes.orig_attr.max_qp_rd_atom;
	if (device->max_reads > WANTED_READS)
		device->max_reads = WANTED_READS;
	snprintf(device->properties.name, sizeof(device->properties.name), "%s", name);
	device->properties.mtu = device->mtu;
	device->properties.atomics = attributes.orig_attr.atomic_cap != IBV_ATOMIC_NONE;
	device->properties.hardware = is_hardware(device->context->device);
	device->properties.lock_memory = attributes.max_dm_size;
	device->domain = ibv_alloc_pd(device->context);
	if (device->domain == NULL)
		verbs_detail(detail, "device %s: no protection domain: %s", name, strerror(errno));
	return device->domain != NULL;
}

static void
device_close(VerbsDevice *device)
{
	if (device == NULL)
		return;
	if (device->domain != NULL)
		ibv_dealloc_pd(device->domain);
	if (device->context != NULL)
		ibv_close_device(device->context);
	free(device);
}

static VerbsDevice *
device_open(const char *name, const struct sockaddr *local, char *detail)
{
	int count = 0;
	struct ibv_device **list;
	VerbsDevice *device = NULL;

	/* Kernels before 5.12 share pinned pages with a forked child; where that is mended this is not needed. */
	if (ibv_is_fork_initialized() == IBV_FORK_DISABLED)
		ibv_fork_init();
	list = ibv_get_device_list(&count);
	if (name == NULL)
		verbs_detail(detail, "no RDMA device has the address of this connection");
	else
		verbs_detail(detail, "there is no RDMA device \"%s\"", name);
	for (int i = 0; list != NULL && i < count && device == NULL; i++)
	{
		if (name != NULL && strcmp(name, ibv_get_device_name(list[i])) != 0)
			continue;
		device = calloc(1, sizeof(VerbsDevice));
		if (device == NULL)
			break;
		device->context = ibv_open_device(list[i]);
		if (device->context == NULL)
			verbs_detail(detail, "device %s cannot be opened: %s", ibv_get_device_name(list[i]),
			             strerror(errno));
		if (device->context == NULL || !device_prepare(device, local, detail))
		{
			device_close(device);
			device = NULL;
		}
	}
	if (list != NULL)
		ibv_free_device_list(list);
	return device;
}

static void
device_properties(const VerbsDevice *device, VerbsProperties *properties)
{
	*properties = device->properties;
}

VerbsMemory *
verbs_memory_register(VerbsDevice *device, void *base, uint64_t bytes, VerbsAccess access, char *detail)
{
	/* No relaxed ordering: an unlock may not pass the WRITEs before it. */
	int flags = IBV_ACCESS_LOCAL_WRITE;
	VerbsMemory *memory = calloc(1, sizeof(VerbsMemory));

	if (access != VERBS_NOTHING)
		flags |= IBV_ACCESS_REMOTE_READ;
	if (access == VERBS_CHANGES)
		flags |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	if (memory != NULL)
		memory->region = ibv_reg_mr(device->domain, base, bytes, flags);
	if (memory == NULL || memory->region == NULL)
	{
		verbs_detail(detail, "cannot register %llu bytes with %s: %s%s", (unsigned long long) bytes,
		             device->properties.name, strerror(errno),
		             errno == ENOMEM ? " (is the limit of locked memory large enough?)" : "");
		free(memory);
		return NULL;
	}
	memory->base = (uint64_t) (uintptr_t) base;
	return memory;
}

/* Zeroes memory on a device. */
static bool
clear_device_memory(struct ibv_dm *memory, uint64_t bytes)
{
	static const uint8_t zeroes[4096];

	for (uint64_t done = 0; done < bytes; done += sizeof(zeroes))
	{
		uint64_t part = bytes - done < sizeof(zeroes) ? bytes - done : sizeof(zeroes);

		if (ibv_memcpy_to_dm(memory, done, zeroes, part) != 0)
			return false;
	}
	return true;
}

static VerbsMemory *
memory_on_device(VerbsDevice *device, uint64_t bytes, char *detail)
{
	struct ibv_alloc_dm_attr attributes = {.length = bytes, .log_align_req = 6};
	VerbsMemory *memory = calloc(1, sizeof(VerbsMemory));

	if (memory != NULL && device->properties.lock_memory >= bytes)
		memory->device_memory = ibv_alloc_dm(device->context, &attributes);
	if (memory != NULL && memory->device_memory != NULL && clear_device_memory(memory->device_memory, bytes))
		memory->region =
			ibv_reg_dm_mr(device->domain, memory->device_memory, 0, bytes,
		                  IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
		                      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	if (memory == NULL || memory->region == NULL)
	{
		verbs_detail(detail, "device %s gives no memory of its own for lock words", device->properties.name);
		if (memory != NULL && memory->device_memory != NULL)
			ibv_free_dm(memory->device_memory);
		free(memory);
		return NULL;
	}
	return memory;
}

void
verbs_memory_release(VerbsMemory *memory)
{
	if (memory == NULL)
		return;
	ibv_dereg_mr(memory->region);
	if (memory->device_memory != NULL)
		ibv_free_dm(memory->device_memory);
	free(memory);
}

void
verbs_memory_keys(const VerbsMemory *memory, VerbsMemoryKeys *keys)
{
	*keys = (VerbsMemoryKeys){memory->region->lkey, memory->region->rkey, memory->base};
}

static const VerbsDriver driver = {
	.version = VERBS_DRIVER_VERSION,
	.device_open = device_open,
	.device_close = device_close,
	.device_properties = device_properties,
	.memory_register = verbs_memory_register,
	.memory_on_device = memory_on_device,
	.memory_release = verbs_memory_release,
	.memory_keys = verbs_memory_keys,
	.queue_create = verbs_queue_create,
	.queue_connect = verbs_queue_connect,
	.queue_destroy = verbs_queue_destroy,
	.queue_post = verbs_queue_post,
	.queue_poll = verbs_queue_poll,
	.queue_arm = verbs_queue_arm,
	.queue_descriptor = verbs_queue_descriptor,
	.device_probe_tears = verbs_probe_tears,
};

extern __attribute__((visibility("default"))) const VerbsDriver *sherman_verbs_driver(void);

const VerbsDriver *
sherman_verbs_driver(void)
{
	return &driver;
}

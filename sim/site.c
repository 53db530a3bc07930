/*
 * site.c
 *		See site.h.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../rdma/shm.h"
#include "site.h"

#define NODE_CHANNELS 8u
#define NODE_TREES 8u
#define LOCK_WORDS MEMORY_LOCK_WORDS
/* Virtual time that nothing takes: it would be an error of the model. */
#define PATIENCE_MS 100000u
/* What waits awake looks again after so long, first, and at most. */
#define PAUSE_NANOSECONDS 50u
#define PAUSE_MAX_NANOSECONDS 16000u

/* Where a site's memory is, and how much of it. */
#define MEMORY_ADDRESS ((void *) 0x200000000000)
#define MEMORY_BYTES (16ull << 30)
#define HUGE_PAGE_BYTES (2u << 20)

static _Noreturn void
give_up(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	abort();
}

/* ---- memory nodes ---- */

static void
serve(void *argument)
{
	SiteNode *node = argument;
	ServiceOptions options = {
		.memory_path = node->memory_path,
		.socket_path = node->socket_path,
		.node_bytes = node->bytes,
		.max_channels = NODE_CHANNELS,
		.max_trees = NODE_TREES,
		.huge_pages = FABRIC_HUGE_TRY,
	};
	char detail[FABRIC_DETAIL_BYTES];

	if (service_open(&options, &node->service, detail) != FABRIC_OK)
		give_up("service_open: %s", detail);
	if (service_run(node->service) != FABRIC_OK)
		give_up("service_run");
	service_close(node->service, 0, true);
	node->service = NULL;
}

static void
node_start(SiteNode *node, uint64_t bytes)
{
	const char *base = getenv("FABRIC_TEST_DIRECTORY");

	if (base == NULL)
		base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	snprintf(node->directory, sizeof(node->directory), "%.40s/sherman-site-XXXXXX", base);
	if (mkdtemp(node->directory) == NULL)
		give_up("mkdtemp");
	snprintf(node->memory_path, sizeof(node->memory_path), "%s/memory", node->directory);
	snprintf(node->socket_path, sizeof(node->socket_path), "%s/socket", node->directory);
	snprintf(node->address, sizeof(node->address), "shm:%s", node->socket_path);
	node->bytes = bytes;
	node->server = coroutine_start(serve, node, true);
	while (node->service == NULL)
		coroutine_sleep(NANOSECONDS_PER_US);
}

static Fabric *
fabric_make(uint32_t incarnation, uint64_t *silence, const FabricTransport *transport)
{
	FabricOptions options = {
		.operation_timeout_ms = PATIENCE_MS / 2,
		.connect_timeout_ms = PATIENCE_MS,
		.silence = silence,
		.cluster = {1, 2},
		.incarnation = incarnation,
		.transport = transport,
	};
	Fabric *fabric;

	if (fabric_open(&options, &fabric) != FABRIC_OK)
		give_up("fabric_open");
	return fabric;
}

static FabricEndpoint *
connect_to(Fabric *fabric, const char *address)
{
	FabricEndpoint *endpoint;
	FabricStatus status = fabric_connect(fabric, address, &endpoint);

	if (status != FABRIC_OK)
		give_up("%s: %s: %s", address, fabric_status_name(status), fabric_detail(fabric));
	return endpoint;
}

/* The site's incarnation, and the connection to the node that all clients share. */
static void
node_attach(Site *site, uint32_t i)
{
	SiteNode *node = &site->nodes[i];
	Fabric *fabric = fabric_make(0, NULL, NULL);
	FabricEndpoint *carrier = connect_to(fabric, node->address);
	const Memory *memory;
	uint32_t instance;

	if (fabric_attach(carrier, false, scheduler_now() + 1, &instance, &site->incarnation) != FABRIC_OK)
		give_up("fabric_attach: %s", fabric_detail(fabric));
	fabric_close(fabric);
	node->fabric = fabric_make(site->incarnation, NULL, NULL);
	carrier = connect_to(node->fabric, node->address);
	memory = shm_channel(carrier)->memory;
	(void) madvise(memory->base, memory->bytes, MADV_HUGEPAGE);
	cost_node(i, i, carrier);
}

static void
node_stop(SiteNode *node)
{
	fabric_close(node->fabric);
	service_stop(node->service);
	while (!coroutine_has_ended(node->server))
		coroutine_sleep(NANOSECONDS_PER_US);
}

/* ---- the site ---- */

uint32_t
site_hosts(const SiteOptions *options)
{
	return options->nodes > options->servers ? options->nodes : options->servers;
}

/* Bytes that are given back with the site. */
static void *
site_allocate(Site *site, size_t bytes)
{
	void *memory = site->memory + site->used;

	site->used += (bytes + 63) / 64 * 64;
	if (site->used > MEMORY_BYTES)
		give_up("a site without memory");
	return memory;
}

static void
server_start(Site *site, SiteServer *server)
{
	TreeSharedOptions options = {.slots = site->options.clients + 1,
	                             .trees = 2,
	                             .cache_bytes = site->options.cache_bytes,
	                             .lock_words = LOCK_WORDS,
	                             .nodes = site->options.nodes,
	                             .techniques = &site->options.techniques,
	                             .entry_cache_bytes = site->options.entry_cache_bytes};

	server->shared = tree_shared_initialize(site_allocate(site, tree_shared_bytes(&options)), &options);
	if (server->shared == NULL)
		give_up("tree_shared_initialize");
}

void
site_start(Site *site, const SiteOptions *options)
{
	memset(site, 0, sizeof(*site));
	site->options = *options;
	site->memory = mmap(MEMORY_ADDRESS, MEMORY_BYTES, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (site->memory != MEMORY_ADDRESS)
		give_up("mmap");
	(void) madvise(site->memory, MEMORY_BYTES, MADV_HUGEPAGE);
	for (uint32_t i = 0; i < options->nodes; i++)
	{
		node_start(&site->nodes[i], options->node_bytes);
		node_attach(site, i);
	}
	for (uint32_t i = 0; i < options->servers; i++)
		server_start(site, &site->servers[i]);
}

void
site_clean(const Site *site)
{
	static const char *const names[] = {"memory", "memory.lock", "socket"};

	for (uint32_t i = 0; i < site->options.nodes; i++)
	{
		char path[128];

		for (size_t name = 0; name < sizeof(names) / sizeof(names[0]); name++)
		{
			snprintf(path, sizeof(path), "%s/%s", site->nodes[i].directory, names[name]);
			unlink(path);
		}
		rmdir(site->nodes[i].directory);
	}
}

void
site_stop(Site *site)
{
	for (uint32_t i = 0; i < site->options.nodes; i++)
		node_stop(&site->nodes[i]);
	site_clean(site);
	site->options.nodes = 0;
	munmap(site->memory, MEMORY_BYTES);
}

/* ---- clients ---- */

static uint64_t
client_now(void *argument)
{
	(void) argument;
	return scheduler_now() / NANOSECONDS_PER_US;
}

static void
client_sleep(void *argument, uint32_t slot, uint32_t milliseconds)
{
	SiteClient *client = argument;

	(void) slot;
	if (!client->woken)
		coroutine_wait(milliseconds * NANOSECONDS_PER_MS);
	client->woken = false;
}

static void
client_wake(void *argument, uint32_t slot)
{
	const SiteClient *self = argument;
	SiteClient *woken = self->site->servers[self->server].clients[slot];

	woken->cost.debt += self->site->options.lock_cost;
	coroutine_wake(woken->coroutine);
}

/* Seldom looked at what takes long; who is woken goes on at once, and does not sleep next time. */
static void
client_pause_awake(void *argument)
{
	SiteClient *client = argument;

	if (coroutine_wait(client->patience))
	{
		client->patience = PAUSE_NANOSECONDS;
		client->woken = true;
	}
	else if (client->patience < PAUSE_MAX_NANOSECONDS)
		client->patience *= 2;
}

/* The first lock of an operation is about to be asked for. */
static void
client_hold(void *argument)
{
	((SiteClient *) argument)->patience = PAUSE_NANOSECONDS;
}

static void *
client_allocate_memory(void *argument, size_t bytes)
{
	return site_allocate(((SiteClient *) argument)->site, bytes);
}

static void
client_release_memory(void *argument, void *memory)
{
	(void) argument;
	(void) memory;
}

void
site_client_open(SiteClient *client, Site *site, uint32_t server, uint32_t slot)
{
	TreeClientOptions options = {
		.shared = site->servers[server].shared,
		.slot = slot,
		.environment = {.argument = client,
	                    .now_us = client_now,
	                    .sleep = client_sleep,
	                    .wake = client_wake,
	                    .pause = client_pause_awake,
	                    .hold = client_hold},
		.nodes = site->options.nodes,
		.operation_timeout_ms = PATIENCE_MS,
		.silence = &client->silence,
		.allocate = client_allocate_memory,
		.release = client_release_memory,
		.allocate_argument = client,
	};
	TreeStatus status;

	*client = (SiteClient){.site = site,
	                       .server = server,
	                       .slot = slot,
	                       .coroutine = coroutine_current(),
	                       .cost = {.host = server},
	                       .patience = PAUSE_NANOSECONDS};
	client->fabric = fabric_make(site->incarnation, &client->silence, &cost_transport);
	cost_client_begin(&client->cost);
	for (uint32_t i = 0; i < site->options.nodes; i++)
	{
		char address[32];

		snprintf(address, sizeof(address), "cost:%u", i);
		options.endpoints[i] = connect_to(client->fabric, address);
	}
	status = tree_client_open(&options, &client->tree);
	if (status != TREE_OK)
		give_up("tree_client_open: %s", tree_status_name(status));
	site->servers[server].clients[slot] = client;
}

void
site_client_close(SiteClient *client)
{
	TreeStatus status = tree_client_close(client->tree);

	if (status != TREE_OK)
		give_up("tree_client_close: %s", tree_status_name(status));
	client->site->servers[client->server].clients[client->slot] = NULL;
	fabric_close(client->fabric);
}

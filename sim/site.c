/*
 * site.c
 *		See site.h.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "rdma/shm/shm.h"
#include "tree/client/directory.h"
#include "tree/service/service_state.h"
#include "site.h"

#define NODE_CHANNELS 8u
#define NODE_TREES 8u
#define LOCK_WORDS MEMORY_LOCK_WORDS
/* Virtual time that nothing takes: it would be an error of the model. */
#define PATIENCE_MS 100000u
/* What waits awake looks again after so long, first, and at most. */
#define PAUSE_NANOSECONDS 50u
#define PAUSE_MAX_NANOSECONDS 16000u
/* Of a client's handle: about what lies in front of its scratch memory. */
#define HANDLE_BYTES 1280u

#define MEMORY_BYTES (16ull << 30)

/* ---- memory nodes ---- */

static void
node_start(SiteNode *node, uint64_t bytes)
{
	ServiceOptions options = {
		.node_bytes = bytes,
		.max_channels = NODE_CHANNELS,
		.max_trees = NODE_TREES,
		.huge_pages = FABRIC_HUGE_TRY,
	};

	world_node_make(&node->served, "shm", &options);
}

static Fabric *
fabric_make(uint32_t incarnation, uint64_t *silence, const FabricTransport *transport)
{
	return world_fabric(
		(FabricOptions){.silence = silence, .incarnation = incarnation, .transport = transport}, PATIENCE_MS);
}

/* A lookup that is given to the memory node. `argument` is the node's service. */
static FabricStatus
node_descend(void *argument, const void *request, uint32_t request_bytes, void *reply, uint32_t *reply_bytes,
             uint32_t *touched)
{
	const FabricPeer peer = {.cluster = {world_cluster[0], world_cluster[1]}, .incarnation = 1};
	const DirectoryDescended *descended = reply;
	FabricStatus status =
		service_call(argument, &peer, DIRECTORY_DESCEND, request, request_bytes, reply, reply_bytes);

	if (status == FABRIC_OK)
		*touched = (descended->visited - (descended->bytes != 0)) * INNER_BYTES + descended->bytes;
	return status;
}

/* The site's incarnation, and the connection to the node that all clients share. */
static void
node_attach(Site *site, uint32_t i)
{
	SiteNode *node = &site->nodes[i];
	Fabric *fabric = fabric_make(0, NULL, NULL);
	FabricEndpoint *carrier = world_connect(fabric, node->served.address);
	const Memory *memory;
	uint32_t instance;

	if (fabric_attach(carrier, false, scheduler_now() + 1, &instance, &site->incarnation) != FABRIC_OK)
		world_fail("fabric_attach: %s", fabric_detail(fabric));
	fabric_close(fabric);
	node->fabric = fabric_make(site->incarnation, NULL, NULL);
	carrier = world_connect(node->fabric, node->served.address);
	memory = shm_channel(carrier)->memory;
	(void) madvise(memory->base, memory->bytes, MADV_HUGEPAGE);
	cost_node(i, i, carrier,
	          &(CostService){
				  .method = DIRECTORY_DESCEND, .answer = node_descend, .argument = node->served.service});
}

static void
node_stop(SiteNode *node)
{
	fabric_close(node->fabric);
	world_node_stop(&node->served);
}

/* ---- the site ---- */

uint32_t
site_hosts(const SiteOptions *options)
{
	return options->nodes > options->servers ? options->nodes : options->servers;
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
	                             .entry_cache_bytes = site->options.entry_cache_bytes,
	                             .leaf_cache_bytes = site->options.leaf_cache_bytes,
	                             .leaf_cache_leaf_bytes = site->options.leaf_cache_leaf_bytes,
	                             .leaf_admission_percent = site->options.leaf_admission_percent,
	                             .alone = site->options.alone};

	server->shared =
		tree_shared_initialize(world_allocate(&site->memory, tree_shared_bytes(&options)), &options);
	if (server->shared == NULL)
		world_fail("tree_shared_initialize");
}

void
site_start(Site *site, const SiteOptions *options)
{
	memset(site, 0, sizeof(*site));
	site->options = *options;
	baseline = options->left_out;
	world_memory_open(&site->memory, MEMORY_BYTES);
	(void) madvise(site->memory.base, MEMORY_BYTES, MADV_HUGEPAGE);
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
	for (uint32_t i = 0; i < site->options.nodes; i++)
		world_node_clean(&site->nodes[i].served);
}

void
site_stop(Site *site)
{
	for (uint32_t i = 0; i < site->options.nodes; i++)
		node_stop(&site->nodes[i]);
	site_clean(site);
	site->options.nodes = 0;
	world_memory_close(&site->memory);
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
	(void) argument;
	(void) slot;
	coroutine_wait(milliseconds * NANOSECONDS_PER_MS);
}

static void
client_wake(void *argument, uint32_t slot)
{
	const SiteClient *self = argument;
	SiteClient *woken = self->site->servers[self->server].clients[slot];

	woken->cost.debt += self->site->options.lock_cost;
	coroutine_wake(woken->coroutine);
}

/*
 * Seldom looked at what takes long; who is woken goes on at once. What it waits for has happened then: it does not sleep for a
 * wake-up that is used up.
 */
static void
client_pause_awake(void *argument)
{
	SiteClient *client = argument;

	if (coroutine_wait(client->patience))
		client->patience = PAUSE_NANOSECONDS;
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
	return world_allocate(&((SiteClient *) argument)->site->memory, bytes);
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
		options.endpoints[i] = world_connect(client->fabric, address);
	}
	status = tree_client_open(&options, &client->tree);
	if (status != TREE_OK)
		world_fail("tree_client_open: %s", tree_status_name(status));
	cost_client_handle(&client->cost, client->tree, HANDLE_BYTES);
	site->servers[server].clients[slot] = client;
}

void
site_client_close(SiteClient *client)
{
	TreeStatus status = tree_client_close(client->tree);

	if (status != TREE_OK)
		world_fail("tree_client_close: %s", tree_status_name(status));
	client->site->servers[client->server].clients[client->slot] = NULL;
	fabric_close(client->fabric);
}

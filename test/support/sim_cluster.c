/*
 * sim_cluster.c
 *		See sim_cluster.h.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "rdma/base/transport.h"
#include "rdma/server/server_state.h"
#include "require.h"
#include "sim_cluster.h"
#include "tree/internal.h"

#define NODE_CHANNELS 24u
#define NODE_TREES 8u
#define CACHE_BYTES 65536u
#define LOCK_WORDS 1024u
#define ENTRY_CACHE_BYTES 1024u
/* Images of leaves, where the techniques allow them: some, so that they push out each other. */
#define LEAF_CACHE_BYTES 65536u
#define LEAF_ADMISSION_PERCENT 50u
#define PATIENCE_MS 10000u
/* What spins looks again after so long, at most. */
#define PAUSE_NANOSECONDS 1000u
/* A reader looks again after so long whether it is let in. */
#define FOLLOW_NANOSECONDS (100 * NANOSECONDS_PER_US)
/* In an exploration a pause is as long as whoever is waited for needs. */
#define LONG_PAUSE_US 100u

/* A wait of the fabric is interrupted that often, to see whether it is to end. */
#define WAIT_SLICE_MS 1
#define WAIT_DESCRIPTORS 8

const TreeTechniques *sim_techniques;
size_t sim_node_bytes = 16u << 20;
size_t sim_memory_bytes = 1u << 30;

/* ---- memory nodes ---- */

void
sim_node_kill(WorldNode *node)
{
	FabricServer *server = service_server(node->service);
	ServerConnection *connection;

	coroutine_end(node->server);
	simulator_end_node(server->memory.header->node_uuid[0]);
	/* What the kernel takes back of a process is given back; its memory stays as it is. */
	TAILQ_FOREACH(connection, &server->connections, all)
	connection->channel = CONTROL_NO_CHANNEL;
	server->drained = true;
	server->quiet = false;
	service_close(node->service, 0, false);
	node->service = NULL;
}

static void
node_make(WorldNode *node)
{
	ServiceOptions options = {
		.node_bytes = sim_node_bytes, .max_channels = NODE_CHANNELS, .max_trees = NODE_TREES};

	world_node_make(node, "sim", &options);
}

/* ---- the instance ---- */

static bool
client_is_over(const SimClient *client)
{
	return client->stop && scheduler_now() >= client->stop_time;
}

/* As that of a backend, which does not look for a cancel under a lock; one that is to end does. */
static int
client_wait(void *argument, const int *descriptors, int count, int milliseconds)
{
	const SimClient *client = argument;
	struct pollfd polled[WAIT_DESCRIPTORS];

	REQUIRE(count <= WAIT_DESCRIPTORS, "too many descriptors");
	if (client_is_over(client) && (client->holds == 0 || client->ends))
		return -1;
	for (int i = 0; i < count; i++)
		polled[i] = (struct pollfd){.fd = descriptors[i], .events = POLLIN};
	return poll(polled, (nfds_t) count, milliseconds < WAIT_SLICE_MS ? milliseconds : WAIT_SLICE_MS);
}

static Fabric *
cluster_fabric(uint32_t incarnation, SimClient *client)
{
	FabricOptions options = {
		.silence = client == NULL ? NULL : &client->silence,
		.wait = client == NULL ? NULL : client_wait,
		.wait_argument = client,
		.incarnation = incarnation,
		.transport = &sim_transport,
	};

	return world_fabric(options, PATIENCE_MS);
}

void
sim_cluster_attach(SimCluster *cluster)
{
	Fabric *fabric = cluster_fabric(0, NULL);

	for (uint32_t i = 0; i < cluster->node_count; i++)
	{
		FabricEndpoint *endpoint = world_connect(fabric, cluster->nodes[i].address);
		uint32_t instance;
		FabricStatus status =
			fabric_attach(endpoint, false, scheduler_now() + 1, &instance, &cluster->incarnation);

		REQUIRE(status == FABRIC_OK, "fabric_attach: %s", fabric_detail(fabric));
	}
	fabric_close(fabric);
	for (uint32_t i = 0; i < cluster->domains; i++)
		tree_shared_reset(cluster->shared[i]);
}

void
sim_cluster_start(SimCluster *cluster, uint32_t nodes, uint32_t domains, bool alone)
{
	memset(cluster, 0, sizeof(*cluster));
	cluster->node_count = nodes;
	cluster->domains = domains;
	cluster->options = (TreeSharedOptions){.slots = SIM_SLOTS,
	                                       .trees = 4,
	                                       .cache_bytes = CACHE_BYTES,
	                                       .lock_words = LOCK_WORDS,
	                                       .nodes = nodes,
	                                       .techniques = sim_techniques,
	                                       .entry_cache_bytes = ENTRY_CACHE_BYTES,
	                                       .leaf_cache_bytes = LEAF_CACHE_BYTES,
	                                       .leaf_admission_percent = LEAF_ADMISSION_PERCENT,
	                                       .alone = alone};
	world_memory_open(&cluster->memory, sim_memory_bytes);
	for (uint32_t i = 0; i < nodes; i++)
		node_make(&cluster->nodes[i]);
	for (uint32_t i = 0; i < domains; i++)
	{
		void *memory = world_allocate(&cluster->memory, tree_shared_bytes(&cluster->options));

		cluster->shared[i] = tree_shared_initialize(memory, &cluster->options);
		REQUIRE(cluster->shared[i] != NULL, "tree_shared_initialize");
	}
	sim_cluster_attach(cluster);
}

void
sim_cluster_clean(const SimCluster *cluster)
{
	for (uint32_t i = 0; i < cluster->node_count; i++)
		world_node_clean(&cluster->nodes[i]);
}

void
sim_cluster_stop(SimCluster *cluster)
{
	for (uint32_t i = 0; i < cluster->node_count; i++)
		world_node_stop(&cluster->nodes[i]);
	sim_cluster_clean(cluster);
	cluster->node_count = 0;
	world_memory_close(&cluster->memory);
}

/* ---- clients ---- */

static uint64_t
client_now(void *argument)
{
	return fabric_now() / NANOSECONDS_PER_US + ((const SimClient *) argument)->ahead_us;
}

static void
client_sleep(void *argument, uint32_t slot, uint32_t milliseconds)
{
	(void) slot;
	if (!explorer_is_on())
	{
		coroutine_wait(milliseconds * NANOSECONDS_PER_MS);
		return;
	}
	explorer_sleep();
	((SimClient *) argument)->ahead_us += milliseconds * 1000;
}

static void
client_wake(void *argument, uint32_t slot)
{
	const SimClient *woken = ((SimClient *) argument)->cluster->clients[slot];

	if (woken != NULL && explorer_is_on())
		explorer_wake(slot);
	else if (woken != NULL)
		coroutine_wake(woken->coroutine);
}

static void
client_pause_awake(void *argument)
{
	if (!explorer_is_on())
	{
		coroutine_sleep(1 + scheduler_random(PAUSE_NANOSECONDS));
		return;
	}
	explorer_pause();
	((SimClient *) argument)->ahead_us += LONG_PAUSE_US;
}

static bool
client_stops(void *argument)
{
	return client_is_over(argument);
}

static void
client_hold(void *argument)
{
	((SimClient *) argument)->holds++;
}

static void
client_resume(void *argument)
{
	SimClient *client = argument;

	client->holds--;
	REQUIRE(client->holds >= 0, "resume without hold");
}

static void *
client_allocate_memory(void *argument, size_t bytes)
{
	return world_allocate(&((SimClient *) argument)->cluster->memory, bytes);
}

static void
client_release_memory(void *argument, void *memory)
{
	(void) argument;
	(void) memory;
}

/* Of a client, but for its connections. */
static TreeClientOptions
client_options(SimClient *client, TreeShared *shared)
{
	return (TreeClientOptions){
		.shared = shared,
		.slot = client->slot,
		.environment = {.argument = client,
	                    .now_us = client_now,
	                    .sleep = client_sleep,
	                    .wake = client_wake,
	                    .pause = client_pause_awake,
	                    .should_stop = client_stops,
	                    .hold = client_hold,
	                    .resume = client_resume},
		.nodes = client->cluster->node_count,
		.operation_timeout_ms = PATIENCE_MS,
		.silence = &client->silence,
		.allocate = client_allocate_memory,
		.release = client_release_memory,
		.allocate_argument = client,
	};
}

static void
client_open(SimClient *client, const TreeClientOptions *options)
{
	TreeStatus status = tree_client_open(options, &client->tree);

	REQUIRE(status == TREE_OK, "tree_client_open: %s", tree_status_name(status));
	client->cluster->clients[client->slot] = client;
}

void
sim_client_open(SimClient *client, SimCluster *cluster, uint32_t slot, uint32_t domain)
{
	TreeClientOptions options;

	*client =
		(SimClient){.cluster = cluster, .slot = slot, .domain = domain, .coroutine = coroutine_current()};
	client->incarnation = cluster->incarnation;
	client->fabric = cluster_fabric(client->incarnation, client);
	options = client_options(client, cluster->shared[domain]);
	for (uint32_t i = 0; i < cluster->node_count; i++)
		options.endpoints[i] = world_connect(client->fabric, cluster->nodes[i].address);
	client_open(client, &options);
}

/* ---- readers ---- */

/*
 * There are none over the socket that is simulated: the memory node takes this client for one, as of now, and so does its own library, which
 * refuses chains that change anything.
 */
static void
reader_declare(const WorldNode *node, FabricEndpoint *endpoint)
{
	FabricServer *server = node->service == NULL ? NULL : service_server(node->service);
	ServerChannel *channel;

	endpoint->reader = true;
	if (server == NULL || server->memory.channels[endpoint->channel.channel].state >> MEMORY_STATE_BITS !=
	                          endpoint->channel.serial)
		return;
	channel = &server->channels[endpoint->channel.channel];
	channel->reader = true;
	if (channel->connection != NULL)
		channel->connection->reader = true;
}

static FabricEndpoint *
reader_connect(void *argument, uint32_t node, char *detail)
{
	SimClient *client = argument;
	const WorldNode *there = &client->cluster->nodes[node];
	FabricEndpoint *endpoint = NULL;

	if (fabric_connect(client->fabric, there->address, &endpoint) != FABRIC_OK)
	{
		snprintf(detail, TREE_DETAIL_BYTES, "%s", fabric_detail(client->fabric));
		return NULL;
	}
	reader_declare(there, endpoint);
	return endpoint;
}

/* What all readers have in common is of the present incarnation from now on. */
static void
readers_admit(SimClient *client)
{
	SimCluster *cluster = client->cluster;

	if (cluster->read_incarnation == client->incarnation)
		return;
	cluster->read_incarnation = client->incarnation;
	for (uint32_t i = 0; i < cluster->node_count; i++)
		tree_node_close(cluster->readers, i);
	tree_forget_cached(cluster->readers);
	for (uint32_t i = 0; i < cluster->node_count; i++)
	{
		tree_node_leaves_at_hand(cluster->readers, i, true);
		tree_node_open(client->tree, i, 0);
	}
}

bool
sim_reader_follow(SimClient *client)
{
	SimCluster *cluster = client->cluster;

	if (client->incarnation != cluster->incarnation)
	{
		for (uint32_t i = 0; i < cluster->node_count; i++)
			tree_client_reconnect(client->tree, i);
		fabric_close(client->fabric);
		client->incarnation = cluster->incarnation;
		client->fabric = cluster_fabric(client->incarnation, client);
		readers_admit(client);
	}
	for (uint32_t i = 0; i < cluster->node_count; i++)
	{
		if (tree_client_connect(client->tree, i) != TREE_OK)
		{
			(void) tree_client_trouble(client->tree);
			return false;
		}
		/* Its channel may be another one than last time. */
		reader_declare(&cluster->nodes[i], client->tree->options.endpoints[i]);
	}
	return true;
}

void
sim_reader_open(SimClient *client, SimCluster *cluster, uint32_t slot)
{
	TreeClientOptions options;

	*client = (SimClient){.cluster = cluster, .slot = slot, .coroutine = coroutine_current()};
	if (cluster->readers == NULL)
	{
		void *memory = world_allocate(&cluster->memory, tree_shared_bytes(&cluster->options));

		cluster->readers = tree_shared_initialize(memory, &cluster->options);
		REQUIRE(cluster->readers != NULL, "tree_shared_initialize");
	}
	client->fabric = cluster_fabric(cluster->incarnation, client);
	options = client_options(client, cluster->readers);
	options.reader = true;
	options.environment.connect = reader_connect;
	client_open(client, &options);
	while (!sim_reader_follow(client))
		coroutine_sleep(FOLLOW_NANOSECONDS);
}

/* ---- the end of a client ---- */

void
sim_client_leave(SimClient *client)
{
	TreeStatus status = tree_client_close(client->tree);

	REQUIRE(status == TREE_OK, "tree_client_close: %s", tree_status_name(status));
}

void
sim_client_bury(SimClient *client)
{
	if (client->cluster->clients[client->slot] == client)
		client->cluster->clients[client->slot] = NULL;
	fabric_close(client->fabric);
}

void
sim_client_close(SimClient *client)
{
	sim_client_leave(client);
	sim_client_bury(client);
}

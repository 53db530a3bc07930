/*
 * sim_cluster.c
 *		See sim_cluster.h.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../rdma/server_state.h"
#include "require.h"
#include "sim_cluster.h"

#define NODE_BYTES (16u << 20)
#define NODE_CHANNELS 24u
#define NODE_TREES 8u
#define CACHE_BYTES 65536u
#define LOCK_WORDS 1024u
#define ENTRY_CACHE_BYTES 1024u
#define PATIENCE_MS 10000u
/* What spins looks again after so long, at most. */
#define PAUSE_NANOSECONDS 1000u
/* In an exploration a pause is as long as whoever is waited for needs. */
#define LONG_PAUSE_US 100u

/* A wait of the fabric is interrupted that often, to see whether it is to end. */
#define WAIT_SLICE_MS 1
#define WAIT_DESCRIPTORS 8

/* Where a cluster's memory is, and how much of it. */
#define MEMORY_ADDRESS ((void *) 0x200000000000)
#define MEMORY_BYTES (1ull << 30)

const TreeTechniques *sim_techniques;

/* ---- memory nodes ---- */

static void
serve(void *argument)
{
	SimNode *node = argument;
	ServiceOptions options = {
		.memory_path = node->memory_path,
		.socket_path = node->socket_path,
		.node_bytes = NODE_BYTES,
		.max_channels = NODE_CHANNELS,
		.max_trees = NODE_TREES,
	};
	char detail[FABRIC_DETAIL_BYTES];
	Service *service;
	FabricStatus status = service_open(&options, &service, detail);

	REQUIRE(status == FABRIC_OK, "service_open: %s", detail);
	node->service = service;
	status = service_run(service);
	REQUIRE(status == FABRIC_OK, "service_run: %s", fabric_status_name(status));
	node->service = NULL;
	service_close(service, 0, false);
}

void
sim_node_start(SimNode *node)
{
	node->server = coroutine_start(serve, node, true);
	while (node->service == NULL)
		coroutine_sleep(NANOSECONDS_PER_US);
}

void
sim_node_stop(SimNode *node)
{
	service_stop(node->service);
	while (!coroutine_has_ended(node->server))
		coroutine_sleep(NANOSECONDS_PER_US);
}

void
sim_node_kill(SimNode *node)
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
node_make(SimNode *node)
{
	const char *base = getenv("FABRIC_TEST_DIRECTORY");

	if (base == NULL)
		base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	snprintf(node->directory, sizeof(node->directory), "%.40s/sherman-sim-XXXXXX", base);
	REQUIRE(mkdtemp(node->directory) != NULL, "mkdtemp");
	snprintf(node->memory_path, sizeof(node->memory_path), "%s/memory", node->directory);
	snprintf(node->socket_path, sizeof(node->socket_path), "%s/socket", node->directory);
	snprintf(node->address, sizeof(node->address), "sim:%s", node->socket_path);
	sim_node_start(node);
}

/* ---- the instance ---- */

/* Bytes that are given back with the cluster. */
static void *
cluster_allocate(SimCluster *cluster, size_t bytes)
{
	void *memory = cluster->memory + cluster->used;

	cluster->used += (bytes + 63) / 64 * 64;
	REQUIRE(cluster->used <= MEMORY_BYTES, "no memory");
	return memory;
}

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
		.operation_timeout_ms = PATIENCE_MS / 2,
		.connect_timeout_ms = PATIENCE_MS,
		.silence = client == NULL ? NULL : &client->silence,
		.wait = client == NULL ? NULL : client_wait,
		.wait_argument = client,
		.cluster = {1, 2},
		.incarnation = incarnation,
		.transport = &sim_transport,
	};
	Fabric *fabric;

	REQUIRE(fabric_open(&options, &fabric) == FABRIC_OK, "fabric_open");
	return fabric;
}

static FabricEndpoint *
cluster_connect(Fabric *fabric, const SimNode *node)
{
	FabricEndpoint *endpoint;
	FabricStatus status = fabric_connect(fabric, node->address, &endpoint);

	REQUIRE(status == FABRIC_OK, "fabric_connect: %s: %s", fabric_status_name(status), fabric_detail(fabric));
	return endpoint;
}

void
sim_cluster_attach(SimCluster *cluster)
{
	Fabric *fabric = cluster_fabric(0, NULL);

	for (uint32_t i = 0; i < cluster->node_count; i++)
	{
		FabricEndpoint *endpoint = cluster_connect(fabric, &cluster->nodes[i]);
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
sim_cluster_start(SimCluster *cluster, uint32_t nodes, uint32_t domains)
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
	                                       .entry_cache_bytes = ENTRY_CACHE_BYTES};
	cluster->memory = mmap(MEMORY_ADDRESS, MEMORY_BYTES, PROT_READ | PROT_WRITE,
	                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	REQUIRE(cluster->memory == MEMORY_ADDRESS, "mmap");
	for (uint32_t i = 0; i < nodes; i++)
		node_make(&cluster->nodes[i]);
	for (uint32_t i = 0; i < domains; i++)
	{
		void *memory = cluster_allocate(cluster, tree_shared_bytes(&cluster->options));

		cluster->shared[i] = tree_shared_initialize(memory, &cluster->options);
		REQUIRE(cluster->shared[i] != NULL, "tree_shared_initialize");
	}
	sim_cluster_attach(cluster);
}

void
sim_cluster_clean(const SimCluster *cluster)
{
	static const char *const names[] = {"memory", "memory.lock", "socket"};

	for (uint32_t i = 0; i < cluster->node_count; i++)
	{
		char path[128];

		for (size_t name = 0; name < sizeof(names) / sizeof(names[0]); name++)
		{
			snprintf(path, sizeof(path), "%s/%s", cluster->nodes[i].directory, names[name]);
			unlink(path);
		}
		rmdir(cluster->nodes[i].directory);
	}
}

void
sim_cluster_stop(SimCluster *cluster)
{
	for (uint32_t i = 0; i < cluster->node_count; i++)
		sim_node_stop(&cluster->nodes[i]);
	sim_cluster_clean(cluster);
	cluster->node_count = 0;
	munmap(cluster->memory, MEMORY_BYTES);
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
	return cluster_allocate(((SimClient *) argument)->cluster, bytes);
}

static void
client_release_memory(void *argument, void *memory)
{
	(void) argument;
	(void) memory;
}

void
sim_client_open(SimClient *client, SimCluster *cluster, uint32_t slot, uint32_t domain)
{
	TreeClientOptions options = {
		.shared = cluster->shared[domain],
		.slot = slot,
		.environment = {.argument = client,
	                    .now_us = client_now,
	                    .sleep = client_sleep,
	                    .wake = client_wake,
	                    .pause = client_pause_awake,
	                    .should_stop = client_stops,
	                    .hold = client_hold,
	                    .resume = client_resume},
		.nodes = cluster->node_count,
		.operation_timeout_ms = PATIENCE_MS,
		.silence = &client->silence,
		.allocate = client_allocate_memory,
		.release = client_release_memory,
		.allocate_argument = client,
	};
	TreeStatus status;

	*client =
		(SimClient){.cluster = cluster, .slot = slot, .domain = domain, .coroutine = coroutine_current()};
	client->fabric = cluster_fabric(cluster->incarnation, client);
	for (uint32_t i = 0; i < cluster->node_count; i++)
		options.endpoints[i] = cluster_connect(client->fabric, &cluster->nodes[i]);
	status = tree_client_open(&options, &client->tree);
	REQUIRE(status == TREE_OK, "tree_client_open: %s", tree_status_name(status));
	cluster->clients[slot] = client;
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
	TreeStatus status = tree_client_close(client->tree);

	REQUIRE(status == TREE_OK, "tree_client_close: %s", tree_status_name(status));
	sim_client_bury(client);
}

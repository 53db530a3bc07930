/*
 * sim_cluster.h
 *		Memory nodes, one compute instance and its clients as coroutines of the simulator.
 *
 * Everything here is called from coroutines, between scheduler_open() and scheduler_close().  What fails
 * aborts.
 */
#ifndef SHERMAN_TEST_SIM_CLUSTER_H
#define SHERMAN_TEST_SIM_CLUSTER_H

#include "../../sim/explorer.h"
#include "../../sim/simulator.h"
#include "../../sim/world.h"
#include "../../tree/tree.h"

#define SIM_NODES 2
#define SIM_DOMAINS 3
#define SIM_SLOTS 8

struct SimClient;

typedef struct SimCluster
{
	WorldNode nodes[SIM_NODES];
	uint32_t node_count;
	/*
	 * Local lock tables, caches and allocation states: two stand for two compute instances, which share the
	 * identity of one in lock words and nothing else.
	 */
	TreeShared *shared[SIM_DOMAINS];
	uint32_t domains;
	TreeSharedOptions options;
	uint32_t incarnation;
	/* Of another instance, which only reads (TreeClientOptions.reader); NULL: nobody does. */
	TreeShared *readers;
	uint32_t read_incarnation; /* what these have cached is of none before */
	struct SimClient *clients[SIM_SLOTS];
	WorldMemory memory; /* of the domains and of clients */
} SimCluster;

/* It ends where it waits, as if killed. The memory stays as it is, and world_node_start() serves it again. */
extern void sim_node_kill(WorldNode *node);

/* Techniques of clusters that are started; NULL: all of them. */
extern const TreeTechniques *sim_techniques;

/* Bytes of a memory node of clusters that are started, and of all that their instance and clients have. */
extern size_t sim_node_bytes;
extern size_t sim_memory_bytes;

/* `alone`: TreeSharedOptions.alone, of one domain. */
extern void sim_cluster_start(SimCluster *cluster, uint32_t nodes, uint32_t domains, bool alone);
/*
 * The next incarnation: nothing of the ones before lands any more. The shared memory of the domains is empty
 * then.
 */
extern void sim_cluster_attach(SimCluster *cluster);
extern void sim_cluster_stop(SimCluster *cluster);
/* Removes the files, whatever state it is in; for a program that ends in the middle. */
extern void sim_cluster_clean(const SimCluster *cluster);

typedef struct SimClient
{
	SimCluster *cluster;
	uint32_t slot;
	uint32_t domain;
	uint32_t incarnation; /* that of its connections */
	Coroutine *coroutine; /* that runs it */
	Fabric *fabric;
	TreeClient *tree;
	uint64_t silence;
	uint64_t ahead_us;  /* of the others' time: in an exploration nothing else passes in a wait */
	bool stop;          /* what it does is to end early ... */
	uint64_t stop_time; /* ... from this moment on */
	bool ends;          /* ... under a lock, too */
	int holds;
} SimClient;

/* A client of the calling coroutine. */
extern void sim_client_open(SimClient *client, SimCluster *cluster, uint32_t slot, uint32_t domain);
/* The same, of one that only reads: its connections are a reader's.  It waits until there are any. */
extern void sim_reader_open(SimClient *client, SimCluster *cluster, uint32_t slot);
/*
 * As a standby does when the primary has attached anew: what was cached is forgotten, and the connections are made anew.  False: not all of
 * them can be made now.
 */
extern bool sim_reader_follow(SimClient *client);
extern void sim_client_close(SimClient *client);
/* The first half of that: it has its connections still. */
extern void sim_client_leave(SimClient *client);
/* Closes the connections of one whose coroutine was ended: as the kernel does it for a process. */
extern void sim_client_bury(SimClient *client);

#endif /* SHERMAN_TEST_SIM_CLUSTER_H */

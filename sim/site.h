/*
 * site.h
 *		Memory nodes, compute servers and clients of the cost model: the real memory nodes and the real tree,
 *		in virtual time.
 *
 * Memory node i and compute server i are on host i and share its card, as in the paper's cluster. A compute
 * server is a set of shared memory of its own; all are one instance to the memory nodes, as no tree has two
 * yet: they meet in the lock words only.
 *
 * Everything here is called from coroutines, between scheduler_open(), cost_open() and cost_close(),
 * scheduler_close().  What fails prints why and aborts.
 */
#ifndef SHERMAN_SITE_H
#define SHERMAN_SITE_H

#include "../tree/tree.h"
#include "baselines.h"
#include "cost_transport.h"
#include "world.h"

#define SITE_SERVERS_MAX 64u
#define SITE_CLIENTS_MAX 96u

typedef struct SiteOptions
{
	uint32_t nodes;   /* memory nodes, 1 to TREE_MAX_NODES */
	uint32_t servers; /* compute servers, 1 to SITE_SERVERS_MAX */
	uint32_t clients; /* of each, 1 to SITE_CLIENTS_MAX */
	uint64_t node_bytes;
	uint64_t cache_bytes;       /* of each compute server */
	uint64_t entry_cache_bytes; /* likewise: what TreeSharedOptions have */
	uint64_t leaf_cache_bytes;
	uint32_t leaf_cache_leaf_bytes;
	uint32_t leaf_admission_percent;
	CostPlacement placement;
	TreeTechniques techniques;
	bool alone;         /* TreeSharedOptions.alone */
	Baseline left_out;  /* of the tree's own techniques */
	uint32_t lock_cost; /* nanoseconds: a lock that is passed on inside a compute server */
} SiteOptions;

typedef struct SiteNode
{
	WorldNode served;
	Fabric *fabric; /* of the connection that all clients share */
} SiteNode;

struct SiteClient;

typedef struct SiteServer
{
	TreeShared *shared;
	struct SiteClient *clients[SITE_CLIENTS_MAX + 1]; /* by slot */
} SiteServer;

typedef struct Site
{
	SiteOptions options;
	SiteNode nodes[TREE_MAX_NODES];
	SiteServer servers[SITE_SERVERS_MAX];
	uint32_t incarnation;
	WorldMemory memory; /* of the compute servers and of clients */
} Site;

typedef struct SiteClient
{
	Site *site;
	uint32_t server;
	uint32_t slot;
	Coroutine *coroutine;
	Fabric *fabric;
	TreeClient *tree;
	CostClient cost;
	uint32_t patience; /* nanoseconds of the next look at what is waited for */
	uint64_t silence;
} SiteClient;

extern uint32_t site_hosts(const SiteOptions *options);
extern void site_start(Site *site, const SiteOptions *options);
extern void site_stop(Site *site);
/* Removes the files, whatever state it is in; for a program that ends in the middle. */
extern void site_clean(const Site *site);

/*
 * A client of the calling coroutine; slot options.clients is one more than there are, for who makes the tree.
 */
extern void site_client_open(SiteClient *client, Site *site, uint32_t server, uint32_t slot);
extern void site_client_close(SiteClient *client);

#endif /* SHERMAN_SITE_H */

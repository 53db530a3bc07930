/*
 * two_tenants.c
 *		Two tenants of one memory node: "good" does its ordinary work, and "evil" sends whatever names what exists: good's
 *		trees, tokens, clusters, places, channels, epochs.  After each run good's records, extents, nodes, epoch and quota are
 *		as good left them, good was served all the time, and evil was sent none of good's bytes.
 *
 *	two_tenants [--seed N] [--runs N] [--steps N]
 *
 * A run is told by its seed: --seed N --runs 1 repeats it.  Beside evil there is a neighbor: another cluster of good's own tenant,
 * which has the tenant's key and makes calls; chains of one may reach all of the tenant's memory, so that it makes none.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "support/fixture.h"
#include "support/door.h"
#include "support/require.h"
#include "tree/node/redo.h"

#define NODE_BYTES (32ull << 20)
#define QUOTA_BYTES (12ull << 20)
#define TREES 256u
#define RUNS 1000u
#define STEPS 60u
/* A run of so many opens the memory node anew, in its middle. */
#define REOPENED 16u
/* Good's calls are answered in so many rounds. */
#define GOOD_ROUNDS 2u
#define EVIL_ROUNDS 3u

#define GOOD 0u
#define EVIL 1u
#define GOOD_CLUSTER 0x6000000000000001ull
#define NEIGHBOR_CLUSTER 0x6000000000000002ull
#define EVIL_CLUSTER 0xe000000000000001ull

/* What good's memory and records are full of, and nothing else ever is. */
#define SECRET 0x5ec2e75ec2e75ec2ull

#define GOOD_TREES 6u
#define GOOD_EXTENTS 4u
#define EVIL_CLIENTS 3u
#define POOL 64u

static const char *const names[DOOR_TENANTS] = {"good", "evil"};
static const uint64_t quotas[DOOR_TENANTS] = {QUOTA_BYTES, QUOTA_BYTES};

/* Memory of good's, and what is in it. */
typedef struct GoodExtent
{
	uint64_t offset;
	uint64_t bytes;
	uint8_t content[EXTENT_MIN_BYTES];
} GoodExtent;

typedef struct GoodTree
{
	TreeRecord record; /* as it was read last; its tree is 0: there is none */
	uint64_t token;
	uint32_t count;
	GoodExtent extents[GOOD_EXTENTS];
} GoodTree;

typedef struct World
{
	Door door;
	uint64_t seed;
	uint64_t random;
	uint32_t step;
	/* Good. */
	DoorClient good;
	uint32_t good_incarnation;
	uint32_t good_channel;
	uint64_t good_serial;
	uint64_t good_epoch;
	uint64_t tokens;
	GoodTree trees[GOOD_TREES];
	/* The others: evil's connections, and the neighbor's behind them. */
	DoorClient evil[EVIL_CLIENTS + 1];
	uint32_t evil_incarnation;
	uint32_t neighbor_incarnation;
	uint64_t evil_trees[POOL];
	uint64_t evil_units[POOL];
	uint32_t evil_count;
} World;

static World world;

/* Says which run it was. */
#define HOLDS(condition, ...)                                                                                \
	do                                                                                                       \
	{                                                                                                        \
		if (!(condition))                                                                                    \
			fprintf(stderr, "seed %llu, step %u:\n", (unsigned long long) world.seed, world.step);           \
		REQUIRE(condition, __VA_ARGS__);                                                                     \
	} while (0)

static uint64_t
draw(void)
{
	uint64_t x = world.random += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static uint64_t
below(uint64_t bound)
{
	return draw() % bound;
}

/* ---- good ---- */

static uint8_t *
node_memory(uint64_t offset, uint64_t bytes)
{
	return fabric_server_node(world.door.service->server, offset, bytes);
}

static FabricStatus
good_call(DirectoryMethod method, const void *request, size_t bytes, void *reply)
{
	static uint8_t room[FABRIC_MAX_CALL_BYTES];
	FabricStatus status = door_call(&world.door, &world.good, GOOD_ROUNDS, (uint16_t) method, request, bytes,
	                                reply != NULL ? reply : room, NULL);

	HOLDS(status != FABRIC_TIMED_OUT && status != FABRIC_LOST, "good's %s is not answered",
	      service_method_name(method));
	return status;
}

static void
good_must(DirectoryMethod method, const void *request, size_t bytes, void *reply)
{
	FabricStatus status = good_call(method, request, bytes, reply);

	HOLDS(status == FABRIC_OK, "good's %s: %s", service_method_name(method), fabric_status_name(status));
}

/* One operation, by a chain. */
static FabricStatus
run_chain(DoorClient *client, uint32_t rounds, FabricOp *ops, int count)
{
	static uint8_t payload[CHAIN_MAX_BYTES];
	static uint8_t reply[CHAIN_MAX_BYTES + 64];
	FabricStatus status;

	chain_encode(ops, count, payload);
	status = door_call(&world.door, client, rounds, CONTROL_CHAIN, payload, chain_request_bytes(ops, count),
	                   reply, NULL);
	if (status == FABRIC_OK)
		chain_take_reply(ops, count, reply);
	return status;
}

/* HELLO of good's cluster or the neighbor's, on a new connection. */
static FabricStatus
introduce(DoorClient *client, uint32_t which, uint64_t cluster, uint32_t incarnation,
          FabricCapabilities *capabilities, uint64_t *serial)
{
	FrameHello hello = {
		.cluster = {cluster, cluster}, .incarnation = incarnation, .old_channel = CONTROL_NO_CHANNEL};

	door_disconnect(client);
	door_connect(&world.door, which, client);
	return door_hello(&world.door, client, &hello, capabilities, serial);
}

static void
good_connect(void)
{
	FabricCapabilities capabilities;

	HOLDS(introduce(&world.good, GOOD, GOOD_CLUSTER, world.good_incarnation, &capabilities,
	                &world.good_serial) == FABRIC_OK,
	      "good's HELLO");
	world.good_channel = capabilities.channel;
}

/* A new incarnation of a cluster. */
static uint32_t
attach(uint32_t which, uint64_t cluster)
{
	DoorClient client = {.descriptor = -1};
	uint32_t incarnation = 0;

	HOLDS(introduce(&client, which, cluster, 0, NULL, NULL) == FABRIC_OK &&
	          door_attach(&world.door, &client, draw(), &incarnation) == FABRIC_OK,
	      "%s does not attach", names[which]);
	door_disconnect(&client);
	return incarnation;
}

/* Fills a new extent with the secret, and notes what is in it. */
static void
good_fill(GoodTree *tree, uint64_t offset, uint64_t bytes)
{
	GoodExtent *extent = &tree->extents[tree->count++];
	uint64_t *words =
		(uint64_t *) node_memory(offset + FABRIC_STRIPE_BYTES, EXTENT_MIN_BYTES - FABRIC_STRIPE_BYTES);

	HOLDS(tree->count <= GOOD_EXTENTS, "extents");
	extent->offset = offset;
	extent->bytes = bytes;
	for (uint32_t i = 0; i < (EXTENT_MIN_BYTES - FABRIC_STRIPE_BYTES) / 8; i++)
	{
		HOLDS(words[i] == 0, "memory is not zeroed before it is given to somebody else");
		words[i] = SECRET;
	}
	memcpy(extent->content, node_memory(offset, EXTENT_MIN_BYTES), EXTENT_MIN_BYTES);
}

/* The root, a leaf full of the secret, and an inner node above it, as its clients would write them. */
static void
good_nodes(GoodTree *tree)
{
	NodeGeometry g = node_geometry(&narrow);
	uint64_t root = tree->record.root;
	uint64_t above = pointer_make(0, tree->extents[0].offset + DIRECTORY_FIRST_BUMP);
	uint64_t *leaf = (uint64_t *) node_memory(pointer_offset(root), g.leaf_bytes);
	uint64_t *inner = (uint64_t *) node_memory(pointer_offset(above), INNER_BYTES);

	node_begin(&g, leaf, tree->record.tree, root, 0, 3, 0);
	node_set_fence(&g, leaf, false, NULL);
	node_set_fence(&g, leaf, true, NULL);
	for (uint32_t slot = 0; slot < g.leaf_cells; slot++)
	{
		leaf[leaf_cell_word(&g, slot)] = cell_word0(3, 3, (uint16_t) (slot + 1), CELL_LIVE, false, false);
		leaf[leaf_cell_word(&g, slot) + 1] = SECRET;
	}
	node_seal(&g, leaf);
	node_begin(&g, inner, tree->record.tree, above, 1, 3, 0);
	node_set_fence(&g, inner, false, NULL);
	node_set_fence(&g, inner, true, NULL);
	inner[inner_cell_word(&g, 0)] = root;
	memcpy(inner + inner_cell_word(&g, 0) + 1, inner + g.low_word, g.cell_bytes);
	inner[HEADER_STATE] = node_state_word(inner[HEADER_GENERATION], 1, 1, 0);
	node_seal(&g, inner);
	memcpy(tree->extents[0].content, node_memory(tree->extents[0].offset, EXTENT_MIN_BYTES),
	       EXTENT_MIN_BYTES);
}

static DirectoryDescent
descent(uint64_t tree, uint64_t pointer)
{
	return (DirectoryDescent){.tree = tree,
	                          .pointer = pointer,
	                          .level = 1,
	                          .flags = DESCENT_LOSSLESS | DESCENT_BITS_VALID,
	                          .norm_length = 8,
	                          .cell_bytes = 16,
	                          .norm_bytes = 8};
}

/* An id that a share gets is another memory node's: whichever that is, evil may have it already. */
static uint64_t
foreign_id(void)
{
	uint64_t tree = below(2) == 0 && world.evil_count > 0 ? world.evil_trees[below(world.evil_count)] : 0;

	for (uint32_t i = 0; i < GOOD_TREES; i++)
		if (tree == world.trees[i].record.tree)
			tree = 0;
	return tree != 0 && tree < TABLES_ID_LIMIT ? tree : (draw() >> 4) | 1;
}

static void
good_read(GoodTree *tree)
{
	DirectoryTree request = {tree->record.tree};
	TreeRecord record;

	good_must(DIRECTORY_READ, &request, sizeof(request), &record);
	tree->record = record;
}

static void
good_create(GoodTree *tree)
{
	DirectoryCreate request = {.token = {++world.tokens, SECRET},
	                           .record = {.format = narrow, .nonce = SECRET, .creator = SECRET}};
	DirectoryCreated created;

	good_must(DIRECTORY_CREATE, &request, sizeof(request), &created);
	memset(tree, 0, sizeof(*tree));
	tree->record = created.record;
	tree->token = world.tokens;
	good_fill(tree, created.extent.offset, created.extent.bytes);
	good_nodes(tree);
}

static void
good_share(GoodTree *tree)
{
	DirectoryExtentRequest request = {.tree = foreign_id(), .share = 1, .home = 1, .home_member = SECRET};
	DirectoryExtent extent;

	good_must(DIRECTORY_EXTENT, &request, sizeof(request), &extent);
	memset(tree, 0, sizeof(*tree));
	tree->record.tree = request.tree;
	good_fill(tree, extent.offset, extent.bytes);
	good_read(tree);
}

static void
good_replicas(GoodTree *tree)
{
	DirectoryReplicaRequest request = {
		.tree = foreign_id(), .offset = FABRIC_UNIT_BYTES, .bytes = EXTENT_MIN_BYTES};
	DirectoryReplica copy;

	request.record = (TreeRecord){.tree = request.tree, .root = pointer_make(1, 4096), .nonce = SECRET};
	good_must(DIRECTORY_REPLICA, &request, sizeof(request), &copy);
	memset(tree, 0, sizeof(*tree));
	tree->record.tree = request.tree;
	good_fill(tree, copy.copy, copy.bytes);
	good_read(tree);
}

static void
good_extent(GoodTree *tree)
{
	DirectoryExtentRequest request = {.tree = tree->record.tree, .extents = tree->record.extents};
	DirectoryExtent extent;

	if (tree->count == GOOD_EXTENTS || tree->record.extents == 0)
		return;
	good_must(DIRECTORY_EXTENT, &request, sizeof(request), &extent);
	good_fill(tree, extent.offset, extent.bytes);
	good_read(tree);
}

static void
good_drop(GoodTree *tree)
{
	DirectoryTree request = {tree->record.tree};

	good_must(DIRECTORY_DROP, &request, sizeof(request), NULL);
	memset(tree, 0, sizeof(*tree));
}

static void
good_descend(const GoodTree *tree)
{
	DirectoryDescent request = descent(tree->record.tree, 0);
	DirectoryDescended reply;

	if (tree->token == 0)
		return;
	request.pointer = pointer_make(0, tree->extents[0].offset + DIRECTORY_FIRST_BUMP);
	good_must(DIRECTORY_DESCEND, &request, sizeof(request), &reply);
	HOLDS(reply.pointer == tree->record.root && reply.bytes > 0, "good's descent ends on its way");
}

/* A word of an extent, and a lock word. */
static void
good_chain(GoodTree *tree)
{
	GoodExtent *extent = &tree->extents[below(tree->count)];
	uint64_t offset = EXTENT_MIN_BYTES - 8 * (1 + below(64));
	uint64_t word = 0, value = SECRET;
	FabricOp ops[3] = {
		{.opcode = FABRIC_WRITE, .length = 8, .offset = extent->offset + offset, .buffer = &value},
		{.opcode = FABRIC_READ, .length = 8, .offset = extent->offset + offset, .buffer = &word},
		{.opcode = FABRIC_COMPARE_SWAP, .region = FABRIC_LOCKS, .length = 8, .offset = 8 * below(4)}};

	/* Good holds no lock: nobody but evil can have changed the word. */
	HOLDS(run_chain(&world.good, GOOD_ROUNDS, ops, 3) == FABRIC_OK, "good's chain");
	HOLDS(word == SECRET && ops[2].result == 0, "good's chain reads %llx, and a lock word %llx",
	      (unsigned long long) word, (unsigned long long) ops[2].result);
}

static void
good_epoch(void)
{
	DirectoryEpoch request = {++world.good_epoch};

	good_must(DIRECTORY_EPOCH_OPEN, &request, sizeof(request), NULL);
}

static void
good_step(void)
{
	GoodTree *tree = &world.trees[below(GOOD_TREES)];

	if (below(20) == 0)
		good_connect();
	else if (below(20) == 0)
		good_epoch();
	else if (tree->record.tree == 0)
		(below(2) == 0 ? good_create : below(2) == 0 ? good_share : good_replicas)(tree);
	else if (below(8) == 0)
		good_drop(tree);
	else if (below(3) == 0)
		good_extent(tree);
	else if (below(2) == 0)
		good_descend(tree);
	else
		good_chain(tree);
}

/* ---- what must be so ---- */

static void
check_tree(GoodTree *tree)
{
	const ServiceTables *tables = &world.door.service->tables;
	TreeRecord before = tree->record;
	uint64_t bytes = 0;

	good_read(tree);
	HOLDS(memcmp(&before, &tree->record, sizeof(before)) == 0, "good's record %llx is another",
	      (unsigned long long) before.tree);
	for (uint32_t i = 0; i < tree->count; i++)
	{
		const GoodExtent *extent = &tree->extents[i];

		bytes += extent->bytes;
		for (uint64_t at = extent->offset; at < extent->offset + extent->bytes; at += FABRIC_UNIT_BYTES)
		{
			const ServiceRecord *owner = tables_owner(tables, at);

			HOLDS(owner != NULL && owner->tenant == world.door.tenants[GOOD] &&
			          owner->record.tree == before.tree && owner->record.cluster[0] == GOOD_CLUSTER,
			      "the unit at %llx is not good's any more", (unsigned long long) at);
			HOLDS(fabric_server_unit_tenant(world.door.service->server, at) == world.door.tenants[GOOD],
			      "the unit at %llx has another tenant's mark", (unsigned long long) at);
		}
		HOLDS(memcmp(node_memory(extent->offset, EXTENT_MIN_BYTES), extent->content, EXTENT_MIN_BYTES) == 0,
		      "good's memory at %llx was changed", (unsigned long long) extent->offset);
	}
	HOLDS(bytes == before.bytes, "good's tree has %llu bytes", (unsigned long long) before.bytes);
}

/* Good lists its trees, and no others. */
static void
check_list(uint32_t shares, uint32_t wanted)
{
	DirectoryPosition request = {.shares = shares};
	DirectoryListed listed;
	uint32_t found = 0;

	while (good_call(DIRECTORY_LIST, &request, sizeof(request), &listed) == FABRIC_OK)
	{
		bool known = false;

		for (uint32_t i = 0; i < GOOD_TREES; i++)
			known |= world.trees[i].record.tree == listed.record.tree;
		HOLDS(known, "good is told of a tree that it does not have");
		request.position = listed.position;
		found++;
	}
	HOLDS(found == wanted, "good has %u trees, and is told of %u", wanted, found);
}

static void
check_good(void)
{
	TreeNodeStatus status;
	uint64_t bytes = 0;
	uint32_t trees = 0, shares = 0;

	for (uint32_t i = 0; i < GOOD_TREES; i++)
	{
		GoodTree *tree = &world.trees[i];

		if (tree->record.tree == 0)
			continue;
		check_tree(tree);
		bytes += tree->record.bytes;
		trees += tree->token != 0;
		shares += tree->token == 0;
	}
	check_list(0, trees);
	check_list(1, shares);
	good_must(DIRECTORY_STATUS, NULL, 0, &status);
	HOLDS(status.epoch == world.good_epoch, "good's epoch is %llu", (unsigned long long) status.epoch);
	HOLDS(status.tenant_bytes >= bytes && status.tenant_quota == QUOTA_BYTES,
	      "good's quota is charged with %llu", (unsigned long long) status.tenant_bytes);
}

/* ---- evil ---- */

static void
evil_note(uint64_t tree, uint64_t offset)
{
	uint32_t i = world.evil_count < POOL ? world.evil_count++ : (uint32_t) below(POOL);

	world.evil_trees[i] = tree;
	world.evil_units[i] = offset;
}

static const GoodTree *
some_tree(void)
{
	return &world.trees[below(GOOD_TREES)];
}

/* The id of a tree: good's, the one that good gets next, evil's own, any. */
static uint64_t
some_id(void)
{
	switch (below(4))
	{
		case 0:
			return some_tree()->record.tree + below(4);
		case 1:
			return world.door.service->tables.header->id_high << 32 |
			       (world.door.service->tables.header->id_next + below(3));
		case 2:
			return world.evil_count > 0 ? world.evil_trees[below(world.evil_count)] : 0;
		default:
			return some_tree()->record.tree;
	}
}

/* An offset in NODES. */
static uint64_t
some_offset(void)
{
	const GoodTree *tree = some_tree();

	switch (below(6))
	{
		case 0:
			return tree->count > 0
			           ? tree->extents[below(tree->count)].offset + 8 * below(EXTENT_MIN_BYTES / 8)
			           : 0;
		case 1:
			return tree->count > 0 ? tree->extents[0].offset + DIRECTORY_ROOT_OFFSET : 0;
		case 2:
			return (uint64_t) world.good_channel * FABRIC_REDO_BYTES + 8 * below(64);
		case 3:
			return world.evil_count > 0 ? world.evil_units[below(world.evil_count)] + 8 * below(8192) : 0;
		case 4:
			return world.door.service->server->memory.header->region_bytes - 8 * below(4);
		default:
			return 8 * below(NODE_BYTES / 8);
	}
}

static uint64_t
some_word(void)
{
	switch (below(9))
	{
		case 0:
			return 0;
		case 1:
			return below(65536);
		case 2:
			return some_id();
		case 3:
			return pointer_make((uint32_t) below(2), some_offset());
		case 4:
			return some_offset();
		case 5:
			return world.good_epoch + below(3);
		case 6:
			return below(2) == 0 ? GOOD_CLUSTER : some_tree()->token;
		case 7:
			return UINT64_MAX - below(3);
		default:
			return draw();
	}
}

/* Whatever comes back, there is nothing of good's in it. */
static void
evil_look(const void *reply, uint32_t bytes)
{
	const uint64_t secret = SECRET;

	HOLDS(memmem(reply, bytes, &secret, 6) == NULL, "evil was sent good's bytes");
}

static void
evil_call(DoorClient *client, uint16_t method, const void *request, size_t bytes)
{
	static uint8_t reply[CHAIN_MAX_BYTES + 64];
	uint32_t reply_bytes = 0;
	uint64_t tree = 0;
	FabricStatus status =
		door_call(&world.door, client, EVIL_ROUNDS, method, request, bytes, reply, &reply_bytes);

	evil_look(reply, reply_bytes);
	if (status != FABRIC_OK)
		return;
	if (bytes >= sizeof(tree))
		memcpy(&tree, request, sizeof(tree));
	if (method == DIRECTORY_CREATE)
	{
		DirectoryCreated created;

		memcpy(&created, reply, sizeof(created));
		evil_note(created.record.tree, created.extent.offset);
	}
	else if (method == DIRECTORY_EXTENT)
	{
		DirectoryExtent extent;

		memcpy(&extent, reply, sizeof(extent));
		evil_note(tree, extent.offset);
	}
	else if (method == DIRECTORY_REPLICA)
	{
		DirectoryReplica copy;

		memcpy(&copy, reply, sizeof(copy));
		evil_note(tree, copy.copy);
	}
}

/* A call as it is meant, of what is somebody else's. */
static void
evil_plain_call(DoorClient *client)
{
	uint64_t tree = some_id();

	switch (below(10))
	{
		case 0:
			evil_call(client, DIRECTORY_DROP, &tree, sizeof(tree));
			break;
		case 1:
			evil_call(client, DIRECTORY_READ, &tree, sizeof(tree));
			break;
		case 2:
			evil_call(client, DIRECTORY_LIST, &(DirectoryPosition){(uint32_t) below(8), (uint32_t) below(2)},
			          sizeof(DirectoryPosition));
			break;
		case 3:
			evil_call(client, DIRECTORY_EXTENT,
			          &(DirectoryExtentRequest){.tree = tree,
			                                    .extents = (uint32_t) below(3),
			                                    .share = below(4) > 0,
			                                    .home = 1,
			                                    .home_member = 1},
			          sizeof(DirectoryExtentRequest));
			break;
		case 4:
			evil_call(client, DIRECTORY_REPLICA,
			          &(DirectoryReplicaRequest){.tree = tree,
			                                     .offset = FABRIC_UNIT_BYTES * below(3),
			                                     .bytes = EXTENT_MIN_BYTES,
			                                     .record = {.tree = tree}},
			          sizeof(DirectoryReplicaRequest));
			break;
		case 5:
			evil_call(client, DIRECTORY_REPLICAS,
			          &(DirectoryReplicasRequest){tree, below(2) == 0 ? 0 : some_word()},
			          sizeof(DirectoryReplicasRequest));
			break;
		case 6:
			evil_call(client, DIRECTORY_CREATE,
			          &(DirectoryCreate){.token = {some_tree()->token, below(2) == 0 ? 0 : SECRET},
			                             .record = {.format = narrow, .tree = tree}},
			          sizeof(DirectoryCreate));
			break;
		case 7:
			evil_call(client, below(2) == 0 ? DIRECTORY_EPOCH_OPEN : DIRECTORY_EPOCH_CLOSE,
			          &(DirectoryEpoch){world.good_epoch + below(3)}, sizeof(DirectoryEpoch));
			break;
		case 8:
			evil_call(client, DIRECTORY_GIVE,
			          &(DirectoryGive){.tree = tree,
			                           .offset = some_offset() / FABRIC_UNIT_BYTES * FABRIC_UNIT_BYTES,
			                           .number = below(4),
			                           .newer = some_offset() / FABRIC_UNIT_BYTES * FABRIC_UNIT_BYTES},
			          sizeof(DirectoryGive));
			break;
		default:
			evil_call(
				client, DIRECTORY_UPDATE,
				&(TreeRecord){.tree = tree, .flags = (uint32_t) draw(), .nonce = 1, .mutated_epoch = 99},
				sizeof(TreeRecord));
			break;
	}
}

/* Any words, of a call's length or another one. */
static void
evil_random_call(DoorClient *client)
{
	static const size_t lengths[] = {0,
	                                 8,
	                                 sizeof(DirectoryCreate),
	                                 sizeof(TreeRecord),
	                                 sizeof(DirectoryExtentRequest),
	                                 sizeof(DirectoryReplicaRequest),
	                                 sizeof(DirectoryReplicasRequest),
	                                 sizeof(DirectoryGive),
	                                 sizeof(DirectoryDescent)};
	uint64_t words[FABRIC_MAX_CALL_BYTES / 8];
	size_t bytes = lengths[below(sizeof(lengths) / sizeof(lengths[0]))];

	for (size_t i = 0; i < bytes / 8; i++)
		words[i] = some_word();
	evil_call(client, (uint16_t) below(DIRECTORY_METHODS + 1), words, bytes);
}

/* Writes a node of its own under good's id, whose child is a node of good's, and has it descended through. */
static void
evil_descend(DoorClient *client)
{
	NodeGeometry g = node_geometry(&narrow);
	const GoodTree *tree = some_tree();
	DirectoryDescent request = descent(tree->record.tree, 0);

	if (tree->token == 0)
		return;
	request.pointer = pointer_make(0, tree->extents[0].offset + DIRECTORY_FIRST_BUMP);
	if (below(2) == 0 && world.evil_count > 0)
	{
		uint64_t node[INNER_BYTES / 8];
		uint64_t offset = world.evil_units[below(world.evil_count)] + DIRECTORY_FIRST_BUMP;
		FabricOp op = {.opcode = FABRIC_WRITE, .length = INNER_BYTES, .offset = offset, .buffer = node};

		request.pointer = pointer_make(0, offset);
		memset(node, 0, sizeof(node));
		node_begin(&g, node, tree->record.tree, request.pointer, 1, 3, 0);
		node_set_fence(&g, node, false, NULL);
		node_set_fence(&g, node, true, NULL);
		node[inner_cell_word(&g, 0)] = tree->record.root;
		memcpy(node + inner_cell_word(&g, 0) + 1, node + g.low_word, g.cell_bytes);
		node[HEADER_STATE] = node_state_word(node[HEADER_GENERATION], 1, 1, 0);
		node_seal(&g, node);
		(void) run_chain(client, EVIL_ROUNDS, &op, 1);
	}
	evil_call(client, DIRECTORY_EXTENT,
	          &(DirectoryExtentRequest){.tree = tree->record.tree, .share = 1, .home = 1, .home_member = 1},
	          sizeof(DirectoryExtentRequest));
	evil_call(client, DIRECTORY_DESCEND, &request, sizeof(request));
}

static void
evil_chain(DoorClient *client)
{
	static uint64_t buffers[4][FABRIC_STRIPE_BYTES / 8];
	static const uint8_t opcodes[] = {FABRIC_READ, FABRIC_READ, FABRIC_WRITE, FABRIC_COMPARE_SWAP,
	                                  FABRIC_FETCH_ADD};
	FabricOp ops[4];
	int count = 1 + (int) below(4);

	for (int i = 0; i < count; i++)
	{
		ops[i] = (FabricOp){.opcode = opcodes[below(sizeof(opcodes))],
		                    .region = below(5) == 0 ? FABRIC_LOCKS : FABRIC_NODES,
		                    .length = 8,
		                    .compare = below(2) == 0 ? SECRET : 0,
		                    .operand = below(65536),
		                    .buffer = buffers[i]};
		ops[i].offset = ops[i].region == FABRIC_LOCKS ? 8 * below(below(2) == 0 ? 4 : MEMORY_LOCK_WORDS + 2)
		                                              : some_offset();
		if ((ops[i].opcode == FABRIC_READ || ops[i].opcode == FABRIC_WRITE) && below(2) == 0)
			ops[i].length = 64 << below(7);
		memset(buffers[i], 0xe1, sizeof(buffers[i]));
	}
	if (run_chain(client, EVIL_ROUNDS, ops, count) != FABRIC_OK)
		return;
	for (int i = 0; i < count; i++)
	{
		evil_look(buffers[i], ops[i].length);
		HOLDS(ops[i].opcode == FABRIC_READ || ops[i].opcode == FABRIC_WRITE || ops[i].result != SECRET,
		      "evil swapped good's words");
	}
}

/* Dies in the middle of a rewrite of good's node, with an image of it in its redo slot. */
static void
evil_dies(void)
{
	static uint64_t image[NODE_MAX_BYTES / 8];
	NodeGeometry g = node_geometry(&narrow);
	const GoodTree *tree = some_tree();
	uint64_t root = tree->record.root;
	FabricDeadChannel dead = {.cluster = {EVIL_CLUSTER, EVIL_CLUSTER},
	                          .tenant = world.door.tenants[EVIL],
	                          .channel = world.good_channel + 1,
	                          .write_offset = pointer_offset(root),
	                          .write_bytes = g.leaf_bytes};
	RedoHeader header = {.target = root, .bytes = g.leaf_bytes, .generation = 4};
	uint8_t *slot;

	if (tree->token == 0)
		return;
	dead.redo_offset = (uint64_t) dead.channel * FABRIC_REDO_BYTES;
	if (below(2) == 0)
		dead.cluster[0] = dead.cluster[1] = GOOD_CLUSTER;
	node_begin(&g, image, tree->record.tree, root, 0, 4, 0);
	node_set_fence(&g, image, false, NULL);
	node_set_fence(&g, image, true, NULL);
	node_seal(&g, image);
	header.sum = redo_sum(&header, image);
	slot = node_memory(dead.redo_offset, FABRIC_REDO_BYTES);
	memcpy(slot, &header, sizeof(header));
	memcpy(slot + FABRIC_STRIPE_BYTES, image, g.leaf_bytes);
	service_recover(world.door.service, &dead);
	memset(slot, 0, FABRIC_REDO_BYTES);
}

/* HELLO with what it is, or with anything. */
static void
evil_connect(DoorClient *client)
{
	const MemoryHeader *header = world.door.service->server->memory.header;
	uint64_t cluster = below(3) == 0 ? some_word() : below(3) == 0 ? GOOD_CLUSTER : EVIL_CLUSTER;
	FrameHello hello = {.cluster = {cluster, cluster},
	                    .incarnation = below(3) == 0 ? (uint32_t) below(4) : world.evil_incarnation,
	                    .old_channel = CONTROL_NO_CHANNEL,
	                    .old_node_uuid = {header->node_uuid[0], header->node_uuid[1]}};
	uint32_t incarnation;

	if (below(2) == 0)
	{
		hello.old_channel = below(2) == 0 ? world.good_channel : (uint32_t) below(header->max_channels + 2);
		hello.old_serial = below(2) == 0 ? world.good_serial : below(100);
	}
	if (below(4) == 0)
		hello.incarnation = world.good_incarnation;
	door_disconnect(client);
	door_connect(&world.door, EVIL, client);
	if (door_hello(&world.door, client, &hello, NULL, NULL) != FABRIC_OK)
		return;
	if (below(4) == 0 && door_attach(&world.door, client, draw(), &incarnation) == FABRIC_OK &&
	    cluster == EVIL_CLUSTER)
		world.evil_incarnation = incarnation;
}

static void
evil_garbage(DoorClient *client)
{
	uint64_t bytes[16];

	for (uint32_t i = 0; i < 16; i++)
		bytes[i] = below(2) == 0 ? some_word() : 0;
	door_send_bytes(client, bytes, below(sizeof(bytes) + 1));
	door_step(&world.door);
}

static void
evil_step(void)
{
	DoorClient *client = &world.evil[below(EVIL_CLIENTS)];

	/* The neighbor makes calls. */
	if (below(8) == 0)
	{
		client = &world.evil[EVIL_CLIENTS];
		(below(2) == 0 ? evil_plain_call : evil_random_call)(client);
		return;
	}
	if (client->descriptor < 0 || below(16) == 0)
		evil_connect(client);
	else if (below(20) == 0)
		evil_garbage(client);
	else if (below(20) == 0)
		evil_call(client, CONTROL_RESET, NULL, 0);
	else if (below(16) == 0)
		evil_dies();
	else if (below(4) == 0)
		evil_chain(client);
	else if (below(4) == 0)
		evil_descend(client);
	else
		(below(3) == 0 ? evil_random_call : evil_plain_call)(client);
}

/* ---- runs ---- */

/* All attach and connect. */
static void
everybody_comes(void)
{
	world.good_incarnation = attach(GOOD, GOOD_CLUSTER);
	world.neighbor_incarnation = attach(GOOD, NEIGHBOR_CLUSTER);
	world.evil_incarnation = attach(EVIL, EVIL_CLUSTER);
	good_connect();
	for (uint32_t i = 0; i < EVIL_CLIENTS; i++)
		HOLDS(introduce(&world.evil[i], EVIL, EVIL_CLUSTER, world.evil_incarnation, NULL, NULL) == FABRIC_OK,
		      "evil's HELLO");
	HOLDS(introduce(&world.evil[EVIL_CLIENTS], GOOD, NEIGHBOR_CLUSTER, world.neighbor_incarnation, NULL,
	                NULL) == FABRIC_OK,
	      "the neighbor's HELLO");
}

static void
everybody_goes(void)
{
	door_disconnect(&world.good);
	for (uint32_t i = 0; i <= EVIL_CLIENTS; i++)
		door_disconnect(&world.evil[i]);
	for (int i = 0; i < 3; i++)
		door_step(&world.door);
}

/* Drops what all but good have, and then good's: each unit is somebody's. */
static void
everything_goes(void)
{
	ServiceTables *tables = &world.door.service->tables;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < TREES; i++)
	{
		if (tables->slots[i].tree != 0 && tables->records[i].record.cluster[0] != GOOD_CLUSTER)
			(void) tables_remove(tables, &tables->records[i], 0);
	}
	door_end_quarantine(&world.door);
	for (uint32_t i = 0; i < GOOD_TREES; i++)
		bytes += world.trees[i].record.bytes;
	HOLDS(tables->used * FABRIC_UNIT_BYTES == bytes, "%llu units are used, and good has %llu bytes",
	      (unsigned long long) tables->used, (unsigned long long) bytes);
	check_good();
	for (uint32_t i = 0; i < GOOD_TREES; i++)
	{
		if (world.trees[i].record.tree != 0)
			good_drop(&world.trees[i]);
	}
	door_end_quarantine(&world.door);
	HOLDS(tables->used == 0 && tables->trees == 0, "something is left");
}

static void
run(uint64_t seed, uint32_t steps)
{
	bool reopened = seed % REOPENED == 1;

	world.seed = world.random = seed;
	world.evil_count = 0;
	memset(world.trees, 0, sizeof(world.trees));
	everybody_comes();
	for (world.step = 0; world.step < steps; world.step++)
	{
		(below(3) == 0 ? good_step : evil_step)();
		if (below(16) == 0)
			door_end_quarantine(&world.door);
		if (world.step % 16 == 15)
			check_good();
		if (reopened && world.step == steps / 2)
		{
			everybody_goes();
			door_reopen(&world.door);
			everybody_comes();
			check_good();
		}
	}
	check_good();
	everything_goes();
	everybody_goes();
}

int
main(int argc, char **argv)
{
	uint64_t seed = (uint64_t) time(NULL) * 1000;
	uint32_t runs = RUNS, steps = STEPS;

	for (int i = 1; i + 1 < argc; i += 2)
	{
		uint64_t value = argument_number(argv[i + 1]);

		if (strcmp(argv[i], "--seed") == 0)
			seed = value;
		else if (strcmp(argv[i], "--runs") == 0)
			runs = (uint32_t) value;
		else if (strcmp(argv[i], "--steps") == 0)
			steps = (uint32_t) value;
		else
			REQUIRE(false, "unknown: %s", argv[i]);
	}
	printf("seeds %llu to %llu\n", (unsigned long long) seed, (unsigned long long) (seed + runs - 1));
	world.good.descriptor = -1;
	for (uint32_t i = 0; i <= EVIL_CLIENTS; i++)
		world.evil[i].descriptor = -1;
	door_open(&world.door, NODE_BYTES, TREES, names, quotas);
	for (uint32_t i = 0; i < runs; i++)
		run(seed + i, steps);
	door_close(&world.door);
	printf("%u runs\n", runs);
	return 0;
}

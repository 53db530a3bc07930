/*
 * fuzz_calls.c
 *		The calls of a memory node's service, from several clients with any requests, in any order.
 *
 * The input is a byte, 1 if the memory node is to be opened anew at the end, and a list of calls: a byte for the client,
 * one for the method, one that says what is put into the request, and the request's bytes.  What comes back is held
 * against what was granted before: no unit belongs to two trees, nobody sees a tree of another cluster or tenant, and who
 * has not attached changes nothing.
 */
#include <string.h>
#include <unistd.h>

#include "tree/client/directory.h"
#include "fuzz.h"
#include "node.h"

#define NODE_BYTES (4u << 20)
#define UNITS (NODE_BYTES / FABRIC_UNIT_BYTES + 1)
#define CLIENTS 3u
#define MAX_CALLS 64
#define MAX_TREES 64u

/* What a byte of the input asks to be put into the request. */
#define PUT_TREE 0x01u   /* in place of its first word: the tree that the byte behind says */
#define OTHER_SIZE 0x02u /* its length is the byte behind, instead of the method's */
#define ONLOOKER 0x04u   /* the client has not attached */

typedef struct KnownTree
{
	uint64_t tree;
	unsigned client;
	bool gone;
} KnownTree;

/* What the clients were told. */
typedef struct Model
{
	KnownTree trees[MAX_TREES];
	uint32_t count;
	uint64_t owner[UNITS];  /* by unit, the tree that was told to have it */
	uint64_t extent[UNITS]; /* and the extent: the offset that it begins at */
	uint64_t first;
	uint64_t end;
} Model;

/* The client's tree of that id: others may have one of the same. */
static KnownTree *
model_find(Model *model, uint64_t tree, unsigned client)
{
	for (uint32_t i = 0; i < model->count; i++)
	{
		if (model->trees[i].tree == tree && model->trees[i].client == client)
			return &model->trees[i];
	}
	return NULL;
}

/* What the model calls the owner of a unit: never 0. */
static uint64_t
model_owner(Model *model, uint64_t tree, unsigned client)
{
	const KnownTree *known = model_find(model, tree, client);

	return known == NULL ? UINT64_MAX : (uint64_t) (known - model->trees) + 1;
}

static void
model_add(Model *model, uint64_t tree, unsigned client)
{
	KnownTree *known = model_find(model, tree, client);

	fuzz_require(tree != 0);
	/* The id of a share is its client's word: one that was dropped may be made again. */
	if (known != NULL)
		known->gone = false;
	if (known == NULL && model->count < MAX_TREES)
		model->trees[model->count++] = (KnownTree){tree, client, false};
}

static void
model_extent(Model *model, uint64_t tree, unsigned client, const DirectoryExtent *extent)
{
	uint64_t name = model_owner(model, tree, client);

	fuzz_require(extent->offset % FABRIC_UNIT_BYTES == 0 && extent->bytes % FABRIC_UNIT_BYTES == 0);
	fuzz_require(extent->bytes > 0 && extent->offset >= model->first && extent->offset < model->end);
	fuzz_require(extent->bytes <= model->end - extent->offset && extent->extents > 0);
	for (uint64_t at = extent->offset; at < extent->offset + extent->bytes; at += FABRIC_UNIT_BYTES)
	{
		uint64_t *owner = &model->owner[(at - model->first) / FABRIC_UNIT_BYTES];

		fuzz_require(*owner == 0 || *owner == name);
		*owner = name;
		model->extent[(at - model->first) / FABRIC_UNIT_BYTES] = extent->offset;
	}
}

/* The extent, if the model knows it, was the tree's. */
static void
model_give(Model *model, const DirectoryGive *give, unsigned client)
{
	uint64_t name = model_owner(model, give->tree, client);

	for (uint32_t i = 0; i < UNITS; i++)
	{
		if (model->owner[i] == 0 || model->extent[i] != give->offset)
			continue;
		fuzz_require(model->owner[i] == name);
		model->owner[i] = 0;
	}
}

static void
model_drop(Model *model, uint64_t tree, unsigned client)
{
	KnownTree *known = model_find(model, tree, client);
	uint64_t name = model_owner(model, tree, client);

	if (known != NULL)
		known->gone = true;
	for (uint32_t i = 0; i < UNITS; i++)
	{
		if (model->owner[i] == name)
			model->owner[i] = 0;
	}
}

/* Nobody reaches a tree that it does not have: made by a call that the model has seen, if it has seen all. */
static void
check_reached(Model *model, uint64_t tree, unsigned client)
{
	const KnownTree *known = model_find(model, tree, client);

	fuzz_require(known == NULL ? model->count == MAX_TREES : !known->gone);
}

static void
check_reply(Model *model, unsigned client, uint32_t method, const void *request, const void *reply)
{
	const DirectoryCreated *created = reply;
	const DirectoryExtent *extent = reply;
	const DirectoryListed *listed = reply;
	const DirectoryGive *give = request;
	uint64_t tree = 0;

	memcpy(&tree, request, sizeof(tree));
	switch ((DirectoryMethod) method)
	{
		case DIRECTORY_CREATE:
			model_add(model, created->record.tree, client);
			check_reached(model, created->record.tree, client);
			model_extent(model, created->record.tree, client, &created->extent);
			break;
		case DIRECTORY_DROP:
			check_reached(model, tree, client);
			model_drop(model, tree, client);
			break;
		case DIRECTORY_READ:
		case DIRECTORY_UPDATE:
		case DIRECTORY_DESCEND:
			check_reached(model, tree, client);
			break;
		case DIRECTORY_LIST:
			check_reached(model, listed->record.tree, client);
			break;
		case DIRECTORY_EXTENT:
			model_add(model, tree, client);
			check_reached(model, tree, client);
			model_extent(model, tree, client, extent);
			break;
		case DIRECTORY_GIVE:
			check_reached(model, tree, client);
			model_give(model, give, client);
			break;
		default:
			break;
	}
}

/* A call as the server makes it: one that waits for memory to leave its quarantine is made again. */
static FabricStatus
make_call(Service *service, const FabricPeer *peer, uint16_t method, const void *request, uint32_t bytes,
          void *reply, uint32_t *reply_bytes)
{
	FabricStatus status = FABRIC_BUSY;

	*peer->progress = 0;
	for (int round = 0; status == FABRIC_BUSY; round++)
	{
		fuzz_require(round < 1000);
		status = service_call(service, peer, method, request, bytes, reply, reply_bytes);
		tables_quarantine_end(&service->tables, UINT64_MAX >> 1, service_release_units, service);
	}
	return status;
}

static uint32_t
request_bytes(uint32_t method)
{
	switch (method)
	{
		case DIRECTORY_CREATE:
			return sizeof(DirectoryCreate);
		case DIRECTORY_UPDATE:
			return sizeof(TreeRecord);
		case DIRECTORY_EXTENT:
			return sizeof(DirectoryExtentRequest);
		case DIRECTORY_DESCEND:
			return sizeof(DirectoryDescent);
		case DIRECTORY_GIVE:
			return sizeof(DirectoryGive);
		case DIRECTORY_STATUS:
			return 0;
		default:
			return 8;
	}
}

/* Two of the clients are of one cluster by its name, and of two tenants. */
static FabricPeer
peer_of(unsigned client)
{
	static uint64_t progress;

	return (FabricPeer){.cluster = {client / 2 + 1, 1},
	                    .instance = client + 1,
	                    .incarnation = 1,
	                    .channel = UINT32_MAX,
	                    .tenant = client,
	                    .progress = &progress};
}

/* Does an onlooker get that? */
static bool
is_harmless(uint16_t method)
{
	return method == DIRECTORY_READ || method == DIRECTORY_LIST || method == DIRECTORY_STATUS;
}

static void
one_call(Service *service, Model *model, FuzzInput *input)
{
	static uint64_t request[FABRIC_MAX_CALL_BYTES / 8];
	static uint64_t reply[FABRIC_MAX_CALL_BYTES / 8];
	unsigned client = fuzz_byte(input) % CLIENTS;
	uint16_t method = fuzz_byte(input);
	uint8_t puts = fuzz_byte(input);
	uint32_t which = (puts & PUT_TREE) != 0 ? fuzz_byte(input) : 0;
	uint32_t bytes = (puts & OTHER_SIZE) != 0 ? fuzz_byte(input) : request_bytes(method);
	uint32_t reply_bytes = FABRIC_MAX_CALL_BYTES;
	FabricPeer peer = peer_of(client);
	const uint8_t *data;
	FabricStatus status;
	size_t count;

	memset(request, 0, sizeof(request));
	data = fuzz_bytes(input, bytes, &count);
	if (count > 0)
		memcpy(request, data, count);
	if ((puts & PUT_TREE) != 0 && model->count > 0)
		request[0] = model->trees[which % model->count].tree;
	if ((puts & ONLOOKER) != 0)
		peer.incarnation = 0;
	status = make_call(service, &peer, method, request, bytes, reply, &reply_bytes);
	fuzz_require(status != FABRIC_OK || (puts & ONLOOKER) == 0 || is_harmless(method));
	fuzz_require(status <= FABRIC_TOO_MANY);
	fuzz_require(reply_bytes <= FABRIC_MAX_CALL_BYTES && (status == FABRIC_OK || reply_bytes == 0));
	if (status == FABRIC_OK)
		check_reply(model, client, method, request, reply);
}

/* Drops all that the clients have: then nothing is used. The service is as it was at first. */
static void
drop_all(Service *service)
{
	ServiceHeader *header = service->tables.header;

	for (unsigned client = 0; client < CLIENTS; client++)
	{
		FabricPeer peer = peer_of(client);
		DirectoryPosition position = {0, 0};
		DirectoryListed listed;
		uint32_t bytes;

		for (; position.shares < 2; position.shares++)
		{
			while (make_call(service, &peer, DIRECTORY_LIST, &position, sizeof(position), &listed, &bytes) ==
			       FABRIC_OK)
				fuzz_require(make_call(service, &peer, DIRECTORY_DROP, &listed.record.tree, 8, &listed,
				                       &bytes) == FABRIC_OK);
		}
	}
	for (int i = 0; i < 1000 && service->tables.quarantined > 0; i++)
		tables_quarantine_end(&service->tables, UINT64_MAX >> 1, service_release_units, service);
	fuzz_require(service->tables.used == 0 && service->tables.quarantined == 0 && service->tables.trees == 0);
	memset(header->epochs, 0, sizeof(header->epochs));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static Service *service;
	static Model model;
	FuzzInput input = {data, size};
	bool reopen = fuzz_byte(&input) % 8 == 1;

	if (service == NULL)
		service = fuzz_node_open(NODE_BYTES);
	memset(&model, 0, sizeof(model));
	fabric_server_node_range(service->server, &model.first, &model.end);
	for (int i = 0; i < MAX_CALLS && input.size > 0; i++)
		one_call(service, &model, &input);
	if (reopen)
	{
		FabricMemoryState state;

		/* What it keeps can be opened again. */
		service = fuzz_node_reopen(service, NODE_BYTES, &state);
		fuzz_require(state == FABRIC_MEMORY_CLEAN);
	}
	drop_all(service);
	return 0;
}

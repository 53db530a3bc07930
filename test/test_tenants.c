/*
 * test_tenants.c
 *		What one tenant can take from the others of the memory node's service, and who may change anything: calls
 *		made in this process, with peers as the server would describe them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/fixture.h"
#include "../sim/files.h"
#include "rdma/server/server_state.h"
#include "tree/service/service_state.h"
#include "tree/node/redo.h"

/* The fewest that a service takes. */
#define TREES TABLES_TREES_STEP
#define NODE_BYTES ((TREES + 16) * (uint64_t) FABRIC_UNIT_BYTES)
/* Every one of so many calls is refused. */
#define REFUSED_CALLS 1000

typedef struct Fixture
{
	char directory[128];
	char memory[160];
	char socket[160];
	FabricKeys keys; /* of two tenants */
	Service *service;
	uint32_t warnings;
} Fixture;

static void
take_log(void *argument, FabricLogLevel level, const char *message)
{
	((Fixture *) argument)->warnings += level >= FABRIC_LOG_WARNING;
}

static void
open_service(Fixture *fixture)
{
	char detail[FABRIC_DETAIL_BYTES] = "";
	ServiceOptions options = {
		.memory_path = fixture->memory,
		.socket_path = fixture->socket,
		.node_bytes = NODE_BYTES,
		.max_trees = TREES,
		.keys = &fixture->keys,
		.log = take_log,
		.log_argument = fixture,
	};

	if (service_open(&options, &fixture->service, detail) != FABRIC_OK)
		fail_msg("%s", detail);
}

static int
open_fixture(void **state)
{
	static Fixture fixture;

	memset(&fixture, 0, sizeof(fixture));
	assert_true(files_make(fixture.directory, sizeof(fixture.directory), "sherman-tenants"));
	snprintf(fixture.memory, sizeof(fixture.memory), "%s/memory", fixture.directory);
	snprintf(fixture.socket, sizeof(fixture.socket), "%s/socket", fixture.directory);
	fixture.keys.count = 2;
	strcpy(fixture.keys.keys[0].tenant, "first");
	strcpy(fixture.keys.keys[1].tenant, "second");
	open_service(&fixture);
	*state = &fixture;
	return 0;
}

static int
close_fixture(void **state)
{
	Fixture *fixture = *state;

	service_close(fixture->service, 0, true);
	files_remove(fixture->directory);
	return 0;
}

/* A client of a tenant with a channel, as the server describes it. */
static FabricPeer
make_peer(uint32_t tenant, uint64_t cluster)
{
	static uint64_t progress;

	return (FabricPeer){.cluster = {cluster, tenant},
	                    .instance = 1,
	                    .incarnation = 1,
	                    .channel = 0,
	                    .tenant = tenant,
	                    .progress = &progress};
}

static FabricStatus
call(Fixture *fixture, const FabricPeer *peer, DirectoryMethod method, const void *request, uint32_t bytes,
     void *reply)
{
	uint64_t room[FABRIC_MAX_CALL_BYTES / 8];
	uint32_t reply_bytes = sizeof(room);
	FabricStatus status = FABRIC_BUSY;

	*peer->progress = 0;
	/* One that waits for memory to leave its quarantine: as the server makes it, in rounds. */
	while (status == FABRIC_BUSY)
	{
		bool waits_for_something = fixture->service->tables.quarantined > 0;

		status = service_call(fixture->service, peer, (uint16_t) method, request, bytes,
		                      reply != NULL ? reply : room, &reply_bytes);
		assert_true(status != FABRIC_BUSY || waits_for_something);
		tables_quarantine_end(&fixture->service->tables, service_now_us(), service_release_units,
		                      fixture->service);
	}
	return status;
}

static FabricStatus
open_epoch(Fixture *fixture, const FabricPeer *peer, uint64_t epoch)
{
	DirectoryEpoch request = {.epoch = epoch};

	return call(fixture, peer, DIRECTORY_EPOCH_OPEN, &request, sizeof(request), NULL);
}

static uint64_t
epoch_of(Fixture *fixture, const FabricPeer *peer)
{
	TreeNodeStatus status;

	assert_int_equal(call(fixture, peer, DIRECTORY_STATUS, NULL, 0, &status), FABRIC_OK);
	return status.epoch;
}

/* Makes a tree, or finds the one that was made with the token. */
static FabricStatus
create(Fixture *fixture, const FabricPeer *peer, uint64_t token, DirectoryCreated *created)
{
	DirectoryCreate request = {.token = {token, peer->tenant}, .record = {.format = narrow}};

	return call(fixture, peer, DIRECTORY_CREATE, &request, sizeof(request), created);
}

static FabricStatus
make_share(Fixture *fixture, const FabricPeer *peer, uint64_t tree)
{
	DirectoryExtentRequest request = {.tree = tree, .share = 1, .home = 1, .home_member = 1};

	return call(fixture, peer, DIRECTORY_EXTENT, &request, sizeof(request), NULL);
}

/* Who is no more than an onlooker sees the peer's trees and epochs, and changes nothing. */
static void
expect_looking_only(Fixture *fixture, FabricPeer onlooker)
{
	FabricPeer peer = make_peer(1, 1);
	DirectoryCreated created, again;
	DirectoryTree tree;
	DirectoryEpoch epoch = {.epoch = 5};
	DirectoryExtentRequest extent = {.extents = 1};
	DirectoryReplicaRequest copy = {.bytes = FABRIC_UNIT_BYTES};
	DirectoryGive give = {.number = 1};
	DirectoryPosition position = {0};
	TreeRecord record;

	assert_int_equal(create(fixture, &onlooker, 1, &created), FABRIC_DENIED);
	assert_int_equal(open_epoch(fixture, &onlooker, 5), FABRIC_DENIED);
	assert_int_equal(create(fixture, &peer, 1, &created), FABRIC_OK);
	assert_int_equal(open_epoch(fixture, &peer, 5), FABRIC_OK);

	record = created.record;
	record.flags = TREE_RECORD_BROKEN;
	tree.tree = extent.tree = copy.tree = give.tree = record.tree;
	assert_int_equal(call(fixture, &onlooker, DIRECTORY_UPDATE, &record, sizeof(record), NULL),
	                 FABRIC_DENIED);
	assert_int_equal(call(fixture, &onlooker, DIRECTORY_EXTENT, &extent, sizeof(extent), NULL),
	                 FABRIC_DENIED);
	assert_int_equal(make_share(fixture, &onlooker, 77), FABRIC_DENIED);
	assert_int_equal(call(fixture, &onlooker, DIRECTORY_REPLICA, &copy, sizeof(copy), NULL), FABRIC_DENIED);
	assert_int_equal(call(fixture, &onlooker, DIRECTORY_GIVE, &give, sizeof(give), NULL), FABRIC_DENIED);
	assert_int_equal(call(fixture, &onlooker, DIRECTORY_DROP, &tree, sizeof(tree), NULL), FABRIC_DENIED);
	assert_int_equal(call(fixture, &onlooker, DIRECTORY_EPOCH_CLOSE, &epoch, sizeof(epoch), NULL),
	                 FABRIC_DENIED);
	assert_int_equal(fixture->service->tables.trees, 1);
	assert_false(tables_epoch(&fixture->service->tables, &(TablesOwner){{1, 1}, 1})->clean);

	assert_int_equal(epoch_of(fixture, &onlooker), 5);
	assert_int_equal(call(fixture, &onlooker, DIRECTORY_LIST, &position, sizeof(position), NULL), FABRIC_OK);
	assert_int_equal(call(fixture, &onlooker, DIRECTORY_READ, &tree, sizeof(tree), &record), FABRIC_OK);
	assert_memory_equal(&record, &created.record, sizeof(record));
	assert_int_equal(create(fixture, &peer, 1, &again), FABRIC_OK);
	assert_memory_equal(&created, &again, sizeof(created));
}

/* Who has not shown an incarnation that is the current one of its cluster looks, and changes nothing. */
static void
test_looking_only(void **state)
{
	FabricPeer onlooker = make_peer(1, 1);

	onlooker.incarnation = 0;
	expect_looking_only(*state, onlooker);
}

static void
test_looking_before_attach(void **state)
{
	FabricPeer onlooker = make_peer(1, 1);

	onlooker.incarnation = onlooker.instance = 0;
	expect_looking_only(*state, onlooker);
}

/* A reader has a channel of the current incarnation, and looks as well. */
static void
test_looking_readers(void **state)
{
	FabricPeer reader = make_peer(1, 1);

	reader.reader = true;
	expect_looking_only(*state, reader);
}

/* A tenant's clusters have its own places for epochs, as many as can attach. */
static void
test_epochs(void **state)
{
	Fixture *fixture = *state;
	FabricPeer other = make_peer(2, 1);
	FabricPeer local = make_peer(0, 1);
	FabricPeer one_more = make_peer(1, TABLES_EPOCHS + 1);

	for (uint64_t cluster = 1; cluster <= TABLES_EPOCHS; cluster++)
	{
		FabricPeer peer = make_peer(1, cluster);

		assert_int_equal(open_epoch(fixture, &peer, cluster), FABRIC_OK);
	}
	assert_int_equal(open_epoch(fixture, &one_more, 1), FABRIC_NO_MEMORY);
	assert_int_equal(open_epoch(fixture, &other, 1001), FABRIC_OK);
	assert_int_equal(open_epoch(fixture, &local, 1002), FABRIC_OK);

	/* They are there after a restart. */
	service_close(fixture->service, 0, false);
	open_service(fixture);
	assert_int_equal(service_memory_state(fixture->service), FABRIC_MEMORY_CLEAN);
	for (uint64_t cluster = 1; cluster <= TABLES_EPOCHS; cluster++)
	{
		FabricPeer peer = make_peer(1, cluster);

		assert_int_equal(epoch_of(fixture, &peer), cluster);
	}
	assert_int_equal(epoch_of(fixture, &other), 1001);
	assert_int_equal(epoch_of(fixture, &local), 1002);
}

/* Makes trees until the service refuses; returns how many. */
static uint32_t
create_all(Fixture *fixture, const FabricPeer *peer, FabricStatus refusal)
{
	DirectoryCreated created;
	FabricStatus status = FABRIC_OK;
	uint32_t count = 0;

	while (status == FABRIC_OK)
	{
		assert_true(count <= TREES);
		status = create(fixture, peer, ++count, &created);
	}
	assert_int_equal(status, refusal);
	return count - 1;
}

/* A quarter is left for the other one of two tenants, whatever the first does. */
static void
test_trees(void **state)
{
	Fixture *fixture = *state;
	FabricPeer first = make_peer(1, 1);
	FabricPeer second = make_peer(2, 1);
	FabricPeer local = make_peer(0, 1);
	DirectoryCreated created;
	DirectoryTree tree;

	assert_int_equal(create_all(fixture, &first, FABRIC_TOO_MANY), TREES - TREES / 4);
	assert_int_equal(make_share(fixture, &first, 77), FABRIC_TOO_MANY);
	/* What it has it has. */
	assert_int_equal(create(fixture, &first, 1, &created), FABRIC_OK);
	tree.tree = created.record.tree;
	assert_int_equal(make_share(fixture, &second, 77), FABRIC_OK);
	assert_int_equal(create_all(fixture, &second, FABRIC_TOO_MANY), TREES / 4 - 1);
	assert_int_equal(make_share(fixture, &second, 78), FABRIC_TOO_MANY);
	assert_int_equal(create(fixture, &local, 1, &created), FABRIC_TOO_MANY);

	/* A place that is given up is for anybody, as each has its part. */
	assert_int_equal(call(fixture, &first, DIRECTORY_DROP, &tree, sizeof(tree), NULL), FABRIC_OK);
	assert_int_equal(create(fixture, &second, 1000, &created), FABRIC_OK);
	assert_int_equal(create(fixture, &first, 1000, &created), FABRIC_TOO_MANY);
}

/* A tree of another cluster, or of another tenant's cluster of the same name, is none to whoever wants it searched. */
static void
test_descents(void **state)
{
	Fixture *fixture = *state;
	FabricPeer peer = make_peer(1, 1);
	FabricPeer neighbor = make_peer(1, 2);
	FabricPeer stranger = make_peer(2, 1);
	FabricPeer onlooker = peer;
	DirectoryCreated created;
	DirectoryDescent request = {.level = 1, .flags = DESCENT_LOSSLESS, .cell_bytes = 16, .norm_bytes = 8};

	assert_int_equal(create(fixture, &peer, 1, &created), FABRIC_OK);
	request.tree = created.record.tree;
	request.pointer = created.record.root;
	memcpy(stranger.cluster, peer.cluster, sizeof(stranger.cluster));
	onlooker.incarnation = 0;
	assert_int_equal(call(fixture, &peer, DIRECTORY_DESCEND, &request, sizeof(request), NULL), FABRIC_OK);
	assert_int_equal(call(fixture, &neighbor, DIRECTORY_DESCEND, &request, sizeof(request), NULL),
	                 FABRIC_NOT_FOUND);
	assert_int_equal(call(fixture, &stranger, DIRECTORY_DESCEND, &request, sizeof(request), NULL),
	                 FABRIC_NOT_FOUND);
	assert_int_equal(call(fixture, &onlooker, DIRECTORY_DESCEND, &request, sizeof(request), NULL),
	                 FABRIC_DENIED);
}

/* A unit's bytes, which no client can have written. */
static uint8_t *
unit_at(Fixture *fixture, uint64_t offset)
{
	return fabric_server_node(fixture->service->server, offset, FABRIC_UNIT_BYTES);
}

/* Writes an empty root leaf, as the tree's client does. */
static void
write_root(Fixture *fixture, const DirectoryCreated *created)
{
	NodeGeometry g = node_geometry(&narrow);
	uint64_t *root =
		fabric_server_node(fixture->service->server, pointer_offset(created->record.root), g.leaf_bytes);

	node_begin(&g, root, created->record.tree, created->record.root, 0, created->extent.generation,
	           NODE_ROOT);
	node_set_fence(&g, root, false, NULL);
	node_set_fence(&g, root, true, NULL);
	node_seal(&g, root);
}

/* Writes an inner node above the leaf, with no other child. */
static uint64_t
write_inner(Fixture *fixture, uint64_t tree, uint64_t offset, uint64_t child)
{
	NodeGeometry g = node_geometry(&narrow);
	uint64_t pointer = pointer_make(0, offset);
	uint64_t *node = fabric_server_node(fixture->service->server, offset, INNER_BYTES);

	node_begin(&g, node, tree, pointer, 1, 7, 0);
	node_set_fence(&g, node, false, NULL);
	node_set_fence(&g, node, true, NULL);
	node[inner_cell_word(&g, 0)] = child;
	memcpy(node + inner_cell_word(&g, 0) + 1, node + g.low_word, g.cell_bytes);
	node[HEADER_STATE] = node_state_word(node[HEADER_GENERATION], 1, 1, 0);
	node_seal(&g, node);
	return pointer;
}

/* Asks for a descent from a node of the first level. */
static DirectoryDescended
descend(Fixture *fixture, const FabricPeer *peer, uint64_t tree, uint64_t pointer)
{
	DirectoryDescent request = {.tree = tree,
	                            .pointer = pointer,
	                            .level = 1,
	                            .flags = DESCENT_LOSSLESS | DESCENT_BITS_VALID,
	                            .norm_length = 8,
	                            .cell_bytes = 16,
	                            .norm_bytes = 8};
	DirectoryDescended reply;

	memset(&reply, 0, sizeof(reply));
	assert_int_equal(call(fixture, peer, DIRECTORY_DESCEND, &request, sizeof(request), &reply), FABRIC_OK);
	return reply;
}

/*
 * Another tenant knows which id comes next, or what a tree at another memory node is called, and makes a share under it: nobody notices.
 */
static void
test_same_id(void **state)
{
	Fixture *fixture = *state;
	FabricPeer good = make_peer(1, 1), evil = make_peer(2, 1), neighbor = make_peer(1, 2);
	DirectoryCreated first, created;
	DirectoryTree tree;
	TreeRecord record;
	uint64_t before;
	uint8_t bytes[64];

	assert_int_equal(create(fixture, &good, 1, &first), FABRIC_OK);
	memcpy(evil.cluster, good.cluster, sizeof(evil.cluster));
	for (uint64_t next = 1; next < 4; next++)
		assert_int_equal(make_share(fixture, &evil, first.record.tree + next), FABRIC_OK);
	assert_int_equal(create(fixture, &good, 2, &created), FABRIC_OK);
	tree.tree = created.record.tree;
	/* No id is given that somebody has already. */
	assert_true(tree.tree > first.record.tree + 3);
	assert_int_equal(call(fixture, &good, DIRECTORY_READ, &tree, sizeof(tree), &record), FABRIC_OK);
	assert_memory_equal(&record, &created.record, sizeof(record));

	/* The other way round: evil was first with the id of good's share. */
	assert_int_equal(make_share(fixture, &evil, 77), FABRIC_OK);
	assert_int_equal(make_share(fixture, &neighbor, 77), FABRIC_OK);
	assert_int_equal(make_share(fixture, &good, 77), FABRIC_OK);
	assert_int_equal(make_share(fixture, &evil, created.record.tree), FABRIC_OK);
	memset(unit_at(fixture, created.extent.offset), 0x5a, FABRIC_UNIT_BYTES);
	before = fixture->service->tables.tenants[1].bytes;
	for (int i = 0; i < 2; i++)
	{
		tree.tree = i == 0 ? 77 : created.record.tree;
		assert_int_equal(call(fixture, &evil, DIRECTORY_DROP, &tree, sizeof(tree), NULL), FABRIC_OK);
		assert_int_equal(call(fixture, &evil, DIRECTORY_DROP, &tree, sizeof(tree), NULL), FABRIC_NOT_FOUND);
		assert_int_equal(call(fixture, &good, DIRECTORY_READ, &tree, sizeof(tree), NULL), FABRIC_OK);
	}
	tree.tree = 77;
	assert_int_equal(call(fixture, &neighbor, DIRECTORY_READ, &tree, sizeof(tree), NULL), FABRIC_OK);
	while (fixture->service->tables.quarantined > 0)
		tables_quarantine_end(&fixture->service->tables, service_now_us(), service_release_units,
		                      fixture->service);
	assert_int_equal(fixture->service->tables.tenants[1].bytes, before);
	memset(bytes, 0x5a, sizeof(bytes));
	assert_memory_equal(unit_at(fixture, created.extent.offset), bytes, sizeof(bytes));

	/* It is so after a restart. */
	service_close(fixture->service, 0, false);
	open_service(fixture);
	assert_int_equal(call(fixture, &good, DIRECTORY_READ, &tree, sizeof(tree), NULL), FABRIC_OK);
	assert_int_equal(call(fixture, &neighbor, DIRECTORY_READ, &tree, sizeof(tree), NULL), FABRIC_OK);
	assert_int_equal(call(fixture, &evil, DIRECTORY_READ, &tree, sizeof(tree), NULL), FABRIC_NOT_FOUND);
	assert_memory_equal(unit_at(fixture, created.extent.offset), bytes, sizeof(bytes));
}

/* A descent goes through nodes of the very tree that it was asked of, whatever pointers say. */
static void
test_forged_pointers(void **state)
{
	Fixture *fixture = *state;
	FabricPeer good = make_peer(1, 1), evil = make_peer(2, 1), neighbor = make_peer(1, 2);
	DirectoryCreated created;
	uint64_t tree, root, own, theirs;

	assert_int_equal(create(fixture, &good, 1, &created), FABRIC_OK);
	write_root(fixture, &created);
	tree = created.record.tree;
	root = created.record.root;
	own = write_inner(fixture, tree, created.extent.offset + DIRECTORY_FIRST_BUMP, root);
	assert_int_equal(descend(fixture, &good, tree, own).pointer, root);
	assert_true(descend(fixture, &good, tree, own).bytes > 0);
	for (int i = 0; i < 2; i++)
	{
		const FabricPeer *peer = i == 0 ? &evil : &neighbor;
		DirectoryExtentRequest request = {.tree = tree, .share = 1, .home = 1, .home_member = 1};
		DirectoryExtent extent;

		assert_int_equal(call(fixture, peer, DIRECTORY_EXTENT, &request, sizeof(request), &extent),
		                 FABRIC_OK);
		theirs = write_inner(fixture, tree, extent.offset + DIRECTORY_FIRST_BUMP, root);
		/* From a pointer of good's, and by way of a node of its own. */
		assert_int_equal(descend(fixture, peer, tree, own).pointer, 0);
		assert_int_equal(descend(fixture, peer, tree, theirs).bytes, 0);
		assert_int_equal(descend(fixture, &good, tree, theirs).pointer, 0);
	}
}

/* A channel of the peer's dies while it rewrites the leaf, with this image in its redo slot. */
static void
die_rewriting(Fixture *fixture, const FabricPeer *peer, uint64_t pointer, const uint64_t *image)
{
	const FabricDeadChannel dead = {.cluster = {peer->cluster[0], peer->cluster[1]},
	                                .tenant = peer->tenant,
	                                .write_offset = pointer_offset(pointer),
	                                .write_bytes = node_geometry(&narrow).leaf_bytes};
	uint8_t *slot = fabric_server_node(fixture->service->server, dead.redo_offset, FABRIC_REDO_BYTES);
	RedoHeader header = {
		.target = pointer, .bytes = dead.write_bytes, .generation = image[HEADER_GENERATION]};

	header.sum = redo_sum(&header, image);
	memcpy(slot, &header, sizeof(header));
	memcpy(slot + FABRIC_STRIPE_BYTES, image, dead.write_bytes);
	service_recover(fixture->service, &dead);
}

/* What a client left in its redo slot goes into trees of its own, and no others. */
static void
test_foreign_redo(void **state)
{
	Fixture *fixture = *state;
	FabricPeer good = make_peer(1, 1), evil = make_peer(2, 1), neighbor = make_peer(1, 2);
	NodeGeometry g = node_geometry(&narrow);
	DirectoryCreated created;
	uint64_t image[NODE_MAX_BYTES / 8];
	uint64_t *root;

	memcpy(evil.cluster, good.cluster, sizeof(evil.cluster));
	assert_int_equal(create(fixture, &good, 1, &created), FABRIC_OK);
	write_root(fixture, &created);
	root = fabric_server_node(fixture->service->server, pointer_offset(created.record.root), g.leaf_bytes);
	node_begin_like(&g, image, root, created.record.root, created.extent.generation + 1);
	node_seal(&g, image);
	/* They have trees of the same id. */
	assert_int_equal(make_share(fixture, &evil, created.record.tree), FABRIC_OK);
	assert_int_equal(make_share(fixture, &neighbor, created.record.tree), FABRIC_OK);
	die_rewriting(fixture, &evil, created.record.root, image);
	assert_int_equal(root[HEADER_GENERATION], created.extent.generation);
	die_rewriting(fixture, &neighbor, created.record.root, image);
	assert_int_equal(root[HEADER_GENERATION], created.extent.generation);
	die_rewriting(fixture, &good, created.record.root, image);
	assert_memory_equal(root, image, g.leaf_bytes);
}

static TreeNodeStatus
status_of(Fixture *fixture, const FabricPeer *peer)
{
	TreeNodeStatus status;

	assert_int_equal(call(fixture, peer, DIRECTORY_STATUS, NULL, 0, &status), FABRIC_OK);
	return status;
}

/* A tenant is told of what it has and can have, and not of what the others do. */
static void
test_status(void **state)
{
	Fixture *fixture = *state;
	FabricPeer first = make_peer(1, 1), second = make_peer(2, 1), local = make_peer(0, 1);
	DirectoryCreated created;
	DirectoryTree tree;
	ServiceQuotas quotas = {.count = 1, .quotas = {{"second", 3 * EXTENT_MIN_BYTES}}};
	uint64_t total = status_of(fixture, &local).bytes_total;

	/* The names are taken when they come. */
	assert_int_equal(tenant_number(fixture->service->server, "first"), 1);
	assert_int_equal(tenant_number(fixture->service->server, "second"), 2);
	service_set_quotas(fixture->service, &quotas);
	for (uint64_t i = 1; i <= 5; i++)
		assert_int_equal(create(fixture, &first, i, &created), FABRIC_OK);
	assert_int_equal(status_of(fixture, &first).trees, 5);
	assert_int_equal(status_of(fixture, &first).bytes_used, 5 * EXTENT_MIN_BYTES);
	assert_int_equal(status_of(fixture, &first).bytes_total, total);
	assert_int_equal(status_of(fixture, &second).trees, 0);
	assert_int_equal(status_of(fixture, &second).channels, 0);
	assert_int_equal(status_of(fixture, &second).bytes_used, 0);
	assert_int_equal(status_of(fixture, &second).bytes_total, 3 * EXTENT_MIN_BYTES);
	tree.tree = created.record.tree;
	assert_int_equal(call(fixture, &first, DIRECTORY_DROP, &tree, sizeof(tree), NULL), FABRIC_OK);
	assert_int_equal(status_of(fixture, &second).bytes_quarantined, 0);
	assert_int_equal(create(fixture, &second, 1, &created), FABRIC_OK);
	assert_int_equal(status_of(fixture, &second).trees, 1);
	assert_int_equal(status_of(fixture, &second).bytes_used, EXTENT_MIN_BYTES);
	assert_int_equal(status_of(fixture, &second).bytes_total, 3 * EXTENT_MIN_BYTES);
	assert_int_equal(status_of(fixture, &local).trees, 5);
	assert_int_equal(status_of(fixture, &local).bytes_used, 5 * EXTENT_MIN_BYTES);
	assert_int_equal(status_of(fixture, &local).bytes_total, total);
}

/* A tenant that was dropped is forgotten: who comes in its place has nothing of it. */
static void
test_forgotten(void **state)
{
	Fixture *fixture = *state;
	FabricPeer first = make_peer(1, 1);
	DirectoryCreated created;
	uint64_t trees, bytes;

	assert_int_equal(tenant_number(fixture->service->server, "first"), 1);
	assert_int_equal(create(fixture, &first, 1, &created), FABRIC_OK);
	assert_int_equal(open_epoch(fixture, &first, 7), FABRIC_OK);
	assert_int_equal(service_drop_tenant(fixture->service, "first", &trees, &bytes), FABRIC_OK);
	assert_int_equal(trees, 1);
	assert_int_equal(bytes, EXTENT_MIN_BYTES);
	assert_int_equal(service_drop_tenant(fixture->service, "first", &trees, &bytes), FABRIC_NOT_FOUND);
	assert_int_equal(tenant_number(fixture->service->server, "second"), 1);
	assert_int_equal(epoch_of(fixture, &first), 0);
	assert_int_equal(status_of(fixture, &first).bytes_used, 0);
	assert_int_equal(status_of(fixture, &first).bytes_quarantined, 0);
}

/* Refusals that clients can have at will do not fill the log. */
static void
test_warnings(void **state)
{
	Fixture *fixture = *state;
	FabricPeer first = make_peer(1, 1);
	DirectoryCreated created;

	(void) create_all(fixture, &first, FABRIC_TOO_MANY);
	for (uint64_t i = 0; i < REFUSED_CALLS; i++)
		assert_int_equal(create(fixture, &first, 2000 + i, &created), FABRIC_TOO_MANY);
	assert_in_range(fixture->warnings, 1, 10);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_looking_only, open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(test_looking_before_attach, open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(test_looking_readers, open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(test_epochs, open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(test_trees, open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(test_descents, open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(test_same_id, open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(test_forged_pointers, open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(test_foreign_redo, open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(test_status, open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(test_forgotten, open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(test_warnings, open_fixture, close_fixture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

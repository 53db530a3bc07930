/*
 * test_service.c
 *		The memory node's service: trees, extents, records, epochs, quarantine, and what is left when the daemon is
 *		killed at work.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/fixture.h"
#include "tree/client/directory.h"
#include "tree/service/service.h"
#include "tree/service/service_state.h"
#include "tree/service/service_tables.h"

/* Waits until the quarantine is over. */
static TreeNodeStatus
node_status_settled(void)
{
	uint64_t deadline = test_now_us() + TEST_PATIENCE_US;
	TreeNodeStatus status = fixture_node_status(0);

	while (status.bytes_quarantined > 0)
	{
		assert_true(test_now_us() < deadline);
		test_sleep_us(5000);
		status = fixture_node_status(0);
	}
	return status;
}

static void
test_create_and_drop(void **state)
{
	TreeRecord record, read;
	TreeNodeStatus status;
	Tree *tree;
	NodeGeometry geometry = node_geometry(&narrow);
	uint64_t image[NODE_MAX_BYTES / 8];
	FabricOp op;
	uint64_t freed;

	fixture_open(&(FixtureOptions){.node_bytes = 8 * MEGABYTE});
	status = fixture_node_status(0);
	assert_int_equal(status.bytes_total, 8 * MEGABYTE);
	assert_int_equal(status.bytes_used, 0);
	assert_int_equal(status.trees, 0);
	test_tree_create(&client, &narrow, &record);
	assert_int_not_equal(record.tree, 0);
	assert_int_equal(record.extents, 1);
	assert_int_equal(record.bytes, EXTENT_MIN_BYTES);
	assert_int_equal(tree_record_read(client.tree, record.tree, tree_home(record.root), &read), TREE_OK);
	assert_memory_equal(&record, &read, sizeof(record));

	/* The root is there: an empty leaf that can be believed. */
	memset(&op, 0, sizeof(op));
	op.length = geometry.leaf_bytes;
	op.offset = pointer_offset(record.root);
	op.buffer = image;
	assert_int_equal(fabric_execute(client.endpoints[0], &op, 1), FABRIC_OK);
	assert_int_equal(node_check(&geometry, image, record.tree, record.root), NODE_GOOD);
	assert_int_equal(node_level(image), 0);
	assert_true(node_flags(image) & NODE_ROOT);
	assert_true(separator_infinite(image + geometry.low_word));
	assert_true(separator_infinite(image + geometry.high_word));
	assert_int_equal(tree_open(client.tree, record.tree, record.root, &narrow, NULL, NULL, &tree), TREE_OK);
	tree_close(tree);

	freed = test_now_us();
	assert_int_equal(tree_drop(client.tree, record.tree, tree_home(record.root)), TREE_OK);
	assert_int_equal(tree_drop(client.tree, record.tree, tree_home(record.root)), TREE_OK);
	assert_int_equal(tree_record_read(client.tree, record.tree, tree_home(record.root), &read),
	                 TREE_NOT_FOUND);
	status = fixture_node_status(0);
	assert_int_equal(status.trees, 0);
	assert_int_equal(status.bytes_used, 0);
	if (test_now_us() - freed < QUARANTINE_US)
		assert_int_equal(status.bytes_quarantined, EXTENT_MIN_BYTES);
	status = node_status_settled();
	assert_true(test_now_us() - freed >= QUARANTINE_US);
	fixture_close();
}

static void
test_ids_are_not_reused(void **state)
{
	TreeRecord record;
	uint64_t last = 0;

	fixture_open(&(FixtureOptions){.node_bytes = 8 * MEGABYTE});
	for (int round = 0; round < 3; round++)
	{
		for (int i = 0; i < 20; i++)
		{
			test_tree_create(&client, &narrow, &record);
			assert_true(record.tree > last);
			assert_true(record.tree < TABLES_ID_LIMIT);
			last = record.tree;
			assert_int_equal(tree_drop(client.tree, record.tree, tree_home(record.root)), TREE_OK);
		}
		if (round == 0)
			test_node_terminate(&nodes[0]);
		else
			test_node_kill(&nodes[0]);
		test_node_restart(&nodes[0]);
		fixture_reattach();
	}
	fixture_close();
}

/* Extents double with the tree; the same question twice is one extent; a full node leaves the tree whole. */
static void
test_extents(void **state)
{
	TreeRecord record, read;
	DirectoryExtent extent, again;
	uint64_t bytes = EXTENT_MIN_BYTES;
	uint32_t extents = 1;
	TreeStatus status;

	fixture_open(&(FixtureOptions){.node_bytes = 16 * MEGABYTE});
	test_tree_create(&client, &narrow, &record);
	for (;;)
	{
		status = directory_extent(client.tree, 0, record.tree, 0, extents, &extent);
		if (status != TREE_OK)
			break;
		assert_int_equal(extent.extents, extents + 1);
		assert_int_equal(extent.tree_bytes, bytes + extent.bytes);
		if (bytes < 8 * MEGABYTE)
		{
			assert_true(extent.bytes == EXTENT_MIN_BYTES || extent.bytes * 4 <= bytes);
			assert_true(extent.bytes * 16 > bytes);
		}
		assert_int_equal(directory_extent(client.tree, 0, record.tree, 0, extents, &again), TREE_OK);
		assert_memory_equal(&extent, &again, sizeof(extent));
		assert_int_equal(directory_extent(client.tree, 0, record.tree, 0, 0, &again), TREE_OK);
		assert_memory_equal(&extent, &again, sizeof(extent));
		bytes += extent.bytes;
		extents++;
	}
	assert_int_equal(status, TREE_MEMORY_FULL);
	assert_int_equal(bytes, 16 * MEGABYTE);
	assert_int_equal(tree_record_read(client.tree, record.tree, tree_home(record.root), &read), TREE_OK);
	assert_int_equal(read.extents, extents);
	assert_int_equal(read.bytes, bytes);
	memset(&read, 0, sizeof(read));
	read.format = narrow;
	assert_int_equal(tree_create(client.tree, &read), TREE_MEMORY_FULL);

	/* Memory that is in quarantine is waited for: a drop makes room at once. */
	assert_int_equal(tree_drop(client.tree, record.tree, tree_home(record.root)), TREE_OK);
	test_tree_create(&client, &narrow, &record);
	fixture_close();
}

/* An extent that the caller takes whole: at least what it wants, in whole units, as far as there is memory. */
static void
test_wanted_extents(void **state)
{
	static const struct
	{
		uint32_t wanted;
		uint64_t bytes;
	} cases[] = {{1, EXTENT_MIN_BYTES},
	             {EXTENT_MIN_BYTES - FABRIC_STRIPE_BYTES, EXTENT_MIN_BYTES},
	             {EXTENT_MIN_BYTES - FABRIC_STRIPE_BYTES + 1, 2 * EXTENT_MIN_BYTES},
	             {5 * EXTENT_MIN_BYTES, 6 * EXTENT_MIN_BYTES},
	             {9 * MEGABYTE, EXTENT_MAX_BYTES},
	             /* Of 7 MB that are left, the header's unit less, the largest half. */
	             {UINT32_MAX, EXTENT_MAX_BYTES / 2}};
	TreeRecord record;
	DirectoryExtent extent, again;

	fixture_open(&(FixtureOptions){.node_bytes = 16 * MEGABYTE});
	test_tree_create(&client, &narrow, &record);
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		ExtentHeader header;
		FabricOp op = {.opcode = FABRIC_READ,
		               .region = FABRIC_NODES,
		               .length = sizeof(header),
		               .buffer = (uint64_t *) &header};

		assert_int_equal(
			directory_extent_wanted(client.tree, 0, record.tree, 0, i + 1, cases[i].wanted, &extent),
			TREE_OK);
		assert_int_equal(extent.bytes, cases[i].bytes);
		assert_int_equal(extent.whole, 1);
		assert_int_equal(directory_extent_wanted(client.tree, 0, record.tree, 0, i + 1, 1, &again), TREE_OK);
		assert_memory_equal(&extent, &again, sizeof(extent));
		/* All of it is taken, as whole chunks. */
		op.offset = extent.offset;
		assert_int_equal(fabric_execute(client.endpoints[0], &op, 1), FABRIC_OK);
		assert_true(header.bump >= extent.bytes && header.bump < extent.bytes + CHUNK_BYTES);
		assert_int_equal(header.bump % CHUNK_BYTES, DIRECTORY_OTHER_BUMP);
	}
	/* All that is foreseen, of a tree that would get more. */
	assert_true(extent.tree_bytes > 12 * MEGABYTE);
	assert_int_equal(directory_extent_wanted(client.tree, 0, record.tree, 0, extent.extents,
	                                         EXTENT_MIN_BYTES | DIRECTORY_WANTED_ALL, &extent),
	                 TREE_OK);
	assert_int_equal(extent.bytes, 2 * EXTENT_MIN_BYTES);
	assert_int_equal(extent.whole, 1);
	/* One of which chunks are taken. */
	assert_int_equal(directory_extent(client.tree, 0, record.tree, 0, extent.extents, &extent), TREE_OK);
	assert_int_equal(extent.whole, 0);
	fixture_close();
}

/* A tree of 72 MB: extents grow with it by doubling, to 8 MB and no further. */
static void
test_largest_extents(void **state)
{
	TreeRecord record;
	uint64_t bytes = EXTENT_MIN_BYTES, last = EXTENT_MIN_BYTES, doubled = 0;

	fixture_open(&(FixtureOptions){.node_bytes = 80 * MEGABYTE});
	test_tree_create(&client, &narrow, &record);
	for (uint32_t extents = 1; bytes < 72 * MEGABYTE; extents++)
	{
		uint64_t expected = last;
		DirectoryExtent extent;

		/* A quarter of the tree at most: the next size as soon as the tree has four times that. */
		if (last < EXTENT_MAX_BYTES && bytes >= 4 * 2 * last)
		{
			expected = 2 * last;
			doubled++;
		}
		assert_int_equal(directory_extent(client.tree, 0, record.tree, 0, extents, &extent), TREE_OK);
		assert_int_equal(extent.bytes, expected);
		last = extent.bytes;
		bytes += extent.bytes;
		assert_int_equal(extent.tree_bytes, bytes);
	}
	/* 64 KB to 8 MB is seven times; at 64 MB the next size would be due. */
	assert_int_equal(doubled, 7);
	assert_int_equal(last, 8 * MEGABYTE);
	assert_int_equal(bytes, 72 * MEGABYTE);
	fixture_close();
}

/* Extents of the tree until there is no more: how many bytes it has then. */
static uint64_t
fill(const TreeRecord *record)
{
	DirectoryExtent extent = {.extents = 1};
	TreeStatus status;

	do
		status = directory_extent(client.tree, 0, record->tree, 0, extent.extents, &extent);
	while (status == TREE_OK);
	assert_int_equal(status, TREE_MEMORY_FULL);
	return extent.tree_bytes;
}

/* Where the node has room and the machine has none, that is what is said. */
static void
test_file_system_full(void **state)
{
	char directory[] = "/tmp/sherman-full-XXXXXX";
	const char *before = getenv("FABRIC_TEST_DIRECTORY");
	TreeRecord record;

	if (mkdtemp(directory) == NULL || mount("none", directory, "tmpfs", 0, "size=24m") != 0)
	{
		rmdir(directory);
		skip();
	}
	before = before != NULL ? strdup(before) : NULL;
	setenv("FABRIC_TEST_DIRECTORY", directory, 1);
	fixture_open(&(FixtureOptions){.node_bytes = 64 * MEGABYTE});
	test_tree_create(&client, &narrow, &record);
	(void) fill(&record);
	assert_int_equal(tree_full_by(client.tree), TREE_FULL_HOST);
	fixture_close();
	if (before != NULL)
		setenv("FABRIC_TEST_DIRECTORY", before, 1);
	else
		unsetenv("FABRIC_TEST_DIRECTORY");
	umount2(directory, MNT_DETACH);
	rmdir(directory);
}

/* A tenant gets as much as its quota, and no more; what it drops it can have again; the node has room for others. */
static void
test_quota(void **state)
{
	TreeRecord record, other = {.format = narrow};
	TreeNodeStatus status;

	fixture_open(&(FixtureOptions){.node_bytes = 8 * MEGABYTE});
	test_node_terminate(&nodes[0]);
	nodes[0].local_quota = 2 * MEGABYTE + EXTENT_MIN_BYTES;
	test_node_restart(&nodes[0]);
	fixture_reattach();
	test_tree_create(&client, &narrow, &record);
	assert_int_equal(fill(&record), nodes[0].local_quota);
	assert_int_equal(tree_full_by(client.tree), TREE_FULL_QUOTA);
	assert_int_equal(tree_create(client.tree, &other), TREE_MEMORY_FULL);
	assert_int_equal(tree_full_by(client.tree), TREE_FULL_QUOTA);
	status = fixture_node_status(0);
	assert_int_equal(status.tenant_quota, nodes[0].local_quota);
	assert_int_equal(status.tenant_bytes, nodes[0].local_quota);
	assert_int_equal(status.bytes_used, nodes[0].local_quota);

	/* The use is known after a restart, and a quota below it takes nothing away. */
	test_node_terminate(&nodes[0]);
	nodes[0].local_quota = MEGABYTE;
	test_node_restart(&nodes[0]);
	fixture_reattach();
	assert_int_equal(fixture_node_status(0).tenant_bytes, 2 * MEGABYTE + EXTENT_MIN_BYTES);
	assert_int_equal(tree_create(client.tree, &other), TREE_MEMORY_FULL);
	assert_int_equal(tree_drop(client.tree, record.tree, tree_home(record.root)), TREE_OK);
	assert_int_equal(fixture_node_status(0).tenant_bytes, 0);
	test_tree_create(&client, &narrow, &record);
	assert_int_equal(fill(&record), MEGABYTE);

	/* Without a quota it is the node that is full. */
	test_node_terminate(&nodes[0]);
	nodes[0].local_quota = 0;
	test_node_restart(&nodes[0]);
	fixture_reattach();
	test_tree_create(&client, &narrow, &other);
	(void) fill(&other);
	assert_int_equal(tree_full_by(client.tree), TREE_FULL_MEMORY);
	status = fixture_node_status(0);
	assert_int_equal(status.tenant_quota, 0);
	assert_int_equal(status.tenant_bytes, 8 * MEGABYTE);
	fixture_close();
}

/* When there is room for nothing else trees can be made still, in what is kept for that, of all memory and of a quota. */
static void
test_reserve(void **state)
{
	const uint64_t quotas[] = {0, 64 * MEGABYTE};

	for (int i = 0; i < 2; i++)
	{
		TreeRecord record, other = {.format = narrow};
		uint64_t made = 0;
		TreeStatus status;

		fixture_open(&(FixtureOptions){.node_bytes = quotas[i] == 0 ? 64 * MEGABYTE : 80 * MEGABYTE});
		test_node_terminate(&nodes[0]);
		nodes[0].local_quota = quotas[i];
		test_node_restart(&nodes[0]);
		fixture_reattach();
		test_tree_create(&client, &narrow, &record);
		assert_int_equal(fill(&record), 63 * MEGABYTE);
		while ((status = tree_create(client.tree, &other)) == TREE_OK)
		{
			other = (TreeRecord){.format = narrow};
			made++;
		}
		assert_int_equal(status, TREE_MEMORY_FULL);
		assert_int_equal(made, MEGABYTE / EXTENT_MIN_BYTES);
		assert_int_equal(tree_full_by(client.tree), quotas[i] == 0 ? TREE_FULL_MEMORY : TREE_FULL_QUOTA);
		fixture_close();
	}
}

/* Asks for the copy of an extent of so many units, piece by piece, until it is whole or there is no room; returns how many it has. */
static uint64_t
replica_units(uint64_t tree, uint64_t units, uint64_t pieces[], uint32_t *count)
{
	DirectoryReplicaRequest request = {.tree = tree, .record.tree = tree};
	uint64_t done = 0;

	request.record.root = pointer_make(1, 1 << 20);
	for (*count = 0; done < units; (*count)++)
	{
		DirectoryReplica copy;
		TreeStatus status;

		request.offset = (1ull << 30) + done * FABRIC_UNIT_BYTES;
		request.bytes = (units - done) * FABRIC_UNIT_BYTES;
		status =
			directory_call(client.tree, 0, DIRECTORY_REPLICA, &request, sizeof(request), &copy, sizeof(copy));
		if (status == TREE_MEMORY_FULL)
			break;
		assert_int_equal(status, TREE_OK);
		assert_int_equal(copy.offset, request.offset);
		assert_int_equal(copy.bytes % FABRIC_UNIT_BYTES, 0);
		assert_in_range(copy.bytes, FABRIC_UNIT_BYTES, request.bytes);
		pieces[*count] = copy.bytes / FABRIC_UNIT_BYTES;
		done += pieces[*count];
	}
	return done;
}

/*
 * What is left of a copy is any number of units: of memory in pieces, or of a quota, it gets whole units, and all that there are.
 */
static void
test_odd_replicas(void **state)
{
	enum
	{
		UNITS = 16,
		TREE = 0x123400000001ull
	};
	TreeRecord record[UNITS];
	uint64_t pieces[UNITS];
	uint32_t count;

	fixture_open(&(FixtureOptions){.node_bytes = UNITS * FABRIC_UNIT_BYTES});
	for (int i = 0; i < UNITS; i++)
		test_tree_create(&client, &narrow, &record[i]);
	/* Three units in one piece, and one. */
	for (int i = 4; i < 7; i++)
		assert_int_equal(tree_drop(client.tree, record[i].tree, 0), TREE_OK);
	assert_int_equal(tree_drop(client.tree, record[10].tree, 0), TREE_OK);
	(void) node_status_settled();
	assert_int_equal(replica_units(TREE, 7, pieces, &count), 4);
	assert_int_equal(count, 2);
	assert_int_equal(pieces[0], 3);
	assert_int_equal(pieces[1], 1);
	assert_int_equal(fixture_node_status(0).bytes_used, UNITS * FABRIC_UNIT_BYTES);

	/* The tenant may have two more. */
	assert_int_equal(tree_share_drop(client.tree, 0, TREE), TREE_OK);
	test_node_terminate(&nodes[0]);
	nodes[0].local_quota = (UNITS - 2) * FABRIC_UNIT_BYTES;
	test_node_restart(&nodes[0]);
	fixture_reattach();
	assert_int_equal(replica_units(TREE, 7, pieces, &count), 2);
	assert_int_equal(pieces[0], 1);
	assert_int_equal(tree_full_by(client.tree), TREE_FULL_QUOTA);
	fixture_close();
}

/* An extent's header, as it lies in node memory. */
static ExtentHeader
extent_header(uint64_t offset)
{
	ExtentHeader header;
	FabricOp op = {.opcode = FABRIC_READ,
	               .region = FABRIC_NODES,
	               .length = sizeof(header),
	               .offset = offset,
	               .buffer = &header};

	assert_int_equal(fabric_execute(client.endpoints[0], &op, 1), FABRIC_OK);
	return header;
}

/*
 * Nodes at the same place in an extent that was dropped and granted again have other generations than those
 * before, also after a restart: what was read of the old ones never passes for the new ones.
 */
static void
test_first_generations(void **state)
{
	enum
	{
		ROUNDS = 6
	};
	uint64_t generations[ROUNDS];
	uint64_t offset = 0;
	TreeRecord record, other;

	fixture_open(&(FixtureOptions){.node_bytes = MEGABYTE});
	test_tree_create(&client, &narrow, &record);
	test_tree_create(&client, &narrow, &other);
	(void) fill(&other);
	/* There is no other place for it from here on. */
	for (int round = 0; round < ROUNDS; round++)
	{
		DirectoryExtent extent;

		assert_int_equal(directory_extent(client.tree, 0, record.tree, 0, 0, &extent), TREE_OK);
		assert_true(round == 0 || extent.offset == offset);
		offset = extent.offset;
		generations[round] = extent.generation;
		assert_int_not_equal(extent.generation, 0);
		assert_int_equal(extent_header(offset).generation, extent.generation);
		/* So far apart that one does not count up to the other. */
		for (int before = 0; before < round; before++)
			assert_true(generations[before] - generations[round] > 1ull << 32 &&
			            generations[round] - generations[before] > 1ull << 32);
		assert_int_equal(tree_drop(client.tree, record.tree, tree_home(record.root)), TREE_OK);
		if (round == ROUNDS / 2)
		{
			test_node_terminate(&nodes[0]);
			test_node_restart(&nodes[0]);
			fixture_reattach();
		}
		test_tree_create(&client, &narrow, &record);
	}
	fixture_close();
}

/* Freed and granted again: nothing of the old tree is there. */
static void
test_memory_is_zeroed(void **state)
{
	TreeRecord record;
	DirectoryExtent extent;
	uint64_t line[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	FabricOp op;

	fixture_open(&(FixtureOptions){.node_bytes = MEGABYTE});
	test_tree_create(&client, &narrow, &record);
	memset(&op, 0, sizeof(op));
	op.length = sizeof(line);
	op.buffer = line;
	for (uint32_t extents = 1; directory_extent(client.tree, 0, record.tree, 0, extents, &extent) == TREE_OK;
	     extents++)
	{
		op.opcode = FABRIC_WRITE;
		op.offset = extent.offset + 8192;
		assert_int_equal(fabric_execute(client.endpoints[0], &op, 1), FABRIC_OK);
	}
	assert_int_equal(tree_drop(client.tree, record.tree, tree_home(record.root)), TREE_OK);
	test_tree_create(&client, &narrow, &record);
	assert_int_equal(fixture_node_status(0).bytes_used, EXTENT_MIN_BYTES);
	for (uint32_t extents = 1; directory_extent(client.tree, 0, record.tree, 0, extents, &extent) == TREE_OK;
	     extents++)
	{
		op.opcode = FABRIC_READ;
		op.offset = extent.offset + 8192;
		assert_int_equal(fabric_execute(client.endpoints[0], &op, 1), FABRIC_OK);
		for (int i = 0; i < 8; i++)
			assert_int_equal(line[i], 0);
	}
	assert_int_equal(fixture_node_status(0).bytes_used, MEGABYTE);
	fixture_close();
}

static void
test_records(void **state)
{
	TreeRecord records[3], read, change;
	uint32_t position = 0;
	int found = 0;

	fixture_open(&(FixtureOptions){.node_bytes = 8 * MEGABYTE});
	for (int i = 0; i < 3; i++)
		test_tree_create(&client, &narrow, &records[i]);
	memset(&change, 0, sizeof(change));
	change.tree = records[1].tree;
	change.flags = TREE_RECORD_BUILT;
	change.mutated_epoch = 7;
	change.removal_epoch = 7;
	change.removal_lsn = 1000;
	change.nonce = 99;
	assert_int_equal(tree_record_update(client.tree, &change), TREE_OK);
	/* Nothing goes back, and flags are only added. */
	change.flags = TREE_RECORD_BROKEN;
	change.mutated_epoch = 6;
	change.removal_epoch = 6;
	change.removal_lsn = 2000;
	change.nonce = 0;
	assert_int_equal(tree_record_update(client.tree, &change), TREE_OK);
	assert_int_equal(tree_record_read(client.tree, records[1].tree, tree_home(records[1].root), &read),
	                 TREE_OK);
	assert_int_equal(read.flags, TREE_RECORD_BUILT | TREE_RECORD_BROKEN);
	assert_int_equal(read.mutated_epoch, 7);
	assert_int_equal(read.removal_epoch, 7);
	assert_int_equal(read.removal_lsn, 1000);
	assert_int_equal(read.nonce, 99);
	assert_int_equal(read.root, records[1].root);
	change.tree = 12345;
	assert_int_equal(tree_record_update(client.tree, &change), TREE_NOT_FOUND);

	while (tree_record_list(client.tree, 0, &position, &read) == TREE_OK)
		found++;
	assert_int_equal(found, 3);
	assert_int_equal(tree_record_list(client.tree, 0, &position, &read), TREE_END);

	/* Another cluster neither sees nor drops them. */
	{
		TestInstance other;
		TestClient stranger;

		test_instance_start(&other, &nodes[0], 1, 2, MEGABYTE);
		test_client_open(&stranger, &other, 0);
		position = 0;
		assert_int_equal(tree_record_list(stranger.tree, 0, &position, &read), TREE_END);
		assert_int_equal(tree_record_read(stranger.tree, records[0].tree, tree_home(records[0].root), &read),
		                 TREE_NOT_FOUND);
		assert_int_equal(tree_drop(stranger.tree, records[0].tree, tree_home(records[0].root)), TREE_OK);
		(void) test_client_close(&stranger);
		test_instance_stop(&other);
		assert_int_equal(tree_record_read(client.tree, records[0].tree, tree_home(records[0].root), &read),
		                 TREE_OK);
	}
	fixture_close();
}

static void
test_epochs(void **state)
{
	TreeNodeStatus status;

	fixture_open(&(FixtureOptions){.node_bytes = MEGABYTE});
	assert_int_equal(fixture_node_status(0).epoch, 0);
	assert_int_equal(tree_epoch_close(client.tree, 0, 1), TREE_INVALID);
	assert_int_equal(tree_epoch_open(client.tree, 0, 5), TREE_OK);
	assert_int_equal(tree_epoch_open(client.tree, 0, 5), TREE_OK);
	assert_int_equal(tree_epoch_open(client.tree, 0, 4), TREE_INVALID);
	status = fixture_node_status(0);
	assert_int_equal(status.epoch, 5);
	assert_int_equal(status.epoch_clean, 0);
	test_node_kill(&nodes[0]);
	test_node_restart(&nodes[0]);
	fixture_reattach();
	status = fixture_node_status(0);
	assert_int_equal(status.epoch, 5);
	assert_int_equal(status.epoch_clean, 0);
	assert_int_equal(tree_epoch_close(client.tree, 0, 5), TREE_OK);
	assert_int_equal(tree_epoch_close(client.tree, 0, 5), TREE_OK);
	assert_int_equal(fixture_node_status(0).epoch_clean, 1);
	/* Closed clean is closed. */
	assert_int_equal(tree_epoch_open(client.tree, 0, 5), TREE_INVALID);
	assert_int_equal(tree_epoch_open(client.tree, 0, 6), TREE_OK);
	assert_int_equal(fixture_node_status(0).epoch_clean, 0);
	fixture_close();
}

/* Kept over a clean end and over SIGKILL; a tree's record, root and extents are as they were. */
static void
test_restart_keeps_trees(void **state)
{
	TreeRecord record, read;
	TreeNodeStatus before, after;

	fixture_open(&(FixtureOptions){.node_bytes = 8 * MEGABYTE});
	test_tree_create(&client, &narrow, &record);
	before = fixture_node_status(0);
	for (int round = 0; round < 2; round++)
	{
		if (round == 0)
			test_node_terminate(&nodes[0]);
		else
			test_node_kill(&nodes[0]);
		test_node_restart(&nodes[0]);
		fixture_reattach();
		after = fixture_node_status(0);
		assert_int_equal(after.uuid[0], before.uuid[0]);
		assert_int_equal(after.uuid[1], before.uuid[1]);
		assert_true(after.generation > before.generation);
		assert_int_equal(after.bytes_used, before.bytes_used);
		assert_int_equal(after.trees, 1);
		assert_int_equal(tree_record_read(client.tree, record.tree, tree_home(record.root), &read), TREE_OK);
		assert_memory_equal(&record, &read, sizeof(record));
	}
	fixture_close();
}

/* Creates, grows and drops trees until the memory node is gone; scratch[0] counts. */
static void
work_until_death(void)
{
	TestClient client;

	test_client_open(&client, &instance, 1);
	for (uint32_t i = 0;; i++)
	{
		TreeRecord record;
		DirectoryExtent extent;
		TreeStatus status;

		memset(&record, 0, sizeof(record));
		record.format = narrow;
		status = tree_create(client.tree, &record);
		for (uint32_t extents = 1; status == TREE_OK && extents < 1 + i % 6; extents++)
			status = directory_extent(client.tree, 0, record.tree, 0, extents, &extent);
		if (status == TREE_OK && i % 4 != 0)
			status = tree_drop(client.tree, record.tree, tree_home(record.root));
		if (status != TREE_OK && status != TREE_MEMORY_FULL)
			_exit(0);
		if (status == TREE_MEMORY_FULL && record.tree != 0)
			(void) tree_drop(client.tree, record.tree, tree_home(record.root));
		__atomic_fetch_add(&instance.scratch[0], 1, __ATOMIC_RELEASE);
	}
}

/* It is at work: four were created, of which one was not dropped. */
#define AT_WORK 4

/* The daemon is killed at random moments of its work: what it says is used is what the trees have. */
static void
test_killed_at_work(void **state)
{
	uint32_t seen = 0;

	fixture_open(&(FixtureOptions){.node_bytes = 16 * MEGABYTE});
	for (uint64_t round = 0; round < 15; round++)
	{
		TreeNodeStatus status;
		TreeRecord record;
		uint64_t bytes = 0;
		uint32_t position = 0, trees = 0;
		pid_t child;

		fflush(NULL);
		instance.scratch[0] = 0;
		child = fork();
		assert_true(child >= 0);
		if (child == 0)
			work_until_death();
		test_await(&instance, 0, AT_WORK);
		test_sleep_us(round * 1711);
		test_node_kill(&nodes[0]);
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, NULL, 0), child);
		test_node_restart(&nodes[0]);
		fixture_reattach();
		status = node_status_settled();
		while (tree_record_list(client.tree, 0, &position, &record) == TREE_OK)
		{
			bytes += record.bytes;
			trees++;
		}
		assert_int_equal(status.trees, trees);
		assert_int_equal(status.bytes_used, bytes);
		position = 0;
		while (tree_record_list(client.tree, 0, &position, &record) == TREE_OK)
			assert_int_equal(tree_drop(client.tree, record.tree, tree_home(record.root)), TREE_OK);
		assert_int_equal(node_status_settled().bytes_used, 0);
		seen += trees;
	}
	assert_true(seen >= 15);
	fixture_close();
}

/* Of one tenant and one cluster: both words of its name count. */
static void
test_owner(void **state)
{
	const FabricPeer peer = {.cluster = {11, 12}, .tenant = 3};
	TablesOwner owner = service_owner(&peer);

	assert_true(owner.cluster[0] == 11 && owner.cluster[1] == 12);
	assert_int_equal(owner.tenant, 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create_and_drop),
		cmocka_unit_test(test_owner),
		cmocka_unit_test(test_ids_are_not_reused),
		cmocka_unit_test(test_extents),
		cmocka_unit_test(test_largest_extents),
		cmocka_unit_test(test_wanted_extents),
		cmocka_unit_test(test_file_system_full),
		cmocka_unit_test(test_quota),
		cmocka_unit_test(test_reserve),
		cmocka_unit_test(test_odd_replicas),
		cmocka_unit_test(test_first_generations),
		cmocka_unit_test(test_memory_is_zeroed),
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_epochs),
		cmocka_unit_test(test_restart_keeps_trees),
		cmocka_unit_test(test_killed_at_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

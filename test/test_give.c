/*
 * test_give.c
 *		Extents that a tree gives back, at the memory node: which it takes and which it refuses, what is left when it is killed, and
 *		that the memory is anybody's then.
 */
#include <string.h>

#include "support/fixture.h"
#include "tree/client/directory.h"
#include "tree/service/service_tables.h"

/* Of the tree that gives. */
#define EXTENTS 6u

static DirectoryExtent extents[EXTENTS + 1]; /* by their numbers, from 1 on */

/* A tree with these extents. */
static void
extents_open(void)
{
	fixture_open(&(FixtureOptions){.node_bytes = 2 * MEGABYTE, .trees = 1});
	for (uint32_t i = 1; i <= EXTENTS; i++)
		assert_int_equal(directory_extent(client.tree, 0, records[0].tree, 0, i - 1, &extents[i]), TREE_OK);
}

static void
access_header(uint8_t opcode, uint32_t extent, ExtentHeader *header)
{
	FabricOp op = {.opcode = opcode,
	               .region = FABRIC_NODES,
	               .length = sizeof(*header),
	               .offset = extents[extent].offset,
	               .buffer = header};

	assert_int_equal(fabric_execute(client.endpoints[0], &op, 1), FABRIC_OK);
}

/* The number of the extent that this one names as the one before it; 0: none. */
static uint32_t
previous(uint32_t extent)
{
	ExtentHeader header;

	access_header(FABRIC_READ, extent, &header);
	for (uint32_t i = 1; i <= EXTENTS; i++)
		if (header.previous == extents[i].offset)
			return i;
	assert_int_equal(header.previous, 0);
	return 0;
}

static DirectoryGive
give_of(uint32_t extent, uint32_t newer)
{
	return (DirectoryGive){.tree = records[0].tree,
	                       .offset = extents[extent].offset,
	                       .number = extent,
	                       .newer = extents[newer].offset};
}

/* The call as it is: the memory node's own answer. */
static FabricStatus
give(const DirectoryGive *request)
{
	return fabric_call(client.endpoints[0], DIRECTORY_GIVE, request, sizeof(*request), NULL, &(uint32_t){0});
}

static uint64_t
tree_bytes(void)
{
	TreeRecord record;

	assert_int_equal(tree_record_read(client.tree, records[0].tree, 0, &record), TREE_OK);
	assert_int_equal(record.extents, EXTENTS);
	return record.bytes;
}

/* From the middle and behind it: each is taken out of the list of those that are left, once, and the bytes fall. */
static void
test_gives(void **state)
{
	uint64_t bytes;
	DirectoryGive request;

	extents_open();
	bytes = tree_bytes();
	assert_int_equal(previous(4), 3);
	request = give_of(3, 4);
	assert_int_equal(give(&request), FABRIC_OK);
	bytes -= extents[3].bytes;
	assert_int_equal(tree_bytes(), bytes);
	assert_int_equal(fixture_node_status(0).bytes_used, bytes);
	assert_int_equal(previous(4), 2);
	/* Once more, and it is done. */
	assert_int_equal(give(&request), FABRIC_NOT_FOUND);
	assert_int_equal(directory_give(client.tree, 0, &request), TREE_OK);
	assert_int_equal(tree_bytes(), bytes);

	request = give_of(2, 4);
	assert_int_equal(give(&request), FABRIC_OK);
	bytes -= extents[2].bytes;
	request = give_of(5, 6);
	assert_int_equal(give(&request), FABRIC_OK);
	bytes -= extents[5].bytes;
	assert_int_equal(previous(6), 4);
	assert_int_equal(previous(4), 1);
	assert_int_equal(tree_bytes(), bytes);

	/* What is left goes with the tree. */
	assert_int_equal(tree_drop(client.tree, records[0].tree, 0), TREE_OK);
	assert_int_equal(fixture_node_status(0).bytes_used, 0);
	fixture_close();
}

static void
must_refuse(const DirectoryGive *request, FabricStatus status)
{
	uint64_t bytes = tree_bytes();

	assert_int_equal(give(request), status);
	assert_int_equal(tree_bytes(), bytes);
	assert_int_equal(fixture_node_status(0).bytes_quarantined, 0);
	for (uint32_t i = 1; i <= EXTENTS; i++)
		assert_int_equal(previous(i), i - 1);
}

/* The root's extent and the newest one stay, and numbers that name none, or the wrong one, change nothing. */
static void
test_refuses(void **state)
{
	TreeRecord other;
	ExtentHeader header;
	DirectoryGive request;

	extents_open();
	request = give_of(1, 2);
	must_refuse(&request, FABRIC_RANGE);
	/* Nor if a header says that there is a newer one. */
	access_header(FABRIC_READ, 1, &header);
	header.previous = extents[EXTENTS].offset;
	access_header(FABRIC_WRITE, 1, &header);
	request = give_of(EXTENTS, 1);
	assert_int_equal(give(&request), FABRIC_RANGE);
	header.previous = 0;
	access_header(FABRIC_WRITE, 1, &header);
	must_refuse(&request, FABRIC_RANGE);
	/* Its header is not named by that one. */
	request = give_of(3, 5);
	must_refuse(&request, FABRIC_RANGE);
	request = give_of(3, 3);
	must_refuse(&request, FABRIC_RANGE);
	/* An extent of long ago. */
	request = give_of(3, 4);
	request.number = 2;
	must_refuse(&request, FABRIC_NOT_FOUND);

	test_tree_create(&client, &narrow, &other);
	for (int wrong = 0; wrong < 6; wrong++)
	{
		static const uint64_t numbers[] = {
			0, 4096, UINT64_MAX, 1ull << 63, FABRIC_UNIT_BYTES, MEGABYTE * 4096};

		request = give_of(3, 4);
		request.newer = numbers[wrong];
		must_refuse(&request, FABRIC_RANGE);
		request.newer = extents[4].offset;
		request.offset = wrong % 2 == 0 ? numbers[wrong] : request.offset + numbers[wrong];
		must_refuse(&request, FABRIC_NOT_FOUND);
		request.offset = extents[3].offset;
		request.tree = wrong == 0 ? other.tree : numbers[wrong];
		must_refuse(&request, FABRIC_NOT_FOUND);
	}
	fixture_close();
}

/* Of a tree with copies nothing is taken, at either memory node. */
static void
test_replicas_stay(void **state)
{
	DirectoryCreate create = {.token = {5, 6},
	                          .record = {.format = narrow, .flags = 2u << TREE_RECORD_REPLICA_SHIFT}};
	DirectoryCreated created;
	DirectoryExtent extents[2];
	DirectoryReplicaRequest copy = {.tree = 77, .bytes = EXTENT_MIN_BYTES};
	DirectoryReplica replicas[3];
	uint32_t bytes = sizeof(created);

	extents_open();
	assert_int_equal(
		fabric_call(client.endpoints[0], DIRECTORY_CREATE, &create, sizeof(create), &created, &bytes),
		FABRIC_OK);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(directory_extent(client.tree, 0, created.record.tree, 0, i + 1, &extents[i]),
		                 TREE_OK);
	assert_int_equal(give(&(DirectoryGive){.tree = created.record.tree,
	                                       .offset = extents[0].offset,
	                                       .number = 2,
	                                       .newer = extents[1].offset}),
	                 FABRIC_RANGE);

	copy.record = (TreeRecord){.tree = 77, .root = pointer_make(1, MEGABYTE), .format = narrow};
	copy.record.flags = 1u << TREE_RECORD_REPLICA_SHIFT;
	for (uint32_t i = 0; i < 3; i++)
	{
		copy.offset = i * FABRIC_UNIT_BYTES;
		bytes = sizeof(replicas[i]);
		assert_int_equal(
			fabric_call(client.endpoints[0], DIRECTORY_REPLICA, &copy, sizeof(copy), &replicas[i], &bytes),
			FABRIC_OK);
	}
	assert_int_equal(
		give(&(DirectoryGive){.tree = 77, .offset = replicas[1].copy, .newer = replicas[2].copy}),
		FABRIC_RANGE);
	fixture_close();
}

/* Memory that was given back is not granted before its quarantine is over, and then to anybody, with nothing in it. */
static void
test_quarantine(void **state)
{
	TreeRecord other;
	DirectoryExtent extent = {.extents = 1};
	DirectoryGive request;
	uint64_t given, line[LINE_WORDS] = {1, 2, 3, 4, 5, 6, 7, 8};
	FabricOp op = {.opcode = FABRIC_WRITE, .region = FABRIC_NODES, .length = sizeof(line), .buffer = line};

	extents_open();
	test_tree_create(&client, &narrow, &other);
	while (directory_extent(client.tree, 0, other.tree, 0, extent.extents, &extent) == TREE_OK)
		continue;
	op.offset = extents[3].offset + MEGABYTE / 32;
	assert_int_equal(fabric_execute(client.endpoints[0], &op, 1), FABRIC_OK);
	request = give_of(3, 4);
	given = test_now_us();
	assert_int_equal(give(&request), FABRIC_OK);
	if (test_now_us() - given < QUARANTINE_US)
		assert_int_equal(fixture_node_status(0).bytes_quarantined, extents[3].bytes);
	assert_int_equal(directory_extent(client.tree, 0, other.tree, 0, extent.extents, &extent), TREE_OK);
	assert_true(test_now_us() - given >= QUARANTINE_US);
	assert_int_equal(extent.offset, extents[3].offset);
	op.opcode = FABRIC_READ;
	assert_int_equal(fabric_execute(client.endpoints[0], &op, 1), FABRIC_OK);
	for (uint32_t i = 0; i < LINE_WORDS; i++)
		assert_int_equal(line[i], 0);
	/* Nor is it given again, or taken away by who had it. */
	assert_int_equal(give(&request), FABRIC_NOT_FOUND);
	fixture_close();
}

/* A tree that gets back what it had given goes on with later generations there, and with new numbers. */
static void
test_same_place_again(void **state)
{
	TreeRecord other;
	DirectoryExtent extent = {.extents = 1};
	DirectoryExtent places[2];
	uint64_t newer[2];

	extents_open();
	test_tree_create(&client, &narrow, &other);
	while (directory_extent(client.tree, 0, other.tree, 0, extent.extents, &extent) == TREE_OK)
		continue;
	places[0] = extents[3];
	places[1] = extents[2];
	newer[0] = newer[1] = extents[4].offset;
	for (uint32_t turn = 0; turn < 30; turn++)
	{
		DirectoryExtent *place = &places[turn % 2];
		DirectoryGive request = {records[0].tree, place->offset, place->extents, newer[turn % 2]};

		assert_int_equal(give(&request), FABRIC_OK);
		if (turn % 5 == 4)
		{
			test_node_kill(&nodes[0]);
			fixture_node_restart();
		}
		assert_int_equal(directory_extent(client.tree, 0, records[0].tree, 0, EXTENTS + turn, &extent),
		                 TREE_OK);
		assert_int_equal(extent.offset, place->offset);
		assert_int_equal(extent.extents, EXTENTS + turn + 1);
		assert_true(extent.generation > place->generation + (1ull << 32));
		*place = extent;
		if (turn > 0)
			newer[(turn + 1) % 2] = extent.offset;
	}
	fixture_close();
}

/* A memory node that ended behind the first store of a give does the rest when the call comes again; and what it had done stays done. */
static void
test_killed(void **state)
{
	ExtentHeader header, older;
	DirectoryGive request;
	uint64_t bytes;

	extents_open();
	request = give_of(3, 4);
	access_header(FABRIC_READ, 3, &older);
	access_header(FABRIC_READ, 4, &header);
	header.previous = older.previous;
	access_header(FABRIC_WRITE, 4, &header);
	test_node_kill(&nodes[0]);
	fixture_node_restart();
	bytes = tree_bytes() - extents[3].bytes;
	assert_int_equal(give(&request), FABRIC_OK);
	assert_int_equal(tree_bytes(), bytes);
	for (int round = 0; round < 2; round++)
	{
		if (round == 0)
			test_node_kill(&nodes[0]);
		else
			test_node_terminate(&nodes[0]);
		fixture_node_restart();
		assert_int_equal(tree_bytes(), bytes);
		assert_int_equal(fixture_node_status(0).bytes_used, bytes);
		assert_int_equal(give(&request), FABRIC_NOT_FOUND);
	}
	fixture_close();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gives),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_replicas_stay),
		cmocka_unit_test(test_quarantine),
		cmocka_unit_test(test_same_place_again),
		cmocka_unit_test(test_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

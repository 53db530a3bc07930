/*
 * test_rounds.c
 *		What one client can take of the one thread that serves all: calls are counted in rounds of the memory node, and in
 *		what they look at, never by the clock.
 */
#include <signal.h>
#include <string.h>

#include "support/fixture.h"
#include "support/door.h"

#define TREES TABLES_TREES_STEP
#define PIPELINED 330u
/* More than any call here takes. */
#define MANY_ROUNDS 100000u

static const char *const names[DOOR_TENANTS] = {"first", "second"};
static const uint64_t no_quotas[DOOR_TENANTS] = {0, 0};

typedef struct Fixture
{
	Door door;
	DoorClient clients[DOOR_TENANTS]; /* of each tenant, attached */
	uint32_t incarnations[DOOR_TENANTS];
} Fixture;

static Fixture fixture;

/* Another connection of a tenant's cluster. */
static void
join(uint32_t which, DoorClient *client)
{
	FrameHello hello = {.cluster = {which + 1, which + 1},
	                    .incarnation = fixture.incarnations[which],
	                    .old_channel = CONTROL_NO_CHANNEL};

	door_connect(&fixture.door, which, client);
	assert_int_equal(door_hello(&fixture.door, client, &hello, NULL, NULL), FABRIC_OK);
}

static void
open_fixture(uint64_t bytes, const uint64_t quotas[DOOR_TENANTS])
{
	memset(&fixture, 0, sizeof(fixture));
	door_open(&fixture.door, bytes, TREES, names, quotas);
	for (uint32_t i = 0; i < DOOR_TENANTS; i++)
	{
		DoorClient launcher = {0};

		join(i, &launcher);
		assert_int_equal(door_attach(&fixture.door, &launcher, 1, &fixture.incarnations[i]), FABRIC_OK);
		door_disconnect(&launcher);
		join(i, &fixture.clients[i]);
	}
}

static void
close_fixture(void)
{
	for (uint32_t i = 0; i < DOOR_TENANTS; i++)
		door_disconnect(&fixture.clients[i]);
	door_close(&fixture.door);
}

static FabricStatus
call(uint32_t which, DirectoryMethod method, const void *request, size_t bytes, void *reply)
{
	static uint8_t room[FABRIC_MAX_CALL_BYTES];

	return door_call(&fixture.door, &fixture.clients[which], MANY_ROUNDS, (uint16_t) method, request, bytes,
	                 reply != NULL ? reply : room, NULL);
}

static DirectoryCreated
create(uint32_t which, uint64_t token)
{
	DirectoryCreate request = {.token = {token, which}, .record = {.format = narrow}};
	DirectoryCreated created;

	assert_int_equal(call(which, DIRECTORY_CREATE, &request, sizeof(request), &created), FABRIC_OK);
	return created;
}

/* Lets the tree have so many extents. */
static void
grow(uint32_t which, uint64_t tree, uint32_t extents)
{
	for (uint32_t i = 1; i < extents; i++)
	{
		DirectoryExtentRequest request = {.tree = tree, .extents = i};

		assert_int_equal(call(which, DIRECTORY_EXTENT, &request, sizeof(request), NULL), FABRIC_OK);
	}
}

/* The second tenant's call is answered in the round in which it comes. */
static void
expect_served(void)
{
	assert_int_equal(door_call(&fixture.door, &fixture.clients[1], 1, DIRECTORY_STATUS, NULL, 0,
	                           (TreeNodeStatus[1]){0}, NULL),
	                 FABRIC_OK);
}

/* How many replies have come? */
static uint32_t
count_replies(DoorClient *client, FabricStatus *status)
{
	static uint8_t data[FABRIC_MAX_CALL_BYTES + 64];
	uint32_t count = 0;
	uint64_t request;
	uint32_t bytes;

	while (door_take(client, &request, status, data, &bytes))
		count++;
	return count;
}

/* Whoever sends many calls at once has one of them in a round. */
static void
test_pipelined_calls(void **state)
{
	DirectoryReplicasRequest request = {0};
	static uint8_t frames[PIPELINED * (FRAME_HEAD_BYTES + sizeof(request))];
	size_t length = 0;
	FabricStatus status;
	uint32_t answered = 0;

	open_fixture(16 * MEGABYTE, no_quotas);
	request.tree = create(0, 1).record.tree;
	for (uint32_t i = 0; i < PIPELINED; i++)
		length +=
			door_frame(&fixture.clients[0], frames + length, DIRECTORY_REPLICAS, &request, sizeof(request));
	door_send_bytes(&fixture.clients[0], frames, length);
	for (uint32_t round = 0; answered < PIPELINED; round++)
	{
		uint32_t count;

		assert_true(round < 2 * PIPELINED);
		expect_served();
		count = count_replies(&fixture.clients[0], &status);
		assert_in_range(count, 0, 1);
		assert_true(count == 0 || status == FABRIC_OK);
		answered += count;
	}
	close_fixture();
}

/* However large the memory is, and however many extents others have, a call looks at the caller's own, some in a round. */
static void
test_looks(void **state)
{
	DirectoryCreated created;
	DirectoryReplicaRequest copy = {.bytes = EXTENT_MIN_BYTES};
	DirectoryReplicasRequest replicas = {0};
	ServiceTables *tables;
	uint64_t looked;
	uint32_t rounds = 0;
	FabricStatus status;

	open_fixture(4096 * MEGABYTE, no_quotas);
	tables = &fixture.door.service->tables;
	created = create(0, 1);
	grow(0, created.record.tree, 40);
	copy.tree = copy.record.tree = 77;
	copy.record.root = pointer_make(1, DIRECTORY_ROOT_OFFSET);
	for (uint32_t i = 0; i < TABLES_ROUND + 10; i++)
	{
		copy.offset = i * (uint64_t) EXTENT_MIN_BYTES;
		assert_int_equal(call(1, DIRECTORY_REPLICA, &copy, sizeof(copy), NULL), FABRIC_OK);
	}
	/* A tree of two extents, with all that beside it. */
	created = create(0, 2);
	grow(0, created.record.tree, 2);
	looked = tables->looked;
	replicas.tree = created.record.tree;
	assert_int_equal(call(0, DIRECTORY_REPLICAS, &replicas, sizeof(replicas), NULL), FABRIC_OK);
	assert_true(tables->looked - looked <= 3);
	/* One that has many looks at some of them in a round, and goes on in the next. */
	copy.offset = 1ull << 40;
	(void) door_send(&fixture.clients[1], DIRECTORY_REPLICA, &copy, sizeof(copy));
	do
	{
		looked = tables->looked;
		door_step(&fixture.door);
		assert_true(tables->looked - looked <= TABLES_ROUND);
		rounds++;
	} while (count_replies(&fixture.clients[1], &status) == 0);
	assert_int_equal(status, FABRIC_OK);
	assert_int_equal(rounds, 2);
	/* It finds what it was told, and so does a walk over all. */
	{
		DirectoryReplica first, again;
		DirectoryReplicas reply;
		uint32_t found = 0;

		assert_int_equal(call(1, DIRECTORY_REPLICA, &copy, sizeof(copy), &first), FABRIC_OK);
		assert_int_equal(call(1, DIRECTORY_REPLICA, &copy, sizeof(copy), &again), FABRIC_OK);
		assert_memory_equal(&first, &again, sizeof(first));
		replicas = (DirectoryReplicasRequest){.tree = 77};
		do
		{
			assert_int_equal(call(1, DIRECTORY_REPLICAS, &replicas, sizeof(replicas), &reply), FABRIC_OK);
			assert_true(reply.position >= replicas.position);
			replicas.position = reply.position;
			found += reply.count;
		} while (reply.count > 0);
		assert_int_equal(found, TABLES_ROUND + 11);
	}
	close_fixture();
}

/* A large tree goes at once, and its memory in many rounds. */
static void
test_drop(void **state)
{
	DirectoryTree tree;
	ServiceTables *tables;
	uint64_t left;

	open_fixture(256 * MEGABYTE, no_quotas);
	tables = &fixture.door.service->tables;
	tree.tree = create(0, 1).record.tree;
	grow(0, tree.tree, 60);
	assert_int_equal(call(0, DIRECTORY_DROP, &tree, sizeof(tree), NULL), FABRIC_OK);
	assert_int_equal(call(0, DIRECTORY_READ, &tree, sizeof(tree), NULL), FABRIC_NOT_FOUND);
	assert_int_equal(tables->used, 0);
	left = tables->quarantined;
	assert_true(left > 4 * QUARANTINE_FREE_UNITS);
	for (tables->slots[tables->going_first - 1].due_us = 0; tables->quarantined > 0;
	     left = tables->quarantined)
	{
		expect_served();
		assert_true(left - tables->quarantined < QUARANTINE_FREE_UNITS + TABLES_EXTENT_UNITS);
		assert_true(left > tables->quarantined);
	}
	close_fixture();
}

/* Who finds no memory but what is in quarantine waits for it, and nobody else does. */
static void
wait_for_quarantine(const uint64_t quotas[DOOR_TENANTS])
{
	const DirectoryCreate request = {.token = {5, 5}, .record = {.format = narrow}};
	DirectoryExtentRequest extent = {.extents = 1};
	DirectoryTree tree;
	FabricStatus status = FABRIC_OK;
	ServiceTables *tables;

	open_fixture(SERVICE_MIN_BYTES, quotas);
	tables = &fixture.door.service->tables;
	tree.tree = extent.tree = create(0, 1).record.tree;
	for (; status == FABRIC_OK; extent.extents++)
		status = call(0, DIRECTORY_EXTENT, &extent, sizeof(extent), NULL);
	assert_int_equal(status, quotas[0] > 0 ? FABRIC_QUOTA : FABRIC_NO_MEMORY);
	assert_int_equal(call(0, DIRECTORY_DROP, &tree, sizeof(tree), NULL), FABRIC_OK);
	tables->slots[tables->going_first - 1].due_us = UINT64_MAX;
	(void) door_send(&fixture.clients[0], DIRECTORY_CREATE, &request, sizeof(request));
	for (int i = 0; i < 20; i++)
	{
		expect_served();
		assert_int_equal(count_replies(&fixture.clients[0], &status), 0);
	}
	tables->slots[tables->going_first - 1].due_us = 0;
	for (int i = 0; count_replies(&fixture.clients[0], &status) == 0; i++)
	{
		assert_true(i < 3);
		expect_served();
	}
	assert_int_equal(status, FABRIC_OK);
	close_fixture();
}

static void
test_full_node(void **state)
{
	wait_for_quarantine(no_quotas);
}

static void
test_full_quota(void **state)
{
	wait_for_quarantine((const uint64_t[DOOR_TENANTS]){EXTENT_MIN_BYTES * 8, 0});
}

/* Whoever makes and drops trees all the time waits for the places of its own, and takes nobody else's. */
static void
test_places_of_trees(void **state)
{
	const DirectoryCreate request = {.token = {5, 5}, .record = {.format = narrow}};
	ServiceTables *tables;
	FabricStatus status;

	open_fixture(16 * MEGABYTE, no_quotas);
	tables = &fixture.door.service->tables;
	/* A quarter of them is the other tenant's. */
	for (uint32_t i = 0; i < TREES - TREES / 4; i++)
	{
		DirectoryTree tree = {create(0, 100 + i).record.tree};

		assert_int_equal(call(0, DIRECTORY_DROP, &tree, sizeof(tree), NULL), FABRIC_OK);
		for (uint32_t k = 0; k < TREES; k++)
			tables->slots[k].due_us = UINT64_MAX;
	}
	(void) door_send(&fixture.clients[0], DIRECTORY_CREATE, &request, sizeof(request));
	for (int i = 0; i < 5; i++)
		expect_served();
	assert_int_equal(count_replies(&fixture.clients[0], &status), 0);
	for (uint32_t i = 0; i < TREES / 4; i++)
		(void) create(1, i);
	for (uint32_t k = 0; k < TREES; k++)
		tables->slots[k].due_us = 0;
	for (int i = 0; count_replies(&fixture.clients[0], &status) == 0; i++)
	{
		assert_true(i < 3);
		expect_served();
	}
	assert_int_equal(status, FABRIC_OK);
	close_fixture();
}

/* Who waits and goes leaves nothing behind; the drop of somebody else's tree does not end the waiting of one that has no room. */
static void
test_waits_and_goes(void **state)
{
	const DirectoryCreate request = {.token = {5, 5}, .record = {.format = narrow}};
	ServiceTables *tables;
	DirectoryTree tree;
	DirectoryExtentRequest extent = {.extents = 1};
	uint64_t trees;

	open_fixture(SERVICE_MIN_BYTES, no_quotas);
	tables = &fixture.door.service->tables;
	tree.tree = extent.tree = create(0, 1).record.tree;
	while (call(0, DIRECTORY_EXTENT, &extent, sizeof(extent), NULL) == FABRIC_OK)
		extent.extents++;
	assert_int_equal(call(0, DIRECTORY_DROP, &tree, sizeof(tree), NULL), FABRIC_OK);
	tables->slots[tables->going_first - 1].due_us = UINT64_MAX;
	(void) door_send(&fixture.clients[0], DIRECTORY_CREATE, &request, sizeof(request));
	expect_served();
	door_disconnect(&fixture.clients[0]);
	expect_served();
	trees = tables->trees;
	tables->slots[tables->going_first - 1].due_us = 0;
	for (int i = 0; i < 5; i++)
		expect_served();
	assert_int_equal(tables->trees, trees);
	assert_int_equal(tables->used, 0);
	close_fixture();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pipelined_calls),
		cmocka_unit_test(test_looks),
		cmocka_unit_test(test_drop),
		cmocka_unit_test(test_full_node),
		cmocka_unit_test(test_full_quota),
		cmocka_unit_test(test_places_of_trees),
		cmocka_unit_test(test_waits_and_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

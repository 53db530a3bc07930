/*
 * test_directory.c
 *		Calls to a memory node's service, from the client's side: answers that no sound memory node gives, calls whose fate is not
 *		known, and what tests are told of chains and calls (tree/client/directory_call.c, directory_replicas.c, crash_point.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/tree_fixture.h"
#include "tree/client/directory.h"

#define ANSWERS 4

/* What calls answer, in their order; those behind it reach the memory node. */
static struct
{
	FabricStatus status[ANSWERS];
	int count;
	int next;
	const void *reply;
	uint32_t reply_bytes;
} script;

/* Chains and calls, as they were told. */
static struct
{
	char names[8][128];
	bool before[8];
	bool arrived[8]; /* the chain has read its word by then */
	int count;
} told;

/* What a chain reads: all ones until it has. */
static const uint64_t *arrival;

extern FabricStatus __real_fabric_call(FabricEndpoint *endpoint, uint16_t method, const void *request,
                                       uint32_t request_bytes, void *reply, uint32_t *reply_bytes);
extern FabricStatus __wrap_fabric_call(FabricEndpoint *endpoint, uint16_t method, const void *request,
                                       uint32_t request_bytes, void *reply, uint32_t *reply_bytes);

FabricStatus
__wrap_fabric_call(FabricEndpoint *endpoint, uint16_t method, const void *request, uint32_t request_bytes,
                   void *reply, uint32_t *reply_bytes)
{
	FabricStatus status;

	if (script.next >= script.count)
		return __real_fabric_call(endpoint, method, request, request_bytes, reply, reply_bytes);
	status = script.status[script.next++];
	if (status == FABRIC_OK && script.reply != NULL)
	{
		if (script.reply_bytes > 0 && script.reply_bytes <= *reply_bytes)
			memcpy(reply, script.reply, script.reply_bytes);
		*reply_bytes = script.reply_bytes;
	}
	return status;
}

static void
answer(int count, FabricStatus status, const void *reply, uint32_t bytes)
{
	script.count = count;
	script.next = 0;
	for (int i = 0; i < ANSWERS; i++)
		script.status[i] = status;
	script.reply = reply;
	script.reply_bytes = bytes;
}

/* A call with a reply of eight bytes. */
static TreeStatus
call(uint64_t *reply)
{
	DirectoryTree request = {.tree = 1};

	return directory_call(client.tree, 0, DIRECTORY_READ, &request, sizeof(request), reply, sizeof(*reply));
}

/* A reply has the length that it must have, and no other. */
static void
test_length(void **state)
{
	const uint64_t words[2] = {77, 78};
	uint64_t reply[2] = {0};

	answer(1, FABRIC_OK, words, 8);
	assert_int_equal(call(reply), TREE_OK);
	assert_int_equal(reply[0], 77);
	for (uint32_t bytes = 0; bytes <= 16; bytes++)
	{
		if (bytes == 8)
			continue;
		answer(1, FABRIC_OK, words, bytes);
		assert_int_equal(call(reply), TREE_DAMAGED);
	}
}

/* What each refusal means. */
static void
test_refusals(void **state)
{
	static const struct
	{
		FabricStatus answer;
		TreeStatus status;
		TreeFull full;
	} cases[] = {
		{FABRIC_NOT_FOUND, TREE_NOT_FOUND, TREE_FULL_MEMORY},
		{FABRIC_NO_MEMORY, TREE_MEMORY_FULL, TREE_FULL_MEMORY},
		{FABRIC_QUOTA, TREE_MEMORY_FULL, TREE_FULL_QUOTA},
		{FABRIC_HOST_FULL, TREE_MEMORY_FULL, TREE_FULL_HOST},
		{FABRIC_TOO_MANY, TREE_MEMORY_FULL, TREE_FULL_TREES},
		{FABRIC_RANGE, TREE_INVALID, TREE_FULL_MEMORY},
		{FABRIC_PROTOCOL, TREE_INVALID, TREE_FULL_MEMORY},
		{FABRIC_DENIED, TREE_INVALID, TREE_FULL_MEMORY},
		{FABRIC_DRAINING, TREE_UNREACHABLE, TREE_FULL_MEMORY},
	};
	uint64_t reply;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		answer(1, cases[i].answer, NULL, 0);
		assert_int_equal(call(&reply), cases[i].status);
		assert_int_equal(script.next, 1);
		if (cases[i].status == TREE_MEMORY_FULL)
			assert_int_equal(tree_full_by(client.tree), cases[i].full);
		assert_int_equal(client.tree->doubt, 0);
	}
}

/* A call whose fate is not known is made again, behind a reset of the channel, and not if the client is to stop. */
static void
test_lost(void **state)
{
	static const FabricStatus lost[] = {FABRIC_LOST, FABRIC_TIMED_OUT, FABRIC_STOPPED};
	const uint64_t word = 77;
	uint64_t reply;

	for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++)
	{
		FabricCounters before, after;

		fabric_counters(client.endpoints[0], &before);
		answer(2, lost[i], &word, 8);
		script.status[1] = FABRIC_OK;
		assert_int_equal(call(&reply), TREE_OK);
		assert_int_equal(script.next, 2);
		assert_int_equal(client.tree->doubt, 0);
		fabric_counters(client.endpoints[0], &after);
		assert_int_equal(after.resets, before.resets + 1);
		answer(2, lost[i], &word, 8);
		script.status[1] = FABRIC_OK;
		instance.environment->slots[0].stop = 1;
		assert_int_equal(call(&reply), TREE_STOPPED);
		instance.environment->slots[0].stop = 0;
		assert_int_equal(script.next, 1);
	}
	client_silence_ends(client.tree);
}

/* A list of copies goes on, and has no more than its room. */
static void
test_list_of_copies(void **state)
{
	DirectoryReplicas list = {.position = 7, .count = 1};
	DirectoryReplicas replicas;
	uint64_t position;

	for (uint64_t from = 5; from <= 8; from++)
	{
		position = from;
		answer(1, FABRIC_OK, &list, sizeof(list));
		assert_int_equal(directory_replicas(client.tree, 0, 1, &position, &replicas),
		                 from < 7 ? TREE_OK : TREE_DAMAGED);
		assert_int_equal(position, from < 7 ? 7 : from);
	}
	/* Its end may be anywhere. */
	list.count = 0;
	position = 7;
	answer(1, FABRIC_OK, &list, sizeof(list));
	assert_int_equal(directory_replicas(client.tree, 0, 1, &position, &replicas), TREE_OK);
	for (uint32_t count = DIRECTORY_REPLICAS_MAX - 1; count <= DIRECTORY_REPLICAS_MAX + 1; count++)
	{
		list.count = count;
		position = 0;
		answer(1, FABRIC_OK, &list, sizeof(list));
		assert_int_equal(directory_replicas(client.tree, 0, 1, &position, &replicas),
		                 count <= DIRECTORY_REPLICAS_MAX ? TREE_OK : TREE_DAMAGED);
	}
}

/* Records are changed at memory nodes that there are, of trees that there are. */
static void
test_update(void **state)
{
	TreeRecord record = {.tree = 1};

	answer(1, FABRIC_OK, NULL, 0);
	script.reply = &record;
	assert_int_equal(tree_record_update_at(client.tree, 0, &record), TREE_OK);
	assert_int_equal(script.next, 1);
	answer(1, FABRIC_OK, NULL, 0);
	assert_int_equal(tree_record_update_at(client.tree, client.tree->options.nodes, &record), TREE_INVALID);
	record.tree = 0;
	assert_int_equal(tree_record_update_at(client.tree, 0, &record), TREE_INVALID);
	assert_int_equal(script.next, 0);
}

static void
note_step(void *argument, const char *name, bool before)
{
	assert_true(told.count < 8);
	snprintf(told.names[told.count], sizeof(told.names[0]), "%s", name);
	told.arrived[told.count] = arrival != NULL && *arrival != ~0ull;
	told.before[told.count++] = before;
}

static void
assert_reported(int i, const char *name, bool before)
{
	assert_true(i < told.count);
	assert_string_equal(told.names[i], name);
	assert_int_equal(told.before[i], before);
}

/* Each chain and each call is told of before and behind it, by a name that says what it does; a long name is cut. */
static void
test_steps(void **state)
{
	FabricEndpoint *endpoint = client.endpoints[0];
	uint64_t words[32], ticket;
	FabricOp ops[32];
	TreeNodeStatus status;
	char name[160] = "READ";

	answer(0, FABRIC_OK, NULL, 0);
	for (int i = 0; i < 32; i++)
	{
		ops[i] = (FabricOp){.opcode = FABRIC_READ, .region = FABRIC_NODES, .length = 8, .buffer = &words[i]};
		if (i > 0)
			strcat(name, " READ");
	}
	tree_client_crash_points(client.tree, note_step);

	memset(&told, 0, sizeof(told));
	words[0] = ~0ull;
	arrival = &words[0];
	assert_int_equal(crash_point_execute(client.tree, endpoint, ops, 1), FABRIC_OK);
	arrival = NULL;
	assert_reported(0, "READ", true);
	assert_reported(1, "READ", false);
	assert_true(!told.arrived[0] && told.arrived[1]);
	assert_int_equal(told.count, 2);

	memset(&told, 0, sizeof(told));
	assert_int_equal(crash_point_execute(client.tree, endpoint, ops, 32), FABRIC_OK);
	name[63] = '\0';
	assert_reported(0, name, true);
	assert_reported(1, name, false);

	memset(&told, 0, sizeof(told));
	ops[0] = (FabricOp){
		.opcode = FABRIC_COMPARE_SWAP, .region = FABRIC_LOCKS, .length = 8, .compare = 1, .operand = 1};
	assert_int_equal(step_post(client.tree, endpoint, ops, 2, &ticket), FABRIC_OK);
	assert_reported(0, "SWAP READ", true);
	assert_int_equal(told.count, 1);
	assert_int_equal(step_wait(client.tree, endpoint, ticket, ops, 2), FABRIC_OK);
	assert_reported(1, "SWAP READ", false);

	memset(&told, 0, sizeof(told));
	assert_int_equal(tree_node_status(client.tree, 0, &status), TREE_OK);
	assert_reported(0, "call STATUS", true);
	assert_reported(1, "call STATUS", false);
	assert_int_equal(told.count, 2);

	tree_client_crash_points(client.tree, NULL);
	memset(&told, 0, sizeof(told));
	assert_int_equal(crash_point_execute(client.tree, endpoint, ops + 1, 1), FABRIC_OK);
	assert_int_equal(tree_node_status(client.tree, 0, &status), TREE_OK);
	assert_int_equal(told.count, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_length),         cmocka_unit_test(test_refusals), cmocka_unit_test(test_lost),
		cmocka_unit_test(test_list_of_copies), cmocka_unit_test(test_update),   cmocka_unit_test(test_steps),
	};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}

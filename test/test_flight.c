/*
 * test_flight.c
 *		Chains in flight of the verbs transport on a device that this file plays: what is posted when, and what is believed of its
 * answers.  script/test long rdma has the real thing.
 */
#include <stdlib.h>
#include <string.h>

#include "support/testing.h"
#include "rdma/verbs/verbs_flight.h"

#define MEMORY_WORDS 64u
#define LOCK_WORDS 8u
#define MAX_POSTS 64

/* The device: it executes what was posted when it is polled, as much as it may. */
struct VerbsQueue
{
	uint64_t memory[MEMORY_WORDS];
	uint64_t locks[LOCK_WORDS];
	VerbsRequest requests[MAX_POSTS * 8];
	int posted; /* requests */
	int executed;
	struct
	{
		int end; /* requests up to its last one */
		uint64_t id;
	} posts[MAX_POSTS];
	int post_count;
	int completed; /* posts */
	int may_complete;
	int room;          /* posts that it takes */
	bool loses_answer; /* atomics are executed, but what they bring back is lost */
};

typedef struct Fixture
{
	struct VerbsQueue queue;
	VerbsFlight flight;
	uint64_t fences;
} Fixture;

static VerbsOutcome
queue_post(VerbsQueue *queue, const VerbsRequest *requests, int count, uint64_t id)
{
	if (queue->post_count >= queue->room)
		return VERBS_NONE;
	assert_in_range(count, 1, FABRIC_MAX_CHAIN);
	memcpy(&queue->requests[queue->posted], requests, sizeof(*requests) * (size_t) count);
	queue->posted += count;
	queue->posts[queue->post_count].end = queue->posted;
	queue->posts[queue->post_count++].id = id;
	return VERBS_DONE;
}

static void
execute(const VerbsQueue *queue, const VerbsRequest *request)
{
	uint64_t *word = (uint64_t *) (uintptr_t) request->remote_address;
	uint64_t old = *word;

	if (request->opcode == VERBS_READ)
		memcpy(request->buffer, word, request->length);
	else if (request->opcode == VERBS_WRITE)
		memcpy(word, request->buffer, request->length);
	else
	{
		if (request->opcode == VERBS_FETCH_ADD)
			*word += request->operand;
		else if (old == request->compare)
			*word = request->operand;
		if (!queue->loses_answer)
			memcpy(request->buffer, &old, sizeof(old));
	}
}

static VerbsOutcome
queue_poll(VerbsQueue *queue, uint64_t *id, const char **reason)
{
	if (queue->completed == queue->post_count || queue->may_complete == 0)
		return VERBS_NONE;
	queue->may_complete--;
	while (queue->executed < queue->posts[queue->completed].end)
		execute(queue, &queue->requests[queue->executed++]);
	*id = queue->posts[queue->completed++].id;
	return VERBS_DONE;
}

static const VerbsDriver played = {.queue_post = queue_post, .queue_poll = queue_poll};

static int
setup(void **state)
{
	Fixture *fixture = calloc(1, sizeof(*fixture));

	fixture->flight.driver = &played;
	fixture->flight.arena = aligned_alloc(64, VERBS_ARENA_BYTES);
	fixture->flight.arena_bytes = VERBS_ARENA_BYTES;
	/* What lay in the arena before looks like a free lock word. */
	memset(fixture->flight.arena, 0, VERBS_ARENA_BYTES);
	flight_clear(&fixture->flight);
	fixture->flight.queue = &fixture->queue;
	fixture->flight.broken = FABRIC_OK;
	fixture->flight.grant.windows[VERBS_PART] =
		(VerbsWindow){.end = sizeof(fixture->queue.memory), .base = (uintptr_t) fixture->queue.memory};
	fixture->flight.grant.windows[VERBS_LOCKS] =
		(VerbsWindow){.end = sizeof(fixture->queue.locks), .base = (uintptr_t) fixture->queue.locks};
	fixture->queue.room = MAX_POSTS;
	*state = fixture;
	return 0;
}

static int
teardown(void **state)
{
	Fixture *fixture = *state;

	free(fixture->flight.arena);
	free(fixture);
	return 0;
}

static FabricOp
operation(FabricOpcode opcode, FabricRegion region, uint64_t word, uint64_t *buffer)
{
	return (FabricOp){.opcode = (uint8_t) opcode,
	                  .region = (uint8_t) region,
	                  .length = 8,
	                  .offset = word * 8,
	                  .buffer = buffer};
}

static FabricOp
swap(uint64_t word, uint64_t compare, uint64_t operand)
{
	FabricOp op = operation(FABRIC_COMPARE_SWAP, FABRIC_LOCKS, word, NULL);

	op.compare = compare;
	op.operand = operand;
	return op;
}

static VerbsChain *
post(Fixture *fixture, FabricOp *ops, int count)
{
	VerbsChain *chain = NULL;

	assert_int_equal(flight_post(&fixture->flight, ops, count, 1, &fixture->fences, &chain), FABRIC_OK);
	assert_non_null(chain);
	return chain;
}

/* Lets the device complete so many posts. */
static VerbsOutcome
complete(Fixture *fixture, int posts)
{
	const char *reason = NULL;
	VerbsOutcome outcome;

	fixture->queue.may_complete = posts;
	outcome = flight_poll(&fixture->flight, &reason);
	assert_true(outcome == VERBS_NONE || reason != NULL);
	return outcome;
}

static void
test_results(void **state)
{
	Fixture *fixture = *state;
	uint64_t written = 7, found = 0;
	FabricOp lock[] = {swap(0, 0, 5), operation(FABRIC_READ, FABRIC_NODES, 1, &found)};
	FabricOp unlock[] = {operation(FABRIC_WRITE, FABRIC_NODES, 1, &written), swap(0, 5, 0)};
	VerbsChain *chain;

	fixture->queue.memory[1] = 6;
	chain = post(fixture, lock, 2);
	assert_false(chain->done);
	assert_int_equal(complete(fixture, 1), VERBS_NONE);
	assert_true(chain->done && chain->status == FABRIC_OK && lock[0].result == 0 && found == 6);
	chain = post(fixture, unlock, 2);
	assert_int_equal(complete(fixture, 1), VERBS_NONE);
	assert_true(chain->done && unlock[1].result == 5 && fixture->queue.memory[1] == 7);
	/* Nothing of it had to wait: one post each, and not one fence. */
	assert_int_equal(fixture->queue.post_count, 2);
	assert_true(fixture->fences == 0);
}

/* A lock that looks free because its answer never came: doubt, and not a lock. */
static void
test_missing_answer(void **state)
{
	Fixture *fixture = *state;
	FabricOp take = swap(3, 0, 5);
	VerbsChain *chain;

	fixture->queue.locks[3] = 4; /* somebody else's */
	fixture->queue.loses_answer = true;
	chain = post(fixture, &take, 1);
	assert_int_equal(complete(fixture, 1), VERBS_LOST);
	assert_false(chain->done);
	flight_break(&fixture->flight, FABRIC_LOST);
	assert_true(chain->done && chain->status == FABRIC_LOST);
	assert_int_equal(flight_post(&fixture->flight, &take, 1, 2, &fixture->fences, &chain), FABRIC_LOST);
}

/* A lock word is read by an atomic, too. */
static void
test_missing_lock_word(void **state)
{
	Fixture *fixture = *state;
	uint64_t found = 0;
	FabricOp look = operation(FABRIC_READ, FABRIC_LOCKS, 3, &found);

	fixture->queue.locks[3] = 4;
	post(fixture, &look, 1);
	assert_int_equal(fixture->queue.requests[0].opcode, VERBS_FETCH_ADD);
	assert_int_equal(complete(fixture, 1), VERBS_NONE);
	assert_true(found == 4 && fixture->queue.locks[3] == 4);
	fixture->queue.loses_answer = true;
	post(fixture, &look, 1);
	assert_int_equal(complete(fixture, 1), VERBS_LOST);
}

/* Nor are answers mixed up if the same words stand for missing ones in two queues. */
static void
test_another_word_for_each_queue(void **state)
{
	Fixture *fixture = *state;
	uint64_t missing = fixture->flight.missing;

	flight_clear(&fixture->flight);
	assert_true(fixture->flight.missing != missing);
}

/* A device without fences: what has to wait is posted when all before it has completed, and what is behind it afterwards. */
static void
test_waits(void **state)
{
	Fixture *fixture = *state;
	struct VerbsQueue *queue = &fixture->queue;
	uint64_t found[2] = {0}, written = 9;
	FabricOp first[] = {operation(FABRIC_READ, FABRIC_NODES, 0, &found[0]), swap(0, 0, 5)};
	FabricOp second[] = {operation(FABRIC_WRITE, FABRIC_NODES, 0, &written)};
	FabricOp third[] = {operation(FABRIC_READ, FABRIC_NODES, 0, &found[1])};
	VerbsChain *chains[3];

	queue->memory[0] = 1;
	chains[0] = post(fixture, first, 2);
	chains[1] = post(fixture, second, 1);
	chains[2] = post(fixture, third, 1);
	assert_int_equal(queue->posted, 1);
	assert_int_equal(complete(fixture, 1), VERBS_NONE);
	assert_false(chains[0]->done);
	assert_int_equal(queue->posted, 2);
	assert_int_equal(complete(fixture, 1), VERBS_NONE);
	assert_true(chains[0]->done && found[0] == 1 && first[1].result == 0);
	/* The WRITE waited for the atomic; the READ behind it waits for nothing. */
	assert_int_equal(queue->posted, 4);
	assert_false(chains[1]->done || chains[2]->done);
	assert_int_equal(complete(fixture, 2), VERBS_NONE);
	assert_true(chains[1]->done && chains[2]->done && found[1] == 9);
	assert_true(fixture->fences == 2);
	for (int i = 0; i < queue->posted; i++)
		assert_false(queue->requests[i].fence);
}

/* A device that keeps fences gets all at once. */
static void
test_fences(void **state)
{
	Fixture *fixture = *state;
	uint64_t found = 0, written = 9;
	FabricOp first[] = {operation(FABRIC_READ, FABRIC_NODES, 0, &found), swap(0, 0, 5)};
	FabricOp second[] = {operation(FABRIC_WRITE, FABRIC_NODES, 0, &written)};

	fixture->flight.device_fences = true;
	post(fixture, first, 2);
	post(fixture, second, 1);
	assert_int_equal(fixture->queue.posted, 3);
	assert_false(fixture->queue.requests[0].fence);
	assert_true(fixture->queue.requests[1].fence && fixture->queue.requests[2].fence);
	assert_true(fixture->fences == 2);
	assert_int_equal(complete(fixture, 2), VERBS_NONE);
	assert_true(fixture->queue.memory[0] == 9);
}

/* A device that takes no more for now, and one that takes nothing at all. */
static void
test_no_room(void **state)
{
	Fixture *fixture = *state;
	FabricOp ops[2][1] = {{swap(0, 0, 5)}, {swap(0, 5, 6)}};
	FabricOp last = swap(0, 6, 7);
	VerbsChain *chains[2];
	VerbsChain *unused;

	fixture->queue.room = 1;
	chains[0] = post(fixture, ops[0], 1);
	chains[1] = post(fixture, ops[1], 1);
	assert_int_equal(fixture->queue.posted, 1);
	fixture->queue.room = 2;
	assert_int_equal(complete(fixture, 2), VERBS_NONE);
	assert_true(chains[0]->done && chains[1]->done && ops[1][0].result == 5);
	assert_int_equal(flight_post(&fixture->flight, &last, 1, 1, &fixture->fences, &unused), FABRIC_LOST);
	assert_true(fixture->flight.broken == FABRIC_LOST);
}

/* As many chains as there are places; each is found by its ticket until it is waited for. */
static void
test_places(void **state)
{
	Fixture *fixture = *state;
	static FabricOp ops[VERBS_CHAINS + 1];
	VerbsChain *chain;

	for (uint64_t i = 0; i < VERBS_CHAINS; i++)
	{
		ops[i] = operation(FABRIC_FETCH_ADD, FABRIC_NODES, 0, NULL);
		ops[i].operand = 1;
		assert_int_equal(flight_post(&fixture->flight, &ops[i], 1, i + 1, &fixture->fences, &chain),
		                 FABRIC_OK);
	}
	assert_int_equal(
		flight_post(&fixture->flight, &ops[VERBS_CHAINS], 1, VERBS_CHAINS + 1, &fixture->fences, &chain),
		FABRIC_BUSY);
	assert_int_equal(complete(fixture, MAX_POSTS), VERBS_NONE);
	for (uint64_t i = VERBS_CHAINS; i > 0; i--)
	{
		chain = flight_find(&fixture->flight, i);
		assert_non_null(chain);
		assert_true(chain->done && ops[i - 1].result == i - 1);
		chain->used = false;
		assert_null(flight_find(&fixture->flight, i));
	}
	assert_true(fixture->flight.arena_taken == 0);
}

/* What the channel does not reach is not written, no request for it leaves, and a READ of it brings zeroes. */
static void
test_windows(void **state)
{
	Fixture *fixture = *state;
	VerbsWindow *windows = fixture->flight.grant.windows;
	uint64_t buffer[3] = {5, 6, 7};
	FabricOp ops[3];
	VerbsChain *chain = NULL;

	windows[VERBS_REDO] = (VerbsWindow){.end = 64, .base = (uintptr_t) fixture->queue.memory, .key = 2};
	windows[VERBS_PART] =
		(VerbsWindow){.first = 256, .end = 320, .base = (uintptr_t) &fixture->queue.memory[32], .key = 1};
	for (uint64_t word = 0; word < MEMORY_WORDS; word++)
		fixture->queue.memory[word] = 100 + word;
	for (int i = 0; i < 4; i++)
	{
		/* In front of the part, behind it, across its end, and an atomic. */
		const uint64_t words[] = {31, 40, 39, 40};

		ops[0] = operation(i == 3 ? FABRIC_FETCH_ADD : FABRIC_WRITE, FABRIC_NODES, words[i], buffer);
		ops[0].length = i == 2 ? 16 : 8;
		assert_int_equal(flight_post(&fixture->flight, ops, 1, 1, &fixture->fences, &chain), FABRIC_RANGE);
	}
	assert_int_equal(fixture->queue.posted, 0);
	ops[0] = operation(FABRIC_READ, FABRIC_NODES, 40, &buffer[0]);
	ops[1] = operation(FABRIC_READ, FABRIC_NODES, 33, &buffer[1]);
	ops[2] = operation(FABRIC_READ, FABRIC_NODES, 7, &buffer[2]);
	chain = post(fixture, ops, 3);
	assert_int_equal(complete(fixture, MAX_POSTS), VERBS_NONE);
	assert_true(chain->done);
	assert_true(buffer[0] == 0 && buffer[1] == 133 && buffer[2] == 107);
	for (int i = 0; i < 3; i++)
		assert_int_equal(fixture->queue.requests[i].remote_key, i == 1 ? 1 : 2);
	chain->used = false;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_results, setup, teardown),
		cmocka_unit_test_setup_teardown(test_missing_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_missing_lock_word, setup, teardown),
		cmocka_unit_test_setup_teardown(test_another_word_for_each_queue, setup, teardown),
		cmocka_unit_test_setup_teardown(test_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fences, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_places, setup, teardown),
		cmocka_unit_test_setup_teardown(test_windows, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

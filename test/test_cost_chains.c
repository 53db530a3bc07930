/*
 * test_cost_chains.c
 *		What the cost model charges for each kind of chain, to the picosecond, and to which queue: doc/internals/simulator.md has the
 *		parameters.  The sums are written out here: what is left out of the model, or counted twice, shows.
 */
#include <string.h>

#include "internal.h"
#include "support/testing.h"
#include "../sim/ycsb.h"

#define NS PICOSECONDS_PER_NS
/* The table of doc/internals/simulator.md. */
#define POST (200 * NS)
#define DOORBELL_LIST (550 * NS)
#define REQUEST 9000u
#define REQUEST_WRITE 10800u
#define REQUEST_LATENCY (150 * NS)
#define SWITCH (250 * NS)
#define RESPOND 9100u
#define RESPOND_LATENCY (100 * NS)
#define PCIE_READ (550 * NS)
#define BYTE 80u
#define BUCKET (400 * NS)
#define BACK (100 * NS)
#define COMPLETE (400 * NS)
/* Bytes on the wire of a request, of an atomic, of an answer to that: each is a packet with headers. */
#define HEADER 42u
#define READ_WIRE (16 + HEADER)
#define ATOMIC_WIRE (28 + HEADER)
#define WORD_WIRE (8 + HEADER)
#define SENT (POST + REQUEST_LATENCY + SWITCH)
#define ANSWERED (RESPOND_LATENCY + SWITCH + BACK + COMPLETE)

#define LEAF 1024u
#define CELL 16u

/* Two cards, at rest at first. */
typedef struct Cards
{
	CostCard requester;
	CostCard responder;
	CostPlacement placement;
} Cards;

static Cards cards;

static int
setup(void **state)
{
	memset(&cards, 0, sizeof(cards));
	return 0;
}

static FabricOp
read_of(uint32_t length)
{
	return (FabricOp){.opcode = FABRIC_READ, .region = FABRIC_NODES, .length = length};
}

static FabricOp
write_of(uint32_t length)
{
	return (FabricOp){.opcode = FABRIC_WRITE, .region = FABRIC_NODES, .length = length};
}

/* A swap of a lock word; `operand` 0: that frees it. */
static FabricOp
swap_of(uint32_t word, uint64_t operand)
{
	return (FabricOp){.opcode = FABRIC_COMPARE_SWAP,
	                  .region = FABRIC_LOCKS,
	                  .length = 8,
	                  .offset = word * 8,
	                  .operand = operand};
}

/* A chain alone, posted at the time 0: when its client knows. Its last operation takes effect at *effect. */
static uint64_t
chain(const FabricOp *ops, int count, uint64_t *effect)
{
	CostFlight flight = {0};
	uint64_t now = cost_send(&cards.requester, 0, 0, ops, count, &flight);

	cost_arrive(&cards.responder, now, &flight);
	for (int i = 0; i < count; i++)
		*effect = cost_serve(&cards.responder, &cards.placement, now, &ops[i], &flight);
	return cost_answer(&cards.responder, &cards.requester, now, &flight);
}

static uint64_t
chain_of_one(FabricOp op)
{
	uint64_t effect;

	return chain(&op, 1, &effect);
}

static void
assert_used(const CostCard *card, uint64_t request, uint64_t respond, uint64_t out, uint64_t in,
            uint64_t pcie_read, uint64_t pcie_write)
{
	const uint64_t used[COST_RESOURCES] = {
		[COST_REQUEST] = request, [COST_RESPOND] = respond,     [COST_OUT] = out,
		[COST_IN] = in,           [COST_PCIE_READ] = pcie_read, [COST_PCIE_WRITE] = pcie_write};

	for (int i = 0; i < COST_RESOURCES; i++)
		assert_int_equal(card->used[i], used[i]);
}

static void
test_read(void **state)
{
	assert_int_equal(chain_of_one(read_of(LEAF)), SENT + REQUEST + READ_WIRE * BYTE + RESPOND + PCIE_READ +
	                                                  LEAF * BYTE + (LEAF + HEADER) * BYTE + ANSWERED);
	assert_used(&cards.requester, REQUEST, 0, READ_WIRE * BYTE, (LEAF + HEADER) * BYTE, 0, 0);
	assert_used(&cards.responder, 0, RESPOND, (LEAF + HEADER) * BYTE, READ_WIRE * BYTE, LEAF * BYTE, 0);
}

/* A cell goes to the card with its request, a leaf is fetched from the client's memory. */
static void
test_write(void **state)
{
	const uint64_t cell = CELL + 16 + HEADER, leaf = LEAF + 16 + HEADER;

	assert_int_equal(chain_of_one(write_of(CELL)),
	                 SENT + REQUEST_WRITE + cell * BYTE + RESPOND + HEADER * BYTE + ANSWERED);
	assert_used(&cards.requester, REQUEST_WRITE, 0, cell * BYTE, HEADER * BYTE, 0, 0);
	assert_used(&cards.responder, 0, RESPOND, HEADER * BYTE, cell * BYTE, 0, CELL * BYTE);
	setup(state);
	/* The wait for the longest queue of its card is none: it is the first. */
	assert_int_equal(chain_of_one(write_of(LEAF)),
	                 SENT + PCIE_READ + REQUEST_WRITE + leaf * BYTE + RESPOND + HEADER * BYTE + ANSWERED);
	assert_used(&cards.requester, REQUEST_WRITE, 0, leaf * BYTE, HEADER * BYTE, LEAF * BYTE, 0);
	assert_used(&cards.responder, 0, RESPOND, HEADER * BYTE, leaf * BYTE, 0, LEAF * BYTE);
}

/* A lock word in host memory holds its bucket; on chip it does not. */
static void
test_swap(void **state)
{
	const uint64_t on_chip = SENT + REQUEST + ATOMIC_WIRE * BYTE + RESPOND + WORD_WIRE * BYTE + ANSWERED;

	assert_int_equal(chain_of_one(swap_of(5, 1)), on_chip + BUCKET);
	assert_int_equal(cards.responder.bucket_used[5], BUCKET);
	assert_used(&cards.requester, REQUEST, 0, ATOMIC_WIRE * BYTE, WORD_WIRE * BYTE, 0, 0);
	assert_used(&cards.responder, 0, RESPOND, WORD_WIRE * BYTE, ATOMIC_WIRE * BYTE, 0, 0);
	setup(state);
	cards.placement.chip_locks = true;
	assert_int_equal(chain_of_one(swap_of(5, 1)), on_chip);
	assert_int_equal(cards.responder.bucket_used[5], 0);
	/* Words of nodes are in host memory all the same. */
	setup(state);
	cards.placement.chip_locks = true;
	assert_int_equal(
		chain_of_one((FabricOp){.opcode = FABRIC_FETCH_ADD, .region = FABRIC_NODES, .length = 8}),
		on_chip + BUCKET);
}

/* Two swaps that come at once: in one bucket one behind the other, in two of them together. */
static void
test_buckets(void **state)
{
	static const struct
	{
		uint32_t words[2];
		uint64_t behind;
	} cases[] = {{{5, 5}, BUCKET}, {{5, 5 + COST_BUCKETS}, BUCKET}, {{5, 6}, 0}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		uint64_t effects[2];

		setup(state);
		for (int swap = 0; swap < 2; swap++)
		{
			FabricOp op = swap_of(cases[i].words[swap], 1);
			CostFlight flight = {0};

			cost_arrive(&cards.responder, NS, &flight);
			effects[swap] = cost_serve(&cards.responder, &cards.placement, NS, &op, &flight);
		}
		assert_int_equal(effects[0], NS + RESPOND + BUCKET);
		/* The second one waits for the pipeline, too, where the bucket's queue is not longer. */
		assert_int_equal(effects[1],
		                 cases[i].behind != 0 ? NS + RESPOND + 2 * BUCKET : NS + 2 * RESPOND + BUCKET);
	}
}

/* The swap that frees a word, as Sherman's WRITE: no bucket, and it passes those that wait for one. */
static void
test_release(void **state)
{
	cards.placement.release_by_write = true;
	assert_int_equal(chain_of_one(swap_of(5, 0)),
	                 SENT + REQUEST + ATOMIC_WIRE * BYTE + RESPOND + HEADER * BYTE + ANSWERED);
	assert_int_equal(cards.responder.bucket_used[5], 0);
	assert_int_equal(cards.responder.used[COST_PCIE_WRITE], 8 * BYTE);
	(void) chain_of_one(swap_of(5, 1));
	assert_int_equal(cards.responder.bucket_used[5], BUCKET);
}

/*
 * What depends on each other goes in one chain: one way there and back, one list that the card fetches.  An operation waits at
 * each card for those in front of it, of its own chain, too.
 */
static void
test_chain(void **state)
{
	const FabricOp locked[] = {swap_of(5, 1), read_of(LEAF)};
	const FabricOp freed[] = {write_of(CELL), write_of(CELL), swap_of(5, 0)};
	uint64_t effect;

	cards.placement.chip_locks = true;
	assert_int_equal(chain(locked, 2, &effect), SENT + DOORBELL_LIST + (2 + 1) * REQUEST +
	                                                (ATOMIC_WIRE + READ_WIRE) * BYTE + (2 + 1) * RESPOND +
	                                                PCIE_READ + LEAF * BYTE +
	                                                (WORD_WIRE + LEAF + HEADER) * BYTE + ANSWERED);
	assert_int_equal(cards.responder.served, 2);
	assert_int_equal(cards.requester.used[COST_OUT], (ATOMIC_WIRE + READ_WIRE) * BYTE);
	setup(state);
	cards.placement.chip_locks = true;
	assert_true(chain(freed, 3, &effect) > effect);
	assert_int_equal(effect, SENT + DOORBELL_LIST + (2 + 2) * REQUEST_WRITE + REQUEST +
	                             (2 * (CELL + 16 + HEADER) + ATOMIC_WIRE) * BYTE + (3 + 2) * RESPOND);
}

/* A call and its answer: a message each way, and a processor of the memory node between them. */
#define FRAME 24u
#define CALL (250 * NS)
#define PROCESSORS 4u
#define RECEIVED (RESPOND_LATENCY + COMPLETE)

/* Sent at the time 0, from a card to another one at rest: when the processor there knows. */
static uint64_t
message(CostCard *from, CostCard *to, uint32_t bytes)
{
	CostFlight flight = {0};

	return cost_received(to, cost_message(from, 0, 0, bytes, &flight), bytes, &flight);
}

static void
test_call(void **state)
{
	const uint32_t request = 100, answer = 1000, touched = 4096 + LEAF;
	const uint64_t request_wire = (request + FRAME + 16 + HEADER) * BYTE;
	const uint64_t answer_wire = (answer + FRAME + 16 + HEADER) * BYTE;
	const uint64_t work = CALL + touched * 60;

	assert_int_equal(message(&cards.requester, &cards.responder, request),
	                 SENT + REQUEST_WRITE + request_wire + RESPOND + (request + FRAME) * BYTE + RECEIVED);
	assert_used(&cards.requester, REQUEST_WRITE, 0, request_wire, 0, 0, 0);
	assert_used(&cards.responder, 0, RESPOND, 0, request_wire, 0, (request + FRAME) * BYTE);
	/* The answer is fetched by the memory node's card: it is longer than what goes along with a request. */
	setup(state);
	assert_int_equal(message(&cards.responder, &cards.requester, answer),
	                 SENT + REQUEST_WRITE + answer_wire + PCIE_READ + RESPOND + (answer + FRAME) * BYTE +
	                     RECEIVED);
	assert_used(&cards.responder, REQUEST_WRITE, 0, answer_wire, 0, (answer + FRAME) * BYTE, 0);
	assert_used(&cards.requester, 0, RESPOND, 0, answer_wire, 0, (answer + FRAME) * BYTE);
	/* The first calls find a processor at once; of a rush each waits for those before it. */
	setup(state);
	for (uint64_t i = 0; i < 3 * PROCESSORS; i++)
		assert_int_equal(cost_process(&cards.responder, NS, touched), NS + work + i * (work / PROCESSORS));
	assert_int_equal(cards.responder.used[COST_PROCESSORS], 3 * work);
}

/* One client: each lookup costs its READ, its own work, and the search of what was read. */
static void
test_client(void **state)
{
	YcsbOptions options = {.site = {.nodes = 1,
	                                .servers = 1,
	                                .clients = 1,
	                                .node_bytes = 64 << 20,
	                                .cache_bytes = 1 << 20,
	                                .placement.chip_locks = true,
	                                .techniques = tree_techniques},
	                       .seed = 7,
	                       .entries = 40000,
	                       .warm = 100,
	                       .operations = 1000,
	                       .operation_cost = 500};
	/*
	 * Nanoseconds: up to the card, and from then on, each rounded up.  It is the client's own card: the answer waits for the
	 * request to pass the wire in.
	 */
	const uint64_t there = SENT + REQUEST + READ_WIRE * BYTE + (500 + LEAF * 60 / NS) * NS;
	const uint64_t back =
		RESPOND + PCIE_READ + LEAF * BYTE + (LEAF + HEADER) * BYTE + ANSWERED + READ_WIRE * BYTE;
	const uint64_t read = (there + NS - 1) / NS + (back + NS - 1) / NS;
	YcsbResult result;

	ycsb_run(&options, &result);
	assert_int_equal(result.longest, read);
	assert_int_equal(result.time, 1000 * read);
	assert_int_equal(result.fewest, 1000);
	assert_int_equal(result.most, 1000);
}

/* Chains that are posted: how long one takes that is waited for at once, and eight together; and what the last of some has read. */
typedef struct Posted
{
	uint64_t one;
	uint64_t eight;
	uint64_t word;
} Posted;

#define WORD_OFFSET (32u << 20)

static void
post_chains(void *argument)
{
	static Site site;
	static uint64_t leaves[8][LEAF / 8];
	static SiteClient client;
	SiteOptions options = {.nodes = 1,
	                       .servers = 1,
	                       .clients = 1,
	                       .node_bytes = 64 << 20,
	                       .cache_bytes = 1 << 20,
	                       .techniques = tree_techniques};
	FabricOp ops[8], add[2], read = read_of(8);
	uint64_t tickets[8];
	FabricEndpoint *endpoint;
	Posted *posted = argument;

	site_start(&site, &options);
	site_client_open(&client, &site, 0, 0);
	endpoint = client.tree->options.endpoints[0];
	for (int i = 0; i < 8; i++)
	{
		ops[i] = read_of(LEAF);
		ops[i].buffer = leaves[i];
	}
	posted->one = scheduler_now();
	assert_int_equal(fabric_execute(endpoint, &ops[0], 1), FABRIC_OK);
	posted->one = scheduler_now() - posted->one;
	posted->eight = scheduler_now();
	for (int i = 0; i < 8; i++)
		assert_int_equal(fabric_post(endpoint, &ops[i], 1, &tickets[i]), FABRIC_OK);
	for (int i = 0; i < 8; i++)
		assert_int_equal(fabric_wait(endpoint, tickets[i]), FABRIC_OK);
	posted->eight = scheduler_now() - posted->eight;
	/* The second one waits for the bucket of the first. */
	for (int i = 0; i < 2; i++)
	{
		add[i] = (FabricOp){.opcode = FABRIC_FETCH_ADD,
		                    .region = FABRIC_NODES,
		                    .length = 8,
		                    .offset = WORD_OFFSET,
		                    .operand = 1};
		assert_int_equal(fabric_post(endpoint, &add[i], 1, &tickets[i]), FABRIC_OK);
	}
	read.offset = WORD_OFFSET;
	read.buffer = &posted->word;
	assert_int_equal(fabric_post(endpoint, &read, 1, &tickets[2]), FABRIC_OK);
	for (int i = 0; i < 3; i++)
		assert_int_equal(fabric_wait(endpoint, tickets[i]), FABRIC_OK);
	site_client_close(&client);
	site_stop(&site);
}

static Posted
posted_with(bool posts)
{
	CostOptions cost = {.hosts = 1, .posts = posts};
	Posted posted = {0};

	scheduler_open(1);
	cost_open(&cost);
	coroutine_start(post_chains, &posted, false);
	assert_true(scheduler_run(SCHEDULER_NEVER));
	cost_close();
	scheduler_close();
	return posted;
}

/* They are under way together, and what one endpoint is given takes effect in its order. */
static void
test_posted(void **state)
{
	Posted posted = posted_with(true), each = posted_with(false);

	assert_int_equal(each.one, posted.one);
	assert_true(each.eight >= 8 * each.one);
	assert_true(posted.eight > posted.one && posted.eight < 2 * posted.one);
	assert_int_equal(posted.word, 2);
	assert_int_equal(each.word, 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_read, setup),
		cmocka_unit_test_setup(test_write, setup),
		cmocka_unit_test_setup(test_swap, setup),
		cmocka_unit_test_setup(test_buckets, setup),
		cmocka_unit_test_setup(test_release, setup),
		cmocka_unit_test_setup(test_chain, setup),
		cmocka_unit_test_setup(test_call, setup),
		cmocka_unit_test(test_client),
		cmocka_unit_test(test_posted),
	};

	if (!scheduler_is_here())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

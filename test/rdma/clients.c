/*
 * clients.c
 *		What clients of verbs may not do, what they survive, and what becomes of those that are killed.
 *
 *		clients [--verbs DEVICE] CASE...			against a memory node of its own; else the device is $FABRIC_TEST_VERBS
 *		clients at ADDRESS KEY_FILE kill			against one elsewhere
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "support/fabric_process.h"
#include "rdma/base/transport.h"
#include "rdma/verbs/verbs_flight.h"

#define NODE_BYTES (4u << 20)
/* What a memory node that ends gives to those who hold locks. */
#define DRAIN_MS 60000
#define MAX_CHANNELS 8u
#define BLOCK_WORDS (FABRIC_STRIPE_BYTES / 8)

/* Blocks of one chain, with an unlock behind them. */
#define BLOCKS (FABRIC_MAX_CHAIN - 1)
/* Chains of a client that is killed: more packets than a queue pair of soft-RoCE has in flight, so that some are not sent yet. */
#define KILL_CHAINS 2u
#define AREA_BYTES (4 * FABRIC_UNIT_BYTES)

_Static_assert(KILL_CHAINS *BLOCKS *FABRIC_STRIPE_BYTES <= AREA_BYTES, "the blocks fit the area");

#define ROUNDS 20
#define KILL_ROUNDS 8

/* How long what must not come is waited for. */
#define LATE_MS 200u

/* Of a memory node elsewhere; NULL: each case starts its own. */
static const char *remote_address;
/* The RDMA device of all others. */
static const char *device;

typedef struct Fixture
{
	FabricProcess process; /* if it is ours */
	const char *address;
	uint64_t area; /* AREA_BYTES that are granted */
	uint32_t incarnation;
	TestChannel channel;
} Fixture;

static void
fixture_start(Fixture *fixture)
{
	memset(fixture, 0, sizeof(*fixture));
	fixture->address = remote_address;
	if (remote_address == NULL)
	{
		fabric_process_prepare(&fixture->process, NODE_BYTES, MAX_CHANNELS);
		fabric_process_listen(&fixture->process, false);
		fabric_process_verbs(&fixture->process, device);
		fixture->process.drain_ms = DRAIN_MS;
		fabric_process_start(&fixture->process);
		fixture->address = fixture->process.network_address;
	}
	fixture->area = service_info(fixture->address).first_unit;
	CHECK(service_commit(fixture->address, fixture->area, AREA_BYTES) == FABRIC_OK);
	fixture->incarnation = cluster_attach(fixture->address, 1);
	channel_open(&fixture->channel, fixture->address, 1, fixture->incarnation);
}

static void
fixture_end(Fixture *fixture)
{
	channel_close(&fixture->channel);
	if (remote_address == NULL)
		fabric_process_remove(&fixture->process);
}

static uint64_t
block_offset(const Fixture *fixture, uint64_t block)
{
	return fixture->area + block * FABRIC_STRIPE_BYTES;
}

static void
fill_block(uint64_t *words, uint64_t value)
{
	for (uint32_t i = 0; i < BLOCK_WORDS; i++)
		words[i] = value;
}

/* ---- foreign ---- */

/* One operation with a key and an address that the client was never given: refused, and a reset ends it. */
static void
try_forged(Fixture *fixture, uint8_t opcode, int64_t key_change, uint64_t base_change)
{
	VerbsFlight *flight = fixture->channel.endpoint->state;
	uint64_t word = 0xbad;
	FabricOp op = opcode == FABRIC_READ    ? op_read(fixture->area, &word, 8)
	              : opcode == FABRIC_WRITE ? op_write(fixture->area, &word, 8)
	                                       : op_fetch_add(FABRIC_NODES, fixture->area, 1);

	flight->grant.windows[VERBS_PART].key += (uint32_t) key_change;
	flight->grant.windows[VERBS_PART].base += base_change;
	CHECK(fabric_execute(fixture->channel.endpoint, &op, 1) == FABRIC_LOST);
	CHECK(fabric_reset(fixture->channel.endpoint) == FABRIC_OK);
}

/* A key of another protection domain, and what is not in a region: the device refuses it. */
static void
case_foreign(void)
{
	static const uint8_t opcodes[] = {FABRIC_READ, FABRIC_WRITE, FABRIC_FETCH_ADD};
	Fixture fixture;
	TestChannel other;
	uint64_t mine = 0x600d, found;

	fixture_start(&fixture);
	channel_open(&other, fixture.address, 1, fixture.incarnation);
	channel_write(&other, fixture.area, &mine, 8);
	for (size_t i = 0; i < sizeof(opcodes); i++)
	{
		/* The variant of a key, another key, before the region, and far behind it. */
		try_forged(&fixture, opcodes[i], 1, 0);
		try_forged(&fixture, opcodes[i], 0x1000, 0);
		try_forged(&fixture, opcodes[i], 0, (uint64_t) 0 - fixture.area - 64);
		try_forged(&fixture, opcodes[i], 0, (uint64_t) 1 << 40);
	}
	/* An atomic across two words. */
	try_forged(&fixture, FABRIC_FETCH_ADD, 0, 4);
	channel_read(&fixture.channel, fixture.area, &found, 8);
	CHECK(found == mine);
	/* Nobody else has noticed. */
	channel_read(&other, fixture.area, &found, 8);
	CHECK(found == mine);
	channel_close(&other);
	fixture_end(&fixture);
}

/* ---- domains ---- */

/* One WRITE from `active` to the memory of these keys. */
static VerbsOutcome
write_once(const VerbsDriver *driver, VerbsQueue *active, const VerbsMemoryKeys *own, uint64_t *data,
           const VerbsMemoryKeys *target)
{
	VerbsRequest request = {.opcode = VERBS_WRITE,
	                        .length = 8,
	                        .buffer = data,
	                        .local_key = own->local,
	                        .remote_key = target->remote,
	                        .remote_address = target->base};
	VerbsOutcome outcome = VERBS_NONE;
	const char *reason;
	uint64_t id;

	CHECK(driver->queue_post(active, &request, 1, 1) == VERBS_DONE);
	for (uint64_t begin = now_ms(); outcome == VERBS_NONE && now_ms() - begin < PATIENCE_MS;)
		outcome = driver->queue_poll(active, &id, &reason);
	return outcome;
}

/* The device keeps protection domains apart: what tenants on one device would be kept apart by. */
static void
case_domains(void)
{
	char detail[FABRIC_DETAIL_BYTES];
	const VerbsDriver *driver = verbs_load(detail);
	const char *name = device;
	uint64_t source = 0xbad, here = 1, there = 1;
	VerbsDevice *client, *own, *foreign;
	VerbsMemory *memories[3];
	VerbsMemoryKeys keys[3];
	VerbsQueue *active, *passive;
	VerbsAddress active_address, passive_address;

	CHECK(driver != NULL);
	/* Each opened device has a protection domain. */
	client = driver->device_open(name, NULL, detail);
	own = driver->device_open(name, NULL, detail);
	foreign = driver->device_open(name, NULL, detail);
	CHECK(client != NULL && own != NULL && foreign != NULL);
	memories[0] = driver->memory_register(client, &source, 8, VERBS_NOTHING, detail);
	memories[1] = driver->memory_register(own, &here, 8, VERBS_CHANGES, detail);
	memories[2] = driver->memory_register(foreign, &there, 8, VERBS_CHANGES, detail);
	for (int i = 0; i < 3; i++)
	{
		CHECK(memories[i] != NULL);
		driver->memory_keys(memories[i], &keys[i]);
	}
	active = driver->queue_create(client, NULL, 4, false, &active_address, detail);
	passive = driver->queue_create(own, NULL, 0, false, &passive_address, detail);
	CHECK(active != NULL && passive != NULL);
	CHECK(driver->queue_connect(active, &passive_address, detail) &&
	      driver->queue_connect(passive, &active_address, detail));
	CHECK(write_once(driver, active, &keys[0], &source, &keys[1]) == VERBS_DONE && here == 0xbad);
	CHECK(write_once(driver, active, &keys[0], &source, &keys[2]) == VERBS_REFUSED && there == 1);
	driver->queue_destroy(active);
	driver->queue_destroy(passive);
	for (int i = 0; i < 3; i++)
		driver->memory_release(memories[i]);
	driver->device_close(foreign);
	driver->device_close(own);
	driver->device_close(client);
}

/* ---- fork ---- */

/* A process forks while its chains are under way: neither the device nor the child sees the other's pages. */
static void
case_fork(void)
{
	static uint64_t blocks[BLOCKS][BLOCK_WORDS];
	static uint64_t found[BLOCKS][BLOCK_WORDS];
	Fixture fixture;

	fixture_start(&fixture);
	for (uint64_t round = 1; round <= ROUNDS; round++)
	{
		FabricOp writes[BLOCKS], reads[BLOCKS];
		uint64_t tickets[2];
		pid_t child;

		for (uint64_t i = 0; i < BLOCKS; i++)
		{
			fill_block(blocks[i], round * 100 + i);
			writes[i] = op_write(block_offset(&fixture, i), blocks[i], FABRIC_STRIPE_BYTES);
			reads[i] = op_read(block_offset(&fixture, i), found[i], FABRIC_STRIPE_BYTES);
		}
		CHECK(fabric_post(fixture.channel.endpoint, writes, BLOCKS, &tickets[0]) == FABRIC_OK);
		CHECK(fabric_post(fixture.channel.endpoint, reads, BLOCKS, &tickets[1]) == FABRIC_OK);
		child = start_child();
		if (child == 0)
		{
			memset(blocks, 0xee, sizeof(blocks));
			memset(found, 0xee, sizeof(found));
			channel_close(&fixture.channel);
			_exit(0);
		}
		/* A page that is shared since the fork is copied by who writes first: that must not be us. */
		memset(blocks, 0xdd, sizeof(blocks));
		CHECK(fabric_wait(fixture.channel.endpoint, tickets[0]) == FABRIC_OK);
		CHECK(fabric_wait(fixture.channel.endpoint, tickets[1]) == FABRIC_OK);
		CHECK(wait_for_child(child) == 0);
		for (uint64_t i = 0; i < BLOCKS; i++)
		{
			for (uint32_t word = 0; word < BLOCK_WORDS; word++)
				CHECK(found[i][word] == round * 100 + i);
		}
	}
	fixture_end(&fixture);
}

/* ---- pressure ---- */

/* Posts until there is no room, waits for all: so often. */
static void
case_pressure(void)
{
	static uint64_t found[VERBS_CHAINS][FABRIC_MAX_CHAIN][BLOCK_WORDS];
	static FabricOp ops[VERBS_CHAINS + 1][FABRIC_MAX_CHAIN];
	uint64_t tickets[VERBS_CHAINS + 1];
	uint64_t block[BLOCK_WORDS], count = 0;
	Fixture fixture;

	fixture_start(&fixture);
	fill_block(block, 0);
	channel_write(&fixture.channel, block_offset(&fixture, 0), block, sizeof(block));
	for (uint32_t round = 0; round < ROUNDS; round++)
	{
		uint32_t posted = 0;
		FabricStatus status = FABRIC_OK;

		/* In turn: the arena has no room for a chain, and the queue of chains. */
		for (; status == FABRIC_OK && posted <= VERBS_CHAINS; posted += status == FABRIC_OK)
		{
			for (uint32_t i = 0; i < FABRIC_MAX_CHAIN; i++)
				ops[posted][i] = round % 2 == 0 ? op_read(fixture.area, found[posted % VERBS_CHAINS][i],
				                                          FABRIC_STRIPE_BYTES)
				                                : op_fetch_add(FABRIC_NODES, fixture.area, 1);
			status = fabric_post(fixture.channel.endpoint, ops[posted], FABRIC_MAX_CHAIN, &tickets[posted]);
		}
		CHECK(status == FABRIC_BUSY && posted >= 2);
		for (uint32_t chain = 0; chain < posted; chain++)
		{
			CHECK(fabric_wait(fixture.channel.endpoint, tickets[chain]) == FABRIC_OK);
			for (uint32_t i = 0; i < FABRIC_MAX_CHAIN; i++)
			{
				if (round % 2 == 0)
					CHECK(found[chain][i][0] == count && found[chain][i][1] == 0);
				else
					CHECK(ops[chain][i].result == count++);
			}
		}
	}
	fixture_end(&fixture);
}

/* ---- drain ---- */

/* A client whose chains never touch its connection learns all the same that the memory node is going to end. */
static void
case_drain(void)
{
	Fixture fixture;
	uint64_t word = 0;

	fixture_start(&fixture);
	CHECK(!fabric_is_draining(fixture.channel.endpoint));
	{
		FabricOp take =
			op_compare_swap(FABRIC_LOCKS, 0, 0,
		                    fabric_lock_word(fabric_capabilities(fixture.channel.endpoint)->instance,
		                                     fixture.incarnation, 7));
		FabricOp give = op_compare_swap(FABRIC_LOCKS, 0, take.operand, 0);

		CHECK(fabric_execute(fixture.channel.endpoint, &take, 1) == FABRIC_OK && take.result == 0);
		fabric_process_signal(&fixture.process, SIGTERM);
		/* It serves on while a lock is held. */
		for (uint64_t begin = now_ms(); !fabric_is_draining(fixture.channel.endpoint);)
		{
			channel_read(&fixture.channel, fixture.area, &word, 8);
			CHECK(now_ms() - begin < PATIENCE_MS);
		}
		CHECK(fabric_execute(fixture.channel.endpoint, &give, 1) == FABRIC_OK && give.result == take.operand);
	}
	fabric_process_wait(&fixture.process, SIGTERM);
	channel_close(&fixture.channel);
	fabric_process_remove(&fixture.process);
}

/* ---- restart ---- */

/* The memory node is killed while a client holds a lock, and starts again: the lock is still held, and can be given back. */
static void
case_restart(void)
{
	Fixture fixture;
	uint64_t block[BLOCK_WORDS], found[BLOCK_WORDS];

	fixture_start(&fixture);
	for (uint64_t round = 1; round <= KILL_ROUNDS; round++)
	{
		uint64_t word =
			fabric_lock_word(fabric_capabilities(fixture.channel.endpoint)->instance, fixture.incarnation, 7);
		FabricOp take = op_compare_swap(FABRIC_LOCKS, 0, 0, word);
		FabricOp chain[] = {op_write(fixture.area, block, sizeof(block)),
		                    op_compare_swap(FABRIC_LOCKS, 0, word, 0)};
		FabricStatus status;

		fill_block(block, round);
		channel_write(&fixture.channel, fixture.area, block, sizeof(block));
		CHECK(fabric_execute(fixture.channel.endpoint, &take, 1) == FABRIC_OK && take.result == 0);
		fabric_process_stop(&fixture.process, SIGKILL);
		fill_block(block, round + 100);
		CHECK(fabric_execute(fixture.channel.endpoint, chain, 2) == FABRIC_LOST);
		CHECK(fabric_reset(fixture.channel.endpoint) == FABRIC_UNREACHABLE);
		fabric_process_start(&fixture.process);
		status = fabric_reset(fixture.channel.endpoint);
		CHECK(status == FABRIC_OK);
		channel_read(&fixture.channel, fixture.area, found, sizeof(found));
		CHECK(found[0] == round && memcmp(found, found + 1, sizeof(found) - 8) == 0);
		CHECK(fabric_execute(fixture.channel.endpoint, chain, 2) == FABRIC_OK && chain[1].result == word);
	}
	fixture_end(&fixture);
}

/* ---- kill ---- */

typedef enum KillPoint
{
	KILL_BEFORE, /* the lock is won, nothing else */
	KILL_INSIDE, /* the chains of WRITEs and unlock are under way */
	KILL_AFTER   /* the WRITEs have landed, the lock is still held */
} KillPoint;

/* The chains of the one that is killed: its color into all blocks, in order, and the unlock behind them. */
static void
make_chains(const Fixture *fixture, FabricOp ops[KILL_CHAINS][FABRIC_MAX_CHAIN], FabricOpcode opcode,
            uint64_t (*blocks)[BLOCK_WORDS], bool one_block)
{
	for (uint64_t i = 0; i < (uint64_t) KILL_CHAINS * BLOCKS; i++)
	{
		uint64_t *block = blocks[one_block ? 0 : i];
		uint64_t offset = block_offset(fixture, i);

		ops[i / BLOCKS][i % BLOCKS] = opcode == FABRIC_READ ? op_read(offset, block, FABRIC_STRIPE_BYTES)
		                                                    : op_write(offset, block, FABRIC_STRIPE_BYTES);
	}
}

static void
victim(Fixture *fixture, uint32_t incarnation, KillPoint point, uint64_t color, int told)
{
	static uint64_t block[1][BLOCK_WORDS];
	static FabricOp ops[KILL_CHAINS][FABRIC_MAX_CHAIN];
	TestChannel channel;
	uint64_t word, tickets[KILL_CHAINS];
	FabricOp take;

	channel_open(&channel, fixture->address, 1, incarnation);
	word = fabric_lock_word(fabric_capabilities(channel.endpoint)->instance, incarnation, 7);
	take = op_compare_swap(FABRIC_LOCKS, 0, 0, word);
	CHECK(fabric_execute(channel.endpoint, &take, 1) == FABRIC_OK && take.result == 0);
	fill_block(block[0], color);
	make_chains(fixture, ops, FABRIC_WRITE, block, true);
	ops[KILL_CHAINS - 1][BLOCKS] = op_compare_swap(FABRIC_LOCKS, 0, word, 0);
	for (uint32_t i = 0; i < KILL_CHAINS && point != KILL_BEFORE; i++)
	{
		int count = BLOCKS + (i == KILL_CHAINS - 1 && point == KILL_INSIDE);

		if (point == KILL_AFTER)
			CHECK(fabric_execute(channel.endpoint, ops[i], count) == FABRIC_OK);
		else
			CHECK(fabric_post(channel.endpoint, ops[i], count, &tickets[i]) == FABRIC_OK);
	}
	CHECK(write(told, "", 1) == 1);
	for (;;)
		pause();
}

/* Runs the chains, from the first to the last. */
static void
run_chains(Fixture *fixture, FabricOp ops[KILL_CHAINS][FABRIC_MAX_CHAIN])
{
	for (uint32_t i = 0; i < KILL_CHAINS; i++)
		CHECK(fabric_execute(fixture->channel.endpoint, ops[i], BLOCKS) == FABRIC_OK);
}

/* How many words of the blocks are in the color: those of a beginning, in the order of the WRITEs, and no others. */
static uint64_t
count_colored(Fixture *fixture, uint64_t color)
{
	static uint64_t blocks[KILL_CHAINS * BLOCKS][BLOCK_WORDS];
	static FabricOp ops[KILL_CHAINS][FABRIC_MAX_CHAIN];
	uint64_t colored = 0;
	bool ended = false;

	make_chains(fixture, ops, FABRIC_READ, blocks, false);
	run_chains(fixture, ops);
	for (uint64_t i = 0; i < (uint64_t) KILL_CHAINS * BLOCKS * BLOCK_WORDS; i++)
	{
		uint64_t word = blocks[i / BLOCK_WORDS][i % BLOCK_WORDS];

		CHECK(word == 0 || (word == color && !ended));
		ended |= word == 0;
		colored += word == color;
	}
	return colored;
}

static uint64_t
look_at_lock(Fixture *fixture)
{
	FabricOp look = op_fetch_add(FABRIC_LOCKS, 0, 0);

	CHECK(fabric_execute(fixture->channel.endpoint, &look, 1) == FABRIC_OK);
	return look.result;
}

/* One client is killed. Returns how many words of its WRITEs landed. */
static uint64_t
kill_one(Fixture *fixture, KillPoint point, uint64_t color)
{
	static uint64_t zeroes[1][BLOCK_WORDS];
	static FabricOp ops[KILL_CHAINS][FABRIC_MAX_CHAIN];
	uint32_t incarnation;
	uint64_t colored;
	int told[2];
	pid_t child;
	char byte;

	make_chains(fixture, ops, FABRIC_WRITE, zeroes, true);
	run_chains(fixture, ops);
	incarnation = cluster_attach(fixture->address, 1);
	CHECK(pipe2(told, O_CLOEXEC) == 0);
	child = start_child();
	if (child == 0)
		victim(fixture, incarnation, point, color, told[1]);
	close(told[1]);
	CHECK(read(told[0], &byte, 1) == 1);
	close(told[0]);
	kill(child, SIGKILL);
	CHECK(wait_for_child(child) == 128 + SIGKILL);
	/* Who attaches next knows that nothing more lands, and that the lock is free. */
	cluster_attach(fixture->address, 1);
	CHECK(look_at_lock(fixture) == 0);
	colored = count_colored(fixture, color);
	sleep_ms(LATE_MS);
	CHECK(count_colored(fixture, color) == colored && look_at_lock(fixture) == 0);
	return colored;
}

/* A client is killed before, in and after a chain while it holds a lock. */
static void
case_kill(void)
{
	const uint64_t all = (uint64_t) KILL_CHAINS * BLOCKS * BLOCK_WORDS;
	int cut = 0, none = 0;
	Fixture fixture;

	fixture_start(&fixture);
	/* The witness is of another instance: it goes on while that of the killed ends. */
	channel_close(&fixture.channel);
	channel_open(&fixture.channel, fixture.address, 2, cluster_attach(fixture.address, 2));
	for (uint64_t round = 1; round <= KILL_ROUNDS; round++)
	{
		uint64_t inside;

		CHECK(kill_one(&fixture, KILL_BEFORE, round) == 0);
		CHECK(kill_one(&fixture, KILL_AFTER, round) == all);
		inside = kill_one(&fixture, KILL_INSIDE, round);
		cut += inside > 0 && inside < all;
		none += inside == 0;
	}
	printf("of %d chains %d were cut in the middle, %d before their beginning\n", KILL_ROUNDS, cut, none);
	fixture_end(&fixture);
}

static const TestCase cases[] = {
	{"foreign", case_foreign}, {"domains", case_domains}, {"fork", case_fork}, {"pressure", case_pressure},
	{"drain", case_drain},     {"restart", case_restart}, {"kill", case_kill},
};

int
main(int argc, char **argv)
{
	int first;

	device = test_device(argc, argv, &first);
	if (argc > 3 && strcmp(argv[1], "at") == 0)
	{
		remote_address = argv[2];
		channel_defaults(argv[3], NULL);
		first = 4;
	}
	return run_cases(cases, sizeof(cases) / sizeof(cases[0]), argv + first);
}

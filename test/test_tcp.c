/*
 * test_tcp.c
 *		The tcp transport and the memory node's side of it: chains that wait for stripes, their end with
 *		their channel, the death of the server in a WRITE, long chains, silent peers.
 *
 * A stripe is taken here by hand, in the mapped memory segment: so a chain waits for as long as the test
 * wants.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "support/testing.h"
#include "rdma/memory/memory.h"
#include "rdma/memory/stripe.h"
#include "support/fabric_process.h"

#define CLUSTER 55u
#define STRIPE_WORDS (FABRIC_STRIPE_BYTES / 8)
#define NODE_BYTES (2u << 20)
#define AREA_BYTES (8u * FABRIC_UNIT_BYTES)
#define MAX_CHANNELS 12u
/* No channel has this number: nobody settles its stripes. */
#define NOBODY 65534u
/* Rounds in which a chain that must not go on could have. */
#define ROUNDS 200

static FabricProcess node;
static Memory memory;
static uint64_t area;
static uint32_t incarnation;

static void
map_memory(void)
{
	assert_int_equal(memory_map(open(node.memory_path, O_RDWR | O_CLOEXEC), &memory), FABRIC_OK);
}

static int
start_node(void **state)
{
	fabric_process_prepare(&node, NODE_BYTES, MAX_CHANNELS);
	fabric_process_listen(&node, false);
	fabric_process_start(&node);
	channel_defaults(NULL, NULL);
	area = service_info(node.network_address).first_unit;
	incarnation = cluster_attach(node.network_address, CLUSTER);
	memory = (Memory){.descriptor = -1};
	map_memory();
	return service_commit(node.network_address, area, AREA_BYTES) == FABRIC_OK ? 0 : 1;
}

static int
stop_node(void **state)
{
	memory_unmap(&memory);
	fabric_process_remove(&node);
	return 0;
}

static TestChannel
open_channel(void)
{
	TestChannel channel;

	channel_open(&channel, node.network_address, CLUSTER, incarnation);
	return channel;
}

static uint64_t
place(uint32_t stripe)
{
	return area + (uint64_t) stripe * FABRIC_STRIPE_BYTES;
}

static uint64_t
read_word(TestChannel *channel, uint64_t offset)
{
	uint64_t word;

	channel_read(channel, offset, &word, 8);
	return word;
}

/* Takes a stripe as a client would that is nobody. */
static uint64_t
take_stripe(uint32_t stripe)
{
	uint64_t odd = 0;

	assert_true(stripe_try_take(memory_stripe(&memory, place(stripe)), NOBODY, &odd));
	return odd;
}

static void
give_stripe_back(uint32_t stripe, uint64_t odd)
{
	stripe_release(memory_stripe(&memory, place(stripe)), odd);
}

/* A chain of four: before the taken stripe 1, there, and behind it. */
typedef struct WaitingChain
{
	uint64_t words[3];
	uint64_t found;
	uint64_t ticket;
	FabricOp ops[4];
} WaitingChain;

static void
post_waiting_chain(TestChannel *channel, WaitingChain *chain, uint64_t value)
{
	for (int i = 0; i < 3; i++)
	{
		chain->words[i] = value;
		chain->ops[i] = op_write(place((uint32_t) i), &chain->words[i], 8);
	}
	chain->ops[3] = op_fetch_add(FABRIC_NODES, place(3), 1);
	assert_int_equal(fabric_post(channel->endpoint, chain->ops, 4, &chain->ticket), FABRIC_OK);
}

/* What the chain was to write, of stripes 0 to 3. */
static void
expect_words(TestChannel *channel, uint64_t first, uint64_t second, uint64_t third, uint64_t fourth)
{
	const uint64_t expected[4] = {first, second, third, fourth};
	uint64_t found[4];

	for (uint32_t i = 0; i < 4; i++)
		found[i] = __atomic_load_n((uint64_t *) (void *) (memory.nodes + place(i)), __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(found[i] == expected[i]);
	/* And the memory node serves others. */
	assert_true(read_word(channel, place(4)) == 0);
}

/* Waits until the chain's first WRITE is there: the rest is under way. */
static void
wait_for_beginning(TestChannel *other, uint64_t value)
{
	uint64_t until = now_ms() + PATIENCE_MS;

	while (read_word(other, place(0)) != value)
		assert_true(now_ms() < until);
}

static void
test_chain_waits(void **state)
{
	TestChannel channel = open_channel();
	TestChannel other = open_channel();
	WaitingChain chain;
	uint64_t behind[2] = {0};
	uint64_t tickets[2];
	FabricOp reads[2] = {op_read(place(1), &behind[0], 8), op_read(place(5), &behind[1], 8)};
	uint64_t odd = take_stripe(1);

	post_waiting_chain(&channel, &chain, 7);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fabric_post(channel.endpoint, &reads[i], 1, &tickets[i]), FABRIC_OK);
	wait_for_beginning(&other, 7);
	/*
	 * The others are served; this one's chains are not answered, those behind it neither, and no bit of
	 * them is done.
	 */
	for (int i = 0; i < ROUNDS; i++)
	{
		assert_false(fabric_ended(channel.endpoint, chain.ticket));
		assert_false(fabric_ended(channel.endpoint, tickets[1]));
		expect_words(&other, 7, 0, 0, 0);
	}
	assert_int_equal(service_info(node.address).live_channels, 2);
	give_stripe_back(1, odd);
	for (int i = 1; i >= 0; i--)
		assert_int_equal(fabric_wait(channel.endpoint, tickets[i]), FABRIC_OK);
	assert_int_equal(fabric_wait(channel.endpoint, chain.ticket), FABRIC_OK);
	assert_true(chain.ops[3].result == 0 && behind[0] == 7 && behind[1] == 0);
	expect_words(&other, 7, 7, 7, 1);
	channel_close(&channel);
	channel_close(&other);
}

/* A READ waits as a WRITE does, and one that WRITEs overtake again and again comes to its end. */
static void
test_read_waits(void **state)
{
	TestChannel channel = open_channel();
	uint64_t words[STRIPE_WORDS] = {0};
	FabricOp read = op_read(place(1), words, sizeof(words));
	uint64_t ticket;

	for (int round = 0; round < ROUNDS; round++)
	{
		uint64_t odd = take_stripe(1);

		assert_int_equal(fabric_post(channel.endpoint, &read, 1, &ticket), FABRIC_OK);
		for (int i = 0; i < 5; i++)
			assert_false(fabric_ended(channel.endpoint, ticket));
		for (int i = 0; i < round % 12; i++)
		{
			give_stripe_back(1, odd);
			if (fabric_ended(channel.endpoint, ticket))
				break;
			/* The memory node itself may have it now. */
			if (!stripe_try_take(memory_stripe(&memory, place(1)), NOBODY, &odd))
				break;
		}
		if (stripe_owner(*memory_stripe(&memory, place(1))) == NOBODY)
			give_stripe_back(1, odd);
		assert_int_equal(fabric_wait(channel.endpoint, ticket), FABRIC_OK);
	}
	channel_close(&channel);
}

/* Two clients, of whom the first has a chain that waits for stripe 1, which is taken: returns its odd word. */
static uint64_t
begin_waiting(TestChannel *channel, TestChannel *other, WaitingChain *chain)
{
	uint64_t odd = take_stripe(1);

	*channel = open_channel();
	*other = open_channel();
	post_waiting_chain(channel, chain, 7);
	wait_for_beginning(other, 7);
	return odd;
}

/* After this the chain must not go on, though nothing is in its way any more. */
static void
expect_no_more(TestChannel *other, uint64_t odd)
{
	expect_words(other, 7, 0, 0, 0);
	give_stripe_back(1, odd);
	for (int i = 0; i < ROUNDS; i++)
		expect_words(other, 7, 0, 0, 0);
	/* Whoever has the record next finds it as it should be. */
	{
		uint64_t word = 3;
		TestChannel next = open_channel();

		channel_write(&next, place(1), &word, 8);
		assert_true(read_word(&next, place(1)) == 3);
		channel_close(&next);
	}
}

static void
test_reset_ends_waiting_chain(void **state)
{
	TestChannel channel;
	TestChannel other;
	WaitingChain chain;
	uint64_t odd = begin_waiting(&channel, &other, &chain);

	assert_int_equal(fabric_reset(channel.endpoint), FABRIC_OK);
	expect_no_more(&other, odd);
	assert_int_equal(service_info(node.address).live_channels, 2);
	channel_close(&channel);
	channel_close(&other);
}

/* Waits until the word at the beginning of a stripe is there. */
static void
wait_for_word(TestChannel *other, uint32_t stripe, uint64_t value)
{
	uint64_t until = now_ms() + PATIENCE_MS / 2;

	while (read_word(other, place(stripe)) != value)
		assert_true(now_ms() < until);
}

/* After a reset nothing is under way: the next chain leaves at once. */
static void
test_first_chain_after_reset_leaves(void **state)
{
	TestChannel channel;
	TestChannel other;
	WaitingChain chain;
	uint64_t odd = begin_waiting(&channel, &other, &chain);
	uint64_t value = 9, ticket;
	FabricOp op = op_write(place(6), &value, 8);

	assert_int_equal(fabric_reset(channel.endpoint), FABRIC_OK);
	assert_int_equal(fabric_post(channel.endpoint, &op, 1, &ticket), FABRIC_OK);
	wait_for_word(&other, 6, value);
	assert_int_equal(fabric_wait(channel.endpoint, ticket), FABRIC_OK);
	give_stripe_back(1, odd);
	channel_close(&channel);
	channel_close(&other);
}

/* Chains behind one that is under way are gathered, and leave when there is a batch, though nobody waits. */
static void
test_full_batch_leaves(void **state)
{
	static uint64_t words[STRIPE_WORDS];
	TestChannel channel = open_channel();
	TestChannel other = open_channel();
	uint64_t tickets[3];
	FabricOp ops[2] = {op_write(place(0), words, 8), op_write(place(1), words, 8)};
	FabricOp batch[3];

	words[0] = 9;
	assert_int_equal(fabric_post(channel.endpoint, &ops[0], 1, &tickets[0]), FABRIC_OK);
	wait_for_word(&other, 0, 9);
	assert_int_equal(fabric_post(channel.endpoint, &ops[1], 1, &tickets[1]), FABRIC_OK);
	for (int i = 0; i < ROUNDS; i++)
		assert_true(read_word(&other, place(1)) == 0);
	for (uint32_t i = 0; i < 3; i++)
		batch[i] = op_write(place(2 + i), words, FABRIC_STRIPE_BYTES);
	assert_int_equal(fabric_post(channel.endpoint, batch, 3, &tickets[2]), FABRIC_OK);
	wait_for_word(&other, 4, 9);
	assert_true(read_word(&other, place(1)) == 9);
	for (int i = 0; i < 3; i++)
		assert_int_equal(fabric_wait(channel.endpoint, tickets[i]), FABRIC_OK);
	channel_close(&channel);
	channel_close(&other);
}

/* Another process takes over, while the old one is still there and has its connection. */
static void
test_successor_ends_waiting_chain(void **state)
{
	FabricOptions options = {.cluster = {CLUSTER, ~(uint64_t) CLUSTER}, .incarnation = incarnation};
	TestChannel channel;
	TestChannel other;
	TestChannel successor;
	FabricChannel name;
	WaitingChain chain;
	uint64_t odd = begin_waiting(&channel, &other, &chain);

	fabric_channel(channel.endpoint, &name);
	assert_int_equal(fabric_open(&options, &successor.fabric), FABRIC_OK);
	assert_int_equal(fabric_connect_after(successor.fabric, node.network_address, &name, &successor.endpoint),
	                 FABRIC_OK);
	expect_no_more(&other, odd);
	assert_int_equal(fabric_wait(channel.endpoint, chain.ticket), FABRIC_LOST);
	channel_close(&successor);
	channel_close(&channel);
	channel_close(&other);
}

static void
test_end_of_client_ends_waiting_chain(void **state)
{
	TestChannel channel;
	TestChannel other;
	WaitingChain chain;
	uint64_t odd = begin_waiting(&channel, &other, &chain);
	uint64_t until = now_ms() + PATIENCE_MS;

	channel_close(&channel);
	while (service_info(node.address).live_channels != 1)
		assert_true(now_ms() < until);
	expect_no_more(&other, odd);
	channel_close(&other);
}

/* The memory that the chain was to write was freed meanwhile, and belongs to another tenant. */
static void
test_lost_memory_ends_waiting_chain(void **state)
{
	uint8_t *mark = &memory.units[place(1) / FABRIC_UNIT_BYTES];
	uint8_t mine = __atomic_load_n(mark, __ATOMIC_ACQUIRE);
	TestChannel channel;
	TestChannel other;
	WaitingChain chain;
	uint64_t odd = begin_waiting(&channel, &other, &chain);

	__atomic_store_n(mark, (uint8_t) (mine + 1), __ATOMIC_RELEASE);
	assert_int_equal(fabric_wait(channel.endpoint, chain.ticket), FABRIC_FENCED);
	__atomic_store_n(mark, mine, __ATOMIC_RELEASE);
	expect_no_more(&other, odd);
	assert_int_equal(fabric_reset(channel.endpoint), FABRIC_OK);
	channel_close(&channel);
	channel_close(&other);
}

/* The same of memory that a later operation of the chain was to write: it does not wait for its turn to be seen. */
static void
test_lost_memory_further_on_ends_waiting_chain(void **state)
{
	uint64_t further = area + FABRIC_UNIT_BYTES;
	uint8_t *mark = &memory.units[further / FABRIC_UNIT_BYTES];
	uint8_t mine = __atomic_load_n(mark, __ATOMIC_ACQUIRE);
	TestChannel channel = open_channel();
	TestChannel other = open_channel();
	uint64_t odd = take_stripe(1);
	uint64_t value = 7, ticket;
	FabricOp ops[3] = {op_write(place(0), &value, 8), op_write(place(1), &value, 8),
	                   op_write(further, &value, 8)};

	assert_int_equal(fabric_post(channel.endpoint, ops, 3, &ticket), FABRIC_OK);
	wait_for_beginning(&other, value);
	__atomic_store_n(mark, (uint8_t) (mine + 1), __ATOMIC_RELEASE);
	assert_int_equal(fabric_wait(channel.endpoint, ticket), FABRIC_FENCED);
	__atomic_store_n(mark, mine, __ATOMIC_RELEASE);
	expect_no_more(&other, odd);
	assert_true(read_word(&other, further) == 0);
	channel_close(&channel);
	channel_close(&other);
}

static void
test_attach_ends_waiting_chain(void **state)
{
	TestChannel channel;
	TestChannel other;
	WaitingChain chain;
	uint64_t odd = begin_waiting(&channel, &other, &chain);

	channel_close(&other);
	incarnation = cluster_attach(node.network_address, CLUSTER);
	other = open_channel();
	/* Dead when the grant was given; its client learns by the answer. */
	assert_int_equal(fabric_wait(channel.endpoint, chain.ticket), FABRIC_FENCED);
	expect_no_more(&other, odd);
	assert_int_equal(fabric_reset(channel.endpoint), FABRIC_FENCED);
	channel_close(&channel);
	channel_close(&other);
}

/* A client gives up by its own deadline, and the memory node holds to that. */
static void
test_deadline_of_waiting_chain(void **state)
{
	FabricOptions quick = {.operation_timeout_ms = 100};
	TestChannel other = open_channel();
	TestChannel channel;
	WaitingChain chain;
	WaitingChain next;
	uint64_t odd = take_stripe(1);

	assert_int_equal(channel_try_open(&channel, node.network_address, CLUSTER, incarnation, &quick),
	                 FABRIC_OK);
	post_waiting_chain(&channel, &chain, 7);
	post_waiting_chain(&channel, &next, 8);
	wait_for_beginning(&other, 7);
	assert_int_equal(fabric_wait(channel.endpoint, chain.ticket), FABRIC_TIMED_OUT);
	/* The others need not be waited for. */
	assert_true(fabric_ended(channel.endpoint, next.ticket));
	assert_int_equal(fabric_wait(channel.endpoint, next.ticket), FABRIC_LOST);
	assert_int_equal(fabric_execute(channel.endpoint, chain.ops, 4), FABRIC_LOST);
	assert_int_equal(fabric_reset(channel.endpoint), FABRIC_OK);
	expect_no_more(&other, odd);
	channel_close(&channel);
	channel_close(&other);
}

/* ---- The server's death in a WRITE */

/*
 * The server dies while it makes a WRITE of a network client: as its stores, its record and its stage would
 * show it. `staged`: it got that far.
 */
static void
die_in_write(TestChannel *channel, const uint64_t *words, bool staged)
{
	uint32_t number = fabric_capabilities(channel->endpoint)->channel;
	MemoryChannel *record = &memory.channels[number];
	uint64_t *target = (uint64_t *) (void *) (memory.nodes + place(1));
	uint64_t intent = memory_intent(place(1), FABRIC_STRIPE_BYTES);
	uint64_t odd = 0;

	fabric_process_stop(&node, SIGKILL);
	record->active |= MEMORY_ACTIVE_BUSY;
	record->intent = intent;
	assert_true(stripe_try_take(memory_stripe(&memory, place(1)), number, &odd));
	if (staged)
	{
		memory_stage_write(memory.stage, odd, intent, words, FABRIC_STRIPE_BYTES);
		stripe_copy_in(target, words, STRIPE_WORDS, STRIPE_WORDS / 3);
	}
	else
	{
		/* Another WRITE's image, and half of this one's. */
		memory_stage_write(memory.stage, odd - 2, intent, target, FABRIC_STRIPE_BYTES);
		memcpy(memory.stage->data, words, FABRIC_STRIPE_BYTES / 2);
	}
	fabric_process_start(&node);
}

static void
test_server_dies_in_write(void **state)
{
	for (int staged = 0; staged < 2; staged++)
	{
		TestChannel channel = open_channel();
		TestChannel next;
		uint64_t words[STRIPE_WORDS];
		uint64_t found[STRIPE_WORDS];
		ServiceInfo info;

		for (uint32_t i = 0; i < STRIPE_WORDS; i++)
			words[i] = 100 + (uint64_t) staged;
		channel_write(&channel, place(1), words, sizeof(words));
		/* The server notes each WRITE before it begins. */
		assert_memory_equal(memory.stage->data, words, sizeof(words));
		assert_true(memory.stage->intent == memory_intent(place(1), FABRIC_STRIPE_BYTES));
		for (uint32_t i = 0; i < STRIPE_WORDS; i++)
			words[i] = 1000 + i;
		die_in_write(&channel, words, staged != 0);
		next = open_channel();
		channel_read(&next, place(1), found, sizeof(found));
		for (uint32_t i = 0; i < STRIPE_WORDS; i++)
			assert_true(found[i] == (staged ? 1000 + i : 100));
		/* Whole or not there: nothing is left to be replayed. */
		info = service_info(node.address);
		assert_int_equal(info.recovered, 1);
		assert_int_equal(info.recovered_inside, 0);
		/* The old one's client has to come again. */
		assert_int_not_equal(
			fabric_execute(
				channel.endpoint,
				&(FabricOp){.opcode = FABRIC_READ, .length = 8, .offset = place(1), .buffer = words}, 1),
			FABRIC_OK);
		assert_int_equal(fabric_reset(channel.endpoint), FABRIC_OK);
		assert_true(read_word(&channel, place(1)) == (staged ? 1000 : 100));
		channel_close(&channel);
		channel_close(&next);
	}
}

/* Writes whole stripes of one value each, several at a time, until the memory node is gone. */
static void
write_until_lost(void)
{
	static uint64_t words[8][STRIPE_WORDS];
	FabricOp ops[8];
	uint64_t tickets[8];
	TestChannel channel = open_channel();

	for (uint64_t value = 1;; value++)
	{
		for (uint32_t i = 0; i < 8; i++)
		{
			for (uint32_t word = 0; word < STRIPE_WORDS; word++)
				words[i][word] = value;
			ops[i] = op_write(place(i), words[i], FABRIC_STRIPE_BYTES);
			if (fabric_post(channel.endpoint, &ops[i], 1, &tickets[i]) != FABRIC_OK)
				_exit(0);
		}
		for (uint32_t i = 0; i < 8; i++)
		{
			if (fabric_wait(channel.endpoint, tickets[i]) != FABRIC_OK)
				_exit(0);
		}
	}
}

/* Wherever the server is killed, and its client with it: a WRITE is whole, or it is not there. */
static void
test_random_death_of_server(void **state)
{
	for (uint32_t round = 0; round < 12; round++)
	{
		pid_t child = start_child();
		TestChannel channel;
		uint64_t until = now_ms() + PATIENCE_MS;
		uint64_t before;

		if (child == 0)
			write_until_lost();
		channel = open_channel();
		before = read_word(&channel, place(7));
		while (read_word(&channel, place(7)) == before)
			assert_true(now_ms() < until);
		for (uint32_t i = 0; i < round * 3; i++)
			read_word(&channel, place(7));
		fabric_process_stop(&node, SIGKILL);
		assert_int_equal(wait_for_child(child), 0);
		fabric_process_start(&node);
		assert_int_equal(fabric_reset(channel.endpoint), FABRIC_OK);
		for (uint32_t stripe = 0; stripe < 8; stripe++)
		{
			uint64_t words[STRIPE_WORDS];

			channel_read(&channel, place(stripe), words, sizeof(words));
			for (uint32_t word = 1; word < STRIPE_WORDS; word++)
				assert_true(words[word] == words[0]);
		}
		channel_close(&channel);
	}
}

/* ---- Long chains, silent peers */

/* The longest chains, and as many of them as may be under way: more than all buffers between hold. */
static void
test_long_chains(void **state)
{
	static uint64_t words[FABRIC_MAX_CHAIN][STRIPE_WORDS];
	static uint64_t found[64][FABRIC_MAX_CHAIN][STRIPE_WORDS];
	static FabricOp ops[64][FABRIC_MAX_CHAIN];
	uint64_t tickets[64];
	TestChannel channel = open_channel();
	uint32_t outstanding = fabric_capabilities(channel.endpoint)->max_outstanding;

	assert_int_equal(outstanding, 64);
	for (uint32_t i = 0; i < FABRIC_MAX_CHAIN; i++)
	{
		for (uint32_t word = 0; word < STRIPE_WORDS; word++)
			words[i][word] = i * 1000 + word;
	}
	/* All WRITEs first, all READs then. */
	for (int reads = 0; reads < 2; reads++)
	{
		for (uint32_t chain = 0; chain < outstanding; chain++)
		{
			for (uint32_t i = 0; i < FABRIC_MAX_CHAIN; i++)
				ops[chain][i] = reads ? op_read(place(i), found[chain][i], FABRIC_STRIPE_BYTES)
				                      : op_write(place(i), words[i], FABRIC_STRIPE_BYTES);
			assert_int_equal(fabric_post(channel.endpoint, ops[chain], FABRIC_MAX_CHAIN, &tickets[chain]),
			                 FABRIC_OK);
		}
		for (uint32_t chain = outstanding; chain-- > 0;)
			assert_int_equal(fabric_wait(channel.endpoint, tickets[chain]), FABRIC_OK);
	}
	for (uint32_t chain = 0; chain < outstanding; chain++)
		assert_memory_equal(found[chain], words, sizeof(words));
	/* A single one is executed beside those that are posted and not yet waited for. */
	assert_int_equal(fabric_post(channel.endpoint, ops[0], FABRIC_MAX_CHAIN, &tickets[0]), FABRIC_OK);
	for (uint32_t i = 0; i < 2 * outstanding; i++)
		assert_true(read_word(&channel, place(i % FABRIC_MAX_CHAIN)) == i % FABRIC_MAX_CHAIN * 1000);
	assert_int_equal(fabric_wait(channel.endpoint, tickets[0]), FABRIC_OK);
	channel_close(&channel);
}

/*
 * A peer whose end vanished without a word, as with its host: the memory node asks, and nobody knows the
 * connection.
 */
static void
test_silent_peer(void **state)
{
	TestChannel channel = open_channel();
	uint64_t until = now_ms() + PATIENCE_MS;
	int one = 1;

	if (setsockopt(fabric_descriptor(channel.endpoint), IPPROTO_TCP, TCP_REPAIR, &one, sizeof(one)) != 0)
	{
		channel_close(&channel);
		skip();
	}
	/* Under repair, a socket is closed without telling the peer. */
	channel_close(&channel);
	assert_int_equal(service_info(node.address).live_channels, 1);
	while (service_info(node.address).live_channels != 0)
	{
		sleep_ms(100);
		assert_true(now_ms() < until);
	}
}

#define NODE_TEST(name) cmocka_unit_test_setup_teardown(name, start_node, stop_node)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		NODE_TEST(test_chain_waits),
		NODE_TEST(test_read_waits),
		NODE_TEST(test_reset_ends_waiting_chain),
		NODE_TEST(test_first_chain_after_reset_leaves),
		NODE_TEST(test_full_batch_leaves),
		NODE_TEST(test_successor_ends_waiting_chain),
		NODE_TEST(test_end_of_client_ends_waiting_chain),
		NODE_TEST(test_lost_memory_ends_waiting_chain),
		NODE_TEST(test_lost_memory_further_on_ends_waiting_chain),
		NODE_TEST(test_attach_ends_waiting_chain),
		NODE_TEST(test_deadline_of_waiting_chain),
		NODE_TEST(test_server_dies_in_write),
		NODE_TEST(test_random_death_of_server),
		NODE_TEST(test_long_chains),
		NODE_TEST(test_silent_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

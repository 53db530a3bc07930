/*
 * conformance_readers.c
 *		Conformance of readers (FabricOptions.reader): what they may, and when they end.
 */
#define _GNU_SOURCE 1
#include <string.h>

#include "conformance.h"

static FabricStatus
reader_try_open(TestChannel *reader, uint64_t cluster)
{
	const FabricOptions options = {
		.operation_timeout_ms = PATIENCE_MS / 2, .connect_timeout_ms = PATIENCE_MS / 2, .reader = true};

	/* An incarnation that is not there: nobody asks for it. */
	return channel_try_open(reader, suite.address, cluster, UINT16_MAX, &options);
}

static bool
readers_are_here(void)
{
	return strncmp(suite.address, "tcp:", 4) == 0 || suite_verbs();
}

static void
need_readers(void)
{
	if (!readers_are_here())
		skip();
}

/* A READ of an ended channel.  Over verbs the queue pair's end may be seen before the memory node's word for it. */
static void
expect_fenced(TestChannel *reader)
{
	uint64_t word;
	FabricOp read = op_read(stripe_offset(0), &word, 8);
	FabricStatus status = fabric_execute(reader->endpoint, &read, 1);

	assert_true(status == FABRIC_FENCED || (suite_verbs() && status == FABRIC_LOST));
}

static uint64_t
read_word(TestChannel *channel, uint64_t offset)
{
	uint64_t word;

	channel_read(channel, offset, &word, 8);
	return word;
}

/* Where there are no readers they are refused, and the reason says what to do. */
void
test_readers_refused(void **state)
{
	uint32_t incarnation;
	uint64_t cluster = new_cluster(&incarnation);
	FabricOptions options = {.cluster = {cluster, ~cluster},
	                         .reader = true,
	                         .proxy = test_proxies == NULL ? NULL : proxy_processes_client(test_proxies),
	                         .transport = suite.simulated ? &sim_transport : NULL};
	FabricEndpoint *endpoint;
	Fabric *fabric;

	if (readers_are_here())
		skip();
	assert_int_equal(fabric_open(&options, &fabric), FABRIC_OK);
	assert_int_equal(fabric_connect(fabric, suite.address, &endpoint), FABRIC_NOT_SUPPORTED);
	assert_non_null(strstr(fabric_detail(fabric), "tcp address"));
	fabric_close(fabric);
}

/* A reader READs what others write, and all else is refused before it has an effect. */
void
test_reader_reads(void **state)
{
	uint64_t words[2] = {1, 2};
	uint32_t incarnation;
	uint64_t cluster;
	TestChannel owner, reader;
	uint64_t found;
	FabricOp refused[] = {
		op_write(stripe_offset(0), &words[1], 8),
		op_compare_swap(FABRIC_NODES, stripe_offset(0), 1, 2),
		op_fetch_add(FABRIC_NODES, stripe_offset(0), 1),
		op_compare_swap(FABRIC_LOCKS, 8, 0, 1),
		op_fetch_add(FABRIC_LOCKS, 8, 0),
		op_read(8, &found, 8),
	};
	FabricOp read = op_read(stripe_offset(0), &found, 8);

	need_readers();
	cluster = new_cluster(&incarnation);
	channel_open(&owner, suite.address, cluster, incarnation);
	clear_stripe(&owner, 0);
	channel_write(&owner, stripe_offset(0), &words[0], 8);
	assert_int_equal(reader_try_open(&reader, cluster), FABRIC_OK);
	assert_int_equal(fabric_capabilities(reader.endpoint)->incarnation, incarnation);
	assert_int_equal(fabric_capabilities(reader.endpoint)->instance,
	                 fabric_capabilities(owner.endpoint)->instance);
	refused[5].region = FABRIC_LOCKS;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
	{
		FabricOp chain[] = {read, refused[i]};
		uint64_t ticket;

		assert_int_equal(fabric_execute(reader.endpoint, chain, 2), FABRIC_PROTOCOL);
		assert_int_equal(fabric_post(reader.endpoint, &refused[i], 1, &ticket), FABRIC_PROTOCOL);
		/* It is not in doubt. */
		assert_true(read_word(&reader, stripe_offset(0)) == 1);
	}
	channel_write(&owner, stripe_offset(0), &words[1], 8);
	assert_true(read_word(&reader, stripe_offset(0)) == 2);
	channel_close(&reader);
	channel_close(&owner);
}

/* A reader calls what it likes, as itself: the service tells it from others.  It attaches nobody. */
void
test_reader_calls(void **state)
{
	uint32_t incarnation, instance;
	uint64_t cluster;
	TestChannel reader, owner;
	FabricPeer peer;
	uint32_t bytes = sizeof(peer);

	need_readers();
	cluster = new_cluster(&incarnation);
	channel_open(&owner, suite.address, cluster, incarnation);
	assert_int_equal(reader_try_open(&reader, cluster), FABRIC_OK);
	assert_int_equal(fabric_call(reader.endpoint, SERVICE_PEER, NULL, 0, &peer, &bytes), FABRIC_OK);
	assert_true(peer.reader && peer.cluster[0] == cluster);
	assert_int_equal(peer.incarnation, incarnation);
	bytes = sizeof(peer);
	assert_int_equal(fabric_call(owner.endpoint, SERVICE_PEER, NULL, 0, &peer, &bytes), FABRIC_OK);
	assert_false(peer.reader);
	assert_int_equal(fabric_attach(reader.endpoint, false, 1, &instance, &incarnation), FABRIC_DENIED);
	assert_int_equal(fabric_attach(reader.endpoint, true, 1, &instance, &incarnation), FABRIC_DENIED);
	/* Nobody's channel has ended by it. */
	clear_stripe(&owner, 0);
	assert_true(read_word(&reader, stripe_offset(0)) == 0);
	channel_close(&reader);
	channel_close(&owner);
}

/* The next incarnation ends readers as it ends all others: a reset does not hide that, and a new connection is of the new one. */
void
test_attach_ends_readers(void **state)
{
	uint32_t incarnation, next;
	uint64_t cluster;
	TestChannel reader, calling;
	uint64_t word;
	FabricOp read = op_read(stripe_offset(0), &word, 8);

	need_readers();
	assert_int_equal(reader_try_open(&reader, suite.next_cluster++), FABRIC_FENCED);
	cluster = new_cluster(&incarnation);
	assert_int_equal(reader_try_open(&reader, cluster), FABRIC_OK);
	assert_int_equal(reader_try_open(&calling, cluster), FABRIC_OK);
	for (int i = 0; i < 3; i++)
	{
		assert_int_equal(fabric_reset(reader.endpoint), FABRIC_OK);
		assert_int_equal(fabric_execute(reader.endpoint, &read, 1), FABRIC_OK);
	}
	next = cluster_attach(suite.address, cluster);
	assert_int_not_equal(next, incarnation);
	expect_fenced(&reader);
	assert_int_equal(fabric_call(calling.endpoint, SERVICE_ECHO, NULL, 0, NULL, NULL), FABRIC_FENCED);
	for (int i = 0; i < 2; i++)
	{
		assert_int_equal(fabric_reset(reader.endpoint), FABRIC_FENCED);
		assert_int_equal(fabric_execute(reader.endpoint, &read, 1), FABRIC_LOST);
	}
	channel_close(&calling);
	channel_close(&reader);
	assert_int_equal(reader_try_open(&reader, cluster), FABRIC_OK);
	assert_int_equal(fabric_capabilities(reader.endpoint)->incarnation, next);
	assert_int_equal(fabric_execute(reader.endpoint, &read, 1), FABRIC_OK);
	channel_close(&reader);
}

/* Connects behind another channel, as a reader or not. */
static FabricStatus
succeed(TestChannel *channel, uint64_t cluster, uint32_t incarnation, const TestChannel *old)
{
	const FabricOptions options = {.cluster = {cluster, ~cluster},
	                               .incarnation = incarnation,
	                               .reader = incarnation == 0,
	                               .key_file = suite.key_file};
	FabricChannel named;
	FabricStatus status;

	fabric_channel(old->endpoint, &named);
	assert_int_equal(fabric_open(&options, &channel->fabric), FABRIC_OK);
	status = fabric_connect_after(channel->fabric, suite.address, &named, &channel->endpoint);
	if (status != FABRIC_OK)
		channel_close(channel);
	return status;
}

/* A reader succeeds to another reader, and to nobody else. */
void
test_reader_succeeds(void **state)
{
	uint32_t incarnation;
	uint64_t cluster;
	TestChannel owner, first, second, third;
	uint64_t word = 5;
	FabricOp write = op_write(stripe_offset(0), &word, 8);
	FabricOp read = op_read(stripe_offset(0), &word, 8);

	need_readers();
	cluster = new_cluster(&incarnation);
	channel_open(&owner, suite.address, cluster, incarnation);
	assert_int_equal(reader_try_open(&first, cluster), FABRIC_OK);
	assert_int_equal(succeed(&second, cluster, 0, &owner), FABRIC_DENIED);
	assert_int_equal(fabric_execute(owner.endpoint, &write, 1), FABRIC_OK);
	assert_int_equal(succeed(&second, cluster, 0, &first), FABRIC_OK);
	assert_int_not_equal(fabric_execute(first.endpoint, &read, 1), FABRIC_OK);
	assert_int_equal(fabric_execute(second.endpoint, &read, 1), FABRIC_OK);
	/* The owner may end any channel of its own. */
	assert_int_equal(succeed(&third, cluster, incarnation, &second), FABRIC_OK);
	assert_int_not_equal(fabric_execute(second.endpoint, &read, 1), FABRIC_OK);
	channel_close(&third);
	channel_close(&second);
	channel_close(&first);
	channel_close(&owner);
}

/*
 * test_talker.c
 *		A memory node that spins looks at the connection that it heard of last; others are heard all the same.
 *
 * Server and clients are one thread: the clients' wait hook drives the server.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "support/testing.h"
#include "support/fabric_process.h"

/* How often the other one wants something, and how long it may take, on whatever machine. */
#define ROUNDS 30
#define PATIENCE_SECONDS 30
#define CLUSTER 7u

typedef struct Fixture
{
	FabricProcess node; /* only its directory is used */
	FabricServer *server;
	char address[64];
	uint32_t incarnation;
} Fixture;

static FabricStatus
no_call(void *argument, const FabricPeer *peer, uint16_t method, const void *request, uint32_t request_bytes,
        void *reply, uint32_t *reply_bytes)
{
	*reply_bytes = 0;
	return FABRIC_NOT_SUPPORTED;
}

static TestChannel
connect_client(const Fixture *fixture, uint32_t incarnation)
{
	FabricOptions options = {.cluster = {CLUSTER, 0},
	                         .incarnation = incarnation,
	                         .wait = serve_while_waiting,
	                         .wait_argument = fixture->server};
	TestChannel channel;

	assert_int_equal(fabric_open(&options, &channel.fabric), FABRIC_OK);
	assert_int_equal(fabric_connect(channel.fabric, fixture->address, &channel.endpoint), FABRIC_OK);
	return channel;
}

static void
fixture_open(Fixture *fixture)
{
	FabricServerOptions options;
	FabricService service = {.call = no_call};
	FabricMemoryState state;
	TestChannel launcher;
	uint32_t instance;

	memset(fixture, 0, sizeof(*fixture));
	fabric_process_prepare(&fixture->node, SMALL_NODE_BYTES, SMALL_NODE_CHANNELS);
	options = fabric_process_options(&fixture->node);
	options.listen = "127.0.0.1:0";
	options.insecure_loopback = true;
	options.spin = true;
	assert_int_equal(fabric_server_open(&options, &service, &fixture->server, &state, NULL), FABRIC_OK);
	snprintf(fixture->address, sizeof(fixture->address), "tcp:127.0.0.1:%u",
	         (unsigned) fabric_server_port(fixture->server));
	launcher = connect_client(fixture, 0);
	assert_int_equal(fabric_attach(launcher.endpoint, false, 1, &instance, &fixture->incarnation), FABRIC_OK);
	channel_close(&launcher);
}

static void
fixture_close(Fixture *fixture)
{
	fabric_server_close(fixture->server, 0, true);
	fabric_process_remove(&fixture->node);
}

/* A client that always has a chain under way does not keep the chains of another one waiting. */
static void
test_others_are_heard(void **state)
{
	Fixture fixture;
	TestChannel talker, other;
	uint64_t words[2];
	FabricOp mine = {.opcode = FABRIC_READ, .region = FABRIC_LOCKS, .length = 8, .buffer = &words[0]};
	FabricOp others = {.opcode = FABRIC_READ, .region = FABRIC_LOCKS, .length = 8, .buffer = &words[1]};

	fixture_open(&fixture);
	talker = connect_client(&fixture, fixture.incarnation);
	other = connect_client(&fixture, fixture.incarnation);
	for (int i = 0; i < ROUNDS; i++)
	{
		time_t deadline = time(NULL) + PATIENCE_SECONDS;
		uint64_t ticket;

		/* Behind this one the talker has been heard of alone. */
		assert_int_equal(fabric_execute(talker.endpoint, &mine, 1), FABRIC_OK);
		assert_int_equal(fabric_post(other.endpoint, &others, 1, &ticket), FABRIC_OK);
		while (!fabric_ended(other.endpoint, ticket))
		{
			assert_true(time(NULL) < deadline);
			assert_int_equal(fabric_execute(talker.endpoint, &mine, 1), FABRIC_OK);
		}
		assert_int_equal(fabric_wait(other.endpoint, ticket), FABRIC_OK);
	}
	channel_close(&talker);
	channel_close(&other);
	fixture_close(&fixture);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_others_are_heard)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

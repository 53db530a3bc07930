/*
 * test_connections.c
 *		What a memory node keeps of its connections and instances (rdma/server/connection.c, instances.c): who counts where, and until
 *		when.  A server of which there is no more than this needs.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/testing.h"
#include "rdma/server/server_state.h"

#define TENANT 3u

static FabricServer *server;

static int
server_start(void **state)
{
	server = calloc(1, sizeof(FabricServer));
	assert_non_null(server);
	server->memory.instances = calloc(MEMORY_MAX_INSTANCES, sizeof(MemoryInstance));
	assert_non_null(server->memory.instances);
	server->events = epoll_create1(0);
	assert_true(server->events >= 0);
	TAILQ_INIT(&server->connections);
	TAILQ_INIT(&server->strangers);
	TAILQ_INIT(&server->closed);
	TAILQ_INIT(&server->due);
	return 0;
}

static int
server_end(void **state)
{
	close(server->events);
	free(server->memory.instances);
	free(server);
	return 0;
}

/* ---- instances */

/* An instance is known by both words of its cluster. */
static void
test_found(void **state)
{
	const uint64_t one[2] = {1, 2}, other[2] = {1, 3}, another[2] = {2, 2};

	assert_null(instance_find(server, one));
	MemoryInstance *made = instance_make(server, one, TENANT);

	assert_non_null(made);
	assert_ptr_equal(instance_find(server, one), made);
	assert_ptr_equal(instance_make(server, one, TENANT), made);
	assert_null(instance_find(server, other));
	assert_null(instance_find(server, another));
	assert_ptr_not_equal(instance_make(server, other, TENANT), made);
	assert_int_equal(made->tenant, TENANT);
}

/* Each tenant has so many, whatever the others have; all together there are no more than there is room for. */
static void
test_shares(void **state)
{
	uint32_t made = 0;

	for (uint32_t tenant = 1; tenant <= MEMORY_MAX_TENANTS; tenant++)
	{
		for (uint64_t i = 0; i < MEMORY_TENANT_INSTANCES; i++, made++)
			assert_non_null(instance_make(server, (uint64_t[2]){tenant, i + 1}, tenant));
		assert_null(instance_make(server, (uint64_t[2]){tenant, MEMORY_TENANT_INSTANCES + 1}, tenant));
		assert_non_null(instance_find(server, (uint64_t[2]){tenant, MEMORY_TENANT_INSTANCES}));
	}
	assert_int_equal(made, MEMORY_MAX_INSTANCES);
	assert_null(instance_make(server, (uint64_t[2]){99, 1}, MEMORY_MAX_TENANTS + 1));
	assert_null(instance_find(server, (uint64_t[2]){99, 1}));
}

/* At a start each instance that ever attached has to do so anew, its launcher too. */
static void
test_fenced(void **state)
{
	static const uint32_t before[] = {0, 1, 7, MEMORY_LAST_INCARNATION - 1, MEMORY_LAST_INCARNATION};
	static const uint32_t behind[] = {0, 2, 8, MEMORY_LAST_INCARNATION, 1};

	for (uint64_t i = 0; i < 5; i++)
	{
		MemoryInstance *instance = instance_make(server, (uint64_t[2]){7, i}, TENANT);

		assert_non_null(instance);
		instance->incarnation = before[i];
		instance->launcher_nonce = before[i] == 0 ? 0 : 77;
	}
	instances_fence(server);
	for (uint64_t i = 0; i < 5; i++)
	{
		assert_int_equal(instance_find(server, (uint64_t[2]){7, i})->incarnation, behind[i]);
		assert_int_equal(instance_find(server, (uint64_t[2]){7, i})->launcher_nonce, 0);
	}
}

/* ---- connections */

/* A connection of the tenant, with the peer's end of its socket; of the network: a stranger at first. */
static ServerConnection *
connect_one(int *peer, bool network)
{
	int ends[2];
	ServerConnection *connection;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
	connection = connection_make(server, ends[0]);
	assert_non_null(connection);
	*peer = ends[1];
	connection->tenant = TENANT;
	TAILQ_INSERT_TAIL(&server->connections, connection, all);
	if (network)
	{
		connection->stream = stream_server(ends[0], NULL, NULL, NULL);
		assert_non_null(connection->stream);
		connection->stranger = true;
		TAILQ_INSERT_TAIL(&server->strangers, connection, list);
		server->stranger_count++;
	}
	return connection;
}

static void
assert_counts(uint32_t strangers, uint32_t connections)
{
	assert_int_equal(server->stranger_count, strangers);
	assert_int_equal(server->network_connections, connections);
	assert_int_equal(server->tenants[TENANT].connections, connections);
}

/* Ends it, as the end of a round does. */
static void
end_one(ServerConnection *connection, int peer)
{
	connection_close(server, connection);
	connection_close(server, connection); /* an end comes once */
	assert_ptr_equal(TAILQ_FIRST(&server->closed), connection);
	TAILQ_REMOVE(&server->closed, connection, list);
	connection_free(connection);
	close(peer);
}

/* A network client counts once, from when it has proven a key until it goes; a local one never. */
static void
test_counted(void **state)
{
	int peers[4];
	ServerConnection *first = connect_one(&peers[0], true);
	ServerConnection *second = connect_one(&peers[1], true);
	ServerConnection *third = connect_one(&peers[2], true);
	ServerConnection *local = connect_one(&peers[3], false);

	assert_int_equal(server->figures.connections_accepted, 4);
	assert_counts(3, 0);
	connection_count(server, first);
	assert_counts(2, 1);
	connection_count(server, first);
	assert_counts(2, 1);
	connection_introduced(server, first);
	assert_counts(2, 1);
	connection_introduced(server, second);
	assert_counts(1, 2);
	assert_ptr_equal(TAILQ_FIRST(&server->strangers), third);
	connection_introduced(server, local);
	assert_counts(1, 2);
	/* Who has proven a key, and goes before it says HELLO, is no stranger any more. */
	connection_count(server, third);
	assert_counts(0, 3);
	end_one(third, peers[2]);
	assert_counts(0, 2);
	assert_true(TAILQ_EMPTY(&server->strangers));
	end_one(local, peers[3]);
	assert_counts(0, 2);
	end_one(second, peers[1]);
	end_one(first, peers[0]);
	assert_counts(0, 0);
	/* A stranger who goes was never anything else. */
	first = connect_one(&peers[0], true);
	assert_counts(1, 0);
	end_one(first, peers[0]);
	assert_counts(0, 0);
	assert_true(TAILQ_EMPTY(&server->connections));
}

/* What the server looks at, it does not look at behind its end. */
static void
test_looked_at(void **state)
{
	int peer;
	ServerConnection *connection = connect_one(&peer, false);

	connection_make_due(server, connection);
	connection_make_due(server, connection);
	assert_ptr_equal(TAILQ_FIRST(&server->due), connection);
	server->talker = connection;
	server->attaching = 1;
	connection->attaching = true;
	connection_close(server, connection);
	assert_true(TAILQ_EMPTY(&server->due));
	assert_null(server->talker);
	assert_int_equal(server->attaching, 0);
	connection_make_due(server, connection);
	assert_true(TAILQ_EMPTY(&server->due));
	connection_notify(server, connection, FABRIC_OK);
	assert_int_equal(buffer_used(&connection->output), 0);
	/* Another one's end leaves the talker alone. */
	server->talker = (ServerConnection *) server;
	TAILQ_REMOVE(&server->closed, connection, list);
	connection_free(connection);
	close(peer);
	connection = connect_one(&peer, false);
	end_one(connection, peer);
	assert_ptr_equal(server->talker, server);
}

/* The next reply's flags, as the peer reads them; *descriptors: that came with it. */
static uint32_t
read_reply(int peer, int *descriptors)
{
	uint8_t bytes[256];
	union
	{
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} ancillary;
	struct iovec part = {bytes, frame_wire_bytes(FRAME_STATUS_BYTES)};
	struct msghdr message = {.msg_iov = &part,
	                         .msg_iovlen = 1,
	                         .msg_control = ancillary.bytes,
	                         .msg_controllen = sizeof(ancillary.bytes)};
	FrameHead frame;
	uint32_t flags = UINT32_MAX;
	int descriptor;

	assert_int_equal(recvmsg(peer, &message, 0), part.iov_len);
	assert_true(frame_decode(bytes, &frame));
	assert_int_equal(frame_status(bytes + FRAME_HEAD_BYTES, &flags), FABRIC_OK);
	*descriptors = 0;
	if (message.msg_controllen > 0)
	{
		memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
		close(descriptor);
		*descriptors = 1;
	}
	return flags;
}

/* A reply says that the server is about to stop, and the memory goes along with the first one alone. */
static void
test_replies(void **state)
{
	const FrameHead request = {.method = CONTROL_HELLO, .version = FRAME_VERSION, .request = 5};
	int peer, descriptors;
	ServerConnection *connection = connect_one(&peer, false);

	connection->passed = dup(0);
	assert_true(connection->passed >= 0);
	connection_reply(server, connection, &request, FABRIC_OK, 0);
	assert_true(connection_send(server, connection));
	assert_int_equal(connection->passed, -1);
	assert_int_equal(read_reply(peer, &descriptors), 0);
	assert_int_equal(descriptors, 1);
	server->draining = true;
	connection_reply(server, connection, &request, FABRIC_OK, 0);
	assert_true(connection_send(server, connection));
	assert_int_equal(read_reply(peer, &descriptors), CONTROL_DRAINING);
	assert_int_equal(descriptors, 0);
	/* A peer that is gone ends the connection. */
	close(peer);
	connection_reply(server, connection, &request, FABRIC_OK, 0);
	assert_false(connection_send(server, connection));
	assert_true(connection->closing);
	TAILQ_REMOVE(&server->closed, connection, list);
	connection_free(connection);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, server_start, server_end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_found),   TEST(test_shares),    TEST(test_fenced),
		TEST(test_counted), TEST(test_looked_at), TEST(test_replies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

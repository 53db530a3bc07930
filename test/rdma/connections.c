/*
 * connections.c
 *		Connections of verbs that come and go, and one that cannot come.
 *
 *		connections COUNT       so many clients, one after the other, with a chain and a reset each
 *		connections memlock     the limit of locked memory is too low: refused, by memory node and client
 */
#define _GNU_SOURCE 1
#include <string.h>
#include <sys/resource.h>

#include "support/fabric_process.h"

#define NODE_BYTES (4u << 20)
#define MAX_CHANNELS 8u

/* root is not bound by the limit: this user is. */
#define NOBODY 65534

static void
come_and_go(const FabricProcess *process, int count)
{
	uint64_t offset = service_info(process->network_address).first_unit;
	uint32_t incarnation = cluster_attach(process->network_address, 1);

	CHECK(service_commit(process->network_address, offset, FABRIC_UNIT_BYTES) == FABRIC_OK);
	for (int i = 0; i < count; i++)
	{
		TestChannel channel;
		uint64_t word = (uint64_t) i;

		/* The memory node sees the end of the last one a little later. */
		while (channel_try_open(&channel, process->network_address, 1, incarnation, NULL) != FABRIC_OK)
			sleep_ms(10);
		channel_write(&channel, offset, &word, 8);
		CHECK(fabric_reset(channel.endpoint) == FABRIC_OK);
		word = UINT64_MAX;
		channel_read(&channel, offset, &word, 8);
		CHECK(word == (uint64_t) i);
		channel_close(&channel);
	}
}

/* A client with no right to lock memory, in a process of its own. */
static void
refused_client(const FabricProcess *process, uint32_t incarnation)
{
	pid_t child = start_child();

	if (child == 0)
	{
		struct rlimit none = {0, 0};
		TestChannel channel;
		FabricStatus status;

		CHECK(setrlimit(RLIMIT_MEMLOCK, &none) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
		status = channel_try_open(&channel, process->network_address, 1, incarnation, NULL);
		printf("a client without locked memory: %s\n", fabric_status_name(status));
		fflush(stdout);
		_exit(status == FABRIC_NO_MEMORY ? 0 : 1);
	}
	CHECK(wait_for_child(child) == 0);
}

/* The memory node, too. */
static void
refused_node(void)
{
	FabricProcess process;
	pid_t child;

	fabric_process_prepare(&process, NODE_BYTES, MAX_CHANNELS);
	fabric_process_listen(&process, false);
	fabric_process_verbs(&process, getenv("FABRIC_TEST_VERBS"));
	CHECK(chown(process.directory, NOBODY, NOBODY) == 0);
	child = start_child();
	if (child == 0)
	{
		struct rlimit none = {0, 0};

		CHECK(setrlimit(RLIMIT_MEMLOCK, &none) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
		_exit(fabric_process_serve(&process, -1));
	}
	CHECK(wait_for_child(child) == 1);
	fabric_process_remove(&process);
}

int
main(int argc, char **argv)
{
	FabricProcess process;

	if (argc != 2)
		return 2;
	fabric_process_prepare(&process, NODE_BYTES, MAX_CHANNELS);
	fabric_process_listen(&process, false);
	fabric_process_verbs(&process, getenv("FABRIC_TEST_VERBS"));
	fabric_process_start(&process);
	if (strcmp(argv[1], "memlock") == 0)
	{
		refused_client(&process, cluster_attach(process.network_address, 1));
		refused_node();
	}
	else
		come_and_go(&process, atoi(argv[1]));
	fabric_process_remove(&process);
	return 0;
}

/*
 * node.c
 *		See node.h.
 */
#include "node.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../sim/files.h"
#include "fuzz.h"

static Service *
open_service(uint64_t node_bytes)
{
	static char memory_path[192];
	static char socket_path[192];
	ServiceOptions options = {
		.memory_path = memory_path,
		.socket_path = socket_path,
		.node_bytes = node_bytes,
		.max_channels = FUZZ_CHANNELS,
		.max_trees = FUZZ_TREES,
		.listen = "127.0.0.1:0",
		.insecure_loopback = true,
	};
	Service *service;
	char detail[FABRIC_DETAIL_BYTES];

	snprintf(memory_path, sizeof(memory_path), "%.150s/fuzz-%d", files_base(), (int) getpid());
	snprintf(socket_path, sizeof(socket_path), "%.150s/fuzz-%d.socket", files_base(), (int) getpid());
	if (service_open(&options, &service, detail) != FABRIC_OK)
	{
		fprintf(stderr, "%s\n", detail);
		fuzz_require(false);
	}
	return service;
}

Service *
fuzz_node_open(uint64_t node_bytes)
{
	return open_service(node_bytes);
}

Service *
fuzz_node_reopen(Service *service, uint64_t node_bytes, FabricMemoryState *state)
{
	service_close(service, 0, false);
	service = open_service(node_bytes);
	*state = service_memory_state(service);
	return service;
}

void
fuzz_node_close(Service *service)
{
	service_close(service, 0, true);
}

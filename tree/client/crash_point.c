/*
 * crash_point.c
 *		Chains and calls as crash points: in builds for tests a hook is called before and behind each of them, and may
 *		end or pause the process there.
 */
#include "tree/client/directory.h"

#include <stdio.h>
#include <string.h>

/* Room for the names of a chain's operations; a longer chain's name is cut. */
#define CRASH_POINT_NAME_BYTES 64

static const char *const opcode_names[] = {
	[FABRIC_READ] = "READ",
	[FABRIC_WRITE] = "WRITE",
	[FABRIC_COMPARE_SWAP] = "SWAP",
	[FABRIC_FETCH_ADD] = "FETCH_ADD",
};

static const char *const method_names[DIRECTORY_METHODS] = {
	[DIRECTORY_CREATE] = "call CREATE",
	[DIRECTORY_DROP] = "call DROP",
	[DIRECTORY_READ] = "call READ",
	[DIRECTORY_UPDATE] = "call UPDATE",
	[DIRECTORY_LIST] = "call LIST",
	[DIRECTORY_STATUS] = "call STATUS",
	[DIRECTORY_EXTENT] = "call EXTENT",
	[DIRECTORY_EPOCH_OPEN] = "call EPOCH_OPEN",
	[DIRECTORY_EPOCH_CLOSE] = "call EPOCH_CLOSE",
	[DIRECTORY_REPLICA] = "call COPY",
	[DIRECTORY_REPLICAS] = "call COPIES",
	[DIRECTORY_DESCEND] = "call DESCEND",
	[DIRECTORY_GIVE] = "call GIVE",
};

static void
tell(const TreeClient *client, const char *name, bool before)
{
	assert(client->options.environment.crash_point != NULL);
	assert(name != NULL);
	client->options.environment.crash_point(client->options.environment.argument, name, before);
}

static void
name_chain(const FabricOp *ops, int count, char name[CRASH_POINT_NAME_BYTES])
{
	size_t used = 0;

	assert(count > 0);
	assert(ops != NULL);
	name[0] = '\0';
	for (int i = 0; i < count && used < CRASH_POINT_NAME_BYTES; i++)
		used += (size_t) snprintf(name + used, CRASH_POINT_NAME_BYTES - used, "%s%s", i == 0 ? "" : " ",
		                          opcode_names[ops[i].opcode]);
}

FabricStatus
crash_point_execute(const TreeClient *client, FabricEndpoint *endpoint, FabricOp *ops, int count)
{
	char name[CRASH_POINT_NAME_BYTES];
	FabricStatus status;

	if (client->options.environment.crash_point == NULL)
		return fabric_execute(endpoint, ops, count);
	name_chain(ops, count, name);
	tell(client, name, true);
	status = fabric_execute(endpoint, ops, count);
	if (client->options.environment.crash_point != NULL)
		tell(client, name, false);
	return status;
}

FabricStatus
step_post(const TreeClient *client, FabricEndpoint *endpoint, FabricOp *ops, int count, uint64_t *ticket)
{
	char name[CRASH_POINT_NAME_BYTES];

	if (client->options.environment.crash_point != NULL)
	{
		name_chain(ops, count, name);
		tell(client, name, true);
	}
	return fabric_post(endpoint, ops, count, ticket);
}

FabricStatus
step_wait(const TreeClient *client, FabricEndpoint *endpoint, uint64_t ticket, const FabricOp *ops, int count)
{
	FabricStatus status = fabric_wait(endpoint, ticket);
	char name[CRASH_POINT_NAME_BYTES];

	if (client->options.environment.crash_point != NULL)
	{
		name_chain(ops, count, name);
		tell(client, name, false);
	}
	return status;
}

FabricStatus
crash_point_call(const TreeClient *client, FabricEndpoint *endpoint, DirectoryMethod method,
                 const void *request, uint32_t request_bytes, void *reply, uint32_t *reply_bytes)
{
	FabricStatus status;

	assert(method > 0 && method < DIRECTORY_METHODS);
	assert(reply_bytes != NULL);
	if (client->options.environment.crash_point != NULL)
		tell(client, method_names[method], true);
	status = fabric_call(endpoint, (uint16_t) method, request, request_bytes, reply, reply_bytes);
	if (client->options.environment.crash_point != NULL)
		tell(client, method_names[method], false);
	return status;
}

void
tree_client_crash_points(TreeClient *client, TreeCrashPoint *crash_point)
{
	assert(client != NULL);
	client->options.environment.crash_point = crash_point;
}

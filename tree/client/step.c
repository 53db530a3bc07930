/*
 * step.c
 *		Chains and calls as steps: whoever tests what an end or a pause between two of them leaves behind is told of each.
 */
#include "tree/client/directory.h"

#include <stdio.h>
#include <string.h>

/* Room for the names of a chain's operations; a longer chain's name is cut. */
#define STEP_NAME_BYTES 64

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
	assert(client->options.environment.step != NULL);
	assert(name != NULL);
	client->options.environment.step(client->options.environment.argument, name, before);
}

static void
name_chain(const FabricOp *ops, int count, char name[STEP_NAME_BYTES])
{
	size_t used = 0;

	assert(count > 0);
	assert(ops != NULL);
	name[0] = '\0';
	for (int i = 0; i < count && used < STEP_NAME_BYTES; i++)
		used += (size_t) snprintf(name + used, STEP_NAME_BYTES - used, "%s%s", i == 0 ? "" : " ",
		                          opcode_names[ops[i].opcode]);
}

FabricStatus
step_execute(const TreeClient *client, FabricEndpoint *endpoint, FabricOp *ops, int count)
{
	char name[STEP_NAME_BYTES];
	FabricStatus status;

	if (client->options.environment.step == NULL)
		return fabric_execute(endpoint, ops, count);
	name_chain(ops, count, name);
	tell(client, name, true);
	status = fabric_execute(endpoint, ops, count);
	if (client->options.environment.step != NULL)
		tell(client, name, false);
	return status;
}

FabricStatus
step_post(const TreeClient *client, FabricEndpoint *endpoint, FabricOp *ops, int count, uint64_t *ticket)
{
	char name[STEP_NAME_BYTES];

	if (client->options.environment.step != NULL)
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
	char name[STEP_NAME_BYTES];

	if (client->options.environment.step != NULL)
	{
		name_chain(ops, count, name);
		tell(client, name, false);
	}
	return status;
}

FabricStatus
step_call(const TreeClient *client, FabricEndpoint *endpoint, DirectoryMethod method, const void *request,
          uint32_t request_bytes, void *reply, uint32_t *reply_bytes)
{
	FabricStatus status;

	assert(method > 0 && method < DIRECTORY_METHODS);
	assert(reply_bytes != NULL);
	if (client->options.environment.step != NULL)
		tell(client, method_names[method], true);
	status = fabric_call(endpoint, (uint16_t) method, request, request_bytes, reply, reply_bytes);
	if (client->options.environment.step != NULL)
		tell(client, method_names[method], false);
	return status;
}

void
tree_client_steps(TreeClient *client, TreeStep *step)
{
	assert(client != NULL);
	client->options.environment.step = step;
}

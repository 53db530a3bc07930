/*
 * directory_call.c
 *		One call to a memory node's service.  Whose fate is not known is repeated on a fresh channel, for all calls are idempotent.
 */
#include "tree/client/directory.h"

TreeStatus
directory_call(TreeClient *client, uint32_t memory_node, DirectoryMethod method, const void *request,
               uint32_t request_bytes, void *reply, uint32_t reply_bytes)
{
	FabricStatus status = FABRIC_LOST;

	assert(memory_node < client->options.nodes);
	assert(!client->holding);
	for (int attempt = 0; client_tries_again(client, attempt); attempt++)
	{
		FabricEndpoint *endpoint = access_endpoint(client, memory_node);
		uint32_t got = reply_bytes;

		if (endpoint == NULL)
			return client_away(client, memory_node);
		if (client->doubt & 1ull << memory_node)
		{
			TreeStatus settled = access_settle(client, memory_node);

			if (settled != TREE_OK)
				return settled;
		}
		if (attempt > 0 && client_should_stop(client))
			return client_fail(client, TREE_STOPPED, "stopped while a call was repeated");
		status = crash_point_call(client, endpoint, method, request, request_bytes, reply, &got);
		if (status != FABRIC_TIMED_OUT && status != FABRIC_STOPPED && status != FABRIC_LOST)
			client_silence_ends(client);
		switch (status)
		{
			case FABRIC_OK:
				if (got != reply_bytes)
					return client_fail(client, TREE_DAMAGED,
					                   "memory node %u: call %d answered %u bytes instead of %u", memory_node,
					                   (int) method, got, reply_bytes);
				return TREE_OK;
			case FABRIC_NOT_FOUND:
				return client_fail(client, TREE_NOT_FOUND, "memory node %u: no such tree", memory_node);
			case FABRIC_NO_MEMORY:
				client->full_by = TREE_FULL_MEMORY;
				return client_fail(client, TREE_MEMORY_FULL, "memory node %u has no memory left",
				                   memory_node);
			case FABRIC_QUOTA:
				client->full_by = TREE_FULL_QUOTA;
				return client_fail(client, TREE_MEMORY_FULL,
				                   "the quota of this tenant at memory node %u is used up", memory_node);
			case FABRIC_HOST_FULL:
				client->full_by = TREE_FULL_HOST;
				return client_fail(client, TREE_MEMORY_FULL,
				                   "the file system of the memory of memory node %u is full", memory_node);
			case FABRIC_TOO_MANY:
				client->full_by = TREE_FULL_TREES;
				return client_fail(client, TREE_MEMORY_FULL,
				                   "memory node %u holds as many trees as it may, for all or for this tenant",
				                   memory_node);
			case FABRIC_RANGE:
			case FABRIC_PROTOCOL:
				return client_fail(client, TREE_INVALID, "memory node %u refuses call %d", memory_node,
				                   (int) method);
			case FABRIC_TIMED_OUT:
			case FABRIC_STOPPED:
			case FABRIC_LOST:
				client->doubt |= 1ull << memory_node;
				break;
			default:
				return client_fabric_fail(client, memory_node, status);
		}
	}
	return client_fabric_fail(client, memory_node, status);
}

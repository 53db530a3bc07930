/*
 * failure.c
 *		How calls of the tree fail: a status, with a line of detail that the client keeps.
 */
#include "tree/internal.h"

#include <stdarg.h>
#include <stdio.h>

const char *
tree_status_name(TreeStatus status)
{
	static const char *const names[] = {
		[TREE_OK] = "ok",
		[TREE_END] = "end",
		[TREE_STOPPED] = "stopped",
		[TREE_MEMORY_FULL] = "memory node full",
		[TREE_NO_MEMORY] = "out of memory",
		[TREE_UNREACHABLE] = "memory node unreachable",
		[TREE_FENCED] = "fenced",
		[TREE_DAMAGED] = "damaged",
		[TREE_NOT_FOUND] = "not found",
		[TREE_TIMED_OUT] = "lock not available in time",
		[TREE_INVALID] = "invalid",
	};

	if (status == TREE_RETRY)
		return "retry";
	if ((unsigned) status >= sizeof(names) / sizeof(names[0]))
		return "unknown";
	return names[status];
}

TreeStatus
client_fail(TreeClient *client, TreeStatus status, const char *format, ...)
{
	va_list arguments;

	assert(client != NULL);
	assert(status != TREE_OK);

	va_start(arguments, format);
	(void) vsnprintf(client->detail, sizeof(client->detail), format, arguments);
	va_end(arguments);
	return status;
}

bool
client_outrun(TreeClient *client, Outrun *outrun, uint32_t least)
{
	uint64_t now = client_now_us(client);

	assert(!client->holding);
	if (outrun->tries++ == 0)
		outrun->since = now;
	return outrun->tries < least ||
	       now - outrun->since <= (uint64_t) client->options.operation_timeout_ms * 1000;
}

TreeStatus
client_fabric_fail(TreeClient *client, uint32_t memory_node, FabricStatus status)
{
	TreeStatus mine;

	assert(status != FABRIC_OK);
	switch (status)
	{
		case FABRIC_FENCED:
			mine = TREE_FENCED;
			break;
		case FABRIC_NO_MEMORY:
		case FABRIC_QUOTA:
		case FABRIC_TOO_MANY:
		case FABRIC_HOST_FULL:
			client->full_by = status == FABRIC_QUOTA       ? TREE_FULL_QUOTA
			                  : status == FABRIC_TOO_MANY  ? TREE_FULL_TREES
			                  : status == FABRIC_HOST_FULL ? TREE_FULL_HOST
			                                               : TREE_FULL_MEMORY;
			mine = TREE_MEMORY_FULL;
			break;
		case FABRIC_NOT_FOUND:
			mine = TREE_NOT_FOUND;
			break;
		case FABRIC_RANGE:
		case FABRIC_PROTOCOL:
		case FABRIC_NOT_SUPPORTED:
		case FABRIC_EXISTS:
		case FABRIC_DENIED:
			mine = TREE_INVALID;
			break;
		default:
			mine = TREE_UNREACHABLE;
			break;
	}
	if (mine == TREE_UNREACHABLE || mine == TREE_FENCED)
		client->trouble |= 1u << memory_node;
	return client_fail(client, mine, "memory node %u: %s", memory_node, fabric_status_name(status));
}

TreeStatus
client_unanswered(TreeClient *client, uint32_t memory_node, const char *what)
{
	assert(memory_node < client->options.nodes);
	client->trouble |= 1u << memory_node;
	return client_fail(client, TREE_UNREACHABLE, "memory node %u: %s are not answered in time", memory_node,
	                   what);
}

TreeStatus
client_away(TreeClient *client, uint32_t memory_node)
{
	assert(memory_node < client->options.nodes);
	if (!node_is_open(client->shared, memory_node))
		return client_fail(client, TREE_UNREACHABLE, "memory node %u is not attached", memory_node);
	/* access_connect() has said why. */
	return TREE_UNREACHABLE;
}

const char *
tree_detail(const TreeClient *client)
{
	assert(client != NULL);
	return client->detail;
}

TreeFull
tree_full_by(const TreeClient *client)
{
	assert(client != NULL);
	return client->full_by;
}

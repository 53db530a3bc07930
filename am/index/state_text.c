/*
 * state_text.c
 *		Why an index is not in state ok, in words.
 *
 * Where a memory node is, and what an attempt to connect to it ended with, is for members of pg_read_all_stats: errors.c.
 */
#include "am/base/sherman.h"

#include "am/base/shared.h"
#include "am/index/index.h"
#include "am/nodes/nodes.h"

/*
 * Whether this session has tried in vain to connect to a memory node.
 */
static bool
is_refused(int position)
{
	FabricStatus status;

	return sherman_connection_failure(position, &status)[0] != '\0';
}

int
sherman_refused_position(const ShermanMetaPage *meta)
{
	uint32		home = tree_home(meta->root);
	ShermanTreeEntry entry = {0};

	if (meta->tree == 0 || home >= TREE_MAX_NODES)
		return -1;
	if (is_refused((int) home))
		return (int) home;
	(void) sherman_trees_find(meta->tree, &entry);
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		if (entry.members[i] != 0 && is_refused(i))
			return i;
	}
	return -1;
}

const char *
sherman_state_text(const ShermanMetaPage *meta, ShermanState state, ShermanReason reason)
{
	switch (state)
	{
		case SHERMAN_OK:
			return meta == NULL || !sherman_is_healing(meta) ? NULL :
				"the server or a memory node ended without a shutdown after the index was changed: its entries are "
				"looked up in the table";
		case SHERMAN_ATTACHING:
		case SHERMAN_UNREACHABLE:
			if (state == SHERMAN_ATTACHING && sherman_shared->local.take_over != SHERMAN_TAKE_OVER_NOT)
				return "this server is taking over the indexes of the one that it is a copy of";
			if (state == SHERMAN_ATTACHING && sherman_promotion_waits())
				return sherman_unfollowed_text;
			return sherman_away_text(meta != NULL ? sherman_away_position(meta) : -1);
		case SHERMAN_BROKEN:
			return sherman_why_broken(reason);
		case SHERMAN_HIDDEN:
			break;
	}
	return sherman_why_hidden();
}

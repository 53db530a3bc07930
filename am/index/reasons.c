/*
 * reasons.c
 *		Why indexes are broken or hidden, in words, and which statement rebuilds one.
 */
#include "am/base/sherman.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "am/base/shared.h"
#include "am/index/index.h"

static const char *const reason_texts[] = {
	[SHERMAN_REASON_NONE] = "",
	[SHERMAN_REASON_UNCLEAN] = "the server or the memory node ended unclean after the index was changed",
	[SHERMAN_REASON_MEMORY_LOST] = "the memory node's memory is not the one that the index was built in: it was lost, or this server is a "
	"promoted standby, a restored backup or a copy",
	[SHERMAN_REASON_OTHER_CLUSTER] = "the index belongs to another database cluster, from which pg_upgrade or a copy of its files has brought it",
	[SHERMAN_REASON_OTHER_DATABASE] = "the index was copied with its database",
	[SHERMAN_REASON_TREE_MISSING] = "the memory node does not know the index's tree",
	[SHERMAN_REASON_UNAVAILABLE] = "a change was skipped while the memory node was away",
	[SHERMAN_REASON_FORMAT] = "the index was written by another version, or its metapage is damaged",
	[SHERMAN_REASON_NOT_BUILT] = "the index was never built",
	[SHERMAN_REASON_SESSION_ENDED] = "the session of its temporary table has ended",
	[SHERMAN_REASON_OTHER_HISTORY] = "the index was changed in another history of this server, by a copy of it perhaps",
	[SHERMAN_REASON_GONE] = "a memory node that it lies on was away for longer than sherman.gone_after",
	[SHERMAN_REASON_FORGOTTEN] = "a memory node that it lies on was given up by sherman_forget_memory_node()",
	[SHERMAN_REASON_ENCODING] = "the order of a collation is another one than when the index was built, or its keys are encoded in another way",
};

const char *
sherman_reason_text(ShermanReason reason)
{
	return (unsigned) reason < lengthof(reason_texts) && reason_texts[reason] != NULL ? reason_texts[reason] : "unknown";
}

const char *
sherman_why_hidden(void)
{
	if (sherman_shared == NULL)
		return "the library was not loaded when the server started";
	if (!IsPostmasterEnvironment)
		return "the server runs in single-user mode";
	if (IsBinaryUpgrade)
		return "pg_upgrade runs the server";
	return sherman_is_reading_standby() ? "the server is in recovery, and does not read indexes of unlogged tables" :
		"the server is in recovery";
}

/*
 * Whether a promotion may be what has broken an index: it lies in memory that was another server's.
 */
static bool
follows_from_promotion(ShermanReason reason)
{
	return sherman_shared != NULL && sherman_shared->promoted &&
		(reason == SHERMAN_REASON_MEMORY_LOST || reason == SHERMAN_REASON_TREE_MISSING ||
		 reason == SHERMAN_REASON_OTHER_HISTORY || reason == SHERMAN_REASON_OTHER_CLUSTER);
}

const char *
sherman_why_broken(ShermanReason reason)
{
	if (!follows_from_promotion(reason))
		return sherman_reason_text(reason);
	return psprintf("this server was promoted; %s", sherman_reason_text(reason));
}

int
sherman_hint_rebuild(Relation index)
{
	const char *schema = get_namespace_name(RelationGetNamespace(index));

	return errhint("Rebuild it with REINDEX INDEX %s, or all broken indexes with SELECT sherman_rebuild_all().",
				   quote_qualified_identifier(schema, RelationGetRelationName(index)));
}

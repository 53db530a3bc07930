/*
 * largest.c
 *		For the error that a memory node is full: the indexes of this database that have most of its memory.
 */
#include "am/base/sherman.h"

#include "access/relation.h"
#include "access/xlog.h"
#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "am/background/background.h"
#include "am/base/shared.h"
#include "am/index/index.h"
#include "am/nodes/nodes.h"

/* Indexes that are named. */
#define NAMED 3

/* Indexes whose size is asked for at most: of more, those that have most entries as far as the catalog knows. */
#define ASKED_MAX 200

typedef struct LargeIndex
{
	char	   *name;			/* as SQL has it */
	uint64		bytes;			/* at all memory nodes */
} LargeIndex;

typedef struct Largest
{
	TreeClient *client;
	bool		sees_all;
	int			asked;
	int			passed;			/* indexes that could not be looked at */
	int			count;
	LargeIndex	index[NAMED];	/* the largest first */
} Largest;

/*
 * Notes an index, unless so many larger ones are known.
 */
static void
note(Largest *largest, Relation index, uint64 bytes)
{
	int			place = largest->count;

	while (place > 0 && largest->index[place - 1].bytes < bytes)
		place--;
	if (place == NAMED)
		return;
	if (largest->count < NAMED)
		largest->count++;
	memmove(&largest->index[place + 1], &largest->index[place], (largest->count - 1 - place) * sizeof(LargeIndex));
	largest->index[place].bytes = bytes;
	largest->index[place].name =
		quote_qualified_identifier(get_namespace_name(RelationGetNamespace(index)), RelationGetRelationName(index));
}

/*
 * Whether a metapage names a tree of this database that can be asked for.
 */
static bool
has_tree(const ShermanMetaPage *meta)
{
	return meta->tree != 0 &&
		(meta->flags & SHERMAN_META_BROKEN) == 0 && meta->database == MyDatabaseId &&
		meta->system_identifier == GetSystemIdentifier() &&
		sherman_node_phase((int) tree_home(meta->root)) == SHERMAN_PHASE_ATTACHED;
}

/*
 * Asks the memory nodes for the size of an open index.  False: they do not answer, and are not to be asked any more.
 */
static bool
weigh(Largest *largest, Relation index)
{
	ShermanMetaPage meta;
	TreeRecord	record;
	TreeStatus	status;

	/* What is being built has none yet. */
	if (RELATION_IS_OTHER_TEMP(index) || !sherman_metapage_read(index, &meta))
	{
		largest->passed++;
		return true;
	}
	if (!has_tree(&meta))
		return true;
	largest->asked++;
	status = tree_record_read(largest->client, meta.tree, tree_home(meta.root), &record);
	if (status == TREE_OK)
		note(largest, index, record.bytes);
	if (status == TREE_OK || status == TREE_NOT_FOUND)
		return true;
	(void) sherman_connection_trouble();
	return false;
}

/*
 * The same for an index that may be gone, or locked by somebody: nobody is waited for.
 */
static bool
weigh_candidate(Largest *largest, const ShermanCandidate *candidate)
{
	Relation	index;
	bool		answered;

	/* Whom the session belongs to decides, not in whose function it is. */
	if (!largest->sees_all && !has_privs_of_role(GetSessionUserId(), candidate->owner))
		return true;
	if (!sherman_is_ours(candidate->oid))
		return true;
	if (!ConditionalLockRelationOid(candidate->oid, AccessShareLock))
	{
		largest->passed++;
		return true;
	}
	index = try_relation_open(candidate->oid, NoLock);
	if (index == NULL)
	{
		UnlockRelationOid(candidate->oid, AccessShareLock);
		return true;
	}
	answered = weigh(largest, index);
	relation_close(index, AccessShareLock);
	return answered;
}

static int
by_entries(const ListCell *left, const ListCell *right)
{
	const ShermanCandidate *one = lfirst(left);
	const ShermanCandidate *other = lfirst(right);

	return one->entries > other->entries ? -1 : one->entries < other->entries;
}

static char *
describe(const Largest *largest)
{
	StringInfoData sentence;

	initStringInfo(&sentence);
	appendStringInfo(&sentence, largest->sees_all ? "The largest indexes of this database are" : "Your largest indexes in this database are");
	for (int i = 0; i < largest->count; i++)
	{
		Datum		size = DirectFunctionCall1(pg_size_pretty, Int64GetDatum((int64) largest->index[i].bytes));

		appendStringInfo(&sentence, "%s %s (%s)", i == 0 ? "" : ",", largest->index[i].name, TextDatumGetCString(size));
	}
	if (largest->passed > 0)
		appendStringInfo(&sentence, "; not looked at, as locked or being built: %d", largest->passed);
	appendStringInfoChar(&sentence, '.');
	return sentence.data;
}

char *
sherman_largest_indexes(void)
{
	Largest		largest = {
		.client = sherman_client_if_ready(),
		.sees_all = has_privs_of_role(GetSessionUserId(), ROLE_PG_MONITOR)
	};
	List	   *candidates = sherman_list_candidates();
	ListCell   *cell;

	if (largest.client == NULL)
		return NULL;
	list_sort(candidates, by_entries);
	foreach(cell, candidates)
	{
		if (largest.asked == ASKED_MAX)
			break;
		if (!weigh_candidate(&largest, lfirst(cell)))
			return NULL;
	}
	return largest.count == 0 ? NULL : describe(&largest);
}

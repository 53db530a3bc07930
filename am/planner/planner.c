/*
 * planner.c
 *		What the planner learns of our indexes: only of those that may be used.
 *
 * Core treats some clauses specially when an index column's operator family is one of btree's (LIKE prefixes, boolean columns,
 * networks): where our family mirrors btree's member by member, the planner is shown btree's.  Nothing here asks a memory node:
 * that waits for a path that would use the index (cost.c).
 */
#include "am/base/sherman.h"

#include "access/htup_details.h"
#include "access/genam.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_amproc.h"
#include "miscadmin.h"
#include "optimizer/plancat.h"
#include "utils/catcache.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "am/access/access.h"
#include "am/base/compat.h"
#include "am/base/owner.h"
#include "am/base/shared.h"
#include "am/index/index.h"
#include "am/planner/planner.h"

/* Whether one operator family mirrors another, as found before. */
typedef struct MirrorKey
{
	Oid			ours;
	Oid			theirs;
} MirrorKey;

typedef struct MirrorEntry
{
	MirrorKey	key;
	bool		mirrors;
} MirrorEntry;

static HTAB *mirrors = NULL;
static bool mirrors_stale = false;

/* ---- operator families ---- */

static void
family_changed(Datum argument, int cache, uint32 hash)
{
	mirrors_stale = true;
}

/*
 * Whether a family has an operator with these types and this strategy.
 */
static bool
has_operator(Oid family, const FormData_pg_amop *wanted)
{
	HeapTuple	tuple = SearchSysCache4(AMOPSTRATEGY, ObjectIdGetDatum(family),
										ObjectIdGetDatum(wanted->amoplefttype),
										ObjectIdGetDatum(wanted->amoprighttype),
										Int16GetDatum(wanted->amopstrategy));
	bool		same;

	if (!HeapTupleIsValid(tuple))
		return false;
	same = ((Form_pg_amop) GETSTRUCT(tuple))->amopopr == wanted->amopopr;
	ReleaseSysCache(tuple);
	return same;
}

/*
 * Whether each operator of `theirs` is in `ours` under the same strategy: then what the planner plans by
 * theirs, the executor can do by ours.
 */
static bool
compare_families(Oid ours, Oid theirs)
{
	CatCList   *members = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(theirs));
	bool		mirrors_all = members->n_members > 0;

	for (int i = 0; i < members->n_members && mirrors_all; i++)
	{
		Form_pg_amop member = (Form_pg_amop) GETSTRUCT(&members->members[i]->tuple);

		mirrors_all = member->amoppurpose != AMOP_SEARCH || has_operator(ours, member);
	}
	ReleaseSysCacheList(members);
	return mirrors_all;
}

static bool
family_mirrors(Oid ours, Oid theirs)
{
	MirrorKey	key = {ours, theirs};
	MirrorEntry *entry;
	bool		found;
	bool		answer;

	if (mirrors == NULL)
	{
		HASHCTL		control = {.keysize = sizeof(MirrorKey), .entrysize = sizeof(MirrorEntry),
		.hcxt = CacheMemoryContext};

		mirrors = hash_create("sherman operator families", 64, &control,
							  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
		CacheRegisterSyscacheCallback(AMOPSTRATEGY, family_changed, (Datum) 0);
	}
	if (mirrors_stale)
	{
		HASH_SEQ_STATUS sequence;

		hash_seq_init(&sequence, mirrors);
		while ((entry = hash_seq_search(&sequence)) != NULL)
			hash_search(mirrors, &entry->key, HASH_REMOVE, NULL);
		mirrors_stale = false;
	}
	entry = hash_search(mirrors, &key, HASH_FIND, NULL);
	if (entry != NULL)
		return entry->mirrors;
	answer = compare_families(ours, theirs);
	entry = hash_search(mirrors, &key, HASH_ENTER, &found);
	entry->mirrors = answer;
	return answer;
}

/*
 * Shows btree's operator families instead of ours, if that is right for all key columns.
 */
static void
show_families(IndexOptInfo *info)
{
	if (info->sortopfamily == NULL)
		return;
	for (int i = 0; i < info->nkeycolumns; i++)
	{
		if (info->sortopfamily[i] != info->opfamily[i] &&
			!family_mirrors(info->opfamily[i], info->sortopfamily[i]))
			return;
	}
	for (int i = 0; i < info->nkeycolumns; i++)
		info->opfamily[i] = info->sortopfamily[i];
}

/* ---- states ---- */

/*
 * What can be done with an index over expressions, or with a predicate, while leaves of it may be in doubt.  False: nothing.
 */
static bool
plan_in_doubt(IndexOptInfo *info, Relation index)
{
	ShermanMetaPage meta;
	int			code;

	if ((info->indexprs == NIL && info->indpred == NIL) || !sherman_metapage_read(index, &meta) || !sherman_is_healing(&meta))
		return true;
	code = owner_code_of(index);
	/* A bitmap scan looks nothing up, and has the query's own conditions tested for each row: but so it would the predicate. */
	if ((code & OWNER_CODE_EXPRESSIONS) != 0)
		info->amhasgettuple = false;
	/* Rows of unverified leaves are looked up with them, and nobody says that a worker may run them. */
	info->amcanparallel = false;
	return (code & OWNER_CODE_PREDICATE) == 0;
}

/*
 * Fills in what we know of an index; false: it is not to be used.
 */
static bool
fill_index(IndexOptInfo *info)
{
	Relation	index;
	ShermanReason reason;
	ShermanState state;
	bool		usable = true;

	/* No block, as core has found: it is being built, our own question for workers comes here. */
	if (info->pages == 0)
		return false;
	/* A scan would end with a conflict. */
	if (ActiveSnapshotSet() && sherman_snapshot_is_of_standby(GetActiveSnapshot()))
		return false;
	index = index_open(info->indexoid, NoLock);
	state = sherman_index_state(index, &reason);
	if (state == SHERMAN_ATTACHING)
	{
		ShermanMetaPage meta;

		if (sherman_metapage_read(index, &meta))
			sherman_wait_attached(&meta);
		state = sherman_index_state(index, &reason);
	}
	if (state == SHERMAN_OK)
	{
		show_families(info);
		compat_keep_ends(info);
		usable = plan_in_doubt(info, index);
	}
	else if (state == SHERMAN_BROKEN)
		sherman_warn_broken(index, reason);
	index_close(index, NoLock);
	return state == SHERMAN_OK && usable;
}

/*
 * Whether an index that the planner considers is one of ours, and is there.
 */
bool
sherman_plans(const IndexOptInfo *info)
{
	return (void *) info->amcostestimate == (void *) sherman_costestimate && compat_index_is_there(info);
}

void
sherman_fill_indexes(RelOptInfo *rel)
{
	ListCell   *cell;

	foreach(cell, rel->indexlist)
	{
		IndexOptInfo *info = lfirst_node(IndexOptInfo, cell);

		if (!sherman_plans(info))
			continue;
		if (!fill_index(info))
			rel->indexlist = foreach_delete_current(rel->indexlist, cell);
	}
}

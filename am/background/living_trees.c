/*
 * living_trees.c
 *		Which trees the indexes of this database name: the collector's look at the metapages.
 *
 * The metapage of an index that is locked exclusively is not read, as the holder is about to change which tree
 * it names.  One that went before it was looked at may have left its tree to an index that came later (ALTER
 * TYPE does that), so that those have to be looked at, too.  What was looked at once needs no second look: an
 * index that is there is never given a tree of another.
 *
 * Temporary indexes of other sessions are read from their files (metapage.c).
 */
#include "am/base/sherman.h"

#include "access/relation.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/hsearch.h"
#include "utils/syscache.h"

#include "am/background/background.h"
#include "am/base/shared.h"
#include "am/index/index.h"

/* Pauses while others have temporary indexes locked, and how many a run makes. */
#define LOCK_PAUSE_US 1000
#define LOCK_PAUSES 200

/* How often the catalog is read while indexes go that have not been looked at. */
#define ROUNDS 20

/* What came of looking at an index, or at several: the greatest. */
typedef enum Look
{
	LOOK_DONE,
	LOOK_GONE,					/* it is not there any more */
	LOOK_REFUSED				/* not now */
} Look;

typedef struct Living
{
	HTAB	   *trees;			/* that are named */
	HTAB	   *seen;			/* indexes that were looked at */
	int			patience;		/* pauses that are left */
} Living;

/*
 * Locks an index, unless somebody has it exclusively.  ON COMMIT DELETE ROWS has temporary ones so for a
 * moment again and again: these are tried some more times.
 */
static bool
lock_candidate(const ShermanCandidate *candidate, Living *living)
{
	while (!ConditionalLockRelationOid(candidate->oid, AccessShareLock))
	{
		if (!candidate->temporary || living->patience == 0)
			return false;
		living->patience--;
		CHECK_FOR_INTERRUPTS();
		pg_usleep(LOCK_PAUSE_US);
	}
	return true;
}

/*
 * Reads an open index's metapage, and notes the tree that it names, unless that is broken.
 */
static Look
look_at_metapage(Relation index, Living *living)
{
	bool		temporary = RELATION_IS_OTHER_TEMP(index);
	ShermanMetaPage meta;
	ShermanTreeEntry entry;

	if (!sherman_metapage_read(index, &meta))
		return temporary && meta.reason == SHERMAN_REASON_NONE ? LOOK_REFUSED : LOOK_DONE;
	if (meta.tree == 0 || (meta.flags & SHERMAN_META_BROKEN) != 0 || meta.database != MyDatabaseId ||
		meta.system_identifier != GetSystemIdentifier())
		return LOOK_DONE;
	/*
	 * What the node knows to be broken the metapage learns before the memory is freed: the reason stays
	 * known.  That of a temporary index only its session can write.
	 */
	if (!sherman_trees_find(sherman_tree_key(&meta), &entry) || (entry.flags & TREE_RECORD_BROKEN) == 0)
	{
		ShermanLivingTree *alive = hash_search(living->trees, &meta.tree, HASH_ENTER, NULL);

		alive->valid = meta.replicas_valid;
	}
	else if (!temporary)
		sherman_metapage_break(index, SHERMAN_REASON_UNCLEAN);
	return LOOK_DONE;
}

static Look
look_at_candidate(const ShermanCandidate *candidate, Living *living)
{
	Relation	index;
	Look		look;

	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(candidate->oid)))
		return LOOK_GONE;
	/* By the access method's callbacks. */
	if (!sherman_is_ours(candidate->oid))
		return LOOK_DONE;
	if (!lock_candidate(candidate, living))
		return LOOK_REFUSED;
	index = try_relation_open(candidate->oid, NoLock);
	if (index == NULL)
		return LOOK_GONE;
	look = look_at_metapage(index, living);
	/* The commits of a temporary index's session are not to wait for us. */
	relation_close(index, candidate->temporary ? AccessShareLock : NoLock);
	return look;
}

/*
 * Looks at what is there and was not looked at yet.
 */
static Look
look_at_new(Living *living)
{
	Look		worst = LOOK_DONE;
	ListCell   *cell;

	foreach(cell, sherman_list_candidates())
	{
		ShermanCandidate *candidate = lfirst(cell);
		Look		look;

		if (hash_search(living->seen, &candidate->oid, HASH_FIND, NULL) != NULL)
			continue;
		CHECK_FOR_INTERRUPTS();
		look = look_at_candidate(candidate, living);
		if (look == LOOK_DONE)
			hash_search(living->seen, &candidate->oid, HASH_ENTER, NULL);
		worst = Max(worst, look);
	}
	return worst;
}

static HTAB *
make_set(const char *name, Size key, Size entry)
{
	HASHCTL		control = {.keysize = key, .entrysize = entry, .hcxt = CurrentMemoryContext};

	return hash_create(name, 256, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/*
 * Collects the trees, keyed by number, that the indexes of this database name and that are not broken.  False:
 * not all indexes could be looked at.
 */
bool
sherman_living_trees(HTAB **trees)
{
	Living		living = {
		.trees = make_set("living trees", sizeof(uint64), sizeof(ShermanLivingTree)),
		.seen = make_set("indexes seen", sizeof(Oid), sizeof(Oid)),
		.patience = LOCK_PAUSES
	};
	Look		look = LOOK_GONE;

	for (int i = 0; i < ROUNDS && look == LOOK_GONE; i++)
		look = look_at_new(&living);
	*trees = living.trees;
	return look == LOOK_DONE;
}

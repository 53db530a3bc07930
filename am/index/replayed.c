/*
 * replayed.c
 *		On a hot standby: metapages that replay changes under indexes that are open.
 *
 * The metapage is the referee there, too: of an index with a copy it says which of the two halves is the tree, and of any index whether entries
 * may have been left out.  A standby has it as it was replayed, which is enough: the primary writes it, by WAL, before anything is
 * changed in one half alone, or left out.  So what a half lacks that the primary has lost, and this server still reaches, are entries of
 * rows whose WAL is behind the metapage's; and a snapshot that sees such a row was taken when the metapage was replayed.  Whoever looks at
 * the metapage behind the snapshot, and finds the half there, has in it all that the snapshot sees, as long as it reads.
 * doc/internals/standby.md has the whole.
 *
 * On the primary the process that changes a metapage tells the others by shared memory.  Replay tells nobody.
 */
#include "am/base/sherman.h"

#include "am/base/shared.h"
#include "am/index/index.h"

/* `now`: what it says.  A page of another tree is that of another file, and none of this index's. */
static bool
metapage_is_as_before(const ShermanIndex *index, Relation relation, ShermanMetaPage *now)
{
	const ShermanMetaPage *before = &index->meta;

	return !sherman_metapage_read(relation, now) || now->tree != before->tree ||
		(now->replicas_valid == before->replicas_valid && (now->flags & SHERMAN_META_BROKEN) == (before->flags & SHERMAN_META_BROKEN));
}

bool
sherman_metapage_stands(const ShermanIndex *index, Relation relation)
{
	ShermanMetaPage now;

	return metapage_is_as_before(index, relation, &now);
}

void
sherman_metapage_check(const ShermanIndex *index, Relation relation)
{
	ShermanMetaPage now;

	if (metapage_is_as_before(index, relation, &now))
		return;
	if ((now.flags & SHERMAN_META_BROKEN) != 0)
		sherman_report_state(ERROR, relation, SHERMAN_BROKEN, (ShermanReason) now.reason);
	sherman_report_conflict(relation, "has lost one of its two memory nodes");
}

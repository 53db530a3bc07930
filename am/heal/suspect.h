/*
 * suspect.h
 *		Entries of leaves that a crash has left in doubt (TreeBatch.suspect): whether a row has them.
 */
#ifndef SHERMAN_SUSPECT_H
#define SHERMAN_SUSPECT_H

#include "am/index/index.h"

/* What looking up rows needs, for one reader of one index. */
typedef struct SuspectRows SuspectRows;

/* What the rows that the snapshot sees under an entry's TID are to it. */
typedef enum SuspectFinding
{
	SUSPECT_NO_ROW,				/* none is its row */
	SUSPECT_CHANGED,			/* one may be, of which an expression or the predicate, not truly immutable, says otherwise now:
								 * maintenance knows that; to others it is none, unless it is the owner's predicate */
	SUSPECT_UNKNOWN,			/* one may be: what would tell is not to be run here (suspect_code()) */
	SUSPECT_ROW					/* one is */
} SuspectFinding;

/*
 * Makes it, in the memory that is given; `heap` NULL: the index's table, which somebody has locked, is opened.  Raises.
 */
extern SuspectRows *suspect_rows_make(Relation heap, Relation index, ShermanIndex *opened, MemoryContext context);

/* OWNER_CODE_* of what the index's owner has written and this process is not to run: 0 = findings are never SUSPECT_UNKNOWN. */
extern int	suspect_code(const SuspectRows *rows);

/*
 * Whether a row that the snapshot sees has this TID and is what the entry says, in all columns, and fits the index's
 * predicate.  Of a chain of updates an MVCC snapshot sees one member; for others any member will do.  Runs the index's
 * expressions, those of the table's owner only as that (owner_begin()).  Nothing is locked; may raise.
 */
extern SuspectFinding suspect_row_find(SuspectRows *rows, const TreeKey *entry, Snapshot snapshot);

/* Whether the table has the block: it may be shorter than before the crash. */
extern bool suspect_block_is_there(SuspectRows *rows, BlockNumber block);

/* Lets go of the table's page. */
extern void suspect_rows_pause(SuspectRows *rows);

/* Lets go of everything. */
extern void suspect_rows_end(SuspectRows *rows);

#endif							/* SHERMAN_SUSPECT_H */

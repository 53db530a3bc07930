/*
 * unverified.h
 *		Entries of unverified leaves (TreeBatch.unverified): whether a row has them.
 */
#ifndef SHERMAN_UNVERIFIED_H
#define SHERMAN_UNVERIFIED_H

#include "am/index/index.h"

/* What looking up rows needs, for one reader of one index. */
typedef struct UnverifiedRows UnverifiedRows;

/* What the rows that the snapshot sees under an entry's TID are to it. */
typedef enum UnverifiedFinding
{
	UNVERIFIED_NO_ROW,				/* none is its row */
	UNVERIFIED_CHANGED,			/* one may be, of which an expression or the predicate, not truly immutable, says otherwise now:
								 * maintenance knows that; to others it is none, unless it is the owner's predicate */
	UNVERIFIED_UNKNOWN,			/* one may be: what would tell is not to be run here (unverified_code()) */
	UNVERIFIED_ROW					/* one is */
} UnverifiedFinding;

/*
 * Makes it, in the memory that is given; `heap` NULL: the index's table, which the caller has locked, is opened.
 * Raises.
 */
extern UnverifiedRows *unverified_rows_make(Relation heap, Relation index, ShermanIndex *opened, MemoryContext context);

/* OWNER_CODE_* of what the index's owner has written and this process is not to run: 0 = findings are never UNVERIFIED_UNKNOWN. */
extern int	unverified_code(const UnverifiedRows *rows);

/*
 * Whether a row that the snapshot sees has this TID and is what the entry says, in all columns, and fits the index's
 * predicate.  Of a chain of updates an MVCC snapshot sees one member; for others any member will do.  Runs the index's
 * expressions, those of the table's owner only as that (owner_begin()).  Nothing is locked; may raise.
 */
extern UnverifiedFinding unverified_row_find(UnverifiedRows *rows, const TreeKey *entry, Snapshot snapshot);

/* Whether the table has the block: it may be shorter than before the crash. */
extern bool unverified_block_is_there(UnverifiedRows *rows, BlockNumber block);

/* Lets go of the table's page. */
extern void unverified_rows_pause(UnverifiedRows *rows);

/* Lets go of everything. */
extern void unverified_rows_end(UnverifiedRows *rows);

#endif							/* SHERMAN_UNVERIFIED_H */

/*
 * suspect.h
 *		Entries of leaves that a crash has left in doubt (TreeBatch.suspect): whether a row has them.
 */
#ifndef SHERMAN_SUSPECT_H
#define SHERMAN_SUSPECT_H

#include "sherman.h"

/* What looking up rows needs, for one reader of one index. */
typedef struct SuspectRows SuspectRows;

/*
 * Makes it, in the memory that is given; `heap` NULL: the index's table, which somebody has locked, is opened.  Raises.
 */
extern SuspectRows *suspect_rows_make(Relation heap, Relation index, ShermanKeys *keys, MemoryContext context);

/*
 * Whether a row that the snapshot sees has this TID and is what the entry says, in all columns, and fits the index's
 * predicate.  Of a chain of updates an MVCC snapshot sees one member; for others any member will do.  Runs the index's
 * expressions as the table's owner.  Nothing is locked; may raise.
 */
extern bool suspect_row_fits(SuspectRows *rows, const TreeKey *entry, Snapshot snapshot);

/* Whether the table has the block: it may be shorter than before the crash. */
extern bool suspect_block_is_there(SuspectRows *rows, BlockNumber block);

/* Lets go of the table's page. */
extern void suspect_rows_pause(SuspectRows *rows);

/* Lets go of everything. */
extern void suspect_rows_end(SuspectRows *rows);

#endif							/* SHERMAN_SUSPECT_H */

/*
 * access.h
 *		The face of am/access: the callbacks of the access method.
 */
#ifndef SHERMAN_AM_ACCESS_H
#define SHERMAN_AM_ACCESS_H

#include "am/index/index.h"

/* ---- bottomup_delete.c: entries that go before a leaf is split ---- */

/* Before tree_insert(), behind sherman_index_for_insert(). */
extern void sherman_delete_install(ShermanIndex *index);

static inline void
sherman_delete_prepare(ShermanIndex *index, Relation heap, bool index_unchanged)
{
	index->heap = heap;
	index->churn = index_unchanged && index->relation->rd_index->indisvalid;
	if (unlikely(!index->full_told || index->full_churn != index->churn))
		sherman_delete_install(index);
}

/* ---- insert_batch.c: entries of one statement go together ---- */

/* Adds the entries that wait in this process. Raises what adding raises. */
extern void sherman_add_waiting(void);
/*
 * Before a statement changes rows, whose relations are in this range table: adds the entries of unique indexes that wait for tables among
 * them, as a row that it changes may be in conflict with one of theirs.
 */
extern void sherman_add_before_changes(const List *range_table);

/* What a statement or a utility command may do. */
typedef enum ShermanStatement
{
	SHERMAN_STATEMENT_OTHER,
	SHERMAN_STATEMENT_INSERTS,	/* adds rows, and changes none of those that it sees */
	SHERMAN_STATEMENT_COPIES,	/* the same, and triggers behind its rows are run before it says that it has added them */
	SHERMAN_STATEMENT_SPECULATES	/* inserts rows that it may take back at once (ON CONFLICT) */
} ShermanStatement;

/* A statement or a command that is being executed. */
typedef struct ShermanExecution
{
	ShermanStatement statement;
	struct EState *estate;		/* of one that speculates */
} ShermanExecution;

/*
 * Brackets each call of the executor and each utility command.  *around: the statement in which it is executed, for
 * sherman_statement_leave(), which is called behind an error all the same.
 */
extern void sherman_statement_begin(ShermanExecution *around, ShermanExecution execution);
extern void sherman_statement_leave(const ShermanExecution *around);
/* The executor has run a statement, and no trigger behind its rows: adds the entries of unique indexes that an INSERT has left waiting. */
extern void sherman_statement_rows_added(void);
/* Behind the last sherman_statement_leave() of a statement: adds the entries that it has left waiting. */
extern void sherman_statement_end(void);
/* The executor's and the commands' hooks are installed: registers the callbacks; from now on entries wait. */
extern void sherman_batches_install(void);

/* ---- routine_pgNN.c: what is another one in each version ---- */

/* Fills in the callbacks, and what else the table has, that this version of PostgreSQL has alone or calls in its own way. */
extern void sherman_routine_of_version(IndexAmRoutine *routine);

/* ---- callbacks ---- */
extern IndexBuildResult *sherman_build(Relation heap, Relation index, struct IndexInfo *info);
extern void sherman_buildempty(Relation index);
extern bool sherman_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
						   IndexUniqueCheck check_unique, bool index_unchanged, struct IndexInfo *info);
extern IndexBulkDeleteResult *sherman_bulkdelete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
												 IndexBulkDeleteCallback callback, void *callback_state);
extern IndexBulkDeleteResult *sherman_vacuumcleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats);
extern void sherman_costestimate(struct PlannerInfo *root, struct IndexPath *path, double loop_count,
								 Cost *startup, Cost *total, Selectivity *selectivity, double *correlation, double *pages);
extern char *sherman_buildphasename(int64 phase);

#endif							/* SHERMAN_AM_ACCESS_H */

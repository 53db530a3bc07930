/*
 * statements.c
 *		Hooks into the executor: where statements begin and end, for entries that wait meanwhile (am/access/insert_batch.c).
 */
#include "am/base/sherman.h"

#include "executor/executor.h"

#include "am/access/access.h"
#include "am/base/compat.h"
#include "am/server/explain.h"
#include "am/server/server.h"

static ExecutorRun_hook_type previous_run = NULL;
static ExecutorFinish_hook_type previous_finish = NULL;

static bool
is_speculating(PlanState *state)
{
	return state != NULL && IsA(state, ModifyTableState) &&
		((ModifyTable *) state->plan)->onConflictAction != ONCONFLICT_NONE;
}

/*
 * Whether a query inserts rows that it takes back at once if they are in conflict with others: while it still runs, they are dead to
 * everybody.
 */
static bool
speculates(const QueryDesc *query)
{
	ListCell   *cell;

	if (is_speculating(query->planstate))
		return true;
	/* Those in WITH. */
	foreach(cell, query->estate->es_auxmodifytables)
	{
		if (is_speculating(lfirst(cell)))
			return true;
	}
	return false;
}

/*
 * INSERT adds rows and changes none, unless another part of the statement does (WITH), or a conflict has it do so.
 */
static ShermanStatement
statement_kind(const QueryDesc *query)
{
	if (speculates(query))
		return SHERMAN_STATEMENT_SPECULATES;
	if (query->operation == CMD_INSERT && query->estate->es_auxmodifytables == NIL)
		return SHERMAN_STATEMENT_INSERTS;
	return SHERMAN_STATEMENT_OTHER;
}

static void
run(QueryDesc *query, ScanDirection direction, uint64 count COMPAT_ONCE_PARAMETER)
{
	ShermanExecution around;

	/* Workers read trees, too. */
	if (query->plannedstmt->parallelModeNeeded)
		sherman_add_waiting();
	if (query->operation != CMD_SELECT || query->plannedstmt->hasModifyingCTE)
		sherman_add_before_changes(query->plannedstmt->rtable);
	sherman_statement_begin(&around, (ShermanExecution) {statement_kind(query), query->estate});
	PG_TRY();
	{
		if (previous_run != NULL)
			previous_run(query, direction, count COMPAT_ONCE_ARGUMENT);
		else
			standard_ExecutorRun(query, direction, count COMPAT_ONCE_ARGUMENT);
		sherman_statement_rows_added();
	}
	PG_FINALLY();
	{
		sherman_statement_leave(&around);
	}
	PG_END_TRY();
}

static void
executor_run(QueryDesc *query, ScanDirection direction, uint64 count COMPAT_ONCE_PARAMETER)
{
	ShermanMeasure measure;

	if (likely(!sherman_measure_begin(&measure, query)))
	{
		run(query, direction, count COMPAT_ONCE_ARGUMENT);
		return;
	}
	PG_TRY();
	{
		run(query, direction, count COMPAT_ONCE_ARGUMENT);
	}
	PG_FINALLY();
	{
		sherman_measure_end(&measure);
	}
	PG_END_TRY();
}

/*
 * The end of a statement.  What runs in it still may add rows: triggers, and what of WITH nobody has read.
 */
static void
finish(QueryDesc *query)
{
	ShermanStatement statement = speculates(query) ? SHERMAN_STATEMENT_SPECULATES : SHERMAN_STATEMENT_OTHER;
	ShermanExecution around;

	sherman_statement_begin(&around, (ShermanExecution) {statement, query->estate});
	PG_TRY();
	{
		if (previous_finish != NULL)
			previous_finish(query);
		else
			standard_ExecutorFinish(query);
	}
	PG_FINALLY();
	{
		sherman_statement_leave(&around);
	}
	PG_END_TRY();
	sherman_statement_end();
}

static void
executor_finish(QueryDesc *query)
{
	ShermanMeasure measure;

	if (likely(!sherman_measure_begin(&measure, query)))
	{
		finish(query);
		return;
	}
	PG_TRY();
	{
		finish(query);
	}
	PG_FINALLY();
	{
		sherman_measure_end(&measure);
	}
	PG_END_TRY();
	sherman_measure_tell(&measure);
}

void
sherman_statements_install(void)
{
	previous_run = ExecutorRun_hook;
	ExecutorRun_hook = executor_run;
	previous_finish = ExecutorFinish_hook;
	ExecutorFinish_hook = executor_finish;
	sherman_batches_install();
}

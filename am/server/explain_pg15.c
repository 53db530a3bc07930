/*
 * explain_pg15.c
 *		EXPLAIN up to PostgreSQL 17 has no hook for what it writes of a plan: the sum of a statement is written behind its plan, when
 *		EXPLAIN ends the executor.  That is before it writes the time of execution, and inside of the group of the statement.
 *
 * Only EXPLAIN of a statement tells the hook where it writes: not EXPLAIN EXECUTE, and not auto_explain.
 */
#include "am/server/explain.h"

#include "executor/executor.h"

static ExplainOneQuery_hook_type previous_explain = NULL;
static ExecutorEnd_hook_type previous_end = NULL;

/* What EXPLAIN is about now; NULL: nothing. */
static ExplainState *explained = NULL;
static const char *explained_text = NULL;

static void
explain_one_query(Query *query, int options, IntoClause *into, ExplainState *es, const char *text, ParamListInfo params,
				  QueryEnvironment *environment)
{
	ExplainState *outer = explained;
	const char *outer_text = explained_text;

	explained = es;
	explained_text = text;
	PG_TRY();
	{
		if (previous_explain != NULL)
			previous_explain(query, options, into, es, text, params, environment);
		else
			compat_explain_one_query(query, options, into, es, text, params, environment);
	}
	PG_FINALLY();
	{
		explained = outer;
		explained_text = outer_text;
	}
	PG_END_TRY();
}

static void
executor_end(QueryDesc *query)
{
	/* Statements of functions that are run meanwhile have texts of their own. */
	ShermanMeasured *statement = explained != NULL && explained->buffers && query->sourceText == explained_text ?
		sherman_measured_find(query, NULL, NULL) : NULL;
	ShermanTraffic total;

	if (statement != NULL)
	{
		sherman_measured_total(statement, &total);
		sherman_traffic_explain(&total, explained);
	}
	if (previous_end != NULL)
		previous_end(query);
	else
		standard_ExecutorEnd(query);
}

void
sherman_explain_install(void)
{
	previous_explain = ExplainOneQuery_hook;
	ExplainOneQuery_hook = explain_one_query;
	previous_end = ExecutorEnd_hook;
	ExecutorEnd_hook = executor_end;
}

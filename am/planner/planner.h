/*
 * planner.h
 *		The face of am/planner: hooks of the planner and the executor, constraints.
 */
#ifndef SHERMAN_AM_PLANNER_H
#define SHERMAN_AM_PLANNER_H

#include "am/base/shared.h"

/* ---- relation_hook_pgNN.c ---- */
extern void sherman_planner_install(void);
/* ---- planner.c ---- */
/* The planner is about to learn of this relation: of our indexes it keeps those that may be used, and what it is to know of them. */
extern void sherman_fill_indexes(struct RelOptInfo *rel);
/* Whether an index that the planner considers is one of ours. */
extern bool sherman_plans(const struct IndexOptInfo *info);
/* Sets up row_comparison.c. */
extern void sherman_row_comparison_install(void);

/* ---- on_conflict_pgNN.c ---- */

/* Installs its hook. */
extern void sherman_on_conflict_install(void);

/* ---- lookahead_plan.c ---- */

/* Installs its hook. */
extern void sherman_lookahead_install(void);

/* ---- extremes.c ---- */

/* Installs its hook. */
extern void sherman_extremes_install(void);

/* ---- constraints.c ---- */

/*
 * Before a statement: takes the mark from the constraints over sherman indexes that it may give to btree, which knows none, and
 * returns them.  Behind it: gives the mark back, and warns the user of those that are btree's now.
 */
extern List *sherman_constraints_at_risk(Node *statement);
extern void sherman_constraints_after(List *constraints);

/* In PG_CATCH(), behind a statement: raises in place of an error of core's one that says what to do, or returns. */
extern void sherman_explain_error(Node *statement);

/* Refuses to change the mark of a constraint's index. */
extern void sherman_keep_mark(Node *statement);

/*
 * The statement with the access method of the constraints that it makes, if the setting wants it: a copy where
 * the tree may not be written.
 */
extern PlannedStmt *sherman_set_methods(PlannedStmt *statement, bool *read_only_tree);

#endif							/* SHERMAN_AM_PLANNER_H */

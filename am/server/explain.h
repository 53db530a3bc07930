/*
 * explain.h
 *		What statements have moved between this server and memory nodes across the network, measured for EXPLAIN (ANALYZE, BUFFERS).
 */
#ifndef SHERMAN_EXPLAIN_H
#define SHERMAN_EXPLAIN_H

#include "am/base/shared.h"

#include "executor/execdesc.h"
#include "nodes/execnodes.h"

#include "am/nodes/traffic.h"

/* A statement that is measured: explain.c's own. */
typedef struct ShermanMeasured ShermanMeasured;

/* One call of the executor for it, on the caller's stack. */
typedef struct ShermanMeasure
{
	ShermanMeasured *statement;
	ShermanTraffic before;
	uint32		workers;		/* what ShermanSlot.measured was */
} ShermanMeasure;

/* Begins to measure a call of the executor.  False: nobody wants to know, and there is nothing to end. */
extern bool sherman_measure_begin(ShermanMeasure *measure, QueryDesc *query);
/* Ends it, behind an error as well. */
extern void sherman_measure_end(const ShermanMeasure *measure);
/* Behind ExecutorFinish(): a worker of a parallel statement tells its leader. */
extern void sherman_measure_tell(const ShermanMeasure *measure);

/* The statement that has this descriptor, this plan, or this state of the executor, the others being NULL; NULL: it is not measured. */
extern ShermanMeasured *sherman_measured_find(const QueryDesc *query, const PlannedStmt *plan, const EState *estate);
/* Its sum, and that of its workers. */
extern void sherman_measured_total(const ShermanMeasured *statement, ShermanTraffic *total);
/* Adds what workers have told of a node of its plan. */
extern void sherman_measured_add_node(const ShermanMeasured *statement, int plan_node, ShermanTraffic *sum);

/* Takes what a node of a plan has moved. */
typedef void ShermanTellNode(void *argument, int plan_node, const ShermanTraffic *traffic);

/*
 * Has workers tell of the nodes of their plans one by one.  `count` returns a number above that of each node, `each` calls `tell`, with its
 * argument, for each that was measured.
 */
extern void sherman_measured_by_node(int (*count) (PlanState *plan),
									 void (*each) (PlanState *plan, ShermanTellNode *tell, void *argument));

/* ---- explain_pg15.c, explain_pg18.c ---- */

/* Installs the hooks of EXPLAIN. */
extern void sherman_explain_install(void);

#endif							/* SHERMAN_EXPLAIN_H */

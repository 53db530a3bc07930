/*
 * explain.c
 *		Statements that EXPLAIN (ANALYZE, BUFFERS), or who else asks the executor for buffers, has run: what they have moved between this
 *		server and memory nodes across the network.
 *
 * A measured statement is known as long as its state of the executor.  Workers of a parallel one add what they have moved to a segment of
 * shared memory, which they find by their leader's slot: its first entry is the sum, the others are the nodes of the plan by their numbers.
 */
#include "am/server/explain.h"

#include "access/parallel.h"
#include "executor/instrument.h"
#include "storage/dsm.h"
#include "storage/proc.h"
#include "utils/memutils.h"

#include "am/nodes/nodes.h"

/* Of the sum, or of a node: a word for each of ShermanTraffic. */
typedef struct WorkersTraffic
{
	pg_atomic_uint64 word[SHERMAN_TRAFFIC_WORDS];
} WorkersTraffic;

typedef struct WorkersSegment
{
	int			nodes;			/* entries behind the first */
	WorkersTraffic entry[FLEXIBLE_ARRAY_MEMBER];
} WorkersSegment;

struct ShermanMeasured
{
	ShermanMeasured *outer;		/* the next one of the list */
	QueryDesc  *query;
	EState	   *estate;
	PlannedStmt *plan;
	ShermanTraffic sum;			/* of this process */
	dsm_segment *workers;		/* NULL: there are none, or nothing is heard of them */
	MemoryContextCallback gone;
};

StaticAssertDecl(sizeof(ShermanTraffic) % sizeof(uint64) == 0, "traffic is words");

static ShermanMeasured *measured = NULL;

/* How nodes are measured one by one; NULL: they are not. */
static int	(*count_nodes) (PlanState *plan) = NULL;
static void (*each_node) (PlanState *plan, ShermanTellNode *tell, void *argument) = NULL;

/* ---- statements ---- */

ShermanMeasured *
sherman_measured_find(const QueryDesc *query, const PlannedStmt *plan, const EState *estate)
{
	for (ShermanMeasured *statement = measured; statement != NULL; statement = statement->outer)
	{
		if ((query == NULL || statement->query == query) && (plan == NULL || statement->plan == plan) &&
			(estate == NULL || statement->estate == estate))
			return statement;
	}
	return NULL;
}

/* The state of the executor goes, also behind an error. */
static void
statement_gone(void *argument)
{
	ShermanMeasured *gone = argument;
	ShermanMeasured **place = &measured;

	while (*place != gone)
		place = &(*place)->outer;
	*place = gone->outer;
	if (gone->workers != NULL)
		dsm_detach(gone->workers);
}

/* Room for what workers will tell.  NULL: there is no segment left, and nothing will be heard of them. */
static dsm_segment *
make_segment(PlanState *plan)
{
	int			nodes = count_nodes != NULL ? count_nodes(plan) : 0;
	Size		bytes = offsetof(WorkersSegment, entry) + sizeof(WorkersTraffic) * (Size) (nodes + 1);
	dsm_segment *segment = dsm_create(bytes, DSM_CREATE_NULL_IF_MAXSEGMENTS);
	WorkersSegment *shared;

	if (segment == NULL)
		return NULL;
	/* The owner of resources may be released before the state of the executor, or behind it. */
	dsm_pin_mapping(segment);
	shared = dsm_segment_address(segment);
	shared->nodes = nodes;
	for (int i = 0; i <= nodes; i++)
	{
		for (size_t word = 0; word < SHERMAN_TRAFFIC_WORDS; word++)
			pg_atomic_init_u64(&shared->entry[i].word[word], 0);
	}
	return segment;
}

static ShermanMeasured *
statement_begin(QueryDesc *query)
{
	MemoryContext context = query->estate->es_query_cxt;
	ShermanMeasured *statement = MemoryContextAllocZero(context, sizeof(ShermanMeasured));

	statement->query = query;
	statement->estate = query->estate;
	statement->plan = query->plannedstmt;
	if (query->plannedstmt->parallelModeNeeded && !IsParallelWorker())
		statement->workers = make_segment(query->planstate);
	statement->outer = measured;
	measured = statement;
	statement->gone.func = statement_gone;
	statement->gone.arg = statement;
	MemoryContextRegisterResetCallback(context, &statement->gone);
	return statement;
}

/* Whether somebody asks for it, and there is a network: what is attached counts, as a list may wait for the server's next start. */
static bool
is_wanted(const QueryDesc *query)
{
	return (query->instrument_options & INSTRUMENT_BUFFERS) != 0 && sherman_shared != NULL && MyProc != NULL &&
		sherman_round_trip_us() > 0;
}

static pg_atomic_uint32 *
segment_of(const PGPROC *process)
{
	return &sherman_shared->slot[compat_number_of(process)].measured;
}

bool
sherman_measure_begin(ShermanMeasure *measure, QueryDesc *query)
{
	ShermanMeasured *statement;

	if (likely(!is_wanted(query)))
		return false;
	statement = sherman_measured_find(query, NULL, query->estate);
	measure->statement = statement != NULL ? statement : statement_begin(query);
	measure->workers = pg_atomic_read_u32(segment_of(MyProc));
	if (measure->statement->workers != NULL)
		pg_atomic_write_u32(segment_of(MyProc), dsm_segment_handle(measure->statement->workers));
	sherman_traffic_measured++;
	sherman_traffic_read(&measure->before);
	return true;
}

void
sherman_measure_end(const ShermanMeasure *measure)
{
	sherman_traffic_add_since(&measure->statement->sum, &measure->before);
	sherman_traffic_measured--;
	pg_atomic_write_u32(segment_of(MyProc), measure->workers);
}

/* ---- workers ---- */

static void
tell_entry(void *argument, int plan_node, const ShermanTraffic *traffic)
{
	WorkersSegment *shared = argument;
	const uint64 *words = (const uint64 *) traffic;

	if (plan_node >= shared->nodes)
		return;
	for (size_t word = 0; word < SHERMAN_TRAFFIC_WORDS; word++)
		pg_atomic_fetch_add_u64(&shared->entry[plan_node + 1].word[word], (int64) words[word]);
}

void
sherman_measure_tell(const ShermanMeasure *measure)
{
	uint32		handle;
	dsm_segment *segment;

	if (!IsParallelWorker() || MyProc->lockGroupLeader == NULL)
		return;
	handle = pg_atomic_read_u32(segment_of(MyProc->lockGroupLeader));
	segment = handle != 0 ? dsm_attach(handle) : NULL;
	if (segment == NULL)
		return;
	tell_entry(dsm_segment_address(segment), -1, &measure->statement->sum);
	if (each_node != NULL)
		each_node(measure->statement->query->planstate, tell_entry, dsm_segment_address(segment));
	dsm_detach(segment);
}

void
sherman_measured_add_node(const ShermanMeasured *statement, int plan_node, ShermanTraffic *sum)
{
	WorkersSegment *shared = statement->workers != NULL ? dsm_segment_address(statement->workers) : NULL;
	uint64	   *words = (uint64 *) sum;

	if (shared == NULL || plan_node >= shared->nodes)
		return;
	for (size_t word = 0; word < SHERMAN_TRAFFIC_WORDS; word++)
		words[word] += pg_atomic_read_u64(&shared->entry[plan_node + 1].word[word]);
}

void
sherman_measured_total(const ShermanMeasured *statement, ShermanTraffic *total)
{
	*total = statement->sum;
	sherman_measured_add_node(statement, -1, total);
}

void
sherman_measured_by_node(int (*count) (PlanState *plan), void (*each) (PlanState *plan, ShermanTellNode *tell, void *argument))
{
	count_nodes = count;
	each_node = each;
}

/*
 * build_parallel.c
 *		Builds by several processes: each reads a share of the table's blocks and sorts it, this one merges
 *		what they have sorted and loads the tree.
 *
 * Core up to 16 starts workers for btree alone.  What it does there is done here: as many workers as the
 * planner advises, maintenance_work_mem divided among all, this process reads and sorts as one of them.
 * Workers need no memory node.
 */
#include "am/access/build.h"

#include "access/parallel.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "pgstat.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"
#include "tcop/tcopprot.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"

#include "am/access/access.h"
#include "am/base/compat.h"
#include "am/base/owner.h"
#include "am/keys/keys.h"

/* Keys of the table of contents of the shared memory. */
#define TOC_BUILD 1
#define TOC_TABLE_SCAN 2
#define TOC_SORTS 3
#define TOC_QUERY 4
#define TOC_WAL 5
#define TOC_BUFFERS 6

typedef struct SharedBuild
{
	Oid			heap;
	Oid			index;
	bool		concurrent;
	int			participants;	/* that memory is divided among: workers asked for, and the leader */
	ShermanMetaPage encoding;	/* as sherman_keys_note() notes it, of the leader */

	slock_t		mutex;			/* for the rest */
	ConditionVariable progress; /* a participant is done */
	int			done;
	double		rows;			/* met in the table */
	double		tuples;			/* entries */
	ShermanImages images;
	bool		broken_hot_chain;
} SharedBuild;

struct ParallelBuild
{
	ParallelContext *context;
	Snapshot	snapshot;
	SharedBuild *shared;
	ParallelTableScanDesc table_scan;
	BuildShare	share;
	WalUsage   *wal;
	BufferUsage *buffers;
};

extern PGDLLEXPORT void sherman_parallel_build_main(dsm_segment *segment, shm_toc *toc);

/* ---- every participant ---- */

/*
 * Reads and sorts a participant's part, hands it over and adds up what it met.
 */
static void
participate(SharedBuild *shared, ParallelTableScanDesc table_scan, const BuildShare *share, Relation heap,
			Relation index, int participant, int participants)
{
	bool		leader = !IsParallelWorker();
	IndexInfo  *info = BuildIndexInfo(index);
	BuildState	state;
	double		rows;

	owner_reads_expressions(index, info);
	info->ii_Concurrent = shared->concurrent;
	build_begin(&state, heap, index, info);
	state.memory_kb = maintenance_work_mem / participants;
	state.participant = participant;
	state.share = share;
	rows = build_scan(&state, info, compat_beginscan_parallel(heap, table_scan), leader);
	build_sort(&state);

	SpinLockAcquire(&shared->mutex);
	shared->done++;
	shared->rows += rows;
	shared->tuples += state.tuples;
	for (int i = 0; i < SHERMAN_IMAGE_CLASSES; i++)
	{
		shared->images.count[i] += state.images.count[i];
		shared->images.bytes[i] += state.images.bytes[i];
	}
	shared->broken_hot_chain |= info->ii_BrokenHotChain;
	SpinLockRelease(&shared->mutex);
	ConditionVariableSignal(&shared->progress);
	build_end(&state);
}

/* ---- a worker ---- */

/*
 * Finds the sorts that the index's format asks for.
 */
static void
attach_sorts(shm_toc *toc, Relation index, dsm_segment *segment, BuildShare *share)
{
	void	   *sorts = shm_toc_lookup(toc, TOC_SORTS, false);

	memset(share, 0, sizeof(*share));
	if (sherman_keys_format(sherman_keys_make(index, NULL))->lossless)
	{
		share->keys = sorts;
		key_sort_share_attach(share->keys, segment);
	}
	else
	{
		share->tuples = sorts;
		tuplesort_attach_shared(share->tuples, segment);
	}
}

/*
 * Entry point of a worker.
 */
void
sherman_parallel_build_main(dsm_segment *segment, shm_toc *toc)
{
	SharedBuild *shared = shm_toc_lookup(toc, TOC_BUILD, false);
	WalUsage   *wal = shm_toc_lookup(toc, TOC_WAL, false);
	BufferUsage *buffers = shm_toc_lookup(toc, TOC_BUFFERS, false);

	/* As the leader holds them. */
	LOCKMODE	heap_lock = shared->concurrent ? ShareUpdateExclusiveLock : ShareLock;
	LOCKMODE	index_lock = shared->concurrent ? RowExclusiveLock : AccessExclusiveLock;
	Relation	heap;
	Relation	index;
	BuildShare	share;

	debug_query_string = shm_toc_lookup(toc, TOC_QUERY, true);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);
	heap = table_open(shared->heap, heap_lock);
	index = index_open(shared->index, index_lock);
	/* The operating system's locales may have changed since the leader loaded them. */
	if (!sherman_keys_fit(index, &shared->encoding))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("workers would order the keys of index \"%s\" in another way than this session",
						RelationGetRelationName(index)),
				 errdetail("The operating system's locales have changed since the session began."),
				 errhint("Connect anew, and repeat the command.")));
	attach_sorts(toc, index, segment, &share);
	InstrStartParallelQuery();
	participate(shared, shm_toc_lookup(toc, TOC_TABLE_SCAN, false), &share, heap, index, ParallelWorkerNumber,
				shared->participants);
	InstrEndParallelQuery(&buffers[ParallelWorkerNumber], &wal[ParallelWorkerNumber]);
	index_close(index, index_lock);
	table_close(heap, heap_lock);
}

/* ---- the leader ---- */

static Size
sorts_bytes(const BuildState *state, int participants)
{
	return state->format.lossless ? key_sort_share_bytes(participants) : tuplesort_estimate_shared(participants);
}

static void
estimate(shm_toc_estimator *estimator, Size bytes)
{
	shm_toc_estimate_chunk(estimator, bytes);
	shm_toc_estimate_keys(estimator, 1);
}

static void *
add_chunk(ParallelContext *context, uint64 key, Size bytes)
{
	void	   *chunk = shm_toc_allocate(context->toc, bytes);

	shm_toc_insert(context->toc, key, chunk);
	return chunk;
}

/*
 * Makes the shared memory. False: there was none to be had.
 */
static bool
make_shared(ParallelBuild *build, const BuildState *state)
{
	ParallelContext *context = build->context;
	Size		scan_bytes = table_parallelscan_estimate(state->heap, build->snapshot);
	Size		query_bytes = debug_query_string != NULL ? strlen(debug_query_string) + 1 : 0;
	int			participants = context->nworkers + 1;
	Size		share_bytes = sorts_bytes(state, participants);
	void	   *sorts;

	estimate(&context->estimator, sizeof(SharedBuild));
	estimate(&context->estimator, scan_bytes);
	estimate(&context->estimator, share_bytes);
	estimate(&context->estimator, query_bytes);
	estimate(&context->estimator, mul_size(sizeof(WalUsage), context->nworkers));
	estimate(&context->estimator, mul_size(sizeof(BufferUsage), context->nworkers));
	InitializeParallelDSM(context);
	if (context->seg == NULL)
		return false;

	build->shared = add_chunk(context, TOC_BUILD, sizeof(SharedBuild));
	memset(build->shared, 0, sizeof(SharedBuild));
	build->shared->heap = RelationGetRelid(state->heap);
	build->shared->index = RelationGetRelid(state->index);
	build->shared->concurrent = build->snapshot != SnapshotAny;
	build->shared->participants = participants;
	sherman_keys_note(state->keys, &build->shared->encoding);
	SpinLockInit(&build->shared->mutex);
	ConditionVariableInit(&build->shared->progress);
	build->table_scan = add_chunk(context, TOC_TABLE_SCAN, scan_bytes);
	table_parallelscan_initialize(state->heap, build->table_scan, build->snapshot);
	sorts = add_chunk(context, TOC_SORTS, share_bytes);
	if (state->format.lossless)
	{
		build->share.keys = sorts;
		key_sort_share_initialize(build->share.keys, participants, context->seg);
	}
	else
	{
		build->share.tuples = sorts;
		tuplesort_initialize_shared(build->share.tuples, participants, context->seg);
	}
	if (query_bytes > 0)
		memcpy(add_chunk(context, TOC_QUERY, query_bytes), debug_query_string, query_bytes);
	build->wal = add_chunk(context, TOC_WAL, mul_size(sizeof(WalUsage), context->nworkers));
	build->buffers = add_chunk(context, TOC_BUFFERS, mul_size(sizeof(BufferUsage), context->nworkers));
	return true;
}

/*
 * Starts workers. NULL: none could be had.
 */
static ParallelBuild *
start_workers(BuildState *state, bool concurrent, int request)
{
	ParallelBuild *build = palloc0(sizeof(ParallelBuild));

	/* In parallel mode no transaction id is assigned, and the tree's record bears ours. */
	(void) GetCurrentTransactionId();
	EnterParallelMode();
	build->context = CreateParallelContext("sherman", "sherman_parallel_build_main", request);
	/* As core's: a concurrent build takes what a snapshot sees, any other judges each row. */
	build->snapshot = concurrent ? RegisterSnapshot(GetTransactionSnapshot()) : SnapshotAny;
	if (make_shared(build, state))
		LaunchParallelWorkers(build->context);
	if (build->context->nworkers_launched > 0)
		return build;
	build_parallel_end(build);
	return NULL;
}

/*
 * Waits until all participants are done.  An error in one of them is raised here.
 */
static void
wait_for_participants(const ParallelBuild *build, int participants)
{
	SharedBuild *shared = build->shared;
	int			done;

	for (;;)
	{
		SpinLockAcquire(&shared->mutex);
		done = shared->done;
		SpinLockRelease(&shared->mutex);
		if (done == participants)
			break;
		ConditionVariableSleep(&shared->progress, WAIT_EVENT_PARALLEL_CREATE_INDEX_SCAN);
	}
	ConditionVariableCancelSleep();
}

ParallelBuild *
build_parallel(BuildState *state, IndexInfo *info, double *rows)
{
	ParallelBuild *build;
	int			request = 0;
	int			participants;

	if (IsNormalProcessingMode())
		request = plan_create_index_workers(RelationGetRelid(state->heap), RelationGetRelid(state->index));
	ereport(DEBUG1,
			(errmsg_internal("sherman index \"%s\" is built with request for %d parallel workers",
							 RelationGetRelationName(state->index), request)));
	build = request > 0 ? start_workers(state, info->ii_Concurrent, request) : NULL;
	if (build == NULL)
		return NULL;

	participants = build->context->nworkers_launched + 1;
	participate(build->shared, build->table_scan, &build->share, state->heap, state->index, request, participants);
	/* Waiting for a worker that could not start would never end. */
	WaitForParallelWorkersToAttach(build->context);
	wait_for_participants(build, participants);

	state->share = &build->share;
	state->tuples = build->shared->tuples;
	state->images = build->shared->images;
	info->ii_BrokenHotChain |= build->shared->broken_hot_chain;
	*rows = build->shared->rows;
	build_take_over(state, participants);
	return build;
}

void
build_parallel_end(ParallelBuild *build)
{
	WaitForParallelWorkersToFinish(build->context);
	for (int i = 0; i < build->context->nworkers_launched; i++)
		InstrAccumParallelQuery(&build->buffers[i], &build->wal[i]);
	if (build->snapshot != SnapshotAny)
		UnregisterSnapshot(build->snapshot);
	DestroyParallelContext(build->context);
	ExitParallelMode();
}

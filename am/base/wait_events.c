/*
 * wait_events.c
 *		What a process waits for, as pg_stat_activity shows it: from PostgreSQL 17 on by names of ours, before as "Extension".
 */
#include "am/base/sherman.h"

#include "am/base/compat.h"
#include "am/base/shared.h"

static const char *const names[] = {
	[SHERMAN_WAIT_MEMORY_NODE] = "ShermanMemoryNode",
	[SHERMAN_WAIT_NODE_LOCK] = "ShermanNodeLock",
	[SHERMAN_WAIT_CONNECTION_WORKER] = "ShermanConnectionWorker",
	[SHERMAN_WAIT_ATTACH] = "ShermanAttach",
	[SHERMAN_WAIT_HEAL] = "ShermanHeal",
	[SHERMAN_WAIT_UNIQUE_CHECK] = "ShermanUniqueCheck",
	[SHERMAN_WAIT_PARALLEL_SCAN] = "ShermanParallelScan",
	[SHERMAN_WAIT_LAUNCHER] = "ShermanLauncher",
	[SHERMAN_WAIT_STANDBYS] = "ShermanStandbys",
	[SHERMAN_WAIT_RECOVERY] = "ShermanRecovery",
	[SHERMAN_WAIT_REPLAY] = "ShermanReplay",
	[SHERMAN_WAIT_DATABASE_WORKER] = "ShermanDatabaseWorker",
	[SHERMAN_WAIT_LAUNCHER_MAIN] = "ShermanLauncherMain",
	[SHERMAN_WAIT_CONNECTION_WORKER_MAIN] = "ShermanConnectionWorkerMain",
	[SHERMAN_WAIT_READER_MAIN] = "ShermanReaderMain",
	[SHERMAN_WAIT_HORIZON_MAIN] = "ShermanHorizonMain",
};

/* Inherited from the postmaster; 0 = not preloaded. */
static uint32 events[lengthof(names)];

void
sherman_wait_events_start(void)
{
	for (size_t i = 0; i < lengthof(names); i++)
		events[i] = compat_new_wait_event(names[i]);
}

uint32
sherman_wait_event(ShermanWait wait)
{
	return events[wait] != 0 ? events[wait] : PG_WAIT_EXTENSION;
}

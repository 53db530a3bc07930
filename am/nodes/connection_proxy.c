/*
 * connection_proxy.c
 *		The shared memory that connection workers and their clients have in common, and what a client is lent for it.
 */
#include "am/base/sherman.h"

#include "miscadmin.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/shmem.h"

#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/nodes/connection_proxy.h"
#include "am/nodes/nodes.h"

/* The area begins on a line of its own. */
#define AREA_ALIGN 128

ShermanConnectionProxy connection_proxy;

static uint32
slot_count(void)
{
	const char *problem;
	int			nodes = sherman_parse_nodes(sherman_memory_node_list, NULL, &problem);

	/* A process that gets no slot, perhaps as memory nodes were added since, connects by itself. */
	return (uint32) MaxBackends * Max(nodes, 1);
}

Size
sherman_connection_workers_bytes(void)
{
	if (sherman_connection_workers == 0)
		return 0;
	return add_size(add_size(sizeof(WorkersShared), AREA_ALIGN),
					fabric_proxy_bytes((uint32) sherman_connection_workers, slot_count()));
}

void
sherman_connection_workers_initialize(void)
{
	uint32		slots = slot_count();
	bool		found;
	char	   *memory;
	char	   *area;

	if (sherman_connection_workers == 0)
		return;
	memory = ShmemInitStruct("sherman connection workers", sherman_connection_workers_bytes(), &found);
	connection_proxy.shared = (WorkersShared *) memory;
	area = (char *) TYPEALIGN(AREA_ALIGN, memory + sizeof(WorkersShared));
	/* Shared memory is made anew, of zeroes, after a crash, too: what is never used is never touched. */
	connection_proxy.area = fabric_proxy_initialize(area, (uint32) sherman_connection_workers, slots);
	for (uint32 i = 0; i < FABRIC_PROXY_MAX_WORKERS; i++)
	{
		pg_atomic_init_u32(&connection_proxy.shared->pgprocno[i], 0);
		pg_atomic_init_u32(&connection_proxy.shared->pid[i], 0);
	}
}

/* ---- clients ---- */

static void
wake_worker(void *argument, uint32_t worker)
{
	if (pg_atomic_read_u32(&connection_proxy.shared->pid[worker]) != 0)
		SetLatch(&ProcGlobal->allProcs[pg_atomic_read_u32(&connection_proxy.shared->pgprocno[worker])].procLatch);
}

const FabricProxy *
sherman_connection_proxy(void (*sleep) (void *argument, int milliseconds))
{
	if (connection_proxy.area == NULL || MyProc == NULL)
		return NULL;
	connection_proxy.proxy.area = connection_proxy.area;
	connection_proxy.proxy.owner = compat_proc_number();
	connection_proxy.proxy.wake_worker = wake_worker;
	connection_proxy.proxy.sleep = sleep;
	return &connection_proxy.proxy;
}

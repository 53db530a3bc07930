/*
 * proxy_finish.c
 *		A connection worker has finished a request: wakes its client.
 */
#define _GNU_SOURCE 1
#include <string.h>

#include "rdma/workers/proxy_worker.h"

void
worker_wake_client(FabricWorker *worker, uint32_t number)
{
	ProxySlot *slot = proxy_slot(worker->area, number);
	uint64_t word = __atomic_load_n(proxy_state_word(worker->area, number), __ATOMIC_RELAXED);

	if (__atomic_load_n(&slot->sleeping, __ATOMIC_SEQ_CST) != 0 &&
	    __atomic_exchange_n(&slot->sleeping, 0, __ATOMIC_SEQ_CST) != 0)
		worker->options.wake_client(worker->options.argument, proxy_slot_owner(word));
}

void
place_finish(FabricWorker *worker, uint32_t slot, ProxyPlace *place, FabricStatus status, const char *detail)
{
	place->status = (uint32_t) status;
	if (status != FABRIC_OK && detail != NULL)
		strncpy(place->detail, detail, sizeof(place->detail) - 1);
	if (status == FABRIC_LOST)
		worker_count_up(&worker->state->lost, 1);
	__atomic_store_n(&place->state, PROXY_DONE, __ATOMIC_SEQ_CST);
	worker_wake_client(worker, slot);
}

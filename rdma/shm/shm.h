/*
 * shm.h
 *		What the simulator's transport takes from the shm transport.  Private to rdma/.
 */
#ifndef SHERMAN_SHM_H
#define SHERMAN_SHM_H

#include "rdma/memory/apply.h"
#include "rdma/base/transport.h"

/* The channel of an endpoint that shm has connected, with the mapped memory; until it is reset or disconnected. */
extern const ApplyChannel *shm_channel(const FabricEndpoint *endpoint);

#endif /* SHERMAN_SHM_H */

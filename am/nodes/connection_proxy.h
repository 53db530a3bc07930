/*
 * connection_proxy.h
 *		What connection_proxy.c and connection_workers.c share: the shared memory of connection workers, in this process.
 */
#ifndef SHERMAN_CONNECTION_PROXY_H
#define SHERMAN_CONNECTION_PROXY_H

#include "am/base/sherman.h"

#include "port/atomics.h"

/* In shared memory; all of it is written by the workers. */
typedef struct WorkersShared
{
	pg_atomic_uint32 pgprocno[FABRIC_PROXY_MAX_WORKERS];	/* whose latch wakes the worker */
	pg_atomic_uint32 pid[FABRIC_PROXY_MAX_WORKERS]; /* 0 = it does not run */
} WorkersShared;

typedef struct ShermanConnectionProxy
{
	WorkersShared *shared;
	FabricProxyArea *area;		/* NULL: there are no workers */
	FabricProxy proxy;			/* what this process lends as a client */
} ShermanConnectionProxy;

extern ShermanConnectionProxy connection_proxy;

#endif							/* SHERMAN_CONNECTION_PROXY_H */

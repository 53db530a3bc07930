/*
 * proxy_process.h
 *		For tests: connection workers in processes of their own, and what their clients lend.
 *
 * Started in the parent before clients fork.  Workers sleep on an eventfd and their sockets, clients on futexes.
 */
#ifndef SHERMAN_PROXY_PROCESS_H
#define SHERMAN_PROXY_PROCESS_H

#include <sys/types.h>

#include "fault.h"
#include "proxy.h"

typedef struct ProxyProcesses ProxyProcesses;

typedef struct ProxyProcessOptions
{
	uint32_t workers;
	uint32_t slots;
	const char *key_file; /* for the workers' endpoints, or NULL */
	uint32_t timeout_ms;  /* of the workers' own endpoints; 0 = the fabric's default */
	/*
	 * For the workers' endpoints, with a seed of its own after each connect and reset; NULL: none.  With
	 * random_places its *_operation and die_line are upper limits of a random choice.
	 */
	const FabricFaultPlan *below;
	bool random_places;
} ProxyProcessOptions;

/* What serves addresses that begin with "proxy:"; NULL: nothing. Set by the test. */
extern ProxyProcesses *test_proxies;

extern ProxyProcesses *proxy_processes_start(const ProxyProcessOptions *options);
extern void proxy_processes_stop(ProxyProcesses *processes);

/* Another plan for endpoints that are connected from now on; NULL: none. */
extern void proxy_processes_faults(ProxyProcesses *processes, const FabricFaultPlan *below);

/* Ends a worker by SIGKILL, or has it end in order, and starts the next. */
extern void proxy_processes_replace(ProxyProcesses *processes, uint32_t worker, bool kill_it);
/* The halves of that. */
extern void proxy_processes_end(ProxyProcesses *processes, uint32_t worker, bool kill_it);
extern void proxy_processes_begin(ProxyProcesses *processes, uint32_t worker);

/* Waits until the worker has ended by itself, by SIGKILL. */
extern void proxy_processes_wait(ProxyProcesses *processes, uint32_t worker);

/* Starts workers anew that have died by SIGKILL; returns how many. */
extern uint32_t proxy_processes_tend(ProxyProcesses *processes);
extern void proxy_processes_kill(ProxyProcesses *processes, uint32_t worker);

/* What this process lends as a client: for FabricOptions.proxy. */
extern const FabricProxy *proxy_processes_client(ProxyProcesses *processes);

extern FabricWorkerFigures proxy_processes_figures(ProxyProcesses *processes, uint32_t worker);

#endif /* SHERMAN_PROXY_PROCESS_H */

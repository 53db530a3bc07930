/*
 * proxy_fixture.h
 *		What tests of connection workers stand on: a memory node, an area, workers and clients, all in this
 *		thread.
 *
 * A client that sleeps lets the workers go on, unless they are frozen. What fails is an assertion of
 * cmocka's.
 */
#ifndef SHERMAN_TEST_PROXY_FIXTURE_H
#define SHERMAN_TEST_PROXY_FIXTURE_H

#include "fabric_process.h"
#include "testing.h"
#include "rdma/workers/proxy_worker.h"

#define STRIPE_WORDS (FABRIC_STRIPE_BYTES / 8)
#define MAX_WORKERS 2

/* The fixture of a test. */
typedef struct ProxyFixture
{
	FabricProcess process;
	FabricProxyArea *area;
	size_t area_bytes;
	FabricWorker *workers[MAX_WORKERS];
	FabricWorker *dead; /* what is left of one that was never closed */
	FabricWorkerOptions options[MAX_WORKERS];
	FabricProxy proxy;
	FabricFaultPlan plan; /* for workers' endpoints, once */
	bool planned;
	uint32_t timeout_ms; /* of the workers' endpoints, 0 = the default */
	bool frozen;         /* the workers do not get on */
	int stop_at;         /* the wait hook of clients stops at this call; 0 = never */
	uint64_t cluster;
	uint32_t incarnation;
	uint64_t nodes; /* first byte of node memory */
	char address[256];
} ProxyFixture;

extern ProxyFixture fixture;

/* For cmocka: one memory node for all tests of a program, and its end. */
extern int fixture_start(void **state);
extern int fixture_stop(void **state);
/* From now on clients' chains go to the memory node over tcp, or over shared memory. */
extern void use_network(bool yes);

/* An area with so many slots, a cluster, and workers, for one test; finish() ends them. */
extern void begin(uint32_t workers, uint32_t slots);
extern void finish(void);
extern void open_worker(uint32_t number);
extern void close_worker(uint32_t number);
/* Lets each worker go on once. */
extern void step_workers(void);
extern FabricWorkerFigures figures(uint32_t worker);

/* A client; try_connect() closes the channel if it cannot. */
extern FabricStatus try_connect(TestChannel *channel, uint32_t timeout_ms);
extern TestChannel connect_client(void);
/* From now on: short where nobody will answer, long where somebody will. */
extern void set_patience(TestChannel *channel, uint32_t timeout_ms);

/* Where a stripe of the test's own is. */
extern uint64_t stripe_offset(uint32_t stripe);
extern uint64_t read_through(TestChannel *channel, uint64_t offset);
/* A word as the memory node has it, by a channel of its own. */
extern uint64_t true_word(uint64_t offset);

#endif /* SHERMAN_TEST_PROXY_FIXTURE_H */

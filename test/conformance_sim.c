/*
 * conformance_sim.c
 *		The conformance suite in the simulator: memory node, suite and the processes of its tests are coroutines.
 *
 * What does not run here are tests that stop or kill a process (need_processes()): a client that is ended in the simulator keeps
 * its channel until somebody closes it, which is what test/sim_torture.c does.
 */
#define _GNU_SOURCE 1
#include <signal.h>

#include "conformance.h"

#define PACKET_BYTES 1024u
#define TIME_LIMIT (100000 * 1000 * NANOSECONDS_PER_MS)

typedef struct Suite
{
	int (*body)(void);
	int status;
} Suite;

static void
suite_body(void *argument)
{
	Suite *run = argument;

	run->status = run->body();
}

int
simulate(int (*main_body)(void))
{
	Suite run = {.body = main_body, .status = 1};
	bool ended;

	suite.simulator.packet_bytes = PACKET_BYTES;
	scheduler_open(suite.seed);
	simulator_open(&suite.simulator);
	channel_transport(&sim_transport);
	coroutine_start(suite_body, &run, false);
	ended = scheduler_run(TIME_LIMIT);
	print_message("seed %llu: %llu steps, %llu ms of virtual time, fingerprint %016llx%s\n",
	              (unsigned long long) suite.seed, (unsigned long long) simulator_steps(),
	              (unsigned long long) (scheduler_now() / NANOSECONDS_PER_MS),
	              (unsigned long long) scheduler_fingerprint(), ended ? "" : ": it does not end");
	simulator_close();
	scheduler_close();
	return ended ? run.status : 1;
}

static void
node_body(void *argument)
{
	CHECK(fabric_process_serve(&suite.process, -1) == 0);
}

static Coroutine *node;

void
simulated_node_start(void)
{
	fabric_process_prepare(&suite.process, NODE_BYTES, MAX_CHANNELS);
	node = coroutine_start(node_body, NULL, true);
	sleep_ms(1);
	snprintf(suite.address, sizeof(suite.address), "sim:%s", suite.process.socket_path);
}

void
simulated_node_stop(void)
{
	raise(SIGTERM);
	while (!coroutine_has_ended(node))
		sleep_ms(1);
}

typedef struct Worker
{
	void (*work)(void *argument, int number);
	void *argument;
	int number;
} Worker;

static void
worker_body(void *argument)
{
	const Worker *worker = argument;

	worker->work(worker->argument, worker->number);
}

void
run_coroutines(int count, void (*work)(void *argument, int number), void *argument)
{
	Worker workers[16];
	Coroutine *running[16];

	for (int i = 0; i < count; i++)
	{
		workers[i] = (Worker){work, argument, i};
		running[i] = coroutine_start(worker_body, &workers[i], false);
	}
	for (int i = 0; i < count; i++)
		while (!coroutine_has_ended(running[i]))
			sleep_ms(1);
}

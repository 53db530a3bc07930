/*
 * proxy_process.c
 *		See proxy_process.h.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proxy_process.h"
#include "require.h"

/* Futex words for clients, by process number: two processes of one word wake each other for nothing. */
#define CLIENT_WORDS 4096u

/* A worker looks for the wish to end that often. */
#define STEP_MS 100

struct ProxyProcesses
{
	ProxyProcessOptions options;
	FabricFaultPlan below;
	bool faults; /* below is in force */
	FabricProxyArea *area;
	size_t area_bytes;
	uint32_t client_words[CLIENT_WORDS];
	uint32_t stop[FABRIC_PROXY_MAX_WORKERS];
	uint64_t seed;
	/* The same in all processes, for they are forked. */
	int doorbells[FABRIC_PROXY_MAX_WORKERS];
	pid_t pids[FABRIC_PROXY_MAX_WORKERS];
};

ProxyProcesses *test_proxies;

static void *
share(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	REQUIRE(memory != MAP_FAILED, "mmap of %zu bytes", bytes);
	return memory;
}

static uint32_t *
client_word(ProxyProcesses *processes, uint32_t owner)
{
	return &processes->client_words[owner % CLIENT_WORDS];
}

/* ---- what workers are lent ---- */

static void
wake_client(void *argument, uint32_t owner)
{
	uint32_t *word = client_word(argument, owner);

	__atomic_store_n(word, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static bool
owner_is_gone(void *argument, uint32_t owner)
{
	(void) argument;
	return kill((pid_t) owner, 0) != 0 && errno == ESRCH;
}

static uint32_t own_number; /* of the worker that this process is */

static int
worker_wait(void *argument, const int *descriptors, int count, int milliseconds)
{
	ProxyProcesses *processes = argument;
	struct pollfd polled[64];
	uint64_t rings;
	int ready;

	REQUIRE(count < 64, "%d descriptors", count);
	polled[0] = (struct pollfd){.fd = processes->doorbells[own_number], .events = POLLIN};
	for (int i = 0; i < count; i++)
		polled[i + 1] = (struct pollfd){.fd = descriptors[i], .events = POLLIN};
	ready = poll(polled, (nfds_t) count + 1, milliseconds);
	if (ready > 0 && polled[0].revents != 0)
	{
		if (read(polled[0].fd, &rings, sizeof(rings)) != sizeof(rings))
			rings = 0;
		ready--;
	}
	return ready < 0 ? 0 : ready;
}

static uint64_t
up_to(uint64_t limit, uint64_t random)
{
	return limit == 0 ? 0 : 1 + random % limit;
}

static void
set_faults(void *argument, FabricEndpoint *endpoint)
{
	ProxyProcesses *processes = argument;
	FabricFaultPlan plan = processes->below;

	if (!processes->faults)
		return;
	plan.seed = __atomic_add_fetch(&processes->seed, 0x9e3779b97f4a7c15ull, __ATOMIC_RELAXED);
	if (processes->options.random_places)
	{
		plan.fail_operation = up_to(plan.fail_operation, plan.seed >> 8);
		plan.late_operation = up_to(plan.late_operation, plan.seed >> 16);
		plan.die_operation = up_to(plan.die_operation, plan.seed >> 24);
		plan.die_line = (uint32_t) up_to(plan.die_line, plan.seed >> 32);
	}
	REQUIRE(fabric_fault_set(endpoint, &plan) == FABRIC_OK, "no fault layer");
}

static void
work(ProxyProcesses *processes, uint32_t number)
{
	FabricWorkerOptions options = {
		.area = processes->area,
		.worker = number,
		.argument = processes,
		.wake_client = wake_client,
		.wait = worker_wait,
		.owner_is_gone = owner_is_gone,
		.connected = set_faults,
	};
	FabricWorker *worker;

	options.fabric.key_file = processes->options.key_file;
	options.fabric.operation_timeout_ms = processes->options.timeout_ms;
	options.fabric.connect_timeout_ms = processes->options.timeout_ms;
	own_number = number;
	REQUIRE(fabric_worker_open(&options, &worker) == FABRIC_OK, "no worker");
	while (__atomic_load_n(&processes->stop[number], __ATOMIC_ACQUIRE) == 0)
		REQUIRE(fabric_worker_step(worker, STEP_MS) == FABRIC_OK, "a worker stopped by itself");
	fabric_worker_close(worker);
}

/* ---- what clients are lent ---- */

static void
wake_worker(void *argument, uint32_t worker)
{
	uint64_t one = 1;

	if (write(((ProxyProcesses *) argument)->doorbells[worker], &one, sizeof(one)) != sizeof(one))
		abort();
}

static void
client_sleep(void *argument, int milliseconds)
{
	uint32_t *word = client_word(argument, (uint32_t) getpid());
	struct timespec time = {.tv_sec = milliseconds / 1000, .tv_nsec = (long) (milliseconds % 1000) * 1000000};

	if (__atomic_exchange_n(word, 0, __ATOMIC_SEQ_CST) != 0)
		return;
	syscall(SYS_futex, word, FUTEX_WAIT, 0, &time, NULL, 0);
	__atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
}

const FabricProxy *
proxy_processes_client(ProxyProcesses *processes)
{
	static FabricProxy proxy;

	proxy = (FabricProxy){
		.area = processes->area,
		.owner = (uint32_t) getpid(),
		.argument = processes,
		.wake_worker = wake_worker,
		.sleep = client_sleep,
	};
	return &proxy;
}

/* ---- processes ---- */

void
proxy_processes_begin(ProxyProcesses *processes, uint32_t worker)
{
	uint64_t lives = proxy_processes_figures(processes, worker).lives;
	pid_t child;

	__atomic_store_n(&processes->stop[worker], 0, __ATOMIC_RELEASE);
	fflush(NULL);
	child = fork();
	REQUIRE(child >= 0, "fork");
	if (child == 0)
	{
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		work(processes, worker);
		_exit(0);
	}
	processes->pids[worker] = child;
	/* Who connects now is served. */
	while (proxy_processes_figures(processes, worker).lives == lives)
		nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

void
proxy_processes_end(ProxyProcesses *processes, uint32_t worker, bool kill_it)
{
	int state;

	__atomic_store_n(&processes->stop[worker], 1, __ATOMIC_RELEASE);
	if (kill_it)
		kill(processes->pids[worker], SIGKILL);
	else
		wake_worker(processes, worker);
	REQUIRE(waitpid(processes->pids[worker], &state, 0) == processes->pids[worker], "waitpid");
	REQUIRE(WIFSIGNALED(state) ? WTERMSIG(state) == SIGKILL : WEXITSTATUS(state) == 0,
	        "worker %u ended with state %x", worker, (unsigned) state);
	processes->pids[worker] = 0;
}

void
proxy_processes_wait(ProxyProcesses *processes, uint32_t worker)
{
	int state;

	REQUIRE(waitpid(processes->pids[worker], &state, 0) == processes->pids[worker], "waitpid");
	REQUIRE(WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL, "worker %u ended with state %x", worker,
	        (unsigned) state);
	processes->pids[worker] = 0;
}

void
proxy_processes_kill(ProxyProcesses *processes, uint32_t worker)
{
	kill(processes->pids[worker], SIGKILL);
}

uint32_t
proxy_processes_tend(ProxyProcesses *processes)
{
	uint32_t died = 0;

	for (uint32_t i = 0; i < processes->options.workers; i++)
	{
		int state;

		if (waitpid(processes->pids[i], &state, WNOHANG) != processes->pids[i])
			continue;
		REQUIRE(WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL, "worker %u ended with state %x", i,
		        (unsigned) state);
		proxy_processes_begin(processes, i);
		died++;
	}
	return died;
}

void
proxy_processes_faults(ProxyProcesses *processes, const FabricFaultPlan *below)
{
	processes->faults = below != NULL;
	if (below != NULL)
		processes->below = *below;
}

void
proxy_processes_replace(ProxyProcesses *processes, uint32_t worker, bool kill_it)
{
	proxy_processes_end(processes, worker, kill_it);
	proxy_processes_begin(processes, worker);
}

ProxyProcesses *
proxy_processes_start(const ProxyProcessOptions *options)
{
	ProxyProcesses *processes = share(sizeof(ProxyProcesses));

	processes->options = *options;
	processes->seed = options->below == NULL ? 0 : options->below->seed;
	proxy_processes_faults(processes, options->below);
	processes->area_bytes = fabric_proxy_bytes(options->workers, options->slots);
	processes->area = fabric_proxy_initialize(share(processes->area_bytes), options->workers, options->slots);
	REQUIRE(processes->area != NULL, "no area for %u workers", options->workers);
	for (uint32_t i = 0; i < options->workers; i++)
	{
		processes->doorbells[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		REQUIRE(processes->doorbells[i] >= 0, "eventfd");
		proxy_processes_begin(processes, i);
	}
	return processes;
}

void
proxy_processes_stop(ProxyProcesses *processes)
{
	for (uint32_t i = 0; i < processes->options.workers; i++)
	{
		if (processes->pids[i] != 0)
			proxy_processes_end(processes, i, false);
		close(processes->doorbells[i]);
	}
	munmap(processes->area, processes->area_bytes);
	munmap(processes, sizeof(*processes));
}

FabricWorkerFigures
proxy_processes_figures(ProxyProcesses *processes, uint32_t worker)
{
	FabricWorkerFigures figures;

	fabric_worker_figures(processes->area, worker, &figures);
	return figures;
}

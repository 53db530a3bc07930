/*
 * load.c
 *		Load on one server by several processes (load.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "load.h"

uint64_t
load_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

static void
sleep_ms(uint32_t milliseconds)
{
	nanosleep(&(struct timespec){.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000L},
	          NULL);
}

bool
load_open(Load *load)
{
	load->board = mmap(NULL, sizeof(LoadBoard), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return load->board != MAP_FAILED;
}

bool
load_option(Load *load, const char *name, const char *value)
{
	if (strcmp(name, "--clients") == 0)
		load->clients = (uint32_t) atoi(value);
	else if (strcmp(name, "--outstanding") == 0)
		load->outstanding = (uint32_t) atoi(value);
	else if (strcmp(name, "--seconds") == 0)
		load->seconds = atof(value);
	else
		return false;
	return true;
}

bool
load_options_valid(const Load *load)
{
	return load->clients >= 1 && load->clients <= LOAD_MAX_CLIENTS && load->outstanding >= 1 &&
	       load->outstanding <= LOAD_MAX_OUTSTANDING && load->seconds > 0;
}

/* ---- clients ---- */

void
load_begin(const Load *load)
{
	__atomic_fetch_add(&load->board->ready, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&load->board->start, __ATOMIC_SEQ_CST))
		sleep_ms(1);
}

bool
load_is_over(const Load *load)
{
	return __atomic_load_n(&load->board->stop, __ATOMIC_RELAXED);
}

void
load_count(const Load *load, uint32_t client, uint64_t count)
{
	load->board->results[client].operations += count;
}

static uint32_t
bucket_of(uint64_t nanoseconds)
{
	uint32_t power = 0;

	if (nanoseconds < LOAD_STEPS)
		return (uint32_t) nanoseconds;
	while (nanoseconds >> power >= 2 * LOAD_STEPS)
		power++;
	power = power * LOAD_STEPS + (uint32_t) (nanoseconds >> power);
	return power < LOAD_BUCKETS ? power : LOAD_BUCKETS - 1;
}

void
load_time(const Load *load, uint32_t client, uint64_t nanoseconds)
{
	LoadResult *result = &load->board->results[client];

	result->timed++;
	result->buckets[bucket_of(nanoseconds)]++;
}

/* ---- the line ---- */

/* The lower end of a bucket, in nanoseconds. */
static double
bucket_start(uint32_t bucket)
{
	if (bucket < 2 * LOAD_STEPS)
		return bucket;
	return (double) (bucket % LOAD_STEPS + LOAD_STEPS) * (double) (1ull << (bucket / LOAD_STEPS - 1));
}

/* In microseconds. */
static double
percentile(const LoadResult *sum, double part)
{
	uint64_t below = 0;

	for (uint32_t i = 0; i < LOAD_BUCKETS; i++)
	{
		below += sum->buckets[i];
		if ((double) below >= part * (double) sum->timed)
			return bucket_start(i) / 1000;
	}
	return 0;
}

/* Processor time of the server so far, in seconds; 0 if nobody knows. */
static double
processor_seconds(pid_t server)
{
	char path[64];
	char text[1024];
	unsigned long user = 0, system = 0;
	FILE *file;

	if (server == 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int) server);
	file = fopen(path, "re");
	if (file == NULL)
		return 0;
	if (fgets(text, sizeof(text), file) != NULL)
		sscanf(strrchr(text, ')') + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
		       &system);
	fclose(file);
	return (double) (user + system) / (double) sysconf(_SC_CLK_TCK);
}

static void
print_line(const Load *load, double took, double processor)
{
	static LoadResult sum;
	char per_core[32] = "-";

	memset(&sum, 0, sizeof(sum));
	for (uint32_t client = 0; client < load->clients; client++)
	{
		const LoadResult *result = &load->board->results[client];

		sum.operations += result->operations;
		sum.timed += result->timed;
		for (uint32_t i = 0; i < LOAD_BUCKETS; i++)
			sum.buckets[i] += result->buckets[i];
	}
	if (processor > 0.01)
		snprintf(per_core, sizeof(per_core), "%.0f", (double) sum.operations / processor);
	printf("%-9s %-12s %3u x %2u %12.0f/s %12s/core %9.2f %9.2f %9.2f us\n", load->peer, load->operation,
	       load->clients, load->outstanding, (double) sum.operations / took, per_core, percentile(&sum, 0.5),
	       percentile(&sum, 0.99), percentile(&sum, 0.999));
	fflush(stdout);
}

static bool
clients_started(const Load *load)
{
	while (__atomic_load_n(&load->board->ready, __ATOMIC_SEQ_CST) < load->clients)
	{
		/* A client that ends before it is ready has failed. */
		if (waitpid(-1, NULL, WNOHANG) > 0)
			return false;
		sleep_ms(1);
	}
	return true;
}

bool
load_execute(Load *load)
{
	pid_t children[LOAD_MAX_CLIENTS];
	uint64_t began;
	double processor;
	bool good;

	memset(load->board, 0, sizeof(*load->board));
	for (uint32_t client = 0; client < load->clients; client++)
	{
		children[client] = fork();
		if (children[client] == 0)
			_exit(load->run(load, client));
	}
	good = clients_started(load);
	processor = processor_seconds(load->server);
	began = load_now();
	__atomic_store_n(&load->board->start, 1, __ATOMIC_SEQ_CST);
	if (good)
		sleep_ms((uint32_t) (load->seconds * 1000));
	__atomic_store_n(&load->board->stop, 1, __ATOMIC_SEQ_CST);
	began = load_now() - began;
	processor = processor_seconds(load->server) - processor;
	for (uint32_t client = 0; client < load->clients; client++)
	{
		int status = 0;

		good &= waitpid(children[client], &status, 0) == children[client] && status == 0;
	}
	if (good)
		print_line(load, (double) began / 1e9, processor);
	return good;
}

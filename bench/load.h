/*
 * load.h
 *		Load on one server by several processes: start them together, count and time what each does, print one line.
 *
 * A line: peer, operation, clients x outstanding, operations per second, the same per second of the server's
 * processor time ('-': not known), and latencies in microseconds (median, 99 %, 99.9 %).
 */
#ifndef SHERMAN_BENCH_LOAD_H
#define SHERMAN_BENCH_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define LOAD_MAX_CLIENTS 64u
#define LOAD_MAX_OUTSTANDING 64u

/* Latencies: 16 steps in each power of two of nanoseconds. */
#define LOAD_STEPS 16u
#define LOAD_BUCKETS (40u * LOAD_STEPS)

/* What one client did; in memory shared with the parent, written by the client alone. */
typedef struct LoadResult
{
	uint64_t operations;
	uint64_t timed; /* of them */
	uint64_t buckets[LOAD_BUCKETS];
} LoadResult;

/* Between the parent and its clients. */
typedef struct LoadBoard
{
	uint32_t ready; /* clients that are connected */
	uint32_t start;
	uint32_t stop;
	LoadResult results[LOAD_MAX_CLIENTS];
} LoadBoard;

typedef struct Load
{
	const char *peer;      /* for the line */
	const char *operation; /* for the line */
	uint32_t clients;
	uint32_t outstanding; /* operations of each client under way at a time */
	double seconds;
	pid_t server; /* whose processor time counts, 0 = none */
	/* One client, in a process of its own: connects, load_begin(), works until load_is_over(); exit status. */
	int (*run)(const struct Load *load, uint32_t client);
	void *argument;   /* run's */
	LoadBoard *board; /* from load_open() */
} Load;

/* Makes the board. False: no memory. */
extern bool load_open(Load *load);

/* Runs the clients and prints the line. False: one of them failed. */
extern bool load_execute(Load *load);

/* Takes --clients N, --outstanding N, --seconds N. False: it is none of them. */
extern bool load_option(Load *load, const char *name, const char *value);
/* Are the numbers within their bounds? */
extern bool load_options_valid(const Load *load);

/* For clients: connected; waits for the others. */
extern void load_begin(const Load *load);
extern bool load_is_over(const Load *load);
/* For clients: `count` operations are done; one of them took so long. */
extern void load_count(const Load *load, uint32_t client, uint64_t count);
extern void load_time(const Load *load, uint32_t client, uint64_t nanoseconds);

/* Monotonic nanoseconds. */
extern uint64_t load_now(void);

#endif /* SHERMAN_BENCH_LOAD_H */

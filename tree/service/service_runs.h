/*
 * service_runs.h
 *		Runs of free units: the lowest one that is long enough is found without looking at every unit.
 *		Private to the service.
 *
 * A tree of sums, in private memory: of each block of units, and of each two of these together and so on, how many are free at
 * its begin, at its end, and most in a row.
 */
#ifndef SHERMAN_SERVICE_RUNS_H
#define SHERMAN_SERVICE_RUNS_H

#include <stdbool.h>
#include <stdint.h>

/* Units whose words are examined one by one. */
#define RUNS_BLOCK_UNITS 256u

typedef struct RunsSum
{
	uint32_t begin; /* free units at the begin */
	uint32_t end;   /* at the end */
	uint32_t most;  /* in a row */
} RunsSum;

typedef struct TablesRuns
{
	const uint64_t *units; /* words: 0 = free */
	uint64_t count;
	uint64_t blocks; /* a power of two; those behind the last unit have no free ones */
	RunsSum *sums;   /* 1: of all; of 2i and 2i + 1 together: i */
} TablesRuns;

/* False: no memory. `units` must stay where they are. */
extern bool runs_open(TablesRuns *runs, const uint64_t *units, uint64_t count);
extern void runs_close(TablesRuns *runs);

/* The words of `count` units have changed. */
extern void runs_changed(TablesRuns *runs, uint64_t unit, uint64_t count);

/* The lowest `count` free units in a row in [begin, end), from *unit on. False: there are none. */
extern bool runs_find(const TablesRuns *runs, uint64_t count, uint64_t begin, uint64_t end, uint64_t *unit);

#endif /* SHERMAN_SERVICE_RUNS_H */

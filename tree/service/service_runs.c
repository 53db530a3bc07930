/*
 * service_runs.c
 *		See service_runs.h.
 */
#include <assert.h>
#include <stdlib.h>

#include "tree/service/service_runs.h"

/* The sum of one block, from the units' words. */
static RunsSum
block_sum(const TablesRuns *runs, uint64_t block)
{
	uint64_t first = block * RUNS_BLOCK_UNITS;
	uint32_t run = 0;
	RunsSum sum = {0, 0, 0};

	for (uint32_t i = 0; i < RUNS_BLOCK_UNITS; i++)
	{
		run = first + i < runs->count && runs->units[first + i] == 0 ? run + 1 : 0;
		if (run == i + 1)
			sum.begin = run;
		if (run > sum.most)
			sum.most = run;
	}
	sum.end = run;
	return sum;
}

/* The sum of two neighbors of `length` units each. */
static RunsSum
add_sums(const RunsSum *left, const RunsSum *right, uint64_t length)
{
	RunsSum sum = {left->begin, right->end, left->most > right->most ? left->most : right->most};

	if (left->begin == length)
		sum.begin += right->begin;
	if (right->end == length)
		sum.end += left->end;
	if (left->end + right->begin > sum.most)
		sum.most = left->end + right->begin;
	return sum;
}

bool
runs_open(TablesRuns *runs, const uint64_t *units, uint64_t count)
{
	uint64_t length = RUNS_BLOCK_UNITS;

	assert(count > 0 && count <= UINT32_MAX);
	*runs = (TablesRuns){.units = units, .count = count, .blocks = 1};
	while (runs->blocks * RUNS_BLOCK_UNITS < count)
		runs->blocks *= 2;
	runs->sums = calloc(2 * runs->blocks, sizeof(RunsSum));
	if (runs->sums == NULL)
		return false;
	for (uint64_t i = 0; i < runs->blocks; i++)
		runs->sums[runs->blocks + i] = block_sum(runs, i);
	for (uint64_t row = runs->blocks / 2; row > 0; row /= 2, length *= 2)
	{
		for (uint64_t i = row; i < 2 * row; i++)
			runs->sums[i] = add_sums(&runs->sums[2 * i], &runs->sums[2 * i + 1], length);
	}
	return true;
}

void
runs_close(TablesRuns *runs)
{
	free(runs->sums);
	*runs = (TablesRuns){0};
}

void
runs_changed(TablesRuns *runs, uint64_t unit, uint64_t count)
{
	uint64_t first = unit / RUNS_BLOCK_UNITS;
	uint64_t last = (unit + count - 1) / RUNS_BLOCK_UNITS;

	assert(count > 0 && unit + count <= runs->count);
	for (uint64_t block = first; block <= last; block++)
	{
		uint64_t length = RUNS_BLOCK_UNITS;

		runs->sums[runs->blocks + block] = block_sum(runs, block);
		for (uint64_t i = (runs->blocks + block) / 2; i > 0; i /= 2, length *= 2)
			runs->sums[i] = add_sums(&runs->sums[2 * i], &runs->sums[2 * i + 1], length);
	}
}

/* The search: the length wanted, and the free units that end where it has come to. */
typedef struct Search
{
	const TablesRuns *runs;
	uint64_t count;
	uint64_t begin;
	uint64_t end;
	uint64_t run;
	uint64_t found;
} Search;

/* Looks at the units of a block one by one. */
static bool
search_block(Search *search, uint64_t first)
{
	for (uint64_t unit = first; unit < first + RUNS_BLOCK_UNITS && unit < search->end; unit++)
	{
		search->run = unit >= search->begin && search->runs->units[unit] == 0 ? search->run + 1 : 0;
		if (search->run == search->count)
		{
			search->found = unit + 1 - search->count;
			return true;
		}
	}
	return false;
}

/* Looks at the `length` units from `first` on, whose sum is number i. */
static bool
search_sum(Search *search, uint64_t i, uint64_t first, uint64_t length)
{
	const RunsSum *sum = &search->runs->sums[i];

	if (first + length <= search->begin || first >= search->end)
		return false;
	if (first >= search->begin && first + length <= search->end)
	{
		if (search->run + sum->begin >= search->count)
		{
			search->found = first - search->run;
			return true;
		}
		if (sum->most < search->count)
		{
			search->run = sum->end == length ? search->run + length : sum->end;
			return false;
		}
	}
	if (length == RUNS_BLOCK_UNITS)
		return search_block(search, first);
	return search_sum(search, 2 * i, first, length / 2) ||
	       search_sum(search, 2 * i + 1, first + length / 2, length / 2);
}

bool
runs_find(const TablesRuns *runs, uint64_t count, uint64_t begin, uint64_t end, uint64_t *unit)
{
	Search search = {.runs = runs, .count = count, .begin = begin, .end = end};

	assert(count > 0);
	assert(begin <= end && end <= runs->count);
	if (!search_sum(&search, 1, 0, runs->blocks * RUNS_BLOCK_UNITS))
		return false;
	*unit = search.found;
	return true;
}

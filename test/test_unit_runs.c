/*
 * test_unit_runs.c
 *		The sums over free units find what looking at each unit finds, after each change, for tables of every length about a block's.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/testing.h"
#include "tree/service/service_runs.h"
#include "support/random.h"

#define UNITS_MAX (4 * RUNS_BLOCK_UNITS + 3)
#define ROUNDS 400
#define NO_UNIT UINT64_MAX

/* The words of a table: behind its last one is memory that nobody may look at. */
static uint64_t *units;
static TablesRuns runs;

/* Begins a table of so many units, all of which have this word. */
static void
table_begin(uint64_t count, uint64_t word)
{
	static uint8_t *memory;
	size_t page = (size_t) sysconf(_SC_PAGESIZE);
	size_t bytes = (UNITS_MAX * sizeof(*units) + page - 1) / page * page;

	if (memory == NULL)
	{
		memory = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_true(memory != MAP_FAILED);
		assert_int_equal(mprotect(memory + bytes, page, PROT_NONE), 0);
	}
	units = (uint64_t *) (void *) (memory + bytes) - count;
	for (uint64_t i = 0; i < count; i++)
		units[i] = word;
}

/* The lowest of so many free ones in a row, unit by unit. */
static uint64_t
find_slowly(uint64_t count, uint64_t begin, uint64_t end)
{
	uint64_t run = 0;

	for (uint64_t unit = begin; unit < end; unit++)
	{
		run = units[unit] == 0 ? run + 1 : 0;
		if (run == count)
			return unit + 1 - count;
	}
	return NO_UNIT;
}

static void
expect_same(uint64_t count, uint64_t begin, uint64_t end)
{
	uint64_t unit = NO_UNIT;
	bool found = runs_find(&runs, count, begin, end, &unit);

	assert_int_equal(unit, find_slowly(count, begin, end));
	assert_int_equal(found, unit != NO_UNIT);
}

/* Of all of the table, and of parts of it, which begin and end where blocks do, beside that, and anywhere. */
static void
expect_all_same(void)
{
	expect_same(1, 0, runs.count);
	for (uint64_t count = 1; count <= runs.count; count += 1 + random_below(count))
	{
		uint64_t begin = random_below(runs.count + 1);
		uint64_t end = begin + random_below(runs.count - begin + 1);
		uint64_t edge = begin / RUNS_BLOCK_UNITS * RUNS_BLOCK_UNITS;

		expect_same(count, 0, runs.count);
		expect_same(count, begin, end);
		expect_same(count, edge, runs.count);
		expect_same(count, 0, edge);
		if (count <= runs.count - begin)
		{
			expect_same(count, begin, begin + count);
			expect_same(count, begin, begin + count - 1);
		}
	}
}

static void
change(uint64_t unit, uint64_t count, uint64_t word)
{
	for (uint64_t i = 0; i < count; i++)
		units[unit + i] = word;
	runs_changed(&runs, unit, count);
}

/* One free run, wherever it begins and ends, in a table that is full, and one full unit in a table that is free. */
static void
single_runs(void **state)
{
	for (uint64_t count = 2 * RUNS_BLOCK_UNITS - 1; count <= 2 * RUNS_BLOCK_UNITS + 1; count++)
	{
		table_begin(count, 1);
		assert_true(runs_open(&runs, units, count));
		expect_same(1, 0, count);
		for (uint64_t i = 0; i < ROUNDS; i++)
		{
			uint64_t from = random_below(count), length = 1 + random_below(count - from);

			change(from, length, 0);
			expect_same(length, 0, count);
			if (length < count)
				expect_same(length + 1, 0, count);
			change(from, length, 1);
		}
		expect_same(1, 0, count);
		change(0, count, 0);
		expect_same(count, 0, count);
		for (uint64_t i = 0; i < count; i++)
		{
			change(i, 1, 1);
			expect_same(count - 1, 0, count);
			expect_same(1 + (i > count / 2 ? i : count - i - 1), 0, count);
			change(i, 1, 0);
		}
		runs_close(&runs);
	}
}

static void
random_runs(void **state)
{
	static const uint64_t counts[] = {
		1,
		2,
		RUNS_BLOCK_UNITS - 1,
		RUNS_BLOCK_UNITS,
		RUNS_BLOCK_UNITS + 1,
		2 * RUNS_BLOCK_UNITS,
		3 * RUNS_BLOCK_UNITS - 1,
		4 * RUNS_BLOCK_UNITS,
		UNITS_MAX,
	};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
	{
		table_begin(counts[i], 0);
		for (uint64_t unit = 0; unit < counts[i]; unit++)
			units[unit] = random_below(2);
		assert_true(runs_open(&runs, units, counts[i]));
		expect_all_same();
		for (int round = 0; round < ROUNDS; round++)
		{
			uint64_t from = random_below(counts[i]);
			uint64_t length = 1 + random_below(counts[i] - from);

			/* Short ones mostly: long ones leave nothing of what was there. */
			if (length > 5 && random_below(4) != 0)
				length = 1 + length % 5;
			change(from, length, random_below(2));
			expect_all_same();
		}
		runs_close(&runs);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(single_runs),
		cmocka_unit_test(random_runs),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

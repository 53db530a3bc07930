/*
 * test_history.c
 *		The linearizability checker, by histories that are and that are not.
 */
#include <string.h>

#include "support/testing.h"
#include "support/history.h"

/* One operation: kind, call, end, what it found: 1, 0, or -1: not known. */
typedef struct Line
{
	char kind; /* i, r, l; capital: perhaps without effect */
	int call;
	int end;
	int found;
} Line;

static bool
judge(const Line *lines, uint32_t count)
{
	HistoryOp ops[16];

	for (uint32_t i = 0; i < count; i++)
		ops[i] = (HistoryOp){
			.call = (uint64_t) lines[i].call,
			.end = (uint64_t) lines[i].end,
			.kind = strchr("iI", lines[i].kind) != NULL   ? HISTORY_INSERT
		            : strchr("rR", lines[i].kind) != NULL ? HISTORY_REMOVE
		                                                  : HISTORY_LOOK,
			.was_there = lines[i].found == 1,
			.known = lines[i].found >= 0,
			.maybe = strchr("IR", lines[i].kind) != NULL,
		};
	return history_is_linearizable(ops, count);
}

#define GOOD(...) assert_true(judge((Line[]){__VA_ARGS__}, sizeof((Line[]){__VA_ARGS__}) / sizeof(Line)))
#define BAD(...) assert_false(judge((Line[]){__VA_ARGS__}, sizeof((Line[]){__VA_ARGS__}) / sizeof(Line)))

static void
test_one_after_the_other(void **state)
{
	GOOD({'l', 1, 2, 0}, {'i', 3, 4, 0}, {'l', 5, 6, 1}, {'i', 7, 8, 1}, {'r', 9, 10, 1}, {'l', 11, 12, 0});
	BAD({'l', 1, 2, 1});
	BAD({'i', 1, 2, 0}, {'l', 3, 4, 0});
	BAD({'i', 1, 2, 0}, {'i', 3, 4, 0});
	BAD({'i', 1, 2, 0}, {'r', 3, 4, 1}, {'l', 5, 6, 1});
	BAD({'r', 1, 2, 1});
}

static void
test_at_one_time(void **state)
{
	/* Seen and not seen while it is inserted. */
	GOOD({'i', 1, 10, 0}, {'l', 2, 3, 0}, {'l', 4, 5, 1});
	BAD({'i', 1, 10, 0}, {'l', 2, 3, 1}, {'l', 4, 5, 0});
	/* One of two inserts finds the other. */
	GOOD({'i', 1, 4, 0}, {'i', 2, 3, 1});
	BAD({'i', 1, 4, 0}, {'i', 2, 3, 0});
	/* Gone and back, between two looks of a third. */
	GOOD({'i', 1, 2, 0}, {'r', 3, 8, 1}, {'i', 4, 9, 0}, {'l', 5, 6, 0}, {'l', 7, 10, 1});
	BAD({'i', 1, 2, 0}, {'r', 3, 8, 1}, {'l', 5, 6, 0}, {'l', 7, 10, 1});
}

static void
test_perhaps(void **state)
{
	GOOD({'I', 1, 2, -1}, {'l', 3, 4, 0});
	GOOD({'I', 1, 2, -1}, {'l', 3, 4, 1});
	/* But not late, and not now this and now that. */
	BAD({'I', 1, 2, -1}, {'l', 3, 4, 0}, {'l', 5, 6, 1});
	BAD({'I', 1, 2, -1}, {'l', 3, 4, 1}, {'l', 5, 6, 0});
	GOOD({'I', 1, 20, -1}, {'l', 3, 4, 0}, {'l', 5, 6, 1});
	/* What it has found is not known, but what it does. */
	GOOD({'i', 1, 2, -1}, {'r', 3, 4, -1}, {'l', 5, 6, 0});
	BAD({'i', 1, 2, -1}, {'r', 3, 4, -1}, {'l', 5, 6, 1});
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_after_the_other),
		cmocka_unit_test(test_at_one_time),
		cmocka_unit_test(test_perhaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_explorer.c
 *		sim/explorer.h: small programs whose orders can be counted by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../sim/explorer.h"

#define CLIENTS 3
#define WORDS 3
/* Some space of words. */
#define SPACE (EXPLORER_REGIONS + 1)
#define EXIT_SKIP 77

/*
 * What a client does in one step: R reads a word into its register, W writes what is one more, - nothing; the
 * word is the digit.  L takes the word as a lock, and pauses while another one has it; U gives it back.  S
 * sleeps until K wakes the client with the digit.
 */
typedef struct Program
{
	const char *steps[CLIENTS];
	bool one_group;
} Program;

static const Program *program;
static uint32_t words[WORDS];
static uint32_t results[64]; /* how many runs ended with so much in word 0 */
static char log_text[64];

static void
touch(uint32_t word, ExplorerMode mode)
{
	explorer_access(SPACE, word, word + 1, mode);
}

static void
take_lock(uint32_t word)
{
	for (; words[word] != 0; explorer_pause())
		touch(word, EXPLORER_READ);
	touch(word, EXPLORER_WRITE);
	words[word] = 1;
}

static void
do_step(char what, uint32_t word, uint32_t *seen)
{
	if (what == 'R' || what == 'W' || what == 'U')
		touch(word, what == 'R' ? EXPLORER_READ : EXPLORER_WRITE);
	if (what == 'R')
		*seen = words[word];
	else if (what == 'W')
		words[word] = *seen + 1;
	else if (what == 'L')
		take_lock(word);
	else if (what == 'U')
		words[word] = 0;
	else if (what == 'S')
		explorer_sleep();
	else if (what == 'K')
		explorer_wake(word);
}

static void
body(void *argument)
{
	uint32_t number = (uint32_t) (uintptr_t) argument;
	const char *steps = program->steps[number];
	uint32_t seen = 0;

	explorer_join(number, program->one_group ? 0 : number);
	for (; *steps != '\0'; steps += 2)
	{
		explorer_yield();
		snprintf(&log_text[strlen(log_text)], sizeof(log_text) - strlen(log_text), "%u", number);
		do_step(steps[0], (uint32_t) (steps[1] - '0'), &seen);
	}
}

static void
run_once(void)
{
	memset(words, 0, sizeof(words));
	log_text[0] = '\0';
	scheduler_open(1);
	explorer_switch(true);
	for (uint32_t i = 0; i < CLIENTS; i++)
		if (program->steps[i] != NULL)
			coroutine_start(body, (void *) (uintptr_t) i, false);
	assert_true(scheduler_run(1));
	explorer_switch(false);
	scheduler_close();
	results[words[0]]++;
}

static ExplorerCounts
explore(const Program *one)
{
	ExplorerOptions options = {.most_steps = 100};
	ExplorerCounts counts;

	program = one;
	memset(results, 0, sizeof(results));
	explorer_open(&options);
	while (explorer_begin())
	{
		run_once();
		explorer_end();
	}
	explorer_counts(&counts);
	explorer_close();
	assert_true(counts.complete);
	return counts;
}

static void
assert_orders(uint64_t expected, const Program *one)
{
	ExplorerCounts counts = explore(one);

	assert_int_equal(counts.runs, expected);
}

static void
test_independent_steps_have_one_order(void **state)
{
	(void) state;
	assert_orders(1, &(Program){{"W0W0", "W1W1"}, false});
	assert_orders(1, &(Program){{"R0R0", "R0R0", "R0"}, false});
	assert_orders(1, &(Program){{"-0-0", "-0-0", "-0"}, false});
}

static void
test_conflicting_steps_have_all_orders(void **state)
{
	(void) state;
	assert_orders(2, &(Program){{"W0", "W0"}, false});
	assert_orders(6, &(Program){{"W0", "W0", "W0"}, false});
	/* 4 of 2 and 2. */
	assert_orders(6, &(Program){{"W0W0", "W0W0"}, false});
	/* Each reader before the writer or behind it. */
	assert_orders(4, &(Program){{"W0", "R0", "R0"}, false});
	/* Two words, each with two orders; and with both words in one client the same. */
	assert_orders(4, &(Program){{"W0W1", "W0", "W1"}, false});
	/* Not both orders of each word are possible: that would be a circle. */
	assert_orders(3, &(Program){{"W0W1", "W1W0"}, false});
}

/* Nobody tells what a group has in common. */
static void
test_steps_of_a_group_conflict(void **state)
{
	(void) state;
	assert_orders(6, &(Program){{"-0-0", "-0-0"}, true});
}

static void
test_lost_update_is_found(void **state)
{
	ExplorerCounts counts = explore(&(Program){{"R0W0", "R0W0"}, false});

	(void) state;
	assert_int_equal(counts.runs, 4);
	assert_int_equal(results[2], 2);
	assert_int_equal(results[1], 2);
}

/* A run is repeated by its choices. */
static void
test_schedule_repeats_a_run(void **state)
{
	ExplorerOptions options = {.most_steps = 100};
	char schedule[64], first[64];
	int runs = 0;

	(void) state;
	program = &(Program){{"R0W0", "R0W0", "W1"}, false};
	explorer_open(&options);
	while ((runs == 0 || words[0] != 1) && explorer_begin())
	{
		run_once();
		explorer_end();
		runs++;
	}
	snprintf(schedule, sizeof(schedule), "%s", explorer_schedule());
	snprintf(first, sizeof(first), "%s", log_text);
	explorer_close();
	options.schedule = schedule;
	explorer_open(&options);
	assert_true(explorer_begin());
	run_once();
	explorer_end();
	assert_false(explorer_begin());
	explorer_close();
	assert_string_equal(log_text, first);
	assert_int_equal(words[0], 1);
}

/* Who finds a lock taken tries again when it was given back, and not before. */
static void
test_pauses_end_with_changes(void **state)
{
	(void) state;
	assert_orders(4, &(Program){{"L0U0", "L0U0"}, false});
	explore(&(Program){{"L0R1W1U0", "L0R1W1U0", "L0R1W1U0"}, false});
	assert_int_equal(words[1], 3);
}

static void
test_sleep_ends_with_wake(void **state)
{
	(void) state;
	assert_orders(2, &(Program){{"S0", "K0"}, true});
	/* Nobody wakes it: it goes on when all others are through. */
	assert_orders(1, &(Program){{"S0R0", "W0W0"}, false});
	assert_int_equal(results[1], 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_independent_steps_have_one_order),
		cmocka_unit_test(test_conflicting_steps_have_all_orders),
		cmocka_unit_test(test_steps_of_a_group_conflict),
		cmocka_unit_test(test_lost_update_is_found),
		cmocka_unit_test(test_schedule_repeats_a_run),
		cmocka_unit_test(test_pauses_end_with_changes),
		cmocka_unit_test(test_sleep_ends_with_wake),
	};

	return scheduler_is_here() ? cmocka_run_group_tests(tests, NULL, NULL) : EXIT_SKIP;
}

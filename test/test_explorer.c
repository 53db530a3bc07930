/*
 * test_explorer.c
 *		sim/explorer.h: small programs whose orders can be counted by hand.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/testing.h"
#include "../sim/accesses.h"

#define CLIENTS 3
#define WORDS 3
/* Steps of a client of a program that is drawn; and how many of these there are. */
#define DRAWN_STEPS 3
#define PROGRAMS 30
/* Some space of words. */
#define SPACE (EXPLORER_REGIONS + 1)
#define EXIT_SKIP 77

/*
 * What a client does in one step: R reads a word into its register, W writes what is one more, - nothing; the
 * word is the digit.  L takes the word as a lock, and pauses while another one has it; U gives it back.  S
 * sleeps until K wakes the client with the digit.  r, w, l and u do as R, W, L and U with a word of memory that they
 * share and tell of; f changes it and changes it back; b reads all words below and changes it; m reads more words than are told
 * apart.
 */
typedef struct Program
{
	const char *steps[CLIENTS];
	bool one_group;
} Program;

static const Program *program;
static uint32_t words[WORDS];
static uint64_t shared[WORDS + ACCESSES_MAX];
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
shared_lock(uint64_t *word)
{
	for (; *word != 0; explorer_pause())
		accesses_read(word, sizeof(*word));
	accesses_write(word, sizeof(*word));
	*word = 1;
}

static void
do_shared_step(char what, uint64_t *word, uint32_t *seen)
{
	if (what == 'l')
		shared_lock(word);
	else if (what == 'r')
		accesses_read(word, sizeof(*word));
	else if (what == 'm')
		accesses_read(shared, sizeof(shared));
	else if (what == 'b')
		accesses_read(shared, (size_t) (word - shared) * sizeof(*word));
	if (strchr("wfub", what) != NULL)
		accesses_write(word, sizeof(*word));
	if (what == 'r')
		*seen = (uint32_t) *word;
	else if (what == 'w')
		*word = *seen + 1;
	else if (what == 'b')
		*word += 2;
	else if (what == 'u')
		*word = 0;
	else if (what == 'f')
	{
		*word += 1;
		accesses_write(word, sizeof(*word));
		*word -= 1;
	}
}

/* The completion of a read. */
static void
complete(void *argument, uint64_t client)
{
	explorer_access_client((uint32_t) client);
	coroutine_wake(argument);
}

static void
read_later(void *argument, uint64_t number)
{
	uint32_t client = (uint32_t) (number / WORDS);

	touch((uint32_t) (number % WORDS), EXPLORER_READ);
	explorer_offer(client * EXPLORER_ACTORS + 2, complete, argument, client, EXPLORER_NO_STEP);
}

static void
read_by_queue(uint32_t word)
{
	uint32_t client = explorer_client();

	explorer_offer(client * EXPLORER_ACTORS + 1, read_later, coroutine_current(), client * WORDS + word,
	               EXPLORER_NO_STEP);
	coroutine_wait(SCHEDULER_NEVER);
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
	else if (what == 'A')
		read_by_queue(word);
	else if (what == 'S')
		explorer_sleep();
	else if (what == 'K')
		explorer_wake(word);
	else if (what != '-')
		do_shared_step(what, &shared[word], seen);
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
	memset(shared, 0, sizeof(shared));
	accesses_of(shared, sizeof(shared));
	log_text[0] = '\0';
	scheduler_open(1);
	explorer_switch(true);
	for (uint32_t i = 0; i < CLIENTS; i++)
		if (program->steps[i] != NULL)
			coroutine_start(body, (void *) (uintptr_t) i, false);
	assert_true(scheduler_run(1));
	explorer_switch(false);
	scheduler_close();
	results[words[0] + shared[0]]++;
}

#define ORDERS_MAX 4096

typedef struct Signatures
{
	uint64_t all[ORDERS_MAX];
	uint32_t count;
} Signatures;

static Signatures possible;
static Signatures run_ones;

static bool
step_conflicts(const char *a, const char *b)
{
	return a[1] == b[1] && (a[0] == 'W' || b[0] == 'W');
}

/*
 * What an order is up to steps that do not conflict: a bit for each pair of steps that does, in the order of
 * clients and steps.
 */
static uint64_t
signature_of(const Program *one, const uint32_t *clients, uint32_t count)
{
	uint32_t place[CLIENTS][DRAWN_STEPS];
	uint32_t done[CLIENTS] = {0};
	uint64_t signature = 0;

	for (uint32_t i = 0; i < count; i++)
		place[clients[i]][done[clients[i]]++] = i;
	for (uint32_t a = 0; a < CLIENTS; a++)
		for (uint32_t b = a + 1; b < CLIENTS; b++)
			for (uint32_t i = 0; i < done[a]; i++)
				for (uint32_t k = 0; k < done[b]; k++)
					if (step_conflicts(&one->steps[a][2 * i], &one->steps[b][2 * k]))
						signature = signature << 1 | (place[a][i] < place[b][k]);
	return signature;
}

static void
note_signature(Signatures *signatures, uint64_t signature)
{
	uint32_t i = 0;

	while (i < signatures->count && signatures->all[i] != signature)
		i++;
	assert_true(i < ORDERS_MAX);
	signatures->all[i] = signature;
	signatures->count += i == signatures->count;
}

/* The run's signature, if it is of a program that was drawn. */
static void
note_run(void)
{
	uint32_t clients[CLIENTS * DRAWN_STEPS];
	uint32_t count = (uint32_t) strlen(log_text);

	for (uint32_t i = 0; possible.count > 0 && i < count; i++)
		clients[i] = (uint32_t) (log_text[i] - '0');
	if (possible.count > 0)
		note_signature(&run_ones, signature_of(program, clients, count));
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
		note_run();
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
	assert_orders(1, &(Program){{"W0W0", "W1W1"}, false});
	assert_orders(1, &(Program){{"R0R0", "R0R0", "R0"}, false});
	assert_orders(1, &(Program){{"-0-0", "-0-0", "-0"}, false});
}

static void
test_conflicting_steps_have_all_orders(void **state)
{
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

/* ---- programs that are drawn, all of whose orders are gone through ---- */

static void
go_through(const Program *one, uint32_t *clients, uint32_t count, uint32_t *done)
{
	bool any = false;

	for (uint32_t i = 0; i < CLIENTS; i++)
	{
		if (one->steps[i] == NULL || one->steps[i][2 * done[i]] == '\0')
			continue;
		any = true;
		clients[count] = i;
		done[i]++;
		go_through(one, clients, count + 1, done);
		done[i]--;
	}
	if (!any)
		note_signature(&possible, signature_of(one, clients, count));
}

/* Each order that differs is run. */
static void
test_drawn_programs(void **state)
{
	uint64_t random = 1;
	ExplorerCounts counts;

	for (int i = 0; i < PROGRAMS; i++)
	{
		char text[CLIENTS][2 * DRAWN_STEPS + 1] = {{0}};
		uint32_t clients[CLIENTS * DRAWN_STEPS], done[CLIENTS] = {0};
		Program one = {{text[0], text[1], text[2]}, false};

		for (uint32_t k = 0; k < CLIENTS; k++)
			for (uint32_t step = 0; step < DRAWN_STEPS - (k == 2); step++)
			{
				random = random * 6364136223846793005ull + 1442695040888963407ull;
				text[k][2 * step] = (random >> 40) % 2 == 0 ? 'R' : 'W';
				text[k][2 * step + 1] = (char) ('0' + (random >> 50) % WORDS);
			}
		possible.count = run_ones.count = 0;
		go_through(&one, clients, 0, done);
		counts = explore(&one);
		assert_int_equal(run_ones.count, possible.count);
		/* Those that wait could tell apart some more. */
		assert_true(counts.runs >= possible.count);
	}
	possible.count = 0;
}

/* What a client has looked at changes: that is no reason for its next step, if it does not wait for it. */
static void
test_changes_are_no_causes(void **state)
{
	assert_orders(3, &(Program){{"W0", "A0W0"}, false});
	assert_orders(3, &(Program){{"A0W0", "W0"}, false});
}

/* Nobody tells what a group has in common. */
static void
test_steps_of_a_group_conflict(void **state)
{
	assert_orders(6, &(Program){{"-0-0", "-0-0"}, true});
}

static void
test_lost_update_is_found(void **state)
{
	ExplorerCounts counts = explore(&(Program){{"R0W0", "R0W0"}, false});

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
	assert_orders(4, &(Program){{"L0U0", "L0U0"}, false});
	explore(&(Program){{"L0R1W1U0", "L0R1W1U0", "L0R1W1U0"}, false});
	assert_int_equal(words[1], 3);
}

static void
test_sleep_ends_with_wake(void **state)
{
	assert_orders(2, &(Program){{"S0", "K0"}, true});
	/* Nobody wakes it: it goes on when all others are through. */
	assert_orders(1, &(Program){{"S0R0", "W0W0"}, false});
	assert_int_equal(results[1], 1);
}

/* What they do to memory that they share and tell of is as what they do to a memory node's. */
static void
test_shared_memory(void **state)
{
	assert_orders(1, &(Program){{"r0r0", "r0r0", "r0"}, false});
	assert_orders(1, &(Program){{"w0", "w1", "w2"}, false});
	assert_orders(2, &(Program){{"w0", "r0"}, false});
	assert_orders(3, &(Program){{"w0w1", "r1r0"}, false});
	/* Of several words in a step one is enough. */
	assert_orders(2, &(Program){{"b2", "w2"}, false});
	assert_orders(2, &(Program){{"w2", "b2"}, false});
	assert_orders(2, &(Program){{"b1", "b2"}, false});
	explore(&(Program){{"r0w0", "r0w0"}, false});
	assert_int_equal(results[2], 2);
	assert_true(results[1] > 0);
}

/* A word that a step leaves as it was has been read, and no more. */
static void
test_what_stays_is_read(void **state)
{
	assert_orders(1, &(Program){{"f0f0", "f0f0", "f0"}, false});
	assert_orders(2, &(Program){{"f0", "w0"}, false});
	/* All write 1: the first of them changes something. */
	assert_orders(3, &(Program){{"w0", "w0", "w0"}, false});
}

static void
test_pauses_end_with_changes_of_shared_memory(void **state)
{
	ExplorerCounts counts = explore(&(Program){{"L0U0W1", "L0R1U0"}, false});

	assert_orders(4, &(Program){{"l0u0", "l0u0"}, false});
	/* Not only when the other one has nothing left to do. */
	assert_orders(counts.runs, &(Program){{"l0u0w1", "l0r1u0"}, false});
	explore(&(Program){{"l0r1w1u0", "l0r1w1u0", "l0r1w1u0"}, false});
	assert_int_equal(shared[1], 3);
}

/* What is too much to be told apart conflicts with everything. */
static void
test_many_words(void **state)
{
	assert_orders(1, &(Program){{"r0", "-0"}, false});
	assert_orders(2, &(Program){{"m0", "-0"}, false});
}

/* Does it in a process of its own, and says whether that has aborted. */
static bool
aborts(void (*body_of_child)(void))
{
	int status;
	pid_t child = fork();

	if (child == 0)
	{
		signal(SIGABRT, SIG_DFL);
		close(STDERR_FILENO);
		body_of_child();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void
read_forbidden(void)
{
	accesses_forbid(shared, sizeof(shared[0]) * WORDS);
	accesses_read(&shared[WORDS - 1], 1);
}

static void
read_beside_and_behind(void)
{
	accesses_forbid(&shared[1], sizeof(shared[1]));
	accesses_read(&shared[0], sizeof(shared[0]));
	accesses_read(&shared[2], sizeof(shared[2]));
	accesses_write(&shared[1], sizeof(shared[1]));
	accesses_read(&shared[1], sizeof(shared[1]));
}

static void
read_what_is_left(void)
{
	accesses_forbid(shared, sizeof(shared[0]) * WORDS);
	accesses_write(&shared[1], sizeof(shared[1]));
	accesses_read(&shared[2], sizeof(shared[2]));
}

/* What is nobody's is looked at by nobody, until it is written again. */
static void
test_forbidden_memory(void **state)
{
	assert_true(aborts(read_forbidden));
	assert_true(aborts(read_what_is_left));
	assert_false(aborts(read_beside_and_behind));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_independent_steps_have_one_order),
		cmocka_unit_test(test_conflicting_steps_have_all_orders),
		cmocka_unit_test(test_drawn_programs),
		cmocka_unit_test(test_changes_are_no_causes),
		cmocka_unit_test(test_steps_of_a_group_conflict),
		cmocka_unit_test(test_lost_update_is_found),
		cmocka_unit_test(test_schedule_repeats_a_run),
		cmocka_unit_test(test_pauses_end_with_changes),
		cmocka_unit_test(test_sleep_ends_with_wake),
		cmocka_unit_test(test_shared_memory),
		cmocka_unit_test(test_what_stays_is_read),
		cmocka_unit_test(test_pauses_end_with_changes_of_shared_memory),
		cmocka_unit_test(test_many_words),
		cmocka_unit_test(test_forbidden_memory),
	};

	return scheduler_is_here() ? cmocka_run_group_tests(tests, NULL, NULL) : EXIT_SKIP;
}

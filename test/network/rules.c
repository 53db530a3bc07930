/*
 * rules.c
 *		The links of the test switch: what commands change, and what they tell.
 */
#include "switch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS 1000000.0

/* The longest delay that a command can ask for: an hour. */
#define MAX_DELAY_MS 3600000.0

typedef struct Change
{
	const char *name;
	bool takes_value;
	bool takes_second;
	double most; /* of the values */
	void (*apply)(Link *link, double value, double second);
} Change;

static void
apply_cut(Link *link, double value, double second)
{
	(void) value;
	(void) second;
	link->cut = true;
}

/* All faults of the link end; its counters stay. */
static void
apply_heal(Link *link, double value, double second)
{
	(void) value;
	(void) second;
	link->cut = false;
	link->loss = 0;
	link->duplicate = 0;
	link->delay_ns = 0;
	link->jitter_ns = 0;
	link->resets = 0;
}

static void
apply_loss(Link *link, double value, double second)
{
	(void) second;
	link->loss = value / 100;
}

static void
apply_duplicate(Link *link, double value, double second)
{
	(void) second;
	link->duplicate = value / 100;
}

static void
apply_delay(Link *link, double value, double second)
{
	link->delay_ns = (uint64_t) (value * NS_PER_MS);
	link->jitter_ns = (uint64_t) (second * NS_PER_MS);
}

static void
apply_reset(Link *link, double value, double second)
{
	(void) second;
	link->resets = (uint32_t) value;
}

static const Change changes[] = {
	{"cut", false, false, 0, apply_cut},
	{"heal", false, false, 0, apply_heal},
	{"loss", true, false, 100, apply_loss},
	{"duplicate", true, false, 100, apply_duplicate},
	{"delay", true, true, MAX_DELAY_MS, apply_delay},
	{"reset", true, false, 1000000, apply_reset},
};

static const Change *
change_find(const char *name)
{
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
	{
		if (strcmp(changes[i].name, name) == 0)
			return &changes[i];
	}
	return NULL;
}

/* A port's number, or "*" for all of them: ports first .. last. */
static bool
read_port(const char *word, uint32_t ports, uint32_t *first, uint32_t *last)
{
	char *end;
	unsigned long number;

	*first = 0;
	*last = ports - 1;
	if (strcmp(word, "*") == 0)
		return true;
	number = strtoul(word, &end, 10);
	if (*word == '\0' || *end != '\0' || number >= ports)
		return false;
	*first = *last = (uint32_t) number;
	return true;
}

static bool
read_value(const char *word, double most, double *value)
{
	char *end;

	*value = strtod(word, &end);
	return *word != '\0' && *end == '\0' && *value >= 0 && *value <= most;
}

/* The counters of every link that had a frame, a line each: "from to passed dropped answered". */
static void
tell_counters(const Rules *rules, char *reply)
{
	size_t length = (size_t) sprintf(reply, "ok\n");

	for (uint32_t from = 0; from < rules->ports; from++)
	{
		for (uint32_t to = 0; to < rules->ports; to++)
		{
			const Link *link = &rules->links[from][to];

			if (link->passed + link->dropped + link->answered > 0)
				length += (size_t) snprintf(
					reply + length, MAX_REPLY_BYTES - length, "%u %u %llu %llu %llu\n", from, to,
					(unsigned long long) link->passed, (unsigned long long) link->dropped,
					(unsigned long long) link->answered);
		}
	}
}

bool
rules_command(Rules *rules, const char *command, char *reply)
{
	char words[5][32] = {"", "", "", "", ""};
	uint32_t from[2];
	uint32_t to[2];
	double value = 0;
	double second = 0;
	int count = sscanf(command, "%31s %31s %31s %31s %31s", words[0], words[1], words[2], words[3], words[4]);
	const Change *change = change_find(words[0]);
	int least;

	if (strcmp(words[0], "counters") == 0)
	{
		tell_counters(rules, reply);
		return true;
	}
	if (change == NULL)
	{
		sprintf(reply, "error: there is no command \"%s\"\n", words[0]);
		return false;
	}
	least = change->takes_value ? 4 : 3;
	if (count < least || count > (change->takes_second ? least + 1 : least) ||
	    !read_port(words[1], rules->ports, &from[0], &from[1]) ||
	    !read_port(words[2], rules->ports, &to[0], &to[1]) ||
	    (count > 3 && !read_value(words[3], change->most, &value)) ||
	    (count > 4 && !read_value(words[4], change->most, &second)))
	{
		sprintf(reply, "error: \"%.200s\" is not FROM TO and values in range\n", command);
		return false;
	}
	for (uint32_t i = from[0]; i <= from[1]; i++)
	{
		for (uint32_t j = to[0]; j <= to[1]; j++)
		{
			if (i != j)
				change->apply(&rules->links[i][j], value, second);
		}
	}
	strcpy(reply, "ok\n");
	return true;
}

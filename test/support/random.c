/*
 * random.c
 *		See random.h.
 */
#include "random.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t state = 42;

void
random_begin(void)
{
	const char *seed = getenv("SHERMAN_SEED");

	if (seed == NULL)
		return;
	state = strtoull(seed, NULL, 0) | 1;
	printf("seed %llu\n", (unsigned long long) state);
}

uint64_t
random_below(uint64_t bound)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % bound;
}

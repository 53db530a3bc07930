/*
 * techniques.c
 *		See techniques.h.
 */
#include <stdio.h>

#include "keyspace.h"
#include "techniques.h"

/* Bounds of handovers that are drawn: below. */
#define HANDOVERS_BELOW 8

static bool
flip(KeyRandom *random)
{
	return key_random(random, 2) != 0;
}

TreeTechniques
techniques_draw(uint64_t seed, bool alone)
{
	KeyRandom random = {seed * 0x9e3779b97f4a7c15ull + 1};
	TreeTechniques techniques = {0}; /* `overwrite` is for measurements */

	/* The first numbers of neighboring seeds are alike. */
	for (int i = 0; i < 8; i++)
		(void) key_random(&random, 2);
	techniques.combine_lock = flip(&random);
	techniques.combine_unlock = flip(&random);
	techniques.hierarchy = flip(&random);
	techniques.handovers = (uint32_t) key_random(&random, HANDOVERS_BELOW);
	techniques.entry_writes = flip(&random);
	techniques.back_off = flip(&random);
	techniques.exclusive = alone && flip(&random);
	techniques.adaptive = flip(&random);
	techniques.offload = (TreeOffload) key_random(&random, TREE_OFFLOAD_ALWAYS + 1);
	return techniques;
}

void
techniques_print(const TreeTechniques *techniques)
{
	static const char *const offloads[] = {[TREE_OFFLOAD_BY_COST] = " offload by cost",
	                                       [TREE_OFFLOAD_ALWAYS] = " offload",
	                                       [TREE_OFFLOAD_NEVER] = ""};

	printf("techniques:%s%s%s%s%s%s%s%s, %u handovers\n", techniques->combine_lock ? " combine_lock" : "",
	       techniques->combine_unlock ? " combine_unlock" : "", techniques->hierarchy ? " hierarchy" : "",
	       techniques->entry_writes ? " entry_writes" : "", techniques->back_off ? " back_off" : "",
	       techniques->adaptive ? " adaptive" : "", techniques->exclusive ? " exclusive" : "",
	       offloads[techniques->offload], techniques->handovers);
}

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

Techniques
techniques_draw(uint64_t seed, bool alone)
{
	KeyRandom random = {seed * 0x9e3779b97f4a7c15ull + 1};
	Techniques techniques = {0}; /* `overwrite` is for measurements */
	Baseline *left_out = &techniques.left_out;

	/* The first numbers of neighboring seeds are alike. */
	for (int i = 0; i < 8; i++)
		(void) key_random(&random, 2);
	left_out->read_apart = flip(&random);
	left_out->writes_apart = flip(&random);
	left_out->flat_locks = flip(&random);
	left_out->whole_leaves = flip(&random);
	left_out->back_off = (BaselineBackOff) key_random(&random, BASELINE_BACK_OFF_NONE + 1);
	techniques.chosen.handovers = (uint32_t) key_random(&random, HANDOVERS_BELOW);
	techniques.chosen.exclusive = flip(&random) && alone && !left_out->flat_locks;
	techniques.chosen.offload = (TreeOffload) key_random(&random, TREE_OFFLOAD_ALWAYS + 1);
	return techniques;
}

void
techniques_print(const Techniques *techniques)
{
	static const char *const offloads[] = {[TREE_OFFLOAD_BY_COST] = " offload by cost",
	                                       [TREE_OFFLOAD_ALWAYS] = " offload",
	                                       [TREE_OFFLOAD_NEVER] = ""};
	static const char *const back_offs[] = {[BASELINE_BACK_OFF_ADAPTIVE] = "",
	                                        [BASELINE_BACK_OFF_SLEEP] = " back_off sleeps",
	                                        [BASELINE_BACK_OFF_NONE] = " no back_off"};
	const Baseline *left_out = &techniques->left_out;

	printf("techniques:%s%s, %u handovers;%s%s%s%s%s\n", techniques->chosen.exclusive ? " exclusive" : "",
	       offloads[techniques->chosen.offload], techniques->chosen.handovers,
	       left_out->read_apart ? " read_apart" : "", left_out->writes_apart ? " writes_apart" : "",
	       left_out->flat_locks ? " flat_locks" : "", left_out->whole_leaves ? " whole_leaves" : "",
	       back_offs[left_out->back_off]);
}

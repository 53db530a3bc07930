/*
 * techniques.h
 *		Sets of techniques for the tests of tree/.
 */
#ifndef SHERMAN_TEST_TECHNIQUES_H
#define SHERMAN_TEST_TECHNIQUES_H

#include "../../sim/baselines.h"

/* What an instance chooses, and what is left out of the tree's own: `baseline` is to be set to that. */
typedef struct Techniques
{
	TreeTechniques chosen;
	Baseline left_out;
} Techniques;

/* Some of the techniques, the same for the same seed; `alone`: one TreeShared has the tree for itself. */
extern Techniques techniques_draw(uint64_t seed, bool alone);
/* A line that says which. */
extern void techniques_print(const Techniques *techniques);

#endif /* SHERMAN_TEST_TECHNIQUES_H */

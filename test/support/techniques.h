/*
 * techniques.h
 *		Sets of techniques for the tests of tree/.
 */
#ifndef SHERMAN_TEST_TECHNIQUES_H
#define SHERMAN_TEST_TECHNIQUES_H

#include "../../tree/tree.h"

/* Some of the techniques, the same for the same seed; `alone`: one TreeShared has the tree for itself. */
extern TreeTechniques techniques_draw(uint64_t seed, bool alone);
/* A line that says which. */
extern void techniques_print(const TreeTechniques *techniques);

#endif /* SHERMAN_TEST_TECHNIQUES_H */

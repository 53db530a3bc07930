/*
 * random.h
 *		Random choices of a test, from one seed: 42, or that of SHERMAN_SEED.
 */
#ifndef SHERMAN_TEST_RANDOM_H
#define SHERMAN_TEST_RANDOM_H

#include <stdint.h>

/* Before the first choice: takes the seed that is set, and prints it. */
extern void random_begin(void);
/* A number below the bound, which is not 0. */
extern uint64_t random_below(uint64_t bound);

#endif /* SHERMAN_TEST_RANDOM_H */

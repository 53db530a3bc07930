/*
 * torture_runs.h
 *		The runs of the torture that have names.  Where they do not say how many domains or memory nodes there
 *		are, there is one.
 */
#ifndef SHERMAN_TEST_TORTURE_RUNS_H
#define SHERMAN_TEST_TORTURE_RUNS_H

#include "torture_work.h"

extern const TortureOptions torture_standard[];
extern const size_t torture_standard_count;

/* What the thread sanitizer looks at: everything in shared memory, by as many as meet there. */
extern const TortureOptions torture_threaded[];
extern const size_t torture_threaded_count;

#endif /* SHERMAN_TEST_TORTURE_RUNS_H */

/*
 * snapshot.h
 *		The process as it is, to come back to: all memory that it may write, but for the stack of main() and what is kept
 *		(heap.h).
 *
 * So a simulation is set up once, and each run of it begins there.  What the kernel has of the process (descriptors,
 * mappings) is no part of it: programs with it are linked with --wrap for what changes that (sim.mk), and where that
 * has happened nobody can come back.
 */
#ifndef SHERMAN_SIM_SNAPSHOT_H
#define SHERMAN_SIM_SNAPSHOT_H

#include <stdbool.h>

/* Once, at the begin of the program.  False: there are no snapshots in this build. */
extern bool snapshot_prepare(void);
/* Not in a coroutine; forgets the one before. */
extern void snapshot_take(void);
extern void snapshot_forget(void);
/* Whether there is one that can be come back to. */
extern bool snapshot_is_there(void);
/* Memory is again as it was. Not in a coroutine. */
extern void snapshot_return(void);

#endif /* SHERMAN_SIM_SNAPSHOT_H */

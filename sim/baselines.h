/*
 * baselines.h
 *		What the papers compare their systems with: the tree without some of its techniques.
 *
 * The tree always uses Sherman's techniques, and SMART's back-off; it has no other paths.  A program that is linked with
 * baselines.c, and with --wrap for the functions that it replaces (BASELINES_LDFLAGS in sim.mk), can leave each of them
 * out.  doc/internals/techniques.md says what each one spares.
 */
#ifndef SHERMAN_BASELINES_H
#define SHERMAN_BASELINES_H

#include "tree/tree.h"

typedef enum BaselineBackOff
{
	BASELINE_BACK_OFF_ADAPTIVE = 0, /* the tree's own */
	BASELINE_BACK_OFF_SLEEP,        /* the limit is fixed, and the wait soon ends in sleep, of milliseconds */
	BASELINE_BACK_OFF_NONE          /* a swap that was lost is repeated at once */
} BaselineBackOff;

/* What is left out, of all trees of the process and of those that it forks.  All zero: nothing. */
typedef struct Baseline
{
	bool read_apart; /* a node's READ is posted when its lock is won */
	bool
		writes_apart; /* the holder's WRITEs, and its unlock: each is posted when the one before is acknowledged */
	bool flat_locks;   /* each process swaps the lock word until it wins: not with TreeTechniques.exclusive */
	bool whole_leaves; /* an insert writes its leaf, as its next generation */
	BaselineBackOff back_off;
	/*
	 * The papers' update: an entry that is there already is written once more in its slot, unless leaves are written.
	 * Only where no process removes entries: one that has judged it before could still remove it (I-P3).
	 */
	bool overwrite;
} Baseline;

extern Baseline baseline;

/* FG+: all of Sherman's techniques are left out, and back-off. */
extern const Baseline baseline_fg;

#endif /* SHERMAN_BASELINES_H */

/*
 * heal.h
 *		Healing an index after a crash: heal.c does it, for sherman_heal(), VACUUM and the healer (healer.c);
 *		heal_progress.c shows its progress.
 */
#ifndef SHERMAN_HEAL_H
#define SHERMAN_HEAL_H

#include "am/base/sherman.h"

#include "am/base/shared.h"

/* How far the healing of one index is.  It may be done in parts, each in a transaction of its own. */
typedef struct Healing
{
	int			complaint;		/* error level at which errors of rows are reported, once */
	uint64		tree;			/* that is healed; 0 = not begun */
	bool		ended;			/* all leaves were looked at, or there is nothing to heal */
	TreeScanPosition behind;	/* where the next part goes on */
	int64		leaves;			/* looked at */
	int64		healed;			/* of them */
	int64		removed;		/* entries */
	int64		left;			/* leaves that are still unverified: another process changed them meanwhile, or a row raised an error */
	bool		complained;
	ShermanHealShown *shown;	/* NULL: nowhere */
} Healing;

/*
 * Goes on with healing an index from where it was left: to its end, or for about so many milliseconds (0: without a
 * limit), leaf by leaf. Both relations are locked, the table at least against changes of its definition. When all
 * leaves have been checked and none is unverified any more, the tree's record says so. An error that a row raises
 * leaves its unverified leaf; others are raised.
 */
extern void heal_part(Healing *healing, Relation heap, Relation index, int milliseconds);

/*
 * Heals an index to its end, shown in sherman_stat_progress_heal. Returns the number of leaves that are still unverified.
 */
extern int64 heal_whole(Relation heap, Relation index);

/* heal_progress.c: shows healing of this index in sherman_stat_progress_heal, until it ends in any way. */
extern void heal_show(Healing *healing, Oid index);
extern void heal_show_phase(Healing *healing, ShermanHealPhase phase);
/* Brings the numbers up to date; `leaves`: how many the index has, 0 = as before. */
extern void heal_show_counts(Healing *healing, uint64 leaves);
extern void heal_show_no_more(Healing *healing);

#endif							/* SHERMAN_HEAL_H */

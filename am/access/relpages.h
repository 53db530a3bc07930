/*
 * relpages.h
 *		pg_class.relpages of an index.
 */
#ifndef SHERMAN_RELPAGES_H
#define SHERMAN_RELPAGES_H

#include "am/base/sherman.h"

#include "storage/block.h"

/* ANALYZE has written core's figure: writes this one over it.  The caller holds the lock that ANALYZE takes. */
extern void relpages_analyzed(Relation index, BlockNumber pages);
/* VACUUM found this figure: it is written when the transaction commits, and again behind the ANALYZE that may follow. */
extern void relpages_vacuumed(Relation index, BlockNumber pages);

#endif							/* SHERMAN_RELPAGES_H */

/*
 * replica_placement.h
 *		The two halves of an index with a copy, by its metapage: meta->replica is not 0, unless a comment says otherwise.
 */
#ifndef SHERMAN_HALVES_H
#define SHERMAN_HALVES_H

#include "am/base/sherman.h"

/* Positions of the memory nodes of the first half and the second. */
extern int	halves_home(const ShermanMetaPage *meta);
extern int	halves_replica(const ShermanMetaPage *meta);
/* Position of the half that is read; of any index. */
extern int	halves_read(const ShermanMetaPage *meta);
/* Whether the memory that one half of the index is in is at its position, and attached. */
extern bool half_is_usable(const ShermanMetaPage *meta, int position);
/*
 * Whether the index may go on without this memory node, which is away: it was waited for, and no process can be
 * inside an operation there, or begin one; or there is other memory in its place, with the same condition.
 */
extern bool half_may_be_missed(const ShermanMetaPage *meta, int position);
/* Whether the memory that a half lay on is at its position no more. */
extern bool half_is_lost(const ShermanMetaPage *meta, int position);
/* Whether leaves of the half with this key in the table of trees may be unverified. */
extern bool half_is_unverified(uint64 key);
/* Whether the two may differ, though no process is writing. */
extern bool halves_in_doubt(const ShermanMetaPage *meta);

#endif							/* SHERMAN_HALVES_H */

/*
 * vacuum.h
 *		A vacuum's walk in progress: what vacuum.c (leaf by leaf), vacuum_wave.c (many at once) and vacuum_entries.c (a leaf) share.
 */
#ifndef SHERMAN_VACUUM_H
#define SHERMAN_VACUUM_H

#include "tree/change/merge.h"
#include "tree/lock/leaf_cache.h"
#include "tree/lock/lock.h"

/* A leaf that the walk has come to. */
typedef struct VacuumLeaf
{
	uint64_t pointer;
	uint64_t *image;  /* the copy that was judged; in a wave, the image that was written after that */
	uint64_t *locked; /* of a wave: the copy under the lock */
	uint8_t victims[LEAF_CELLS_TARGET]; /* by slot: bit 0, or of a posting cell a bit for each TID */
	uint32_t victim_count;
	uint32_t live;   /* entries that are left */
	uint32_t cells;  /* that these take: fold_cells() */
	LeafKey key;     /* of a wave: from before it was read */
	LockHandle lock; /* of a wave, as is what follows */
	bool writes;     /* it is being rewritten */
	bool done;       /* it has no victims any more */
} VacuumLeaf;

struct TreeVacuum
{
	Tree *tree;
	bool begun;
	bool ended;
	uint64_t epoch;           /* of the tree, when `next` was read */
	uint64_t next;            /* the leaf to visit */
	RightWalk walk;           /* from the first one to it */
	uint64_t low[LINE_WORDS]; /* where it begins, unless it is the first: the last one's high fence */
	uint32_t height;          /* of the tree when the walk began */
	uint64_t leaves;          /* visited so far, for the estimates */
	uint64_t entries;
	VacuumLeaf single;    /* a leaf that goes by itself; its image has room for the root */
	bool outrun;          /* the last try failed as other processes had changed the leaf since the judgment */
	Outrun outruns;       /* such tries at this leaf */
	bool parent_known;    /* `parent` is a copy of a level-1 node, of this epoch */
	uint64_t *parent;     /* NODE_MAX_BYTES */
	uint8_t *fence_image; /* FENCE_IMAGE_BYTES: of the bound to descend with */
	uint32_t
		wave_count; /* leaves of the last wave that follow each other, and how many of them the walk has passed */
	uint32_t wave_next;
	int depth; /* leaves that the next wave reads, */
	int most;  /* and those that there is room for */
	VacuumLeaf wave[READ_TOGETHER_MAX];
	uint32_t left_cells; /* of the leaf that was passed last; FOLD_NEVER: there is none */
	SparseRanges sparse; /* where leaves were left without an entry, or with few */
};

/* ---- vacuum_entries.c ---- */

/*
 * Whether the leaf is the one behind a leaf with this right link and high fence (NULL: the first one).  A walk that always goes up
 * comes to an end.
 */
extern bool vacuum_follows(const NodeGeometry *g, const VacuumLeaf *leaf, uint64_t right,
                           const uint64_t *high);
/* Whether it is the one that the walk has come to. */
extern bool vacuum_is_at(const TreeVacuum *vacuum, const VacuumLeaf *leaf);
/* Marks the victims in the leaf's image, and counts what is left without them. Calls is_dead: nothing is held. */
extern void vacuum_choose(const TreeVacuum *vacuum, VacuumLeaf *leaf, TreeIsDead is_dead, void *argument);
/* Whether the locked leaf still has each victim as it was judged. */
extern bool vacuum_unchanged(const NodeGeometry *g, const VacuumLeaf *leaf, const uint64_t *node);
/* Takes the victims out of the image that the rewrite is made from. */
extern void vacuum_mark(const NodeGeometry *g, const VacuumLeaf *leaf, uint64_t *node);

/* ---- vacuum_wave.c ---- */

/*
 * Reads leaves from vacuum->next on, as many as are known to follow, judges them, and removes victims of those that
 * allow it. There may be none. Adds the removed entries to *counts. As tree_vacuum_next().
 */
extern TreeStatus vacuum_wave(TreeVacuum *vacuum, TreeIsDead is_dead, void *argument,
                              TreeVacuumCounts *counts);

#endif /* SHERMAN_VACUUM_H */

/*
 * insert.h
 *		An insert in progress: what insert.c (the way to the leaf, one cell), insert_full.c (rewrites and
 *		splits) and insert_common.c share.
 */
#ifndef SHERMAN_INSERT_H
#define SHERMAN_INSERT_H

#include "tree/descent/descent.h"

typedef struct Insertion
{
	Tree *tree;
	const TreeKey *key;
	const TreeWalPosition *wal;
	TreeBound bound;
	Path path;
	const Path *known; /* the first attempt's; NULL: it descends */
	LockHandle lock;
	uint64_t cell[LINE_WORDS]; /* stamp 0 */
	OverflowReference overflow;
	bool has_overflow;
	bool image_pending; /* the overflow key is not written yet */
	bool again;         /* a chain of this insert may have been applied before */
	bool hit;
	uint32_t cleared;         /* entries of the leaf's image that go, by its answer */
	bool asked;               /* the caller's hook, about a full leaf */
	bool kept;                /* the leaf keeps another cell than ours: our block is free */
	bool alone_wanted;        /* insert only where the leaf shows no other entry with this normalized key */
	bool alone;               /* no leaf has shown one */
	const TreePermit *permit; /* asked before that counts; NULL: it need not be */
	bool permitted;           /* given, and to be ended with the leaf's lock */
	int astray;               /* descents that led nowhere */
	RightWalk walk;           /* from leaf to leaf, in this attempt */
	bool outrun;              /* this attempt is lost to changes that others have made meanwhile */
	Outrun outruns;
} Insertion;

/* ---- insert_common.c ---- */

/*
 * A chain that wrote has ended. From here on our block belongs to the cell, whatever happens (the comparator may jump
 * away while the downlink is inserted), unless the leaf kept another cell. If the chain was indeterminate the cell
 * may be there; the next attempt will see it.
 */
extern TreeStatus insert_wrote(Insertion *in, TreeStatus status);
extern bool permit_ask(Insertion *in);
/*
 * Asks for the permit, if there is one, with the leaf locked and known to be without the key.  False: it is not given, and
 * the leaf is to be released.
 */
static inline bool
insert_permitted(Insertion *in)
{
	assert(in->lock.held);
	assert(!in->permitted);
	return in->permit == NULL || permit_ask(in);
}

/* The WRITE of the overflow key, from a private copy padded to whole words. */
extern FabricOp insert_image_op(const Insertion *in);
/*
 * Begins a chain on the leaf's memory node: an image that belongs there goes first. Returns the number of
 * operations.
 */
static inline int
insert_chain_begin(const Insertion *in, FabricOp *ops)
{
	assert(in->lock.held);
	assert(!in->image_pending || in->overflow.memory_node == in->lock.memory_node);
	if (!in->image_pending)
		return 0;
	ops[0] = insert_image_op(in);
	return 1;
}

#define CELL_WRITE_OPS 2

/*
 * WRITEs of the first of `count` cells, side by side from `slot` on, of a leaf's image; *written: of how many. A writer may die
 * inside of them: no cell is then live before all of it is there. Returns the number of operations, up to CELL_WRITE_OPS.
 */
extern int cells_write_ops(const Tree *tree, uint64_t pointer, uint64_t *node, uint32_t slot, uint32_t count,
                           FabricOp *ops, uint32_t *written);

/*
 * Raises (lsn, epoch) of the image and remembers an older epoch. Returns whether it
 * changed.
 */
extern bool insert_set_wal_position(const Tree *tree, const TreeWalPosition *wal, uint64_t *node);
/* Gives the leaf back as it was. */
extern TreeStatus insert_release(Insertion *in);

/*
 * Inserts the downlink of a split that was written. The entry is in, so a failure that only delays the downlink is no
 * error.
 */
extern TreeStatus insert_downlink(Insertion *in, uint64_t left, const uint64_t *separator, uint64_t right);

/*
 * The status of an insert after that of its downlink: what only delays the downlink is no error, as the split stays
 * incomplete.
 */
extern TreeStatus downlink_delayed(TreeStatus status);

/* ---- insert.c ---- */

/* Whether the entry is one that the tree's format can have. */
extern bool insert_valid(const Tree *tree, const TreeKey *key, const TreeWalPosition *wal);

/* tree_insert() in a critical section, of an entry to which a descent has just led. */
extern TreeStatus insert_found(Tree *tree, const TreeKey *key, const TreeWalPosition *wal, const Path *path);
/* The same of tree_insert_alone(). */
extern TreeStatus insert_found_alone(Tree *tree, const TreeKey *key, const TreeWalPosition *wal,
                                     const TreePermit *permit, const Path *path, bool *alone);

/*
 * The common case, in the locked leaf, which is not any more afterwards: the cell into an empty slot, or, of a hit, over
 * itself, and nothing else is written.
 */
extern TreeStatus insert_into_slot(Insertion *in, uint32_t slot);

/* ---- insert_full.c ---- */

/*
 * More than a cell is to be written; `same_tid` as in LeafSurvey.  The leaf is locked, and not any more afterwards.  As
 * tree_insert(); TREE_RETRY: begin anew.
 */
extern TreeStatus insert_by_rewrite(Insertion *in, uint32_t same_tid);

#endif /* SHERMAN_INSERT_H */

/*
 * scan.h
 *		Shared by the parts of a scan: scan.c finds the leaves, batch.c and batch_whole.c take the entries out of
 *		them.
 */
#ifndef SHERMAN_TREE_SCAN_H
#define SHERMAN_TREE_SCAN_H

#include "tree/lock/lock.h"

/* Buffers for leaves that each scan has: those read ahead, and one for leaves that are read alone. */
#define SCAN_BUFFERS (TREE_PREFETCH_MAX + 1)

/* The buffer for leaves that are read alone; it alone is long enough for the root. */
#define SCAN_ALONE TREE_PREFETCH_MAX

/* Leaves that are read together for seeks to come. */
#define SEEKS_AHEAD_MAX 64

/* Room for a fence's image: it is read in whole words. */
#define FENCE_IMAGE_BYTES (TREE_IMAGE_MAX_BYTES + OVERFLOW_ALIGN)

/* Leaves read ahead and not yet consumed: entries [next, count). */
typedef struct ScanAhead
{
	int count;
	int next;
	uint64_t pointers[READ_AHEAD_MAX];
	NodeVerdict verdicts[READ_AHEAD_MAX];
	uint64_t *images[READ_AHEAD_MAX];
} ScanAhead;

/* The level-1 node whose children are read ahead. */
typedef struct ScanParent
{
	uint64_t pointer; /* 0 = not known */
	bool loaded;      /* `node` is a copy of it */
	uint32_t hint;    /* child where the next separator is expected */
	uint64_t *node;   /* NODE_MAX_BYTES */
} ScanParent;

typedef struct SeeksAhead SeeksAhead;

struct TreeScan
{
	Tree *tree;
	TreeDirection direction;
	bool has_stop;
	bool sought;     /* tree_scan_seek() was called */
	bool from_end;   /* it starts at an end of the tree */
	bool begun;      /* a leaf was consumed: `want` is valid */
	bool ended;      /* no more leaves */
	bool loaded;     /* the current leaf was not consumed yet: tree_scan_take() or tree_scan_load() left it */
	bool taking;     /* the scan ends at `taken_end`, until it takes more leaves */
	bool unverified; /* leaves to be healed are returned even if they have no entries */
	bool stop_inside; /* the stop bound lies in the current leaf */
	bool near_inside; /* so does the fence where it is entered: entries on the far side of `near` count */
	bool far_inside;  /* so does `taken_end`: entries on the near side of `limit` count */
	TreeBound start;  /* of a scan from an end of the tree: the bound that stands for the end */
	TreeBound stop;
	TreeBound near;
	TreeBound limit;
	uint64_t epoch;                 /* of the tree, when the pointers below were read */
	uint64_t leaf_epoch;            /* the same of the current leaf */
	uint64_t want[LINE_WORDS];      /* fence where the next leaf begins, in the order of the scan */
	uint64_t taken_end[LINE_WORDS]; /* far fence of the last leaf that was taken */
	uint64_t right;                 /* right sibling of the leaf consumed last */
	uint64_t left;                  /* pointer of that leaf itself */
	RightWalk walk;                 /* over those that were consumed in this epoch */
	uint64_t *leaf;                 /* the current leaf: one of the buffers */
	uint64_t pointer;               /* where it came from */
	int depth;                      /* leaves to read ahead by the next chain */
	ScanAhead ahead;
	ScanParent parent;
	bool has_last;
	uint64_t last[LINE_WORDS]; /* cell of the entry returned last */
	uint64_t *buffers[SCAN_BUFFERS];
	SeeksAhead *seeks; /* seeks_ahead.c; NULL: none was announced yet */
	void *deep; /* memory for all leaves of a parent, of a scan that has gone so far; NULL: it has not */
	/*
	 * Overflow keys of the current leaf: by slot, place in the pool plus 1; 0 = not fetched.  The last
	 * is the far fence's.
	 */
	uint32_t images[LEAF_CELLS_TARGET + 1];
	uint64_t *
		entries; /* LEAF_ENTRIES_MAX cells: those of the current leaf's postings, as they are taken; NULL: no postings */
	bool keys_fetched; /* room for all images of the batch is taken: the pool stays where it is */
	uint8_t *pool;
	uint32_t pool_bytes;
	uint32_t pool_used;
	uint8_t *fence_image; /* FENCE_IMAGE_BYTES: of the bound to descend with */
	uint8_t *near_image;  /* the same of `near` and `limit` */
	uint8_t *limit_image;
	uint64_t reread[LINE_WORDS]; /* one line of a leaf: for tree_batch_unchanged(), and for tree_find() */
	TreeLeafHook leaf_hook;      /* NULL = none */
	void *leaf_argument;
	TreeBatch batch;
};

/* The bound that stands for an end of the tree: below or above every entry and separator, by integers. */
extern void bound_of_end(const NodeGeometry *g, bool above, TreeBound *bound);

/* A leaf's fence, in place. */
static inline const uint64_t *
scan_fence(const TreeScan *scan, const uint64_t *leaf, bool high)
{
	const NodeGeometry *g = &scan->tree->geometry;

	assert(node_level(leaf) == 0);
	return leaf + (high ? g->high_word : g->low_word);
}

/* Before a call follows pointers: those of another epoch of the tree are forgotten (quiesce.c). */
extern void scan_refresh(TreeScan *scan);

/*
 * Makes the next leaf, or the first, scan->leaf; `afresh`: by a descent. Nothing is held. Returns TREE_DAMAGED, or
 * the status of a chain. Calls the comparator.
 */
extern TreeStatus scan_load(TreeScan *scan, bool afresh);
/* leaf_mark.c: tells the caller's hook of leaves that are about to be read. It may jump. */
extern void leaves_mark(TreeScan *scan, const uint64_t *pointers, int count);
/* leaf_cache_read() of a leaf for this scan, after a call of the caller's hook. */
static inline TreeStatus
leaf_read(TreeScan *scan, uint64_t pointer, uint64_t *leaf)
{
	if (scan->leaf_hook != NULL)
		leaves_mark(scan, &pointer, 1);
	if (scan->tree->client->shared->leaves == NULL)
		return access_read_node(scan->tree, pointer, 0, leaf);
	return leaf_cache_read(scan->tree, pointer, leaf);
}

/*
 * seeks_ahead.c, where scan->seeks is not NULL: the leaf where the scan begins, its pointer and its parent's (0: not
 * known), if it was read ahead. *leaf is NULL if not.  As search_compare_fence().
 */
extern TreeStatus seeks_take(TreeScan *scan, uint64_t **leaf, uint64_t *pointer, uint64_t *parent);

/* Forgets what was fetched for the leaf before: scan->leaf has changed. */
extern void batch_begin(TreeScan *scan);

/*
 * Compares the stop bound with the fence where the scan leaves scan->leaf, which is not infinite.  In the
 * first leaf its overflow key comes by the chain that fetches those which the start bound ties with.
 * Otherwise as batch_fill().
 */
extern TreeStatus batch_compare_stop(TreeScan *scan, int *result);

/*
 * Takes the entries within the bounds out of scan->leaf into scan->batch, in the order of the scan, each once.
 * TREE_RETRY: an overflow key does not match its cell: read the leaf again. Also TREE_DAMAGED, TREE_NO_MEMORY, and
 * the status of a chain. Calls the comparator.
 */
extern TreeStatus batch_fill(TreeScan *scan);

/*
 * batch_whole.c: the same for a leaf that is within the bounds from end to end, if integers decide the order of all
 * its cells. False: they do not, or it looks damaged; then there is no batch.
 */
extern bool batch_fill_whole(TreeScan *scan);

/* batch_open.c. Whether two cells are the same entry. */
extern bool batch_same_entry(const NodeGeometry *g, const uint64_t *a, const uint64_t *b);

/* Begins the batch of scan->leaf: it has no entries yet. */
extern void batch_open(TreeScan *scan);

/*
 * Whether an entry is not beyond the one returned last.  Tiling by fences makes that impossible as long as
 * entries only move right in an epoch; this is the second line behind it.
 */
extern bool batch_is_passed(const TreeScan *scan, const uint64_t *cell);

static inline bool
batch_returned_before(const TreeScan *scan, const uint64_t *cell)
{
	return scan->has_last && batch_is_passed(scan, cell);
}

#endif /* SHERMAN_TREE_SCAN_H */

/*
 * node.h
 *		Layout of nodes, cells, fences, redo slots and extents in node memory.
 *
 * Everything is words of 8 bytes, little endian, in lines of 64 bytes. A node lies inside one stripe of 4 KB.
 *
 * Line 0 of every node (word: content)
 *		0	stamp:16 | level:8 | format:8 | count:8 | flags:24
 *		1	tree id
 *		2	generation, raised by every rewrite; stamp = its low 16 bits
 *		3	right sibling (pointer), 0 = none
 *		4	lsn                      \ the mutable unit: the only words outside cells that
 *		5	epoch:32 | unverified:32    / change inside a generation (one 16-byte WRITE)
 *		6	sum of all other words (inner nodes always; leaves only with NODE_SUM_VALID, which they have where READs
 *			of a memory node that is read for them may tear a cell, and may get within a generation)
 *		7	self (address)
 * Line 1 begins with the unit of the dead marks, and of the entries that the leaf, and those before it with these keys, had and
 * has not any more: up to where there is WAL that makes their rows dead
 *		8	stamp:16 | dead epoch:32 | 0:16
 *		9	dead lsn
 * Then the low fence and the high fence, one cell each, then the cells. Cells of 16, 32 and 64 bytes, and fences, are aligned to
 * their size, so that none crosses a line. Others begin at any word; the last one ends with the leaf.
 *
 * Leaf: the first word of every cell carries the stamp in its low 16 bits; where no cell crosses a line, the first word of every
 * line, too.
 * cells[0..count) are the base, sorted by cell_order() as of the last rewrite; the rest is the tail: every
 * slot describes itself. cell_order() is total where the format is lossless; elsewhere cells with equal
 * normalized keys lie together in the base, but in any order among themselves: the comparator decides their order
 * (and then the TID). Under NODE_BASE_ORDERED the base is in the comparator's order, too.
 * Cell:	0	stamp:16 | block:32 | offset:12 | state:2 | high:1 | overflow:1
 *			1..	normalized key, norm_bytes; then, if the format is not lossless, the image: a length
 *				byte and the bytes; or with `overflow` {offset/16:40 | memory node:8 | length:16} and a
 *				64-bit hash of the bytes
 * Posting: behind a cell of the base, in cells of its own, further TIDs of the same key, ascending. Only rewrites and the bulk
 * load make and change them (posting.c), and only where TreeFormat.postings allows it.
 * Posting cell:	0	stamp:16 | TID:32 | 0:12 | state CELL_POSTING:2 | 0:2
 *			1..	two TIDs each, the lower half first
 * TID: block:20 | offset:12, the block's upper 12 bits being those of the cell in front; 0 = none. That cell is a cell like any
 * other: it has the key and the lowest TID, and may be dead-marked, which says nothing of the posting behind it.
 *
 * Inner node: cells of {child pointer, separator}; a separator is a cell with stamp 0 (fences of inner nodes
 * too). The separator of the first cell is the node's low fence, byte for byte; it is never compared.
 * Separator states: SEPARATOR_INFINITE, SEPARATOR_FULL (key and TID), SEPARATOR_CUT (normalized key only).
 * Separators are copied as bytes between nodes and levels, never made anew (I-T7).
 *
 * Departures from reference/tree-protocol.md section 2: an inner cell is pointer + whole separator cell, so
 * that no continuation cells are needed and fences compare as bytes; inner nodes are one stripe for every
 * format. A posting is not one line of 64 bytes with up to 8 TIDs of 6 bytes, but cells with 3 or 7 TIDs of 4: so it needs no
 * place of its own in the leaf, the cell in front is a cell to whoever knows nothing of postings, and 25 or 57 TIDs take 9 cells.
 */
#ifndef SHERMAN_NODE_H
#define SHERMAN_NODE_H

#include <assert.h>
#include <string.h>

#include "tree/tree.h"

#define LINE_BYTES 64u
#define LINE_WORDS 8u

/* One stripe: fan-out of 53 to 166 and a tree of 3 inner levels for 10^7 entries. */
#define INNER_BYTES FABRIC_STRIPE_BYTES
#define NODE_MAX_BYTES FABRIC_STRIPE_BYTES

/*
 * Leaves hold up to 64 cells, of 16, 32 and 64 bytes about 60, as in the paper: 1 KB for 16-byte cells. Tests also run with 16, of
 * which 7 to 16 are not header and fences, so that splits are common.
 */
#ifndef LEAF_CELLS_TARGET
#define LEAF_CELLS_TARGET 64u
#endif

/* Children of an inner node: as many of the narrowest cells as fit into a stripe. Tests also run with 6. */
#ifndef INNER_CELLS_MAX
#define INNER_CELLS_MAX ((INNER_BYTES - HEADER_WORDS * 8) / 24)
#endif

#define NODE_FORMAT_VERSION 1u

/* Levels of a tree: 53^8 cells of the widest format are far beyond any heap. */
#define LEVELS_MAX 12

#define HEADER_STATE 0 /* word numbers of the header */
#define HEADER_TREE 1
#define HEADER_GENERATION 2
#define HEADER_RIGHT 3
#define HEADER_LSN 4
#define HEADER_EPOCH 5
#define HEADER_SUM 6
#define HEADER_SELF 7
#define HEADER_DEAD_EPOCH 8
#define HEADER_DEAD_LSN 9
#define HEADER_WORDS 10

/* Flags in word 0 of the header. */
#define NODE_ROOT 0x000001u
#define NODE_SUM_VALID 0x000002u
#define NODE_POSTINGS 0x000004u /* leaf: there are postings in its base */
/*
 * Leaf: the base is ascending by (key, TID) as the comparator says, not only as integers say. Rewrites know
 * it or inherit it (leaf_gather()); readers search such a base by halves.
 */
#define NODE_BASE_ORDERED 0x000008u
/* It is in no tree: one of a list of nodes to be used again, whose next one is its right sibling (freed.c). */
#define NODE_FREE 0x000010u
/* It is no node: the first line of a chunk that is cut into blocks for overflow keys (allocate.c). */
#define NODE_BLOCKS 0x000020u
/*
 * Leaf whose cells cross lines: the words of a cell, so that whoever has no format finds the stamps (service.c). 0: they do not
 * cross lines.
 */
#define NODE_CELL_WORDS_SHIFT 8
#define NODE_CELL_WORDS_MASK 0x000f00u

/* States of a leaf cell. */
#define CELL_EMPTY 0u
#define CELL_LIVE 1u
#define CELL_DEAD 2u
#define CELL_POSTING 3u

/* States of a separator or fence. */
#define SEPARATOR_INFINITE 0u
#define SEPARATOR_FULL 1u
#define SEPARATOR_CUT 2u

#define STAMP_MASK 0xffffull
#define CELL_BLOCK_SHIFT 16
#define CELL_OFFSET_SHIFT 48
#define CELL_OFFSET_MASK 0xfffull
#define CELL_STATE_SHIFT 60
#define CELL_HIGH_BIT (1ull << 62)
#define CELL_OVERFLOW_BIT (1ull << 63)
/* The TID bits of a cell's word 0: equal for equal TIDs, and ordered as TIDs once shifted. */
#define CELL_TID_MASK 0x0fffffffffff0000ull

/*
 * Pointer of a node: memory node:8 | offset/64:40 | 16 bits that mean nothing. They are 0 in pointers that are written
 * now; release 1.0 wrote the node's stamp there, as a hint that nothing used, and its nodes are still in use.
 */
#define POINTER_NONE 0ull
#define POINTER_NODES 256u
/* Offsets end here: an address of more bits would lead to another memory node. */
#define POINTER_OFFSET_END (1ull << 46)

static inline uint64_t
pointer_make(uint32_t memory_node, uint64_t offset)
{
	return (uint64_t) memory_node << 56 | (offset / 64) << 16;
}

static inline uint32_t
pointer_memory_node(uint64_t pointer)
{
	return (uint32_t) (pointer >> 56);
}

static inline uint64_t
pointer_offset(uint64_t pointer)
{
	return ((pointer >> 16) & 0xffffffffffull) * 64;
}

/* The node's address, as in HEADER_SELF: the pointer without the bits that mean nothing. */
static inline uint64_t
pointer_address(uint64_t pointer)
{
	return pointer & ~STAMP_MASK;
}

/* Sizes that follow from a format; computed once at tree_open(). */
typedef struct NodeGeometry
{
	TreeFormat format;
	uint32_t cell_bytes;
	uint32_t cell_words;
	uint32_t norm_words;
	bool lines_whole;    /* no cell crosses a line */
	uint32_t image_room; /* bytes behind the normalized key in a cell, 0 when lossless */
	uint32_t leaf_bytes;
	uint32_t leaf_cells;   /* cells in a leaf */
	uint32_t inner_cells;  /* cells in an inner node */
	uint32_t low_word;     /* word number of the low fence */
	uint32_t high_word;    /* word number of the high fence */
	uint32_t first_word;   /* word number of the first cell, leaf and inner */
	uint32_t inner_stride; /* words from one inner cell to the next: 1 + cell_words */
	uint32_t posting_tids; /* TIDs in a posting cell */
	uint32_t
		memory_nodes; /* that pointers may name: the client's; as many as a pointer can name: whoever has no client */
	/*
	 * A bit for each memory node whose READs may tear a cell: its leaves carry sums (client_leaf_sums()). The client's; NULL:
	 * none.
	 */
	const uint64_t *leaf_sums;
	/*
	 * Bits of the home and of the replica's memory node: nodes with pointers to one may be read at the other. 0: no
	 * replica.
	 */
	uint64_t twins;
	/* Up to where the WAL proves that dead-marked entries are dead, so that they may go. The handle's; NULL: (0, 0). */
	const TreeWalPosition *proven;
	const TreeWalLimits
		*ends; /* what WAL positions of earlier epochs prove; the client's caller's; NULL: everything */
	bool
		ignores_marks; /* dead marks are another instance's, and mean nothing here: TreeClientOptions.reader */
} NodeGeometry;

/* Can trees have it? */
extern bool format_valid(const TreeFormat *format);

static inline NodeGeometry
node_geometry(const TreeFormat *format)
{
	NodeGeometry g;

	g.format = *format;
	g.cell_bytes = format->cell_bytes;
	g.cell_words = g.cell_bytes / 8;
	g.norm_words = format->norm_bytes / 8u;
	g.lines_whole = LINE_BYTES % g.cell_bytes == 0;
	g.image_room = format->lossless ? 0 : g.cell_bytes - 8 - format->norm_bytes;
	g.low_word = HEADER_WORDS;
	if (g.lines_whole)
		g.low_word = (HEADER_WORDS + g.cell_words - 1) / g.cell_words * g.cell_words;
	g.high_word = g.low_word + g.cell_words;
	g.first_word = g.high_word + g.cell_words;
	/* A part of a stripe without a rest. */
	g.leaf_bytes = LEAF_CELLS_TARGET * LINE_BYTES;
	while ((g.leaf_bytes - g.first_word * 8) / g.cell_bytes > LEAF_CELLS_TARGET)
		g.leaf_bytes /= 2;
	g.leaf_cells = (g.leaf_bytes - g.first_word * 8) / g.cell_bytes;
	/* The last line has a stamp: without it a WRITE that was cut off there would not be seen. */
	if (!g.lines_whole)
		g.first_word = g.leaf_bytes / 8 - g.leaf_cells * g.cell_words;
	g.inner_stride = 1 + g.cell_words;
	g.posting_tids = 2 * g.cell_words - 1;
	g.memory_nodes = POINTER_NODES;
	g.leaf_sums = NULL;
	g.twins = 0;
	g.proven = NULL;
	g.ends = NULL;
	g.ignores_marks = false;
	/* separator_copy() may look at a word behind the last one. */
	g.inner_cells = (INNER_BYTES - g.first_word * 8 - g.cell_words % 2 * 8) / (g.inner_stride * 8);
	if (g.inner_cells > INNER_CELLS_MAX)
		g.inner_cells = INNER_CELLS_MAX;
	return g;
}

static inline uint32_t
node_bytes(const NodeGeometry *g, uint32_t level)
{
	return level == 0 ? g->leaf_bytes : INNER_BYTES;
}

/*
 * A word of a node that may lie in a shared cache frame: relaxed and atomic, so that one reading function serves
 * private copies and frames (whose sequence shows afterwards whether the words that were read are valid).
 */
static inline uint64_t
node_word(const uint64_t *node, uint32_t word)
{
	return __atomic_load_n(&node[word], __ATOMIC_RELAXED);
}

static inline uint32_t
node_level(const uint64_t *node)
{
	return (uint32_t) (node_word(node, HEADER_STATE) >> 16) & 0xff;
}

/* Leaf: cells of the base. Inner node: children. */
static inline uint32_t
node_count(const uint64_t *node)
{
	return (uint32_t) (node_word(node, HEADER_STATE) >> 32) & 0xff;
}

static inline uint32_t
node_flags(const uint64_t *node)
{
	return (uint32_t) (node_word(node, HEADER_STATE) >> 40);
}

static inline uint64_t
node_state_word(uint64_t generation, uint32_t level, uint32_t count, uint32_t flags)
{
	return (generation & STAMP_MASK) | (uint64_t) level << 16 | (uint64_t) NODE_FORMAT_VERSION << 24 |
	       (uint64_t) count << 32 | (uint64_t) flags << 40;
}

static inline uint32_t
leaf_cell_word(const NodeGeometry *g, uint32_t slot)
{
	return g->first_word + slot * g->cell_words;
}

/* Word number of the child pointer of an inner cell; its separator follows. */
static inline uint32_t
inner_cell_word(const NodeGeometry *g, uint32_t i)
{
	return g->first_word + i * g->inner_stride;
}

static inline uint32_t
cell_state(uint64_t word0)
{
	return (uint32_t) (word0 >> CELL_STATE_SHIFT) & 3;
}

static inline uint32_t
cell_block(uint64_t word0)
{
	return (uint32_t) (word0 >> CELL_BLOCK_SHIFT);
}

static inline uint16_t
cell_offset(uint64_t word0)
{
	return (uint16_t) ((word0 >> CELL_OFFSET_SHIFT) & CELL_OFFSET_MASK);
}

/* The epoch of a leaf's dead marks' unit. */
static inline uint32_t
leaf_dead_epoch(const uint64_t *node)
{
	return (uint32_t) (node_word(node, HEADER_DEAD_EPOCH) >> 16);
}

/* tree_wal_position_is_proven(), by what the client was given. */
static inline bool
wal_position_is_proven(const NodeGeometry *g, uint32_t epoch, uint64_t lsn)
{
	return g->ends == NULL || tree_wal_position_is_proven(g->ends, epoch, lsn);
}

/* The epoch since which entries of the leaf may have lost their rows, though its WAL position is a younger one; 0 = none. */
static inline uint32_t
leaf_unverified_since(const uint64_t *node)
{
	return (uint32_t) (node_word(node, HEADER_EPOCH) >> 32);
}

/* Whether entries of the leaf may have lost their rows with the WAL. */
static inline bool
leaf_is_unverified(const NodeGeometry *g, const uint64_t *node)
{
	return leaf_unverified_since(node) != 0 ||
	       !wal_position_is_proven(g, (uint32_t) node_word(node, HEADER_EPOCH), node_word(node, HEADER_LSN));
}

/* Whether the commits behind the leaf's dead marks may be lost, or unknown here: then its marks are void. */
static inline bool
leaf_marks_void(const NodeGeometry *g, const uint64_t *node)
{
	return g->ignores_marks ||
	       !wal_position_is_proven(g, leaf_dead_epoch(node), node_word(node, HEADER_DEAD_LSN));
}

/* Raises the unit of what is dead in a leaf's image. */
static inline void
leaf_raise_dead(uint64_t *node, uint32_t epoch, uint64_t lsn)
{
	uint32_t before = leaf_dead_epoch(node);

	if (before > epoch || (before == epoch && node_word(node, HEADER_DEAD_LSN) >= lsn))
		return;
	node[HEADER_DEAD_EPOCH] = (node[HEADER_DEAD_EPOCH] & STAMP_MASK) | (uint64_t) epoch << 16;
	node[HEADER_DEAD_LSN] = lsn;
}

/* Raises *dead to the unit of a leaf. */
static inline void
leaf_youngest_dead(const uint64_t *node, TreeWalPosition *dead)
{
	tree_wal_position_raise(dead, leaf_dead_epoch(node), node_word(node, HEADER_DEAD_LSN));
}

/*
 * Whether a rewrite may drop the leaf's dead-marked cells: all marks lie where the WAL proves them (I-P4). Marks of
 * an earlier epoch do unless they are void; removals are proven for the current epoch, which is later.
 */
static inline bool
leaf_dead_proven(const NodeGeometry *g, const uint64_t *node)
{
	const TreeWalPosition none = {0};
	const TreeWalPosition *proven = g->proven != NULL ? g->proven : &none;
	uint32_t epoch = leaf_dead_epoch(node);

	if (epoch < proven->epoch)
		return !leaf_marks_void(g, node);
	return epoch == proven->epoch && node_word(node, HEADER_DEAD_LSN) <= proven->lsn;
}

/* TIDs as integers that order as TIDs do. */
static inline uint64_t
tid_order(uint32_t block, uint16_t offset)
{
	return (uint64_t) block << 16 | offset;
}

static inline uint64_t
cell_word0(uint64_t generation, uint32_t block, uint16_t offset, uint32_t state, bool high, bool overflow)
{
	return (generation & STAMP_MASK) | (uint64_t) block << CELL_BLOCK_SHIFT |
	       ((uint64_t) offset & CELL_OFFSET_MASK) << CELL_OFFSET_SHIFT |
	       (uint64_t) state << CELL_STATE_SHIFT | (high ? CELL_HIGH_BIT : 0) |
	       (overflow ? CELL_OVERFLOW_BIT : 0);
}

/* Reference to an overflow key: the two words at the image's place in a cell. */
typedef struct OverflowReference
{
	uint32_t memory_node;
	uint64_t offset; /* bytes in NODES, 16-aligned */
	uint32_t bytes;
	uint64_t hash; /* XXH3 of the bytes: the proof that they are these */
} OverflowReference;

#define OVERFLOW_ALIGN 16u

/*
 * Redo slot (FABRIC_REDO_BYTES at capabilities->redo_offset): header in the first stripe, image in the
 * second.
 */
typedef struct RedoHeader
{
	uint64_t target;     /* pointer of the node to be rewritten */
	uint64_t generation; /* of the image */
	uint64_t bytes;      /* of the image */
	uint64_t lock_index; /* the node's lock word, and its value until this chain is complete: */
	uint64_t
		lock_word; /* the chain's last operation changes it, and no other process writes the node before */
	uint64_t sum;  /* XXH3 of the image, seeded with that of the words before */
} RedoHeader;

/* Extent header: the first stripe of an extent. */
typedef struct ExtentHeader
{
	uint64_t magic; /* EXTENT_MAGIC */
	uint64_t tree;
	uint64_t bytes;      /* of the extent with this header */
	uint64_t bump;       /* FETCH_ADD takes chunks: next free byte from the extent's start */
	uint64_t generation; /* random: nodes begin with it, so that stamps of earlier uses do not match */
	uint64_t
		copy_of; /* 0, or the place at the tree's home that this extent is a copy of from its start on, and 1 */
	uint64_t
		previous; /* offset of the tree's extent before this one at this memory node, 0 = it is the first */
	uint64_t number; /* of the tree's at this memory node, from 1 on; 0: of a copy */
} ExtentHeader;

#define EXTENT_MAGIC 0x736865726d616e31ull
#define EXTENT_MIN_BYTES 65536u
#define EXTENT_MAX_BYTES (8u << 20)

/* Nodes are taken from an extent in chunks: 16 leaves of 1 KB, 4 inner nodes. */
#define CHUNK_BYTES 16384u

/* Bytes of the chunks that so many bytes take. */
static inline uint64_t
chunks_round_up(uint64_t bytes)
{
	return (bytes + CHUNK_BYTES - 1) / CHUNK_BYTES * CHUNK_BYTES;
}

_Static_assert(sizeof(FabricOp) % 8 == 0, "operations keep 8-byte alignment in arrays");
_Static_assert(LEAF_CELLS_TARGET * 64 <= NODE_MAX_BYTES, "the largest leaf is one stripe at most");
_Static_assert(NODE_MAX_BYTES % (LEAF_CELLS_TARGET * 16) == 0, "leaves share stripes without a rest");
_Static_assert(INNER_CELLS_MAX >= 3, "a full inner node can be split");
_Static_assert(EXTENT_MIN_BYTES % CHUNK_BYTES == 0, "an extent is whole chunks");

/* ---- node.c ---- */

/* What integers say of two keys. */
typedef enum Decision
{
	DECIDE_BELOW = -1,
	DECIDE_EQUAL = 0,
	DECIDE_ABOVE = 1,
	DECIDE_UNKNOWN = 2
} Decision;

/*
 * Compares a bound with a leaf cell or separator by integers only: BELOW = the bound is
 * before the cell. EQUAL only for the very same (key, TID) with side 0. `cell` may be shared memory. An
 * infinite separator is never passed.
 */
extern Decision node_decide(const NodeGeometry *g, const TreeBound *bound, const uint64_t *cell,
                            bool separator);

/* Whether the first word of the bound's key is part of the bound, so that it can be compared with cells. */
static inline bool
bound_has_word(const TreeBound *bound)
{
	return bound->norm_bits_valid && bound->norm_length >= 8;
}

/* The bound that stands for one whole key. */
extern void bound_of_key(const NodeGeometry *g, const TreeKey *key, TreeBound *bound);

/* Whether the bounds' whole normalized keys are equal: then the entries between them are likely in one leaf. */
extern bool bounds_are_of_one_key(const NodeGeometry *g, const TreeBound *a, const TreeBound *b);

/* Sum over all words but HEADER_SUM (XXH3). */
extern uint64_t node_sum(const uint64_t *node, uint32_t bytes);

typedef enum NodeVerdict
{
	NODE_GOOD,
	NODE_TORN,   /* read again */
	NODE_STALE,  /* not the node expected: descend anew */
	NODE_EMPTY,  /* never written: generation 0 */
	NODE_DAMAGED /* whole, and nothing that the tree writes: node_has_shape() */
} NodeVerdict;

/*
 * Whether a private copy is a valid image of node `pointer` of `tree`: checks stamps or sum, tree, self, format
 * version, and shape. The level is left to the caller. The copy holds node_bytes() of the level in its header: a leaf
 * that may have become an inner node meanwhile can only be the root, which is therefore always read with
 * NODE_MAX_BYTES (tree_node_bytes() in internal.h).
 */
extern NodeVerdict node_check(const NodeGeometry *g, const uint64_t *node, uint64_t tree, uint64_t pointer);
/*
 * The same for a copy that was read under the node's lock: no process wrote meanwhile, so a leaf's sum is not
 * checked. It is wrong if a writer died between a cell and the sum.
 */
extern NodeVerdict node_check_locked(const NodeGeometry *g, const uint64_t *node, uint64_t tree,
                                     uint64_t pointer);
/*
 * The same as node_check(), but of the shape only the counts are checked: for callers that report what is wrong with
 * the node.
 */
extern NodeVerdict node_check_whole(const NodeGeometry *g, const uint64_t *node, uint64_t tree,
                                    uint64_t pointer);
/*
 * Whether a copy that is not torn can be used without further checks of its counts, levels, states, references and
 * pointers.
 */
extern bool node_has_shape(const NodeGeometry *g, const uint64_t *node);

/*
 * Whether leaves at this memory node need a sum: if READs there, or at the replica's memory node, may tear one of their
 * cells.
 */
static inline bool
leaf_needs_sum(const NodeGeometry *g, uint64_t pointer)
{
	uint64_t nodes = 1ull << (pointer_memory_node(pointer) & 63);

	if ((nodes & g->twins) != 0)
		nodes |= g->twins;
	return g->leaf_sums != NULL && (*g->leaf_sums & nodes) != 0;
}

/*
 * Whether readers without the lock would reject this leaf, which was read under its lock: its sum is missing or
 * stale.
 */
extern bool leaf_sum_is_due(const NodeGeometry *g, const uint64_t *node);
/* Gives it the right one, in the image. */
extern void leaf_sum_set(const NodeGeometry *g, uint64_t *node);

/* Begins a node in private memory: zeroes it, writes the header; sums and stamps come with node_seal(). */
extern void node_begin(const NodeGeometry *g, uint64_t *node, uint64_t tree, uint64_t pointer, uint32_t level,
                       uint64_t generation, uint32_t flags);
/*
 * Begins the next image of a node, or a half of it at another place: level, flags, right sibling, (epoch,
 * LSN), dead marks' unit and fences are old's; no cells.
 */
extern void node_begin_like(const NodeGeometry *g, uint64_t *node, const uint64_t *old, uint64_t pointer,
                            uint64_t generation);
/* Ends it: stamps (leaf), and a sum (inner; leaves where READs may tear cells). */
extern void node_seal(const NodeGeometry *g, uint64_t *node);

/* Fences: copies the separator bytes, without stamp. cell NULL = infinite. */
extern void node_set_fence(const NodeGeometry *g, uint64_t *node, bool high, const uint64_t *separator);
extern void node_get_fence(const NodeGeometry *g, const uint64_t *node, bool high, uint64_t *separator);
extern bool separator_equal(const NodeGeometry *g, const uint64_t *a,
                            const uint64_t *b); /* stamps do not count */

/*
 * Copies a separator with its stamp; it may lie in shared memory. A call of memcpy() takes longer for so few words. Of an odd number
 * of words one more is copied: `to` has room for LINE_WORDS, and nodes have a word behind their last separator.
 */
static inline void
separator_copy(const NodeGeometry *g, uint64_t *to, const uint64_t *separator)
{
	for (uint32_t word = 0; word < g->cell_words; word += 2)
	{
		to[word] = node_word(separator, word);
		to[word + 1] = node_word(separator, word + 1);
	}
}

static inline bool
separator_infinite(const uint64_t *separator)
{
	return cell_state(node_word(separator, 0)) == SEPARATOR_INFINITE;
}

/* Hash of an overflow key, as its reference has it. */
extern uint64_t image_hash(const void *image, uint32_t bytes);
/* Builds a cell from a key; `overflow` NULL when the image fits or there is none. */
extern void cell_make(const NodeGeometry *g, uint64_t *cell, const TreeKey *key, uint64_t generation,
                      const OverflowReference *overflow);
/* Whether the key's image needs a place out of line. */
extern bool cell_needs_overflow(const NodeGeometry *g, const TreeKey *key);
/*
 * Fills a key from a cell; an image inline points into the cell, an overflow key is left NULL with image_bytes
 * set.
 */
extern void cell_key(const NodeGeometry *g, const uint64_t *cell, bool separator, TreeKey *key);
/* The length of an entry's or whole separator's image, 0 = none; *image: where it lies in the cell, NULL = not there. */
extern uint16_t cell_image(const NodeGeometry *g, const uint64_t *cell, const uint8_t **image);
extern void cell_overflow(const NodeGeometry *g, const uint64_t *cell, OverflowReference *reference);
/* Same bytes but for stamp, TID, state and, out of line, place. */
extern bool cell_same_key(const NodeGeometry *g, const uint64_t *a, const uint64_t *b);
/*
 * Orders two leaf cells by integers: high, normalized key and, if the format is lossless, TID. 0 = integers do not
 * decide (or the same entry).
 */
extern int cell_order(const NodeGeometry *g, const uint64_t *a, const uint64_t *b);
/* The same by the normalized keys alone. */
extern int cell_order_normalized(const NodeGeometry *g, const uint64_t *a, const uint64_t *b);
/*
 * Whether a leaf in private memory shows that no entry but the cell's own TID has its normalized key: none in the leaf, and
 * its fences differ from it.
 */
extern bool leaf_has_no_equal_key(const NodeGeometry *g, const uint64_t *node, const uint64_t *cell);

/* ---- interpolate.c ---- */

/*
 * How many of `count` cells in the order of their keys are below a key by its leading bit and first word. They begin at word
 * number `first` of the node, `stride` words apart, and lie between its fences. `node` may be shared memory: then the answer is
 * any number up to `count`.
 */
extern uint32_t cells_below(const NodeGeometry *g, const uint64_t *node, uint32_t first, uint32_t stride,
                            uint32_t count, const TreeKey *key);

/* ---- posting.c: TIDs of one key, together ---- */

#define POSTING_TIDS_MAX 7u /* in one cell */

/*
 * Posting cells behind one cell. A search by halves goes back over as many, and a leaf is cut between two postings, never
 * inside one.
 */
#define POSTING_CELLS_MAX (LEAF_CELLS_TARGET / 8)

/* Entries of a leaf. */
#define LEAF_ENTRIES_MAX (LEAF_CELLS_TARGET * POSTING_TIDS_MAX)

/* Bits of a TID's block that a posting cell has; the others are those of the cell in front. */
#define POSTING_BLOCK_BITS 20
#define POSTING_OFFSET_BITS 12

_Static_assert(LEAF_ENTRIES_MAX <= TREE_BATCH_MAX, "the entries of a leaf are one batch");
_Static_assert(POSTING_CELLS_MAX >= 2, "a posting may be longer than a cell");

/* Of a leaf cell in any state, private or not. */
static inline bool
cell_is_posting(const uint64_t *cell)
{
	return cell_state(cell[0]) == CELL_POSTING;
}

/* TID number i of a posting cell, as stored; 0 = none. */
static inline uint32_t
posting_get(const uint64_t *cell, uint32_t i)
{
	return (uint32_t) (i == 0 ? cell[0] >> CELL_BLOCK_SHIFT : cell[(i + 1) / 2] >> (i % 2 != 0 ? 0 : 32));
}

/* The first word of the entry with this TID, whose posting stands behind `head`: a live cell's, with head's stamp. */
static inline uint64_t
posting_word0(const uint64_t *head, uint32_t tid)
{
	uint32_t block = (cell_block(head[0]) & ~0u << POSTING_BLOCK_BITS) | tid >> POSTING_OFFSET_BITS;

	return cell_word0(head[0], block, (uint16_t) (tid & CELL_OFFSET_MASK), CELL_LIVE,
	                  (head[0] & CELL_HIGH_BIT) != 0, false);
}

/* How many TIDs a posting cell has. */
extern uint32_t posting_count(const NodeGeometry *g, const uint64_t *cell);
/* Removes the TID number i, in a private copy that a rewrite is made from. */
extern void posting_remove(uint64_t *cell, uint32_t i);
/* The slot of the cell in front of the posting that the cell in `slot` is of; else `slot` itself. */
extern uint32_t posting_head(const NodeGeometry *g, const uint64_t *node, uint32_t slot);
/* The slot of the posting cell that has the TID, or LEAF_NO_SLOT. */
extern uint32_t posting_find(const NodeGeometry *g, const uint64_t *node, uint32_t block, uint16_t offset);

/*
 * Puts entries, which come in the order of the tree, into cells side by side, those of one key into postings. So n entries of
 * one key take as few cells as can be, and never more than they took as cells and postings before. A dead mark stays with a cell
 * that stays a cell; in a posting there is none.
 */
typedef struct Packer
{
	uint64_t *cells; /* the first cell's place; the caller's */
	uint32_t count;  /* cells so far */
	uint32_t head;   /* number of the cell in front of the posting at the end */
	uint32_t tids;   /* number of entries of this cell: itself and its posting list */
} Packer;

/* Whether the entry takes a cell more. */
extern bool packer_takes_cell(const NodeGeometry *g, const Packer *packer, const uint64_t *cell);
extern void packer_add(const NodeGeometry *g, Packer *packer, const uint64_t *cell);

/* ---- leaf.c: rewriting leaves in private memory ---- */

#define LEAF_NO_SLOT UINT32_MAX

/*
 * Cells of a leaf in the order of a rewrite. They point into the copy they were gathered from, or, where they come out of
 * postings or go into them, to memory in here: so it is not copied.
 */
typedef struct LeafCells
{
	uint32_t count;
	bool ordered;   /* they are ascending by (key, TID): no tie of theirs is open */
	uint32_t extra; /* number of the cell that has the extra cell's entry, or LEAF_NO_SLOT */
	const uint64_t *cells[LEAF_ENTRIES_MAX + 1];
	uint64_t entries[LEAF_ENTRIES_MAX * TREE_POSTING_CELL_MAX_BYTES / 8];
	uint64_t packed[(LEAF_CELLS_TARGET + 1) * TREE_POSTING_CELL_MAX_BYTES / 8];
} LeafCells;

/* The survey of a leaf for an insert, by one pass over the first words of the cells. */
typedef struct LeafSurvey
{
	uint32_t same_tid; /* slot that holds the TID, live, dead-marked or in a posting, or LEAF_NO_SLOT */
	uint32_t empty;    /* first empty slot of the tail, or LEAF_NO_SLOT */
} LeafSurvey;

extern void leaf_survey(const NodeGeometry *g, const uint64_t *node, uint32_t block, uint16_t offset,
                        LeafSurvey *survey);
/*
 * Whether there is a posting cell at a place where none can be: damage. To be checked before a rewrite would lose it.
 */
extern bool leaf_posting_stray(const NodeGeometry *g, const uint64_t *node);
/* Whether a rewrite keeps a cell with this first word: it is live, or dead-marked and not proven so. */
static inline bool
leaf_keeps(uint64_t word0, bool dead_proven)
{
	return cell_state(word0) == CELL_LIVE || (cell_state(word0) == CELL_DEAD && !dead_proven);
}

/* Takes the marks off all dead-marked cells of a private copy: they are void. */
extern void leaf_revive(const NodeGeometry *g, uint64_t *node);
/* Number of entries that a rewrite would keep. */
extern uint32_t leaf_live(const NodeGeometry *g, const uint64_t *node);
/* Number of cells in any state but empty: a rewrite takes no more. */
extern uint32_t leaf_used(const NodeGeometry *g, const uint64_t *node);
/* Number of dead-marked cells that it would drop. */
extern uint32_t leaf_proven_dead(const NodeGeometry *g, const uint64_t *node);
/*
 * Gathers the entries that leaf_keeps() but the one in `skip` (a slot or LEAF_NO_SLOT; of a posting cell, the TID
 * that extra has), and `extra` (a cell, or NULL), in cell_order(), each as a cell; cells that integers do not order
 * keep their sequence: base, tail, extra. They are `ordered` if integers decide everything but ties among cells of an
 * ordered base.
 */
extern void leaf_gather(const NodeGeometry *g, const uint64_t *node, uint32_t skip, const uint64_t *extra,
                        LeafCells *cells);
/* Puts gathered entries of one key into postings, if the format has them: from now on cells may be posting cells. */
extern void leaf_pack(const NodeGeometry *g, LeafCells *cells);
/*
 * Copies cells [from, to) as the base of a node begun by node_begin(), and sets its NODE_BASE_ORDERED and
 * NODE_POSTINGS accordingly; node_seal() stamps the cells.
 */
extern void leaf_fill(const NodeGeometry *g, uint64_t *node, const LeafCells *cells, uint32_t from,
                      uint32_t to);
/* The same of cells wherever they lie; `ordered` as in LeafCells. */
extern void leaf_fill_cells(const NodeGeometry *g, uint64_t *node, const uint64_t *const *cells,
                            uint32_t count, bool ordered);
/*
 * Chooses where to cut gathered cells: cells[0, cut) stay left. The place nearest to `wanted` between two
 * cells that cell_order() tells apart, not closer than an eighth to an end and not inside a posting; 0 when there is none:
 * the comparator must order them.
 */
extern uint32_t leaf_cut(const NodeGeometry *g, const LeafCells *cells, uint32_t wanted);
/* Whether cells in the order of a rewrite may be cut in front of number `cut`. */
extern bool leaf_cut_possible(const NodeGeometry *g, const uint64_t *const *cells, uint32_t cut);
/* The cell in front of the cut, with its key: of a posting, the one before it. */
extern const uint64_t *leaf_cut_left(const uint64_t *const *cells, uint32_t cut);
/*
 * The separator in front of `right`, given its left neighbor: cut to the normalized key where that differs and the
 * format allows it, else the whole cell.
 */
extern void leaf_separator(const NodeGeometry *g, const uint64_t *left, const uint64_t *right,
                           uint64_t *separator);

#endif /* SHERMAN_NODE_H */

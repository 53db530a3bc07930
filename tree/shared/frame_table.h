/*
 * frame_table.h
 *		A table of frames in shared memory, each with a node's image: what the cache of inner nodes (inner_cache.c) and
 *		that of leaves (tree/lock/leaf_cache.c) have in common.
 *
 * Frames stand in sets. Nodes that lie side by side in a memory node have sets side by side, and a hash says where the
 * sets of such neighbors begin: so a range scan touches few pages of the table, each of which costs a new process a page
 * fault. Beside the frames lies a tag for each, a hash of the node: to look for a node that has no frame touches tags
 * alone. A frame's sequence (sequence.h) is odd while a process fills the frame; no other process waits for that. A
 * process finds a frame, reads the image, and uses what it read if the sequence has not changed. To fill a frame it
 * claims the sequence, frame_assign() names the node, words_store() brings the image, and sequence_release() ends that.
 *
 * Which images are valid, which of them are kept, and what each is worth to frame_victim() is each cache's own affair.
 */
#ifndef SHERMAN_TREE_FRAME_TABLE_H
#define SHERMAN_TREE_FRAME_TABLE_H

#include "tree/internal.h"
#include "tree/shared/sequence.h"

/* What frames of both caches begin with; a cache's own words follow, in the same line. */
typedef struct FrameHead
{
	uint64_t sequence;
	uint64_t tree; /* 0 = empty */
	uint64_t address;
	uint64_t epoch; /* the tree's when the image was read */
	uint32_t used;  /* the table's clock at the last use */
} FrameHead;

typedef struct FrameTable
{
	/* These do not change. The pointers are good in all processes, as those of TreeShared. */
	_Alignas(LINE_BYTES) uint64_t *tags; /* of all frames, set by set; 0 = empty */
	char *frames;                        /* each one line: a FrameHead, and what follows it */
	uint64_t *images;
	uint32_t sets;
	uint32_t ways; /* frames of a set, a power of two */
	uint32_t image_bytes;
	uint32_t number_shift;  /* so many bits of an address are within a node as long as an image */
	uint32_t neighbors;     /* that have sets side by side, a power of two, at most `sets` */
	uint32_t fills_of_tick; /* so many new images are one tick of the clock */
	/* Images that were put in for nodes that had none, and the clock. */
	_Alignas(LINE_BYTES) uint64_t fills;
	uint32_t clock;
} FrameTable;

/* A node, and which frames may be its. */
typedef struct FrameKey
{
	uint64_t tree;
	uint64_t address;
	uint64_t tag;
	uint32_t first; /* frame of its set */
	uint32_t end;   /* number behind the set's last frame */
} FrameKey;

/* ---- layout ---- */

/* Bytes of a set with its tags, frames and images. */
extern uint64_t frames_set_bytes(uint32_t ways, uint32_t image_bytes);
/*
 * Lays out tags, frames and images, in this order, in zeroed memory that begins with a line, frames_set_bytes() long
 * for each set. sets, ways, image_bytes and fills_of_tick are set. Before any other process uses the table.
 */
extern void frames_lay_out(FrameTable *table, void *memory);
/* Empties all frames, which no process uses. The images themselves stay as they are. */
extern void frames_reset(FrameTable *table);

static inline uint32_t
frames_count(const FrameTable *table)
{
	assert(table->sets > 0);
	return table->sets * table->ways;
}

/* The frame with this number: of its set, number / ways, the one with tag number % ways. */
static inline FrameHead *
frame_head(const FrameTable *table, uint32_t number)
{
	assert(number < frames_count(table));
	return (FrameHead *) (table->frames + (size_t) number * LINE_BYTES);
}

/* ---- finding ---- */

/* Two rounds of multiply and shift: nodes lie at multiples of 512 bytes and more, and trees count up. */
static inline uint64_t
frame_hash(uint64_t tree, uint64_t address)
{
	uint64_t h = (tree * 0x9e3779b97f4a7c15ull) ^ (address >> 16);

	h = (h ^ h >> 32) * 0xd6e8feb86659fd93ull;
	h = (h ^ h >> 32) * 0xd6e8feb86659fd93ull;
	return h ^ h >> 32;
}

/* The node's set. */
static inline uint32_t
frame_set(const FrameTable *table, uint64_t tree, uint64_t address)
{
	uint64_t number = address >> table->number_shift;
	uint64_t neighbor = number & (table->neighbors - 1);
	uint64_t set =
		((frame_hash(tree, (number - neighbor) << table->number_shift) >> 32) * table->sets >> 32) + neighbor;

	return (uint32_t) (set < table->sets ? set : set - table->sets);
}

static inline FrameKey
frame_key(const FrameTable *table, uint64_t tree, uint64_t address)
{
	uint32_t first = frame_set(table, tree, address) * table->ways;

	assert(address == pointer_address(address));
	return (FrameKey){.tree = tree,
	                  .address = address,
	                  .tag = frame_hash(tree, address) | 1,
	                  .first = first,
	                  .end = first + table->ways};
}

/* Moves *number, from key->first to key->end, on to the next frame with the node's tag, whichever node it has. */
static inline bool
frame_tagged(const FrameTable *table, const FrameKey *key, uint32_t *number)
{
	for (; *number < key->end; ++*number)
		if (word_load(&table->tags[*number]) == key->tag)
			return true;
	return false;
}

/*
 * Moves *number on to the node's next frame, *number included: one that has its tag, and has the node, or is being
 * filled, with this node perhaps. *sequence: the frame's, odd in the latter case, from before anything of it was read.
 * False: there is none.
 */
static inline bool
frame_find(const FrameTable *table, const FrameKey *key, uint32_t *number, uint64_t *sequence)
{
	for (; frame_tagged(table, key, number); ++*number)
	{
		const FrameHead *head = frame_head(table, *number);

		*sequence = sequence_begin_read(&head->sequence);
		if ((*sequence & 1) != 0 ||
		    (word_load(&head->tree) == key->tree && word_load(&head->address) == key->address))
			return true;
	}
	return false;
}

/* ---- use ---- */

/* Marks that the frame is used; a write only when the clock has moved on. */
static inline void
frame_touch(const FrameTable *table, FrameHead *head)
{
	uint32_t clock = __atomic_load_n(&table->clock, __ATOMIC_RELAXED);

	if (__atomic_load_n(&head->used, __ATOMIC_RELAXED) != clock)
		__atomic_store_n(&head->used, clock, __ATOMIC_RELAXED);
}

/* What a frame's content is worth by its last use: the more, the later that was, and more than 0. */
static inline uint64_t
frame_worth_by_use(const FrameTable *table, const FrameHead *head)
{
	uint32_t age =
		__atomic_load_n(&table->clock, __ATOMIC_RELAXED) - __atomic_load_n(&head->used, __ATOMIC_RELAXED);

	return 1 + (uint64_t) (UINT32_MAX - age);
}

/* ---- filling: all but frame_victim() by the process that has claimed the frame's sequence ---- */

/* Of a frame that goes to no other node. */
#define FRAME_KEPT UINT64_MAX

/*
 * A cache's rule: what is lost if an image that takes `span` frames is put at this one. 0: nothing; FRAME_KEPT: it is
 * not to be put there.
 */
typedef uint64_t FrameWorth(const FrameTable *table, uint32_t number, uint32_t span);

/* The frame to fill: sequence_claim() with this sequence fails if another process has filled it meanwhile. */
typedef struct FrameVictim
{
	uint32_t number;
	uint64_t sequence;
	uint64_t worth; /* FRAME_KEPT: there is none */
} FrameVictim;

/* The frame of the node's set that is worth least; of several, the first one from `way` of the set on, around it. */
extern FrameVictim frame_victim(const FrameTable *table, const FrameKey *key, uint32_t way, uint32_t span,
                                FrameWorth *worth);

/* The frame is the node's, as of this epoch of the tree, and used now. Its image follows. */
static inline void
frame_assign(FrameTable *table, uint32_t number, const FrameKey *key, uint64_t epoch)
{
	FrameHead *head = frame_head(table, number);

	assert(number >= key->first && number < key->end);
	assert((word_load(&head->sequence) & 1) == 1);
	word_store(&table->tags[number], key->tag);
	word_store(&head->tree, key->tree);
	word_store(&head->address, key->address);
	word_store(&head->epoch, epoch);
	__atomic_store_n(&head->used, __atomic_load_n(&table->clock, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

/* The frame is no node's. */
static inline void
frame_empty(FrameTable *table, uint32_t number)
{
	assert((word_load(&frame_head(table, number)->sequence) & 1) == 1);
	word_store(&table->tags[number], 0);
	word_store(&frame_head(table, number)->tree, 0);
}

/* A node that had no image has got one. */
extern void frames_tick(FrameTable *table);

#endif /* SHERMAN_TREE_FRAME_TABLE_H */

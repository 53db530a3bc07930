/*
 * state.h
 *		The allocation state, estimates and counters of one tree in an instance's shared memory.
 *
 * Private to shared.c, state_table.c, allocate.c, freed.c, reclaim.c and quiesce.c. Everything but the counters, the
 * estimates, `splits`, `barrier`, `epoch` and what concerns replicas, which are atomic, is read and written under
 * `spin`, which is never held across a chain, a call or anything else that can wait.
 */
#ifndef SHERMAN_TREE_STATE_H
#define SHERMAN_TREE_STATE_H

#include "tree/internal.h"

/* Runs, by what is cut from them. */
typedef enum StateUse
{
	STATE_LEAVES,
	STATE_INNER,
	STATE_OVERFLOW, /* blocks, as its chunks say */
	STATE_STRIPES,  /* whole stripes for nodes of either kind */
	STATE_FOUND, /* whole chunks (or the last of an extent) to which nothing was written, for all of these: reclaim.c has found them */
	STATE_CHUNKS, /* the same, which this incarnation has taken */
	STATE_USES
} StateUse;

/* A run of bytes that belongs to this instance alone: runs.c. */
typedef struct StateRun
{
	uint64_t next; /* offset in NODES */
	uint64_t end;
	uint64_t generation; /* first generation of nodes in it */
	uint32_t use;        /* StateUse */
	uint32_t reserved;
} StateRun;

/* How far the extents of earlier incarnations were looked through: reclaim.c. */
typedef enum StateLook
{
	STATE_LOOK_DUE,
	STATE_LOOK_UNDER_WAY, /* a process examines a piece: no other one gives out what it finds free there */
	STATE_LOOK_OVER       /* to the end, or given up: never again in this incarnation */
} StateLook;

/* The parts of a tree's extents at one memory node that earlier incarnations of the instance took: reclaim.c. */
typedef struct StatePast
{
	uint64_t extent; /* the newest one that is not looked through; 0 = there is none */
	uint64_t next;   /* up to where it is not looked through, from its start on; 0 = all that was taken */
	uint32_t look;   /* StateLook */
	uint32_t number; /* the extent's, as its header must say: so no damaged one is looked through twice */
} StatePast;

/* A block for an overflow key, not in use: one of the pool that all trees share. */
typedef struct StateBlock
{
	uint64_t offset;
	uint32_t next; /* the next one of its list: number in the pool plus 1, 0 = none */
	uint32_t reserved;
} StateBlock;

/*
 * Runs that are remembered: those that are cut from now, the rests of extents, nodes that handles took ahead and gave back, and, up
 * to the half, what reclaim.c finds. Where there are more the shortest goes to the lists of free nodes, or blocks.
 */
#define STATE_RUNS 20
/*
 * Free blocks that can be remembered, for each tree that can be in use; one tree may have them all.  When
 * there are more, one that is given back is forgotten, which REINDEX gets back.
 */
#define STATE_BLOCKS_PER_TREE 128
/* Lists of free blocks: one for each length, in units of OVERFLOW_ALIGN; blocks are shorter than a stripe. */
#define STATE_BLOCK_LENGTHS (FABRIC_STRIPE_BYTES / OVERFLOW_ALIGN)

/* A unit of node memory: extents are whole ones. */
#define STATE_UNIT_BYTES EXTENT_MIN_BYTES
/* Units with free nodes that can be told apart, for each tree that can be in use; one tree may have them all. */
#define STATE_UNITS_PER_TREE 32

/* The free nodes of a unit: a list of leaves, and one of inner nodes (freed.c). */
typedef struct StateUnit
{
	uint64_t offset; /* where the unit begins */
	uint32_t part;   /* whose it is: number of a StateAtNode */
	uint32_t
		after; /* the next entry with this hash, or that is not in use: number plus 1, as all that follow */
	uint64_t first[2]; /* the first node of the list, by kind; 0 = none */
	uint32_t count[2];
	uint32_t before[2]; /* of the part's entries with nodes of the kind */
	uint32_t next[2];
} StateUnit;

/* A tree at one memory node. */
typedef struct StateAtNode
{
	uint64_t extent_offset; /* the extent to take chunks from; 0 bytes = none known */
	uint64_t extent_bytes;
	uint64_t extent_generation;
	uint64_t tree_bytes; /* of its extents here, as last told */
	uint32_t extents;    /* how many, as last told */
	uint32_t exhausted;  /* the extent has no chunk left */
	uint32_t claimed;    /* where the instance is alone: what was untaken of it is in the runs, or was */
	uint64_t untaken;    /* from where on nothing of it was taken when this incarnation learned of it */
	StateRun runs[STATE_RUNS];
	uint32_t run_count;
	uint32_t next; /* not in use: the next such part, its number plus 1, 0 = none */
	StatePast past;
	/* freed.c: the units that have free nodes, by kind, those of other units, how many there are, and how often that changed. */
	uint32_t units[2];
	StateUnit rest;
	uint64_t freed_count[2];
	uint64_t freed_changes[2];
	uint64_t lengths[STATE_BLOCK_LENGTHS / 64]; /* a bit for each list of free blocks that is not empty */
	uint32_t blocks[STATE_BLOCK_LENGTHS];       /* their first blocks: number in the pool plus 1 */
} StateAtNode;

struct TreeState
{
	uint64_t tree; /* 0 = not in use */
	uint32_t references;
	uint32_t spin;
	uint32_t next;    /* in the tree's bucket, or of those not in use: number plus 1, 0 = none */
	uint32_t dropped; /* the tree is gone: the state is, too, when the last handle is closed */
	uint64_t used;    /* the table's clock when it was last put */
	uint32_t known;   /* estimates were set once */
	uint32_t splits;  /* of leaves, in progress: predicate.c */
	uint32_t barrier; /* 1 = closed: quiesce.c */
	uint32_t height;
	uint64_t epoch;          /* atomic: quiesce.c */
	uint64_t first_epoch;    /* atomic: the first epoch of this state: inner_cache.c */
	uint32_t replicas;       /* TreeReplicaState; atomic */
	uint32_t locks_leaked;   /* atomic */
	uint64_t replica_doubts; /* atomic: how many there were */
	uint64_t doubts_settled; /* atomic: those up to this one are settled */
	uint32_t gives;          /* give.c: how often an extent was taken out of the tree, and given */
	uint32_t past_over; /* reclaim.c looks through nothing more, at a memory node without a part, either */
	uint32_t unsettled; /* atomic: bit per memory node where a chain of the tree is indeterminate */
	int64_t entries;
	int64_t leaves;
	int64_t inner_nodes;
	int64_t overflow_bytes; /* blocks of overflow keys in use, as far as this instance saw */
	uint64_t extent_bytes;  /* of its extents at all memory nodes, as last reported */
	TreeCounters counters;
	TreeCounters counted_before; /* what they were at the last reset */
	uint64_t counters_reset;     /* atomic: when that was, by the caller's clock, 0 = never */
	uint32_t at
		[TREE_MAX_NODES]; /* atomic: its part at each memory node, number plus 1, 0 = none yet: state_at() */
};

typedef struct StateTable
{
	TreeSharedOptions options;
	uint32_t spin; /* over tree, references, used, next, dropped of all states, and the buckets */
	uint32_t reserved;
	uint64_t doubts_lost; /* atomic: how often a tree that had no entry, or has none now, had a doubt */
	uint64_t doubts_kept; /* atomic: so many of them the user of the table has noted elsewhere */
	uint64_t clock;
	uint64_t epochs;       /* the last epoch that any tree was given */
	uint64_t buckets;      /* offset of the heads of the hash table over tree ids: numbers of states plus 1 */
	uint64_t states;       /* offset of the states, options.trees of them */
	uint64_t parts;        /* offset of the StateAtNodes */
	uint64_t pool;         /* offset of the pool of StateBlocks */
	uint64_t units;        /* offset of the pool of StateUnits */
	uint32_t bucket_count; /* a power of two */
	uint32_t states_used;  /* states below were used once */
	uint32_t states_free;  /* list of those that are not in use now */
	uint32_t part_count;
	uint32_t parts_used; /* as of states; these three under `part_spin`, which is taken last */
	uint32_t parts_free;
	uint32_t part_spin;
	uint32_t pool_blocks;
	uint32_t pool_used; /* blocks below were used once */
	uint32_t pool_full; /* of them in use now */
	uint32_t pool_free; /* list of those that are not in use now */
	uint32_t pool_spin; /* over these; taken last */
	uint32_t unit_count;
	uint32_t units_used; /* as of blocks */
	uint32_t units_free;
	uint32_t units_spin; /* over these, and the hash table behind the entries; taken last */
} StateTable;

/* The tree's epoch in this instance: never the same again once it was raised. */
static inline uint64_t
state_epoch(const TreeState *state)
{
	return __atomic_load_n(&state->epoch, __ATOMIC_ACQUIRE);
}

/* The epoch in which the tree's state was made: nothing that was cached before it is used. */
static inline uint64_t
state_first_epoch(const TreeState *state)
{
	return __atomic_load_n(&state->first_epoch, __ATOMIC_RELAXED);
}

/* Tells the processor that this is a loop that waits for another one. */
static inline void
spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("isb" ::: "memory");
#endif
}

/* spin.c. Waits until the word is free. */
extern void spin_await(const uint32_t *spin);

/* Short critical sections of plain memory accesses between processes. */
static inline void
spin_lock(uint32_t *spin)
{
	assert(((uintptr_t) spin & 3) == 0);
	while (__atomic_exchange_n(spin, 1, __ATOMIC_ACQUIRE) != 0)
		spin_await(spin);
}

static inline void
spin_unlock(uint32_t *spin)
{
	assert(__atomic_load_n(spin, __ATOMIC_RELAXED) == 1);
	__atomic_store_n(spin, 0, __ATOMIC_RELEASE);
}

/* ---- state_table.c ---- */

/* Trees that a table may have room for: blocks of all of them have numbers of 32 bits. */
#define STATE_TREES_MAX (1u << 24)

/* State number i of those that were used once; its `tree` is 0 if it is not in use now. */
extern TreeState *state_number(const StateTable *table, uint32_t i);
/* The state of a tree, or NULL. Under the table's spin lock. */
extern TreeState *state_find(const StateTable *table, uint64_t tree);
/* A state's part at a memory node, or NULL: it has none yet. */
extern StateAtNode *state_part(const StateTable *table, const TreeState *state, uint32_t node);
/* The same, made (zeroed) if there is none. NULL: no room, which more trees in use at once than options.trees take. */
extern StateAtNode *state_at(StateTable *table, TreeState *state, uint32_t node);

/* state_at() of a handle's tree. */
static inline StateAtNode *
tree_part(const Tree *tree, uint32_t memory_node)
{
	return state_at(tree->client->shared->states, tree->state, memory_node);
}

/* Notes that a tree has a replica. False: that was known. */
extern bool state_replicas_join(TreeState *state, TreeReplicaState replicas);
/* Notes one more doubt about a tree's replica, if it has one (state.c). */
extern void state_replicas_note_doubt(TreeState *state);

/* ---- units.c: units with free nodes; all but the first two under the state's spin lock ---- */

/* Bytes of the pool of a table for so many trees. */
extern size_t units_pool_bytes(const TreeSharedOptions *options);
/* Empties the pool; no part has an entry. Nobody uses the table. */
extern void units_pool_reset(StateTable *table);
/* The entry of the unit that has this offset, or NULL. */
extern StateUnit *unit_find(StateTable *table, const StateAtNode *at, uint64_t offset);
/* Whether the pool has an entry left. */
extern bool units_left(StateTable *table);
/* The entry of the unit that has this offset, made if there is none: unit_set() follows. NULL: the pool is used up. */
extern StateUnit *unit_make(StateTable *table, const StateAtNode *at, uint64_t offset);
/* An entry with free nodes of the kind, or the part's rest; NULL: there are none. */
extern StateUnit *unit_first(StateTable *table, StateAtNode *at, uint32_t kind);
/*
 * Makes `first` the first of `count` free nodes of an entry, or of the rest. One that has none left goes back to the pool: it is
 * not to be used any more.
 */
extern void unit_set(StateTable *table, StateAtNode *at, StateUnit *unit, uint32_t kind, uint64_t first,
                     uint32_t count);
/* Forgets all free nodes of a tree that is not in use any more. */
extern void units_forget(StateTable *table, StateAtNode *at);

/* ---- blocks.c: free blocks for overflow keys; all under the state's spin lock ---- */

/* Bytes of the pool of a table for so many trees. */
extern size_t blocks_pool_bytes(const TreeSharedOptions *options);
/* Empties the pool; all lists are empty, too. No process uses the table. */
extern void blocks_pool_reset(StateTable *table);
/*
 * Remembers a block that nothing refers to (0 bytes: none), or forgets it if the pool is used up.  A `rest`
 * of another block, or of a stripe, fits perhaps nothing: it gets no room in the second half of the pool.
 */
extern void blocks_put(StateTable *table, StateAtNode *at, uint64_t offset, uint32_t bytes, bool rest);
/* The shortest block that is long enough; its rest is remembered. False: there is none. */
extern bool blocks_take(StateTable *table, StateAtNode *at, uint32_t bytes, uint64_t *offset);
/* Forgets all blocks of a tree that is not in use any more. */
extern void blocks_forget(StateTable *table, StateAtNode *at);

#endif /* SHERMAN_TREE_STATE_H */

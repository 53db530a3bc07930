/*
 * inner_cache.c
 *		Inner nodes in shared memory.
 *
 * A frame is one node's image under a 64-bit sequence, odd while it is being filled. Readers find the tag in the
 * set's line, search the frame in place by relaxed word loads and integer decisions, and use the result if the
 * sequence has not changed: then no process filled the frame meanwhile. Until that check the bytes may be anything,
 * so nothing here asserts on them, and no comparator sees them. No reader waits for a process that fills a frame.
 *
 * A child is put in only under its cached parent, whose count of children keeps it from being evicted; so the nodes
 * above a cached node are cached (counts belong to a frame, and a frame with children keeps its node). Filling is
 * plain C on plain memory and cannot be interrupted; a process that is killed while it fills ends the instance.
 *
 * A frame has the tree's epoch of when its image was read, and a merge begins another one (quiesce.c). The merge
 * marks the nodes that it takes out of the tree, and those that they are merged into, with that epoch: images of
 * these nodes and pointers to them in frames of earlier epochs are not used any more (T8). Everything else in those
 * frames stays valid. Nodes share marks, by their hashes: a node that shares another one's mark is read again,
 * needlessly.
 */
#include "tree/shared/cache.h"
#include "tree/shared/sequence.h"

#define CACHE_WAYS 8u
#define CACHE_NO_FRAME UINT32_MAX
/* A frame that changes under a search that often counts as a miss. */
#define CACHE_SEARCHES 3
/* Marks of nodes that merges have touched: some more than merges come between two lookups of a node. */
#define CACHE_MARKS 4096u

/* Eight tags are one line: a lookup touches it, the frame's header and the lines of the binary search. */
typedef struct CacheSet
{
	_Alignas(LINE_BYTES) uint64_t tags[CACHE_WAYS]; /* 0 = empty */
} CacheSet;

typedef struct CacheFrame
{
	_Alignas(LINE_BYTES) uint64_t sequence;
	uint64_t tree;
	uint64_t address;
	uint64_t generation; /* 0: dropped, waits for a newer image, and keeps its place for its children */
	uint32_t level;
	uint32_t parent;   /* frame that counts this one, or CACHE_NO_FRAME */
	uint32_t children; /* frames that name this one: only ever added to and taken from */
	uint32_t used;     /* the cache's clock at the last use */
	uint64_t epoch;    /* the tree's when the image was read; a frame from before its `first_epoch` is void */
} CacheFrame;

typedef struct CacheTable
{
	_Alignas(LINE_BYTES) uint64_t sets;
	uint64_t bytes;
	_Alignas(LINE_BYTES) uint32_t clock; /* counts fills: coarse, so that hits do not write */
	_Alignas(
		LINE_BYTES) uint64_t marks[CACHE_MARKS]; /* the epoch that began with the last merge of such a node */
} CacheTable;

_Static_assert(sizeof(CacheFrame) == LINE_BYTES, "a frame's header is one line");

/* ---- layout ---- */

static CacheSet *
cache_sets(CacheTable *table)
{
	assert(table->sets > 0);
	return (CacheSet *) (table + 1);
}

static CacheFrame *
cache_frame(CacheTable *table, uint32_t frame)
{
	assert(frame < table->sets * CACHE_WAYS);
	return (CacheFrame *) (cache_sets(table) + table->sets) + frame;
}

static uint64_t *
cache_image(CacheTable *table, uint32_t frame)
{
	assert(frame < table->sets * CACHE_WAYS);
	return (uint64_t *) cache_frame(table, 0) + (size_t) table->sets * CACHE_WAYS * LINE_WORDS +
	       (size_t) frame * (INNER_BYTES / 8);
}

static uint64_t
cache_sets_of(const TreeSharedOptions *options)
{
	uint64_t sets =
		options->cache_bytes / (sizeof(CacheSet) + CACHE_WAYS * (sizeof(CacheFrame) + INNER_BYTES));

	return sets > 0 ? sets : 1;
}

size_t
cache_shared_bytes(const TreeSharedOptions *options)
{
	uint64_t sets = cache_sets_of(options);

	assert(sets > 0);
	return sizeof(CacheTable) + sets * (sizeof(CacheSet) + CACHE_WAYS * (sizeof(CacheFrame) + INNER_BYTES));
}

void
cache_shared_initialize(void *memory, const TreeSharedOptions *options)
{
	CacheTable *table = memory;

	assert(((uintptr_t) memory & (LINE_BYTES - 1)) == 0);
	assert(options != NULL);
	table->sets = cache_sets_of(options);
	table->bytes = cache_shared_bytes(options);
}

/* Empties all frames, which no process uses. The images themselves stay as they are. */
void
cache_shared_reset(void *memory)
{
	CacheTable *table = memory;

	assert(table->sets > 0);
	memset(cache_sets(table), 0, table->sets * (sizeof(CacheSet) + CACHE_WAYS * sizeof(CacheFrame)));
	memset(table->marks, 0, sizeof(table->marks));
}

/* Two rounds of multiply and shift: nodes lie at multiples of 4096, and trees count up. */
static uint64_t
cache_hash(uint64_t tree, uint64_t address)
{
	uint64_t h = (tree * 0x9e3779b97f4a7c15ull) ^ (address >> 16);

	h = (h ^ h >> 32) * 0xd6e8feb86659fd93ull;
	h = (h ^ h >> 32) * 0xd6e8feb86659fd93ull;
	return h ^ h >> 32;
}

static uint64_t
cache_set_number(const CacheTable *table, uint64_t hash)
{
	assert(table->sets <= UINT32_MAX);
	return (hash >> 32) * table->sets >> 32;
}

/* Frames of the set from way `way` on that may hold the node; CACHE_NO_FRAME: none. */
static uint32_t
cache_way_find(CacheTable *table, uint64_t hash, uint32_t way)
{
	uint64_t set = cache_set_number(table, hash);
	const CacheSet *line = &cache_sets(table)[set];

	assert(set < table->sets);
	for (; way < CACHE_WAYS; way++)
	{
		if (__atomic_load_n(&line->tags[way], __ATOMIC_RELAXED) == (hash | 1))
			return (uint32_t) (set * CACHE_WAYS) + way;
	}
	return CACHE_NO_FRAME;
}

/* ---- frames ---- */

static bool
frame_is(const CacheFrame *frame, const Tree *tree, uint64_t address)
{
	return word_load(&frame->tree) == tree->tree && word_load(&frame->address) == address &&
	       word_load(&frame->epoch) >= tree->first_epoch;
}

static uint64_t *
cache_mark(CacheTable *table, const Tree *tree, uint64_t address)
{
	return &table->marks[cache_hash(tree->tree, address) % CACHE_MARKS];
}

/* Whether no merge has touched the node since this epoch of the tree. */
static bool
node_is_untouched(CacheTable *table, const Tree *tree, uint64_t address, uint64_t epoch)
{
	return epoch == tree->epoch || word_load(cache_mark(table, tree, address)) <= epoch;
}

/* The same of all nodes that an image points to. */
static bool
image_is_untouched(CacheTable *table, const Tree *tree, const uint64_t *image, uint64_t epoch)
{
	if (epoch == tree->epoch)
		return true;
	for (uint32_t i = 0; i < node_count(image); i++)
	{
		uint64_t child = image[inner_cell_word(&tree->geometry, i)];

		if (!node_is_untouched(table, tree, pointer_address(child), epoch))
			return false;
	}
	return node_is_untouched(table, tree, pointer_address(image[HEADER_RIGHT]), epoch);
}

void
cache_touched(Tree *tree, uint64_t pointer)
{
	uint64_t *mark = cache_mark(tree->client->shared->cache, tree, pointer_address(pointer));
	uint64_t last = word_load(mark);

	assert(tree->client->closed == tree->state);
	/* Merges of other trees go on beside, whose epochs may be later ones. */
	while (last < tree->epoch &&
	       !__atomic_compare_exchange_n(mark, &last, tree->epoch, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

/* Marks it used; a write only when the clock has moved on. */
static void
frame_touch(CacheTable *table, CacheFrame *frame)
{
	uint32_t clock = __atomic_load_n(&table->clock, __ATOMIC_RELAXED);

	if (__atomic_load_n(&frame->used, __ATOMIC_RELAXED) != clock)
		__atomic_store_n(&frame->used, clock, __ATOMIC_RELAXED);
}

/* ---- searching ---- */

/* Copies a frame's image into private memory; the caller checks the sequence before it uses the copy. */
static void
frame_copy(const uint64_t *image, uint64_t *copy)
{
	assert(image != NULL);
	assert(copy != NULL);
	for (uint32_t word = 0; word < INNER_BYTES / 8; word++)
		copy[word] = word_load(&image[word]);
}

TreeStatus
cache_find_child(Tree *tree, uint64_t pointer, const TreeBound *bound, ChildChoice *choice, uint64_t *copy)
{
	CacheTable *table = tree->client->shared->cache;
	uint64_t address = pointer_address(pointer);
	uint64_t hash = cache_hash(tree->tree, address);
	uint32_t found = cache_way_find(table, hash, 0);

	assert(address != POINTER_NONE);
	for (int search = 0; found != CACHE_NO_FRAME && search < CACHE_SEARCHES; search++)
	{
		CacheFrame *frame = cache_frame(table, found);
		const uint64_t *image = cache_image(table, found);
		uint64_t sequence = sequence_begin_read(&frame->sequence);
		uint64_t epoch;
		bool decided;

		if ((sequence & 1) != 0)
			break;
		if (!frame_is(frame, tree, address))
		{
			found = cache_way_find(table, hash, found % CACHE_WAYS + 1);
			continue;
		}
		epoch = word_load(&frame->epoch);
		if (word_load(&frame->generation) == 0 || !node_is_untouched(table, tree, address, epoch))
			break;
		decided = node_find_child(&tree->geometry, image, bound, choice);
		if (!decided)
			frame_copy(image, copy);
		if (!sequence_end_read(&frame->sequence, sequence))
			continue;
		if (decided ? !node_is_untouched(table, tree, pointer_address(choice->child), epoch)
		            : !image_is_untouched(table, tree, copy, epoch))
			break;
		frame_touch(table, frame);
		TREE_COUNT(tree, cache_hits, 1);
		return decided ? TREE_OK : TREE_RETRY;
	}
	TREE_COUNT(tree, cache_misses, 1);
	return TREE_NOT_FOUND;
}

TreeStatus
cache_copy(Tree *tree, uint64_t pointer, uint64_t *copy)
{
	CacheTable *table = tree->client->shared->cache;
	uint64_t address = pointer_address(pointer);
	uint64_t hash = cache_hash(tree->tree, address);
	uint32_t found = cache_way_find(table, hash, 0);

	assert(copy != NULL);
	for (int search = 0; found != CACHE_NO_FRAME && search < CACHE_SEARCHES; search++)
	{
		CacheFrame *frame = cache_frame(table, found);
		uint64_t sequence = sequence_begin_read(&frame->sequence);
		uint64_t epoch;

		if ((sequence & 1) != 0)
			break;
		if (!frame_is(frame, tree, address))
		{
			found = cache_way_find(table, hash, found % CACHE_WAYS + 1);
			continue;
		}
		epoch = word_load(&frame->epoch);
		if (word_load(&frame->generation) == 0 || !node_is_untouched(table, tree, address, epoch))
			break;
		frame_copy(cache_image(table, found), copy);
		if (!sequence_end_read(&frame->sequence, sequence))
			continue;
		if (!image_is_untouched(table, tree, copy, epoch))
			break;
		frame_touch(table, frame);
		TREE_COUNT(tree, cache_hits, 1);
		return TREE_OK;
	}
	TREE_COUNT(tree, cache_misses, 1);
	return TREE_NOT_FOUND;
}

/* ---- filling and dropping ---- */

/* Writes an image that was read in this epoch of the tree into a frame that we have claimed. */
static void
frame_fill(CacheTable *table, uint32_t number, uint64_t epoch, const uint64_t *image)
{
	CacheFrame *frame = cache_frame(table, number);
	uint64_t *to = cache_image(table, number);

	assert((word_load(&frame->sequence) & 1) == 1);
	word_store(&frame->generation, image[HEADER_GENERATION]);
	word_store(&frame->epoch, epoch);
	__atomic_store_n(&frame->level, node_level(image), __ATOMIC_RELAXED);
	for (uint32_t word = 0; word < INNER_BYTES / 8; word++)
		word_store(&to[word], image[word]);
	__atomic_store_n(&frame->used, __atomic_load_n(&table->clock, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

/* Whether a frame's image is at least as new as this one: what was read in a later epoch was read later. */
static bool
frame_is_as_new(const CacheFrame *frame, const Tree *tree, const uint64_t *image)
{
	uint64_t generation = word_load(&frame->generation);

	return generation > image[HEADER_GENERATION] ||
	       (generation == image[HEADER_GENERATION] && word_load(&frame->epoch) >= tree->epoch);
}

/* Refreshes the frames that hold the node already. False: there are none. */
static bool
cache_refresh(CacheTable *table, uint64_t hash, const Tree *tree, uint64_t address, const uint64_t *image)
{
	bool known = false;

	assert(image[HEADER_GENERATION] != 0);
	for (uint32_t found = cache_way_find(table, hash, 0); found != CACHE_NO_FRAME;
	     found = cache_way_find(table, hash, found % CACHE_WAYS + 1))
	{
		CacheFrame *frame = cache_frame(table, found);
		uint64_t sequence = sequence_begin_read(&frame->sequence);

		if ((sequence & 1) != 0)
			return true; /* somebody fills it */
		if (!frame_is(frame, tree, address))
			continue;
		known = true;
		if (frame_is_as_new(frame, tree, image) || !sequence_claim(&frame->sequence, sequence))
			continue;
		frame_fill(table, found, tree->epoch, image);
		sequence_release(&frame->sequence);
	}
	return known;
}

/*
 * Counts a new child at its parent's frame, which so can not be evicted. CACHE_NO_FRAME: the parent is not
 * there.
 */
static uint32_t
parent_attach(CacheTable *table, const Tree *tree, uint64_t parent)
{
	uint64_t hash = cache_hash(tree->tree, parent);

	assert(parent == pointer_address(parent));
	for (uint32_t found = cache_way_find(table, hash, 0); found != CACHE_NO_FRAME;
	     found = cache_way_find(table, hash, found % CACHE_WAYS + 1))
	{
		CacheFrame *frame = cache_frame(table, found);

		/*
		 * First raises the count, then checks the claim; a process that evicts claims first, and then checks the
		 * count.
		 */
		__atomic_fetch_add(&frame->children, 1, __ATOMIC_SEQ_CST);
		if ((__atomic_load_n(&frame->sequence, __ATOMIC_SEQ_CST) & 1) == 0 && frame_is(frame, tree, parent))
			return found;
		__atomic_fetch_sub(&frame->children, 1, __ATOMIC_SEQ_CST);
	}
	return CACHE_NO_FRAME;
}

static void
parent_detach(CacheTable *table, uint32_t parent)
{
	if (parent == CACHE_NO_FRAME)
		return;
	assert(__atomic_load_n(&cache_frame(table, parent)->children, __ATOMIC_RELAXED) > 0);
	__atomic_fetch_sub(&cache_frame(table, parent)->children, 1, __ATOMIC_SEQ_CST);
}

/* The way of the set to fill: an empty one, or the least recently used without children. CACHE_WAYS: none. */
static uint32_t
victim_choose(CacheTable *table, uint64_t set)
{
	uint32_t clock = __atomic_load_n(&table->clock, __ATOMIC_RELAXED);
	uint32_t victim = CACHE_WAYS;
	uint32_t oldest = 0;

	assert(set < table->sets);
	for (uint32_t way = 0; way < CACHE_WAYS; way++)
	{
		CacheFrame *frame = cache_frame(table, (uint32_t) (set * CACHE_WAYS) + way);
		uint32_t age = clock - __atomic_load_n(&frame->used, __ATOMIC_RELAXED);

		if (word_load(&cache_sets(table)[set].tags[way]) == 0 &&
		    __atomic_load_n(&frame->children, __ATOMIC_RELAXED) == 0)
			return way;
		if (__atomic_load_n(&frame->children, __ATOMIC_RELAXED) == 0 &&
		    (victim == CACHE_WAYS || age > oldest))
		{
			victim = way;
			oldest = age;
		}
	}
	return victim;
}

/* Claims the frame and empties it. False: it has children, or another process has claimed it. */
static bool
frame_evict(CacheTable *table, uint64_t set, uint32_t way)
{
	uint32_t number = (uint32_t) (set * CACHE_WAYS) + way;
	CacheFrame *frame = cache_frame(table, number);

	assert(way < CACHE_WAYS);
	if (!sequence_claim(&frame->sequence, sequence_begin_read(&frame->sequence)))
		return false;
	if (__atomic_load_n(&frame->children, __ATOMIC_SEQ_CST) != 0)
	{
		sequence_release(&frame->sequence);
		return false;
	}
	if (word_load(&cache_sets(table)[set].tags[way]) != 0)
		parent_detach(table, __atomic_load_n(&frame->parent, __ATOMIC_RELAXED));
	word_store(&cache_sets(table)[set].tags[way], 0);
	word_store(&frame->tree, 0);
	return true;
}

void
cache_put(Tree *tree, uint64_t pointer, uint64_t parent, const uint64_t *image)
{
	CacheTable *table = tree->client->shared->cache;
	uint64_t address = pointer_address(pointer);
	uint64_t hash = cache_hash(tree->tree, address);
	uint64_t set = cache_set_number(table, hash);
	uint32_t attached = CACHE_NO_FRAME;
	uint32_t way;
	CacheFrame *frame;

	assert(node_level(image) > 0);
	assert(image[HEADER_SELF] == address && image[HEADER_TREE] == tree->tree);
	if (cache_refresh(table, hash, tree, address, image))
		return;
	if (parent != POINTER_NONE)
	{
		attached = parent_attach(table, tree, pointer_address(parent));
		if (attached == CACHE_NO_FRAME)
			return;
	}
	way = victim_choose(table, set);
	if (way == CACHE_WAYS)
	{
		parent_detach(table, attached);
		return;
	}
	if (word_load(&cache_sets(table)[set].tags[way]) != 0)
		TREE_COUNT(tree, cache_evictions, 1);
	if (!frame_evict(table, set, way))
	{
		parent_detach(table, attached);
		return;
	}
	frame = cache_frame(table, (uint32_t) (set * CACHE_WAYS) + way);
	__atomic_fetch_add(&table->clock, 1, __ATOMIC_RELAXED);
	word_store(&frame->tree, tree->tree);
	word_store(&frame->address, address);
	__atomic_store_n(&frame->parent, attached, __ATOMIC_RELAXED);
	frame_fill(table, (uint32_t) (set * CACHE_WAYS) + way, tree->epoch, image);
	word_store(&cache_sets(table)[set].tags[way], hash | 1);
	sequence_release(&frame->sequence);
}

/* Forgets one frame's node; with children it keeps its place, empty, until the next image. */
static void
frame_drop(CacheTable *table, uint32_t number, uint64_t tree, uint64_t address)
{
	CacheFrame *frame = cache_frame(table, number);
	uint64_t sequence = sequence_begin_read(&frame->sequence);

	assert(tree != 0);
	if (word_load(&frame->tree) != tree || word_load(&frame->address) != address ||
	    !sequence_claim(&frame->sequence, sequence))
		return;
	word_store(&frame->generation, 0);
	sequence_release(&frame->sequence);
	if (__atomic_load_n(&frame->children, __ATOMIC_SEQ_CST) == 0 &&
	    frame_evict(table, number / CACHE_WAYS, number % CACHE_WAYS))
		sequence_release(&frame->sequence);
}

void
cache_drop(Tree *tree, uint64_t pointer)
{
	CacheTable *table = tree->client->shared->cache;
	uint64_t address = pointer_address(pointer);
	uint64_t hash = cache_hash(tree->tree, address);

	assert(address != POINTER_NONE);
	for (uint32_t found = cache_way_find(table, hash, 0); found != CACHE_NO_FRAME;
	     found = cache_way_find(table, hash, found % CACHE_WAYS + 1))
		frame_drop(table, found, tree->tree, address);
}

/* Its frames, from the lowest level up: children go before their parents. */
void
cache_drop_tree(TreeShared *shared, uint64_t tree)
{
	CacheTable *table = shared->cache;

	assert(tree != 0);
	for (uint32_t level = 1; level < LEVELS_MAX; level++)
	{
		bool more = false;

		for (uint32_t number = 0; number < table->sets * CACHE_WAYS; number++)
		{
			CacheFrame *frame = cache_frame(table, number);
			uint32_t frame_level = __atomic_load_n(&frame->level, __ATOMIC_RELAXED);

			if (word_load(&frame->tree) != tree)
				continue;
			if (frame_level == level)
				frame_drop(table, number, tree, word_load(&frame->address));
			else if (frame_level > level)
				more = true;
		}
		if (!more)
			break;
	}
}

void
cache_usage(const TreeShared *shared, TreeCacheUsage *usage)
{
	CacheTable *table = shared->cache;

	memset(usage, 0, sizeof(*usage));
	usage->bytes = table->sets * CACHE_WAYS * INNER_BYTES;
	for (uint64_t set = 0; set < table->sets; set++)
		for (uint32_t way = 0; way < CACHE_WAYS; way++)
			usage->nodes += word_load(&cache_sets(table)[set].tags[way]) != 0;
	usage->used_bytes = usage->nodes * INNER_BYTES;
}

/*
 * inner_cache.c
 *		Inner nodes in shared memory.
 *
 * A frame (frame_table.h) is searched in place, by relaxed word loads and integer decisions, and the result is used if
 * the frame's sequence has not changed. Until that check the bytes may be anything, so nothing here asserts on them, and
 * no comparator sees them.
 *
 * A child is put in only under its cached parent, whose count of children keeps it from being evicted; so the nodes
 * above a cached node are cached (counts belong to a frame, and a frame with children keeps its node). Filling is
 * plain C on plain memory and cannot be interrupted; a process that is killed while it fills ends the instance.
 *
 * A frame has the tree's epoch of when its image was read, and a merge begins another one (quiesce.c). The merge
 * marks the nodes that it takes out of the tree, and those that they are merged into, with that epoch: images of
 * these nodes and pointers to them in frames of earlier epochs are not used any more (T8). Everything else in those
 * frames stays valid, back to the tree's first epoch in this instance. Nodes share marks, by their hashes: a node that
 * shares another one's mark is read again, needlessly.
 */
#include "tree/shared/cache.h"
#include "tree/shared/frame_table.h"

/* Eight tags are one line: a lookup touches it, the frame's header and the lines of the binary search. */
#define CACHE_WAYS 8u
#define CACHE_NO_FRAME UINT32_MAX
/* A frame that changes under a search that often counts as a miss. */
#define CACHE_SEARCHES 3
/* Marks of nodes that merges have touched: some more than merges come between two lookups of a node. */
#define CACHE_MARKS 4096u

typedef struct CacheFrame
{
	_Alignas(LINE_BYTES) FrameHead head;
	uint64_t generation; /* 0: dropped, waits for a newer image, and keeps its place for its children */
	uint32_t level;
	uint32_t parent;   /* frame that counts this one, or CACHE_NO_FRAME */
	uint32_t children; /* frames that name this one: only ever added to and taken from */
} CacheFrame;

typedef struct CacheTable
{
	FrameTable frames;
	_Alignas(
		LINE_BYTES) uint64_t marks[CACHE_MARKS]; /* the epoch that began with the last merge of such a node */
} CacheTable;

_Static_assert(sizeof(CacheFrame) == LINE_BYTES, "a frame's header is one line");

/* ---- layout ---- */

static CacheFrame *
cache_frame(const FrameTable *frames, uint32_t number)
{
	return (CacheFrame *) frame_head(frames, number);
}

static uint64_t *
cache_image(const FrameTable *frames, uint32_t number)
{
	assert(number < frames_count(frames));
	return frames->images + (size_t) number * (INNER_BYTES / 8);
}

static uint64_t
cache_sets_of(const TreeSharedOptions *options)
{
	uint64_t sets = options->cache_bytes / frames_set_bytes(CACHE_WAYS, INNER_BYTES);

	return sets > 0 ? sets : 1;
}

size_t
cache_shared_bytes(const TreeSharedOptions *options)
{
	return sizeof(CacheTable) + cache_sets_of(options) * frames_set_bytes(CACHE_WAYS, INNER_BYTES);
}

void
cache_shared_initialize(void *memory, const TreeSharedOptions *options)
{
	CacheTable *table = memory;

	assert(((uintptr_t) memory & (LINE_BYTES - 1)) == 0);
	assert(options != NULL);
	table->frames.sets = (uint32_t) cache_sets_of(options);
	table->frames.ways = CACHE_WAYS;
	table->frames.image_bytes = INNER_BYTES;
	table->frames.fills_of_tick = 1;
	frames_lay_out(&table->frames, table + 1);
}

/* Empties all frames, which no process uses. */
void
cache_shared_reset(void *memory)
{
	CacheTable *table = memory;

	frames_reset(&table->frames);
	memset(table->marks, 0, sizeof(table->marks));
}

/* ---- what merges have touched ---- */

static uint64_t *
cache_mark(CacheTable *table, const Tree *tree, uint64_t address)
{
	return &table->marks[frame_hash(tree->tree, address) % CACHE_MARKS];
}

/* Whether no merge has touched the node since this epoch of the tree. */
static inline bool
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

/* ---- searching ---- */

TreeStatus
cache_find_child(Tree *tree, uint64_t pointer, const TreeBound *bound, ChildChoice *choice, uint64_t *copy)
{
	CacheTable *table = tree->client->shared->cache;
	const FrameTable *frames = &table->frames;
	FrameKey key = frame_key(frames, tree->tree, pointer_address(pointer));
	uint32_t number = key.first;
	uint64_t sequence;

	assert(pointer_address(pointer) != POINTER_NONE);
	for (int search = 0; search < CACHE_SEARCHES && frame_find(frames, &key, &number, &sequence); search++)
	{
		CacheFrame *frame = cache_frame(frames, number);
		const uint64_t *image = cache_image(frames, number);
		uint64_t epoch = word_load(&frame->head.epoch);
		bool decided;

		if ((sequence & 1) != 0 || word_load(&frame->generation) == 0 || epoch < tree->first_epoch ||
		    !node_is_untouched(table, tree, key.address, epoch))
			break;
		decided = bound != NULL && node_find_child(&tree->geometry, image, bound, choice);
		if (!decided)
			words_load(copy, image, INNER_BYTES);
		if (!sequence_end_read(&frame->head.sequence, sequence))
			continue;
		if (decided ? !node_is_untouched(table, tree, pointer_address(choice->child), epoch)
		            : !image_is_untouched(table, tree, copy, epoch))
			break;
		frame_touch(frames, &frame->head);
		TREE_COUNT(tree, cache_hits, 1);
		return decided ? TREE_OK : TREE_RETRY;
	}
	TREE_COUNT(tree, cache_misses, 1);
	return TREE_NOT_FOUND;
}

TreeStatus
cache_copy(Tree *tree, uint64_t pointer, uint64_t *copy)
{
	assert(copy != NULL);
	return cache_find_child(tree, pointer, NULL, NULL, copy) == TREE_RETRY ? TREE_OK : TREE_NOT_FOUND;
}

/* ---- filling and dropping ---- */

/* Puts an image that was read in this epoch of the tree into a frame that we have claimed. */
static void
frame_fill(FrameTable *frames, uint32_t number, const FrameKey *key, uint64_t epoch, const uint64_t *image)
{
	CacheFrame *frame = cache_frame(frames, number);

	frame_assign(frames, number, key, epoch);
	word_store(&frame->generation, image[HEADER_GENERATION]);
	__atomic_store_n(&frame->level, node_level(image), __ATOMIC_RELAXED);
	words_store(cache_image(frames, number), image, INNER_BYTES);
}

/* Whether a frame's image is at least as new as this one: what was read in a later epoch was read later. */
static bool
frame_is_as_new(const CacheFrame *frame, const Tree *tree, const uint64_t *image)
{
	uint64_t generation = word_load(&frame->generation);

	return generation > image[HEADER_GENERATION] ||
	       (generation == image[HEADER_GENERATION] && word_load(&frame->head.epoch) >= tree->epoch);
}

/* Refreshes the frames that hold the node already. False: there are none. */
static bool
cache_refresh(FrameTable *frames, const FrameKey *key, const Tree *tree, const uint64_t *image)
{
	bool known = false;
	uint64_t sequence;

	assert(image[HEADER_GENERATION] != 0);
	for (uint32_t number = key->first; frame_find(frames, key, &number, &sequence); number++)
	{
		CacheFrame *frame = cache_frame(frames, number);

		known = true;
		if ((sequence & 1) != 0)
			break; /* another process fills it */
		if (frame_is_as_new(frame, tree, image) || !sequence_claim(&frame->head.sequence, sequence))
			continue;
		frame_fill(frames, number, key, tree->epoch, image);
		sequence_release(&frame->head.sequence);
	}
	return known;
}

/*
 * Counts a new child at its parent's frame, which so can not be evicted. CACHE_NO_FRAME: the parent is not
 * there.
 */
static uint32_t
parent_attach(FrameTable *frames, const Tree *tree, uint64_t parent)
{
	FrameKey key = frame_key(frames, tree->tree, parent);
	uint64_t sequence;

	for (uint32_t number = key.first; frame_find(frames, &key, &number, &sequence); number++)
	{
		CacheFrame *frame = cache_frame(frames, number);

		/*
		 * First raises the count, then checks the claim; a process that evicts claims first, and then checks the
		 * count.
		 */
		__atomic_fetch_add(&frame->children, 1, __ATOMIC_SEQ_CST);
		if ((sequence & 1) == 0 && __atomic_load_n(&frame->head.sequence, __ATOMIC_SEQ_CST) == sequence)
			return number;
		__atomic_fetch_sub(&frame->children, 1, __ATOMIC_SEQ_CST);
	}
	return CACHE_NO_FRAME;
}

static void
parent_detach(FrameTable *frames, uint32_t parent)
{
	if (parent == CACHE_NO_FRAME)
		return;
	assert(__atomic_load_n(&cache_frame(frames, parent)->children, __ATOMIC_RELAXED) > 0);
	__atomic_fetch_sub(&cache_frame(frames, parent)->children, 1, __ATOMIC_SEQ_CST);
}

/* A FrameWorth: one without children may go to another node, an empty one first, then the least recently used. */
static uint64_t
frame_worth(const FrameTable *frames, uint32_t number, uint32_t span)
{
	const CacheFrame *frame = cache_frame(frames, number);

	assert(span == 1);
	(void) span;
	if (__atomic_load_n(&frame->children, __ATOMIC_RELAXED) != 0)
		return FRAME_KEPT;
	return word_load(&frames->tags[number]) == 0 ? 0 : frame_worth_by_use(frames, &frame->head);
}

/* Empties a frame that we have claimed. False: it has children. */
static bool
frame_evict(FrameTable *frames, uint32_t number)
{
	const CacheFrame *frame = cache_frame(frames, number);

	if (__atomic_load_n(&frame->children, __ATOMIC_SEQ_CST) != 0)
		return false;
	if (word_load(&frames->tags[number]) != 0)
		parent_detach(frames, __atomic_load_n(&frame->parent, __ATOMIC_RELAXED));
	frame_empty(frames, number);
	return true;
}

/* Claims and empties a frame for the node, and fills it. False: there is none to be had. */
static bool
cache_admit(FrameTable *frames, const FrameKey *key, Tree *tree, uint32_t parent, const uint64_t *image)
{
	FrameVictim victim = frame_victim(frames, key, 0, 1, frame_worth);
	CacheFrame *frame = cache_frame(frames, victim.number);
	bool evicted;

	if (victim.worth == FRAME_KEPT || !sequence_claim(&frame->head.sequence, victim.sequence))
		return false;
	evicted = frame_evict(frames, victim.number);
	if (evicted)
	{
		TREE_COUNT(tree, cache_evictions, victim.worth > 0);
		frames_tick(frames);
		__atomic_store_n(&frame->parent, parent, __ATOMIC_RELAXED);
		frame_fill(frames, victim.number, key, tree->epoch, image);
	}
	sequence_release(&frame->head.sequence);
	return evicted;
}

void
cache_put(Tree *tree, uint64_t pointer, uint64_t parent, const uint64_t *image)
{
	FrameTable *frames = &((CacheTable *) tree->client->shared->cache)->frames;
	FrameKey key = frame_key(frames, tree->tree, pointer_address(pointer));
	uint32_t attached = CACHE_NO_FRAME;

	assert(node_level(image) > 0);
	assert(image[HEADER_SELF] == key.address && image[HEADER_TREE] == tree->tree);
	if (cache_refresh(frames, &key, tree, image))
		return;
	if (parent != POINTER_NONE)
	{
		attached = parent_attach(frames, tree, pointer_address(parent));
		if (attached == CACHE_NO_FRAME)
			return;
	}
	if (!cache_admit(frames, &key, tree, attached, image))
		parent_detach(frames, attached);
}

/* Forgets a frame's node, unless its sequence has changed; with children it keeps its place, until the next image. */
static void
frame_drop(FrameTable *frames, uint32_t number, uint64_t sequence)
{
	CacheFrame *frame = cache_frame(frames, number);

	if (!sequence_claim(&frame->head.sequence, sequence))
		return;
	if (!frame_evict(frames, number))
		word_store(&frame->generation, 0);
	sequence_release(&frame->head.sequence);
}

void
cache_drop(Tree *tree, uint64_t pointer)
{
	FrameTable *frames = &((CacheTable *) tree->client->shared->cache)->frames;
	FrameKey key = frame_key(frames, tree->tree, pointer_address(pointer));
	uint64_t sequence;

	assert(key.address != POINTER_NONE);
	for (uint32_t number = key.first; frame_find(frames, &key, &number, &sequence); number++)
		frame_drop(frames, number, sequence);
}

/* Its frames, from the lowest level up: children go before their parents. */
void
cache_drop_tree(TreeShared *shared, uint64_t tree)
{
	FrameTable *frames = &((CacheTable *) shared->cache)->frames;

	assert(tree != 0);
	for (uint32_t level = 1; level < LEVELS_MAX; level++)
	{
		bool more = false;

		for (uint32_t number = 0; number < frames_count(frames); number++)
		{
			const CacheFrame *frame = cache_frame(frames, number);
			uint64_t sequence = sequence_begin_read(&frame->head.sequence);
			uint32_t frame_level = __atomic_load_n(&frame->level, __ATOMIC_RELAXED);

			if (word_load(&frame->head.tree) != tree)
				continue;
			if (frame_level == level)
				frame_drop(frames, number, sequence);
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
	const FrameTable *frames = &((const CacheTable *) shared->cache)->frames;

	memset(usage, 0, sizeof(*usage));
	usage->bytes = (uint64_t) frames_count(frames) * INNER_BYTES;
	for (uint32_t number = 0; number < frames_count(frames); number++)
		usage->nodes += word_load(&frames->tags[number]) != 0;
	usage->used_bytes = usage->nodes * INNER_BYTES;
}

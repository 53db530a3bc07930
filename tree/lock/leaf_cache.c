/*
 * leaf_cache.c
 *		Images of leaves in shared memory, after DEX: a lookup whose leaf is there makes no round trip.
 *
 * Only where the instance has its trees for itself (TreeTechniques.exclusive): then every write of a linked leaf is
 * made by the owner of its entry in the local lock table. Before the owner posts a chain of writes it makes all images
 * of the leaf void; when the chain is acknowledged, and before it gives up the entry, it updates them. So a valid
 * image is the leaf's content: a process that checks that it is valid gets what a READ would have returned at that
 * instant, which lies inside the call, and after the work that leaf_mark.c does before a leaf is read. The owner of
 * the entry, before it writes, can use the image as the leaf itself.
 *
 * The result of a READ may be older than a write that began meanwhile. So each entry has a version: its owner makes
 * it odd before it makes images void, and gives it the next even value when it gives up the entry: when the chain is
 * acknowledged, or when nothing of it can take effect any more. An owner whose chain is indeterminate keeps the
 * entry, and an owner that was killed keeps it for ever; so the version stays odd. A reader reads the version before
 * it posts its READ, fills a frame, and makes it valid only if the version is even and unchanged. Of such a reader
 * and an owner that begins to write one sees the other: the frame is there before the reader looks at the version
 * again, and the version is odd before the owner looks for frames. Other leaves of the same entry keep their images.
 *
 * A node becomes another one without its own lock only while it is linked from nowhere, and in another epoch of
 * its tree (quiesce.c), which is part of what a frame is found by; so is how often its memory node was fenced and
 * opened anew.  The root, which becomes an inner node where it is, does so under its own lock: its image as a leaf is void
 * from then on. Leaves of trees with copies are not kept, and what comes out of a frame is checked as what comes out of
 * a READ is.
 *
 * Delayed admission: a leaf that was read pushes another one out with a probability only, so that leaves that are
 * read once do not push out hot ones.  A leaf that has a frame keeps it.  Frames are found and filled as those of
 * inner nodes are (frame_table.h), and no process waits for a filler.  DEX's other rule, that a child goes before its
 * parent, has nothing to do here: inner nodes have a cache of their own, from which leaves push out nothing, and a
 * leaf is found by its address, wherever that comes from.
 *
 * A hit makes no chain, so a process that has been fenced learns of it at its next chain only: see
 * doc/internals/ownership.md.
 */
#include "tree/lock/leaf_cache.h"
#include "tree/lock/lock.h"

/* The share of read leaves that are admitted: DEX's figure. */
#define ADMISSION_PERCENT 10u
/* Ticks of the clock while as many leaves are admitted as there are frames. With so few ticks a hit seldom writes. */
#define TICKS 16u
/* Values of LeafFrame.valid: the image is void, is being filled, or is the leaf's content. */
#define IMAGE_VOID 0u
#define IMAGE_BEGUN 1u
#define IMAGE_VALID 2u

/* ---- layout ---- */

static uint32_t
image_bytes(const TreeSharedOptions *options)
{
	uint32_t bytes = options->leaf_cache_leaf_bytes;

	if (bytes == 0 || bytes > NODE_MAX_BYTES)
		return NODE_MAX_BYTES / LEAF_GROUP;
	return (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

static uint64_t
set_bytes(const TreeSharedOptions *options)
{
	return frames_set_bytes(LEAF_WAYS, image_bytes(options));
}

/* 0: leaves are not kept. */
static uint64_t
sets_of(const TreeSharedOptions *options)
{
	if (options->leaf_cache_bytes == 0 || !shared_techniques(options)->exclusive)
		return 0;
	return options->leaf_cache_bytes / set_bytes(options);
}

/* Words of versions, whole lines. */
static uint64_t
versions_of(const TreeSharedOptions *options)
{
	uint64_t entries = (uint64_t) options->nodes * options->lock_words;

	return (entries + LINE_WORDS - 1) / LINE_WORDS * LINE_WORDS;
}

size_t
leaf_cache_shared_bytes(const TreeSharedOptions *options)
{
	uint64_t sets = sets_of(options);

	assert(options->lock_words > 0);
	return sets == 0 ? 0 : sizeof(LeafTable) + versions_of(options) * 8 + sets * set_bytes(options);
}

void
leaf_cache_shared_initialize(void *memory, const TreeSharedOptions *options)
{
	LeafTable *table = memory;

	assert(((uintptr_t) memory & (LINE_BYTES - 1)) == 0);
	assert(sets_of(options) > 0);
	table->versions = versions_of(options);
	table->longest = options->leaf_cache_leaf_bytes == 0 ? NODE_MAX_BYTES : image_bytes(options);
	table->admission_percent =
		options->leaf_admission_percent != 0 ? options->leaf_admission_percent : ADMISSION_PERCENT;
	table->frames.sets = (uint32_t) sets_of(options);
	table->frames.ways = LEAF_WAYS;
	table->frames.image_bytes = image_bytes(options);
	table->frames.fills_of_tick = frames_count(&table->frames) / TICKS + 1;
	frames_lay_out(&table->frames, (uint64_t *) (table + 1) + table->versions);
}

static uint64_t *
version_of(LeafTable *table, uint64_t entry)
{
	assert(entry < table->versions);
	return (uint64_t *) (table + 1) + entry;
}

uint64_t *
leaf_image(const LeafTable *table, uint32_t number)
{
	uint32_t place = __atomic_load_n(&leaf_frame(table, number)->place, __ATOMIC_ACQUIRE);

	return place == 0 ? NULL : table->frames.images + (place - 1ull) * (table->frames.image_bytes / 8);
}

/*
 * Memory for images goes to frames in the order in which they are first filled, for ever: so a cache that is hardly filled takes few
 * pages, and leaves that came together lie together. By the process that has claimed the frames. False: there is no more, as processes
 * that were killed here had taken some.
 */
static bool
places_give(LeafTable *table, uint32_t number, uint32_t span)
{
	for (uint32_t end = number + span; number < end; number++)
	{
		uint32_t *place = &leaf_frame(table, number)->place;
		uint32_t next;

		if (*place != 0)
			continue;
		if (__atomic_load_n(&table->places, __ATOMIC_RELAXED) >= frames_count(&table->frames))
			return false;
		next = __atomic_add_fetch(&table->places, 1, __ATOMIC_RELAXED);
		if (next > frames_count(&table->frames))
			return false;
		__atomic_store_n(place, next, __ATOMIC_RELEASE);
	}
	return true;
}

/* Copies the image that begins in this frame: a piece from the memory of each frame that it takes. */
static void
image_load(const LeafTable *table, uint32_t number, uint64_t *leaf, uint32_t bytes)
{
	uint32_t piece = table->frames.image_bytes;

	for (; bytes > piece; bytes -= piece, leaf += piece / 8)
		words_load(leaf, leaf_image(table, number++), piece);
	words_load(leaf, leaf_image(table, number), bytes);
}

static void
image_store(const LeafTable *table, uint32_t number, const uint64_t *leaf, uint32_t bytes)
{
	uint32_t piece = table->frames.image_bytes;

	for (; bytes > piece; bytes -= piece, leaf += piece / 8)
		words_store(leaf_image(table, number++), leaf, piece);
	words_store(leaf_image(table, number), leaf, bytes);
}

/* Empties all frames, and marks all leaves as not being written. No process uses the cache meanwhile. */
void
leaf_cache_shared_reset(TreeShared *shared)
{
	LeafTable *table = shared->leaves;

	if (table == NULL)
		return;
	memset(version_of(table, 0), 0, table->versions * 8);
	frames_reset(&table->frames);
	table->places = 0;
}

/* ---- versions ---- */

/* Whether leaves of a memory node are cached: the same for all processes of the instance, as long as it is open. */
static bool
node_is_kept(const TreeShared *shared, uint32_t memory_node)
{
	return (__atomic_load_n(&shared->leaves_at_hand, __ATOMIC_RELAXED) & 1u << memory_node) == 0;
}

void
tree_node_leaves_at_hand(TreeShared *shared, uint32_t node, bool at_hand)
{
	assert(node < TREE_MAX_NODES);
	if (at_hand)
		__atomic_fetch_or(&shared->leaves_at_hand, 1u << node, __ATOMIC_SEQ_CST);
	else
		__atomic_fetch_and(&shared->leaves_at_hand, ~(1u << node), __ATOMIC_SEQ_CST);
}

void
leaf_image_settle(const TreeClient *client, uint64_t entry)
{
	LeafTable *table = client->shared->leaves;

	assert(table != NULL);
	if (word_load(version_of(table, entry)) % 2 == 1)
		__atomic_fetch_add(version_of(table, entry), 1, __ATOMIC_SEQ_CST);
}

void
leaf_cache_forget(TreeShared *shared, uint32_t memory_node)
{
	LeafTable *table = shared->leaves;

	if (table == NULL)
		return;
	assert(memory_node < shared->options.nodes);
	__atomic_fetch_add(&table->fences[memory_node], 1, __ATOMIC_SEQ_CST);
}

/* ---- frames ---- */

LeafKey
leaf_cache_key(const Tree *tree, uint64_t pointer)
{
	const TreeClient *client = tree->client;
	LeafTable *table = client->shared->leaves;
	uint32_t node = pointer_memory_node(pointer);
	LeafKey key = {.pointer = pointer, .epoch = tree->epoch};

	/* Where a READ would get no answer the cache gives none, either. */
	if (table == NULL || client->sections == 0 || tree->replicas != NULL ||
	    tree->geometry.leaf_bytes > table->longest || node >= client->options.nodes ||
	    (client->options.endpoints[node] == NULL && (client->vouched & 1ull << node) == 0) ||
	    !node_is_open(client->shared, node) || !node_is_kept(client->shared, node) ||
	    (client->doubt & 1ull << node) != 0)
		return key;
	key.kept = true;
	key.node = frame_key(&table->frames, tree->tree, pointer_address(pointer));
	__builtin_prefetch(&table->frames.tags[key.node.first]);
	__builtin_prefetch(&table->frames.tags[key.node.first + LEAF_WAYS / 2]);
	key.fences = __atomic_load_n(&table->fences[node], __ATOMIC_SEQ_CST);
	/* How many lock words there are, and so which one is the leaf's, the memory node tells. */
	if (client->options.endpoints[node] == NULL)
	{
		key.version = LEAF_VERSION_UNKNOWN;
		return key;
	}
	key.entry = lock_entry_number(client, node, lock_word_of(client, node, pointer));
	key.version = __atomic_load_n(version_of(table, key.entry), __ATOMIC_SEQ_CST);
	return key;
}

static bool
frame_is_valid(const LeafFrame *frame)
{
	return __atomic_load_n(&frame->valid, __ATOMIC_SEQ_CST) == IMAGE_VALID;
}

/*
 * Moves *number, from key->node.first on, to the next frame that has an image of the leaf, one that is valid if
 * `valid`. *sequence: the frame's, even, from before its key was read. False: there is none.
 */
static bool
image_find(const Tree *tree, const LeafKey *key, uint32_t *number, bool valid, uint64_t *sequence)
{
	const LeafTable *table = tree->client->shared->leaves;

	for (; frame_find(&table->frames, &key->node, number, sequence); ++*number)
	{
		const LeafFrame *frame = leaf_frame(table, *number);

		if (*sequence % 2 == 0 && word_load(&frame->head.epoch) == key->epoch &&
		    word_load(&frame->fences) == key->fences && (!valid || frame_is_valid(frame)))
			return true;
	}
	return false;
}

void
leaf_image_void(const Tree *tree, uint64_t pointer, uint64_t entry)
{
	TreeShared *shared = tree->client->shared;
	LeafTable *table = shared->leaves;
	uint64_t before, sequence;
	FrameKey node;

	if (!node_is_kept(shared, (uint32_t) (entry / shared->options.lock_words)))
		return;
	before = __atomic_fetch_add(version_of(table, entry), 1, __ATOMIC_SEQ_CST);
	assert(before % 2 == 0);
	(void) before;
	/* A process that fills a frame now sees that, or its frame is seen here. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	node = frame_key(&table->frames, tree->tree, pointer_address(pointer));
	for (uint32_t number = node.first; frame_find(&table->frames, &node, &number, &sequence); number++)
		__atomic_store_n(&leaf_frame(table, number)->valid, IMAGE_VOID, __ATOMIC_SEQ_CST);
	/* All processes see the odd version before they can see an effect of the chain. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Copies a valid image, and checks it as the result of a READ is checked. False: there is none. */
static bool
image_take(Tree *tree, const LeafKey *key, uint64_t *leaf)
{
	LeafTable *table = tree->client->shared->leaves;
	const NodeGeometry *g = &tree->geometry;
	uint32_t number = key->node.first;
	uint64_t sequence;
	LeafFrame *frame;

	if (!key->kept || !image_find(tree, key, &number, true, &sequence))
		return false;
	frame = leaf_frame(table, number);
	image_load(table, number, leaf, g->leaf_bytes);
	if (!sequence_end_read(&frame->head.sequence, sequence) ||
	    node_check(g, leaf, tree->tree, key->pointer) != NODE_GOOD || node_level(leaf) != 0)
		return false;
	frame_touch(&table->frames, &frame->head);
	return true;
}

/* ---- groups ---- */

/*
 * An image takes one frame, two or a whole group of them, whose first one, at a multiple of that, has its key, and whose sequence guards all
 * of it.  How a group is divided changes only with all of its frames claimed; so it stays while one of them is.
 */
static uint32_t
span_of(const LeafTable *table, const Tree *tree)
{
	uint32_t bytes = table->frames.image_bytes;
	uint32_t frames = (tree->geometry.leaf_bytes + bytes - 1) / bytes;

	assert(frames <= LEAF_GROUP);
	return frames <= 2 ? frames : LEAF_GROUP;
}

static uint32_t
group_span(const LeafTable *table, uint32_t number)
{
	uint32_t span =
		__atomic_load_n(&leaf_frame(table, number / LEAF_GROUP * LEAF_GROUP)->span, __ATOMIC_RELAXED);

	return span == 0 ? 1 : span;
}

/*
 * Divides the group of a frame that this process has claimed, and empties its other frames.  False: another process has
 * one of these, and nothing has changed.
 */
static bool
group_divide(LeafTable *table, uint32_t number, uint32_t span)
{
	uint32_t first = number / LEAF_GROUP * LEAF_GROUP;
	uint32_t claimed = first;

	for (; claimed < first + LEAF_GROUP; claimed++)
	{
		uint64_t *sequence = &leaf_frame(table, claimed)->head.sequence;

		if (claimed != number && !sequence_claim(sequence, sequence_begin_read(sequence)))
			break;
	}
	if (claimed == first + LEAF_GROUP)
		__atomic_store_n(&leaf_frame(table, first)->span, span, __ATOMIC_RELAXED);
	for (uint32_t other = first; other < claimed; other++)
	{
		LeafFrame *frame = leaf_frame(table, other);

		if (other == number)
			continue;
		if (claimed == first + LEAF_GROUP)
		{
			frame_empty(&table->frames, other);
			__atomic_store_n(&frame->valid, IMAGE_VOID, __ATOMIC_SEQ_CST);
		}
		sequence_release(&frame->head.sequence);
	}
	return claimed == first + LEAF_GROUP;
}

/* Whether the result of a READ that was posted after the key's version was read is still current. */
static bool
version_stands(LeafTable *table, const LeafKey *key)
{
	uint32_t node = pointer_memory_node(key->pointer);

	return key->version % 2 == 0 &&
	       __atomic_load_n(version_of(table, key->entry), __ATOMIC_SEQ_CST) == key->version &&
	       __atomic_load_n(&table->fences[node], __ATOMIC_SEQ_CST) == key->fences;
}

/*
 * Fills the frame, unless its sequence has changed because another process fills it. `owner`: the image comes from
 * the owner of the leaf's entry, which still has that; else it was READ.
 */
static bool
frame_fill(Tree *tree, const LeafKey *key, uint32_t number, uint64_t sequence, const uint64_t *leaf,
           bool owner)
{
	LeafTable *table = tree->client->shared->leaves;
	LeafFrame *frame = leaf_frame(table, number);
	uint32_t span = span_of(table, tree);
	uint32_t begun = IMAGE_BEGUN;
	bool valid;

	assert(key->kept);
	if (!sequence_claim(&frame->head.sequence, sequence))
		return false;
	if ((group_span(table, number) != span && !group_divide(table, number, span)) ||
	    !places_give(table, number, span))
	{
		sequence_release(&frame->head.sequence);
		return false;
	}
	__atomic_store_n(&frame->valid, IMAGE_BEGUN, __ATOMIC_SEQ_CST);
	frame_assign(&table->frames, number, &key->node, key->epoch);
	word_store(&frame->fences, key->fences);
	image_store(table, number, leaf, tree->geometry.leaf_bytes);
	/* A process that begins to write the leaf sees the frame, or is seen here. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	valid = owner || version_stands(table, key);
	if (!valid)
		__atomic_store_n(&frame->valid, IMAGE_VOID, __ATOMIC_SEQ_CST);
	else
		valid = __atomic_compare_exchange_n(&frame->valid, &begun, IMAGE_VALID, false, __ATOMIC_SEQ_CST,
		                                    __ATOMIC_RELAXED);
	sequence_release(&frame->head.sequence);
	return valid;
}

/* Fills the frames that have an image of the leaf. False: there are none. */
static bool
image_refresh(Tree *tree, const LeafKey *key, const uint64_t *leaf, bool owner)
{
	uint64_t sequence;
	bool there = false;

	for (uint32_t number = key->node.first; image_find(tree, key, &number, false, &sequence); number++)
	{
		there = true;
		if (frame_fill(tree, key, number, sequence, leaf, owner))
			tree->client->leaf_counts.refreshed++;
	}
	return there;
}

/* The value of a frame's content: 0 if it has no image that can be found. */
static uint64_t
frame_worth(const LeafTable *table, uint32_t number)
{
	const LeafFrame *frame = leaf_frame(table, number);
	uint32_t node = pointer_memory_node(word_load(&frame->head.address));

	if (word_load(&table->frames.tags[number]) == 0 || !frame_is_valid(frame) ||
	    word_load(&frame->fences) != word_load(&table->fences[node]))
		return 0;
	return frame_worth_by_use(&table->frames, &frame->head);
}

/*
 * A FrameWorth: the value of what goes if an image of so many frames is put here: of this frame's content, or of all of
 * a group that is divided otherwise.
 */
static uint64_t
place_worth(const FrameTable *frames, uint32_t number, uint32_t span)
{
	const LeafTable *table = (const LeafTable *) frames;
	uint32_t first = number / LEAF_GROUP * LEAF_GROUP;
	uint64_t most = 0;

	if (number % span != 0)
		return FRAME_KEPT;
	if (group_span(table, number) == span)
		return frame_worth(table, number);
	for (uint32_t other = first; other < first + LEAF_GROUP; other++)
	{
		uint64_t worth = frame_worth(table, other);

		most = worth > most ? worth : most;
	}
	return most;
}

/*
 * Gives the leaf the frame of the set with the lowest value, with `room` only one of value 0; of several such frames,
 * any.
 */
static void
image_admit(Tree *tree, const LeafKey *key, const uint64_t *leaf, bool owner, bool room)
{
	TreeClient *client = tree->client;
	LeafTable *table = client->shared->leaves;
	FrameVictim victim =
		frame_victim(&table->frames, &key->node, (uint32_t) (client_random(client) % LEAF_WAYS),
	                 span_of(table, tree), place_worth);

	if (victim.worth == FRAME_KEPT || (room && victim.worth > 0) ||
	    !frame_fill(tree, key, victim.number, victim.sequence, leaf, owner))
		return;
	frames_tick(&table->frames);
	client->leaf_counts.admitted++;
}

/* The leaf gets an image if it has had one before, if there is a frame that nobody uses, or if it is drawn. */
static void
image_offer(Tree *tree, const LeafKey *key, const uint64_t *leaf, bool owner)
{
	TreeClient *client = tree->client;
	const LeafTable *table = client->shared->leaves;

	if (!key->kept || image_refresh(tree, key, leaf, owner))
		return;
	image_admit(tree, key, leaf, owner,
	            !client->leaves_wanted && client_random(client) % 100 >= table->admission_percent);
}

void
leaf_cache_split(Tree *tree, uint64_t left, const LeafKey *key, const uint64_t *right)
{
	if (key->kept && leaf_cache_has(tree, left))
		image_admit(tree, key, right, false, false);
	else
		image_offer(tree, key, right, false);
}

void
leaf_cache_offer(Tree *tree, const LeafKey *key, const uint64_t *leaf)
{
	image_offer(tree, key, leaf, false);
}

/* ---- the calls ---- */

void
leaf_cache_hint(const Tree *tree, const LeafKey *key)
{
	const LeafTable *table = tree->client->shared->leaves;
	uint32_t number = key->node.first;

	if (!key->kept || !frame_tagged(&table->frames, &key->node, &number))
		return;
	__builtin_prefetch(leaf_frame(table, number));
	for (uint32_t end = number + span_of(table, tree); number < end; number++)
	{
		const char *image = (const char *) leaf_image(table, number);

		for (uint32_t byte = 0; image != NULL && byte < table->frames.image_bytes; byte += LINE_BYTES)
			__builtin_prefetch(image + byte);
	}
}

bool
leaf_cache_take(Tree *tree, const LeafKey *key, uint64_t *leaf)
{
	TreeLeafCounts *counts = &tree->client->leaf_counts;
	bool hit = image_take(tree, key, leaf);

	if (hit)
		counts->hits++;
	else
		counts->misses++;
	if (key->kept && hit)
		TREE_COUNT(tree, leaf_hits, 1);
	else if (key->kept)
		TREE_COUNT(tree, leaf_misses, 1);
	/* A process that makes no chains any more adds its counts all the same. */
	if (hit && ++tree->pending_chains >= COUNTERS_FLUSH_CHAINS)
		tree_count_flush(tree);
	return hit;
}

bool
leaf_image_take(Tree *tree, uint64_t pointer, uint64_t *image)
{
	LeafKey key = leaf_cache_key(tree, pointer);

	return key.kept && leaf_cache_take(tree, &key, image);
}

/* Whether a leaf that can have an image has a valid one, or has none, as is asked for. */
static bool
image_is_there(const Tree *tree, uint64_t pointer, bool there)
{
	uint64_t sequence;
	uint32_t number;
	LeafKey key;

	if (!leaves_are_cached(tree->client))
		return false;
	key = leaf_cache_key(tree, pointer);
	number = key.node.first;
	return key.kept && image_find(tree, &key, &number, true, &sequence) == there;
}

bool
leaf_cache_lacks(const Tree *tree, uint64_t pointer)
{
	return image_is_there(tree, pointer, false);
}

bool
leaf_cache_has(const Tree *tree, uint64_t pointer)
{
	return image_is_there(tree, pointer, true);
}

bool
leaf_cache_unwritten(const Tree *tree, const LeafKey *key)
{
	assert(tree->client->holding);
	return key->kept && key->epoch == tree->epoch && version_stands(tree->client->shared->leaves, key);
}

bool
leaf_cache_has_generation(const Tree *tree, uint64_t pointer, uint64_t generation)
{
	LeafTable *table = tree->client->shared->leaves;
	LeafKey key = leaf_cache_key(tree, pointer);
	uint32_t number = key.node.first;
	uint64_t sequence, kept;

	if (!key.kept || !image_find(tree, &key, &number, true, &sequence))
		return false;
	kept = word_load(&leaf_image(table, number)[HEADER_GENERATION]);
	return sequence_end_read(&leaf_frame(table, number)->head.sequence, sequence) && kept == generation;
}

void
leaf_cache_passed(Tree *tree, uint64_t pointer, const uint64_t *leaf)
{
	LeafKey key = leaf_cache_key(tree, pointer);

	if (key.kept)
		(void) image_refresh(tree, &key, leaf, true);
}

void
leaf_image_renew(Tree *tree, uint64_t pointer, const uint64_t *image, uint32_t bytes)
{
	LeafKey key;

	if (image == NULL || node_level(image) != 0 || bytes < tree->geometry.leaf_bytes)
		return;
	key = leaf_cache_key(tree, pointer);
	image_offer(tree, &key, image, true);
}

void
leaf_cache_usage(const TreeShared *shared, TreeCacheUsage *usage)
{
	LeafTable *table = shared->leaves;

	memset(usage, 0, sizeof(*usage));
	if (table == NULL)
		return;
	usage->bytes = (uint64_t) frames_count(&table->frames) * table->frames.image_bytes;
	for (uint32_t number = 0; number < frames_count(&table->frames); number++)
	{
		if (!frame_is_valid(leaf_frame(table, number)))
			continue;
		usage->nodes++;
		usage->used_bytes += (uint64_t) group_span(table, number) * table->frames.image_bytes;
	}
}

void
tree_client_leaf_counts(const TreeClient *client, TreeLeafCounts *counts)
{
	assert(client != NULL);
	*counts = client->leaf_counts;
}

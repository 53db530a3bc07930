/*
 * leaf_cache.c
 *		Images of leaves in shared memory, after DEX: a lookup whose leaf is there makes no round trip.
 *
 * Only where the instance has its trees for itself (TreeTechniques.exclusive, with the hierarchy): then every write
 * of a linked leaf is made by the owner of its entry in the local lock table. Each entry has a version here. The
 * owner makes the version odd before it posts a chain of writes, and gives it the next even value when it gives up
 * the entry: when the chain is acknowledged, or when nothing of it can land any more. An owner whose chain is
 * indeterminate keeps the entry, and an owner that was killed keeps it for ever; so the version stays odd.
 *
 * A reader reads the version before it posts its READ, and stores it with the image. The image is the leaf's content
 * as long as the version is the same and even: no write was in progress at the first reading of the version, and none
 * began before the last one. So a hit returns what a READ would have returned at the instant when the version was
 * read. That instant lies inside the call, and after the work that predicate.c does before a leaf is read.
 *
 * A node is reused without a lock of its own only while nothing links to it, and in a later epoch of its tree
 * (quiesce.c); the epoch is part of a frame's key. The root, which becomes an inner node in place, is not cached, nor
 * are leaves of trees with replicas. An image from a frame is checked as one from a READ is.
 *
 * Delayed admission: a leaf that was read gets a frame with a certain probability only, so that leaves that are read
 * once do not evict hot ones. A leaf that has a frame keeps it: the process that writes the leaf updates the image.
 * Frames are filled as those of inner nodes are (sequence.h), and no process waits for another one that fills a
 * frame. DEX's other rule, that a child is evicted before its parent, is not needed: inner nodes have a cache of
 * their own, and a leaf's frame is found by the leaf's address.
 *
 * A hit makes no chain. So a process that has been fenced learns of it at its next chain only: see
 * doc/internals/techniques.md.
 */
#include "tree/lock/leaf_cache.h"
#include "tree/shared/sequence.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* The share of read leaves that are admitted: DEX's figure. */
#define ADMISSION_PERCENT 10u
/* Ticks of the clock while as many leaves are admitted as there are frames. With so few ticks a hit seldom writes. */
#define TICKS 16u
/* An odd version, which no image has: nothing is found, and nothing is admitted. */
#define NO_VERSION 1u

/* ---- layout ---- */

static uint32_t
image_bytes(const TreeSharedOptions *options)
{
	uint32_t bytes = options->leaf_cache_leaf_bytes;

	if (bytes == 0 || bytes > NODE_MAX_BYTES)
		return NODE_MAX_BYTES;
	return (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

static uint64_t
set_bytes(const TreeSharedOptions *options)
{
	return sizeof(LeafSet) + LEAF_WAYS * (sizeof(LeafFrame) + image_bytes(options));
}

/* 0: leaves are not kept. */
static uint64_t
sets_of(const TreeSharedOptions *options)
{
	const TreeTechniques *techniques = shared_techniques(options);

	if (options->leaf_cache_bytes == 0 || !techniques->exclusive || !techniques->hierarchy)
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
	table->sets = sets_of(options);
	table->image_bytes = image_bytes(options);
	table->admission_percent =
		options->leaf_admission_percent != 0 ? options->leaf_admission_percent : ADMISSION_PERCENT;
}

static uint64_t *
version_of(LeafTable *table, uint64_t entry)
{
	assert(entry < table->versions);
	return (uint64_t *) (table + 1) + entry;
}

static LeafSet *
leaf_sets(LeafTable *table)
{
	return (LeafSet *) ((uint64_t *) (table + 1) + table->versions);
}

LeafFrame *
leaf_frame(LeafTable *table, uint64_t number)
{
	assert(number < table->sets * LEAF_WAYS);
	return (LeafFrame *) (leaf_sets(table) + table->sets) + number;
}

static uint64_t *
leaf_image(LeafTable *table, uint64_t number)
{
	char *images = (char *) (leaf_frame(table, 0) + table->sets * LEAF_WAYS);

	return (uint64_t *) (images + number * table->image_bytes);
}

/* Empties all frames, and marks all leaves as not being written. No process uses the cache meanwhile. */
void
leaf_cache_shared_reset(TreeShared *shared)
{
	LeafTable *table = shared->leaves;

	if (table == NULL)
		return;
	memset(version_of(table, 0), 0, table->versions * 8);
	memset(leaf_sets(table), 0, table->sets * (sizeof(LeafSet) + LEAF_WAYS * sizeof(LeafFrame)));
}

/* ---- versions ---- */

uint64_t
leaf_cache_write_begins(const TreeClient *client, uint64_t entry)
{
	LeafTable *table = client->shared->leaves;
	uint64_t before;

	if (table == NULL)
		return NO_VERSION;
	before = __atomic_fetch_add(version_of(table, entry), 1, __ATOMIC_SEQ_CST);
	/* All processes see the odd version before they can see an effect of the chain. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	assert(before % 2 == 0);
	return before + 2;
}

void
leaf_cache_write_ends(const TreeClient *client, uint64_t entry)
{
	LeafTable *table = client->shared->leaves;

	if (table != NULL && word_load(version_of(table, entry)) % 2 == 1)
		__atomic_fetch_add(version_of(table, entry), 1, __ATOMIC_SEQ_CST);
}

void
leaf_cache_forget(TreeShared *shared, uint32_t memory_node)
{
	LeafTable *table = shared->leaves;
	uint64_t words = shared->options.lock_words;

	if (table == NULL)
		return;
	assert(memory_node < shared->options.nodes);
	for (uint64_t word = 0; word < words; word++)
		__atomic_fetch_add(version_of(table, memory_node * words + word), 2, __ATOMIC_SEQ_CST);
}

/* ---- frames ---- */

LeafKey
leaf_cache_key(const Tree *tree, uint64_t pointer)
{
	const TreeClient *client = tree->client;
	LeafTable *table = client->shared->leaves;
	uint32_t node = pointer_memory_node(pointer);
	LeafKey key = {.pointer = pointer, .epoch = tree->epoch, .version = NO_VERSION};
	uint64_t bytes[] = {tree->tree, pointer_address(pointer)};

	assert(client->sections > 0 && !client->holding);
	/* Where a READ would get no answer the cache gives none, either. */
	if (table == NULL || tree->replicas != NULL || bytes[1] == tree->root ||
	    tree->geometry.leaf_bytes > table->image_bytes || node >= client->options.nodes ||
	    client->options.endpoints[node] == NULL || !node_is_open(client->shared, node) ||
	    (client->doubt & 1ull << node) != 0)
		return key;
	key.hash = XXH3_64bits(bytes, sizeof(bytes));
	key.entry = lock_entry_number(client, node, lock_word_of(client, node, pointer));
	key.version = __atomic_load_n(version_of(table, key.entry), __ATOMIC_SEQ_CST);
	return key;
}

static bool
key_has_version(const LeafKey *key)
{
	return key->version % 2 == 0;
}

/* The set for a hash; the hash's lower bits are the tag. */
static uint64_t
set_of(const LeafTable *table, uint64_t hash)
{
	assert(table->sets <= UINT32_MAX);
	return (hash >> 32) * table->sets >> 32;
}

static uint64_t
tag_of(uint64_t hash)
{
	return hash | 1;
}

/* Whether the frame has an image of the leaf, of any version. */
static bool
frame_is(const LeafFrame *frame, const Tree *tree, const LeafKey *key)
{
	return word_load(&frame->tree) == tree->tree &&
	       word_load(&frame->address) == pointer_address(key->pointer) &&
	       word_load(&frame->epoch) == key->epoch;
}

/*
 * The first way of the set, from `way` on, whose frame has an image of the leaf, of key->version if `current`.
 * *sequence: the frame's, read before its key was. LEAF_WAYS: none.
 */
static uint32_t
way_find(const Tree *tree, const LeafKey *key, uint32_t way, bool current, uint64_t *sequence)
{
	LeafTable *table = tree->client->shared->leaves;
	uint64_t set = set_of(table, key->hash);
	const LeafSet *line = &leaf_sets(table)[set];

	for (; way < LEAF_WAYS; way++)
	{
		const LeafFrame *frame = leaf_frame(table, set * LEAF_WAYS + way);

		if (word_load(&line->tags[way]) != tag_of(key->hash))
			continue;
		*sequence = sequence_begin_read(&frame->sequence);
		if (*sequence % 2 == 0 && frame_is(frame, tree, key) &&
		    (!current || word_load(&frame->version) == key->version))
			break;
	}
	return way;
}

/* The value of `used` for a frame that is used now. */
static uint32_t
clock_now(const LeafTable *table)
{
	return (uint32_t) (word_load(&table->admissions) / (table->sets * LEAF_WAYS / TICKS + 1));
}

/* Copies the image of the key's version, and checks it as the result of a READ is checked. False: there is none. */
static bool
image_take(Tree *tree, const LeafKey *key, uint64_t *leaf)
{
	LeafTable *table = tree->client->shared->leaves;
	const NodeGeometry *g = &tree->geometry;
	uint64_t number;
	uint64_t sequence;
	LeafFrame *frame;
	const uint64_t *image;
	uint32_t way;

	if (!key_has_version(key))
		return false;
	way = way_find(tree, key, 0, true, &sequence);
	if (way == LEAF_WAYS)
		return false;
	number = set_of(table, key->hash) * LEAF_WAYS + way;
	frame = leaf_frame(table, number);
	image = leaf_image(table, number);
	for (uint32_t word = 0; word < g->leaf_bytes / 8; word++)
		leaf[word] = word_load(&image[word]);
	if (!sequence_end_read(&frame->sequence, sequence) ||
	    node_check(g, leaf, tree->tree, key->pointer) != NODE_GOOD || node_level(leaf) != 0)
		return false;
	if (__atomic_load_n(&frame->used, __ATOMIC_RELAXED) != clock_now(table))
		__atomic_store_n(&frame->used, clock_now(table), __ATOMIC_RELAXED);
	return true;
}

/* Fills the frame, unless its sequence has changed because another process fills it. */
static bool
frame_fill(Tree *tree, const LeafKey *key, uint32_t way, uint64_t sequence, const uint64_t *leaf)
{
	LeafTable *table = tree->client->shared->leaves;
	uint64_t set = set_of(table, key->hash);
	LeafFrame *frame = leaf_frame(table, set * LEAF_WAYS + way);
	uint64_t *image = leaf_image(table, set * LEAF_WAYS + way);

	assert(key_has_version(key));
	if (!sequence_claim(&frame->sequence, sequence))
		return false;
	word_store(&leaf_sets(table)[set].tags[way], tag_of(key->hash));
	word_store(&frame->tree, tree->tree);
	word_store(&frame->address, pointer_address(key->pointer));
	word_store(&frame->epoch, key->epoch);
	word_store(&frame->entry, key->entry);
	word_store(&frame->version, key->version);
	for (uint32_t word = 0; word < tree->geometry.leaf_bytes / 8; word++)
		word_store(&image[word], leaf[word]);
	__atomic_store_n(&frame->used, clock_now(table), __ATOMIC_RELAXED);
	sequence_release(&frame->sequence);
	return true;
}

/* Brings the frames that have an image of the leaf up to date. False: there are none. */
static bool
image_refresh(Tree *tree, const LeafKey *key, const uint64_t *leaf)
{
	uint64_t sequence;
	bool there = false;

	for (uint32_t way = 0; (way = way_find(tree, key, way, false, &sequence)) < LEAF_WAYS; way++)
	{
		there = true;
		if (frame_fill(tree, key, way, sequence, leaf))
			tree->client->leaf_counts.refreshed++;
	}
	return there;
}

/*
 * The value of a frame's content: 0 if it has no image that can be found; else the higher, the later the frame was
 * used.
 */
static uint64_t
frame_worth(LeafTable *table, uint64_t tag, const LeafFrame *frame)
{
	uint64_t entry = word_load(&frame->entry);
	uint32_t age = clock_now(table) - __atomic_load_n(&frame->used, __ATOMIC_RELAXED);

	if (tag == 0 || entry >= table->versions ||
	    word_load(&frame->version) != word_load(version_of(table, entry)))
		return 0;
	return 1 + (uint64_t) (UINT32_MAX - age);
}

/* Gives the leaf the frame of the set with the lowest value; of several such frames, any. */
static void
image_admit(Tree *tree, const LeafKey *key, const uint64_t *leaf)
{
	TreeClient *client = tree->client;
	LeafTable *table = client->shared->leaves;
	uint64_t set = set_of(table, key->hash);
	uint32_t first = (uint32_t) (client_random(client) % LEAF_WAYS);
	uint32_t chosen = LEAF_WAYS;
	uint64_t least = UINT64_MAX;
	uint64_t sequence = 0;

	for (uint32_t i = 0; i < LEAF_WAYS; i++)
	{
		uint32_t way = (first + i) % LEAF_WAYS;
		const LeafFrame *frame = leaf_frame(table, set * LEAF_WAYS + way);
		uint64_t begun = sequence_begin_read(&frame->sequence);
		uint64_t worth = frame_worth(table, word_load(&leaf_sets(table)[set].tags[way]), frame);

		/* Another process fills the frame, or was killed while it did. */
		if (begun % 2 != 0 || worth >= least)
			continue;
		chosen = way;
		least = worth;
		sequence = begun;
	}
	if (chosen == LEAF_WAYS || !frame_fill(tree, key, chosen, sequence, leaf))
		return;
	__atomic_fetch_add(&table->admissions, 1, __ATOMIC_RELAXED);
	client->leaf_counts.admitted++;
}

void
leaf_cache_offer(Tree *tree, const LeafKey *key, const uint64_t *leaf)
{
	TreeClient *client = tree->client;
	const LeafTable *table = client->shared->leaves;

	if (!key_has_version(key) || image_refresh(tree, key, leaf))
		return;
	if (client_random(client) % 100 < table->admission_percent)
		image_admit(tree, key, leaf);
}

/* ---- the calls ---- */

bool
leaf_cache_take(Tree *tree, const LeafKey *key, uint64_t *leaf)
{
	TreeLeafCounts *counts = &tree->client->leaf_counts;
	bool hit = image_take(tree, key, leaf);

	if (hit)
		counts->hits++;
	else
		counts->misses++;
	return hit;
}

bool
leaf_cache_has(const Tree *tree, uint64_t pointer)
{
	LeafKey key = leaf_cache_key(tree, pointer);
	uint64_t sequence;

	return key_has_version(&key) && way_find(tree, &key, 0, true, &sequence) < LEAF_WAYS;
}

void
leaf_cache_wrote(Tree *tree, uint64_t pointer, uint64_t version, const uint64_t *image, uint32_t bytes)
{
	LeafKey key;

	if (version == NO_VERSION || image == NULL || node_level(image) != 0 ||
	    bytes != tree->geometry.leaf_bytes)
		return;
	key = leaf_cache_key(tree, pointer);
	/* Otherwise another process has begun to write the leaf since. */
	if (key.version == version)
		(void) image_refresh(tree, &key, image);
}

void
tree_client_leaf_counts(const TreeClient *client, TreeLeafCounts *counts)
{
	assert(client != NULL);
	*counts = client->leaf_counts;
}

/*
 * leaf_cache.c
 *		Images of leaves in shared memory, after DEX: a lookup whose leaf is there makes no round trip.
 *
 * Only where the instance has its trees for itself (TreeTechniques.exclusive, with the hierarchy): then every
 * write of a linked leaf is made by the owner of its entry in the local lock table.  Each entry has a version
 * here.  Its owner makes it odd before he posts a chain of writes, and it becomes even, another one, when the
 * entry is given up: when the chain is acknowledged, or it is known that nothing of it can land any more.  An
 * owner in doubt keeps the entry, and one who was killed has it for ever; so the version stays odd.
 *
 * A reader looks at the version before he posts his READ, and it is kept with the image.  The image is the leaf
 * as long as the version is the same and even: no write was under way at the first look, and none began until
 * the last one.  So a hit answers what a READ would have answered at the instant at which it looked at the
 * version, which lies inside of the call, and behind what predicate.c does before a leaf is read.
 *
 * A node becomes another one without its own lock only while it is linked from nowhere, and in another epoch of
 * its tree (quiesce.c), which is part of what a frame is found by.  The root, which becomes an inner node where it
 * is, is not kept, nor are leaves of trees with copies, and what comes out of a frame is checked as what comes
 * out of a READ is.
 *
 * Delayed admission: a leaf that was read gets a frame with a probability only, so that leaves that are read
 * once do not push out hot ones.  One that has a frame keeps it: whoever writes the leaf brings the image up to
 * date.  Frames are filled as those of inner nodes are (sequence.h), and nobody waits for a filler.  DEX's other
 * rule, that a child goes before its parent, has nothing to do here: inner nodes have a cache of their own, from
 * which leaves push out nothing, and a leaf is found by its address, whoever told it.
 *
 * A hit makes no chain, so whoever has been fenced is told so by his next chain only: see doc/internals/techniques.md.
 */
#include "tree/lock/leaf_cache.h"
#include "tree/shared/sequence.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Of leaves that are read: DEX's figure. */
#define ADMISSION_PERCENT 10u
/* The clock ticks so often while as many leaves are admitted as there are frames: hits seldom write. */
#define TICKS 16u
/* Odd, so that no image has it: nothing is found, and nothing admitted. */
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

/* All frames die, and no write is under way: nobody uses them. */
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
	/* The chain is posted behind that, for everybody. */
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
	/* What a READ would not be answered for is not answered from here, either. */
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

/* The set of a hash, of those that there are; its lower bits are the tag. */
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

/* Whether the frame has an image of the leaf, of whatever version. */
static bool
frame_is(const LeafFrame *frame, const Tree *tree, const LeafKey *key)
{
	return word_load(&frame->tree) == tree->tree &&
	       word_load(&frame->address) == pointer_address(key->pointer) &&
	       word_load(&frame->epoch) == key->epoch;
}

/*
 * The first way of the set, from `way` on, whose frame has an image of the leaf, of key->version if `current`.  *sequence: before
 * it was looked at.  LEAF_WAYS: none.
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

/* What `used` says of a frame that is used now. */
static uint32_t
clock_now(const LeafTable *table)
{
	return (uint32_t) (word_load(&table->admissions) / (table->sets * LEAF_WAYS / TICKS + 1));
}

/* Copies the image of the key's version, and checks it as what was READ is. False: there is none. */
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

/* Fills a frame, whose sequence was this one, unless somebody else does. */
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

/* How much a frame is worth: 0, nothing, as no image is in it that can be found; else more if it was used later. */
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

/* Gives the leaf the frame of the set that is worth least; of equals, any. */
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

		/* Somebody fills it, or was killed in that. */
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
	/* Else somebody has begun to write it since. */
	if (key.version == version)
		(void) image_refresh(tree, &key, image);
}

void
tree_client_leaf_counts(const TreeClient *client, TreeLeafCounts *counts)
{
	assert(client != NULL);
	*counts = client->leaf_counts;
}

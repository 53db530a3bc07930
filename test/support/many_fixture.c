/*
 * many_fixture.c
 *		See many_fixture.h.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fault.h"
#include "many_fixture.h"
#include "require.h"

/* Images that keys of many_key_of() have at once. */
#define IMAGES 8192u

const TreeWalPosition many_stamp = {.epoch = 7, .lsn = 1000};

uint64_t many_bytes;
bool many_mapped;

bool
many_arguments(int argc, char **argv)
{
	bool network = argc > 1 && strcmp(argv[1], "--network") == 0;

	if (network)
		test_use_network();
	many_mapped = argc > 1 && strcmp(argv[1], "--mapped") == 0;
	return network;
}

static TreeRecord record;
static TreeTechniques techniques;

int
many_start(void **state)
{
	techniques = tree_techniques;
	techniques.exclusive = true;
	test_techniques = &techniques;
	test_alone = true;
	fixture_open(&(FixtureOptions){.nodes = MANY_NODES, .node_bytes = many_bytes});
	client.tree->far = !many_mapped;
	return 0;
}

/* As compare_images(), with the argument that the tree was opened with. */
static int
compare_strings(void *argument, const TreeBound *bound, const TreeKey *entry)
{
	assert_ptr_equal(argument, &record);
	return compare_images(argument, bound, entry);
}

Tree *
many_open(TestClient *with)
{
	Tree *tree;

	assert_int_equal(tree_open(with->tree, record.tree, record.root, &record.format,
	                           record.format.lossless ? NULL : compare_strings, &record, &tree),
	                 TREE_OK);
	return tree;
}

Tree *
many_tree(const TreeFormat *format)
{
	test_tree_create(&client, format, &record);
	return many_open(&client);
}

static uint64_t
number_of(int order, uint32_t i)
{
	switch (order)
	{
		case MANY_RANDOM:
			return scramble(i + 1);
		case MANY_ASCENDING:
			return i;
		case MANY_DESCENDING:
			return UINT32_MAX - i;
		default:
			return scramble(i) % 300;
	}
}

/*
 * Strings of 19 to 60 bytes: of each sixteenth all of the normalized key ties with others, some of which lie out of line.
 */
TreeKey
many_key_of(const TreeFormat *format, int order, uint32_t i)
{
	static char images[IMAGES][64];
	uint64_t number = number_of(order, i);
	char *image = images[i % IMAGES];
	const char *front = number % 16 == 0 ? "xxxxxxxxxxxxxxxxxxxxxxxx" : "";

	if (format->lossless)
		return number_key(number, i);
	snprintf(image, sizeof(images[0]), "%s%020llu%s", front, (unsigned long long) number,
	         number % 64 == 0 ? "zzzzzzzzzzzzzzz" : "");
	return text_key(image, i);
}

void
many_insert(Tree *tree, int order, uint32_t first, uint32_t last, uint32_t together)
{
	TreeKey *keys = malloc(together * sizeof(TreeKey));

	for (uint32_t i = first; i < last; i += together)
	{
		uint32_t count = last - i < together ? last - i : together;
		TreeStatus status;

		for (uint32_t k = 0; k < count; k++)
			keys[k] = many_key_of(&tree->geometry.format, order, i + k);
		status = tree_insert_many(tree, keys, count, &many_stamp);
		if (status != TREE_OK)
			fail_msg("insert: %s: %s", tree_status_name(status), tree_detail(tree->client));
	}
	free(keys);
}

/* ---- what is there ---- */

typedef struct Seen
{
	const TreeFormat *format;
	int order;
	uint32_t count;
	uint32_t entries;
	uint8_t *times; /* by TID */
} Seen;

static void
see_problem(void *argument, const char *message)
{
	(void) argument;
	print_error("check: %s\n", message);
}

static void
see_entry(void *argument, const TreeKey *key, bool unverified)
{
	Seen *seen = argument;
	uint32_t i = key->block * 100 + key->offset - 1;
	TreeKey expected;

	assert_false(unverified);
	assert_true(i < seen->count);
	expected = many_key_of(seen->format, seen->order, i);
	assert_int_equal(memcmp(key->norm, expected.norm, sizeof(key->norm)), 0);
	assert_int_equal(key->image_bytes, expected.image_bytes);
	if (key->image_bytes != 0)
		assert_memory_equal(key->image, expected.image, key->image_bytes);
	assert_int_equal(seen->times[i]++, 0);
	seen->entries++;
}

void
many_verify(Tree *tree, int order, uint32_t count)
{
	Seen seen = {.format = &tree->geometry.format, .order = order, .count = count};
	TreeStatistics statistics;
	uint64_t problems;

	seen.times = calloc(count, 1);
	assert_int_equal(tree_check(tree, see_problem, see_entry, &seen, &statistics, &problems), TREE_OK);
	assert_int_equal(problems, 0);
	assert_int_equal(seen.entries, count);
	free(seen.times);
}

uint64_t
many_entries(Tree *tree, uint64_t *incomplete)
{
	WalkResult result;
	uint64_t count;

	walk_tree(tree, &result);
	count = result.count;
	if (incomplete != NULL)
		*incomplete = result.incomplete_splits;
	walk_free(&result);
	return count;
}

void
many_crowd(void (*body)(int number, void *order), uint32_t each)
{
	for (int order = 0; order < MANY_ORDERS; order++)
	{
		Tree *tree = many_tree(&narrow);

		assert_int_equal(test_processes(MANY_CROWD, body, &order), 0);
		many_verify(tree, order, MANY_CROWD * each);
		tree_close(tree);
	}
}

/* ---- lost chains ---- */

static FabricFaultPlan lost;
static uint64_t steps_to_loss;

static void
set_faults(const FabricFaultPlan *plan)
{
	for (int i = 0; i < MANY_NODES; i++)
		REQUIRE(fabric_fault_set(client.endpoints[i], plan) == FABRIC_OK, "no faults");
}

static void
lose_at_step(void *argument, const char *name, bool before)
{
	(void) argument;
	(void) name;
	if (before)
		set_faults(steps_to_loss > 0 && --steps_to_loss == 0 ? &lost : NULL);
}

void
many_lose(uint64_t step, bool late)
{
	lost = (FabricFaultPlan){.fail_operation = late ? 0 : 1, .late_operation = late ? 1 : 0};
	steps_to_loss = step;
	tree_client_crash_points(client.tree, lose_at_step);
}

bool
many_lose_end(void)
{
	tree_client_crash_points(client.tree, NULL);
	set_faults(NULL);
	return steps_to_loss > 0;
}

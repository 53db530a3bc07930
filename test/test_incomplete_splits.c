/*
 * test_incomplete_splits.c
 *		Incomplete splits on two levels at once: whoever posts a separator meets nodes further up whose separators nobody
 *		has posted, and posts those first.
 */
#include "support/checked_tree.h"
#include "support/tree_walk.h"
#include "tree/descent/descent.h"

/* Leaves whose separators are posted once more, in each key space. */
#define DOWNLINKS 300u
/* So many that the root has more than two children in each of the key spaces. */
#define ENTRIES 12000u

/* The first leaf. */
static uint64_t
leaf_first(Tree *tree, uint64_t *image)
{
	uint64_t pointer = tree->root;

	require_ok(access_read_node(tree, pointer, -1, image));
	while (node_level(image) > 0)
	{
		uint32_t level = node_level(image) - 1;

		pointer = image[inner_cell_word(&tree->geometry, 0)];
		require_ok(access_read_node(tree, pointer, (int) level, image));
	}
	return pointer;
}

/*
 * The key of a separator that only the comparator can place stays what it is while other separators are posted on the way
 * to its parent: the key space's comparator looks at all of each key.
 */
static void
test_two_levels(void **state)
{
	static const KeySpaceKind kinds[] = {KEYSPACE_32_PREFIX, KEYSPACE_64_PREFIX};
	uint64_t image[NODE_MAX_BYTES / 8];

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
	{
		CheckedTree f;
		WalkResult result;
		uint64_t leaf;
		uint32_t rounds = 0;

		checked_tree_open(&f, kinds[i]);
		insert_random(&f, ENTRIES, ENTRIES * 4, 0);
		walk_tree(f.tree, &result);
		assert_true(result.height >= 3);
		walk_free(&result);
		leaf = leaf_first(f.tree, image);
		/* Each posting pays for what it meets; the rest stays forgotten, until the root has one child. */
		for (uint32_t post = 0; post < DOWNLINKS; post++)
		{
			uint32_t forgotten = walk_root_forgets(f.tree);
			uint64_t right;

			require_ok(access_read_node(f.tree, leaf, 0, image));
			right = image[HEADER_RIGHT];
			if (right == POINTER_NONE)
				break;
			require_ok(downlink_insert(f.tree, 0, leaf, image + f.tree->geometry.high_word, right, NULL));
			if (forgotten == 0)
				compare_everything(&f, ENTRIES * 4, 1);
			rounds += forgotten > 0;
			leaf = right;
		}
		assert_true(rounds >= DOWNLINKS / 3);
		compare_everything(&f, ENTRIES * 4, 200);
		walk_tree(f.tree, &result);
		walk_free(&result);
		checked_tree_close(&f);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_two_levels)};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}

/*
 * test_offload_answers.c
 *		What a client makes of answers to the call of a lookup (tree/descent/offload.c) that are none, or not what they say: it reads what it
 *		needs, and answers as ever.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/offload_fixture.h"
#include "tree/shared/cache.h"

static uint64_t elsewhere;  /* another leaf of the tree */
static uint64_t other_leaf; /* a leaf of another tree */
static uint64_t inner_node;
static FabricStatus failure;

static FabricStatus
not_done(FabricEndpoint *endpoint, const DirectoryDescent *request, DirectoryDescended *answer,
         uint32_t *bytes)
{
	*bytes = 0;
	return failure;
}

/* What is at that place in node memory, as an answer. */
static FabricStatus
answer_with(FabricEndpoint *endpoint, uint64_t pointer, DirectoryDescended *answer, uint32_t *bytes)
{
	FabricOp op = {.opcode = FABRIC_READ,
	               .region = FABRIC_NODES,
	               .length = tree->geometry.leaf_bytes,
	               .offset = pointer_offset(pointer),
	               .buffer = answer->image};

	assert_int_equal(below->execute(endpoint, &op, 1), FABRIC_OK);
	answer->pointer = pointer;
	answer->bytes = tree->geometry.leaf_bytes;
	*bytes = (uint32_t) DIRECTORY_DESCENDED_BYTES + answer->bytes;
	return FABRIC_OK;
}

static FabricStatus
another_leaf(FabricEndpoint *endpoint, const DirectoryDescent *request, DirectoryDescended *answer,
             uint32_t *bytes)
{
	return answer_with(endpoint, elsewhere, answer, bytes);
}

static FabricStatus
anothers_leaf(FabricEndpoint *endpoint, const DirectoryDescent *request, DirectoryDescended *answer,
              uint32_t *bytes)
{
	return answer_with(endpoint, other_leaf, answer, bytes);
}

static FabricStatus
no_leaf(FabricEndpoint *endpoint, const DirectoryDescent *request, DirectoryDescended *answer,
        uint32_t *bytes)
{
	return answer_with(endpoint, inner_node, answer, bytes);
}

static FabricStatus
under_another_name(FabricEndpoint *endpoint, const DirectoryDescent *request, DirectoryDescended *answer,
                   uint32_t *bytes)
{
	FabricStatus status = honest(endpoint, request, answer, bytes);

	answer->pointer = elsewhere;
	return status;
}

/* The entries are gone from the lines of another generation. */
static FabricStatus
torn(FabricEndpoint *endpoint, const DirectoryDescent *request, DirectoryDescended *answer, uint32_t *bytes)
{
	FabricStatus status = honest(endpoint, request, answer, bytes);

	for (uint32_t word = LINE_WORDS * 4; word < tree->geometry.leaf_bytes / 8; word++)
		answer->image[word] = word % LINE_WORDS == 0 ? (answer->image[word] + 1) & STAMP_MASK : 0;
	return status;
}

static FabricStatus
cut_short(FabricEndpoint *endpoint, const DirectoryDescent *request, DirectoryDescended *answer,
          uint32_t *bytes)
{
	FabricStatus status = honest(endpoint, request, answer, bytes);

	*bytes -= 8;
	return status;
}

static FabricStatus
nowhere(FabricEndpoint *endpoint, const DirectoryDescent *request, DirectoryDescended *answer,
        uint32_t *bytes)
{
	FabricStatus status = honest(endpoint, request, answer, bytes);

	answer->pointer = POINTER_NONE;
	return status;
}

static FabricStatus
at_another_node(FabricEndpoint *endpoint, const DirectoryDescent *request, DirectoryDescended *answer,
                uint32_t *bytes)
{
	FabricStatus status = honest(endpoint, request, answer, bytes);

	answer->pointer |= 1ull << 56;
	answer->image[HEADER_SELF] |= 1ull << 56;
	return status;
}

/* A leaf that ends before the bound, as the left half of a split whose last step is owed: its right link leads on. */
static FabricStatus
left_half(FabricEndpoint *endpoint, const DirectoryDescent *request, DirectoryDescended *answer,
          uint32_t *bytes)
{
	static DirectoryDescended right;
	FabricStatus status = honest(endpoint, request, answer, bytes);
	uint64_t pointer = elsewhere;

	/* From a leaf to the next one, until this is the one that was asked for. */
	for (int i = 0; i < 10000; i++)
	{
		(void) answer_with(endpoint, pointer, &right, bytes);
		if (right.image[HEADER_RIGHT] == POINTER_NONE ||
		    pointer_address(right.image[HEADER_RIGHT]) == pointer_address(answer->pointer))
			break;
		pointer = right.image[HEADER_RIGHT];
	}
	*answer = right;
	return status;
}

static void
test_answers_judged(void **state)
{
	static const struct
	{
		Meddle meddle;
		FabricStatus failure;
		bool believed; /* as an image; it is not the one that is looked for all the same */
	} cases[] = {
		{not_done, FABRIC_PROTOCOL, false},
		{not_done, FABRIC_NOT_SUPPORTED, false},
		{not_done, FABRIC_NOT_FOUND, false},
		{not_done, FABRIC_TIMED_OUT, false},
		{not_done, FABRIC_LOST, false},
		{not_done, FABRIC_STOPPED, false},
		{not_done, FABRIC_BUSY, false},
		{not_done, FABRIC_OK, false},
		{another_leaf, 0, true},
		{anothers_leaf, 0, false},
		{no_leaf, 0, false},
		{under_another_name, 0, false},
		{torn, 0, false},
		{cut_short, 0, false},
		{nowhere, 0, false},
		{at_another_node, 0, false},
		{left_half, 0, true},
	};
	TreeRecord other_record;
	Tree *other;

	begin(&narrow, TREE_OFFLOAD_ALWAYS);
	fill(&narrow, NUMBERS);
	other = new_tree(&narrow, &other_record);
	for (uint32_t i = 0; i < 200; i++)
	{
		TreeKey key = key_of(&narrow, NULL, 2 * i + 1);

		must_insert(other, &key, false);
	}
	elsewhere = leaf_of(tree, 0);
	other_leaf = leaf_of(other, UINT64_MAX / 2);
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++)
	{
		TreeOffloads before;
		uint64_t node[INNER_BYTES / 8];

		forget();
		assert_int_equal(cache_copy(tree, tree->root, node), TREE_OK);
		inner_node = pointer_address(node[inner_cell_word(&tree->geometry, 0)]);
		before = offloads();
		failure = cases[c].failure;
		for (uint32_t i = 1000; i < 1010; i++)
		{
			meddle = cases[c].meddle;
			(void) look_up(&narrow, i);
			meddle = NULL;
			cache_drop_tree(client.tree->shared, tree->tree);
			forget();
		}
		assert_true(offloads().calls - before.calls >= 20);
		/* Those that forget() makes are honest. */
		assert_int_equal(offloads().brought - before.brought, cases[c].believed ? 20 : 10);
	}
	tree_close(other);
	end();
}

/* Where leaves are as long as inner nodes, one of these is none of those. */
static void
test_inner_node(void **state)
{
	uint64_t node[INNER_BYTES / 8];

	begin(&text, TREE_OFFLOAD_ALWAYS);
	assert_int_equal(tree->geometry.leaf_bytes, INNER_BYTES);
	fill(&text, STRINGS);
	for (uint32_t i = 0; i < 20; i++)
	{
		uint64_t calls = offloads().calls;

		forget();
		(void) look_up(&text, i);
		assert_int_equal(cache_copy(tree, tree->root, node), TREE_OK);
		inner_node = pointer_address(node[inner_cell_word(&tree->geometry, 0)]);
		meddle = no_leaf;
		(void) look_up(&text, i);
		meddle = NULL;
		assert_true(offloads().calls >= calls + 2);
	}
	end();
}

/* A connection that is lost by a call, and cannot be had again, is lost. */
static FabricStatus
reset_never(FabricEndpoint *endpoint)
{
	return FABRIC_UNREACHABLE;
}

static void
test_lost(void **state)
{
	TreeKey key = key_of(&narrow, NULL, 8);

	begin(&narrow, TREE_OFFLOAD_ALWAYS);
	fill(&narrow, NUMBERS);
	forget();
	meddle = not_done;
	failure = FABRIC_LOST;
	between.reset = reset_never;
	assert_int_equal(look_up_key(scan, tree, &key), TREE_UNREACHABLE);
	/* In doubt nothing is asked. */
	meddle = NULL;
	{
		TreeOffloads before = offloads();

		assert_int_equal(look_up_key(scan, tree, &key), TREE_UNREACHABLE);
		assert_int_equal(offloads().calls, before.calls);
	}
	between.reset = below->reset;
	assert_int_equal(access_settle(client.tree, 0), TREE_OK);
	(void) look_up(&narrow, 8);
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers_judged),
		cmocka_unit_test(test_inner_node),
		cmocka_unit_test(test_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

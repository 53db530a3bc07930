/*
 * test_descend.c
 *		Lookups that are given to the memory node, on its side (tree/service/service_descend.c): what it answers to whom, and what it does not
 *		believe.
 */
#include <stdio.h>
#include <stdlib.h>

#include "rdma/shm/shm.h"
#include "support/offload_fixture.h"
#include "tree/space/allocate.h"

static DirectoryDescent
request_of(uint64_t pointer, uint32_t level, uint64_t number)
{
	return (DirectoryDescent){.tree = tree->tree,
	                          .pointer = pointer,
	                          .norm = {number},
	                          .level = level,
	                          .norm_length = 8,
	                          .side = -1,
	                          .flags = DESCENT_BITS_VALID | DESCENT_EXACT | DESCENT_LOSSLESS,
	                          .cell_bytes = 16,
	                          .norm_bytes = 8};
}

static FabricStatus
ask(const DirectoryDescent *request, DirectoryDescended *answer, uint32_t *bytes)
{
	*bytes = sizeof(*answer);
	return fabric_call(client.endpoints[0], DIRECTORY_DESCEND, request, sizeof(*request), answer, bytes);
}

/* The way ends without a leaf. */
static void
must_end(DirectoryDescent request)
{
	DirectoryDescended answer;
	uint32_t bytes;

	assert_int_equal(ask(&request, &answer, &bytes), FABRIC_OK);
	assert_int_equal(bytes, DIRECTORY_DESCENDED_BYTES);
	assert_int_equal(answer.bytes, 0);
	assert_int_equal(answer.pointer, 0);
}

static void
must_refuse(DirectoryDescent request, FabricStatus expected)
{
	DirectoryDescended answer;
	uint32_t bytes;

	assert_int_equal(ask(&request, &answer, &bytes), expected);
	assert_int_equal(bytes, 0);
}

/* Who has no incarnation cannot be fenced. */
static void
refuse_onlooker(const DirectoryDescent *request)
{
	FabricOptions options = {.cluster = {instance.cluster[0], instance.cluster[1]}};
	DirectoryDescended answer;
	uint32_t bytes = sizeof(answer);
	FabricEndpoint *endpoint;
	Fabric *fabric;

	assert_int_equal(fabric_open(&options, &fabric), FABRIC_OK);
	assert_int_equal(fabric_connect(fabric, nodes[0].address, &endpoint), FABRIC_OK);
	assert_int_equal(fabric_call(endpoint, DIRECTORY_DESCEND, request, sizeof(*request), &answer, &bytes),
	                 FABRIC_DENIED);
	fabric_close(fabric);
}

/* Requests that a client of ours makes, with pointers as old as can be; and those that it never makes. */
static void
test_requests(void **state)
{
	const uint64_t number = scramble(8) | 1;
	DirectoryDescent good, request;
	DirectoryDescended answer;
	TreeRecord other_record;
	Tree *other;
	uint32_t bytes;

	begin(&narrow, TREE_OFFLOAD_ALWAYS);
	fill(&narrow, NUMBERS);
	other = new_tree(&narrow, &other_record);
	good = request_of(tree->root, 2, number);
	assert_int_equal(ask(&good, &answer, &bytes), FABRIC_OK);
	assert_int_equal(bytes, DIRECTORY_DESCENDED_BYTES + 1024);
	assert_int_equal(answer.visited, 3);
	assert_int_equal(answer.pointer, leaf_of(tree, number));
	/* Not what the pointer says: another level, a leaf, memory of nobody, beyond the end, not on a node's place. */
	must_end(request_of(tree->root, 1, number));
	must_end(request_of(tree->root, 3, number));
	must_end(request_of(answer.pointer, 1, number));
	must_end(request_of(pointer_make(0, 0), 2, number));
	must_end(request_of(pointer_make(0, 4096), 2, number));
	must_end(request_of(pointer_make(0, 1ull << 44), 2, number));
	must_end(request_of(pointer_make(0, pointer_offset(tree->root) + 64), 2, number));
	must_end(request_of(pointer_make(0, pointer_offset(tree->root) - 4096), 2, number));
	/* By another number of this memory node the children are not here. */
	must_end(request_of(tree->root | 1ull << 56, 2, number));
	/* Another tree's node, and another tree that the node is said to be of. */
	must_end(request_of(other->root, 1, number));
	request = good;
	request.tree = other->tree;
	must_end(request);
	request.tree = 1234567;
	must_refuse(request, FABRIC_NOT_FOUND);
	/* No such bound or format. */
	must_refuse(request_of(tree->root, 0, number), FABRIC_RANGE);
	must_refuse(request_of(tree->root, LEVELS_MAX, number), FABRIC_RANGE);
	request = good;
	request.side = 2;
	must_refuse(request, FABRIC_RANGE);
	request = good;
	request.norm_length = 9;
	must_refuse(request, FABRIC_RANGE);
	request = good;
	request.cell_bytes = 20;
	must_refuse(request, FABRIC_RANGE);
	request.cell_bytes = 72;
	must_refuse(request, FABRIC_RANGE);
	request = good;
	request.norm_bytes = 16;
	must_refuse(request, FABRIC_RANGE);
	request = good;
	request.flags |= 0x80;
	must_refuse(request, FABRIC_RANGE);
	request = good;
	request.flags |= DESCENT_CUT;
	request.norm_length = 4;
	must_refuse(request, FABRIC_RANGE);
	/* A request of another length is no request. */
	bytes = sizeof(answer);
	assert_int_equal(
		fabric_call(client.endpoints[0], DIRECTORY_DESCEND, &good, sizeof(good) - 8, &answer, &bytes),
		FABRIC_PROTOCOL);
	/* Nor is a method of a later version: a memory node of before this one refuses so. */
	bytes = sizeof(answer);
	assert_int_equal(
		fabric_call(client.endpoints[0], DIRECTORY_METHODS, &good, sizeof(good), &answer, &bytes),
		FABRIC_PROTOCOL);
	assert_int_equal(ask(&good, &answer, &bytes), FABRIC_OK);
	refuse_onlooker(&good);
	tree_close(other);
	end();
}

/* ---- what is in memory ---- */

static void
operate(uint8_t opcode, uint64_t offset, uint64_t *words, uint32_t bytes)
{
	FabricOp op = {
		.opcode = opcode, .region = FABRIC_NODES, .length = bytes, .offset = offset, .buffer = words};

	assert_int_equal(below->execute(client.endpoints[0], &op, 1), FABRIC_OK);
}

static void
read_node(uint64_t pointer, uint64_t *image, uint32_t bytes)
{
	operate(FABRIC_READ, pointer_offset(pointer), image, bytes);
}

/* Writes the image as an inner node of another place. */
static uint64_t
put_node(uint64_t *image, uint64_t pointer)
{
	image[HEADER_SELF] = pointer_address(pointer);
	node_seal(&tree->geometry, image);
	operate(FABRIC_WRITE, pointer_offset(pointer), image, INNER_BYTES);
	return pointer;
}

static uint64_t
new_inner_node(void)
{
	uint64_t pointer, generation;

	assert_int_equal(allocate_node(tree, 0, 1, &pointer, &generation), TREE_OK);
	return pointer;
}

/* A node of the tree is one in the tree's memory only, whatever it says of itself. */
static void
test_foreign_memory(void **state)
{
	const uint64_t number = scramble(8) | 1;
	uint64_t image[INNER_BYTES / 8];
	DirectoryDescended answer;
	TreeRecord other_record;
	DirectoryDescent request;
	Tree *other;
	uint32_t bytes;

	begin(&narrow, TREE_OFFLOAD_ALWAYS);
	fill(&narrow, NUMBERS);
	other = new_tree(&narrow, &other_record);
	read_node(tree->root, image, INNER_BYTES);
	request = request_of(put_node(image, new_inner_node()), 2, number);
	assert_int_equal(ask(&request, &answer, &bytes), FABRIC_OK);
	assert_int_equal(answer.pointer, leaf_of(tree, number));
	/* The last stripe of the other tree's first extent, which nothing was taken from. */
	must_end(request_of(put_node(image, pointer_make(0, pointer_offset(other->root) - DIRECTORY_ROOT_OFFSET +
	                                                        EXTENT_MIN_BYTES - INNER_BYTES)),
	                    2, number));
	tree_close(other);
	end();
}

/* Nodes do not lie across stripes: there they could be read in two halves. */
static void
test_across_stripes(void **state)
{
	const uint64_t number = scramble(8) | 1;
	uint64_t image[INNER_BYTES / 8];
	uint64_t first = 0, second, pointer;

	begin(&narrow, TREE_OFFLOAD_ALWAYS);
	fill(&narrow, NUMBERS);
	read_node(tree->root, image, INNER_BYTES);
	for (second = new_inner_node(); pointer_offset(second) != pointer_offset(first) + INNER_BYTES;
	     second = new_inner_node())
		first = second;
	pointer = pointer_make(0, pointer_offset(first) + LINE_BYTES);
	image[HEADER_SELF] = pointer;
	node_seal(&tree->geometry, image);
	operate(FABRIC_WRITE, pointer_offset(pointer), image, INNER_BYTES - LINE_BYTES);
	operate(FABRIC_WRITE, pointer_offset(second), image + (INNER_BYTES - LINE_BYTES) / 8, LINE_BYTES);
	must_end(request_of(pointer, 2, number));
	end();
}

/* Nodes that no reader would believe. */
static void
test_unbelieved(void **state)
{
	const uint64_t number = scramble(8) | 1;
	uint64_t good[INNER_BYTES / 8], bad[INNER_BYTES / 8];
	DirectoryDescended answer;
	DirectoryDescent request;
	uint64_t place, leaf, word;
	uint32_t bytes;

	begin(&narrow, TREE_OFFLOAD_ALWAYS);
	fill(&narrow, NUMBERS);
	read_node(tree->root, good, INNER_BYTES);
	place = put_node(good, new_inner_node());
	request = request_of(place, 2, number);
	/* A sum that does not fit. */
	memcpy(bad, good, sizeof(bad));
	bad[INNER_BYTES / 8 - 1] ^= 1;
	operate(FABRIC_WRITE, pointer_offset(place), bad, INNER_BYTES);
	must_end(request);
	/* Children that are none, or at another memory node: of level 1 it ends there. */
	memcpy(bad, good, sizeof(bad));
	for (uint32_t i = 0; i < node_count(bad); i++)
		bad[inner_cell_word(&tree->geometry, i)] = POINTER_NONE;
	put_node(bad, place);
	must_end(request);
	memcpy(bad, good, sizeof(bad));
	for (uint32_t i = 0; i < node_count(bad); i++)
		bad[inner_cell_word(&tree->geometry, i)] |= 1ull << 56;
	put_node(bad, place);
	must_end(request);
	/* Fences that the bound is beyond. */
	memcpy(bad, good, sizeof(bad));
	memcpy(bad + tree->geometry.low_word, bad + inner_cell_word(&tree->geometry, 1) + 1,
	       tree->geometry.cell_bytes);
	put_node(bad, place);
	must_end(request_of(place, 2, 1));
	memcpy(bad, good, sizeof(bad));
	memcpy(bad + tree->geometry.high_word, bad + inner_cell_word(&tree->geometry, 1) + 1,
	       tree->geometry.cell_bytes);
	put_node(bad, place);
	must_end(request_of(place, 2, UINT64_MAX));
	put_node(good, place);
	/* A leaf whose stamps differ: its place is told, and no image. */
	leaf = leaf_of(tree, number);
	operate(FABRIC_READ, pointer_offset(leaf) + 4 * LINE_BYTES, &word, 8);
	word ^= 1;
	operate(FABRIC_WRITE, pointer_offset(leaf) + 4 * LINE_BYTES, &word, 8);
	assert_int_equal(ask(&request, &answer, &bytes), FABRIC_OK);
	assert_int_equal(answer.pointer, leaf);
	assert_int_equal(answer.bytes, 0);
	assert_int_equal(bytes, DIRECTORY_DESCENDED_BYTES);
	word ^= 1;
	operate(FABRIC_WRITE, pointer_offset(leaf) + 4 * LINE_BYTES, &word, 8);
	assert_int_equal(ask(&request, &answer, &bytes), FABRIC_OK);
	assert_int_equal(answer.bytes, 1024);
	end();
}

static uint64_t *
stripe_of(uint64_t pointer)
{
	return memory_stripe(shm_channel(client.endpoints[0])->memory, pointer_offset(pointer));
}

/* In the middle of a WRITE nothing is copied, and nobody waits. */
static void
test_written(void **state)
{
	const uint64_t number = scramble(8) | 1;
	DirectoryDescended answer;
	DirectoryDescent request;
	uint64_t leaf;
	uint32_t bytes;

	begin(&narrow, TREE_OFFLOAD_ALWAYS);
	fill(&narrow, NUMBERS);
	request = request_of(tree->root, 2, number);
	leaf = leaf_of(tree, number);
	__atomic_fetch_add(stripe_of(leaf), 1, __ATOMIC_SEQ_CST);
	assert_int_equal(ask(&request, &answer, &bytes), FABRIC_OK);
	assert_int_equal(answer.pointer, leaf);
	assert_int_equal(answer.bytes, 0);
	__atomic_fetch_add(stripe_of(leaf), 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(stripe_of(tree->root), 1, __ATOMIC_SEQ_CST);
	must_end(request);
	__atomic_fetch_add(stripe_of(tree->root), 1, __ATOMIC_SEQ_CST);
	assert_int_equal(ask(&request, &answer, &bytes), FABRIC_OK);
	assert_int_equal(answer.bytes, 1024);
	end();
}

/* A device's WRITEs cannot be seen: the memory node does not descend. Nor does that change an answer. */
static void
test_device(void **state)
{
	begin(&narrow, TREE_OFFLOAD_ALWAYS);
	fill(&narrow, NUMBERS);
	for (uint32_t i = 0; i < NUMBERS; i += NUMBERS / 20)
	{
		forget();
		(void) look_up(&narrow, i);
	}
	assert_true(offloads().calls >= 20);
	assert_int_equal(offloads().found, 0);
	end();
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),       cmocka_unit_test(test_foreign_memory),
		cmocka_unit_test(test_across_stripes), cmocka_unit_test(test_unbelieved),
		cmocka_unit_test(test_written),
	};
	const struct CMUnitTest of_device[] = {cmocka_unit_test(test_device)};

	if (argc == 3 && strcmp(argv[1], "--verbs") == 0)
	{
		setenv("FABRIC_TEST_VERBS", argv[2], 1);
		test_use_network();
		return cmocka_run_group_tests(of_device, NULL, NULL);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

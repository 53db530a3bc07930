/*
 * tree_fixture.c
 *		See tree_fixture.h.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tree_fixture.h"

const TreeWalPosition wal = {.epoch = 7, .lsn = 1000};

jmp_buf jump;
int jump_after;         /* comparisons until the comparator jumps, 0 = never */
bool jump_behind_split; /* it jumps as soon as a leaf was split */
uint64_t splits_before;
void (*compare_hook)(void);

int
compare_text(void *argument, const TreeBound *bound, const TreeKey *entry)
{
	/* I-T2: never under a lock. */
	assert_int_equal(instance.environment->slots[0].holds, 0);
	if (compare_hook != NULL)
	{
		void (*hook)(void) = compare_hook;

		compare_hook = NULL;
		hook();
	}
	if (jump_after > 0 && --jump_after == 0)
		longjmp(jump, 1);
	if (jump_behind_split && client.tree->counters.leaf_splits > splits_before)
		longjmp(jump, 1);
	return compare_images(argument, bound, entry);
}

TreeKey
number_key(uint64_t number, uint32_t tid)
{
	TreeKey key;

	memset(&key, 0, sizeof(key));
	key.norm[0] = number;
	key.block = tid / 100;
	key.offset = (uint16_t) (tid % 100 + 1);
	return key;
}

TreeKey
text_key(const char *string, uint32_t tid)
{
	size_t length = strlen(string);
	TreeKey key = number_key(0, tid);

	for (size_t i = 0; i < length && i < 24; i++)
		key.norm[i / 8] |= (uint64_t) (uint8_t) string[i] << (56 - i % 8 * 8);
	key.image = (const uint8_t *) string;
	key.image_bytes = (uint16_t) length;
	return key;
}

Tree *
open_tree(TestClient *with, const TreeRecord *record)
{
	Tree *tree;

	assert_int_equal(tree_open(with->tree, record->tree, record->root, &record->format,
	                           record->format.lossless ? NULL : compare_text, NULL, &tree),
	                 TREE_OK);
	return tree;
}

Tree *
new_tree(const TreeFormat *format, TreeRecord *record)
{
	test_tree_create(&client, format, record);
	return open_tree(&client, record);
}

void
must_insert(Tree *tree, const TreeKey *key, bool expected_hit)
{
	bool hit;
	TreeStatus status = tree_insert(tree, key, &wal, &hit);

	if (status != TREE_OK)
		fail_msg("insert: %s: %s", tree_status_name(status), tree_detail(tree->client));
	assert_int_equal(hit, expected_hit);
}

void
must_insert_tied(Tree *tree, uint32_t i, size_t length, const char *end, bool expected_hit)
{
	char string[TIED_MAX_BYTES];
	TreeKey key;

	assert_true(length + strlen(end) < sizeof(string));
	tied_string(string, i, length);
	strcat(string, end);
	key = text_key(string, i);
	must_insert(tree, &key, expected_hit);
}

/* TIDs 0..count-1 are there, each once, and nothing else. */
void
verify_tids(Tree *tree, uint32_t count, WalkResult *result)
{
	walk_tree(tree, result);
	assert_int_equal(result->count, count);
	for (uint32_t tid = 0; tid < count; tid++)
		assert_true(walk_has(result, tid / 100, (uint16_t) (tid % 100 + 1)));
}

void
other_start(OtherInstance *other)
{
	size_t bytes = tree_shared_bytes(&instance.options);

	other->instance = instance;
	assert_int_equal(posix_memalign(&other->memory, 64, bytes), 0);
	memset(other->memory, 0, bytes);
	other->instance.shared = tree_shared_initialize(other->memory, &instance.options);
	test_client_open(&other->client, &other->instance, 1);
}

void
other_stop(OtherInstance *other)
{
	assert_int_equal(test_client_close(&other->client), TREE_OK);
	free(other->memory);
}

/*
 * A string whose first bytes all strings share, so that normalized keys tie; some are long and lie out of
 * line.
 */
void
tied_string(char *string, uint32_t i, size_t length)
{
	memset(string, 'x', length);
	snprintf(string + 30, 20, "%016llx", (unsigned long long) scramble(i));
	string[46] = 'y';
	string[length] = '\0';
}

/*
 * tree_fixture.h
 *		Trees of the fixture: keys, entries, and a comparator that can jump away.
 */
#ifndef SHERMAN_TEST_TREE_FIXTURE_H
#define SHERMAN_TEST_TREE_FIXTURE_H

#include "fixture.h"
#include "tree_walk.h"

extern const TreeWalPosition wal;

extern jmp_buf jump;           /* where the comparator jumps to */
extern int jump_after;         /* comparisons until it jumps, 0 = never */
extern bool jump_behind_split; /* it jumps as soon as more leaves were split than splits_before */
extern uint64_t splits_before;

/*
 * Called once, by the next comparison, before anything else: what happens to the tree while a process
 * compares.
 */
extern void (*compare_hook)(void);
/* Strings of bytes; asserts that nothing is held, calls the hook, jumps. */
extern int compare_text(void *argument, const TreeBound *bound, const TreeKey *entry);

/* TIDs are numbers: block number / 100, offset number % 100 + 1. */
extern TreeKey number_key(uint64_t number, uint32_t tid);
/* The image is the string itself, which must outlive the key. */
extern TreeKey text_key(const char *string, uint32_t tid);
/* Room for a tied string. */
#define TIED_MAX_BYTES 300
/* String number i of this length (47..299): all share more bytes than the normalized key holds. */
extern void tied_string(char *string, uint32_t i, size_t length);

/*
 * As if it were another instance: a client with slot 1 whose cache and lock table know nothing of what ours does.
 */
typedef struct OtherInstance
{
	TestInstance instance;
	TestClient client;
	void *memory; /* its shared part */
} OtherInstance;

extern void other_start(OtherInstance *other);
extern void other_stop(OtherInstance *other);

extern Tree *open_tree(TestClient *with, const TreeRecord *record);
extern Tree *new_tree(const TreeFormat *format, TreeRecord *record);
extern void must_insert(Tree *tree, const TreeKey *key, bool expected_hit);
/* Inserts the tied string number i of this length, followed by `end`, with TID i. */
extern void must_insert_tied(Tree *tree, uint32_t i, size_t length, const char *end, bool expected_hit);

/* TIDs 0..count-1 are there, each once, and nothing else. walk_free() frees the result. */
extern void verify_tids(Tree *tree, uint32_t count, WalkResult *result);

#endif /* SHERMAN_TEST_TREE_FIXTURE_H */

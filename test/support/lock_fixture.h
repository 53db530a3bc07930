/*
 * lock_fixture.h
 *		For the tests of locks: a memory node with two trees, one or two instances, and processes that lock the root of one.
 */
#ifndef SHERMAN_TEST_LOCK_FIXTURE_H
#define SHERMAN_TEST_LOCK_FIXTURE_H

#include "fixture.h"
#include "tree/lock/lock.h"

/* The fixture: two trees, no client. `lock_words`: as in the TreeSharedOptions. fixture_close() closes it. */
extern void locks_open(uint32_t lock_words, bool two_instances);

/* One process's way to a tree. */
typedef struct LockUser
{
	TestClient client;
	Tree *tree;
	LockHandle lock;
	uint64_t image[NODE_MAX_BYTES / 8];
} LockUser;

/* A client in this slot of the instance, with a handle of the tree of that number, or the process ends. */
extern void user_open(LockUser *user, TestInstance *of, uint32_t slot, int tree);
extern TreeStatus user_close(LockUser *user);
/* Locks the tree's root and reads it. */
extern TreeStatus user_lock(LockUser *user);
/* Writes the LSN and releases; the next one gets the image with it. */
extern TreeStatus user_write(LockUser *user, uint64_t value);
/* Releases what was not changed. */
extern TreeStatus user_release(LockUser *user);

/* Starts a child with this slot; it ends by _exit(). */
extern pid_t start_child(uint32_t slot, void (*body)(uint32_t));
/* Waits for its end, which is to be a good one. */
extern void join_child(pid_t child);

/* Words of the scratch: late_body() says that it has its connection, and waits while the gate is not 0. */
#define LATE_READY 200
#define LATE_GATE 201

/* Body of a child that does not get the lock within 100 ms: in the second instance, where there is one. */
extern void late_body(uint32_t slot);

#endif /* SHERMAN_TEST_LOCK_FIXTURE_H */

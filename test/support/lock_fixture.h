/*
 * lock_fixture.h
 *		For the tests of locks: a memory node with two trees, one or two instances, and processes that lock the root of one.
 */
#ifndef SHERMAN_TEST_LOCK_FIXTURE_H
#define SHERMAN_TEST_LOCK_FIXTURE_H

#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

#include "../environment.h"
#include "../../tree/internal.h"
#include "tree/lock/lock.h"

/* A node, an instance, two trees; clients are opened by those who need them. */
typedef struct Stage
{
	TestNode node;
	TestInstance instance;
	TestInstance other; /* a second compute instance, if it was started */
	TreeRecord records[2];
} Stage;

/* `lock_words`: as in the TreeSharedOptions. */
extern void stage_open(Stage *stage, uint32_t lock_words, bool two_instances);
extern void stage_close(Stage *stage);

/* One process's way to a tree. */
typedef struct Actor
{
	TestClient client;
	Tree *tree;
	LockHandle lock;
	uint64_t image[NODE_MAX_BYTES / 8];
} Actor;

/* A client in this slot of the instance, with a handle of the tree of that number, or the process ends. */
extern void actor_open(Actor *actor, Stage *stage, TestInstance *instance, uint32_t slot, int tree);
extern TreeStatus actor_close(Actor *actor);
/* Locks the tree's root and reads it. */
extern TreeStatus actor_lock(Actor *actor);
/* Writes the LSN and releases; the next one gets the image with it. */
extern TreeStatus actor_write(Actor *actor, uint64_t value);
/* Releases what was not changed. */
extern TreeStatus actor_release(Actor *actor);

/* Starts a child with this slot; it ends by _exit(). */
extern pid_t start_child(Stage *stage, uint32_t slot, void (*body)(Stage *, uint32_t));
/* Waits for its end, which is to be a good one. */
extern void join_child(pid_t child);

/* Words of the scratch: late_body() says that it has its connection, and waits while the gate is not 0. */
#define LATE_READY 200
#define LATE_GATE 201

/* Body of a child that does not get the lock within 100 ms: in the second instance, where there is one. */
extern void late_body(Stage *stage, uint32_t slot);

/* A child's assertions: cmocka's jumps stay in its own process. */
#define CHILD_ASSERT(condition)                                                                              \
	do                                                                                                       \
	{                                                                                                        \
		if (!(condition))                                                                                    \
		{                                                                                                    \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                  \
			_exit(1);                                                                                        \
		}                                                                                                    \
	} while (0)

#endif /* SHERMAN_TEST_LOCK_FIXTURE_H */

/*
 * insert_batch.h
 *		Entries of one statement that wait in this process, to go to their tree together.
 */
#ifndef SHERMAN_INSERT_BATCH_H
#define SHERMAN_INSERT_BATCH_H

#include "am/index/index.h"

#include "lib/ilist.h"

/* Of which kind entries are that wait together. */
typedef enum InsertKind
{
	INSERT_NEW,					/* of new rows, or of new versions with another key */
	INSERT_CHURN,				/* of new versions of rows with the same key */
	INSERT_UNIQUE,				/* of new rows, to be checked when they go */
	INSERT_KINDS
} InsertKind;

/* Entries of one index that one statement has added, in one subtransaction.  Only insert_batch.c changes it. */
typedef struct InsertBatch
{
	dlist_node	node;			/* among those in use, or among those that are not */
	uint64		serial;			/* another one each time that it is put to use; 0 = it is not */
	Oid			index;
	Oid			heap;
	uint64		tree;			/* that the entries are for */
	SubTransactionId subtransaction;
	int			depth;			/* of the statement: batches.depth */
	Oid			user;			/* that the statement runs as: an error shows a key to that one only if it may read it */
	int			security;		/* its security context */
	InsertKind	kind;
	uint32		count;
	uint32		room;			/* for so many keys */
	TreeKey    *keys;
	Size		image_bytes;	/* of all keys */
	char	   *image_next;		/* where the next image may go */
	Size		image_left;		/* bytes there */
	MemoryContext context;		/* has the keys; NULL: there are none yet */
	MemoryContext images;		/* below it */
} InsertBatch;

/*
 * Whether entries of this kind and index, which can be used and has a tree, may wait in the statement that is being executed.  Where
 * they may they may as long as its batch is in use.
 */
extern bool insert_batch_allowed(Relation index, Relation heap, const ShermanIndex *opened, InsertKind kind);

/* Whether the process executes a statement whose end is noticed, so that a batch is possible. */
extern bool insert_batch_in_statement(void);

/* The batch that the statement's entries of an index wait in, which has a tree. */
extern InsertBatch *insert_batch_take(Relation index, Relation heap, const ShermanIndex *opened, InsertKind kind);

/* A place for one more key, zeroed by nobody. */
extern TreeKey *insert_batch_place(InsertBatch *batch);

/*
 * The key at that place, which was filled, waits from now on; its image is copied.  If there is no memory left for the next
 * one, all that wait are added.  Raises what adding raises.
 */
extern void insert_batch_keep(InsertBatch *batch);

/* The index is built anew by this transaction: what waits is found in the table. */
extern void insert_batch_forget(Relation index);

#endif							/* SHERMAN_INSERT_BATCH_H */

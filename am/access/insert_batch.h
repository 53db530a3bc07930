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
	INSERT_ANNOUNCED,			/* as INSERT_NEW and INSERT_CHURN, of a unique index: checked, and announced to other sessions */
	INSERT_ANNOUNCED_CHURN,
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
	uint32	   *places;			/* of announced keys: where they are (announced.h); else NULL */
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

static inline bool
insert_kind_is_announced(InsertKind kind)
{
	return kind == INSERT_ANNOUNCED || kind == INSERT_ANNOUNCED_CHURN;
}

/*
 * The same of a key that was found to be new, and is locked: it is announced, and its lock may go.  False: there is no room; the entry is to
 * be added at once.  Adds nothing: insert_batch_limit() is to be called once nothing is locked.
 */
extern bool insert_batch_announce(InsertBatch *batch);

/* Adds all that wait if there is no memory left for more, or no room for keys to announce. */
extern void insert_batch_limit(void);

/* Whether the innermost statement inserts rows that it may take back. */
extern bool insert_batch_speculates(void);

/*
 * The innermost statement takes a row back whose entries were to be added: those that wait do not any more.  Others that it may still get
 * are to be added at once.
 */
extern void insert_batch_take_back(Relation heap, ItemPointer tid);
extern bool insert_batch_was_taken_back(Relation heap, ItemPointer tid);

/* The index is built anew by this transaction: what waits is found in the table. */
extern void insert_batch_forget(Relation index);

#endif							/* SHERMAN_INSERT_BATCH_H */

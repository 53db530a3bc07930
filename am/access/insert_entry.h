/*
 * insert_entry.h
 *		Entries that go to their tree now: what insert.c and insert_batch.c share.
 */
#ifndef SHERMAN_INSERT_ENTRY_H
#define SHERMAN_INSERT_ENTRY_H

#include "am/access/unique.h"
#include "am/index/index.h"

/*
 * Adds an entry.  False: the index may be passed over by now, with its entry.  `index_unchanged`: as of aminsert.
 */
extern bool insert_entry(Relation index, ShermanIndex *opened, const TreeKey *key, Relation heap, bool index_unchanged);

/*
 * Adds a row's entry behind the check that it is unique, or checks alone (UNIQUE_CHECK_EXISTING).  As unique_claim(); its memory is taken
 * from the current context.
 */
extern bool insert_checked(UniqueChecker *checker, const UniqueRow *row, ShermanIndex *opened);

/*
 * Adds entries that were formed for this tree; raises an error if the index has another one.  `churn`: of new versions of rows with
 * the same key.
 */
extern void insert_keys(Relation index, Relation heap, uint64 tree, const TreeKey *keys, uint32 count, bool churn);

/*
 * The same of rows of a unique index, none of which is unique by a NULL: checks each as UNIQUE_CHECK_YES does, in the order of
 * their keys, into which they are put.  On an error some of them are added.
 */
extern void insert_unique_keys(Relation index, Relation heap, uint64 tree, TreeKey *keys, uint32 count);

#endif							/* SHERMAN_INSERT_ENTRY_H */

/*
 * reclaim_fixture.h
 *		The fixture's tree in a later incarnation of its instance, and the memory that it has then.
 */
#ifndef SHERMAN_TEST_RECLAIM_FIXTURE_H
#define SHERMAN_TEST_RECLAIM_FIXTURE_H

#include "checked_tree.h"

/* Opens the fixture's tree again. */
extern void reopen(CheckedTree *f);
/* Ends the instance's incarnation as a crash does, with what its shared memory knew, and begins the next one. */
extern void next_incarnation(CheckedTree *f);
/* Reclaims all pieces; returns the bytes that were found. */
extern uint64_t reclaim(Tree *tree);
/* What the memory node has in the tree's record. */
extern TreeRecord record_now(const CheckedTree *f);
/* Bytes of the tree's extents, by its record. */
extern uint64_t extent_bytes(const CheckedTree *f);

#endif /* SHERMAN_TEST_RECLAIM_FIXTURE_H */

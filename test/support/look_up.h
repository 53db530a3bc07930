/*
 * look_up.h
 *		One key, looked up by a scan as PostgreSQL does it.
 */
#ifndef SHERMAN_TEST_LOOK_UP_H
#define SHERMAN_TEST_LOOK_UP_H

#include "internal.h"

/*
 * Looks for the key, of which the tree has one entry at most, as far as its first batch.  TREE_OK: it is there, and was checked;
 * TREE_END: it is not; or how the scan has failed.
 */
extern TreeStatus look_up_key(TreeScan *scan, const Tree *tree, const TreeKey *key);

#endif /* SHERMAN_TEST_LOOK_UP_H */

/*
 * require.h
 *		For the benchmarks of the tree: a call that fails ends the program, with the reason.
 */
#ifndef SHERMAN_BENCH_REQUIRE_H
#define SHERMAN_BENCH_REQUIRE_H

#include <stdio.h>
#include <stdlib.h>

#include "../tree/tree.h"

static inline void
require(TreeStatus status, const TreeClient *client)
{
	if (status == TREE_OK)
		return;
	fprintf(stderr, "%s: %s\n", tree_status_name(status), tree_detail(client));
	exit(1);
}

#endif /* SHERMAN_BENCH_REQUIRE_H */

/*
 * proxy.h
 *		The fabric's connection workers, for am/: whoever runs the tree's clients runs their workers, too.
 */
#ifndef SHERMAN_TREE_PROXY_H
#define SHERMAN_TREE_PROXY_H

#include "../rdma/proxy.h"

#endif /* SHERMAN_TREE_PROXY_H */

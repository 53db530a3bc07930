/*
 * proxy.h
 *		The fabric's connection workers, for am/, which runs the tree's clients and their workers.
 */
#ifndef SHERMAN_TREE_PROXY_H
#define SHERMAN_TREE_PROXY_H

#include "../rdma/proxy.h"

#endif /* SHERMAN_TREE_PROXY_H */

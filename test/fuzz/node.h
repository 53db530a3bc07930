/*
 * node.h
 *		For the fuzzers: a memory node in this process, new for each input.
 */
#ifndef SHERMAN_FUZZ_NODE_H
#define SHERMAN_FUZZ_NODE_H

#include "tree/service/service_state.h"

#define FUZZ_CHANNELS 4u
#define FUZZ_TREES 64u

/* Opens a memory node with empty memory. */
extern Service *fuzz_node_open(uint64_t node_bytes);
/* Closes it and opens it again over its memory: how that was found. */
extern Service *fuzz_node_reopen(Service *service, uint64_t node_bytes, FabricMemoryState *state);
/* Closes it and forgets the memory. */
extern void fuzz_node_close(Service *service);

#endif /* SHERMAN_FUZZ_NODE_H */

/*
 * namespace.h
 *		Memory nodes of tests that serve in another network namespace, so that their clients reach them over a network.
 *
 * script/test-network sets the two variables; without them everything is on one machine:
 *		FABRIC_TEST_NAMESPACE   file of the namespace (/run/netns/NAME)
 *		FABRIC_TEST_ADDRESS     the memory node's address in it
 */
#ifndef SHERMAN_TEST_NAMESPACE_H
#define SHERMAN_TEST_NAMESPACE_H

#include <stdbool.h>

/* The memory nodes' address; NULL: there is no namespace for them. */
extern const char *namespace_address(void);

/* Moves this process, a memory node's, into the namespace, if there is one for it. False: it cannot. */
extern bool namespace_enter(void);

#endif /* SHERMAN_TEST_NAMESPACE_H */

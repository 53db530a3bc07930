/*
 * waits.h
 *		How often a client waits for answers, one wait after the other: what is under way together is one wait, however many chains
 *		it is.  As a network with the same delay for each round trip would have it, and an endless throughput.
 */
#ifndef SHERMAN_TEST_WAITS_H
#define SHERMAN_TEST_WAITS_H

#include "tree/client.h"

/* Counts from now on; one client at a time. */
extern void waits_begin(TreeClient *client);
/* The waits since then. */
extern uint64_t waits_end(TreeClient *client);

#endif /* SHERMAN_TEST_WAITS_H */

/*
 * hostile_node.h
 *		For the tests of a memory node's security: one with network clients, its log, and a witness among its
 *		clients.
 */
#ifndef SHERMAN_HOSTILE_NODE_H
#define SHERMAN_HOSTILE_NODE_H

#include "support/raw_client.h"
#include "support/testing.h"

/* Data channels of the memory node. */
#define HOSTILE_CHANNELS 8u

/* The witness's cluster. */
#define HOSTILE_WITNESS 4711u

typedef struct HostileNode
{
	FabricProcess process;
	bool keyed;
	FabricKey key; /* of the tenant "tests": the witness's and, where it is not said otherwise, the enemy's */
	FabricKey foreign_key; /* of the tenant "foreign" */
	Witness witness;
} HostileNode;

/*
 * Fixtures of cmocka: the initial state is the HostileNode.  The set-ups start it, one that demands keys or one that
 * has none, and its witness.  The teardown ends the witness, which must have been served all the time, and then the
 * memory node, which must end well.
 */
extern int hostile_node_setup_keyed(void **state);
extern int hostile_node_setup_open(void **state);
extern int hostile_node_teardown(void **state);

/* A test at `node` with keys, and the same without. */
#define HOSTILE_KEYED(function, node)                                                                        \
	{                                                                                                        \
#function, function, hostile_node_setup_keyed, hostile_node_teardown, node                           \
	}
#define HOSTILE_OPEN(function, node)                                                                         \
	{                                                                                                        \
#function "_without_keys", function, hostile_node_setup_open, hostile_node_teardown, node            \
	}

/* Waits until the log contains the text. */
extern void hostile_node_expect_log(const HostileNode *node, const char *text);
/* Lines of the log that contain the text. */
extern uint32_t hostile_node_log_lines(const HostileNode *node, const char *text);

/*
 * Waits until the memory node has no more connections than that; the asking one and up to three of the
 * witness count.
 */
extern void hostile_node_expect_connections(const HostileNode *node, uint64_t most);

/* The handshake with that key, and its end. */
extern StreamStatus hostile_node_handshake(const HostileNode *node, const FabricKey *key);

#endif /* SHERMAN_HOSTILE_NODE_H */

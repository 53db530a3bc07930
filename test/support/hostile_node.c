/*
 * hostile_node.c
 *		See hostile_node.h.
 */
#define _GNU_SOURCE 1
#include "hostile_node.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#define NODE_BYTES (1u << 20)
#define MANY_TURNS 100

/* A second tenant in the key file. The first line stays the clients'. */
static void
add_foreign_key(HostileNode *node)
{
	int file = open(node->process.key_file, O_WRONLY | O_APPEND | O_CLOEXEC);
	char detail[FABRIC_DETAIL_BYTES];
	FabricKeys keys;

	CHECK(file >= 0);
	CHECK(dprintf(file, "foreign %032x%032x\n", 0xf0f0f0f0u, (unsigned) getpid()) > 0);
	close(file);
	CHECK(fabric_keys_read(node->process.key_file, &keys, detail) == FABRIC_OK && keys.count == 2);
	node->key = keys.keys[0];
	node->foreign_key = keys.keys[1];
}

static void
start(HostileNode *node, bool keyed)
{
	memset(node, 0, sizeof(*node));
	node->keyed = keyed;
	fabric_process_prepare(&node->process, NODE_BYTES, HOSTILE_CHANNELS);
	fabric_process_listen(&node->process, keyed);
	snprintf(node->process.log_path, sizeof(node->process.log_path), "%s/log", node->process.directory);
	if (keyed)
		add_foreign_key(node);
	channel_defaults(keyed ? node->process.key_file : NULL, NULL);
	fabric_process_start(&node->process);
	witness_start(&node->witness, node->process.network_address, HOSTILE_WITNESS);
}

int
hostile_node_setup_keyed(void **state)
{
	start(*state, true);
	return 0;
}

int
hostile_node_setup_open(void **state)
{
	start(*state, false);
	return 0;
}

int
hostile_node_teardown(void **state)
{
	HostileNode *node = *state;

	if (node->witness.page != NULL)
		witness_stop(&node->witness);
	/* A clean end: whatever was done to it, it has not come to harm. */
	fabric_process_stop(&node->process, SIGTERM);
	fabric_process_remove(&node->process);
	channel_defaults(NULL, NULL);
	return 0;
}

uint32_t
hostile_node_log_lines(const HostileNode *node, const char *text)
{
	FILE *file = fopen(node->process.log_path, "r");
	char line[2 * FABRIC_DETAIL_BYTES];
	uint32_t lines = 0;

	CHECK(file != NULL);
	while (fgets(line, sizeof(line), file) != NULL)
		lines += strstr(line, text) != NULL;
	fclose(file);
	return lines;
}

void
hostile_node_expect_log(const HostileNode *node, const char *text)
{
	for (uint32_t waited = 0; hostile_node_log_lines(node, text) == 0; waited++)
	{
		if (waited >= PATIENCE_MS)
			fprintf(stderr, "nobody has logged \"%s\"\n", text);
		CHECK(waited < PATIENCE_MS);
		sleep_ms(1);
	}
}

void
hostile_node_expect_connections(const HostileNode *node, uint64_t most)
{
	for (uint32_t waited = 0; service_info(node->process.network_address).connections > most; waited++)
	{
		CHECK(waited < PATIENCE_MS);
		sleep_ms(1);
	}
}

StreamStatus
hostile_node_handshake(const HostileNode *node, const FabricKey *key)
{
	StreamContext *context = stream_context_open();
	Stream *stream = context == NULL ? NULL : stream_client(raw_socket(&node->process), context, key);
	StreamStatus status = STREAM_WANT_READ;

	CHECK(stream != NULL);
	for (int turn = 0; turn < MANY_TURNS && (status == STREAM_WANT_READ || status == STREAM_WANT_WRITE);
	     turn++)
	{
		struct pollfd polled = {.fd = stream_descriptor(stream), .events = POLLIN};

		status = stream_handshake(stream);
		if (status == STREAM_WANT_READ)
			CHECK(poll(&polled, 1, PATIENCE_MS) > 0);
	}
	stream_close(stream);
	stream_context_close(context);
	return status;
}

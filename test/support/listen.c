/*
 * listen.c
 *		See listen.h.
 */
#define _GNU_SOURCE 1
#include "listen.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "rdma/keys.h"
#include "require.h"

/* In a namespace of their own memory nodes have all ports to themselves: these are taken in turn. */
#define FIRST_PORT 10000
#define PORTS 20000

/* A port of the loopback device that nobody else gets, also between two lives of the memory node. */
static void
take_loopback(char listen[LISTEN_BYTES], int *reserved)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int one = 1;

	/* A socket that has the port and does not listen. */
	*reserved = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	REQUIRE(*reserved >= 0, "socket");
	REQUIRE(setsockopt(*reserved, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0, "setsockopt");
	REQUIRE(bind(*reserved, (struct sockaddr *) &address, length) == 0, "bind");
	REQUIRE(getsockname(*reserved, (struct sockaddr *) &address, &length) == 0, "getsockname");
	snprintf(listen, LISTEN_BYTES, "127.0.0.1:%u", ntohs(address.sin_port));
}

void
listen_take(char listen[LISTEN_BYTES], int *reserved)
{
	static unsigned taken;
	const char *address = getenv("FABRIC_TEST_ADDRESS");

	*reserved = -1;
	if (address == NULL)
		take_loopback(listen, reserved);
	else
		snprintf(listen, LISTEN_BYTES, "%.20s:%u", address, FIRST_PORT + taken++ % PORTS);
}

void
listen_enter(void)
{
	const char *path = getenv("FABRIC_TEST_NAMESPACE");
	int descriptor;

	if (path == NULL)
		return;
	descriptor = open(path, O_RDONLY | O_CLOEXEC);
	REQUIRE(descriptor >= 0 && setns(descriptor, CLONE_NEWNET) == 0, "cannot enter %s", path);
	close(descriptor);
}

void
listen_write_key(const char *path)
{
	int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	uint8_t key[FABRIC_KEY_BYTES];
	char line[16 + 2 * FABRIC_KEY_BYTES] = "tests ";
	size_t length = strlen(line);

	REQUIRE(file >= 0, "cannot make %s", path);
	REQUIRE(getrandom(key, sizeof(key), 0) == (ssize_t) sizeof(key), "getrandom");
	for (size_t i = 0; i < sizeof(key); i++)
		length += (size_t) snprintf(line + length, sizeof(line) - length, "%02x", key[i]);
	line[length++] = '\n';
	REQUIRE(write(file, line, length) == (ssize_t) length, "cannot write %s", path);
	close(file);
}

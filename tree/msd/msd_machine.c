/*
 * msd_machine.c
 *		See msd_machine.h.  The kernel's calls for memory policies have no wrappers in the C library.
 */
#include "tree/msd/msd_machine.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/mempolicy.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NODES_PATH "/sys/devices/system/node"

/* Bits of the kernel's node mask that we fill: more nodes than any kernel is built for. */
#define MASK_BITS 1024u
#define WORD_BITS (8 * sizeof(unsigned long))

/* The first line of a small file of the kernel's; empty: there is none. */
static void
read_line(const char *path, char *line, size_t bytes)
{
	FILE *file = fopen(path, "re");

	line[0] = '\0';
	if (file == NULL)
		return;
	if (fgets(line, (int) bytes, file) == NULL)
		line[0] = '\0';
	fclose(file);
	line[strcspn(line, "\n")] = '\0';
}

/* A list of the kernel's, as "0-3,8,10-11", as a set of CPUs. */
static void
cpus_of_list(const char *list, cpu_set_t *cpus)
{
	CPU_ZERO(cpus);
	while (*list >= '0' && *list <= '9')
	{
		char *end;
		unsigned long first = strtoul(list, &end, 10);
		unsigned long last = *end == '-' ? strtoul(end + 1, &end, 10) : first;

		for (unsigned long cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++)
			CPU_SET(cpu, cpus);
		list = *end == ',' ? end + 1 : end;
	}
}

static void
run_on_node(uint32_t node)
{
	char path[64];
	char list[1024];
	cpu_set_t cpus;

	snprintf(path, sizeof(path), NODES_PATH "/node%u/cpulist", node);
	read_line(path, list, sizeof(list));
	cpus_of_list(list, &cpus);
	/* The node has no CPUs, or the container withholds them: only its memory matters. */
	if (CPU_COUNT(&cpus) > 0)
		(void) sched_setaffinity(0, sizeof(cpus), &cpus);
}

bool
msd_machine_bind(uint32_t node, bool strict, char *message, size_t bytes)
{
	unsigned long mask[MASK_BITS / WORD_BITS] = {0};
	char path[64];
	char online[128];

	snprintf(path, sizeof(path), NODES_PATH "/node%u", node);
	if (node >= MASK_BITS || access(path, F_OK) != 0)
	{
		read_line(NODES_PATH "/online", online, sizeof(online));
		snprintf(message, bytes, "this machine has no NUMA node %u; it has %s", node,
		         online[0] != '\0' ? online : "none");
		return false;
	}
	mask[node / WORD_BITS] = 1ul << node % WORD_BITS;
	/* The kernel uses one bit less than the number passed. */
	if (syscall(SYS_set_mempolicy, strict ? MPOL_BIND : MPOL_PREFERRED, mask,
	            (unsigned long) MASK_BITS + 1) != 0)
	{
		snprintf(message, bytes, "memory of NUMA node %u cannot be had: %s", node, strerror(errno));
		return false;
	}
	run_on_node(node);
	return true;
}

static bool
same_address(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return memcmp(&((const struct sockaddr_in *) a)->sin_addr,
		              &((const struct sockaddr_in *) b)->sin_addr, sizeof(struct in_addr)) == 0;
	return a->sa_family == AF_INET6 &&
	       memcmp(&((const struct sockaddr_in6 *) a)->sin6_addr,
	              &((const struct sockaddr_in6 *) b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

/* The NUMA node of the interface that has this address, or -1. */
static int32_t
node_of_address(const struct sockaddr *address)
{
	struct ifaddrs *interfaces;
	int32_t node = -1;

	if (getifaddrs(&interfaces) != 0)
		return -1;
	for (struct ifaddrs *i = interfaces; i != NULL; i = i->ifa_next)
	{
		char path[128];
		char number[32];

		if (i->ifa_addr == NULL || !same_address(i->ifa_addr, address))
			continue;
		snprintf(path, sizeof(path), "/sys/class/net/%.32s/device/numa_node", i->ifa_name);
		read_line(path, number, sizeof(number));
		if (number[0] >= '0' && number[0] <= '9')
			node = (int32_t) strtol(number, NULL, 10);
		break;
	}
	freeifaddrs(interfaces);
	return node;
}

int32_t
msd_machine_node_of(const char *host)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *found;
	int32_t node;

	/* With one node there is nothing to choose. */
	if (access(NODES_PATH "/node1", F_OK) != 0 || getaddrinfo(host, NULL, &hints, &found) != 0)
		return -1;
	node = node_of_address(found->ai_addr);
	freeaddrinfo(found);
	return node;
}

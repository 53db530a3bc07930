/*
 * test_machine.c
 *		msd on machines of several NUMA nodes, which are played (tree/msd/msd_machine.c): what the kernel is asked for, and what
 *		the message says where that is refused.
 */
#include <stdio.h>
#include <string.h>

#include "support/testing.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/mempolicy.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tree/msd/msd_machine.h"

#define NODES "/sys/devices/system/node"

/* The machine that is played, and what was asked of its kernel. */
static struct
{
	unsigned nodes; /* 0 to nodes - 1 are there, and node 1023, if it has more than one */
	const char *online;
	const char *cpus; /* of each node; NULL: no such file */
	const char *card; /* NUMA node of the interface eth0; NULL: no such file */
	int policy;       /* that was set last; -1: none */
	unsigned long words[16];
	unsigned long bits;
	int refuses; /* errno */
	cpu_set_t affinity;
	int affinities; /* times that it was set */
} machine;

extern FILE *__real_fopen(const char *path, const char *mode);
extern FILE *__wrap_fopen(const char *path, const char *mode);
extern int __wrap_access(const char *path, int mode);
extern long __wrap_syscall(long number, ...);
extern int __wrap_sched_setaffinity(pid_t pid, size_t bytes, const cpu_set_t *cpus);
extern int __wrap_getifaddrs(struct ifaddrs **list);
extern void __wrap_freeifaddrs(struct ifaddrs *list);

FILE *
__wrap_fopen(const char *path, const char *mode)
{
	const char *text = NULL;

	if (strncmp(path, "/sys/", 5) != 0)
		return __real_fopen(path, mode);
	if (strcmp(path, NODES "/online") == 0)
		text = machine.online;
	else if (strstr(path, "/cpulist") != NULL)
		text = machine.cpus;
	else if (strcmp(path, "/sys/class/net/eth0/device/numa_node") == 0)
		text = machine.card;
	return text == NULL ? NULL : fmemopen((void *) (uintptr_t) text, strlen(text), "r");
}

int
__wrap_access(const char *path, int mode)
{
	unsigned node;

	if (sscanf(path, NODES "/node%u", &node) == 1 &&
	    (node < machine.nodes || (machine.nodes > 1 && node == 1023)))
		return 0;
	errno = ENOENT;
	return -1;
}

long
__wrap_syscall(long number, ...)
{
	va_list arguments;

	assert_int_equal(number, SYS_set_mempolicy);
	va_start(arguments, number);
	machine.policy = va_arg(arguments, int);
	memcpy(machine.words, va_arg(arguments, unsigned long *), sizeof(machine.words));
	machine.bits = va_arg(arguments, unsigned long);
	va_end(arguments);
	errno = machine.refuses;
	return machine.refuses != 0 ? -1 : 0;
}

int
__wrap_sched_setaffinity(pid_t pid, size_t bytes, const cpu_set_t *cpus)
{
	assert_int_equal(pid, 0);
	assert_int_equal(bytes, sizeof(cpu_set_t));
	machine.affinity = *cpus;
	machine.affinities++;
	return 0;
}

int
__wrap_getifaddrs(struct ifaddrs **list)
{
	static struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = 77};
	static struct sockaddr_in other = {.sin_family = AF_INET};
	static struct sockaddr_in6 own6 = {.sin6_family = AF_INET6,
	                                   .sin6_addr = {.s6_addr = {[0] = 0xfd, [15] = 7}}};
	static char names[3][8] = {"lo", "eth1", "eth0"};
	static struct ifaddrs entries[4];

	own.sin_addr.s_addr = htonl(0x0a000007);
	other.sin_addr.s_addr = htonl(0x0a000008);
	entries[0] = (struct ifaddrs){.ifa_next = &entries[1], .ifa_name = names[0]};
	entries[1] = (struct ifaddrs){
		.ifa_next = &entries[2], .ifa_name = names[1], .ifa_addr = (struct sockaddr *) &other};
	entries[2] =
		(struct ifaddrs){.ifa_next = &entries[3], .ifa_name = names[2], .ifa_addr = (struct sockaddr *) &own};
	entries[3] = (struct ifaddrs){.ifa_name = names[2], .ifa_addr = (struct sockaddr *) &own6};
	*list = entries;
	return 0;
}

void
__wrap_freeifaddrs(struct ifaddrs *list)
{
}

static void
play(unsigned nodes)
{
	memset(&machine, 0, sizeof(machine));
	machine.nodes = nodes;
	machine.policy = -1;
	machine.online = nodes > 1 ? "0-1,1023\n" : "0\n";
	machine.cpus = "0-1\n";
}

static void
assert_bit(unsigned node)
{
	for (unsigned i = 0; i < 1024; i++)
		assert_int_equal(machine.words[i / 64] >> i % 64 & 1, i == node);
	/* The kernel takes one bit less than it is told. */
	assert_int_equal(machine.bits, 1025);
}

static void
test_bound(void **state)
{
	char message[128] = "";

	play(2);
	assert_true(msd_machine_bind(1, true, message, sizeof(message)));
	assert_int_equal(machine.policy, MPOL_BIND);
	assert_bit(1);
	assert_true(msd_machine_bind(0, false, message, sizeof(message)));
	assert_int_equal(machine.policy, MPOL_PREFERRED);
	assert_bit(0);
	assert_true(msd_machine_bind(1023, true, message, sizeof(message)));
	assert_bit(1023);
	assert_string_equal(message, "");
}

static void
test_refused(void **state)
{
	char message[128] = "";

	play(2);
	assert_false(msd_machine_bind(2, true, message, sizeof(message)));
	assert_string_equal(message, "this machine has no NUMA node 2; it has 0-1,1023");
	assert_false(msd_machine_bind(1024, true, message, sizeof(message)));
	assert_string_equal(message, "this machine has no NUMA node 1024; it has 0-1,1023");
	machine.online = NULL;
	assert_false(msd_machine_bind(2, true, message, sizeof(message)));
	assert_string_equal(message, "this machine has no NUMA node 2; it has none");
	assert_int_equal(machine.policy, -1);
	machine.refuses = EPERM;
	assert_false(msd_machine_bind(1, true, message, sizeof(message)));
	assert_non_null(strstr(message, "memory of NUMA node 1 cannot be had: "));
	/* Who did not get its memory stays where it runs. */
	assert_int_equal(machine.affinities, 0);
}

/* Lists of CPUs as the kernel writes them; without one the process runs where it ran. */
static void
test_cpus(void **state)
{
	static const struct
	{
		const char *list;
		unsigned long long cpus;
	} cases[] = {
		{"0-3,8,10-11\n", 0xd0f},
		{"5\n", 0x20},
		{"0,2,4\n", 0x15},
		{"63\n", 1ull << 63},
		{"3-3\n", 8},
		{"\n", 0},
		{"", 0},
	};
	char message[128];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		play(1);
		machine.cpus = cases[i].list;
		assert_true(msd_machine_bind(0, true, message, sizeof(message)));
		assert_int_equal(machine.affinities, cases[i].cpus != 0);
		for (int cpu = 0; cpu < 64 && cases[i].cpus != 0; cpu++)
			assert_int_equal(CPU_ISSET(cpu, &machine.affinity) != 0, cases[i].cpus >> cpu & 1);
	}
	/* More than a set holds. */
	play(1);
	machine.cpus = "1022-70000\n";
	assert_true(msd_machine_bind(0, true, message, sizeof(message)));
	assert_int_equal(CPU_COUNT(&machine.affinity), 2);
	play(1);
	machine.cpus = NULL;
	assert_true(msd_machine_bind(0, true, message, sizeof(message)));
	assert_int_equal(machine.affinities, 0);
}

/* The NUMA node of the card that has an address. */
static void
test_card(void **state)
{
	play(2);
	machine.card = "1\n";
	assert_int_equal(msd_machine_node_of("10.0.0.7"), 1);
	assert_int_equal(msd_machine_node_of("fd00::7"), 1);
	assert_int_equal(msd_machine_node_of("10.0.0.8"), -1);
	assert_int_equal(msd_machine_node_of("10.0.0.9"), -1);
	assert_int_equal(msd_machine_node_of("fd00::8"), -1);
	machine.card = "0\n";
	assert_int_equal(msd_machine_node_of("10.0.0.7"), 0);
	/* A card on no bus, or one that does not say. */
	machine.card = "-1\n";
	assert_int_equal(msd_machine_node_of("10.0.0.7"), -1);
	machine.card = NULL;
	assert_int_equal(msd_machine_node_of("10.0.0.7"), -1);
	/* With one node there is nothing to choose. */
	play(1);
	machine.card = "0\n";
	assert_int_equal(msd_machine_node_of("10.0.0.7"), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_cpus),
		cmocka_unit_test(test_card),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * switch.c
 *		An Ethernet switch for tests, whose links can be cut, lossy and slow, each direction by itself.
 *
 *		switch CONTROL PORT...
 *		switch --tell CONTROL COMMAND
 *
 * A PORT, numbered from 0 in their order, is
 *		tap:NETNS          a device eth0 that the switch makes in a network namespace of `ip netns` (needs root)
 *		unix:OURS,THEIRS   a pair of datagram sockets, as QEMU's -netdev dgram has them
 * The switch learns which address is where.  It runs until SIGTERM; its devices end with it.  CONTROL is the path of a
 * socket for commands, FROM and TO ports or '*':
 *		cut FROM TO                 no frame passes
 *		loss FROM TO PERCENT        so many are lost
 *		duplicate FROM TO PERCENT   so many come twice
 *		delay FROM TO MS [JITTER]   each comes so much later, by chance up to JITTER ms more: they overtake each other
 *		reset FROM TO COUNT         the next COUNT segments of TCP connections are lost, and both ends are told of a reset
 *		heal FROM TO                an end to all of that
 *		counters                    a line for each link that was used: FROM TO PASSED DROPPED ANSWERED-BY-RESET
 * --tell gives a command to a running switch, prints the reply without its first line, and ends with 0 if that was "ok".
 */
#define _GNU_SOURCE 1
#include "switch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define ADDRESS_BYTES 6

/* Addresses that the switch remembers: a few for each port. A power of two. */
#define MAX_ADDRESSES 256

/* Frames taken from one port before the next one has its turn. */
#define BURST 64

/* Delayed frames under way; what comes beyond them is lost. */
#define MAX_LATE 65536

/* How long --tell waits for the reply. */
#define TELL_MS 10000

#define NS_PER_S 1000000000ull

typedef struct Port
{
	int descriptor;
	bool is_tap;
	struct sockaddr_un theirs; /* of a pair of sockets */
} Port;

typedef struct Late
{
	uint64_t due_ns;
	uint64_t number; /* frames due at the same time go in their order */
	uint32_t to;
	uint32_t length;
	uint8_t *frame;
} Late;

typedef struct Switch
{
	Rules rules;
	Port ports[MAX_PORTS];
	struct
	{
		uint8_t address[ADDRESS_BYTES];
		uint8_t port_plus_1; /* 0 = free */
	} addresses[MAX_ADDRESSES];
	int control;
	Late late[MAX_LATE]; /* a heap, the earliest first */
	uint32_t late_count;
	uint64_t late_number;
	uint64_t random;
	uint64_t now_ns;
} Switch;

static volatile sig_atomic_t stop_requested;

static void
handle_stop(int number)
{
	(void) number;
	stop_requested = 1;
}

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "switch: ");
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "\n");
	exit(1);
}

static uint64_t
clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * NS_PER_S + (uint64_t) now.tv_nsec;
}

/* xorshift64*: a number in [0, 1). */
static double
chance(Switch *sw)
{
	sw->random ^= sw->random >> 12;
	sw->random ^= sw->random << 25;
	sw->random ^= sw->random >> 27;
	return (double) ((sw->random * 2685821657736338717ull) >> 11) / (double) (1ull << 53);
}

/* ---- ports ---- */

static struct sockaddr_un
socket_path(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(address.sun_path))
		die("the path %s is too long for a socket", path);
	strcpy(address.sun_path, path);
	return address;
}

static int
open_datagrams(const char *path)
{
	struct sockaddr_un address = socket_path(path);
	int descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	unlink(path);
	if (descriptor < 0 || bind(descriptor, (struct sockaddr *) &address, sizeof(address)) != 0)
		die("cannot make the socket %s: %s", path, strerror(errno));
	return descriptor;
}

/* A device belongs to the namespace that its maker is in. */
static int
open_tap(const char *name)
{
	struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
	char path[256];
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int netns;
	int descriptor;

	snprintf(path, sizeof(path), "/run/netns/%s", name);
	netns = open(path, O_RDONLY | O_CLOEXEC);
	if (netns < 0 || setns(netns, CLONE_NEWNET) != 0)
		die("cannot enter the network namespace %s: %s", path, strerror(errno));
	close(netns);
	descriptor = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	strcpy(request.ifr_name, "eth0");
	if (descriptor < 0 || ioctl(descriptor, TUNSETIFF, &request) != 0)
		die("cannot make a TAP device: %s", strerror(errno));
	if (setns(home, CLONE_NEWNET) != 0)
		die("cannot leave the network namespace: %s", strerror(errno));
	close(home);
	return descriptor;
}

static void
open_port(Switch *sw, const char *text)
{
	Port *port = &sw->ports[sw->rules.ports];
	char ours[256];
	char theirs[256];

	if (sw->rules.ports == MAX_PORTS)
		die("more than %d ports", MAX_PORTS);
	if (strncmp(text, "tap:", 4) == 0)
	{
		port->is_tap = true;
		port->descriptor = open_tap(text + 4);
	}
	else if (sscanf(text, "unix:%255[^,],%255s", ours, theirs) == 2)
	{
		port->descriptor = open_datagrams(ours);
		port->theirs = socket_path(theirs);
	}
	else
		die("\"%s\" is not a port", text);
	sw->rules.ports++;
}

/* A machine that is down, or whose queue is full, loses the frame, as on a wire. */
static void
port_send(Port *port, const uint8_t *frame, size_t length)
{
	ssize_t sent;

	if (port->is_tap)
		sent = write(port->descriptor, frame, length);
	else
		sent = sendto(port->descriptor, frame, length, 0, (struct sockaddr *) &port->theirs,
		              sizeof(port->theirs));
	(void) sent;
}

/* ---- delayed frames ---- */

static bool
is_before(const Late *left, const Late *right)
{
	return left->due_ns != right->due_ns ? left->due_ns < right->due_ns : left->number < right->number;
}

static bool
late_add(Switch *sw, uint64_t due_ns, uint32_t to, const uint8_t *frame, size_t length)
{
	Late late = {due_ns, sw->late_number++, to, (uint32_t) length, NULL};
	uint32_t place = sw->late_count;

	if (sw->late_count == MAX_LATE || (late.frame = malloc(length)) == NULL)
		return false;
	memcpy(late.frame, frame, length);
	sw->late_count++;
	while (place > 0 && is_before(&late, &sw->late[(place - 1) / 2]))
	{
		sw->late[place] = sw->late[(place - 1) / 2];
		place = (place - 1) / 2;
	}
	sw->late[place] = late;
	return true;
}

/* Takes the earliest frame out of the heap. */
static Late
late_take(Switch *sw)
{
	Late first = sw->late[0];
	Late last = sw->late[--sw->late_count];
	uint32_t place = 0;

	for (;;)
	{
		uint32_t child = 2 * place + 1;

		if (child >= sw->late_count)
			break;
		if (child + 1 < sw->late_count && is_before(&sw->late[child + 1], &sw->late[child]))
			child++;
		if (!is_before(&sw->late[child], &last))
			break;
		sw->late[place] = sw->late[child];
		place = child;
	}
	sw->late[place] = last;
	return first;
}

static void
send_due(Switch *sw)
{
	while (sw->late_count > 0 && sw->late[0].due_ns <= sw->now_ns)
	{
		Late late = late_take(sw);

		port_send(&sw->ports[late.to], late.frame, late.length);
		free(late.frame);
	}
}

/* ---- forwarding ---- */

/* The place of an address: where it is, or where it would be. */
static uint32_t
find_address(const Switch *sw, const uint8_t *address)
{
	uint32_t place = (uint32_t) (address[3] * 31 + address[4] * 17 + address[5]) % MAX_ADDRESSES;

	for (uint32_t i = 0; i < MAX_ADDRESSES; i++)
	{
		if (sw->addresses[place].port_plus_1 == 0 ||
		    memcmp(sw->addresses[place].address, address, ADDRESS_BYTES) == 0)
			break;
		place = (place + 1) % MAX_ADDRESSES;
	}
	return place;
}

static void
learn(Switch *sw, const uint8_t *address, uint32_t port)
{
	uint32_t place = find_address(sw, address);

	memcpy(sw->addresses[place].address, address, ADDRESS_BYTES);
	sw->addresses[place].port_plus_1 = (uint8_t) (port + 1);
}

static void
send_once(Switch *sw, Link *link, uint32_t to, const uint8_t *frame, size_t length)
{
	uint64_t delay = link->delay_ns + (uint64_t) (chance(sw) * (double) link->jitter_ns);

	if (delay == 0)
		port_send(&sw->ports[to], frame, length);
	else if (!late_add(sw, sw->now_ns + delay, to, frame, length))
		link->dropped++;
}

static void
pass(Switch *sw, uint32_t from, uint32_t to, const uint8_t *frame, size_t length)
{
	static uint8_t forward[MAX_FRAME_BYTES];
	static uint8_t backward[MAX_FRAME_BYTES];
	Link *link = &sw->rules.links[from][to];
	size_t bytes;

	if (link->cut || chance(sw) < link->loss)
	{
		link->dropped++;
		return;
	}
	if (link->resets > 0 && reset_frames(frame, length, forward, backward, &bytes))
	{
		link->resets--;
		link->answered++;
		port_send(&sw->ports[to], forward, bytes);
		port_send(&sw->ports[from], backward, bytes);
		return;
	}
	link->passed++;
	send_once(sw, link, to, frame, length);
	if (chance(sw) < link->duplicate)
		send_once(sw, link, to, frame, length);
}

/* To where the address is known to be, else, as for broadcasts, to all. */
static void
forward(Switch *sw, uint32_t from, const uint8_t *frame, size_t length)
{
	uint32_t place = find_address(sw, frame);
	uint32_t known = sw->addresses[place].port_plus_1;

	learn(sw, frame + ADDRESS_BYTES, from);
	for (uint32_t to = 0; to < sw->rules.ports; to++)
	{
		if (to != from && (known == 0 || known == to + 1))
			pass(sw, from, to, frame, length);
	}
}

static void
receive(Switch *sw, uint32_t from)
{
	static uint8_t frame[MAX_FRAME_BYTES];

	for (int i = 0; i < BURST; i++)
	{
		ssize_t length = read(sw->ports[from].descriptor, frame, sizeof(frame));

		if (length < 2 * ADDRESS_BYTES)
			return;
		forward(sw, from, frame, (size_t) length);
	}
}

/* ---- commands ---- */

static void
answer(Switch *sw)
{
	static char reply[MAX_REPLY_BYTES];
	char command[MAX_COMMAND_BYTES];
	struct sockaddr_un asker;
	socklen_t size = sizeof(asker);
	ssize_t length =
		recvfrom(sw->control, command, sizeof(command) - 1, 0, (struct sockaddr *) &asker, &size);

	if (length <= 0)
		return;
	command[length] = '\0';
	rules_command(&sw->rules, command, reply);
	(void) sendto(sw->control, reply, strlen(reply), 0, (struct sockaddr *) &asker, size);
}

static int
tell(const char *control, const char *command)
{
	static char reply[MAX_REPLY_BYTES];
	struct sockaddr_un address = socket_path(control);
	struct pollfd wait = {.events = POLLIN};
	char own[sizeof(address.sun_path)];
	ssize_t length = -1;

	if (snprintf(own, sizeof(own), "%s.%d", control, (int) getpid()) >= (int) sizeof(own))
		die("the path %s is too long for a socket", control);
	wait.fd = open_datagrams(own);
	if (sendto(wait.fd, command, strlen(command), 0, (struct sockaddr *) &address, sizeof(address)) >= 0 &&
	    poll(&wait, 1, TELL_MS) == 1)
		length = recv(wait.fd, reply, sizeof(reply) - 1, 0);
	unlink(own);
	if (length < 0)
		die("no switch answers at %s", control);
	reply[length] = '\0';
	if (strncmp(reply, "ok\n", 3) != 0)
		die("%.*s", (int) strcspn(reply, "\n"), reply);
	fputs(reply + 3, stdout);
	return 0;
}

/* ---- the loop ---- */

static void
run(Switch *sw)
{
	struct pollfd wait[MAX_PORTS + 1];
	uint32_t ports = sw->rules.ports;

	for (uint32_t i = 0; i < ports; i++)
		wait[i] = (struct pollfd){.fd = sw->ports[i].descriptor, .events = POLLIN};
	wait[ports] = (struct pollfd){.fd = sw->control, .events = POLLIN};
	while (!stop_requested)
	{
		struct timespec timeout = {.tv_sec = 1};

		sw->now_ns = clock_ns();
		send_due(sw);
		if (sw->late_count > 0)
		{
			uint64_t ns = sw->late[0].due_ns - sw->now_ns;

			timeout = (struct timespec){(time_t) (ns / NS_PER_S), (long) (ns % NS_PER_S)};
		}
		if (ppoll(wait, ports + 1, &timeout, NULL) <= 0)
			continue;
		sw->now_ns = clock_ns();
		if (wait[ports].revents != 0)
			answer(sw);
		for (uint32_t i = 0; i < ports; i++)
		{
			if (wait[i].revents != 0)
				receive(sw, i);
		}
	}
}

int
main(int count, char **arguments)
{
	static Switch sw;

	if (count == 4 && strcmp(arguments[1], "--tell") == 0)
		return tell(arguments[2], arguments[3]);
	if (count < 3)
		die("usage: switch CONTROL PORT... | switch --tell CONTROL COMMAND");
	signal(SIGTERM, handle_stop);
	signal(SIGINT, handle_stop);
	sw.random = clock_ns() | 1;
	sw.control = open_datagrams(arguments[1]);
	for (int i = 2; i < count; i++)
		open_port(&sw, arguments[i]);
	run(&sw);
	unlink(arguments[1]);
	return 0;
}

/*
 * relay.c
 *		A TCP relay that makes a memory node as far away as one asks for, for script/bench network.
 *
 * Usage: relay DELAY-FILE PORT:TARGET ...	(ports of 127.0.0.1)
 *        relay --probe N			(N: the port of a relay whose target echoes; see below)
 *        relay --echo N
 * What a client sends is passed on when so many microseconds have passed since it arrived as the file says, which is read again at
 * each SIGHUP; what comes back is passed on at once.  So each round trip takes the delay longer, and any number of them may be under
 * way: throughput is what it was.  A wait of less than SPIN_NS is waited awake, as a virtual processor takes longer than that to wake
 * up; whatever else can run goes first.
 *
 * --probe prints the relay's own limits: the median of round trips of 64 bytes, and MB/s of the same connection with many under way.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Connections: 64 clients, some workers, and what the server's own processes have. */
#define PAIRS_MAX 256
#define PORTS_MAX 8
/* What one direction keeps until it is due: more than the bytes of all chains that a client may have under way. */
#define BUFFER_BYTES (4u << 20)
/* Pieces of it that arrived at different times. */
#define PIECES_MAX 4096u
#define SPIN_NS 200000

#define PROBE_BYTES 64u
#define PROBE_ROUNDS 2000u
#define PROBE_WINDOW (64u << 10)
#define PROBE_TOTAL (64u << 20)

/* Bytes that arrived together. */
typedef struct Piece
{
	uint64_t due;   /* ns of CLOCK_MONOTONIC */
	uint32_t bytes; /* not passed on yet */
} Piece;

/* One direction of a connection: a ring of bytes, and a ring of the pieces that they came in. */
typedef struct Direction
{
	int from;
	int to;
	bool delayed;
	bool ended;     /* the sender has closed: so does the relay when all is passed on */
	uint32_t first; /* in `bytes`: the next one to pass on */
	uint32_t kept;
	uint32_t first_piece;
	uint32_t pieces;
	Piece ring[PIECES_MAX];
	char bytes[BUFFER_BYTES];
} Direction;

typedef struct Pair
{
	Direction out;  /* to the memory node */
	Direction back; /* from it */
} Pair;

static volatile sig_atomic_t reload = 1;

static void
on_hangup(int number)
{
	(void) number;
	reload = 1;
}

static void
fail(const char *what)
{
	fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t
now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

static struct sockaddr_in
local_address(int port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons((uint16_t) port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int
listen_at(int port)
{
	struct sockaddr_in address = local_address(port);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *) &address, sizeof(address)) != 0 || listen(listener, 128) != 0)
		fail("listen");
	return listener;
}

static int
connect_to(int port)
{
	struct sockaddr_in address = local_address(port);
	int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1;

	if (connect(descriptor, (struct sockaddr *) &address, sizeof(address)) != 0)
		fail("connect");
	setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return descriptor;
}

/* Takes what has arrived and there is room for. */
static void
direction_receive(Direction *d, uint64_t delay_ns)
{
	uint32_t at = (d->first + d->kept) % BUFFER_BYTES;
	uint32_t end = at >= d->first && d->kept < BUFFER_BYTES ? BUFFER_BYTES : d->first;
	ssize_t got = recv(d->from, d->bytes + at, end - at, MSG_DONTWAIT);

	if (got > 0)
	{
		Piece *piece = &d->ring[(d->first_piece + d->pieces++) % PIECES_MAX];

		*piece = (Piece){now_ns() + (d->delayed ? delay_ns : 0), (uint32_t) got};
		d->kept += (uint32_t) got;
	}
	else if (got == 0 || (errno != EAGAIN && errno != EINTR))
		d->ended = true;
}

/* Passes on what is due, as far as the receiver takes it. */
static void
direction_send(Direction *d)
{
	while (d->pieces > 0)
	{
		Piece *piece = &d->ring[d->first_piece];
		uint32_t bytes = piece->bytes;
		ssize_t sent;

		if (piece->due > now_ns())
			return;
		if (bytes > BUFFER_BYTES - d->first)
			bytes = BUFFER_BYTES - d->first;
		sent = send(d->to, d->bytes + d->first, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0)
		{
			d->ended = errno != EAGAIN && errno != EINTR;
			return;
		}
		d->first = (d->first + (uint32_t) sent) % BUFFER_BYTES;
		d->kept -= (uint32_t) sent;
		piece->bytes -= (uint32_t) sent;
		if (piece->bytes > 0)
			continue;
		d->first_piece = (d->first_piece + 1) % PIECES_MAX;
		d->pieces--;
	}
}

static bool
direction_is_over(const Direction *d)
{
	return d->ended && d->pieces == 0;
}

/* What poll(2) is to say of the direction's two ends. */
static void
direction_poll(const Direction *d, struct pollfd *from, struct pollfd *to, uint64_t now, uint64_t *next)
{
	const Piece *piece = &d->ring[d->first_piece];

	if (!d->ended && d->kept < BUFFER_BYTES && d->pieces < PIECES_MAX)
		from->events |= POLLIN;
	if (d->pieces == 0)
		return;
	if (piece->due <= now)
		to->events |= POLLOUT;
	else if (piece->due < *next)
		*next = piece->due;
}

static Pair *
pair_accept(int listener, int target)
{
	Pair *pair;
	int one = 1;
	int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	int node;

	if (client < 0)
		return NULL;
	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	node = connect_to(target);
	pair = calloc(1, sizeof(Pair));
	if (pair == NULL)
		fail("memory");
	pair->out.from = pair->back.to = client;
	pair->out.to = pair->back.from = node;
	pair->out.delayed = true;
	return pair;
}

static void
pair_close(Pair *pair)
{
	close(pair->out.from);
	close(pair->out.to);
	free(pair);
}

static uint64_t
read_delay_ns(const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned long microseconds;

	if (file == NULL || fscanf(file, "%lu", &microseconds) != 1)
		fail(path);
	fclose(file);
	return microseconds * 1000;
}

/* Sleeps until a descriptor is ready or the next piece is due: awake, if that is soon. */
static void
relay_wait(struct pollfd *fds, nfds_t count, uint64_t next)
{
	uint64_t now = now_ns();
	struct timespec limit = {1, 0};

	if (next <= now + SPIN_NS)
	{
		limit = (struct timespec){0, 0};
		sched_yield();
	}
	else if (next - SPIN_NS - now < 1000000000u)
		limit = (struct timespec){0, (long) (next - SPIN_NS - now)};
	if (ppoll(fds, count, &limit, NULL) < 0 && errno != EINTR)
		fail("poll");
}

static void
relay_run(const char *delay_file, char **ports, int port_count)
{
	static Pair *pairs[PAIRS_MAX];
	static struct pollfd fds[PORTS_MAX + 2 * PAIRS_MAX];
	int listeners[PORTS_MAX], targets[PORTS_MAX];
	uint32_t count = 0;
	uint64_t delay_ns = 0;

	for (int i = 0; i < port_count; i++)
	{
		int port;

		if (sscanf(ports[i], "%d:%d", &port, &targets[i]) != 2)
			fail(ports[i]);
		listeners[i] = listen_at(port);
	}

	for (;;)
	{
		uint64_t next = UINT64_MAX;
		uint64_t now = now_ns();

		if (reload)
		{
			reload = 0;
			delay_ns = read_delay_ns(delay_file);
		}
		for (int i = 0; i < port_count; i++)
			fds[i] = (struct pollfd){listeners[i], (short) (count + PORTS_MAX < PAIRS_MAX ? POLLIN : 0), 0};
		for (uint32_t i = 0; i < count; i++)
		{
			struct pollfd *client = &fds[port_count + 2 * (int) i];
			struct pollfd *node = client + 1;

			*client = (struct pollfd){pairs[i]->out.from, 0, 0};
			*node = (struct pollfd){pairs[i]->out.to, 0, 0};
			direction_poll(&pairs[i]->out, client, node, now, &next);
			direction_poll(&pairs[i]->back, node, client, now, &next);
		}
		relay_wait(fds, (nfds_t) port_count + 2 * count, next);
		for (uint32_t i = 0; i < count; i++)
		{
			if (fds[port_count + 2 * (int) i].revents & fds[port_count + 2 * (int) i].events & POLLIN)
				direction_receive(&pairs[i]->out, delay_ns);
			if (fds[port_count + 1 + 2 * (int) i].revents & fds[port_count + 1 + 2 * (int) i].events & POLLIN)
				direction_receive(&pairs[i]->back, delay_ns);
			direction_send(&pairs[i]->out);
			direction_send(&pairs[i]->back);
		}
		for (uint32_t i = 0; i < count; i++)
			if (direction_is_over(&pairs[i]->out) || direction_is_over(&pairs[i]->back))
			{
				pair_close(pairs[i]);
				pairs[i--] = pairs[--count];
			}
		for (int i = 0; i < port_count; i++)
			if (fds[i].revents & POLLIN)
			{
				pairs[count] = pair_accept(listeners[i], targets[i]);
				count += pairs[count] != NULL;
			}
	}
}

/* Sends back what comes, one connection after the other. */
static void
echo_run(int port)
{
	static char bytes[PROBE_WINDOW];
	int listener = listen_at(port);

	for (;;)
	{
		int client = accept(listener, NULL, NULL);
		int one = 1;
		ssize_t got;

		setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		while ((got = recv(client, bytes, sizeof(bytes), 0)) > 0)
			for (ssize_t sent = 0, n; sent < got; sent += n)
				if ((n = send(client, bytes + sent, (size_t) (got - sent), MSG_NOSIGNAL)) < 0)
					break;
		close(client);
	}
}

static int
compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

static void
probe_run(int port)
{
	static uint64_t times[PROBE_ROUNDS];
	static char bytes[PROBE_WINDOW];
	int descriptor = connect_to(port);
	uint64_t sent = 0, received = 0, began;

	for (uint32_t i = 0; i < PROBE_ROUNDS; i++)
	{
		began = now_ns();
		if (send(descriptor, bytes, PROBE_BYTES, 0) != PROBE_BYTES ||
		    recv(descriptor, bytes, PROBE_BYTES, MSG_WAITALL) != PROBE_BYTES)
			fail("probe");
		times[i] = now_ns() - began;
	}
	qsort(times, PROBE_ROUNDS, sizeof(times[0]), compare_times);
	began = now_ns();
	while (received < PROBE_TOTAL)
	{
		struct pollfd fd = {descriptor, (short) (POLLIN | (sent < PROBE_TOTAL ? POLLOUT : 0)), 0};
		ssize_t n;

		if (poll(&fd, 1, -1) < 0)
			fail("poll");
		if ((fd.revents & POLLOUT) != 0 && (n = send(descriptor, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
			sent += (uint64_t) n;
		if ((fd.revents & POLLIN) != 0 && (n = recv(descriptor, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
			received += (uint64_t) n;
	}
	printf("%.0f us a round trip of %u bytes, %.0f MB/s\n", (double) times[PROBE_ROUNDS / 2] / 1000,
	       PROBE_BYTES, (double) received / 1e6 / ((double) (now_ns() - began) / 1e9));
}

int
main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_hangup};

	sigaction(SIGHUP, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (argc == 3 && strcmp(argv[1], "--probe") == 0)
		probe_run(atoi(argv[2]));
	else if (argc == 3 && strcmp(argv[1], "--echo") == 0)
		echo_run(atoi(argv[2]));
	else if (argc > 2 && argc - 2 <= PORTS_MAX)
		relay_run(argv[1], argv + 2, argc - 2);
	else
	{
		fprintf(stderr, "usage: relay DELAY-FILE PORT:TARGET ... | --probe N | --echo N\n");
		return 2;
	}
	return 0;
}

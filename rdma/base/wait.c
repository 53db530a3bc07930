/*
 * wait.c
 *		Time: the clock, deadlines of chains, calls and connections, and sleeps.
 */
#define _GNU_SOURCE 1
#include <poll.h>
#include <time.h>

#include "rdma/base/transport.h"

#define NANOSECONDS_PER_SECOND 1000000000ull
#define NANOSECONDS_PER_MS 1000000ull

/* Of its own deadline a wait has this part at least, whatever the waits before it have left: time for a few answers. */
#define LEAST_PART 8

uint64_t
fabric_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * NANOSECONDS_PER_SECOND + (uint64_t) now.tv_nsec;
}

uint64_t
fabric_deadline(const Fabric *fabric, FabricWait wait)
{
	const FabricOptions *options = &fabric->options;
	uint64_t together = options->connect_timeout_ms * NANOSECONDS_PER_MS;
	uint64_t own = wait == FABRIC_WAIT_CHAIN ? options->operation_timeout_ms * NANOSECONDS_PER_MS : together;
	uint64_t now = fabric_now();
	uint64_t left;

	if (options->silence == NULL)
		return now + own;
	if (*options->silence == 0)
		*options->silence = now;
	left = *options->silence + together > now ? *options->silence + together - now : 0;
	if (wait != FABRIC_WAIT_CONNECT)
		left /= 2;
	if (left < own / LEAST_PART)
		left = own / LEAST_PART;
	return now + (left < own ? left : own);
}

int
fabric_default_wait(void *argument, const int *descriptors, int count, int milliseconds)
{
	struct pollfd polled[4];
	int ready;

	(void) argument;
	if (count > 4)
		count = 4;
	for (int i = 0; i < count; i++)
		polled[i] = (struct pollfd){.fd = descriptors[i], .events = POLLIN};
	ready = poll(polled, (nfds_t) count, milliseconds);
	/* An interrupted sleep is a short one: the caller looks at its deadline and comes again. */
	return ready < 0 ? 0 : ready;
}

int
fabric_sleep(const Fabric *fabric, const int *descriptors, int count, int milliseconds)
{
	return fabric->options.wait(fabric->options.wait_argument, descriptors, count, milliseconds);
}

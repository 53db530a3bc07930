/*
 * spin.h
 *		Polls for a little while before sleeping, where that is faster, and never on a busy machine. Private to rdma/.
 *
 * Waking a process costs more than a round trip over a fast network. A process that expects something soon polls for
 * it, and yields the processor in between: if another process takes it, the machine is busy and the polling ends. If
 * it was in vain several times in a row, it is left out for a while.
 */
#ifndef SHERMAN_SPIN_H
#define SHERMAN_SPIN_H

#include <sched.h>

#include "rdma/base/transport.h"

/* Some round trips on one machine or in one rack; a sleep and a wake-up cost half of it. */
#define SPIN_NANOSECONDS 50000u
/* Others ran while we gave the processor away for so long. */
#define SPIN_STOLEN_NANOSECONDS 10000u
/* After so many polls in vain in a row it is left out, for 2, 4, ... waits. */
#define SPIN_FAILURES 4u
#define SPIN_MAX_SKIPPED_BITS 10u

typedef struct Spin
{
	uint32_t failures; /* in a row */
	uint32_t skipped;  /* waits that go without, from now on */
	uint64_t end;      /* of the present spinning; 0 = there is none */
	uint64_t last;     /* look at the clock */
} Spin;

/* The wait was successful: what was waited for came while we spun. */
static inline void
spin_success(Spin *spin)
{
	if (spin->end != 0)
		spin->failures = 0;
	spin->end = 0;
}

static inline void
spin_failure(Spin *spin)
{
	spin->end = 0;
	if (++spin->failures < SPIN_FAILURES)
		return;
	if (spin->failures > SPIN_FAILURES + SPIN_MAX_SKIPPED_BITS)
		spin->failures = SPIN_FAILURES + SPIN_MAX_SKIPPED_BITS;
	spin->skipped = 1u << (spin->failures - SPIN_FAILURES);
}

/* There is nothing yet: true: look again; false: it is time to sleep. */
static inline bool
spin_again(Spin *spin)
{
	uint64_t now;

	if (spin->end == 0)
	{
		if (spin->skipped > 0)
		{
			spin->skipped--;
			return false;
		}
		spin->last = fabric_now();
		spin->end = spin->last + SPIN_NANOSECONDS;
		return true;
	}
	sched_yield();
	now = fabric_now();
	if (now < spin->end && now - spin->last < SPIN_STOLEN_NANOSECONDS)
	{
		spin->last = now;
		return true;
	}
	spin_failure(spin);
	return false;
}

#endif /* SHERMAN_SPIN_H */

/*
 * spin.c
 *		Short critical sections of plain memory accesses, between processes.
 */
#include <sched.h>

#include "tree/shared/state.h"

/*
 * Looks at a spin word before the processor is given away: the holder was preempted (two cores, many
 * processes).
 */
#define SPINS_BEFORE_YIELD 128

void
spin_await(const uint32_t *spin)
{
	int spins = 0;

	assert(spin != NULL);
	while (__atomic_load_n(spin, __ATOMIC_RELAXED) != 0)
	{
		if (++spins % SPINS_BEFORE_YIELD == 0)
			sched_yield();
		else
			spin_pause();
	}
}

/*
 * guard.c
 *		See guard.h.
 */
#define _GNU_SOURCE 1
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#include "rdma/memory/guard.h"

/* Mappings of one process: two of each memory node, and some. */
#define GUARDS 128u

typedef struct Guard
{
	_Atomic(uintptr_t) base; /* 0: free; 1: being filled */
	size_t bytes;
	size_t page_bytes;
	atomic_bool lost;
} Guard;

atomic_uint guards_lost;

/* The process's one context, for its signal handler. */
static struct
{
	Guard guard[GUARDS];
	struct sigaction before;
} guards;

/* The fault has another cause: handled as without this handler. */
static void
pass_on(int number, siginfo_t *info, void *context)
{
	if ((guards.before.sa_flags & SA_SIGINFO) != 0 && guards.before.sa_sigaction != NULL)
		guards.before.sa_sigaction(number, info, context);
	else if (guards.before.sa_handler != SIG_DFL && guards.before.sa_handler != SIG_IGN)
		guards.before.sa_handler(number);
	else
		sigaction(SIGBUS, &guards.before, NULL); /* the access is made again, and ends the process */
}

static void
handle_bus_error(int number, siginfo_t *info, void *context)
{
	uintptr_t address = (uintptr_t) info->si_addr;

	for (uint32_t i = 0; i < GUARDS; i++)
	{
		Guard *guard = &guards.guard[i];
		uintptr_t base = atomic_load(&guard->base);
		uintptr_t page;

		if (base <= 1 || address < base || address - base >= guard->bytes)
			continue;
		page = base + (address - base) / guard->page_bytes * guard->page_bytes;
		if (mmap((void *) page, base + guard->bytes - page, PROT_READ | PROT_WRITE,
		         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED)
			break;
		if (!atomic_exchange(&guard->lost, true))
			atomic_fetch_add(&guards_lost, 1);
		return;
	}
	pass_on(number, info, context);
}

/* Takes SIGBUS, if it is not ours, or not any more. */
static bool
install(void)
{
	struct sigaction action = {.sa_sigaction = handle_bus_error, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct sigaction now;

	if (sigaction(SIGBUS, NULL, &now) != 0)
		return false;
	if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == handle_bus_error)
		return true;
	guards.before = now;
	sigemptyset(&action.sa_mask);
	return sigaction(SIGBUS, &action, NULL) == 0;
}

bool
guard_add(void *base, size_t bytes, size_t page_bytes)
{
	if (!install())
		return false;
	for (uint32_t i = 0; i < GUARDS; i++)
	{
		Guard *guard = &guards.guard[i];
		uintptr_t none = 0;

		if (!atomic_compare_exchange_strong(&guard->base, &none, 1))
			continue;
		guard->bytes = bytes;
		guard->page_bytes = page_bytes;
		atomic_store(&guard->lost, false);
		atomic_store(&guard->base, (uintptr_t) base);
		return true;
	}
	return false;
}

/* The guard of a mapping, or NULL. */
static Guard *
find(const void *base)
{
	for (uint32_t i = 0; i < GUARDS; i++)
	{
		if (atomic_load_explicit(&guards.guard[i].base, memory_order_relaxed) == (uintptr_t) base)
			return &guards.guard[i];
	}
	return NULL;
}

void
guard_remove(const void *base)
{
	Guard *guard = find(base);

	if (guard == NULL)
		return;
	if (atomic_exchange(&guard->lost, false))
		atomic_fetch_sub(&guards_lost, 1);
	atomic_store(&guard->base, 0);
}

bool
guard_find_lost(const void *base)
{
	Guard *guard = find(base);

	return guard != NULL && atomic_load(&guard->lost);
}

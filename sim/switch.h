/*
 * switch.h
 *		Switching between stacks.
 *
 * On x86-64 and aarch64 in some ten instructions of this file's own; elsewhere by _setjmp() and _longjmp(),
 * which mangle addresses and look for handlers at each switch, or with SWITCH_PORTABLE defined.  Neither asks
 * anything of the kernel.
 */
#ifndef SHERMAN_SWITCH_H
#define SHERMAN_SWITCH_H

#include <stddef.h>
#include <stdint.h>

#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(SWITCH_PORTABLE)
#define SWITCH_BY_HAND 1
#endif

#ifdef SWITCH_BY_HAND

/* Where somebody who does not run goes on: all registers that a call keeps lie there, on its own stack. */
typedef struct SwitchPlace
{
	void *stack;
} SwitchPlace;

#else

#include <setjmp.h>
#include <ucontext.h>

typedef struct SwitchPlace
{
	jmp_buf place;
	ucontext_t first;
	int begun;
} SwitchPlace;

#endif

/* A place at the begin of a function on a stack that nobody uses.  The function never returns. */
extern void switch_prepare(SwitchPlace *place, uint8_t *stack, size_t bytes, void (*function)(void));
/* The caller's place becomes `from`, and `to` goes on; returns when somebody switches to `from`. */
extern void switch_stacks(SwitchPlace *from, SwitchPlace *to);

#endif /* SHERMAN_SWITCH_H */

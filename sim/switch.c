/*
 * switch.c
 *		See switch.h.
 */
/* Its longjmp() takes a jump to another stack for an error. */
#undef _FORTIFY_SOURCE
#include <stdlib.h>
#include <string.h>

#include "switch.h"

#ifdef SWITCH_BY_HAND

/* Of the stack pointer where a function is called. */
#define STACK_ALIGN 16u

extern void switch_by_hand(void **from, void *to);

#ifdef __x86_64__

/* rbx, rbp, r12 to r15, and the return address. */
#define SAVED_WORDS 7u
#define RETURN_WORD 6u
/* The return address that the first function finds: nobody called it. */
#define EMPTY_WORDS 1u

__asm__(".text\n"
        ".globl switch_by_hand\n"
        ".hidden switch_by_hand\n"
        ".type switch_by_hand, @function\n"
        ".p2align 4\n"
        "switch_by_hand:\n"
        "	pushq %rbp\n"
        "	pushq %rbx\n"
        "	pushq %r12\n"
        "	pushq %r13\n"
        "	pushq %r14\n"
        "	pushq %r15\n"
        "	movq %rsp, (%rdi)\n"
        "	movq %rsi, %rsp\n"
        "	popq %r15\n"
        "	popq %r14\n"
        "	popq %r13\n"
        "	popq %r12\n"
        "	popq %rbx\n"
        "	popq %rbp\n"
        "	ret\n"
        ".size switch_by_hand, .-switch_by_hand\n");

#else

/* x19 to x30, of which the last one is where it returns to, and d8 to d15. */
#define SAVED_WORDS 20u
#define RETURN_WORD 11u
#define EMPTY_WORDS 0u

__asm__(".text\n"
        ".globl switch_by_hand\n"
        ".hidden switch_by_hand\n"
        ".type switch_by_hand, %function\n"
        ".p2align 4\n"
        "switch_by_hand:\n"
        "	sub sp, sp, #160\n"
        "	stp x19, x20, [sp, #0]\n"
        "	stp x21, x22, [sp, #16]\n"
        "	stp x23, x24, [sp, #32]\n"
        "	stp x25, x26, [sp, #48]\n"
        "	stp x27, x28, [sp, #64]\n"
        "	stp x29, x30, [sp, #80]\n"
        "	stp d8, d9, [sp, #96]\n"
        "	stp d10, d11, [sp, #112]\n"
        "	stp d12, d13, [sp, #128]\n"
        "	stp d14, d15, [sp, #144]\n"
        "	mov x2, sp\n"
        "	str x2, [x0]\n"
        "	mov sp, x1\n"
        "	ldp x19, x20, [sp, #0]\n"
        "	ldp x21, x22, [sp, #16]\n"
        "	ldp x23, x24, [sp, #32]\n"
        "	ldp x25, x26, [sp, #48]\n"
        "	ldp x27, x28, [sp, #64]\n"
        "	ldp x29, x30, [sp, #80]\n"
        "	ldp d8, d9, [sp, #96]\n"
        "	ldp d10, d11, [sp, #112]\n"
        "	ldp d12, d13, [sp, #128]\n"
        "	ldp d14, d15, [sp, #144]\n"
        "	add sp, sp, #160\n"
        "	ret\n"
        ".size switch_by_hand, .-switch_by_hand\n");

#endif

void
switch_prepare(SwitchPlace *place, uint8_t *stack, size_t bytes, void (*function)(void))
{
	uint64_t *top = (uint64_t *) (void *) (stack + bytes / STACK_ALIGN * STACK_ALIGN) - EMPTY_WORDS;
	uint64_t *saved = top - SAVED_WORDS;

	memset(saved, 0, (SAVED_WORDS + EMPTY_WORDS) * sizeof(uint64_t));
	saved[RETURN_WORD] = (uint64_t) (uintptr_t) function;
	place->stack = saved;
}

void
switch_stacks(SwitchPlace *from, SwitchPlace *to)
{
	switch_by_hand(&from->stack, to->stack);
}

#else

void
switch_prepare(SwitchPlace *place, uint8_t *stack, size_t bytes, void (*function)(void))
{
	place->begun = 0;
	if (getcontext(&place->first) != 0)
		abort();
	place->first.uc_stack.ss_sp = stack;
	place->first.uc_stack.ss_size = bytes;
	makecontext(&place->first, function, 0);
}

void
switch_stacks(SwitchPlace *from, SwitchPlace *to)
{
	from->begun = 1;
	if (_setjmp(from->place) != 0)
		return;
	if (to->begun)
		_longjmp(to->place, 1);
	setcontext(&to->first);
	abort();
}

#endif

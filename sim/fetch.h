/*
 * fetch.h
 *		Memory that will be touched soon comes nearer to this processor meanwhile: what a simulation of many clients
 *		waits for is memory, as all of them together have more of it than the near caches hold.
 */
#ifndef SHERMAN_FETCH_H
#define SHERMAN_FETCH_H

#include <stddef.h>

/* Of the processor's caches. */
#define FETCH_LINE_BYTES 64u

/* Any address does: what is not mapped is not fetched. */
static inline void
fetch_bytes(const void *begin, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += FETCH_LINE_BYTES)
		__builtin_prefetch((const char *) begin + at, 1);
}

#endif /* SHERMAN_FETCH_H */

/*
 * guard.h
 *		Mappings of a file that another process may truncate: reading behind its end then does not kill this process.
 *		Private to rdma/.
 *
 * Each process that maps the memory segment has its descriptor, and can truncate it; no seal prevents that of a file
 * with a name (fcntl(2): tmpfs and hugetlbfs seal what memfd_create() makes). The kernel answers the next access
 * behind the end with SIGBUS. In a guarded mapping pages of zeroes, this process's own, take the place of what is
 * gone; stores to them have no effect outside, so the process has to check guard_is_lost() before it relies on them.
 */
#ifndef SHERMAN_GUARD_H
#define SHERMAN_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Guards a mapping whose pages have page_bytes.  SIGBUS is taken for this process, unless it is ours already; for other
 * addresses the handler of before is called.  False: there are too many, and this one is as it was.
 */
extern bool guard_add(void *base, size_t bytes, size_t page_bytes);

/* Before it is unmapped. */
extern void guard_remove(const void *base);

/* Mappings of this process of which a part is not there any more. */
extern atomic_uint guards_lost;

/* One of them at least: guard_is_lost() of this one, looked up. */
extern bool guard_find_lost(const void *base);

/* Did this process come upon a part of the mapping that is not there any more? */
static inline bool
guard_is_lost(const void *base)
{
	return atomic_load_explicit(&guards_lost, memory_order_relaxed) != 0 && guard_find_lost(base);
}

#endif /* SHERMAN_GUARD_H */

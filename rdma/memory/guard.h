/*
 * guard.h
 *		Mappings of a file that somebody else may cut short: reading behind its end then is no death of the process.
 *		Private to rdma/.
 *
 * Whoever maps the memory segment has its descriptor, and can truncate it; no seal prevents that of a file with a name
 * (fcntl(2): tmpfs and hugetlbfs seal what memfd_create() makes).  The kernel answers the next access behind the end with
 * SIGBUS.  In a guarded mapping pages of zeroes, this process's own, take the place of what is gone; what is stored there
 * reaches nobody, so the process has to ask guard_is_lost() before it believes what it did.
 */
#ifndef SHERMAN_GUARD_H
#define SHERMAN_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Guards a mapping whose pages have page_bytes.  SIGBUS is taken for this process, unless it is ours already; for other
 * addresses the handler of before is called.  False: there are too many, and this one is as it was.
 */
extern bool guard_add(void *base, size_t bytes, size_t page_bytes);

/* Before it is unmapped. */
extern void guard_remove(const void *base);

/* Did this process come upon a part of the mapping that is not there any more? */
extern bool guard_is_lost(const void *base);

#endif /* SHERMAN_GUARD_H */

/*
 * pages.h
 *		The pages that a memory segment's file is made of: how large they are, and whether they can be huge.
 *		Private to rdma/.
 */
#ifndef SHERMAN_PAGES_H
#define SHERMAN_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rdma/fabric.h"

typedef enum PagesKind
{
	PAGES_OTHER,        /* a file system that writes to a disk */
	PAGES_TMPFS,        /* small pages */
	PAGES_TMPFS_HUGE,   /* the kernel takes huge pages by itself: mounted with huge=always or within_size */
	PAGES_TMPFS_ADVISE, /* ... where it is told so: huge=advise */
	PAGES_HUGETLBFS     /* huge pages and nothing else, from a pool that the operator filled */
} PagesKind;

typedef struct Pages
{
	PagesKind kind;
	uint64_t bytes; /* a file's length is a multiple of this */
} Pages;

/* What the open file's pages are. */
extern Pages pages_of(int descriptor);

/* Can they be huge? */
extern bool pages_are_huge(const Pages *pages);

/* The kind in words, for a log. */
extern const char *pages_name(const Pages *pages);

/*
 * Takes the pages of a part of a mapping by touching them, for these may be huge where those of fallocate() are not.
 * Best effort: pages that were not available are taken at their first use.
 */
extern void pages_populate(void *start, uint64_t bytes);

#endif /* SHERMAN_PAGES_H */

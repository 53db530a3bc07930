/*
 * snapshot.c
 *		See snapshot.h.
 */
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "heap.h"
#include "snapshot.h"

/* The address sanitizer has memory of its own that says what may be used. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#endif

#define PAGE_BYTES 4096u
#define AREAS_MAX 256u
/* That are looked at: there are fewer. */
#define DESCRIPTORS 32
#define MAPS_BYTES (64u << 10)
/* The heap has that much to spare at a snapshot, so that it does not grow behind it. */
#define HEAP_BYTES (8u << 20)

typedef struct Area
{
	uint8_t *base;
	size_t pages;
	bool file;       /* pages that are not there yet come from a file, and are not zero */
	uint64_t device; /* of a file that is shared; 0: it is none */
	uint64_t offset;
	uint8_t *there;  /* now, by page */
	uint8_t **saved; /* by page; NULL: it was not there */
	uint8_t *copies;
} Area;

/* In kept memory. */
typedef struct Snapshot
{
	bool taken; /* and what the kernel has is as it was */
	void *heap_end;
	uint32_t descriptors; /* that were open: bits */
	long faults;          /* of pages so far; -1: nobody knows */
	uint32_t count;
	Area areas[AREAS_MAX];
	char maps[MAPS_BYTES];
} Snapshot;

static Snapshot *snapshot;

/* ---- what the kernel has ---- */

extern int __real_close(int descriptor);
extern int __real_epoll_ctl(int descriptor, int operation, int changed, struct epoll_event *event);
extern void *__real_mmap(void *address, size_t bytes, int protection, int flags, int descriptor,
                         off_t offset);
extern int __real_munmap(void *address, size_t bytes);
extern int __wrap_close(int descriptor);
extern int __wrap_epoll_ctl(int descriptor, int operation, int changed, struct epoll_event *event);
extern void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int descriptor,
                         off_t offset);
extern int __wrap_munmap(void *address, size_t bytes);

static void
note_change(void)
{
	if (snapshot != NULL)
		snapshot->taken = false;
}

/* One that was opened since then may be closed. */
int
__wrap_close(int descriptor)
{
	if (descriptor >= DESCRIPTORS || (snapshot != NULL && (snapshot->descriptors >> descriptor & 1) != 0))
		note_change();
	return __real_close(descriptor);
}

int
__wrap_epoll_ctl(int descriptor, int operation, int changed, struct epoll_event *event)
{
	note_change();
	return __real_epoll_ctl(descriptor, operation, changed, event);
}

void *
__wrap_mmap(void *address, size_t bytes, int protection, int flags, int descriptor, off_t offset)
{
	note_change();
	return __real_mmap(address, bytes, protection, flags, descriptor, offset);
}

int
__wrap_munmap(void *address, size_t bytes)
{
	note_change();
	return __real_munmap(address, bytes);
}

/* Those that are open: bits. New ones have the lowest numbers that are free. */
static uint32_t
open_descriptors(void)
{
	uint32_t open = 0;

	for (int i = 0; i < DESCRIPTORS; i++)
		open |= (uint32_t) (fcntl(i, F_GETFD) >= 0) << i;
	return open;
}

/* ---- areas ---- */

/* The same memory as that of an area before, at another address. */
static bool
area_is_known(const Area *area)
{
	for (uint32_t i = 0; i < snapshot->count; i++)
		if (area->device != 0 && snapshot->areas[i].device == area->device &&
		    snapshot->areas[i].offset == area->offset && snapshot->areas[i].pages >= area->pages)
			return true;
	return false;
}

static void
area_find_pages(Area *area)
{
	if (mincore(area->base, area->pages * PAGE_BYTES, area->there) != 0)
		abort();
}

static void
area_save(Area *area)
{
	size_t saved = 0;

	area->there = heap_zeroed(area->pages);
	area->saved = heap_zeroed(area->pages * sizeof(uint8_t *));
	area_find_pages(area);
	for (size_t i = 0; i < area->pages; i++)
		saved += area->file || (area->there[i] & 1) != 0;
	area->copies = heap_resize(NULL, saved * PAGE_BYTES);
	saved = 0;
	for (size_t i = 0; i < area->pages; i++)
		if (area->file || (area->there[i] & 1) != 0)
		{
			area->saved[i] = &area->copies[saved++ * PAGE_BYTES];
			memcpy(area->saved[i], &area->base[i * PAGE_BYTES], PAGE_BYTES);
		}
}

static void
area_return(Area *area, bool more)
{
	if (more && !area->file)
		area_find_pages(area);
	for (size_t i = 0; i < area->pages; i++)
	{
		uint8_t *page = &area->base[i * PAGE_BYTES];

		if (area->saved[i] != NULL)
		{
			if (memcmp(page, area->saved[i], PAGE_BYTES) != 0)
				memcpy(page, area->saved[i], PAGE_BYTES);
		}
		else if ((area->there[i] & 1) != 0)
			memset(page, 0, PAGE_BYTES);
	}
}

/* An area of a line of /proc/self/maps.  False: it is none of ours, or nobody may write there. */
static bool
area_of_line(const char *line, Area *area)
{
	unsigned long from, to, offset, inode;
	unsigned int major, minor;
	char read, write, run, shared;

	if (sscanf(line, "%lx-%lx %c%c%c%c %lx %x:%x %lu", &from, &to, &read, &write, &run, &shared, &offset,
	           &major, &minor, &inode) != 10)
		abort();
	*area = (Area){.base = (uint8_t *) from, .pages = (to - from) / PAGE_BYTES, .offset = offset};
	area->file = inode != 0 && shared == 'p';
	if (shared == 's')
		area->device = ((uint64_t) major << 44 | (uint64_t) minor << 32) + inode;
	return read == 'r' && write == 'w' && strstr(line, "[stack]") == NULL &&
	       !heap_begins_at((const void *) from);
}

static void
read_maps(void)
{
	int descriptor = open("/proc/self/maps", O_RDONLY);
	ssize_t part;
	size_t bytes = 0;

	while ((part = read(descriptor, &snapshot->maps[bytes], MAPS_BYTES - 1 - bytes)) > 0)
		bytes += (size_t) part;
	if (part < 0 || bytes == MAPS_BYTES - 1)
		abort();
	snapshot->maps[bytes] = '\0';
	__real_close(descriptor);
}

/* ---- snapshots ---- */

bool
snapshot_prepare(void)
{
#ifdef SANITIZED
	return false;
#else
	/* All that is allocated lies in the heap, and that never shrinks. */
	if (sysconf(_SC_PAGESIZE) != PAGE_BYTES || mallopt(M_MMAP_MAX, 0) != 1 ||
	    mallopt(M_TRIM_THRESHOLD, INT32_MAX) != 1 || mallopt(M_TOP_PAD, HEAP_BYTES) != 1)
		return false;
	snapshot = heap_zeroed(sizeof(Snapshot));
	return true;
#endif
}

void
snapshot_forget(void)
{
	if (snapshot == NULL)
		return;
	for (uint32_t i = 0; i < snapshot->count; i++)
	{
		heap_free(snapshot->areas[i].there);
		heap_free(snapshot->areas[i].saved);
		heap_free(snapshot->areas[i].copies);
	}
	snapshot->count = 0;
	snapshot->taken = false;
}

void
snapshot_take(void)
{
	snapshot_forget();
	fflush(NULL);
	/* The heap's rest is that long. */
	free(malloc(HEAP_BYTES));
	read_maps();
	snapshot->heap_end = sbrk(0);
	snapshot->descriptors = open_descriptors();
	snapshot->faults = -1;
	snapshot->taken = true;
	/* Nothing but what is kept changes from here on. */
	for (char *line = snapshot->maps, *end; *line != '\0'; line = end + 1)
	{
		Area area;

		end = strchr(line, '\n');
		*end = '\0';
		if (!area_of_line(line, &area) || area_is_known(&area))
			continue;
		if (snapshot->count == AREAS_MAX)
			abort();
		snapshot->areas[snapshot->count] = area;
		area_save(&snapshot->areas[snapshot->count++]);
	}
}

bool
snapshot_is_there(void)
{
	return snapshot != NULL && snapshot->taken && open_descriptors() == snapshot->descriptors &&
	       sbrk(0) == snapshot->heap_end;
}

/* Page faults of the process so far: without a new one it has no page more than before. */
static long
page_faults(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_minflt + usage.ru_majflt : -1;
}

void
snapshot_return(void)
{
	long faults = page_faults();
	bool more = faults == -1 || faults != snapshot->faults;

	for (uint32_t i = 0; i < snapshot->count; i++)
		area_return(&snapshot->areas[i], more);
	snapshot->faults = page_faults();
}

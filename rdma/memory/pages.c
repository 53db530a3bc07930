/*
 * pages.c
 *		See pages.h.
 */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "rdma/memory/memory.h"
#include "rdma/memory/pages.h"

/* Magic numbers of the file systems that do not outlive the machine's memory (statfs(2)). */
#define TMPFS_TYPE 0x01021994
#define HUGETLBFS_TYPE 0x958458f6

/* Linux 5.14; the C library's headers may be older. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* What `huge=` of a tmpfs mount says, by the device's number; an empty policy is the default, never. */
static void
mount_policy(dev_t device, char *policy, size_t bytes)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t room = 0;

	policy[0] = '\0';
	while (mounts != NULL && getline(&line, &room, mounts) > 0)
	{
		unsigned int numbers[2];
		const char *options = strstr(line, " - ");
		const char *huge = options == NULL ? NULL : strstr(options, "huge=");

		if (sscanf(line, "%*u %*u %u:%u", &numbers[0], &numbers[1]) != 2 || numbers[0] != major(device) ||
		    numbers[1] != minor(device) || huge == NULL)
			continue;
		huge += strlen("huge=");
		snprintf(policy, bytes, "%.*s", (int) strcspn(huge, ", \n"), huge);
		break;
	}
	free(line);
	if (mounts != NULL)
		fclose(mounts);
}

/* A machine-wide switch stands above the mount's policy: "force" or "deny" in brackets. */
static bool
machine_policy_is(const char *wanted)
{
	FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "re");
	char line[128] = "";
	bool is;

	if (file == NULL)
		return strcmp(wanted, "[deny]") == 0; /* a kernel without them */
	is = fgets(line, sizeof(line), file) != NULL && strstr(line, wanted) != NULL;
	fclose(file);
	return is;
}

static PagesKind
tmpfs_kind(int descriptor)
{
	struct stat file;
	char policy[32];

	if (machine_policy_is("[deny]"))
		return PAGES_TMPFS;
	if (machine_policy_is("[force]"))
		return PAGES_TMPFS_HUGE;
	if (fstat(descriptor, &file) != 0)
		return PAGES_TMPFS;
	mount_policy(file.st_dev, policy, sizeof(policy));
	if (strcmp(policy, "always") == 0 || strcmp(policy, "within_size") == 0)
		return PAGES_TMPFS_HUGE;
	return strcmp(policy, "advise") == 0 ? PAGES_TMPFS_ADVISE : PAGES_TMPFS;
}

Pages
pages_of(int descriptor)
{
	Pages pages = {.kind = PAGES_OTHER, .bytes = MEMORY_PAGE_BYTES};
	struct statfs file_system;

	if (fstatfs(descriptor, &file_system) != 0)
		return pages;
	if (file_system.f_type == TMPFS_TYPE)
		pages.kind = tmpfs_kind(descriptor);
	else if ((unsigned long) file_system.f_type == HUGETLBFS_TYPE)
	{
		pages.kind = PAGES_HUGETLBFS;
		pages.bytes = (uint64_t) file_system.f_bsize;
	}
	return pages;
}

bool
pages_are_huge(const Pages *pages)
{
	return pages->kind >= PAGES_TMPFS_HUGE;
}

const char *
pages_name(const Pages *pages)
{
	switch (pages->kind)
	{
		case PAGES_OTHER:
			return "small pages of a file system on disk";
		case PAGES_TMPFS:
			return "small pages: its tmpfs is mounted without huge=";
		case PAGES_TMPFS_HUGE:
		case PAGES_TMPFS_ADVISE:
			return "huge pages of tmpfs where the kernel has some";
		case PAGES_HUGETLBFS:
			return "huge pages of hugetlbfs";
	}
	return "";
}

void
pages_populate(void *start, uint64_t bytes)
{
	uintptr_t first = (uintptr_t) start / MEMORY_PAGE_BYTES * MEMORY_PAGE_BYTES;

	madvise((void *) first, (uintptr_t) start + bytes - first, MADV_POPULATE_WRITE);
}

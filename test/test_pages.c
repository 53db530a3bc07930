/*
 * test_pages.c
 *		What pages a file's memory is made of (rdma/memory/pages.c), on machines that are played: the file system, its mount's
 *		options and the machine's policy are what a case says.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "support/testing.h"
#include "rdma/memory/memory.h"
#include "rdma/memory/pages.h"

#define TMPFS 0x01021994
#define HUGETLBFS 0x958458f6
#define EXT4 0xef53

/* The machine that is played. NULL: the file is not there. */
static struct
{
	long type;
	long block_bytes;
	const char *mounts;
	const char *policy;
	uintptr_t populated;
	size_t populated_bytes;
} machine;

extern FILE *__real_fopen(const char *path, const char *mode);
extern FILE *__wrap_fopen(const char *path, const char *mode);
extern int __wrap_fstatfs(int descriptor, struct statfs *file_system);
extern int __wrap_fstat(int descriptor, struct stat *file);
extern int __wrap_madvise(void *start, size_t bytes, int advice);

FILE *
__wrap_fopen(const char *path, const char *mode)
{
	const char *text = strcmp(path, "/proc/self/mountinfo") == 0 ? machine.mounts : machine.policy;

	if (strncmp(path, "/proc/self/mountinfo", 20) != 0 && strncmp(path, "/sys/", 5) != 0)
		return __real_fopen(path, mode);
	return text == NULL ? NULL : fmemopen((void *) (uintptr_t) text, strlen(text), "r");
}

int
__wrap_fstatfs(int descriptor, struct statfs *file_system)
{
	memset(file_system, 0, sizeof(*file_system));
	file_system->f_type = machine.type;
	file_system->f_bsize = machine.block_bytes;
	return descriptor < 0 ? -1 : 0;
}

int
__wrap_fstat(int descriptor, struct stat *file)
{
	memset(file, 0, sizeof(*file));
	file->st_dev = makedev(8, 17);
	return descriptor < 0 ? -1 : 0;
}

int
__wrap_madvise(void *start, size_t bytes, int advice)
{
	machine.populated = (uintptr_t) start;
	machine.populated_bytes = bytes;
	return 0;
}

#define MOUNT(numbers, options) "22 1 " numbers " / /mnt rw,nosuid - tmpfs tmpfs rw,size=10k" options "\n"
#define NEVER "always within_size advise [never] deny force\n"

static void
assert_kind(PagesKind kind, bool huge)
{
	Pages pages = pages_of(0);

	assert_int_equal(pages.kind, kind);
	assert_int_equal(pages_are_huge(&pages), huge);
	assert_int_equal(pages.bytes,
	                 kind == PAGES_HUGETLBFS ? (uint64_t) machine.block_bytes : MEMORY_PAGE_BYTES);
	assert_true(strlen(pages_name(&pages)) > 0);
}

/* Of a tmpfs its mount decides, that of the file's device and of no other. */
static void
test_mounts(void **state)
{
	static const struct
	{
		const char *mounts;
		PagesKind kind;
		bool huge;
	} cases[] = {
		{MOUNT("8:17", ""), PAGES_TMPFS, false},
		{MOUNT("8:17", ",huge=never"), PAGES_TMPFS, false},
		{MOUNT("8:17", ",huge=always"), PAGES_TMPFS_HUGE, true},
		{MOUNT("8:17", ",huge=within_size,mode=700"), PAGES_TMPFS_HUGE, true},
		{MOUNT("8:17", ",huge=advise"), PAGES_TMPFS_ADVISE, true},
		{MOUNT("8:18", ",huge=always") MOUNT("9:17", ",huge=always"), PAGES_TMPFS, false},
		{MOUNT("8:18", ",huge=always") MOUNT("9:17", ",huge=always") MOUNT("8:17", ",huge=advise"),
	     PAGES_TMPFS_ADVISE, true},
		{"nonsense\n" MOUNT("8:17", ",huge=always"), PAGES_TMPFS_HUGE, true},
		{NULL, PAGES_TMPFS, false},
	};

	machine.type = TMPFS;
	machine.block_bytes = 4096;
	machine.policy = NEVER;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		machine.mounts = cases[i].mounts;
		assert_kind(cases[i].kind, cases[i].huge);
	}
}

/* The machine's policy stands above the mount's, if it denies or forces. */
static void
test_policy(void **state)
{
	machine.type = TMPFS;
	machine.mounts = MOUNT("8:17", ",huge=always");
	machine.policy = "always within_size advise never [deny] force\n";
	assert_kind(PAGES_TMPFS, false);
	machine.policy = NULL;
	assert_kind(PAGES_TMPFS, false);
	machine.policy = NEVER;
	assert_kind(PAGES_TMPFS_HUGE, true);
	machine.mounts = MOUNT("8:17", ",huge=never");
	machine.policy = "always within_size advise never deny [force]\n";
	assert_kind(PAGES_TMPFS_HUGE, true);
}

static void
test_file_systems(void **state)
{
	Pages pages;

	machine.mounts = MOUNT("8:17", ",huge=always");
	machine.policy = NEVER;
	machine.type = EXT4;
	assert_kind(PAGES_OTHER, false);
	machine.type = HUGETLBFS;
	machine.block_bytes = 2 << 20;
	assert_kind(PAGES_HUGETLBFS, true);
	/* What cannot be told is taken for the least. */
	machine.type = TMPFS;
	pages = pages_of(-1);
	assert_int_equal(pages.kind, PAGES_OTHER);
	assert_int_equal(pages.bytes, MEMORY_PAGE_BYTES);
}

/* Whole pages, from the one on which the part begins to its end. */
static void
test_populate(void **state)
{
	char *base = (char *) (16 * MEMORY_PAGE_BYTES);

	pages_populate(base, 3 * MEMORY_PAGE_BYTES);
	assert_int_equal(machine.populated, 16 * MEMORY_PAGE_BYTES);
	assert_int_equal(machine.populated_bytes, 3 * MEMORY_PAGE_BYTES);
	pages_populate(base + 100, MEMORY_PAGE_BYTES);
	assert_int_equal(machine.populated, 16 * MEMORY_PAGE_BYTES);
	assert_int_equal(machine.populated_bytes, MEMORY_PAGE_BYTES + 100);
	pages_populate(base - 1, 2);
	assert_int_equal(machine.populated, 15 * MEMORY_PAGE_BYTES);
	assert_int_equal(machine.populated_bytes, MEMORY_PAGE_BYTES + 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mounts),
		cmocka_unit_test(test_policy),
		cmocka_unit_test(test_file_systems),
		cmocka_unit_test(test_populate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

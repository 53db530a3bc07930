/*
 * test_sim_snapshot.c
 *		sim/snapshot.h: memory is again as it was, what is kept stays, and the kernel's changes are noticed.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/testing.h"
#include "../sim/heap.h"
#include "../sim/snapshot.h"

#define PAGE_BYTES 4096u
#define PAGES 64u
#define EXIT_SKIP 77

static uint64_t number;
static uint64_t *block;
static uint8_t *pages;
static uint8_t *file;
static uint8_t *file_again;
static uint64_t *kept;

static int
set_up(void **state)
{
	int descriptor = memfd_create("snapshot", MFD_CLOEXEC);

	number = 1;
	block = malloc(sizeof(*block));
	*block = 2;
	pages = mmap(NULL, PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pages[0] = 3;
	if (descriptor < 0 || ftruncate(descriptor, PAGES * PAGE_BYTES) != 0)
		return -1;
	file = mmap(NULL, PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
	file_again = mmap(NULL, PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
	close(descriptor);
	file[0] = 4;
	kept = heap_zeroed(sizeof(*kept));
	return 0;
}

static int
tear_down(void **state)
{
	snapshot_forget();
	heap_free(kept);
	munmap(file, PAGES * PAGE_BYTES);
	munmap(file_again, PAGES * PAGE_BYTES);
	munmap(pages, PAGES * PAGE_BYTES);
	free(block);
	return 0;
}

static void
change_all(uint64_t page)
{
	number++;
	*block += 1;
	pages[0]++;
	pages[page * PAGE_BYTES] = 1;
	file_again[0]++;
	file[page * PAGE_BYTES] = 1;
	*kept += 1;
}

static void
assert_as_before(uint64_t page)
{
	assert_int_equal(number, 1);
	assert_int_equal(*block, 2);
	assert_int_equal(pages[0], 3);
	assert_int_equal(pages[page * PAGE_BYTES], 0);
	assert_int_equal(file[0], 4);
	assert_int_equal(file_again[page * PAGE_BYTES], 0);
}

static void
test_memory_is_as_it_was(void **state)
{
	snapshot_take();
	/* Pages that were not there before, too, each time others. */
	for (uint64_t i = 1; i <= 4; i++)
	{
		change_all(i);
		assert_true(snapshot_is_there());
		snapshot_return();
		assert_as_before(i);
		assert_int_equal(*kept, i);
	}
}

/* What was allocated since then is free, and what was freed is not. */
static void
test_heap_is_as_it_was(void **state)
{
	uint64_t *volatile more;

	snapshot_take();
	free(block);
	more = malloc(sizeof(*more));
	*more = 5;
	snapshot_return();
	assert_int_equal(*block, 2);
	/* It is another one than the block. */
	assert_ptr_not_equal(malloc(sizeof(uint64_t)), block);
}

static void
test_descriptors_are_noticed(void **state)
{
	int before = dup(STDIN_FILENO), descriptor;

	snapshot_take();
	assert_true(snapshot_is_there());
	close(dup(STDIN_FILENO));
	assert_true(snapshot_is_there());
	descriptor = dup(STDIN_FILENO);
	assert_false(snapshot_is_there());
	close(descriptor);
	assert_true(snapshot_is_there());
	close(before);
	/* One that has the same number is another one. */
	before = dup(STDIN_FILENO);
	assert_false(snapshot_is_there());
	close(before);
}

static void
test_mappings_are_noticed(void **state)
{
	void *memory;

	snapshot_take();
	memory = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_false(snapshot_is_there());
	snapshot_take();
	munmap(memory, PAGE_BYTES);
	assert_false(snapshot_is_there());
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_memory_is_as_it_was, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_heap_is_as_it_was, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_descriptors_are_noticed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_mappings_are_noticed, set_up, tear_down),
	};

	return snapshot_prepare() ? cmocka_run_group_tests(tests, NULL, NULL) : EXIT_SKIP;
}

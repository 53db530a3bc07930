/*
 * test_resize.c
 *		A memory node that is started with other sizes, or with marks that its tables do not know: what is in its memory stays,
 *		wherever the change ends.
 *
 * A child makes the change one machine instruction at a time.  At each state of the memory that it leaves, a copy of the
 * memory is opened with the new sizes and another one with the old sizes, as after the child's death.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/fixture.h"
#include "rdma/memory/memory.h"
#include "tree/service/service_state.h"
#include "../sim/files.h"

#define TREES 3u

typedef struct Sizes
{
	uint64_t bytes;
	uint32_t channels;
} Sizes;

typedef struct Fixture
{
	char directory[128];
	char memory[160];
	char copy[160];
	char socket[160];
	char copy_socket[160];
	Sizes sizes;
	Service *service;
	uint64_t trees[TREES];
	uint64_t offsets[TREES]; /* of their first extents */
} Fixture;

/* ---- a memory node ---- */

static FabricStatus
try_open_at(Fixture *fixture, char *path, const Sizes *sizes, uint32_t max_trees, char *detail)
{
	ServiceOptions options = {
		.memory_path = path,
		.socket_path = path == fixture->copy ? fixture->copy_socket : fixture->socket,
		.node_bytes = sizes->bytes,
		.max_channels = sizes->channels,
		.max_trees = max_trees,
	};

	return service_open(&options, &fixture->service, detail);
}

static void
open_at(Fixture *fixture, char *path, const Sizes *sizes, uint32_t max_trees)
{
	char detail[FABRIC_DETAIL_BYTES] = "";

	if (try_open_at(fixture, path, sizes, max_trees, detail) != FABRIC_OK)
		fail_msg("%s", detail);
}

static FabricStatus
call(const Fixture *fixture, DirectoryMethod method, const void *request, uint32_t bytes, void *reply)
{
	uint64_t progress = 0;
	const FabricPeer peer = {.cluster = {7, 8}, .instance = 1, .incarnation = 1, .progress = &progress};
	uint32_t reply_bytes;
	FabricStatus status;

	for (;;)
	{
		status =
			service_call(fixture->service, &peer, (uint16_t) method, request, bytes, reply, &reply_bytes);
		if (status != FABRIC_BUSY)
			return status;
		if (fixture->service->tables.quarantined > 0)
			service_quarantine_wait(fixture->service);
	}
}

static FabricStatus
create(Fixture *fixture, uint64_t token, DirectoryCreated *created)
{
	DirectoryCreate request = {.token = {token, 1}, .record = {.format = narrow}};

	return call(fixture, DIRECTORY_CREATE, &request, sizeof(request), created);
}

/* The tree gets one more extent. */
static FabricStatus
extend(Fixture *fixture, uint64_t tree, DirectoryExtent *extent)
{
	DirectoryTree which = {tree};
	DirectoryExtentRequest request = {.tree = tree};
	TreeRecord record;

	assert_int_equal(call(fixture, DIRECTORY_READ, &which, sizeof(which), &record), FABRIC_OK);
	request.extents = record.extents;
	return call(fixture, DIRECTORY_EXTENT, &request, sizeof(request), extent);
}

/* The words of a tree's first extent, behind its header. */
static uint64_t *
words_of(const Fixture *fixture, uint32_t tree, uint64_t *count)
{
	*count = (FABRIC_UNIT_BYTES - DIRECTORY_ROOT_OFFSET) / sizeof(uint64_t);
	return fabric_server_node(service_server(fixture->service),
	                          fixture->offsets[tree] + DIRECTORY_ROOT_OFFSET, *count * sizeof(uint64_t));
}

static uint64_t
content(uint32_t tree, uint64_t word)
{
	return (tree + 1) * 0x9e3779b97f4a7c15ull ^ word;
}

/* Makes the trees, the last one at the end of `reach` bytes of node memory: what lies between is dropped again. */
static void
fill(Fixture *fixture, uint64_t reach)
{
	DirectoryCreated created;

	for (uint32_t i = 0; i < TREES; i++)
	{
		DirectoryTree between[64];
		uint32_t count = 0;
		uint64_t first, end;
		uint64_t *words;

		fabric_server_node_range(service_server(fixture->service), &first, &end);
		assert_int_equal(create(fixture, 1000 * (i + 1), &created), FABRIC_OK);
		while (i == TREES - 1 && created.extent.offset + FABRIC_UNIT_BYTES < first + reach)
		{
			between[count++].tree = created.record.tree;
			assert_int_equal(create(fixture, 1000 * (i + 1) + count, &created), FABRIC_OK);
		}
		fixture->trees[i] = created.record.tree;
		fixture->offsets[i] = created.extent.offset;
		words = words_of(fixture, i, &end);
		for (uint64_t word = 0; word < end; word++)
			words[word] = content(i, word);
		while (count > 0)
			assert_int_equal(
				call(fixture, DIRECTORY_DROP, &between[--count], sizeof(DirectoryTree), &created), FABRIC_OK);
	}
	while (fixture->service->tables.quarantined > 0)
		service_quarantine_wait(fixture->service);
}

/*
 * Everything is there that fill() made, the sizes are those that are asked for, or more memory, which is in use, and as much
 * can be granted as is asked for, and no more.
 */
static void
verify(Fixture *fixture, const Sizes *sizes)
{
	uint64_t used_end = fixture->offsets[TREES - 1] + FABRIC_UNIT_BYTES - MEMORY_FIRST_UNIT;
	uint64_t bytes, count;
	uint32_t channels;
	DirectoryExtent extent;
	FabricStatus status;

	service_sizes(fixture->service, &bytes, &channels);
	assert_int_equal(bytes, sizes->bytes < used_end ? used_end : sizes->bytes);
	assert_int_equal(channels, sizes->channels);
	for (uint32_t i = 0; i < TREES; i++)
	{
		const uint64_t *words = words_of(fixture, i, &count);

		for (uint64_t word = 0; word < count; word++)
			assert_int_equal(words[word], content(i, word));
	}
	do
		status = extend(fixture, fixture->trees[0], &extent);
	while (status == FABRIC_OK);
	assert_int_equal(status, FABRIC_NO_MEMORY);
	assert_int_equal(fixture->service->tables.used * FABRIC_UNIT_BYTES, sizes->bytes);
}

/* ---- a child that is killed ---- */

/* Copies the memory as it is, with its holes. */
static void
copy_memory(const Fixture *fixture)
{
	int from = open(fixture->memory, O_RDONLY | O_CLOEXEC);
	int to = open(fixture->copy, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	static uint8_t buffer[FABRIC_UNIT_BYTES];
	struct stat file;
	off_t place = 0;

	assert_true(from >= 0 && to >= 0);
	assert_int_equal(fstat(from, &file), 0);
	assert_int_equal(ftruncate(to, file.st_size), 0);
	while ((place = lseek(from, place, SEEK_DATA)) >= 0)
	{
		off_t hole = lseek(from, place, SEEK_HOLE);

		while (place < hole)
		{
			size_t bytes = hole - place > (off_t) sizeof(buffer) ? sizeof(buffer) : (size_t) (hole - place);

			assert_int_equal(pread(from, buffer, bytes, place), bytes);
			assert_int_equal(pwrite(to, buffer, bytes, place), bytes);
			place += (off_t) bytes;
		}
	}
	close(from);
	close(to);
}

/* Opens copies of the memory with these sizes and with the old ones. */
static void
survive(Fixture *fixture, const Sizes *sizes)
{
	const Sizes *both[] = {sizes, &fixture->sizes};

	for (int i = 0; i < 2; i++)
	{
		copy_memory(fixture);
		open_at(fixture, fixture->copy, both[i], 0);
		verify(fixture, both[i]);
		service_close(fixture->service, 0, true);
	}
}

/* What of the memory tells one state from another: the header, the beginnings of the service's areas, the file's length and pages. */
typedef struct Watched
{
	uint8_t header[sizeof(MemoryHeader)];
	uint8_t service[FABRIC_SERVICE_AREAS][MEMORY_PAGE_BYTES];
	uint64_t bytes;
	uint64_t blocks;
} Watched;

/* The same pages, mapped. */
typedef struct Watch
{
	int descriptor;
	const uint8_t *header;
	const uint8_t *service[FABRIC_SERVICE_AREAS];
} Watch;

static const uint8_t *
map_page(const Watch *watch, uint64_t offset)
{
	const uint8_t *page =
		mmap(NULL, MEMORY_PAGE_BYTES, PROT_READ, MAP_SHARED, watch->descriptor, (off_t) offset);

	assert_ptr_not_equal(page, MAP_FAILED);
	return page;
}

static void
watch_begin(Watch *watch, const Fixture *fixture)
{
	watch->descriptor = open(fixture->memory, O_RDONLY | O_CLOEXEC);
	assert_true(watch->descriptor >= 0);
	watch->header = map_page(watch, 0);
	for (uint32_t i = 0; i < FABRIC_SERVICE_AREAS; i++)
		watch->service[i] = map_page(watch, MEMORY_SERVICE_OFFSET + i * FABRIC_SERVICE_BYTES);
}

static void
watch_look(const Watch *watch, Watched *now)
{
	struct stat file;

	assert_int_equal(fstat(watch->descriptor, &file), 0);
	memset(now, 0, sizeof(*now));
	memcpy(now->header, watch->header, sizeof(now->header));
	for (uint32_t i = 0; i < FABRIC_SERVICE_AREAS; i++)
		memcpy(now->service[i], watch->service[i], MEMORY_PAGE_BYTES);
	now->bytes = (uint64_t) file.st_size;
	now->blocks = (uint64_t) file.st_blocks;
}

static void
watch_end(Watch *watch)
{
	munmap((void *) (uintptr_t) watch->header, MEMORY_PAGE_BYTES);
	for (uint32_t i = 0; i < FABRIC_SERVICE_AREAS; i++)
		munmap((void *) (uintptr_t) watch->service[i], MEMORY_PAGE_BYTES);
	close(watch->descriptor);
}

/* What the child does, from where it stops itself: all of a start that changes sizes. */
static void
change_sizes(Fixture *fixture, const Sizes *sizes)
{
	int descriptor = open(fixture->memory, O_RDWR | O_CLOEXEC);
	Pages pages = pages_of(descriptor);
	MemorySizes wanted = {MEMORY_FIRST_UNIT + sizes->bytes, sizes->channels};
	Memory memory = {.descriptor = -1};

	if (memory_map(descriptor, &memory) != FABRIC_OK)
		_exit(1);
	if (wanted.region_bytes < memory_used_end(&memory))
		wanted.region_bytes = memory_used_end(&memory);
	raise(SIGSTOP);
	if (memory_resize(&memory, &wanted, &pages) != FABRIC_OK ||
	    memory_service_resize(&memory, TABLES_AREA_UNITS,
	                          (wanted.region_bytes - MEMORY_FIRST_UNIT) / FABRIC_UNIT_BYTES *
	                              sizeof(uint64_t)) != FABRIC_OK)
		_exit(1);
}

/* Runs the child, and looks at each state that it leaves. Returns how many these were, or -1: not in this container. */
static int
every_state(Fixture *fixture, const Sizes *sizes, void (*work)(Fixture *fixture, const Sizes *sizes))
{
	static Watched before, now;
	int states = 0;
	int status;
	pid_t child = fork();
	Watch watch;

	assert_true(child >= 0);
	if (child == 0)
	{
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
			_exit(77);
		work(fixture, sizes);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return -1;
	watch_begin(&watch, fixture);
	memset(&before, 0, sizeof(before));
	while (WIFSTOPPED(status))
	{
		watch_look(&watch, &now);
		if (memcmp(&before, &now, sizeof(now)) != 0)
		{
			before = now;
			states++;
			survive(fixture, sizes);
		}
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
	}
	watch_end(&watch);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	return states;
}

/* ---- the tests ---- */

static int
fixture_setup(void **state)
{
	static Fixture fixture;

	memset(&fixture, 0, sizeof(fixture));
	assert_true(files_make(fixture.directory, sizeof(fixture.directory), "sherman-resize"));
	snprintf(fixture.memory, sizeof(fixture.memory), "%s/memory", fixture.directory);
	snprintf(fixture.copy, sizeof(fixture.copy), "%s/copy", fixture.directory);
	snprintf(fixture.socket, sizeof(fixture.socket), "%s/socket", fixture.directory);
	snprintf(fixture.copy_socket, sizeof(fixture.copy_socket), "%s/copy-socket", fixture.directory);
	*state = &fixture;
	return 0;
}

static int
fixture_teardown(void **state)
{
	Fixture *fixture = *state;

	files_remove(fixture->directory);
	return 0;
}

/* A memory node of these sizes, whose trees reach so far, that ended clean. */
static void
make_memory(Fixture *fixture, uint64_t bytes, uint32_t channels, uint64_t reach)
{
	fixture->sizes = (Sizes){bytes, channels};
	open_at(fixture, fixture->memory, &fixture->sizes, 0);
	fill(fixture, reach);
	service_close(fixture->service, 0, false);
}

static void
try_change(Fixture *fixture, uint64_t bytes, uint32_t channels)
{
	const Sizes sizes = {bytes, channels};
	int states = every_state(fixture, &sizes, change_sizes);

	if (states < 0)
		skip();
	print_message("%d states\n", states);
	/* Each size is a word, and what is made longer or shorter has pages. */
	assert_true(states > 3);
}

static void
test_larger(void **state)
{
	make_memory(*state, MEGABYTE, 4, 0);
	try_change(*state, 4 * MEGABYTE, 60);
}

static void
test_smaller(void **state)
{
	make_memory(*state, 4 * MEGABYTE, 60, 0);
	try_change(*state, MEGABYTE, 4);
}

/* It is not made smaller than what is in use, and grants no more than is asked for. */
static void
test_in_use(void **state)
{
	make_memory(*state, 4 * MEGABYTE, 60, 2 * MEGABYTE);
	try_change(*state, MEGABYTE, 100);
}

/* Makes trees until one more would be too many for the records' area. */
static void
one_tree_more(Fixture *fixture, const Sizes *sizes)
{
	DirectoryCreated created;
	uint64_t token = 1;

	open_at(fixture, fixture->memory, sizes, 0);
	while (fixture->service->tables.trees < fixture->service->tables.max_trees)
	{
		if (create(fixture, token++, &created) != FABRIC_OK)
			_exit(1);
	}
	raise(SIGSTOP);
	if (create(fixture, token, &created) != FABRIC_OK)
		_exit(1);
}

/* The records' area grows with the trees, as far as memory goes, or up to the number that is set. */
static void
test_trees(void **state)
{
	Fixture *fixture = *state;
	DirectoryCreated created;
	uint64_t token = 1;
	uint64_t most = 6 * MEGABYTE / FABRIC_UNIT_BYTES;
	FabricStatus status = FABRIC_OK;

	make_memory(fixture, 6 * MEGABYTE, 4, 0);
	open_at(fixture, fixture->memory, &fixture->sizes, 0);
	while (status == FABRIC_OK)
		status = create(fixture, token++, &created);
	assert_int_equal(status, FABRIC_NO_MEMORY);
	assert_int_equal(fixture->service->tables.trees, most);
	assert_true(most > TABLES_TREES_STEP);
	service_close(fixture->service, 0, false);

	/* As many as there are, and not one more: whoever asks is told which it was. */
	open_at(fixture, fixture->memory, &(Sizes){12 * MEGABYTE, 4}, (uint32_t) most + 1);
	assert_int_equal(fixture->service->tables.trees, most);
	assert_int_equal(create(fixture, token++, &created), FABRIC_OK);
	assert_int_equal(create(fixture, token++, &created), FABRIC_TOO_MANY);
	service_close(fixture->service, 0, true);
}

static void
test_trees_every_state(void **state)
{
	Fixture *fixture = *state;
	int states;

	make_memory(fixture, 6 * MEGABYTE, 4, 0);
	states = every_state(fixture, &fixture->sizes, one_tree_more);
	if (states < 0)
		skip();
	print_message("%d states\n", states);
	assert_true(states > 3);
}

/* ---- marks of units, by which chains go, and the tables, by which calls go ---- */

/* A unit of a tree that is marked for nobody, or for another tenant: its owner could not reach it, or another one could. */
static void
test_foreign_marks(void **state)
{
	Fixture *fixture = *state;

	make_memory(fixture, MEGABYTE, 4, 0);
	for (int foreign = 0; foreign < 2; foreign++)
	{
		char detail[FABRIC_DETAIL_BYTES] = "";
		FabricServer *server;

		open_at(fixture, fixture->memory, &fixture->sizes, 0);
		server = service_server(fixture->service);
		if (foreign)
			assert_int_equal(fabric_server_commit(server, 1, fixture->offsets[1], FABRIC_UNIT_BYTES),
			                 FABRIC_OK);
		else
			fabric_server_release(server, fixture->offsets[1], FABRIC_UNIT_BYTES);
		service_close(fixture->service, 0, false);
		assert_int_equal(try_open_at(fixture, fixture->memory, &fixture->sizes, 0, detail), FABRIC_PROTOCOL);
		assert_non_null(strstr(detail, "damaged"));
		fixture->service = NULL;
		assert_int_equal(unlink(fixture->memory), 0);
		make_memory(fixture, MEGABYTE, 4, 0);
	}
}

/* A unit of no tree that is marked is made free: nobody reaches what is granted to another one later. */
static void
test_marks_of_nobody(void **state)
{
	Fixture *fixture = *state;
	uint64_t first, end, offset;
	FabricServer *server;

	make_memory(fixture, MEGABYTE, 4, 0);
	open_at(fixture, fixture->memory, &fixture->sizes, 0);
	server = service_server(fixture->service);
	fabric_server_node_range(server, &first, &end);
	offset = end - FABRIC_UNIT_BYTES;
	assert_int_equal(fabric_server_unit_tenant(server, offset), FABRIC_NO_TENANT);
	assert_int_equal(fabric_server_commit(server, 1, offset, FABRIC_UNIT_BYTES), FABRIC_OK);
	service_close(fixture->service, 0, false);

	open_at(fixture, fixture->memory, &fixture->sizes, 0);
	server = service_server(fixture->service);
	assert_int_equal(fabric_server_unit_tenant(server, offset), FABRIC_NO_TENANT);
	for (uint32_t i = 0; i < TREES; i++)
		assert_int_equal(fabric_server_unit_tenant(server, fixture->offsets[i]), 0);
	verify(fixture, &fixture->sizes);
	service_close(fixture->service, 0, true);
}

#define RESIZE_TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		RESIZE_TEST(test_larger),
		RESIZE_TEST(test_smaller),
		RESIZE_TEST(test_in_use),
		RESIZE_TEST(test_trees),
		RESIZE_TEST(test_trees_every_state),
		RESIZE_TEST(test_foreign_marks),
		RESIZE_TEST(test_marks_of_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

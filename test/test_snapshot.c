/*
 * test_snapshot.c
 *		A memory node's snapshot: what comes back, and what is never believed: a damaged one, half of one, one
 *		that was used already.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "support/testing.h"
#include "../sim/files.h"
#include "rdma/memory/set_aside.h"
#include "rdma/memory/memory.h"
#include "rdma/memory/snapshot.h"
#include "support/fabric_process.h"

#define CLUSTER 77u
#define CHANNELS 4u
#define SERVICE_BYTES (256u << 10)
#define NODE_BYTES (2u << 20)

/* Units that are committed: with data, of zeroes alone, and one between them that is not. */
#define UNITS 5u
#define ZERO_UNIT 2u
#define FREE_UNIT 3u

/* A memory node that is served in this process, without clients. */
typedef struct Fixture
{
	char directory[64];
	char memory_path[96];
	char socket_path[96];
	char snapshot[96];
	SetAsideFile kept; /* the last one that kept_count() saw */
	char unfinished[112];
	FabricServerOptions options;
	FabricServer *server;
	FabricMemoryState found;
	char detail[FABRIC_DETAIL_BYTES];
	char log[4096]; /* warnings */
	uint64_t first; /* offset of the first unit */
	uint64_t blocks;
	uint64_t limit; /* of blocks: then it is stopped, or the process dies */
	bool dies;
} Fixture;

static bool
go_on(void *argument, bool saving, uint64_t done, uint64_t total)
{
	Fixture *fixture = argument;

	CHECK(done <= total);
	if (++fixture->blocks < fixture->limit)
		return true;
	if (fixture->dies)
		kill(getpid(), SIGKILL);
	return false;
}

static void
note(void *argument, FabricLogLevel level, const char *message)
{
	Fixture *fixture = argument;
	size_t length = strlen(fixture->log);

	if (level >= FABRIC_LOG_WARNING)
		snprintf(fixture->log + length, sizeof(fixture->log) - length, "%s\n", message);
}

static void
note_kept(void *argument, const SetAsideFile *file)
{
	Fixture *fixture = argument;

	fixture->kept = *file;
}

/* How many files were set aside from this one. */
static uint32_t
kept_count(Fixture *fixture, const char *path)
{
	return set_aside_list(path, note_kept, fixture);
}

static int
fixture_setup(void **state)
{
	static Fixture fixture;

	memset(&fixture, 0, sizeof(fixture));
	CHECK(files_make(fixture.directory, sizeof(fixture.directory), "snapshot"));
	snprintf(fixture.memory_path, sizeof(fixture.memory_path), "%s/memory", fixture.directory);
	snprintf(fixture.socket_path, sizeof(fixture.socket_path), "%s/socket", fixture.directory);
	snprintf(fixture.snapshot, sizeof(fixture.snapshot), "%s/saved", fixture.directory);
	snprintf(fixture.unfinished, sizeof(fixture.unfinished), "%s" SNAPSHOT_NEW, fixture.snapshot);
	fixture.limit = UINT64_MAX;
	fixture.options = (FabricServerOptions){
		.memory_path = fixture.memory_path,
		.socket_path = fixture.socket_path,
		.node_bytes = NODE_BYTES,
		.max_channels = CHANNELS,
		.snapshot_path = fixture.snapshot,
		.snapshot_go_on = go_on,
		.snapshot_argument = &fixture,
		.log = note,
		.log_argument = &fixture,
	};
	*state = &fixture;
	return 0;
}

static int
fixture_teardown(void **state)
{
	Fixture *fixture = *state;

	if (fixture->server != NULL)
		fabric_server_close(fixture->server, 0, false);
	unlink(fixture->snapshot);
	while (kept_count(fixture, fixture->snapshot) > 0)
		unlink(fixture->kept.path);
	while (kept_count(fixture, fixture->memory_path) > 0)
		unlink(fixture->kept.path);
	unlink(fixture->unfinished);
	files_remove(fixture->directory);
	return 0;
}

static FabricStatus
fixture_try_open(Fixture *fixture)
{
	static const FabricService service;
	uint64_t end;
	FabricStatus status =
		fabric_server_open(&fixture->options, &service, &fixture->server, &fixture->found, fixture->detail);

	if (status != FABRIC_OK)
		return status;
	fabric_server_node_range(fixture->server, &fixture->first, &end);
	return fabric_server_service_resize(fixture->server, 0, SERVICE_BYTES);
}

static void
fixture_open(Fixture *fixture, FabricMemoryState expected)
{
	assert_int_equal(fixture_try_open(fixture), FABRIC_OK);
	assert_int_equal(fixture->found, expected);
	/* Before anybody is served. */
	assert_int_not_equal(access(fixture->snapshot, F_OK), 0);
	assert_int_not_equal(access(fixture->unfinished, F_OK), 0);
}

static FabricStatus
fixture_save(Fixture *fixture)
{
	FabricStatus status = fabric_server_save(fixture->server, 0);

	fabric_server_close(fixture->server, 0, false);
	fixture->server = NULL;
	return status;
}

/* What is at a place of the memory, told by the round. */
static uint64_t
content(uint64_t round, uint64_t word)
{
	return (round + 1) * 0x9e3779b97f4a7c15ull ^ word;
}

static uint64_t *
service_area(const Fixture *fixture)
{
	uint64_t bytes;

	return fabric_server_service_area(fixture->server, 0, &bytes);
}

static uint64_t *
unit_words(Fixture *fixture, uint64_t unit)
{
	return fabric_server_node(fixture->server, fixture->first + unit * FABRIC_UNIT_BYTES, FABRIC_UNIT_BYTES);
}

static void
fill(Fixture *fixture, uint64_t round)
{
	uint64_t *area = service_area(fixture);

	for (uint64_t unit = 0; unit < UNITS; unit++)
	{
		if (unit == FREE_UNIT)
			continue;
		assert_int_equal(fabric_server_commit(fixture->server, 0, fixture->first + unit * FABRIC_UNIT_BYTES,
		                                      FABRIC_UNIT_BYTES),
		                 FABRIC_OK);
		for (uint64_t word = 0; unit != ZERO_UNIT && word < FABRIC_UNIT_BYTES / 8; word++)
			unit_words(fixture, unit)[word] = content(round, unit << 32 | word);
	}
	/* A page in the middle is zero, and so is most of the service area. */
	memset(unit_words(fixture, 1) + 1024, 0, MEMORY_PAGE_BYTES);
	area[0] = content(round, 1);
	area[SERVICE_BYTES / 8 - 1] = content(round, 2);
}

static void
check_filled(Fixture *fixture, uint64_t round)
{
	const uint64_t *area = service_area(fixture);
	const uint64_t page = 1024 * 8 / MEMORY_PAGE_BYTES;

	for (uint64_t unit = 0; unit < UNITS; unit++)
	{
		for (uint64_t word = 0; unit != FREE_UNIT && word < FABRIC_UNIT_BYTES / 8; word++)
		{
			bool zero = unit == ZERO_UNIT || (unit == 1 && word * 8 / MEMORY_PAGE_BYTES == page);

			assert_int_equal(unit_words(fixture, unit)[word], zero ? 0 : content(round, unit << 32 | word));
		}
	}
	assert_int_equal(area[0], content(round, 1));
	for (uint64_t word = 1; word < SERVICE_BYTES / 8 - 1; word++)
		assert_int_equal(area[word], 0);
	assert_int_equal(area[SERVICE_BYTES / 8 - 1], content(round, 2));
}

static uint64_t
file_bytes(const char *path)
{
	struct stat file;

	assert_int_equal(stat(path, &file), 0);
	return (uint64_t) file.st_size;
}

/* The machine was restarted. */
static void
lose_memory(const Fixture *fixture)
{
	assert_int_equal(unlink(fixture->memory_path), 0);
}

/* A snapshot of the round; nothing else is left. */
static void
make_snapshot(Fixture *fixture, uint64_t round)
{
	fixture_open(fixture, FABRIC_MEMORY_NEW);
	fill(fixture, round);
	assert_int_equal(fixture_save(fixture), FABRIC_OK);
	lose_memory(fixture);
}

static void *
read_file(const char *path, uint64_t bytes)
{
	int descriptor = open(path, O_RDONLY | O_CLOEXEC);
	void *copy = malloc(bytes);

	assert_true(descriptor >= 0 && copy != NULL);
	assert_int_equal(read(descriptor, copy, bytes), bytes);
	close(descriptor);
	return copy;
}

/* Fails unless the file begins with these bytes. */
static void
assert_file(const char *path, const void *expected, uint64_t bytes)
{
	void *copy = read_file(path, bytes);

	assert_memory_equal(copy, expected, bytes);
	free(copy);
}

static void
write_file(const char *path, const void *data, uint64_t bytes)
{
	int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(descriptor >= 0);
	assert_int_equal(write(descriptor, data, bytes), bytes);
	close(descriptor);
}

/*
 * What was saved comes back, under the same identity, and so again and again; memory that is free is not in
 * the file.
 */
static void
test_round_trip(void **state)
{
	Fixture *fixture = *state;
	uint64_t uuid[2], again[2];
	uint64_t generation;

	fixture_open(fixture, FABRIC_MEMORY_NEW);
	fabric_server_uuid(fixture->server, uuid);
	generation = fabric_server_generation(fixture->server);
	for (uint64_t round = 0; round < 3; round++)
	{
		struct stat before, file;

		fill(fixture, round);
		assert_int_equal(stat(fixture->memory_path, &before), 0);
		assert_int_equal(fixture_save(fixture), FABRIC_OK);
		/* Three units with data, both ends of the service area, instances and channels. */
		assert_in_range(file_bytes(fixture->snapshot), 3 * FABRIC_UNIT_BYTES, 4 * FABRIC_UNIT_BYTES);
		assert_int_not_equal(access(fixture->unfinished, F_OK), 0);
		lose_memory(fixture);
		fixture_open(fixture, FABRIC_MEMORY_LOADED);
		/*
		 * Pages are taken as they were: for a unit of zeroes too, and for one that is free not. A look would
		 * take them.
		 */
		assert_int_equal(stat(fixture->memory_path, &file), 0);
		assert_int_equal(file.st_blocks, before.st_blocks);
		check_filled(fixture, round);
		fabric_server_uuid(fixture->server, again);
		assert_memory_equal(uuid, again, sizeof(uuid));
		assert_int_equal(fabric_server_generation(fixture->server), generation + round + 1);
	}
	assert_string_equal(fixture->log, "");
}

/* The memory outlived the daemon: it is used, and the snapshot goes, as does a half one. */
static void
test_memory_kept(void **state)
{
	static const uint8_t half[SNAPSHOT_HEADER_BYTES + 100] = {[SNAPSHOT_HEADER_BYTES] = 1};
	Fixture *fixture = *state;

	fixture_open(fixture, FABRIC_MEMORY_NEW);
	fill(fixture, 0);
	assert_int_equal(fixture_save(fixture), FABRIC_OK);
	write_file(fixture->unfinished, half, sizeof(half));
	fixture_open(fixture, FABRIC_MEMORY_CLEAN);
	check_filled(fixture, 0);
	assert_int_equal(kept_count(fixture, fixture->snapshot), 0);
}

/* A snapshot of other memory, or of another moment of this, is not what the memory has: it is kept. */
static void
test_other_snapshot(void **state)
{
	Fixture *fixture = *state;
	uint64_t bytes;
	uint8_t *older;

	fixture_open(fixture, FABRIC_MEMORY_NEW);
	fill(fixture, 0);
	assert_int_equal(fixture_save(fixture), FABRIC_OK);
	bytes = file_bytes(fixture->snapshot);
	older = read_file(fixture->snapshot, bytes);
	fixture_open(fixture, FABRIC_MEMORY_CLEAN);
	fill(fixture, 1);
	assert_int_equal(fixture_save(fixture), FABRIC_OK);
	write_file(fixture->snapshot, older, bytes);
	fixture_open(fixture, FABRIC_MEMORY_CLEAN);
	check_filled(fixture, 1);
	assert_int_equal(kept_count(fixture, fixture->snapshot), 1);
	assert_string_equal(fixture->kept.why, "other-memory");
	assert_file(fixture->kept.path, older, bytes);
	free(older);
}

/* What is no snapshot is not ours to touch: at the start, at its end, and beside it. */
static void
test_strange_files(void **state)
{
	static const char text[] = "# settings of something else\n";
	Fixture *fixture = *state;

	write_file(fixture->snapshot, text, sizeof(text));
	assert_int_equal(fixture_try_open(fixture), FABRIC_DENIED);
	assert_non_null(strstr(fixture->detail, "is not touched"));
	assert_file(fixture->snapshot, text, sizeof(text));
	unlink(fixture->snapshot);
	assert_int_equal(symlink(fixture->memory_path, fixture->snapshot), 0);
	assert_int_equal(fixture_try_open(fixture), FABRIC_UNREACHABLE);
	unlink(fixture->snapshot);
	fixture_open(fixture, FABRIC_MEMORY_NEW);
	fill(fixture, 0);
	/* They come while the daemon runs. */
	write_file(fixture->snapshot, text, sizeof(text));
	assert_int_equal(fixture_save(fixture), FABRIC_DENIED);
	assert_file(fixture->snapshot, text, sizeof(text));
	unlink(fixture->snapshot);
	fixture_open(fixture, FABRIC_MEMORY_CLEAN);
	write_file(fixture->unfinished, text, sizeof(text));
	assert_int_equal(fixture_save(fixture), FABRIC_EXISTS);
	assert_file(fixture->unfinished, text, sizeof(text));
	/* Nor does the start remove it. */
	assert_int_equal(fixture_try_open(fixture), FABRIC_OK);
	check_filled(fixture, 0);
	assert_file(fixture->unfinished, text, sizeof(text));
}

/* Memory of another boot is not believed: the snapshot is. */
static void
test_other_boot(void **state)
{
	Fixture *fixture = *state;
	char boot_id[MEMORY_BOOT_ID_BYTES] = "another boot";
	int memory;

	fixture_open(fixture, FABRIC_MEMORY_NEW);
	fill(fixture, 0);
	assert_int_equal(fixture_save(fixture), FABRIC_OK);
	memory = open(fixture->memory_path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(memory, boot_id, sizeof(boot_id), offsetof(MemoryHeader, boot_id)),
	                 sizeof(boot_id));
	close(memory);
	fixture_open(fixture, FABRIC_MEMORY_LOADED);
	check_filled(fixture, 0);
	assert_int_equal(kept_count(fixture, fixture->memory_path), 1);
	assert_string_equal(fixture->kept.why, "other-build-or-boot");
}

/* Without a snapshot all is as it was. */
static void
test_none(void **state)
{
	Fixture *fixture = *state;

	fixture->options.snapshot_path = NULL;
	assert_int_equal(fixture_try_open(fixture), FABRIC_OK);
	fill(fixture, 0);
	assert_int_equal(fixture_save(fixture), FABRIC_NOT_SUPPORTED);
	assert_int_not_equal(access(fixture->snapshot, F_OK), 0);
	lose_memory(fixture);
	assert_int_equal(fixture_try_open(fixture), FABRIC_OK);
	assert_int_equal(fixture->found, FABRIC_MEMORY_NEW);
}

/*
 * Opens over a snapshot that is not to be believed: there is new memory, the file is kept aside, and the log
 * says why.
 */
static void
expect_refused(Fixture *fixture, const char *why)
{
	fixture->log[0] = '\0';
	fixture_open(fixture, FABRIC_MEMORY_NEW);
	assert_int_equal(kept_count(fixture, fixture->snapshot), 1);
	assert_int_equal(
		set_aside_remove(fixture->memory_path, SET_ASIDE_MEMORY, fixture->kept.path, fixture->detail),
		FABRIC_NOT_FOUND);
	assert_int_equal(
		set_aside_remove(fixture->snapshot, SET_ASIDE_SNAPSHOT, fixture->snapshot, fixture->detail),
		FABRIC_NOT_FOUND);
	assert_int_equal(
		set_aside_remove(fixture->snapshot, SET_ASIDE_SNAPSHOT, fixture->kept.path, fixture->detail),
		FABRIC_OK);
	assert_int_equal(kept_count(fixture, fixture->snapshot), 0);
	assert_non_null(strstr(fixture->log, "refused"));
	if (strstr(fixture->log, why) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", why, fixture->log);
	for (uint64_t word = 0; word < SERVICE_BYTES / 8; word++)
		assert_int_equal(service_area(fixture)[word], 0);
	fabric_server_close(fixture->server, 0, true);
	fixture->server = NULL;
}

/* Every byte of the file counts but those behind the header that mean nothing, and so does its length. */
static void
test_damage(void **state)
{
	Fixture *fixture = *state;
	uint64_t bytes;
	uint8_t *good;

	make_snapshot(fixture, 0);
	bytes = file_bytes(fixture->snapshot);
	good = read_file(fixture->snapshot, bytes);
	for (uint64_t at = 0; at < bytes; at += at < sizeof(SnapshotHeader) ? 5 : 911)
	{
		uint8_t *bad;

		if (at >= sizeof(SnapshotHeader) && at < SNAPSHOT_HEADER_BYTES)
			at = SNAPSHOT_HEADER_BYTES;
		bad = malloc(bytes);
		memcpy(bad, good, bytes);
		bad[at] ^= (uint8_t) (1u << at % 8);
		write_file(fixture->snapshot, bad, bytes);
		free(bad);
		/* Without our magic it is nobody knows whose. */
		if (at < 8)
			assert_int_equal(fixture_try_open(fixture), FABRIC_DENIED);
		else
			expect_refused(fixture, at < 16 ? "format version" : "");
	}
	/* The first block, field by field. */
	for (uint64_t at = SNAPSHOT_HEADER_BYTES; at < SNAPSHOT_HEADER_BYTES + sizeof(SnapshotBlock); at++)
	{
		good[at] ^= 4;
		write_file(fixture->snapshot, good, bytes);
		good[at] ^= 4;
		expect_refused(fixture, "");
	}
	for (uint64_t length = 0; length < bytes; length += length < SNAPSHOT_HEADER_BYTES ? 1021 : 40009)
	{
		write_file(fixture->snapshot, good, length);
		expect_refused(fixture, length < sizeof(SnapshotHeader) ? "too short" : "should have");
	}
	good = realloc(good, bytes + 1);
	good[bytes] = 0;
	write_file(fixture->snapshot, good, bytes + 1);
	expect_refused(fixture, "should have");
	/* And whole, it is good. */
	write_file(fixture->snapshot, good, bytes);
	fixture_open(fixture, FABRIC_MEMORY_LOADED);
	check_filled(fixture, 0);
	free(good);
}

/* Blocks that are whole, but of another snapshot of the same memory. */
static void
test_mixture(void **state)
{
	Fixture *fixture = *state;
	uint64_t bytes;
	uint8_t *first, *second;

	make_snapshot(fixture, 0);
	bytes = file_bytes(fixture->snapshot);
	first = read_file(fixture->snapshot, bytes);
	unlink(fixture->snapshot);
	make_snapshot(fixture, 0);
	assert_int_equal(file_bytes(fixture->snapshot), bytes);
	second = read_file(fixture->snapshot, bytes);
	memcpy(second + bytes / 2, first + bytes / 2, bytes - bytes / 2);
	write_file(fixture->snapshot, second, bytes);
	expect_refused(fixture, "block");
	free(first);
	free(second);
}

/* The log's line names the file and what it was kept as, however long both are. */
static void
test_log_names_long_paths(void **state)
{
	const uint8_t zeroes[SNAPSHOT_HEADER_BYTES] = {0};
	Fixture *fixture = *state;
	char directory[512], snapshot[sizeof(directory) + 8];

	snprintf(directory, sizeof(directory), "%s/%0200d", fixture->directory, 0);
	assert_int_equal(mkdir(directory, 0700), 0);
	snprintf(snapshot, sizeof(snapshot), "%s/saved", directory);
	fixture->options.snapshot_path = snapshot;
	write_file(snapshot, zeroes, sizeof(zeroes));
	fixture_open(fixture, FABRIC_MEMORY_NEW);
	assert_int_equal(kept_count(fixture, snapshot), 1);
	assert_non_null(strstr(fixture->log, fixture->kept.path));
	assert_non_null(strstr(fixture->log, "must be rebuilt\n"));
	unlink(fixture->kept.path);
	rmdir(directory);
}

/* No file is ever thrown away for another one, and they do not fill the disk either: at the bound nothing begins. */
static void
test_kept_are_bounded(void **state)
{
	const uint8_t zeroes[SNAPSHOT_HEADER_BYTES] = {0};
	Fixture *fixture = *state;

	for (uint32_t i = 0; i < SET_ASIDE_MOST; i++)
	{
		assert_int_equal(kept_count(fixture, fixture->snapshot), i);
		write_file(fixture->snapshot, zeroes, sizeof(zeroes));
		fixture_open(fixture, FABRIC_MEMORY_NEW);
		fabric_server_close(fixture->server, 0, true);
		fixture->server = NULL;
	}
	write_file(fixture->snapshot, zeroes, sizeof(zeroes));
	assert_int_equal(fixture_try_open(fixture), FABRIC_UNREACHABLE);
	assert_non_null(strstr(fixture->detail, "remove some"));
	assert_int_equal(access(fixture->snapshot, F_OK), 0);
	assert_int_equal(kept_count(fixture, fixture->snapshot), SET_ASIDE_MOST);
	assert_int_equal(
		set_aside_remove(fixture->snapshot, SET_ASIDE_SNAPSHOT, fixture->kept.path, fixture->detail),
		FABRIC_OK);
	fixture_open(fixture, FABRIC_MEMORY_NEW);
	assert_int_equal(kept_count(fixture, fixture->snapshot), SET_ASIDE_MOST);
}

/* Memory of other sizes than are asked for: it gets these, and is not smaller than what is in use. */
static void
test_other_sizes(void **state)
{
	const uint64_t bytes[] = {2 * NODE_BYTES, NODE_BYTES / 2, NODE_BYTES, FABRIC_UNIT_BYTES};
	const uint32_t channels[] = {CHANNELS, CHANNELS + 40, CHANNELS - 1, 1};
	Fixture *fixture = *state;
	uint64_t node_bytes;
	uint32_t max_channels;

	for (uint32_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++)
	{
		fixture->options.node_bytes = NODE_BYTES;
		fixture->options.max_channels = CHANNELS;
		make_snapshot(fixture, i);
		fixture->options.node_bytes = bytes[i];
		fixture->options.max_channels = channels[i];
		fixture_open(fixture, FABRIC_MEMORY_LOADED);
		check_filled(fixture, i);
		fabric_server_sizes(fixture->server, &node_bytes, &max_channels);
		assert_int_equal(node_bytes,
		                 bytes[i] < UNITS * FABRIC_UNIT_BYTES ? UNITS * FABRIC_UNIT_BYTES : bytes[i]);
		assert_int_equal(max_channels, channels[i]);
		assert_int_equal(fabric_server_commit(fixture->server, 0,
		                                      fixture->first + node_bytes - FABRIC_UNIT_BYTES,
		                                      FABRIC_UNIT_BYTES),
		                 FABRIC_OK);
		fabric_server_close(fixture->server, 0, true);
		fixture->server = NULL;
	}
}

/*
 * Saving ends early, at every block and for want of room at many places: no snapshot, and the memory is what
 * it was.
 */
static void
test_save_broken_off(void **state)
{
	Fixture *fixture = *state;
	const struct rlimit *none = &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
	uint64_t blocks, bytes;

	make_snapshot(fixture, 0);
	blocks = fixture->blocks;
	bytes = file_bytes(fixture->snapshot);
	fixture_open(fixture, FABRIC_MEMORY_LOADED);
	for (fixture->limit = 1; fixture->limit <= blocks; fixture->limit++)
	{
		fixture->blocks = 0;
		assert_int_equal(fixture_save(fixture), FABRIC_STOPPED);
		assert_int_not_equal(access(fixture->unfinished, F_OK), 0);
		fixture_open(fixture, FABRIC_MEMORY_CLEAN);
		check_filled(fixture, 0);
	}
	fixture->limit = UINT64_MAX;
	signal(SIGXFSZ, SIG_IGN);
	for (uint64_t room = 0; room < bytes; room += 5003)
	{
		fixture->log[0] = '\0';
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){room, RLIM_INFINITY}), 0);
		assert_int_equal(fixture_save(fixture), FABRIC_NO_MEMORY);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, none), 0);
		assert_non_null(strstr(fixture->log, "not saved"));
		assert_int_not_equal(access(fixture->unfinished, F_OK), 0);
		fixture_open(fixture, FABRIC_MEMORY_CLEAN);
		check_filled(fixture, 0);
	}
}

/* A file system without room is seen before anything is written. */
static void
test_no_room(void **state)
{
	Fixture *fixture = *state;
	char small[96], path[112];

	fixture_open(fixture, FABRIC_MEMORY_NEW);
	fill(fixture, 0);
	assert_int_equal(fixture_save(fixture), FABRIC_OK);
	snprintf(small, sizeof(small), "%s/small", fixture->directory);
	assert_int_equal(mkdir(small, 0700), 0);
	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", small, "tmpfs", 0, "size=16m") != 0)
	{
		rmdir(small);
		skip();
	}
	snprintf(path, sizeof(path), "%s/saved", small);
	fixture_open(fixture, FABRIC_MEMORY_CLEAN);
	fabric_server_close(fixture->server, 0, false);
	fixture->options.snapshot_path = path;
	assert_int_equal(fixture_try_open(fixture), FABRIC_OK);
	assert_int_equal(fixture_save(fixture), FABRIC_NO_MEMORY);
	assert_non_null(strstr(fixture->log, "MB of the file system are free"));
	assert_int_equal(umount2(small, MNT_DETACH), 0);
	assert_int_equal(rmdir(small), 0);
}

/* The process dies at every block of saving: there is no snapshot then, and what is left of it goes. */
static void
test_save_killed(void **state)
{
	Fixture *fixture = *state;
	uint64_t blocks;

	make_snapshot(fixture, 0);
	blocks = fixture->blocks;
	fixture_open(fixture, FABRIC_MEMORY_LOADED);
	fabric_server_close(fixture->server, 0, true);
	fixture->server = NULL;
	for (uint64_t limit = 1; limit <= blocks; limit++)
	{
		pid_t child = start_child();

		if (child == 0)
		{
			CHECK(fixture_try_open(fixture) == FABRIC_OK);
			fill(fixture, 1);
			fixture->blocks = 0;
			fixture->limit = limit;
			fixture->dies = true;
			(void) fixture_save(fixture);
			_exit(1);
		}
		assert_int_equal(wait_for_child(child), 128 + SIGKILL);
		assert_int_equal(access(fixture->unfinished, F_OK), 0);
		lose_memory(fixture);
		fixture_open(fixture, FABRIC_MEMORY_NEW);
		fabric_server_close(fixture->server, 0, true);
		fixture->server = NULL;
	}
}

/*
 * The process dies, or is stopped, at every block of loading: half of the memory is not believed, and the
 * snapshot is.
 */
static void
test_load_broken_off(void **state)
{
	Fixture *fixture = *state;
	uint64_t blocks;

	make_snapshot(fixture, 0);
	fixture->blocks = 0;
	fixture_open(fixture, FABRIC_MEMORY_LOADED);
	blocks = fixture->blocks;
	assert_int_equal(fixture_save(fixture), FABRIC_OK);
	lose_memory(fixture);
	for (uint64_t limit = 1; limit <= blocks; limit++)
	{
		pid_t child = start_child();

		if (child == 0)
		{
			fixture->blocks = 0;
			fixture->limit = limit;
			fixture->dies = true;
			(void) fixture_try_open(fixture);
			_exit(1);
		}
		assert_int_equal(wait_for_child(child), 128 + SIGKILL);
		assert_int_equal(access(fixture->snapshot, F_OK), 0);
		fixture->blocks = 0;
		fixture->limit = limit;
		assert_int_equal(fixture_try_open(fixture), FABRIC_STOPPED);
		assert_int_equal(access(fixture->snapshot, F_OK), 0);
		assert_int_not_equal(access(fixture->memory_path, F_OK), 0);
	}
	fixture->limit = UINT64_MAX;
	fixture_open(fixture, FABRIC_MEMORY_LOADED);
	check_filled(fixture, 0);
}

/* No room for the memory: the daemon does not start, and nothing is lost. */
static void
test_load_without_room(void **state)
{
	Fixture *fixture = *state;
	uint64_t bytes;

	make_snapshot(fixture, 0);
	bytes = file_bytes(fixture->snapshot);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){bytes, RLIM_INFINITY}), 0);
	assert_int_equal(fixture_try_open(fixture), FABRIC_NO_MEMORY);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}), 0);
	assert_int_equal(access(fixture->snapshot, F_OK), 0);
	fixture_open(fixture, FABRIC_MEMORY_LOADED);
	check_filled(fixture, 0);
}

/* A snapshot that another daemon reads is not ours. */
static void
test_in_use(void **state)
{
	Fixture *fixture = *state;
	SnapshotFile file;
	char detail[FABRIC_DETAIL_BYTES];

	make_snapshot(fixture, 0);
	assert_int_equal(snapshot_open(fixture->snapshot, &file, detail), FABRIC_OK);
	assert_int_equal(fixture_try_open(fixture), FABRIC_EXISTS);
	snapshot_close(&file);
	fixture_open(fixture, FABRIC_MEMORY_LOADED);
}

/*
 * A pipe stands where the snapshot is to be written, with a reader and without: it is not saved, and the memory stays; so does
 * the pipe.
 */
static void
test_pipe(void **state)
{
	Fixture *fixture = *state;

	fixture_open(fixture, FABRIC_MEMORY_NEW);
	fill(fixture, 0);
	for (int i = 0; i < 2; i++)
	{
		int reader = -1;

		assert_int_equal(mkfifo(fixture->unfinished, 0600), 0);
		if (i == 1)
			reader = open(fixture->unfinished, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		assert_int_not_equal(fixture_save(fixture), FABRIC_OK);
		assert_int_not_equal(access(fixture->snapshot, F_OK), 0);
		if (reader >= 0)
			close(reader);
		assert_int_equal(fixture_try_open(fixture), FABRIC_OK);
		assert_int_equal(fixture->found, FABRIC_MEMORY_CLEAN);
		check_filled(fixture, 0);
		assert_int_equal(unlink(fixture->unfinished), 0);
	}
}

/*
 * Clients of before come back only when their instance has attached anew, over memory that was loaded and
 * over memory that was kept: for there may be a copy of the snapshot, and an instance knows its age by the
 * last attach.  Its channels and lock words are what they were.  Its readers wait for that, too.
 */
static void
test_attached_anew(void **state)
{
	const FabricOptions as_reader = {.reader = true};
	FabricProcess node;
	TestChannel channel;
	uint64_t word = 0x123456789abcull;
	uint64_t area;
	uint32_t incarnation;

	fabric_process_prepare(&node, SMALL_NODE_BYTES, SMALL_NODE_CHANNELS);
	snprintf(node.snapshot_path, sizeof(node.snapshot_path), "%.100s/saved", node.directory);
	fabric_process_listen(&node, false);
	fabric_process_start(&node);
	area = service_info(node.address).first_unit;
	incarnation = cluster_attach(node.address, CLUSTER);
	assert_int_equal(service_commit(node.address, area, FABRIC_UNIT_BYTES), FABRIC_OK);
	for (int round = 0; round < 3; round++)
	{
		FabricOp lock = op_fetch_add(FABRIC_LOCKS, 8, 1);

		channel_open(&channel, node.address, CLUSTER, incarnation);
		channel_write(&channel, area, &word, sizeof(word));
		assert_int_equal(fabric_execute(channel.endpoint, &lock, 1), FABRIC_OK);
		assert_int_equal(lock.result, round);
		channel_close(&channel);
		fabric_process_stop(&node, SIGTERM);
		assert_int_equal(access(node.snapshot_path, F_OK), 0);
		if (round != 1)
			unlink(node.memory_path);
		fabric_process_start(&node);
		assert_int_equal(service_info(node.address).memory_state,
		                 round != 1 ? FABRIC_MEMORY_LOADED : FABRIC_MEMORY_CLEAN);
		assert_int_equal(channel_try_open(&channel, node.address, CLUSTER, incarnation, NULL), FABRIC_FENCED);
		channel_close(&channel);
		assert_int_equal(channel_try_open(&channel, node.network_address, CLUSTER, 0, &as_reader),
		                 FABRIC_FENCED);
		incarnation = cluster_attach(node.address, CLUSTER);
		assert_int_equal(channel_try_open(&channel, node.network_address, CLUSTER, 0, &as_reader), FABRIC_OK);
		word = 0;
		channel_read(&channel, area, &word, sizeof(word));
		assert_int_equal(word, 0x123456789abcull);
		channel_close(&channel);
		word = 0;
		channel_open(&channel, node.address, CLUSTER, incarnation);
		channel_read(&channel, area, &word, sizeof(word));
		assert_int_equal(word, 0x123456789abcull);
		channel_close(&channel);
	}
	/* After a death nobody can have a snapshot of what is there. */
	fabric_process_stop(&node, SIGKILL);
	fabric_process_start(&node);
	channel_open(&channel, node.address, CLUSTER, incarnation);
	channel_close(&channel);
	assert_int_equal(channel_try_open(&channel, node.network_address, CLUSTER, 0, &as_reader), FABRIC_OK);
	channel_close(&channel);
	fabric_process_remove(&node);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_round_trip, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_memory_kept, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_other_snapshot, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_strange_files, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_log_names_long_paths, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_kept_are_bounded, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_other_boot, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_none, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_damage, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_mixture, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_other_sizes, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_save_broken_off, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_save_killed, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_load_broken_off, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_load_without_room, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_in_use, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(test_pipe, fixture_setup, fixture_teardown),
		cmocka_unit_test(test_attached_anew),
		/* The last: it leaves the process with mounts of its own. */
		cmocka_unit_test_setup_teardown(test_no_room, fixture_setup, fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

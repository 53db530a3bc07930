/*
 * test_server.c
 *		The memory node's server and its memory segment: opening and keeping, pages, strange clients.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include "support/testing.h"
#include "rdma/base/control.h"
#include "rdma/memory/set_aside.h"
#include "rdma/memory/memory.h"
#include "support/fabric_process.h"

#define CLUSTER 99u

static FabricProcess node; /* of the test that runs */

static int
stop_node(void **state)
{
	char small[192];

	/* Where test_full_file_system failed, its file system is still there. */
	snprintf(small, sizeof(small), "%.150s/small", node.directory);
	umount2(small, MNT_DETACH);
	rmdir(small);
	return fabric_process_teardown(state);
}

static uint64_t
blocks_of(const char *path)
{
	struct stat file;

	assert_int_equal(stat(path, &file), 0);
	return (uint64_t) file.st_blocks * 512;
}

static void
test_states_of_memory(void **state)
{
	uint64_t uuid[2];
	TestChannel channel;
	uint32_t incarnation = cluster_attach(node.address, CLUSTER);
	uint64_t area = service_info(node.address).first_unit;
	uint64_t word = 5;

	assert_int_equal(service_info(node.address).memory_state, FABRIC_MEMORY_NEW);
	assert_int_equal(service_info(node.address).generation, 1);
	assert_int_equal(service_commit(node.address, area, FABRIC_UNIT_BYTES), FABRIC_OK);
	channel_open(&channel, node.address, CLUSTER, incarnation);
	memcpy(uuid, fabric_capabilities(channel.endpoint)->node_uuid, sizeof(uuid));
	channel_write(&channel, area, &word, 8);
	channel_close(&channel);

	/* A clean end: kept, clean. */
	fabric_process_stop(&node, SIGTERM);
	fabric_process_start(&node);
	assert_int_equal(service_info(node.address).memory_state, FABRIC_MEMORY_CLEAN);
	assert_int_equal(service_info(node.address).generation, 2);
	assert_int_equal(service_info(node.address).service_word, 1);
	channel_open(&channel, node.address, CLUSTER, incarnation);
	channel_read(&channel, area, &word, 8);
	assert_true(word == 5);
	assert_memory_equal(uuid, fabric_capabilities(channel.endpoint)->node_uuid, sizeof(uuid));

	/* Killed with a channel open: kept, recovered, the channel given to recover(). */
	fabric_process_stop(&node, SIGKILL);
	fabric_process_start(&node);
	assert_int_equal(service_info(node.address).memory_state, FABRIC_MEMORY_RECOVERED);
	assert_int_equal(service_info(node.address).recovered, 1);
	assert_int_equal(service_info(node.address).recovered_inside, 0);
	{
		FabricOp op = op_write(area, &word, 8);

		assert_int_equal(fabric_execute(channel.endpoint, &op, 1), FABRIC_FENCED);
	}
	channel_close(&channel);

	/* A channel that is open and holds nothing loses nothing: clean. */
	channel_open(&channel, node.address, CLUSTER, incarnation);
	fabric_process_stop(&node, SIGTERM);
	fabric_process_start(&node);
	assert_int_equal(service_info(node.address).memory_state, FABRIC_MEMORY_CLEAN);
	channel_close(&channel);

	/* Gone: made anew, with a new identity; the instance is unknown there. */
	fabric_process_stop(&node, SIGTERM);
	assert_int_equal(unlink(node.memory_path), 0);
	fabric_process_start(&node);
	assert_int_equal(service_info(node.address).memory_state, FABRIC_MEMORY_NEW);
	assert_int_equal(channel_try_open(&channel, node.address, CLUSTER, incarnation, NULL), FABRIC_FENCED);
	incarnation = cluster_attach(node.address, CLUSTER);
	channel_open(&channel, node.address, CLUSTER, incarnation);
	assert_memory_not_equal(uuid, fabric_capabilities(channel.endpoint)->node_uuid, sizeof(uuid));
	channel_close(&channel);
}

/* Channels of one instance. */
typedef struct Crowd
{
	TestChannel channels[32];
	uint32_t count;
} Crowd;

/* Opens so many channels at once, and not one more. */
static void
crowd_open(Crowd *crowd, uint32_t incarnation, uint32_t count)
{
	TestChannel another;

	crowd->count = count;
	for (uint32_t i = 0; i < count; i++)
		channel_open(&crowd->channels[i], node.address, CLUSTER, incarnation);
	assert_int_equal(channel_try_open(&another, node.address, CLUSTER, incarnation, NULL), FABRIC_NO_MEMORY);
}

static void
crowd_close(Crowd *crowd)
{
	for (uint32_t i = 0; i < crowd->count; i++)
		channel_close(&crowd->channels[i]);
	crowd->count = 0;
}

/* A unit can be taken, written by a client and read, and is zero when it is taken again. */
static void
last_unit_is_usable(uint32_t incarnation, uint64_t offset)
{
	uint64_t request[2] = {offset, FABRIC_UNIT_BYTES};
	uint64_t word = 5;
	TestChannel channel;

	assert_int_equal(service_commit(node.address, offset, FABRIC_UNIT_BYTES), FABRIC_OK);
	channel_open(&channel, node.address, CLUSTER, incarnation);
	channel_read(&channel, offset, &word, 8);
	assert_int_equal(word, 0);
	word = 6;
	channel_write(&channel, offset, &word, 8);
	channel_read(&channel, offset, &word, 8);
	assert_int_equal(word, 6);
	assert_int_equal(fabric_call(channel.endpoint, SERVICE_RELEASE, request, sizeof(request), NULL, NULL),
	                 FABRIC_OK);
	channel_close(&channel);
}

/*
 * Other sizes, after a clean end and after a kill in the middle of a WRITE: the content stays, what died is recovered by the
 * sizes that it had, the new ones count, and what is in use is not cut off.
 */
static void
test_other_sizes(void **state)
{
	const uint64_t units[] = {64, 256, 16, 2, 32};
	const uint32_t channels[] = {4, 20, 5, 30, 3};
	TestChannel channel;
	uint32_t incarnation;
	uint64_t area, word = 77, used = 1, uuid[2];
	static Crowd crowd;

	fabric_process_stop(&node, SIGTERM);
	node.node_bytes = units[0] * FABRIC_UNIT_BYTES;
	node.max_channels = channels[0];
	unlink(node.memory_path);
	fabric_process_start(&node);
	area = service_info(node.address).first_unit;
	incarnation = cluster_attach(node.address, CLUSTER);
	/* The first four units are in use, the last of them written to. */
	assert_int_equal(service_commit(node.address, area, 4 * FABRIC_UNIT_BYTES), FABRIC_OK);
	channel_open(&channel, node.address, CLUSTER, incarnation);
	channel_write(&channel, area + 3 * FABRIC_UNIT_BYTES, &word, 8);
	memcpy(uuid, fabric_capabilities(channel.endpoint)->node_uuid, sizeof(uuid));
	channel_close(&channel);
	crowd_open(&crowd, incarnation, channels[0]);
	for (size_t i = 1; i < sizeof(units) / sizeof(units[0]); i++)
	{
		bool killed = i % 2 == 0;
		uint64_t kept = units[i] < 4 ? 4 : units[i];

		if (!killed)
			crowd_close(&crowd);
		fabric_process_stop(&node, killed ? SIGKILL : SIGTERM);
		crowd_close(&crowd);
		node.node_bytes = units[i] * FABRIC_UNIT_BYTES;
		node.max_channels = channels[i];
		fabric_process_start(&node);
		assert_int_equal(service_info(node.address).memory_state,
		                 killed ? FABRIC_MEMORY_RECOVERED : FABRIC_MEMORY_CLEAN);
		assert_int_equal(service_info(node.address).recovered, killed ? channels[i - 1] : 0);
		assert_int_equal(service_info(node.address).end - area, kept * FABRIC_UNIT_BYTES);
		assert_int_equal(service_info(node.address).service_word, used);
		/* What lies behind the old end can be used up to the new one, and is given back. */
		if (kept > 4)
		{
			last_unit_is_usable(incarnation, area + (kept - 1) * FABRIC_UNIT_BYTES);
			used++;
		}
		assert_int_equal(service_commit(node.address, area + kept * FABRIC_UNIT_BYTES, FABRIC_UNIT_BYTES),
		                 FABRIC_RANGE);
		used++;
		channel_open(&channel, node.address, CLUSTER, incarnation);
		assert_memory_equal(uuid, fabric_capabilities(channel.endpoint)->node_uuid, sizeof(uuid));
		channel_read(&channel, area + 3 * FABRIC_UNIT_BYTES, &word, 8);
		assert_int_equal(word, 77);
		channel_close(&channel);
		crowd_open(&crowd, incarnation, channels[i]);
	}
	crowd_close(&crowd);
}

/* Takes or gives back the lock word at 0: from `compare` to `operand`. */
static void
swap_lock(TestChannel *channel, uint64_t compare, uint64_t operand)
{
	FabricOp op = op_compare_swap(FABRIC_LOCKS, 0, compare, operand);

	assert_int_equal(fabric_execute(channel->endpoint, &op, 1), FABRIC_OK);
	assert_true(op.result == compare);
}

/*
 * After SIGTERM a client that holds a lock is told, served until it has given it up, and cut off then; nobody new is let
 * in.  A lock that is kept past the deadline, or a word of one who is gone, decide whether that was a clean end.
 */
static void
test_drain(void **state)
{
	TestChannel channel, other;
	uint32_t incarnation = cluster_attach(node.address, CLUSTER);
	uint64_t word;

	fabric_process_stop(&node, SIGTERM);
	node.drain_ms = 60000;
	fabric_process_start(&node);
	channel_open(&channel, node.address, CLUSTER, incarnation);
	word = fabric_lock_word(fabric_capabilities(channel.endpoint)->instance, incarnation, 1);
	swap_lock(&channel, 0, word);
	assert_false(fabric_is_draining(channel.endpoint));
	fabric_process_signal(&node, SIGTERM);
	for (int i = 0; i < 3000 && !fabric_is_draining(channel.endpoint); i++)
		sleep_ms(10);
	assert_true(fabric_is_draining(channel.endpoint));
	assert_int_equal(channel_try_open(&other, node.address, CLUSTER, incarnation, NULL), FABRIC_DRAINING);
	assert_int_equal(channel_try_open(&other, node.address, CLUSTER, 0, NULL), FABRIC_DRAINING);
	swap_lock(&channel, word, 0);
	fabric_process_wait(&node, SIGTERM);
	channel_close(&channel);
	node.drain_ms = 100;
	fabric_process_start(&node);
	assert_int_equal(service_info(node.address).memory_state, FABRIC_MEMORY_CLEAN);

	/* Kept too long. */
	channel_open(&channel, node.address, CLUSTER, incarnation);
	assert_false(fabric_is_draining(channel.endpoint));
	swap_lock(&channel, 0, word);
	fabric_process_stop(&node, SIGTERM);
	channel_close(&channel);
	fabric_process_start(&node);
	assert_int_equal(service_info(node.address).memory_state, FABRIC_MEMORY_RECOVERED);

	/* The word of an instance that is not here: nobody will give it back, and nobody waits for it. */
	node.drain_ms = 5000;
	fabric_process_stop(&node, SIGTERM);
	fabric_process_start(&node);
	assert_int_equal(service_info(node.address).memory_state, FABRIC_MEMORY_CLEAN);
	fabric_process_stop(&node, SIGTERM);
	fabric_process_start(&node);
	assert_int_equal(service_info(node.address).memory_state, FABRIC_MEMORY_CLEAN);
}

/* No reader can give up a lock: the word of an instance of which only readers are here is not waited for, either. */
static void
test_drain_with_readers(void **state)
{
	const FabricOptions options = {.reader = true};
	TestChannel owner, reader;
	uint32_t incarnation;
	uint64_t word;
	FabricOp read;

	fabric_process_stop(&node, SIGTERM);
	fabric_process_listen(&node, false);
	node.drain_ms = 5000;
	fabric_process_start(&node);
	incarnation = cluster_attach(node.address, CLUSTER);
	channel_open(&owner, node.address, CLUSTER, incarnation);
	swap_lock(&owner, 0, fabric_lock_word(fabric_capabilities(owner.endpoint)->instance, incarnation, 1));
	assert_int_equal(channel_try_open(&reader, node.network_address, CLUSTER, 0, &options), FABRIC_OK);
	channel_close(&owner);
	for (int i = 0; i < 3000 && service_info(node.address).live_channels > 1; i++)
		sleep_ms(10);
	read = op_read(fabric_capabilities(reader.endpoint)->redo_offset, &word, 8);
	assert_int_equal(fabric_execute(reader.endpoint, &read, 1), FABRIC_OK);
	assert_false(fabric_is_draining(reader.endpoint));
	fabric_process_stop(&node, SIGTERM);
	channel_close(&reader);
	fabric_process_start(&node);
	assert_int_equal(service_info(node.address).memory_state, FABRIC_MEMORY_CLEAN);
}

/* Mounts a file system of our own below the node's directory; stop_node() cleans up.  False: we may not. */
static bool
mount_here(const char *type, const char *options, char *directory, size_t bytes)
{
	snprintf(directory, bytes, "%.150s/small", node.directory);
	assert_true(mkdir(directory, 0700) == 0 || errno == EEXIST);
	return mount("none", directory, type, 0, options) == 0;
}

/* Huge pages are refused where the file system has none, and used where it has; what is granted is zero in any case. */
static void
test_huge_pages(void **state)
{
	static const char *const policies[] = {"size=64m,huge=always", "size=64m,huge=advise"};
	LocalServer local = local_server(&node);
	char directory[192];
	char path[224];
	uint64_t first, end;

	fabric_process_stop(&node, SIGTERM);
	if (!mount_here("tmpfs", "size=64m", directory, sizeof(directory)))
		skip();
	snprintf(path, sizeof(path), "%s/memory", directory);
	local.options.memory_path = path;
	local.options.huge_pages = FABRIC_HUGE_ON;
	assert_int_equal(local_server_open(&local), FABRIC_NOT_SUPPORTED);
	assert_non_null(strstr(local.detail, "huge pages"));
	local.options.huge_pages = FABRIC_HUGE_TRY;
	assert_int_equal(local_server_open(&local), FABRIC_OK);
	fabric_server_close(local.server, 0, true);
	umount2(directory, MNT_DETACH);
	local.options.huge_pages = FABRIC_HUGE_ON;
	for (int i = 0; i < 2; i++)
	{
		if (!mount_here("tmpfs", policies[i], directory, sizeof(directory)))
			skip(); /* a kernel without them */
		assert_int_equal(local_server_open(&local), FABRIC_OK);
		fabric_server_node_range(local.server, &first, &end);
		for (int round = 0; round < 2; round++)
		{
			uint8_t *unit = fabric_server_node(local.server, first, FABRIC_UNIT_BYTES);

			assert_int_equal(fabric_server_commit(local.server, 0, first, FABRIC_UNIT_BYTES), FABRIC_OK);
			for (uint32_t k = 0; k < FABRIC_UNIT_BYTES; k++)
				assert_int_equal(unit[k], 0);
			memset(unit, 1, FABRIC_UNIT_BYTES);
			fabric_server_release(local.server, first, FABRIC_UNIT_BYTES);
		}
		fabric_server_close(local.server, 0, true);
		umount2(directory, MNT_DETACH);
	}
}

static uint8_t *
commit_unit(FabricServer *server, uint64_t offset)
{
	assert_int_equal(fabric_server_commit(server, 0, offset, FABRIC_UNIT_BYTES), FABRIC_OK);
	return fabric_server_node(server, offset, FABRIC_UNIT_BYTES);
}

/*
 * On hugetlbfs, if the machine's pool has pages for it: they are kept, and zeroed when they are granted again; other sizes keep the
 * content, and those that the pool has no pages for are not had.
 */
static void
test_hugetlbfs(void **state)
{
	const uint64_t sizes[] = {8 * SMALL_NODE_BYTES, FABRIC_MAX_NODE_BYTES, SMALL_NODE_BYTES};
	LocalServer local = local_server(&node);
	char directory[192];
	char path[224];
	uint64_t first, end;
	FabricStatus status;

	fabric_process_stop(&node, SIGTERM);
	if (!mount_here("hugetlbfs", "pagesize=2M", directory, sizeof(directory)))
		skip();
	snprintf(path, sizeof(path), "%s/memory", directory);
	local.options.memory_path = path;
	local.options.huge_pages = FABRIC_HUGE_ON;
	status = local_server_open(&local);
	if (status == FABRIC_NO_MEMORY)
	{
		assert_non_null(strstr(local.detail, "hugetlbfs"));
		skip();
	}
	assert_int_equal(status, FABRIC_OK);
	fabric_server_node_range(local.server, &first, &end);
	for (int round = 0; round < 4; round++)
	{
		uint8_t *unit = fabric_server_node(local.server, first, FABRIC_UNIT_BYTES);

		assert_int_equal(local.memory_state, round < 2 ? FABRIC_MEMORY_NEW : FABRIC_MEMORY_CLEAN);
		assert_int_equal(fabric_server_commit(local.server, 0, first, FABRIC_UNIT_BYTES), FABRIC_OK);
		for (uint32_t k = 0; k < FABRIC_UNIT_BYTES; k++)
			assert_int_equal(unit[k], 0);
		memset(unit, 1, FABRIC_UNIT_BYTES);
		fabric_server_release(local.server, first, FABRIC_UNIT_BYTES);
		if (round < 1 || round == 3)
			continue;
		fabric_server_close(local.server, 0, false);
		assert_int_equal(local_server_open(&local), FABRIC_OK);
	}
	memset(commit_unit(local.server, first), 7, FABRIC_UNIT_BYTES);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
	{
		uint64_t before = end;

		fabric_server_close(local.server, 0, false);
		local.options.node_bytes = sizes[i];
		local.options.max_channels += i == 0 ? 400 : 0;
		assert_int_equal(local_server_open(&local), FABRIC_OK);
		assert_int_equal(local.memory_state, FABRIC_MEMORY_CLEAN);
		fabric_server_node_range(local.server, &first, &end);
		/* There is no pool with so many pages. */
		assert_int_equal(end - first, sizes[i] == FABRIC_MAX_NODE_BYTES ? before - first : sizes[i]);
		assert_int_equal(*(uint8_t *) fabric_server_node(local.server, first, 1), 7);
		memset(commit_unit(local.server, end - FABRIC_UNIT_BYTES), 8, FABRIC_UNIT_BYTES);
		fabric_server_release(local.server, end - FABRIC_UNIT_BYTES, FABRIC_UNIT_BYTES);
	}
	fabric_server_close(local.server, 0, true);
}

/* Overwrites bytes of the memory segment while no daemon runs. */
static void
damage_segment(size_t offset, const void *bytes, size_t count)
{
	int file = open(node.memory_path, O_RDWR | O_CLOEXEC);

	assert_true(file >= 0);
	assert_int_equal(pwrite(file, bytes, count, (off_t) offset), count);
	close(file);
}

static void
remove_kept(void *argument, const SetAsideFile *file)
{
	char detail[FABRIC_DETAIL_BYTES];

	assert_int_equal(set_aside_remove(node.memory_path, SET_ASIDE_MEMORY, file->path, detail), FABRIC_OK);
}

static void
test_damaged_segments_are_set_aside(void **state)
{
	const uint64_t wrong = 0x6262626262626262ull;
	const struct
	{
		size_t offset;
		size_t bytes;
	} damages[] = {
		{offsetof(MemoryHeader, layout_version), 4},   {offsetof(MemoryHeader, fingerprint), 4},
		{offsetof(MemoryHeader, boot_id), 8},          {offsetof(MemoryHeader, segment_bytes), 8},
		{offsetof(MemoryHeader, max_channels), 4},     {offsetof(MemoryHeader, region_bytes), 8},
		{offsetof(MemoryHeader, region_bytes), 1},     {offsetof(MemoryHeader, service_bytes), 8},
		{offsetof(MemoryHeader, service_bytes[1]), 8},
	};

	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++)
	{
		uint64_t area = service_info(node.address).first_unit;

		assert_int_equal(service_commit(node.address, area, FABRIC_UNIT_BYTES), FABRIC_OK);
		fabric_process_stop(&node, SIGTERM);
		damage_segment(damages[i].offset, &wrong, damages[i].bytes);
		fabric_process_start(&node);
		assert_int_equal(service_info(node.address).memory_state, FABRIC_MEMORY_NEW);
		assert_int_equal(service_info(node.address).generation, 1);
		assert_int_equal(set_aside_list(node.memory_path, remove_kept, NULL), 1);
	}
	fabric_process_stop(&node, SIGTERM);
	assert_int_equal(truncate(node.memory_path, 1000), 0);
	fabric_process_start(&node);
	assert_int_equal(service_info(node.address).memory_state, FABRIC_MEMORY_NEW);
	assert_int_equal(set_aside_list(node.memory_path, remove_kept, NULL), 1);
	/* There is nothing to be kept of a segment in which nothing was granted, nor of one that never was one. */
	fabric_process_stop(&node, SIGTERM);
	damage_segment(offsetof(MemoryHeader, boot_id), &wrong, 8);
	fabric_process_start(&node);
	assert_int_equal(service_info(node.address).memory_state, FABRIC_MEMORY_NEW);
	for (uint64_t magic = 0; magic <= MEMORY_UNFINISHED; magic += MEMORY_UNFINISHED)
	{
		fabric_process_stop(&node, SIGTERM);
		assert_int_equal(truncate(node.memory_path, 0), 0);
		assert_int_equal(truncate(node.memory_path, 1 << 20), 0);
		if (magic != 0)
			damage_segment(0, &magic, sizeof(magic));
		fabric_process_start(&node);
		assert_int_equal(service_info(node.address).memory_state, FABRIC_MEMORY_NEW);
	}
	assert_int_equal(set_aside_list(node.memory_path, NULL, NULL), 0);
}

/* Tries to open the memory node's files, which must be refused and left as they are. */
static void
expect_left_alone(const char *path, const char *why)
{
	LocalServer local = local_server(&node);
	struct stat before, after;
	FabricStatus status;

	assert_int_equal(lstat(path, &before), 0);
	status = local_server_open(&local);
	if (status != FABRIC_DENIED && status != FABRIC_UNREACHABLE)
		fail_msg("%s: %s", why, fabric_status_name(status));
	if (strstr(local.detail, why) == NULL || strstr(local.detail, path) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", why, local.detail);
	assert_int_equal(lstat(path, &after), 0);
	assert_true(before.st_ino == after.st_ino && before.st_size == after.st_size &&
	            before.st_mode == after.st_mode && before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
}

static void
write_text(const char *path)
{
	static const char text[] = "somebody's only copy\n";
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(write(file, text, sizeof(text)), sizeof(text));
	close(file);
}

/* Whatever lies at the paths that are not ours stays, and is not followed. */
static void
test_what_is_not_ours_is_left_alone(void **state)
{
	char other[192];
	const uint64_t magic = 0x6262626262626262ull;

	snprintf(other, sizeof(other), "%s.other", node.memory_path);
	fabric_process_stop(&node, SIGTERM);
	/* A segment that is none any more. */
	damage_segment(offsetof(MemoryHeader, magic), &magic, sizeof(magic));
	expect_left_alone(node.memory_path, "is no memory segment");
	unlink(node.memory_path);
	write_text(node.memory_path);
	expect_left_alone(node.memory_path, "is no memory segment");
	unlink(node.memory_path);
	assert_int_equal(mkdir(node.memory_path, 0700), 0);
	expect_left_alone(node.memory_path, "no regular file");
	rmdir(node.memory_path);
	assert_int_equal(mkfifo(node.memory_path, 0600), 0);
	expect_left_alone(node.memory_path, "no regular file");
	unlink(node.memory_path);
	if (geteuid() == 0 && mknod(node.memory_path, S_IFCHR | 0600, makedev(1, 3)) == 0)
	{
		expect_left_alone(node.memory_path, "no regular file");
		unlink(node.memory_path);
	}
	write_text(other);
	assert_int_equal(symlink(other, node.memory_path), 0);
	expect_left_alone(node.memory_path, "no regular file");
	unlink(node.memory_path);
	unlink(other);
	/* The socket's place. */
	write_text(node.socket_path);
	expect_left_alone(node.socket_path, "is no socket");
	unlink(node.socket_path);
	fabric_process_start(&node);
}

/* Memory that another user made, can reach, or has by another name, is not adopted. */
static void
test_segments_of_others(void **state)
{
	char other[192];

	snprintf(other, sizeof(other), "%s.other", node.memory_path);
	fabric_process_stop(&node, SIGTERM);
	for (int bit = 0; bit < 6; bit++)
	{
		assert_int_equal(chmod(node.memory_path, 0600 | 1u << bit), 0);
		expect_left_alone(node.memory_path, "other users can reach it");
	}
	assert_int_equal(chmod(node.memory_path, 0600), 0);
	assert_int_equal(link(node.memory_path, other), 0);
	expect_left_alone(node.memory_path, "has 2 names");
	unlink(other);
	if (geteuid() == 0)
	{
		assert_int_equal(chown(node.memory_path, 65534, 65534), 0);
		expect_left_alone(node.memory_path, "belongs to user 65534");
		assert_int_equal(chown(node.memory_path, 0, 0), 0);
	}
	fabric_process_start(&node);
	assert_int_equal(service_info(node.address).memory_state, FABRIC_MEMORY_CLEAN);
}

/*
 * A client that has the memory's descriptor cuts the file: neither the daemon nor another client dies of it.  The daemon
 * ends by itself, as it must, and the next one begins with new memory.
 */
static void
test_memory_cut_short(void **state)
{
	for (int round = 0; round < 2; round++)
	{
		uint32_t incarnation = cluster_attach(node.address, CLUSTER);
		uint64_t area = service_info(node.address).first_unit;
		uint64_t words[8] = {1, 2, 3};
		FabricStatus status;
		TestChannel channel;
		FabricOp op = op_write(area, words, sizeof(words));

		assert_int_equal(service_commit(node.address, area, FABRIC_UNIT_BYTES), FABRIC_OK);
		channel_open(&channel, node.address, CLUSTER, incarnation);
		channel_write(&channel, area, words, sizeof(words));
		/* All of it, and all behind the tables: the client comes upon it first, as the daemon is stopped. */
		fabric_process_signal(&node, SIGSTOP);
		assert_int_equal(truncate(node.memory_path, round == 0 ? 0 : 65536), 0);
		status = fabric_execute(channel.endpoint, &op, 1);
		fabric_process_signal(&node, SIGCONT);
		assert_int_equal(status, FABRIC_LOST);
		assert_int_equal(wait_for_child(node.pid), 1);
		node.pid = 0;
		channel_close(&channel);
		fabric_process_start(&node);
		assert_int_equal(service_info(node.address).memory_state, FABRIC_MEMORY_NEW);
		(void) set_aside_list(node.memory_path, remove_kept, NULL);
	}
}

/* The lock is the file's, not its name's: a segment that got another name is not served twice. */
static void
test_one_daemon_by_any_name(void **state)
{
	LocalServer local = local_server(&node);
	char other[192], lock[200];

	snprintf(other, sizeof(other), "%s2", node.memory_path);
	snprintf(lock, sizeof(lock), "%s.lock", other);
	assert_int_equal(rename(node.memory_path, other), 0);
	local.options.memory_path = other;
	local.options.socket_path = lock; /* never comes to it */
	assert_int_equal(local_server_open(&local), FABRIC_EXISTS);
	assert_non_null(strstr(local.detail, "by another name"));
	assert_int_equal(service_info(node.address).generation, 1);
	assert_int_equal(rename(other, node.memory_path), 0);
	unlink(lock);
}

static void
test_one_daemon(void **state)
{
	LocalServer local = local_server(&node);
	char other[192];

	assert_int_equal(local_server_open(&local), FABRIC_EXISTS);
	assert_null(local.server);
	assert_true(strlen(local.detail) > 0);
	/* Nor at the same socket with other memory; the one that is served is not disturbed. */
	snprintf(other, sizeof(other), "%s2", node.memory_path);
	local.options.memory_path = other;
	assert_int_equal(local_server_open(&local), FABRIC_EXISTS);
	assert_int_equal(service_info(node.address).generation, 1);
	unlink(other);
	snprintf(other, sizeof(other), "%s2.lock", node.memory_path);
	unlink(other);
	local.options.memory_path = "/nowhere/memory";
	assert_int_equal(local_server_open(&local), FABRIC_UNREACHABLE);
	local.options.max_channels = 0;
	assert_int_equal(local_server_open(&local), FABRIC_RANGE);
}

static void
test_pages(void **state)
{
	uint64_t empty = blocks_of(node.memory_path);
	ServiceInfo info = service_info(node.address);
	uint32_t incarnation = cluster_attach(node.address, CLUSTER);
	uint64_t request[2] = {info.first_unit, 4 * FABRIC_UNIT_BYTES};
	uint64_t words[16];
	TestChannel channel;
	FabricOp op = op_write(info.first_unit, words, sizeof(words));
	FabricOp add = op_fetch_add(FABRIC_NODES, info.first_unit, 1);

	channel_open(&channel, node.address, CLUSTER, incarnation);
	/* Memory that is not granted cannot be changed, and reads as zeroes without taking pages. */
	assert_int_equal(fabric_execute(channel.endpoint, &op, 1), FABRIC_RANGE);
	assert_int_equal(fabric_execute(channel.endpoint, &add, 1), FABRIC_RANGE);
	memset(words, 0xff, sizeof(words));
	channel_read(&channel, info.first_unit, words, sizeof(words));
	assert_true(words[0] == 0 && words[15] == 0);
	assert_int_equal(blocks_of(node.memory_path), empty);

	assert_int_equal(service_commit(node.address, request[0], request[1]), FABRIC_OK);
	/* All pages are there before anybody writes, those of the stripe words too. */
	assert_in_range(blocks_of(node.memory_path) - empty, request[1], request[1] + 2 * 4096);
	memset(words, 0x11, sizeof(words));
	assert_int_equal(fabric_execute(channel.endpoint, &op, 1), FABRIC_OK);
	assert_in_range(blocks_of(node.memory_path) - empty, request[1], request[1] + 2 * 4096);

	/* Given back and taken again: the pages go, and come back empty. */
	assert_int_equal(fabric_call(channel.endpoint, SERVICE_RELEASE, request, sizeof(request), NULL, NULL),
	                 FABRIC_OK);
	assert_in_range(blocks_of(node.memory_path) - empty, 0, 2 * 4096);
	assert_int_equal(fabric_execute(channel.endpoint, &op, 1), FABRIC_RANGE);
	assert_int_equal(service_commit(node.address, request[0], request[1]), FABRIC_OK);
	channel_read(&channel, info.first_unit, words, sizeof(words));
	assert_true(words[0] == 0 && words[15] == 0);
	memset(words, 0x22, sizeof(words));
	assert_int_equal(fabric_execute(channel.endpoint, &op, 1), FABRIC_OK);
	assert_int_equal(service_commit(node.address, request[0], request[1]), FABRIC_OK);
	channel_read(&channel, info.first_unit, words, sizeof(words));
	assert_true(words[0] == 0 && words[15] == 0);

	assert_int_equal(service_commit(node.address, 0, FABRIC_UNIT_BYTES), FABRIC_RANGE);
	assert_int_equal(service_commit(node.address, info.first_unit + 4096, FABRIC_UNIT_BYTES), FABRIC_RANGE);
	assert_int_equal(service_commit(node.address, info.end, FABRIC_UNIT_BYTES), FABRIC_RANGE);
	assert_int_equal(service_commit(node.address, info.first_unit, info.end), FABRIC_RANGE);
	assert_int_equal(service_commit(node.address, info.first_unit, 0), FABRIC_RANGE);
	channel_close(&channel);
}

static uint32_t room_warnings, size_warnings;

static void
count_warnings(void *argument, FabricLogLevel level, const char *message)
{
	room_warnings += level == FABRIC_LOG_WARNING && strstr(message, "% full") != NULL;
	size_warnings += level == FABRIC_LOG_WARNING && strstr(message, "mount it larger") != NULL;
}

/* The log says at the start that the file system is too small, and once each time that it becomes nearly full. */
static void
test_room_is_told(void **state)
{
	LocalServer local = local_server(&node);
	char directory[192];
	char path[224];
	uint64_t first, end;

	fabric_process_stop(&node, SIGTERM);
	if (!mount_here("tmpfs", "size=16m", directory, sizeof(directory)))
		skip();
	snprintf(path, sizeof(path), "%s/memory", directory);
	local.options.memory_path = path;
	local.options.log = count_warnings;
	local.options.node_bytes = 8u << 20;
	room_warnings = size_warnings = 0;
	assert_int_equal(local_server_open(&local), FABRIC_OK);
	fabric_server_close(local.server, 0, true);
	assert_int_equal(size_warnings, 0);
	local.options.node_bytes = 32u << 20;
	assert_int_equal(local_server_open(&local), FABRIC_OK);
	assert_int_equal(size_warnings, 1);
	assert_int_equal(room_warnings, 0);
	fabric_server_node_range(local.server, &first, &end);
	for (uint32_t round = 1; round <= 2; round++)
	{
		uint64_t taken = 0;

		while (fabric_server_commit(local.server, 0, first + taken, FABRIC_UNIT_BYTES) == FABRIC_OK)
			taken += FABRIC_UNIT_BYTES;
		assert_int_equal(room_warnings, round);
		/* One unit less is nearly full still. */
		fabric_server_release(local.server, first + taken - FABRIC_UNIT_BYTES, FABRIC_UNIT_BYTES);
		assert_int_equal(
			fabric_server_commit(local.server, 0, first + taken - FABRIC_UNIT_BYTES, FABRIC_UNIT_BYTES),
			FABRIC_OK);
		assert_int_equal(room_warnings, round);
		for (uint64_t offset = 0; offset < taken; offset += FABRIC_UNIT_BYTES)
			fabric_server_release(local.server, first + offset, FABRIC_UNIT_BYTES);
	}
	fabric_server_close(local.server, 0, true);
}

static void
test_full_file_system(void **state)
{
	char mount_point[160];
	FabricProcess small;
	ServiceInfo info;
	FabricStatus status = FABRIC_OK;
	uint64_t taken = 0;

	if (!mount_here("tmpfs", "size=1m", mount_point, sizeof(mount_point)))
		skip();
	memset(&small, 0, sizeof(small));
	small.node_bytes = 16u << 20;
	small.max_channels = SMALL_NODE_CHANNELS;
	snprintf(small.memory_path, sizeof(small.memory_path), "%.140s/memory", mount_point);
	snprintf(small.socket_path, sizeof(small.socket_path), "%.140s/socket", mount_point);
	snprintf(small.address, sizeof(small.address), "shm:%s", small.socket_path);
	fabric_process_start(&small);
	info = service_info(small.address);
	while (status == FABRIC_OK && taken < 16u << 20)
	{
		status = service_commit(small.address, info.first_unit + taken, FABRIC_UNIT_BYTES);
		if (status == FABRIC_OK)
			taken += FABRIC_UNIT_BYTES;
	}
	assert_int_equal(status, FABRIC_NO_MEMORY);
	assert_true(taken >= FABRIC_UNIT_BYTES);
	{
		/* Everything that was granted can be written: nobody meets SIGBUS. */
		uint32_t incarnation = cluster_attach(small.address, CLUSTER);
		uint64_t words[512];
		TestChannel channel;

		memset(words, 0x33, sizeof(words));
		channel_open(&channel, small.address, CLUSTER, incarnation);
		for (uint64_t offset = 0; offset < taken; offset += sizeof(words))
			channel_write(&channel, info.first_unit + offset, words, sizeof(words));
		channel_close(&channel);
	}
	fabric_process_stop(&small, SIGTERM);
	assert_int_equal(umount(mount_point), 0);
	rmdir(mount_point);
}

/* Connects to the control socket with no fabric between. */
static int
connect_raw(void)
{
	struct sockaddr_un address;
	socklen_t length;
	int directory;
	int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(control_address(node.socket_path, &address, &length, &directory));
	assert_int_equal(connect(descriptor, (struct sockaddr *) &address, length), 0);
	return descriptor;
}

/* Waits for the other end to close. */
static bool
is_disconnected(int descriptor)
{
	uint8_t bytes[256];
	struct pollfd polled = {.fd = descriptor, .events = POLLIN};

	while (poll(&polled, 1, PATIENCE_MS) > 0)
	{
		if (recv(descriptor, bytes, sizeof(bytes), 0) <= 0)
			return true;
	}
	return false;
}

static void
test_strange_clients(void **state)
{
	uint8_t header[FRAME_HEAD_BYTES];
	uint8_t reply[64];
	FrameHead frame = {0, CONTROL_HELLO, FRAME_VERSION, 1};
	int descriptor = connect_raw();
	int silent = connect_raw();

	/* Bytes of no protocol, a length beyond all bounds, another version: disconnected. */
	assert_int_equal(send(descriptor, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 18);
	assert_true(is_disconnected(descriptor));
	close(descriptor);
	for (int i = 0; i < 2; i++)
	{
		descriptor = connect_raw();
		frame.length = i == 0 ? UINT32_MAX : 0;
		frame.version = i == 0 ? FRAME_VERSION : FRAME_VERSION + 1;
		frame_encode(&frame, header);
		assert_int_equal(send(descriptor, header, sizeof(header), MSG_NOSIGNAL), sizeof(header));
		assert_true(is_disconnected(descriptor));
		close(descriptor);
	}
	/* A service call before HELLO, a HELLO cut short, an unknown method of the fabric's: refused. */
	frame = (FrameHead){0, SERVICE_ECHO, FRAME_VERSION, 7};
	for (int i = 0; i < 3; i++)
	{
		FrameHead answer;

		descriptor = connect_raw();
		frame.method = i == 0 ? SERVICE_ECHO : i == 1 ? CONTROL_HELLO : 0xfff0;
		frame_encode(&frame, header);
		/* A byte at a time. */
		for (size_t byte = 0; byte < sizeof(header); byte++)
			assert_int_equal(send(descriptor, header + byte, 1, MSG_NOSIGNAL), 1);
		assert_int_equal(recv(descriptor, reply, sizeof(reply), 0), FRAME_HEAD_BYTES + FRAME_STATUS_BYTES);
		assert_true(frame_decode(reply, &answer));
		assert_true(answer.request == 7 && answer.method == frame.method);
		assert_int_equal(reply[FRAME_HEAD_BYTES], FABRIC_PROTOCOL);
		close(descriptor);
	}
	/* Many that come and go, and a silent one: the others are served. */
	for (int i = 0; i < 200; i++)
		close(connect_raw());
	assert_int_equal(service_info(node.address).live_channels, 0);
	close(silent);
}

/* A local client gets the memory with its channel, and could change it: it is no reader, whatever its library says. */
static void
test_no_local_readers(void **state)
{
	uint8_t bytes[256];
	FrameHead frame = {0, CONTROL_HELLO, FRAME_VERSION, 1};
	FrameHello hello = {.cluster = {CLUSTER, ~(uint64_t) CLUSTER},
	                    .incarnation = CONTROL_READER,
	                    .old_channel = CONTROL_NO_CHANNEL};
	FramePayload payload = {.data = bytes + FRAME_HEAD_BYTES, .bytes = sizeof(bytes) - FRAME_HEAD_BYTES};
	int descriptor = connect_raw();

	cluster_attach(node.address, CLUSTER);
	frame_put_hello(&payload, &hello);
	frame.length = payload.position;
	frame_begin(&frame, bytes);
	assert_int_equal(send(descriptor, bytes, frame_wire_bytes(frame.length), MSG_NOSIGNAL),
	                 frame_wire_bytes(frame.length));
	assert_int_equal(recv(descriptor, bytes, sizeof(bytes), 0), FRAME_HEAD_BYTES + FRAME_STATUS_BYTES);
	assert_int_equal(bytes[FRAME_HEAD_BYTES], FABRIC_NOT_SUPPORTED);
	assert_int_equal(service_info(node.address).live_channels, 0);
	close(descriptor);
}

/* Pipelined requests whose replies nobody takes: the server waits for that client alone. */
static void
test_client_that_does_not_read(void **state)
{
	static uint8_t frame_bytes[FRAME_HEAD_BYTES + FABRIC_MAX_CALL_BYTES];
	FrameHead frame = {0, CONTROL_HELLO, FRAME_VERSION, 1};
	FrameHello hello = {.cluster = {CLUSTER, 0}, .old_channel = CONTROL_NO_CHANNEL};
	FramePayload payload = {.data = frame_bytes + FRAME_HEAD_BYTES, .bytes = FABRIC_MAX_CALL_BYTES};
	int descriptor = connect_raw();
	int sent = 0;
	size_t left = 0;
	uint64_t answered = 0;

	frame_put_hello(&payload, &hello);
	frame.length = payload.position;
	frame_encode(&frame, frame_bytes);
	assert_int_equal(send(descriptor, frame_bytes, FRAME_HEAD_BYTES + frame.length, MSG_NOSIGNAL),
	                 FRAME_HEAD_BYTES + frame.length);
	assert_true(recv(descriptor, frame_bytes, sizeof(frame_bytes), 0) > 0);
	frame = (FrameHead){FABRIC_MAX_CALL_BYTES, SERVICE_ECHO, FRAME_VERSION, 2};
	memset(frame_bytes, 0, sizeof(frame_bytes));
	frame_encode(&frame, frame_bytes);
	for (;;)
	{
		ssize_t done =
			send(descriptor, frame_bytes + left, sizeof(frame_bytes) - left, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (done < 0 && errno == EAGAIN)
		{
			struct pollfd polled = {.fd = descriptor, .events = POLLOUT};

			if (poll(&polled, 1, 200) == 0)
				break;
			continue;
		}
		assert_true(done > 0);
		left = (left + (size_t) done) % sizeof(frame_bytes);
		sent += left == 0;
		assert_true(sent < 10000);
	}
	assert_int_equal(service_info(node.address).live_channels, 0);
	/* When it reads after all, no answer is missing. */
	while (answered < (uint64_t) sent * (sizeof(frame_bytes) + FRAME_STATUS_BYTES))
	{
		ssize_t done = recv(descriptor, frame_bytes, sizeof(frame_bytes), 0);

		assert_true(done > 0);
		answered += (uint64_t) done;
	}
	close(descriptor);
}

static void
test_long_socket_path(void **state)
{
	FabricProcess far = {.node_bytes = SMALL_NODE_BYTES, .max_channels = 2};
	char directory[256];
	char lock[256];
	TestChannel control;

	snprintf(directory, sizeof(directory), "%s/%0100d", node.directory, 1);
	assert_int_equal(mkdir(directory, 0700), 0);
	snprintf(far.memory_path, sizeof(far.memory_path), "%s/far", node.directory);
	snprintf(far.socket_path, sizeof(far.socket_path), "%.150s/s", directory);
	snprintf(far.address, sizeof(far.address), "shm:%s", far.socket_path);
	assert_true(strlen(far.socket_path) > sizeof(((struct sockaddr_un *) 0)->sun_path));
	fabric_process_start(&far);
	channel_open(&control, far.address, CLUSTER, 0);
	channel_close(&control);
	fabric_process_stop(&far, SIGTERM);
	assert_int_equal(access(far.socket_path, F_OK), -1);
	unlink(far.memory_path);
	snprintf(lock, sizeof(lock), "%s.lock", far.memory_path);
	unlink(lock);
	rmdir(directory);
}

/* A client of another user is denied. */
static void
expect_denied_for_others(void)
{
	pid_t child = start_child();

	if (child == 0)
	{
		TestChannel channel;

		CHECK(setuid(65534) == 0);
		CHECK(channel_try_open(&channel, node.address, CLUSTER, 0, NULL) == FABRIC_DENIED);
		_exit(0);
	}
	assert_int_equal(wait_for_child(child), 0);
}

static void
test_other_users_are_denied(void **state)
{
	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(node.directory, 0755), 0);
	assert_int_equal(chmod(node.socket_path, 0666), 0);
	expect_denied_for_others();
	/* By the socket's own mode they do not even get that far. */
	assert_int_equal(chmod(node.socket_path, 0600), 0);
	expect_denied_for_others();
}

/* Connects as this user, with this group and one more; what comes of it. */
static FabricStatus
status_for(uint32_t user, uint32_t group, uint32_t more)
{
	pid_t child = start_child();

	if (child == 0)
	{
		TestChannel channel;
		gid_t groups[1] = {more};

		CHECK(setgroups(1, groups) == 0 && setgid(group) == 0 && setuid(user) == 0);
		_exit((int) channel_try_open(&channel, node.address, CLUSTER, 0, NULL));
	}
	return (FabricStatus) wait_for_child(child);
}

/* Users and groups that are named are served, whatever the socket's mode is, and nobody else. */
static void
test_named_users_are_served(void **state)
{
	if (geteuid() != 0)
		skip();
	fabric_process_stop(&node, SIGTERM);
	assert_int_equal(chmod(node.directory, 0755), 0);
	node.users = (FabricUsers){.user_count = 2, .group_count = 1, .users = {1111, 2222}, .groups = {3333}};
	fabric_process_start(&node);
	assert_int_equal(status_for(2222, 5, 5), FABRIC_OK);
	assert_int_equal(status_for(4444, 3333, 5), FABRIC_OK);
	assert_int_equal(status_for(4444, 5, 3333), FABRIC_OK);
	assert_int_equal(status_for(4444, 5, 5), FABRIC_DENIED);
	/* A user's number is no group's. */
	assert_int_equal(status_for(3333, 2222, 1111), FABRIC_DENIED);
	fabric_process_stop(&node, SIGTERM);
	memset(&node.users, 0, sizeof(node.users));
	fabric_process_start(&node);
	assert_int_equal(chmod(node.socket_path, 0666), 0);
	assert_int_equal(status_for(2222, 3333, 3333), FABRIC_DENIED);
}

static FabricStatus
echo_call(void *argument, const FabricPeer *peer, uint16_t method, const void *request,
          uint32_t request_bytes, void *reply, uint32_t *reply_bytes)
{
	memcpy(reply, request, request_bytes);
	*reply_bytes = request_bytes;
	return FABRIC_OK;
}

typedef struct DeadChannels
{
	FabricServer **server;
	uint32_t count;
	FabricDeadChannel last;
} DeadChannels;

static void
note_dead(void *argument, const FabricDeadChannel *dead)
{
	DeadChannels *channels = argument;

	channels->count++;
	channels->last = *dead;
	/* The service may use the server already in here, also while it is being opened. */
	assert_non_null(*channels->server);
	assert_non_null(fabric_server_node(*channels->server, dead->redo_offset, FABRIC_REDO_BYTES));
}

/* Both ends in one process: the client's wait hook drives the server. */
static void
test_embedded_server(void **state)
{
	FabricServerOptions options = fabric_process_options(&node);
	DeadChannels dead = {0};
	FabricService service = {.argument = &dead, .call = echo_call, .recover = note_dead};
	FabricServer *server = NULL;
	FabricMemoryState memory_state;
	FabricOptions waiting = {.wait = serve_while_waiting, .cluster = {1, 1}};
	char detail[FABRIC_DETAIL_BYTES];
	Fabric *fabric;
	FabricEndpoint *endpoint;
	uint32_t instance;
	uint64_t word = 3;
	uint64_t echo = 0;
	uint64_t first;
	uint64_t end;
	uint32_t bytes = sizeof(echo);

	fabric_process_stop(&node, SIGTERM);
	dead.server = &server;
	assert_int_equal(fabric_server_open(&options, &service, &server, &memory_state, detail), FABRIC_OK);
	waiting.wait_argument = server;
	assert_int_equal(fabric_open(&waiting, &fabric), FABRIC_OK);
	assert_int_equal(fabric_connect(fabric, node.address, &endpoint), FABRIC_OK);
	assert_int_equal(fabric_attach(endpoint, false, 1, &instance, &waiting.incarnation), FABRIC_OK);
	fabric_close(fabric);
	assert_int_equal(fabric_open(&waiting, &fabric), FABRIC_OK);
	assert_int_equal(fabric_connect(fabric, node.address, &endpoint), FABRIC_OK);
	assert_int_equal(fabric_server_channels(server), 1);
	assert_int_equal(fabric_call(endpoint, 1, &word, 8, &echo, &bytes), FABRIC_OK);
	assert_true(echo == 3);
	fabric_server_node_range(server, &first, &end);
	assert_int_equal(fabric_server_commit(server, 0, first, FABRIC_UNIT_BYTES), FABRIC_OK);
	{
		FabricOp op = op_write(first + 8, &word, 8);

		assert_int_equal(fabric_execute(endpoint, &op, 1), FABRIC_OK);
	}
	assert_true(((uint64_t *) fabric_server_node(server, first, 16))[1] == 3);
	assert_null(fabric_server_node(server, end - 8, 16));
	assert_int_equal(dead.count, 0);
	fabric_disconnect(endpoint);
	fabric_server_step(server, 100);
	assert_int_equal(fabric_server_channels(server), 0);
	assert_int_equal(dead.count, 1);
	assert_true(dead.last.write_offset == UINT64_MAX);
	/* Stopping works before running, and from a signal handler. */
	fabric_server_stop(server);
	assert_int_equal(fabric_server_run(server), FABRIC_OK);
	fabric_close(fabric);
	fabric_server_close(server, 0, true);
	assert_int_equal(access(node.memory_path, F_OK), -1);
	assert_int_equal(access(node.socket_path, F_OK), -1);
	fabric_process_start(&node);
}

#define NODE_TEST(name) cmocka_unit_test_prestate_setup_teardown(name, fabric_process_setup, stop_node, &node)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		NODE_TEST(test_states_of_memory),
		NODE_TEST(test_damaged_segments_are_set_aside),
		NODE_TEST(test_what_is_not_ours_is_left_alone),
		NODE_TEST(test_segments_of_others),
		NODE_TEST(test_one_daemon_by_any_name),
		NODE_TEST(test_memory_cut_short),
		NODE_TEST(test_one_daemon),
		NODE_TEST(test_pages),
		NODE_TEST(test_other_sizes),
		NODE_TEST(test_full_file_system),
		NODE_TEST(test_room_is_told),
		NODE_TEST(test_drain),
		NODE_TEST(test_drain_with_readers),
		NODE_TEST(test_huge_pages),
		NODE_TEST(test_hugetlbfs),
		NODE_TEST(test_strange_clients),
		NODE_TEST(test_no_local_readers),
		NODE_TEST(test_client_that_does_not_read),
		NODE_TEST(test_long_socket_path),
		NODE_TEST(test_other_users_are_denied),
		NODE_TEST(test_named_users_are_served),
		NODE_TEST(test_embedded_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

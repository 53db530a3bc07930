/*
 * snapshot.c
 *		See snapshot.h.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <xxhash.h>

#include "rdma/base/detail.h"
#include "rdma/memory/set_aside.h"
#include "rdma/memory/memory.h"
#include "rdma/memory/snapshot.h"

/*
 * So much is written before it is made durable and dropped from the page cache: it is in memory once already,
 * and an end that cannot be broken off for minutes is none.
 */
#define SNAPSHOT_SYNC_BYTES (64u << 20)

/*
 * So much of the file system is left to others: the server whose data directory it is in has a checkpoint to make
 * behind us.
 */
#define SNAPSHOT_SPARE_BYTES (16u << 20)

/* Zeroes are looked for, and left out, in pieces of this length. */
#define SNAPSHOT_PIECE_BYTES MEMORY_PAGE_BYTES

/* A part of the segment that is in use. */
typedef struct Area
{
	uint64_t offset;
	uint64_t bytes;
} Area;

typedef struct Writer
{
	const Memory *memory;
	const SnapshotWatch *watch;
	int descriptor;
	const char *path; /* that is written */
	char *detail;
	uint64_t total;  /* bytes in use */
	uint64_t done;   /* of them, looked at */
	uint64_t synced; /* of the file */
	SnapshotHeader header;
} Writer;

typedef struct Reader
{
	const SnapshotFile *file;
	const Memory *memory;
	uint64_t least; /* offset in the segment: nothing more comes before it */
	uint64_t done;  /* bytes */
	uint64_t sums;
} Reader;

static bool
goes_on(const SnapshotWatch *watch, uint64_t done, uint64_t total)
{
	return watch == NULL || watch->go_on == NULL || watch->go_on(watch->argument, done, total);
}

bool
snapshot_may_be(int descriptor)
{
	struct stat file;
	uint64_t magic = 0;

	return fstat(descriptor, &file) == 0 && S_ISREG(file.st_mode) && file.st_uid == geteuid() &&
	       pread(descriptor, &magic, sizeof(magic), 0) >= 0 && (magic == SNAPSHOT_MAGIC || magic == 0);
}

/* ---- what is in use ---- */

/* Tenant 0 has no name; of the others those that ever came have lock words. */
static bool
tenant_is_known(const MemoryHeader *header, uint32_t tenant)
{
	return tenant == 0 || header->tenants[tenant][0] != '\0';
}

/*
 * The areas of the segment before its units, by number and in the order of their offsets; some are empty.  False:
 * there are no more.  Marks of units come before all that they are needed for.
 */
static bool
table_area(const MemoryHeader *header, uint32_t number, Area *area)
{
	const uint64_t marks = header->region_bytes / FABRIC_UNIT_BYTES;

	if (number == 0)
	{
		*area = (Area){MEMORY_INSTANCES_OFFSET, (uint64_t) MEMORY_MAX_INSTANCES * sizeof(MemoryInstance)};
		return true;
	}
	number -= 1;
	if (number < MEMORY_MAX_TENANTS)
	{
		*area = (Area){MEMORY_LOCKS_OFFSET + (uint64_t) number * MEMORY_LOCK_BYTES,
		               tenant_is_known(header, number) ? MEMORY_LOCK_BYTES : 0};
		return true;
	}
	number -= MEMORY_MAX_TENANTS;
	/* To the end of the word: areas have whole pages. */
	if (number == 0)
		*area = (Area){MEMORY_CHANNELS_OFFSET, header->max_channels * sizeof(MemoryChannel)};
	else if (number == 1)
		*area = (Area){MEMORY_UNITS_OFFSET, MEMORY_ROUND_UP(marks, sizeof(uint64_t))};
	else if (number - 2 < FABRIC_SERVICE_AREAS)
		*area = (Area){MEMORY_SERVICE_OFFSET + (number - 2) * FABRIC_SERVICE_BYTES,
		               MEMORY_ROUND_UP(header->service_bytes[number - 2], sizeof(uint64_t))};
	else
		return false;
	return true;
}

static bool
unit_is_in_use(const Memory *memory, uint64_t unit)
{
	uint64_t first = MEMORY_FIRST_UNIT / FABRIC_UNIT_BYTES;

	return unit >= first && memory->units[unit] != 0 && memory->units[unit] != MEMORY_UNIT_REDO;
}

static uint64_t
unit_count(const Memory *memory)
{
	return memory->header->region_bytes / FABRIC_UNIT_BYTES;
}

static uint64_t
bytes_in_use(const Memory *memory)
{
	uint64_t bytes = 0;
	Area area;

	for (uint32_t i = 0; table_area(memory->header, i, &area); i++)
		bytes += area.bytes;
	for (uint64_t unit = 0; unit < unit_count(memory); unit++)
		bytes += unit_is_in_use(memory, unit) ? FABRIC_UNIT_BYTES : 0;
	return bytes;
}

/* ---- checksums ---- */

static uint64_t
block_sum(const SnapshotHeader *header, const SnapshotBlock *block, const void *data)
{
	const uint64_t place[] = {header->key, block->offset, block->bytes};

	return XXH3_64bits_withSeed(data, block->bytes, XXH3_64bits(place, sizeof(place)));
}

/* The checksum of one checksum more. */
static uint64_t
add_sum(uint64_t sums, uint64_t sum)
{
	return XXH3_64bits_withSeed(&sum, sizeof(sum), sums);
}

static uint64_t
header_sum(const SnapshotHeader *header)
{
	return XXH3_64bits(header, offsetof(SnapshotHeader, sum));
}

/* ---- writing ---- */

static FabricStatus
write_failed(const Writer *writer)
{
	int error = errno;

	detail_set(writer->detail, "cannot write \"%s\": %s", writer->path, strerror(error));
	return error == ENOSPC || error == EDQUOT || error == EFBIG ? FABRIC_NO_MEMORY : FABRIC_UNREACHABLE;
}

/* All of it, at the file's position. */
static bool
write_parts(int descriptor, struct iovec *parts, int count)
{
	while (count > 0)
	{
		ssize_t written = writev(descriptor, parts, count);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return false;
		while (count > 0 && (size_t) written >= parts->iov_len)
		{
			written -= (ssize_t) parts->iov_len;
			parts++;
			count--;
		}
		if (count > 0)
		{
			parts->iov_base = (char *) parts->iov_base + written;
			parts->iov_len -= (size_t) written;
		}
	}
	return true;
}

/* What was written becomes durable, and does not fill the memory. */
static bool
write_sync(Writer *writer)
{
	if (fdatasync(writer->descriptor) != 0)
		return false;
	writer->synced = writer->header.file_bytes;
	(void) posix_fadvise(writer->descriptor, 0, (off_t) writer->synced, POSIX_FADV_DONTNEED);
	return true;
}

static FabricStatus
write_block(Writer *writer, uint64_t offset, uint64_t bytes)
{
	SnapshotHeader *header = &writer->header;
	const uint8_t *data = writer->memory->base + offset;
	SnapshotBlock block = {.offset = offset, .bytes = bytes};
	struct iovec parts[2] = {{&block, sizeof(block)}, {(void *) (uintptr_t) data, bytes}};

	block.sum = block_sum(header, &block, data);
	header->sums = add_sum(header->sums, block.sum);
	if (!write_parts(writer->descriptor, parts, 2))
		return write_failed(writer);
	header->blocks++;
	header->data_bytes += bytes;
	header->file_bytes += sizeof(block) + bytes;
	if (header->file_bytes - writer->synced >= SNAPSHOT_SYNC_BYTES && !write_sync(writer))
		return write_failed(writer);
	return FABRIC_OK;
}

static bool
is_zero(const uint8_t *data, uint64_t bytes)
{
	return bytes == 0 || (data[0] == 0 && memcmp(data, data + 1, bytes - 1) == 0);
}

/* Cuts the zeroes at both ends of a part of the segment off, and writes what is left. */
static FabricStatus
write_part(Writer *writer, uint64_t offset, uint64_t bytes)
{
	const uint8_t *base = writer->memory->base;

	writer->done += bytes;
	while (bytes > SNAPSHOT_PIECE_BYTES && is_zero(base + offset, SNAPSHOT_PIECE_BYTES))
	{
		offset += SNAPSHOT_PIECE_BYTES;
		bytes -= SNAPSHOT_PIECE_BYTES;
	}
	while (bytes > SNAPSHOT_PIECE_BYTES &&
	       is_zero(base + offset + bytes - SNAPSHOT_PIECE_BYTES, SNAPSHOT_PIECE_BYTES))
		bytes -= SNAPSHOT_PIECE_BYTES;
	if (!is_zero(base + offset, bytes))
	{
		FabricStatus status = write_block(writer, offset, bytes);

		if (status != FABRIC_OK)
			return status;
	}
	if (goes_on(writer->watch, writer->done, writer->total))
		return FABRIC_OK;
	detail_set(writer->detail, "it was broken off");
	return FABRIC_STOPPED;
}

static FabricStatus
write_area(Writer *writer, const Area *area)
{
	FabricStatus status = FABRIC_OK;

	for (uint64_t done = 0; done < area->bytes && status == FABRIC_OK; done += SNAPSHOT_BLOCK_BYTES)
	{
		uint64_t left = area->bytes - done;

		status = write_part(writer, area->offset + done,
		                    left < SNAPSHOT_BLOCK_BYTES ? left : SNAPSHOT_BLOCK_BYTES);
	}
	return status;
}

static FabricStatus
write_blocks(Writer *writer)
{
	const Memory *memory = writer->memory;
	FabricStatus status = FABRIC_OK;
	Area area;

	for (uint32_t i = 0; status == FABRIC_OK && table_area(memory->header, i, &area); i++)
		status = write_area(writer, &area);
	for (uint64_t unit = 0; status == FABRIC_OK && unit < unit_count(memory); unit++)
	{
		area = (Area){MEMORY_NODES_OFFSET + unit * FABRIC_UNIT_BYTES, FABRIC_UNIT_BYTES};
		if (unit_is_in_use(memory, unit))
			status = write_area(writer, &area);
	}
	return status;
}

/* Before minutes are spent: is there room for all that is in use? */
static FabricStatus
check_room(const Writer *writer)
{
	uint64_t needed = writer->total + SNAPSHOT_HEADER_BYTES + SNAPSHOT_SPARE_BYTES;
	struct statvfs room;
	uint64_t free_bytes;

	if (fstatvfs(writer->descriptor, &room) != 0)
		return write_failed(writer);
	free_bytes = (uint64_t) room.f_bavail * room.f_frsize;
	if (free_bytes >= needed)
		return FABRIC_OK;
	detail_set(writer->detail, "it needs %llu MB, and %llu MB of the file system are free",
	           (unsigned long long) (needed >> 20), (unsigned long long) (free_bytes >> 20));
	return FABRIC_NO_MEMORY;
}

/* Opens the file to write, locked and empty. */
static FabricStatus
writer_open(Writer *writer)
{
	writer->descriptor = open(writer->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (writer->descriptor < 0)
		return write_failed(writer);
	if (!snapshot_may_be(writer->descriptor))
	{
		detail_set(writer->detail, "\"%s\" is there and is no snapshot: it is not touched", writer->path);
		return FABRIC_EXISTS;
	}
	if (flock(writer->descriptor, LOCK_EX | LOCK_NB) != 0)
	{
		detail_set(writer->detail, "another daemon writes \"%s\"", writer->path);
		return FABRIC_EXISTS;
	}
	if (ftruncate(writer->descriptor, 0) != 0 ||
	    lseek(writer->descriptor, SNAPSHOT_HEADER_BYTES, SEEK_SET) < 0)
		return write_failed(writer);
	return FABRIC_OK;
}

/* With the header the file is valid. */
static FabricStatus
write_header(Writer *writer)
{
	SnapshotHeader *header = &writer->header;

	header->magic = SNAPSHOT_MAGIC;
	header->version = SNAPSHOT_VERSION;
	header->header_bytes = sizeof(*header);
	header->memory = *writer->memory->header;
	header->sum = header_sum(header);
	if (!write_sync(writer))
		return write_failed(writer);
	if (pwrite(writer->descriptor, header, sizeof(*header), 0) != (ssize_t) sizeof(*header) ||
	    fsync(writer->descriptor) != 0)
		return write_failed(writer);
	return FABRIC_OK;
}

static FabricStatus
write_all(Writer *writer)
{
	FabricStatus status = writer_open(writer);

	if (status == FABRIC_OK)
		status = check_room(writer);
	if (status == FABRIC_OK)
		status = write_blocks(writer);
	return status == FABRIC_OK ? write_header(writer) : status;
}

/* ---- names ---- */

/* `path` with `suffix`, in room for PATH_MAX. False: too long. */
static bool
name_with(const char *path, const char *suffix, char *name)
{
	int length = snprintf(name, PATH_MAX, "%s%s", path, suffix);

	if (length < PATH_MAX)
		return true;
	errno = ENAMETOOLONG;
	return false;
}

bool
snapshot_remove(const char *path)
{
	return unlink(path) == 0 && set_aside_sync_directory(path);
}

void
snapshot_clean(const char *path)
{
	char name[PATH_MAX];
	int descriptor;

	if (!name_with(path, SNAPSHOT_NEW, name))
		return;
	descriptor = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (descriptor < 0)
		return;
	if (snapshot_may_be(descriptor))
		unlink(name);
	close(descriptor);
}

/* Is there nothing at the path of the snapshot, or what may be one? */
static bool
is_replaceable(const char *path)
{
	int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool is = descriptor < 0 ? errno == ENOENT : snapshot_may_be(descriptor);

	if (descriptor >= 0)
		close(descriptor);
	return is;
}

FabricStatus
snapshot_save(const Memory *memory, const char *path, const SnapshotWatch *watch, uint64_t *bytes,
              char *detail)
{
	char name[PATH_MAX];
	Writer writer = {.memory = memory, .watch = watch, .descriptor = -1, .path = name, .detail = detail};
	FabricStatus status = FABRIC_OK;

	detail_set(detail, "%s", "");
	if (!name_with(path, SNAPSHOT_NEW, name) ||
	    getrandom(&writer.header.key, sizeof(writer.header.key), 0) != (ssize_t) sizeof(writer.header.key))
		return write_failed(&writer);
	writer.header.file_bytes = SNAPSHOT_HEADER_BYTES;
	writer.total = bytes_in_use(memory);
	status = write_all(&writer);
	if (status == FABRIC_OK && !is_replaceable(path))
	{
		detail_set(detail, "\"%s\" is there and is no snapshot: it is not touched", path);
		status = FABRIC_DENIED;
	}
	if (status == FABRIC_OK && rename(name, path) != 0)
		status = write_failed(&writer);
	else if (status == FABRIC_OK && !set_aside_sync_directory(path))
	{
		status = write_failed(&writer);
		unlink(path);
	}
	/* What another daemon writes is not ours to remove. */
	if (status != FABRIC_OK && status != FABRIC_EXISTS)
		unlink(name);
	if (writer.descriptor >= 0)
		close(writer.descriptor);
	*bytes = writer.header.file_bytes;
	return status;
}

/* ---- reading ---- */

static FabricStatus
damaged(char *detail, const char *what)
{
	detail_set(detail, "%s", what);
	return FABRIC_PROTOCOL;
}

/* Reads all of it, at the file's position; false: there is less, or it cannot be read. */
static bool
read_all(int descriptor, void *data, uint64_t bytes)
{
	uint8_t *place = data;

	while (bytes > 0)
	{
		ssize_t got = read(descriptor, place, bytes);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		place += got;
		bytes -= (uint64_t) got;
	}
	return true;
}

static FabricStatus
read_header(SnapshotFile *file, char *detail)
{
	SnapshotHeader *header = &file->header;
	struct stat status;

	if (!snapshot_may_be(file->descriptor) || fstat(file->descriptor, &status) != 0)
	{
		detail_set(detail, "it is no snapshot, or another user's: it is not touched");
		return FABRIC_DENIED;
	}
	if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0 || status.st_nlink > 1)
	{
		detail_set(detail, "other users can write it, or it has several names: it is not touched");
		return FABRIC_DENIED;
	}
	if (!read_all(file->descriptor, header, sizeof(*header)))
		return damaged(detail, "it is too short for a header, or cannot be read");
	if (header->magic != SNAPSHOT_MAGIC)
		return damaged(detail, "it does not begin as a snapshot does");
	if (header->version != SNAPSHOT_VERSION || header->header_bytes != sizeof(*header))
	{
		detail_set(detail, "it has format version %u, this program reads version %u", header->version,
		           SNAPSHOT_VERSION);
		return FABRIC_PROTOCOL;
	}
	if (header->sum != header_sum(header))
		return damaged(detail, "the checksum of its header is wrong");
	if (header->file_bytes != (uint64_t) status.st_size)
	{
		detail_set(detail, "it has %llu bytes, and should have %llu", (unsigned long long) status.st_size,
		           (unsigned long long) header->file_bytes);
		return FABRIC_PROTOCOL;
	}
	if (!memory_header_is_sane(&header->memory))
		return damaged(detail, "its memory is of another build");
	if (lseek(file->descriptor, SNAPSHOT_HEADER_BYTES, SEEK_SET) < 0)
		return damaged(detail, "it cannot be read");
	return FABRIC_OK;
}

/* Takes the file for us alone. FABRIC_NOT_FOUND: it went meanwhile. */
static FabricStatus
lock_file(const char *path, int descriptor, char *detail)
{
	struct stat locked;
	struct stat named;

	if (flock(descriptor, LOCK_EX | LOCK_NB) != 0)
	{
		detail_set(detail, "another daemon reads \"%s\"", path);
		return FABRIC_EXISTS;
	}
	return fstat(descriptor, &locked) == 0 && stat(path, &named) == 0 && locked.st_ino == named.st_ino
	           ? FABRIC_OK
	           : FABRIC_NOT_FOUND;
}

FabricStatus
snapshot_open(const char *path, SnapshotFile *file, char *detail)
{
	FabricStatus status;

	file->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	if (file->descriptor < 0 && errno == ENOENT)
		return FABRIC_NOT_FOUND;
	if (file->descriptor < 0)
	{
		detail_set(detail, "cannot open \"%s\": %s", path, strerror(errno));
		return FABRIC_UNREACHABLE;
	}
	status = lock_file(path, file->descriptor, detail);
	if (status == FABRIC_OK)
		status = read_header(file, detail);
	if (status != FABRIC_OK)
		snapshot_close(file);
	return status;
}

void
snapshot_close(SnapshotFile *file)
{
	if (file->descriptor >= 0)
		close(file->descriptor);
	file->descriptor = -1;
}

static FabricStatus
no_room(char *detail)
{
	detail_set(detail, "there is no room for the memory");
	return FABRIC_NO_MEMORY;
}

/* May a block be there?  In the tables, or in one unit that has pages; behind what was read so far. */
static bool
block_has_place(const Memory *memory, const SnapshotBlock *block, uint64_t least)
{
	const MemoryHeader *header = memory->header;
	uint64_t unit;
	Area area;

	if (block->bytes == 0 || block->bytes > SNAPSHOT_BLOCK_BYTES || block->bytes % 8 != 0 ||
	    block->offset % 8 != 0 || block->offset < least || block->offset >= memory->bytes)
		return false;
	for (uint32_t i = 0; table_area(header, i, &area); i++)
	{
		if (block->offset >= area.offset && block->offset - area.offset < area.bytes)
			return block->bytes <= area.offset + area.bytes - block->offset;
	}
	if (block->offset < MEMORY_NODES_OFFSET)
		return false;
	unit = (block->offset - MEMORY_NODES_OFFSET) / FABRIC_UNIT_BYTES;
	return unit < unit_count(memory) && unit_is_in_use(memory, unit) &&
	       (block->offset - MEMORY_NODES_OFFSET) % FABRIC_UNIT_BYTES + block->bytes <= FABRIC_UNIT_BYTES;
}

/* Reads the next block into its place. */
static FabricStatus
read_block(Reader *reader, char *detail)
{
	const Memory *memory = reader->memory;
	SnapshotBlock block;
	uint8_t *place;

	if (!read_all(reader->file->descriptor, &block, sizeof(block)))
		return damaged(detail, "it ends too early, or cannot be read");
	if (!block_has_place(memory, &block, reader->least))
		return damaged(detail, "a block has no place in the memory");
	place = memory->base + block.offset;
	if (memory_allocate(memory, place, block.bytes) != FABRIC_OK)
		return no_room(detail);
	if (!read_all(reader->file->descriptor, place, block.bytes))
		return damaged(detail, "it ends too early, or cannot be read");
	if (block_sum(&reader->file->header, &block, place) != block.sum)
		return damaged(detail, "the checksum of a block is wrong");
	reader->sums = add_sum(reader->sums, block.sum);
	reader->least = block.offset + block.bytes;
	reader->done += block.bytes;
	return FABRIC_OK;
}

/* Takes the pages of all memory in use, zeroes included, so that no process gets a SIGBUS later. */
static FabricStatus
take_pages(const Memory *memory)
{
	FabricStatus status = FABRIC_OK;
	Area area;

	for (uint32_t i = 0; status == FABRIC_OK && table_area(memory->header, i, &area); i++)
		status = memory_allocate(memory, memory->base + area.offset, area.bytes);
	for (uint64_t unit = 0; status == FABRIC_OK && unit < unit_count(memory); unit++)
	{
		uint64_t offset = unit * FABRIC_UNIT_BYTES;

		if (!unit_is_in_use(memory, unit))
			continue;
		status = memory_allocate(memory, memory_stripe(memory, offset),
		                         FABRIC_UNIT_BYTES / FABRIC_STRIPE_BYTES * sizeof(uint64_t));
		if (status == FABRIC_OK)
			status = memory_allocate(memory, memory->nodes + offset, FABRIC_UNIT_BYTES);
	}
	return status;
}

/* The segment is what was saved, in this boot. */
static FabricStatus
name_segment(const SnapshotFile *file, Memory *memory)
{
	MemoryHeader header = file->header.memory;
	uint64_t magic = header.magic;

	if (!memory_boot_id(header.boot_id))
		return FABRIC_UNREACHABLE;
	header.magic = MEMORY_UNFINISHED;
	/* The file may have other pages than the one that was saved. */
	header.segment_bytes = memory->bytes;
	*memory->header = header;
	__atomic_store_n(&memory->header->magic, magic, __ATOMIC_SEQ_CST);
	return FABRIC_OK;
}

FabricStatus
snapshot_load(SnapshotFile *file, Memory *memory, const SnapshotWatch *watch, char *detail)
{
	const SnapshotHeader *header = &file->header;
	Reader reader = {.file = file, .memory = memory, .least = MEMORY_INSTANCES_OFFSET};
	FabricStatus status = FABRIC_OK;

	/* The tenants' names say which lock words there are, and these how long the service's tables are. */
	memcpy(memory->header->tenants, header->memory.tenants, sizeof(header->memory.tenants));
	memcpy(memory->header->service_bytes, header->memory.service_bytes, sizeof(header->memory.service_bytes));
	for (uint64_t i = 0; i < header->blocks && status == FABRIC_OK; i++)
	{
		status = read_block(&reader, detail);
		if (status == FABRIC_OK && !goes_on(watch, reader.done, header->data_bytes))
		{
			detail_set(detail, "it was broken off");
			status = FABRIC_STOPPED;
		}
	}
	if (status != FABRIC_OK)
		return status;
	if (reader.sums != header->sums)
		return damaged(detail, "the checksum of all blocks is wrong");
	if (take_pages(memory) != FABRIC_OK)
		return no_room(detail);
	return name_segment(file, memory);
}

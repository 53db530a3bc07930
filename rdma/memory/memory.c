/*
 * memory.c
 *		Layout, creation and mapping of the memory segment.
 */
#define _GNU_SOURCE 1
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rdma/memory/guard.h"
#include "rdma/memory/memory.h"

/* FNV-1a over 32-bit words: the fingerprint only has to differ between builds that disagree. */
#define FINGERPRINT_START 2166136261u
#define FINGERPRINT_PRIME 16777619u

static uint32_t
memory_fingerprint(void)
{
	const uint32_t parts[] = {sizeof(MemoryHeader), sizeof(MemoryInstance), sizeof(MemoryChannel),
	                          FABRIC_STRIPE_BYTES,  FABRIC_REDO_BYTES,      FABRIC_UNIT_BYTES,
	                          MEMORY_LOCK_WORDS,    MEMORY_MAX_INSTANCES,   sizeof(MemoryStage),
	                          MEMORY_MAX_TENANTS,   MEMORY_MAX_CHANNELS,    MEMORY_NODES_OFFSET >> 12,
	                          0x01020304u};
	uint32_t hash = FINGERPRINT_START;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		hash = (hash ^ parts[i]) * FINGERPRINT_PRIME;
	return hash;
}

bool
memory_boot_id(char boot_id[MEMORY_BOOT_ID_BYTES])
{
	int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t length;

	memset(boot_id, 0, MEMORY_BOOT_ID_BYTES);
	if (file < 0)
		return false;
	length = read(file, boot_id, MEMORY_BOOT_ID_BYTES - 1);
	close(file);
	return length > 0;
}

/* The file's length for so much of NODES. */
static uint64_t
segment_bytes(uint64_t region_bytes, const Pages *pages)
{
	return MEMORY_ROUND_UP(MEMORY_NODES_OFFSET + region_bytes, pages->bytes);
}

/*
 * Maps so much of the file and points into it.  Pages of a pool are not reserved by that: the areas are far from each
 * other, and what is in use has its pages.
 */
static FabricStatus
map_areas(int descriptor, uint64_t bytes, Memory *memory)
{
	size_t page_bytes = MEMORY_PAGE_BYTES;
	struct stat file;
	uint8_t *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);

	if (base == MAP_FAILED)
		return FABRIC_NO_MEMORY;
	if (fstat(descriptor, &file) == 0 && (uint64_t) file.st_blksize > page_bytes)
		page_bytes = (size_t) file.st_blksize;
	/* A forked child has no channel: it must not write here. */
	madvise(base, bytes, MADV_DONTFORK);
	/*
	 * A process with the descriptor can truncate the file: that must not kill others. A mapping that cannot be
	 * guarded is used all the same.
	 */
	(void) guard_add(base, bytes, page_bytes);
	memory->descriptor = descriptor;
	memory->bytes = bytes;
	memory->base = base;
	memory->header = (MemoryHeader *) (void *) base;
	memory->instances = (MemoryInstance *) (void *) (base + MEMORY_INSTANCES_OFFSET);
	memory->channels = (MemoryChannel *) (void *) (base + MEMORY_CHANNELS_OFFSET);
	memory->units = base + MEMORY_UNITS_OFFSET;
	memory->stage = (MemoryStage *) (void *) (base + MEMORY_STAGE_OFFSET);
	for (uint32_t i = 0; i < FABRIC_SERVICE_AREAS; i++)
		memory->service[i] = base + MEMORY_SERVICE_OFFSET + i * FABRIC_SERVICE_BYTES;
	memory->locks = (uint64_t *) (void *) (base + MEMORY_LOCKS_OFFSET);
	memory->stripes = (uint64_t *) (void *) (base + MEMORY_STRIPES_OFFSET);
	memory->nodes = base + MEMORY_NODES_OFFSET;
	return FABRIC_OK;
}

FabricStatus
memory_allocate(const Memory *memory, const void *start, uint64_t bytes)
{
	uint64_t offset = (uint64_t) ((const uint8_t *) start - memory->base);
	uint64_t first = offset / MEMORY_PAGE_BYTES * MEMORY_PAGE_BYTES;
	int error;

	if (bytes == 0)
		return FABRIC_OK;
	if (memory->populate)
		pages_populate((void *) (uintptr_t) start, bytes);
	do
		error = posix_fallocate(memory->descriptor, (off_t) first, (off_t) (offset + bytes - first));
	while (error == EINTR);
	return error == 0 ? FABRIC_OK : FABRIC_NO_MEMORY;
}

void
memory_advise(Memory *memory)
{
	memory->populate = madvise(memory->base, memory->bytes, MADV_HUGEPAGE) == 0;
}

bool
memory_give_back(const Memory *memory, const void *start, uint64_t bytes)
{
	off_t offset = (off_t) ((const uint8_t *) start - memory->base);

	return bytes == 0 || fallocate(memory->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset,
	                               (off_t) bytes) == 0;
}

/* One word of the header, before all stores that follow: with it the segment has the new size. */
static void
size_store(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

/* The pages of redo slots and their stripe words, and of the records, of so many channels. */
static FabricStatus
take_channels(const Memory *memory, uint64_t channels)
{
	uint64_t redo = MEMORY_ROUND_UP(channels * FABRIC_REDO_BYTES, FABRIC_UNIT_BYTES);
	FabricStatus status = memory_allocate(memory, memory->channels, channels * sizeof(MemoryChannel));

	if (status == FABRIC_OK)
		status = memory_allocate(memory, memory->stripes, redo / FABRIC_STRIPE_BYTES * sizeof(uint64_t));
	return status == FABRIC_OK ? memory_allocate(memory, memory->nodes, redo) : status;
}

/* A pool's pages for a part of the segment: they are there when they are taken.  A mapping alone reserves them. */
static FabricStatus
reserve(const Memory *memory, const void *start, uint64_t bytes, const Pages *pages)
{
	uint64_t first = (uint64_t) ((const uint8_t *) start - memory->base) / pages->bytes * pages->bytes;
	uint64_t end = MEMORY_ROUND_UP((uint64_t) ((const uint8_t *) start - memory->base) + bytes, pages->bytes);
	void *place;

	if (pages->kind != PAGES_HUGETLBFS || bytes == 0)
		return FABRIC_OK;
	place = mmap(NULL, end - first, PROT_READ | PROT_WRITE, MAP_SHARED, memory->descriptor, (off_t) first);
	if (place == MAP_FAILED)
		return FABRIC_NO_MEMORY;
	munmap(place, end - first);
	return FABRIC_OK;
}

/* The pages of the marks of so much of NODES; a pool's for its stripe words and node memory, too. */
static FabricStatus
take_region(const Memory *memory, uint64_t region_bytes, const Pages *pages)
{
	FabricStatus status = memory_allocate(memory, memory->units, region_bytes / FABRIC_UNIT_BYTES);

	if (status == FABRIC_OK)
		status =
			reserve(memory, memory->stripes, region_bytes / FABRIC_STRIPE_BYTES * sizeof(uint64_t), pages);
	if (status == FABRIC_OK)
		status = reserve(memory, memory->nodes + MEMORY_FIRST_UNIT, region_bytes - MEMORY_FIRST_UNIT, pages);
	return status;
}

/* Gives back what lies behind the end of node memory, as far as whole pages do. */
static void
drop_behind(const Memory *memory, uint64_t region_bytes, const Pages *pages)
{
	uint64_t start = MEMORY_ROUND_UP(MEMORY_NODES_OFFSET + region_bytes, pages->bytes);

	if (start < memory->bytes)
		(void) memory_give_back(memory, memory->base + start, memory->bytes - start);
}

FabricStatus
memory_create(int descriptor, const MemorySizes *sizes, const Pages *pages, bool advise, bool valid,
              Memory *memory)
{
	MemoryHeader header = {.layout_version = MEMORY_LAYOUT_VERSION,
	                       .fingerprint = memory_fingerprint(),
	                       .segment_bytes = segment_bytes(sizes->region_bytes, pages),
	                       .region_bytes = sizes->region_bytes,
	                       .max_channels = sizes->max_channels};
	FabricStatus status;

	if (!memory_boot_id(header.boot_id) ||
	    getrandom(header.node_uuid, sizeof(header.node_uuid), 0) != (ssize_t) sizeof(header.node_uuid))
		return FABRIC_UNREACHABLE;
	if (ftruncate(descriptor, (off_t) header.segment_bytes) != 0)
		return FABRIC_NO_MEMORY;
	status = map_areas(descriptor, header.segment_bytes, memory);
	if (status != FABRIC_OK)
		return status;
	if (advise)
		memory_advise(memory);
	/* From here on the file is known as ours, whatever becomes of us. */
	status = memory_allocate(memory, memory->base, MEMORY_PAGE_BYTES);
	if (status == FABRIC_OK)
		memory->header->magic = MEMORY_UNFINISHED;
	if (status == FABRIC_OK)
		status = memory_allocate(memory, memory->base, MEMORY_LOCKS_OFFSET + MEMORY_LOCK_BYTES);
	if (status == FABRIC_OK)
		status = take_channels(memory, header.max_channels);
	if (status == FABRIC_OK)
		status = take_region(memory, header.region_bytes, pages);
	if (status == FABRIC_OK)
	{
		memset(memory->units, MEMORY_UNIT_REDO, MEMORY_FIRST_UNIT / FABRIC_UNIT_BYTES);
		header.magic = MEMORY_UNFINISHED;
		*memory->header = header;
		size_store(&memory->header->magic, valid ? MEMORY_MAGIC : MEMORY_UNFINISHED);
	}
	else
	{
		guard_remove(memory->base);
		munmap(memory->base, memory->bytes);
		*memory = (Memory){.descriptor = -1};
	}
	return status;
}

uint64_t
memory_used_end(const Memory *memory)
{
	uint64_t unit = memory->header->region_bytes / FABRIC_UNIT_BYTES;

	while (unit > MEMORY_FIRST_UNIT / FABRIC_UNIT_BYTES && memory->units[unit - 1] == 0)
		unit--;
	return unit * FABRIC_UNIT_BYTES;
}

/* Makes the file and the mapping longer. */
static FabricStatus
lengthen(Memory *memory, uint64_t bytes)
{
	Memory longer = {.descriptor = -1};
	FabricStatus status;

	if (bytes <= memory->bytes)
		return FABRIC_OK;
	if (ftruncate(memory->descriptor, (off_t) bytes) != 0)
		return FABRIC_NO_MEMORY;
	status = map_areas(memory->descriptor, bytes, &longer);
	if (status != FABRIC_OK)
		return status;
	if (memory->populate)
		memory_advise(&longer);
	guard_remove(memory->base);
	munmap(memory->base, memory->bytes);
	*memory = longer;
	size_store(&memory->header->segment_bytes, bytes);
	return FABRIC_OK;
}

/* Another end of node memory. Nothing behind a smaller one is in use. */
static FabricStatus
resize_region(Memory *memory, uint64_t region_bytes, const Pages *pages)
{
	uint64_t before = memory->header->region_bytes;
	FabricStatus status = lengthen(memory, segment_bytes(region_bytes, pages));

	assert(region_bytes >= memory_used_end(memory));
	if (status == FABRIC_OK && region_bytes > before)
		status = take_region(memory, region_bytes, pages);
	if (status != FABRIC_OK)
	{
		drop_behind(memory, before, pages);
		return status;
	}
	size_store(&memory->header->region_bytes, region_bytes);
	drop_behind(memory, region_bytes, pages);
	return FABRIC_OK;
}

/*
 * Another number of channels, none of which is in use.  Records stay what they are, wherever they are: their serials
 * count on.
 */
static FabricStatus
resize_channels(const Memory *memory, uint64_t channels)
{
	uint64_t before = memory->header->max_channels;
	FabricStatus status = channels > before ? take_channels(memory, channels) : FABRIC_OK;

	if (status != FABRIC_OK)
		return status;
	size_store(&memory->header->max_channels, channels);
	if (channels < before)
		(void) memory_give_back(memory, memory->nodes + channels * FABRIC_REDO_BYTES,
		                        (before - channels) * FABRIC_REDO_BYTES);
	return FABRIC_OK;
}

FabricStatus
memory_resize(Memory *memory, const MemorySizes *sizes, const Pages *pages)
{
	FabricStatus status = FABRIC_OK;

	if (sizes->region_bytes != memory->header->region_bytes)
		status = resize_region(memory, sizes->region_bytes, pages);
	if (status == FABRIC_OK && sizes->max_channels != memory->header->max_channels)
		status = resize_channels(memory, sizes->max_channels);
	return status;
}

FabricStatus
memory_service_resize(const Memory *memory, uint32_t area, uint64_t bytes)
{
	uint64_t *length = &memory->header->service_bytes[area];
	uint64_t before = *length;
	uint8_t *start = memory->service[area];

	if (bytes > FABRIC_SERVICE_BYTES)
		return FABRIC_NO_MEMORY;
	if (bytes > before)
	{
		if (memory_allocate(memory, start + before, bytes - before) != FABRIC_OK)
			return FABRIC_NO_MEMORY;
		/* A longer one may have ended, or not begun, here. */
		memset(start + before, 0, bytes - before);
	}
	size_store(length, bytes);
	if (bytes < before)
		(void) memory_give_back(memory, start + bytes, before - bytes);
	return FABRIC_OK;
}

bool
memory_header_is_sane(const MemoryHeader *header)
{
	if (header->magic != MEMORY_MAGIC || header->layout_version != MEMORY_LAYOUT_VERSION ||
	    header->fingerprint != memory_fingerprint())
		return false;
	for (uint32_t i = 0; i < FABRIC_SERVICE_AREAS; i++)
	{
		if (header->service_bytes[i] > FABRIC_SERVICE_BYTES)
			return false;
	}
	return header->max_channels > 0 && header->max_channels <= MEMORY_MAX_CHANNELS &&
	       header->region_bytes > MEMORY_FIRST_UNIT && header->region_bytes <= MEMORY_MAX_REGION_BYTES &&
	       header->region_bytes % FABRIC_UNIT_BYTES == 0 &&
	       header->segment_bytes >= MEMORY_NODES_OFFSET + header->region_bytes;
}

static bool
is_of_this_boot(const MemoryHeader *header)
{
	char boot_id[MEMORY_BOOT_ID_BYTES];

	return memory_boot_id(boot_id) && memcmp(boot_id, header->boot_id, sizeof(boot_id)) == 0;
}

/* Is no unit of the segment granted to anybody?  Its header is sane. */
static bool
is_vacant(int descriptor, const MemoryHeader *header)
{
	uint64_t end = header->region_bytes / FABRIC_UNIT_BYTES;
	uint8_t marks[MEMORY_PAGE_BYTES];

	for (uint64_t unit = MEMORY_FIRST_UNIT / FABRIC_UNIT_BYTES; unit < end;)
	{
		size_t wanted = end - unit < sizeof(marks) ? (size_t) (end - unit) : sizeof(marks);
		ssize_t count = pread(descriptor, marks, wanted, (off_t) (MEMORY_UNITS_OFFSET + unit));

		if (count <= 0)
			return false;
		for (ssize_t i = 0; i < count; i++)
		{
			if (marks[i] != 0)
				return false;
		}
		unit += (uint64_t) count;
	}
	return true;
}

MemoryKind
memory_kind_of(int descriptor)
{
	union
	{
		MemoryHeader header;
		uint8_t bytes[MEMORY_PAGE_BYTES];
	} page = {.bytes = {0}};
	ssize_t count = pread(descriptor, page.bytes, sizeof(page.bytes), 0);
	Pages pages = pages_of(descriptor);
	struct stat file;

	if (count < 0 || fstat(descriptor, &file) != 0)
		return MEMORY_KIND_STRANGE;
	if (count >= (ssize_t) sizeof(uint64_t) && page.header.magic == MEMORY_MAGIC)
		return memory_header_is_sane(&page.header) && is_vacant(descriptor, &page.header)
		           ? MEMORY_KIND_VACANT
		           : MEMORY_KIND_SEGMENT;
	if (count >= (ssize_t) sizeof(uint64_t) && page.header.magic == MEMORY_UNFINISHED)
		return MEMORY_KIND_UNFINISHED;
	/* The daemon that made it was ended before it wrote a word there. */
	for (size_t i = 0; i < sizeof(page.bytes); i++)
	{
		if (page.bytes[i] != 0)
			return MEMORY_KIND_STRANGE;
	}
	return (uint64_t) file.st_blocks * 512 <= pages.bytes ? MEMORY_KIND_UNFINISHED : MEMORY_KIND_STRANGE;
}

FabricStatus
memory_map(int descriptor, Memory *memory)
{
	MemoryHeader header;
	struct stat file;

	if (fstat(descriptor, &file) != 0 || !S_ISREG(file.st_mode))
		return FABRIC_PROTOCOL;
	if (pread(descriptor, &header, sizeof(header), 0) != (ssize_t) sizeof(header))
		return FABRIC_PROTOCOL;
	/* A file that was made longer by a daemon that came no further is longer than the header knows. */
	if (!memory_header_is_sane(&header) || header.segment_bytes > (uint64_t) file.st_size ||
	    !is_of_this_boot(&header))
		return FABRIC_PROTOCOL;
	return map_areas(descriptor, header.segment_bytes, memory);
}

void
memory_unmap(Memory *memory)
{
	if (memory->base == NULL)
		return;
	guard_remove(memory->base);
	munmap(memory->base, memory->bytes);
	close(memory->descriptor);
	memset(memory, 0, sizeof(*memory));
	memory->descriptor = -1;
}

/*
 * memory.c
 *		Layout, creation and mapping of the memory object.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"

/* FNV-1a over 32-bit words: the fingerprint only has to differ between builds that disagree. */
#define FINGERPRINT_START 2166136261u
#define FINGERPRINT_PRIME 16777619u

static uint32_t
memory_fingerprint(void)
{
	const uint32_t parts[] = {sizeof(MemoryHeader),
	                          sizeof(MemoryInstance),
	                          sizeof(MemoryChannel),
	                          FABRIC_STRIPE_BYTES,
	                          FABRIC_REDO_BYTES,
	                          FABRIC_UNIT_BYTES,
	                          MEMORY_LOCK_WORDS,
	                          MEMORY_MAX_INSTANCES,
	                          sizeof(MemoryStage),
	                          MEMORY_MAX_TENANTS,
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

static uint64_t
round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

/* Gives `bytes` to the area at *cursor and returns where it starts. */
static uint64_t
place_area(uint64_t *cursor, uint64_t bytes)
{
	uint64_t start = *cursor;

	*cursor = round_up(start + bytes, MEMORY_PAGE_BYTES);
	return start;
}

void
memory_plan(MemoryHeader *header, uint64_t node_bytes, uint32_t service_bytes, uint32_t max_channels,
            uint64_t page_bytes)
{
	uint64_t cursor = 0;

	memset(header, 0, sizeof(*header));
	header->magic = MEMORY_MAGIC;
	header->layout_version = MEMORY_LAYOUT_VERSION;
	header->fingerprint = memory_fingerprint();
	header->max_channels = max_channels;
	header->service_bytes = service_bytes;
	header->first_unit = round_up((uint64_t) max_channels * FABRIC_REDO_BYTES, FABRIC_UNIT_BYTES);
	header->region_bytes = header->first_unit + node_bytes / FABRIC_UNIT_BYTES * FABRIC_UNIT_BYTES;

	place_area(&cursor, sizeof(MemoryHeader));
	header->instances_offset = place_area(&cursor, sizeof(MemoryInstance) * MEMORY_MAX_INSTANCES);
	header->channels_offset = place_area(&cursor, sizeof(MemoryChannel) * max_channels);
	header->units_offset = place_area(&cursor, header->region_bytes / FABRIC_UNIT_BYTES);
	header->stage_offset = place_area(&cursor, sizeof(MemoryStage));
	header->service_offset = place_area(&cursor, service_bytes);
	header->locks_offset = place_area(&cursor, MEMORY_MAX_TENANTS * MEMORY_LOCK_BYTES);
	header->stripes_offset =
		place_area(&cursor, header->region_bytes / FABRIC_STRIPE_BYTES * sizeof(uint64_t));
	cursor = round_up(cursor, MEMORY_NODES_ALIGNMENT);
	header->nodes_offset = place_area(&cursor, header->region_bytes);
	header->object_bytes = round_up(cursor, page_bytes);
}

/* Maps the whole file and points into it; the header was checked. */
static FabricStatus
map_areas(int descriptor, const MemoryHeader *header, Memory *memory)
{
	uint8_t *base = mmap(NULL, header->object_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);

	if (base == MAP_FAILED)
		return FABRIC_NO_MEMORY;
	/* A forked child has no channel: it must not write here. */
	madvise(base, header->object_bytes, MADV_DONTFORK);
	memory->descriptor = descriptor;
	memory->bytes = header->object_bytes;
	memory->base = base;
	memory->header = (MemoryHeader *) (void *) base;
	memory->instances = (MemoryInstance *) (void *) (base + header->instances_offset);
	memory->channels = (MemoryChannel *) (void *) (base + header->channels_offset);
	memory->units = base + header->units_offset;
	memory->stage = (MemoryStage *) (void *) (base + header->stage_offset);
	memory->service = base + header->service_offset;
	memory->locks = (uint64_t *) (void *) (base + header->locks_offset);
	memory->stripes = (uint64_t *) (void *) (base + header->stripes_offset);
	memory->nodes = base + header->nodes_offset;
	return FABRIC_OK;
}

FabricStatus
memory_allocate(const Memory *memory, const void *start, uint64_t bytes)
{
	uint64_t offset = (uint64_t) ((const uint8_t *) start - memory->base);
	uint64_t first = offset / MEMORY_PAGE_BYTES * MEMORY_PAGE_BYTES;
	int error;

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

FabricStatus
memory_create(int descriptor, const MemoryHeader *plan, bool advise, Memory *memory)
{
	FabricStatus status;

	if (ftruncate(descriptor, (off_t) plan->object_bytes) != 0)
		return FABRIC_NO_MEMORY;
	status = map_areas(descriptor, plan, memory);
	if (status != FABRIC_OK)
		return status;
	if (advise)
		memory_advise(memory);
	/* From here on the file is known as ours, whatever becomes of us. */
	status = memory_allocate(memory, memory->base, MEMORY_PAGE_BYTES);
	if (status == FABRIC_OK)
		memory->header->magic = MEMORY_UNFINISHED;
	/* All tables with the first tenant's locks, then what belongs to the redo slots. */
	if (status == FABRIC_OK)
		status = memory_allocate(memory, memory->base, plan->locks_offset + MEMORY_LOCK_BYTES);
	if (status == FABRIC_OK)
		status = memory_allocate(memory, memory->stripes,
		                         plan->first_unit / FABRIC_STRIPE_BYTES * sizeof(uint64_t));
	if (status == FABRIC_OK)
		status = memory_allocate(memory, memory->nodes, plan->first_unit);
	if (status == FABRIC_OK)
	{
		memset(memory->units, MEMORY_UNIT_REDO, plan->first_unit / FABRIC_UNIT_BYTES);
		*memory->header = *plan;
		if (!memory_boot_id(memory->header->boot_id) ||
		    getrandom(memory->header->node_uuid, sizeof(memory->header->node_uuid), 0) !=
		        (ssize_t) sizeof(memory->header->node_uuid))
			status = FABRIC_UNREACHABLE;
	}
	if (status != FABRIC_OK)
	{
		munmap(memory->base, memory->bytes);
		*memory = (Memory){.descriptor = -1};
	}
	return status;
}

bool
memory_header_is_sane(const MemoryHeader *header)
{
	MemoryHeader expected;

	if (header->magic != MEMORY_MAGIC || header->layout_version != MEMORY_LAYOUT_VERSION ||
	    header->fingerprint != memory_fingerprint())
		return false;
	if (header->max_channels == 0 || header->max_channels > MEMORY_MAX_CHANNELS ||
	    header->first_unit > header->region_bytes || header->region_bytes > header->object_bytes)
		return false;
	memory_plan(&expected, header->region_bytes - header->first_unit, header->service_bytes,
	            header->max_channels, MEMORY_PAGE_BYTES);
	return header->instances_offset == expected.instances_offset &&
	       header->channels_offset == expected.channels_offset &&
	       header->units_offset == expected.units_offset && header->stage_offset == expected.stage_offset &&
	       header->service_offset == expected.service_offset &&
	       header->locks_offset == expected.locks_offset &&
	       header->stripes_offset == expected.stripes_offset &&
	       header->nodes_offset == expected.nodes_offset && header->region_bytes == expected.region_bytes &&
	       header->first_unit == expected.first_unit && header->object_bytes >= expected.object_bytes;
}

static bool
is_of_this_boot(const MemoryHeader *header)
{
	char boot_id[MEMORY_BOOT_ID_BYTES];

	return memory_boot_id(boot_id) && memcmp(boot_id, header->boot_id, sizeof(boot_id)) == 0;
}

/* Is no unit of the object granted to anybody?  Its header is sane. */
static bool
is_vacant(int descriptor, const MemoryHeader *header)
{
	uint64_t end = header->region_bytes / FABRIC_UNIT_BYTES;
	uint8_t marks[MEMORY_PAGE_BYTES];

	for (uint64_t unit = header->first_unit / FABRIC_UNIT_BYTES; unit < end;)
	{
		size_t wanted = end - unit < sizeof(marks) ? (size_t) (end - unit) : sizeof(marks);
		ssize_t count = pread(descriptor, marks, wanted, (off_t) (header->units_offset + unit));

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
		           : MEMORY_KIND_OBJECT;
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
	if (!memory_header_is_sane(&header) || header.object_bytes != (uint64_t) file.st_size ||
	    !is_of_this_boot(&header))
		return FABRIC_PROTOCOL;
	return map_areas(descriptor, &header, memory);
}

void
memory_unmap(Memory *memory)
{
	if (memory->base == NULL)
		return;
	munmap(memory->base, memory->bytes);
	close(memory->descriptor);
	memset(memory, 0, sizeof(*memory));
	memory->descriptor = -1;
}

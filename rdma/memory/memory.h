/*
 * memory.h
 *		The memory segment: one file that the memory node and its shm clients map.  Private to rdma/.
 *
 * Areas, in this order, each starting on a page:
 *
 *		header			MemoryHeader
 *		instances		MemoryInstance[MEMORY_MAX_INSTANCES]: compute instances and their current incarnation
 *		stage			the WRITE that the server is making for a client
 *		locks			the LOCKS regions, one for each tenant
 *		channels		MemoryChannel[max_channels]
 *		units			one byte per unit of NODES: 0 = no pages; else whose it is, memory_unit_mark()
 *		service			the service's own tables, in FABRIC_SERVICE_AREAS areas
 *		stripes			one word per stripe of NODES
 *		nodes			the NODES region: redo slots of all channels, then node memory in units
 *
 * Each area begins where it would if every area before it had the most that there can be: so an area grows and
 * shrinks where it is, and no offset depends on a setting.  The file is sparse, and what no setting asks for has
 * no pages.  How much of each area there is now says the header, in one word for each: memory_resize().
 *
 * Everything in front of the locks of tenant 1, the channels, marks and tables that there are now, and the pages
 * of their redo slots with their stripe words are allocated when the segment is made or resized; the other locks
 * when a tenant comes for the first time, the rest unit by unit in fabric_server_commit().  The file never gets
 * shorter: whoever maps the old length must not meet SIGBUS.  On hugetlbfs node memory is reserved at once, and
 * given back by memory_resize() only.
 *
 * A stripe word's low 48 bits count its changes; odd while a WRITE is in progress, and then the bits above
 * hold the writer's channel.
 */
#ifndef SHERMAN_MEMORY_H
#define SHERMAN_MEMORY_H

#include <string.h>

#include "rdma/fabric.h"
#include "rdma/memory/pages.h"
#include "rdma/server.h"

#define MEMORY_MAGIC 0x6d656d616e6d7268ull
#define MEMORY_LAYOUT_VERSION 6u

/* In place of MEMORY_MAGIC while the segment is being made or filled: one that was left so is of no use. */
#define MEMORY_UNFINISHED 0x756e66696e6d7268ull

/*
 * 128 KB of lock words for a tenant: what fits a NIC's on-chip memory in the paper; more only lowers false
 * sharing.
 */
#define MEMORY_LOCK_WORDS 16384u
#define MEMORY_LOCK_BYTES (MEMORY_LOCK_WORDS * sizeof(uint64_t))

/* With tenant 0, which has no name. */
#define MEMORY_MAX_TENANTS (FABRIC_MAX_TENANTS + 1u)

/* Compute instances that ever attached; a record is never reused, for its number is in lock words. */
#define MEMORY_MAX_INSTANCES 4096u

/* Of these a tenant may have so many, so that none can take them all. */
#define MEMORY_TENANT_INSTANCES (MEMORY_MAX_INSTANCES / MEMORY_MAX_TENANTS)

/* Incarnations are 16 bits in a lock word, and 0 means none. */
#define MEMORY_LAST_INCARNATION 65535u

/* Owners of stripes are 16 bits. */
#define MEMORY_MAX_CHANNELS 65535u

/* Node memory behind the redo slots, at most. */
#define MEMORY_MAX_NODE_BYTES FABRIC_MAX_NODE_BYTES

#define MEMORY_PAGE_BYTES 4096u

/* The first byte of a name that was given up. No tenant's begins so. */
#define MEMORY_NAME_FREED '\1'

/* NODES begins on a huge page, where there are some: of the usual size. */
#define MEMORY_NODES_ALIGNMENT (2u << 20)
#define MEMORY_BOOT_ID_BYTES 40u

typedef struct MemoryHeader
{
	uint64_t magic;
	uint32_t layout_version;
	uint32_t fingerprint; /* of the sizes of all structures here */
	char boot_id[MEMORY_BOOT_ID_BYTES];
	uint64_t node_uuid[2];
	uint64_t generation;
	uint64_t clean;    /* 1 = the daemon closed it with no lock held and no chain in progress */
	uint64_t draining; /* 1 = the daemon is about to close it: no new lock is to be taken */
	uint64_t run;      /* drawn at each start of a daemon: a snapshot is of this run, or of other memory */
	uint64_t saved;    /* 1 = there may be a snapshot of it as it is: it is not used before all attach anew */
	uint64_t segment_bytes; /* the file is so long, or longer */
	uint64_t region_bytes;  /* length of NODES, redo slots included */
	uint64_t service_bytes[FABRIC_SERVICE_AREAS];
	uint64_t max_channels;
	uint64_t through_device; /* 1 = its last daemon was of access class NIC */
	/*
	 * Names of the tenants that came, by number; empty: the number is free; MEMORY_NAME_FREED: it is again, and its lock words have
	 * pages.
	 */
	char tenants[MEMORY_MAX_TENANTS][FABRIC_TENANT_BYTES];
} MemoryHeader;

typedef struct MemoryInstance
{
	uint64_t cluster[2];
	uint64_t launcher_nonce;
	uint32_t incarnation; /* the current one */
	uint16_t tenant;      /* whose clients may be this instance */
	uint16_t used;
} MemoryInstance;

/* Low byte of MemoryChannel.state. */
typedef enum MemoryChannelState
{
	MEMORY_CHANNEL_FREE = 0,
	MEMORY_CHANNEL_LIVE = 1,
	MEMORY_CHANNEL_KILLED = 2 /* may change nothing any more; not yet recovered */
} MemoryChannelState;

/*
 * A channel's record.  state belongs to the server, active and intent to the client.  A client that is about
 * to change anything sets active to busy and then looks at state; the server sets state and then looks at
 * active, both with sequential consistency: so a killed channel that is not busy will never change anything
 * again.
 *
 * Both words bear the serial of this use of the record, and a client goes from idle to busy by a swap: so one
 * that was killed long ago and comes back neither succeeds nor disturbs the record's next owner.
 */
typedef struct MemoryChannel
{
	uint64_t state;  /* serial of this use of the record << 8 | MemoryChannelState */
	uint64_t active; /* serial << 1 | busy: a chain with WRITEs or atomics is running */
	uint64_t intent; /* the WRITE in progress, memory_intent(); 0 = none */
	uint32_t pid;    /* of the client, as the server sees it; 0 = not visible */
	uint32_t instance;
	uint32_t incarnation;
	uint32_t served; /* 1 = the server runs its chains: nothing of it lands when that process is gone */
	uint64_t
		process_start; /* of that pid, clock ticks since boot: distinguishes it from a later process with the same pid */
	uint64_t
		padding[10]; /* two lines a record: neighbors do not share what the prefetcher fetches in pairs */
} MemoryChannel;

/*
 * A copy of the WRITE that the server is making for a client of its own, so that the next server can finish
 * it: the client's death cannot tear it, nor the server's.  It counts when `odd` is the stripe's word and
 * `intent` the channel's: no other WRITE ever has both.
 */
typedef struct MemoryStage
{
	uint64_t odd;
	uint64_t intent;
	uint64_t padding[6];
	uint64_t data[FABRIC_STRIPE_BYTES / sizeof(uint64_t)];
} MemoryStage;

_Static_assert(sizeof(MemoryHeader) <= MEMORY_PAGE_BYTES, "the header is one page");
_Static_assert(sizeof(MemoryInstance) == 32, "layout of the memory segment");
_Static_assert(sizeof(MemoryChannel) == 128, "layout of the memory segment");

/* Where the areas begin. */
#define MEMORY_ROUND_UP(bytes, unit) (((uint64_t) (bytes) + (unit) -1) / (unit) * (unit))
#define MEMORY_BEHIND(start, bytes) MEMORY_ROUND_UP((start) + (uint64_t) (bytes), MEMORY_PAGE_BYTES)
/* In NODES, node memory begins here: behind the redo slots of as many channels as there can be. */
#define MEMORY_FIRST_UNIT                                                                                    \
	MEMORY_ROUND_UP((uint64_t) MEMORY_MAX_CHANNELS *FABRIC_REDO_BYTES, MEMORY_NODES_ALIGNMENT)
#define MEMORY_MAX_REGION_BYTES (MEMORY_FIRST_UNIT + MEMORY_MAX_NODE_BYTES)
#define MEMORY_INSTANCES_OFFSET MEMORY_BEHIND(0, sizeof(MemoryHeader))
#define MEMORY_STAGE_OFFSET                                                                                  \
	MEMORY_BEHIND(MEMORY_INSTANCES_OFFSET, sizeof(MemoryInstance) * MEMORY_MAX_INSTANCES)
#define MEMORY_LOCKS_OFFSET MEMORY_BEHIND(MEMORY_STAGE_OFFSET, sizeof(MemoryStage))
#define MEMORY_CHANNELS_OFFSET MEMORY_BEHIND(MEMORY_LOCKS_OFFSET, MEMORY_MAX_TENANTS *MEMORY_LOCK_BYTES)
#define MEMORY_UNITS_OFFSET MEMORY_BEHIND(MEMORY_CHANNELS_OFFSET, sizeof(MemoryChannel) * MEMORY_MAX_CHANNELS)
#define MEMORY_SERVICE_OFFSET MEMORY_BEHIND(MEMORY_UNITS_OFFSET, MEMORY_MAX_REGION_BYTES / FABRIC_UNIT_BYTES)
#define MEMORY_STRIPES_OFFSET                                                                                \
	MEMORY_BEHIND(MEMORY_SERVICE_OFFSET, (uint64_t) FABRIC_SERVICE_AREAS *FABRIC_SERVICE_BYTES)
#define MEMORY_NODES_OFFSET                                                                                  \
	MEMORY_ROUND_UP(MEMORY_STRIPES_OFFSET +                                                                  \
	                    MEMORY_MAX_REGION_BYTES / FABRIC_STRIPE_BYTES * sizeof(uint64_t),                    \
	                MEMORY_NODES_ALIGNMENT)

#define MEMORY_STATE_BITS 8
#define MEMORY_STATE_MASK 0xffull
#define MEMORY_ACTIVE_BUSY 1ull
#define MEMORY_STRIPE_OWNER_SHIFT 48
#define MEMORY_STRIPE_COUNT_MASK ((1ull << MEMORY_STRIPE_OWNER_SHIFT) - 1)

/* An intent: offset and length in words of the WRITE.  Never 0, for a WRITE has at least one word. */
#define MEMORY_INTENT_LENGTH_BITS 10
#define MEMORY_INTENT_LENGTH_MASK ((1ull << MEMORY_INTENT_LENGTH_BITS) - 1)

/* The stripe is taken to read from it: its owner's death leaves nothing to replay. */
#define MEMORY_INTENT_READ (1ull << 63)
#define MEMORY_INTENT_OFFSET_MASK (~MEMORY_INTENT_READ)

static inline uint64_t
memory_intent(uint64_t offset, uint32_t bytes)
{
	return offset / 8 << MEMORY_INTENT_LENGTH_BITS | bytes / 8;
}

/* Notes a WRITE whose stripe was just taken with the word `odd`. */
static inline void
memory_stage_write(MemoryStage *stage, uint64_t odd, uint64_t intent, const void *data, uint32_t bytes)
{
	/* One word is stored at once. */
	if (bytes <= sizeof(uint64_t))
		return;
	memcpy(stage->data, data, bytes);
	__atomic_store_n(&stage->intent, intent, __ATOMIC_RELEASE);
	__atomic_store_n(&stage->odd, odd, __ATOMIC_RELEASE);
}

/* The byte of a unit with pages that a tenant owns, and of those that hold redo slots. */
#define MEMORY_UNIT_REDO 255u

static inline uint8_t
memory_unit_mark(uint32_t tenant)
{
	return (uint8_t) (tenant + 1);
}

/* A mapping of the memory segment. */
typedef struct Memory
{
	int descriptor;
	bool populate; /* pages are taken by touching them, so that they can be huge: the server's choice */
	size_t bytes;
	uint8_t *base;
	MemoryHeader *header;
	MemoryInstance *instances;
	MemoryChannel *channels;
	uint8_t *units;
	MemoryStage *stage;
	uint8_t *service[FABRIC_SERVICE_AREAS];
	uint64_t *locks;
	uint64_t *stripes;
	uint8_t *nodes;
} Memory;

static inline uint64_t *
memory_stripe(const Memory *memory, uint64_t offset)
{
	return &memory->stripes[offset / FABRIC_STRIPE_BYTES];
}

/* The lock words of a tenant: its LOCKS region. */
static inline uint64_t *
memory_tenant_locks(const Memory *memory, uint32_t tenant)
{
	return memory->locks + (size_t) tenant * MEMORY_LOCK_WORDS;
}

/* Is this a lock word of another incarnation than this one of the instance? */
static inline bool
memory_lock_is_stale(uint64_t word, uint32_t instance, uint32_t incarnation)
{
	return word >> 48 == instance && ((word >> 32) & MEMORY_LAST_INCARNATION) != incarnation;
}

/* Reads this machine's boot id into `boot_id`, padded with zeroes. False: the kernel does not tell. */
extern bool memory_boot_id(char boot_id[MEMORY_BOOT_ID_BYTES]);

/* How much of what can change there is of everything. */
typedef struct MemorySizes
{
	uint64_t region_bytes; /* of NODES: MEMORY_FIRST_UNIT and whole units */
	uint64_t max_channels;
} MemorySizes;

/* The sizes that a segment has. */
static inline MemorySizes
memory_sizes(const MemoryHeader *header)
{
	return (MemorySizes){header->region_bytes, header->max_channels};
}

/* Where the segment's units that have pages end, in NODES: it cannot be smaller. */
extern uint64_t memory_used_end(const Memory *memory);

/*
 * Makes a new segment behind the empty file `descriptor`, whose length is a multiple of page_bytes, maps it, and
 * allocates the pages of its tables; the service's areas are empty. The file descriptor belongs to *memory after
 * FABRIC_OK. FABRIC_NO_MEMORY: no room, or no address space. With `advise` the kernel is asked for huge pages, where
 * it gives them on request only (PAGES_TMPFS_ADVISE). If it is not `valid`, its magic is MEMORY_UNFINISHED until
 * its header gets MEMORY_MAGIC.
 */
extern FabricStatus memory_create(int descriptor, const MemorySizes *sizes, const Pages *pages, bool advise,
                                  bool valid, Memory *memory);

/*
 * Changes the sizes of a segment that no process uses; the new ones must have room for all that is in use; its
 * content stays. The process may end at any instruction: then the segment has the old size or the new one, of
 * channels and of memory each. What is mapped may move. FABRIC_NO_MEMORY: no room for more; the sizes may be the old
 * ones.
 */
extern FabricStatus memory_resize(Memory *memory, const MemorySizes *sizes, const Pages *pages);

/*
 * Makes a service area so long: what is added is zero, what is cut off is given back.  It may end at any
 * instruction, too.  FABRIC_NO_MEMORY: no room, and nothing has changed.
 */
extern FabricStatus memory_service_resize(const Memory *memory, uint32_t area, uint64_t bytes);

/* Asks the kernel for huge pages for what is taken from now on, as memory_create() does. */
extern void memory_advise(Memory *memory);

/* What a file that lies at the path of a memory segment is, by its first page. */
typedef enum MemoryKind
{
	MEMORY_KIND_STRANGE,    /* nothing of ours */
	MEMORY_KIND_UNFINISHED, /* a segment whose making was broken off: there is nothing in it */
	MEMORY_KIND_VACANT,     /* a segment of this build in which nothing was granted */
	MEMORY_KIND_SEGMENT
} MemoryKind;

extern MemoryKind memory_kind_of(int descriptor);

/* Is it the header of a segment of this build, with sizes that there can be?  Of whichever boot. */
extern bool memory_header_is_sane(const MemoryHeader *header);

/*
 * Maps a segment whose header is sane: magic, version, fingerprint, boot id and the file's length fit.
 * FABRIC_PROTOCOL: it is not such a segment; FABRIC_NO_MEMORY.  The file descriptor belongs to *memory after
 * FABRIC_OK only.
 */
extern FabricStatus memory_map(int descriptor, Memory *memory);
extern void memory_unmap(Memory *memory);

/* Allocates the pages behind part of the file: FABRIC_NO_MEMORY, then nothing new is allocated. */
extern FabricStatus memory_allocate(const Memory *memory, const void *start, uint64_t bytes);

/* Gives the whole pages in it back. False: errno says why not. */
extern bool memory_give_back(const Memory *memory, const void *start, uint64_t bytes);

#endif /* SHERMAN_MEMORY_H */

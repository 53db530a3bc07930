/*
 * snapshot.h
 *		A memory segment saved to a file, and loaded from it: what lets memory outlive the machine's.  Private
 *		to rdma/.
 *
 * The file:
 *
 *		header		SnapshotHeader, in SNAPSHOT_HEADER_BYTES; written last
 *		blocks		SnapshotBlock and its bytes, for each part of the segment that is in use and not all
 *					zeroes, in the order of their offsets
 *
 * In use are: the instances, the channels, the marks of units, the service's tables, the lock words of the
 * tenants that ever came, and units that have pages.  Redo slots, stripe words and the stage are not saved:
 * they say something about channels that live, and there are none.
 *
 * Every block has a checksum of its bytes and its place under a key of this snapshot alone, and the header
 * one of itself and of all blocks' checksums.  A file is written under another name and gets its own when all
 * of it is durable.
 */
#ifndef SHERMAN_SNAPSHOT_H
#define SHERMAN_SNAPSHOT_H

#include "rdma/memory/memory.h"

#define SNAPSHOT_MAGIC 0x746f687370616e73ull
#define SNAPSHOT_VERSION 1u
#define SNAPSHOT_HEADER_BYTES 8192u

/* Bytes of a block at most: one unit. */
#define SNAPSHOT_BLOCK_BYTES FABRIC_UNIT_BYTES

/* What stands behind the file's name while it is written. */
#define SNAPSHOT_NEW ".new"

typedef struct SnapshotHeader
{
	uint64_t magic;
	uint32_t version;
	uint32_t header_bytes; /* sizeof(SnapshotHeader) */
	uint64_t key;          /* random: blocks of other snapshots do not match */
	uint64_t blocks;
	uint64_t data_bytes; /* in all blocks */
	uint64_t file_bytes;
	uint64_t sums;       /* checksum of the blocks' checksums */
	MemoryHeader memory; /* the segment's */
	uint64_t sum;        /* of the above */
} SnapshotHeader;

typedef struct SnapshotBlock
{
	uint64_t offset; /* in the segment; it and the length are multiples of 8 */
	uint64_t bytes;
	uint64_t sum;
} SnapshotBlock;

_Static_assert(sizeof(SnapshotHeader) <= SNAPSHOT_HEADER_BYTES, "the header has its place");

/* Called at each block, with bytes done and to do at most; false: give up. */
typedef struct SnapshotWatch
{
	bool (*go_on)(void *argument, uint64_t done, uint64_t total);
	void *argument;
} SnapshotWatch;

/* A snapshot that is being read. */
typedef struct SnapshotFile
{
	int descriptor;
	SnapshotHeader header;
} SnapshotFile;

/*
 * Saves a segment that no process changes to `path`, in place of an earlier file. *bytes: the file's length. On an
 * error there is no new snapshot, and `detail` (FABRIC_DETAIL_BYTES) says why: FABRIC_NO_MEMORY (no room),
 * FABRIC_UNREACHABLE (the file cannot be written), FABRIC_EXISTS (another daemon writes it), FABRIC_STOPPED (the
 * watch gave up).
 */
extern FabricStatus snapshot_save(const Memory *memory, const char *path, const SnapshotWatch *watch,
                                  uint64_t *bytes, char *detail);

/*
 * Opens a snapshot and reads its header. FABRIC_NOT_FOUND: there is none; FABRIC_PROTOCOL: it is damaged;
 * FABRIC_DENIED: the file is no snapshot, or another user's: it is not ours to touch; FABRIC_EXISTS: another daemon
 * reads it; FABRIC_UNREACHABLE: it cannot be opened. `detail` says why.
 */
extern FabricStatus snapshot_open(const char *path, SnapshotFile *file, char *detail);
extern void snapshot_close(SnapshotFile *file);

/*
 * Fills a segment that memory_create() made with the plan of the snapshot's segment, and whose header has no
 * no MEMORY_MAGIC.  It has that when all is there, and with it the identity of the segment that was saved.
 * FABRIC_PROTOCOL: the file is damaged; FABRIC_NO_MEMORY: no room for the segment's pages; FABRIC_STOPPED: the
 * watch gave up.
 */
extern FabricStatus snapshot_load(SnapshotFile *file, Memory *memory, const SnapshotWatch *watch,
                                  char *detail);

/*
 * Whether an open file may be a snapshot, complete, damaged or unfinished: a file of this user's that begins with our
 * magic or, if the header was never written, with zeroes. Other files are not ours.
 */
extern bool snapshot_may_be(int descriptor);

/*
 * Removes the file, durably: it will not come back after a crash of the machine.  False: errno says why not.
 */
extern bool snapshot_remove(const char *path);

/* Removes what a save that was killed left behind. */
extern void snapshot_clean(const char *path);

#endif /* SHERMAN_SNAPSHOT_H */

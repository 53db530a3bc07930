/*
 * service_tables.h
 *		The tables of a memory node's service: trees, units of node memory, epochs.  Private to the service.
 *
 * They lie in the service area of the memory object and outlive the daemon, which may be killed between any
 * two stores.  A change of one word is one store.  A longer one goes through the journal: its new bytes are
 * written beside it, then the journal is marked valid by one word, then they are put in place; opening the
 * tables repeats a valid journal.  What takes several changes is ordered so that each prefix is repaired at
 * the next start:
 *
 *		extent granted:	units marked pending, pages taken, extent header written, record changed, marks
 *						cleared
 *						(pending units that the record does not name are free)
 *		tree dropped:	record removed, then units into quarantine (units without a record go there)
 *		tree id taken:	counter raised, then used (a number may be skipped, and is never used twice)
 */
#ifndef SHERMAN_SERVICE_TABLES_H
#define SHERMAN_SERVICE_TABLES_H

#include "../rdma/keys.h"
#include "../rdma/server.h"
#include "directory.h"

/*
 * Units of freed memory that are looked at, and given back, in one go: whoever does it has clients to serve,
 * and giving back 32 MB takes milliseconds.
 */
#define QUARANTINE_SCAN_UNITS 65536u
#define QUARANTINE_FREE_UNITS 512u

/* Freed memory is not given again before the longest READ that is believed is over, twice (F34). */
#define QUARANTINE_US (2 * READ_BOUND_US)

/* Clusters of each tenant whose epochs are kept; as many as can ever attach. */
#define TABLES_EPOCHS 256u

/* Trees are counted in this step, so that another number is another length of the area. */
#define TABLES_TREES_STEP 64u

/* A unit's word: 0 = free, else the tree's id with marks, or its time in quarantine. */
#define UNIT_QUARANTINE (1ull << 63) /* the rest is the microsecond at which it ends */
#define UNIT_PENDING (1ull << 62)    /* granted, not yet in the record */
#define UNIT_FIRST (1ull << 61)      /* an extent begins here */
#define UNIT_TREE_MASK (UNIT_FIRST - 1)

/* Tenants and those without a key: who owns memory is one of so many. */
#define TABLES_TENANTS (FABRIC_MAX_TENANTS + 1)

/* Whom trees and epochs belong to: nobody else is told that they exist. */
typedef struct TablesOwner
{
	uint64_t cluster[2];
	uint64_t tenant; /* < TABLES_TENANTS */
} TablesOwner;

typedef struct ServiceRecord
{
	TreeRecord record;
	uint64_t tenant;      /* the owner's, with record.cluster */
	uint64_t token[2];    /* of the call that made it */
	uint64_t last_offset; /* the newest extent */
	uint64_t last_bytes;
	uint64_t last_generation;
} ServiceRecord;

typedef struct ServiceEpoch
{
	TablesOwner owner;
	uint64_t epoch; /* 0 = unused */
	uint64_t clean;
} ServiceEpoch;

#define JOURNAL_BYTES 512u

typedef struct ServiceJournal
{
	uint64_t valid; /* 1: `bytes` of data belong at `offset` of the area */
	uint64_t offset;
	uint64_t bytes;
	uint8_t data[JOURNAL_BYTES];
} ServiceJournal;

typedef struct ServiceHeader
{
	uint64_t magic; /* written last */
	uint64_t version;
	uint64_t area_bytes;
	uint64_t max_trees;
	uint64_t units;
	uint64_t id_high; /* random, in the upper half of tree ids */
	uint64_t id_next; /* counter in the lower half */
	ServiceJournal journal;
	ServiceEpoch epochs[TABLES_TENANTS][TABLES_EPOCHS]; /* nobody fills another one's */
} ServiceHeader;

/* What a tenant has: shares count as trees. */
typedef struct TablesUse
{
	uint64_t bytes;
	uint64_t trees;
} TablesUse;

/* The daemon's view of the area, and what it keeps in private memory. */
typedef struct ServiceTables
{
	ServiceHeader *header;
	ServiceRecord *records;
	uint64_t *units;
	uint64_t first;         /* offset in NODES of the first unit */
	uint64_t *ids;          /* by record slot: the tree's id or 0; private, for quick search */
	uint32_t last_found;    /* slot where tables_find() begins: who asks of a tree often asks of the same */
	uint64_t used;          /* units with a tree */
	uint64_t quarantined;   /* units in quarantine */
	uint64_t quarantine_us; /* when the first of them is due */
	uint64_t sweep;         /* the unit that tables_quarantine_end() goes on with */
	uint64_t sweep_us;      /* when the first of those that it has passed is due */
	uint64_t search;        /* no unit below this one is free */
	uint64_t extents;
	uint32_t trees;
	TablesUse tenants[TABLES_TENANTS]; /* what each of them has */
} ServiceTables;

/* Length of the area for this many units and trees. */
extern size_t tables_bytes(uint64_t units, uint32_t max_trees);

/* Sets the pointers, and no more: for replaying redo slots before the tables are opened. */
extern void tables_view(ServiceTables *tables, void *area, uint32_t max_trees, uint64_t first,
                        uint64_t units);

/*
 * Makes the tables in a zeroed area, or repairs what is there.  *repaired counts units that were pending or
 * without a record.  `release` is called for pending units that nobody owns.  FABRIC_PROTOCOL: tables of
 * another shape; FABRIC_NO_MEMORY.
 */
typedef void (*TablesRelease)(void *argument, uint64_t offset, uint64_t bytes);
extern FabricStatus tables_open(ServiceTables *tables, size_t area_bytes, uint64_t now_us, uint64_t random,
                                TablesRelease release, void *argument, uint64_t *repaired);
extern void tables_close(ServiceTables *tables);

extern ServiceRecord *tables_find(ServiceTables *tables, uint64_t tree);
extern ServiceRecord *tables_find_token(ServiceTables *tables, const TablesOwner *owner,
                                        const uint64_t *token);
extern bool tables_owns(const TablesOwner *owner, const ServiceRecord *record);

/*
 * The next tree or share of the owner, from slot *position on; *position comes back behind it. NULL: no more.
 */
extern ServiceRecord *tables_next(ServiceTables *tables, const TablesOwner *owner, bool shares,
                                  uint32_t *position);

/* A new id; never returned again. */
extern uint64_t tables_id(ServiceTables *tables);

/* Ids are of another series from now on, which was never begun before: `random` tells it. */
extern void tables_renumber(ServiceTables *tables, uint64_t random);

/* A free slot for a record, or NULL. */
extern ServiceRecord *tables_slot(ServiceTables *tables);

/* Puts a record into its slot, whole or not at all. */
extern void tables_put(ServiceTables *tables, ServiceRecord *slot, const ServiceRecord *record);

/* Removes the record and sends the tree's units into quarantine. Returns how many. */
extern uint64_t tables_remove(ServiceTables *tables, ServiceRecord *slot, uint64_t now_us);

/*
 * Finds `count` free units in a row between the offsets `first` and `end` and marks them pending for the tree. False: there are
 * none.
 */
extern bool tables_units_take(ServiceTables *tables, uint64_t tree, uint64_t count, uint64_t first,
                              uint64_t end, uint64_t *offset);
/* Ends pending: granted, or given back. */
extern void tables_units_grant(ServiceTables *tables, uint64_t offset, uint64_t count);
extern void tables_units_cancel(ServiceTables *tables, uint64_t offset, uint64_t count);

/*
 * Frees units whose quarantine is over, as many as fit into one go; `release` is called for each run of them.
 * As long as some are due, quarantine_us has passed.
 */
extern void tables_quarantine_end(ServiceTables *tables, uint64_t now_us, TablesRelease release,
                                  void *argument);

/* The tree that owns the unit of this offset, 0 = none. */
extern uint64_t tables_owner(const ServiceTables *tables, uint64_t offset);

/* The owner's epoch, or NULL. For both: its tenant is one that there can be. */
extern const ServiceEpoch *tables_epoch(const ServiceTables *tables, const TablesOwner *owner);
/* Sets it. FABRIC_NO_MEMORY: too many clusters. */
extern FabricStatus tables_epoch_set(ServiceTables *tables, const TablesOwner *owner, uint64_t epoch,
                                     bool clean);

#endif /* SHERMAN_SERVICE_TABLES_H */

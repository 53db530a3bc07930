/*
 * service_tables.h
 *		The tables of a memory node's service: trees, units of node memory, epochs.  Private to the service.
 *
 * They lie in the service area of the memory segment and outlive the daemon, which may be killed between any
 * two stores.  A change of one word is one store.  A longer one goes through the journal: its new bytes are
 * written beside it, then the journal is marked valid by one word, then they are put in place; opening the
 * tables repeats a valid journal.  What takes several changes is ordered so that each prefix is repaired at
 * the next start:
 *
 *		extent granted:	units marked pending, pages taken, extent header written, record changed, marks
 *						cleared
 *						(pending units that the record does not name are free)
 *		extent returned: units marked returned, its first one first, then the record's bytes.  With the first
 *						mark it is in quarantine, whatever becomes of the record
 *		tree dropped:	record removed; its units still name its slot, which has no record: that is
 *						quarantine.  Its extents are freed in later rounds, each from its last unit on, and then
 *						the slot is free
 *		tree id taken:	counter raised, then used (a number may be skipped, and is never used twice)
 *
 * Nothing that a call does takes longer the more units or records there are: what the daemon needs for that is in private memory,
 * made when the tables are opened.
 */
#ifndef SHERMAN_SERVICE_TABLES_H
#define SHERMAN_SERVICE_TABLES_H

#include "rdma/keys.h"
#include "rdma/server.h"
#include "tree/client/directory.h"
#include "tree/service/service_runs.h"

/* Units of freed memory that are given back in one go: clients wait meanwhile, and 32 MB take milliseconds. */
#define QUARANTINE_FREE_UNITS 512u

/* Extents or slots that one round of a call examines: then it is the other clients' turn. */
#define TABLES_ROUND 1024u

/* The quarantine of freed memory: twice the longest READ that is accepted. */
#define QUARANTINE_US (2 * READ_BOUND_US)

/* Clusters of each tenant whose epochs are kept; as many as can ever attach. */
#define TABLES_EPOCHS 256u

/* The service's areas: header and records; units. */
#define TABLES_AREA_RECORDS 0u
#define TABLES_AREA_UNITS 1u

/* The records' area grows by so many records at least. */
#define TABLES_TREES_STEP 64u

/*
 * A unit's word: 0 = free, else the number of a record's slot plus 1, with marks.  A tree's id is no name here: two tenants may
 * have the same.  If the slot has no record the unit is in quarantine.
 */
#define UNIT_PENDING (1ull << 62) /* granted, not yet in the record */
#define UNIT_FIRST (1ull << 61)   /* an extent begins here */
#define UNIT_GIVEN                                                                                           \
	(1ull << 60) /* of an extent that was given back: in quarantine, though the record may be there */
#define UNIT_SLOT_MASK 0xffffffffull

/* No extent is longer. */
#define TABLES_EXTENT_UNITS (EXTENT_MAX_BYTES / FABRIC_UNIT_BYTES)

/* Tree ids are below this. Ids in calls are checked against it, because elsewhere ids are stored with marks. */
#define TABLES_ID_LIMIT (1ull << 61)

/* Possible owners of memory: the tenants, and the clients without a key. */
#define TABLES_TENANTS (FABRIC_MAX_TENANTS + 1)

/* The owner of trees and epochs: no other client learns that they exist. */
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
	uint64_t id_high; /* random, in the upper half of tree ids */
	uint64_t id_next; /* counter in the lower half */
	ServiceJournal journal;
	ServiceEpoch epochs[TABLES_TENANTS][TABLES_EPOCHS]; /* nobody fills another one's */
} ServiceHeader;

/* The memory of a tenant; shares count as trees. */
typedef struct TablesUse
{
	uint64_t bytes;
	uint64_t trees;
	/* Memory that it has dropped, which is not granted again before the quarantine is over. */
	uint64_t going_bytes;
	uint64_t going_trees;
} TablesUse;

/* The daemon's data on a record's slot; in private memory, as all that follows. Numbers plus 1; 0 = none. */
typedef struct TablesSlot
{
	uint64_t tree;    /* the record's id; 0: the slot has no record */
	uint64_t units;   /* of its extents */
	uint64_t due_us;  /* without a record: when the quarantine of its units is over */
	uint32_t extents; /* how many */
	uint32_t first;   /* the oldest extent: its first unit */
	uint32_t last;    /* the newest one */
	uint32_t tenant; /* whose the record is or was; TABLES_TENANTS: of an earlier daemon's, counted nowhere */
	uint32_t by_tree;    /* the next slot whose id has the same hash */
	uint32_t by_token;   /* the next one whose token has the same */
	uint32_t token_list; /* that hash plus 1; 0: it has none */
	uint32_t after;      /* the next free slot, or the next one in quarantine */
} TablesSlot;

/* The daemon's data on an extent, at its first unit; numbers of units plus 1, 0 = none. */
typedef struct TablesLink
{
	uint32_t next;   /* the next extent of its slot, or the next one that was given back */
	uint32_t before; /* of its slot: the one before it */
	uint32_t tenant; /* given back: the tenant to whose quarantine it counts; TABLES_TENANTS: none */
	uint32_t reserved;
	uint64_t due_us; /* given back: when its quarantine is over */
} TablesLink;

/* The daemon's view of the area, and its private data. */
typedef struct ServiceTables
{
	ServiceHeader *header;
	ServiceRecord *records;
	uint64_t *units;
	uint64_t first;      /* offset in NODES of the first unit */
	uint64_t count;      /* of units */
	uint32_t max_trees;  /* slots */
	uint32_t most_trees; /* that there may ever be */
	uint32_t trees;      /* records */
	TablesSlot *slots;
	uint32_t *by_tree; /* slots by the hash of their record's id: the first of each list */
	uint32_t *by_token;
	uint64_t hash_mask;
	uint64_t hash_seed;   /* not known to clients, so that none can fill one list */
	TablesLink *links;    /* by an extent's first unit */
	TablesRuns runs;      /* of free units */
	uint32_t free_slot;   /* list of slots without record and units */
	uint32_t going_first; /* queue of slots in quarantine */
	uint32_t going_last;
	uint32_t given_first; /* queue of extents that were given back: first units plus 1 */
	uint32_t given_last;
	uint64_t used;        /* units with a tree */
	uint64_t quarantined; /* units in quarantine */
	uint64_t extents;
	uint64_t looked; /* extents, slots and units that calls have examined: tests compare it with a bound */
	TablesUse tenants[TABLES_TENANTS]; /* what each of them has */
} ServiceTables;

/* Length of the header's and records' area for this many trees. */
extern uint64_t tables_bytes(uint32_t trees);

/* Where the tables are. */
typedef struct TablesPlace
{
	void *area; /* header and records, at least tables_bytes(0) long */
	uint64_t area_bytes;
	uint64_t *units;
	uint64_t unit_count;
	uint64_t first;      /* offset in NODES of the first unit */
	uint32_t most_trees; /* tables_grow() gives room for so many at most */
} TablesPlace;

/* Sets the pointers, and no more: for replaying redo slots before the tables are opened. */
extern void tables_view(ServiceTables *tables, const TablesPlace *place);

/*
 * Whether these are tables that a daemon of this kind made for this area, by their header and journal. If so, the
 * journal's change is repeated. The memory may be damaged: this must be called before anything else reads the tables.
 */
extern bool tables_check(ServiceTables *tables);

/*
 * Makes the tables in a zeroed area, or repairs what is there. *repaired counts pending units, and records that did
 * not match their units. `release` is called for pending units without an owner. FABRIC_PROTOCOL: tables of another
 * shape, or damaged ones; FABRIC_NO_MEMORY.
 */
typedef void (*TablesRelease)(void *argument, uint64_t offset, uint64_t bytes);
extern FabricStatus tables_open(ServiceTables *tables, uint64_t now_us, uint64_t random,
                                TablesRelease release, void *argument, uint64_t *repaired);
extern void tables_close(ServiceTables *tables);

/* The records' area has become so long: there are more slots. */
extern void tables_grow(ServiceTables *tables, uint64_t area_bytes);

/* The owner's tree of that id, or NULL: others have trees of that id, too, which are nothing to it. */
extern ServiceRecord *tables_find(ServiceTables *tables, const TablesOwner *owner, uint64_t tree);
/* The tree that was made with the token: shares are not. */
extern ServiceRecord *tables_find_token(ServiceTables *tables, const TablesOwner *owner,
                                        const uint64_t *token);
extern bool tables_owns(const TablesOwner *owner, const ServiceRecord *record);

/*
 * The next tree or share of the owner, from slot *position on; *position comes back behind it, or behind the last slot that was
 * looked at: NULL with *position less than max_trees: there may be more.
 */
extern ServiceRecord *tables_next(ServiceTables *tables, const TablesOwner *owner, bool shares,
                                  uint32_t *position);

/* A new id, which is never returned again. `random`: begins another series when this one is used up. */
extern uint64_t tables_id(ServiceTables *tables, uint64_t random);

/* Begins a new series of ids, chosen by `random`, which was never used before. */
extern void tables_renumber(ServiceTables *tables, uint64_t random);

/* A free slot for a record, or NULL. It is free until a record is put into it. */
extern ServiceRecord *tables_slot(ServiceTables *tables);

/* Puts a record into its slot, whole or not at all. */
extern void tables_put(ServiceTables *tables, ServiceRecord *slot, const ServiceRecord *record);

/* Removes the record: its units are in quarantine from then on, and its slot is with them. Returns how many. */
extern uint64_t tables_remove(ServiceTables *tables, ServiceRecord *slot, uint64_t now_us);

/* ---- service_units.c ---- */

/* Finds whose each unit is, when the tables are opened; as tables_open(). */
extern FabricStatus tables_units_open(ServiceTables *tables, uint64_t now_us, TablesRelease release,
                                      void *argument, uint64_t *repaired);

/*
 * Finds `count` free units in a row between the offsets `first` and `end` and marks them pending for the slot. False: there are
 * none.
 */
extern bool tables_units_take(ServiceTables *tables, const ServiceRecord *slot, uint64_t count,
                              uint64_t first, uint64_t end, uint64_t *offset);
/* Ends pending: granted, or given back. */
extern void tables_units_grant(ServiceTables *tables, uint64_t offset, uint64_t count);
extern void tables_units_cancel(ServiceTables *tables, uint64_t offset, uint64_t count);

/* An extent of a record. */
typedef struct TablesExtent
{
	uint64_t offset;
	uint64_t bytes;
	uint32_t name; /* what tables_extent_next() goes on behind */
} TablesExtent;

/*
 * The record's next extent behind the one of that name, in the order in which they came; 0, or a name that is none of it: the first.
 * False: there are no more.
 */
extern bool tables_extent_next(ServiceTables *tables, const ServiceRecord *slot, uint32_t name,
                               TablesExtent *extent);

/* A slot whose record was just removed goes into quarantine with its units, or is free if it has none. */
extern void tables_slot_leaves(ServiceTables *tables, uint32_t slot, uint64_t now_us);

/* When the first quarantine is over. There are units in quarantine. */
extern uint64_t tables_quarantine_us(const ServiceTables *tables);

/*
 * Frees units whose quarantine is over, as many as fit into one go; `release` is called for each extent.  As long as some are due,
 * tables_quarantine_us() has passed.
 */
extern void tables_quarantine_end(ServiceTables *tables, uint64_t now_us, TablesRelease release,
                                  void *argument);

/* The record that owns the unit of this offset, granted and not pending; NULL = none. Works on a view, too. */
extern const ServiceRecord *tables_owner(const ServiceTables *tables, uint64_t offset);

/*
 * Does one of the slot's extents, granted and not given back, begin at this offset?  Then *bytes is its length.  The offset may be
 * anybody's word.
 */
extern bool tables_extent_at(const ServiceTables *tables, const ServiceRecord *slot, uint64_t offset,
                             uint64_t *bytes);
/*
 * Takes an extent, which is not the newest one, from its record: it is in quarantine from then on.
 */
extern void tables_extent_give(ServiceTables *tables, ServiceRecord *slot, uint64_t offset, uint64_t now_us);

/* ---- service_tables.c ---- */

/* The owner's epoch, or NULL. For both: its tenant is one that there can be. */
extern const ServiceEpoch *tables_epoch(const ServiceTables *tables, const TablesOwner *owner);
/* Forgets all epochs of a tenant's clusters. */
extern void tables_forget_epochs(ServiceTables *tables, uint32_t tenant);
/* Sets it. FABRIC_NO_MEMORY: too many clusters. */
extern FabricStatus tables_epoch_set(ServiceTables *tables, const TablesOwner *owner, uint64_t epoch,
                                     bool clean);

#endif /* SHERMAN_SERVICE_TABLES_H */

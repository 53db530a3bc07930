/*
 * service_tables.c
 *		See service_tables.h.
 */
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tree/service/service_tables.h"

#define TABLES_MAGIC 0x7461626c65733031ull
#define TABLES_VERSION 8u

_Static_assert(sizeof(ServiceRecord) <= JOURNAL_BYTES, "a record goes through the journal whole");
_Static_assert(sizeof(ServiceEpoch) <= JOURNAL_BYTES, "an epoch goes through the journal whole");
_Static_assert(sizeof(ServiceRecord) % 8 == 0, "records are whole words");

static size_t
round_up(size_t bytes, size_t to)
{
	return (bytes + to - 1) / to * to;
}

static size_t
records_offset(void)
{
	return round_up(sizeof(ServiceHeader), LINE_BYTES);
}

uint64_t
tables_bytes(uint32_t trees)
{
	return records_offset() + (uint64_t) trees * sizeof(ServiceRecord);
}

/* Records that an area of this length has room for. */
static uint32_t
slots_in(uint64_t area_bytes)
{
	return (uint32_t) ((area_bytes - records_offset()) / sizeof(ServiceRecord));
}

void
tables_view(ServiceTables *tables, const TablesPlace *place)
{
	assert(((uintptr_t) place->area & 7) == 0);
	assert(place->area_bytes >= tables_bytes(0));
	memset(tables, 0, sizeof(*tables));
	tables->header = place->area;
	tables->records = (ServiceRecord *) ((char *) place->area + records_offset());
	tables->units = place->units;
	tables->first = place->first;
	tables->count = place->unit_count;
	tables->max_trees = slots_in(place->area_bytes);
	tables->most_trees = place->most_trees > tables->max_trees ? place->most_trees : tables->max_trees;
}

/* One word, by one store, before all stores that follow. */
static void
word_store(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

/* ---- journal ---- */

/* Is the range one of `count` places of `bytes` each, from `first` on? */
static bool
is_place(uint64_t offset, uint64_t first, uint64_t count, uint64_t bytes)
{
	return offset >= first && (offset - first) % bytes == 0 && (offset - first) / bytes < count;
}

/* Whether the journal holds a change that a daemon writes by it: a record, or an epoch. */
static bool
journal_is_sane(const ServiceTables *tables)
{
	const ServiceJournal *journal = &tables->header->journal;

	if (journal->bytes == sizeof(ServiceRecord))
		return is_place(journal->offset, records_offset(), tables->max_trees, sizeof(ServiceRecord));
	return journal->bytes == sizeof(ServiceEpoch) &&
	       is_place(journal->offset, offsetof(ServiceHeader, epochs),
	                (uint64_t) TABLES_TENANTS * TABLES_EPOCHS, sizeof(ServiceEpoch));
}

static void
journal_apply(ServiceTables *tables)
{
	ServiceJournal *journal = &tables->header->journal;

	memcpy((char *) tables->header + journal->offset, journal->data, journal->bytes);
	word_store(&journal->valid, 0);
}

/* Changes a record or an epoch, whole or not at all. */
static void
journal_store(ServiceTables *tables, void *target, const void *data, size_t bytes)
{
	ServiceJournal *journal = &tables->header->journal;

	assert(bytes <= JOURNAL_BYTES);
	assert(journal->valid == 0);
	memcpy(journal->data, data, bytes);
	journal->offset = (uint64_t) ((char *) target - (char *) tables->header);
	journal->bytes = bytes;
	assert(journal_is_sane(tables));
	word_store(&journal->valid, 1);
	journal_apply(tables);
}

/* ---- slots ---- */

static uint32_t
slot_number(const ServiceTables *tables, const ServiceRecord *slot)
{
	assert(slot >= tables->records && slot < tables->records + tables->max_trees);
	return (uint32_t) (slot - tables->records);
}

static uint32_t *
list_of_tree(const ServiceTables *tables, uint64_t tree)
{
	return &tables->by_tree[XXH3_64bits_withSeed(&tree, sizeof(tree), tables->hash_seed) & tables->hash_mask];
}

static uint32_t *
list_of_token(const ServiceTables *tables, const uint64_t token[2])
{
	return &tables->by_token[XXH3_64bits_withSeed(token, 2 * sizeof(*token), tables->hash_seed) &
	                         tables->hash_mask];
}

/* Makes the slot's record be found. */
static void
slot_enter(ServiceTables *tables, uint32_t number, const ServiceRecord *record)
{
	TablesSlot *slot = &tables->slots[number];
	uint32_t *by_tree = list_of_tree(tables, record->record.tree);
	uint32_t *by_token = list_of_token(tables, record->token);

	assert(slot->token_list == 0);
	slot->tree = record->record.tree;
	slot->tenant = (uint32_t) record->tenant;
	slot->by_tree = *by_tree;
	*by_tree = number + 1;
	/* Shares were made without a token, and are found by none. */
	if ((record->record.flags & TREE_RECORD_SHARE) == 0)
	{
		slot->token_list = (uint32_t) (by_token - tables->by_token) + 1;
		slot->by_token = *by_token;
		*by_token = number + 1;
	}
	tables->trees++;
	tables->tenants[record->tenant].trees++;
}

/* Makes it be found no more. */
static void
slot_leave(ServiceTables *tables, uint32_t number)
{
	TablesSlot *slot = &tables->slots[number];
	uint32_t *link = list_of_tree(tables, slot->tree);

	while (*link != number + 1)
		link = &tables->slots[*link - 1].by_tree;
	*link = slot->by_tree;
	if (slot->token_list != 0)
	{
		link = &tables->by_token[slot->token_list - 1];
		while (*link != number + 1)
			link = &tables->slots[*link - 1].by_token;
		*link = slot->by_token;
		slot->token_list = 0;
	}
	slot->tree = 0;
	tables->trees--;
	tables->tenants[slot->tenant].trees--;
}

/* ---- opening ---- */

bool
tables_check(ServiceTables *tables)
{
	ServiceHeader *header = tables->header;

	if (header->magic != TABLES_MAGIC || header->version != TABLES_VERSION)
		return false;
	if (header->journal.valid == 0)
		return true;
	if (!journal_is_sane(tables))
		return false;
	journal_apply(tables);
	return true;
}

/* Takes private memory for the most trees that there can be: unused parts of it have no pages. */
static bool
tables_prepare(ServiceTables *tables, uint64_t random)
{
	uint64_t lists = 1;

	while (lists < tables->most_trees)
		lists *= 2;
	tables->hash_mask = lists - 1;
	tables->hash_seed = random;
	tables->slots = calloc(tables->most_trees, sizeof(TablesSlot));
	tables->by_tree = calloc(lists, sizeof(uint32_t));
	tables->by_token = calloc(lists, sizeof(uint32_t));
	tables->links = calloc(tables->count, sizeof(TablesLink));
	return tables->slots != NULL && tables->by_tree != NULL && tables->by_token != NULL &&
	       tables->links != NULL;
}

/* Makes all records be found. False: one of them is none that a daemon has written. */
static bool
records_open(ServiceTables *tables)
{
	for (uint32_t i = 0; i < tables->max_trees; i++)
	{
		const ServiceRecord *record = &tables->records[i];
		TablesOwner owner = {.cluster = {record->record.cluster[0], record->record.cluster[1]},
		                     .tenant = record->tenant};

		tables->slots[i].tenant = TABLES_TENANTS;
		if (record->record.tree == 0)
			continue;
		if (record->tenant >= TABLES_TENANTS || record->record.tree >= TABLES_ID_LIMIT ||
		    tables_find(tables, &owner, record->record.tree) != NULL)
			return false;
		slot_enter(tables, i, record);
	}
	return true;
}

/* Is the record's newest extent one that it has? */
static bool
last_extent_is_there(const ServiceTables *tables, const ServiceRecord *record, uint32_t number)
{
	uint64_t unit = (record->last_offset - tables->first) / FABRIC_UNIT_BYTES;
	uint64_t word = (uint64_t) number + 1;

	if (record->record.extents == 0)
		return true;
	if (record->last_offset < tables->first || record->last_offset % FABRIC_UNIT_BYTES != 0 ||
	    unit >= tables->count || tables->units[unit] != (word | UNIT_FIRST))
		return false;
	for (uint64_t i = 1; i < record->last_bytes / FABRIC_UNIT_BYTES; i++)
	{
		if (i >= TABLES_EXTENT_UNITS || unit + i >= tables->count || tables->units[unit + i] != word)
			return false;
	}
	return record->last_bytes > 0 && record->last_bytes % FABRIC_UNIT_BYTES == 0;
}

/* Holds each slot against its units, which are known by now. */
static bool
slots_open(ServiceTables *tables, uint64_t now_us, uint64_t *repaired)
{
	for (uint32_t i = tables->max_trees; i > 0; i--)
	{
		ServiceRecord *record = &tables->records[i - 1];
		const TablesSlot *slot = &tables->slots[i - 1];
		uint64_t bytes = slot->units * FABRIC_UNIT_BYTES;

		if (slot->tree == 0)
		{
			tables->used -= slot->units;
			tables->extents -= slot->extents;
			tables_slot_leaves(tables, i - 1, now_us);
			continue;
		}
		if (!last_extent_is_there(tables, record, i - 1))
			return false;
		/* A copy that was being made is counted in the record, and so is an extent that was being given back. */
		if (record->record.bytes != bytes)
		{
			word_store(&record->record.bytes, bytes);
			++*repaired;
		}
		tables->tenants[slot->tenant].bytes += bytes;
	}
	return true;
}

void
tables_renumber(ServiceTables *tables, uint64_t random)
{
	word_store(&tables->header->id_high, (random & 0x0fffffff) | 1);
	word_store(&tables->header->id_next, 1);
}

FabricStatus
tables_open(ServiceTables *tables, uint64_t now_us, uint64_t random, TablesRelease release, void *argument,
            uint64_t *repaired)
{
	ServiceHeader *header = tables->header;
	FabricStatus status;

	assert(header != NULL);
	*repaired = 0;
	if (header->magic == 0)
	{
		header->version = TABLES_VERSION;
		tables_renumber(tables, random);
		word_store(&header->magic, TABLES_MAGIC);
	}
	if (!tables_check(tables))
		return FABRIC_PROTOCOL;
	if (!tables_prepare(tables, random))
		return FABRIC_NO_MEMORY;
	if (!records_open(tables))
		return FABRIC_PROTOCOL;
	status = tables_units_open(tables, now_us, release, argument, repaired);
	if (status == FABRIC_OK && !slots_open(tables, now_us, repaired))
		status = FABRIC_PROTOCOL;
	return status;
}

void
tables_close(ServiceTables *tables)
{
	assert(tables != NULL);
	runs_close(&tables->runs);
	free(tables->slots);
	free(tables->by_tree);
	free(tables->by_token);
	free(tables->links);
	memset(tables, 0, sizeof(*tables));
}

void
tables_grow(ServiceTables *tables, uint64_t area_bytes)
{
	uint32_t before = tables->max_trees;

	assert(slots_in(area_bytes) >= before && slots_in(area_bytes) <= tables->most_trees);
	tables->max_trees = slots_in(area_bytes);
	/* The new part of an area is zero: it has no records. */
	for (uint32_t i = tables->max_trees; i > before; i--)
	{
		tables->slots[i - 1].tenant = TABLES_TENANTS;
		tables_slot_leaves(tables, i - 1, 0);
	}
}

/* ---- records ---- */

bool
tables_owns(const TablesOwner *owner, const ServiceRecord *record)
{
	return record->tenant == owner->tenant && record->record.cluster[0] == owner->cluster[0] &&
	       record->record.cluster[1] == owner->cluster[1];
}

ServiceRecord *
tables_find(ServiceTables *tables, const TablesOwner *owner, uint64_t tree)
{
	assert(tables->slots != NULL);
	if (tree == 0)
		return NULL;
	for (uint32_t i = *list_of_tree(tables, tree); i != 0; i = tables->slots[i - 1].by_tree)
	{
		if (tables->slots[i - 1].tree == tree && tables_owns(owner, &tables->records[i - 1]))
			return &tables->records[i - 1];
	}
	return NULL;
}

ServiceRecord *
tables_find_token(ServiceTables *tables, const TablesOwner *owner, const uint64_t *token)
{
	assert(owner != NULL);
	assert(token != NULL);
	for (uint32_t i = *list_of_token(tables, token); i != 0; i = tables->slots[i - 1].by_token)
	{
		ServiceRecord *record = &tables->records[i - 1];

		if (record->token[0] == token[0] && record->token[1] == token[1] && tables_owns(owner, record))
			return record;
	}
	return NULL;
}

ServiceRecord *
tables_next(ServiceTables *tables, const TablesOwner *owner, bool shares, uint32_t *position)
{
	assert(position != NULL);
	assert(tables->slots != NULL);
	for (uint32_t looked = 0; *position < tables->max_trees && looked < TABLES_ROUND; looked++)
	{
		uint32_t i = (*position)++;
		ServiceRecord *record = &tables->records[i];

		tables->looked++;
		if (tables->slots[i].tree != 0 && tables->slots[i].tenant == owner->tenant &&
		    tables_owns(owner, record) && ((record->record.flags & TREE_RECORD_SHARE) != 0) == shares)
			return record;
	}
	return NULL;
}

/* Does anybody have a tree of that id? */
static bool
id_is_taken(const ServiceTables *tables, uint64_t tree)
{
	uint32_t i = *list_of_tree(tables, tree);

	while (i != 0 && tables->slots[i - 1].tree != tree)
		i = tables->slots[i - 1].by_tree;
	return i != 0;
}

uint64_t
tables_id(ServiceTables *tables, uint64_t random)
{
	ServiceHeader *header = tables->header;

	/* A client may have made a share of an id that we have not given yet. */
	for (;;)
	{
		uint64_t next = header->id_next;
		uint64_t tree = header->id_high << 32 | next;

		if (next == 0 || next >= UINT32_MAX)
		{
			tables_renumber(tables, random);
			continue;
		}
		word_store(&header->id_next, next + 1);
		if (!id_is_taken(tables, tree))
			return tree;
	}
}

ServiceRecord *
tables_slot(ServiceTables *tables)
{
	assert(tables->slots != NULL);
	return tables->free_slot == 0 ? NULL : &tables->records[tables->free_slot - 1];
}

void
tables_put(ServiceTables *tables, ServiceRecord *slot, const ServiceRecord *record)
{
	uint32_t number = slot_number(tables, slot);
	bool is_new = tables->slots[number].tree == 0;

	assert(record->tenant < TABLES_TENANTS);
	assert(is_new ? tables->free_slot == number + 1 : tables->slots[number].tree == record->record.tree);
	journal_store(tables, slot, record, sizeof(*record));
	if (!is_new)
		return;
	tables->free_slot = tables->slots[number].after;
	slot_enter(tables, number, record);
}

uint64_t
tables_remove(ServiceTables *tables, ServiceRecord *slot, uint64_t now_us)
{
	uint32_t number = slot_number(tables, slot);
	uint64_t units = tables->slots[number].units;
	TablesUse *use = &tables->tenants[tables->slots[number].tenant];

	assert(tables->slots[number].tree != 0);
	assert(use->trees > 0 && use->bytes >= units * FABRIC_UNIT_BYTES);
	use->bytes -= units * FABRIC_UNIT_BYTES;
	use->going_bytes += units * FABRIC_UNIT_BYTES;
	use->going_trees += units > 0;
	/* The id makes the record: with this store it is gone. */
	slot_leave(tables, number);
	word_store(&slot->record.tree, 0);
	tables->used -= units;
	tables->extents -= tables->slots[number].extents;
	tables_slot_leaves(tables, number, now_us);
	return units;
}

/* ---- epochs ---- */

const ServiceEpoch *
tables_epoch(const ServiceTables *tables, const TablesOwner *owner)
{
	assert(owner->tenant < TABLES_TENANTS);
	for (uint32_t i = 0; i < TABLES_EPOCHS; i++)
	{
		const ServiceEpoch *epoch = &tables->header->epochs[owner->tenant][i];

		if (epoch->epoch != 0 && memcmp(&epoch->owner, owner, sizeof(*owner)) == 0)
			return epoch;
	}
	return NULL;
}

FabricStatus
tables_epoch_set(ServiceTables *tables, const TablesOwner *owner, uint64_t epoch, bool clean)
{
	ServiceEpoch value = {.owner = *owner, .epoch = epoch, .clean = clean};
	ServiceEpoch *slot = (ServiceEpoch *) tables_epoch(tables, owner);

	assert(epoch != 0);
	for (uint32_t i = 0; slot == NULL && i < TABLES_EPOCHS; i++)
	{
		if (tables->header->epochs[owner->tenant][i].epoch == 0)
			slot = &tables->header->epochs[owner->tenant][i];
	}
	if (slot == NULL)
		return FABRIC_NO_MEMORY;
	journal_store(tables, slot, &value, sizeof(value));
	return FABRIC_OK;
}

void
tables_forget_epochs(ServiceTables *tables, uint32_t tenant)
{
	assert(tenant < TABLES_TENANTS);
	/* One without an epoch is none. */
	for (uint32_t i = 0; i < TABLES_EPOCHS; i++)
		word_store(&tables->header->epochs[tenant][i].epoch, 0);
}

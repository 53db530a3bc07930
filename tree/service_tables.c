/*
 * service_tables.c
 *		See service_tables.h.
 */
#include <stdlib.h>

#include "service_tables.h"

#define TABLES_MAGIC 0x7461626c65733031ull
#define TABLES_VERSION 6u

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

static size_t
units_offset(uint32_t max_trees)
{
	return records_offset() + round_up((size_t) max_trees * sizeof(ServiceRecord), LINE_BYTES);
}

size_t
tables_bytes(uint64_t units, uint32_t max_trees)
{
	assert(units > 0);
	assert(max_trees % TABLES_TREES_STEP == 0);
	return units_offset(max_trees) + units * sizeof(uint64_t);
}

void
tables_view(ServiceTables *tables, void *area, uint32_t max_trees, uint64_t first, uint64_t units)
{
	assert(((uintptr_t) area & 7) == 0);
	assert(units > 0);
	memset(tables, 0, sizeof(*tables));
	tables->header = area;
	tables->records = (ServiceRecord *) ((char *) area + records_offset());
	tables->units = (uint64_t *) ((char *) area + units_offset(max_trees));
	tables->first = first;
	if (tables->header->magic == 0)
	{
		/* Not made yet: tables_open() does that, and finds these here. */
		tables->header->max_trees = max_trees;
		tables->header->units = units;
	}
}

/* One word, by one store, before all stores that follow. */
static void
word_store(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

/* ---- journal ---- */

static void
journal_apply(ServiceTables *tables)
{
	ServiceJournal *journal = &tables->header->journal;

	assert(journal->bytes <= JOURNAL_BYTES);
	assert(journal->offset + journal->bytes <= tables->header->area_bytes);
	memcpy((char *) tables->header + journal->offset, journal->data, journal->bytes);
	word_store(&journal->valid, 0);
}

/* Changes up to JOURNAL_BYTES of the area, whole or not at all. */
static void
journal_store(ServiceTables *tables, void *target, const void *data, size_t bytes)
{
	ServiceJournal *journal = &tables->header->journal;

	assert(bytes <= JOURNAL_BYTES);
	assert(journal->valid == 0);
	memcpy(journal->data, data, bytes);
	journal->offset = (uint64_t) ((char *) target - (char *) tables->header);
	journal->bytes = bytes;
	word_store(&journal->valid, 1);
	journal_apply(tables);
}

/* ---- opening ---- */

/* Puts the unit right after a start; true if there was something to repair. */
static bool
unit_repair(ServiceTables *tables, uint64_t unit, uint64_t now_us, bool *released)
{
	uint64_t word = tables->units[unit];
	uint64_t offset = tables->first + unit * FABRIC_UNIT_BYTES;
	const ServiceRecord *record;

	*released = false;
	if (word == 0)
		return false;
	if (word & UNIT_QUARANTINE)
	{
		/* Times of an earlier daemon mean nothing: it begins anew. */
		word_store(&tables->units[unit], UNIT_QUARANTINE | (now_us + QUARANTINE_US));
		return false;
	}
	record = tables_find(tables, word & UNIT_TREE_MASK);
	if (word & UNIT_PENDING)
	{
		if (record != NULL && offset >= record->last_offset &&
		    offset < record->last_offset + record->last_bytes)
			word_store(&tables->units[unit], word & ~UNIT_PENDING);
		else
		{
			word_store(&tables->units[unit], 0);
			*released = true;
		}
		return true;
	}
	if (record != NULL)
		return false;
	word_store(&tables->units[unit], UNIT_QUARANTINE | (now_us + QUARANTINE_US));
	return true;
}

static uint64_t
units_repair(ServiceTables *tables, uint64_t now_us, TablesRelease release, void *argument)
{
	uint64_t repaired = 0;

	assert(tables->ids != NULL);
	assert(release != NULL);
	tables->search = tables->header->units;
	for (uint64_t unit = 0; unit < tables->header->units; unit++)
	{
		bool released;

		repaired += unit_repair(tables, unit, now_us, &released);
		if (released)
			release(argument, tables->first + unit * FABRIC_UNIT_BYTES, FABRIC_UNIT_BYTES);
		if (tables->units[unit] & UNIT_QUARANTINE)
			tables->quarantined++;
		else if (tables->units[unit] != 0)
		{
			tables->used++;
			tables->extents += (tables->units[unit] & UNIT_FIRST) != 0;
		}
		else if (unit < tables->search)
			tables->search = unit;
	}
	tables->quarantine_us = now_us + QUARANTINE_US;
	tables->sweep_us = UINT64_MAX;
	return repaired;
}

/* What the record's tenant has, or NULL: a record that no daemon of this kind wrote. */
static TablesUse *
tenant_use(ServiceTables *tables, const ServiceRecord *record)
{
	return record->tenant < TABLES_TENANTS ? &tables->tenants[record->tenant] : NULL;
}

void
tables_renumber(ServiceTables *tables, uint64_t random)
{
	word_store(&tables->header->id_high, (random & 0x0fffffff) | 1);
	word_store(&tables->header->id_next, 1);
}

FabricStatus
tables_open(ServiceTables *tables, size_t area_bytes, uint64_t now_us, uint64_t random, TablesRelease release,
            void *argument, uint64_t *repaired)
{
	ServiceHeader *header = tables->header;

	assert(header != NULL);
	assert(area_bytes >= tables_bytes(header->units, (uint32_t) header->max_trees));
	*repaired = 0;
	if (header->magic == 0)
	{
		header->version = TABLES_VERSION;
		header->area_bytes = area_bytes;
		tables_renumber(tables, random);
		word_store(&header->magic, TABLES_MAGIC);
	}
	if (header->magic != TABLES_MAGIC || header->version != TABLES_VERSION ||
	    header->area_bytes != area_bytes)
		return FABRIC_PROTOCOL;
	if (header->journal.valid)
		journal_apply(tables);
	tables->ids = calloc(header->max_trees, sizeof(uint64_t));
	if (tables->ids == NULL)
		return FABRIC_NO_MEMORY;
	for (uint32_t i = 0; i < header->max_trees; i++)
	{
		const ServiceRecord *record = &tables->records[i];
		TablesUse *use = tenant_use(tables, record);

		tables->ids[i] = record->record.tree;
		if (tables->ids[i] == 0)
			continue;
		if (use == NULL)
			return FABRIC_PROTOCOL;
		tables->trees++;
		use->trees++;
		use->bytes += record->record.bytes;
	}
	*repaired = units_repair(tables, now_us, release, argument);
	return FABRIC_OK;
}

void
tables_close(ServiceTables *tables)
{
	assert(tables != NULL);
	free(tables->ids);
	memset(tables, 0, sizeof(*tables));
}

/* ---- records ---- */

ServiceRecord *
tables_find(ServiceTables *tables, uint64_t tree)
{
	assert(tables->ids != NULL);
	if (tree == 0)
		return NULL;
	if (tables->ids[tables->last_found] == tree)
		return &tables->records[tables->last_found];
	for (uint32_t i = 0; i < tables->header->max_trees; i++)
	{
		if (tables->ids[i] == tree)
		{
			tables->last_found = i;
			return &tables->records[i];
		}
	}
	return NULL;
}

bool
tables_owns(const TablesOwner *owner, const ServiceRecord *record)
{
	return record->tenant == owner->tenant && record->record.cluster[0] == owner->cluster[0] &&
	       record->record.cluster[1] == owner->cluster[1];
}

ServiceRecord *
tables_find_token(ServiceTables *tables, const TablesOwner *owner, const uint64_t *token)
{
	assert(owner != NULL);
	assert(token != NULL);
	for (uint32_t i = 0; i < tables->header->max_trees; i++)
	{
		ServiceRecord *record = &tables->records[i];

		if (tables->ids[i] != 0 && record->token[0] == token[0] && record->token[1] == token[1] &&
		    tables_owns(owner, record))
			return record;
	}
	return NULL;
}

ServiceRecord *
tables_next(ServiceTables *tables, const TablesOwner *owner, bool shares, uint32_t *position)
{
	assert(position != NULL);
	assert(tables->ids != NULL);
	for (uint32_t i = *position; i < tables->header->max_trees; i++)
	{
		ServiceRecord *record = &tables->records[i];

		if (tables->ids[i] == 0 || !tables_owns(owner, record) ||
		    ((record->record.flags & TREE_RECORD_SHARE) != 0) != shares)
			continue;
		*position = i + 1;
		return record;
	}
	return NULL;
}

uint64_t
tables_id(ServiceTables *tables)
{
	uint64_t next = tables->header->id_next;

	assert(next > 0 && next < UINT32_MAX);
	word_store(&tables->header->id_next, next + 1);
	return tables->header->id_high << 32 | next;
}

ServiceRecord *
tables_slot(ServiceTables *tables)
{
	assert(tables->ids != NULL);
	for (uint32_t i = 0; i < tables->header->max_trees; i++)
	{
		if (tables->ids[i] == 0)
			return &tables->records[i];
	}
	return NULL;
}

void
tables_put(ServiceTables *tables, ServiceRecord *slot, const ServiceRecord *record)
{
	size_t i = (size_t) (slot - tables->records);
	TablesUse *use = tenant_use(tables, record);

	assert(i < tables->header->max_trees);
	assert(tables->ids[i] == 0 || tables->ids[i] == record->record.tree);
	assert(use != NULL);
	use->bytes += record->record.bytes - (tables->ids[i] != 0 ? slot->record.bytes : 0);
	journal_store(tables, slot, record, sizeof(*record));
	if (tables->ids[i] == 0)
	{
		tables->trees++;
		use->trees++;
	}
	tables->ids[i] = record->record.tree;
}

uint64_t
tables_remove(ServiceTables *tables, ServiceRecord *slot, uint64_t now_us)
{
	uint64_t tree = slot->record.tree;
	uint64_t removed = 0;
	TablesUse *use = tenant_use(tables, slot);

	assert(tree != 0);
	assert(use != NULL && use->trees > 0 && use->bytes >= slot->record.bytes);
	use->trees--;
	use->bytes -= slot->record.bytes;
	/* The id makes the record: with this store it is gone. */
	word_store(&slot->record.tree, 0);
	tables->ids[slot - tables->records] = 0;
	tables->trees--;
	for (uint64_t unit = 0; unit < tables->header->units; unit++)
	{
		uint64_t word = tables->units[unit];

		if ((word & UNIT_QUARANTINE) == 0 && (word & UNIT_TREE_MASK) == tree)
		{
			word_store(&tables->units[unit], UNIT_QUARANTINE | (now_us + QUARANTINE_US));
			tables->extents -= (word & UNIT_FIRST) != 0;
			removed++;
		}
	}
	assert(tables->used >= removed);
	if (tables->quarantined == 0)
		tables->quarantine_us = now_us + QUARANTINE_US;
	if (now_us + QUARANTINE_US < tables->sweep_us)
		tables->sweep_us = now_us + QUARANTINE_US;
	tables->used -= removed;
	tables->quarantined += removed;
	return removed;
}

/* ---- units ---- */

bool
tables_units_take(ServiceTables *tables, uint64_t tree, uint64_t count, uint64_t first, uint64_t end,
                  uint64_t *offset)
{
	uint64_t begin = (first - tables->first) / FABRIC_UNIT_BYTES;
	uint64_t limit = (end - tables->first) / FABRIC_UNIT_BYTES;
	uint64_t found = 0;
	uint64_t unit;
	/* Who begins further up does not see the lowest free unit of all. */
	bool lowest = begin <= tables->search;

	assert(count > 0);
	assert(first >= tables->first && limit <= tables->header->units);
	if (begin < tables->search)
		begin = tables->search;
	assert(tree != 0 && (tree & ~UNIT_TREE_MASK) == 0);
	for (unit = begin; unit < limit && found < count; unit++)
	{
		found = tables->units[unit] == 0 ? found + 1 : 0;
		if (found == 1 && lowest)
		{
			tables->search = unit;
			lowest = false;
		}
	}
	if (found < count)
		return false;
	unit -= count;
	for (uint64_t i = 0; i < count; i++)
		word_store(&tables->units[unit + i], tree | UNIT_PENDING | (i == 0 ? UNIT_FIRST : 0));
	tables->used += count;
	tables->extents++;
	*offset = tables->first + unit * FABRIC_UNIT_BYTES;
	return true;
}

void
tables_units_grant(ServiceTables *tables, uint64_t offset, uint64_t count)
{
	uint64_t unit = (offset - tables->first) / FABRIC_UNIT_BYTES;

	assert(unit + count <= tables->header->units);
	for (uint64_t i = 0; i < count; i++)
	{
		assert(tables->units[unit + i] & UNIT_PENDING);
		word_store(&tables->units[unit + i], tables->units[unit + i] & ~UNIT_PENDING);
	}
}

void
tables_units_cancel(ServiceTables *tables, uint64_t offset, uint64_t count)
{
	uint64_t unit = (offset - tables->first) / FABRIC_UNIT_BYTES;

	assert(unit + count <= tables->header->units);
	assert(tables->used >= count);
	for (uint64_t i = 0; i < count; i++)
		word_store(&tables->units[unit + i], 0);
	tables->used -= count;
	tables->extents--;
	if (unit < tables->search)
		tables->search = unit;
}

/* Frees a run of units. The pages first: a unit is free when nothing of it is left. */
static void
units_free(ServiceTables *tables, uint64_t first, uint64_t count, TablesRelease release, void *argument)
{
	assert(first + count <= tables->header->units);
	assert(tables->quarantined >= count);
	release(argument, tables->first + first * FABRIC_UNIT_BYTES, count * FABRIC_UNIT_BYTES);
	for (uint64_t i = first; i < first + count; i++)
		word_store(&tables->units[i], 0);
	if (first < tables->search)
		tables->search = first;
	tables->quarantined -= count;
}

void
tables_quarantine_end(ServiceTables *tables, uint64_t now_us, TablesRelease release, void *argument)
{
	uint64_t units = tables->header->units;
	uint64_t unit = tables->sweep;
	uint64_t end = units - unit > QUARANTINE_SCAN_UNITS ? unit + QUARANTINE_SCAN_UNITS : units;
	uint64_t freed = 0;
	uint64_t run = 0;

	assert(tables->ids != NULL);
	assert(release != NULL);
	if (tables->quarantined == 0 || now_us < tables->quarantine_us)
		return;
	for (; unit < end && freed + run < QUARANTINE_FREE_UNITS; unit++)
	{
		uint64_t word = tables->units[unit];
		bool waits = (word & UNIT_QUARANTINE) != 0;
		uint64_t due = word & ~UNIT_QUARANTINE;

		if (waits && due <= now_us)
		{
			run++;
			continue;
		}
		if (waits && due < tables->sweep_us)
			tables->sweep_us = due;
		if (run > 0)
			units_free(tables, unit - run, run, release, argument);
		freed += run;
		run = 0;
	}
	if (run > 0)
		units_free(tables, unit - run, run, release, argument);
	tables->sweep = unit;
	if (unit == units)
	{
		tables->sweep = 0;
		tables->quarantine_us = tables->sweep_us;
		tables->sweep_us = UINT64_MAX;
	}
}

uint64_t
tables_owner(const ServiceTables *tables, uint64_t offset)
{
	uint64_t unit = (offset - tables->first) / FABRIC_UNIT_BYTES;

	assert(tables->header != NULL);
	if (tables->header->magic != TABLES_MAGIC || offset < tables->first || unit >= tables->header->units ||
	    (tables->units[unit] & UNIT_QUARANTINE) != 0)
		return 0;
	return tables->units[unit] & UNIT_TREE_MASK;
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

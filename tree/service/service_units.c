/*
 * service_units.c
 *		Whose each unit of node memory is: taking and granting, the extents of a record, quarantine.
 */
#include "tree/service/service_tables.h"

/* One word, by one store, before all stores that follow. */
static void
unit_store(ServiceTables *tables, uint64_t unit, uint64_t word)
{
	__atomic_store_n(&tables->units[unit], word, __ATOMIC_SEQ_CST);
}

static uint64_t
unit_of(const ServiceTables *tables, uint64_t offset)
{
	return (offset - tables->first) / FABRIC_UNIT_BYTES;
}

static uint64_t
unit_offset(const ServiceTables *tables, uint64_t unit)
{
	return tables->first + unit * FABRIC_UNIT_BYTES;
}

/* Units of the extent that begins with this one: their words differ by the mark of the first one alone. */
static uint64_t
extent_units(const ServiceTables *tables, uint64_t unit)
{
	uint64_t word = tables->units[unit] & ~UNIT_FIRST;
	uint64_t count = 1;

	assert(tables->units[unit] & UNIT_FIRST);
	while (count < TABLES_EXTENT_UNITS && unit + count < tables->count && tables->units[unit + count] == word)
		count++;
	return count;
}

/* Puts an extent behind the others of its slot. */
static void
extent_link(ServiceTables *tables, uint32_t slot, uint64_t unit)
{
	TablesSlot *of = &tables->slots[slot];

	tables->links[unit] = (TablesLink){.before = of->last};
	if (of->last == 0)
		of->first = (uint32_t) unit + 1;
	else
		tables->links[of->last - 1].next = (uint32_t) unit + 1;
	of->last = (uint32_t) unit + 1;
	of->extents++;
}

/* Takes it out of them. */
static void
extent_unlink(ServiceTables *tables, uint32_t slot, uint64_t unit)
{
	TablesSlot *of = &tables->slots[slot];
	const TablesLink *link = &tables->links[unit];

	assert(of->extents > 0);
	*(link->before == 0 ? &of->first : &tables->links[link->before - 1].next) = link->next;
	*(link->next == 0 ? &of->last : &tables->links[link->next - 1].before) = link->before;
	of->extents--;
}

/* Puts an extent that was given back into its quarantine, which ends no sooner than that of those before it. */
static void
given_link(ServiceTables *tables, uint64_t unit, uint32_t tenant, uint64_t now_us)
{
	tables->links[unit] = (TablesLink){.tenant = tenant, .due_us = now_us + QUARANTINE_US};
	if (tables->given_last == 0)
		tables->given_first = (uint32_t) unit + 1;
	else
		tables->links[tables->given_last - 1].next = (uint32_t) unit + 1;
	tables->given_last = (uint32_t) unit + 1;
}

/* ---- opening ---- */

/* A pending unit after a start: does the record name it, or is it free? */
static void
pending_repair(ServiceTables *tables, uint64_t unit, TablesRelease release, void *argument)
{
	uint64_t offset = unit_offset(tables, unit);
	uint64_t word = tables->units[unit];
	uint64_t slot = (word & UNIT_SLOT_MASK) - 1;
	const ServiceRecord *record = &tables->records[slot];

	if (tables->slots[slot].tree != 0 && offset >= record->last_offset &&
	    offset - record->last_offset < record->last_bytes)
	{
		unit_store(tables, unit, word & ~UNIT_PENDING);
		return;
	}
	release(argument, offset, FABRIC_UNIT_BYTES);
	unit_store(tables, unit, 0);
}

/*
 * A unit of an extent that was given back: quarantine begins anew.  If the daemon ended between the marks of its units, the first
 * one has its own.
 */
static void
given_open(ServiceTables *tables, uint64_t unit, uint64_t now_us, uint64_t *repaired)
{
	uint64_t word = tables->units[unit];

	if ((word & UNIT_FIRST) != 0)
		given_link(tables, unit, TABLES_TENANTS, now_us);
	if ((word & UNIT_GIVEN) == 0)
	{
		++*repaired;
		unit_store(tables, unit, word | UNIT_GIVEN);
	}
	tables->quarantined++;
}

FabricStatus
tables_units_open(ServiceTables *tables, uint64_t now_us, TablesRelease release, void *argument,
                  uint64_t *repaired)
{
	uint64_t extent = 0; /* the one that the unit before belongs to: its first unit */

	assert(release != NULL);
	for (uint64_t unit = 0; unit < tables->count; unit++)
	{
		uint64_t slot = (tables->units[unit] & UNIT_SLOT_MASK) - 1;

		if (tables->units[unit] == 0)
			continue;
		if ((tables->units[unit] & ~(UNIT_PENDING | UNIT_FIRST | UNIT_GIVEN | UNIT_SLOT_MASK)) != 0 ||
		    slot >= tables->max_trees)
			return FABRIC_PROTOCOL;
		if ((tables->units[unit] & UNIT_PENDING) != 0)
		{
			++*repaired;
			pending_repair(tables, unit, release, argument);
			if (tables->units[unit] == 0)
				continue;
		}
		if ((tables->units[unit] & UNIT_FIRST) != 0)
			extent = unit;
		else if (unit == 0 || unit - extent >= TABLES_EXTENT_UNITS ||
		         (tables->units[unit - 1] & UNIT_SLOT_MASK) != slot + 1)
			return FABRIC_PROTOCOL;
		if ((tables->units[extent] & UNIT_GIVEN) != 0)
		{
			given_open(tables, unit, now_us, repaired);
			continue;
		}
		if ((tables->units[unit] & UNIT_GIVEN) != 0)
			return FABRIC_PROTOCOL;
		if (extent == unit)
		{
			extent_link(tables, (uint32_t) slot, unit);
			tables->extents++;
		}
		tables->slots[slot].units++;
		tables->used++;
	}
	return runs_open(&tables->runs, tables->units, tables->count) ? FABRIC_OK : FABRIC_NO_MEMORY;
}

/* ---- taking and granting ---- */

bool
tables_units_take(ServiceTables *tables, const ServiceRecord *slot, uint64_t count, uint64_t first,
                  uint64_t end, uint64_t *offset)
{
	uint64_t word = (uint64_t) (slot - tables->records) + 1;
	uint64_t unit;

	assert(count > 0 && count <= TABLES_EXTENT_UNITS);
	assert(first >= tables->first && unit_of(tables, end) <= tables->count);
	if (!runs_find(&tables->runs, count, unit_of(tables, first), unit_of(tables, end), &unit))
		return false;
	for (uint64_t i = 0; i < count; i++)
		unit_store(tables, unit + i, word | UNIT_PENDING | (i == 0 ? UNIT_FIRST : 0));
	runs_changed(&tables->runs, unit, count);
	tables->used += count;
	tables->extents++;
	*offset = unit_offset(tables, unit);
	return true;
}

void
tables_units_grant(ServiceTables *tables, uint64_t offset, uint64_t count)
{
	uint64_t unit = unit_of(tables, offset);
	uint32_t slot = (uint32_t) (tables->units[unit] & UNIT_SLOT_MASK) - 1;

	assert(unit + count <= tables->count);
	for (uint64_t i = 0; i < count; i++)
	{
		assert(tables->units[unit + i] & UNIT_PENDING);
		unit_store(tables, unit + i, tables->units[unit + i] & ~UNIT_PENDING);
	}
	extent_link(tables, slot, unit);
	tables->slots[slot].units += count;
	tables->tenants[tables->slots[slot].tenant].bytes += count * FABRIC_UNIT_BYTES;
}

void
tables_units_cancel(ServiceTables *tables, uint64_t offset, uint64_t count)
{
	uint64_t unit = unit_of(tables, offset);

	assert(unit + count <= tables->count);
	assert(tables->used >= count);
	for (uint64_t i = 0; i < count; i++)
		unit_store(tables, unit + i, 0);
	runs_changed(&tables->runs, unit, count);
	tables->used -= count;
	tables->extents--;
}

const ServiceRecord *
tables_owner(const ServiceTables *tables, uint64_t offset)
{
	uint64_t unit = unit_of(tables, offset);
	uint64_t slot;

	assert(tables->header != NULL);
	if (offset < tables->first || unit >= tables->count || tables->units[unit] == 0 ||
	    (tables->units[unit] & (UNIT_PENDING | UNIT_GIVEN)) != 0)
		return NULL;
	slot = (tables->units[unit] & UNIT_SLOT_MASK) - 1;
	if (slot >= tables->max_trees || tables->records[slot].record.tree == 0)
		return NULL;
	return &tables->records[slot];
}

bool
tables_extent_next(ServiceTables *tables, const ServiceRecord *slot, uint32_t name, TablesExtent *extent)
{
	uint32_t number = (uint32_t) (slot - tables->records);
	uint64_t word = ((uint64_t) number + 1) | UNIT_FIRST;
	uint32_t next = tables->slots[number].first;

	/* The name may be anybody's word, or be of a tree that was dropped since. */
	if (name != 0 && name <= tables->count && tables->units[name - 1] == word)
		next = tables->links[name - 1].next;
	tables->looked++;
	if (next == 0)
		return false;
	extent->name = next;
	extent->offset = unit_offset(tables, next - 1);
	extent->bytes = extent_units(tables, next - 1) * FABRIC_UNIT_BYTES;
	return true;
}

bool
tables_extent_at(const ServiceTables *tables, const ServiceRecord *slot, uint64_t offset, uint64_t *bytes)
{
	uint64_t unit = unit_of(tables, offset);

	assert(slot->record.tree != 0);
	if (offset < tables->first || offset % FABRIC_UNIT_BYTES != 0 || unit >= tables->count ||
	    tables->units[unit] != (((uint64_t) (slot - tables->records) + 1) | UNIT_FIRST))
		return false;
	*bytes = extent_units(tables, unit) * FABRIC_UNIT_BYTES;
	return true;
}

void
tables_extent_give(ServiceTables *tables, ServiceRecord *slot, uint64_t offset, uint64_t now_us)
{
	uint32_t number = (uint32_t) (slot - tables->records);
	TablesSlot *of = &tables->slots[number];
	TablesUse *use = &tables->tenants[of->tenant];
	uint64_t unit = unit_of(tables, offset);
	uint64_t count = extent_units(tables, unit);

	assert(offset != slot->last_offset);
	assert(of->units > count);
	/* With the first store it is gone. */
	for (uint64_t i = 0; i < count; i++)
		unit_store(tables, unit + i, tables->units[unit + i] | UNIT_GIVEN);
	of->units -= count;
	__atomic_store_n(&slot->record.bytes, of->units * FABRIC_UNIT_BYTES, __ATOMIC_SEQ_CST);
	extent_unlink(tables, number, unit);
	given_link(tables, unit, of->tenant, now_us);
	tables->used -= count;
	tables->extents--;
	tables->quarantined += count;
	use->bytes -= count * FABRIC_UNIT_BYTES;
	use->going_bytes += count * FABRIC_UNIT_BYTES;
}

/* ---- quarantine ---- */

/* The slot has neither record nor units. */
static void
slot_free(ServiceTables *tables, uint32_t slot)
{
	tables->slots[slot].after = tables->free_slot;
	tables->free_slot = slot + 1;
}

void
tables_slot_leaves(ServiceTables *tables, uint32_t slot, uint64_t now_us)
{
	TablesSlot *going = &tables->slots[slot];

	assert(going->tree == 0);
	if (going->units == 0)
	{
		slot_free(tables, slot);
		return;
	}
	going->due_us = now_us + QUARANTINE_US;
	going->after = 0;
	if (tables->going_last == 0)
		tables->going_first = slot + 1;
	else
		tables->slots[tables->going_last - 1].after = slot + 1;
	tables->going_last = slot + 1;
	tables->quarantined += going->units;
}

uint64_t
tables_quarantine_us(const ServiceTables *tables)
{
	uint64_t slots = tables->going_first == 0 ? UINT64_MAX : tables->slots[tables->going_first - 1].due_us;
	uint64_t given = tables->given_first == 0 ? UINT64_MAX : tables->links[tables->given_first - 1].due_us;

	assert(tables->going_first != 0 || tables->given_first != 0);
	return slots < given ? slots : given;
}

/* Frees an extent in quarantine, which counts to this tenant; returns its units. */
static uint64_t
extent_free(ServiceTables *tables, uint64_t unit, uint32_t tenant, TablesRelease release, void *argument)
{
	uint64_t count = extent_units(tables, unit);

	/*
	 * Pages are given back before units are marked free, and the first unit last: so the rest is still an extent at
	 * any time.
	 */
	release(argument, unit_offset(tables, unit), count * FABRIC_UNIT_BYTES);
	for (uint64_t i = count; i > 0; i--)
		unit_store(tables, unit + i - 1, 0);
	runs_changed(&tables->runs, unit, count);
	tables->quarantined -= count;
	if (tenant < TABLES_TENANTS)
		tables->tenants[tenant].going_bytes -= count * FABRIC_UNIT_BYTES;
	return count;
}

/* Frees the oldest extent of a slot in quarantine; returns its units. */
static uint64_t
slot_free_extent(ServiceTables *tables, uint32_t slot, TablesRelease release, void *argument)
{
	TablesSlot *going = &tables->slots[slot];
	uint64_t unit = going->first - 1;
	uint64_t count = extent_free(tables, unit, going->tenant, release, argument);

	going->first = tables->links[unit].next;
	going->units -= count;
	going->extents--;
	return count;
}

/* Frees the extents that were given back, in one go with `freed` units so far; returns how many units that are then. */
static uint64_t
given_end(ServiceTables *tables, uint64_t now_us, uint64_t freed, TablesRelease release, void *argument)
{
	while (tables->given_first != 0 && freed < QUARANTINE_FREE_UNITS)
	{
		uint64_t unit = tables->given_first - 1;
		const TablesLink *link = &tables->links[unit];

		if (link->due_us > now_us)
			break;
		freed += extent_free(tables, unit, link->tenant, release, argument);
		tables->given_first = link->next;
		if (tables->given_first == 0)
			tables->given_last = 0;
	}
	return freed;
}

void
tables_quarantine_end(ServiceTables *tables, uint64_t now_us, TablesRelease release, void *argument)
{
	uint64_t freed = given_end(tables, now_us, 0, release, argument);

	assert(release != NULL);
	while (tables->going_first != 0 && tables->slots[tables->going_first - 1].due_us <= now_us)
	{
		uint32_t slot = tables->going_first - 1;
		TablesSlot *going = &tables->slots[slot];

		while (going->units > 0 && freed < QUARANTINE_FREE_UNITS)
			freed += slot_free_extent(tables, slot, release, argument);
		if (going->units > 0)
			return;
		if (going->tenant < TABLES_TENANTS)
			tables->tenants[going->tenant].going_trees--;
		tables->going_first = going->after;
		if (tables->going_first == 0)
			tables->going_last = 0;
		*going = (TablesSlot){.tenant = TABLES_TENANTS};
		slot_free(tables, slot);
	}
}

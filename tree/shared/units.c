/*
 * units.c
 *		The units of node memory in which a tree has free nodes, and how many.
 *
 * Free nodes are lists in node memory (tree/space/freed.c).  There is a list for each unit, so that the counts tell when nothing of an
 * extent, which is whole units, is in use (tree/space/give.c).  An entry is taken from a pool that all trees share and found by a hash of
 * its part and place.  If the pool is used up nodes go to a list of their part's own (StateAtNode.rest), of which nobody asks
 * where they lie.
 */
#include "tree/shared/state.h"

static uint32_t
unit_count(const TreeSharedOptions *options)
{
	assert(options->trees <= UINT32_MAX / STATE_UNITS_PER_TREE / 2);
	return options->trees * STATE_UNITS_PER_TREE;
}

/* Lists of the hash table: a power of two. */
static uint32_t
bucket_count(const TreeSharedOptions *options)
{
	uint32_t count = 1;

	while (count < unit_count(options))
		count *= 2;
	return count;
}

/* The entries, a whole number of lines long, and behind them the heads of the hash table. */
size_t
units_pool_bytes(const TreeSharedOptions *options)
{
	assert(options->trees > 0);
	return (size_t) unit_count(options) * sizeof(StateUnit) + bucket_count(options) * sizeof(uint32_t);
}

static StateUnit *
unit_number(StateTable *table, uint32_t number)
{
	assert(number >= 1 && number <= table->unit_count);
	return (StateUnit *) ((char *) table + table->units) + (number - 1);
}

static uint32_t
number_of(const StateTable *table, const StateUnit *unit)
{
	return (uint32_t) (unit - (const StateUnit *) ((const char *) table + table->units)) + 1;
}

static uint32_t
part_of(const StateTable *table, const StateAtNode *at)
{
	return (uint32_t) (at - (const StateAtNode *) ((const char *) table + table->parts));
}

static uint32_t *
bucket(StateTable *table, uint32_t part, uint64_t offset)
{
	uint64_t hash = (offset / STATE_UNIT_BYTES * 0x9e3779b97f4a7c15ull + part) * 0xc2b2ae3d27d4eb4full >> 32;
	uint32_t *buckets = (uint32_t *) ((char *) table + table->units + table->unit_count * sizeof(StateUnit));

	return &buckets[hash & (bucket_count(&table->options) - 1)];
}

void
units_pool_reset(StateTable *table)
{
	assert(table->units != 0);
	table->unit_count = unit_count(&table->options);
	table->units_used = 0;
	table->units_free = 0;
	table->units_spin = 0;
	memset((char *) table + table->units + table->unit_count * sizeof(StateUnit), 0,
	       bucket_count(&table->options) * sizeof(uint32_t));
}

/* Under the pool's spin lock. */
static StateUnit *
find_locked(StateTable *table, uint32_t part, uint64_t offset)
{
	uint32_t number = *bucket(table, part, offset);

	while (number != 0)
	{
		StateUnit *unit = unit_number(table, number);

		if (unit->part == part && unit->offset == offset)
			return unit;
		number = unit->after;
	}
	return NULL;
}

StateUnit *
unit_find(StateTable *table, const StateAtNode *at, uint64_t offset)
{
	StateUnit *unit;

	spin_lock(&table->units_spin);
	unit = find_locked(table, part_of(table, at), offset / STATE_UNIT_BYTES * STATE_UNIT_BYTES);
	spin_unlock(&table->units_spin);
	return unit;
}

bool
units_left(StateTable *table)
{
	bool left;

	spin_lock(&table->units_spin);
	left = table->units_free != 0 || table->units_used < table->unit_count;
	spin_unlock(&table->units_spin);
	return left;
}

StateUnit *
unit_make(StateTable *table, const StateAtNode *at, uint64_t offset)
{
	uint64_t begin = offset / STATE_UNIT_BYTES * STATE_UNIT_BYTES;
	uint32_t part = part_of(table, at), number = 0;
	uint32_t *link;
	StateUnit *unit;

	spin_lock(&table->units_spin);
	unit = find_locked(table, part, begin);
	if (unit == NULL && table->units_free != 0)
	{
		number = table->units_free;
		table->units_free = unit_number(table, number)->after;
	}
	else if (unit == NULL && table->units_used < table->unit_count)
		number = ++table->units_used;
	if (number != 0)
	{
		unit = unit_number(table, number);
		link = bucket(table, part, begin);
		*unit = (StateUnit){.offset = begin, .part = part, .after = *link};
		*link = number;
	}
	spin_unlock(&table->units_spin);
	return unit;
}

/* Back to the pool: no list of the entry has a node. */
static void
unit_release(StateTable *table, StateUnit *unit)
{
	uint32_t number = number_of(table, unit);
	uint32_t *link;

	assert(unit->count[0] == 0 && unit->count[1] == 0);
	spin_lock(&table->units_spin);
	link = bucket(table, unit->part, unit->offset);
	while (*link != number)
		link = &unit_number(table, *link)->after;
	*link = unit->after;
	unit->after = table->units_free;
	table->units_free = number;
	spin_unlock(&table->units_spin);
}

StateUnit *
unit_first(StateTable *table, StateAtNode *at, uint32_t kind)
{
	assert(kind <= 1);
	if (at->units[kind] != 0)
		return unit_number(table, at->units[kind]);
	return at->rest.count[kind] > 0 ? &at->rest : NULL;
}

/* Puts an entry that has got a node of a kind in front of the part's others. */
static void
unit_link(StateTable *table, StateAtNode *at, StateUnit *unit, uint32_t kind)
{
	uint32_t number = number_of(table, unit);

	unit->before[kind] = 0;
	unit->next[kind] = at->units[kind];
	if (at->units[kind] != 0)
		unit_number(table, at->units[kind])->before[kind] = number;
	at->units[kind] = number;
}

static void
unit_unlink(StateTable *table, StateAtNode *at, const StateUnit *unit, uint32_t kind)
{
	if (unit->before[kind] == 0)
		at->units[kind] = unit->next[kind];
	else
		unit_number(table, unit->before[kind])->next[kind] = unit->next[kind];
	if (unit->next[kind] != 0)
		unit_number(table, unit->next[kind])->before[kind] = unit->before[kind];
}

void
unit_set(StateTable *table, StateAtNode *at, StateUnit *unit, uint32_t kind, uint64_t first, uint32_t count)
{
	uint32_t before = unit->count[kind];

	assert(kind <= 1);
	at->freed_count[kind] += (uint64_t) count - before;
	at->freed_changes[kind]++;
	unit->first[kind] = first;
	unit->count[kind] = count;
	if (unit == &at->rest)
		return;
	if (before > 0 && (count == 0 || count > before))
		unit_unlink(table, at, unit, kind);
	if (count > before)
		unit_link(table, at, unit, kind);
	if (count == 0 && unit->count[1 - kind] == 0)
		unit_release(table, unit);
}

void
units_forget(StateTable *table, StateAtNode *at)
{
	for (uint32_t kind = 0; kind <= 1; kind++)
	{
		StateUnit *unit = unit_first(table, at, kind);

		for (; unit != NULL; unit = unit_first(table, at, kind))
			unit_set(table, at, unit, kind, POINTER_NONE, 0);
	}
}

/*
 * unique_keys.c
 *		See unique_keys.h.
 */
#include "require.h"
#include "unique_keys.h"

size_t
unique_keys_bytes(uint32_t count)
{
	return sizeof(UniqueKeys) + count * sizeof(UniqueNumber);
}

void
unique_keys_set_up(UniqueKeys *keys, uint32_t count)
{
	keys->count = count;
}

void
unique_keys_end(UniqueKeys *keys)
{
	memset(keys->parts, 0, sizeof(keys->parts));
	for (uint32_t i = 0; i < keys->count; i++)
		keys->numbers[i].locked = 0;
}

static UniqueNumber *
number_of(UniqueKeys *keys, uint64_t number)
{
	REQUIRE(number < keys->count, "no number %llu", (unsigned long long) number);
	return &keys->numbers[number];
}

/* ---- who adds, and who checks ---- */

static uint32_t
part_of(const TreeKey *key)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < sizeof(key->norm) / sizeof(key->norm[0]); i++)
		hash = (hash ^ key->norm[i]) * 0x9e3779b97f4a7c15ull;
	return (uint32_t) (hash >> 32) % UNIQUE_PARTS;
}

static bool
begin(void *argument, const TreeKey *key)
{
	UniquePart *part = &((UniqueKeys *) argument)->parts[part_of(key)];

	__atomic_fetch_add(&part->adding, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&part->checking, __ATOMIC_SEQ_CST) == 0)
		return true;
	__atomic_fetch_sub(&part->adding, 1, __ATOMIC_SEQ_CST);
	return false;
}

static void
end(void *argument, const TreeKey *key)
{
	UniquePart *part = &((UniqueKeys *) argument)->parts[part_of(key)];

	REQUIRE(__atomic_fetch_sub(&part->adding, 1, __ATOMIC_SEQ_CST) != 0, "a permit ends twice");
}

TreePermit
unique_keys_permit(UniqueKeys *keys)
{
	return (TreePermit){begin, end, keys};
}

bool
unique_keys_lock(UniqueKeys *keys, uint64_t number)
{
	return __atomic_exchange_n(&number_of(keys, number)->locked, 1, __ATOMIC_SEQ_CST) == 0;
}

void
unique_keys_check(UniqueKeys *keys, const TreeKey *key)
{
	__atomic_fetch_add(&keys->parts[part_of(key)].checking, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&keys->checked, 1, __ATOMIC_RELAXED);
}

bool
unique_keys_checks(const UniqueKeys *keys, const TreeKey *key)
{
	return __atomic_load_n(&keys->parts[part_of(key)].adding, __ATOMIC_SEQ_CST) == 0;
}

void
unique_keys_unlock(UniqueKeys *keys, uint64_t number, const TreeKey *key)
{
	__atomic_fetch_sub(&keys->parts[part_of(key)].checking, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&number_of(keys, number)->locked, 0, __ATOMIC_SEQ_CST);
}

/* ---- rows ---- */

bool
unique_keys_row(UniqueKeys *keys, uint64_t number, uint32_t row)
{
	uint32_t none = 0;

	return __atomic_compare_exchange_n(&number_of(keys, number)->row, &none, row + 1, false, __ATOMIC_SEQ_CST,
	                                   __ATOMIC_SEQ_CST);
}

void
unique_keys_row_ends(UniqueKeys *keys, uint64_t number)
{
	__atomic_store_n(&number_of(keys, number)->row, 0, __ATOMIC_SEQ_CST);
}

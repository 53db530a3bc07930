/*
 * test_tables.c
 *		The tables of the memory node's service by themselves: what is left when the daemon is killed between any two of its
 *		stores, and whose is what.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/testing.h"
#include "tree/service/service_tables.h"

#define TABLE_UNITS 64u
#define TABLE_TREES TABLES_TREES_STEP
#define TABLE_FIRST (1u << 20)

/* What the released callback saw. */
static void
count_release(void *argument, uint64_t offset, uint64_t bytes)
{
	assert_int_equal(offset % FABRIC_UNIT_BYTES, 0);
	*(uint64_t *) argument += bytes;
}

/* Both areas are one, here: the units' words behind the records. */
static size_t
all_bytes(void)
{
	return tables_bytes(TABLE_TREES) + TABLE_UNITS * sizeof(uint64_t);
}

static void
view(ServiceTables *tables, void *area)
{
	tables_view(tables,
	            &(TablesPlace){.area = area,
	                           .area_bytes = tables_bytes(TABLE_TREES),
	                           .units = (uint64_t *) (void *) ((char *) area + tables_bytes(TABLE_TREES)),
	                           .unit_count = TABLE_UNITS,
	                           .first = TABLE_FIRST,
	                           .most_trees = TABLE_TREES});
}

static void
tables_reopen(ServiceTables *tables, void *area, uint64_t *repaired)
{
	uint64_t released = 0;

	view(tables, area);
	assert_int_equal(tables_open(tables, 1000, 42, count_release, &released, repaired), FABRIC_OK);
}

/* From all of node memory. */
static bool
take_units(ServiceTables *tables, const ServiceRecord *slot, uint64_t count, uint64_t *offset)
{
	return tables_units_take(tables, slot, count, TABLE_FIRST, TABLE_FIRST + TABLE_UNITS * FABRIC_UNIT_BYTES,
	                         offset);
}

/* What a daemon does with its tables: create, grow, drop, take an extent back; each step as service.c does it. */
static void
tables_work(ServiceTables *tables)
{
	ServiceRecord record;
	ServiceRecord *slots[3];
	TablesOwner owner = {.cluster = {7, 8}, .tenant = 3};
	uint64_t released = 0;

	for (uint64_t i = 0; i < 3; i++)
	{
		memset(&record, 0, sizeof(record));
		record.record.tree = tables_id(tables, 42);
		record.record.cluster[0] = owner.cluster[0];
		record.record.cluster[1] = owner.cluster[1];
		record.tenant = owner.tenant;
		record.token[0] = i;
		slots[i] = tables_slot(tables);
		assert_true(take_units(tables, slots[i], 1 + i, &record.last_offset));
		record.last_bytes = (1 + i) * FABRIC_UNIT_BYTES;
		record.record.bytes = record.last_bytes;
		record.record.extents = 1;
		tables_put(tables, slots[i], &record);
		tables_units_grant(tables, record.last_offset, 1 + i);
	}
	record = *slots[1];
	assert_true(take_units(tables, slots[1], 4, &record.last_offset));
	record.last_bytes = 4 * FABRIC_UNIT_BYTES;
	record.record.bytes += record.last_bytes;
	record.record.extents++;
	tables_put(tables, slots[1], &record);
	tables_units_grant(tables, record.last_offset, 4);
	assert_int_equal(tables_remove(tables, slots[2], 2000), 3);
	tables_quarantine_end(tables, 2000 + QUARANTINE_US, count_release, &released);
	assert_int_equal(released, 3 * FABRIC_UNIT_BYTES);
	tables_extent_give(tables, slots[1], TABLE_FIRST + FABRIC_UNIT_BYTES, 3000);
	tables_quarantine_end(tables, 2999 + QUARANTINE_US, count_release, &released);
	assert_int_equal(released, 3 * FABRIC_UNIT_BYTES);
	tables_quarantine_end(tables, 3000 + QUARANTINE_US, count_release, &released);
	assert_int_equal(released, 5 * FABRIC_UNIT_BYTES);
	assert_int_equal(tables_epoch_set(tables, &owner, 3, false), FABRIC_OK);
	assert_int_equal(tables_epoch_set(tables, &owner, 3, true), FABRIC_OK);
}

/* Every record's units are granted and add up to its bytes; no unit belongs to nobody. */
static void
tables_verify(ServiceTables *tables)
{
	uint64_t used = 0, quarantined = 0;

	for (uint64_t unit = 0; unit < TABLE_UNITS; unit++)
	{
		uint64_t word = tables->units[unit];

		if (word == 0)
			continue;
		assert_int_equal(word & UNIT_PENDING, 0);
		if (tables_owner(tables, TABLE_FIRST + unit * FABRIC_UNIT_BYTES) != NULL)
			used++;
		else
			quarantined++;
	}
	assert_int_equal(used, tables->used);
	assert_int_equal(quarantined, tables->quarantined);
	for (uint32_t i = 0; i < TABLE_TREES; i++)
	{
		ServiceRecord *record = &tables->records[i];
		uint64_t bytes = 0;

		if (record->record.tree == 0)
			continue;
		for (uint64_t unit = 0; unit < TABLE_UNITS; unit++)
		{
			if (tables_owner(tables, TABLE_FIRST + unit * FABRIC_UNIT_BYTES) == record)
				bytes += FABRIC_UNIT_BYTES;
		}
		assert_int_equal(bytes, record->record.bytes);
		used -= bytes / FABRIC_UNIT_BYTES;
	}
	assert_int_equal(used, 0);
}

/* A state that a kill would leave: what the next start makes of a copy of it, twice. */
static bool
tables_survive(const uint8_t *area, uint8_t *copy, size_t bytes)
{
	ServiceTables tables;
	uint64_t first, second;

	memcpy(copy, area, bytes);
	tables_reopen(&tables, copy, &first);
	tables_verify(&tables);
	tables_close(&tables);
	tables_reopen(&tables, copy, &second);
	assert_int_equal(second, 0);
	tables_verify(&tables);
	tables_close(&tables);
	return first > 0;
}

/* The same cluster by another tenant is another owner; what each has is counted, and known after a start. */
static void
test_tables_of_tenants(void **state)
{
	size_t bytes = all_bytes();
	uint8_t *area = calloc(1, bytes);
	TablesOwner owner = {.cluster = {7, 8}, .tenant = 3};
	TablesOwner other = {.cluster = {7, 8}, .tenant = 4};
	ServiceTables tables;
	uint64_t repaired, token[2] = {1, 0};

	assert_non_null(area);
	tables_reopen(&tables, area, &repaired);
	tables_work(&tables);
	for (int start = 0; start < 2; start++)
	{
		uint32_t position = 0;

		assert_non_null(tables_find_token(&tables, &owner, token));
		assert_null(tables_find_token(&tables, &other, token));
		assert_null(tables_next(&tables, &other, false, &position));
		assert_int_equal(position, TABLE_TREES);
		position = 0;
		assert_non_null(tables_next(&tables, &owner, false, &position));
		assert_non_null(tables_epoch(&tables, &owner));
		assert_null(tables_epoch(&tables, &other));
		/* Trees of 1, 2 and 4, and 3 units were made, the last dropped, and the extent of 2 given back. */
		assert_int_equal(tables.tenants[3].trees, 2);
		assert_int_equal(tables.tenants[3].bytes, 5 * FABRIC_UNIT_BYTES);
		assert_int_equal(tables.tenants[3].going_bytes, 0);
		assert_int_equal(tables.tenants[4].bytes, 0);
		assert_int_equal(tables.extents, 2);
		tables_close(&tables);
		tables_reopen(&tables, area, &repaired);
	}
	tables_close(&tables);
	free(area);
}

/* What can be wrong in tables that a damaged memory holds, or one that somebody else made. */
typedef void (*Damage)(ServiceTables *tables);

static void
journal_beyond_the_area(ServiceTables *tables)
{
	tables->header->journal =
		(ServiceJournal){.valid = 1, .offset = 1ull << 40, .bytes = sizeof(ServiceRecord)};
}

static void
journal_in_front_of_the_area(ServiceTables *tables)
{
	tables->header->journal = (ServiceJournal){
		.valid = 1, .offset = (uint64_t) - (int64_t) sizeof(ServiceRecord), .bytes = sizeof(ServiceRecord)};
}

static void
journal_too_long(ServiceTables *tables)
{
	tables->header->journal =
		(ServiceJournal){.valid = 1,
	                     .offset = (uint64_t) ((uint8_t *) tables->records - (uint8_t *) tables->header),
	                     .bytes = 1u << 20};
}

static void
journal_over_the_header(ServiceTables *tables)
{
	tables->header->journal = (ServiceJournal){.valid = 1, .offset = 8, .bytes = sizeof(ServiceEpoch)};
}

static void
no_such_tenant(ServiceTables *tables)
{
	tables->records[0].tenant = TABLES_TENANTS;
}

static void
id_too_large(ServiceTables *tables)
{
	tables->records[0].record.tree = TABLES_ID_LIMIT;
}

static void
one_tree_twice(ServiceTables *tables)
{
	tables->records[1] = tables->records[0];
}

static void
no_such_slot(ServiceTables *tables)
{
	tables->units[0] = UNIT_FIRST | (TABLE_TREES + 1);
}

static void
unit_of_slot_zero(ServiceTables *tables)
{
	tables->units[0] = UNIT_FIRST;
}

static void
unknown_mark(ServiceTables *tables)
{
	tables->units[0] |= 1ull << 63;
}

static void
extent_without_begin(ServiceTables *tables)
{
	tables->units[0] &= ~UNIT_FIRST;
}

/* Only of an extent whose first unit says so. */
static void
given_in_part(ServiceTables *tables)
{
	tables->units[1] = UNIT_FIRST | 1;
	tables->units[2] = UNIT_GIVEN | 1;
}

/* The newest extent of a record is never given back. */
static void
last_extent_given(ServiceTables *tables)
{
	tables->units[(tables->records[0].last_offset - TABLE_FIRST) / FABRIC_UNIT_BYTES] |= UNIT_GIVEN;
}

static void
last_extent_of_others(ServiceTables *tables)
{
	tables->records[0].last_offset = tables->records[1].last_offset;
}

static void
last_extent_nowhere(ServiceTables *tables)
{
	tables->records[0].last_offset = (1ull << 63) + TABLE_FIRST;
}

static void
last_extent_too_long(ServiceTables *tables)
{
	tables->records[0].last_bytes = 1ull << 62;
}

/* All of it is seen before anything follows it, whatever the build asserts. */
static void
test_damaged_tables(void **state)
{
	static const Damage damages[] = {
		journal_beyond_the_area, journal_in_front_of_the_area,
		journal_too_long,        journal_over_the_header,
		no_such_tenant,          id_too_large,
		one_tree_twice,          no_such_slot,
		unit_of_slot_zero,       unknown_mark,
		extent_without_begin,    last_extent_of_others,
		last_extent_nowhere,     last_extent_too_long,
		given_in_part,           last_extent_given,
	};
	size_t bytes = all_bytes();
	uint8_t *area = calloc(1, bytes);
	uint8_t *before = malloc(bytes);

	assert_true(area != NULL && before != NULL);
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++)
	{
		ServiceTables tables;
		uint64_t repaired, released = 0;

		memset(area, 0, bytes);
		tables_reopen(&tables, area, &repaired);
		tables_work(&tables);
		damages[i](&tables);
		tables_close(&tables);
		memcpy(before, area, bytes);
		view(&tables, area);
		assert_int_equal(tables_open(&tables, 1000, 42, count_release, &released, &repaired),
		                 FABRIC_PROTOCOL);
		tables_close(&tables);
		/* Nothing was changed: who looks what happened finds what there was. */
		assert_memory_equal(area, before, bytes);
	}
	/* What a record says that it has is what its units say. */
	{
		ServiceTables tables;
		uint64_t repaired;

		memset(area, 0, bytes);
		tables_reopen(&tables, area, &repaired);
		tables_work(&tables);
		tables.records[0].record.bytes = 1ull << 60;
		tables_close(&tables);
		tables_reopen(&tables, area, &repaired);
		assert_int_equal(repaired, 1);
		assert_int_equal(tables.tenants[3].bytes, 5 * FABRIC_UNIT_BYTES);
		tables_verify(&tables);
		tables_close(&tables);
	}
	free(area);
	free(before);
}

/* Runs the work instruction by instruction, and opens what is there after each one that changed the area. */
static void
test_tables_every_prefix(void **state)
{
	size_t bytes = all_bytes();
	uint8_t *area = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint8_t *before = calloc(1, bytes);
	uint8_t *copy = calloc(1, bytes);
	int states = 0, repairs = 0;
	int status;
	pid_t child;

	assert_ptr_not_equal(area, MAP_FAILED);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
	{
		ServiceTables tables;
		uint64_t repaired;

		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
			_exit(77);
		raise(SIGSTOP);
		tables_reopen(&tables, area, &repaired);
		tables_work(&tables);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip(); /* no ptrace in this container */
	while (WIFSTOPPED(status))
	{
		if (memcmp(area, before, bytes) != 0)
		{
			memcpy(before, area, bytes);
			states++;
			repairs += tables_survive(area, copy, bytes);
		}
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	/* The work stores hundreds of words, and some of its states need repair: else this looked at nothing. */
	print_message("%d states, %d of them repaired\n", states, repairs);
	assert_true(states > 50);
	assert_true(repairs > 5);
	munmap(area, bytes);
	free(before);
	free(copy);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables_every_prefix),
		cmocka_unit_test(test_tables_of_tenants),
		cmocka_unit_test(test_damaged_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

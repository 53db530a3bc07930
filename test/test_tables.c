/*
 * test_tables.c
 *		The tables of the memory node's service by themselves: what is left when the daemon is killed between any two of its
 *		stores, and whose is what.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../tree/service_tables.h"

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

static void
tables_reopen(ServiceTables *tables, void *area, uint64_t *repaired)
{
	uint64_t released = 0;

	tables_view(tables, area, TABLE_TREES, TABLE_FIRST, TABLE_UNITS);
	assert_int_equal(tables_open(tables, tables_bytes(TABLE_UNITS, TABLE_TREES), 1000, 42, count_release,
	                             &released, repaired),
	                 FABRIC_OK);
}

/* From all of node memory. */
static bool
take_units(ServiceTables *tables, uint64_t tree, uint64_t count, uint64_t *offset)
{
	return tables_units_take(tables, tree, count, TABLE_FIRST, TABLE_FIRST + TABLE_UNITS * FABRIC_UNIT_BYTES,
	                         offset);
}

/* What a daemon does with its tables: create, grow, drop; each step as service.c does it. */
static void
tables_work(ServiceTables *tables)
{
	ServiceRecord record;
	ServiceRecord *slots[3];
	TablesOwner owner = {.cluster = {7, 8}, .tenant = 3};

	for (uint64_t i = 0; i < 3; i++)
	{
		memset(&record, 0, sizeof(record));
		record.record.tree = tables_id(tables);
		record.record.cluster[0] = owner.cluster[0];
		record.record.cluster[1] = owner.cluster[1];
		record.tenant = owner.tenant;
		record.token[0] = i;
		assert_true(take_units(tables, record.record.tree, 1 + i, &record.last_offset));
		record.last_bytes = (1 + i) * FABRIC_UNIT_BYTES;
		record.record.bytes = record.last_bytes;
		record.record.extents = 1;
		slots[i] = tables_slot(tables);
		tables_put(tables, slots[i], &record);
		tables_units_grant(tables, record.last_offset, 1 + i);
	}
	record = *slots[1];
	assert_true(take_units(tables, record.record.tree, 4, &record.last_offset));
	record.last_bytes = 4 * FABRIC_UNIT_BYTES;
	record.record.bytes += record.last_bytes;
	record.record.extents++;
	tables_put(tables, slots[1], &record);
	tables_units_grant(tables, record.last_offset, 4);
	assert_int_equal(tables_remove(tables, slots[0], 2000), 1);
	assert_int_equal(tables_epoch_set(tables, &owner, 3, false), FABRIC_OK);
	assert_int_equal(tables_epoch_set(tables, &owner, 3, true), FABRIC_OK);
}

/* Every record's units are granted and add up to its bytes; no unit belongs to nobody. */
static void
tables_verify(ServiceTables *tables)
{
	uint64_t used = 0;

	for (uint64_t unit = 0; unit < TABLE_UNITS; unit++)
	{
		uint64_t word = tables->units[unit];

		if (word == 0 || (word & UNIT_QUARANTINE) != 0)
			continue;
		assert_int_equal(word & UNIT_PENDING, 0);
		assert_non_null(tables_find(tables, word & UNIT_TREE_MASK));
		used++;
	}
	assert_int_equal(used, tables->used);
	for (uint32_t i = 0; i < TABLE_TREES; i++)
	{
		ServiceRecord *record = &tables->records[i];
		uint64_t bytes = 0;

		if (record->record.tree == 0)
			continue;
		for (uint64_t unit = 0; unit < TABLE_UNITS; unit++)
		{
			if ((tables->units[unit] & (UNIT_QUARANTINE | UNIT_TREE_MASK)) == record->record.tree)
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
	size_t bytes = tables_bytes(TABLE_UNITS, TABLE_TREES);
	uint8_t *area = calloc(1, bytes);
	TablesOwner owner = {.cluster = {7, 8}, .tenant = 3};
	TablesOwner other = {.cluster = {7, 8}, .tenant = 4};
	ServiceTables tables;
	uint64_t repaired, token[2] = {1, 0};

	(void) state;
	assert_non_null(area);
	tables_reopen(&tables, area, &repaired);
	tables_work(&tables);
	for (int start = 0; start < 2; start++)
	{
		uint32_t position = 0;

		assert_non_null(tables_find_token(&tables, &owner, token));
		assert_null(tables_find_token(&tables, &other, token));
		assert_null(tables_next(&tables, &other, false, &position));
		assert_non_null(tables_next(&tables, &owner, false, &position));
		assert_non_null(tables_epoch(&tables, &owner));
		assert_null(tables_epoch(&tables, &other));
		/* Trees of 1, 2 and 4, and 3 units were made, and the first dropped. */
		assert_int_equal(tables.tenants[3].trees, 2);
		assert_int_equal(tables.tenants[3].bytes, 9 * FABRIC_UNIT_BYTES);
		assert_int_equal(tables.tenants[4].bytes, 0);
		assert_int_equal(tables.extents, 3);
		tables_close(&tables);
		tables_reopen(&tables, area, &repaired);
	}
	tables_close(&tables);
	free(area);
}

/* Runs the work instruction by instruction, and opens what is there after each one that changed the area. */
static void
test_tables_every_prefix(void **state)
{
	size_t bytes = tables_bytes(TABLE_UNITS, TABLE_TREES);
	uint8_t *area = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint8_t *before = calloc(1, bytes);
	uint8_t *copy = calloc(1, bytes);
	int states = 0, repairs = 0;
	int status;
	pid_t child;

	(void) state;
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

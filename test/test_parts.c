/*
 * test_parts.c
 *		How node memory is dealt to the tenants of a memory node of access class NIC.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/testing.h"
#include "rdma/server/server_state.h"

/* Node memory in units, behind one with redo slots. */
#define UNITS 60u
#define UNIT(n) ((uint64_t) (n) *FABRIC_UNIT_BYTES)
/* Units are numbered from 1 on: so far before the first one is 0. */
#define BEFORE (MEMORY_FIRST_UNIT - FABRIC_UNIT_BYTES)
#define PLACE(n) (BEFORE + UNIT(n))

/* A server of which there is no more than this needs. */
typedef struct Dealer
{
	FabricServer server;
	FabricKeys keys;
	MemoryHeader header;
	uint8_t marks[BEFORE / FABRIC_UNIT_BYTES + UNITS + 1];
	uint64_t quotas[MEMORY_MAX_TENANTS];
	char detail[FABRIC_DETAIL_BYTES];
} Dealer;

static uint64_t
quota_of(void *argument, uint32_t tenant)
{
	return ((Dealer *) argument)->quotas[tenant];
}

/* Tenants 1 to `tenants` are known and have keys. */
static void
dealer_init(Dealer *dealer, uint32_t tenants)
{
	memset(dealer, 0, sizeof(*dealer));
	dealer->header.region_bytes = PLACE(UNITS + 1);
	memset(dealer->marks, MEMORY_UNIT_REDO, BEFORE / FABRIC_UNIT_BYTES + 1);
	dealer->server.memory.header = &dealer->header;
	dealer->server.memory.units = dealer->marks;
	dealer->server.service.quota = quota_of;
	dealer->server.service.argument = dealer;
	if (tenants > 0)
		dealer->server.keys = &dealer->keys;
	for (uint32_t i = 1; i <= tenants; i++)
	{
		FabricKey *key = &dealer->keys.keys[dealer->keys.count++];

		snprintf(key->tenant, sizeof(key->tenant), "tenant-%u", i);
		snprintf(dealer->header.tenants[i], sizeof(dealer->header.tenants[i]), "tenant-%u", i);
	}
}

/* The tenant has the units from `first` to before `end`. */
static void
own(Dealer *dealer, uint32_t tenant, uint32_t first, uint32_t end)
{
	memset((dealer->marks + BEFORE / FABRIC_UNIT_BYTES) + first, memory_unit_mark(tenant), end - first);
}

static void
deal(Dealer *dealer)
{
	assert_int_equal(parts_deal(&dealer->server, dealer->detail), FABRIC_OK);
}

static void
expect_part(const Dealer *dealer, uint32_t tenant, uint32_t first, uint32_t end)
{
	assert_int_equal(dealer->server.parts[tenant].first, PLACE(first));
	assert_int_equal(dealer->server.parts[tenant].end, PLACE(end));
}

static void
expect_none(const Dealer *dealer, uint32_t tenant)
{
	assert_int_equal(dealer->server.parts[tenant].first, dealer->server.parts[tenant].end);
}

/* Without keys there is one tenant, and it has all. */
static void
test_no_keys(void **state)
{
	Dealer dealer;

	dealer_init(&dealer, 0);
	deal(&dealer);
	expect_part(&dealer, 0, 1, UNITS + 1);
}

/* Equal shares; who has no key and no quota has none, whoever asks. */
static void
test_shares(void **state)
{
	Dealer dealer;

	dealer_init(&dealer, 3);
	deal(&dealer);
	for (uint32_t i = 1; i <= 3; i++)
		expect_part(&dealer, i, 1 + (i - 1) * 20, 1 + i * 20);
	expect_none(&dealer, 0);
	assert_false(part_make(&dealer.server, 0));
	assert_false(part_make(&dealer.server, 4));
	assert_true(part_make(&dealer.server, 2));
	expect_part(&dealer, 2, 21, 41);
}

/* Quotas, in whole units, and equal shares of the rest; what is left over is for who comes later, once. */
static void
test_quotas(void **state)
{
	Dealer dealer;

	dealer_init(&dealer, 3);
	dealer.quotas[0] = UNIT(4);
	dealer.quotas[2] = UNIT(5) + 1;
	deal(&dealer);
	expect_part(&dealer, 0, 1, 5);
	expect_part(&dealer, 1, 5, 30);
	expect_part(&dealer, 2, 30, 36);
	expect_part(&dealer, 3, 36, 61);

	dealer.quotas[1] = UNIT(10);
	dealer.quotas[3] = UNIT(10);
	deal(&dealer);
	expect_part(&dealer, 3, 21, 31);
	dealer.quotas[5] = UNIT(7);
	assert_true(part_make(&dealer.server, 5));
	expect_part(&dealer, 5, 31, 38);
	assert_true(part_make(&dealer.server, 6));
	expect_part(&dealer, 6, 38, 61);
	assert_false(part_make(&dealer.server, 7));
}

/* More is promised than there is: the last gets what is left, or nothing. */
static void
test_too_much(void **state)
{
	Dealer dealer;

	dealer_init(&dealer, 3);
	dealer.quotas[1] = UNIT(40);
	dealer.quotas[2] = UNIT(40);
	deal(&dealer);
	expect_part(&dealer, 1, 1, 41);
	expect_part(&dealer, 2, 41, 61);
	expect_none(&dealer, 3);
}

/* Whoever has units keeps them, and grows around them; one without a key keeps no more than these. */
static void
test_kept(void **state)
{
	Dealer dealer;

	dealer_init(&dealer, 2);
	own(&dealer, 2, 10, 12);
	own(&dealer, 2, 14, 15);
	own(&dealer, 4, 1, 3);
	deal(&dealer);
	/* 58 units for two: from 10 on there is room for all of its share; the other gets the larger rest. */
	expect_part(&dealer, 2, 10, 39);
	expect_part(&dealer, 1, 39, 61);
	expect_part(&dealer, 4, 1, 3);

	dealer_init(&dealer, 2);
	own(&dealer, 1, 55, 58);
	deal(&dealer);
	expect_part(&dealer, 1, 31, 61);
	expect_part(&dealer, 2, 1, 31);
}

/* Parts never meet, whatever the tenants have and may have. */
static void
test_apart(void **state)
{
	Dealer dealer;

	for (uint32_t round = 0; round < 2000; round++)
	{
		uint32_t unit = 1;

		srandom(round);
		dealer_init(&dealer, 1 + (uint32_t) random() % 6);
		for (uint32_t i = 0; i < 9; i++)
			dealer.quotas[i] = random() % 2 == 0 ? 0 : UNIT(random() % 40);
		for (uint32_t i = 8; i > 0 && unit < UNITS; i--)
		{
			uint32_t end = unit + (uint32_t) random() % 8;

			if (random() % 2 == 0 && end <= UNITS + 1)
				own(&dealer, i, unit, end);
			unit = end + (uint32_t) random() % 8;
		}
		deal(&dealer);
		for (uint32_t i = 0; i < 9; i++)
			(void) part_make(&dealer.server, i);
		for (uint32_t i = 0; i < 9; i++)
		{
			const ServerPart *part = &dealer.server.parts[i];

			assert_true(part->first == part->end || (part->first >= PLACE(1) && part->first < part->end &&
			                                         part->end <= PLACE(UNITS + 1)));
			for (uint32_t j = 0; j < i; j++)
				assert_true(part->first == part->end || part->end <= dealer.server.parts[j].first ||
				            dealer.server.parts[j].end <= part->first);
			for (uint32_t u = 1; u <= UNITS; u++)
				assert_true((dealer.marks + BEFORE / FABRIC_UNIT_BYTES)[u] != memory_unit_mark(i) ||
				            (part->first <= PLACE(u) && PLACE(u) < part->end));
		}
	}
}

/* Granted without a device, one among the other: it cannot be kept apart. */
static void
test_mixed(void **state)
{
	Dealer dealer;

	dealer_init(&dealer, 2);
	own(&dealer, 1, 5, 6);
	own(&dealer, 2, 6, 7);
	own(&dealer, 1, 7, 8);
	assert_int_equal(parts_deal(&dealer.server, dealer.detail), FABRIC_NOT_SUPPORTED);
	assert_non_null(strstr(dealer.detail, "mixed"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_keys), cmocka_unit_test(test_shares),   cmocka_unit_test(test_quotas),
		cmocka_unit_test(test_kept),    cmocka_unit_test(test_too_much), cmocka_unit_test(test_apart),
		cmocka_unit_test(test_mixed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

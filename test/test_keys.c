/*
 * test_keys.c
 *		The key file: who may own and read it, its lines, rotation, limits, and that keys leave no trace.
 */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/testing.h"
#include "rdma/keys.h"

#define KEY_1 "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define KEY_2 "FFeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221101"
/* printf '%s' "sherman key id" | cat - <(xxd -r -p <<<KEY) | sha256sum | head -c 16 */
#define ID_1 "808ffd42c3aada9b"
#define ID_2 "7979a320b8451dca"
#define SOME_OTHER_USER 12345u

static char directory[64];
static char path[96];

static int
make_directory(void **state)
{
	strcpy(directory, "/tmp/sherman-keys-XXXXXX");
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/keys", directory);
	return 0;
}

static int
remove_directory(void **state)
{
	unlink(path);
	rmdir(directory);
	return 0;
}

static void
write_bytes(const void *bytes, size_t count)
{
	FILE *file;

	unlink(path);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, count, file), count);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, 0600), 0);
}

static void
write_text(const char *text)
{
	write_bytes(text, strlen(text));
}

/* Reads the file; it gives this status, and a detail that contains `said` and nothing of a key. */
static void
expect(FabricKeys *keys, FabricStatus status, const char *said)
{
	char detail[FABRIC_DETAIL_BYTES];

	memset(keys, 0x55, sizeof(*keys));
	assert_int_equal(fabric_keys_read(path, keys, detail), status);
	if (strstr(detail, said) == NULL)
		fail_msg("\"%s\" does not contain \"%s\"", detail, said);
	assert_null(strstr(detail, "33445566"));
	if (status != FABRIC_OK)
		assert_int_equal(keys->count, 0);
}

static void
test_lines(void **state)
{
	FabricKeys keys;
	uint8_t first[FABRIC_KEY_BYTES];

	for (uint32_t i = 0; i < FABRIC_KEY_BYTES; i++)
		first[i] = (uint8_t) (i % 16 * 0x11);
	write_text("# of two tenants\n\n \t# nothing\nalpha " KEY_1 "\n\t beta-2_x.Y\t \t" KEY_2 " # new\r\n");
	expect(&keys, FABRIC_OK, "");
	assert_int_equal(keys.count, 2);
	assert_string_equal(keys.keys[0].tenant, "alpha");
	assert_string_equal(keys.keys[0].identity, "alpha/" ID_1);
	assert_memory_equal(keys.keys[0].key, first, sizeof(first));
	assert_string_equal(keys.keys[1].tenant, "beta-2_x.Y");
	assert_string_equal(keys.keys[1].identity, "beta-2_x.Y/" ID_2);
	assert_int_equal(keys.keys[1].key[0], 0xff);
	assert_int_equal(keys.keys[1].key[31], 0x01);
	assert_ptr_equal(fabric_keys_find(&keys, "alpha/" ID_1), &keys.keys[0]);
	assert_ptr_equal(fabric_keys_find(&keys, "beta-2_x.Y/" ID_2), &keys.keys[1]);
	assert_null(fabric_keys_find(&keys, "alpha/" ID_2));
	assert_null(fabric_keys_find(&keys, "alpha"));
	assert_null(fabric_keys_find(&keys, ""));
	/* The last line may lack its end. */
	write_text("alpha " KEY_1);
	expect(&keys, FABRIC_OK, "");
	assert_int_equal(keys.count, 1);
}

static void
test_rotation(void **state)
{
	FabricKeys keys;

	write_text("alpha " KEY_2 "\nalpha " KEY_1 "\n");
	expect(&keys, FABRIC_OK, "");
	assert_int_equal(keys.count, 2);
	/* A client's key is the first; a memory node finds both by their identities. */
	assert_string_equal(keys.keys[0].identity, "alpha/" ID_2);
	assert_ptr_equal(fabric_keys_find(&keys, "alpha/" ID_1), &keys.keys[1]);
}

static void
test_bad_lines(void **state)
{
	static const struct
	{
		const char *text;
		const char *said;
	} bad[] = {
		{"alpha\n", "line 1: a line is"},
		{"alpha\n" KEY_1 "\n", "line 1: a line is"},
		{"\n" KEY_1 "\n", "line 2: a line is"},
		{" : " KEY_1 "\n", "line 1: a line is"},
		{"al/pha " KEY_1 "\n", "line 1: a line is"},
		{"al\xc3\xa4 " KEY_1 "\n", "line 1: a line is"},
		{"alpha " KEY_1 "\n\nbeta 00112233445566\n", "line 3: the key is not"},
		{"alpha " KEY_1 "0\n", "line 1: the key is not"},
		{"alpha " KEY_1 " " KEY_2 "\n", "line 1: the key is not"},
		{"alpha 0011223344556677 8899aabbccddeeff00112233445566778899aabbccddeef\n",
	     "line 1: the key is not"},
		{"alpha g0112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n",
	     "line 1: the key is not"},
		{"alpha 0000000000000000000000000000000000000000000000000000000000000000\n",
	     "line 1: the key is not"},
		{"alpha " KEY_1 "\nalpha " KEY_1 "\n", "line 2: the key of another line"},
		{"alpha " KEY_1 "\nbeta " KEY_1 "\n", "line 2: the key of another line"},
		{"", "no key"},
		{"# alpha " KEY_1 "\n", "no key"},
	};
	static const char hidden[] = "alpha " KEY_1 "\n\0beta " KEY_2 "\n";
	FabricKeys keys;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
	{
		write_text(bad[i].text);
		expect(&keys, FABRIC_PROTOCOL, bad[i].said);
	}
	/* A zero byte would hide what follows. */
	write_bytes(hidden, sizeof(hidden));
	expect(&keys, FABRIC_PROTOCOL, "not a text");
}

/* Writes `count` lines, each of another key, for `tenants` tenants in turn. */
static void
write_many(unsigned count, unsigned tenants)
{
	FILE *file;

	write_text("");
	file = fopen(path, "w");
	assert_non_null(file);
	for (unsigned i = 0; i < count; i++)
		fprintf(file, "tenant%u %064x # of many\n", i % tenants, i + 1);
	assert_int_equal(fclose(file), 0);
}

static void
test_too_many(void **state)
{
	char *text = malloc(1u << 20);
	FabricKeys keys;

	assert_non_null(text);
	write_many(FABRIC_MAX_KEYS, FABRIC_MAX_TENANTS);
	expect(&keys, FABRIC_OK, "");
	assert_int_equal(keys.count, FABRIC_MAX_KEYS);
	write_many(FABRIC_MAX_KEYS + 1, FABRIC_MAX_TENANTS);
	expect(&keys, FABRIC_RANGE, "line 65: too many keys");
	write_many(FABRIC_MAX_TENANTS + 1, FABRIC_MAX_TENANTS + 1);
	expect(&keys, FABRIC_RANGE, "line 16: too many tenants");
	/* The longest name, and one byte more. */
	memset(text, 'x', 1u << 20);
	strcpy(text + FABRIC_TENANT_BYTES - 1, " " KEY_1);
	write_text(text);
	expect(&keys, FABRIC_OK, "");
	assert_int_equal(strlen(keys.keys[0].tenant), FABRIC_TENANT_BYTES - 1);
	assert_int_equal(strlen(keys.keys[0].identity), FABRIC_IDENTITY_BYTES - 1);
	strcpy(text + FABRIC_TENANT_BYTES - 1, "x " KEY_1);
	write_text(text);
	expect(&keys, FABRIC_PROTOCOL, "too long");
	memset(text, '#', 1u << 20);
	write_bytes(text, 1u << 20);
	expect(&keys, FABRIC_RANGE, "too long");
	free(text);
}

static void
test_modes(void **state)
{
	FabricKeys keys;

	write_text("alpha " KEY_1 "\n");
	for (unsigned mode = 0400; mode <= 0777; mode++)
	{
		assert_int_equal(chmod(path, mode), 0);
		if ((mode & 077) != 0)
			expect(&keys, FABRIC_DENIED, "0600");
		else
			expect(&keys, FABRIC_OK, "");
	}
}

static void
test_owners(void **state)
{
	FabricKeys keys;

	if (geteuid() != 0)
		skip();
	write_text("alpha " KEY_1 "\n");
	assert_int_equal(chown(path, SOME_OTHER_USER, 0), 0);
	expect(&keys, FABRIC_DENIED, "another user");
	/* Whose it is may read it; root's is as good, if it can be read at all. */
	assert_int_equal(chmod(directory, 0755), 0);
	assert_int_equal(seteuid(SOME_OTHER_USER), 0);
	expect(&keys, FABRIC_OK, "");
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(chown(path, SOME_OTHER_USER + 1, 0), 0);
	assert_int_equal(seteuid(SOME_OTHER_USER), 0);
	expect(&keys, FABRIC_UNREACHABLE, "Permission denied");
	assert_int_equal(seteuid(0), 0);
}

static void
test_not_a_file(void **state)
{
	FabricKeys keys;
	char detail[FABRIC_DETAIL_BYTES];

	unlink(path);
	expect(&keys, FABRIC_UNREACHABLE, "No such file");
	/* Nobody writes to this FIFO: opening it must not wait. */
	assert_int_equal(mkfifo(path, 0600), 0);
	expect(&keys, FABRIC_DENIED, "not a regular file");
	assert_int_equal(fabric_keys_read(directory, &keys, detail), FABRIC_DENIED);
	assert_int_equal(fabric_keys_read("/dev/null", &keys, detail), FABRIC_DENIED);
}

static void
test_forgotten(void **state)
{
	FabricKeys keys;
	FabricKeys zeroes;

	memset(&zeroes, 0, sizeof(zeroes));
	write_text("alpha " KEY_1 "\n");
	expect(&keys, FABRIC_OK, "");
	fabric_keys_forget(&keys);
	assert_memory_equal(&keys, &zeroes, sizeof(keys));
	/* Nor does a file leave its first lines when a later one is wrong. */
	write_text("alpha " KEY_1 "\nbeta\n");
	expect(&keys, FABRIC_PROTOCOL, "line 2");
	assert_memory_equal(&keys, &zeroes, sizeof(keys));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lines, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_rotation, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_bad_lines, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_too_many, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_modes, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_owners, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_not_a_file, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_forgotten, make_directory, remove_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

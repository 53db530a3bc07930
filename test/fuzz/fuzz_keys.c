/*
 * fuzz_keys.c
 *		Any bytes as a key file.
 */
#include <string.h>

#include "fuzz.h"
#include "rdma/keys.h"

static bool
is_terminated(const char *text, size_t room)
{
	return memchr(text, '\0', room) != NULL;
}

/* What everybody believes of a key that was read. */
static void
check_key(const FabricKeys *keys, uint32_t number)
{
	const FabricKey *key = &keys->keys[number];

	fuzz_require(is_terminated(key->tenant, sizeof(key->tenant)) && key->tenant[0] != '\0');
	fuzz_require(is_terminated(key->identity, sizeof(key->identity)));
	fuzz_require(strlen(key->identity) == strlen(key->tenant) + 17);
	fuzz_require(fabric_keys_find(keys, key->identity) == key);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const FabricKeys zeroes;
	FabricKeys keys;
	char detail[FABRIC_DETAIL_BYTES];
	FabricStatus status;

	memset(detail, 'x', sizeof(detail));
	status = fabric_keys_read(fuzz_file(data, size), &keys, detail);
	fuzz_require(is_terminated(detail, sizeof(detail)));
	fuzz_require(status == FABRIC_OK || status == FABRIC_PROTOCOL || status == FABRIC_RANGE);
	fuzz_require((status == FABRIC_OK) == (detail[0] == '\0'));
	fuzz_require((status == FABRIC_OK) == (keys.count > 0) && keys.count <= FABRIC_MAX_KEYS);
	for (uint32_t i = 0; i < keys.count; i++)
		check_key(&keys, i);
	fabric_keys_forget(&keys);
	fuzz_require(memcmp(&keys, &zeroes, sizeof(keys)) == 0);
	return 0;
}

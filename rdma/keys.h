/*
 * keys.h
 *		Pre-shared keys of tenants, from a file that nobody else can read.
 *
 * The file holds lines `tenant key`: a name of letters, digits, '-', '_' and '.', and the key as 64 hex
 * digits, which is to be random ("openssl rand -hex 32").  '#' begins a comment.  A tenant may have several
 * lines while its key is rotated: a memory node takes any of them, a client uses the first line of its file.
 */
#ifndef SHERMAN_KEYS_H
#define SHERMAN_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "rdma/fabric.h"

#define FABRIC_KEY_BYTES 32u
#define FABRIC_IDENTITY_BYTES (FABRIC_TENANT_BYTES + 17u)
#define FABRIC_MAX_KEYS 64u

typedef struct FabricKey
{
	char tenant[FABRIC_TENANT_BYTES];
	char identity[FABRIC_IDENTITY_BYTES]; /* tenant "/" 16 hex digits that tell keys apart and not the key */
	uint8_t key[FABRIC_KEY_BYTES];
} FabricKey;

typedef struct FabricKeys
{
	uint32_t count;
	FabricKey keys[FABRIC_MAX_KEYS];
} FabricKeys;

/*
 * Reads a key file.  FABRIC_DENIED: not a regular file, of another user than us or root, or others than the
 * owner have any right to it; FABRIC_UNREACHABLE: it cannot be read; FABRIC_PROTOCOL: a line is wrong (detail
 * names it, never the key), or there is no key; FABRIC_RANGE: too many lines or tenants.  After a failure
 * *keys is empty. `detail` has room for FABRIC_DETAIL_BYTES.
 */
extern FabricStatus fabric_keys_read(const char *path, FabricKeys *keys, char *detail);
/* The key of an identity, or NULL; it belongs to `keys`. */
extern const FabricKey *fabric_keys_find(const FabricKeys *keys, const char *identity);
/* Overwrites the keys in memory. */
extern void fabric_keys_forget(FabricKeys *keys);

#endif /* SHERMAN_KEYS_H */

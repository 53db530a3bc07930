/*
 * key_file.c
 *		See keys.h.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "rdma/base/detail.h"
#include "rdma/keys.h"

/* Longest key file: every key with a full line of comment has room. */
#define FILE_MAX_BYTES (FABRIC_MAX_KEYS * 512u)
#define IDENTITY_HASH_BYTES 8u
/* Of the hash over the key: an identity is sent in the clear, and says nothing of the key. */
#define IDENTITY_LABEL "sherman key id"

static void
set_detail(char *detail, const char *path, unsigned line, const char *what)
{
	if (line > 0)
		detail_set(detail, "key file \"%s\" line %u: %s", path, line, what);
	else
		detail_set(detail, "key file \"%s\": %s", path, what);
}

/* Opens the file, and checks that no other user can read or change it. */
static FabricStatus
open_private(const char *path, int *file, char *detail)
{
	struct stat state;
	const char *fault = NULL;

	/* Without O_NONBLOCK a FIFO would make us wait before we see that it is one. */
	*file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (*file < 0 || fstat(*file, &state) != 0)
	{
		set_detail(detail, path, 0, strerror(errno));
		if (*file >= 0)
			close(*file);
		return FABRIC_UNREACHABLE;
	}
	if (!S_ISREG(state.st_mode))
		fault = "not a regular file";
	else if (state.st_uid != geteuid() && state.st_uid != 0)
		fault = "it belongs to another user";
	else if ((state.st_mode & (S_IRWXG | S_IRWXO)) != 0)
		fault = "others than its owner have rights to it; wanted is mode 0600";
	if (fault == NULL)
		return FABRIC_OK;
	set_detail(detail, path, 0, fault);
	close(*file);
	return FABRIC_DENIED;
}

/* Reads the whole file as text; `text` has room for FILE_MAX_BYTES and the closing zero. */
static FabricStatus
read_text(int file, const char *path, char *text, char *detail)
{
	size_t length = 0;
	ssize_t done = 1;

	while (done > 0 && length < FILE_MAX_BYTES)
	{
		done = read(file, text + length, FILE_MAX_BYTES - length);
		if (done > 0)
			length += (size_t) done;
		else if (done < 0 && errno == EINTR)
			done = 1;
	}
	text[length] = '\0';
	if (done < 0)
	{
		set_detail(detail, path, 0, strerror(errno));
		return FABRIC_UNREACHABLE;
	}
	if (length == FILE_MAX_BYTES)
	{
		set_detail(detail, path, 0, "too long");
		return FABRIC_RANGE;
	}
	if (strlen(text) != length)
	{
		set_detail(detail, path, 0, "not a text");
		return FABRIC_PROTOCOL;
	}
	return FABRIC_OK;
}

static bool
is_name_character(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
	       c == '_' || c == '.';
}

/* Value of a hex digit, or -1. */
static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static bool
parse_key(const char *text, size_t length, uint8_t key[FABRIC_KEY_BYTES])
{
	uint8_t any = 0;

	if (length != 2 * FABRIC_KEY_BYTES)
		return false;
	for (size_t i = 0; i < FABRIC_KEY_BYTES; i++)
	{
		int high = hex_value(text[2 * i]);
		int low = hex_value(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		key[i] = (uint8_t) (high << 4 | low);
		any |= key[i];
	}
	/* Zeroes are a place that was left to be filled in. */
	return any != 0;
}

/* Names the key: the tenant and the first bytes of a hash. */
static bool
set_identity(FabricKey *key)
{
	uint8_t image[sizeof(IDENTITY_LABEL) - 1 + FABRIC_KEY_BYTES];
	uint8_t hash[EVP_MAX_MD_SIZE];
	int length = snprintf(key->identity, sizeof(key->identity), "%s/", key->tenant);
	bool good;

	memcpy(image, IDENTITY_LABEL, sizeof(IDENTITY_LABEL) - 1);
	memcpy(image + sizeof(IDENTITY_LABEL) - 1, key->key, FABRIC_KEY_BYTES);
	good = EVP_Digest(image, sizeof(image), hash, NULL, EVP_sha256(), NULL) == 1;
	explicit_bzero(image, sizeof(image));
	for (uint32_t i = 0; good && i < IDENTITY_HASH_BYTES; i++)
		length += snprintf(key->identity + length, sizeof(key->identity) - (size_t) length, "%02x", hash[i]);
	return good;
}

/* Is there room for the key, and no other line that contradicts it? NULL, or what is wrong. */
static const char *
conflict_of(const FabricKeys *keys, const FabricKey *key, FabricStatus *status)
{
	uint32_t tenants = 0;
	bool known = false;

	for (uint32_t i = 0; i < keys->count; i++)
	{
		const FabricKey *other = &keys->keys[i];
		bool first = true;

		for (uint32_t j = 0; j < i && first; j++)
			first = strcmp(keys->keys[j].tenant, other->tenant) != 0;
		tenants += first;
		known |= strcmp(other->tenant, key->tenant) == 0;
		if (memcmp(other->key, key->key, sizeof(key->key)) == 0)
		{
			*status = FABRIC_PROTOCOL;
			return "the key of another line once more";
		}
	}
	*status = FABRIC_RANGE;
	if (keys->count == FABRIC_MAX_KEYS)
		return "too many keys";
	if (!known && tenants == FABRIC_MAX_TENANTS)
		return "too many tenants";
	*status = FABRIC_OK;
	return NULL;
}

/* One line of the file, without its end. */
static const char *
parse_line(const char *line, size_t length, FabricKeys *keys, FabricStatus *status)
{
	static const char blank[] = " \t\r";
	const char *comment = memchr(line, '#', length);
	const char *end = comment != NULL ? comment : line + length;
	const char *fault = NULL;
	const char *name;
	size_t name_bytes = 0;
	FabricKey key = {0};

	*status = FABRIC_OK;
	while (line < end && strchr(blank, *line) != NULL)
		line++;
	while (line < end && strchr(blank, end[-1]) != NULL)
		end--;
	if (line == end)
		return NULL;
	name = line;
	while (line < end && is_name_character(*line))
		line++;
	name_bytes = (size_t) (line - name);
	while (line < end && strchr(blank, *line) != NULL)
		line++;
	*status = FABRIC_PROTOCOL;
	if (name_bytes == 0 || line == name + name_bytes)
		return "a line is a tenant's name (letters, digits, '-', '_', '.') and its key";
	if (name_bytes >= FABRIC_TENANT_BYTES)
		return "the tenant's name is too long";
	memcpy(key.tenant, name, name_bytes);
	if (!parse_key(line, (size_t) (end - line), key.key))
		fault = "the key is not 64 hex digits of a random number";
	else if (!set_identity(&key))
		fault = "SHA-256 is not available";
	else
		fault = conflict_of(keys, &key, status);
	if (fault == NULL)
		keys->keys[keys->count++] = key;
	explicit_bzero(&key, sizeof(key));
	return fault;
}

static FabricStatus
parse_text(const char *path, const char *text, FabricKeys *keys, char *detail)
{
	for (unsigned number = 1; *text != '\0'; number++)
	{
		size_t length = strcspn(text, "\n");
		FabricStatus status;
		const char *fault = parse_line(text, length, keys, &status);

		if (fault != NULL)
		{
			set_detail(detail, path, number, fault);
			return status;
		}
		text += length + (text[length] == '\n');
	}
	if (keys->count > 0)
		return FABRIC_OK;
	set_detail(detail, path, 0, "there is no key in it");
	return FABRIC_PROTOCOL;
}

FabricStatus
fabric_keys_read(const char *path, FabricKeys *keys, char *detail)
{
	char text[FILE_MAX_BYTES + 1];
	int file;
	FabricStatus status;

	memset(keys, 0, sizeof(*keys));
	detail[0] = '\0';
	status = open_private(path, &file, detail);
	if (status != FABRIC_OK)
		return status;
	status = read_text(file, path, text, detail);
	close(file);
	if (status == FABRIC_OK)
		status = parse_text(path, text, keys, detail);
	explicit_bzero(text, sizeof(text));
	if (status != FABRIC_OK)
		fabric_keys_forget(keys);
	return status;
}

const FabricKey *
fabric_keys_find(const FabricKeys *keys, const char *identity)
{
	for (uint32_t i = 0; i < keys->count; i++)
	{
		if (strcmp(keys->keys[i].identity, identity) == 0)
			return &keys->keys[i];
	}
	return NULL;
}

void
fabric_keys_forget(FabricKeys *keys)
{
	explicit_bzero(keys, sizeof(*keys));
}

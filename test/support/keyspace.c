/*
 * keyspace.c
 *		See keyspace.h.
 */
#include <stdio.h>
#include <stdlib.h>

#include "keyspace.h"
#include "require.h"

_Thread_local const int32_t *keyspace_holds;
_Thread_local uint64_t keyspace_compares;
_Thread_local uint64_t keyspace_jump_at;
_Thread_local jmp_buf keyspace_jump;

static const KeySpace spaces[KEYSPACES] = {
	{KEYSPACE_16,
     "16",
     {.cell_bytes = 16, .norm_bytes = 8, .lossless = true, .fill_percent = 90, .postings = true},
     1},
	{KEYSPACE_16_SINGLE,
     "16-single",
     {.cell_bytes = 16, .norm_bytes = 8, .lossless = true, .fill_percent = 90},
     1},
	{KEYSPACE_32_WHOLE,
     "32-whole",
     {.cell_bytes = 32, .norm_bytes = 24, .lossless = true, .fill_percent = 90, .postings = true},
     1},
	{KEYSPACE_32_TIED, "32-tied", {.cell_bytes = 32, .norm_bytes = 8, .fill_percent = 90}, 16},
	{KEYSPACE_32_PREFIX, "32-prefix", {.cell_bytes = 32, .norm_bytes = 8, .fill_percent = 90}, 0},
	{KEYSPACE_64_OVERFLOW, "64-overflow", {.cell_bytes = 64, .norm_bytes = 24, .fill_percent = 90}, 16},
	{KEYSPACE_64_FULL,
     "64-full",
     {.cell_bytes = 64, .norm_bytes = 24, .full_separators = true, .fill_percent = 90},
     4},
	{KEYSPACE_64_PREFIX, "64-prefix", {.cell_bytes = 64, .norm_bytes = 16, .fill_percent = 90}, 0},
	{KEYSPACE_24_WHOLE,
     "24-whole",
     {.cell_bytes = 24, .norm_bytes = 16, .lossless = true, .fill_percent = 90, .postings = true},
     1},
	{KEYSPACE_40_OVERFLOW, "40-overflow", {.cell_bytes = 40, .norm_bytes = 8, .fill_percent = 90}, 16},
	{KEYSPACE_48_PREFIX, "48-prefix", {.cell_bytes = 48, .norm_bytes = 16, .fill_percent = 90}, 0},
};

const KeySpace *
keyspace(KeySpaceKind kind)
{
	REQUIRE(kind < KEYSPACES, "no key space %d", (int) kind);
	return &spaces[kind];
}

int
key_entry_compare(const void *a, const void *b)
{
	const KeyEntry *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

uint32_t
keyspace_image_bytes(const KeySpace *space, uint64_t number)
{
	switch (space->kind)
	{
		case KEYSPACE_16:
		case KEYSPACE_16_SINGLE:
		case KEYSPACE_24_WHOLE:
		case KEYSPACE_32_WHOLE:
			return 0;
		case KEYSPACE_32_TIED:
		case KEYSPACE_32_PREFIX:
			return 8 + number % 8;
		case KEYSPACE_48_PREFIX:
		case KEYSPACE_64_PREFIX:
			return 40 + number % 60;
		default:
			if (number % 97 == 5)
				return TREE_IMAGE_MAX_BYTES - number % 16;
			return number % 3 == 0 ? 8 + number % 24 : 32 + number % 200;
	}
}

static uint8_t
padding_byte(uint64_t number, uint32_t i)
{
	return (uint8_t) (number * 31 + i * 7 + (number >> 8));
}

static void
norm_fill(const KeySpace *space, uint64_t number, TreeKey *key)
{
	memset(key->norm, 0, sizeof(key->norm));
	key->high = false;
	if (space->kind == KEYSPACE_32_WHOLE)
	{
		key->norm[0] = number >> 12;
		key->norm[1] = (number >> 4 & 0xff) << 48;
		key->norm[2] = number & 0xf;
	}
	else if (space->kind == KEYSPACE_24_WHOLE)
	{
		key->norm[0] = number >> 4;
		key->norm[1] = (number & 0xf) << 48;
	}
	else if (space->run == 0)
		key->norm[0] = 0x636f6e7374616e74ull;
	else
		key->norm[0] = (number / space->run) << 8;
	/* The upper half of the numbers has the leading bit. */
	if (space->run != 0)
		key->high = number >= KEYSPACE_LIMIT / 2;
}

void
keyspace_key(const KeySpace *space, const KeyEntry *entry, KeyImage *image, TreeKey *key)
{
	REQUIRE(entry->number < KEYSPACE_LIMIT, "number too large");
	memset(key, 0, sizeof(*key));
	norm_fill(space, entry->number, key);
	key->block = entry->block;
	key->offset = entry->offset;
	key->image_bytes = (uint16_t) keyspace_image_bytes(space, entry->number);
	if (key->image_bytes == 0)
		return;
	for (uint32_t i = 0; i < key->image_bytes; i++)
		image->bytes[i] = i < 8 ? (uint8_t) (entry->number >> (56 - 8 * i)) : padding_byte(entry->number, i);
	key->image = image->bytes;
}

uint64_t
keyspace_number(const KeySpace *space, const TreeKey *key)
{
	uint64_t number = 0;
	TreeKey other;

	REQUIRE(!key->cut, "a cut key has no number");
	if (space->kind == KEYSPACE_16 || space->kind == KEYSPACE_16_SINGLE)
		number = key->norm[0] >> 8;
	else if (space->kind == KEYSPACE_32_WHOLE)
		number = key->norm[0] << 12 | (key->norm[1] >> 48) << 4 | key->norm[2];
	else if (space->kind == KEYSPACE_24_WHOLE)
		number = key->norm[0] << 4 | key->norm[1] >> 48;
	else
	{
		REQUIRE(key->image_bytes >= 8 && key->image != NULL, "no image");
		for (int i = 0; i < 8; i++)
			number = number << 8 | key->image[i];
	}
	REQUIRE(number < KEYSPACE_LIMIT, "impossible number");
	REQUIRE(key->image_bytes == keyspace_image_bytes(space, number), "image of %u bytes for number %llu",
	        key->image_bytes, (unsigned long long) number);
	for (uint32_t i = 8; i < key->image_bytes; i++)
		REQUIRE(key->image[i] == padding_byte(number, i), "wrong image");
	norm_fill(space, number, &other);
	REQUIRE(other.high == key->high && memcmp(other.norm, key->norm, sizeof(other.norm)) == 0,
	        "normalized key of another number");
	return number;
}

void
keyspace_bound(const KeySpace *space, const uint64_t *number, int8_t side, TreeBound *bound)
{
	memset(bound, 0, sizeof(*bound));
	norm_fill(space, *number, &bound->key);
	bound->norm_bits_valid = 1;
	bound->norm_length = space->format.norm_bytes;
	bound->norm_exact = space->format.lossless;
	bound->side = side;
	bound->argument = number;
}

int
keyspace_compare(void *argument, const TreeBound *bound, const TreeKey *entry)
{
	const KeySpace *space = argument;
	uint64_t mine, theirs;

	REQUIRE(keyspace_holds == NULL || *keyspace_holds == 0, "the comparator is called while a lock is held");
	REQUIRE(!bound->key.cut, "the comparator gets a cut bound");
	keyspace_compares++;
	if (keyspace_jump_at != 0 && keyspace_compares >= keyspace_jump_at)
	{
		keyspace_jump_at = 0;
		longjmp(keyspace_jump, 1);
	}
	mine =
		bound->argument != NULL ? *(const uint64_t *) bound->argument : keyspace_number(space, &bound->key);
	if (entry->cut)
		return 0;
	theirs = keyspace_number(space, entry);
	return mine < theirs ? -1 : mine > theirs;
}

uint64_t
key_random(KeyRandom *random, uint64_t below)
{
	uint64_t x = random->state != 0 ? random->state : 88172645463325252ull;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	random->state = x;
	return (x >> 11) % below;
}

static uint64_t
model_place(const KeyModel *model, const KeyEntry *entry)
{
	uint64_t low = 0, high = model->count;

	while (low < high)
	{
		uint64_t middle = (low + high) / 2;

		if (key_entry_compare(&model->entries[middle], entry) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint64_t
key_model_find(const KeyModel *model, uint64_t number)
{
	KeyEntry entry = {.number = number};

	return model_place(model, &entry);
}

bool
key_model_has(const KeyModel *model, const KeyEntry *entry)
{
	uint64_t place = model_place(model, entry);

	return place < model->count && key_entry_compare(&model->entries[place], entry) == 0;
}

bool
key_model_add(KeyModel *model, const KeyEntry *entry)
{
	uint64_t place = model_place(model, entry);

	if (place < model->count && key_entry_compare(&model->entries[place], entry) == 0)
		return false;
	if (model->count == model->room)
	{
		model->room = model->room != 0 ? model->room * 2 : 1024;
		model->entries = realloc(model->entries, model->room * sizeof(KeyEntry));
		REQUIRE(model->entries != NULL, "no memory");
	}
	memmove(&model->entries[place + 1], &model->entries[place], (model->count - place) * sizeof(KeyEntry));
	model->entries[place] = *entry;
	model->count++;
	return true;
}

bool
key_model_remove(KeyModel *model, const KeyEntry *entry)
{
	uint64_t place = model_place(model, entry);

	if (place == model->count || key_entry_compare(&model->entries[place], entry) != 0)
		return false;
	model->count--;
	memmove(&model->entries[place], &model->entries[place + 1], (model->count - place) * sizeof(KeyEntry));
	return true;
}

void
key_model_free(KeyModel *model)
{
	free(model->entries);
	memset(model, 0, sizeof(*model));
}

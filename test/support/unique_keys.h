/*
 * unique_keys.h
 *		Numbers that may have one row only, as am/access/unique.c and key_parts.c see to it, and whose row has each.
 *
 * Who adds an entry on condition that its leaf shows it to be alone has a permit (TreePermit) of the part of all keys that it is in.
 * Who checks a number locks it, says so to its part, and waits until nobody adds there; then it looks at the entries, and adds
 * its own on no condition.  In memory that all of them share.
 */
#ifndef SHERMAN_TEST_UNIQUE_KEYS_H
#define SHERMAN_TEST_UNIQUE_KEYS_H

#include "internal.h"

/* Few, so that keys share them, and a wave is in most of them. */
#define UNIQUE_PARTS 32u

typedef struct UniquePart
{
	uint32_t adding;
	uint32_t checking;
} UniquePart;

typedef struct UniqueNumber
{
	uint32_t locked;
	uint32_t row; /* the living one's number plus 1; 0: there is none */
} UniqueNumber;

typedef struct UniqueKeys
{
	UniquePart parts[UNIQUE_PARTS];
	uint64_t together;  /* entries that went by calls of many */
	uint64_t checked;   /* numbers */
	uint64_t conflicts; /* of them, had a row */
	uint32_t count;
	UniqueNumber numbers[];
} UniqueKeys;

/* Bytes for numbers below `count`; zeroed, they are set up by unique_keys_set_up(). */
extern size_t unique_keys_bytes(uint32_t count);
extern void unique_keys_set_up(UniqueKeys *keys, uint32_t count);
/* All processes have ended: nobody adds or checks. Rows stay. */
extern void unique_keys_end(UniqueKeys *keys);

extern TreePermit unique_keys_permit(UniqueKeys *keys);

/* False: another process has the number locked. */
extern bool unique_keys_lock(UniqueKeys *keys, uint64_t number);
/* With the number locked: from when unique_keys_checks() returns true on nobody adds the key without a check. */
extern void unique_keys_check(UniqueKeys *keys, const TreeKey *key);
extern bool unique_keys_checks(const UniqueKeys *keys, const TreeKey *key);
extern void unique_keys_unlock(UniqueKeys *keys, uint64_t number, const TreeKey *key);

/* A row lives from now on, or does not. False: another one has its number already, which must not be. */
extern bool unique_keys_row(UniqueKeys *keys, uint64_t number, uint32_t row);
extern void unique_keys_row_ends(UniqueKeys *keys, uint64_t number);

#endif /* SHERMAN_TEST_UNIQUE_KEYS_H */

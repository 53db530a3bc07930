/*
 * files.h
 *		Where the files of memory nodes go that simulations and tests start.
 */
#ifndef SHERMAN_SIM_FILES_H
#define SHERMAN_SIM_FILES_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* $FABRIC_TEST_DIRECTORY, of whoever cleans up after tests that fail; or one in memory, if there is any. */
static inline const char *
files_base(void)
{
	const char *base = getenv("FABRIC_TEST_DIRECTORY");

	if (base != NULL)
		return base;
	return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

/*
 * Makes a new directory there, whose path begins with this name. False: it cannot be made, or its path is too
 * long.
 */
static inline bool
files_make(char *directory, size_t bytes, const char *name)
{
	int length = snprintf(directory, bytes, "%s/%s-XXXXXX", files_base(), name);

	return length > 0 && (size_t) length < bytes && mkdtemp(directory) != NULL;
}

/* Removes a file of the directory, if it is there. */
static inline void
files_remove_one(const char *directory, const char *name)
{
	char path[256];
	int length = snprintf(path, sizeof(path), "%s/%s", directory, name);

	if (length > 0 && (size_t) length < sizeof(path))
		unlink(path);
}

/*
 * Removes what a memory node leaves in a directory, `memory` and `socket`, and the directory, if nothing else
 * is in it.
 */
static inline void
files_remove(const char *directory)
{
	files_remove_one(directory, "memory");
	files_remove_one(directory, "memory.lock");
	files_remove_one(directory, "socket");
	rmdir(directory);
}

#endif /* SHERMAN_SIM_FILES_H */

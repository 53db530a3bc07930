/*
 * full_file_system.c
 *		For t/074_file_system_full: loaded before the C library, it has no room for files as long as the file that
 *		$FULL_FILE_SYSTEM names is there.
 */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

typedef int Allocate(int file, off_t offset, off_t length);

int
posix_fallocate(int file, off_t offset, off_t length)
{
	const char *sign = getenv("FULL_FILE_SYSTEM");
	Allocate   *next = (Allocate *) dlsym(RTLD_NEXT, "posix_fallocate");

	if (sign != NULL && access(sign, F_OK) == 0)
		return ENOSPC;
	return next(file, offset, length);
}

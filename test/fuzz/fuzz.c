/*
 * fuzz.c
 *		See fuzz.h.
 */
#define _GNU_SOURCE 1
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void
fuzz_fail(const char *file, int line, const char *condition)
{
	fprintf(stderr, "%s:%d: not so: %s\n", file, line, condition);
	abort();
}

const char *
fuzz_file(const uint8_t *data, size_t size)
{
	static char path[64];
	static int file = -1;

	if (file < 0)
	{
		file = memfd_create("fuzz", MFD_CLOEXEC);
		fuzz_require(file >= 0 && fchmod(file, 0600) == 0);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	}
	fuzz_require(ftruncate(file, 0) == 0);
	fuzz_require(pwrite(file, data, size, 0) == (ssize_t) size);
	return path;
}

uint8_t
fuzz_byte(FuzzInput *input)
{
	if (input->size == 0)
		return 0;
	input->size--;
	return *input->data++;
}

const uint8_t *
fuzz_bytes(FuzzInput *input, size_t wanted, size_t *count)
{
	const uint8_t *bytes = input->data;

	*count = wanted < input->size ? wanted : input->size;
	input->data += *count;
	input->size -= *count;
	return bytes;
}

/*
 * fuzz.h
 *		What the fuzzers share.  A fuzzer is one file with LLVMFuzzerTestOneInput(); whatever it finds wrong ends the
 *		process by a sanitizer or by fuzz_require().
 */
#ifndef SHERMAN_FUZZ_H
#define SHERMAN_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process, unless the condition holds. */
#define fuzz_require(condition)                                                                              \
	do                                                                                                       \
	{                                                                                                        \
		if (!(condition))                                                                                    \
			fuzz_fail(__FILE__, __LINE__, #condition);                                                       \
	} while (0)
extern void fuzz_fail(const char *file, int line, const char *condition) __attribute__((noreturn));

/* Path of a file of mode 0600 in memory with these bytes; the same one each time. */
extern const char *fuzz_file(const uint8_t *data, size_t size);

/* Input that is taken piece by piece. */
typedef struct FuzzInput
{
	const uint8_t *data;
	size_t size;
} FuzzInput;

/* The next byte, 0 at the end. */
extern uint8_t fuzz_byte(FuzzInput *input);
/* The next bytes, at most `wanted`; *count says how many there are. */
extern const uint8_t *fuzz_bytes(FuzzInput *input, size_t wanted, size_t *count);

#endif /* SHERMAN_FUZZ_H */

/*
 * require.h
 *		For what stands beside the tests of cmocka: says what is not as it must be, and ends the process.
 */
#ifndef SHERMAN_TEST_REQUIRE_H
#define SHERMAN_TEST_REQUIRE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define REQUIRE(condition, ...)                                                                              \
	do                                                                                                       \
	{                                                                                                        \
		if (!(condition))                                                                                    \
		{                                                                                                    \
			fprintf(stderr, "%s:%d: process %d: ", __FILE__, __LINE__, (int) getpid());                      \
			fprintf(stderr, __VA_ARGS__);                                                                    \
			fputc('\n', stderr);                                                                             \
			abort();                                                                                         \
		}                                                                                                    \
	} while (0)

/* A number from the command line, in any base that C knows; what is none ends the process. */
static inline uint64_t
argument_number(const char *text)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 0);

	if (*text == 0 || *end != 0)
	{
		fprintf(stderr, "not a number: %s\n", text);
		exit(2);
	}
	return value;
}

#endif /* SHERMAN_TEST_REQUIRE_H */

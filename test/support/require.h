/*
 * require.h
 *		For what stands beside the tests of cmocka: says what is not as it must be, and ends the process.
 */
#ifndef SHERMAN_TEST_REQUIRE_H
#define SHERMAN_TEST_REQUIRE_H

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

#endif /* SHERMAN_TEST_REQUIRE_H */

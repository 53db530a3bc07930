/*
 * testing.h
 *		cmocka, and what it wants before it.
 */
#ifndef SHERMAN_TEST_TESTING_H
#define SHERMAN_TEST_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MEGABYTE (1ull << 20)

#endif /* SHERMAN_TEST_TESTING_H */

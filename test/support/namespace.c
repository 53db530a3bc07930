/*
 * namespace.c
 *		See namespace.h.
 */
#define _GNU_SOURCE 1
#include "namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

const char *
namespace_address(void)
{
	return getenv("FABRIC_TEST_NAMESPACE") == NULL ? NULL : getenv("FABRIC_TEST_ADDRESS");
}

bool
namespace_enter(void)
{
	const char *path = getenv("FABRIC_TEST_NAMESPACE");
	int descriptor;
	bool entered;

	if (path == NULL)
		return true;
	descriptor = open(path, O_RDONLY | O_CLOEXEC);
	entered = descriptor >= 0 && setns(descriptor, CLONE_NEWNET) == 0;
	if (descriptor >= 0)
		close(descriptor);
	return entered;
}

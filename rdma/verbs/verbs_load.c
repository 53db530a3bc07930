/*
 * verbs_load.c
 *		Finds the driver of the verbs transport, and the wire format of what its two halves tell each other.
 */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rdma/verbs/verbs.h"

#define DRIVER_FILE "sherman_verbs.so"

void
verbs_put_address(FramePayload *payload, const VerbsAddress *address)
{
	uint64_t gid[2];

	memcpy(gid, address->gid, sizeof(gid));
	frame_put32(payload, address->queue);
	frame_put32(payload, address->sequence);
	frame_put32(payload, address->lid);
	frame_put32(payload, address->mtu);
	frame_put32(payload, address->reads);
	frame_put32(payload, 0);
	frame_put64(payload, gid[0]);
	frame_put64(payload, gid[1]);
}

void
verbs_get_address(FramePayload *payload, VerbsAddress *address)
{
	uint64_t gid[2];

	address->queue = frame_get32(payload);
	address->sequence = frame_get32(payload);
	address->lid = frame_get32(payload);
	address->mtu = frame_get32(payload);
	address->reads = frame_get32(payload);
	(void) frame_get32(payload);
	gid[0] = frame_get64(payload);
	gid[1] = frame_get64(payload);
	memcpy(address->gid, gid, sizeof(gid));
}

void
verbs_put_grant(FramePayload *payload, const VerbsGrant *grant)
{
	verbs_put_address(payload, &grant->address);
	for (int i = 0; i < VERBS_WINDOWS; i++)
	{
		frame_put64(payload, grant->windows[i].first);
		frame_put64(payload, grant->windows[i].end);
		frame_put64(payload, grant->windows[i].base);
		frame_put32(payload, grant->windows[i].key);
	}
}

void
verbs_get_grant(FramePayload *payload, VerbsGrant *grant)
{
	verbs_get_address(payload, &grant->address);
	for (int i = 0; i < VERBS_WINDOWS; i++)
	{
		grant->windows[i].first = frame_get64(payload);
		grant->windows[i].end = frame_get64(payload);
		grant->windows[i].base = frame_get64(payload);
		grant->windows[i].key = frame_get32(payload);
	}
}

/* Opens the driver's file in the directory of `beside`, or in one that is named from there. */
static void *
open_beside(const char *beside, const char *directory)
{
	char path[PATH_MAX];
	const char *slash = beside == NULL ? NULL : strrchr(beside, '/');

	if (slash == NULL || (size_t) snprintf(path, sizeof(path), "%.*s/%s%s", (int) (slash - beside), beside,
	                                       directory, DRIVER_FILE) >= sizeof(path))
		return NULL;
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void *
open_driver(void)
{
	char program[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
	Dl_info self;
	void *library = NULL;

	if (dladdr((const void *) open_beside, &self) != 0)
		library = open_beside(self.dli_fname, "");
	if (library == NULL && length > 0)
	{
		program[length] = '\0';
		library = open_beside(program, "");
		/* So the daemon is installed (tree/msd/msd.mk). */
		if (library == NULL)
			library = open_beside(program, "../lib/sherman/");
	}
	return library != NULL ? library : dlopen(DRIVER_FILE, RTLD_NOW | RTLD_LOCAL);
}

const VerbsDriver *
verbs_load(char *detail)
{
	/* The dynamic linker keeps the library loaded and counts: to ask it again costs little and needs no global of ours. */
	void *library = open_driver();
	VerbsDriverFunction function = NULL;
	const VerbsDriver *driver = NULL;
	void *symbol = library == NULL ? NULL : dlsym(library, VERBS_DRIVER_SYMBOL);

	if (symbol != NULL)
	{
		memcpy(&function, &symbol, sizeof(function));
		driver = function();
	}
	if (driver != NULL && driver->version == VERBS_DRIVER_VERSION)
		return driver;
	if (driver != NULL)
		snprintf(detail, FABRIC_DETAIL_BYTES, "%s is of another version", DRIVER_FILE);
	else
		snprintf(detail, FABRIC_DETAIL_BYTES, "verbs cannot be used: %s", dlerror());
	if (library != NULL)
		dlclose(library);
	return NULL;
}

/*
 * object.c
 *		The memory object's file: whose it is, taking over what an earlier daemon left, making a new one.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server_state.h"

FabricStatus
object_lock(FabricServer *server, char *detail)
{
	for (;;)
	{
		struct stat locked;
		struct stat named;

		server->lock = open(server->lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (server->lock < 0)
		{
			server_set_detail(detail, "cannot open \"%s\": %s", server->lock_path, strerror(errno));
			return FABRIC_UNREACHABLE;
		}
		if (flock(server->lock, LOCK_EX | LOCK_NB) != 0)
		{
			server_set_detail(detail, "another daemon serves \"%s\"", server->memory_path);
			return FABRIC_EXISTS;
		}
		/* A daemon that discarded its object may have removed the file between open and lock. */
		if (fstat(server->lock, &locked) == 0 && stat(server->lock_path, &named) == 0 &&
		    locked.st_ino == named.st_ino)
			return FABRIC_OK;
		close(server->lock);
		server->lock = -1;
	}
}

/* More channels than asked for do no harm. */
bool
object_fits(const FabricServer *server, const MemoryHeader *header)
{
	MemoryHeader plan;

	if (header->max_channels < server->options.max_channels)
		return false;
	memory_plan(&plan, server->options.node_bytes, server->options.service_bytes, header->max_channels,
	            server->pages.bytes);
	return header->object_bytes == plan.object_bytes && header->service_bytes == plan.service_bytes &&
	       header->region_bytes == plan.region_bytes;
}

static bool
allocate_channels(FabricServer *server, uint32_t count)
{
	free(server->channels);
	server->channels = calloc(count, sizeof(ServerChannel));
	for (uint32_t i = 0; server->channels != NULL && i < count; i++)
		server->channels[i].process = -1;
	return server->channels != NULL;
}

/* Learns what the file's pages are. FABRIC_NOT_SUPPORTED: not what the options ask for. */
static FabricStatus
check_pages(FabricServer *server, int descriptor, char *detail)
{
	server->pages = pages_of(descriptor);
	if (server->options.huge_pages != FABRIC_HUGE_ON || pages_are_huge(&server->pages))
		return FABRIC_OK;
	server_set_detail(detail, "\"%s\" cannot have huge pages: it has %s", server->memory_path,
	                  pages_name(&server->pages));
	return FABRIC_NOT_SUPPORTED;
}

/* Are huge pages wanted where the kernel waits to be asked for them? */
static bool
pages_are_asked_for(const FabricServer *server)
{
	return server->options.huge_pages != FABRIC_HUGE_OFF && server->pages.kind == PAGES_TMPFS_ADVISE;
}

FabricStatus
object_open(FabricServer *server, bool *keep, char *detail)
{
	int descriptor = open(server->memory_path, O_RDWR | O_CLOEXEC);
	FabricStatus status;

	*keep = false;
	if (descriptor < 0 && errno == ENOENT)
		return FABRIC_OK;
	if (descriptor < 0)
	{
		server_set_detail(detail, "cannot open \"%s\": %s", server->memory_path, strerror(errno));
		return FABRIC_UNREACHABLE;
	}
	status = check_pages(server, descriptor, detail);
	if (status != FABRIC_OK)
	{
		close(descriptor);
		return status;
	}
	status = memory_map(descriptor, &server->memory);
	if (status == FABRIC_PROTOCOL)
	{
		/* Not of this build or boot.  Whoever maps it all the same has channels that we cannot kill. */
		status = flock(descriptor, LOCK_EX | LOCK_NB) == 0 ? FABRIC_OK : FABRIC_BUSY;
		if (status == FABRIC_BUSY)
			server_set_detail(detail, "\"%s\" is of another build and in use", server->memory_path);
		close(descriptor);
		return status;
	}
	if (status != FABRIC_OK)
	{
		server_set_detail(detail, "cannot map \"%s\"", server->memory_path);
		close(descriptor);
		return status;
	}
	if (pages_are_asked_for(server))
		memory_advise(&server->memory);
	*keep = object_fits(server, server->memory.header);
	if (!allocate_channels(server, server->memory.header->max_channels))
		return FABRIC_NO_MEMORY;
	return FABRIC_OK;
}

FabricStatus
object_recover(FabricServer *server, bool keep, char *detail)
{
	FabricService service = server->service;
	FabricStatus status;

	if (server->memory.base == NULL)
		return FABRIC_OK;
	/* What is thrown away needs no replay, only nobody who writes to it and believes it is kept. */
	if (!keep)
		server->service = (FabricService){0};
	status = channels_recover(server);
	server->service = service;
	if (status != FABRIC_OK)
		server_set_detail(detail, "a process that maps \"%s\" cannot be stopped", server->memory_path);
	else if (!keep)
		memory_unmap(&server->memory);
	return status;
}

FabricStatus
object_create(FabricServer *server, uint32_t channels, bool believed, char *detail)
{
	MemoryHeader plan;
	FabricStatus status;
	int descriptor;

	/* A new file, not an emptied one: those who map the old one must not meet SIGBUS. */
	unlink(server->memory_path);
	descriptor = open(server->memory_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (descriptor < 0)
	{
		server_set_detail(detail, "cannot create \"%s\": %s", server->memory_path, strerror(errno));
		return FABRIC_UNREACHABLE;
	}
	status = check_pages(server, descriptor, detail);
	if (status == FABRIC_OK && server->pages.kind == PAGES_OTHER)
		server_log(server, FABRIC_LOG_WARNING, "\"%s\" is not on tmpfs: it will be slow",
		           server->memory_path);
	if (status == FABRIC_OK)
	{
		memory_plan(&plan, server->options.node_bytes, server->options.service_bytes, channels,
		            server->pages.bytes);
		if (!believed)
			plan.magic = 0;
		status = memory_create(descriptor, &plan, pages_are_asked_for(server), &server->memory);
		if (status != FABRIC_OK)
			server_set_detail(detail,
			                  "no room for a memory object of %llu bytes with %u channels at \"%s\", of %s",
			                  (unsigned long long) plan.object_bytes, plan.max_channels, server->memory_path,
			                  pages_name(&server->pages));
	}
	if (status != FABRIC_OK)
	{
		close(descriptor);
		unlink(server->memory_path);
		return status;
	}
	return allocate_channels(server, plan.max_channels) ? FABRIC_OK : FABRIC_NO_MEMORY;
}

/*
 * segment_file.c
 *		The memory segment's file: whose it is, taking over what an earlier daemon left, making a new one.
 *
 * What lies at its path may be anything, and anybody's.  The file is used if it is a memory segment that no other user
 * could have made or changed, and that no other daemon serves.  One that is ours and not used any more is set aside
 * (set_aside.h), or removed if there is nothing in it.  Whatever else is there is left alone, and refused.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rdma/base/detail.h"
#include "rdma/memory/guard.h"
#include "rdma/memory/set_aside.h"
#include "rdma/server/server_state.h"

/*
 * Is the file one that no other user could have made, can change, or has by another name?  `detail` says what is wrong,
 * and how the file becomes one.
 */
static bool
file_is_private(int descriptor, const char *path, char *detail)
{
	struct stat file;

	if (fstat(descriptor, &file) != 0)
		detail_set(detail, "cannot look at \"%s\": %s", path, strerror(errno));
	else if (!S_ISREG(file.st_mode))
		detail_set(detail, "\"%s\" is no regular file", path);
	else if (file.st_uid != geteuid())
		detail_set(detail, "\"%s\" belongs to user %u, and not to this daemon's, %u", path,
		           (unsigned) file.st_uid, (unsigned) geteuid());
	else if ((file.st_mode & (S_IRWXG | S_IRWXO)) != 0)
		detail_set(detail, "\"%s\" has mode %03o: other users can reach it (chmod 600)", path,
		           (unsigned) file.st_mode & 0777);
	else if (file.st_nlink > 1)
		detail_set(detail, "\"%s\" has %u names (links)", path, (unsigned) file.st_nlink);
	else
		return true;
	return false;
}

/*
 * Takes the lock of the file itself, whatever its name is: so one that was renamed is not served twice.  It belongs to the
 * server's descriptor; those of clients are opened anew.
 */
static FabricStatus
lock_segment(const FabricServer *server, int descriptor, char *detail)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

	if (fcntl(descriptor, F_OFD_SETLK, &lock) == 0)
		return FABRIC_OK;
	detail_set(detail, "another daemon serves \"%s\", by another name", server->memory_path);
	return FABRIC_EXISTS;
}

FabricStatus
segment_lock(FabricServer *server, char *detail)
{
	for (;;)
	{
		struct stat locked;
		struct stat named;

		server->lock = open(server->lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
		if (server->lock < 0)
		{
			detail_set(detail, "cannot open \"%s\": %s", server->lock_path, strerror(errno));
			return FABRIC_UNREACHABLE;
		}
		if (!file_is_private(server->lock, server->lock_path, detail))
			return FABRIC_DENIED;
		if (flock(server->lock, LOCK_EX | LOCK_NB) != 0)
		{
			detail_set(detail, "another daemon serves \"%s\"", server->memory_path);
			return FABRIC_EXISTS;
		}
		/* A daemon that discarded its segment may have removed the file between open and lock. */
		if (fstat(server->lock, &locked) == 0 && stat(server->lock_path, &named) == 0 &&
		    locked.st_ino == named.st_ino)
			return FABRIC_OK;
		close(server->lock);
		server->lock = -1;
	}
}

MemorySizes
segment_asked(const FabricServer *server)
{
	return (MemorySizes){MEMORY_FIRST_UNIT +
	                         server->options.node_bytes / FABRIC_UNIT_BYTES * FABRIC_UNIT_BYTES,
	                     server->options.max_channels};
}

static bool
allocate_channels(FabricServer *server)
{
	uint64_t count = server->memory.header->max_channels;

	free(server->channels);
	server->channels = calloc(count, sizeof(ServerChannel));
	for (uint64_t i = 0; server->channels != NULL && i < count; i++)
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
	detail_set(detail, "\"%s\" cannot have huge pages: it has %s", server->memory_path,
	           pages_name(&server->pages));
	return FABRIC_NOT_SUPPORTED;
}

/* Are huge pages wanted where the kernel waits to be asked for them? */
static bool
pages_are_asked_for(const FabricServer *server)
{
	return server->options.huge_pages != FABRIC_HUGE_OFF && server->pages.kind == PAGES_TMPFS_ADVISE;
}

/* Opens what lies at the path, if it is a file that may be ours; *descriptor is -1: nothing does. */
static FabricStatus
open_at_path(FabricServer *server, int *descriptor, char *detail)
{
	struct stat named;
	FabricStatus status;

	*descriptor = -1;
	/* A device is not even opened. */
	if (lstat(server->memory_path, &named) == 0 && !S_ISREG(named.st_mode))
	{
		detail_set(detail, "\"%s\" is no regular file", server->memory_path);
		return FABRIC_DENIED;
	}
	*descriptor = open(server->memory_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (*descriptor < 0 && errno == ENOENT)
		return FABRIC_OK;
	if (*descriptor < 0)
	{
		detail_set(detail, "cannot open \"%s\": %s", server->memory_path, strerror(errno));
		return FABRIC_UNREACHABLE;
	}
	if (!file_is_private(*descriptor, server->memory_path, detail))
		return FABRIC_DENIED;
	status = lock_segment(server, *descriptor, detail);
	return status == FABRIC_OK ? check_pages(server, *descriptor, detail) : status;
}

/* Moves a segment away that is not used any more and that no process maps: of its kind, for this reason. */
static FabricStatus
put_away(const FabricServer *server, MemoryKind kind, const char *why, char *detail)
{
	char kept[PATH_MAX];
	FabricStatus status;

	if (kind == MEMORY_KIND_UNFINISHED || kind == MEMORY_KIND_VACANT)
	{
		if (unlink(server->memory_path) == 0)
			return FABRIC_OK;
		detail_set(detail, "cannot remove \"%s\": %s", server->memory_path, strerror(errno));
		return FABRIC_UNREACHABLE;
	}
	status = set_aside_file(server->memory_path, why, kept, detail);
	if (status != FABRIC_OK)
		return status;
	server_log(server, FABRIC_LOG_WARNING,
	           "the memory \"%s\" cannot be used (%s) and is kept as \"%s\"; it takes room until it is "
	           "removed",
	           server->memory_path, why, kept);
	server_log_set_aside_hint(server);
	return FABRIC_OK;
}

/* What cannot be mapped as a segment of this build and boot: it is ours, or it is left alone. */
static FabricStatus
refuse_or_put_away(const FabricServer *server, int descriptor, char *detail)
{
	MemoryKind kind = memory_kind_of(descriptor);

	if (kind == MEMORY_KIND_STRANGE)
	{
		detail_set(detail, "\"%s\" is there and is no memory segment: it is not touched",
		           server->memory_path);
		return FABRIC_DENIED;
	}
	/* A process that still maps it has channels that we cannot kill. */
	if (flock(descriptor, LOCK_EX | LOCK_NB) != 0)
	{
		detail_set(detail, "\"%s\" is of another build and in use", server->memory_path);
		return FABRIC_BUSY;
	}
	return put_away(server, kind, "other-build-or-boot", detail);
}

FabricStatus
segment_open(FabricServer *server, bool *found, char *detail)
{
	int descriptor;
	FabricStatus status = open_at_path(server, &descriptor, detail);

	*found = false;
	if (status == FABRIC_OK && descriptor >= 0)
	{
		status = memory_map(descriptor, &server->memory);
		if (status == FABRIC_PROTOCOL)
			status = refuse_or_put_away(server, descriptor, detail);
		else if (status != FABRIC_OK)
			detail_set(detail, "cannot map \"%s\"", server->memory_path);
	}
	if (server->memory.base == NULL)
	{
		if (descriptor >= 0)
			close(descriptor);
		return status;
	}
	if (pages_are_asked_for(server))
		memory_advise(&server->memory);
	*found = true;
	return allocate_channels(server) ? FABRIC_OK : FABRIC_NO_MEMORY;
}

static unsigned long long
node_megabytes(const MemorySizes *sizes)
{
	return (sizes->region_bytes - MEMORY_FIRST_UNIT) >> 20;
}

/* Says what became of other sizes. */
static void
report_sizes(const FabricServer *server, const MemorySizes *before, FabricStatus status)
{
	const MemorySizes asked = segment_asked(server);
	const MemorySizes has = memory_sizes(server->memory.header);

	/* The caller warns, with advice: fabric_server_sizes(). */
	if (status != FABRIC_OK)
		server_log(
			server, FABRIC_LOG_INFO,
			"there is no room for %llu MB with %u channels at \"%s\": the memory keeps its content, with "
			"%llu MB and %u channels",
			node_megabytes(&asked), (unsigned) asked.max_channels, server->memory_path, node_megabytes(&has),
			(unsigned) has.max_channels);
	else if (has.region_bytes > asked.region_bytes)
		server_log(
			server, FABRIC_LOG_INFO,
			"%llu MB are asked for, and what is in the memory reaches up to %llu MB: it keeps these and its "
			"content, and no more is granted as long as more than %llu MB are in use",
			node_megabytes(&asked), node_megabytes(&has), node_megabytes(&asked));
	else
		server_log(server, FABRIC_LOG_INFO,
		           "the memory has %llu MB and %u channels now, and had %llu MB and %u channels: its content "
		           "is kept",
		           node_megabytes(&has), (unsigned) has.max_channels, node_megabytes(before),
		           (unsigned) before->max_channels);
}

FabricStatus
segment_resize(FabricServer *server, char *detail)
{
	Memory *memory = &server->memory;
	const MemorySizes before = memory_sizes(memory->header);
	MemorySizes sizes = segment_asked(server);
	uint64_t used_end = memory_used_end(memory);
	FabricStatus status;

	if (sizes.region_bytes == before.region_bytes && sizes.max_channels == before.max_channels)
		return FABRIC_OK;
	if (sizes.region_bytes < used_end)
		sizes.region_bytes = used_end;
	status = memory_resize(memory, &sizes, &server->pages);
	report_sizes(server, &before, status);
	if (allocate_channels(server))
		return FABRIC_OK;
	detail_set(detail, "out of memory");
	return FABRIC_NO_MEMORY;
}

bool
segment_is_whole(FabricServer *server)
{
	Memory *memory = &server->memory;
	struct stat file;

	if (!guard_is_lost(memory->base) && fstat(memory->descriptor, &file) == 0 &&
	    (uint64_t) file.st_size >= memory->bytes)
		return true;
	server_log(
		server, FABRIC_LOG_ERROR,
		"the memory \"%s\" was cut short by a process that has it, or cannot be read: what is in it is lost",
		server->memory_path);
	/* The next daemon sets it aside. */
	memory->header->layout_version = 0;
	return false;
}

bool
fabric_segment_is_there(const char *path, bool *served)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	int descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	MemoryKind kind;
	bool is_there;

	if (descriptor < 0)
		return false;
	/* A lock file, which is empty, looks like a segment whose making was broken off. */
	kind = file_is_private(descriptor, path, NULL) ? memory_kind_of(descriptor) : MEMORY_KIND_STRANGE;
	is_there = kind == MEMORY_KIND_VACANT || kind == MEMORY_KIND_SEGMENT;
	*served = fcntl(descriptor, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
	close(descriptor);
	return is_there;
}

FabricStatus
fabric_segment_set_aside(const char *path, const char *why, char *kept, char *detail)
{
	FabricServer server = {.memory_path = (char *) (uintptr_t) path};
	int descriptor;
	FabricStatus status = open_at_path(&server, &descriptor, detail);
	MemoryKind kind;

	kept[0] = '\0';
	if (descriptor < 0)
		return status == FABRIC_OK ? FABRIC_NOT_FOUND : status;
	kind = memory_kind_of(descriptor);
	if (status == FABRIC_OK && flock(descriptor, LOCK_EX | LOCK_NB) != 0)
	{
		detail_set(detail, "\"%s\" is in use", path);
		status = FABRIC_BUSY;
	}
	if (status == FABRIC_OK && kind == MEMORY_KIND_STRANGE)
	{
		detail_set(detail, "\"%s\" is no memory segment: it is not touched", path);
		status = FABRIC_DENIED;
	}
	if (status == FABRIC_OK && kind == MEMORY_KIND_SEGMENT)
		status = set_aside_file(path, why, kept, detail);
	else if (status == FABRIC_OK && unlink(path) != 0)
	{
		detail_set(detail, "cannot remove \"%s\": %s", path, strerror(errno));
		status = FABRIC_UNREACHABLE;
	}
	close(descriptor);
	return status;
}

FabricStatus
segment_create(FabricServer *server, const MemorySizes *sizes, bool valid, char *detail)
{
	FabricStatus status;
	int descriptor;

	/* A new file, in a place where there is none. */
	descriptor = open(server->memory_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (descriptor < 0)
	{
		detail_set(detail, "cannot create \"%s\": %s", server->memory_path, strerror(errno));
		return FABRIC_UNREACHABLE;
	}
	status = lock_segment(server, descriptor, detail);
	if (status == FABRIC_OK)
		status = check_pages(server, descriptor, detail);
	if (status == FABRIC_OK && server->pages.kind == PAGES_OTHER)
		server_log(server, FABRIC_LOG_WARNING, "\"%s\" is not on tmpfs: it will be slow",
		           server->memory_path);
	if (status == FABRIC_OK)
	{
		status = memory_create(descriptor, sizes, &server->pages, pages_are_asked_for(server), valid,
		                       &server->memory);
		if (status != FABRIC_OK)
			detail_set(detail, "no room for a memory segment of %llu MB with %u channels at \"%s\", of %s",
			           node_megabytes(sizes), (unsigned) sizes->max_channels, server->memory_path,
			           pages_name(&server->pages));
	}
	if (status != FABRIC_OK)
	{
		close(descriptor);
		unlink(server->memory_path);
		return status;
	}
	return allocate_channels(server) ? FABRIC_OK : FABRIC_NO_MEMORY;
}

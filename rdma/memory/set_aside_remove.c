/*
 * set_aside_remove.c
 *		A file that was set aside is removed: such a one, and nothing else.
 *
 * Its name is compared with those that are there, and never taken apart: no path leads elsewhere.  Then the file is
 * opened, and looked at through its descriptor.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rdma/base/detail.h"
#include "rdma/memory/set_aside.h"
#include "rdma/memory/memory.h"
#include "rdma/memory/snapshot.h"

typedef struct Wanted
{
	const char *path;
	bool found;
} Wanted;

static void
compare_path(void *argument, const SetAsideFile *file)
{
	Wanted *wanted = argument;

	wanted->found |= strcmp(file->path, wanted->path) == 0;
}

/* Does the file hold what was set aside? */
static bool
holds_kind(int descriptor, SetAsideKind kind)
{
	switch (kind)
	{
		case SET_ASIDE_MEMORY:
			return memory_kind_of(descriptor) != MEMORY_KIND_STRANGE;
		case SET_ASIDE_SNAPSHOT:
			return snapshot_may_be(descriptor);
		case SET_ASIDE_ANY:
			return true;
	}
	return false;
}

/*
 * Whether a daemon or a client uses the file. A daemon may have been given this file's name, or a client may still
 * map it.
 */
static bool
is_in_use(int descriptor)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

	return fcntl(descriptor, F_OFD_SETLK, &lock) != 0 || flock(descriptor, LOCK_EX | LOCK_NB) != 0;
}

/* Removes the file that is open, if it still has the name. */
static FabricStatus
remove_open(const char *kept, int descriptor, SetAsideKind kind, char *detail)
{
	struct stat opened;
	struct stat named;

	if (!holds_kind(descriptor, kind))
	{
		detail_set(detail, "\"%s\" has the name of a %s that was set aside, and is none: it is not touched",
		           kept, kind == SET_ASIDE_MEMORY ? "memory" : "snapshot");
		return FABRIC_DENIED;
	}
	if (is_in_use(descriptor))
	{
		detail_set(detail, "\"%s\" is in use", kept);
		return FABRIC_BUSY;
	}
	if (fstat(descriptor, &opened) != 0 || lstat(kept, &named) != 0 || opened.st_ino != named.st_ino ||
	    opened.st_dev != named.st_dev || opened.st_uid != geteuid())
	{
		detail_set(detail, "\"%s\" was replaced by another file", kept);
		return FABRIC_DENIED;
	}
	if (unlink(kept) == 0 && set_aside_sync_directory(kept))
		return FABRIC_OK;
	detail_set(detail, "cannot remove \"%s\": %s", kept, strerror(errno));
	return FABRIC_UNREACHABLE;
}

FabricStatus
set_aside_remove(const char *path, SetAsideKind kind, const char *kept, char *detail)
{
	Wanted wanted = {.path = kept};
	FabricStatus status;
	int descriptor;

	(void) set_aside_list(path, compare_path, &wanted);
	if (!wanted.found)
	{
		detail_set(detail, "\"%s\" is no file of this user that was set aside from \"%s\"", kept, path);
		return FABRIC_NOT_FOUND;
	}
	descriptor = open(kept, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (descriptor < 0)
	{
		detail_set(detail, "cannot open \"%s\": %s", kept, strerror(errno));
		return FABRIC_UNREACHABLE;
	}
	status = remove_open(kept, descriptor, kind, detail);
	close(descriptor);
	return status;
}

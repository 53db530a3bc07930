/*
 * set_aside.c
 *		See set_aside.h.
 */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "rdma/base/detail.h"
#include "rdma/memory/set_aside.h"
#include "rdma/memory/memory.h"

/* How the time is written, and with the hyphen before it and the end. */
#define SET_ASIDE_TIME "%Y%m%dT%H%M%SZ"
#define SET_ASIDE_TIME_BYTES sizeof("-20261123T121314Z")

/* Names tried in one second. */
#define SET_ASIDE_TRIES 100
#define SET_ASIDE_NUMBER_DIGITS 2u

/* The directory of a path, "." if it names none. */
static void
directory_of(const char *path, char *directory)
{
	const char *slash = strrchr(path, '/');

	if (slash == NULL)
		strcpy(directory, ".");
	else
		snprintf(directory, PATH_MAX, "%.*s", slash == path ? 1 : (int) (slash - path), path);
}

bool
set_aside_sync_directory(const char *path)
{
	char directory[PATH_MAX];
	int descriptor;
	bool done;

	directory_of(path, directory);
	descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (descriptor < 0)
		return false;
	done = fsync(descriptor) == 0;
	close(descriptor);
	return done;
}

/* Is it what free_name() writes behind the time: nothing, or a number? */
static bool
is_number(const char *text)
{
	size_t digits = text[0] == '.' ? strspn(text + 1, "0123456789") : 0;

	return text[0] == '\0' || (digits > 0 && digits <= SET_ASIDE_NUMBER_DIGITS && text[1 + digits] == '\0');
}

/* Takes a name apart, behind `former`.  False: it is not of a file that was set aside. */
static bool
parse_name(const char *name, const char *former, SetAsideFile *file)
{
	size_t length = strlen(former);
	struct tm broken_down = {0};
	const char *why = name + length + strlen(SET_ASIDE_MARK);
	const char *end;
	size_t letters;

	if (strncmp(name, former, length) != 0 ||
	    strncmp(name + length, SET_ASIDE_MARK, strlen(SET_ASIDE_MARK)) != 0)
		return false;
	letters = strspn(why, "abcdefghijklmnopqrstuvwxyz-");
	if (letters < 2 || letters > SET_ASIDE_WHY_BYTES || why[letters - 1] != '-')
		return false;
	end = strptime(why + letters, SET_ASIDE_TIME, &broken_down);
	/* strptime() also takes spaces and signs. */
	if (end == NULL || strspn(why + letters, "0123456789TZ") < (size_t) (end - why) - letters ||
	    !is_number(end))
		return false;
	snprintf(file->why, sizeof(file->why), "%.*s", (int) letters - 1, why);
	file->since = (int64_t) timegm(&broken_down);
	return true;
}

void
set_aside_list_all(const char *path, void (*visit)(void *argument, const SetAsideFile *file), void *argument)
{
	const char *slash = strrchr(path, '/');
	const char *former = slash == NULL ? path : slash + 1;
	char directory[PATH_MAX];
	struct dirent *entry;
	DIR *entries;

	directory_of(path, directory);
	entries = opendir(directory);
	while (entries != NULL && (entry = readdir(entries)) != NULL)
	{
		SetAsideFile file = {.bytes = 0};
		struct stat status;

		if (!parse_name(entry->d_name, former, &file) ||
		    fstatat(dirfd(entries), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(status.st_mode))
			continue;
		if (snprintf(file.path, sizeof(file.path), "%.*s%s", (int) (former - path), path, entry->d_name) >=
		    (int) sizeof(file.path))
			continue;
		file.bytes = (uint64_t) status.st_blocks * 512;
		file.owner = (uint32_t) status.st_uid;
		visit(argument, &file);
	}
	if (entries != NULL)
		closedir(entries);
}

/* What set_aside_list() passes on. */
typedef struct Own
{
	void (*visit)(void *argument, const SetAsideFile *file);
	void *argument;
	uint32_t count;
} Own;

static void
visit_own(void *argument, const SetAsideFile *file)
{
	Own *own = argument;

	if (file->owner != (uint32_t) geteuid())
		return;
	own->count++;
	if (own->visit != NULL)
		own->visit(own->argument, file);
}

uint32_t
set_aside_list(const char *path, void (*visit)(void *argument, const SetAsideFile *file), void *argument)
{
	Own own = {.visit = visit, .argument = argument};

	set_aside_list_all(path, visit_own, &own);
	return own.count;
}

/* A name that nothing has yet.  False: there is none. */
static bool
free_name(const char *path, const char *why, char *kept)
{
	char stamp[SET_ASIDE_TIME_BYTES];
	time_t now = time(NULL);
	struct tm broken_down;
	struct stat there;

	strftime(stamp, sizeof(stamp), "-" SET_ASIDE_TIME, gmtime_r(&now, &broken_down));
	for (int i = 0; i < SET_ASIDE_TRIES; i++)
	{
		int length = i == 0 ? snprintf(kept, PATH_MAX, "%s" SET_ASIDE_MARK "%s%s", path, why, stamp)
		                    : snprintf(kept, PATH_MAX, "%s" SET_ASIDE_MARK "%s%s.%d", path, why, stamp, i);

		if (length >= PATH_MAX)
			return false;
		if (lstat(kept, &there) != 0)
			return errno == ENOENT;
	}
	return false;
}

FabricStatus
set_aside_file(const char *path, const char *why, char *kept, char *detail)
{
	if (set_aside_list(path, NULL, NULL) >= SET_ASIDE_MOST)
	{
		detail_set(detail,
		           "\"%s\" would be set aside (%s), but %u files were already: remove some of "
		           "\"%s" SET_ASIDE_MARK "*\"",
		           path, why, SET_ASIDE_MOST, path);
		return FABRIC_UNREACHABLE;
	}
	if (free_name(path, why, kept) && rename(path, kept) == 0 && set_aside_sync_directory(path))
		return FABRIC_OK;
	detail_set(detail, "\"%s\" cannot be set aside (%s): %s", path, why, strerror(errno));
	return FABRIC_UNREACHABLE;
}

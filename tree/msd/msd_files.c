/*
 * msd_files.c
 *		msd --list-files and --remove-file: the files at the paths of memory and snapshot, and what was set aside of them.
 */
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "tree/msd/msd_state.h"

#define LINE_FORMAT "%-9s %15s  %-20s  %-12s  %-20s  %s\n"

/* What is set aside lies beside these. */
typedef struct OwnFile
{
	const char *path;
	const char *name;
	SetAsideKind kind;
} OwnFile;

static void
print_line(const char *kind, uint64_t bytes, int64_t since, uint32_t owner, const char *why, const char *path)
{
	const struct passwd *user = getpwuid((uid_t) owner);
	const time_t seconds = (time_t) since;
	char number[24];
	char stamp[24];
	char user_number[16];
	struct tm broken_down;

	snprintf(number, sizeof(number), "%llu", (unsigned long long) bytes);
	snprintf(user_number, sizeof(user_number), "%u", owner);
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &broken_down));
	printf(LINE_FORMAT, kind, number, stamp, user != NULL ? user->pw_name : user_number, why, path);
}

static void
print_kept(void *argument, const SetAsideFile *file)
{
	(void) argument;
	print_line("kept", file->bytes, file->since, file->owner, file->why, file->path);
}

/* The file at the path itself, if there is one. */
static void
print_present(const OwnFile *own)
{
	const char *why = "-";
	struct stat file;
	bool served = false;

	if (lstat(own->path, &file) != 0 || !S_ISREG(file.st_mode))
		return;
	if (own->kind == SET_ASIDE_MEMORY && fabric_segment_is_there(own->path, &served))
		why = served ? "served" : "not-served";
	print_line(own->name, (uint64_t) file.st_blocks * 512, (int64_t) file.st_mtime, (uint32_t) file.st_uid,
	           why, own->path);
}

static int
remove_file(const OwnFile *own, size_t count, const char *path)
{
	char detail[FABRIC_DETAIL_BYTES] = "";
	FabricStatus status = FABRIC_NOT_FOUND;

	for (size_t i = 0; i < count && status == FABRIC_NOT_FOUND; i++)
		status = set_aside_remove(own[i].path, own[i].kind, path, detail);
	if (status == FABRIC_OK)
	{
		printf("removed \"%s\"\n", path);
		return 0;
	}
	fprintf(stderr, "msd: not removed: %s\nhint: ", detail);
	if (status == FABRIC_BUSY)
		fprintf(stderr, "stop the daemon or the server that uses it\n");
	else
		fprintf(
			stderr,
			"files that --list-files shows as \"kept\" can be removed, by their owner and by these names\n");
	return 1;
}

int
msd_files(const MsdConfig *config)
{
	OwnFile own[2];
	size_t count = 0;

	if (config->memory[0] != '\0')
		own[count++] = (OwnFile){config->memory, "memory", SET_ASIDE_MEMORY};
	if (config->snapshot[0] != '\0')
		own[count++] = (OwnFile){config->snapshot, "snapshot", SET_ASIDE_SNAPSHOT};
	if (!config->list_files)
		return remove_file(own, count, config->remove_file);
	printf(LINE_FORMAT, "KIND", "BYTES", "SINCE", "OWNER", "WHY", "FILE");
	for (size_t i = 0; i < count; i++)
	{
		print_present(&own[i]);
		set_aside_list_all(own[i].path, print_kept, NULL);
	}
	return 0;
}

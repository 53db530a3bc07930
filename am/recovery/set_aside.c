/*
 * set_aside.c
 *		Files of this server outside of its tables: the embedded node's memory, its snapshot, the state file, and what was
 *		set aside of them; set aside here, listed and removed by SQL functions.
 */
#include "am/base/sherman.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "funcapi.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "tree/service/service.h"
#include "am/base/shared.h"
#include "am/recovery/recovery.h"

PG_FUNCTION_INFO_V1(sherman_files);
PG_FUNCTION_INFO_V1(sherman_remove_file);

#define FILES_COLUMNS 5

/* What is set aside lies beside these. */
typedef struct OwnFiles
{
	char		memory[MAXPGPATH];	/* "": the embedded node never ran */
	const char *path[3];
	const char *name[3];
	SetAsideKind	kind[3];
} OwnFiles;

/* ---- setting aside ---- */

bool
sherman_keep_memory(const char *path, const char *why)
{
	char		detail[FABRIC_DETAIL_BYTES] = "";
	char		kept[MAXPGPATH * 4];
	FabricStatus status = fabric_segment_set_aside(path, why, kept, detail);

	StaticAssertStmt(sizeof(kept) >= PATH_MAX, "room for the name");
	if (status == FABRIC_NOT_FOUND)
		return true;
	if (status != FABRIC_OK)
		ereport(WARNING, (errmsg("memory \"%s\" cannot be set aside: %s", path, detail)));
	else if (kept[0] != '\0')
		ereport(WARNING,
				(errmsg("memory \"%s\" is not used any more, and is kept as \"%s\"", path, kept),
				 errdetail("It does not fit this data directory's history."),
				 errhint("It takes room in memory until SELECT sherman_remove_file('%s').", kept)));
	return status == FABRIC_OK;
}

bool
sherman_keep_file(const char *path, const char *why)
{
	char		detail[FABRIC_DETAIL_BYTES] = "";
	char		kept[MAXPGPATH * 4];
	struct stat file;

	if (stat(path, &file) != 0)
		return true;
	if (set_aside_file(path, why, kept, detail) != FABRIC_OK)
	{
		ereport(WARNING,
				(errcode_for_file_access(),
				 errmsg("\"%s\" does not fit this data directory's history, and cannot be set aside", path),
				 errdetail("%s", detail)));
		return false;
	}
	ereport(WARNING,
			(errmsg("\"%s\" is not used any more, and is kept as \"%s\"", path, kept),
			 errdetail("It does not fit this data directory's history."),
			 errhint("It is removed by SELECT sherman_remove_file('%s').", kept)));
	return true;
}

/* ---- the list ---- */

static void
find_own_files(OwnFiles *files)
{
	files->memory[0] = '\0';
	if (sherman_shared != NULL)
	{
		LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
		strlcpy(files->memory, sherman_shared->local.memory_path, sizeof(files->memory));
		LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	}
	files->path[0] = files->memory;
	files->name[0] = "memory";
	files->kind[0] = SET_ASIDE_MEMORY;
	files->path[1] = SHERMAN_SNAPSHOT;
	files->name[1] = "snapshot";
	files->kind[1] = SET_ASIDE_SNAPSHOT;
	files->path[2] = SHERMAN_LOCAL_FILE;
	files->name[2] = "state file";
	files->kind[2] = SET_ASIDE_ANY;
}

static void
put_file(ReturnSetInfo *result, const char *path, const char *kind, uint64 bytes, int64 since, const char *why)
{
	Datum		values[FILES_COLUMNS];
	bool		nulls[FILES_COLUMNS] = {0};

	values[0] = CStringGetTextDatum(path);
	values[1] = CStringGetTextDatum(kind);
	values[2] = Int64GetDatum((int64) bytes);
	values[3] = TimestampTzGetDatum(time_t_to_timestamptz((pg_time_t) since));
	nulls[4] = why == NULL;
	values[4] = why == NULL ? (Datum) 0 : CStringGetTextDatum(why);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

static void
put_kept(void *argument, const SetAsideFile *file)
{
	put_file(argument, file->path, "kept", file->bytes, file->since, file->why);
}

/*
 * A file that is not set aside, if it is there.
 */
static void
put_present(ReturnSetInfo *result, const char *path, const char *kind, const char *why)
{
	struct stat file;

	if (path[0] != '\0' && stat(path, &file) == 0)
		put_file(result, path, kind, (uint64) file.st_blocks * 512, file.st_mtime, why);
}

/*
 * Memory in the same directory that is not this server's: what data directories that are gone have left is among it.
 */
static void
put_others(ReturnSetInfo *result, const char *own)
{
	DIR		   *directory = AllocateDir(sherman_embedded_directory);
	struct dirent *entry;

	while (directory != NULL && (entry = ReadDirExtended(directory, sherman_embedded_directory, LOG)) != NULL)
	{
		char		path[MAXPGPATH * 2];
		bool		served;

		if (strncmp(entry->d_name, "sherman.", strlen("sherman.")) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", sherman_embedded_directory, entry->d_name);
		if (strncmp(path, own, strlen(own)) == 0 && own[0] != '\0')
			continue;
		if (fabric_segment_is_there(path, &served))
			put_present(result, path, "other memory",
						served ? "a server that runs uses it" : "no server that runs uses it");
	}
	if (directory != NULL)
		FreeDir(directory);
}

/*
 * One row for each file: what is in use, what was set aside and why, and memory of others beside ours.
 */
Datum
sherman_files(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	OwnFiles	files;

	InitMaterializedSRF(fcinfo, 0);
	find_own_files(&files);
	for (int i = 0; i < (int) lengthof(files.path); i++)
	{
		put_present(result, files.path[i], files.name[i], NULL);
		if (files.path[i][0] != '\0')
			(void) set_aside_list(files.path[i], put_kept, result);
	}
	if (sherman_shared != NULL)
		put_others(result, files.memory);
	return (Datum) 0;
}

/*
 * Removes a file that was set aside, and nothing else.
 */
Datum
sherman_remove_file(PG_FUNCTION_ARGS)
{
	char	   *path = text_to_cstring(PG_GETARG_TEXT_PP(0));
	char		detail[FABRIC_DETAIL_BYTES] = "";
	FabricStatus status = FABRIC_NOT_FOUND;
	OwnFiles	files;

	find_own_files(&files);
	for (int i = 0; i < (int) lengthof(files.path) && status == FABRIC_NOT_FOUND; i++)
	{
		if (files.path[i][0] != '\0')
			status = set_aside_remove(files.path[i], files.kind[i], path, detail);
	}
	if (status == FABRIC_NOT_FOUND)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FILE),
				 errmsg("\"%s\" is no file that this server has set aside", path),
				 errhint("SELECT * FROM sherman_files() WHERE kind = 'kept' shows those.")));
	if (status != FABRIC_OK)
		ereport(ERROR,
				(errcode(status == FABRIC_BUSY ? ERRCODE_OBJECT_IN_USE : ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("could not remove file \"%s\"", path),
				 errdetail("%s", detail)));
	ereport(LOG, (errmsg("file \"%s\", which had been set aside, is removed", path)));
	PG_RETURN_VOID();
}

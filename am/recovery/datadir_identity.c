/*
 * datadir_identity.c
 *		Whether the state file was written in this data directory, or the directory is a copy of that one.
 *
 * A file can be copied, with all that is in it. So no file can prove that a directory is not a copy, and nothing here
 * does: the memory nodes prevent wrong answers from copies, as they never take the same epoch from two servers
 * (sherman_recovery_attach()). This check keeps a copy from taking the memory away from its original while that still
 * uses it.
 *
 * The number of the device is no part of it: it changes with the order in which disks are found, with each mount of a
 * network's or a btrfs file system, and with the name of a cloud's volume.
 */
#include "am/base/sherman.h"

#include <sys/stat.h>
#include <unistd.h>

#include "miscadmin.h"

#include "am/base/shared.h"
#include "am/recovery/recovery.h"

/* initdb makes it, and nothing writes it again: it is as old as the directory. */
#define OLD_FILE "PG_VERSION"

/* Of a directory's place. */
typedef struct Place
{
	uint64		inode;
	uint64		born;
	char		directory[MAXPGPATH];
} Place;

/*
 * Looks where the data directory is.  What cannot be found out is 0 or "".
 */
static void
look(Place *place)
{
	struct statx old;
	char	   *directory = realpath(DataDir, NULL);

	memset(place, 0, sizeof(*place));
	if (statx(AT_FDCWD, OLD_FILE, 0, STATX_INO | STATX_BTIME, &old) == 0)
	{
		place->inode = old.stx_ino;
		if ((old.stx_mask & STATX_BTIME) != 0)
			place->born = (uint64) old.stx_btime.tv_sec * 1000000000 + old.stx_btime.tv_nsec;
	}
	if (directory != NULL)
		strlcpy(place->directory, directory, sizeof(place->directory));
	free(directory);
}

/*
 * Whether another directory than ours is where the state file was written, and has one of the same identity.
 */
static bool
original_is_there(const ShermanLocal *local)
{
	char		path[2 * MAXPGPATH];
	struct stat original;
	struct stat ours;
	ShermanLocal *other;
	bool		is_there;

	if (local->directory[0] == '\0' || stat(local->directory, &original) != 0 || stat(DataDir, &ours) != 0)
		return false;
	if (original.st_dev == ours.st_dev && original.st_ino == ours.st_ino)
		return false;
	snprintf(path, sizeof(path), "%s/%s", local->directory, SHERMAN_LOCAL_FILE);
	other = palloc(sizeof(*other));
	is_there = sherman_local_read(path, other) && memcmp(other->cluster, local->cluster, sizeof(local->cluster)) == 0;
	pfree(other);
	return is_there;
}

ShermanPlace
sherman_place_find(const ShermanLocal *local)
{
	Place		here;

	look(&here);
	if (original_is_there(local))
		return SHERMAN_PLACE_REPLICA;
	if (here.inode != local->inode || (here.born != 0 && local->born != 0 && here.born != local->born))
		return SHERMAN_PLACE_MOVED;
	return SHERMAN_PLACE_SAME;
}

void
sherman_place_note(ShermanLocal *local)
{
	Place		here;

	look(&here);
	local->inode = here.inode;
	local->born = here.born;
	strlcpy(local->directory, here.directory, sizeof(local->directory));
}

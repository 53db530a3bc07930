/*
 * set_aside.h
 *		Files that are set aside: memory and snapshots that are not used any more, and that only the administrator may
 *		remove.
 *
 * A file that is kept has its former name, SET_ASIDE_MARK, why it was set aside and when (UTC), as in
 * "memory.kept-damaged-20261123T121314Z"; more of one second are numbered. Any user can give a file such a name, in a
 * directory like /dev/shm: files of other users do not count.
 */
#ifndef SHERMAN_KEPT_H
#define SHERMAN_KEPT_H

#include <limits.h>

#include "rdma/fabric.h"

#define SET_ASIDE_MARK ".kept-"

/* So many are kept of one file; then nothing more is set aside, and what would have to be stays in its place. */
#define SET_ASIDE_MOST 16u

/* Why it was set aside: lower-case letters and hyphens. */
#define SET_ASIDE_WHY_BYTES 32u

typedef struct SetAsideFile
{
	char path[PATH_MAX];
	char why[SET_ASIDE_WHY_BYTES];
	uint32_t owner; /* user id */
	uint64_t bytes; /* that it takes of its file system */
	int64_t since;  /* seconds since 1970 */
} SetAsideFile;

/*
 * Renames a file, durably, and says how it is called now: `kept` (PATH_MAX).  On an error it stays where it is, and
 * `detail` (FABRIC_DETAIL_BYTES) says why: FABRIC_UNREACHABLE (SET_ASIDE_MOST are kept already, or it cannot be renamed).
 */
extern FabricStatus set_aside_file(const char *path, const char *why, char *kept, char *detail);

/* What was set aside: which files may be removed as such. */
typedef enum SetAsideKind
{
	SET_ASIDE_MEMORY,   /* a memory segment, which no daemon serves and no process maps */
	SET_ASIDE_SNAPSHOT, /* what may be a snapshot, which no daemon reads */
	SET_ASIDE_ANY       /* whatever it holds */
} SetAsideKind;

/* Calls `visit` for each file of this user that was set aside from `path`, in no order.  Returns how many there are. */
extern uint32_t set_aside_list(const char *path, void (*visit)(void *argument, const SetAsideFile *file),
                               void *argument);

/* The same of files of all users. */
extern void set_aside_list_all(const char *path, void (*visit)(void *argument, const SetAsideFile *file),
                               void *argument);

/*
 * Removes a file that was set aside from `path`, durably (set_aside_remove.c).  On an error it stays, and `detail`
 * (FABRIC_DETAIL_BYTES) says why: FABRIC_NOT_FOUND (`kept` is no name of a file of this user that was set aside),
 * FABRIC_DENIED (it does not hold what its kind does), FABRIC_BUSY (it is in use), FABRIC_UNREACHABLE (it cannot be
 * removed).
 */
extern FabricStatus set_aside_remove(const char *path, SetAsideKind kind, const char *kept, char *detail);

/* Makes the names in the directory of `path` durable. */
extern bool set_aside_sync_directory(const char *path);

#endif /* SHERMAN_KEPT_H */

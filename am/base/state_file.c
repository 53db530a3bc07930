/*
 * state_file.c
 *		The state file: what this data directory knows of its memory nodes, read and written whole (state_file.h).
 */
#include "am/base/sherman.h"

#include "am/base/shared.h"

#define LOCAL_MAGIC 0x5348534c
#define LOCAL_VERSION 7

static bool local_held = false; /* what is in place is another history's, and stays */

static uint32
local_checksum(const ShermanLocal *local)
{
	return sherman_checksum(local, offsetof(ShermanLocal, checksum));
}

bool
sherman_local_read(const char *path, ShermanLocal *local)
{
	return sherman_file_read(path, local, sizeof(*local)) &&
		local->magic == LOCAL_MAGIC && local->version == LOCAL_VERSION &&
		local->checksum == local_checksum(local) &&
		memchr(local->memory_path, '\0', sizeof(local->memory_path)) != NULL;
}

void
sherman_local_hold(bool held)
{
	local_held = held;
}

bool
sherman_local_write(ShermanLocal *local)
{
	bool		written;

	/* That it is in the way was said at the start. */
	if (local_held)
		return false;
	local->magic = LOCAL_MAGIC;
	local->version = LOCAL_VERSION;
	local->checksum = local_checksum(local);
	sherman_crash_point("state file", true);
	written = sherman_file_write(SHERMAN_LOCAL_FILE, local, sizeof(*local));
	sherman_crash_point("state file", false);
	return written;
}

bool
sherman_local_change(ShermanLocal *local)
{
	if (!sherman_local_write(local))
		return false;
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	sherman_shared->local = *local;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	return true;
}

/*
 * promotion.c
 *		Behind a promotion, before anything is attached: whether this server may have the memory nodes of the one that it was a standby of.
 *
 * With synchronous replication nothing is taken before a standby follows: a server that was promoted and is deposed before then has changed
 * nothing, and whoever is promoted instead has the indexes (doc/internals/crash-safety.md, "A promotion that nobody follows yet").
 */
#include "am/base/sherman.h"

#include "access/xact.h"
#include "access/xlog.h"

#include "am/base/shared.h"
#include "am/index/index.h"
#include "am/nodes/nodes.h"
#include "am/recovery/recovery.h"

/*
 * Whether another server has taken over what was this one's, and goes on under its name, as far as its WAL was replayed here: so of an old
 * primary that has followed its successor.
 */
static bool
was_taken_over(void)
{
	const ShermanLocal *local = &sherman_shared->local;
	ShermanHistory history;
	XLogRecPtr	end;
	bool		there;

	if (sherman_shared->start != SHERMAN_START_UNPROVEN || local->epoch == 0 || sherman_shared->embedded ||
		pg_atomic_read_u32(&sherman_shared->epoch) != 0)
		return false;
	/* A session with a pinned buffer is in a transaction. */
	StartTransactionCommand();
	there = sherman_history_read(&history, &end);
	CommitTransactionCommand();
	return there && memcmp(history.cluster, local->cluster, sizeof(local->cluster)) == 0 && history.epoch >= local->epoch &&
		history.nonce != local->nonce;
}

/*
 * Begins this server's own run, and tells of it in the WAL, for whoever is promoted in its place behind that.
 */
static bool
tell_of_run(void)
{
	char		failure[SHERMAN_FAILURE_BYTES];

	if (!XLogRecPtrIsInvalid(sherman_shared->promoted_at))
		return true;
	if (!sherman_recovery_begin(failure) || !sherman_history_write(&sherman_shared->local))
		return false;
	sherman_shared->promoted_at = GetFlushRecPtr(NULL);
	return true;
}

static void
note_followed(bool followed)
{
	if (followed)
		ereport(LOG, (errmsg("sherman indexes are taken over: a synchronous standby follows this server, or none is wanted")));
	else
		ereport(LOG,
				(errmsg("sherman indexes wait for a synchronous standby that follows this server"),
				 errdetail("Until there is one another server may be promoted in place of this one. Meanwhile queries run without the "
						   "indexes, and changes of their tables wait, as commits do."),
				 sherman_hint_unfollowed()));
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	pg_atomic_write_u32(&sherman_shared->unfollowed, followed ? 0 : 1);
	/* Those who wait do so for the attach, from now on. */
	sherman_shared->wait_began = 0;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	sherman_take_over_decided();
}

bool
sherman_promotion_is_followed(void)
{
	char		failure[SHERMAN_FAILURE_BYTES];
	bool		followed;

	if (was_taken_over())
		return sherman_recovery_become_copy(failure);
	followed = sherman_shared->embedded || !sherman_recovery_takes_from_other() || !sherman_standbys_wanted() ||
		(tell_of_run() && sherman_standbys_follow(sherman_shared->promoted_at) == SHERMAN_FOLLOWED);

	pg_atomic_write_u32(&sherman_shared->commits_wait, sherman_commits_wait() ? 1 : 0);
	if (followed == sherman_promotion_waits())
		note_followed(followed);
	return followed;
}

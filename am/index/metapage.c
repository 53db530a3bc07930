/*
 * metapage.c
 *		The metapage: block 0 of the main fork, which names the tree.  It is what crash recovery, standbys and
 *		backups carry along with the tables, and so the referee on what an index is.
 */
#include "am/base/sherman.h"

#include "access/generic_xlog.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "storage/sinval.h"
#include "storage/smgr.h"
#include "utils/timestamp.h"

#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/index/index.h"

static uint32
metapage_checksum(const ShermanMetaPage *meta)
{
	return sherman_checksum(meta, offsetof(ShermanMetaPage, checksum));
}

/*
 * Looks at a page that another process may be writing, and pauses between them: a write takes some
 * microseconds.
 */
#define FILE_ATTEMPTS 20
#define FILE_PAUSE_US 1000

static ShermanMetaPage *
metapage_contents(Page page)
{
	return (ShermanMetaPage *) PageGetContents(page);
}

/*
 * Puts the contents into a page that has been initialized.
 */
static void
metapage_put(Page page, const ShermanMetaPage *meta)
{
	ShermanMetaPage *contents = metapage_contents(page);

	*contents = *meta;
	contents->checksum = metapage_checksum(contents);
	/* Full-page images leave out what lies between the two. */
	((PageHeader) page)->pd_lower = (char *) (contents + 1) - (char *) page;
}

static bool
metapage_get(Page page, ShermanMetaPage *meta)
{
	if (PageIsNew(page) || ((PageHeader) page)->pd_lower < MAXALIGN(SizeOfPageHeaderData) + sizeof(*meta))
		return false;
	*meta = *metapage_contents(page);
	return meta->magic == SHERMAN_MAGIC && meta->format == SHERMAN_FORMAT &&
		meta->checksum == metapage_checksum(meta);
}

void
sherman_metapage_set_format(ShermanMetaPage *meta, const TreeFormat *format)
{
	meta->cell_bytes = format->cell_bytes;
	meta->norm_bytes = format->norm_bytes;
	meta->lossless = format->lossless;
	meta->full_separators = format->full_separators;
	meta->flags &= ~SHERMAN_META_POSTINGS;
	if (format->postings)
		meta->flags |= SHERMAN_META_POSTINGS;
}

bool
sherman_metapage_has_format(const ShermanMetaPage *meta, TreeFormat *format)
{
	format->postings = (meta->flags & SHERMAN_META_POSTINGS) != 0;
	return format->cell_bytes == meta->cell_bytes && format->norm_bytes == meta->norm_bytes &&
		format->lossless == (meta->lossless != 0);
}

/*
 * The server's identity and the file's place: by these a copy of the page is recognized as a copy.
 */
static void
metapage_identify(Relation index, ShermanMetaPage *meta)
{
	meta->magic = SHERMAN_MAGIC;
	meta->format = SHERMAN_FORMAT;
	meta->system_identifier = GetSystemIdentifier();
	meta->database = MyDatabaseId;
	meta->index = RelationGetRelid(index);
	meta->replicas_valid = meta->replica != 0 ? SHERMAN_VALID_BOTH : SHERMAN_VALID_FIRST;
	if (meta->tree == 0 || sherman_shared == NULL)
		return;
	meta->pool[0] = sherman_shared->local.cluster[0];
	meta->pool[1] = sherman_shared->local.cluster[1];
	meta->nodes = TREE_MAX_NODES;
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		meta->incarnations[i][0] = sherman_shared->node[i].member;
		meta->incarnations[i][1] = sherman_shared->node[i].memory[1];
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
}

/*
 * An init fork is written around the buffer pool, and is always logged and durable: a crash copies it.
 */
static void
create_init_fork(Relation index, const ShermanMetaPage *meta)
{
	PGIOAlignedBlock block;
	Page		page = block.data;
	SMgrRelation storage = RelationGetSmgr(index);
	RelFileLocator file = compat_file(index);

	PageInit(page, BLCKSZ, 0);
	metapage_put(page, meta);
	PageSetChecksum(page, 0);
	sherman_crash_point("init fork", true);
	if (smgrnblocks(storage, INIT_FORKNUM) == 0)
		smgrextend(storage, INIT_FORKNUM, 0, (char *) page, true);
	else
		smgrwrite(storage, INIT_FORKNUM, 0, (char *) page, true);
	log_newpage(&file, INIT_FORKNUM, 0, page, true);
	smgrimmedsync(storage, INIT_FORKNUM);
	sherman_crash_point("init fork", false);
}

static Buffer
metapage_buffer(Relation index)
{
	BlockNumber block = RelationGetNumberOfBlocks(index) == 0 ? P_NEW : 0;
	Buffer		buffer = ReadBuffer(index, block);

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	return buffer;
}

/*
 * Writes contents into the main fork's metapage, whose buffer is locked exclusively, and unlocks it.  Returns
 * the end of the WAL record, if there is one.
 *
 * The buffers of a temporary index are its session's own.  For other processes to see it, its page is written
 * to the file, too, and first: a tree that the session uses is named there.
 */
static XLogRecPtr
metapage_write(Relation index, Buffer buffer, const ShermanMetaPage *meta)
{
	GenericXLogState *state = GenericXLogStart(index);
	Page		page = GenericXLogRegisterBuffer(state, buffer, GENERIC_XLOG_FULL_IMAGE);
	XLogRecPtr	end;

	sherman_crash_point("metapage", true);
	PageInit(page, BLCKSZ, 0);
	metapage_put(page, meta);
	if (RelationUsesLocalBuffers(index))
	{
		PageSetChecksum(page, 0);
		smgrwrite(RelationGetSmgr(index), MAIN_FORKNUM, 0, (char *) page, true);
	}
	end = GenericXLogFinish(state);
	sherman_crash_point("metapage", false);
	UnlockReleaseBuffer(buffer);
	return end;
}

void
sherman_metapage_create(Relation index, ForkNumber fork, const ShermanMetaPage *meta)
{
	ShermanMetaPage filled = *meta;

	metapage_identify(index, &filled);
	if (fork == INIT_FORKNUM)
	{
		create_init_fork(index, &filled);
		return;
	}
	metapage_write(index, metapage_buffer(index), &filled);
}

/*
 * Reads the metapage of another session's temporary index, which may be writing it; the checksum shows that. Without
 * a page there is a reason in `meta`; with one that is not valid there is none.
 */
static bool
read_of_other_session(Relation index, ShermanMetaPage *meta)
{
	SMgrRelation storage = RelationGetSmgr(index);
	PGIOAlignedBlock block;

	/*
	 * The session that takes the namespace over first drops all that is in it; a crash has removed the file.
	 */
	if (checkTempNamespaceStatus(RelationGetNamespace(index)) != TEMP_NAMESPACE_IN_USE)
	{
		meta->reason = SHERMAN_REASON_SESSION_ENDED;
		return false;
	}
	if (!smgrexists(storage, MAIN_FORKNUM) || smgrnblocks(storage, MAIN_FORKNUM) == 0)
	{
		meta->reason = SHERMAN_REASON_NOT_BUILT;
		return false;
	}
	for (int i = 0; i < FILE_ATTEMPTS; i++)
	{
		smgrread(storage, MAIN_FORKNUM, 0, block.data);
		if (PageIsNew((Page) block.data))
		{
			meta->reason = SHERMAN_REASON_NOT_BUILT;
			return false;
		}
		if (metapage_get((Page) block.data, meta))
			return true;
		pg_usleep(FILE_PAUSE_US);
	}
	memset(meta, 0, sizeof(*meta));
	return false;
}

bool
sherman_metapage_read(Relation index, ShermanMetaPage *meta)
{
	Buffer		buffer;
	bool		sound;

	memset(meta, 0, sizeof(*meta));
	if (RELATION_IS_OTHER_TEMP(index))
		return read_of_other_session(index, meta);
	if (!RELKIND_HAS_STORAGE(index->rd_rel->relkind) || RelationGetNumberOfBlocks(index) == 0)
	{
		meta->reason = SHERMAN_REASON_NOT_BUILT;
		return false;
	}
	buffer = ReadBuffer(index, 0);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	sound = metapage_get(BufferGetPage(buffer), meta);
	UnlockReleaseBuffer(buffer);
	return sound;
}

bool
sherman_metapage_install_tree(Relation index, ShermanMetaPage *meta)
{
	Buffer		buffer = metapage_buffer(index);
	ShermanMetaPage present;

	if (!metapage_get(BufferGetPage(buffer), &present) || present.tree != 0 ||
		(present.flags & SHERMAN_META_BROKEN) != 0)
	{
		*meta = present;
		UnlockReleaseBuffer(buffer);
		return false;
	}
	metapage_identify(index, meta);
	metapage_write(index, buffer, meta);
	return true;
}

bool
sherman_metapage_adopt(Relation index, uint64 tree, uint64 previous, uint64 nonce)
{
	Buffer		buffer = metapage_buffer(index);
	ShermanMetaPage meta;
	XLogRecPtr	end;

	Assert(!RecoveryInProgress());
	if (!metapage_get(BufferGetPage(buffer), &meta) || meta.tree != tree || (meta.flags & SHERMAN_META_BROKEN) != 0)
	{
		UnlockReleaseBuffer(buffer);
		return false;
	}
	if (meta.nonce_current == nonce)
	{
		/* Another session has written it, and perhaps not flushed yet. */
		end = PageGetLSN(BufferGetPage(buffer));
		UnlockReleaseBuffer(buffer);
	}
	else
	{
		meta.nonce_previous = previous;
		meta.nonce_current = nonce;
		end = metapage_write(index, buffer, &meta);
	}
	if (RelationNeedsWAL(index))
		sherman_flush_to_standbys(end);
	return true;
}

bool
sherman_metapage_give_up(Relation index, uint64 tree, uint32 valid)
{
	Buffer		buffer = metapage_buffer(index);
	ShermanMetaPage meta;
	XLogRecPtr	end;

	Assert(!RecoveryInProgress());
	Assert(valid == SHERMAN_VALID_FIRST || valid == SHERMAN_VALID_SECOND);
	if (!metapage_get(BufferGetPage(buffer), &meta) || meta.tree != tree || meta.replica == 0 ||
		(meta.flags & SHERMAN_META_BROKEN) != 0 || (meta.replicas_valid & valid) == 0)
	{
		UnlockReleaseBuffer(buffer);
		return false;
	}
	if (meta.replicas_valid == valid)
	{
		/* Another session has written it, and perhaps not flushed yet. */
		end = PageGetLSN(BufferGetPage(buffer));
		UnlockReleaseBuffer(buffer);
	}
	else
	{
		meta.replicas_valid = valid;
		end = metapage_write(index, buffer, &meta);
	}
	if (RelationNeedsWAL(index))
		sherman_flush(end);
	return true;
}

/*
 * Makes plans that use the index invalid everywhere, now: not when, or if, this transaction commits.  Plans know their tables; the
 * index itself is looked at again wherever it is used (sherman_state_changed()).
 */
static void
invalidate_plans(Relation index)
{
	SharedInvalidationMessage message;

	memset(&message, 0, sizeof(message));
	message.rc.id = SHAREDINVALRELCACHE_ID;
	message.rc.dbId = MyDatabaseId;
	message.rc.relId = index->rd_index->indrelid;
	SendSharedInvalidMessages(&message, 1);
}

void
sherman_metapage_break(Relation index, ShermanReason reason)
{
	ShermanMetaPage meta;
	XLogRecPtr	end;
	Buffer		buffer;

	Assert(!RecoveryInProgress());
	buffer = metapage_buffer(index);
	if (!metapage_get(BufferGetPage(buffer), &meta))
	{
		/* It can never be used again in either case; now the page says so. */
		memset(&meta, 0, sizeof(meta));
		metapage_identify(index, &meta);
		reason = SHERMAN_REASON_FORMAT;
	}
	if (meta.flags & SHERMAN_META_BROKEN)
	{
		end = PageGetLSN(BufferGetPage(buffer));
		UnlockReleaseBuffer(buffer);
		if (RelationNeedsWAL(index))
			sherman_flush(end);
		return;
	}
	meta.flags |= SHERMAN_META_BROKEN;
	meta.reason = reason;
	meta.broken_at = GetCurrentTimestamp();
	end = metapage_write(index, buffer, &meta);
	/* Durable before anything is skipped, whatever becomes of this transaction. */
	if (RelationNeedsWAL(index))
		sherman_flush(end);
	if (sherman_shared != NULL)
		sherman_state_changed();
	invalidate_plans(index);
	ereport(WARNING,
			(errmsg("index \"%s\" was marked as broken: %s", RelationGetRelationName(index),
					sherman_reason_text(reason)),
			 sherman_hint_rebuild(index)));
}

/*
 * history.c
 *		The page of history: the state file's content on epochs and memory nodes, in a place that standbys and
 *		restored backups have, too, as of the moment when their own history begins.
 *
 * The state file stays with its data directory. This page is in a relation file of its own among those that all
 * databases share, which no catalog names: it is written through the buffer pool, as a full-page image, so that
 * backups copy it, standbys replay it and pg_rewind sets it back, also in servers without our library. It is in the
 * WAL, and flushed, before any session may use a memory node in that state; so a server that has any of the rows that
 * were inserted then has it as well.
 *
 * The launcher alone writes it, and only in a run that has begun its epoch: from the end of its record on
 * the WAL is of that epoch, up to the next start of the server.
 */
#include "am/base/sherman.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "catalog/pg_control.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "storage/smgr.h"
#include "utils/memutils.h"

#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/recovery/recovery.h"

/*
 * Its file, global/9731: catalogs have numbers below 8000 (the rest up to 9999 is for development), and what
 * gets one later avoids those of files that are there.
 */
#define HISTORY_FILE 9731

#define HISTORY_MAGIC 0x53484849
#define HISTORY_VERSION 2

StaticAssertDecl(sizeof(ShermanHistoryNode) == offsetof(ShermanLocalNode, address),
				 "the page has of a memory node what the state file has, but for its address");
StaticAssertDecl(MAXALIGN(SizeOfPageHeaderData) + sizeof(ShermanHistory) <= BLCKSZ, "it is one page");

static uint32
history_checksum(const ShermanHistory *history)
{
	return sherman_checksum(history, offsetof(ShermanHistory, checksum));
}

bool
sherman_history_read(ShermanHistory *history, XLogRecPtr *end)
{
	SMgrRelation storage = compat_open_global(HISTORY_FILE);
	Buffer		buffer;
	Page		page;
	bool		there;

	if (!smgrexists(storage, MAIN_FORKNUM) || smgrnblocks(storage, MAIN_FORKNUM) == 0)
		return false;
	buffer = compat_read_global(HISTORY_FILE, RBM_ZERO_ON_ERROR);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	there = !PageIsNew(page) && ((PageHeader) page)->pd_lower >= MAXALIGN(SizeOfPageHeaderData) + sizeof(*history);
	if (there)
	{
		memcpy(history, PageGetContents(page), sizeof(*history));
		*end = PageGetLSN(page);
	}
	UnlockReleaseBuffer(buffer);
	return there && history->magic == HISTORY_MAGIC && history->version == HISTORY_VERSION &&
		history->checksum == history_checksum(history) && history->past_count <= SHERMAN_EPOCHS_KEPT;
}

/*
 * Writes the page; returns where its record ends.
 */
static XLogRecPtr
write_page(const ShermanHistory *history)
{
	SMgrRelation storage = compat_open_global(HISTORY_FILE);
	XLogRecPtr	end;
	Buffer		buffer;
	Page		page;

	if (!smgrexists(storage, MAIN_FORKNUM))
		smgrcreate(storage, MAIN_FORKNUM, true);
	if (smgrnblocks(storage, MAIN_FORKNUM) == 0)
		buffer = compat_extend_global(HISTORY_FILE);
	else
		buffer = compat_read_global(HISTORY_FILE, RBM_ZERO_AND_LOCK);
	page = BufferGetPage(buffer);
	START_CRIT_SECTION();
	PageInit(page, BLCKSZ, 0);
	memcpy(PageGetContents(page), history, sizeof(*history));
	((PageHeader) page)->pd_lower = MAXALIGN(SizeOfPageHeaderData) + sizeof(*history);
	MarkBufferDirty(buffer);
	XLogBeginInsert();
	XLogRegisterBuffer(0, buffer, REGBUF_FORCE_IMAGE | REGBUF_STANDARD);
	/* A server where nothing else happens needs no checkpoint for it. */
	XLogSetRecordFlags(XLOG_MARK_UNIMPORTANT);
	end = XLogInsert(RM_XLOG_ID, XLOG_FPI);
	PageSetLSN(page, end);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
	return end;
}

static void
fill_history(ShermanHistory *history, const ShermanLocal *local)
{
	memset(history, 0, sizeof(*history));
	history->magic = HISTORY_MAGIC;
	history->version = HISTORY_VERSION;
	history->system_identifier = local->system_identifier;
	memcpy(history->cluster, local->cluster, sizeof(history->cluster));
	history->nonce = local->nonce;
	history->began = local->began;
	history->epoch = local->epoch;
	history->past_count = local->past_count;
	memcpy(history->past, local->past, sizeof(history->past));
	for (int i = 0; i < TREE_MAX_NODES; i++)
		memcpy(&history->node[i], &local->node[i], sizeof(history->node[i]));
	history->checksum = history_checksum(history);
}

bool
sherman_history_write(const ShermanLocal *local)
{
	MemoryContext caller = CurrentMemoryContext;
	ShermanHistory history;
	volatile bool written = false;

	/* The embedded memory node ends with this server, and no other server can reach it. */
	if (sherman_shared->embedded)
		return true;
	fill_history(&history, local);
	StartTransactionCommand();
	PG_TRY();
	{
		sherman_flush(write_page(&history));
		CommitTransactionCommand();
		written = true;
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(caller);
		EmitErrorReport();
		FlushErrorState();
		AbortCurrentTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(caller);
	return written;
}

void
sherman_history_adopt(const ShermanHistory *history, ShermanLocal *local)
{
	memcpy(local->cluster, history->cluster, sizeof(local->cluster));
	local->nonce = history->nonce;
	local->began = history->began;
	local->epoch = history->epoch;
	local->closed = 0;
	local->closed_at = InvalidXLogRecPtr;
	local->known_by = SHERMAN_KNOWN_NOT;
	local->end = InvalidXLogRecPtr;
	local->redo = InvalidXLogRecPtr;
	local->past_count = history->past_count;
	memcpy(local->past, history->past, sizeof(local->past));
	memset(local->node, 0, sizeof(local->node));
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		memcpy(&local->node[i], &history->node[i], sizeof(history->node[i]));
		/*
		 * Every tree is looked at: one that the owner has not changed in its last epoch here may have been
		 * changed since, in one of its two copies alone.
		 */
		if (local->node[i].member != 0)
			local->node[i].unclean_from = 1;
	}
}

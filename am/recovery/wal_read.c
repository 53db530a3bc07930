/*
 * wal_read.c
 *		Reading WAL that may not be there: where a record ends, and where the first border behind it stands.
 */
#include "am/base/sherman.h"

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogutils.h"
#include "catalog/pg_control.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "am/base/compat.h"
#include "am/recovery/recovery.h"
#include "am/recovery/wal_read.h"

/*
 * Whether the record is of a shutdown or an end of recovery.
 */
static bool
is_border(XLogReaderState *reader)
{
	uint8		info = XLogRecGetInfo(reader) & ~XLR_INFO_MASK;

	return XLogRecGetRmid(reader) == RM_XLOG_ID &&
		(info == XLOG_CHECKPOINT_SHUTDOWN || info == XLOG_END_OF_RECOVERY);
}

/*
 * Where the record at `from` ends.
 */
XLogRecPtr
wal_read_record_end(XLogReaderState *reader, XLogRecPtr from, XLogRecPtr end)
{
	char	   *message;

	XLogBeginRead(reader, from);
	return XLogReadRecord(reader, &message) == NULL ? InvalidXLogRecPtr : reader->EndRecPtr;
}

/*
 * Reads on from where the reader stands; returns where the first border stands, or `end` if there is none before.
 */
static XLogRecPtr
read_on(XLogReaderState *reader, XLogRecPtr end)
{
	XLogRecPtr	reached = reader->EndRecPtr;
	char	   *message;

	while (reached != end && XLogReadRecord(reader, &message) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (is_border(reader))
			return reader->ReadRecPtr;
		reached = reader->EndRecPtr;
	}
	return reached == end ? end : InvalidXLogRecPtr;
}

/*
 * The same behind the record at `from`, a checkpoint.
 */
XLogRecPtr
wal_read_to_border(XLogReaderState *reader, XLogRecPtr from, XLogRecPtr end)
{
	if (XLogRecPtrIsInvalid(wal_read_record_end(reader, from, end)))
		return InvalidXLogRecPtr;
	return read_on(reader, end);
}

/*
 * The same behind a record that ends at `from`.
 */
static XLogRecPtr
read_from_end(XLogReaderState *reader, XLogRecPtr from, XLogRecPtr end)
{
	XLogBeginRead(reader, from);
	return read_on(reader, end);
}

/*
 * What is found in the WAL from a record on, up to `end` at most, if that is valid; an invalid position: nothing.  Files
 * that are gone are no error here.
 */
XLogRecPtr
wal_look(WalLook look, XLogRecPtr from, XLogRecPtr end)
{
	ReadLocalXLogPageNoWaitPrivate private = {0};
	MemoryContext caller = CurrentMemoryContext;
	XLogReaderState *reader = XLogReaderAllocate(wal_segment_size, NULL,
												 XL_ROUTINE(.page_read = read_local_xlog_page_no_wait,
															.segment_open = wal_segment_open,
															.segment_close = wal_segment_close),
												 &private);
	volatile XLogRecPtr found = InvalidXLogRecPtr;

	if (reader == NULL)
		return InvalidXLogRecPtr;
	PG_TRY();
	{
		found = look(reader, from, end);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(caller);
		FlushErrorState();
	}
	PG_END_TRY();
	XLogReaderFree(reader);
	return found;
}

XLogRecPtr
sherman_wal_cut(XLogRecPtr from, XLogRecPtr end)
{
	return wal_look(read_from_end, from, end);
}

/*
 * compat.h
 *		What differs between PostgreSQL's versions.  PG_VERSION_NUM is tested here and nowhere else.
 */
#ifndef SHERMAN_COMPAT_H
#define SHERMAN_COMPAT_H

#include "access/xlog.h"
#include "access/xloginsert.h"
#include "replication/message.h"
#include "utils/tuplesort.h"

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 160000
#error "sherman is for PostgreSQL 15"
#endif

/*
 * The end of the WAL inserted so far, as a position that XLogFlush() accepts.  GetXLogInsertRecPtr() is not
 * one: on a page boundary it points behind the next page's header, which may not exist yet.  Minor versions
 * without GetXLogInsertEndRecPtr() get a record of ours to flush up to.
 */
static inline XLogRecPtr
compat_wal_end(void)
{
#if PG_VERSION_NUM >= 150018
	return GetXLogInsertEndRecPtr();
#else
	return LogLogicalMessage("sherman", "", 0, false);
#endif
}

#endif							/* SHERMAN_COMPAT_H */

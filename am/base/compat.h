/*
 * compat.h
 *		What differs between PostgreSQL's versions.  PG_VERSION_NUM is tested here and nowhere else.
 */
#ifndef SHERMAN_COMPAT_H
#define SHERMAN_COMPAT_H

#include "access/xlog.h"
#include "access/xloginsert.h"
#include "replication/message.h"
#include "utils/guc_tables.h"
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

/*
 * Has pg_settings show of a setting that can be reloaded that its new value, all the same, takes a restart; or not.
 */
static inline void
compat_set_pending_restart(const char *name, bool pending)
{
	struct config_generic **settings = get_guc_variables();

	for (int i = 0; i < GetNumConfigOptions(); i++)
	{
		if (strcmp(settings[i]->name, name) == 0)
			settings[i]->status = pending ? settings[i]->status | GUC_PENDING_RESTART :
				settings[i]->status & ~GUC_PENDING_RESTART;
	}
}

#endif							/* SHERMAN_COMPAT_H */

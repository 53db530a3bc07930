/*
 * other_manager.c
 *		Another extension, for a test: it has the resource managers from other_manager.first to other_manager.last.
 */
#include "postgres.h"

#include "access/rmgr.h"
#include "access/xlog_internal.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

extern void _PG_init(void);

static int	first;
static int	last;

static void
redo(XLogReaderState *record)
{
}

static void
describe(StringInfo text, XLogReaderState *record)
{
}

static const char *
identify(uint8 info)
{
	return NULL;
}

void
_PG_init(void)
{
	static RmgrData manager[RM_MAX_CUSTOM_ID + 1];

	DefineCustomIntVariable("other_manager.first", "Its first number.", NULL, &first, RM_EXPERIMENTAL_ID, RM_MIN_CUSTOM_ID,
							RM_MAX_CUSTOM_ID, PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("other_manager.last", "Its last number.", NULL, &last, RM_EXPERIMENTAL_ID, RM_MIN_CUSTOM_ID,
							RM_MAX_CUSTOM_ID, PGC_POSTMASTER, 0, NULL, NULL, NULL);
	for (int i = first; i <= last; i++)
	{
		manager[i].rm_name = psprintf("other %d", i);
		manager[i].rm_redo = redo;
		manager[i].rm_desc = describe;
		manager[i].rm_identify = identify;
		RegisterCustomRmgr((RmgrId) i, &manager[i]);
	}
}

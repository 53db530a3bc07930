/*
 * sherman_am.c
 *		The front door: module magic, _PG_init() and the handler with its table of callbacks.
 *
 * The handler works whether or not the library was preloaded, so that a table with sherman indexes can always
 * be read, dumped, dropped and frozen; whatever needs the memory nodes says so itself (am/nodes/connection.c).
 */
#include "am/base/sherman.h"

#include "access/nbtree.h"
#include "commands/vacuum.h"

#include "am/access/access.h"
#include "am/base/compat.h"
#include "am/keys/keys.h"
#include "am/recovery/recovery.h"
#include "am/scan/scan.h"
#include "am/server/server.h"

PG_MODULE_MAGIC;

extern void _PG_init(void);

PG_FUNCTION_INFO_V1(shermanhandler);

/*
 * Runs once in each process that loads the library: in the postmaster when preloaded, else in a backend,
 * where only the settings, the reloptions and the hooks that hide unusable indexes are of use.
 */
void
_PG_init(void)
{
	sherman_define_settings();
	sherman_define_options();
	sherman_register_workers();
	sherman_install_hooks();
	sherman_wal_end_install();
}

/*
 * Returns the table of callbacks.
 */
Datum
shermanhandler(PG_FUNCTION_ARGS)
{
	IndexAmRoutine *routine = compat_new_routine();

	routine->amstrategies = SHERMAN_STRATEGIES;
	routine->amsupport = BTNProcs;
	routine->amoptsprocnum = BTOPTIONS_PROC;
	routine->amcanorder = true;
	routine->amcanorderbyop = false;
	routine->amcanbackward = true;
	routine->amcanunique = true;
	routine->amcanmulticol = true;
	routine->amoptionalkey = true;
	routine->amsearcharray = true;
	routine->amsearchnulls = true;
	routine->amstorage = false;
	routine->amclusterable = true;
	routine->ampredlocks = true;
	routine->amcanparallel = true;
	routine->amcaninclude = true;
	routine->amusemaintenanceworkmem = false;
	/* The main fork is one page: core gives it to a worker if min_parallel_index_scan_size is no more. */
	routine->amparallelvacuumoptions = VACUUM_OPTION_PARALLEL_BULKDEL | VACUUM_OPTION_PARALLEL_COND_CLEANUP;
	routine->amkeytype = InvalidOid;

	routine->ambuild = sherman_build;
	routine->ambuildempty = sherman_buildempty;
	routine->aminsert = sherman_insert;
	routine->ambulkdelete = sherman_bulkdelete;
	routine->amvacuumcleanup = sherman_vacuumcleanup;
	routine->amcanreturn = sherman_canreturn;
	routine->amcostestimate = sherman_costestimate;
	routine->amoptions = sherman_options;
	routine->amproperty = NULL;
	routine->ambuildphasename = sherman_buildphasename;
	routine->amvalidate = sherman_validate;
	routine->amadjustmembers = btadjustmembers;
	routine->ambeginscan = sherman_beginscan;
	routine->amrescan = sherman_rescan;
	routine->amgettuple = sherman_gettuple;
	routine->amgetbitmap = sherman_getbitmap;
	routine->amendscan = sherman_endscan;
	routine->ammarkpos = sherman_markpos;
	routine->amrestrpos = sherman_restrpos;
	routine->aminitparallelscan = sherman_initparallelscan;
	routine->amparallelrescan = sherman_parallelrescan;

	sherman_routine_of_version(routine);
	PG_RETURN_POINTER(routine);
}

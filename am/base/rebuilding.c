/*
 * rebuilding.c
 *		Whether this process rebuilds an index by itself (rebuild.c), so that nobody waits for it: it warns of less, and gives way.
 */
#include "am/base/sherman.h"

#include "commands/vacuum.h"
#include "miscadmin.h"

#include "am/base/shared.h"

Oid			sherman_rebuilding = InvalidOid;

bool
sherman_is_rebuilding(void)
{
	return sherman_rebuilding != InvalidOid;
}

void
sherman_rebuild_delay(void)
{
	if (likely(sherman_rebuilding == InvalidOid))
		return;
	VacuumCostDelay = sherman_rebuild_cost_delay_ms;
	VacuumCostActive = VacuumCostDelay > 0;
	vacuum_delay_point();
}

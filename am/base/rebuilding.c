/*
 * rebuilding.c
 *		Whether this process rebuilds an index in the background (rebuild.c), so that no session waits for it: it
 *		warns of less, and yields to others.
 */
#include "am/base/sherman.h"

#include "commands/vacuum.h"
#include "miscadmin.h"

#include "am/base/compat.h"
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
	compat_set_costs(sherman_rebuild_cost_delay_ms, VacuumCostLimit);
	compat_delay_point();
}

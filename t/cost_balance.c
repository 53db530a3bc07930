/*
 * cost_balance.c
 *		For tests: what this session's VACUUM has been charged when it logged something last, since it slept last.  From 16 on VACUUM forgets it
 *		at its end.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(cost_balance);

extern void _PG_init(void);
extern Datum cost_balance(PG_FUNCTION_ARGS);

static emit_log_hook_type previous_log = NULL;
static int	balance = 0;

static void
log_message(ErrorData *error)
{
	if (VacuumCostActive)
		balance = VacuumCostBalance;
	if (previous_log != NULL)
		previous_log(error);
}

void
_PG_init(void)
{
	previous_log = emit_log_hook;
	emit_log_hook = log_message;
}

Datum
cost_balance(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(balance);
}

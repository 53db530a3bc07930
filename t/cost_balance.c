/*
 * cost_balance.c
 *		For tests: what this session's VACUUM has been charged since it slept last.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(cost_balance);

extern Datum cost_balance(PG_FUNCTION_ARGS);

Datum
cost_balance(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(VacuumCostBalance);
}

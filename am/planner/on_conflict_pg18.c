/*
 * on_conflict_pg18.c
 *		INSERT ... ON CONFLICT into tables with unique sherman indexes, from PostgreSQL 18 on: core finds the operators of such an index by
 *		amtranslatecmptype (routine_pg18.c), so that no hook is needed, neither for a table nor for partitions.
 */
#include "am/base/sherman.h"

#include "am/planner/planner.h"

void
sherman_on_conflict_install(void)
{
}

/*
 * apply_pg18.c
 *		Apply workers of logical replication, from PostgreSQL 18 on: they find rows by any unique index, and nothing is to be said.
 */
#include "am/base/sherman.h"

#include "am/server/server.h"

void
sherman_apply_install(void)
{
}

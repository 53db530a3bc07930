/*
 * apply_pg15.c
 *		Apply workers of logical replication, up to PostgreSQL 16: they find rows by any unique index, and nothing is to be said.
 */
#include "am/base/sherman.h"

#include "am/server/server.h"

void
sherman_apply_install(void)
{
}

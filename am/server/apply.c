/*
 * apply.c
 *		Apply workers of logical replication in PostgreSQL 17: they find rows by btree and hash indexes alone, and fail with an internal error
 *		where a table's replica identity is another one.  The server's log says what to do about it.
 */
#include "am/base/sherman.h"

#include "replication/logicalworker.h"

#include "am/base/compat.h"
#include "am/server/server.h"

/* The function of core that raises the error. */
#define REFUSING_FUNCTION "build_replindex_scan_key"

static emit_log_hook_type previous_log = NULL;

static void
log_message(ErrorData *error)
{
	if (error->elevel == ERROR && error->sqlerrcode == ERRCODE_INTERNAL_ERROR && error->hint == NULL && IsLogicalWorker() &&
		error->funcname != NULL && strcmp(error->funcname, REFUSING_FUNCTION) == 0)
		error->hint = MemoryContextStrdup(error->assoc_context,
										  "In PostgreSQL 17 a subscriber finds rows by btree indexes, not by those of access method \"sherman\": "
										  "give the table a unique btree index, and make it the REPLICA IDENTITY.");
	if (previous_log != NULL)
		previous_log(error);
}

void
sherman_apply_install(void)
{
	if (!compat_apply_wants_btree())
		return;
	previous_log = emit_log_hook;
	emit_log_hook = log_message;
}

/*
 * errors.c
 *		From a status of the tree to an error of PostgreSQL: the one place that does it.
 */
#include "sherman.h"

#include "miscadmin.h"
#include "utils/builtins.h"

typedef struct StatusReport
{
	TreeStatus	status;
	int			code;			/* SQLSTATE */
	const char *message;		/* %s: the index */
	const char *hint;			/* %s: the index; or NULL */
} StatusReport;

static const char reindex_hint[] = "Rebuild the index with REINDEX INDEX %s.";

static const StatusReport status_reports[] =
{
	{TREE_OK, ERRCODE_SUCCESSFUL_COMPLETION, "no error in %s", NULL},
	{TREE_END, ERRCODE_INTERNAL_ERROR, "unexpected end of %s", NULL},
	{TREE_STOPPED, ERRCODE_QUERY_CANCELED, "canceling access to %s due to user request", NULL},
	{TREE_MEMORY_FULL, ERRCODE_OUT_OF_MEMORY, "memory node is full: cannot extend %s",
	"Drop indexes that are not needed, or raise \"sherman.embedded_memory\" and rebuild all of them."},
	{TREE_NO_MEMORY, ERRCODE_OUT_OF_MEMORY, "out of memory while using %s",
	"If more indexes are in use at once than \"sherman.max_indexes\", raise that setting."},
	{TREE_UNREACHABLE, ERRCODE_CONNECTION_FAILURE, "memory node of %s does not answer",
	"See the server's log and the view \"sherman_memory_nodes\"."},
	{TREE_FENCED, ERRCODE_CONNECTION_FAILURE, "memory node of %s belongs to another server by now",
	"Another PostgreSQL instance has taken over the memory node."},
	{TREE_DAMAGED, ERRCODE_INDEX_CORRUPTED, "%s is damaged", reindex_hint},
	{TREE_NOT_FOUND, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "memory node does not know the tree of %s",
	reindex_hint},
	{TREE_TIMED_OUT, ERRCODE_LOCK_NOT_AVAILABLE, "could not lock a node of %s in time",
	"See \"sherman.operation_timeout\"."},
	{TREE_INVALID, ERRCODE_INTERNAL_ERROR, "invalid call to the tree of %s", NULL},
};

/* In place of TREE_MEMORY_FULL's where there is room, but not for us. */
static const StatusReport quota_report =
{
	TREE_MEMORY_FULL, ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, "quota at the memory node is used up: cannot extend %s",
	"Drop indexes that are not needed, or have the memory node's \"tenant-quota\" raised."
};

static const StatusReport *
find_report(TreeStatus status)
{
	TreeClient *client = status == TREE_MEMORY_FULL ? sherman_client_if_ready() : NULL;

	if (client != NULL && tree_full_by_quota(client))
		return &quota_report;
	for (size_t i = 0; i < lengthof(status_reports); i++)
	{
		if (status_reports[i].status == status)
			return &status_reports[i];
	}
	return NULL;
}

/*
 * Reports a status of the tree at elevel.  `detail` is one line for the reader (tree_detail(), or NULL),
 * `index` the index in use, or NULL.  Does not return if elevel >= ERROR.  A status that follows from a
 * cancel or a termination is reported as what it is.  No node may be locked and no chain in doubt.
 */
void
sherman_report(int elevel, TreeStatus status, const char *detail, Relation index)
{
	const StatusReport *report = find_report(status);
	char	   *subject;
	char	   *name;

	if (status == TREE_STOPPED && elevel >= ERROR)
		CHECK_FOR_INTERRUPTS();
	/* Before the error is raised: a write that is in doubt must not land while others go on. */
	if (status == TREE_UNREACHABLE || status == TREE_FENCED)
		sherman_connection_trouble();
	name = index != NULL ? pstrdup(RelationGetRelationName(index)) : NULL;
	subject = name != NULL ? psprintf("index \"%s\"", name) : pstrdup("a sherman index");
	if (report == NULL)
		ereport(elevel,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("unexpected status %d of %s", (int) status, subject)));
	else
		ereport(elevel,
				(errcode(report->code),
				 errmsg(report->message, subject),
				 detail != NULL && detail[0] != '\0' ? errdetail_internal("%s", detail) : 0,
				 report->hint == NULL || (report->hint == reindex_hint && name == NULL) ? 0 :
				 report->hint == reindex_hint ? errhint(reindex_hint, quote_identifier(name)) :
				 errhint("%s", report->hint),
				 index != NULL ? errtable(index) : 0));
	pfree(subject);
	if (name != NULL)
		pfree(name);
}

/*
 * Raises the error that stands for the status of a call of the tree by this process's client.
 */
void
sherman_report_failure(TreeStatus status, Relation index)
{
	TreeClient *client = sherman_client_if_ready();
	const char *detail = client != NULL ? tree_detail(client) : NULL;

	sherman_report(ERROR, status, detail, index);
	pg_unreachable();
}

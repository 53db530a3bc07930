/*
 * errors.c
 *		From a status of the tree to an error of PostgreSQL: the one place that does it.
 */
#include "am/base/sherman.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lwlock.h"
#include "storage/pmsignal.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/resowner.h"

#include "am/base/shared.h"
#include "am/nodes/nodes.h"

typedef struct StatusReport
{
	TreeStatus	status;
	int			code;			/* SQLSTATE */
	const char *message;		/* %s: the index */
	const char *hint;			/* %s: the index; or NULL */
} StatusReport;

typedef struct AwayReport
{
	FabricStatus status;
	int			code;
	const char *hint;
} AwayReport;

static const char full_of_clients_hint[] =
"The memory node serves as many clients as it can, or as many of standbys: raise its \"channels\"; its log says more.";
static const char look_hint[] = "See the server's log and the view \"sherman_stat_memory_nodes\".";

/* What an attempt to attach can end with, where there is more to say than that. */
static const AwayReport away_reports[] =
{
	{FABRIC_DENIED, ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION,
	"Over the network \"sherman.key_file\" must hold a key that the memory node knows, or be empty if it has "
	"none, and where it serves verbs memory must be left for its tenant; over a socket the memory node must run "
	"as this user, or serve others."},
	{FABRIC_PROTOCOL, ERRCODE_PROTOCOL_VIOLATION, "Server and memory node must be of the same version."},
	{FABRIC_NOT_SUPPORTED, ERRCODE_FEATURE_NOT_SUPPORTED,
	"The library has no such transport, or the memory node does not offer it."},
	{FABRIC_NO_MEMORY, ERRCODE_TOO_MANY_CONNECTIONS, full_of_clients_hint},
	{FABRIC_DRAINING, ERRCODE_CONNECTION_FAILURE, "The memory node is shutting down."},
};

/* The end of a hint: what else makes room, and the statement that shows where. */
#define LARGEST_INDEXES \
"for a copy of the index, TRUNCATE does not): SELECT indexrelid::regclass, total_bytes FROM sherman_stat_indexes ORDER BY 2 DESC NULLS LAST LIMIT 10 " \
"shows the largest."

static const char full_hint[] =
"Add a memory node to \"sherman.memory_nodes\", or raise the memory node's \"size\", or drop what is not needed (REINDEX needs room "
LARGEST_INDEXES;
static const char reindex_hint[] = "Rebuild the index with REINDEX INDEX %s.";

static const StatusReport status_reports[] =
{
	{TREE_OK, ERRCODE_SUCCESSFUL_COMPLETION, "no error in %s", NULL},
	{TREE_END, ERRCODE_INTERNAL_ERROR, "unexpected end of %s", NULL},
	{TREE_STOPPED, ERRCODE_QUERY_CANCELED, "canceling access to %s due to user request", NULL},
	{TREE_MEMORY_FULL, ERRCODE_OUT_OF_MEMORY, "memory node is full: cannot extend %s",
	full_hint},
	{TREE_NO_MEMORY, ERRCODE_OUT_OF_MEMORY, "out of memory while using %s", NULL},
	{TREE_UNREACHABLE, ERRCODE_CONNECTION_FAILURE, "memory node of %s does not answer",
	look_hint},
	{TREE_FENCED, ERRCODE_CONNECTION_FAILURE, "memory node of %s was attached anew, or by another server",
	"Try again. " "If it does not help, see the server's log and the view \"sherman_stat_memory_nodes\"."},
	{TREE_DAMAGED, ERRCODE_INDEX_CORRUPTED, "%s is damaged", reindex_hint},
	{TREE_NOT_FOUND, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "memory node does not know the tree of %s",
	reindex_hint},
	{TREE_TIMED_OUT, ERRCODE_LOCK_NOT_AVAILABLE, "could not lock a node of %s in time",
	"See \"sherman.operation_timeout\"."},
	{TREE_INVALID, ERRCODE_INTERNAL_ERROR, "invalid call to the tree of %s", NULL},
};

/* In place of TREE_TIMED_OUT's of a standby's session, which cannot lock what it reads. */
static const StatusReport torn_report =
{
	TREE_TIMED_OUT, ERRCODE_T_R_SERIALIZATION_FAILURE, "could not read a node of %s whole in time",
	"Run the transaction again. If that does not help have the primary read all of the index: sherman_check() does."
};

/* In place of TREE_MEMORY_FULL's where there is room, but not for us. */
static const StatusReport quota_report =
{
	TREE_MEMORY_FULL, ERRCODE_OUT_OF_MEMORY, "quota at the memory node is used up: cannot extend %s",
	"Drop indexes that are not needed, or have the memory node's \"tenant-quota\" raised."
};

/* Or where the machine has no more of it than that. */
static const StatusReport host_report =
{
	TREE_MEMORY_FULL, ERRCODE_DISK_FULL, "file system of the memory node's memory is full: cannot extend %s",
	"Make room there, or mount it with a larger size: no setting of the memory node helps. Where memory was set aside, "
	"sherman_files() shows it."
};

/* And where there is memory, but the number of trees is bounded. */
static const StatusReport trees_report =
{
	TREE_MEMORY_FULL, ERRCODE_PROGRAM_LIMIT_EXCEEDED, "memory node holds as many indexes as it may: cannot extend %s",
	"Drop indexes that are not needed, raise \"trees\" of the memory node, or add one to \"sherman.memory_nodes\"."
};

/*
 * What to do about a memory node that is full.
 */
static const char *
what_if_full(void)
{
	if (sherman_shared != NULL && sherman_shared->embedded)
		return "Raise \"sherman.embedded_memory\" and restart the server (indexes keep their content), or drop what is not needed "
			"(REINDEX needs room " LARGEST_INDEXES;
	return full_hint;
}

/*
 * The memory nodes that a failed call used; with their addresses, for readers who do not know them by number.
 */
static char *
name_nodes(uint32 positions, bool addresses)
{
	StringInfoData text;

	initStringInfo(&text);
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		if ((positions & 1u << i) == 0)
			continue;
		if (text.len > 0)
			appendStringInfoChar(&text, ' ');
		/* The address of one that was taken over is not known before it is attached. */
		if (!addresses || sherman_shared->node[i].address[0] == '\0')
		{
			appendStringInfo(&text, "It is about memory node %d.", i);
			continue;
		}
		LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
		appendStringInfo(&text, "Memory node %d is \"%s\".", i, sherman_shared->node[i].address);
		LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	}
	return text.data;
}

/*
 * May the reader of this session's messages see what the view "sherman_stat_memory_nodes" shows: addresses, and names of
 * files? The session's user decides, not the owner of the function that runs. Outside of a transaction no rights are
 * known.
 */
static bool
reader_sees_addresses(void)
{
	return IsTransactionState() && has_privs_of_role(GetSessionUserId(), ROLE_PG_READ_ALL_STATS);
}

/*
 * The DETAIL of an error that names memory nodes: `text` for the log and for readers who may see it, `plain` for the others.
 * Either may be empty.  Within ereport().
 */
static int
detail_by_reader(bool sees, const char *text, const char *plain)
{
	if (!sees && text[0] != '\0')
		errdetail_log("%s", text);
	if (sees)
		plain = text;
	return plain[0] != '\0' ? errdetail_internal("%s", plain) : 0;
}

static const StatusReport *
find_report(TreeStatus status)
{
	TreeClient *client = status == TREE_MEMORY_FULL ? sherman_client_if_ready() : NULL;

	if (status == TREE_TIMED_OUT && sherman_connection_is_reader())
		return &torn_report;
	if (client != NULL && tree_full_by(client) == TREE_FULL_QUOTA)
		return &quota_report;
	if (client != NULL && tree_full_by(client) == TREE_FULL_HOST)
		return &host_report;
	if (client != NULL && tree_full_by(client) == TREE_FULL_TREES)
		return &trees_report;
	for (size_t i = 0; i < lengthof(status_reports); i++)
	{
		if (status_reports[i].status == status)
			return &status_reports[i];
	}
	return NULL;
}

/* The function that errors for a full memory node call for a sentence about what uses the memory; NULL: none. */
static char *(*describe_full) (void) = NULL;

void
sherman_report_full_with(char *(*describe) (void))
{
	describe_full = describe;
}

/*
 * Whether an error is for a memory node without room, or for a tenant's part of it, and may be made with a look at
 * the catalog and calls to memory nodes. A process that holds an LWLock holds interrupts, too.
 */
static bool
full_is_described(int elevel, const StatusReport *report)
{
	return elevel >= ERROR && report != NULL && report->status == TREE_MEMORY_FULL && report != &host_report &&
		report != &trees_report && describe_full != NULL && IsTransactionState() && !IsParallelWorker() &&
		InterruptHoldoffCount == 0 && CritSectionCount == 0;
}

/*
 * A sentence about what uses the memory, or "". It raises nothing: an error in it is dropped, and cleaned up by the
 * abort that follows, for the caller raises an error anyway; but LWLocks are released at once, as other processes may
 * wait for them.
 */
static const char *
describe_safely(void)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	char	   *volatile text = NULL;
	ErrorData  *dropped;

	PG_TRY();
	{
		text = describe_full();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
		LWLockReleaseAll();
		UnlockBuffers();
		dropped = CopyErrorData();
		FlushErrorState();
		elog(DEBUG1, "sherman: could not find the largest indexes: %s", dropped->message);
	}
	PG_END_TRY();
	return text != NULL ? text : "";
}

/*
 * Raises what had an operation of the tree stop: a cancel, a termination, or the postmaster's end, in the words of secure_read()
 * (src/backend/libpq/be-secure.c). Returns if it was the end of one of our own workers.
 */
static void
report_interrupt(void)
{
	CHECK_FOR_INTERRUPTS();
	if (!PostmasterIsAlive())
		ereport(FATAL,
				(errcode(ERRCODE_ADMIN_SHUTDOWN),
				 errmsg("terminating connection due to unexpected postmaster exit")));
}

/*
 * Whether a memory node has refused to let this session in, for it has no room for one more.
 */
static bool
refused_for_room(void)
{
	FabricStatus status;

	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		if (sherman_connection_failure(i, &status)[0] != '\0' && status == FABRIC_NO_MEMORY)
			return true;
	}
	return false;
}

/*
 * Reports a status of the tree at elevel. `detail` is one line for the reader (tree_detail(), or NULL), `index` the
 * index in use, or NULL. Does not return if elevel >= ERROR. A status that follows from a cancel, a termination or the
 * postmaster's end is reported as what it is. No node may be locked and no chain indeterminate.
 */
void
sherman_report(int elevel, TreeStatus status, const char *detail, Relation index)
{
	const StatusReport *report = find_report(status);
	const char *hint;
	char	   *subject;
	char	   *name;
	const char *text;
	const char *plain;
	bool		sees = true;
	uint32		trouble;

	if (status == TREE_STOPPED && elevel >= ERROR)
		report_interrupt();
	/* Before the error is raised: an indeterminate WRITE must not take effect while other processes go on. */
	trouble = sherman_connection_trouble();
	/* A memory node that was about to be connected to does not answer where nobody waits for it any more. */
	if (status == TREE_UNREACHABLE && elevel >= ERROR)
		report_interrupt();
	plain = text = detail != NULL && detail[0] != '\0' ? psprintf("%s.", detail) : "";
	if (full_is_described(elevel, report))
	{
		const char *full = describe_safely();

		plain = text = psprintf("%s%s%s", text, text[0] != '\0' && full[0] != '\0' ? " " : "", full);
	}
	/* What the fabric says of a connection may name an address or a file. */
	if (status == TREE_UNREACHABLE || status == TREE_FENCED)
	{
		text = psprintf("%s%s%s", text, text[0] != '\0' && trouble != 0 ? " " : "", name_nodes(trouble, true));
		plain = name_nodes(trouble, false);
		sees = reader_sees_addresses();
	}
	hint = report == NULL ? NULL : report->hint == full_hint ? what_if_full() : report->hint;
	if (status == TREE_UNREACHABLE && refused_for_room())
		hint = full_of_clients_hint;
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
				 detail_by_reader(sees, text, plain),
				 hint == NULL || (hint == reindex_hint && name == NULL) ? 0 :
				 hint == reindex_hint ? errhint(reindex_hint, quote_identifier(name)) :
				 errhint("%s", hint),
				 index != NULL ? errtable(index) : 0));
	pfree(subject);
	if (name != NULL)
		pfree(name);
}

const char	sherman_unfollowed_text[] = "this server was promoted, and waits for a synchronous standby that follows it";

int
sherman_hint_unfollowed(void)
{
	return errhint("To go on without a standby: ALTER SYSTEM SET synchronous_standby_names = ''; SELECT pg_reload_conf();");
}

char *
sherman_away_text(int position)
{
	ShermanListedNode listed = {.status = FABRIC_OK};
	bool		sees = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
	char	   *named;
	char	   *failure;

	if (sherman_shared->listed_count == 0)
		return pstrdup("\"sherman.memory_nodes\" is empty, and there is no embedded memory node");
	if (position < 0)
		sherman_first_failure(&listed);
	else if (!sherman_node_looked_for(position, &listed))
	{
		LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
		named = sees ? psprintf(" (\"%s\")", sherman_shared->node[position].address) : pstrdup("");
		LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
		return psprintf("memory node %d%s is not in \"sherman.memory_nodes\"", position, named);
	}
	else if (listed.failure[0] == '\0')
		strlcpy(listed.failure, sherman_connection_failure(position, &listed.status), sizeof(listed.failure));
	failure = sees && listed.failure[0] != '\0' ? psprintf(": %s", listed.failure) : "";
	named = sees ? psprintf(" (\"%s\")", listed.address) : "";
	if (position < 0)
		return psprintf("no memory node is attached%s", failure);
	if (sherman_node_phase(position) == SHERMAN_PHASE_ATTACHED)
		return psprintf("memory node %d%s does not let this session in%s", position, named, failure);
	return psprintf("memory node %d%s is not attached%s", position, named, failure);
}

void
sherman_report_away(int elevel, const char *subject, int position)
{
	ShermanListedNode listed = {.status = FABRIC_OK};
	const char *named = "";
	const char *plain;
	const char *text;
	bool		sees = reader_sees_addresses();
	bool		wanted = sherman_shared->listed_count > 0;
	int			code = ERRCODE_CONNECTION_FAILURE;
	const char *hint = look_hint;

	if (sherman_promotion_waits())
	{
		ereport(elevel,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("%s: this server was promoted, and no synchronous standby follows it yet", subject),
				 sherman_hint_unfollowed()));
		return;
	}
	if (position >= 0)
	{
		wanted = sherman_node_looked_for(position, &listed);
		named = name_nodes(1u << position, true);
	}
	else
		sherman_first_failure(&listed);
	if (position >= 0 && listed.failure[0] == '\0')
		strlcpy(listed.failure, sherman_connection_failure(position, &listed.status), sizeof(listed.failure));
	for (size_t i = 0; i < lengthof(away_reports); i++)
	{
		if (away_reports[i].status == listed.status)
		{
			code = away_reports[i].code;
			hint = away_reports[i].hint;
		}
	}
	plain = wanted ? "" : position >= 0 ? "It is not in \"sherman.memory_nodes\"." :
		"\"sherman.memory_nodes\" is empty, and there is no embedded memory node.";
	text = listed.failure[0] != '\0' ? psprintf("%s.", listed.failure) : plain;
	ereport(elevel,
			(errcode(code),
			 position >= 0 ? errmsg("%s: memory node %d is not attached", subject, position) :
			 errmsg("%s: no memory node is attached", subject),
			 detail_by_reader(sees, psprintf("%s%s%s", named, named[0] != '\0' ? " " : "", text), plain),
			 errhint("%s", hint)));
}

/*
 * Raises the error for the status of a call of the tree by this process's client.
 */
void
sherman_report_failure(TreeStatus status, Relation index)
{
	TreeClient *client = sherman_connection_client();

	sherman_report(ERROR, status, client != NULL ? tree_detail(client) : NULL, index);
	pg_unreachable();
}

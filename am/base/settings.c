/*
 * settings.c
 *		The settings sherman.*: definitions and defaults.
 */
#include "am/base/sherman.h"

#include "access/rmgr.h"
#include "miscadmin.h"
#include "utils/guc.h"

#include "am/base/compat.h"
#include "am/base/shared.h"

/* Node memory of the embedded node: what a small application's indexes need; only what is used is taken. */
#define DEFAULT_EMBEDDED_MEMORY_MB 1024
/* Across the network 96 MB of them are leaves; the rest has the inner nodes of 50 million entries' trees. */
#define DEFAULT_CACHE_MB 128
#define DEFAULT_ATTACH_TIMEOUT_MS 10000
#define DEFAULT_OPERATION_TIMEOUT_MS 10000
#define DEFAULT_COLLECT_INTERVAL_S 60
/* A memory node's machine has been restarted by then. */
#define DEFAULT_GONE_AFTER_S 300
/* A daemon has been restarted by then, and a statement that waits has not failed (sherman.attach_timeout). */
#define DEFAULT_FAILOVER_AFTER_MS 5000
/* Indexes that small applications have are healed by then. */
#define DEFAULT_HEAL_TIMEOUT_MS 10000
#define DEFAULT_REBUILD_TRIES 3
/* As autovacuum's. */
#define DEFAULT_REBUILD_COST_DELAY_MS 2.0

int			sherman_embedded_memory_mb = DEFAULT_EMBEDDED_MEMORY_MB;
char	   *sherman_embedded_directory = NULL;
bool		sherman_embedded_snapshot = true;
int			sherman_cache_mb = DEFAULT_CACHE_MB;
int			sherman_connection_workers = 0;
int			sherman_attach_timeout_ms = DEFAULT_ATTACH_TIMEOUT_MS;
int			sherman_operation_timeout_ms = DEFAULT_OPERATION_TIMEOUT_MS;
int			sherman_collect_interval_s = DEFAULT_COLLECT_INTERVAL_S;
bool		sherman_auto_rebuild = true;
bool		sherman_enable_lookahead = true;
double		sherman_round_trip_cost = -1;
int			sherman_rebuild_tries = DEFAULT_REBUILD_TRIES;
double		sherman_rebuild_cost_delay_ms = DEFAULT_REBUILD_COST_DELAY_MS;
bool		sherman_heal = true;
bool		sherman_autoheal = true;
int			sherman_heal_timeout_ms = DEFAULT_HEAL_TIMEOUT_MS;
int			sherman_resource_manager_id = 0;
bool		sherman_constraints = false;
char	   *sherman_memory_node_list = NULL;
char	   *sherman_key_file = NULL;
int			sherman_on_unavailable = SHERMAN_UNAVAILABLE_ERROR;
int			sherman_gone_after_s = DEFAULT_GONE_AFTER_S;
int			sherman_failover_after_ms = DEFAULT_FAILOVER_AFTER_MS;
int			sherman_take_over_mode = SHERMAN_TAKE_OVER_MANUAL;
bool		sherman_standby_reads = true;

static const struct config_enum_entry on_unavailable_names[] = {
	{"error", SHERMAN_UNAVAILABLE_ERROR, false},
	{"break", SHERMAN_UNAVAILABLE_BREAK, false},
	{NULL, 0, false}
};

static const struct config_enum_entry take_over_names[] = {
	{"manual", SHERMAN_TAKE_OVER_MANUAL, false},
	{"auto", SHERMAN_TAKE_OVER_AUTO, false},
	{NULL, 0, false}
};

/*
 * The directory becomes part of a path that is stored with a fixed length.
 */
static bool
check_directory(char **value, void **extra, GucSource source)
{
	if (!is_absolute_path(*value))
	{
		GUC_check_errdetail("The directory must be an absolute path.");
		return false;
	}
	if (strlen(*value) > MAXPGPATH / 2)
	{
		GUC_check_errdetail("The path is too long.");
		return false;
	}
	canonicalize_path(*value);
	return true;
}

static bool
check_key_file(char **value, void **extra, GucSource source)
{
	if (*value == NULL || strlen(*value) < MAXPGPATH)
		return true;
	GUC_check_errdetail("The path is too long.");
	return false;
}

static bool
check_resource_manager_id(int *value, void **extra, GucSource source)
{
	if (*value == 0 || RmgrIdIsCustom(*value))
		return true;
	GUC_check_errdetail("It is 0, or from %d to %d.", RM_MIN_CUSTOM_ID, RM_MAX_CUSTOM_ID);
	return false;
}

bool
sherman_list_awaits_restart(const char *list)
{
	const char *problem;
	bool		named = list != NULL && sherman_parse_nodes(list, NULL, &problem) > 0;

	if (sherman_shared == NULL)
		return false;
	/* The embedded node is started with the server, and ends with it. */
	return sherman_shared->embedded ? named : !named && sherman_embedded_memory_mb > 0;
}

/*
 * pg_settings shows whether it takes a restart.
 */
static void
assign_memory_nodes(const char *value, void *extra)
{
	compat_set_pending_restart("sherman.memory_nodes", sherman_list_awaits_restart(value));
}

static bool
check_memory_nodes(char **value, void **extra, GucSource source)
{
	const char *problem;

	if (*value == NULL || sherman_parse_nodes(*value, NULL, &problem) >= 0)
		return true;
	GUC_check_errdetail("%s", problem);
	return false;
}

/*
 * What shared memory, the memory node and background workers are made with: only before the server starts.
 */
static void
define_at_start(void)
{
	DefineCustomIntVariable("sherman.embedded_memory",
							"Node memory of the embedded memory node, 0 for none.",
							"Memory is taken as it is used. Another value counts from the next start on; indexes keep "
							"their content.",
							&sherman_embedded_memory_mb, DEFAULT_EMBEDDED_MEMORY_MB, 0, 2 * 1024 * 1024,
							PGC_POSTMASTER, GUC_UNIT_MB, NULL, NULL, NULL);
	DefineCustomStringVariable("sherman.embedded_directory",
							   "Directory that holds the embedded node's memory, on tmpfs.",
							   NULL,
							   &sherman_embedded_directory, "/dev/shm",
							   PGC_POSTMASTER, GUC_SUPERUSER_ONLY, check_directory, NULL, NULL);
	DefineCustomIntVariable("sherman.cache_size",
							"Shared memory for the cache of index nodes.",
							"Inner nodes; of memory nodes across the network leaves, too, which have three quarters of it.",
							&sherman_cache_mb, DEFAULT_CACHE_MB, 1, 1024 * 1024,
							PGC_POSTMASTER, GUC_UNIT_MB, NULL, NULL, NULL);
	DefineCustomIntVariable("sherman.resource_manager_id",
							"Number that recovery knows sherman by, of those for extensions' resource managers.",
							"0 takes the last one that is free. Sherman writes no WAL records: it may be another one at each start. "
							"To be set where a library that is loaded later needs that number.",
							&sherman_resource_manager_id, 0, 0, RM_MAX_CUSTOM_ID,
							PGC_POSTMASTER, 0, check_resource_manager_id, NULL, NULL);
	DefineCustomIntVariable("sherman.connection_workers",
							"Background workers that hold the connections to memory nodes for all sessions.",
							"0 has each session connect for itself.",
							&sherman_connection_workers, 0, 0, FABRIC_PROXY_MAX_WORKERS,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("sherman.standby_reads",
							 "Whether a hot standby uses the indexes of its primary.",
							 "It reads them in the memory nodes of \"sherman.memory_nodes\", by tcp. Off hides them.",
							 &sherman_standby_reads, true,
							 PGC_POSTMASTER, 0, NULL, NULL, NULL);
}

static void
define_rebuilding(void)
{
	DefineCustomBoolVariable("sherman.auto_rebuild",
							 "Rebuilds broken indexes by itself.",
							 "Concurrently, one after the other, by a background worker, on the memory nodes that are "
							 "attached.",
							 &sherman_auto_rebuild, true,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("sherman.rebuild_tries",
							"How often the same index is tried to be rebuilt.",
							"Counted anew when it was rebuilt by REINDEX, or a memory node has come.",
							&sherman_rebuild_tries, DEFAULT_REBUILD_TRIES, 1, 1000,
							PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomRealVariable("sherman.rebuild_cost_delay",
							 "How long such a rebuild sleeps each time that it has used up vacuum_cost_limit.",
							 "0 is not at all.",
							 &sherman_rebuild_cost_delay_ms, DEFAULT_REBUILD_COST_DELAY_MS, 0, 100,
							 PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
}

void
sherman_define_settings(void)
{
	/* They are of use, and changeable, only where shared memory is made. */
	if (process_shared_preload_libraries_in_progress)
		define_at_start();
	DefineCustomStringVariable("sherman.memory_nodes",
							   "Memory nodes to use instead of the embedded one: \"host:port, verbs:host:port, shm:/path\".",
							   "More can be added while the server runs. One that is taken away makes the indexes "
							   "in its memory unreachable until it is back, or forgotten. From and to the embedded one takes a restart.",
							   &sherman_memory_node_list, "",
							   PGC_SIGHUP, GUC_SUPERUSER_ONLY, check_memory_nodes, assign_memory_nodes, NULL);
	DefineCustomStringVariable("sherman.key_file",
							   "File with this server's key for memory nodes across the network.",
							   "A line \"tenant key\", as the memory node has it; readable by nobody else. It is read at "
							   "each connect.",
							   &sherman_key_file, "",
							   PGC_SIGHUP, GUC_SUPERUSER_ONLY, check_key_file, NULL, NULL);
	DefineCustomBoolVariable("sherman.embedded_snapshot",
							 "Saves the embedded node's memory when the server is shut down.",
							 "To a file in the data directory, from which it is loaded at the next start if the machine was "
							 "restarted.",
							 &sherman_embedded_snapshot, true,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("sherman.attach_timeout",
							"How long commands wait at the server's start for the memory nodes.",
							NULL,
							&sherman_attach_timeout_ms, DEFAULT_ATTACH_TIMEOUT_MS, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("sherman.operation_timeout",
							"How long one operation on an index waits for a memory node that does not answer, or for a lock there.",
							"All attempts and new connections of it together.",
							&sherman_operation_timeout_ms, DEFAULT_OPERATION_TIMEOUT_MS, 100, 3600 * 1000,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("sherman.collect_interval",
							"How often memory of dropped indexes is looked for again.",
							NULL,
							&sherman_collect_interval_s, DEFAULT_COLLECT_INTERVAL_S, 1, 24 * 3600,
							PGC_SIGHUP, GUC_UNIT_S, NULL, NULL, NULL);
	DefineCustomEnumVariable("sherman.on_unavailable",
							 "What a change does to an index while the memory node is away.",
							 "\"error\" refuses the change, \"break\" breaks an index without a constraint.",
							 &sherman_on_unavailable, SHERMAN_UNAVAILABLE_ERROR, on_unavailable_names,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("sherman.gone_after",
							"How long a memory node may be away before its indexes count as broken.",
							"It counts while another memory node is attached. -1 is for ever. Indexes that nothing was "
							"skipped in, and that were not rebuilt, are good again when it is back.",
							&sherman_gone_after_s, DEFAULT_GONE_AFTER_S, -1, 30 * 24 * 3600,
							PGC_SIGHUP, GUC_UNIT_S, NULL, NULL, NULL);
	DefineCustomIntVariable("sherman.failover_after",
							"How long a memory node may be away before an index with a copy goes on without it.",
							"A session that changes such an index, or reads it if its home is away, waits so long, at most "
							"\"sherman.attach_timeout\". What goes on has one copy until it is rebuilt.",
							&sherman_failover_after_ms, DEFAULT_FAILOVER_AFTER_MS, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomEnumVariable("sherman.take_over",
							 "Whether a standby that is promoted takes over the indexes of its primary by itself.",
							 "\"auto\" does, and so shuts the old primary out of the memory nodes. With \"manual\" "
							 "sherman_take_over() has to be called before.",
							 &sherman_take_over_mode, SHERMAN_TAKE_OVER_MANUAL, take_over_names,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("sherman.heal",
							 "Heals indexes that were changed before the server ended unclean.",
							 "Off breaks them: they must be rebuilt. It counts when a memory node is attached.",
							 &sherman_heal, true,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("sherman.autoheal",
							 "Sends workers to indexes that a crash has left unverified.",
							 "They look the entries up and end the doubt, held back as autovacuum is. Answers are right "
							 "without them.",
							 &sherman_autoheal, true,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("sherman.heal_timeout",
							"How long a session waits for the healer at an unverified entry that it may not look up itself.",
							"Such are the entries of indexes over functions of the table's owner. 0 is not at all.",
							&sherman_heal_timeout_ms, DEFAULT_HEAL_TIMEOUT_MS, 0, INT_MAX,
							PGC_USERSET, GUC_UNIT_MS, NULL, NULL, NULL);
	define_rebuilding();
	DefineCustomBoolVariable("sherman.constraints",
							 "Gives PRIMARY KEY and UNIQUE constraints sherman indexes.",
							 "Of tables made or changed while it is on; not of partitioned tables and "
							 "partitions.",
							 &sherman_constraints, false,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("sherman.enable_lookahead",
							 "Has nested loops read outer rows ahead, and fetch what the inner index scan wants for them together.",
							 "Of memory nodes across a network; with the embedded one nothing is waited for.",
							 &sherman_enable_lookahead, true,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	DefineCustomRealVariable("sherman.round_trip_cost",
							 "Sets the planner's estimate of the cost of a round trip to a memory node.",
							 "-1 derives it from the time of a round trip, which is measured when a memory node is attached.",
							 &sherman_round_trip_cost, -1, -1, 1000000,
							 PGC_USERSET, GUC_EXPLAIN, NULL, NULL, NULL);
	sherman_define_crash_points();
	/* Without preload the sizes stay placeholders: they are set in postgresql.conf, and no error then. */
	if (process_shared_preload_libraries_in_progress)
		MarkGUCPrefixReserved("sherman");
}

/* sherman--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION sherman" to load this file. \quit

------------------------------------------------------------------------------
-- The access method and its operator classes
------------------------------------------------------------------------------

CREATE FUNCTION shermanhandler(internal)
RETURNS index_am_handler
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT;

CREATE ACCESS METHOD sherman TYPE INDEX HANDLER shermanhandler;

COMMENT ON FUNCTION shermanhandler(internal) IS 'sherman index access method handler';

COMMENT ON ACCESS METHOD sherman IS 'ordered index in the memory of memory nodes';

-- Gives sherman the operator classes of one btree operator family, member by member, with the same strategy and support
-- numbers, in pg_catalog: what is there already is left alone.  Families that are made or changed later, by CREATE EXTENSION
-- for instance, are mirrored as they are made, where the library is preloaded; so this is for those that it did not see.
-- Only superusers may make operator classes.
CREATE FUNCTION sherman_mirror_opfamily(family_schema name, family_name name)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION sherman_mirror_opfamily(name, name) IS
	'gives sherman the operator classes of a btree operator family';

-- The same for all families.
CREATE FUNCTION sherman_mirror_opfamilies()
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION sherman_mirror_opfamilies() IS
	'gives sherman the operator classes of all btree operator families';

SELECT @extschema@.sherman_mirror_opfamilies();

------------------------------------------------------------------------------
-- Verification
------------------------------------------------------------------------------

-- Verifies an index, and with heapallindexed that each row of its table has exactly one entry, in the manner of amcheck:
-- warns of each problem and returns their number.  For the index's owner.
CREATE FUNCTION sherman_check(index regclass, heapallindexed boolean DEFAULT false)
RETURNS bigint
AS 'MODULE_PATHNAME', 'sherman_check'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION sherman_check(regclass, boolean) IS
	'verifies a sherman index: number of problems found';

-- Ends the doubt that a crash has left in an index (sherman_indexes.state is "healing"): looks its entries up in the
-- table.  Returns the number of leaves that are left, for others were changing them, or their rows raised errors.  A
-- background worker does the same by itself where sherman.autoheal is on.  For the index's owner.
CREATE FUNCTION sherman_heal(index regclass)
RETURNS bigint
AS 'MODULE_PATHNAME', 'sherman_heal_index'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION sherman_heal(regclass) IS
	'ends the doubt that a crash has left in a sherman index: number of leaves left';

-- Of an index with replicas = 1: compares each node with its copy, and writes anew the copies that differ; returns their
-- number.  Ends the doubt of a crash, too.
CREATE FUNCTION sherman_resync(index regclass)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION sherman_resync(regclass) IS
	'compares a sherman index with its copy, and repairs that: number of nodes written anew';

REVOKE ALL ON FUNCTION sherman_resync(regclass) FROM PUBLIC;

------------------------------------------------------------------------------
-- Looking inside
------------------------------------------------------------------------------

CREATE FUNCTION sherman_version()
RETURNS text
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION sherman_version() IS 'version of the library that the server has loaded';

-- Memory nodes of this server: where they are, whether they are attached and if not why, how full they are (bytes).  The
-- position is the memory node's number in sherman_indexes.
CREATE FUNCTION sherman_memory_nodes(
	OUT "position" integer,
	OUT address text,
	OUT transport text,
	OUT state text,
	OUT reason text,
	OUT memory_total bigint,
	OUT memory_used bigint,
	OUT memory_quarantined bigint,
	OUT generation bigint,
	OUT uuid text,
	OUT capabilities text)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE VIEW sherman_memory_nodes AS SELECT * FROM @extschema@.sherman_memory_nodes();

COMMENT ON FUNCTION sherman_memory_nodes() IS 'memory nodes of this server: address, state, memory in bytes';
COMMENT ON VIEW sherman_memory_nodes IS 'memory nodes of this server: address, state, memory in bytes';

-- A memory node that is not coming back gives up its position (as in sherman_memory_nodes), and the indexes that lie on it are
-- broken, to be rebuilt on others.  It must not be attached, nor in the list of memory nodes.
CREATE FUNCTION sherman_forget_memory_node("position" integer)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION sherman_forget_memory_node(integer) IS
	'gives up a memory node that is not coming back: the indexes that lie on it are broken';

REVOKE ALL ON FUNCTION sherman_forget_memory_node(integer) FROM PUBLIC;

-- Runs of this server that used memory nodes, as far back as stamps in indexes may tell of them: when each began, whether it
-- ended clean, where its WAL ended and how that is known.  The last one is in use, unless no memory node is attached.
CREATE FUNCTION sherman_epochs(
	OUT epoch bigint,
	OUT began timestamptz,
	OUT clean boolean,
	OUT wal_end pg_lsn,
	OUT known_by text)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE VIEW sherman_epochs AS SELECT * FROM @extschema@.sherman_epochs();

COMMENT ON FUNCTION sherman_epochs() IS 'runs of this server that used memory nodes, and how each ended';
COMMENT ON VIEW sherman_epochs IS 'runs of this server that used memory nodes, and how each ended';

-- On a standby, or while recovery is paused at its target: when recovery ends, this server takes over the indexes of the one that
-- it is a copy of, and that one can use them no longer.  false: it does not.
CREATE FUNCTION sherman_take_over(wanted boolean DEFAULT true)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION sherman_take_over(boolean) IS
	'has this server, when recovery ends, take over the indexes of the one that it is a copy of';

REVOKE ALL ON FUNCTION sherman_take_over(boolean) FROM PUBLIC;

-- Indexes that are being healed now, by whom and how far: leaves_done were looked at, leaves_left of them are in doubt still.
CREATE FUNCTION sherman_heal_progress_info(
	OUT pid integer,
	OUT datid oid,
	OUT relid oid,
	OUT phase text,
	OUT leaves_total bigint,
	OUT leaves_done bigint,
	OUT leaves_healed bigint,
	OUT entries_removed bigint,
	OUT leaves_left bigint,
	OUT started timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE VIEW sherman_heal_progress AS
	SELECT p.pid, p.datid, d.datname, p.relid, c.relname AS index, p.phase, p.leaves_total, p.leaves_done, p.leaves_healed,
		p.entries_removed, p.leaves_left, p.started
	FROM @extschema@.sherman_heal_progress_info() p
		LEFT JOIN pg_catalog.pg_database d ON d.oid = p.datid
		LEFT JOIN pg_catalog.pg_class c ON c.oid = p.relid AND d.datname = pg_catalog.current_database();

COMMENT ON FUNCTION sherman_heal_progress_info() IS 'indexes that are being healed now, by whom and how far';
COMMENT ON VIEW sherman_heal_progress IS 'indexes that are being healed now, by whom and how far';

-- Indexes of all databases that sherman.auto_rebuild is to rebuild, or was not able to: "waiting" (next_try), "running" (pid;
-- see pg_stat_progress_create_index), "given up" (no tries are left) or "manual" (only REINDEX can).  "oid" is the index's.
CREATE FUNCTION sherman_rebuilds(
	OUT database text,
	OUT index text,
	OUT oid oid,
	OUT state text,
	OUT tries integer,
	OUT tries_left integer,
	OUT last_error text,
	OUT next_try timestamptz,
	OUT pid integer)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE VIEW sherman_rebuilds AS SELECT * FROM @extschema@.sherman_rebuilds();

COMMENT ON FUNCTION sherman_rebuilds() IS 'broken indexes of all databases: how far rebuilding them by itself is';

-- Has the broken indexes of all databases rebuilt in the background, one after the other, concurrently: those included that
-- were given up, and also where sherman.auto_rebuild is off.  sherman_rebuilds shows how far that is.
CREATE FUNCTION sherman_rebuild_all()
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION sherman_rebuild_all() IS 'has all broken sherman indexes rebuilt in the background';

REVOKE ALL ON FUNCTION sherman_rebuild_all() FROM PUBLIC;

COMMENT ON VIEW sherman_rebuilds IS 'broken indexes of all databases: how far rebuilding them by itself is';

-- Connection workers: their clients and connections now, and what they have done since the server was started.
CREATE FUNCTION sherman_connection_workers_info(
	OUT worker integer,
	OUT pid integer,
	OUT clients integer,
	OUT connections integer,
	OUT starts bigint,
	OUT chains bigint,
	OUT operations bigint,
	OUT calls bigint,
	OUT resets bigint,
	OUT lost bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE VIEW sherman_connection_workers AS SELECT * FROM @extschema@.sherman_connection_workers_info();

COMMENT ON FUNCTION sherman_connection_workers_info() IS 'connection workers: clients, connections and work done since the start';
COMMENT ON VIEW sherman_connection_workers IS 'connection workers: clients, connections and work done since the start';

-- State and size of one index, and the positions of the memory nodes that it lies on.
CREATE FUNCTION sherman_index_info(
	index regclass,
	OUT tree text,
	OUT state text,
	OUT reason text,
	OUT broken_at timestamptz,
	OUT height integer,
	OUT leaves bigint,
	OUT nodes bigint,
	OUT node_bytes bigint,
	OUT outside_bytes bigint,
	OUT bytes bigint,
	OUT entries bigint,
	OUT memory_nodes integer[],
	OUT copies text)
RETURNS record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION sherman_index_info(regclass) IS 'state, size in bytes and memory nodes of a sherman index';

-- Work done for one index since the server started: the order of the columns is that of TreeCounters in tree/client.h.
CREATE FUNCTION sherman_index_counters(
	index regclass,
	OUT lookups bigint,
	OUT inserts bigint,
	OUT insert_hits bigint,
	OUT deletes bigint,
	OUT round_trips bigint,
	OUT read_bytes bigint,
	OUT written_bytes bigint,
	OUT leaf_reads bigint,
	OUT leaf_splits bigint,
	OUT inner_splits bigint,
	OUT root_splits bigint,
	OUT leaf_rewrites bigint,
	OUT parent_posts bigint,
	OUT right_moves bigint,
	OUT torn_reads bigint,
	OUT stale_reads bigint,
	OUT lock_acquisitions bigint,
	OUT lock_waits bigint,
	OUT lock_retries bigint,
	OUT handovers bigint,
	OUT handover_images bigint,
	OUT cache_hits bigint,
	OUT cache_misses bigint,
	OUT cache_evictions bigint,
	OUT undecided_fences bigint,
	OUT undecided_cuts bigint,
	OUT stamp_writes bigint,
	OUT extents bigint,
	OUT dead_marks bigint,
	OUT dead_removals bigint,
	OUT copy_writes bigint)
RETURNS record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION sherman_index_counters(regclass) IS 'work done for a sherman index since the server started';

-- The sherman indexes of the current database, whatever their access method is called.
CREATE VIEW sherman_indexes AS
	SELECT c.oid::pg_catalog.regclass AS index, i.*
	FROM pg_catalog.pg_class c
		JOIN pg_catalog.pg_am a ON a.oid = c.relam
		JOIN pg_catalog.pg_proc p ON p.oid = a.amhandler
		CROSS JOIN LATERAL @extschema@.sherman_index_info(c.oid) i
	WHERE c.relkind = 'i' AND p.prosrc = 'shermanhandler';

CREATE VIEW sherman_counters AS
	SELECT c.oid::pg_catalog.regclass AS index, i.*
	FROM pg_catalog.pg_class c
		JOIN pg_catalog.pg_am a ON a.oid = c.relam
		JOIN pg_catalog.pg_proc p ON p.oid = a.amhandler
		CROSS JOIN LATERAL @extschema@.sherman_index_counters(c.oid) i
	WHERE c.relkind = 'i' AND p.prosrc = 'shermanhandler';

COMMENT ON VIEW sherman_indexes IS 'sherman indexes of this database: state, size in bytes and memory nodes of each';
COMMENT ON VIEW sherman_counters IS 'sherman indexes of this database: work done for each since the server started';

-- Bytes that an index has taken from memory nodes; pg_relation_size() sees its metapage only.
CREATE FUNCTION sherman_relation_size(index regclass)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION sherman_relation_size(regclass) IS 'bytes that a sherman index has taken from memory nodes';

-- Looks for memory of dropped indexes now, and waits for it: number of trees freed.
CREATE FUNCTION sherman_collect()
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION sherman_collect() IS 'frees the memory of dropped sherman indexes now: number of trees freed';

-- Sizes and states are public, as those of tables are; where the memory lies, and work for others, are not.
CREATE FUNCTION sherman_files(
	OUT path text, OUT kind text, OUT bytes bigint, OUT since timestamptz, OUT reason text)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
COMMENT ON FUNCTION sherman_files() IS
	'files of this server that hold indexes or were set aside: what stays behind when the extension or the data directory is dropped';
REVOKE ALL ON FUNCTION sherman_files() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sherman_files() TO pg_monitor;
CREATE FUNCTION sherman_remove_file(path text) RETURNS void
	AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE;
COMMENT ON FUNCTION sherman_remove_file(text) IS
	'removes a file that was set aside, one that sherman_files() shows as kept';
REVOKE ALL ON FUNCTION sherman_remove_file(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION sherman_memory_nodes() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sherman_memory_nodes() TO pg_monitor;
GRANT SELECT ON sherman_memory_nodes TO pg_monitor;
REVOKE ALL ON FUNCTION sherman_epochs() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sherman_epochs() TO pg_monitor;
GRANT SELECT ON sherman_epochs TO pg_monitor;
REVOKE ALL ON FUNCTION sherman_rebuilds() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sherman_rebuilds() TO pg_monitor;
GRANT SELECT ON sherman_rebuilds TO pg_monitor;
REVOKE ALL ON FUNCTION sherman_connection_workers_info() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sherman_connection_workers_info() TO pg_monitor;
GRANT SELECT ON sherman_connection_workers TO pg_monitor;
REVOKE ALL ON FUNCTION sherman_collect() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sherman_collect() TO pg_monitor;
GRANT SELECT ON sherman_heal_progress TO PUBLIC;
GRANT SELECT ON sherman_indexes TO PUBLIC;
GRANT SELECT ON sherman_counters TO PUBLIC;

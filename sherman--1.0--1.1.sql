/* sherman--1.0--1.1.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION or ALTER EXTENSION
\echo Use "ALTER EXTENSION sherman UPDATE TO '1.1'" to load this file. \quit

-- Views by the names that PostgreSQL's own have.  Those of 1.0 stay for one release, over the same functions.  A library of
-- 1.1 works with the script of 1.0, too: no function of it is changed here, and sherman--1.0.sql stays as it was released.

------------------------------------------------------------------------------
-- Counters that begin anew
------------------------------------------------------------------------------

CREATE FUNCTION sherman_stat_reset_index(index regclass)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION sherman_stat_reset_index(regclass) IS
	'sets the counters of a sherman index in sherman_stat_indexes to zero';

CREATE FUNCTION sherman_stat_get_reset_time(index regclass)
RETURNS timestamptz
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION sherman_stat_get_reset_time(regclass) IS
	'when the counters of a sherman index were last set to zero';

------------------------------------------------------------------------------
-- Indexes
------------------------------------------------------------------------------

-- Work done for one index since the server started: the order of the columns is that of TreeCounters in tree/client.h.  Of the
-- same library function sherman_index_counters(), that of 1.0, has the first columns.
CREATE FUNCTION sherman_stat_get_index_counters(
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
	OUT copy_writes bigint,
	OUT leaf_hits bigint,
	OUT leaf_misses bigint)
RETURNS record
AS 'MODULE_PATHNAME', 'sherman_index_counters'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION sherman_stat_get_index_counters(regclass) IS 'work done for a sherman index since the server started';

-- The sherman indexes of the current database, whatever their access method is called.
CREATE VIEW sherman_stat_indexes AS
	SELECT x.indrelid AS relid, x.indexrelid, n.nspname AS schemaname, t.relname, c.relname AS indexrelname,
		i.state, i.reason, i.broken_at, i.tree, i.height, i.leaves, i.nodes, i.entries, i.node_bytes,
		i.outside_bytes AS overflow_bytes, i.bytes AS total_bytes, i.memory_nodes, i.copies AS replicas,
		w.lookups, w.inserts, w.insert_hits, w.deletes, w.round_trips, w.read_bytes, w.written_bytes, w.leaf_reads,
		w.leaf_splits, w.inner_splits, w.root_splits, w.leaf_rewrites, w.parent_posts AS downlink_inserts, w.right_moves,
		w.torn_reads, w.stale_reads, w.lock_acquisitions, w.lock_waits, w.lock_retries, w.handovers, w.handover_images,
		w.cache_hits AS inner_cache_hits, w.cache_misses AS inner_cache_misses, w.cache_evictions AS inner_cache_evictions,
		w.leaf_hits AS leaf_cache_hits, w.leaf_misses AS leaf_cache_misses, w.undecided_fences, w.undecided_cuts,
		w.stamp_writes AS wal_position_writes, w.copy_writes AS replica_writes, w.extents, w.dead_marks, w.dead_removals,
		@extschema@.sherman_stat_get_reset_time(x.indexrelid) AS stats_reset
	FROM pg_catalog.pg_index x
		JOIN pg_catalog.pg_class c ON c.oid = x.indexrelid
		JOIN pg_catalog.pg_class t ON t.oid = x.indrelid
		JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
		JOIN pg_catalog.pg_am a ON a.oid = c.relam
		JOIN pg_catalog.pg_proc h ON h.oid = a.amhandler
		CROSS JOIN LATERAL @extschema@.sherman_index_info(x.indexrelid) i
		CROSS JOIN LATERAL @extschema@.sherman_stat_get_index_counters(x.indexrelid) w
	WHERE c.relkind = 'i' AND h.prosrc = 'shermanhandler';

COMMENT ON VIEW sherman_stat_indexes IS
	'sherman indexes of this database: state, size in bytes and memory nodes of each, and work done for it';

-- Of all indexes of the current database, as pg_stat_reset() does it.
CREATE FUNCTION sherman_stat_reset()
RETURNS void
AS $$
	SELECT @extschema@.sherman_stat_reset_index(c.oid)
	FROM pg_catalog.pg_class c
		JOIN pg_catalog.pg_am a ON a.oid = c.relam
		JOIN pg_catalog.pg_proc h ON h.oid = a.amhandler
	WHERE c.relkind = 'i' AND h.prosrc = 'shermanhandler'
$$
LANGUAGE SQL VOLATILE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp;

COMMENT ON FUNCTION sherman_stat_reset() IS
	'sets the counters of all sherman indexes of this database to zero';

------------------------------------------------------------------------------
-- Sizes
------------------------------------------------------------------------------

CREATE FUNCTION sherman_table_size("table" regclass)
RETURNS bigint
AS $$
	SELECT coalesce(sum(@extschema@.sherman_relation_size(c.oid)), 0)::bigint
	FROM pg_catalog.pg_index x
		JOIN pg_catalog.pg_class c ON c.oid = x.indexrelid
		JOIN pg_catalog.pg_am a ON a.oid = c.relam
		JOIN pg_catalog.pg_proc h ON h.oid = a.amhandler
	WHERE x.indrelid = $1 AND c.relkind = 'i' AND h.prosrc = 'shermanhandler'
$$
LANGUAGE SQL STRICT VOLATILE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp;

COMMENT ON FUNCTION sherman_table_size(regclass) IS
	'bytes that the sherman indexes of a table have taken from memory nodes';

CREATE FUNCTION sherman_database_size()
RETURNS bigint
AS $$
	SELECT coalesce(sum(@extschema@.sherman_relation_size(c.oid)), 0)::bigint
	FROM pg_catalog.pg_class c
		JOIN pg_catalog.pg_am a ON a.oid = c.relam
		JOIN pg_catalog.pg_proc h ON h.oid = a.amhandler
	WHERE c.relkind = 'i' AND h.prosrc = 'shermanhandler'
$$
LANGUAGE SQL VOLATILE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp;

COMMENT ON FUNCTION sherman_database_size() IS
	'bytes that the sherman indexes of this database have taken from memory nodes';

------------------------------------------------------------------------------
-- Memory nodes, cache, connection workers
------------------------------------------------------------------------------

CREATE FUNCTION sherman_stat_get_round_trip("position" integer)
RETURNS interval
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION sherman_stat_get_round_trip(integer) IS
	'how long a round trip to a memory node took when the server attached to it';

CREATE VIEW sherman_stat_memory_nodes AS
	SELECT m."position", m.address, m.transport, m.state, m.reason, m.memory_total AS total_bytes,
		m.memory_used AS used_bytes, m.memory_quarantined AS quarantined_bytes,
		@extschema@.sherman_stat_get_round_trip(m."position") AS round_trip, m.generation, m.uuid, m.capabilities
	FROM @extschema@.sherman_memory_nodes() m;

COMMENT ON VIEW sherman_stat_memory_nodes IS
	'memory nodes of this server: address, state, memory in bytes, how long a round trip takes';

CREATE FUNCTION sherman_pool_size()
RETURNS bigint
AS $$
	SELECT coalesce(sum(memory_used), 0)::bigint FROM @extschema@.sherman_memory_nodes()
$$
LANGUAGE SQL VOLATILE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp;

COMMENT ON FUNCTION sherman_pool_size() IS 'bytes in use at all memory nodes that are attached';

CREATE FUNCTION sherman_stat_get_cache(
	OUT kind text,
	OUT total_bytes bigint,
	OUT used_bytes bigint,
	OUT nodes bigint,
	OUT hits bigint,
	OUT misses bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'sherman_cache'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION sherman_stat_get_cache() IS 'nodes in shared memory: what there is room for, and what is in it';

CREATE VIEW sherman_stat_cache AS SELECT * FROM @extschema@.sherman_stat_get_cache();

COMMENT ON VIEW sherman_stat_cache IS 'nodes in shared memory: what there is room for, and what is in it';

CREATE VIEW sherman_stat_connection_workers AS
	SELECT w.worker, w.pid, w.clients, w.connections, w.starts, w.chains, w.operations, w.calls, w.resets,
		w.lost AS lost_chains
	FROM @extschema@.sherman_connection_workers_info() w;

COMMENT ON VIEW sherman_stat_connection_workers IS
	'connection workers: clients, connections and work done since the start';

------------------------------------------------------------------------------
-- Progress
------------------------------------------------------------------------------

-- Names are known in the index's own database only.
CREATE VIEW sherman_stat_progress_heal AS
	SELECT p.pid, p.datid, d.datname, x.indrelid AS relid, p.relid AS indexrelid, n.nspname AS schemaname, t.relname,
		c.relname AS indexrelname, p.phase, p.leaves_total, p.leaves_done, p.leaves_healed, p.leaves_left,
		p.entries_removed, p.started AS started_at
	FROM @extschema@.sherman_heal_progress_info() p
		LEFT JOIN pg_catalog.pg_database d ON d.oid = p.datid
		LEFT JOIN pg_catalog.pg_class c ON c.oid = p.relid AND d.datname = pg_catalog.current_database()
		LEFT JOIN pg_catalog.pg_index x ON x.indexrelid = c.oid
		LEFT JOIN pg_catalog.pg_class t ON t.oid = x.indrelid
		LEFT JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace;

COMMENT ON VIEW sherman_stat_progress_heal IS 'indexes that are being healed now, by which process and how far';

CREATE VIEW sherman_stat_progress_rebuild AS
	SELECT r.pid, d.oid AS datid, d.datname, x.indrelid AS relid, r.oid AS indexrelid, n.nspname AS schemaname, t.relname,
		c.relname AS indexrelname, r.index AS qualified_name, r.state, r.tries, r.tries_left, r.last_error,
		r.next_try AS next_try_at
	FROM @extschema@.sherman_rebuilds() r
		LEFT JOIN pg_catalog.pg_database d ON d.datname = r.database
		LEFT JOIN pg_catalog.pg_class c ON c.oid = r.oid AND d.datname = pg_catalog.current_database()
		LEFT JOIN pg_catalog.pg_index x ON x.indexrelid = c.oid
		LEFT JOIN pg_catalog.pg_class t ON t.oid = x.indrelid
		LEFT JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace;

COMMENT ON VIEW sherman_stat_progress_rebuild IS
	'broken indexes of all databases: how far rebuilding them in the background is';

------------------------------------------------------------------------------
-- The names of 1.0
------------------------------------------------------------------------------

COMMENT ON VIEW sherman_indexes IS 'until the next release: see sherman_stat_indexes';
COMMENT ON VIEW sherman_counters IS 'until the next release: see sherman_stat_indexes';
COMMENT ON VIEW sherman_memory_nodes IS 'until the next release: see sherman_stat_memory_nodes';
COMMENT ON VIEW sherman_connection_workers IS 'until the next release: see sherman_stat_connection_workers';
COMMENT ON VIEW sherman_heal_progress IS 'until the next release: see sherman_stat_progress_heal';
COMMENT ON VIEW sherman_rebuilds IS 'until the next release: see sherman_stat_progress_rebuild';

------------------------------------------------------------------------------
-- Privileges, as those of PostgreSQL's own views: sizes, states and counts are public; addresses, names of other databases'
-- indexes and what other sessions do are for pg_read_all_stats, of which pg_monitor is a member
------------------------------------------------------------------------------

REVOKE ALL ON FUNCTION sherman_stat_reset_index(regclass) FROM PUBLIC;
REVOKE ALL ON FUNCTION sherman_stat_reset() FROM PUBLIC;
REVOKE ALL ON FUNCTION sherman_pool_size() FROM PUBLIC;
REVOKE ALL ON FUNCTION sherman_stat_get_round_trip(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sherman_stat_get_round_trip(integer) TO pg_read_all_stats;
GRANT EXECUTE ON FUNCTION sherman_pool_size() TO pg_read_all_stats;
GRANT EXECUTE ON FUNCTION sherman_memory_nodes() TO pg_read_all_stats;
GRANT EXECUTE ON FUNCTION sherman_rebuilds() TO pg_read_all_stats;
GRANT EXECUTE ON FUNCTION sherman_connection_workers_info() TO pg_read_all_stats;
GRANT EXECUTE ON FUNCTION sherman_epochs() TO pg_read_all_stats;
GRANT SELECT ON sherman_memory_nodes, sherman_rebuilds, sherman_connection_workers, sherman_epochs TO pg_read_all_stats;
GRANT SELECT ON sherman_stat_memory_nodes TO pg_read_all_stats;
GRANT SELECT ON sherman_stat_progress_rebuild TO pg_read_all_stats;
GRANT SELECT ON sherman_stat_connection_workers TO pg_read_all_stats;
GRANT SELECT ON sherman_stat_progress_heal TO PUBLIC;
GRANT SELECT ON sherman_stat_indexes TO PUBLIC;
GRANT SELECT ON sherman_stat_cache TO PUBLIC;

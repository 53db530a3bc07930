-- What the views and functions show, and to whom.
CREATE TABLE views_t (id int, word text);
INSERT INTO views_t SELECT g, md5(g::text) FROM generate_series(1, 5000) g;
CREATE INDEX views_id ON views_t USING sherman (id);
CREATE INDEX views_word ON views_t USING sherman (word);
CREATE INDEX views_btree ON views_t USING btree (id);

SELECT sherman_version();
-- One memory node or several, here or elsewhere.
SELECT DISTINCT address LIKE transport || ':%' AS address, transport IN ('shm', 'tcp', 'verbs') AS transport, state,
	used_bytes > 0 AS used, used_bytes <= total_bytes AS bounded, reason, length(uuid) AS uuid, generation > 0 AS generation,
	capabilities LIKE '%chains of%' AS capabilities
FROM sherman_stat_memory_nodes;
SELECT indexrelname, memory_nodes <@ (SELECT array_agg(position) FROM sherman_stat_memory_nodes) AS memory_nodes
FROM sherman_stat_indexes WHERE indexrelid = 'views_id'::regclass AND memory_nodes <> '{}';

SELECT indexrelname, state, reason, height, leaves > 50 AS leaves, nodes > leaves AS nodes, node_bytes > 50000 AS node_bytes,
	total_bytes >= node_bytes AS total_bytes, entries
FROM sherman_stat_indexes WHERE indexrelid::regclass::text LIKE 'views%' ORDER BY indexrelname;
SELECT count(*) AS never_broken FROM sherman_stat_indexes WHERE indexrelid::regclass::text LIKE 'views%' AND broken_at IS NULL;
SELECT bool_and(transport <> 'shm' OR capabilities LIKE 'operations atomic, lines atomic, %lock words in the host''s memory') AS vouched_for
FROM sherman_stat_memory_nodes;
-- A round trip is what another machine is away.
SELECT bool_and(coalesce(round_trip > '0', false) = (transport <> 'shm')) AS round_trip FROM sherman_stat_memory_nodes;
SELECT sherman_stat_get_round_trip(-1) IS NULL AND sherman_stat_get_round_trip(32) IS NULL AS no_memory_node;
SELECT sherman_relation_size('views_id') > pg_relation_size('views_id') AS more_than_its_metapage;

-- Counters count.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT lookups AS before, read_bytes AS read_before, written_bytes AS written_before, inner_cache_hits AS hits_before,
	lock_acquisitions AS locks_before
FROM sherman_stat_indexes WHERE indexrelid = 'views_id'::regclass \gset
SELECT count(*) FROM views_t a WHERE a.id = 1;
INSERT INTO views_t VALUES (6000, 'six');
DROP INDEX views_btree;
SELECT count(*) FROM views_t a WHERE a.id = 6000;
SELECT lookups - :before > 0 AS lookups, inserts, round_trips >= inserts AS round_trips, extents >= 0 AS extents,
	read_bytes - :read_before > 500 AS read_bytes, written_bytes - :written_before >= 16 AS written_bytes,
	inner_cache_hits - :hits_before > 0 AS inner_cache_hits, lock_acquisitions - :locks_before > 0 AS lock_acquisitions
FROM sherman_stat_indexes WHERE indexrelid = 'views_id'::regclass;

-- The views of 1.0 say what those say that took their places, and a database and its tables are as large as their indexes.
SELECT count(*) = 31 + 1 AS columns FROM pg_attribute WHERE attrelid = 'sherman_counters'::regclass AND attnum > 0;
SELECT s.schemaname, s.relname, s.indexrelname, s.relid = 'views_t'::regclass AS relid, s.state, s.overflow_bytes = i.outside_bytes AS overflow_bytes,
	s.total_bytes = i.bytes AS total_bytes, s.entries = i.entries AS entries, s.replicas IS NULL AS replicas, s.inserts = w.inserts AS inserts,
	s.downlink_inserts = w.parent_posts AS downlink_inserts, s.wal_position_writes = w.stamp_writes AS wal_position_writes, s.stats_reset
FROM sherman_stat_indexes s JOIN sherman_indexes i ON i.index = s.indexrelid JOIN sherman_counters w ON w.index = s.indexrelid
WHERE s.relname = 'views_t' ORDER BY s.indexrelname;
SELECT bool_and(n.total_bytes = o.memory_total) AS total_bytes, bool_and(n.used_bytes > 0) AS used_bytes,
	bool_and(n.quarantined_bytes >= 0) AS quarantined_bytes, bool_and(n.uuid = o.uuid) AS uuid
FROM sherman_stat_memory_nodes n JOIN sherman_memory_nodes o USING ("position");
SELECT kind, total_bytes > used_bytes AS bytes, used_bytes > 0 AS used, hits > 0 AS hits FROM sherman_stat_cache WHERE kind = 'inner nodes';
SELECT sherman_table_size('views_t') = sherman_relation_size('views_id') + sherman_relation_size('views_word') AS table_size,
	sherman_database_size() >= sherman_table_size('views_t') AS database_size, sherman_pool_size() >= sherman_database_size() AS pool_size,
	sherman_table_size('pg_class') AS no_index;

-- Counters begin anew, for one index or for all.
SELECT sherman_stat_reset_index('views_id');
SELECT indexrelname, inserts, stats_reset <= now() AS stats_reset FROM sherman_stat_indexes WHERE indexrelname = 'views_id';
SELECT indexrelname, written_bytes > 0 AS written_bytes, stats_reset FROM sherman_stat_indexes WHERE indexrelname = 'views_word';
INSERT INTO views_t VALUES (7000, 'seven');
SELECT indexrelname, inserts, written_bytes > 0 AS written_bytes, entries FROM sherman_stat_indexes WHERE indexrelname = 'views_id';
SELECT sherman_stat_reset();
SELECT indexrelname, inserts, stats_reset <= now() AS stats_reset FROM sherman_stat_indexes WHERE relname = 'views_t' ORDER BY 1;
SELECT sherman_stat_reset_index('views_t');
DELETE FROM views_t WHERE id = 7000;

-- What is not ours is refused, what is gone is NULL.
SELECT sherman_relation_size('views_t');
SELECT state FROM sherman_index_info('pg_class_oid_index');
CREATE EXTENSION bloom;
CREATE INDEX views_bloom ON views_t USING bloom (id);
SELECT state FROM sherman_index_info('views_bloom');
DROP EXTENSION bloom CASCADE;
SELECT sherman_relation_size(4294967295::oid::regclass) IS NULL AS gone;

-- The collector finds nothing to do here, and says so.
SELECT sherman_collect() >= 0 AS collected;

-- Sizes and states are for everybody, memory nodes for pg_monitor.
CREATE ROLE regress_sherman_views;
SET ROLE regress_sherman_views;
-- By the names of 1.0, too.
SELECT count(*) FROM sherman_indexes WHERE index::text LIKE 'views%';
SELECT count(*) FROM sherman_counters WHERE index::text LIKE 'views%';
SELECT count(*) > 0 AS memory_nodes FROM sherman_memory_nodes;
SELECT sherman_collect();
SELECT sherman_check('views_id');
SELECT count(*) FROM sherman_stat_indexes WHERE relname = 'views_t';
SELECT count(*) > 0 AS cache FROM sherman_stat_cache;
SELECT count(*) FROM sherman_stat_progress_heal;
SELECT sherman_database_size() > 0 AS database_size, sherman_table_size('views_t') > 0 AS table_size;
SELECT count(*) FROM sherman_stat_memory_nodes;
SELECT count(*) FROM sherman_stat_progress_rebuild;
SELECT count(*) FROM sherman_stat_connection_workers;
SELECT sherman_pool_size();
SELECT sherman_stat_get_round_trip(0);
SELECT sherman_stat_reset_index('views_id');
SELECT sherman_stat_reset();
RESET ROLE;
GRANT pg_read_all_stats TO regress_sherman_views;
SET ROLE regress_sherman_views;
SELECT count(*) > 0 AS memory_nodes FROM sherman_stat_memory_nodes;
SELECT count(*) AS to_rebuild FROM sherman_stat_progress_rebuild;
SELECT count(*) = current_setting('sherman.connection_workers')::int AS connection_workers FROM sherman_stat_connection_workers;
SELECT sherman_pool_size() > 0 AS pool_size;
SELECT sherman_stat_reset_index('views_id');
RESET ROLE;
REVOKE pg_read_all_stats FROM regress_sherman_views;
GRANT pg_monitor TO regress_sherman_views;
SET ROLE regress_sherman_views;
SELECT count(*) > 0 AS memory_nodes FROM sherman_stat_memory_nodes;
RESET ROLE;

-- Everything that has a name of its own says what it is for (\df+, \dv+).
SELECT pg_describe_object(classid, objid, 0) AS without_a_comment
FROM pg_depend
WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e' AND
	refobjid = (SELECT oid FROM pg_extension WHERE extname = 'sherman') AND
	classid IN ('pg_proc'::regclass, 'pg_class'::regclass, 'pg_am'::regclass) AND
	obj_description(objid, classid::regclass::text::name) IS NULL;

-- What a failed build leaves behind says so, and is not used.
CREATE TABLE views_failed AS SELECT g AS id FROM generate_series(0, 3) g;
CREATE INDEX CONCURRENTLY views_quotient ON views_failed USING sherman ((12 / id));
SELECT indexrelname, state, reason FROM sherman_stat_indexes WHERE indexrelid = 'views_quotient'::regclass;
SELECT count(*) FROM views_failed WHERE id > 1;
DROP TABLE views_failed;

DROP TABLE views_t;
DROP ROLE regress_sherman_views;

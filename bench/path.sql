-- script/bench path: a row is looked up, and another one inserted, by a session that did the same just before; :module is bench/path.c's.
CREATE EXTENSION sherman;
CREATE FUNCTION path_begin(text, text, text, text, text) RETURNS void LANGUAGE c AS :'module';
CREATE FUNCTION path_end() RETURNS text LANGUAGE c AS :'module';
\set begin 'SELECT path_begin(''sherman_beginscan'', ''sherman_rescan'', ''sherman_gettuple'', ''sherman_endscan'', ''sherman_insert'') \\g /dev/null'
CREATE TABLE t AS SELECT i * 7919 % 1000003 AS k, i AS v FROM generate_series(1, 100000) i;
CREATE INDEX ON t USING sherman (k);
VACUUM ANALYZE t;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET plan_cache_mode = force_generic_plan;
PREPARE lookup(int) AS SELECT v FROM t WHERE k = $1;
PREPARE insert(int) AS INSERT INTO t VALUES ($1, 0);
-- Both before they count: what a session does once is no part of the path.
EXECUTE lookup(7919 * 100) \g /dev/null
EXECUTE lookup(7919 * 101) \g /dev/null
EXECUTE insert(424240);
EXECUTE insert(424241);
:begin
EXECUTE lookup(7919 * 100) \g /dev/null
SELECT 'lookup ' || line FROM string_to_table(path_end(), E'\n') line;
:begin
EXECUTE insert(424242);
SELECT 'insert ' || line FROM string_to_table(path_end(), E'\n') line;

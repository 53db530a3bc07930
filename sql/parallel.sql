-- Parallel scans: what several processes return together is what one returns, and what btree returns.
SET sherman.enable_lookahead = off; -- the plans are those with any memory node
CREATE SCHEMA parallel;
SET search_path = parallel, public;
CREATE TABLE s (k int, u uuid, t text COLLATE "C", g int, h int, v int) WITH (autovacuum_enabled = off);
INSERT INTO s SELECT i, md5(i::text)::uuid, repeat(md5((i / 3)::text), 3), i % 100, i, i FROM generate_series(1, 20000) i ORDER BY md5(i::text);
INSERT INTO s SELECT NULL, NULL, NULL, i, NULL, -i FROM generate_series(1, 50) i;
CREATE TABLE b (LIKE s) WITH (autovacuum_enabled = off);
INSERT INTO b SELECT * FROM s;
CREATE INDEX s_k ON s USING sherman (k);
CREATE INDEX s_u ON s USING sherman (u);
CREATE INDEX s_t ON s USING sherman (t DESC);
CREATE INDEX s_gh ON s USING sherman (g, h);
CREATE INDEX b_k ON b (k);
CREATE INDEX b_u ON b (u);
CREATE INDEX b_t ON b (t DESC);
CREATE INDEX b_gh ON b (g, h);
ANALYZE s, b;

-- As many processes as there may be for each scan, whatever they cost.
ALTER TABLE s SET (parallel_workers = 3);
ALTER TABLE b SET (parallel_workers = 3);
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/parallel.psql'
\i :include
SET enable_indexonlyscan = off;

-- All entries, ranges, both ends; types with images; NULLs.
SELECT * FROM compare('SELECT k, v FROM TABLE WHERE k > 0');
SELECT * FROM compare('SELECT k, v FROM TABLE WHERE k BETWEEN 5000 AND 12000');
SELECT * FROM compare('SELECT k, v FROM TABLE WHERE k < 100');
SELECT * FROM compare('SELECT k, v FROM TABLE WHERE k = 77');
SELECT * FROM compare('SELECT k, v FROM TABLE WHERE k > 20 AND k < 10');
SELECT * FROM compare('SELECT k, v FROM TABLE WHERE k > 30000');
SELECT * FROM compare('SELECT k, v FROM TABLE WHERE k IS NULL');
SELECT * FROM compare('SELECT u, v FROM TABLE WHERE u >= ''40000000-0000-0000-0000-000000000000''');
SELECT * FROM compare('SELECT t, v FROM TABLE WHERE t < ''b''');
SELECT * FROM compare('SELECT t, v FROM TABLE WHERE t IS NOT NULL');
SELECT * FROM compare('SELECT g, h, v FROM TABLE WHERE g BETWEEN 10 AND 60 AND h % 7 < 3 AND h < 15000');
SELECT * FROM compare('SELECT g, h, v FROM TABLE WHERE g > 10 AND h < 15000 AND h IS NOT NULL');

-- = ANY: one combination after the other, some of them empty.
SELECT * FROM compare('SELECT g, h, v FROM TABLE WHERE g = ANY (''{7,3,99,3,500,-4,50}'')');
SELECT * FROM compare('SELECT g, h, v FROM TABLE WHERE g = ANY (''{7,3,99,NULL}'') AND h = ANY (''{99,3,103,107,20000,199}'')');
SELECT * FROM compare('SELECT k, v FROM TABLE WHERE k = ANY (ARRAY(SELECT i * 13 FROM generate_series(0, 2000) i))');
SELECT * FROM compare('SELECT g, v FROM TABLE WHERE g = ANY (''{}'')');
SELECT * FROM compare('SELECT g, v FROM TABLE WHERE g = ANY (ARRAY(SELECT i FROM generate_series(1, 99, 2) i)) AND h > 10000');

-- In order: each process returns its rows in order, Gather Merge puts them together.
SET enable_sort = off;
SET enable_incremental_sort = off;
EXPLAIN (COSTS OFF) SELECT k, v FROM s WHERE k > 0 ORDER BY k;
SELECT * FROM compare('SELECT k, v FROM TABLE WHERE k > 0 ORDER BY k', true);
SELECT * FROM compare('SELECT k, v FROM TABLE WHERE k BETWEEN 100 AND 17000 ORDER BY k DESC', true);
SELECT * FROM compare('SELECT u, v FROM TABLE ORDER BY u', true);
SELECT * FROM compare('SELECT g, h FROM TABLE WHERE g >= 20 ORDER BY g, h', true);
SELECT * FROM compare('SELECT g, h FROM TABLE WHERE g <= 20 ORDER BY g DESC, h DESC', true);
SELECT * FROM compare('SELECT t FROM TABLE ORDER BY t DESC', true);
SELECT * FROM compare('SELECT t FROM TABLE WHERE t > ''8'' ORDER BY t', true);
-- LIMIT: the scan is left early.
SELECT * FROM compare('SELECT k, v FROM TABLE WHERE k > 500 ORDER BY k LIMIT 10', true);
SELECT * FROM compare('SELECT k FROM TABLE ORDER BY k DESC OFFSET 3000 LIMIT 5', true);
RESET enable_sort;
RESET enable_incremental_sort;

-- Rescans: a parallel scan is done anew for each outer row.
SET enable_material = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
EXPLAIN (COSTS OFF) SELECT i, x.n FROM generate_series(1, 3) i LEFT JOIN (SELECT count(v) AS n FROM s WHERE k > 100) x ON x.n > i;
SELECT i, x.n FROM generate_series(1, 3) i LEFT JOIN (SELECT count(v) AS n FROM s WHERE k > 100) x ON x.n > i;
SELECT i, x.n FROM generate_series(1, 3) i LEFT JOIN (SELECT count(v) AS n FROM s WHERE g = ANY (ARRAY[5, 3, 4])) x ON x.n > i;
SELECT i, x.n FROM generate_series(1, 3) i LEFT JOIN (SELECT v AS n FROM s WHERE k > 100 ORDER BY k LIMIT 2) x ON x.n > i;
-- A join whose outer side is shared, and whose inner side each process scans for itself.
SELECT * FROM compare('SELECT a.k, b.v FROM TABLE a JOIN TABLE b ON b.k = a.g WHERE a.k BETWEEN 1000 AND 6000');
SET enable_nestloop = off;
SET enable_mergejoin = on;
SELECT plan ~ 'Parallel Index Scan using s_k' AS parallel, rows, same FROM compare('SELECT a.k, b.v FROM TABLE a JOIN TABLE b ON b.k = a.k WHERE a.k BETWEEN 1000 AND 6000');
RESET enable_nestloop;
RESET enable_hashjoin;
RESET enable_material;

-- Bitmap scans: the leader builds the bitmap, all of them use it.
SET enable_indexscan = off;
SET enable_bitmapscan = on;
SELECT * FROM compare('SELECT k, v FROM TABLE WHERE k BETWEEN 1000 AND 15000');
SELECT * FROM compare('SELECT k, v FROM TABLE WHERE k < 4000 OR g = ANY (''{1,2,3}'')');
RESET enable_bitmapscan;
RESET enable_indexscan;
SET enable_bitmapscan = off;

-- All in a worker, and none in the leader.
-- its name is another one from 16 on
SELECT set_config(name, 'on', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
SELECT count(*) FROM s WHERE k = 5;
SELECT h FROM s WHERE g = 5 ORDER BY h LIMIT 3;
SELECT set_config(name, 'off', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
SET parallel_leader_participation = off;
SELECT * FROM compare('SELECT k, v FROM TABLE WHERE k > 0');
SELECT * FROM compare('SELECT g, h, v FROM TABLE WHERE g = ANY (''{7,3,99,3,500,-4,50}'')');
RESET parallel_leader_participation;
-- No worker is to be had: the leader does it alone.
SET max_parallel_workers = 0;
SELECT * FROM compare('SELECT k, v FROM TABLE WHERE k BETWEEN 5000 AND 12000');
RESET max_parallel_workers;

-- An error in one process ends the query in all of them, wherever it comes from.
CREATE FUNCTION fails_at(v int, bad int) RETURNS boolean LANGUAGE plpgsql PARALLEL SAFE COST 1 AS $$
BEGIN
	IF v = bad THEN
		RAISE EXCEPTION 'row %', v;
	END IF;
	RETURN true;
END $$;
CREATE FUNCTION outcome(query text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE query;
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLERRM;
END $$;
SELECT plan_of('SELECT count(*) FROM s WHERE k > 0 AND fails_at(v, 15000)');
SELECT outcome('SELECT count(*) FROM s WHERE k > 0 AND fails_at(v, 15000)');
SELECT outcome('SELECT count(*) FROM s WHERE k > 0 AND fails_at(v, -15000)');

-- Each search counts once, however many processes do the scan; its entries and rows count once, too.
SELECT pg_stat_force_next_flush();
SELECT pg_stat_reset_single_table_counters('s_k'::regclass), pg_stat_reset_single_table_counters('s_gh'::regclass);
SELECT plan_of('SELECT count(v) FROM s WHERE k > 0'), plan_of('SELECT count(v) FROM s WHERE g = ANY (''{3,50,7}'')');
SELECT count(v) FROM s WHERE k > 0;
SELECT count(v) FROM s WHERE g = ANY ('{3,50,7}');
SELECT pg_stat_force_next_flush();
SELECT indexrelname, idx_scan, idx_tup_read, idx_tup_fetch FROM pg_stat_user_indexes WHERE indexrelname IN ('s_k', 's_gh') ORDER BY 1;

-- By default, on a table that is large enough.
RESET ALL;
SET search_path = parallel, public;
CREATE TABLE large (k int, filler text) WITH (autovacuum_enabled = off);
INSERT INTO large SELECT i, repeat('x', 200) FROM generate_series(1, 60000) i ORDER BY md5(i::text);
CREATE INDEX large_k ON large USING sherman (k);
ANALYZE large;
SET parallel_setup_cost = 10;
SET enable_bitmapscan = off;
SET enable_seqscan = off;
SET min_parallel_index_scan_size = '256kB';
SELECT plan_of('SELECT count(filler) FROM large WHERE k < 40000');
SELECT plan_of('SELECT count(filler) FROM large WHERE k < 400');
SELECT count(filler) FROM large WHERE k < 40000;

SELECT sherman_check('s_k', true), sherman_check('s_gh', true), sherman_check('s_t', true);
RESET ALL;
SET client_min_messages = error;
DROP SCHEMA parallel CASCADE;

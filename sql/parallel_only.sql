-- Parallel index-only scans: what several processes return together is what btree returns, of pages that are all-visible and of others.
CREATE SCHEMA parallel_only;
SET search_path = parallel_only, public;
CREATE TABLE s (k int, t text COLLATE "C", g int, v int) WITH (autovacuum_enabled = off, parallel_workers = 3);
INSERT INTO s SELECT i, repeat(md5((i / 3)::text), 3), i % 100, i FROM generate_series(1, 8000) i;
INSERT INTO s SELECT NULL, NULL, i, -i FROM generate_series(1, 50) i;
CREATE TABLE b (LIKE s) WITH (autovacuum_enabled = off, parallel_workers = 3);
INSERT INTO b SELECT * FROM s;
CREATE INDEX s_k ON s USING sherman (k) INCLUDE (v);
CREATE INDEX s_t ON s USING sherman (t DESC) INCLUDE (k);
CREATE INDEX s_g ON s USING sherman (g);
CREATE INDEX b_k ON b (k) INCLUDE (v);
CREATE INDEX b_t ON b (t DESC) INCLUDE (k);
CREATE INDEX b_g ON b (g);
VACUUM ANALYZE s, b;

SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET seq_page_cost = 0;
SET random_page_cost = 0;
SET cpu_operator_cost = 0;
SET cpu_index_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
SET enable_seqscan = off;
SET enable_bitmapscan = off;

-- How a query's plan gathers and scans.
CREATE FUNCTION plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	nodes text[];
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line ~ 'Gather|Scan' THEN
			nodes := nodes || regexp_replace(line, '^[ >-]*', '');
		END IF;
	END LOOP;
	RETURN array_to_string(nodes, ', ');
END $$;
-- How sherman answers a query, number of its rows, and whether they are btree's. TABLE stands for the table.
CREATE FUNCTION compare(query text) RETURNS TABLE (plan text, rows bigint, same boolean) LANGUAGE plpgsql AS $$
DECLARE
	digest text := format('SELECT count(*) AS n, md5(string_agg(x.r, '','' ORDER BY x.r)) AS d FROM (SELECT x::text AS r FROM (%s) x) x', query);
	ours record;
	theirs record;
BEGIN
	EXECUTE replace(digest, 'TABLE', 's') INTO ours;
	EXECUTE replace(digest, 'TABLE', 'b') INTO theirs;
	RETURN QUERY SELECT plan_of(replace(digest, 'TABLE', 's')), ours.n, ours.n = theirs.n AND ours.d IS NOT DISTINCT FROM theirs.d;
END $$;

CREATE VIEW queries AS SELECT * FROM (VALUES
	('SELECT k, v FROM TABLE WHERE k > 0'),
	('SELECT k, v FROM TABLE WHERE k BETWEEN 2000 AND 6000 AND v % 3 = 0'),
	('SELECT k, v FROM TABLE WHERE k IS NULL'),
	('SELECT t, k FROM TABLE WHERE t < ''b'''),
	('SELECT g FROM TABLE WHERE g = ANY (''{7,3,99,3,500,-4,50}'')'),
	('SELECT k FROM TABLE WHERE k > 30000')) q(query);
SELECT query, c.* FROM queries, LATERAL compare(query) c;

-- Rows that are gone or new, on pages that are not all-visible; and the rest of them.
DELETE FROM s WHERE v % 7 = 0;
DELETE FROM b WHERE v % 7 = 0;
UPDATE s SET g = g + 1 WHERE v % 11 = 0;
UPDATE b SET g = g + 1 WHERE v % 11 = 0;
SELECT query, c.* FROM queries, LATERAL compare(query) c;
VACUUM s, b;
SELECT query, c.* FROM queries, LATERAL compare(query) c;

SELECT sherman_check('s_k', true), sherman_check('s_t', true), sherman_check('s_g', true);
SET client_min_messages = error;
DROP SCHEMA parallel_only CASCADE;

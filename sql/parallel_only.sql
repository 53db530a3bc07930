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

\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/parallel.psql'
\i :include

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

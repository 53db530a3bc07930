-- Index-only scans: what the index gives back is what the table has, for every type, wherever the rows' pages are visible to
-- all and where they are not.
SET sherman.enable_lookahead = off; -- the plans are those with any memory node
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/agrees.psql'
SET client_min_messages = warning;
SET jit = off;
CREATE SCHEMA test_only;
SET search_path = test_only, public;
\i :include
\set include :abs_srcdir '/sql/include/samples.psql'
\i :include

\set include :abs_srcdir '/sql/include/index_only.psql'
\i :include

-- alone, DESC, as the second of three columns
SELECT * FROM try_types('(v %s)', 'SELECT v FROM t');
SELECT * FROM try_types('(v %s DESC)', 'SELECT v FROM t');
SELECT * FROM try_types('(n DESC, v %s NULLS FIRST, id)', 'SELECT v, n, id FROM t');

-- bytes of more than one size, restored between each other: gaps are zeros, as PostgreSQL's own index tuples have them
CREATE TABLE wide (b bool, a int8, c "char", m macaddr, d date, u uuid);
INSERT INTO wide SELECT i % 2 = 0, i, chr(65 + i % 20)::"char", '08:00:2b:01:02:03', '2026-01-01'::date + i, md5(i::text)::uuid FROM generate_series(1, 500) i;
INSERT INTO wide VALUES (NULL, 1, NULL, NULL, NULL, NULL), (NULL, NULL, NULL, NULL, NULL, NULL), (true, 5, NULL, NULL, '2020-01-01', NULL);
CREATE INDEX wide_all ON wide USING sherman (b, a DESC, c, m NULLS FIRST, d);
CREATE INDEX wide_u ON wide USING sherman (u, c);
SELECT index_only('SELECT b, a, c, m, d FROM wide'), index_only('SELECT u, c FROM wide'), index_only('SELECT c FROM wide WHERE u IS NULL'),
	index_only('SELECT a, b FROM wide WHERE b AND a > 30 ORDER BY a DESC LIMIT 7');

-- rows that are not visible, or not yet: the pages are not all-visible, then they are
CREATE TABLE seen (k int, t text COLLATE "C", l text) WITH (autovacuum_enabled = off);
INSERT INTO seen SELECT i, 'word ' || i % 50, repeat('long ', i % 300) FROM generate_series(1, 4000) i;
CREATE INDEX seen_k ON seen USING sherman (k);
CREATE INDEX seen_t ON seen USING sherman (t, k);
CREATE INDEX seen_l ON seen USING sherman (l COLLATE "C");
CREATE FUNCTION all_of_them() RETURNS SETOF text LANGUAGE sql AS $$
	SELECT index_only('SELECT k FROM seen ORDER BY k') UNION ALL SELECT index_only('SELECT k FROM seen WHERE k < 300 ORDER BY k DESC') UNION ALL
	SELECT index_only('SELECT t, k FROM seen WHERE t > ''word 3''') UNION ALL SELECT index_only('SELECT t FROM seen WHERE t LIKE ''word 4%''') UNION ALL
	SELECT index_only('SELECT l FROM seen WHERE l > ''m''') UNION ALL SELECT index_only('SELECT count(*) FROM seen WHERE k > 0') UNION ALL
	SELECT index_only('SELECT k FROM seen WHERE k = ANY (''{5,3,9,5000,3}'') ORDER BY k') UNION ALL
	SELECT index_only('SELECT max(k), min(k) FROM seen') UNION ALL
	SELECT index_only('SELECT k, t FROM seen WHERE t = ''word 7'' AND k % 3 = 0')
$$;
SELECT all_of_them();
DELETE FROM seen WHERE k % 4 = 1;
UPDATE seen SET t = 'word x' WHERE k % 4 = 2;
BEGIN;
INSERT INTO seen SELECT i, 'aborted', 'zzz' FROM generate_series(4001, 4500) i;
ROLLBACK;
SELECT all_of_them();
VACUUM seen;
INSERT INTO seen VALUES (-1, 'word 33', 'new');
SELECT all_of_them();

SET enable_seqscan = off;
SET enable_bitmapscan = off;
-- a cursor to and fro, and through a command of its own transaction that its snapshot does not see
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT k FROM seen WHERE k BETWEEN 100 AND 130 ORDER BY k;
FETCH 4 FROM c;
INSERT INTO seen SELECT i, 'mine', '' FROM generate_series(100, 130) i;
DELETE FROM seen WHERE k = 107;
FETCH 4 FROM c;
FETCH BACKWARD 3 FROM c;
FETCH ABSOLUTE 12 FROM c;
FETCH LAST FROM c;
FETCH NEXT FROM c;
FETCH BACKWARD 2 FROM c;
ROLLBACK;

-- mark and restore below a merge join; rescans below a nested loop
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_sort = off;
SET enable_material = off;
CREATE TABLE twice (k int);
INSERT INTO twice SELECT i % 40 FROM generate_series(1, 200) i;
CREATE INDEX twice_k ON twice USING sherman (k);
VACUUM ANALYZE twice;
EXPLAIN (COSTS OFF) SELECT count(*), sum(a.k) FROM twice a JOIN twice b USING (k);
SELECT count(*), sum(a.k) FROM twice a JOIN twice b USING (k);
DELETE FROM twice WHERE ctid IN (SELECT min(ctid) FROM twice GROUP BY k);
SELECT count(*), sum(a.k) FROM twice a JOIN twice b USING (k);
RESET enable_nestloop;
SET enable_mergejoin = off;
SET enable_memoize = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(a.k) FROM twice a, LATERAL (SELECT k FROM twice b WHERE b.k = a.k OFFSET 0) b;
SELECT count(*), sum(a.k) FROM twice a, LATERAL (SELECT k FROM twice b WHERE b.k = a.k OFFSET 0) b;
RESET ALL;

-- expressions and partial indexes; an index without a tree yet; bitmap scans return no tuples
SET search_path = test_only, public;
SET client_min_messages = warning;
CREATE INDEX seen_e ON seen USING sherman ((k * 2), upper(t) COLLATE "C") WHERE k < 1000;
SELECT index_only('SELECT k * 2 AS d FROM seen WHERE k < 150');
CREATE UNLOGGED TABLE none (k int);
CREATE INDEX none_k ON none USING sherman (k);
SELECT index_only('SELECT k FROM none WHERE k > 0');
SELECT pg_index_column_has_property('seen_t', 2, 'returnable'), pg_indexam_has_property((SELECT oid FROM pg_am WHERE amname = 'sherman'), 'can_include');

DROP SCHEMA test_only CASCADE;

--
-- Skip scans: conditions behind a column that the bounds leave open give what a sequential scan gives, in order, and leave leaves out.
--
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/compare.psql'
SET client_min_messages = warning;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA test_skip;
SET search_path = test_skip, public;
\i :include

-- `a`: few values with many rows each; `m`: the same, and many values with one row each between them; `t`: long texts, cut in the key.
CREATE TABLE s (id int, a int, m int, b int, c int, t text, n numeric);
INSERT INTO s
SELECT i, nullif(i % 6, 5), CASE WHEN i % 10 = 0 THEN i ELSE i % 4 * 5000 END, nullif(i * 7919 % 211, 210), i * 31 % 7,
	repeat(chr(97 + i % 3), 20 + i % 2) || CASE WHEN i % 3 = 0 THEN repeat('z', 1000) END, (i % 5)::numeric / 3
FROM generate_series(1, 6000) i;
ANALYZE s;

CREATE TABLE shapes (index_columns text, index_order text, exact_order text, backward_order text, exact_backward text);
INSERT INTO shapes VALUES
	('a, b', 'a, b', 'a, b, ctid', 'a DESC, b DESC', 'a DESC, b DESC, ctid DESC'),
	('a DESC, b NULLS FIRST', 'a DESC, b NULLS FIRST', 'a DESC, b NULLS FIRST, ctid', 'a, b DESC NULLS LAST', 'a, b DESC NULLS LAST, ctid DESC'),
	('a NULLS FIRST, b DESC NULLS LAST, c', 'a NULLS FIRST, b DESC NULLS LAST, c', 'a NULLS FIRST, b DESC NULLS LAST, c, ctid',
	 'a DESC NULLS LAST, b NULLS FIRST, c DESC', 'a DESC NULLS LAST, b NULLS FIRST, c DESC, ctid DESC'),
	('c, a, b', 'c, a, b', 'c, a, b, ctid', 'c DESC, a DESC, b DESC', 'c DESC, a DESC, b DESC, ctid DESC'),
	('m, b', 'm, b', 'm, b, ctid', 'm DESC, b DESC', 'm DESC, b DESC, ctid DESC'),
	('n, b, c', 'n, b, c', 'n, b, c, ctid', 'n DESC, b DESC, c DESC', 'n DESC, b DESC, c DESC, ctid DESC'),
	('t COLLATE "C", b', 't COLLATE "C", b', 't COLLATE "C", b, ctid', 't COLLATE "C" DESC, b DESC', 't COLLATE "C" DESC, b DESC, ctid DESC');

CREATE TABLE conditions (c text);
INSERT INTO conditions VALUES
	('b = 5'), ('b = 0'), ('b = 209'), ('b = 500'), ('b = -1'), ('b IS NULL'), ('b IS NOT NULL AND c = 3'), ('b > 205'), ('b >= 3 AND b < 6'),
	('b < 2'), ('b = ANY (ARRAY[3, 70, 71, 72, 200])'), ('b = ANY (ARRAY[-5, 210, 900])'), ('b = 5000000000'), ('b < 5000000000 AND b > 206'),
	('b = ANY (ARRAY[-5000000000, 7, 100, 5000000000])'), ('b = ANY (ARRAY[-5000000000, -4000000000, 7, 100, 5000000000]) AND c = ANY (ARRAY[1, 2, 5, 9])'),
	('b = 5 AND c = 3'), ('b = ANY (ARRAY[5, 6, 100]) AND c = ANY (ARRAY[1, 2])'),
	('c = 4'), ('c = 4 AND b > 100'), ('b > 200 AND c < 2'), ('a BETWEEN 1 AND 3 AND b = 5'), ('a > 2 AND b = 5'), ('a < 2 AND b = 5 AND c = 1'),
	('a IS NOT NULL AND b = 7'), ('a IS NULL AND c = 2'), ('a = 2 AND c = 2'), ('a = ANY (ARRAY[0, 2, 4]) AND c = 2'), ('b = 5 AND id % 2 = 0'),
	('m > 4000 AND b = 5'), ('m BETWEEN 5000 AND 5100 AND b = 5'), ('n > 0.5 AND b = ANY (ARRAY[5, 6])'), ('b = 5 AND b IS NULL'), ('b > 5 AND b = ANY (ARRAY[3, 9])');

CREATE FUNCTION all_agree(shape shapes, include text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	result boolean;
BEGIN
	EXECUTE format('CREATE INDEX s_shape ON s USING sherman (%s) %s', shape.index_columns, include);
	SELECT bool_and(compare('s', c, shape.index_order, shape.exact_order)) AND
		bool_and(compare('s', c, shape.backward_order, shape.exact_backward)) AND bool_and(compare_bitmap('s', c))
	INTO result FROM conditions;
	DROP INDEX s_shape;
	RETURN result;
END $$;
SELECT index_columns, all_agree(shapes, '') FROM shapes ORDER BY 1;
SELECT index_columns, all_agree(shapes, 'INCLUDE (t)') FROM shapes WHERE index_columns IN ('a, b', 'c, a, b') ORDER BY 1;

-- Index-only scans, with marks: both sides of a merge join skip, and one goes back.
CREATE INDEX s_ab ON s USING sherman (a, b);
VACUUM s;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
SELECT a, b, count(*) FROM s WHERE b = ANY (ARRAY[5, 6]) GROUP BY a, b ORDER BY a, b;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_material = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM s x JOIN s y USING (a) WHERE x.b = 5 AND y.b = 7;
SELECT count(*) FROM s x JOIN s y USING (a) WHERE x.b = 5 AND y.b = 7;
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_material;

-- A cursor that is turned around, within a group and between two.
BEGIN;
DECLARE turned SCROLL CURSOR FOR SELECT a, b FROM s WHERE b = 5 ORDER BY a, b;
MOVE 8 IN turned;
FETCH 3 FROM turned;
FETCH BACKWARD 6 FROM turned;
MOVE FORWARD ALL IN turned;
FETCH BACKWARD 3 FROM turned;
FETCH FORWARD 5 FROM turned;
COMMIT;

-- Rescans, with other arguments each.
SELECT v, count(s.id) FROM generate_series(3, 6) v LEFT JOIN LATERAL (SELECT id FROM s WHERE b = v OFFSET 0) s ON true GROUP BY v ORDER BY v;

-- Leaves that are read: some for each value of `a`; and where each value has one row all, but none twice.
CREATE INDEX s_ib ON s USING sherman (id, b);
CREATE FUNCTION leaves_read(index regclass, query text, OUT rows bigint, OUT leaves_read bigint, OUT leaves bigint) LANGUAGE plpgsql AS $$
DECLARE
	before bigint;
BEGIN
	SELECT i.leaf_reads, i.leaves INTO before, leaves FROM sherman_stat_indexes i WHERE indexrelid = index;
	EXECUTE query INTO rows;
	SELECT i.leaf_reads - before INTO leaves_read FROM sherman_stat_indexes i WHERE indexrelid = index;
END $$;
SELECT rows, leaves_read < 20 AS few, leaves > 2 * leaves_read AS of_many FROM leaves_read('s_ab', 'SELECT count(*) FROM s WHERE b = 150');
SELECT rows, leaves_read < 20 AS few, leaves > 2 * leaves_read AS of_many FROM leaves_read('s_ab', 'SELECT count(*) FROM (SELECT a FROM s WHERE b = 150 ORDER BY a DESC, b DESC) s');
SELECT rows, leaves_read < 12 AS few FROM leaves_read('s_ab', 'SELECT count(*) FROM s WHERE a BETWEEN 1 AND 3 AND b = 150');
SELECT rows, leaves_read <= leaves + 4 AS once FROM leaves_read('s_ib', 'SELECT count(b) FROM s WHERE id > 0 AND b = 150');

-- Each search is counted: of the first entry, of each group, and of what comes behind it. Across a network a scan reads on through such
-- small groups.
SELECT pg_stat_force_next_flush();
SELECT idx_scan AS before FROM pg_stat_user_indexes WHERE indexrelname = 's_ab' \gset
SELECT count(*) FROM s WHERE b = 150;
SELECT pg_stat_force_next_flush();
SELECT CASE WHEN current_setting('sherman.memory_nodes') = '' THEN idx_scan - :before ELSE 13 END AS searches
FROM pg_stat_user_indexes WHERE indexrelname = 's_ab';

-- Of a long list no element is a search of its own: many of them lie in one leaf.
SELECT idx_scan AS before FROM pg_stat_user_indexes WHERE indexrelname = 's_ab' \gset
SELECT count(*) FROM s WHERE b = ANY (ARRAY(SELECT generate_series(100, 140, 2)));
SELECT pg_stat_force_next_flush();
SELECT idx_scan - :before <= 1 AS one_search FROM pg_stat_user_indexes WHERE indexrelname = 's_ab';

-- The plan costs what is read.
EXPLAIN (COSTS OFF) SELECT count(*) FROM s WHERE b = 150;
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_sort;
EXPLAIN (COSTS OFF) SELECT count(*) FROM s WHERE b = 150;

SET client_min_messages = error;
DROP SCHEMA test_skip CASCADE;

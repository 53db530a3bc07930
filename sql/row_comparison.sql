-- Row comparisons: core gives them to btree alone. Their first columns make a condition of ours, and the rest is a filter.
\set VERBOSITY terse
SET client_min_messages = warning;
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/agrees.psql'
\i :include
CREATE TABLE paged (a int, b int, t text COLLATE "C", d date, f float8, u uuid);
INSERT INTO paged
SELECT i / 10, i % 10, to_char(i % 50, 'FM000'), date '2026-01-01' + i % 60, (i % 7) / 2.0, md5((i % 90)::text)::uuid
FROM generate_series(1, 2000) i;
INSERT INTO paged
SELECT CASE WHEN i % 2 = 0 THEN i END, CASE WHEN i % 3 = 0 THEN i END, CASE WHEN i % 5 = 0 THEN 'x' END, NULL, 'NaN', NULL
FROM generate_series(1, 30) i;
CREATE INDEX paged_ab ON paged USING sherman (a, b);
CREATE INDEX paged_ta ON paged USING sherman (t DESC, a);
CREATE INDEX paged_df ON paged USING sherman (d NULLS FIRST, f DESC);
CREATE INDEX paged_u ON paged USING sherman (u);
CREATE INDEX paged_part ON paged USING sherman (f) WHERE a < 50;
CREATE INDEX paged_expression ON paged USING sherman ((a * 2), b);
VACUUM ANALYZE paged;

-- what the plans look like
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM paged WHERE (a, b) > (190, 5) ORDER BY a, b LIMIT 10;
EXPLAIN (COSTS OFF) SELECT * FROM paged WHERE (a, b) < (9, 5) ORDER BY a DESC, b DESC LIMIT 10;
EXPLAIN (COSTS OFF) SELECT * FROM paged WHERE (190, 5) < (a, b);
EXPLAIN (COSTS OFF) SELECT * FROM paged WHERE (a * 2, b) >= (380, 5);
-- what is met before holds, too: an equality is the better condition, and the rest stays a filter
EXPLAIN (COSTS OFF) SELECT * FROM paged WHERE a = 4 AND (a, b) > (4, 5);
EXPLAIN (COSTS OFF) SELECT count(*) FROM paged WHERE (a, b) > (10, 5) AND (a, b) <= (12, 5);
EXPLAIN (COSTS OFF) UPDATE paged SET b = 0 WHERE (a, b) > (198, 5);
RESET enable_bitmapscan;
EXPLAIN (COSTS OFF) SELECT * FROM paged WHERE (a, b) > (190, 5);
-- no index for the first column: none is used
EXPLAIN (COSTS OFF) SELECT * FROM paged WHERE (b, a) > (9, 190);
EXPLAIN (COSTS OFF) SELECT * FROM paged TABLESAMPLE SYSTEM (100) REPEATABLE (1) WHERE (a, b) > (190, 5);

-- every operator, on columns in either order, against the table itself
SELECT columns, operator, agrees(format('SELECT * FROM paged WHERE %s %s %s', columns, operator, bounds))
FROM (VALUES ('(a, b)', '(12, 6)'), ('(a, b)', '(12, NULL)'), ('(a, b)', '(NULL, 3)'), ('(a, b, f)', '(3, 3, 1.0)'),
		('(a, b)', '(12::bigint, 6::smallint)'), ('(a, b)', '(3000000000, 1)'), ('(t, a)', '(''017'', 50)'),
		('(t, b, a)', '(''x'', 1, 2)'), ('(d, f)', '(''2026-01-09'', 1.5)'), ('(d, f)', '(timestamp ''2026-01-09 12:00'', ''NaN'')'),
		('(u, a)', '(md5(''1'')::uuid, 7)'), ('(a * 2, b)', '(24, 6)')) v (columns, bounds),
	unnest(ARRAY['<', '<=', '>', '>=']) operator
ORDER BY columns, bounds, operator;
SELECT operator, agrees(format('SELECT a, b FROM paged WHERE (a, b) %s (12, 6) ORDER BY a %s, b %2$s', operator, direction))
FROM unnest(ARRAY['<', '<=', '>', '>=']) operator, unnest(ARRAY['ASC', 'DESC']) direction;
SELECT agrees('SELECT * FROM paged WHERE (f, b) > (1.0, 5) AND a < 50');
SELECT agrees('SELECT * FROM paged WHERE NOT (a, b) > (3, 5)') LIKE 'the index is not used%' AS not_for_negations;
SELECT agrees('SELECT * FROM paged WHERE (a, b) > (100, 5) AND (t, a) <= (''010'', 3)');
SELECT agrees('SELECT p.a, q.b FROM paged p LEFT JOIN paged q ON p.a = q.a AND (q.a, q.b) > (2, 5) WHERE (p.a, p.b) < (4, 1)');

-- page after page: each row once
CREATE FUNCTION pages(size int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	last record;
	page record;
	seen bigint := 0;
BEGIN
	SELECT 0 AS a, -1 AS b INTO last;
	LOOP
		SELECT count(*) AS n, (array_agg(p.a ORDER BY p.a DESC, p.b DESC))[1] AS a, (array_agg(p.b ORDER BY p.a DESC, p.b DESC))[1] AS b
		FROM (SELECT a, b FROM paged WHERE (a, b) > (last.a, last.b) ORDER BY a, b LIMIT size) p INTO page;
		EXIT WHEN page.n = 0;
		seen := seen + page.n;
		last := page;
	END LOOP;
	RETURN seen;
END $$;
DELETE FROM paged WHERE t = 'x' OR t IS NULL;
SELECT pages(7) = count(*) AS once FROM paged;

-- prepared, partitioned, and through a view that must not leak rows
PREPARE page(int, int) AS SELECT count(*) FROM paged WHERE (a, b) > ($1, $2);
SET plan_cache_mode = force_generic_plan;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) EXECUTE page(190, 5);
EXECUTE page(190, 5);
RESET plan_cache_mode;
RESET enable_seqscan;
RESET enable_bitmapscan;
CREATE TABLE parts (a int, b int) PARTITION BY RANGE (a);
CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (0) TO (100);
CREATE TABLE parts2 PARTITION OF parts FOR VALUES FROM (100) TO (300);
INSERT INTO parts SELECT a, b FROM paged;
CREATE INDEX parts_ab ON parts USING sherman (a, b);
ANALYZE parts;
EXPLAIN (COSTS OFF) SELECT * FROM parts WHERE (a, b) > (95, 5) ORDER BY a, b LIMIT 3;
SELECT agrees('SELECT * FROM parts WHERE (a, b) > (95, 5) ORDER BY a, b');
CREATE VIEW guarded WITH (security_barrier) AS SELECT a, b FROM paged WHERE f > 0;
SELECT agrees('SELECT * FROM guarded WHERE (a, b) > (190, 5)');
DROP TABLE paged, parts CASCADE;
DROP FUNCTION agrees, by_table_too;

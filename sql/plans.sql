-- The planner chooses sherman where it would choose btree: no setting but the costs leads it.
SET sherman.enable_lookahead = off; -- the plans are those with any memory node
\set VERBOSITY terse
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/agrees.psql'
\i :include
CREATE TABLE plan (id int, n int, u uuid, t text COLLATE "C", flag boolean);
INSERT INTO plan SELECT i, (i * 7919) % 20000, md5(i::text)::uuid, md5(i::text), i % 100 = 0 FROM generate_series(1, 20000) i;
CREATE INDEX plan_n ON plan USING sherman (n);
CREATE INDEX plan_u ON plan USING sherman (u);
CREATE INDEX plan_t ON plan USING sherman (t);
CREATE INDEX plan_flag ON plan USING sherman (id) WHERE flag;
CREATE INDEX plan_two ON plan USING sherman (flag, n DESC);
VACUUM ANALYZE plan;

-- EXPLAIN without what differs between machines, and whether the plan gives what a sequential scan does
\set include :abs_srcdir '/sql/include/plan_lines.psql'
\i :include
CREATE FUNCTION shape(query text) RETURNS SETOF text LANGUAGE sql AS 'SELECT plan_lines(query) UNION ALL SELECT by_table_too(query)';

SELECT * FROM shape('SELECT * FROM plan WHERE n = 5');
SELECT * FROM shape('SELECT * FROM plan WHERE u = md5(''1'')::uuid');
SELECT * FROM shape('SELECT * FROM plan WHERE t LIKE ''abc%''');
SELECT * FROM shape('SELECT * FROM plan WHERE n BETWEEN 5 AND 9 ORDER BY n');
SELECT * FROM shape('SELECT * FROM plan ORDER BY n DESC LIMIT 5');
SELECT * FROM shape('SELECT * FROM plan WHERE t > ''5'' ORDER BY t LIMIT 5');
SELECT * FROM shape('SELECT max(n) FROM plan');
SELECT * FROM shape('SELECT * FROM plan WHERE n IN (1, 2, 3)');
SELECT * FROM shape('SELECT * FROM plan WHERE n < 300');
SELECT * FROM shape('SELECT * FROM plan WHERE n = 3 OR t = ''x''');
SELECT * FROM shape('SELECT * FROM plan WHERE flag AND id = 100');
SELECT * FROM shape('SELECT * FROM plan WHERE n IS NULL');
SELECT * FROM shape('SELECT * FROM plan WHERE flag ORDER BY n DESC LIMIT 3');
SELECT * FROM shape('SELECT * FROM plan a JOIN plan b ON b.u = a.u WHERE a.n < 5');
SELECT * FROM shape('SELECT * FROM plan ORDER BY n, id LIMIT 3');
-- a sequential scan where most rows are wanted
SELECT * FROM shape('SELECT * FROM plan WHERE n > 100');

-- the same costs as btree's, but for the true sizes: what btree is chosen for, sherman is
CREATE FUNCTION cost_of(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan->0->'Plan'->>'Total Cost';
END $$;
CREATE TABLE twin AS SELECT * FROM plan;
CREATE INDEX twin_n ON twin (n);
CREATE INDEX twin_u ON twin (u);
CREATE INDEX twin_t ON twin (t);
VACUUM ANALYZE twin;
SELECT query, cost_of(format(query, 'plan')) / cost_of(format(query, 'twin')) BETWEEN 0.7 AND 1.2 AS alike
FROM (VALUES ('SELECT * FROM %s WHERE n = 5'), ('SELECT * FROM %s WHERE n < 400 ORDER BY n'),
	('SELECT * FROM %s ORDER BY n LIMIT 10'), ('SELECT * FROM %s WHERE u < ''01000000-0000-0000-0000-000000000000'''),
	('SELECT * FROM %s WHERE t < ''01''')) v(query);

-- the main fork is one page, whatever the index's size
SELECT relname, reltuples FROM pg_class WHERE relname IN ('plan_n', 'plan_u', 'plan_flag') ORDER BY 1;
SELECT pg_relation_size('plan_n') = current_setting('block_size')::int AS one_page, sherman_relation_size('plan_n') > 300000 AS memory;

-- no column is needed, the table is all-visible: an index-only scan
CREATE TABLE bare (n int);
INSERT INTO bare SELECT i % 100 FROM generate_series(1, 20000) i;
CREATE INDEX bare_n ON bare USING sherman (n);
VACUUM ANALYZE bare;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM bare;
SELECT count(*) FROM bare;
EXPLAIN (COSTS OFF) SELECT 1 FROM bare LIMIT 1;
SELECT 1 FROM bare LIMIT 1;
SELECT count(*) FROM generate_series(1, 3) i, LATERAL (SELECT count(*) FROM bare WHERE i > 0) s;
SELECT cost_of('SELECT 1 FROM bare') / cost_of('SELECT n FROM bare ORDER BY n') BETWEEN 0.95 AND 1.05 AS alike;
RESET enable_seqscan;
RESET enable_bitmapscan;
EXPLAIN (COSTS OFF) SELECT count(*) FROM bare;

DROP TABLE plan, twin, bare;
DROP FUNCTION shape, cost_of, agrees, by_table_too, plan_nodes, plan_lines;

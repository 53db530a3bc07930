-- What the planner does with an ordered index beyond looking up rows. Each plan's rows are compared with a sequential scan's.
SET sherman.enable_lookahead = off; -- the plans are those with any memory node
\set VERBOSITY terse
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/agrees.psql'
\i :include
-- what else a plan may be does not matter here
SET enable_bitmapscan = off;
SET enable_seqscan = off;
SET enable_indexonlyscan = off;
SET max_parallel_workers_per_gather = 0;
\set include :abs_srcdir '/sql/include/plan_lines.psql'
\i :include
CREATE FUNCTION shape(query text) RETURNS SETOF text LANGUAGE sql AS 'SELECT plan_lines(query) UNION ALL SELECT by_table_too(query)';
CREATE TABLE orders (id int, customer int, placed date, paid boolean, note text COLLATE "C");
INSERT INTO orders SELECT i, i % 500, date '2026-01-01' + i / 40, i % 20 = 0, 'note ' || i FROM generate_series(1, 10000) i;
INSERT INTO orders VALUES (10001, NULL, NULL, NULL, NULL), (10002, NULL, '2026-03-01', true, 'none');
CREATE INDEX orders_id ON orders USING sherman (id);
CREATE INDEX orders_customer ON orders USING sherman (customer, placed DESC NULLS LAST);
CREATE INDEX orders_placed ON orders USING sherman (placed);
CREATE INDEX orders_paid ON orders USING sherman (paid, id);
CREATE TABLE customers (id int, name text COLLATE "C", parent int);
INSERT INTO customers SELECT i, 'customer ' || i, i / 10 FROM generate_series(0, 499) i;
CREATE INDEX customers_id ON customers USING sherman (id);
CREATE INDEX customers_name ON customers USING sherman (lower(name));
CREATE INDEX customers_parent ON customers USING sherman (parent) WHERE parent > 30;
VACUUM ANALYZE orders, customers;

-- boolean columns
SELECT * FROM shape('SELECT id FROM orders WHERE paid AND id < 500');
SELECT * FROM shape('SELECT id FROM orders WHERE NOT paid AND id < 50');
SELECT * FROM shape('SELECT id FROM orders WHERE paid IS TRUE AND id BETWEEN 40 AND 90');
SELECT * FROM shape('SELECT * FROM orders WHERE paid ORDER BY id DESC LIMIT 3');

-- the least and the greatest
SELECT * FROM shape('SELECT min(id), max(id) FROM orders');
SELECT * FROM shape('SELECT max(placed) FROM orders WHERE customer = 7');
SELECT * FROM shape('SELECT min(id) FROM orders WHERE id > 777');

-- order: plain, either way, by the front of it, incrementally
SELECT * FROM shape('SELECT * FROM orders ORDER BY customer, placed DESC NULLS LAST, id LIMIT 5');
SELECT * FROM shape('SELECT customer, placed FROM orders ORDER BY customer DESC, placed NULLS FIRST LIMIT 5');
SELECT * FROM shape('SELECT placed, id FROM orders ORDER BY placed, id LIMIT 5');
SELECT * FROM shape('SELECT placed, note FROM orders WHERE placed > ''2026-05-01'' ORDER BY placed, note DESC LIMIT 50');
SELECT plan_nodes(query), by_table_too(query) FROM (VALUES ('SELECT DISTINCT ON (customer) customer, placed FROM orders WHERE customer < 3 ORDER BY customer, placed DESC NULLS LAST')) v(query);
SELECT * FROM shape('SELECT customer, count(*) FROM orders WHERE customer < 4 GROUP BY customer ORDER BY customer');

-- merge joins: on the inner side marks are set and returned to wherever the outer side has a value twice
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_sort = off;
SET enable_material = off;
SELECT * FROM shape('SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.id WHERE c.id < 20');
SELECT * FROM shape('SELECT a.id, b.id FROM orders a JOIN orders b ON a.customer = b.customer AND a.customer < 5');
SELECT * FROM shape('SELECT a.id, b.id FROM orders a JOIN orders b ON a.placed = b.placed WHERE a.placed < ''2026-01-05''');
SELECT * FROM shape('SELECT c.id, o.id FROM customers c LEFT JOIN orders o ON o.customer = c.id AND o.customer < 3 WHERE c.id < 6');
SELECT ltrim(shape, ' ->') AS by FROM shape('SELECT count(*) FROM customers c WHERE EXISTS (SELECT FROM orders o WHERE o.customer = c.id)') WHERE shape ~ 'Scan|agree';
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_sort;
RESET enable_material;

-- nested loops: the inner side is looked up for each row, by one column or an array, once for equal ones
SELECT * FROM shape('SELECT o.id, c.name FROM orders o JOIN customers c ON c.id = o.customer WHERE o.id = 100');
SELECT * FROM shape('SELECT * FROM customers c, LATERAL (SELECT placed FROM orders o WHERE o.customer = c.id ORDER BY placed DESC NULLS LAST LIMIT 1) l WHERE c.id < 4');
SET enable_bitmapscan = on;
SELECT * FROM shape('SELECT count(*) FROM orders WHERE id = ANY (ARRAY[5, 7, 7, 10000, NULL]) OR customer = 499');
SET enable_bitmapscan = off;

-- partial and expression indexes, and the statistics of their expressions
SELECT * FROM shape('SELECT * FROM customers WHERE lower(name) = ''customer 17''');
SELECT * FROM shape('SELECT * FROM customers WHERE lower(name) LIKE ''customer 12%'' ORDER BY lower(name)');
SELECT * FROM shape('SELECT * FROM customers WHERE parent = 33');
SELECT * FROM shape('SELECT * FROM customers WHERE parent > 40 ORDER BY parent');
SELECT * FROM shape('SELECT * FROM customers WHERE parent = 3');
SELECT count(*) > 0 AS has_statistics FROM pg_stats WHERE tablename = 'customers_name';

-- partitions: each by its own index, in order without a sort, joined and counted one by one
CREATE TABLE log (at int, who int) PARTITION BY RANGE (at);
CREATE TABLE log1 PARTITION OF log FOR VALUES FROM (0) TO (1000);
CREATE TABLE log2 PARTITION OF log FOR VALUES FROM (1000) TO (2000);
CREATE TABLE log3 PARTITION OF log FOR VALUES FROM (2000) TO (3000);
CREATE INDEX log_at ON log USING sherman (at);
CREATE INDEX log_who ON log USING sherman (who, at);
INSERT INTO log SELECT i, i % 77 FROM generate_series(0, 2999) i;
VACUUM ANALYZE log;
SELECT * FROM shape('SELECT * FROM log ORDER BY at LIMIT 3');
SELECT * FROM shape('SELECT * FROM log WHERE at > 1990 ORDER BY at DESC LIMIT 15');
SELECT * FROM shape('SELECT * FROM log WHERE who = 5 ORDER BY who, at');
SELECT * FROM shape('SELECT max(at) FROM log');
SET enable_partitionwise_join = on;
SET enable_partitionwise_aggregate = on;
SET enable_hashjoin = off;
SELECT * FROM shape('SELECT a.at, b.who FROM log a JOIN log b USING (at) WHERE a.who = 3');
RESET enable_hashjoin;
RESET enable_partitionwise_join;
RESET enable_partitionwise_aggregate;

-- the cost of an index follows its size: where an index is a hundred times the other, its whole scan costs that
CREATE FUNCTION cost_of(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true);
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan->0->'Plan'->>'Total Cost';
END $$;
CREATE TABLE small AS SELECT i AS id FROM generate_series(1, 200) i;
CREATE TABLE large AS SELECT i AS id FROM generate_series(1, 20000) i;
CREATE INDEX small_id ON small USING sherman (id);
CREATE INDEX large_id ON large USING sherman (id);
VACUUM ANALYZE small, large;
SELECT cost_of('SELECT * FROM large ORDER BY id') / cost_of('SELECT * FROM small ORDER BY id') BETWEEN 25 AND 120 AS by_size,
	cost_of('SELECT * FROM large WHERE id = 5') / cost_of('SELECT * FROM small WHERE id = 5') BETWEEN 1 AND 2 AS by_height;
-- a column without an equality is skipped through where it has few values, as 18's btree does; else a scan reads all between its bounds
CREATE TABLE pair AS SELECT i % 4 AS a, i AS b, i % 2 AS c FROM generate_series(1, 20000) i;
CREATE INDEX pair_abc ON pair USING sherman (a, b, c);
VACUUM ANALYZE pair;
SELECT condition, cost_of('SELECT * FROM pair WHERE ' || condition) / cost_of('SELECT * FROM pair WHERE a = 1 AND b = 5') > 20 AS reads_much
FROM unnest('{b = 5,a >= 0 AND b = 5,a IS NOT NULL AND b = 5,a = 1 AND c = 1,a IS NULL AND b = 5,a = 1 AND b < 9 AND c = 1,a = ANY (ARRAY[1\,2]) AND b = 5}'::text[]) condition;
DROP TABLE orders, customers, log, small, large, pair;
DROP FUNCTION shape, cost_of, agrees, by_table_too, plan_nodes, plan_lines;

-- What the planner concludes from a unique index: no look at what may not matter, one row at most for each.
SET enable_indexonlyscan = off;
SET max_parallel_workers_per_gather = 0;
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/plan_lines.psql'
\i :include
CREATE TABLE item (id int NOT NULL, kind int, code text COLLATE "C", flag boolean);
CREATE TABLE kind (id int, other int, name text COLLATE "C");
INSERT INTO item SELECT i, i % 50, 'c' || i, i % 2 = 0 FROM generate_series(1, 2000) i;
INSERT INTO kind SELECT i, i * 2, 'kind ' || i FROM generate_series(0, 99) i;
CREATE UNIQUE INDEX item_id ON item USING sherman (id);
CREATE UNIQUE INDEX kind_id ON kind USING sherman (id);
CREATE UNIQUE INDEX kind_two ON kind USING sherman (other, name DESC);
CREATE UNIQUE INDEX kind_partial ON kind USING sherman (name) WHERE other > 10;
CREATE UNIQUE INDEX kind_lower ON kind USING sherman (lower(name));
VACUUM ANALYZE item, kind;

-- an outer join that adds neither rows nor columns is left out
EXPLAIN (COSTS OFF) SELECT i.* FROM item i LEFT JOIN kind k ON k.id = i.kind;
EXPLAIN (COSTS OFF) SELECT i.* FROM item i LEFT JOIN kind k ON k.other = i.kind AND k.name = i.code;
EXPLAIN (COSTS OFF) SELECT i.id FROM item i LEFT JOIN kind k ON k.id = i.kind::bigint;
EXPLAIN (COSTS OFF) SELECT count(*) FROM item i LEFT JOIN (SELECT DISTINCT id FROM kind) k ON k.id = i.kind;
-- and stays where a row may have two: half of the key, or an index that has not all rows
EXPLAIN (COSTS OFF) SELECT i.* FROM item i LEFT JOIN kind k ON k.other = i.kind;
EXPLAIN (COSTS OFF) SELECT i.* FROM item i LEFT JOIN kind k ON k.name = i.code;

-- inner and semi joins on the whole key look for one row
CREATE FUNCTION inner_unique(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	found text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) ' || query LOOP
		IF line ~ 'Join|Nested Loop|Inner Unique' THEN
			found := found || regexp_replace(line, '^[ >-]*', ' / ');
		END IF;
	END LOOP;
	RETURN found;
END $$;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT inner_unique('SELECT * FROM item i JOIN kind k ON k.id = i.kind WHERE i.id < 10');
SELECT inner_unique('SELECT * FROM item i JOIN kind k ON k.other = i.kind WHERE i.id < 10');
SELECT inner_unique('SELECT * FROM item i JOIN kind k ON k.other = i.kind AND k.name = i.code WHERE i.id < 10');
SELECT inner_unique('SELECT * FROM item i WHERE i.id < 10 AND EXISTS (SELECT FROM kind k WHERE k.id = i.kind)');
RESET enable_hashjoin;
RESET enable_mergejoin;
SELECT count(*), sum(i.id) FROM item i LEFT JOIN kind k ON k.id = i.kind;
SELECT count(*), sum(i.id) FROM item i WHERE i.kind IN (SELECT id FROM kind WHERE other < 50);

-- one row by the whole key; its values differ
EXPLAIN (COSTS OFF) SELECT * FROM item WHERE id = 5;
SELECT plan_nodes('SELECT DISTINCT id FROM item ORDER BY id LIMIT 5');
DROP TABLE item, kind;
DROP FUNCTION inner_unique, plan_nodes, plan_lines;

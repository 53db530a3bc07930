-- Rows beyond the histogram: the planner knows the least and the greatest value of an index's first column, as it does with btree.
SET client_min_messages = warning;
SET enable_seqscan = off;
CREATE SCHEMA extremes;
SET search_path = extremes, public;
-- estimate(query): rows that the planner expects
CREATE FUNCTION estimate(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan->0->'Plan'->>'Plan Rows';
END $$;
-- trips(query): round trips that planning it costs, while no end of the index is known
CREATE FUNCTION trips(query text, index regclass) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	before bigint;
BEGIN
	INSERT INTO s (id) VALUES (60000);
	before := (SELECT round_trips FROM sherman_index_counters(index));
	PERFORM estimate(query);
	RETURN (SELECT round_trips FROM sherman_index_counters(index)) - before;
END $$;
CREATE TABLE b (id int, at timestamptz, word text COLLATE "C", part int, amount numeric, lone int);
INSERT INTO b SELECT i, '2026-01-01'::timestamptz + i * interval '1 minute', 'w' || lpad(i::text, 6, '0'), i, i / 8.0, i FROM generate_series(10000, 30000) i;
-- the same pages: CREATE TABLE AS leaves empty ones behind the rows from 16 on
CREATE TABLE s (LIKE b);
INSERT INTO s SELECT * FROM b;
ALTER TABLE b SET (autovacuum_enabled = off);
ALTER TABLE s SET (autovacuum_enabled = off);
CREATE FUNCTION make(name text, method text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE INDEX %1$s_id ON %1$s USING %2$s (id)', name, method);
	EXECUTE format('CREATE INDEX %1$s_at ON %1$s USING %2$s (at DESC, id)', name, method);
	EXECUTE format('CREATE INDEX %1$s_word ON %1$s USING %2$s (word NULLS FIRST)', name, method);
	EXECUTE format('CREATE INDEX %1$s_part ON %1$s USING %2$s (part) WHERE id > 0', name, method);
	EXECUTE format('CREATE INDEX %1$s_amount ON %1$s USING %2$s (id, amount)', name, method);
END $$;
SELECT make('b', 'btree'), make('s', 'sherman');
ANALYZE b, s;
INSERT INTO b SELECT i, '2026-01-01'::timestamptz + i * interval '1 minute', 'w' || lpad(i::text, 6, '0'), i, i / 8.0, i FROM generate_series(5001, 9999) i;
INSERT INTO b SELECT i, '2026-01-01'::timestamptz + i * interval '1 minute', 'w' || lpad(i::text, 6, '0'), i, i / 8.0, i FROM generate_series(30001, 36000) i;
INSERT INTO b SELECT FROM generate_series(1, 200);
INSERT INTO s SELECT * FROM b EXCEPT SELECT * FROM s;
INSERT INTO s SELECT FROM generate_series(1, 199);
SELECT (SELECT count(*) FROM b) = (SELECT count(*) FROM s) AS same;

CREATE TABLE queries (n int, condition text);
INSERT INTO queries VALUES (1, 'id > 29990'), (2, 'id >= 33000'), (3, 'id > 40000'), (4, 'id < 10010'), (5, 'id < 6000'), (6, 'id <= 4000'), (7, 'id > 20000'),
	(8, 'id BETWEEN 32000 AND 35000'), (9, 'id = 35000'), (10, 'at > ''2026-01-01''::timestamptz + interval ''32000 minutes'''), (11, 'at < ''2026-01-06'''),
	(12, 'word > ''w032000'''), (13, 'word < ''w007000'''), (14, 'part > 33000'), (15, 'amount > 4000'), (16, 'lone > 33000'), (17, '33000 < id'),
	(18, 'id > (SELECT 33000)'), (19, 'id > 33000::bigint'), (20, 'id + 1 > 33000');
CREATE VIEW compared AS
	SELECT n, condition, btree, sherman, abs(btree - sherman) <= greatest(10, btree / 20) AS alike
	FROM (SELECT n, condition, estimate('SELECT * FROM b WHERE ' || condition) AS btree, estimate('SELECT * FROM s WHERE ' || condition) AS sherman FROM queries) q;
SELECT condition, alike, CASE WHEN NOT alike THEN btree || ', ' || sherman END AS rows FROM compared ORDER BY n;
SELECT n, condition, sherman > 50 AS many FROM compared WHERE n IN (1, 2, 4, 10) ORDER BY n;
-- joins follow
CREATE TABLE few (k int, v int);
INSERT INTO few SELECT i, i FROM generate_series(30001, 36000) i;
ANALYZE few;
CREATE FUNCTION joined(name text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE format('EXPLAIN (FORMAT JSON) SELECT * FROM %s a JOIN few ON k = lone WHERE id > 30000', name) INTO plan;
	RETURN plan->0->'Plan'->>'Node Type';
END $$;
RESET enable_seqscan;
SELECT joined('b') = joined('s') AS same, joined('s') LIKE 'Nested%' AS nested;
SET enable_seqscan = off;

-- What was deleted at the end does not count, before VACUUM and behind it.
INSERT INTO b (id) SELECT generate_series(90001, 90020);
INSERT INTO s (id) SELECT generate_series(90001, 90020);
DELETE FROM b WHERE id IN (SELECT generate_series(90001, 90020));
DELETE FROM s WHERE id IN (SELECT generate_series(90001, 90020));
SELECT condition FROM compared WHERE NOT alike ORDER BY n;
SELECT estimate('SELECT * FROM s WHERE id > 40000') < 20 AS few;
DELETE FROM b WHERE id > 34000 OR id < 6000;
DELETE FROM s WHERE id > 34000 OR id < 6000;
VACUUM b, s;
INSERT INTO b (id) VALUES (20000);
INSERT INTO s (id) VALUES (20000);
SELECT condition FROM compared WHERE NOT alike ORDER BY n;
INSERT INTO b (id) SELECT generate_series(50000, 50010);
INSERT INTO s (id) SELECT generate_series(50000, 50010);
SELECT condition FROM compared WHERE NOT alike ORDER BY n;
ANALYZE b, s;
SELECT condition FROM compared WHERE NOT alike ORDER BY n;

-- Plans that do not ask for it read no leaf for it, and those that do read two.
INSERT INTO s (id) VALUES (60000);
SELECT estimate('SELECT * FROM s WHERE id = 5');
SELECT condition, trips('SELECT * FROM s WHERE ' || condition, 's_id') AS trips
FROM unnest('{id = 7000,id IS NULL,word > ''w'',id > 20000,id < 25000,id BETWEEN 15000 AND 16000,id > (SELECT 1)}'::text[]) condition;
SELECT trips('SELECT * FROM s WHERE id > 59000', 's_id') <= 6 AS few;

-- Who may not read the column learns nothing of it, and plans as ever.
CREATE ROLE regress_extremes_user;
GRANT USAGE ON SCHEMA extremes TO regress_extremes_user;
GRANT SELECT (word) ON s, b TO regress_extremes_user;
CREATE VIEW narrow WITH (security_barrier) AS SELECT word FROM s WHERE id > 59000;
GRANT SELECT ON narrow, queries TO regress_extremes_user;
SET ROLE regress_extremes_user;
SELECT estimate('SELECT word FROM s WHERE word > ''w032000''') = estimate('SELECT word FROM b WHERE word > ''w032000''') AS same;
SELECT count(*) FROM narrow;
SELECT count(id) FROM s WHERE id > 50000;
RESET ROLE;
INSERT INTO s (id, word) SELECT i, 'x' FROM generate_series(70001, 74000) i;
GRANT SELECT ON s TO regress_extremes_user;
CREATE POLICY readable ON s USING (word <> 'y');
ALTER TABLE s ENABLE ROW LEVEL SECURITY;
SELECT estimate('SELECT * FROM s WHERE id > 69000') > 10 AS many;
SET ROLE regress_extremes_user;
SELECT estimate('SELECT * FROM s WHERE id > 69000') > 10 AS many;
RESET ROLE;
-- inheritance and partitions: by child
CREATE TABLE parted (k int, v int) PARTITION BY RANGE (k);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (100000);
CREATE INDEX ON parted USING sherman (k);
INSERT INTO parted SELECT i, i FROM generate_series(1, 10000) i;
ANALYZE parted;
INSERT INTO parted SELECT i, i FROM generate_series(10001, 14000) i;
SELECT estimate('SELECT * FROM parted WHERE k > 10000') > 20 AS many;
-- an index that cannot be used is not asked, and an empty one has no ends
CREATE TABLE empty (k int, v int);
INSERT INTO empty SELECT i, i FROM generate_series(1, 1000) i;
ANALYZE empty;
DELETE FROM empty;
VACUUM (TRUNCATE off) empty;
CREATE INDEX ON empty USING sherman (k);
CREATE INDEX ON empty USING btree (v);
SELECT estimate('SELECT * FROM empty WHERE k > 990') = estimate('SELECT * FROM empty WHERE v > 990') AS same;
SET client_min_messages = error;
DROP SCHEMA extremes CASCADE;
DROP ROLE regress_extremes_user;

-- Core's cost estimate of BRIN indexes asks for a column's statistics, too, and does not say of which relation.
CREATE TABLE blocks (id int, word text);
INSERT INTO blocks SELECT g, md5(g::text) FROM generate_series(1, 1000) g;
CREATE INDEX blocks_id ON blocks USING brin (id);
CREATE INDEX blocks_word ON blocks USING brin (word);
ANALYZE blocks;
SELECT count(*) FROM blocks WHERE id > 900;
SELECT count(*) FROM blocks WHERE id > 900 AND word > '';
DROP TABLE blocks;

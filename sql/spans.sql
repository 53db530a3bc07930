--
-- Spans: keys of = ANY that lie in one leaf are read together. What lies between them is not returned, and each entry comes once, whichever
-- way the scan goes and whoever takes part.
--
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/compare.psql'
SET client_min_messages = warning;
SET jit = off;
CREATE SCHEMA test_spans;
SET search_path = test_spans, public;
\i :include

-- r: three times each (a, b, c) but for every seventh a, so that some keys have no row, and some more than a leaf has room for.
CREATE TABLE r AS
SELECT row_number() OVER () AS id, i / 60 AS a, i % 60 / 6 AS b, i % 6 AS c, 'a prefix that all keys have ' || lpad((i / 3)::text, 8, '0') AS t
FROM generate_series(1, 12000) i, generate_series(1, 3) copies WHERE i / 60 % 7 <> 3;
INSERT INTO r SELECT 100000 + i, 90, 5, i % 6, 'a prefix that all keys have 00001800' FROM generate_series(1, 2000) i;
INSERT INTO r SELECT 200000 + i, nullif(i % 200, 5), nullif(i % 10, 3), NULL, NULL FROM generate_series(1, 600) i;
ANALYZE r;
CREATE FUNCTION elements(low int, high int, step int) RETURNS text LANGUAGE sql AS
$$ SELECT '''' || array_agg(i)::text || '''::int[]' FROM generate_series(low, high, step) i $$;
CREATE TABLE conditions (c text);
INSERT INTO conditions VALUES
	('a = ANY (' || elements(0, 199, 1) || ')'),
	('a = ANY (' || elements(80, 120, 2) || ')'),
	('a = ANY (' || elements(-50, 300, 9) || ')'),
	('a = ANY ((' || elements(85, 95, 1) || ' || NULL::int)::int8[] || 5000000000 || -5000000000)'),
	('a = ANY (' || elements(85, 95, 3) || '::int2[])'),
	('a = ANY (' || elements(0, 199, 1) || ') AND b = ANY (''{1,2,5,8}'')'),
	('a = ANY (' || elements(0, 199, 3) || ') AND b = 5 AND c = ANY (''{0,2,5}'')'),
	('a = ANY (' || elements(80, 199, 1) || ') AND b = 4'),
	('a = ANY (' || elements(80, 199, 1) || ') AND b IS NULL'),
	('a = ANY (' || elements(80, 199, 1) || ') AND b IS NULL AND c = ANY (''{1,3}'')'),
	('a = ANY (' || elements(80, 199, 1) || ') AND b > 4'),
	('a = ANY (' || elements(80, 199, 1) || ') AND b >= 4 AND b < 6'),
	('a = ANY (' || elements(80, 199, 1) || ') AND b < 5000000000'),
	('a = ANY (' || elements(80, 199, 1) || ') AND b IS NOT NULL'),
	('a = ANY (' || elements(80, 100, 1) || ') AND b = ANY (''{4,5}'') AND c > 2'),
	('a = 90 AND b = ANY (''{9,1,2,4,8}'')'),
	('a = 90 AND b = ANY (''{9,1,5,4,8}'') AND c = ANY (''{0,5}'')'),
	('a IS NULL AND b = ANY (''{9,1,2,4,8}'')'),
	('a = ANY (' || elements(80, 199, 1) || ') AND a % 3 = 1'),
	('a = ANY (' || elements(80, 199, 1) || ') AND c = 3');
CREATE VIEW results AS SELECT count(*) AS queries,
	bool_and(compare('r', c, 'a, b, c', 'a, b, c, ctid')) AS forward,
	bool_and(compare('r', c, 'a DESC, b DESC, c DESC', 'a DESC, b DESC, c DESC, ctid DESC')) AS backward,
	bool_and(compare_bitmap('r', c)) AS bitmap
FROM conditions;
CREATE INDEX r_abc ON r USING sherman (a, b, c);
TABLE results;
DROP INDEX r_abc;
CREATE INDEX r_abc ON r USING sherman (a DESC, b NULLS FIRST, c DESC);
SELECT bool_and(compare('r', c, 'a DESC, b NULLS FIRST, c DESC', 'a DESC, b NULLS FIRST, c DESC, ctid')) AS forward,
	bool_and(compare('r', c, 'a, b DESC NULLS LAST, c', 'a, b DESC NULLS LAST, c, ctid DESC')) AS backward,
	bool_and(compare_bitmap('r', c)) AS bitmap
FROM conditions;
-- Keys of more than eight bytes, which are tested by their operators.
DROP INDEX r_abc;
ALTER TABLE r ALTER a TYPE numeric, ALTER b TYPE numeric;
CREATE INDEX r_abc ON r USING sherman (a, b, c);
UPDATE conditions SET c = replace(replace(c, 'int[]', 'numeric[]'), 'int2[]', 'numeric[]') WHERE c NOT LIKE '%int8%';
TABLE results;

-- Text whose first bytes are the same in all keys.
CREATE INDEX r_t ON r USING sherman (t);
SELECT bool_and(compare('r', c, 't', 't, ctid')) AS forward, bool_and(compare('r', c, 't DESC', 't DESC, ctid DESC')) AS backward,
	bool_and(compare_bitmap('r', c)) AS bitmap
FROM (SELECT 't = ANY (''' || array_agg(t)::text || ''')' AS c
	FROM (SELECT step, 'a prefix that all keys have ' || lpad(g::text, 8, '0') AS t
		FROM unnest(ARRAY[1, 3, 40]) step, generate_series(1500, 2500, step) g) s GROUP BY step) conditions;

-- Back and forth over several keys of a leaf: what lies between is passed over in both directions.
SET enable_sort = off; SET enable_seqscan = off; SET enable_bitmapscan = off;
CREATE TABLE w AS SELECT i AS k FROM generate_series(1, 3000) i WHERE i % 50 <> 7;
CREATE INDEX w_k ON w USING sherman (k);
VACUUM ANALYZE w;
SELECT array_agg(g)::text AS list FROM generate_series(1, 2999, 2) g \gset
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT k FROM w WHERE k = ANY (:'list'::int[]) ORDER BY k;
MOVE 5 IN c;
FETCH BACKWARD 7 FROM c;
FETCH FORWARD 3 FROM c;
MOVE FORWARD 700 IN c;
FETCH BACKWARD 2 FROM c;
MOVE BACKWARD 600 IN c;
FETCH FORWARD 2 FROM c;
MOVE FORWARD ALL IN c;
FETCH BACKWARD 2 FROM c;
MOVE BACKWARD ALL IN c;
FETCH FORWARD 4 FROM c;
COMMIT;

-- The same where some leaves end with a key that lies out of line, so that only from the other side it is known which keys begin in them.
CREATE TABLE mixed AS SELECT lpad(i::text, 40, '0') || CASE WHEN i * 7919 % 3 = 0 THEN repeat(md5(i::text), 8) ELSE '' END AS k FROM generate_series(1, 3000) i;
CREATE INDEX mixed_k ON mixed USING sherman (k);
VACUUM ANALYZE mixed;
CREATE FUNCTION walk(list text[], OUT steps int, OUT wrong int) LANGUAGE plpgsql AS $$
DECLARE
	c refcursor;
	expected text[] := ARRAY(SELECT k FROM mixed WHERE k || '' = ANY (list) ORDER BY k || '');
	k text;
	place int := 0;
BEGIN
	steps := 0;
	wrong := 0;
	OPEN c SCROLL FOR SELECT m.k FROM mixed m WHERE m.k = ANY (list) ORDER BY m.k;
	FOR i IN 1 .. 120 LOOP
		FOR forth IN 1 .. 1 + i * 31 % 47 LOOP
			EXIT WHEN place >= cardinality(expected);
			FETCH NEXT FROM c INTO k;
			place := place + 1;
			steps := steps + 1;
			wrong := wrong + (k IS DISTINCT FROM expected[place])::int;
		END LOOP;
		FOR back IN 1 .. 1 + i * 17 % 41 LOOP
			EXIT WHEN place <= 1;
			FETCH PRIOR FROM c INTO k;
			place := place - 1;
			steps := steps + 1;
			wrong := wrong + (k IS DISTINCT FROM expected[place])::int;
		END LOOP;
	END LOOP;
END $$;
SELECT steps > 3000 AS many, wrong FROM walk(ARRAY(SELECT k FROM mixed WHERE substr(k, 1, 40)::int % 2 = 0 UNION ALL SELECT lpad(i::text, 40, '0') || 'none' FROM generate_series(1, 3000, 3) i));

-- Marks: the inner side goes back to one for each duplicate.
SET enable_hashjoin = off; SET enable_nestloop = off; SET enable_material = off;
CREATE TABLE twice AS SELECT k FROM w, generate_series(1, 3);
CREATE INDEX twice_k ON twice USING sherman (k);
ANALYZE twice;
SELECT count(*), sum(a.k), count(DISTINCT a.k)
FROM (SELECT k FROM twice WHERE k = ANY (:'list'::int[]) ORDER BY k) a JOIN (SELECT k FROM twice WHERE k = ANY (:'list'::int[]) ORDER BY k) b USING (k);
RESET enable_hashjoin; RESET enable_nestloop; RESET enable_material;

-- Each participant takes leaves, and with them the keys that begin there.
ALTER TABLE r SET (parallel_workers = 3);
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_index_scan_size = 0; SET min_parallel_table_scan_size = 0;
CREATE FUNCTION parallel_rows(condition text, OUT by_index bigint, OUT by_table bigint) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('enable_indexscan', 'on', true), set_config('enable_seqscan', 'off', true), set_config('max_parallel_workers_per_gather', '3', true);
	EXECUTE 'SELECT sum(hashint8(id)::bigint) + count(*) FROM r WHERE ' || condition INTO by_index;
	PERFORM set_config('enable_indexscan', 'off', true), set_config('enable_seqscan', 'on', true), set_config('max_parallel_workers_per_gather', '0', true);
	EXECUTE 'SELECT sum(hashint8(id)::bigint) + count(*) FROM r WHERE ' || condition INTO by_table;
END $$;
SELECT count(*) AS queries, bool_and(by_index IS NOT DISTINCT FROM by_table) AS same FROM conditions, parallel_rows(c), generate_series(1, 3);
SET cpu_tuple_cost = 1;
ALTER TABLE r ALTER a TYPE int, ALTER b TYPE int;
UPDATE conditions SET c = replace(c, 'numeric[]', 'int[]');
SELECT count(*) AS queries, bool_and(by_index IS NOT DISTINCT FROM by_table) AS same FROM conditions, parallel_rows(c), generate_series(1, 3);
-- Keys out of line: what another participant has left is not known to be behind a key.
ALTER TABLE r ALTER t TYPE text USING repeat(t, 8);
SELECT count(*) AS queries, bool_and(by_index IS NOT DISTINCT FROM by_table) AS same
FROM (SELECT 't = ANY (''' || array_agg(repeat(t, 8))::text || ''')' AS c
	FROM (SELECT step, 'a prefix that all keys have ' || lpad(g::text, 8, '0') AS t
		FROM unnest(ARRAY[40, 100]) step, generate_series(1500, 2500, step) g) s GROUP BY step) long_keys, parallel_rows(c), generate_series(1, 2);
RESET cpu_tuple_cost;

-- Neighboring keys are one search, and each that lies apart is one.
RESET enable_indexscan;
SET enable_indexonlyscan = off;
SET max_parallel_workers_per_gather = 0;
CREATE FUNCTION searches(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	before bigint := pg_stat_get_xact_numscans('w_k'::regclass);
BEGIN
	EXECUTE query;
	RETURN pg_stat_get_xact_numscans('w_k'::regclass) - before;
END $$;
SELECT searches('SELECT sum(k) FROM w WHERE k = ANY (''' || :'list' || '''::int[])') AS neighbors,
	searches('SELECT sum(k) FROM (SELECT k FROM w WHERE k = ANY (''' || :'list' || '''::int[]) ORDER BY k DESC) s') AS backward,
	searches('SELECT sum(k) FROM w WHERE k = ANY (''{1,1000,2000,3000}''::int[])') AS apart;

SET client_min_messages = error;
DROP SCHEMA test_spans CASCADE;

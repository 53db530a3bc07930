--
-- = ANY and its kin: in index order, without duplicates, with NULLs, beyond the range of the column, on any column.
--
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/compare.psql'
SET client_min_messages = warning;
SET jit = off;
CREATE SCHEMA test_arrays;
SET search_path = test_arrays, public;
\i :include

CREATE TABLE r (id int, a int4, b text COLLATE "C", c date, d text COLLATE "en-x-icu");
INSERT INTO r
SELECT i, nullif(i * 7919 % 23, 22) - 5, repeat(chr(97 + i * 31 % 5), i * 17 % 11), '2020-01-01'::date + i * 13 % 9,
	chr(65 + i * 37 % 26)
FROM generate_series(1, 2000) i;
CREATE INDEX r_abc ON r USING sherman (a, b DESC, c);

CREATE TABLE conditions (c text);
INSERT INTO conditions VALUES
	('a = ANY (ARRAY[3, 1, 2])'),
	('a = ANY (ARRAY[3, 3, 3, 1, 1])'),
	('a = ANY (ARRAY[3, NULL, 1])'),
	('a = ANY (ARRAY[NULL]::int[])'),
	('a = ANY (''{}''::int[])'),
	('a = ANY (NULL::int[])'),
	('a = ANY (ARRAY[5000000000, 1, -5000000000])'),
	('a = ANY (ARRAY[1, 2, -3]::int2[])'),
	('a IN (1, 99, -99, 7)'),
	('a = ANY (ARRAY[1, 2, 3, 4, 5]) AND a > 2'),
	('a = ANY (ARRAY[1, 2, 3, 4, 5]) AND a = ANY (ARRAY[4, 5, 6])'),
	('a = ANY (ARRAY[1, 2]) AND a = ANY (ARRAY[4, 5, 6])'),
	('a = ANY (ARRAY[1, 2]) AND a = 2'),
	('a = ANY (ARRAY[1, 2]) AND a = 3'),
	('a = ANY (ARRAY[1, 2]) AND a = 2::int8'),
	('a = ANY (ARRAY[1, 2]) AND a IS NOT NULL'),
	('a = ANY (ARRAY[1, 2]) AND a IS NULL'),
	('a < ANY (ARRAY[1, 2])'),
	('a <= ANY (ARRAY[1, NULL, 2])'),
	('a > ANY (ARRAY[14, 12])'),
	('a >= ANY (ARRAY[14, 12]::int8[])'),
	('a > ANY (ARRAY[NULL]::int[])'),
	('a = 1 AND b = ANY (ARRAY[''a'', ''bb'', ''eeee'', ''''])'),
	('a = ANY (ARRAY[2, 1]) AND b = ANY (ARRAY[''aaa'', ''bb'', ''eeee'', '''', ''bb''])'),
	('a = ANY (ARRAY[2, 1]) AND b = ANY (ARRAY[''aaa'', ''bb'', ''eeee'', '''']) AND c = ANY (ARRAY[''2020-01-03'', ''2020-01-05'']::date[])'),
	('a = ANY (ARRAY[2, 1]) AND b = ANY (ARRAY[''aaa'', ''bb'', ''eeee'', '''']) AND c > ''2020-01-03'''),
	('a = ANY (ARRAY[2, 1]) AND c = ANY (ARRAY[''2020-01-03'', ''2020-01-05'']::date[])'),
	('a > 3 AND b = ANY (ARRAY[''aaa'', ''bb'', ''eeee'', ''''])'),
	('b = ANY (ARRAY[''aaa'', ''bb'', ''eeee'', ''''])'),
	('c = ANY (ARRAY[''2020-01-03'', ''2020-01-05'']::date[])'),
	('a IS NULL AND b = ANY (ARRAY[''aaa'', ''bb'', ''eeee'', ''''])'),
	('a = ANY (ARRAY[2, 1]) AND b > ''b'''),
	('a = ANY (ARRAY[2, 1]) AND b < ANY (ARRAY[''c'', ''b''])'),
	('a = ANY (ARRAY[2, 1]) AND b IS NOT NULL'),
	('a = ANY (ARRAY[2, 1]) AND b IN (SELECT chr(97 + g) FROM generate_series(0, 3) g)');
SELECT count(*) AS queries,
	bool_and(compare('r', c, 'a, b DESC, c', 'a, b DESC, c, ctid')) AS forward,
	bool_and(compare('r', c, 'a DESC, b, c DESC', 'a DESC, b, c DESC, ctid DESC')) AS backward,
	bool_and(compare_bitmap('r', c)) AS bitmap
FROM conditions;

-- Descending, NULLS FIRST, a collation without a normalization, arguments of other types.
DROP INDEX r_abc;
CREATE INDEX r_ca ON r USING sherman (c DESC, a NULLS FIRST);
CREATE INDEX r_d ON r USING sherman (d DESC);
SELECT bool_and(compare('r', c, 'c DESC, a NULLS FIRST', 'c DESC, a NULLS FIRST, ctid')) AS forward,
	bool_and(compare('r', c, 'c, a DESC NULLS LAST', 'c, a DESC NULLS LAST, ctid DESC')) AS backward
FROM unnest(ARRAY[
	'c = ANY (ARRAY[''2020-01-03'', ''2020-01-05'', ''2020-01-04'']::timestamp[])',
	'c = ANY (ARRAY[''2020-01-03'', ''2020-01-05'', ''2020-01-05''::timestamptz]) AND a = ANY (ARRAY[1, 7, 3])',
	'c = ANY (ARRAY[''2020-01-03'', ''2020-01-05'']::date[]) AND a < 3',
	'c = ANY (ARRAY[''2020-01-03'', ''2020-01-05'']::date[]) AND a IS NULL',
	'c < ANY (ARRAY[''2020-01-03'', ''2020-01-05'']::timestamp[])',
	'c = ''2020-01-03'' AND a = ANY (ARRAY[5000000000, 3, -1])']) c;
SELECT bool_and(compare('r', c, 'd DESC', 'd DESC, ctid')) AS forward, bool_and(compare('r', c, 'd', 'd, ctid DESC')) AS backward
FROM unnest(ARRAY['d = ANY (ARRAY[''Q'', ''A'', ''z'', ''Q''])', 'd = ANY (ARRAY[''B'', ''A'']) AND d > ''A''', 'd = ''A'' AND d = ANY (ARRAY[''A'', ''B''])']) c;

-- Many elements; rescans with other arrays.
DROP INDEX r_ca;
CREATE INDEX r_a ON r USING sherman (a);
SELECT compare('r', 'a = ANY (ARRAY(SELECT g * 37 % 1000 - 500 FROM generate_series(1, 1000) g))', 'a', 'a, ctid');
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_material = off;
EXPLAIN (COSTS OFF) SELECT g, count(r.id), sum(r.id) FROM generate_series(1, 4) g LEFT JOIN r ON r.a = ANY (ARRAY[g, g + 1, NULL]) GROUP BY g ORDER BY g;
SELECT g, count(r.id), sum(r.id) FROM generate_series(1, 4) g LEFT JOIN r ON r.a = ANY (ARRAY[g, g + 1, NULL]) GROUP BY g ORDER BY g;

-- A scroll cursor over several combinations.
BEGIN;
SET LOCAL enable_sort = off;
DECLARE c SCROLL CURSOR FOR SELECT a, b FROM r WHERE a = ANY (ARRAY[1, 2, 3]) AND id < 100 ORDER BY a;
MOVE 4 IN c;
FETCH BACKWARD 6 FROM c;
MOVE FORWARD ALL IN c;
FETCH BACKWARD 5 FROM c;
FETCH FORWARD 7 FROM c;
COMMIT;

-- The leaves of many keys are read together: some 1,000, of an index of as many, by fewer chains than a tenth of that.
RESET enable_sort;
CREATE TABLE scattered AS SELECT i * 3 AS k, i AS v FROM generate_series(1, 60000) i;
CREATE INDEX scattered_k ON scattered USING sherman (k);
CREATE FUNCTION chains(query text, OUT result bigint, OUT few boolean) LANGUAGE plpgsql AS $$
DECLARE
	before bigint;
BEGIN
	SELECT round_trips INTO before FROM sherman_stat_indexes WHERE indexrelid = 'scattered_k'::regclass;
	EXECUTE query INTO result;
	SELECT round_trips - before < 100 INTO few FROM sherman_stat_indexes WHERE indexrelid = 'scattered_k'::regclass;
END $$;
SELECT * FROM chains('SELECT sum(v) FROM scattered WHERE k = ANY (ARRAY(SELECT i * 180 FROM generate_series(1, 1000) i))');
SELECT * FROM chains('SELECT sum(v) FROM (SELECT v FROM scattered WHERE k = ANY (ARRAY(SELECT i * 180 FROM generate_series(1, 1000) i)) ORDER BY k DESC) s');
SET enable_indexscan = off;
SET enable_bitmapscan = on;
SELECT * FROM chains('SELECT sum(v) FROM scattered WHERE k = ANY (ARRAY(SELECT i * 180 FROM generate_series(1, 1000) i))');

SET client_min_messages = error;
DROP SCHEMA test_arrays CASCADE;

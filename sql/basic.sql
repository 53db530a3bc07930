-- The index gives the rows that a sequential scan gives, in the order asked for.
\set VERBOSITY terse
SET jit = off;
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/agrees.psql'
\i :include

-- one column, random order of insertion, duplicates, NULLs
CREATE TABLE numbers (id int, n bigint, t text COLLATE "C");
SELECT setseed(0.5);
INSERT INTO numbers SELECT i, CASE WHEN i % 50 = 0 THEN NULL ELSE (random() * 4000)::bigint - 2000 END,
	md5(((random() * 4000)::int)::text) FROM generate_series(1, 5000) i;
CREATE INDEX numbers_n ON numbers USING sherman (n);
CREATE INDEX numbers_t ON numbers USING sherman (t);
ANALYZE numbers;

SELECT agrees('SELECT * FROM numbers WHERE n = 42');
SELECT agrees('SELECT * FROM numbers WHERE n = 1000000');
SELECT agrees('SELECT * FROM numbers WHERE n < -1500');
SELECT agrees('SELECT * FROM numbers WHERE n <= -1500');
SELECT agrees('SELECT * FROM numbers WHERE n > 1500');
SELECT agrees('SELECT * FROM numbers WHERE n >= 1500');
SELECT agrees('SELECT * FROM numbers WHERE n BETWEEN -10 AND 10');
SELECT agrees('SELECT * FROM numbers WHERE n > 10 AND n > 20 AND n <= 50 AND n < 60');
SELECT agrees('SELECT * FROM numbers WHERE n > 20 AND n < 10');
SELECT agrees('SELECT * FROM numbers WHERE n IS NULL');
SELECT agrees('SELECT * FROM numbers WHERE n IS NOT NULL');
SELECT agrees('SELECT * FROM numbers WHERE n IN (5, 3, 3, NULL, 7, -1999, 5000)');
SELECT agrees('SELECT * FROM numbers WHERE n = ANY (ARRAY[9, 8, 7]) AND n < 9');
SELECT agrees('SELECT n, id FROM numbers WHERE n = 3::int2 OR n = 4::int4');
SELECT agrees('SELECT n FROM numbers ORDER BY n');
SELECT agrees('SELECT n FROM numbers ORDER BY n DESC');
SELECT agrees('SELECT n FROM numbers WHERE n < 0 ORDER BY n DESC LIMIT 7');
SELECT agrees('SELECT n FROM numbers WHERE n >= 0 ORDER BY n LIMIT 7 OFFSET 3');
SELECT agrees('SELECT min(n), max(n) FROM numbers');
SELECT agrees('SELECT min(t), max(t) FROM numbers WHERE t > ''8''');
SELECT agrees('SELECT * FROM numbers WHERE t LIKE ''ab%''');
SELECT agrees('SELECT t FROM numbers WHERE t > ''f'' ORDER BY t DESC');
SELECT agrees('SELECT * FROM numbers WHERE n < 0 AND t < ''2''');
SELECT agrees('SELECT * FROM numbers WHERE n = 7 OR t = md5(''7'')');

-- several columns, mixed order
CREATE TABLE several (a int, b text, c numeric);
INSERT INTO several SELECT nullif(i % 7, 0), nullif(chr(97 + i % 11), 'c'), nullif((i % 13) / 4.0, 1) FROM generate_series(1, 2000) i;
CREATE INDEX several_mixed ON several USING sherman (a DESC, b NULLS FIRST, c DESC NULLS LAST);
ANALYZE several;
SELECT agrees('SELECT a, b, c FROM several ORDER BY a DESC, b NULLS FIRST, c DESC NULLS LAST');
SELECT agrees('SELECT a, b, c FROM several ORDER BY a, b DESC NULLS LAST, c NULLS FIRST');
SELECT agrees('SELECT a, b, c FROM several WHERE a = 3 ORDER BY b NULLS FIRST, c DESC NULLS LAST');
SELECT agrees('SELECT * FROM several WHERE a = 3 AND b > ''d''');
SELECT agrees('SELECT * FROM several WHERE a IN (1, 5, 3) AND b = ''e'' AND c >= 1.25');
SELECT agrees('SELECT * FROM several WHERE a IS NULL AND b IS NULL');
SELECT agrees('SELECT * FROM several WHERE a > 2 AND b IS NULL AND c IS NULL');
SELECT agrees('SELECT * FROM several WHERE a = 2 AND b IS NOT NULL AND c < 2');
SELECT agrees('SELECT * FROM several WHERE b = ''e'' AND a BETWEEN 2 AND 4');

-- expressions and predicates
CREATE TABLE words (id int, word text);
INSERT INTO words SELECT i, CASE WHEN i % 3 = 0 THEN initcap(md5(i::text)) ELSE md5(i::text) END FROM generate_series(1, 1500) i;
CREATE INDEX words_lower ON words USING sherman (lower(word), id);
CREATE INDEX words_some ON words USING sherman (id) WHERE id % 10 = 0;
ANALYZE words;
SELECT agrees('SELECT * FROM words WHERE lower(word) = lower(md5(''9''))');
SELECT agrees('SELECT lower(word), id FROM words WHERE lower(word) < ''1'' ORDER BY lower(word), id');
SELECT agrees('SELECT * FROM words WHERE id % 10 = 0 AND id BETWEEN 100 AND 300 ORDER BY id');

-- cursors go both ways
SET enable_seqscan = off;
SET enable_sort = off;
SET enable_bitmapscan = off;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT n FROM numbers WHERE n BETWEEN 0 AND 12 ORDER BY n;
FETCH 4 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH FORWARD 3 FROM c;
MOVE FORWARD ALL FROM c;
FETCH BACKWARD 3 FROM c;
MOVE BACKWARD ALL FROM c;
FETCH FORWARD 1 FROM c;
CLOSE c;
COMMIT;

-- merge join: mark and restore in runs of duplicates
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_material = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(x.id), sum(y.id) FROM numbers x JOIN numbers y ON x.n = y.n;
SELECT count(*), sum(x.id), sum(y.id) FROM numbers x JOIN numbers y ON x.n = y.n;
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_material;
SET enable_indexscan = off;
RESET enable_seqscan;
RESET enable_sort;
SELECT count(*), sum(x.id), sum(y.id) FROM numbers x JOIN numbers y ON x.n = y.n;
RESET enable_indexscan;
RESET enable_bitmapscan;

SELECT sherman_check(i, true) FROM (VALUES ('numbers_n'::regclass), ('numbers_t'), ('several_mixed'), ('words_lower'), ('words_some')) v(i);
DROP TABLE numbers, several, words;
DROP FUNCTION agrees, by_table_too;

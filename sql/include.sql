-- Included columns: every type, beside keys that are kept whole and others; what only they change; what is refused.
\getenv abs_srcdir PG_ABS_SRCDIR
\set VERBOSITY terse
\set include :abs_srcdir '/sql/include/agrees.psql'
SET client_min_messages = warning;
SET jit = off;
CREATE SCHEMA test_include;
SET search_path = test_include, public;
\i :include
\set include :abs_srcdir '/sql/include/samples.psql'
\i :include
\set include :abs_srcdir '/sql/include/index_only.psql'
\i :include

-- a key that is kept whole: the image has the included columns alone
SELECT * FROM try_types('(id) INCLUDE (v)', 'SELECT id, v FROM t');
SELECT * FROM try_types('(n DESC, id) INCLUDE (v)', 'SELECT id, v, n FROM t');
SELECT * FROM try_types('(id) INCLUDE (n, v)', 'SELECT id, v, n FROM t');
-- the type as key, an included column beside it
SELECT * FROM try_types('(v %s) INCLUDE (id)', 'SELECT id, v FROM t');
SELECT * FROM try_types('(n, v %s DESC NULLS LAST) INCLUDE (id)', 'SELECT id, v, n FROM t');

-- types that no operator class orders
CREATE TABLE shapes (k int, p point, j json, b box, x xml);
INSERT INTO shapes SELECT i, point(i, -i), json_build_object('i', i), CASE WHEN i % 2 = 0 THEN box(point(0, 0), point(i, i)) END, NULL FROM generate_series(1, 300) i;
CREATE INDEX shapes_k ON shapes USING sherman (k) INCLUDE (p, j, b, x);
SELECT index_only('SELECT k, p, b, x FROM shapes'), index_only('SELECT k, j FROM shapes WHERE k BETWEEN 10 AND 20'), sherman_check('shapes_k', true);

-- keys of every length that may be kept whole, and beyond
CREATE TABLE long_keys (a uuid, b uuid, c int8, d int4, e int8, t text);
INSERT INTO long_keys SELECT md5(i::text)::uuid, md5((i % 7)::text)::uuid, i, i % 3, -i, repeat('t', i % 70) FROM generate_series(1, 400) i;
INSERT INTO long_keys VALUES (NULL, NULL, NULL, NULL, NULL, NULL), (NULL, NULL, 1, NULL, 2, 'x'), (md5('x')::uuid, NULL, NULL, 2, NULL, 'y');
CREATE INDEX long_1 ON long_keys USING sherman (a) INCLUDE (d);
CREATE INDEX long_2 ON long_keys USING sherman (b, c) INCLUDE (t, e);
CREATE INDEX long_3 ON long_keys USING sherman (b, a DESC) INCLUDE (e);
CREATE INDEX long_4 ON long_keys USING sherman (b, a, c) INCLUDE (d);
CREATE INDEX long_5 ON long_keys USING sherman (b, a, c, e) INCLUDE (d);
CREATE INDEX long_6 ON long_keys USING sherman (d) INCLUDE (e);
INSERT INTO long_keys SELECT a, b, c + 1000, d, e, t FROM long_keys;
SELECT index_only('SELECT a, d FROM long_keys'), index_only('SELECT b, c, t, e FROM long_keys'), index_only('SELECT b, a, e FROM long_keys'),
	index_only('SELECT b, a, c, d FROM long_keys WHERE c > 5'), index_only('SELECT b, a, c, e, d FROM long_keys'), index_only('SELECT d, e FROM long_keys WHERE d = 2'),
	index_only('SELECT d, e FROM long_keys WHERE d IS NULL');
SELECT relname, sherman_check(oid, true) FROM pg_class WHERE relname ~ '^long_\d$' ORDER BY 1;

-- conditions on included columns are the executor's; so is what orders by them
CREATE TABLE sale (id int, day date, amount numeric, note text) WITH (autovacuum_enabled = off);
INSERT INTO sale SELECT i, '2026-01-01'::date + i % 100, i / 7.0, CASE WHEN i % 5 > 0 THEN repeat('note ', i % 200) || i END FROM generate_series(1, 5000) i;
CREATE INDEX sale_day ON sale USING sherman (day) INCLUDE (amount, note);
VACUUM ANALYZE sale;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT day, amount FROM sale WHERE day = '2026-02-01' AND amount > 300 AND note IS NOT NULL;
EXPLAIN (COSTS OFF) SELECT count(*) FROM sale WHERE day < '2026-02-01';
EXPLAIN (COSTS OFF) SELECT day, max(amount) FROM sale GROUP BY day ORDER BY day DESC;
RESET enable_seqscan;
RESET enable_bitmapscan;
CREATE FUNCTION sales() RETURNS SETOF text LANGUAGE sql AS $$
	SELECT index_only('SELECT day, amount FROM sale WHERE day = ''2026-02-01'' AND amount > 300 AND note IS NOT NULL') UNION ALL
	SELECT index_only('SELECT amount, note FROM sale WHERE day > ''2026-03-20'' AND note LIKE ''%94'' AND amount < 200') UNION ALL
	SELECT index_only('SELECT day, amount FROM sale WHERE day = ANY (''{2026-01-05, 2026-04-04, 2026-01-05}'')') UNION ALL
	SELECT agrees('SELECT day, id, amount, note FROM sale WHERE day > ''2026-04-07''')
$$;
SELECT sales();

-- an UPDATE of nothing but an included column makes a new entry; a key that comes back, too
UPDATE sale SET amount = amount + 1 WHERE id % 3 = 0;
UPDATE sale SET note = NULL WHERE id % 7 = 0;
UPDATE sale SET day = day + 1;
UPDATE sale SET day = day - 1;
DELETE FROM sale WHERE id % 11 = 0;
SELECT sales(), sherman_check('sale_day', true);
VACUUM sale;
SELECT sales(), sherman_check('sale_day', true);
REINDEX INDEX sale_day;
SELECT sales(), sherman_check('sale_day', true);
REINDEX INDEX CONCURRENTLY sale_day;
DROP INDEX sale_day;
CREATE INDEX CONCURRENTLY sale_day ON sale USING sherman (day) INCLUDE (amount, note) WHERE id > 100;
SELECT index_only('SELECT day, amount, note FROM sale WHERE id > 100'), sherman_check('sale_day', true);

-- the same values, as they come compressed from the table, plain from a statement, out of line from TOAST
CREATE TABLE fat (k int, v text, filler text);
ALTER TABLE fat ALTER filler SET STORAGE plain;
INSERT INTO fat SELECT i, repeat(chr(97 + i % 26), 400), repeat('f', 3000) FROM generate_series(1, 60) i;
INSERT INTO fat SELECT i, repeat(md5(i::text), 70), repeat('f', 3000) FROM generate_series(61, 80) i;
SELECT bool_or(pg_column_size(v) < 100) AS compressed, max(length(v)) FROM fat;
CREATE INDEX fat_k ON fat USING sherman (k) INCLUDE (v);
CREATE INDEX fat_v ON fat USING sherman (v COLLATE "C") INCLUDE (k);
INSERT INTO fat SELECT k + 100, v, filler FROM fat;
UPDATE fat SET filler = 'short' WHERE k % 2 = 0;
ALTER TABLE fat ALTER v SET STORAGE external;
INSERT INTO fat SELECT i, repeat(md5(i::text), 70), repeat('f', 3000) FROM generate_series(201, 220) i;
SELECT index_only('SELECT k, v FROM fat'), index_only('SELECT v, k FROM fat WHERE v > ''d'''), sherman_check('fat_k', true), sherman_check('fat_v', true);
REINDEX TABLE fat;
SELECT index_only('SELECT k, v FROM fat'), sherman_check('fat_k', true), sherman_check('fat_v', true);
-- too long: as btree says it
CREATE FUNCTION noise(bytes int) RETURNS text LANGUAGE sql AS $$ SELECT string_agg(md5(i::text), '') FROM generate_series(1, bytes / 32) i $$;
INSERT INTO fat VALUES (300, noise(4000), NULL);
CREATE TABLE fat_btree (k int, v text);
CREATE INDEX ON fat_btree (k) INCLUDE (v);
INSERT INTO fat_btree VALUES (300, noise(4000));
INSERT INTO fat VALUES (300, noise(2600), NULL);
SELECT sherman_check('fat_k', true);

-- sherman_check() compares what is included, too: here an UPDATE that did not see the index left its entry to the new row
CREATE TABLE stale (k int, v int);
INSERT INTO stale VALUES (1, 1), (2, 2);
CREATE INDEX stale_k ON stale USING sherman (k) INCLUDE (v);
CREATE INDEX stale_t ON stale USING sherman ((k::text)) INCLUDE (v);
UPDATE pg_index SET indislive = false WHERE indrelid = 'stale'::regclass;
UPDATE pg_class SET relhasindex = true WHERE oid = 'stale'::regclass;
UPDATE stale SET v = 3 WHERE k = 2;
UPDATE pg_index SET indislive = true WHERE indrelid = 'stale'::regclass;
UPDATE pg_class SET relhasindex = true WHERE oid = 'stale'::regclass;
SELECT sherman_check('stale_k', true), sherman_check('stale_t', true);
REINDEX TABLE stale;
SELECT sherman_check('stale_k', true), sherman_check('stale_t', true);

-- definitions
CREATE TABLE copied (LIKE sale INCLUDING INDEXES);
SELECT pg_get_indexdef(indexrelid), indnatts, indnkeyatts FROM pg_index WHERE indrelid = 'copied'::regclass;
ALTER TABLE copied ALTER amount TYPE float8;
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'copied'::regclass;
\set VERBOSITY sqlstate
CREATE INDEX ON sale USING sherman (day) INCLUDE (amount DESC);
CREATE INDEX ON sale USING sherman (day) INCLUDE ((amount + 1));
CREATE INDEX ON sale USING sherman (day) INCLUDE (note text_ops);
CREATE INDEX ON sale USING sherman (day) INCLUDE (note COLLATE "C");
\set VERBOSITY terse
ALTER TABLE sale DROP COLUMN note;
SELECT count(*) FROM pg_index WHERE indrelid = 'sale'::regclass;
SELECT pg_indexam_has_property((SELECT oid FROM pg_am WHERE amname = 'sherman'), 'can_include');

DROP SCHEMA test_include CASCADE;

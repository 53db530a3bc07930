-- Images: what an entry has beside its normalized key gives the row back, to the byte, whatever the index's columns are.
SET sherman.enable_lookahead = off; -- the plans are those with any memory node
\getenv abs_srcdir PG_ABS_SRCDIR
SET client_min_messages = warning;
SET jit = off;
SET default_toast_compression = pglz; -- how many rows a page has
CREATE SCHEMA test_images;
SET search_path = test_images, public;
\set include :abs_srcdir '/sql/include/agrees.psql'
\i :include
\set include :abs_srcdir '/sql/include/samples.psql'
\i :include
\set include :abs_srcdir '/sql/include/index_only.psql'
\i :include
\set include :abs_srcdir '/sql/include/key_images.psql'
\i :include

-- half of the rows are in the index when it is built, half come later
SELECT make_all('', 220);
SELECT on_all('INSERT INTO %s SELECT * FROM all_rows WHERE id > 220');
SELECT * FROM judge_all();
SELECT on_all('INSERT INTO %s SELECT * FROM all_rows WHERE id %% 3 = 0');
SELECT on_all('DELETE FROM %s WHERE id %% 7 = 0');
SELECT * FROM judge_all();
SELECT on_all('REINDEX TABLE %s');
SELECT * FROM judge_all();

-- values in the normalized key that are equal to others, and yet not the same
CREATE TABLE equal (id int, f float8, n numeric, b char(9) COLLATE "C", v bytea);
INSERT INTO equal VALUES (1, '-0', '1.0', 'a', '\x'), (2, '0', '1.00', 'a ', '\x00'), (3, 'NaN', '1', 'a', '\x0000'), (4, '0', '100', '', '\x01');
CREATE INDEX equal_all ON equal USING sherman (id, f, n, b, v);
CREATE INDEX equal_f ON equal USING sherman (f);
CREATE INDEX equal_b ON equal USING sherman (b DESC, n);
CREATE INDEX equal_v ON equal USING sherman (v);
SELECT index_only('SELECT id, f, n, b, v FROM equal'), index_only('SELECT f FROM equal'), index_only('SELECT b, n FROM equal'), index_only('SELECT v FROM equal');
SET enable_seqscan = off;
SELECT f FROM equal ORDER BY f;
SELECT b || '|' AS b, octet_length(b), n FROM equal ORDER BY b DESC, n;
SELECT v FROM equal ORDER BY v;
RESET enable_seqscan;

-- texts with a byte that no text has: as a type of somebody's own may have them
CREATE CAST (bytea AS text) WITHOUT FUNCTION;
CREATE TABLE odd (t text COLLATE "C");
INSERT INTO odd SELECT substr('\x6100620000630000'::bytea, 1, n)::text FROM generate_series(0, 8) n;
CREATE INDEX odd_t ON odd USING sherman (t);
SELECT index_only('SELECT octet_length(t) FROM odd'), sherman_check('odd_t', true);
DROP CAST (bytea AS text);

-- keys whose normalized bytes are the same: what is equal to what is decided by the rest
CREATE UNIQUE INDEX ON all_rows USING sherman (tc, id);
CREATE TABLE words (w text COLLATE "C", n numeric);
CREATE UNIQUE INDEX words_key ON words USING sherman (w, n);
INSERT INTO words VALUES ('a common prefix, and one', 1), ('a common prefix, and two', 1), ('a common prefix, and one', 1.5);
INSERT INTO words VALUES ('a common prefix, and one', 1.0);
INSERT INTO words VALUES ('a common prefix, and two', 1.00), ('a common prefix, and three', 1) ON CONFLICT (w, n) DO UPDATE SET n = words.n + 1;
SELECT * FROM words ORDER BY w, n;
SELECT index_only('SELECT w, n FROM words WHERE w = ''a common prefix, and one'' AND n > 1'), sherman_check('words_key', true);

-- rows as long as they may be, which are compressed, or not, or too long
CREATE TABLE longest (b bytea, t text COLLATE "C");
CREATE INDEX longest_all ON longest USING sherman (t, b);
CREATE INDEX longest_b ON longest USING sherman (b) INCLUDE (t);
INSERT INTO longest SELECT decode(left(s, 2 * n), 'hex'), left('x', n % 2) FROM (SELECT string_agg(md5(i::text), '') AS s FROM generate_series(1, 200) i) s,
	generate_series(2640, 2688) n;
INSERT INTO longest SELECT NULL, repeat('long ', n) FROM generate_series(100, 2000, 100) n;
INSERT INTO longest SELECT decode(string_agg(md5(i::text), ''), 'hex'), NULL FROM generate_series(1, 200) i;
SELECT index_only('SELECT b, t FROM longest'), index_only('SELECT b FROM longest'), sherman_check('longest_all', true), sherman_check('longest_b', true);

DROP SCHEMA test_images CASCADE;

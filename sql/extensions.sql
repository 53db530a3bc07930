-- Types of PostgreSQL's own extensions: their operator classes are mirrored when they are made.
\set VERBOSITY terse
SET client_min_messages = warning;
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/agrees.psql'
\i :include
CREATE SCHEMA others;
CREATE EXTENSION citext SCHEMA others;
CREATE EXTENSION hstore SCHEMA others;
CREATE EXTENSION ltree SCHEMA others;
CREATE EXTENSION isn SCHEMA others;
SET search_path = public, others;
CREATE TABLE goods (id int, name citext, tags hstore, place ltree, book isbn13, code ean13);
-- nothing is left to do when asked
SELECT count(sherman_mirror_opfamily('others', f.opfname)) AS again
FROM pg_opfamily f JOIN pg_am a ON a.oid = f.opfmethod
WHERE a.amname = 'btree' AND f.opfnamespace = 'others'::regnamespace;
-- isn's family lacks operators, and btvalidate says so of btree's, too
SELECT c.opcname, c.opcdefault, c.opcintype::regtype AS type, count(*) AS classes, bool_and(amvalidate(c.oid)) AS valid
FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod
WHERE c.opcname ~ '^(citext|btree_hstore|hstore|ltree)' AND a.amname IN ('btree', 'sherman')
GROUP BY 1, 2, 3
ORDER BY 1;
-- members of two types (isn compares its types with each other), strategy by strategy
SELECT count(*) AS members_that_differ
FROM (SELECT f.opfname, m.amoplefttype, m.amoprighttype, m.amopstrategy, m.amopopr, count(*) AS methods
	FROM pg_amop m JOIN pg_opfamily f ON f.oid = m.amopfamily JOIN pg_am a ON a.oid = f.opfmethod
	WHERE f.opfname ~ '^(citext|btree_hstore|ltree|isn)' AND a.amname IN ('btree', 'sherman')
	GROUP BY 1, 2, 3, 4, 5) s
WHERE methods <> 2;

INSERT INTO goods
SELECT i, CASE WHEN i % 2 = 0 THEN 'Name ' ELSE 'name ' END || i % 60, hstore('k' || i % 9, (i % 13)::text),
	('Top.' || chr(65 + i % 26) || '.n' || i % 40)::ltree, make_valid(('978' || lpad((i % 200)::text, 9, '0') || '0!')::isbn13),
	make_valid((lpad((i % 300)::text, 12, '0') || '0!')::ean13)
FROM generate_series(1, 1500) i;
INSERT INTO goods (id) SELECT generate_series(1501, 1520);
CREATE INDEX goods_name ON goods USING sherman (name);
CREATE INDEX goods_tags ON goods USING sherman (tags);
CREATE INDEX goods_place ON goods USING sherman (place DESC, id);
CREATE INDEX goods_book ON goods USING sherman (book, code);
VACUUM ANALYZE goods;
SELECT agrees('SELECT * FROM goods WHERE name = ''NAME 7''');
SELECT agrees('SELECT id, name FROM goods WHERE name BETWEEN ''NAME 1'' AND ''name 19''');
SELECT agrees('SELECT lower(name) FROM goods ORDER BY name');
SELECT agrees('SELECT * FROM goods WHERE tags = ''k3=>4''');
SELECT agrees('SELECT tags FROM goods WHERE tags #># ''k3=>4'' ORDER BY tags');
SELECT agrees('SELECT place, id FROM goods WHERE place >= ''Top.C'' AND place < ''Top.F'' ORDER BY place DESC, id');
SELECT agrees('SELECT * FROM goods WHERE place = ANY (ARRAY[''Top.B.n1'', ''Top.D.n3'', NULL]::ltree[])');
SELECT agrees('SELECT book, code FROM goods WHERE book > (SELECT book FROM goods WHERE id = 33) ORDER BY book, code');
SELECT agrees('SELECT * FROM goods WHERE book = (SELECT book FROM goods WHERE id = 33)::ean13');
SELECT agrees('SELECT * FROM goods WHERE name IS NULL AND id > 3');
UPDATE goods SET name = upper(name), tags = tags || 'extra=>1' WHERE id % 3 = 0;
DELETE FROM goods WHERE id % 7 = 0;
VACUUM goods;
SELECT agrees('SELECT id, name FROM goods WHERE name < ''name 3''');
SELECT c.relname, sherman_check(c.oid, true) AS problems
FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
WHERE i.indrelid = 'goods'::regclass
ORDER BY 1;
-- dropped with what they were made from
DROP TABLE goods;
DROP EXTENSION isn CASCADE;
SELECT count(*) FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod
WHERE a.amname = 'sherman' AND c.opcname LIKE '%isbn%';
DROP SCHEMA others CASCADE;
DROP FUNCTION agrees, by_table_too;

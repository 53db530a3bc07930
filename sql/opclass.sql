--
-- Operator classes: the mirror of btree's, of another extension's, and one of a user's own.
--
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/compare.psql'
SET client_min_messages = warning;
SET jit = off;
\set SHOW_CONTEXT never
CREATE SCHEMA test_opclass;
SET search_path = test_opclass, public;
\i :include

-- Member by member what btree has.
SELECT count(*) FROM pg_opfamily f JOIN pg_am a ON a.oid = opfmethod WHERE amname = 'btree' AND opfnamespace = 'pg_catalog'::regnamespace
	AND NOT EXISTS (SELECT FROM pg_opfamily g JOIN pg_am b ON b.oid = g.opfmethod WHERE b.amname = 'sherman' AND g.opfname = f.opfname);
WITH members AS (
	SELECT amname, opfname, amoplefttype, amoprighttype, amopstrategy, amopopr
	FROM pg_amop m JOIN pg_opfamily f ON f.oid = amopfamily JOIN pg_am a ON a.oid = opfmethod
	WHERE amname IN ('btree', 'sherman')),
functions AS (
	SELECT amname, opfname, amproclefttype, amprocrighttype, amprocnum, amproc
	FROM pg_amproc m JOIN pg_opfamily f ON f.oid = amprocfamily JOIN pg_am a ON a.oid = opfmethod
	WHERE amname IN ('btree', 'sherman')),
classes AS (
	SELECT amname, opfname, opcname, opcintype, opcdefault
	FROM pg_opclass c JOIN pg_opfamily f ON f.oid = opcfamily JOIN pg_am a ON a.oid = opcmethod
	WHERE amname IN ('btree', 'sherman')),
differing AS (
	SELECT row(opfname, amoplefttype, amoprighttype, amopstrategy, amopopr)::text FROM members GROUP BY 1 HAVING count(DISTINCT amname) = 1
	UNION ALL
	SELECT row(opfname, amproclefttype, amprocrighttype, amprocnum, amproc)::text FROM functions GROUP BY 1 HAVING count(DISTINCT amname) = 1
	UNION ALL
	SELECT row(opfname, opcname, opcintype, opcdefault)::text FROM classes GROUP BY 1 HAVING count(DISTINCT amname) = 1)
SELECT * FROM differing;

-- Another extension's: made with the original.
CREATE EXTENSION citext SCHEMA test_opclass;
CREATE TABLE c (id int, v citext);
SELECT opcname, opcnamespace::regnamespace, opcintype::regtype, opcdefault, amvalidate(c.oid)
FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod WHERE amname = 'sherman' AND opcname ~ 'citext';
INSERT INTO c SELECT i, (ARRAY['a', 'A', 'b', 'Bb', 'bB', 'é', NULL])[1 + i % 7] FROM generate_series(1, 100) i;
CREATE INDEX c_v ON c USING sherman (v);
INSERT INTO c SELECT i, (ARRAY['a', 'A', 'b', 'Bb', 'bB', 'é', NULL])[1 + i % 7] FROM generate_series(101, 200) i;
SELECT bool_and(compare('c', q, 'v', 'v, ctid')) AS same
FROM unnest('{true,v = ''A'',v > ''bb'',v <= ''BB'',v IS NULL}'::text[]) q;
SELECT planned_as('Index Scan', 'SELECT id FROM c WHERE v = ''A''');

-- What has no family is told; so is a family that lacks members.
SELECT sherman_mirror_opfamily('public', 'no_such_ops');
CREATE OPERATOR CLASS half FOR TYPE int4 USING sherman AS OPERATOR 1 <, OPERATOR 3 =, FUNCTION 1 btint4cmp(int4, int4);
SELECT amvalidate(oid) FROM pg_opclass WHERE opcname = 'half';

-- A user's own order, told by a function that runs SQL: even numbers first.
CREATE TABLE parity (remainder int, rank int);
INSERT INTO parity VALUES (0, 1), (1, 2);
CREATE FUNCTION even_cmp(x int4, y int4) RETURNS int LANGUAGE plpgsql STABLE STRICT AS $$
DECLARE
	x_rank int := (SELECT rank FROM test_opclass.parity WHERE remainder = abs(x % 2));
	y_rank int := (SELECT rank FROM test_opclass.parity WHERE remainder = abs(y % 2));
BEGIN
	IF current_setting('test.fail', true) = 'on' THEN
		RAISE EXCEPTION 'no order';
	END IF;
	RETURN CASE WHEN x_rank <> y_rank THEN sign(x_rank - y_rank) ELSE btint4cmp(x, y) END;
END $$;
CREATE FUNCTION even_lt(int4, int4) RETURNS boolean LANGUAGE sql AS 'SELECT test_opclass.even_cmp($1, $2) < 0';
CREATE FUNCTION even_le(int4, int4) RETURNS boolean LANGUAGE sql AS 'SELECT test_opclass.even_cmp($1, $2) <= 0';
CREATE FUNCTION even_ge(int4, int4) RETURNS boolean LANGUAGE sql AS 'SELECT test_opclass.even_cmp($1, $2) >= 0';
CREATE FUNCTION even_gt(int4, int4) RETURNS boolean LANGUAGE sql AS 'SELECT test_opclass.even_cmp($1, $2) > 0';
CREATE OPERATOR <! (LEFTARG = int4, RIGHTARG = int4, FUNCTION = even_lt, COMMUTATOR = >!);
CREATE OPERATOR <=! (LEFTARG = int4, RIGHTARG = int4, FUNCTION = even_le, COMMUTATOR = >=!);
CREATE OPERATOR >=! (LEFTARG = int4, RIGHTARG = int4, FUNCTION = even_ge);
CREATE OPERATOR >! (LEFTARG = int4, RIGHTARG = int4, FUNCTION = even_gt);
CREATE OPERATOR CLASS even_btree FOR TYPE int4 USING btree AS
	OPERATOR 1 <!, OPERATOR 2 <=!, OPERATOR 3 =, OPERATOR 4 >=!, OPERATOR 5 >!, FUNCTION 1 even_cmp(int4, int4);
CREATE TABLE e (id int, v int4);
INSERT INTO e SELECT i, nullif((i * 7919) % 61 - 30, 7) FROM generate_series(1, 150) i;
CREATE INDEX e_v ON e USING sherman (v even_btree);
INSERT INTO e SELECT i, nullif((i * 7919) % 61 - 30, 7) FROM generate_series(151, 300) i;
SELECT count(*) AS queries, bool_and(compare('e', q, 'v USING <!', 'v USING <!, ctid') AND
									 compare('e', q, 'v USING >!', 'v USING >!, ctid DESC') AND compare_bitmap('e', q)) AS same
FROM unnest('{true,v = 4,v <! 4,v <=! 5,v >=! 4,v >! -3,v IS NULL,v >! 4 AND v <! 5,"v = ANY (ARRAY[3, 2, 1, 2])"}'::text[]) q;
SELECT planned_as('Index Scan', 'SELECT id FROM e WHERE v >! 4 ORDER BY v USING <!');

-- An order function that fails while the tree is searched leaves nothing behind.
SET test.fail = on;
INSERT INTO e VALUES (1000, 1);
SET enable_seqscan = off;
SELECT count(*) FROM e WHERE v <! 4;
RESET enable_seqscan;
SET test.fail = off;
INSERT INTO e VALUES (1000, 1);
SELECT bool_and(compare('e', q, 'v USING <!', 'v USING <!, ctid')) AS same FROM unnest('{true,v = 1,v <! 4}'::text[]) q;

SET client_min_messages = error;
DROP SCHEMA test_opclass CASCADE;

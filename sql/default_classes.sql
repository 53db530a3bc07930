-- An index column gets the operator class whose equality is that of btree's default class for its type: types of extensions
-- made before and after sherman, domains over them, enums, ranges, arrays, composite types.
\set VERBOSITY terse
\set SHOW_CONTEXT never
SET client_min_messages = warning;
SELECT current_database() AS home \gset
CREATE DATABASE regress_classes TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C';
CREATE ROLE regress_classes_user;
\c regress_classes
SET client_min_messages = warning;
CREATE SCHEMA ext;
CREATE SCHEMA others;
GRANT USAGE ON SCHEMA others TO regress_classes_user;
GRANT CREATE ON DATABASE regress_classes TO regress_classes_user;
GRANT CREATE ON SCHEMA others TO regress_classes_user;
GRANT CREATE ON SCHEMA public TO regress_classes_user;
-- some before, others after
CREATE EXTENSION citext SCHEMA others;
CREATE EXTENSION ltree SCHEMA others;
CREATE EXTENSION cube SCHEMA others;
CREATE EXTENSION sherman SCHEMA ext;
GRANT USAGE ON SCHEMA ext TO regress_classes_user;
CREATE EXTENSION hstore SCHEMA others;
CREATE EXTENSION isn SCHEMA others;
CREATE EXTENSION seg SCHEMA others;
CREATE EXTENSION intarray SCHEMA others;
CREATE EXTENSION lo SCHEMA others;
CREATE EXTENSION "uuid-ossp" SCHEMA others;
SET search_path = public, others;
CREATE DOMAIN address AS citext CHECK (value LIKE '%@%');
CREATE DOMAIN work_address AS address;
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TYPE pair AS (a int, b citext);
CREATE TYPE words AS RANGE (subtype = citext);
CREATE DOMAIN addresses AS citext[];
-- a user's own order of a type of his own, and a second family for a type that has one
CREATE TYPE half;
CREATE FUNCTION half_in(cstring) RETURNS half LANGUAGE internal IMMUTABLE STRICT AS 'int4in';
CREATE FUNCTION half_out(half) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int4out';
CREATE TYPE half (INPUT = half_in, OUTPUT = half_out, LIKE = int4);
CREATE CAST (half AS int4) WITHOUT FUNCTION AS IMPLICIT;
CREATE FUNCTION half_cmp(half, half) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT btint4cmp($1::int4 / 2, $2::int4 / 2)';
CREATE FUNCTION half_lt(half, half) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS 'SELECT $1::int4 / 2 < $2::int4 / 2';
CREATE FUNCTION half_le(half, half) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS 'SELECT $1::int4 / 2 <= $2::int4 / 2';
CREATE FUNCTION half_eq(half, half) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS 'SELECT $1::int4 / 2 = $2::int4 / 2';
CREATE FUNCTION half_ge(half, half) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS 'SELECT $1::int4 / 2 >= $2::int4 / 2';
CREATE FUNCTION half_gt(half, half) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS 'SELECT $1::int4 / 2 > $2::int4 / 2';
CREATE OPERATOR < (LEFTARG = half, RIGHTARG = half, FUNCTION = half_lt, COMMUTATOR = >);
CREATE OPERATOR <= (LEFTARG = half, RIGHTARG = half, FUNCTION = half_le, COMMUTATOR = >=);
CREATE OPERATOR = (LEFTARG = half, RIGHTARG = half, FUNCTION = half_eq, COMMUTATOR = =);
CREATE OPERATOR >= (LEFTARG = half, RIGHTARG = half, FUNCTION = half_ge);
CREATE OPERATOR > (LEFTARG = half, RIGHTARG = half, FUNCTION = half_gt);
CREATE OPERATOR CLASS half_ops DEFAULT FOR TYPE half USING btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 half_cmp(half, half);

-- Family by family, class by class, member by member.
CREATE VIEW members AS
	SELECT a.amname, 'class' AS what, c.opcname || ' of ' || f.opfname || ' for ' || opcintype::regtype || ' ' || opcdefault AS item
	FROM pg_opclass c JOIN pg_opfamily f ON f.oid = opcfamily JOIN pg_am a ON a.oid = opcmethod
	UNION ALL
	SELECT a.amname, 'operator', f.opfname || ' ' || amopstrategy || ' ' || amopopr::regoperator
	FROM pg_amop JOIN pg_opfamily f ON f.oid = amopfamily JOIN pg_am a ON a.oid = opfmethod
	UNION ALL
	SELECT a.amname, 'function', f.opfname || ' ' || amprocnum || ' ' || amproclefttype::regtype || ' ' || amprocrighttype::regtype || ' ' || amproc::regprocedure
	FROM pg_amproc JOIN pg_opfamily f ON f.oid = amprocfamily JOIN pg_am a ON a.oid = opfmethod;
CREATE VIEW differing AS
	(SELECT 'btree alone' AS whose, what, item FROM members WHERE amname = 'btree' EXCEPT SELECT 'btree alone', what, item FROM members WHERE amname = 'sherman')
	UNION ALL
	(SELECT 'sherman alone', what, item FROM members WHERE amname = 'sherman' EXCEPT SELECT 'sherman alone', what, item FROM members WHERE amname = 'btree');
GRANT SELECT ON differing TO regress_classes_user;
SELECT * FROM differing;
SELECT count(*) > 40 AS many FROM members WHERE amname = 'sherman' AND what = 'class';

-- What each type's columns get by default: the equality that its class has, or the error that there is none.
CREATE FUNCTION equality(name text, method text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	found text;
BEGIN
	EXECUTE format('CREATE UNIQUE INDEX one_index ON every USING %s (%I)', method, name);
	SELECT amopopr::regoperator::text INTO found
	FROM pg_index i JOIN pg_opclass c ON c.oid = indclass[0] JOIN pg_amop ON amopfamily = opcfamily AND amoplefttype = opcintype
		AND amoprighttype = opcintype AND amopstrategy = 3
	WHERE indexrelid = 'one_index'::regclass;
	DROP INDEX one_index;
	RETURN found;
EXCEPTION WHEN undefined_object THEN
	RETURN 'none';
END $$;
CREATE TABLE types AS
	SELECT t.oid::regtype AS type, typtype, 'c' || row_number() OVER (ORDER BY t.oid) AS name
	FROM pg_type t LEFT JOIN pg_class c ON c.oid = typrelid
	WHERE typisdefined AND typtype <> 'p' AND coalesce(c.relkind, 'c') = 'c' AND typname !~ '^_?(pg_|cstring|record)' AND
		typnamespace IN ('pg_catalog'::regnamespace, 'public'::regnamespace, 'others'::regnamespace);
\set ECHO none
SELECT format('CREATE TEMP TABLE every (%s)', string_agg(format('%I %s', name, type), ', ' ORDER BY type::oid)) FROM types \gexec
\set ECHO all
CREATE TABLE seen AS SELECT type, typtype, equality(name, 'btree') AS btree, equality(name, 'sherman') AS sherman FROM types;
SELECT * FROM seen WHERE btree IS DISTINCT FROM sherman;
SELECT typtype, count(*) > 0 AS some, count(*) FILTER (WHERE btree <> 'none') > 0 AS ordered FROM seen GROUP BY 1 ORDER BY 1;
SELECT type, sherman FROM seen WHERE type::text IN ('citext', 'address', 'work_address', 'addresses', 'hstore', 'ltree', 'isbn13', 'ean13', 'seg', 'cube', 'lo', 'half', 'mood', 'pair', 'words',
	'citext[]', 'query_int', 'lquery', 'integer[]', 'uuid', 'character varying') ORDER BY type::text COLLATE "C";

-- What is equal to whom: every statement by btree and by sherman, in every kind of constraint.
CREATE FUNCTION outcome(method text, kind text, type text, first text, second text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	rows int;
	definition text := CASE kind WHEN 'unique' THEN 'UNIQUE (v)' WHEN 'primary' THEN 'PRIMARY KEY (v)' WHEN 'several' THEN 'UNIQUE (n, v)'
		ELSE format('EXCLUDE USING %s (v WITH =)', method) END;
	target text := CASE kind WHEN 'exclude' THEN '' WHEN 'several' THEN '(n, v)' ELSE '(v)' END;
	result text := '';
BEGIN
	PERFORM set_config('sherman.constraints', CASE method WHEN 'sherman' THEN 'on' ELSE 'off' END, true);
	EXECUTE format('CREATE TEMP TABLE one (n int, v %s, %s)', type, definition);
	IF (SELECT amname FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam WHERE indrelid = 'one'::regclass) <> method THEN
		RAISE EXCEPTION 'another access method';
	END IF;
	EXECUTE format('INSERT INTO one VALUES (1, %L)', first);
	BEGIN
		EXECUTE format('INSERT INTO one VALUES (1, %L)', second);
		result := 'two';
		DELETE FROM one WHERE ctid = '(0,2)';
	EXCEPTION WHEN unique_violation OR exclusion_violation THEN
		result := 'one';
	END;
	EXECUTE format('INSERT INTO one VALUES (1, %L) ON CONFLICT %s DO NOTHING', second, target);
	GET DIAGNOSTICS rows = ROW_COUNT;
	result := result || ', ' || rows;
	DROP TABLE one;
	RETURN result;
END $$;
CREATE TABLE pairs (type text, first text, second text);
INSERT INTO pairs VALUES ('citext', 'Bob@x.org', 'bob@x.org'), ('citext', 'Bob', 'Bob '), ('address', 'Bob@x.org', 'bob@x.org'), ('work_address', 'A@b', 'a@B'),
	('citext[]', '{Bob}', '{bob}'), ('addresses', '{Bob}', '{bob}'), ('pair', '(1,Bob)', '(1,bob)'), ('words', '[Bob,z)', '[bob,Z)'),
	('hstore', 'a=>1,b=>2', 'b=>2,a=>1'), ('hstore', 'a=>1', 'a=>2'), ('ltree', 'a.b', 'a.b'), ('ltree', 'a.b', 'A.b'),
	('isbn', '0-306-40615-2', '0306406152'), ('isbn13', '978-0-306-40615-7', '9780306406157'), ('ean13', '9780306406157', '978-0-306-40615-7'),
	('issn', '1436-4522', '14364522'), ('ismn', 'M-060-11561-5', '9790060115615'), ('upc', '220356483481', '220356483481'),
	('seg', '1.0', '1'), ('seg', '1 .. 2', '1..2'), ('cube', '(1,2)', '(1,2),(1,2)'), ('cube', '(1)', '(2)'),
	('int[]', '{1,2}', '{1,2}'), ('uuid', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', 'a0eebc999c0b4ef8bb6d6bb9bd380a11'), ('lo', '1', '1'),
	('half', '2', '3'), ('half', '3', '4'), ('mood', 'sad', 'sad'), ('mood', 'sad', 'ok'), ('numeric', '1.0', '1.00'), ('float8', '0', '-0'), ('interval', '1 day', '24:00'),
	('char(5)', 'a', 'a '), ('varchar(5)', 'a', 'a '), ('int4range', '[1,3)', '[1,2]'), ('int4multirange', '{[1,2),[2,3)}', '{[1,3)}'), ('jsonb', '{"a":1,"b":2}', '{"b":2, "a":1}'),
	('inet', '10.0.0.1', '10.0.0.1/32'), ('timetz', '10:00+01', '10:00+01'), ('text COLLATE "C"', 'a', 'A');
SELECT type, first, second, b AS btree, count(*) AS kinds, bool_and(b = s) AS same
FROM (SELECT type, first, second, kind, outcome('btree', kind, type, first, second) AS b, outcome('sherman', kind, type, first, second) AS s
	FROM pairs, unnest('{unique,primary,several,exclude}'::text[]) kind) o
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3;

-- The issue's own case, at length.
SET sherman.constraints = on;
CREATE TABLE people (id int PRIMARY KEY, mail citext UNIQUE, name citext, EXCLUDE USING sherman (name WITH =));
INSERT INTO people VALUES (1, 'Bob@x.org', 'Bob');
INSERT INTO people VALUES (2, 'bob@x.org', 'Rob');
INSERT INTO people VALUES (2, 'BOB@X.ORG', 'Rob') ON CONFLICT (mail) DO UPDATE SET name = 'Robert' RETURNING *;
INSERT INTO people VALUES (3, 'c', 'ROBERT');
SELECT count(*) FROM people;
SET sherman.constraints = off;

-- For everybody, wherever the extension is: no schema of it has to be in the path.
SET ROLE regress_classes_user;
SET search_path = public;
CREATE TABLE mine (t text, v others.citext, w varchar(9));
CREATE INDEX ON mine USING sherman (t text_pattern_ops, v, w varchar_pattern_ops);
CREATE INDEX ON mine USING sherman (v citext_pattern_ops);
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'mine'::regclass ORDER BY indexrelid;
-- Nobody else makes operator classes through us.
SELECT ext.sherman_mirror_opfamily('others', 'citext_ops');
RESET ROLE;
DROP OPERATOR FAMILY pg_catalog.citext_ops USING sherman CASCADE;
SET ROLE regress_classes_user;
CREATE TABLE mine2 (v others.citext);
CREATE UNIQUE INDEX ON mine2 USING sherman (v);
SET sherman.constraints = on;
CREATE TABLE mine3 (v others.citext PRIMARY KEY);
SET sherman.constraints = off;
SELECT ext.sherman_mirror_opfamily('others', 'citext_ops');
SELECT ext.sherman_mirror_opfamilies();
RESET ROLE;
\set VERBOSITY default
CREATE UNIQUE INDEX ON mine2 USING sherman (v);
\set VERBOSITY terse
CREATE TABLE no_domain (v public.work_address);
CREATE INDEX ON no_domain USING sherman (v);
CREATE INDEX ON no_domain USING sherman ((v || 'x'), (v::others.citext));
SELECT ext.sherman_mirror_opfamily('others', 'citext_ops');
CREATE UNIQUE INDEX ON mine2 USING sherman (v);
CREATE INDEX ON no_domain USING sherman (v);
SELECT * FROM differing;
SELECT ext.sherman_mirror_opfamily('others', 'nothing_ops');
-- Whoever names another class has it, as with btree.
CREATE UNIQUE INDEX by_text ON mine2 USING sherman (v text_ops);
SELECT pg_get_indexdef('by_text'::regclass);
DROP INDEX mine2_v_idx;
INSERT INTO mine2 VALUES ('Bob'), ('bob');
SET search_path = public, others;

-- Families grow and shrink, their names change, and two of one name are two.
CREATE FUNCTION half_int(half, int4) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT btint4cmp($1::int4 / 2, $2)';
CREATE FUNCTION half_is(half, int4) RETURNS boolean LANGUAGE sql IMMUTABLE STRICT AS 'SELECT $1::int4 / 2 = $2';
CREATE OPERATOR =% (LEFTARG = half, RIGHTARG = int4, FUNCTION = half_is);
ALTER OPERATOR FAMILY half_ops USING btree ADD OPERATOR 3 =% (half, int4), FUNCTION 1 (half, int4) half_int(half, int4);
SELECT * FROM differing;
ALTER OPERATOR FAMILY half_ops USING btree RENAME TO halves;
ALTER OPERATOR FAMILY halves USING btree DROP OPERATOR 3 (half, int4), FUNCTION 1 (half, int4);
DROP OPERATOR =% (half, int4);
DROP FUNCTION half_int(half, int4);
SELECT count(*) AS differ FROM differing WHERE what <> 'class' AND item !~ '^half';
ALTER OPERATOR FAMILY halves USING btree RENAME TO half_ops;
SELECT * FROM differing;
CREATE SCHEMA second;
SET search_path = second, public, others;
CREATE OPERATOR CLASS half_ops FOR TYPE half USING btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 half_cmp(half, half);
CREATE OPERATOR CLASS int4_ops FOR TYPE half USING btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 half_cmp(half, half);
SELECT opfname, opfnamespace::regnamespace, opcname FROM pg_opfamily f JOIN pg_opclass c ON opcfamily = f.oid JOIN pg_am a ON a.oid = opfmethod
WHERE amname = 'sherman' AND opcintype = 'half'::regtype ORDER BY 1;
SET search_path = public, others;
DROP SCHEMA second CASCADE;
SELECT * FROM differing;
DROP OPERATOR CLASS half_ops USING btree;
SELECT count(*) AS none FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod WHERE amname = 'sherman' AND opcname LIKE 'half%';
DROP OPERATOR FAMILY half_ops USING btree;
DROP TYPE half CASCADE;
SELECT * FROM differing;

-- Extensions go as they would without us, and neither takes the other along.
DROP TABLE people, mine, mine2, no_domain, every, types, seen;
DROP DOMAIN address, work_address, addresses CASCADE;
DROP TYPE pair, words;
DROP EXTENSION citext;
DROP EXTENSION isn;
DROP EXTENSION hstore;
SELECT * FROM differing;
-- a trusted extension, by one who is no superuser
SET ROLE regress_classes_user;
CREATE EXTENSION citext SCHEMA others;
SELECT count(*) AS differ FROM differing;
DROP EXTENSION citext;
RESET ROLE;
SELECT * FROM differing;
CREATE EXTENSION citext SCHEMA others;
CREATE TABLE again (v citext UNIQUE);
CREATE INDEX again_sherman ON again USING sherman (v);
DROP EXTENSION sherman;
DROP EXTENSION sherman CASCADE;
SELECT extname FROM pg_extension ORDER BY 1;
SELECT count(*) FROM pg_indexes WHERE tablename = 'again';
CREATE EXTENSION sherman;
SELECT * FROM differing;
DROP EXTENSION sherman;
\c :home
DROP DATABASE regress_classes;
DROP ROLE regress_classes_user;

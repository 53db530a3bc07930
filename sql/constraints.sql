-- PRIMARY KEY and UNIQUE constraints over sherman indexes, and what every version of core refuses of them (the others: btree_alone.sql).
\set VERBOSITY terse
SET client_min_messages = warning;
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/twins.psql'
\i :include
-- constraints(table): its constraints and their indexes' access methods
CREATE FUNCTION constraints(name text) RETURNS TABLE (conname name, amname name, definition text) LANGUAGE sql AS $$
	SELECT conname, amname, pg_get_constraintdef(k.oid) FROM pg_constraint k JOIN pg_class i ON i.oid = conindid JOIN pg_am a ON a.oid = i.relam
	WHERE conrelid = name::regclass ORDER BY 1
$$;
SHOW sherman.constraints;
CREATE TABLE plain (k int PRIMARY KEY);
SELECT * FROM constraints('plain');

-- Twins: the statement for btree runs with the setting off.
CREATE OR REPLACE FUNCTION one(method text, statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	state text;
	message text;
	detail text;
	name text;
	rows bigint;
BEGIN
	SET CONSTRAINTS ALL DEFERRED;
	PERFORM set_config('sherman.constraints', CASE method WHEN 'sherman' THEN 'on' ELSE 'off' END, true);
	EXECUTE replace(statement, '@', method);
	GET DIAGNOSTICS rows = ROW_COUNT;
	SET CONSTRAINTS ALL IMMEDIATE;
	PERFORM set_config('sherman.constraints', 'off', true);
	RETURN 'ok, ' || rows;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, name = CONSTRAINT_NAME;
	RETURN replace(concat_ws('; ', state, message, nullif(detail, ''), nullif(name, '')), method, '@');
END $$;
SELECT twins($$CREATE TABLE p_@ (k int PRIMARY KEY, u text UNIQUE, n int, m int, d int CONSTRAINT p_@_later UNIQUE DEFERRABLE INITIALLY DEFERRED,
	UNIQUE NULLS NOT DISTINCT (n, m), CONSTRAINT p_@_fill UNIQUE (m, k) WITH (fillfactor = 70))$$);
SELECT * FROM constraints('p_sherman');
SELECT twins($$INSERT INTO p_@ VALUES (1, 'a', 1, 1, 1), (2, 'b', NULL, 1, 2), (3, NULL, 2, NULL, NULL), (4, NULL, 2, 2, NULL)$$);
SELECT twins($$INSERT INTO p_@ VALUES (1, 'c', 3, 3, 3)$$);
SELECT twins($$INSERT INTO p_@ VALUES (NULL, 'c', 3, 3, 3)$$);
SELECT twins($$INSERT INTO p_@ VALUES (5, 'a', 3, 3, 3)$$);
SELECT twins($$INSERT INTO p_@ VALUES (5, 'c', NULL, 1, 3)$$);
SELECT twins($$INSERT INTO p_@ VALUES (5, 'c', 3, 3, 1)$$);
SELECT twins($$INSERT INTO p_@ VALUES (5, 'c', 3, 3, 5) ON CONFLICT ON CONSTRAINT p_@_pkey DO NOTHING$$);
SELECT twins($$INSERT INTO p_@ VALUES (5, 'd', 3, 4, 6) ON CONFLICT (k) DO UPDATE SET m = 9$$);
SELECT twins($$INSERT INTO p_@ VALUES (6, 'd', 4, 4, 5) ON CONFLICT ON CONSTRAINT p_@_later DO NOTHING$$);
SELECT twins($$UPDATE p_@ SET d = 3 - d WHERE d IN (1, 2)$$);
SELECT twins($$UPDATE p_@ SET k = 3 - k WHERE k IN (1, 2)$$);
SELECT twins($$UPDATE p_@ SET d = d + 1$$);
SELECT twins($$UPDATE p_@ SET d = 2 WHERE d = 3$$);
SELECT twins($$DO 'BEGIN INSERT INTO p_@ VALUES (7, NULL, 7, 7, 2); UPDATE p_@ SET d = 8 WHERE k = 7; INSERT INTO p_@ VALUES (8, NULL, 8, 8, 8);
	DELETE FROM p_@ WHERE k = 7; END'$$);
SELECT k, u, n, m, d FROM p_sherman EXCEPT TABLE p_btree;
SELECT count(*) FROM p_sherman;

-- ALTER TABLE
SELECT twins($$CREATE TABLE a_@ (k int, v int)$$);
SELECT twins($$INSERT INTO a_@ SELECT i, i % 10 FROM generate_series(1, 100) i$$);
SELECT twins($$ALTER TABLE a_@ ADD PRIMARY KEY (k), ADD COLUMN w int UNIQUE, ADD CONSTRAINT a_@_kv UNIQUE (v, k) DEFERRABLE$$);
SELECT twins($$ALTER TABLE a_@ ADD CHECK (v <> 1) NOT VALID, ADD UNIQUE (v, w), ADD UNIQUE (v, nothing)$$);
SELECT * FROM constraints('a_sherman');
SELECT twins($$ALTER TABLE a_@ RENAME CONSTRAINT a_@_kv TO a_@_renamed$$);
SELECT twins($$ALTER TABLE a_@ DROP CONSTRAINT a_@_renamed$$);
SELECT twins($$INSERT INTO a_@ VALUES (100, 1)$$);
SELECT twins($$ALTER TABLE a_@ REPLICA IDENTITY USING INDEX a_@_pkey$$);
SELECT twins($$ALTER TABLE a_@ CLUSTER ON a_@_pkey$$);
SELECT twins($$SELECT a.*, max(k) FROM a_@ a GROUP BY k$$);
SELECT twins($$CREATE TABLE l_@ (LIKE a_@ INCLUDING ALL)$$);
SELECT * FROM constraints('l_sherman');
SELECT twins($$CREATE UNLOGGED TABLE s_@ (k int PRIMARY KEY) $$);
SELECT * FROM constraints('s_sherman');
CLUSTER a_sherman;
REINDEX TABLE CONCURRENTLY a_sherman;
SELECT sherman_check('a_sherman_pkey', true), sherman_check('p_sherman_later', true);
-- Core makes a constraint anew by its definition, which has no access method, when its column gets another type.
SELECT twins($$ALTER TABLE l_@ ALTER k TYPE bigint$$);
SELECT * FROM constraints('l_sherman');

-- temporary tables
SET sherman.constraints = on;
CREATE TEMP TABLE temporary (k int PRIMARY KEY);
CREATE TABLE pg_temp.temporary2 (k int PRIMARY KEY);
ALTER TABLE temporary ADD v int UNIQUE;
SELECT * FROM constraints('temporary') UNION ALL SELECT * FROM constraints('temporary2');
-- where it stays btree's
CREATE TABLE parted (k int PRIMARY KEY, v int) PARTITION BY RANGE (k);
CREATE TABLE part1 PARTITION OF parted (v UNIQUE) FOR VALUES FROM (1) TO (10);
ALTER TABLE part1 ADD UNIQUE (v, k);
ALTER TABLE parted ADD UNIQUE (v, k);
SELECT * FROM constraints('parted') UNION ALL SELECT * FROM constraints('part1');
-- one that becomes a partition
CREATE TABLE part2 (k int NOT NULL, v int UNIQUE);
ALTER TABLE parted ATTACH PARTITION part2 FOR VALUES FROM (10) TO (20);
SELECT * FROM constraints('part2');
INSERT INTO parted VALUES (10, 1), (11, 1);
INSERT INTO parted VALUES (1, 1), (1, 2) ON CONFLICT (k) DO NOTHING;
-- schemas, prepared and repeated statements, functions
CREATE SCHEMA inner_schema CREATE TABLE t (k int PRIMARY KEY) CREATE TABLE t2 (k int UNIQUE);
SELECT * FROM constraints('inner_schema.t') UNION ALL SELECT * FROM constraints('inner_schema.t2');
CREATE FUNCTION make() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..2 LOOP
		DROP TABLE IF EXISTS made;
		PERFORM set_config('sherman.constraints', CASE i WHEN 1 THEN 'on' ELSE 'off' END, false);
		CREATE TABLE made (k int PRIMARY KEY);
		RAISE WARNING '%', (SELECT amname FROM constraints('made'));
	END LOOP;
END $$;
SELECT make();
SELECT make();
SET sherman.constraints = on;
CREATE TABLE IF NOT EXISTS made (k int UNIQUE);
CREATE TABLE no_class (x xid UNIQUE);
CREATE TABLE no_class (x point PRIMARY KEY);
CREATE TABLE wide (k int, v int, PRIMARY KEY (k, nothing));

-- What core refuses leaves nothing behind.
SELECT count(*) AS before FROM pg_class \gset
CREATE UNIQUE INDEX made_again ON made USING sherman (k);
SELECT count(*) - :before AS one FROM pg_class;
ALTER TABLE made ADD CONSTRAINT using_index UNIQUE USING INDEX made_again;
DROP INDEX made_again;
SELECT count(*) - :before AS nothing FROM pg_class;
-- Core takes the oldest of the indexes that fit: with a btree index from before there is something to refer to.
CREATE UNIQUE INDEX plain_k ON plain USING sherman (k);
CREATE TABLE referring (k int REFERENCES plain ON DELETE CASCADE);
INSERT INTO plain VALUES (1), (2);
INSERT INTO referring VALUES (1), (2);
DELETE FROM plain WHERE k = 1;
INSERT INTO referring VALUES (1);
TABLE referring;

-- The mark that dumps know sherman's constraints by: with it the setting does not count.
RESET sherman.constraints;
CREATE TABLE marked (k int PRIMARY KEY WITH (sherman), v int CONSTRAINT marked_v UNIQUE WITH (fillfactor = 70, sherman = true), w int UNIQUE);
ALTER TABLE marked ADD CONSTRAINT marked_kv UNIQUE (k, v) WITH (sherman = 'on');
SET sherman.constraints = on;
ALTER TABLE marked ADD x int CONSTRAINT marked_x UNIQUE WITH (fillfactor = 60, sherman = off), ADD UNIQUE (w, x);
RESET sherman.constraints;
SELECT c.relname, a.amname, c.reloptions FROM pg_class c JOIN pg_am a ON a.oid = c.relam JOIN pg_index i ON indexrelid = c.oid WHERE indrelid = 'marked'::regclass ORDER BY 1;
INSERT INTO marked VALUES (1, 1, 1), (2, 2, 2);
INSERT INTO marked VALUES (1, 3, 3);
-- it stays
\set VERBOSITY default
ALTER INDEX marked_pkey RESET (sherman);
\set VERBOSITY terse
ALTER INDEX marked_v SET (fillfactor = 80, sherman = off);
ALTER TABLE marked_v RESET (sherman);
ALTER INDEX marked_v SET (fillfactor = 80);
CREATE TABLE marked_too (LIKE marked INCLUDING ALL);
CREATE TABLE marked_not (k int PRIMARY KEY WITH (sherman = 7));
-- also where some are made anew, of which core makes btrees
ALTER TABLE marked ALTER v TYPE bigint, ALTER w TYPE bigint;
ALTER TABLE marked_too ALTER w TYPE bigint USING w + 1;
CREATE TYPE kind AS (k int, v int);
CREATE TABLE kinds OF kind (PRIMARY KEY (k) WITH (sherman), UNIQUE (v) WITH (sherman));
CREATE TABLE kinds_child () INHERITS (marked);
ALTER TABLE kinds_child ADD UNIQUE (v) WITH (sherman);
ALTER TABLE marked ALTER v TYPE int;
ALTER TYPE kind ALTER ATTRIBUTE v TYPE bigint CASCADE;
SELECT c.relname, a.amname, c.reloptions FROM pg_class c JOIN pg_am a ON a.oid = c.relam JOIN pg_index i ON indexrelid = c.oid
WHERE indrelid IN ('marked'::regclass, 'marked_too'::regclass, 'kinds'::regclass, 'kinds_child'::regclass) ORDER BY 1;
CREATE ROLE regress_constraints_user;
SET ROLE regress_constraints_user;
ALTER TABLE marked ALTER k TYPE bigint;
RESET ROLE;
DROP ROLE regress_constraints_user;
DROP TABLE kinds_child, kinds, marked, marked_too;
DROP TYPE kind;

-- The planner knows what is unique.
RESET sherman.constraints;
CREATE TABLE joined (k int, other int);
ANALYZE joined, p_sherman;
EXPLAIN (COSTS OFF) SELECT j.* FROM joined j LEFT JOIN p_sherman p ON p.k = j.other;
EXPLAIN (COSTS OFF) SELECT j.* FROM joined j LEFT JOIN p_sherman p ON p.u = j.other::text;
EXPLAIN (COSTS OFF) SELECT j.* FROM joined j LEFT JOIN p_sherman p ON p.m = j.other;
EXPLAIN (COSTS OFF) SELECT j.* FROM joined j LEFT JOIN p_sherman p ON p.d = j.other;

DROP SCHEMA inner_schema CASCADE;
DROP TABLE plain, p_btree, p_sherman, referring, a_btree, a_sherman, l_btree, l_sherman, s_btree, s_sherman, temporary, temporary2, parted, part2, made, joined;
DROP FUNCTION one, twins, constraints, make;

-- What sherman does not do it refuses, with an error that says so.
SET default_toast_compression = pglz; -- how long a row is
\set VERBOSITY default
\set SHOW_CONTEXT never
CREATE TABLE e (id int, a int, t text, p point, b box, j json, x xid);

-- not supported
CREATE INDEX ON e USING sherman (p);
\echo :LAST_ERROR_SQLSTATE
CREATE INDEX ON e USING sherman (j);
CREATE INDEX ON e USING sherman (x);
SELECT count(*) FROM pg_index WHERE indrelid = 'e'::regclass;

-- storage parameters
CREATE INDEX ON e USING sherman (a) WITH (fillfactor = 9);
CREATE INDEX ON e USING sherman (a) WITH (replicas = 2);
\echo :LAST_ERROR_SQLSTATE
CREATE INDEX ON e USING sherman (a) WITH (fillfactor = 101);
CREATE INDEX ON e USING sherman (a) WITH (buffering = on);
CREATE INDEX e_a ON e USING sherman (a) WITH (fillfactor = 70, deduplicate_items = off);

-- the longest key is btree's
CREATE INDEX e_t ON e USING sherman (t);
\set VERBOSITY terse
INSERT INTO e (id, t) SELECT 1, string_agg(md5(i::text), '') FROM generate_series(1, 500) i;
\echo :LAST_ERROR_SQLSTATE
INSERT INTO e (id, t) SELECT 1, string_agg(md5(i::text), '') FROM generate_series(1, 90) i;
\echo :LAST_ERROR_SQLSTATE
INSERT INTO e (id, t) SELECT 2, string_agg(md5(i::text), '') FROM generate_series(1, 84) i;
INSERT INTO e (id, t) SELECT 3, repeat('x', 100000);
SELECT id, length(t) FROM e WHERE t > '' ORDER BY id;
DROP INDEX e_t;
-- in a transaction that comes to nothing: a deleted row would count as long as any snapshot may see it
BEGIN;
INSERT INTO e (id, t) SELECT 4, string_agg(md5(i::text), '') FROM generate_series(1, 500) i;
CREATE INDEX e_t ON e USING sherman (t);
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
CREATE INDEX e_t ON e USING sherman (t);
SELECT sherman_check('e_t', true);
\set VERBOSITY default

-- errors of the user's own functions leave everything whole
CREATE FUNCTION picky(v int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	IF v = 13 THEN
		RAISE EXCEPTION 'not this one';
	END IF;
	RETURN v;
END $$;
CREATE INDEX e_picky ON e USING sherman (picky(a));
INSERT INTO e (id, a) SELECT i, i FROM generate_series(10, 20) i;
INSERT INTO e (id, a) SELECT i, i FROM generate_series(14, 20) i;
DROP INDEX e_picky;
INSERT INTO e (id, a) VALUES (13, 13);
CREATE INDEX e_picky ON e USING sherman (picky(a));
SELECT count(*) FROM pg_class WHERE relname = 'e_picky';
SELECT sherman_check('e_a', true);

-- constraints by exclusion work, and are never passed over
ALTER TABLE e ADD CONSTRAINT e_alone EXCLUDE USING sherman (id WITH =);
INSERT INTO e (id) VALUES (13);
INSERT INTO e (id) VALUES (99), (99);
\echo :LAST_ERROR_SQLSTATE
INSERT INTO e (id) VALUES (99) ON CONFLICT DO NOTHING;
INSERT INTO e (id) VALUES (99) ON CONFLICT DO NOTHING;
SELECT count(*) FROM e WHERE id = 99;

-- a cancel ends a build and leaves nothing behind
CREATE FUNCTION slow(v int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.05); RETURN v; END $$;
SET statement_timeout = '200ms';
CREATE INDEX e_slow ON e USING sherman (slow(id));
RESET statement_timeout;
SELECT count(*) FROM pg_class WHERE relname = 'e_slow';

-- sherman_check says what it cannot check
CREATE INDEX e_btree ON e (a);
SELECT sherman_check('e_btree');
\echo :LAST_ERROR_SQLSTATE
SELECT sherman_check('e');
SELECT sherman_check(0);
CREATE TABLE ep (a int) PARTITION BY LIST (a);
CREATE INDEX ep_a ON ep USING sherman (a);
SELECT sherman_check('ep_a');

DROP TABLE e, ep;
DROP FUNCTION picky, slow;

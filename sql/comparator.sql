-- A comparator in SQL that raises an error at its n-th call: whatever it interrupts leaves no lock, no half entry, nothing.
\set VERBOSITY terse
SET client_min_messages = warning;
SET jit = off;
CREATE SCHEMA test_comparator;
SET search_path = test_comparator, public;

-- fussy.calls is the call that raises, counted down; 0: none does.  The order is that of bytes, and no normalized keys help.
SET fussy.calls = 0;
CREATE FUNCTION fussy_cmp(a text, b text) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
	calls int := current_setting('fussy.calls');
BEGIN
	IF calls = 1 THEN
		RAISE EXCEPTION 'not now';
	ELSIF calls > 1 THEN
		PERFORM set_config('fussy.calls', (calls - 1)::text, false);
	END IF;
	RETURN bttextcmp(a, b);
END $$;
CREATE FUNCTION fussy_lt(text, text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN test_comparator.fussy_cmp($1, $2) < 0; END';
CREATE FUNCTION fussy_le(text, text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN test_comparator.fussy_cmp($1, $2) <= 0; END';
CREATE FUNCTION fussy_eq(text, text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN test_comparator.fussy_cmp($1, $2) = 0; END';
CREATE FUNCTION fussy_ge(text, text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN test_comparator.fussy_cmp($1, $2) >= 0; END';
CREATE FUNCTION fussy_gt(text, text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN test_comparator.fussy_cmp($1, $2) > 0; END';
CREATE OPERATOR <! (LEFTARG = text, RIGHTARG = text, FUNCTION = fussy_lt, COMMUTATOR = >!);
CREATE OPERATOR <=! (LEFTARG = text, RIGHTARG = text, FUNCTION = fussy_le, COMMUTATOR = >=!);
CREATE OPERATOR =! (LEFTARG = text, RIGHTARG = text, FUNCTION = fussy_eq, COMMUTATOR = =!, MERGES);
CREATE OPERATOR >=! (LEFTARG = text, RIGHTARG = text, FUNCTION = fussy_ge);
CREATE OPERATOR >! (LEFTARG = text, RIGHTARG = text, FUNCTION = fussy_gt);
CREATE OPERATOR CLASS fussy_ops FOR TYPE text USING btree AS
	OPERATOR 1 <!, OPERATOR 2 <=!, OPERATOR 3 =!, OPERATOR 4 >=!, OPERATOR 5 >!, FUNCTION 1 fussy_cmp(text, text);

-- insist(statement): runs it with an error at the first call, the second, and so on, until it comes to its end without one.
-- Later ones are tried by samples.  Tells how many errors there were; `answer` is what the statement returns in the end.
CREATE FUNCTION insist(statement text, OUT errors int, OUT answer text) LANGUAGE plpgsql AS $$
DECLARE
	n int := 1;
BEGIN
	errors := 0;
	LOOP
		BEGIN
			PERFORM set_config('fussy.calls', n::text, false);
			IF statement ~ '^(CREATE|REINDEX)' THEN
				EXECUTE statement;
			ELSE
				EXECUTE statement INTO answer;
			END IF;
			EXIT;
		EXCEPTION WHEN raise_exception THEN
			errors := errors + 1;
			n := n + 1 + n / 20;
		END;
	END LOOP;
	PERFORM set_config('fussy.calls', '0', false);
END $$;

-- Keys, some in the cell and some out of line: of twenty numbers one is a row's alone, the others have it in common with some.
CREATE FUNCTION fussy_key(i int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT md5((CASE WHEN i % 20 = 0 THEN i ELSE i % 211 END)::text) || CASE WHEN i % 3 = 0 THEN repeat('x', 200) ELSE '' END
$$;
CREATE TABLE f (id int, v text COLLATE "C") WITH (autovacuum_enabled = off);
CREATE INDEX f_v ON f USING sherman (v fussy_ops);

-- INSERT: at each call, of each row, through the splits of leaves and their parents.
SELECT max(errors) > 30 AS many, sum(errors) > 1500 AS all
FROM generate_series(1, 500) i, LATERAL insist(format('INSERT INTO f VALUES (%s, fussy_key(%s)) RETURNING id', i, i));
SELECT count(*), count(DISTINCT id), sherman_check('f_v', true) FROM f;
SELECT height > 1 AS height, leaves > 10 AS leaves, entries >= 500 AS entries FROM sherman_stat_indexes WHERE indexrelid = 'f_v'::regclass;

-- Many at once, as one error undoes them all.
SELECT errors > 20 AS errors, answer FROM
	insist('WITH i AS (INSERT INTO f SELECT i, fussy_key(i) FROM generate_series(501, 700) i RETURNING id) SELECT count(*) FROM i');
SELECT count(*), count(DISTINCT id), sherman_check('f_v', true) FROM f;

-- Scans of all kinds.
SET enable_seqscan = off;
SET enable_sort = off;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM f WHERE v >! '8' AND v <! 'a';
SELECT errors > 3 AS errors, answer = (SELECT count(*) FROM f WHERE f.v > '8' AND f.v < 'a')::text AS same
FROM insist('SELECT count(*) FROM f WHERE v >! ''8'' AND v <! ''a''');
SELECT errors > 0 AS errors, answer = (SELECT id FROM f ORDER BY f.v COLLATE "C" DESC, ctid DESC LIMIT 1)::text AS same
FROM insist('SELECT id FROM f WHERE v >! ''8'' ORDER BY v USING >! LIMIT 1');
SELECT errors > 3 AS errors, answer = (SELECT array_agg(id ORDER BY f.v COLLATE "C", ctid) FROM f WHERE f.v > 'c')::text AS same
FROM insist('SELECT array_agg(id) FROM (SELECT id FROM f WHERE v >! ''c'' ORDER BY v USING <!) s');
SELECT errors > 3 AS errors, answer = (SELECT count(*) FROM f WHERE f.v IN (fussy_key(1), fussy_key(2), fussy_key(20), 'none'))::text AS same
FROM insist('SELECT count(*) FROM f WHERE v =! ANY (ARRAY[fussy_key(2), ''none'', fussy_key(1), fussy_key(20), fussy_key(2)])');
EXPLAIN (COSTS OFF) SELECT count(*) FROM f a JOIN f b ON a.v =! b.v WHERE a.v >! 'e' AND b.v >! 'e';
SELECT errors > 20 AS errors, answer = (SELECT sum(n * n) FROM (SELECT count(*) AS n FROM f WHERE f.v > 'e' GROUP BY f.v) s)::text AS same
FROM insist('SELECT count(*) FROM f a JOIN f b ON a.v =! b.v WHERE a.v >! ''e'' AND b.v >! ''e''');
SET enable_bitmapscan = on;
SET enable_indexscan = off;
SELECT errors > 3 AS errors, answer = (SELECT count(*) FROM f WHERE f.v > '8' AND f.v < 'a')::text AS same
FROM insist('SELECT count(*) FROM f WHERE v >! ''8'' AND v <! ''a''');
RESET enable_indexscan;
RESET enable_seqscan;
RESET enable_sort;
RESET enable_hashjoin;
RESET enable_nestloop;
SELECT errors > 100 AS errors, answer FROM insist('SELECT sherman_check(''f_v'', true)');

-- A cursor that fails in the middle.
SET enable_seqscan = off;
SET enable_sort = off;
SET enable_bitmapscan = off;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM f WHERE v >! '0' ORDER BY v USING <!;
FETCH 1 FROM c \gset
SAVEPOINT s;
SET fussy.calls = 1;
INSERT INTO f VALUES (0, 'x');
ROLLBACK TO s;
MOVE 1000 FROM c;
COMMIT;
RESET enable_seqscan;
RESET enable_sort;
RESET enable_bitmapscan;

-- Builds: each that fails is gone, and of an index that is built anew the old tree stays.
SELECT errors > 20 AS errors FROM insist('CREATE INDEX f_second ON f USING sherman (v fussy_ops, id)');
SELECT sherman_check('f_second', true);
SELECT tree AS before FROM sherman_stat_indexes WHERE indexrelid = 'f_v'::regclass \gset
SET fussy.calls = 300;
REINDEX INDEX f_v;
SET fussy.calls = 0;
SELECT tree = :'before' AS same_tree, state FROM sherman_stat_indexes WHERE indexrelid = 'f_v'::regclass;
SELECT errors > 20 AS errors FROM insist('REINDEX INDEX f_v');
SELECT tree <> :'before' AS other_tree, state FROM sherman_stat_indexes WHERE indexrelid = 'f_v'::regclass;
SET fussy.calls = 500;
CREATE INDEX CONCURRENTLY f_third ON f USING sherman (v fussy_ops);
SET fussy.calls = 0;
SELECT indisvalid FROM pg_index WHERE indexrelid = 'f_third'::regclass;
REINDEX INDEX CONCURRENTLY f_third;
SELECT indisvalid, sherman_check('f_third', true) FROM pg_index WHERE indexrelid = 'f_third'::regclass;
DROP INDEX f_third, f_second;

-- VACUUM asks nobody for an order.
DELETE FROM f WHERE id % 3 = 1;
SET fussy.calls = 1;
VACUUM (INDEX_CLEANUP ON) f;
SET fussy.calls = 0;
SELECT count(*), sherman_check('f_v', true) FROM f;

-- What a check for conflicts finds, or is kept from.
CREATE TABLE x (id int, v text COLLATE "C", EXCLUDE USING sherman (v fussy_ops WITH =!));
SELECT sum(errors) > 500 AS errors FROM generate_series(1, 100) i, LATERAL insist(format('INSERT INTO x VALUES (%s, md5(%L)) RETURNING id', i, i));
SELECT errors > 0 AS errors, answer FROM
	insist('WITH i AS (INSERT INTO x VALUES (101, md5(''7'')) ON CONFLICT DO NOTHING RETURNING id) SELECT count(*) FROM i');
INSERT INTO x VALUES (101, md5('7'));
SELECT count(*), count(DISTINCT v), sherman_check('x_v_excl', true) FROM x;

-- And all of it once more without errors.
INSERT INTO f SELECT i, fussy_key(i) FROM generate_series(1001, 1500) i;
SELECT count(*), sherman_check('f_v', true) FROM f;
SELECT indexrelid::regclass, state FROM sherman_stat_indexes WHERE indexrelid IN ('f_v'::regclass, 'x_v_excl'::regclass) ORDER BY indexrelid::regclass::text;

-- A comparator that queries through an index of its own: each keeps what it holds in mind of its tree.
CREATE TABLE ranks (k int PRIMARY KEY, rank int);
INSERT INTO ranks SELECT i, i FROM generate_series(0, 255) i;
ALTER TABLE ranks DROP CONSTRAINT ranks_pkey;
CREATE INDEX ranks_k ON ranks USING sherman (k);
VACUUM ANALYZE ranks;
CREATE FUNCTION curious_cmp(a text, b text) RETURNS int LANGUAGE plpgsql STABLE STRICT AS $$
DECLARE
	ra int;
	rb int;
BEGIN
	SELECT r.rank INTO STRICT ra FROM test_comparator.ranks r WHERE r.k = ascii(a);
	SELECT r.rank INTO STRICT rb FROM test_comparator.ranks r WHERE r.k = ascii(b);
	IF ra <> rb THEN
		RETURN sign(ra - rb);
	END IF;
	BEGIN
		PERFORM 1 / (length(a) % 2);	-- an error that is caught
	EXCEPTION WHEN division_by_zero THEN
		NULL;
	END;
	RETURN bttextcmp(a, b);
END $$;
ALTER FUNCTION curious_cmp(text, text) IMMUTABLE;
ALTER FUNCTION curious_cmp(text, text) SET enable_seqscan = off;
CREATE OPERATOR CLASS curious_ops FOR TYPE text USING btree AS
	OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 curious_cmp(text, text);
CREATE TABLE c (id int, v text COLLATE "C");
CREATE UNIQUE INDEX c_v ON c USING sherman (v curious_ops);
INSERT INTO c SELECT i, 'abc'::text || md5(i::text) FROM generate_series(1, 600) i;
INSERT INTO c VALUES (0, 'abc' || md5('7'));
SET enable_seqscan = off;
SELECT count(*) FROM generate_series(1, 600, 7) i, LATERAL (SELECT id FROM c WHERE v = 'abc' || md5(i::text)) f WHERE f.id = i;
SELECT count(*), bool_and(v > before) AS ascending FROM (SELECT v, lag(v) OVER () AS before FROM (SELECT v FROM c ORDER BY v) o) o;
DELETE FROM c WHERE id % 3 = 0;
VACUUM (INDEX_CLEANUP ON) c;
INSERT INTO c SELECT i, 'abc'::text || md5(i::text) FROM generate_series(3, 600, 3) i;
CREATE INDEX c_second ON c USING sherman (v curious_ops, id);
SELECT sherman_check('c_v', true), sherman_check('c_second', true), count(*) FROM c;
RESET enable_seqscan;

DROP SCHEMA test_comparator CASCADE;

-- Unique indexes: what btree refuses, sherman refuses, by the same error; what btree lets in, it lets in.
\set VERBOSITY terse
SET client_min_messages = warning;
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/twins.psql'
\i :include

-- one column of each way that keys are stored: whole, whole but not the image, prefix, not normalized, out of line
CREATE TYPE pair AS (a int, b text);
CREATE TYPE color AS ENUM ('red', 'green', 'blue');
CREATE COLLATION seeing_not (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE sorts_of (type text, first text, same text, other text);
INSERT INTO sorts_of VALUES
	('int4', '1', '1', '2'), ('int8', '1', '1', '4294967297'), ('bool', 't', 'true', 'f'), ('uuid',
	'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12'),
	('float8', '0', '-0', 'NaN'), ('interval', '1 day', '24 hours', '25 hours'), ('timestamptz', '2020-01-01 00:00:00+00',
	'2020-01-01 01:00:00+01', 'infinity'), ('text', 'a long enough word', 'a long enough word', 'a long enough worm'),
	('text COLLATE "C"', 'abcdefgh1', 'abcdefgh1', 'abcdefgh2'), ('text COLLATE seeing_not', 'Word', 'wORD', 'work'),
	('bpchar(9)', 'ab', 'ab  ', 'ac'), ('varchar', 'ab', 'ab', 'ab '), ('name', 'ab', 'ab', 'ac'), ('"char"', 'a', 'a', 'b'),
	('bytea', '\x00', '\x00', '\x0000'), ('numeric', '1.10', '1.1', '1.100000000000000000001'), ('inet', '10.0.0.1', '10.0.0.1/32',
	'10.0.0.1/24'), ('int4[]', '{1,2}', '{1, 2}', '{1,2,3}'), ('text[]', '{a,NULL}', '{"a",NULL}', '{a,a}'),
	('pair', '(1,a)', '(1,"a")', '(1,b)'), ('color', 'red', 'red', 'blue'), ('int4range', '[1,3)', '[1,2]', '[1,4)'),
	('jsonb', '{"a": 1}', '{"a": 1.0}', '{"a": 2}'), ('tsvector', 'a b', 'b a', 'a'), ('bit varying', '101', '101', '1010'),
	('pg_lsn', '0/1', '0/00000001', '0/2'), ('macaddr', '08:00:2b:01:02:03', '08002b010203', '08:00:2b:01:02:04'),
	('text', repeat('x', 2000) || '1', repeat('x', 2000) || '1', repeat('x', 2000) || '2');
-- Inserted one by one, and built over them: first, same, other; of the last two texts the messages are long.
CREATE FUNCTION try_type(type text, first text, same text, other text, OUT inserts boolean, OUT builds boolean, OUT state text)
LANGUAGE plpgsql AS $$
DECLARE
	got text;
BEGIN
	CREATE TABLE v_btree (k int);
	CREATE TABLE v_sherman (k int);
	PERFORM twins(format('ALTER TABLE v_@ ADD v %s', type));
	PERFORM twins('CREATE UNIQUE INDEX v_@_v ON v_@ USING @ (v)');
	PERFORM twins(format('INSERT INTO v_@ VALUES (1, %L)', first));
	got := twins(format('INSERT INTO v_@ VALUES (1, %L)', same));
	inserts := got NOT LIKE '% <> %' AND got LIKE '23505; duplicate key value violates unique constraint "v_@_v"; Key (v)=(% already exists.%; v_@_v';
	inserts := inserts AND twins(format('INSERT INTO v_@ VALUES (1, %L)', other)) = 'ok, 1' AND
		twins('INSERT INTO v_@ VALUES (1, NULL)') = 'ok, 1' AND twins('INSERT INTO v_@ VALUES (1, NULL)') = 'ok, 1';
	state := CASE WHEN inserts THEN '' ELSE left(got, 300) END;
	PERFORM twins('DROP INDEX v_@_v');
	PERFORM twins(format('INSERT INTO v_@ VALUES (1, %L)', same));
	got := twins('CREATE UNIQUE INDEX v_@_v ON v_@ USING @ (v)');
	builds := got NOT LIKE '% <> %' AND got LIKE '23505; could not create unique index "v_@_v"; Key (v)=(%) is duplicated.%; v_@_v';
	state := state || CASE WHEN builds THEN '' ELSE left(got, 300) END;
	PERFORM twins('DELETE FROM v_@ WHERE ctid = (SELECT max(ctid) FROM v_@)');
	builds := builds AND twins('CREATE UNIQUE INDEX v_@_v ON v_@ USING @ (v)') LIKE 'ok%';
	PERFORM twins('DROP INDEX v_@_v');
	builds := builds AND twins('CREATE UNIQUE INDEX v_@_v ON v_@ USING @ (v) NULLS NOT DISTINCT') LIKE '23505;%(v)=(null) is duplicated%';
	DROP TABLE v_btree, v_sherman;
END $$;
SELECT left(s.type, 30) AS type, length(first), t.* FROM sorts_of s, LATERAL try_type(s.type, first, same, other) t;

-- several columns, directions, NULLs
CREATE TABLE m_btree (a int, b text, c numeric);
CREATE TABLE m_sherman (LIKE m_btree);
SELECT twins('CREATE UNIQUE INDEX m_@_abc ON m_@ USING @ (a DESC, b NULLS FIRST, c DESC)');
SELECT twins('CREATE UNIQUE INDEX m_@_ba ON m_@ USING @ (b DESC, a) NULLS NOT DISTINCT WHERE c > 5');
SELECT twins('CREATE UNIQUE INDEX m_@_expression ON m_@ USING @ (lower(b), (a / 10)) WHERE c < 0');
SELECT twins($$INSERT INTO m_@ VALUES (1, 'one', 1.5), (1, 'one', 1.6), (1, NULL, 1.5), (NULL, NULL, NULL), (1, NULL, 1.5)$$);
SELECT twins($$INSERT INTO m_@ VALUES (1, 'one', 1.50)$$);
SELECT twins($$INSERT INTO m_@ VALUES (2, 'two', 6), (2, NULL, 6), (NULL, 'two', 6), (NULL, NULL, 6)$$);
SELECT twins($$INSERT INTO m_@ VALUES (2, 'two', 7)$$);
SELECT twins($$INSERT INTO m_@ VALUES (2, NULL, 7)$$);
SELECT twins($$INSERT INTO m_@ VALUES (NULL, 'two', 7)$$);
SELECT twins($$INSERT INTO m_@ VALUES (NULL, NULL, 7)$$);
SELECT twins($$INSERT INTO m_@ VALUES (2, NULL, 5), (11, 'Ab', -1), (12, 'x', 7)$$);
SELECT twins($$INSERT INTO m_@ VALUES (19, 'aB', -2)$$);
SELECT twins($$UPDATE m_@ SET c = 8 WHERE a = 2 AND b = 'two'$$);
SELECT twins($$UPDATE m_@ SET c = 8 WHERE a = 2 AND c = 5$$);
SELECT twins($$UPDATE m_@ SET a = 2, b = 'two' WHERE a = 12$$);

-- rows that are gone are in nobody's way
CREATE TABLE gone_btree (k int, v int);
CREATE TABLE gone_sherman (LIKE gone_btree);
SELECT twins('CREATE UNIQUE INDEX gone_@_k ON gone_@ USING @ (k)');
SELECT twins('INSERT INTO gone_@ SELECT i, 0 FROM generate_series(1, 1000) i');
SELECT twins('INSERT INTO gone_@ SELECT i, 0 FROM generate_series(2000, 1000, -1) i');
SELECT twins('DELETE FROM gone_@ WHERE k % 3 = 0');
SELECT twins('INSERT INTO gone_@ SELECT i * 3, 1 FROM generate_series(1, 333) i');
SELECT twins('UPDATE gone_@ SET k = -k');
SELECT twins('UPDATE gone_@ SET k = k + 1');
SELECT twins('UPDATE gone_@ SET k = k - 1 WHERE k = -4');
-- versions of one row, changed and not
SELECT twins($$DO 'BEGIN FOR i IN 1..300 LOOP UPDATE gone_@ SET k = k + (i % 3 - 1) * 5000, v = i WHERE v = i - 1 AND k % 1000 = -7; END LOOP; END'$$);
BEGIN;
DELETE FROM gone_sherman WHERE k = -10;
INSERT INTO gone_sherman VALUES (-10, 5);
SAVEPOINT s;
INSERT INTO gone_sherman VALUES (-100000, 5);
ROLLBACK TO s;
INSERT INTO gone_sherman VALUES (-100000, 6);
SAVEPOINT s;
INSERT INTO gone_sherman VALUES (-100000, 7);
ROLLBACK TO s;
COMMIT;
INSERT INTO gone_sherman VALUES (-100000, 8);
SELECT k, v FROM gone_sherman WHERE k IN (-10, -100000) ORDER BY k;
SELECT sherman_check('gone_sherman_k', true), count(*) = count(DISTINCT k) AS distinct_keys FROM gone_sherman;
VACUUM (INDEX_CLEANUP ON) gone_sherman, gone_btree;
SELECT twins('INSERT INTO gone_@ SELECT i * 7, 2 FROM generate_series(-2, 300) i');
SELECT twins('INSERT INTO gone_@ SELECT i, 2 FROM generate_series(1000, 1, -1) i WHERE i % 7 > 0');
SELECT sherman_check('gone_sherman_k', true);

-- Builds over deleted rows that somebody may see still: they are indexed, but no duplicates.
CREATE TABLE recent (k int, t text);
INSERT INTO recent SELECT i, i FROM generate_series(1, 100) i;
BEGIN;
DELETE FROM recent WHERE k <= 50;
INSERT INTO recent SELECT i, i FROM generate_series(50, 1, -1) i;
DELETE FROM recent WHERE k <= 20;
INSERT INTO recent SELECT i, i FROM generate_series(1, 20) i;
CREATE UNIQUE INDEX recent_k ON recent USING sherman (k);
CREATE UNIQUE INDEX recent_t ON recent USING sherman (t);
CREATE UNIQUE INDEX recent_kt ON recent USING sherman (k, (t::uuid)) WHERE k < 0;
SAVEPOINT s;
INSERT INTO recent VALUES (7, 'other');
ROLLBACK TO s;
INSERT INTO recent VALUES (1000, '7');
ROLLBACK TO s;
INSERT INTO recent VALUES (7, 'other');
ROLLBACK TO s;
INSERT INTO recent VALUES (1000, 'other');
CREATE UNIQUE INDEX ON recent USING sherman ((k % 1000)) WHERE k > 0;
COMMIT;
SELECT sherman_check('recent_k', true), sherman_check('recent_t', true), count(*) FROM recent;
-- long keys that are sorted as strings; runs in temporary files
SET maintenance_work_mem = '1MB';
CREATE TABLE wide_btree AS SELECT i::bigint AS a, i::bigint AS b, i::bigint AS c, i::bigint AS d FROM generate_series(1, 1000) i;
CREATE TABLE wide_sherman AS TABLE wide_btree;
SELECT twins('CREATE UNIQUE INDEX wide_@_abcd ON wide_@ USING @ (a, b, c, d)');
SELECT twins('INSERT INTO wide_@ VALUES (77, 77, 77, 77)');
SELECT twins('INSERT INTO wide_@ SELECT a, b, c, -d FROM wide_@');
SELECT twins('CREATE UNIQUE INDEX wide_@_abc ON wide_@ USING @ (a, b, c, (1::bigint)) WHERE a = 77');
SELECT twins('CREATE UNIQUE INDEX wide_@_absolute ON wide_@ USING @ (a, b, c, abs(d)) WHERE a <> 77 AND d > 0');
CREATE TABLE many_btree AS SELECT (i * 7919::bigint) % 100003 AS k FROM generate_series(1, 100000) i;
CREATE TABLE many_sherman AS TABLE many_btree;
SELECT twins('CREATE UNIQUE INDEX many_@_k ON many_@ USING @ (k)');
SELECT twins('INSERT INTO many_@ VALUES (50000)');
SELECT twins('DROP INDEX many_@_k');
INSERT INTO many_btree VALUES (50000);
INSERT INTO many_sherman VALUES (50000);
SELECT twins('CREATE UNIQUE INDEX many_@_k ON many_@ USING @ (k)');
SELECT twins('CREATE UNIQUE INDEX many_@_t ON many_@ USING @ ((k::text))');
RESET maintenance_work_mem;

-- concurrent builds and rebuilds
CREATE TABLE cic (k int, v int);
INSERT INTO cic SELECT i, i % 90 FROM generate_series(1, 100) i;
CREATE UNIQUE INDEX CONCURRENTLY cic_k ON cic USING sherman (k);
INSERT INTO cic VALUES (5, 5);
CREATE UNIQUE INDEX CONCURRENTLY cic_v ON cic USING sherman (v);
SELECT indexrelid::regclass, indisvalid, indisready FROM pg_index WHERE indrelid = 'cic'::regclass ORDER BY 1;
-- not valid, but what it holds it guards
INSERT INTO cic VALUES (105, 95);
DELETE FROM cic WHERE k > 90;
REINDEX INDEX CONCURRENTLY cic_v;
INSERT INTO cic VALUES (106, 5);
INSERT INTO cic VALUES (106, 95);
REINDEX TABLE CONCURRENTLY cic;
REINDEX TABLE cic;
INSERT INTO cic VALUES (106, 195);
INSERT INTO cic VALUES (206, 95);
SELECT indexrelid::regclass, indisunique, indisvalid, sherman_check(indexrelid, true) FROM pg_index WHERE indrelid = 'cic'::regclass ORDER BY 1;
TRUNCATE cic;
INSERT INTO cic VALUES (1, 1);
INSERT INTO cic VALUES (1, 2);
ALTER TABLE cic ALTER k TYPE bigint, ALTER v TYPE text;
INSERT INTO cic VALUES (1, 3);
CREATE TABLE cic_like (LIKE cic INCLUDING INDEXES);
INSERT INTO cic_like VALUES (1, 1);
INSERT INTO cic_like VALUES (1, 2);
SELECT a.amname, count(*) FROM pg_index i JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam
WHERE indrelid = 'cic_like'::regclass AND indisunique GROUP BY 1;

-- unlogged; a function in the key that fails leaves no lock behind
CREATE UNLOGGED TABLE fleeting (k int);
CREATE UNIQUE INDEX ON fleeting USING sherman (k);
INSERT INTO fleeting VALUES (1), (2);
INSERT INTO fleeting VALUES (1);
SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND objsubid BETWEEN 21320 AND 21322;
BEGIN;
INSERT INTO fleeting VALUES (3);
SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND objsubid BETWEEN 21320 AND 21322;
COMMIT;

-- What a unique insert costs, of a statement of one row: nothing more where the key is new; else a read of the leaf and an insert.
-- Across the network a leaf may have to be read that another index has in shared memory: those are left out.
CREATE TABLE cost (k int, v int);
CREATE INDEX cost_plain ON cost USING sherman (k);
CREATE UNIQUE INDEX cost_unique ON cost USING sherman (k);
INSERT INTO cost SELECT i * 10, 0 FROM generate_series(1, 2000) i;
CREATE FUNCTION round_trips(name regclass) RETURNS bigint LANGUAGE sql AS
	'SELECT round_trips - leaf_cache_misses FROM sherman_stat_indexes WHERE indexrelid = name';
SELECT round_trips('cost_plain') AS plain, round_trips('cost_unique') AS "unique" \gset
DO $$BEGIN FOR i IN 1..1000 LOOP INSERT INTO cost VALUES (i * 10 + 5, 0); END LOOP; END$$;
SELECT (round_trips('cost_unique') - :unique - (round_trips('cost_plain') - :plain)) / 1000.0 <= 0.05 AS none_more;
DELETE FROM cost;
SELECT round_trips('cost_plain') AS plain, round_trips('cost_unique') AS "unique" \gset
DO $$BEGIN FOR i IN 1..1000 LOOP INSERT INTO cost VALUES (i * 10 + 5, 0); END LOOP; END$$;
SELECT (round_trips('cost_unique') - :unique - (round_trips('cost_plain') - :plain)) / 1000.0 <= 1.5 AS one_more;

-- An error in the middle of a check leaves nothing that keeps others from adding such keys without a check: they cost what they
-- cost in an index that is not unique.
CREATE FUNCTION marks_cmp(a int, b int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
	IF current_setting('marks.raise', true) = 'on' THEN
		RAISE EXCEPTION 'in the middle of a check';
	END IF;
	RETURN btint4cmp(a, b);
END $$;
CREATE FUNCTION marks_lt(int, int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT marks_cmp($1, $2) < 0';
CREATE FUNCTION marks_le(int, int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT marks_cmp($1, $2) <= 0';
CREATE FUNCTION marks_ge(int, int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT marks_cmp($1, $2) >= 0';
CREATE FUNCTION marks_gt(int, int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT marks_cmp($1, $2) > 0';
CREATE OPERATOR <~! (LEFTARG = int, RIGHTARG = int, FUNCTION = marks_lt);
CREATE OPERATOR <=~! (LEFTARG = int, RIGHTARG = int, FUNCTION = marks_le);
CREATE OPERATOR >=~! (LEFTARG = int, RIGHTARG = int, FUNCTION = marks_ge);
CREATE OPERATOR >~! (LEFTARG = int, RIGHTARG = int, FUNCTION = marks_gt);
CREATE OPERATOR CLASS marks_ops FOR TYPE int USING btree AS
	OPERATOR 1 <~!, OPERATOR 2 <=~!, OPERATOR 3 =, OPERATOR 4 >=~!, OPERATOR 5 >~!, FUNCTION 1 marks_cmp(int, int);
CREATE TABLE marks (a int, b int) WITH (autovacuum_enabled = off);
CREATE INDEX marks_plain ON marks USING sherman (a, b marks_ops);
CREATE UNIQUE INDEX marks_unique ON marks USING sherman (a, b marks_ops);
INSERT INTO marks SELECT i, 1 FROM generate_series(1, 200) i;
DROP INDEX marks_plain;
DO $$
DECLARE
	raised int := 0;
BEGIN
	FOR i IN 1..200 LOOP
		BEGIN
			PERFORM set_config('marks.raise', 'on', true);
			INSERT INTO marks VALUES (i, 2);
		EXCEPTION WHEN raise_exception THEN
			raised := raised + 1;
		END;
	END LOOP;
	RAISE WARNING '% errors', raised;
END $$;
SET marks.raise = off;
CREATE INDEX marks_plain ON marks USING sherman (a, b marks_ops);
DELETE FROM marks;
\set include :abs_srcdir '/sql/include/settle.psql'
\i :include
CALL settle();
VACUUM (INDEX_CLEANUP ON) marks;
\c
SET client_min_messages = warning;
SELECT round_trips('marks_plain') AS plain, round_trips('marks_unique') AS "unique" \gset
INSERT INTO marks SELECT i, 3 FROM generate_series(1, 200) i;
SELECT (round_trips('marks_unique') - :unique - (round_trips('marks_plain') - :plain)) / 200.0 <= 0.2 AS none_more;

DROP TABLE cost, cic, cic_like, fleeting, recent, many_btree, many_sherman, wide_btree, wide_sherman, gone_btree, gone_sherman,
	m_btree, m_sherman, sorts_of, marks;
DROP FUNCTION one, twins, try_type, round_trips;
DROP TYPE pair, color;
DROP COLLATION seeing_not;
DROP OPERATOR CLASS marks_ops USING btree CASCADE;
DROP OPERATOR FAMILY IF EXISTS marks_ops USING btree CASCADE;
DROP FUNCTION marks_cmp, marks_lt, marks_le, marks_ge, marks_gt CASCADE;
DROP PROCEDURE settle;

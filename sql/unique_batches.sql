-- Entries of unique indexes that a statement adds together: the errors are btree's, within the statement, before anything sees its rows
-- (doc/internals/insert-batches.md).
\set VERBOSITY terse
SET client_min_messages = warning;
SET jit = off;
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/twins.psql'
CREATE SCHEMA unique_batches;
SET search_path = unique_batches, public;
\i :include

-- ---- Which wait, and for how long: what was added before a statement's last row, and when it is over.
CREATE FUNCTION added(index regclass) RETURNS bigint LANGUAGE sql VOLATILE AS $$ SELECT inserts FROM sherman_index_counters(index) $$;
CREATE TABLE seen (statement text, before_last bigint, behind bigint);
CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.w = 'last' THEN
		UPDATE seen SET before_last = added('ub_k') + before_last WHERE TG_WHEN = 'BEFORE';
		UPDATE seen SET behind = added('ub_k') + behind WHERE TG_WHEN = 'AFTER';
	END IF;
	RETURN NEW;
END $$;
CREATE TABLE ub (k int, w text) WITH (autovacuum_enabled = off);
CREATE UNIQUE INDEX ub_k ON ub USING sherman (k);
CREATE TRIGGER look_before BEFORE INSERT OR UPDATE ON ub FOR EACH ROW EXECUTE FUNCTION look();
CREATE TRIGGER look_behind AFTER INSERT OR UPDATE ON ub FOR EACH ROW EXECUTE FUNCTION look();
CREATE FUNCTION waits(statement text, OUT before_last bigint, OUT behind bigint) LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM seen;
	INSERT INTO seen VALUES (statement, -added('ub_k'), -added('ub_k'));
	EXECUTE statement;
	SELECT s.before_last, s.behind INTO before_last, behind FROM seen s;
END $$;
SELECT * FROM waits($$INSERT INTO ub VALUES (1, 'last')$$);
SELECT * FROM waits($$INSERT INTO ub SELECT i, CASE i WHEN 100 THEN 'last' END FROM generate_series(2, 100) i$$);
SELECT * FROM waits($$INSERT INTO ub SELECT i, CASE i WHEN 200 THEN 'last' END FROM generate_series(101, 200) i RETURNING k$$);
SELECT * FROM waits($$EXPLAIN (ANALYZE, COSTS OFF) INSERT INTO ub SELECT i, CASE i WHEN 300 THEN 'last' END FROM generate_series(201, 300) i$$);
CREATE FUNCTION in_sql() RETURNS void LANGUAGE sql AS $$
	INSERT INTO ub SELECT i, CASE i WHEN 400 THEN 'last' END FROM generate_series(301, 400) i;
	SELECT $$;
SELECT * FROM waits('SELECT in_sql()');
-- NULLs are unique, and wait as in any index.
SELECT * FROM waits($$INSERT INTO ub SELECT NULL, CASE i WHEN 100 THEN 'last' END FROM generate_series(1, 100) i$$);
-- Where another part of the statement changes rows; where old rows get new keys. Those that may be taken back wait across a network only
-- (t/079_announced_keys).
SELECT * FROM waits($$WITH new AS (INSERT INTO ub SELECT i, CASE i WHEN 500 THEN 'last' END FROM generate_series(491, 500) i RETURNING k) SELECT 1$$);
SELECT * FROM waits($$WITH gone AS (DELETE FROM ub WHERE k BETWEEN 491 AND 500 RETURNING *) INSERT INTO ub SELECT k + 100, w FROM gone ORDER BY k$$);
INSERT INTO ub SELECT i, CASE i WHEN 610 THEN 'last' END FROM generate_series(601, 610) i ON CONFLICT DO NOTHING;
SELECT * FROM waits($$UPDATE ub SET k = k + 1000 WHERE k > 600$$);
SELECT * FROM waits($$MERGE INTO ub USING generate_series(2001, 2010) i ON k = i AND false WHEN NOT MATCHED THEN INSERT VALUES (i, CASE i WHEN 2010 THEN 'last' END)$$);
-- COPY runs such triggers before it is over; with those of foreign keys alone, or with none, entries wait.
CREATE TABLE ub_part (k int UNIQUE WITH (sherman), w text);
CREATE TABLE referenced (w text PRIMARY KEY);
INSERT INTO referenced VALUES ('a'), ('last');
CREATE TABLE at_copy (step text, added bigint);
CREATE FUNCTION copied() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.w = 'last' THEN INSERT INTO at_copy VALUES ('before the last row', added('ub_part_k_key')); END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER copied BEFORE INSERT ON ub_part FOR EACH ROW EXECUTE FUNCTION copied();
COPY ub_part FROM stdin;
1	a
2	a
3	last
\.
INSERT INTO at_copy VALUES ('behind', added('ub_part_k_key'));
ALTER TABLE ub_part ADD FOREIGN KEY (w) REFERENCES referenced;
COPY ub_part FROM stdin;
4	a
5	a
6	last
\.
CREATE TRIGGER behind AFTER INSERT ON ub_part FOR EACH ROW EXECUTE FUNCTION copied();
COPY ub_part FROM stdin;
7	a
8	a
9	last
\.
SELECT * FROM at_copy;
-- Constraints that are checked later, and a serializable transaction.
CREATE TABLE later (k int UNIQUE WITH (sherman) DEFERRABLE, w text);
CREATE FUNCTION look_at_later() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.w = 'last' THEN UPDATE seen SET statement = 'later', before_last = added('later_k_key'); END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER look BEFORE INSERT ON later FOR EACH ROW EXECUTE FUNCTION look_at_later();
INSERT INTO later SELECT i, CASE i WHEN 10 THEN 'last' END FROM generate_series(1, 10) i;
SELECT statement, before_last FROM seen;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT * FROM waits($$INSERT INTO ub SELECT i, CASE i WHEN 3010 THEN 'last' END FROM generate_series(3001, 3010) i$$);
COMMIT;
SELECT sherman_check('ub_k', true), sherman_check('ub_part_k_key', true);

-- ---- What is not unique: in the table, in the statement, wherever it is in the order of keys.
CREATE TABLE t_btree (a int, b text, c numeric, d int);
CREATE TABLE t_sherman (LIKE t_btree);
SELECT twins('CREATE UNIQUE INDEX t_@_a ON t_@ USING @ (a)');
SELECT twins('INSERT INTO t_@ SELECT i * 10, i, i, i FROM generate_series(1, 3000) i');
SELECT twins('INSERT INTO t_@ (a) SELECT i * 10 + 1 FROM generate_series(1, 2000) i');
SELECT twins('INSERT INTO t_@ (a) SELECT CASE i WHEN 700 THEN 5550 ELSE i * 10 + 2 END FROM generate_series(1, 2000) i');
SELECT twins('INSERT INTO t_@ (a) SELECT CASE i WHEN 700 THEN 12 ELSE i * 10 + 2 END FROM generate_series(1, 2000) i');
SELECT twins('INSERT INTO t_@ (a) SELECT CASE i WHEN 2000 THEN 19992 ELSE i * 10 + 2 END FROM generate_series(1, 2000) i');
SELECT twins('INSERT INTO t_@ (a) SELECT 7 FROM generate_series(1, 2)');
SELECT twins('INSERT INTO t_@ (a) VALUES (-1), (-2), (-2)');
SELECT twins('INSERT INTO t_@ (a) VALUES (-1), (-2), (-3)');
SELECT twins('INSERT INTO t_@ (a) SELECT NULL FROM generate_series(1, 100)');
-- What an error has left in the tree is nobody's.
SELECT twins('INSERT INTO t_@ (a) SELECT i * 10 + 2 FROM generate_series(1, 2000) i');
SELECT twins('DELETE FROM t_@ WHERE a % 3 = 0');
SELECT twins('INSERT INTO t_@ (a) SELECT i * 30 FROM generate_series(1, 1000) i');
SELECT sherman_check('t_sherman_a', true), count(*) = count(DISTINCT a) + 100 AS distinct FROM t_sherman;
-- Keys that begin alike; more than memory has room for; several columns, expressions, predicates, NULLs that are not distinct.
SELECT twins('DELETE FROM t_@');
SELECT twins('CREATE UNIQUE INDEX t_@_b ON t_@ USING @ (b)');
SELECT twins($$INSERT INTO t_@ (b) SELECT 'the same long beginning of all ' || i FROM generate_series(1, 300) i$$);
SELECT twins($$INSERT INTO t_@ (b) SELECT md5(i::text) FROM generate_series(1, 3000) i$$);
SELECT twins($$INSERT INTO t_@ (b) SELECT CASE WHEN i % 100 = 0 THEN 'the same long beginning of all ' || i + 300 ELSE md5(i::text) END FROM generate_series(3001, 6000) i$$);
SELECT twins($$INSERT INTO t_@ (b) SELECT CASE i WHEN 9000 THEN md5('5') ELSE md5(i::text) END FROM generate_series(6001, 9000) i$$);
SELECT twins($$INSERT INTO t_@ (b) SELECT CASE i WHEN 9000 THEN 'the same long beginning of all 299' ELSE md5(i::text) END FROM generate_series(6001, 9000) i$$);
SELECT left(twins($$INSERT INTO t_@ (b) SELECT repeat('x', 2000) || i % 20 FROM generate_series(1, 21) i$$), 80);
SET work_mem = '64kB';
SELECT twins($$INSERT INTO t_@ (b) SELECT CASE i WHEN 14000 THEN md5('7000') ELSE md5(i::text) END FROM generate_series(6001, 14000) i$$);
SELECT twins($$INSERT INTO t_@ (b) SELECT md5(i::text) FROM generate_series(6001, 14000) i$$);
RESET work_mem;
SELECT twins('CREATE UNIQUE INDEX t_@_c ON t_@ USING @ (c, d) NULLS NOT DISTINCT WHERE c IS NOT NULL');
SELECT twins('CREATE UNIQUE INDEX t_@_e ON t_@ USING @ (abs(a)) INCLUDE (d)');
SELECT twins('INSERT INTO t_@ (c, d) SELECT i / 10.0, NULLIF(i % 3, 0) FROM generate_series(1, 1000) i');
SELECT twins('INSERT INTO t_@ (c, d) SELECT CASE i WHEN 1600 THEN 0.30 ELSE i / 10.0 END, NULL FROM generate_series(1001, 1600) i');
SELECT twins('INSERT INTO t_@ (c, d) SELECT CASE i WHEN 1600 THEN 100.20 ELSE i / 10.0 END, NULL FROM generate_series(1001, 1600) i');
SELECT twins('INSERT INTO t_@ (a, d) SELECT CASE i WHEN 500 THEN -77 ELSE i END, i FROM generate_series(1, 500) i');
SELECT twins('INSERT INTO t_@ (a, d) SELECT i, i FROM generate_series(1, 500) i');
SELECT sherman_check('t_sherman_a', true), sherman_check('t_sherman_b', true), sherman_check('t_sherman_c', true), sherman_check('t_sherman_e', true);
SELECT count(*), count(DISTINCT b), count(DISTINCT a) FROM t_sherman;
-- Partitions; COPY.
CREATE TABLE p_btree (k int, part int) PARTITION BY LIST (part);
CREATE TABLE p_sherman (LIKE p_btree) PARTITION BY LIST (part);
SELECT twins('CREATE TABLE p_@_' || i || ' PARTITION OF p_@ FOR VALUES IN (' || i || ')') FROM generate_series(0, 2) i;
SELECT twins('CREATE UNIQUE INDEX p_@_k' || i || ' ON p_@_' || i || ' USING @ (k)') FROM generate_series(0, 2) i;
SELECT twins('INSERT INTO p_@ SELECT i, i % 3 FROM generate_series(1, 900) i');
SELECT twins('INSERT INTO p_@ SELECT CASE i WHEN 1800 THEN 300 ELSE i END, i % 3 FROM generate_series(901, 1800) i');
SELECT twins('INSERT INTO p_@ SELECT CASE i WHEN 1800 THEN 301 ELSE i END, i % 3 FROM generate_series(901, 1800) i');
\set VERBOSITY default
\set SHOW_CONTEXT never
COPY t_sherman (a) FROM stdin;
2001
2002
77
2003
\.
COPY t_sherman (a) FROM stdin;
2001
2002
2001
\.
COPY t_sherman (a) FROM stdin;
2001
2002
2003
\.
\set VERBOSITY terse
SELECT count(*), count(DISTINCT a) FROM t_sherman WHERE a > 2000;

-- ---- The error comes before triggers that run behind the rows, and in the statement's function.
CREATE SEQUENCE fired_btree;
CREATE SEQUENCE fired_sherman;
CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM nextval(TG_ARGV[0]::regclass);
	RETURN NULL;
END $$;
CREATE TABLE f_btree (k int, w text);
CREATE TABLE f_sherman (LIKE f_btree);
SELECT twins('CREATE UNIQUE INDEX f_@_k ON f_@ USING @ (k)');
SELECT twins($$CREATE TRIGGER fire AFTER INSERT ON f_@ FOR EACH ROW EXECUTE FUNCTION fire('fired_@')$$);
SELECT twins($$CREATE TRIGGER fire_statement AFTER INSERT ON f_@ FOR EACH STATEMENT EXECUTE FUNCTION fire('fired_@')$$);
SELECT twins('INSERT INTO f_@ SELECT i FROM generate_series(1, 10) i');
SELECT twins('INSERT INTO f_@ SELECT i FROM generate_series(11, 30) i UNION ALL SELECT 5');
COPY f_sherman (k) FROM stdin;
31
32
6
\.
SELECT b.last_value AS btree, s.last_value AS sherman FROM fired_btree b, fired_sherman s;
-- COPY into a partitioned table runs the statement triggers of that one, which its partitions have not.
CREATE TRIGGER fire AFTER INSERT ON p_sherman FOR EACH STATEMENT EXECUTE FUNCTION fire('fired_sherman');
COPY p_sherman FROM stdin;
9001	1
9002	1
9001	1
\.
COPY p_sherman_1 FROM stdin;
9001	1
9002	1
9001	1
\.
SELECT b.last_value AS btree, s.last_value AS sherman FROM fired_btree b, fired_sherman s;
DROP TRIGGER fire ON p_sherman;
SELECT twins($$DO 'BEGIN
	FOR i IN 1..10 LOOP
		BEGIN
			INSERT INTO f_@ SELECT i * 100 + j FROM generate_series(1, 5) j UNION ALL SELECT i;
			RAISE division_by_zero;
		EXCEPTION WHEN unique_violation THEN
			INSERT INTO f_@ SELECT i * 100 + j FROM generate_series(1, 3) j;
		END;
	END LOOP;
END'$$);
SELECT twins('SELECT * FROM f_@ WHERE k > 30');
SELECT sherman_check('f_sherman_k', true);

-- ---- Statements inside of the statement that change the same table, or look at it.
DROP TRIGGER fire ON f_btree;
DROP TRIGGER fire ON f_sherman;
DROP TRIGGER fire_statement ON f_btree;
DROP TRIGGER fire_statement ON f_sherman;
-- Before each row one that was added before goes, by a scan of the table: never two of one key.
CREATE FUNCTION replace_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('DELETE FROM %I WHERE k + 0 = $1', TG_TABLE_NAME) USING NEW.k;
	RETURN NEW;
END $$;
SELECT twins('CREATE TRIGGER replace_row BEFORE INSERT ON f_@ FOR EACH ROW EXECUTE FUNCTION replace_row()');
SELECT twins('INSERT INTO f_@ SELECT 5000 + i % 10, i FROM generate_series(1, 50) i');
SELECT twins('SELECT * FROM f_@ WHERE k >= 5000');
SELECT twins('DROP TRIGGER replace_row ON f_@');
-- A row that is in the way is not there any more when the statement is over.
CREATE FUNCTION take_away(method text, i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	IF i = 8 THEN
		EXECUTE format('DELETE FROM f_%s WHERE k + 0 = 7000', method);
	END IF;
	RETURN i;
END $$;
SELECT twins($$INSERT INTO f_@ SELECT CASE i WHEN 3 THEN 7000 WHEN 6 THEN 7000 ELSE 7000 + take_away('@', i) END FROM generate_series(1, 9) i$$);
SELECT twins($$INSERT INTO f_@ SELECT CASE i WHEN 3 THEN 7000 WHEN 9 THEN 7000 ELSE 7000 + take_away('@', i) END FROM generate_series(1, 9) i$$);
-- A function adds the same key, and goes on without it.
CREATE FUNCTION add_too(method text, i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('INSERT INTO %s VALUES (8003), (8020)', method);
	RETURN i;
EXCEPTION WHEN unique_violation THEN
	RETURN i;
END $$;
SELECT twins($$INSERT INTO f_@ SELECT CASE i WHEN 6 THEN add_too('f_@', i) ELSE i END + 8000 FROM generate_series(1, 9) i$$);
SELECT twins($$INSERT INTO f_@ SELECT CASE i WHEN 1 THEN add_too('f_@', i) ELSE i END + 8010 FROM generate_series(1, 9) i$$);
CREATE FUNCTION add_to_parent(method text, i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('INSERT INTO p_%s VALUES (8003, 1)', method);
	RETURN i;
EXCEPTION WHEN unique_violation THEN
	RETURN i;
END $$;
SELECT twins($$INSERT INTO p_@_1 SELECT CASE i WHEN 6 THEN add_to_parent('@', i) ELSE i END + 8000, 1 FROM generate_series(1, 9) i$$);
-- A function looks at the table, finds the error there, and goes on: it is the statement's all the same.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE FUNCTION look_and_go_on(method text, i int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
BEGIN
	IF i = 6 THEN
		EXECUTE format('SELECT count(*) FROM f_%s WHERE k >= 9000', method) INTO n;
	END IF;
	RETURN i;
EXCEPTION WHEN unique_violation THEN
	RETURN i;
END $$;
SELECT twins($$INSERT INTO f_@ SELECT 9000 + CASE i WHEN 4 THEN 3 ELSE look_and_go_on('@', i) END FROM generate_series(1, 9) i$$);
SELECT twins($$INSERT INTO f_@ SELECT 9000 + look_and_go_on('@', i) FROM generate_series(1, 9) i$$);
-- A function that another user owns looks at the table: the error shows the key to the statement's user only if that one may read it.
CREATE ROLE regress_unique_batches;
GRANT USAGE ON SCHEMA unique_batches TO regress_unique_batches;
GRANT INSERT ON f_btree, f_sherman TO regress_unique_batches;
CREATE FUNCTION look_as_owner(method text, i int) RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
	n bigint;
BEGIN
	EXECUTE format('SELECT count(*) FROM f_%s WHERE k >= 9000', method) INTO n;
	RETURN i;
END $$;
SET ROLE regress_unique_batches;
SELECT twins($$INSERT INTO f_@ SELECT 9100 + CASE i WHEN 4 THEN 3 WHEN 6 THEN look_as_owner('@', i) ELSE i END FROM generate_series(1, 9) i$$);
RESET ROLE;
GRANT SELECT ON f_btree, f_sherman TO regress_unique_batches;
SET ROLE regress_unique_batches;
SELECT twins($$INSERT INTO f_@ SELECT 9100 + CASE i WHEN 4 THEN 3 WHEN 6 THEN look_as_owner('@', i) ELSE i END FROM generate_series(1, 9) i$$);
RESET ROLE;
SELECT sherman_check('f_sherman_k', true), count(*) = count(DISTINCT k) AS distinct FROM f_sherman;
SELECT count(*) AS differ FROM (TABLE f_btree EXCEPT TABLE f_sherman) x;
DROP SCHEMA unique_batches CASCADE;
DROP ROLE regress_unique_batches;

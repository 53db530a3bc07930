-- Entries of one statement go to the tree together, and are there before anybody may need them (doc/internals/insert-batches.md).
SET jit = off;
CREATE TABLE ib (id int, k int, w text) WITH (autovacuum_enabled = off);
CREATE INDEX ib_k ON ib USING sherman (k);
CREATE INDEX ib_w ON ib USING sherman (w COLLATE "C");

-- Entries that were added to an index so far, without reading its tree.
CREATE FUNCTION added(index regclass) RETURNS bigint LANGUAGE sql VOLATILE AS $$ SELECT inserts FROM sherman_index_counters(index) $$;
-- What a statement has added when it is over, before anything else is done, and before its last row, as a trigger has found.
CREATE TABLE seen (waited bigint);
CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.w = 'last' THEN INSERT INTO seen SELECT added('ib_k'); END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER look BEFORE INSERT OR UPDATE ON ib FOR EACH ROW EXECUTE FUNCTION look();
CREATE FUNCTION waits(statement text, OUT before_last bigint, OUT at_end bigint) LANGUAGE plpgsql AS $$
DECLARE
	before bigint := added('ib_k');
BEGIN
	TRUNCATE seen;
	EXECUTE statement;
	at_end := added('ib_k') - before;
	before_last := max(waited) - before FROM seen;
END $$;

-- ---- When they go: the first row at once, the others with the end of the statement.
SELECT * FROM waits($$INSERT INTO ib VALUES (1, 1, 'last')$$);
SELECT * FROM waits($$INSERT INTO ib SELECT i, i * 7 % 1000, CASE i WHEN 500 THEN 'last' ELSE 'w' || i END FROM generate_series(2, 500) i$$);
SELECT * FROM waits($$EXPLAIN (ANALYZE, COSTS OFF) INSERT INTO ib SELECT i, i, CASE i WHEN 600 THEN 'last' END FROM generate_series(501, 600) i$$);
SELECT * FROM waits($$WITH new AS (INSERT INTO ib SELECT i, i, CASE i WHEN 700 THEN 'last' END FROM generate_series(601, 700) i RETURNING id) SELECT 1$$);
SELECT * FROM waits($$UPDATE ib SET k = k + 10000, w = CASE id WHEN 700 THEN 'last' ELSE w END WHERE id > 600$$);
SELECT * FROM waits($$MERGE INTO ib USING generate_series(691, 710) i ON id = i
	WHEN MATCHED THEN UPDATE SET k = -i WHEN NOT MATCHED THEN INSERT VALUES (i, i, CASE i WHEN 710 THEN 'last' END)$$);
CREATE FUNCTION in_sql() RETURNS void LANGUAGE sql AS $$
	INSERT INTO ib SELECT i, i, CASE i WHEN 730 THEN 'last' END FROM generate_series(711, 730) i;
	SELECT $$;
SELECT * FROM waits('SELECT in_sql()');
-- Nobody waits for rows of other statements: each of these is one.
SELECT * FROM waits($$DO 'BEGIN FOR i IN 731..740 LOOP INSERT INTO ib VALUES (i, i, CASE i WHEN 740 THEN ''last'' END); END LOOP; END'$$);
-- COPY.
CREATE TABLE copied (at_begin bigint, at_end bigint);
BEGIN;
INSERT INTO copied SELECT added('ib_k');
COPY ib FROM stdin;
741	741	a
742	742	b
743	743	c
744	744	d
\.
UPDATE copied SET at_end = added('ib_k');
COMMIT;
SELECT at_end - at_begin AS copied FROM copied;
SELECT sherman_check('ib_k', true), sherman_check('ib_w', true);

-- ---- Where they may not wait: rows of ON CONFLICT may be taken back at once; SERIALIZABLE looks for readers of each.
CREATE TABLE arbiter (id int PRIMARY KEY, k int, w text);
CREATE INDEX arbiter_k ON arbiter USING sherman (k);
CREATE FUNCTION look_at_arbiter() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.w = 'last' THEN INSERT INTO seen SELECT added('arbiter_k'); END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER look BEFORE INSERT ON arbiter FOR EACH ROW EXECUTE FUNCTION look_at_arbiter();
TRUNCATE seen;
INSERT INTO arbiter SELECT i, i, CASE i WHEN 10 THEN 'last' END FROM generate_series(1, 10) i ON CONFLICT DO NOTHING;
WITH new AS (INSERT INTO arbiter SELECT i, i, CASE i WHEN 20 THEN 'last' END FROM generate_series(11, 20) i ON CONFLICT DO NOTHING RETURNING 1)
	SELECT count(*) FROM new;
WITH new AS (INSERT INTO arbiter SELECT i, i, CASE i WHEN 30 THEN 'last' END FROM generate_series(21, 30) i ON CONFLICT DO NOTHING)
	SELECT 1;
BEGIN ISOLATION LEVEL SERIALIZABLE;
INSERT INTO arbiter SELECT i, i, CASE i WHEN 40 THEN 'last' END FROM generate_series(31, 40) i;
COMMIT;
-- Comparisons that may run queries.
CREATE FUNCTION text_order(a text, b text) RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT bttextcmp(a, b) $$;
CREATE OPERATOR CLASS by_query FOR TYPE text USING sherman AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
	FUNCTION 1 text_order(text, text);
CREATE TABLE queried (k text, w text);
CREATE INDEX queried_k ON queried USING sherman (k by_query);
CREATE TABLE arrays (k int[], w text);
CREATE INDEX arrays_k ON arrays USING sherman (k);
CREATE FUNCTION look_at_others() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.w = 'last' THEN INSERT INTO seen SELECT added((TG_TABLE_NAME || '_k')::regclass); END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER look BEFORE INSERT ON queried FOR EACH ROW EXECUTE FUNCTION look_at_others();
CREATE TRIGGER look BEFORE INSERT ON arrays FOR EACH ROW EXECUTE FUNCTION look_at_others();
INSERT INTO queried SELECT 'k' || i, CASE i WHEN 50 THEN 'last' END FROM generate_series(1, 50) i;
INSERT INTO arrays SELECT ARRAY[i], CASE i WHEN 60 THEN 'last' END FROM generate_series(1, 60) i;
-- Each row but the last.
SELECT * FROM seen;

-- ---- When there is no memory left.
SET work_mem = '64kB';
SELECT before_last > 4000 AS went, at_end FROM waits($$INSERT INTO ib SELECT i, i * 7919 % 5000, CASE i WHEN 6000 THEN 'last' ELSE repeat('w', 100) END
	FROM generate_series(1001, 6000) i$$);
RESET work_mem;
SELECT sherman_check('ib_k', true), sherman_check('ib_w', true);
DELETE FROM ib WHERE id > 1000;

-- ---- Who needs them: queries of the statement's own triggers and functions.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE TABLE own (id int, k int, found bigint) WITH (autovacuum_enabled = off);
CREATE INDEX own_k ON own USING sherman (k);
CREATE FUNCTION find_before() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	NEW.found := count(*) FROM own WHERE k >= 0;
	RETURN NEW;
END $$;
CREATE TRIGGER find_before BEFORE INSERT ON own FOR EACH ROW EXECUTE FUNCTION find_before();
INSERT INTO own SELECT i, i FROM generate_series(0, 99) i;
SELECT count(*), count(*) FILTER (WHERE found = id) AS right FROM own;
-- By all kinds of scan.
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = on;
INSERT INTO own SELECT i, i FROM generate_series(100, 149) i;
SELECT count(*), count(*) FILTER (WHERE found = id) AS right FROM own;
RESET enable_indexscan;
RESET enable_indexonlyscan;
SET enable_bitmapscan = off;
-- Nothing of what a statement has added is seen by itself, wherever its scan is.
UPDATE own SET k = k + 1 WHERE k >= 0;
SELECT count(*), min(k), max(k), sum(k) FROM own WHERE k >= 0;
DROP TRIGGER find_before ON own;
-- A trigger behind the rows, before the statement ends.
CREATE FUNCTION find_after() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE NOTICE '% %', TG_LEVEL, (SELECT count(*) FROM own WHERE k >= 1000);
	RETURN NULL;
END $$;
CREATE TRIGGER find_after AFTER INSERT ON own FOR EACH STATEMENT EXECUTE FUNCTION find_after();
CREATE CONSTRAINT TRIGGER find_at_commit AFTER INSERT ON own DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.k = 1001) EXECUTE FUNCTION find_after();
BEGIN;
INSERT INTO own SELECT i, i FROM generate_series(1001, 1010) i;
SAVEPOINT s;
INSERT INTO own SELECT i, i FROM generate_series(1011, 1020) i;
ROLLBACK TO s;
COMMIT;
DROP TRIGGER find_after ON own;
DROP TRIGGER find_at_commit ON own;

-- A cursor of a function that the statement calls: it sees rows that come when it is open already.
INSERT INTO own SELECT i, i FROM generate_series(2000, 6999) i;
CREATE FUNCTION cursor_of(i int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	c refcursor := 'goes_on';
	k int;
	last int;
	n int := 0;
BEGIN
	IF i = 10 THEN
		OPEN c FOR SELECT own.k FROM own WHERE own.k >= 2000 ORDER BY own.k;
		FETCH c INTO k;
	ELSIF i = 50 THEN
		LOOP
			FETCH c INTO k;
			EXIT WHEN NOT FOUND;
			n := n + 1;
			last := k;
		END LOOP;
		RAISE NOTICE '% more rows, the last one is %', n, last;
	END IF;
	RETURN i;
END $$;
-- Rows 1 to 48 and what was there: row 49 is made before row 50 asks.
INSERT INTO own SELECT cursor_of(i), 10000 + i FROM generate_series(1, 50) i;

-- Parallel workers of such a query: the leader reads nothing.
-- its name is another one from 16 on
SELECT set_config(name, 'on', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
CREATE FUNCTION by_workers(i int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	n bigint;
BEGIN
	IF i = 50 THEN
		EXECUTE 'SELECT count(*) FROM own WHERE k >= 20000' INTO n;
		RAISE NOTICE 'rows: %', n;
	END IF;
	RETURN i;
END $$;
EXPLAIN (COSTS OFF) SELECT count(*) FROM own WHERE k >= 20000;
INSERT INTO own SELECT by_workers(i), 20000 + i FROM generate_series(1, 50) i;
SELECT set_config(name, 'off', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');

-- And the check.
CREATE FUNCTION checks(i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	IF i = 50 THEN
		RAISE NOTICE 'problems: %', sherman_check('own_k', true);
	END IF;
	RETURN i;
END $$;
INSERT INTO own SELECT checks(i), 25000 + i FROM generate_series(1, 50) i;
SELECT sherman_check('own_k', true);

-- ---- Commands in between.
CREATE FUNCTION command(i int, command text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	before bigint := added('own_k');
BEGIN
	IF i = 50 THEN
		EXECUTE command;
		RAISE NOTICE 'added by the command: %', added('own_k') - before;
	END IF;
	RETURN i;
END $$;
INSERT INTO own SELECT command(i, 'CREATE TEMP TABLE other AS SELECT 1'), 30000 + i FROM generate_series(1, 50) i;
INSERT INTO own SELECT command(i, 'SELECT 1'), 31000 + i FROM generate_series(1, 50) i;
INSERT INTO own SELECT command(i, 'TRUNCATE own'), 30000 + i FROM generate_series(1, 50) i;
INSERT INTO own SELECT command(i, 'REINDEX INDEX own_k'), 30000 + i FROM generate_series(1, 50) i;
INSERT INTO own SELECT command(i, 'DROP INDEX own_k'), 30000 + i FROM generate_series(1, 50) i;
SELECT sherman_check('own_k', true);
-- In one transaction, from one statement to the next.
BEGIN;
INSERT INTO own SELECT i, i FROM generate_series(40001, 40100) i;
REINDEX INDEX own_k;
INSERT INTO own SELECT i, i FROM generate_series(40101, 40200) i;
CREATE INDEX own_id ON own USING sherman (id);
INSERT INTO own SELECT i, i FROM generate_series(40201, 40300) i;
TRUNCATE own;
INSERT INTO own SELECT i, i FROM generate_series(1, 100) i;
ALTER TABLE own ALTER COLUMN k TYPE bigint;
INSERT INTO own SELECT i, i FROM generate_series(101, 200) i;
CLUSTER own USING own_id;
INSERT INTO own SELECT i, i FROM generate_series(201, 300) i;
DROP INDEX own_id;
INSERT INTO own SELECT i, i FROM generate_series(301, 400) i;
COMMIT;
SELECT count(*), sum(k) FROM own WHERE k > 0;
SELECT sherman_check('own_k', true);

-- ---- Errors: what waited is dropped with its rows, and not with others.
SELECT added('own_k') AS before \gset
INSERT INTO own SELECT i / (i - 550), i FROM generate_series(501, 600) i;
INSERT INTO own VALUES (0, 999);
SELECT added('own_k') - :before AS "the first of them, and one more";
CREATE FUNCTION fails(i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	IF i = 650 THEN
		BEGIN
			INSERT INTO own SELECT j / (j - 1050), j FROM generate_series(1001, 1100) j;
		EXCEPTION WHEN division_by_zero THEN
			RAISE NOTICE 'caught, found %', (SELECT count(*) FROM own WHERE k BETWEEN 601 AND 649);
		END;
	END IF;
	RETURN i;
END $$;
SELECT added('own_k') AS before \gset
INSERT INTO own SELECT fails(i), i FROM generate_series(601, 700) i;
SELECT added('own_k') - :before AS "a hundred, and the first of those that failed";
CREATE FUNCTION catches(i int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	BEGIN
		INSERT INTO own SELECT j, j FROM generate_series(i * 10, i * 10 + 9) j;
		IF i % 2 = 0 THEN
			RAISE EXCEPTION 'back';
		END IF;
	EXCEPTION WHEN raise_exception THEN
	END;
	RETURN i;
END $$;
SELECT added('own_k') AS before \gset
INSERT INTO own SELECT catches(i), i FROM generate_series(200, 299) i;
-- Those of statements that were over when they were taken back are there still.
SELECT added('own_k') - :before AS added;
SELECT count(*) FROM own WHERE k BETWEEN 2000 AND 2999;
SELECT sherman_check('own_k', true);

-- Statements within statements have batches of their own, and leave the outer one's alone.
CREATE TABLE log (k int);
CREATE INDEX log_k ON log USING sherman (k);
CREATE FUNCTION write_log() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO log VALUES (NEW.k), (-NEW.k);
	IF NEW.id = 5100 THEN
		RAISE NOTICE 'log: %, own: %', added('log_k'), added('own_k') - current_setting('test.before')::bigint;
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER write_log BEFORE INSERT ON own FOR EACH ROW EXECUTE FUNCTION write_log();
SELECT set_config('test.before', added('own_k')::text, false) IS NULL;
INSERT INTO own SELECT i, i FROM generate_series(5001, 5100) i;
SELECT sherman_check('own_k', true), sherman_check('log_k', true);
-- Into the same index.
CREATE FUNCTION insert_more() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.k > 0 THEN
		INSERT INTO log SELECT -NEW.k * 10 - i FROM generate_series(1, 3) i;
	END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER insert_more BEFORE INSERT ON log FOR EACH ROW EXECUTE FUNCTION insert_more();
INSERT INTO log SELECT i FROM generate_series(10001, 10100) i;
SELECT count(*), sum(k) FROM log WHERE k > -1000000;
SELECT sherman_check('log_k', true);

-- ---- Kinds of tables.
CREATE TABLE parted (k int, part int) PARTITION BY LIST (part);
CREATE TABLE parted_0 PARTITION OF parted FOR VALUES IN (0);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES IN (2);
CREATE INDEX parted_k ON parted USING sherman (k);
INSERT INTO parted SELECT i, i % 3 FROM generate_series(1, 3000) i;
UPDATE parted SET part = (part + 1) % 3 WHERE k % 10 = 0;
SELECT count(*), sum(k) FROM parted WHERE k > 0;
SELECT sherman_check('parted_0_k_idx', true), sherman_check('parted_1_k_idx', true), sherman_check('parted_2_k_idx', true);
CREATE TEMP TABLE emptied (k int, w text) ON COMMIT DELETE ROWS;
CREATE INDEX emptied_k ON emptied USING sherman (k);
BEGIN;
INSERT INTO emptied SELECT i, 'w' || i FROM generate_series(1, 100) i;
SELECT count(*) FROM emptied WHERE k > 0;
COMMIT;
INSERT INTO emptied SELECT i, 'w' || i FROM generate_series(1, 100) i;
SELECT count(*) FROM emptied WHERE k > 0;
SELECT sherman_check('emptied_k', true);
CREATE UNLOGGED TABLE unlogged_rows (k text COLLATE "C");
CREATE INDEX unlogged_k ON unlogged_rows USING sherman (k) INCLUDE (k);
INSERT INTO unlogged_rows SELECT repeat(md5(i::text), 1 + i % 80) FROM generate_series(1, 300) i;
SELECT sherman_check('unlogged_k', true);
BEGIN;
INSERT INTO unlogged_rows SELECT md5(i::text) FROM generate_series(301, 600) i;
PREPARE TRANSACTION 'batches';
COMMIT PREPARED 'batches';
SELECT sherman_check('unlogged_k', true);
-- A cursor WITH HOLD, read at the end of its transaction, behind the last statement.
BEGIN;
DECLARE held CURSOR WITH HOLD FOR SELECT sum(k) FROM log WHERE k > 0;
INSERT INTO log SELECT i FROM generate_series(20001, 20100) i;
COMMIT;
FETCH held;
CLOSE held;

DROP TABLE ib, seen, copied, arbiter, queried, arrays, own, log, parted, emptied, unlogged_rows CASCADE;
DROP OPERATOR FAMILY by_query USING sherman;
DROP FUNCTION added, look, waits, in_sql, look_at_arbiter, text_order, look_at_others, find_before, find_after, cursor_of, by_workers,
	checks, command, fails, catches, write_log, insert_more;

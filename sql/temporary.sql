-- Temporary tables: all that makes, empties and ends their indexes, in one session. Several: t/027_temporary.
\set VERBOSITY terse
SET enable_seqscan = off;
SET enable_bitmapscan = off;
-- For each sherman index of this session's temporary tables: state, problems; of the table: rows by scan and by index.
CREATE FUNCTION look(wanted text, OUT "table" text, OUT index text, OUT state text, OUT has_tree boolean, OUT problems bigint,
	OUT by_scan bigint, OUT by_index bigint) RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE o oid;
BEGIN
	FOR "table", index, o, state, has_tree IN
		SELECT t.relname, c.relname, c.oid, s.state, s.tree IS NOT NULL
		FROM sherman_stat_indexes s JOIN pg_class c ON c.oid = s.indexrelid JOIN pg_index i ON i.indexrelid = c.oid
			JOIN pg_class t ON t.oid = i.indrelid
		WHERE t.relnamespace = pg_my_temp_schema() AND t.relname LIKE wanted ORDER BY 1, 2
	LOOP
		problems := sherman_check(o, true);
		SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_seqscan = on;
		EXECUTE format('SELECT count(*) FROM pg_temp.%I WHERE a > 0', "table") INTO by_scan;
		SET LOCAL enable_indexscan = on; SET LOCAL enable_indexonlyscan = on; SET LOCAL enable_seqscan = off;
		EXECUTE format('SELECT count(*) FROM pg_temp.%I WHERE a > 0', "table") INTO by_index;
		RETURN NEXT;
	END LOOP;
END $$;

-- ---- what is kept over commits
CREATE TEMP TABLE kept (a int, b text, c int);
CREATE INDEX kept_a ON kept USING sherman (a);
SELECT * FROM look('kept');
INSERT INTO kept SELECT i, 'v' || i % 100, i % 7 FROM generate_series(1, 3000) i;
CREATE INDEX kept_b ON kept USING sherman (b COLLATE "C", a DESC) INCLUDE (c) WITH (fillfactor = 80);
CREATE INDEX kept_partial ON kept USING sherman ((c + 1)) WHERE a % 2 = 0;
VACUUM ANALYZE kept;
EXPLAIN (COSTS OFF) SELECT b, a, c FROM kept WHERE b COLLATE "C" = 'v7' AND a < 500 ORDER BY a DESC;
SELECT b, a, c FROM kept WHERE b COLLATE "C" = 'v7' AND a < 500 ORDER BY a DESC;
EXPLAIN (COSTS OFF) SELECT count(*) FROM kept WHERE a BETWEEN 100 AND 200;
SELECT * FROM look('kept');
-- rows move
UPDATE kept SET a = a + 10000 WHERE a % 3 = 0;
DELETE FROM kept WHERE a % 5 = 0;
VACUUM kept;
SELECT * FROM look('kept');
-- SERIALIZABLE, without locks: nobody else reads it
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(*) FROM kept WHERE a < 100;
INSERT INTO kept SELECT i, 'x', 0 FROM generate_series(30001, 30500) i;
SELECT count(*) FROM pg_locks WHERE mode = 'SIReadLock' AND relation = 'kept_a'::regclass;
COMMIT;
SELECT * FROM look('kept');
-- cursors both ways, over a rollback to a savepoint
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT a FROM kept WHERE a > 0 ORDER BY a;
FETCH 2 FROM c;
SAVEPOINT s;
INSERT INTO kept VALUES (2, 'behind', 0);
FETCH 2 FROM c;
ROLLBACK TO s;
FETCH BACKWARD 2 FROM c;
COMMIT;
-- nothing of it may be prepared
BEGIN;
INSERT INTO kept VALUES (1);
PREPARE TRANSACTION 'temporary';
SELECT * FROM look('kept');

-- ---- what makes it anew
REINDEX INDEX kept_a;
REINDEX TABLE CONCURRENTLY kept;
CLUSTER kept USING kept_a;
VACUUM FULL kept;
ALTER TABLE kept ALTER b TYPE varchar(20);
ALTER TABLE kept ALTER c TYPE bigint;
SELECT * FROM look('kept');
CREATE INDEX CONCURRENTLY kept_later ON kept USING sherman (c, a);
DROP INDEX CONCURRENTLY kept_later;
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE temporary_elsewhere LOCATION '';
ALTER INDEX kept_a SET TABLESPACE temporary_elsewhere;
ALTER TABLE kept SET TABLESPACE temporary_elsewhere;
INSERT INTO kept VALUES (50000, 'there', 1);
SELECT * FROM look('kept');
BEGIN;
ALTER INDEX kept_a SET TABLESPACE pg_default;
INSERT INTO kept VALUES (50001, 'back', 1);
ROLLBACK;
-- TRUNCATE in place, of copies: the trees are the originals', too
ALTER INDEX kept_b SET TABLESPACE temporary_elsewhere;
ALTER INDEX kept_partial SET TABLESPACE temporary_elsewhere;
BEGIN;
ALTER TABLE kept SET TABLESPACE pg_default;
ALTER INDEX kept_a SET TABLESPACE pg_default;
ALTER INDEX kept_b SET TABLESPACE pg_default;
ALTER INDEX kept_partial SET TABLESPACE pg_default;
SELECT count(*) FROM kept WHERE a > 0;
TRUNCATE kept;
SELECT sherman_collect() >= 0;
ROLLBACK;
SELECT * FROM look('kept');
ALTER TABLE kept SET TABLESPACE pg_default;
ALTER INDEX kept_a SET TABLESPACE pg_default;
ALTER INDEX kept_b SET TABLESPACE pg_default;
ALTER INDEX kept_partial SET TABLESPACE pg_default;
DROP TABLESPACE temporary_elsewhere;
SELECT * FROM look('kept');
-- each of them rolled back
BEGIN;
REINDEX TABLE kept;
INSERT INTO kept VALUES (50001, 'no', 1);
ROLLBACK;
BEGIN;
TRUNCATE kept;
INSERT INTO kept VALUES (50001, 'no', 1);
SELECT * FROM look('kept');
ROLLBACK;
BEGIN;
CLUSTER kept USING kept_a;
SAVEPOINT s;
DROP INDEX kept_b;
ROLLBACK TO s;
TRUNCATE kept;
ROLLBACK TO s;
INSERT INTO kept VALUES (50002, 'yes', 1);
COMMIT;
SELECT * FROM look('kept');
TRUNCATE kept;
SELECT * FROM look('kept');
INSERT INTO kept SELECT i, 'v', 1 FROM generate_series(1, 10) i;
SELECT * FROM look('kept');

-- ---- TRUNCATE in place: of a file that the same transaction has made
BEGIN;
CREATE TEMP TABLE young (a int);
CREATE INDEX young_a ON young USING sherman (a);
INSERT INTO young SELECT generate_series(1, 1000);
TRUNCATE young;
SELECT * FROM look('young');
INSERT INTO young SELECT generate_series(1, 10);
SAVEPOINT s;
INSERT INTO young SELECT generate_series(11, 20);
ROLLBACK TO s;
SELECT * FROM look('young');
TRUNCATE young;
INSERT INTO young SELECT generate_series(1, 7);
COMMIT;
SELECT * FROM look('young');
BEGIN;
TRUNCATE young;
INSERT INTO young SELECT generate_series(1, 3);
TRUNCATE young;
INSERT INTO young SELECT generate_series(1, 2);
SELECT * FROM look('young');
ROLLBACK;
SELECT * FROM look('young');
-- the first rows, and with them the tree, rolled back
TRUNCATE young;
BEGIN;
INSERT INTO young SELECT generate_series(1, 1000);
ROLLBACK;
SELECT * FROM look('young');
INSERT INTO young VALUES (1);
SELECT * FROM look('young');

-- ---- ON COMMIT DELETE ROWS
CREATE TEMP TABLE emptied (a int PRIMARY KEY, b int, EXCLUDE USING sherman (b WITH =)) ON COMMIT DELETE ROWS;
CREATE UNIQUE INDEX emptied_a ON emptied USING sherman (a);
BEGIN;
INSERT INTO emptied SELECT i, i FROM generate_series(1, 1000) i;
SELECT * FROM look('emptied');
INSERT INTO emptied VALUES (1001, 1);
ROLLBACK;
SELECT * FROM look('emptied');
BEGIN;
INSERT INTO emptied SELECT i, i FROM generate_series(1, 500) i;
SAVEPOINT s;
INSERT INTO emptied SELECT i, i FROM generate_series(501, 600) i;
ROLLBACK TO s;
INSERT INTO emptied VALUES (501, 501), (1, 1) ON CONFLICT (a) DO NOTHING;
SELECT * FROM look('emptied');
DECLARE held CURSOR WITH HOLD FOR SELECT a FROM emptied WHERE a > 0 ORDER BY a DESC;
COMMIT;
FETCH 2 FROM held;
CLOSE held;
SELECT * FROM look('emptied');
-- what each of these transactions leaves is used again
DO $$
BEGIN
	FOR i IN 1..50 LOOP
		INSERT INTO emptied SELECT g, g FROM generate_series(i, i + 200) g;
		IF (SELECT count(*) <> 201 OR min(a) <> i FROM emptied WHERE a > 0) THEN
			RAISE EXCEPTION 'wrong rows in transaction %', i;
		END IF;
		COMMIT;
	END LOOP;
END $$;
SELECT * FROM look('emptied');
DROP TABLE emptied;

-- ---- ON COMMIT DROP; no more than the transaction
BEGIN;
CREATE TEMP TABLE gone (a int) ON COMMIT DROP;
CREATE INDEX gone_a ON gone USING sherman (a);
INSERT INTO gone SELECT generate_series(1, 100);
SELECT * FROM look('gone');
COMMIT;
BEGIN;
CREATE TEMP TABLE gone (a int);
CREATE INDEX gone_a ON gone USING sherman (a);
INSERT INTO gone SELECT generate_series(1, 100);
ROLLBACK;
SELECT * FROM look('gone');

-- ---- constraints, by both ways to have them
SET sherman.constraints = on;
CREATE TEMP TABLE bound (a int PRIMARY KEY, b text UNIQUE, c int, UNIQUE NULLS NOT DISTINCT (c) DEFERRABLE INITIALLY DEFERRED);
RESET sherman.constraints;
SELECT relname, amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname LIKE 'bound%' ORDER BY 1;
INSERT INTO bound SELECT i, 'b' || i, i FROM generate_series(1, 100) i;
INSERT INTO bound VALUES (1, 'other', 0);
INSERT INTO bound VALUES (0, 'b1', 0);
INSERT INTO bound VALUES (101, 'new', 5);
BEGIN;
UPDATE bound SET c = c + 1;
INSERT INTO bound VALUES (101, 'new', 1);
COMMIT;
INSERT INTO bound VALUES (5, 'b5', 5) ON CONFLICT (a) DO UPDATE SET b = 'changed' RETURNING *;
SELECT * FROM look('bound');
TRUNCATE bound;
INSERT INTO bound VALUES (1, 'b1', NULL);
INSERT INTO bound VALUES (2, 'b2', NULL);
SELECT * FROM look('bound');

-- ---- no workers, neither to build nor to scan
SET max_parallel_maintenance_workers = 2;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET client_min_messages = debug1;
SET log_min_messages = fatal;
CREATE INDEX kept_alone ON kept USING sherman (b, c);
RESET client_min_messages;
RESET log_min_messages;
DROP INDEX kept_alone, kept_b;
EXPLAIN (COSTS OFF) SELECT count(*) FROM kept WHERE a > 0;

-- ---- all of it
DISCARD TEMP;
SELECT * FROM look('%');
CREATE TEMP TABLE kept (a int);
CREATE INDEX kept_a ON kept USING sherman (a);
INSERT INTO kept SELECT generate_series(1, 100);
DISCARD ALL;
SELECT * FROM look('%');
DROP FUNCTION look;

-- DDL: whatever is done to a table, its sherman indexes stay whole, of the same access method, and used.
\set VERBOSITY terse
SET client_min_messages = warning;
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/agrees.psql'
\i :include
-- the indexes of a table, by which access method they are, and their problems
CREATE FUNCTION whole(source regclass) RETURNS TABLE (index name, method name, problems bigint) LANGUAGE sql AS $$
	SELECT c.relname, a.amname, sherman_check(c.oid, true)
	FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
	WHERE i.indrelid = source
	ORDER BY c.relname
$$;
CREATE TYPE mood AS ENUM ('calm', 'cross');
CREATE TABLE thing (id int, v int, m mood, t text COLLATE "C", at timestamp, n numeric(8,2));
CREATE INDEX thing_v ON thing USING sherman (v) WITH (fillfactor = 70);
CREATE INDEX thing_m ON thing USING sherman (m, id);
CREATE INDEX thing_t ON thing USING sherman (t DESC, v NULLS FIRST) WHERE v > 10;
CREATE INDEX thing_at ON thing USING sherman (date_trunc('day', at));
CREATE INDEX thing_n ON thing USING sherman (n);
INSERT INTO thing
SELECT i, i * 7919 % 1000, CASE WHEN i % 3 = 0 THEN 'calm' ELSE 'cross' END::mood, 't' || i % 77,
	timestamp '2026-01-01' + i * interval '5 hours', i / 8.0
FROM generate_series(1, 1000) i;
COMMENT ON INDEX thing_v IS 'its comment';
ALTER INDEX thing_at ALTER COLUMN 1 SET STATISTICS 500;

-- CLUSTER: in the order of the index, and all indexes built anew
CLUSTER thing USING thing_v;
SELECT bool_and(v >= before) AS in_order FROM (SELECT v, lag(v) OVER (ORDER BY ctid) AS before FROM thing) s;
SELECT * FROM whole('thing');
UPDATE thing SET v = v + 1 WHERE id % 10 = 0;
CLUSTER thing;
ALTER TABLE thing SET WITHOUT CLUSTER;
VACUUM FULL thing;
SELECT * FROM whole('thing');

-- types: wider, other, cut short; an enum with new members, one before those that are there
ALTER TABLE thing ALTER COLUMN v TYPE bigint, ALTER COLUMN t TYPE varchar(40);
ALTER TABLE thing ALTER COLUMN n TYPE int USING round(n), ALTER COLUMN at TYPE timestamp(0);
ALTER TYPE mood ADD VALUE 'glad';
ALTER TYPE mood ADD VALUE 'angry' BEFORE 'calm';
ALTER TYPE mood RENAME VALUE 'cross' TO 'vexed';
INSERT INTO thing SELECT i, i, (ARRAY['glad', 'angry', 'vexed'])[1 + i % 3]::mood, 'new', '2027-01-01', i FROM generate_series(1001, 1100) i;
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'thing'::regclass ORDER BY indexrelid::regclass::text COLLATE "C";
SELECT * FROM whole('thing');
SELECT agrees('SELECT m, id FROM thing WHERE m >= ''calm'' ORDER BY m, id');
SELECT agrees('SELECT * FROM thing WHERE m = ''angry''');
SELECT agrees('SELECT * FROM thing WHERE v BETWEEN 100 AND 120');
SELECT agrees('SELECT * FROM thing WHERE n < 20');
SELECT agrees('SELECT * FROM thing WHERE t > ''t5'' AND v > 10');
SELECT obj_description('thing_v'::regclass, 'pg_class') AS comment, reloptions FROM pg_class WHERE relname = 'thing_v';

-- columns come and go, with defaults that rewrite the table and that do not; names; persistence; options
ALTER TABLE thing ADD COLUMN constant int DEFAULT 5, ADD COLUMN computed float8 DEFAULT random();
ALTER TABLE thing DROP COLUMN at;
ALTER TABLE thing RENAME COLUMN v TO value;
ALTER TABLE thing RENAME TO things;
ALTER INDEX thing_n RENAME TO things_n;
ALTER TABLE things SET UNLOGGED;
ALTER TABLE things SET LOGGED;
ALTER INDEX things_n SET (fillfactor = 100);
ALTER INDEX things_n RESET (fillfactor);
REINDEX TABLE things;
SELECT * FROM whole('things');
SELECT agrees('SELECT * FROM things WHERE value = 500');

-- in transactions that end either way, and within them
BEGIN;
ALTER TABLE things ALTER COLUMN n TYPE text;
DROP INDEX thing_m;
SAVEPOINT before;
TRUNCATE things;
CREATE INDEX things_short ON things USING sherman (id);
ROLLBACK TO before;
CREATE INDEX things_id ON things USING sherman (id);
ROLLBACK;
SELECT * FROM whole('things');
BEGIN;
TRUNCATE things;
INSERT INTO things (id, value, m, t, n) SELECT i, i, 'calm', 'after', i FROM generate_series(1, 50) i;
COMMIT;
SELECT * FROM whole('things');

-- likenesses, with what their names are made of, and tables made of others
CREATE TABLE likeness (LIKE things INCLUDING ALL);
INSERT INTO likeness SELECT * FROM things;
SELECT * FROM whole('likeness');
CREATE TABLE child () INHERITS (things);
CREATE INDEX child_v ON child USING sherman (value);
INSERT INTO child (id, value) VALUES (1, 7);
ALTER TABLE things ALTER COLUMN value TYPE numeric;
SELECT * FROM whole('child');
SELECT agrees('SELECT tableoid::regclass, value FROM things WHERE value = 7');

-- partitions: indexes of the whole are made for each, and are taken over where they match
CREATE TABLE whole_table (a int, b text) PARTITION BY LIST (a);
CREATE TABLE part1 PARTITION OF whole_table FOR VALUES IN (1);
CREATE INDEX whole_index ON ONLY whole_table USING sherman (b, a);
CREATE INDEX part1_own ON part1 USING sherman (b, a);
CREATE INDEX part1_btree ON part1 (b, a);
ALTER INDEX whole_index ATTACH PARTITION part1_btree;
ALTER INDEX whole_index ATTACH PARTITION part1_own;
CREATE TABLE part2 (a int, b text);
INSERT INTO part2 SELECT 2, i::text FROM generate_series(1, 100) i;
ALTER TABLE whole_table ATTACH PARTITION part2 FOR VALUES IN (2);
INSERT INTO whole_table SELECT 1, i::text FROM generate_series(1, 100) i;
SELECT relid::regclass, parentrelid::regclass, isleaf FROM pg_partition_tree('whole_index') ORDER BY 1;
SELECT * FROM whole('part2');
ALTER TABLE whole_table DETACH PARTITION part2;
SELECT * FROM whole('part2');
SELECT agrees('SELECT * FROM whole_table WHERE b = ''77''');

-- event triggers see the commands as they see btree's
CREATE TABLE seen (number serial, event text, tag text, identity text);
CREATE FUNCTION note_end() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO seen (event, tag, identity)
	SELECT TG_EVENT, command_tag, object_identity FROM pg_event_trigger_ddl_commands();
END $$;
CREATE FUNCTION note_drop() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO seen (event, tag, identity)
	SELECT TG_EVENT, TG_TAG, object_identity FROM pg_event_trigger_dropped_objects() WHERE object_type = 'index' AND schema_name = 'public';
END $$;
CREATE FUNCTION note_rewrite() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO seen (event, tag, identity) VALUES (TG_EVENT, TG_TAG, pg_event_trigger_table_rewrite_oid()::regclass);
END $$;
CREATE EVENT TRIGGER at_end ON ddl_command_end EXECUTE FUNCTION note_end();
CREATE EVENT TRIGGER at_drop ON sql_drop EXECUTE FUNCTION note_drop();
CREATE EVENT TRIGGER at_rewrite ON table_rewrite EXECUTE FUNCTION note_rewrite();
CREATE INDEX likeness_new ON likeness USING sherman (value);
ALTER TABLE likeness ALTER COLUMN value TYPE numeric;
REINDEX INDEX likeness_new;
ALTER INDEX likeness_new SET (fillfactor = 60);
DROP INDEX likeness_new;
DROP TABLE likeness;
DROP EVENT TRIGGER at_end;
DROP EVENT TRIGGER at_drop;
DROP EVENT TRIGGER at_rewrite;
-- from 17 on REINDEX is seen, too
SELECT event, tag, identity FROM seen WHERE event <> 'sql_drop' AND tag <> 'REINDEX' ORDER BY number;
SELECT tag, identity FROM seen WHERE event = 'sql_drop' ORDER BY tag, identity;

DROP TABLE things, child, whole_table, part2, seen;
DROP TYPE mood;
DROP FUNCTION whole, agrees, by_table_too, note_end, note_drop, note_rewrite;

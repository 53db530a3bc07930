-- INSERT ... ON CONFLICT by unique sherman indexes: the rows are those of a twin with btree's.
\set VERBOSITY terse
SET client_min_messages = warning;
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/twins.psql'
\i :include
\set include :abs_srcdir '/sql/include/plan_lines.psql'
\i :include
CREATE TABLE c_btree (k int, t text, v int DEFAULT 0, extra int);
CREATE TABLE c_sherman (LIKE c_btree INCLUDING DEFAULTS);
-- same(): whether the tables hold the same rows, and how many; and whether the indexes are sound.
CREATE FUNCTION same(OUT rows bigint, OUT same boolean, OUT problems bigint) LANGUAGE sql AS $$
	SELECT (SELECT count(*) FROM c_sherman),
		NOT EXISTS (TABLE c_btree EXCEPT ALL TABLE c_sherman) AND NOT EXISTS (TABLE c_sherman EXCEPT ALL TABLE c_btree),
		(SELECT sum(sherman_check(indexrelid, true)) FROM sherman_stat_indexes WHERE relid = 'c_sherman'::regclass)
$$;

-- without an index, and with several
SELECT twins('INSERT INTO c_@ VALUES (1, ''one''), (1, ''one'') ON CONFLICT DO NOTHING');
SELECT twins('INSERT INTO c_@ VALUES (1, ''one'') ON CONFLICT (k) DO NOTHING');
TRUNCATE c_btree, c_sherman;
SELECT twins('CREATE UNIQUE INDEX c_@_k ON c_@ USING @ (k)');
SELECT twins('CREATE UNIQUE INDEX c_@_t ON c_@ USING @ (lower(t)) WHERE v >= 0');
SELECT twins('CREATE UNIQUE INDEX c_@_kv ON c_@ USING @ (extra DESC, k) NULLS NOT DISTINCT WHERE extra > 0');
SELECT twins('CREATE INDEX c_@_v ON c_@ USING @ (v)');
CREATE UNIQUE INDEX c_sherman_second ON c_sherman (k);
CREATE UNIQUE INDEX c_btree_second ON c_btree (k);

-- DO NOTHING
SELECT twins('INSERT INTO c_@ SELECT i, ''t'' || i FROM generate_series(1, 100) i ON CONFLICT DO NOTHING');
SELECT twins('INSERT INTO c_@ SELECT i, ''T'' || i FROM generate_series(50, 200) i ON CONFLICT DO NOTHING');
SELECT twins('INSERT INTO c_@ SELECT i % 300, ''s'' || i FROM generate_series(1, 1000) i ON CONFLICT (k) DO NOTHING');
SELECT twins('INSERT INTO c_@ VALUES (1000, ''T7'') ON CONFLICT (k) DO NOTHING');
SELECT twins('INSERT INTO c_@ VALUES (1000, ''T7'') ON CONFLICT (lower(t)) WHERE v >= 0 DO NOTHING');
SELECT twins('INSERT INTO c_@ VALUES (1000, ''T7'', -1), (1001, ''T7'', -1) ON CONFLICT (lower(t)) WHERE v >= 0 DO NOTHING');
SELECT twins('INSERT INTO c_@ VALUES (NULL, ''n1''), (NULL, ''n2'') ON CONFLICT (k) DO NOTHING');
SELECT twins('INSERT INTO c_@ VALUES (NULL, ''n3'', 1, 9), (NULL, ''n4'', 1, 9) ON CONFLICT (extra, k) WHERE extra > 0 DO NOTHING');
SELECT * FROM same();

-- DO UPDATE
SELECT twins('INSERT INTO c_@ VALUES (5, ''x''), (6, ''y''), (7000, ''z'') ON CONFLICT (k) DO UPDATE SET v = c_@.v + 1, t = c_@.t || excluded.t');
SELECT twins('INSERT INTO c_@ VALUES (5, ''x'') ON CONFLICT (k) DO UPDATE SET k = 6');
SELECT twins('INSERT INTO c_@ VALUES (5, ''x'') ON CONFLICT (k) DO UPDATE SET k = 9000');
SELECT twins('INSERT INTO c_@ VALUES (10, ''x''), (10, ''y'') ON CONFLICT (k) DO UPDATE SET v = 7');
SELECT twins('INSERT INTO c_@ VALUES (8000, ''x''), (8000, ''y'') ON CONFLICT (k) DO UPDATE SET v = 7');
SELECT twins('INSERT INTO c_@ SELECT i, ''u'' || i FROM generate_series(1, 400) i ON CONFLICT (k) DO UPDATE SET v = excluded.k WHERE c_@.k % 3 = 0');
SELECT twins('INSERT INTO c_@ VALUES (9001, ''T20'') ON CONFLICT (lower(t)) WHERE v >= 0 DO UPDATE SET extra = 1');
SELECT twins('INSERT INTO c_@ VALUES (NULL, ''n5'', 1, 9) ON CONFLICT (extra, k) WHERE extra > 0 DO UPDATE SET v = 99');
SELECT twins('INSERT INTO c_@ VALUES (20, ''x'') ON CONFLICT (v) DO NOTHING');
SELECT twins('INSERT INTO c_@ VALUES (20, ''x'') ON CONFLICT DO UPDATE SET v = 1');
SELECT * FROM same();
INSERT INTO c_sherman VALUES (21, 'w') ON CONFLICT (k) DO UPDATE SET v = 5 RETURNING k, t, v;
INSERT INTO c_btree VALUES (21, 'w') ON CONFLICT (k) DO UPDATE SET v = 5 RETURNING k, t, v;

-- in WITH, with other changes around
SELECT twins($$WITH a AS (INSERT INTO c_@ VALUES (30, 'x'), (50000, 'cte') ON CONFLICT (k) DO UPDATE SET v = 31 RETURNING k),
	b AS (DELETE FROM c_@ WHERE k = 31 RETURNING k) SELECT k FROM a UNION ALL SELECT k FROM b$$);
SELECT twins($$WITH a AS (INSERT INTO c_@ VALUES (50001, 'cte2') ON CONFLICT DO NOTHING RETURNING k)
	INSERT INTO c_@ SELECT k + 1, 'cte3' FROM a ON CONFLICT DO NOTHING$$);
SELECT twins($$WITH a AS (INSERT INTO c_@ VALUES (30, 'x') ON CONFLICT (k) DO UPDATE SET v = 32 RETURNING k, v)
	UPDATE c_@ c SET extra = a.v FROM a WHERE c.k = a.k + 1$$);
SELECT * FROM same();

-- prepared, explained, by cursor-like functions, COPY
PREPARE upsert(int) AS INSERT INTO c_sherman VALUES ($1, 'p' || $1) ON CONFLICT (k) DO UPDATE SET v = c_sherman.v + 1 RETURNING k, t, v;
EXECUTE upsert(60000);
EXECUTE upsert(60000);
SET plan_cache_mode = force_generic_plan;
EXECUTE upsert(60000);
BEGIN;
DROP INDEX c_sherman_second;
EXECUTE upsert(60000);
CREATE UNIQUE INDEX c_sherman_third ON c_sherman USING sherman (k) WHERE k > 0;
EXECUTE upsert(60000);
ROLLBACK;
EXECUTE upsert(60001);
RESET plan_cache_mode;
EXPLAIN (COSTS OFF) EXECUTE upsert(1);
SELECT * FROM plan_lines('INSERT INTO c_sherman VALUES (60002, ''e'') ON CONFLICT (k) DO NOTHING', ', ANALYZE, BUFFERS OFF, TIMING OFF, SUMMARY OFF');
DELETE FROM c_sherman WHERE k >= 60000;
CREATE FUNCTION upsert_sql(int) RETURNS int LANGUAGE sql AS
	'INSERT INTO c_sherman VALUES ($1, ''f'' || $1) ON CONFLICT (k) DO UPDATE SET v = c_sherman.v + 10 RETURNING v';
CREATE FUNCTION upsert_plpgsql(n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	got int;
BEGIN
	INSERT INTO c_sherman VALUES (n, 'g' || n) ON CONFLICT (k) DO UPDATE SET v = c_sherman.v + 100 RETURNING v INTO got;
	RETURN got;
EXCEPTION WHEN unique_violation THEN
	RETURN -1;
END $$;
SELECT upsert_sql(70000 + i % 2), upsert_plpgsql(70000 + i % 2), upsert_plpgsql(70001) FROM generate_series(1, 4) i;
DELETE FROM c_sherman WHERE k >= 60000;
COPY (INSERT INTO c_sherman VALUES (60010, 'copied') ON CONFLICT (k) DO NOTHING RETURNING k) TO STDOUT;
DELETE FROM c_sherman WHERE k >= 60000;
COPY c_sherman (k, t) FROM STDIN;
60020	from
60021	stdin
\.
COPY c_sherman (k, t) FROM STDIN;
60022	from
60021	stdin again
\.
DELETE FROM c_sherman WHERE k >= 60000;
SELECT * FROM same();

-- triggers whose own inserts conflict; rules and views
CREATE FUNCTION also() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('INSERT INTO %I VALUES ($1, $2, 0, 0) ON CONFLICT (k) DO UPDATE SET v = excluded.v - 1', TG_TABLE_NAME)
		USING NEW.k + 100000, NEW.t || ' also';
	RETURN NULL;
END $$;
CREATE TRIGGER also AFTER INSERT OR UPDATE ON c_btree FOR EACH ROW WHEN (NEW.k < 100000) EXECUTE FUNCTION also();
CREATE TRIGGER also AFTER INSERT OR UPDATE ON c_sherman FOR EACH ROW WHEN (NEW.k < 100000) EXECUTE FUNCTION also();
SELECT twins('INSERT INTO c_@ SELECT i, ''tr'' || i FROM generate_series(380, 420) i ON CONFLICT (k) DO UPDATE SET v = -5');
SELECT * FROM same();
CREATE VIEW view_btree AS SELECT k, t, v FROM c_btree WHERE k > 0;
CREATE VIEW view_sherman AS SELECT k, t, v FROM c_sherman WHERE k > 0;
SELECT twins('INSERT INTO view_@ VALUES (400, ''view''), (430, ''view2'') ON CONFLICT (k) DO UPDATE SET t = excluded.t');
SELECT * FROM same();
DROP TRIGGER also ON c_btree;
DROP TRIGGER also ON c_sherman;

-- many rows of few keys, and all of it undone
SELECT twins('INSERT INTO c_@ SELECT -(i * 7 % 50), ''m'' || i % 60, i FROM generate_series(1, 1000) i ON CONFLICT DO NOTHING');
SELECT * FROM same();
BEGIN;
INSERT INTO c_sherman SELECT i, 'undone' || i FROM generate_series(-300, 300) i ON CONFLICT (k) DO UPDATE SET t = excluded.t;
ROLLBACK;
SELECT * FROM same();

-- The checks of many rows in one statement leave no memory behind: a few MB at its last row.
CREATE TABLE small (k int, r int, EXCLUDE USING sherman (r WITH =));
CREATE UNIQUE INDEX ON small USING sherman (k);
CREATE FUNCTION memory() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE WARNING '%', (SELECT CASE WHEN sum(total_bytes) < 30000000 THEN 'little memory' ELSE 'memory: ' || sum(total_bytes) END
		FROM pg_backend_memory_contexts);
	RETURN NEW;
END $$;
CREATE TRIGGER memory BEFORE INSERT ON small FOR EACH ROW WHEN (NEW.k = 9000) EXECUTE FUNCTION memory();
INSERT INTO small SELECT i, i FROM generate_series(1, 9000) i;
INSERT INTO small SELECT i, i FROM generate_series(1, 9000) i ON CONFLICT (k) DO NOTHING;
DROP TABLE small;
DROP FUNCTION memory;

-- A key that comes again and again, each time that its row has been deleted by the statement itself; read by none of its indexes.
CREATE TABLE again_btree (k int, v int);
CREATE TABLE again_sherman (LIKE again_btree);
SELECT twins('CREATE UNIQUE INDEX again_@_k ON again_@ USING @ (k)');
CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql SET enable_indexscan = off SET enable_bitmapscan = off AS $$
BEGIN
	EXECUTE format('DELETE FROM %I WHERE k = $1', TG_TABLE_NAME) USING NEW.k;
	RETURN NEW;
END $$;
CREATE TRIGGER again BEFORE INSERT ON again_btree FOR EACH ROW EXECUTE FUNCTION again();
CREATE TRIGGER again BEFORE INSERT ON again_sherman FOR EACH ROW EXECUTE FUNCTION again();
SELECT twins('INSERT INTO again_@ SELECT i % 3, i FROM generate_series(1, 60) i ON CONFLICT DO NOTHING');
SELECT twins('INSERT INTO again_@ SELECT i % 3, i FROM generate_series(61, 120) i ON CONFLICT (k) DO UPDATE SET v = -1');
SELECT (SELECT string_agg(a::text, ' ' ORDER BY a::text) FROM again_btree a) = (SELECT string_agg(a::text, ' ' ORDER BY a::text) FROM again_sherman a) AS same,
	count(*), sherman_check('again_sherman_k', true) FROM again_sherman;
-- A unique index that is not asked first refuses a row when it comes, whatever comes behind it.
SELECT twins('TRUNCATE again_@');
ALTER TABLE again_btree DISABLE TRIGGER USER;
ALTER TABLE again_sherman DISABLE TRIGGER USER;
SELECT twins('CREATE UNIQUE INDEX again_@_v ON again_@ USING @ (v)');
SELECT twins('INSERT INTO again_@ SELECT i, i FROM generate_series(1, 20) i');
SELECT twins('INSERT INTO again_@ VALUES (30, 30), (31, 5), (5, 40) ON CONFLICT (k) DO UPDATE SET v = excluded.v');
SELECT twins('INSERT INTO again_@ VALUES (30, 30), (5, 40), (31, 5) ON CONFLICT (k) DO UPDATE SET v = excluded.v');
SELECT twins('INSERT INTO again_@ VALUES (41, 41), (42, 42), (43, 41) ON CONFLICT (k) DO NOTHING');
SELECT twins('INSERT INTO again_@ VALUES (41, 41), (42, 42), (43, 41), (41, 44), (NULL, 45), (NULL, 46), (47, NULL), (48, NULL) ON CONFLICT DO NOTHING');
SELECT (SELECT string_agg(a::text, ' ' ORDER BY a::text) FROM again_btree a) = (SELECT string_agg(a::text, ' ' ORDER BY a::text) FROM again_sherman a) AS same,
	count(*), sherman_check('again_sherman_k', true), sherman_check('again_sherman_v', true) FROM again_sherman;

-- exclusion constraints beside them
CREATE TABLE both_kinds (k int, r int, EXCLUDE USING sherman (r WITH =));
CREATE UNIQUE INDEX ON both_kinds USING sherman (k);
INSERT INTO both_kinds VALUES (1, 1), (1, 2), (2, 1), (2, 2) ON CONFLICT DO NOTHING;
TABLE both_kinds;

-- what core refuses to all but btree
INSERT INTO both_kinds VALUES (1, 5) ON CONFLICT (k int4_ops) DO NOTHING;
INSERT INTO both_kinds VALUES (1, 5) ON CONFLICT (k) DO NOTHING;
-- partitions: a unique index of one is as good as any, but for ON CONFLICT through the partitioned table
CREATE TABLE parted (k int, v int) PARTITION BY LIST (v);
CREATE TABLE part1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE part2 (k int, v int);
CREATE UNIQUE INDEX part1_k ON part1 (k);
CREATE UNIQUE INDEX part2_k ON part2 USING sherman (k);
ALTER TABLE parted ATTACH PARTITION part2 FOR VALUES IN (2);
CREATE UNIQUE INDEX CONCURRENTLY part2_kv ON part2 USING sherman (k, v);
INSERT INTO parted VALUES (1, 1), (2, 2), (3, 2);
INSERT INTO parted VALUES (4, 2), (3, 2);
INSERT INTO parted VALUES (4, 1), (1, 1) ON CONFLICT DO NOTHING;
INSERT INTO parted VALUES (4, 3) ON CONFLICT DO NOTHING;
INSERT INTO part2 VALUES (3, 2), (4, 2) ON CONFLICT (k) DO UPDATE SET k = excluded.k + 10;
UPDATE parted SET v = 2 WHERE k = 1;
UPDATE parted SET v = 2, k = 2 WHERE k = 4 AND v = 1;
SELECT tableoid::regclass, * FROM parted ORDER BY k, v;

-- The key of a unique index with included columns has more than the key in it.
CREATE TABLE included (k int, v oid, w text);
CREATE UNIQUE INDEX ON included USING sherman (k) INCLUDE (v, w);
INSERT INTO included SELECT g % 50, g, 'w' FROM generate_series(1, 100) g ON CONFLICT DO NOTHING;
INSERT INTO included SELECT g, g, 'new' FROM generate_series(45, 54) g ON CONFLICT (k) DO UPDATE SET w = 'old';
SELECT w, count(*), count(DISTINCT k) FROM included GROUP BY w ORDER BY w;
DROP TABLE included;

DROP VIEW view_btree, view_sherman;
DROP TABLE c_btree, c_sherman, both_kinds, parted, again_btree, again_sherman;
DROP FUNCTION again, one, twins, same, upsert_sql, upsert_plpgsql, also, plan_nodes, plan_lines;

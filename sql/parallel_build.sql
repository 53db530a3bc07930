-- Builds by several processes: the same index as one of a single process, and the same errors.
CREATE SCHEMA pbuild;
SET search_path = pbuild, public;
CREATE TABLE t (id int, k bigint, u uuid, v text COLLATE "C", a bigint, b bigint, c bigint) WITH (autovacuum_enabled = off, parallel_workers = 2);
INSERT INTO t SELECT i, CASE WHEN i % 49 > 0 THEN i * 7919 % 30011 END, md5(i::text)::uuid, md5((i / 2)::text) || i, i % 3, i % 7, i
	FROM generate_series(1, 30000) i;
DELETE FROM t WHERE id % 10 = 0;
ANALYZE t;
SET max_parallel_maintenance_workers = 2;
SET min_parallel_table_scan_size = 0;

-- What core does for btree alone is asked for by us: the second message.
SET client_min_messages = debug1;
CREATE INDEX t_k ON t USING sherman (k);
CREATE INDEX t_wide ON t USING sherman (a, b, c, k);
CREATE INDEX t_v ON t USING sherman (v DESC, k);
CREATE INDEX t_partial ON t USING sherman ((id + 1)) WHERE k > 1000;
REINDEX INDEX t_k;
SET max_parallel_maintenance_workers = 0;
CREATE INDEX t_alone ON t USING sherman (k);
SET max_parallel_maintenance_workers = 2;
-- Workers could not evaluate this one.
CREATE FUNCTION unsafe(int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE AS 'BEGIN RETURN $1; END';
CREATE INDEX t_unsafe ON t USING sherman (unsafe(id));
RESET client_min_messages;
CREATE INDEX CONCURRENTLY t_concurrent ON t USING sherman (u);
CREATE INDEX t_nulls ON t USING sherman (k) WHERE k IS NULL;
CREATE INDEX t_none ON t USING sherman (k) WHERE id < 0;
-- More than memory holds: each process writes several runs.
SET maintenance_work_mem = '1MB';
CREATE INDEX t_runs ON t USING sherman (u);
CREATE INDEX t_wide_runs ON t USING sherman (a, b, c, k);
CREATE INDEX t_text_runs ON t USING sherman (v);
RESET maintenance_work_mem;
CREATE UNIQUE INDEX t_unique ON t USING sherman (u);
CREATE UNIQUE INDEX t_unique_text ON t USING sherman (v);
SELECT indexrelid::regclass AS index, indisvalid, reltuples, sherman_check(indexrelid, true)
	FROM pg_index JOIN pg_class i ON i.oid = indexrelid WHERE indrelid = 't'::regclass ORDER BY relname;
SELECT relname, reltuples FROM pg_class WHERE oid = 't'::regclass;

-- The order is that of a build alone.
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
SET max_parallel_workers_per_gather = 0;
SELECT count(*), count(*) FILTER (WHERE k < before) AS wrong FROM (SELECT k, lag(k) OVER () AS before FROM (SELECT k FROM t ORDER BY k OFFSET 0) x) y;
SELECT count(*), count(*) FILTER (WHERE v > before) AS wrong FROM (SELECT v, lag(v) OVER () AS before FROM (SELECT v FROM t ORDER BY v DESC, k OFFSET 0) x) y;
SELECT count(*), count(*) FILTER (WHERE (a, b, c) < (d, e, f)) AS wrong
	FROM (SELECT a, b, c, lag(a) OVER w AS d, lag(b) OVER w AS e, lag(c) OVER w AS f FROM (SELECT a, b, c FROM t ORDER BY a, b, c, k OFFSET 0) x WINDOW w AS ()) y;
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_sort;
RESET max_parallel_workers_per_gather;

-- No worker can be had.
SET max_parallel_workers = 0;
CREATE INDEX t_no_worker ON t USING sherman (k);
RESET max_parallel_workers;
SELECT sherman_check('t_no_worker', true);

-- Errors, whichever process meets them.
CREATE FUNCTION fails_at(id int) RETURNS int LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	IF id = 29001 THEN
		RAISE EXCEPTION 'row %', id;
	END IF;
	RETURN id;
END $$;
\set VERBOSITY terse
DROP INDEX t_v, t_text_runs, t_unique, t_unique_text;
CREATE INDEX t_fails ON t USING sherman (fails_at(id));
INSERT INTO t (id, v) SELECT 30001, string_agg(md5(i::text), '') FROM generate_series(1, 200) i;
CREATE INDEX t_large ON t USING sherman (v);
DELETE FROM t WHERE id = 30001;
INSERT INTO t (id, u, v) SELECT id, u, 'twin' FROM t WHERE id = 77;
CREATE UNIQUE INDEX t_twins ON t USING sherman ((u::text));
SELECT count(*) FROM pg_class WHERE relname IN ('t_fails', 't_large', 't_twins');
CREATE INDEX t_after ON t USING sherman (fails_at(0 * id));
SELECT sherman_check('t_after', true);

-- Unlogged, and in place of what TRUNCATE emptied.
CREATE UNLOGGED TABLE n (k int) WITH (autovacuum_enabled = off, parallel_workers = 2);
INSERT INTO n SELECT i FROM generate_series(1, 5000) i;
CREATE INDEX n_k ON n USING sherman (k);
SELECT sherman_check('n_k', true);
BEGIN;
TRUNCATE n;
INSERT INTO n SELECT i FROM generate_series(1, 3000) i;
REINDEX INDEX n_k;
COMMIT;
SELECT sherman_check('n_k', true);
SET client_min_messages = error;
DROP SCHEMA pbuild CASCADE;

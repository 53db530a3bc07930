-- What PostgreSQL counts of an index's use is what it counts for btree: each query runs by either, over two equal tables.
SET jit = off;
SET enable_seqscan = off;
SET enable_indexonlyscan = off;
SET plan_cache_mode = force_generic_plan;
CREATE TABLE counted (id int, k int, t text) WITH (autovacuum_enabled = off);
INSERT INTO counted SELECT i, i % 1000, md5((i % 300)::text) FROM generate_series(1, 3000) i;
CREATE TABLE counted_btree (LIKE counted) WITH (autovacuum_enabled = off);
INSERT INTO counted_btree SELECT * FROM counted;
CREATE INDEX counted_k ON counted USING sherman (k);
CREATE INDEX counted_t ON counted USING sherman (t, id);
CREATE INDEX counted_btree_k ON counted_btree (k) WITH (deduplicate_items = off);
CREATE INDEX counted_btree_t ON counted_btree (t, id) WITH (deduplicate_items = off);
ANALYZE counted, counted_btree;

-- counts(query): what one run of it, with `counted` as the table, adds to the counters of both pairs of indexes.
CREATE FUNCTION counters(suffix text) RETURNS bigint[] LANGUAGE sql VOLATILE AS $$
	SELECT array_agg(n ORDER BY indexrelname, o) FROM pg_stat_user_indexes, LATERAL unnest(ARRAY[pg_stat_get_xact_numscans(indexrelid),
		pg_stat_get_xact_tuples_returned(indexrelid), pg_stat_get_xact_tuples_fetched(indexrelid)]) WITH ORDINALITY u (n, o)
	WHERE relname = 'counted' || suffix
$$;
CREATE FUNCTION counts(query text, OUT rows bigint, OUT k_scans_read_fetched text, OUT t_scans_read_fetched text, OUT as_btree boolean)
LANGUAGE plpgsql AS $$
DECLARE
	before bigint[];
	delta text[] := '{}';
	suffix text;
BEGIN
	FOREACH suffix IN ARRAY ARRAY['_btree', ''] LOOP
		-- Planned before, for the planner looks into btree indexes too.
		EXECUTE format('PREPARE one AS SELECT count(*) FROM (%s) s', replace(query, 'counted', 'counted' || suffix));
		EXECUTE 'EXPLAIN EXECUTE one';
		before := counters(suffix);
		EXECUTE 'EXECUTE one' INTO rows;
		DEALLOCATE one;
		delta := delta || (SELECT string_agg((a - b)::text, ' ' ORDER BY o)
			FROM unnest(before, counters(suffix)) WITH ORDINALITY u (b, a, o));
	END LOOP;
	as_btree := delta[1] = delta[2];
	k_scans_read_fetched := substring(delta[2] FROM '^\d+ \d+ \d+');
	t_scans_read_fetched := substring(delta[2] FROM '\d+ \d+ \d+$');
END $$;
SET enable_bitmapscan = off;
SELECT * FROM counts('SELECT id FROM counted WHERE k = 77');
SELECT * FROM counts('SELECT id FROM counted WHERE k BETWEEN 100 AND 300');
SELECT * FROM counts('SELECT id FROM counted WHERE k > 5000');
SELECT * FROM counts('SELECT id FROM counted ORDER BY k DESC LIMIT 25');
SELECT * FROM counts('SELECT id FROM counted WHERE t >= ''c'' ORDER BY t, id LIMIT 10');
SELECT * FROM counts('SELECT id FROM counted WHERE t > ''f'' AND id % 2 = 0');
SELECT * FROM counts('SELECT id FROM counted WHERE k = NULL');
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT * FROM counts('SELECT s.i FROM generate_series(1, 40) s (i) JOIN counted ON k = s.i');
SET enable_indexscan = off;
SET enable_bitmapscan = on;
SELECT * FROM counts('SELECT id FROM counted WHERE k BETWEEN 100 AND 300');
SELECT * FROM counts('SELECT id FROM counted WHERE k < 50 OR t < ''1''');
RESET enable_indexscan;

-- The views show them when the transaction has ended; changes and maintenance are no scans.
SELECT pg_stat_force_next_flush();
SELECT idx_scan, idx_tup_read, idx_tup_fetch FROM pg_stat_user_indexes WHERE indexrelname = 'counted_k' \gset
INSERT INTO counted SELECT i, i, 'x' FROM generate_series(5001, 5100) i;
DELETE FROM counted WHERE ctid IN (SELECT ctid FROM counted LIMIT 200);
VACUUM (INDEX_CLEANUP ON) counted;
SELECT sherman_check('counted_k', true);
SELECT pg_stat_force_next_flush();
SELECT idx_scan > 40 AND idx_scan = :idx_scan AS scans, idx_tup_read > 1000 AND idx_tup_read = :idx_tup_read AS read,
	idx_tup_fetch > 500 AND idx_tup_fetch = :idx_tup_fetch AS fetched
FROM pg_stat_user_indexes WHERE indexrelname = 'counted_k';

DROP TABLE counted, counted_btree;
DROP FUNCTION counters, counts;

-- Tables of script/bench, which sets :rows, and whether those of text and of several columns are made: :wide. Of each there is one
-- with btree's indexes and one with sherman's.
CREATE EXTENSION sherman;
CREATE EXTENSION pg_prewarm;
SELECT setseed(0.42) \g /dev/null
\set each 'FROM unnest(ARRAY[''btree'', ''sherman'']) method \\gexec'

CREATE TABLE source AS
SELECT (random() * 9e18)::bigint AS bigint_key, gen_random_uuid() AS uuid_key, i AS v
FROM generate_series(1, :rows) i;

-- Random order in the heap: lookups.
SELECT format('CREATE TABLE keyed_%1$s AS SELECT * FROM source', method) :each
SELECT format('CREATE INDEX keyed_%1$s_bigint ON keyed_%1$s USING %1$s (bigint_key)', method) :each
SELECT format('CREATE INDEX keyed_%1$s_uuid ON keyed_%1$s USING %1$s (uuid_key)', method) :each
CREATE TABLE probe AS SELECT bigint_key, uuid_key FROM source ORDER BY random() LIMIT 300000;

-- Index order in the heap: what is measured of a range scan is the index, not the heap's cache misses.
SELECT format('CREATE TABLE ordered_%1$s AS SELECT i::bigint AS k, i AS v FROM generate_series(1, %2$s) i', method, :rows) :each
SELECT format('CREATE INDEX ordered_%1$s_k ON ordered_%1$s USING %1$s (k)', method) :each

\if :wide
-- The same with the value in the index.
SELECT format('CREATE TABLE covered_%1$s AS SELECT * FROM ordered_btree', method) :each
SELECT format('CREATE INDEX covered_%1$s_k ON covered_%1$s USING %1$s (k) INCLUDE (v)', method) :each

-- 17 to 27 bytes, in random order.
CREATE TABLE words (a int, b int, word text COLLATE "C");
INSERT INTO words
SELECT bigint_key % 1000, bigint_key / 1000 % 100, left(md5(v::text), 6 + v % 10) || '@' || (ARRAY['example.com', 'example.org', 'mail.test'])[1 + v % 3]
FROM source WHERE v <= :rows / 2;
SELECT format('CREATE TABLE words_%1$s (LIKE words)', method) :each
SELECT format('INSERT INTO words_%1$s SELECT * FROM words', method) :each
SELECT format('CREATE INDEX words_%1$s_a ON words_%1$s USING %1$s (a)', method) :each
SELECT format('CREATE INDEX words_%1$s_word ON words_%1$s USING %1$s (word)', method) :each
SELECT format('CREATE INDEX words_%1$s_icu ON words_%1$s USING %1$s (word COLLATE "en-x-icu")', method) :each
SELECT format('CREATE INDEX words_%1$s_three ON words_%1$s USING %1$s (a, b, word)', method) :each
\endif
-- VACUUM marks rows as visible to all only if WAL is flushed to behind their commit, and those of transactions with numbers near by:
-- its own, for one table after the other, among them.
CHECKPOINT;
SET synchronous_commit = on;
VACUUM ANALYZE;
-- From PostgreSQL 16 on a table is extended by up to 64 pages at a time, so that its last ones may have no rows.
DO $$
BEGIN
	IF EXISTS (SELECT FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relallvisible < relpages - 64) THEN
		RAISE 'rows are not visible to all: index-only scans would have to look at them';
	END IF;
END $$;
-- As much of them as there is room for.
SELECT pg_prewarm(oid) FROM pg_class WHERE relkind IN ('r', 'i') AND relnamespace = 'public'::regnamespace \g /dev/null

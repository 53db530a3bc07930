-- What core lets btree indexes alone do up to PostgreSQL 17, and unique ones of other ordered access methods too from 18 on: btree_alone_1.out.
SET client_min_messages = warning;
\set VERBOSITY terse
CREATE SCHEMA alone;
SET search_path = alone, public;
CREATE TABLE referenced (k int PRIMARY KEY WITH (sherman), u text UNIQUE WITH (sherman));
INSERT INTO referenced SELECT i, 'u' || i FROM generate_series(1, 10) i;

-- foreign keys
CREATE TABLE by_key (k int REFERENCES referenced);
CREATE TABLE by_unique (u text, FOREIGN KEY (u) REFERENCES referenced (u) ON UPDATE CASCADE ON DELETE CASCADE);
CREATE TABLE itself (k int PRIMARY KEY WITH (sherman), parent int REFERENCES itself);

-- a materialized view that is refreshed beside its readers
CREATE MATERIALIZED VIEW refreshed AS SELECT k, u FROM referenced;
CREATE UNIQUE INDEX refreshed_k ON refreshed USING sherman (k);
REFRESH MATERIALIZED VIEW CONCURRENTLY refreshed;

-- partitions: an index over all, and ON CONFLICT through the partitioned table
CREATE TABLE parted (k int, v int) PARTITION BY LIST (v);
CREATE TABLE part1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE part2 PARTITION OF parted FOR VALUES IN (2);
CREATE UNIQUE INDEX part2_k ON part2 USING sherman (k);
INSERT INTO parted VALUES (4, 1), (4, 2) ON CONFLICT DO NOTHING;
\echo :SQLSTATE
INSERT INTO parted VALUES (4, 2) ON CONFLICT DO NOTHING;
WITH w AS (INSERT INTO parted VALUES (4, 2) ON CONFLICT DO NOTHING RETURNING k) SELECT count(*) FROM w;
EXPLAIN (ANALYZE, BUFFERS OFF, COSTS OFF, TIMING OFF, SUMMARY OFF) INSERT INTO parted VALUES (4, 2) ON CONFLICT DO NOTHING;
CREATE UNIQUE INDEX parted_kv ON parted USING sherman (k, v);
CREATE TABLE parted2 (k int, UNIQUE (k) WITH (sherman)) PARTITION BY RANGE (k);

-- What was refused has left nothing.
SELECT relname FROM pg_class WHERE relnamespace = 'alone'::regnamespace AND relkind IN ('r', 'p', 'i', 'I') ORDER BY 1;
SET client_min_messages = error;
DROP SCHEMA alone CASCADE;

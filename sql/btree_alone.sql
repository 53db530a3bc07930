-- What core lets btree indexes alone do up to PostgreSQL 17, and unique ones of other ordered access methods too from 18 on: btree_alone_1.out.
SET client_min_messages = warning;
\set VERBOSITY terse
CREATE SCHEMA alone;
SET search_path = alone, public;
SELECT current_setting('server_version_num')::int >= 180000 AS newer \gset
CREATE TABLE referenced (k int PRIMARY KEY WITH (sherman), u text UNIQUE WITH (sherman));
INSERT INTO referenced SELECT i, 'u' || i FROM generate_series(1, 10) i;

-- foreign keys
CREATE TABLE by_key (k int REFERENCES referenced);
CREATE TABLE by_unique (u text, FOREIGN KEY (u) REFERENCES referenced (u) ON UPDATE CASCADE ON DELETE CASCADE);
CREATE TABLE itself (k int PRIMARY KEY WITH (sherman), parent int REFERENCES itself);
\if :newer
INSERT INTO by_key VALUES (1), (2), (NULL);
INSERT INTO by_key VALUES (3), (99);
DELETE FROM referenced WHERE k = 1;
UPDATE referenced SET k = 101 WHERE k = 2;
UPDATE referenced SET k = 103 WHERE k = 3;
TRUNCATE referenced;
INSERT INTO by_unique SELECT 'u' || i FROM generate_series(4, 7) i;
INSERT INTO by_unique VALUES ('none');
UPDATE referenced SET u = 'changed' WHERE k = 4;
DELETE FROM referenced WHERE k = 5;
SELECT * FROM by_unique ORDER BY u;
INSERT INTO itself VALUES (1, 1), (2, 1), (3, 4), (4, 3);
INSERT INTO itself VALUES (5, 6);
DELETE FROM itself WHERE k = 1;
DELETE FROM itself WHERE k IN (3, 4);
-- by which index, also where it was rebuilt; another type; the constraint goes
SELECT conname, amname FROM pg_constraint k JOIN pg_class i ON i.oid = conindid JOIN pg_am a ON a.oid = relam WHERE contype = 'f' AND connamespace = 'alone'::regnamespace ORDER BY 1;
REINDEX TABLE CONCURRENTLY referenced;
INSERT INTO by_key VALUES (77);
ALTER TABLE referenced ALTER k TYPE bigint;
INSERT INTO by_key VALUES (77);
INSERT INTO by_key VALUES (6);
DROP INDEX referenced_u_key;
ALTER TABLE referenced DROP CONSTRAINT referenced_u_key;
CREATE TABLE later (u text);
INSERT INTO later VALUES ('changed'), ('not there');
ALTER TABLE later ADD FOREIGN KEY (u) REFERENCES referenced (u);
DELETE FROM later WHERE u = 'not there';
ALTER TABLE later ADD FOREIGN KEY (u) REFERENCES referenced (u);
DROP TABLE later;
\endif

-- a materialized view that is refreshed beside its readers
CREATE MATERIALIZED VIEW refreshed AS SELECT k, u FROM referenced;
CREATE UNIQUE INDEX refreshed_k ON refreshed USING sherman (k);
REFRESH MATERIALIZED VIEW CONCURRENTLY refreshed;
\if :newer
INSERT INTO referenced VALUES (201, 'new');
DELETE FROM referenced WHERE k = 8;
UPDATE referenced SET u = 'other' WHERE k = 9;
REFRESH MATERIALIZED VIEW CONCURRENTLY refreshed;
SELECT count(*), (SELECT count(*) FROM (TABLE refreshed EXCEPT SELECT k, u FROM referenced) d) AS different, sherman_check('refreshed_k', true) FROM refreshed;
\endif

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
\if :newer
INSERT INTO parted VALUES (4, 1), (5, 1), (5, 2);
INSERT INTO parted VALUES (5, 1);
INSERT INTO parted VALUES (5, 1), (6, 1) ON CONFLICT (k, v) DO UPDATE SET k = excluded.k + 10;
CREATE TABLE part3 (k int, v int);
CREATE UNIQUE INDEX part3_kv ON part3 USING sherman (k, v);
INSERT INTO part3 VALUES (1, 3), (2, 3);
ALTER TABLE parted ATTACH PARTITION part3 FOR VALUES IN (3);
INSERT INTO parted VALUES (2, 3);
ALTER TABLE parted DETACH PARTITION part3;
INSERT INTO part3 VALUES (2, 3);
DROP TABLE part3;
SELECT tableoid::regclass, * FROM parted ORDER BY v, k;
CREATE TABLE parted2_1 PARTITION OF parted2 FOR VALUES FROM (1) TO (100);
INSERT INTO parted2 VALUES (1), (2);
INSERT INTO parted2 VALUES (2);
CREATE TABLE by_partition (k int REFERENCES parted2 (k));
INSERT INTO by_partition VALUES (1), (2);
INSERT INTO by_partition VALUES (3);
DELETE FROM parted2 WHERE k = 1;
SELECT relname, relkind, amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relnamespace = 'alone'::regnamespace AND relkind IN ('i', 'I') AND relname LIKE 'part%' ORDER BY 1;
-- merge joins, and sorts that an index saves, by families that are not btree's
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_seqscan = off;
SET enable_sort = off;
SET enable_bitmapscan = off;
CREATE TABLE narrow (k int);
CREATE TABLE wide (k bigint);
INSERT INTO narrow SELECT generate_series(1, 100);
INSERT INTO wide SELECT generate_series(50, 150);
CREATE INDEX ON narrow USING sherman (k);
CREATE INDEX ON wide USING sherman (k);
VACUUM ANALYZE narrow, wide;
EXPLAIN (COSTS OFF) SELECT count(*) FROM narrow JOIN wide USING (k);
SELECT count(*) FROM narrow JOIN wide USING (k);
\endif

-- What was refused has left nothing.
SELECT relname FROM pg_class WHERE relnamespace = 'alone'::regnamespace AND relkind IN ('r', 'p', 'i', 'I') ORDER BY 1;
SET client_min_messages = error;
DROP SCHEMA alone CASCADE;

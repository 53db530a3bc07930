-- CREATE INDEX and REINDEX in all their forms; each index is then compared with its table.
\set VERBOSITY terse
CREATE TABLE source (id int, ordered bigint, falling bigint, random bigint, same int, few int, missing int,
	name text COLLATE "C", linguistic text, amount numeric, mark uuid, ratio float8, wide text);
CREATE INDEX source_empty ON source USING sherman (id);
SELECT setseed(0.25);
INSERT INTO source SELECT i, i, -i, (random() * 1e18)::bigint - 500000000000000000, 7, i % 5, CASE WHEN i % 2 = 0 THEN i END,
	md5((i % 3000)::text), chr(65 + i % 26) || md5((i % 3000)::text), (i % 1000) / 7.0, md5(i::text)::uuid,
	CASE i % 1000 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN 'Infinity' ELSE sin(i) END,
	repeat(md5(i::text), 1 + i % 60)
	FROM generate_series(1, 10000) i;
CREATE INDEX source_ordered ON source USING sherman (ordered);
CREATE INDEX source_falling ON source USING sherman (falling);
CREATE INDEX source_random ON source USING sherman (random);
CREATE INDEX source_same ON source USING sherman (same);
CREATE INDEX source_few ON source USING sherman (few DESC, missing NULLS FIRST);
CREATE INDEX source_missing ON source USING sherman (missing DESC NULLS LAST);
CREATE INDEX source_name ON source USING sherman (name) WITH (fillfactor = 100);
CREATE INDEX source_linguistic ON source USING sherman (linguistic COLLATE "en-x-icu", id DESC);
CREATE INDEX source_amount ON source USING sherman (amount DESC);
CREATE INDEX source_mark ON source USING sherman (mark) WITH (fillfactor = 50);
CREATE INDEX source_ratio ON source USING sherman (ratio);
CREATE INDEX source_wide ON source USING sherman (wide);
CREATE INDEX source_expression ON source USING sherman ((id % 100), lower(name));
CREATE INDEX source_long ON source USING sherman (mark, random DESC, missing);
CREATE INDEX source_partial ON source USING sherman (mark) WHERE few = 3;

CREATE FUNCTION check_all() RETURNS TABLE (name name, problems bigint) LANGUAGE sql AS $$
	SELECT relname, sherman_check(c.oid, true) FROM pg_class c JOIN pg_am a ON a.oid = relam
	WHERE amname = 'sherman' AND relkind = 'i' ORDER BY relname;
$$;
SELECT * FROM check_all();
SELECT indexrelid::regclass, pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'source'::regclass ORDER BY 1;

-- A leaf is filled as far as is asked for, and to half of it at least.
CREATE INDEX source_ten ON source USING sherman (random) WITH (fillfactor = 10);
CREATE INDEX source_half ON source USING sherman (random) WITH (fillfactor = 50);
CREATE INDEX source_full ON source USING sherman (random) WITH (fillfactor = 100);
SELECT ten.leaves = half.leaves AS half_at_least, half.leaves > 1.5 * filled.leaves AS as_asked_for
FROM sherman_index_info('source_ten') ten, sherman_index_info('source_half') half, sherman_index_info('source_full') filled;
DROP INDEX source_ten, source_half, source_full;

-- as much memory as a sort gets at least: it goes through temporary files
SET maintenance_work_mem = '1MB';
REINDEX TABLE source;
RESET maintenance_work_mem;
SELECT * FROM check_all() WHERE problems <> 0;

-- concurrently
REINDEX TABLE CONCURRENTLY source;
CREATE INDEX CONCURRENTLY source_later ON source USING sherman (falling, random);
SELECT * FROM check_all() WHERE problems <> 0;
SELECT count(*) AS invalid FROM pg_index WHERE indrelid = 'source'::regclass AND NOT indisvalid;

-- rewrites of the table
CLUSTER source USING source_random;
SELECT * FROM check_all() WHERE problems <> 0;
SELECT bool_and(random >= before) AS in_order FROM (SELECT random, lag(random) OVER (ORDER BY ctid) AS before FROM source) s;
VACUUM FULL source;
SELECT * FROM check_all() WHERE problems <> 0;
ALTER TABLE source ALTER COLUMN same TYPE bigint;
ALTER TABLE source ALTER COLUMN missing TYPE text;
SELECT * FROM check_all() WHERE problems <> 0;
-- changes the index's OID and keeps its file
CREATE TABLE widened (v varchar(10));
INSERT INTO widened SELECT left(md5(i::text), 10) FROM generate_series(1, 1000) i;
CREATE INDEX widened_v ON widened USING sherman (v);
ALTER TABLE widened ALTER COLUMN v TYPE varchar(20);
INSERT INTO widened SELECT left(md5(i::text), 20) FROM generate_series(1, 1000) i;
SELECT sherman_check('widened_v', true);

-- rows whose leading column is NULL are ordered by their other columns
CREATE INDEX source_gaps ON source USING sherman (missing, few, amount DESC, name);
SELECT sherman_check('source_gaps', true);
DROP INDEX source_gaps;
CREATE INDEX source_gaps ON source USING sherman ((nullif(linguistic, '')) COLLATE "C" DESC, (nullif(few, 3)));
SELECT sherman_check('source_gaps', true);
DROP INDEX source_gaps;

-- what a transaction that ends badly has built is gone, and what it dropped is there
BEGIN;
DROP INDEX source_name;
CREATE INDEX source_second ON source USING sherman (name, mark);
SAVEPOINT s;
CREATE INDEX source_third ON source USING sherman (mark, name);
ROLLBACK TO s;
REINDEX INDEX source_amount;
ROLLBACK;
SELECT * FROM check_all();

-- partitions
CREATE TABLE parts (id int, v text) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (500);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (500) TO (1000);
CREATE INDEX parts_v ON parts USING sherman (v, id);
INSERT INTO parts SELECT i, md5(i::text) FROM generate_series(0, 999) i;
CREATE TABLE parts_3 PARTITION OF parts FOR VALUES FROM (1000) TO (2000);
INSERT INTO parts SELECT i, md5(i::text) FROM generate_series(1000, 1999) i;
SET enable_seqscan = off;
SELECT count(*) FROM parts WHERE v > '8';
RESET enable_seqscan;
SELECT relid::regclass AS index, sherman_check(relid, true) FROM pg_partition_tree('parts_v') WHERE isleaf;

-- the rest of DDL
ALTER INDEX source_mark RENAME TO source_uuid;
ALTER INDEX source_uuid SET (fillfactor = 80);
REINDEX INDEX source_uuid;
ALTER INDEX source_uuid RESET (fillfactor);
CREATE TABLE likeness (LIKE source INCLUDING INDEXES);
SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
	WHERE indrelid = 'likeness'::regclass AND amname = 'sherman';
CREATE MATERIALIZED VIEW summary AS SELECT few, count(*) FROM source GROUP BY few;
CREATE INDEX summary_few ON summary USING sherman (few);
REFRESH MATERIALIZED VIEW summary;
SELECT sherman_check('summary_few', true);
SELECT indexrelid::regclass, state, reason FROM sherman_stat_indexes WHERE state <> 'ok';

DROP MATERIALIZED VIEW summary;
DROP TABLE source, widened, parts, likeness;
DROP FUNCTION check_all;

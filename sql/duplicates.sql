-- Many rows of one value: stored compactly, and nothing else is different.
\set VERBOSITY terse
SET jit = off;
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/agrees.psql'
\i :include
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;

-- Two tables of the same rows in the same places; of each value 100 rows, anywhere.
CREATE FUNCTION fill(name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE TABLE %I (id int, k bigint, b int, u uuid) WITH (autovacuum_enabled = off)', name);
	EXECUTE format('INSERT INTO %I SELECT i, v, CASE WHEN i %% 5 <> 0 THEN i %% 3 END, md5(v::text)::uuid '
		'FROM (SELECT i, i * 7919::bigint %% 50000 / 100 FROM generate_series(1, 50000) i) AS rows (i, v)', name);
END $$;
SELECT fill('dup'), fill('dup_btree');
CREATE INDEX dup_k ON dup USING sherman (k);
CREATE INDEX dup_u ON dup USING sherman (u);
CREATE INDEX dup_b ON dup USING sherman (b DESC, k);
-- A backward scan of btree returns the rows of one of its postings forward.
CREATE INDEX dup_btree_k ON dup_btree (k) WITH (deduplicate_items = off);
CREATE INDEX dup_btree_b ON dup_btree (b DESC, k) WITH (deduplicate_items = off);

-- What a row takes, of node memory.
CREATE FUNCTION row_bytes(index regclass) RETURNS numeric LANGUAGE sql AS $$
	SELECT round(node_bytes / entries::numeric, 1) FROM sherman_stat_indexes WHERE sherman_stat_indexes.indexrelid = row_bytes.index;
$$;
SELECT row_bytes('dup_k') <= 10 AS bigint, row_bytes('dup_u') <= 10 AS uuid, row_bytes('dup_b') <= 10 AS two_columns;
SELECT sherman_relation_size('dup_k') <= 13 * 50000 AS extents;
SELECT sherman_check('dup_k', true), sherman_check('dup_u', true), sherman_check('dup_b', true);

-- The same rows in the same order as by btree, in both directions and from the middle of a value's.
CREATE FUNCTION walk(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	c refcursor;
	found tid[] := '{}';
	steps int;
	one tid;
BEGIN
	OPEN c SCROLL FOR EXECUTE query;
	FOREACH steps IN ARRAY '{777, -300, 30, -1, 1, -2, 2, 3000, -2999, 77, -100}'::int[] LOOP
		FOR i IN 1..abs(steps) LOOP
			IF steps > 0 THEN
				FETCH NEXT FROM c INTO one;
			ELSE
				FETCH PRIOR FROM c INTO one;
			END IF;
			found := found || one;
		END LOOP;
	END LOOP;
	CLOSE c;
	RETURN cardinality(found) || ' rows, ' || md5(found::text);
END $$;
CREATE FUNCTION walks_agree(condition text) RETURNS boolean LANGUAGE sql AS $$
	SELECT walk('SELECT ctid FROM dup WHERE ' || condition) = walk('SELECT ctid FROM dup_btree WHERE ' || condition);
$$;
EXPLAIN (COSTS OFF) SELECT ctid FROM dup WHERE k >= 250 ORDER BY k;
SELECT walks_agree('k >= 250 ORDER BY k'), walks_agree('k <= 250 ORDER BY k DESC'), walks_agree('k = 77'),
	walks_agree('k BETWEEN 200 AND 225 ORDER BY k DESC'), walks_agree('k = ANY (''{1,250,2,499}'') ORDER BY k');
SELECT walks_agree('b = 1 AND k > 150 ORDER BY b DESC, k'), walks_agree('b <= 1 ORDER BY b, k DESC'), walks_agree('b IS NULL');
SELECT agrees('SELECT * FROM dup WHERE u = md5(''250'')::uuid'), agrees('SELECT k FROM dup WHERE k > 490 ORDER BY k DESC');
SELECT count(*), min(k), max(k) FROM dup WHERE k >= 10;

-- Rows go, and their places are used again by rows with other values.
DELETE FROM dup WHERE id % 7 < 3;
DELETE FROM dup_btree WHERE id % 7 < 3;
SELECT walks_agree('k >= 250 ORDER BY k'), walks_agree('b <= 1 ORDER BY b, k DESC');
VACUUM dup;
VACUUM dup_btree;
SELECT sherman_check('dup_k', true), sherman_check('dup_u', true), sherman_check('dup_b', true);
SELECT agrees('SELECT * FROM dup WHERE k >= 0'), agrees('SELECT * FROM dup WHERE b IS NULL');
INSERT INTO dup SELECT i, i % 50, i % 2, md5((i % 50)::text)::uuid FROM generate_series(1, 40000) i;
SELECT sherman_check('dup_k', true), sherman_check('dup_u', true), sherman_check('dup_b', true);
SELECT agrees('SELECT * FROM dup WHERE k BETWEEN 30 AND 70'), agrees('SELECT k FROM dup WHERE k < 60 ORDER BY k DESC');
SELECT agrees('SELECT * FROM dup WHERE b = 0'), agrees('SELECT * FROM dup WHERE u = md5(''7'')::uuid');

-- An index that grows by inserts merges what it has before it splits a leaf.
CREATE TABLE grown (id int, k bigint);
CREATE INDEX grown_k ON grown USING sherman (k);
CREATE INDEX grown_single ON grown USING sherman (k) WITH (deduplicate_items = off);
INSERT INTO grown SELECT i, i * 7919::bigint % 40000 / 100 FROM generate_series(1, 40000) i;
SELECT sherman_check('grown_k', true), sherman_check('grown_single', true);
SELECT row_bytes('grown_k') * 1.5 < row_bytes('grown_single') AS smaller;
DROP INDEX grown_single;
SELECT agrees('SELECT * FROM grown WHERE k BETWEEN 30 AND 70'), agrees('SELECT k FROM grown WHERE k < 60 ORDER BY k DESC');

-- The parameter is for the next build: what is built stays what it is.
ALTER INDEX dup_k SET (deduplicate_items = off);
\c -
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT sherman_check('dup_k', true), agrees('SELECT * FROM dup WHERE k = 30');
INSERT INTO dup VALUES (1, 30), (2, 30);
SELECT sherman_check('dup_k', true), agrees('SELECT * FROM dup WHERE k = 30');
REINDEX INDEX dup_k;
CREATE TEMP TABLE single AS SELECT row_bytes('dup_k') AS bytes;
SELECT sherman_check('dup_k', true);
ALTER INDEX dup_k RESET (deduplicate_items);
REINDEX INDEX dup_k;
SELECT 1.5 * row_bytes('dup_k') < bytes AS smaller, sherman_check('dup_k', true) FROM single;

-- A unique value many times over, as updates leave it.
UPDATE grown SET id = id + 1 WHERE k = 7;
UPDATE grown SET k = k WHERE k = 7;
SELECT sherman_check('grown_k', true), agrees('SELECT * FROM grown WHERE k = 7');

-- Keys of four columns have cells too wide for several TIDs.
CREATE TABLE dup_wide AS SELECT g % 3 AS a, (g % 2)::bigint AS b, (g % 5)::bigint AS c, (g % 7)::bigint AS d FROM generate_series(1, 2000) g;
CREATE INDEX dup_wide_all ON dup_wide USING sherman (a, b, c, d);
SELECT sherman_check('dup_wide_all', true), count(*) FROM dup_wide WHERE a = 1 AND b = 1 AND c = 2;

DROP TABLE dup, dup_btree, dup_wide, grown;
DROP FUNCTION fill, row_bytes, walk, walks_agree, agrees, by_table_too;

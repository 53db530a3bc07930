-- Inserts into an index write no WAL: a statement writes as many records, and bytes, with sherman indexes as without any.
SET jit = off;
CREATE TABLE wal_none (id int, word text) WITH (autovacuum_enabled = off);
CREATE TABLE wal_sherman (LIKE wal_none) WITH (autovacuum_enabled = off);
CREATE TABLE wal_btree (LIKE wal_none) WITH (autovacuum_enabled = off);
CREATE INDEX ON wal_sherman USING sherman (id);
CREATE INDEX ON wal_sherman USING sherman (word);
CREATE INDEX ON wal_btree (id);
CREATE INDEX ON wal_btree (word);

-- What a statement wrote in this session.
CREATE FUNCTION wal_of(statement text, OUT records bigint, OUT images bigint, OUT bytes bigint) LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, WAL, FORMAT JSON) ' || statement INTO plan;
	records := plan->0->'Plan'->>'WAL Records';
	images := plan->0->'Plan'->>'WAL FPI';
	bytes := plan->0->'Plan'->>'WAL Bytes';
END $$;

-- The statement over each of the tables. Bytes are alike where no checkpoint came in between, which makes images of pages.
CREATE FUNCTION compare_wal(statement text, OUT rows_at_least boolean, OUT sherman_as_none boolean, OUT btree_more boolean)
LANGUAGE plpgsql AS $$
DECLARE
	without record;
	by_sherman record;
	by_btree record;
BEGIN
	SELECT * INTO without FROM wal_of(format(statement, 'wal_none'));
	SELECT * INTO by_sherman FROM wal_of(format(statement, 'wal_sherman'));
	SELECT * INTO by_btree FROM wal_of(format(statement, 'wal_btree'));
	rows_at_least := without.records >= 1000;
	sherman_as_none := by_sherman.records = without.records
		AND (by_sherman.bytes = without.bytes OR by_sherman.images + without.images > 0);
	btree_more := by_btree.records > without.records;
	IF NOT sherman_as_none THEN
		RAISE WARNING 'without: %, with sherman: %', without, by_sherman;
	END IF;
END $$;

SELECT * FROM compare_wal('INSERT INTO %s SELECT i, md5(i::text) FROM generate_series(1, 3000) i');
SELECT * FROM compare_wal('INSERT INTO %s SELECT 5, ''five'' FROM generate_series(1, 1000) i');
SELECT sherman_check(indexrelid, true) FROM pg_index WHERE indrelid = 'wal_sherman'::regclass;

DROP TABLE wal_none, wal_sherman, wal_btree;
DROP FUNCTION compare_wal, wal_of;

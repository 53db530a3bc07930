-- pg_class.relpages of an index is its size at the memory nodes, behind ANALYZE, VACUUM and both at once; plans do not depend on it.
CREATE TABLE relpages_t (id int, pad text) WITH (autovacuum_enabled = off);
INSERT INTO relpages_t SELECT g, repeat('x', 20) || g FROM generate_series(1, 20000) g;
CREATE INDEX relpages_id ON relpages_t USING sherman (id);
CREATE INDEX relpages_some ON relpages_t USING sherman (pad) WHERE id > 10000;
CREATE VIEW relpages AS
	SELECT indexrelname, relpages = (node_bytes + overflow_bytes + current_setting('block_size')::int - 1) / current_setting('block_size')::int AS right_pages, relpages > 10 AS many, reltuples
	FROM sherman_stat_indexes s JOIN pg_class c ON c.oid = s.indexrelid WHERE s.relname = 'relpages_t';
CREATE FUNCTION costs() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
	found text := '';
	query text;
BEGIN
	FOREACH query IN ARRAY ARRAY['SELECT * FROM relpages_t WHERE id = 5', 'SELECT * FROM relpages_t WHERE id > 10000 ORDER BY pad LIMIT 10', 'SELECT count(*) FROM relpages_t WHERE id < 4000'] LOOP
		EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
		found := found || ' ' || (plan->0->'Plan'->>'Total Cost') || ' ' || (plan->0->'Plan'->>'Node Type');
	END LOOP;
	RETURN found;
END $$;

ANALYZE relpages_t;
SELECT * FROM relpages ORDER BY 1;
SELECT costs() AS before \gset
-- What it was before.
UPDATE pg_class SET relpages = 1 WHERE relname IN ('relpages_id', 'relpages_some');
SELECT costs() = :'before' AS same_plans;
VACUUM relpages_t;
SELECT * FROM relpages ORDER BY 1;
UPDATE pg_class SET relpages = 1 WHERE relname IN ('relpages_id', 'relpages_some');
VACUUM (ANALYZE) relpages_t;
SELECT * FROM relpages ORDER BY 1;
-- With rows to remove, and in a transaction.
DELETE FROM relpages_t WHERE id % 2 = 0;
VACUUM (ANALYZE) relpages_t;
SELECT indexrelname, right_pages, many FROM relpages ORDER BY 1;
BEGIN;
INSERT INTO relpages_t SELECT g, repeat('y', 20) || g FROM generate_series(20001, 40000) g;
ANALYZE relpages_t;
COMMIT;
SELECT indexrelname, right_pages, many FROM relpages ORDER BY 1;
-- What VACUUM has found of an index that was rebuilt since is not its size.
CREATE TABLE relpages_r (id int) WITH (autovacuum_enabled = off);
INSERT INTO relpages_r SELECT generate_series(1, 20000);
CREATE INDEX relpages_r_id ON relpages_r USING sherman (id);
VACUUM relpages_r;
REINDEX INDEX relpages_r_id;
SELECT relpages FROM pg_class WHERE relname = 'relpages_r_id';
DROP TABLE relpages_r;
DROP VIEW relpages;
DROP TABLE relpages_t;
DROP FUNCTION costs;

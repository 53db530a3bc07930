-- VACUUM is held back by the cost of leaves, which are no pages of PostgreSQL's: the table's own cost nothing here.
CREATE TABLE costly (k bigint) WITH (autovacuum_enabled = off);
INSERT INTO costly SELECT i FROM generate_series(1, 50000) i;
CREATE INDEX costly_k ON costly USING sherman (k);
DELETE FROM costly WHERE k % 10 = 0;
-- Nobody has a snapshot that still sees the rows, a visitor that cleans up, say: else VACUUM would leave them alone.
CREATE PROCEDURE settle() LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..3000 LOOP
		EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL));
		PERFORM pg_sleep(0.02);
		COMMIT;
	END LOOP;
END $$;
CALL settle();
SELECT sherman_relation_size('costly_k') / 8192 > 60 AS pages;
-- 60 pages read, each a wait of 5 ms at the least; that they are rewritten costs nothing.
SET vacuum_cost_page_hit = 0;
SET vacuum_cost_page_dirty = 0;
SET vacuum_cost_page_miss = 10;
SET vacuum_cost_limit = 10;
SET vacuum_cost_delay = 5;
SELECT clock_timestamp() AS began \gset
VACUUM (INDEX_CLEANUP on) costly;
SELECT clock_timestamp() - :'began' > interval '250 ms' AS held_back;
-- 60 pages rewritten, at twice the price.
DELETE FROM costly WHERE k % 10 = 1;
CALL settle();
SET vacuum_cost_page_dirty = 20;
SET vacuum_cost_page_miss = 0;
SELECT clock_timestamp() AS began \gset
VACUUM (INDEX_CLEANUP on, TRUNCATE off) costly;
SELECT clock_timestamp() - :'began' > interval '500 ms' AS held_back;
SELECT sherman_check('costly_k', true);
DROP TABLE costly;
DROP PROCEDURE settle;

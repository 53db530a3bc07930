-- VACUUM is held back by the cost of leaves, which are no pages of PostgreSQL's: the table's own cost nothing here.
CREATE TABLE costly (k bigint) WITH (autovacuum_enabled = off);
INSERT INTO costly SELECT i FROM generate_series(1, 50000) i;
CREATE INDEX costly_k ON costly USING sherman (k);
DELETE FROM costly WHERE k % 10 = 0;
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/settle.psql'
\i :include
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

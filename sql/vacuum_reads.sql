-- What VACUUM reads of a queue: each leaf once, although the first one is always empty and stays; and where leaves were emptied
-- what there is to do for these.
CREATE TABLE queue (k bigint) WITH (autovacuum_enabled = off);
CREATE INDEX queue_k ON queue USING sherman (k);
INSERT INTO queue SELECT i FROM generate_series(1, 30000) i;
CREATE TABLE costs (round int, leaf_reads bigint, leaves bigint) WITH (autovacuum_enabled = off);
CREATE FUNCTION note_costs(round int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO costs SELECT round, leaf_reads, leaves FROM sherman_stat_indexes
	WHERE indexrelid = 'queue_k'::regclass;
$$;
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/settle.psql'
\i :include
-- 0: emptied leaves go. 1: one entry at the other end. 2: one leaf in the middle.
DELETE FROM queue WHERE k <= 10000;
CALL settle();
VACUUM (INDEX_CLEANUP on, TRUNCATE off) queue;
SELECT note_costs(0);
DELETE FROM queue WHERE k = 29999;
CALL settle();
VACUUM (INDEX_CLEANUP on, TRUNCATE off) queue;
SELECT note_costs(1);
DELETE FROM queue WHERE k BETWEEN 20000 AND 20200;
CALL settle();
VACUUM (INDEX_CLEANUP on, TRUNCATE off) queue;
SELECT note_costs(2);
SELECT now.round, before.leaves > 300 AS large, now.leaf_reads - before.leaf_reads - before.leaves < 50 AS each_leaf_once,
	before.leaves > now.leaves AS some_go
FROM costs before JOIN costs now ON now.round = before.round + 1 ORDER BY 1;
SELECT sherman_check('queue_k', true);
DROP TABLE queue, costs;
DROP FUNCTION note_costs;
DROP PROCEDURE settle;

-- Version churn: an index whose key no UPDATE changes, on a table whose updates cannot be HOT, does not grow more than btree's.
-- Old versions go before a leaf is split: those that the table says are dead, and those that scans have marked.
CREATE TABLE churn (id int, k int, v int, filler text) WITH (autovacuum_enabled = off);
INSERT INTO churn SELECT i, i * 7919 % 20011, 0, 'x' FROM generate_series(1, 5000) i;
CREATE INDEX churn_s ON churn USING sherman (k);
CREATE INDEX churn_b ON churn USING btree (k);
CREATE INDEX churn_v ON churn USING btree (v);
CREATE INDEX churn_t ON churn USING sherman (filler, id);

\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/settle.psql'
\i :include
-- Each round waits until nobody has a snapshot of before the last one.
CREATE PROCEDURE churn(rounds int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..rounds LOOP
		CALL settle();
		UPDATE churn SET v = v + 1;
		COMMIT;
	END LOOP;
END $$;
CALL churn(5);

SELECT i.node_bytes < 1.3 * pg_relation_size('churn_b') AS within FROM sherman_stat_indexes i WHERE indexrelid = 'churn_s'::regclass;
SELECT indexrelid::regclass, dead_removals > 10000 AS removed FROM sherman_stat_indexes WHERE indexrelid IN ('churn_s'::regclass, 'churn_t'::regclass)
ORDER BY indexrelid::regclass::text;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(filler), sum(v), sum(k) FROM churn WHERE k >= 0;
SELECT count(*), max(v) FROM churn WHERE filler = 'x' AND id BETWEEN 100 AND 199;
SELECT sherman_check('churn_s', true), sherman_check('churn_t', true);

-- A rolled back update: its versions go, and not those that came back.
BEGIN;
UPDATE churn SET v = v + 1;
UPDATE churn SET v = v + 1;
ROLLBACK;
CALL churn(2);
SELECT count(filler), sum(v) FROM churn WHERE k >= 0;
SELECT sherman_check('churn_s', true), sherman_check('churn_t', true);

-- Dead marks alone: rows that come and go at one place, each met by a scan once it is dead.
CREATE TABLE queue (k int, filler text) WITH (autovacuum_enabled = off);
CREATE INDEX queue_k ON queue USING sherman (k);
CREATE PROCEDURE run_queue(rounds int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..rounds LOOP
		INSERT INTO queue SELECT n % 40, 'x' FROM generate_series(1, 40) n;
		DELETE FROM queue;
		COMMIT;
		FOR n IN 1..3000 LOOP
			PERFORM pg_current_xact_id();
			COMMIT;
			PERFORM count(filler) FROM queue WHERE k >= 0;
			EXIT WHEN (SELECT dead_marks >= 40 * i FROM sherman_stat_indexes WHERE indexrelid = 'queue_k'::regclass);
			PERFORM pg_sleep(0.02);
		END LOOP;
	END LOOP;
END $$;
CALL run_queue(15);
SELECT leaves < 5 AS few_leaves FROM sherman_stat_indexes WHERE indexrelid = 'queue_k'::regclass;
SELECT dead_marks, dead_removals > 400 AS removed FROM sherman_stat_indexes WHERE indexrelid = 'queue_k'::regclass;
SELECT sherman_check('queue_k', true);

DROP TABLE churn, queue;
DROP PROCEDURE churn, run_queue, settle;

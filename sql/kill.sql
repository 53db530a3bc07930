-- Entries of dead rows that scans meet are marked, passed over, and removed by VACUUM; new rows in their place are found.
SET enable_seqscan = off;
SET enable_bitmapscan = off;

CREATE TABLE kill_t (id int, k int, filler text);
CREATE INDEX kill_k ON kill_t USING sherman (k);
INSERT INTO kill_t SELECT i, i, 'x' FROM generate_series(1, 3000) i;
DELETE FROM kill_t WHERE id % 3 = 0;

-- Scans until all of the dead are marked: whoever else has a snapshot, a visitor that cleans up, say, may see them still; and
-- that the visitor has gone a session learns when transaction ids have gone on.
CREATE PROCEDURE kill_scan(wanted bigint, INOUT result text = NULL) LANGUAGE plpgsql AS $$
DECLARE
	marks bigint;
BEGIN
	FOR i IN 1..3000 LOOP
		PERFORM pg_current_xact_id();
		COMMIT;
		PERFORM count(filler) FROM kill_t WHERE k > 0;
		SELECT dead_marks INTO marks FROM sherman_stat_indexes WHERE indexrelid = 'kill_k'::regclass;
		EXIT WHEN marks >= wanted;
		PERFORM pg_sleep(0.02);
	END LOOP;
	result := CASE WHEN marks = wanted THEN 'all' ELSE marks || ' marks' END;
END $$;
CALL kill_scan(1000);
SELECT count(filler), min(k), max(k) FROM kill_t WHERE k BETWEEN 1 AND 2999;
SELECT k, id FROM kill_t WHERE k < 12 ORDER BY k DESC;
SELECT sherman_check('kill_k', true);

-- The dead rows' TIDs become free with VACUUM, and are taken by rows with the same keys, and with others.
VACUUM (INDEX_CLEANUP ON) kill_t;
SELECT entries FROM sherman_stat_indexes WHERE indexrelid = 'kill_k'::regclass;
INSERT INTO kill_t SELECT i, i, 'y' FROM generate_series(3, 3000, 6) i;
INSERT INTO kill_t SELECT i, 5000 - i, 'y' FROM generate_series(6, 3000, 6) i;
SELECT count(filler), count(DISTINCT k), sum(k) FROM kill_t WHERE k > 0;
SELECT sherman_check('kill_k', true);

-- Both ways, with a cursor that stands on them.
DELETE FROM kill_t WHERE k BETWEEN 100 AND 120;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT k FROM kill_t WHERE k BETWEEN 95 AND 125 ORDER BY k;
FETCH ALL FROM c;
FETCH BACKWARD ALL FROM c;
FETCH ALL FROM c;
COMMIT;
SELECT k FROM kill_t WHERE k BETWEEN 95 AND 125 ORDER BY k DESC;

-- A rolled back deletion leaves no mark.
BEGIN;
DELETE FROM kill_t WHERE k BETWEEN 200 AND 210;
SELECT count(filler) FROM kill_t WHERE k BETWEEN 200 AND 210;
ROLLBACK;
SELECT count(filler) FROM kill_t WHERE k BETWEEN 200 AND 210;

SELECT sherman_check('kill_k', true);
DROP TABLE kill_t;
DROP PROCEDURE kill_scan;

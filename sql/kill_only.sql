-- Index-only scans mark entries of dead rows, too: those whose rows they look up themselves, of which the executor hears nothing.
SET enable_seqscan = off;
SET enable_bitmapscan = off;

CREATE TABLE kill_only (id int, k int, v text);
CREATE INDEX kill_only_k ON kill_only USING sherman (k) INCLUDE (v);
INSERT INTO kill_only SELECT i, i, 'v' || i FROM generate_series(1, 3000) i;
DELETE FROM kill_only WHERE id % 3 = 0;
EXPLAIN (COSTS OFF) SELECT count(v) FROM kill_only WHERE k > 0;

-- As in kill.sql: until nobody has an older snapshot.
CREATE PROCEDURE kill_only_scan(query text, wanted bigint, INOUT result text = NULL) LANGUAGE plpgsql AS $$
DECLARE
	marks bigint;
BEGIN
	FOR i IN 1..3000 LOOP
		PERFORM pg_current_xact_id();
		COMMIT;
		EXECUTE query;
		SELECT dead_marks INTO marks FROM sherman_stat_indexes WHERE indexrelid = 'kill_only_k'::regclass;
		EXIT WHEN marks >= wanted;
		PERFORM pg_sleep(0.02);
	END LOOP;
	result := CASE WHEN marks = wanted THEN 'all' ELSE marks || ' marks' END;
END $$;
CALL kill_only_scan('SELECT count(v) FROM kill_only WHERE k BETWEEN 1 AND 1500', 500);
CALL kill_only_scan('SELECT k FROM kill_only WHERE k > 0 ORDER BY k DESC', 1000);
SELECT count(v), min(k), max(k), sum(k) FROM kill_only WHERE k > 0;
SELECT k, v FROM kill_only WHERE k < 12 ORDER BY k DESC;
SELECT sherman_check('kill_only_k', true);

-- What is marked goes with VACUUM, and the TIDs are used again.
VACUUM (INDEX_CLEANUP ON) kill_only;
INSERT INTO kill_only SELECT i, i, 'new' FROM generate_series(3, 3000, 3) i;
SELECT count(v), min(k), max(k), sum(k) FROM kill_only WHERE k > 0;
SELECT sherman_check('kill_only_k', true);
DROP TABLE kill_only;
DROP PROCEDURE kill_only_scan;

-- VACUUM removes the entries of dead rows, and only these.
\set VERBOSITY terse
SET jit = off;
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/agrees.psql'
\i :include
\set include :abs_srcdir '/sql/include/settle.psql'
\i :include
CREATE TABLE v (id int, k bigint, t text) WITH (autovacuum_enabled = off);
INSERT INTO v SELECT i, (i * 7919) % 10007, md5(i::text) FROM generate_series(1, 10000) i;
CREATE INDEX v_k ON v USING sherman (k);
CREATE INDEX v_t ON v USING sherman (t);
CREATE FUNCTION sizes() RETURNS TABLE (name name, entries bigint) LANGUAGE sql AS $$
	SELECT relname, reltuples::bigint FROM pg_class WHERE relname IN ('v', 'v_k', 'v_t') ORDER BY 1;
$$;

DELETE FROM v WHERE id % 3 = 0;
CALL settle();
VACUUM v;
SELECT * FROM sizes();
SELECT sherman_check('v_k', true), sherman_check('v_t', true);
SELECT agrees('SELECT * FROM v WHERE k >= 0'), agrees('SELECT * FROM v WHERE t < ''8'' ORDER BY t');

-- nothing is removed that somebody may still see; what is left alone is removed later
DELETE FROM v WHERE id % 3 = 1;
CALL settle();
VACUUM (INDEX_CLEANUP off) v;
SELECT sherman_check('v_k', true), sherman_check('v_t', true);
SELECT agrees('SELECT * FROM v WHERE k < 5000'), agrees('SELECT * FROM v WHERE t > ''8'' ORDER BY t DESC');
CALL settle();
VACUUM (INDEX_CLEANUP on) v;
SELECT * FROM sizes();

-- TIDs are used again, with other keys
INSERT INTO v SELECT i, -i, 'z' || i FROM generate_series(1, 6666) i;
SELECT sherman_check('v_k', true), sherman_check('v_t', true);
SELECT agrees('SELECT * FROM v WHERE k < 0 ORDER BY k'), agrees('SELECT count(*), min(k), max(k) FROM v WHERE k < 0');
SELECT agrees('SELECT * FROM v WHERE t > ''z''');

-- all rows, then all again
DELETE FROM v;
CALL settle();
VACUUM v;
SELECT * FROM sizes();
SELECT agrees('SELECT * FROM v WHERE k > 0'), agrees('SELECT * FROM v WHERE k < 5 OR t > ''a''');
INSERT INTO v SELECT i, i, i::text FROM generate_series(1, 3000) i;
CALL settle();
VACUUM ANALYZE v;
SELECT * FROM sizes();
SELECT agrees('SELECT * FROM v WHERE k > 0 ORDER BY k'), agrees('SELECT count(*), min(k), max(k) FROM v WHERE k > 0');
SELECT sherman_check('v_k', true), sherman_check('v_t', true);

-- more dead rows than one pass has room for
SET maintenance_work_mem = '1MB';
INSERT INTO v SELECT i, i % 1000, 'many' FROM generate_series(1, 220000) i;
DELETE FROM v WHERE t = 'many';
CALL settle();
VACUUM v;
RESET maintenance_work_mem;
SELECT * FROM sizes();
SELECT sherman_check('v_k', true), sherman_check('v_t', true);

-- HOT pruning and updates of the key
UPDATE v SET k = k + 10000 WHERE id % 2 = 0;
UPDATE v SET k = k + 10000 WHERE id % 2 = 0;
CALL settle();
VACUUM v;
SELECT * FROM sizes();
SELECT agrees('SELECT * FROM v WHERE k > 10000 ORDER BY k DESC'), agrees('SELECT * FROM v WHERE t BETWEEN ''1'' AND ''2''');
SELECT agrees('SELECT count(*), min(k), max(k) FROM v WHERE k > 10000');
CALL settle();
VACUUM (FREEZE) v;
SELECT sherman_check('v_k', true), sherman_check('v_t', true);

DROP TABLE v;
DROP FUNCTION sizes, agrees, by_table_too;
DROP PROCEDURE settle;

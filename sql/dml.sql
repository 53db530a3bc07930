-- The index follows INSERT, UPDATE, DELETE, COPY, TRUNCATE and what becomes of transactions.
\set VERBOSITY terse
SET jit = off;
CREATE TABLE item (id int PRIMARY KEY, k int, note text) WITH (fillfactor = 70);
CREATE INDEX item_k ON item USING sherman (k);
CREATE INDEX item_note ON item USING sherman (note);

-- What the index says and what the table says.
CREATE FUNCTION both_ways(OUT by_index bigint, OUT sum_by_index bigint, OUT by_table bigint, OUT sum_by_table bigint)
LANGUAGE plpgsql AS $$
BEGIN
	SET LOCAL enable_seqscan = off;
	SET LOCAL enable_bitmapscan = off;
	EXECUTE 'SELECT count(*), sum(id) FROM item WHERE k > -1000000' INTO by_index, sum_by_index;
	SET LOCAL enable_seqscan = on;
	SET LOCAL enable_indexscan = off;
	EXECUTE 'SELECT count(*), sum(id) FROM item WHERE k > -1000000' INTO by_table, sum_by_table;
	SET LOCAL enable_indexscan = on;
END $$;

INSERT INTO item SELECT i, i % 100, 'note ' || i FROM generate_series(1, 3000) i;
SELECT * FROM both_ways();
UPDATE item SET k = k + 1000 WHERE id % 10 = 0;
SELECT * FROM both_ways();
UPDATE item SET note = note || ' again' WHERE id % 7 = 0;
-- changes no indexed column: may be heap-only
ALTER TABLE item ADD COLUMN plain int;
UPDATE item SET plain = id WHERE id % 3 = 0;
SELECT * FROM both_ways();
DELETE FROM item WHERE k BETWEEN 20 AND 29;
SELECT * FROM both_ways();

-- rows of transactions and subtransactions that end badly
BEGIN;
INSERT INTO item SELECT i, i, 'gone' FROM generate_series(10001, 10500) i;
UPDATE item SET k = -k WHERE id < 100;
SELECT * FROM both_ways();
ROLLBACK;
SELECT * FROM both_ways();
BEGIN;
INSERT INTO item VALUES (20001, 1, 'kept');
SAVEPOINT s;
INSERT INTO item VALUES (20002, 2, 'gone');
ROLLBACK TO s;
INSERT INTO item VALUES (20002, 3, 'kept');
COMMIT;
SET enable_seqscan = off;
SELECT id, k, note FROM item WHERE k IN (1, 2, 3) AND id > 20000 ORDER BY k;

-- the same TIDs again after VACUUM
DELETE FROM item WHERE id % 2 = 0;
VACUUM item;
INSERT INTO item SELECT i, i % 77, 'new ' || i FROM generate_series(30001, 31500) i;
SELECT * FROM both_ways();

-- COPY
COPY item (id, k, note) FROM stdin;
40001	500000	copied one
40002	500001	copied two
40003	\N	copied null
\.
SELECT id, k, note FROM item WHERE k >= 500000 ORDER BY k;
SELECT id, note FROM item WHERE k IS NULL;

-- ON CONFLICT goes by the primary key; the sherman indexes follow
INSERT INTO item VALUES (40001, 500005, 'conflict') ON CONFLICT (id) DO UPDATE SET k = excluded.k, note = excluded.note;
INSERT INTO item VALUES (40002, 500006, 'conflict') ON CONFLICT (id) DO NOTHING;
SELECT id, k, note FROM item WHERE k >= 500000 ORDER BY k;

-- a trigger sees each row through the index as soon as it is inserted
CREATE TABLE seen (id int, by_index bigint);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO seen SELECT NEW.id, count(*) FROM item WHERE k = NEW.k;
	RETURN NEW;
END $$;
CREATE TRIGGER see BEFORE INSERT ON item FOR EACH ROW EXECUTE FUNCTION see();
INSERT INTO item SELECT i, 777777, 'seen' FROM generate_series(50001, 50005) i;
SELECT * FROM seen ORDER BY id;
DROP TRIGGER see ON item;

-- a cursor keeps its snapshot while the index changes beneath it
BEGIN;
DECLARE c CURSOR FOR SELECT k FROM item WHERE k BETWEEN 0 AND 3 ORDER BY k;
FETCH 2 FROM c;
INSERT INTO item SELECT i, 2, 'later' FROM generate_series(60001, 60400) i;
DELETE FROM item WHERE k = 3;
MOVE FORWARD ALL FROM c;
COMMIT;
SELECT * FROM both_ways();

-- TRUNCATE: in a transaction of its own, rolled back, and in the transaction that made the table
BEGIN;
TRUNCATE item;
SELECT * FROM both_ways();
INSERT INTO item VALUES (1, 1, 'in truncated');
SELECT * FROM both_ways();
ROLLBACK;
SELECT * FROM both_ways();
TRUNCATE item;
SELECT * FROM both_ways();
INSERT INTO item SELECT i, i, 'after' FROM generate_series(1, 500) i;
SELECT * FROM both_ways();
BEGIN;
CREATE TABLE young (a int);
CREATE INDEX young_a ON young USING sherman (a);
INSERT INTO young SELECT generate_series(1, 1000);
TRUNCATE young;
INSERT INTO young SELECT generate_series(1, 10);
COMMIT;
SELECT count(*) FROM young WHERE a > 0;
SELECT sherman_check('young_a', true);

-- unlogged tables
CREATE UNLOGGED TABLE quick (a int, b text);
CREATE INDEX quick_a ON quick USING sherman (a);
INSERT INTO quick SELECT i, 'x' FROM generate_series(1, 1000) i;
SELECT count(*) FROM quick WHERE a BETWEEN 10 AND 19;
ALTER TABLE quick SET LOGGED;
SELECT count(*) FROM quick WHERE a BETWEEN 10 AND 19;
SELECT sherman_check('quick_a', true);

RESET enable_seqscan;
SELECT sherman_check('item_k', true), sherman_check('item_note', true);
DROP TABLE item, seen, young, quick;
DROP FUNCTION both_ways, see;

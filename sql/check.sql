-- sherman_check() finds nothing in sound indexes, and may be used by whom it was granted to.
\set VERBOSITY terse
CREATE TABLE c (id int, k int, t text) WITH (autovacuum_enabled = off);
CREATE INDEX c_k ON c USING sherman (k);
CREATE INDEX c_t ON c USING sherman (t);
CREATE INDEX c_few ON c USING sherman (k) WHERE k % 10 = 0;
CREATE INDEX c_expression ON c USING sherman ((k * 2), t);
SELECT sherman_check('c_k'), sherman_check('c_k', true), sherman_check('c_few', true);
INSERT INTO c SELECT i, (i * 31) % 1000, repeat(md5(i::text), 1 + i % 50) FROM generate_series(1, 4000) i;
SELECT sherman_check('c_k'), sherman_check('c_t'), sherman_check('c_few'), sherman_check('c_expression');
SELECT sherman_check('c_k', true), sherman_check('c_t', true), sherman_check('c_few', true), sherman_check('c_expression', true);

-- rows of this transaction, of dead and of recently dead ones
BEGIN;
INSERT INTO c SELECT i, i, 'mine' FROM generate_series(1, 200) i;
DELETE FROM c WHERE k = 31;
UPDATE c SET k = k + 1 WHERE k > 900;
UPDATE c SET id = -id;
SELECT sherman_check('c_k', true), sherman_check('c_t', true), sherman_check('c_few', true), sherman_check('c_expression', true);
ROLLBACK;
SELECT sherman_check('c_k', true), sherman_check('c_t', true), sherman_check('c_few', true), sherman_check('c_expression', true);

-- a row whose key is not what its entry says is found: the function behind this index does not keep its word
CREATE FUNCTION fickle(v int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT v';
CREATE INDEX c_fickle ON c USING sherman (fickle(k));
CREATE OR REPLACE FUNCTION fickle(v int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT CASE v WHEN 31 THEN 0 ELSE v END';
SELECT sherman_check('c_fickle'), sherman_check('c_fickle', true);
REINDEX INDEX c_fickle;
SELECT sherman_check('c_fickle', true);

-- rows without entries are found: the predicate does not keep its word
CREATE FUNCTION moody(v int) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN v = 31; END';
CREATE INDEX c_moody ON c USING sherman (k) WHERE moody(k);
CREATE OR REPLACE FUNCTION moody(v int) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN v IN (31, 62); END';
SELECT sherman_check('c_moody'), sherman_check('c_moody', true);

-- a row with two entries is found: VACUUM gave it the place of another one, whose entry lies in another leaf, without a word to
-- this index
CREATE TABLE twice (k int) WITH (autovacuum_enabled = off);
CREATE INDEX twice_k ON twice USING sherman (k);
BEGIN;
INSERT INTO twice SELECT generate_series(1, 1000);
ROLLBACK;
CREATE FUNCTION ignore_index(ignored boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	UPDATE pg_index SET indislive = NOT ignored WHERE indexrelid = 'twice_k'::regclass;
	-- VACUUM takes this back when it sees no index.
	UPDATE pg_class SET relhasindex = true WHERE oid = 'twice'::regclass;
END $$;
SELECT ignore_index(true);
VACUUM twice;
SELECT ignore_index(false);
INSERT INTO twice VALUES (5000), (6000);
SELECT ctid, k FROM twice;
SELECT sherman_check('twice_k'), sherman_check('twice_k', true);
REINDEX INDEX twice_k;
SELECT sherman_check('twice_k', true);
DROP TABLE twice;
DROP FUNCTION ignore_index;

-- the table's owner's functions run as the owner
CREATE ROLE check_owner;
CREATE ROLE check_other;
GRANT CREATE ON SCHEMA public TO check_owner;
SET ROLE check_owner;
CREATE TABLE owned (a int);
CREATE FUNCTION who(v int) RETURNS text IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN current_user; END';
INSERT INTO owned SELECT generate_series(1, 3);
CREATE INDEX owned_who ON owned USING sherman (who(a));
SELECT sherman_check('owned_who');
RESET ROLE;
SELECT sherman_check('owned_who', true);
-- and nobody else checks it
SET ROLE check_other;
SELECT sherman_check('owned_who', true);
RESET ROLE;

DROP TABLE c, owned;
DROP FUNCTION fickle, moody, who;
REVOKE CREATE ON SCHEMA public FROM check_owner;
DROP ROLE check_owner, check_other;

-- A table that is filled, emptied and filled ten times: the leaves that VACUUM finds empty are used again.
\set VERBOSITY terse
SET jit = off;
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/agrees.psql'
\i :include
\set include :abs_srcdir '/sql/include/settle.psql'
\i :include
CREATE TABLE space (id bigint, k int, t text) WITH (autovacuum_enabled = off);
CREATE INDEX space_id ON space USING sherman (id);
CREATE INDEX space_k ON space USING sherman (k);
CREATE INDEX space_t ON space USING sherman (t COLLATE "C");
CREATE TABLE sizes (round int, name text, nodes bigint, node_bytes bigint, bytes bigint);
-- A round: ids ascend from round to round, as in a queue; k is the same each time; t is one key of 80 bytes for each row.
CREATE PROCEDURE fill(round int) LANGUAGE sql AS $$
	INSERT INTO space SELECT round * 20000 + i, (i * 7919::bigint) % 20011, md5(i::text) || md5(round::text) || repeat('x', 16)
		FROM generate_series(1, 8000) i;
	INSERT INTO sizes SELECT round, name, nodes, node_bytes, bytes
		FROM unnest(ARRAY['space_id', 'space_k', 'space_t']) name, sherman_index_info(name::regclass);
$$;
CREATE PROCEDURE empty() LANGUAGE sql AS $$ DELETE FROM space $$;
SELECT format('CALL fill(%s)', round), 'CALL empty()', 'CALL settle()', 'VACUUM space'
	FROM generate_series(1, 9) round \gexec
-- of the emptied trees nearly nothing is left
SELECT name, leaves <= 4 AS few, entries FROM unnest(ARRAY['space_id', 'space_k', 'space_t']) name,
	sherman_index_info(name::regclass);
CALL fill(10);
-- Over several memory nodes the shares of overflow keys even out in the first rounds, by an extent or two.
SELECT name, count(*), max(nodes) FILTER (WHERE round = 10) <= 1.2 * max(nodes) FILTER (WHERE round = 1) AS nodes,
	max(node_bytes) FILTER (WHERE round = 10) <= 1.2 * max(node_bytes) FILTER (WHERE round = 1) AS node_bytes,
	max(bytes) FILTER (WHERE round = 10) <= 1.2 * max(bytes) FILTER (WHERE round = 1)
		+ 524288 * (SELECT count(*) - 1 FROM sherman_stat_memory_nodes) AS bytes
	FROM sizes GROUP BY name ORDER BY name;
SELECT sherman_check('space_id', true), sherman_check('space_k', true), sherman_check('space_t', true);
SELECT agrees('SELECT id, k FROM space WHERE id >= 0 ORDER BY id'), agrees('SELECT k FROM space WHERE k >= 0 ORDER BY k DESC'),
	agrees('SELECT t FROM space WHERE t >= ''8'' COLLATE "C" ORDER BY t COLLATE "C"');
-- a queue whose readers are always some rows behind: what it held before does not stay
DELETE FROM space WHERE id < 206000;
CALL settle();
VACUUM space;
SELECT leaves < (SELECT nodes / 3 FROM sizes WHERE name = 'space_id' AND round = 10) AS few, entries
	FROM sherman_index_info('space_id');
SELECT agrees('SELECT id, k FROM space WHERE id >= 0 ORDER BY id'), sherman_check('space_id', true),
	sherman_check('space_t', true);
-- memory that nothing is in goes back: of ascending keys the oldest nine tenths, then all; another index can have it
CREATE TABLE given (id bigint) WITH (autovacuum_enabled = off);
CREATE INDEX given_id ON given USING sherman (id);
INSERT INTO given SELECT generate_series(1, 200000);
SELECT total_bytes AS before, (SELECT sum(used_bytes) FROM sherman_stat_memory_nodes) AS used FROM sherman_stat_indexes WHERE indexrelid = 'given_id'::regclass \gset
DELETE FROM given WHERE id <= 180000;
CALL settle();
VACUUM given;
SELECT total_bytes < :before * 0.65 AS less, sherman_relation_size('given_id') = total_bytes AS agree FROM sherman_stat_indexes WHERE indexrelid = 'given_id'::regclass;
SELECT (SELECT sum(used_bytes) FROM sherman_stat_memory_nodes) < :used - :before * 0.35 AS less;
SELECT agrees('SELECT id FROM given WHERE id >= 0 ORDER BY id'), sherman_check('given_id', true);
DELETE FROM given;
CALL settle();
VACUUM given;
SELECT total_bytes < :before * 0.6 AS less FROM sherman_stat_indexes WHERE indexrelid = 'given_id'::regclass;
INSERT INTO given SELECT generate_series(1, 200000);
SELECT total_bytes <= :before * 1.2 AS as_before FROM sherman_stat_indexes WHERE indexrelid = 'given_id'::regclass;
SELECT agrees('SELECT id FROM given WHERE id >= 0 ORDER BY id'), sherman_check('given_id', true);
-- of random rows a twentieth is left: of a few leaves each, one is made, which is half full at most and a quarter at least on the average
CREATE TABLE thin (id bigint, k int, t text) WITH (autovacuum_enabled = off);
CREATE INDEX thin_id ON thin USING sherman (id);
CREATE INDEX thin_k ON thin USING sherman (k);
CREATE INDEX thin_t ON thin USING sherman (t COLLATE "C");
INSERT INTO thin SELECT i * 7919::bigint % 40009, i % 500, md5(i::text) || md5((-i)::text) FROM generate_series(1, 40000) i;
CREATE VIEW thin_leaves AS SELECT name, leaves, entries FROM unnest(ARRAY['thin_id', 'thin_k', 'thin_t']) name, sherman_index_info(name::regclass);
CREATE TABLE thin_before AS SELECT * FROM thin_leaves;
DELETE FROM thin WHERE hashint8(id) % 20 <> 0;
CALL settle();
VACUUM thin;
SELECT name, now.leaves * 5 < before.leaves AS few, now.entries = (SELECT count(*) FROM thin) AS counted
	FROM thin_leaves now JOIN thin_before before USING (name) ORDER BY name;
SELECT agrees('SELECT id, k FROM thin WHERE id >= 0 ORDER BY id'), agrees('SELECT k, id FROM thin WHERE k >= 0 ORDER BY k DESC, id'),
	agrees('SELECT t FROM thin WHERE t >= ''8'' COLLATE "C" ORDER BY t COLLATE "C"');
SELECT sherman_check('thin_id', true), sherman_check('thin_k', true), sherman_check('thin_t', true);
-- they have room for as many again
TRUNCATE thin_before;
INSERT INTO thin_before SELECT * FROM thin_leaves;
INSERT INTO thin SELECT id, k, t FROM thin;
SELECT name, now.leaves <= before.leaves * 1.1 AS hardly_split FROM thin_leaves now JOIN thin_before before USING (name) ORDER BY name;
DROP VIEW thin_leaves;
-- where no leaf is empty, too
CREATE TABLE even (id bigint) WITH (autovacuum_enabled = off);
CREATE INDEX even_id ON even USING sherman (id);
INSERT INTO even SELECT generate_series(1, 10000);
SELECT leaves AS before FROM sherman_index_info('even_id') \gset
DELETE FROM even WHERE id % 20 <> 0;
CALL settle();
VACUUM even;
SELECT leaves * 5 < :before AS few, entries FROM sherman_index_info('even_id');
SELECT agrees('SELECT id FROM even WHERE id >= 0 ORDER BY id DESC'), sherman_check('even_id', true);
DROP TABLE space, sizes, given, thin, thin_before, even;
DROP FUNCTION agrees, by_table_too;
DROP PROCEDURE fill, empty, settle;

-- Tables of script/bench; :rows is set by it.
CREATE EXTENSION sherman;
SELECT setseed(0.42) \g /dev/null

CREATE TABLE source AS
SELECT (random() * 9e18)::bigint AS bigint_key, gen_random_uuid() AS uuid_key, i AS v
FROM generate_series(1, :rows) i;

-- Random order in the heap: lookups.
CREATE TABLE keyed_btree AS SELECT * FROM source;
CREATE TABLE keyed_sherman AS SELECT * FROM source;
CREATE INDEX keyed_btree_bigint ON keyed_btree USING btree (bigint_key);
CREATE INDEX keyed_btree_uuid ON keyed_btree USING btree (uuid_key);
CREATE INDEX keyed_sherman_bigint ON keyed_sherman USING sherman (bigint_key);
CREATE INDEX keyed_sherman_uuid ON keyed_sherman USING sherman (uuid_key);
CREATE TABLE probe AS SELECT bigint_key, uuid_key FROM source ORDER BY random() LIMIT 300000;

-- Index order in the heap: what is measured of a range scan is the index, not the heap's cache misses.
CREATE TABLE ordered_btree AS SELECT i::bigint AS k, i AS v FROM generate_series(1, :rows) i;
CREATE TABLE ordered_sherman AS SELECT * FROM ordered_btree;
CREATE INDEX ON ordered_btree USING btree (k);
CREATE INDEX ON ordered_sherman USING sherman (k);
-- The same with the value in the index.
CREATE TABLE covered_btree AS SELECT * FROM ordered_btree;
CREATE TABLE covered_sherman AS SELECT * FROM ordered_btree;
CREATE INDEX ON covered_btree USING btree (k) INCLUDE (v);
CREATE INDEX ON covered_sherman USING sherman (k) INCLUDE (v);
VACUUM ANALYZE;

-- The storage parameter "replicas" where no second memory node is needed for it.
\set VERBOSITY default
CREATE TABLE rep (id int);
INSERT INTO rep SELECT g FROM generate_series(1, 1000) g;
CREATE INDEX rep_bad ON rep USING sherman (id) WITH (replicas = 2);
\echo :LAST_ERROR_SQLSTATE
CREATE INDEX rep_bad ON rep USING sherman (id) WITH (replicas = -1);
CREATE INDEX rep_bad ON rep USING btree (id) WITH (replicas = 1);
CREATE INDEX rep_id ON rep USING sherman (id) WITH (replicas = 0);
SELECT state, replicas FROM sherman_stat_indexes WHERE indexrelid = 'rep_id'::regclass;

-- from the next build on
ALTER INDEX rep_id SET (replicas = 1);
INSERT INTO rep SELECT g FROM generate_series(1001, 2000) g;
SELECT state, replicas FROM sherman_stat_indexes WHERE indexrelid = 'rep_id'::regclass;
SELECT reloptions FROM pg_class WHERE relname = 'rep_id';
SELECT sherman_check('rep_id', true);

-- there is nothing to compare
SELECT sherman_resync('rep_id');
\echo :LAST_ERROR_SQLSTATE
CREATE INDEX rep_btree ON rep USING btree (id);
SELECT sherman_resync('rep_btree');
CREATE ROLE regress_rep;
SET ROLE regress_rep;
SELECT sherman_resync('rep_id');
RESET ROLE;
DROP ROLE regress_rep;

-- what is lost with the server, or with its session, has no copies
CREATE UNLOGGED TABLE rep_unlogged AS SELECT g AS id FROM generate_series(1, 1000) g;
CREATE INDEX rep_unlogged_id ON rep_unlogged USING sherman (id) WITH (replicas = 1);
CREATE TEMP TABLE rep_temporary AS SELECT g AS id FROM generate_series(1, 1000) g;
CREATE INDEX rep_temporary_id ON rep_temporary USING sherman (id) WITH (replicas = 1);
SELECT indexrelid::regclass, state, replicas FROM sherman_stat_indexes WHERE indexrelid::regclass::text LIKE 'rep\_%\_id' ORDER BY indexrelid::regclass::text;
DROP TABLE rep, rep_unlogged, rep_temporary;

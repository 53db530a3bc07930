-- A constraint whose column changes its type is made anew by core, over btree: who loses a sherman index so is warned.
SET sherman.constraints = on;
CREATE SCHEMA retyped;
SET search_path = retyped, public;
CREATE TABLE t (id int PRIMARY KEY, code varchar(10) UNIQUE, other int UNIQUE, v int);
INSERT INTO t SELECT i, 'c' || i, -i, i FROM generate_series(1, 100) i;
CREATE UNIQUE INDEX t_v ON t USING sherman (v);
CREATE TABLE child (CONSTRAINT child_pkey UNIQUE (id)) INHERITS (t);
SET sherman.constraints = off;
CREATE TABLE core (id int PRIMARY KEY);
CREATE VIEW methods AS
	SELECT i.indrelid::regclass AS table_name, c.relname, a.amname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
	WHERE c.relnamespace = 'retyped'::regnamespace ORDER BY 2;
SELECT * FROM methods;

-- with a rewrite, of the child too; a longer varchar, without one; others, in which nothing is lost
ALTER TABLE t ALTER id TYPE bigint;
ALTER TABLE t ALTER code TYPE varchar(20);
ALTER TABLE t ALTER v TYPE bigint, ADD w int;
ALTER TABLE core ALTER id TYPE bigint;
ALTER TABLE no_such_table ALTER id TYPE bigint;
ALTER TABLE t ALTER no_such_column TYPE bigint;
SELECT * FROM methods;

-- and back
SET sherman.constraints = on;
ALTER TABLE t DROP CONSTRAINT t_pkey, ADD CONSTRAINT t_pkey PRIMARY KEY (id);
ALTER TABLE t DROP CONSTRAINT t_code_key, ADD CONSTRAINT t_code_key UNIQUE (code);
ALTER TABLE child DROP CONSTRAINT child_pkey, ADD CONSTRAINT child_pkey UNIQUE (id);
SELECT * FROM methods;
INSERT INTO t (id) VALUES (50);
SELECT indexrelid::regclass, sherman_check(indexrelid, true) FROM sherman_stat_indexes WHERE indexrelid::regclass::text ~ '^(retyped\.)?(t|child)_' ORDER BY indexrelid::regclass::text;
SET client_min_messages = error;
DROP SCHEMA retyped CASCADE;

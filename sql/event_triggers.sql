-- Event triggers hear of sherman indexes as of btree's, may make and refuse them, and see what sherman.constraints makes.
SET client_min_messages = warning;
CREATE SCHEMA heard;
CREATE TABLE heard.log (n serial, event text, tag text, what text);
CREATE FUNCTION heard.command_end() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO heard.log (event, tag, what)
	SELECT TG_EVENT, command_tag, object_type || ' ' || object_identity FROM pg_event_trigger_ddl_commands();
END $$;
CREATE FUNCTION heard.dropped() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO heard.log (event, tag, what)
	SELECT TG_EVENT, TG_TAG, object_type || ' ' || object_identity FROM pg_event_trigger_dropped_objects()
	WHERE object_type IN ('index', 'table constraint') ORDER BY object_type, object_identity;
END $$;
CREATE FUNCTION heard.rewrite() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO heard.log (event, tag, what) VALUES (TG_EVENT, TG_TAG, pg_event_trigger_table_rewrite_oid()::regclass);
END $$;
CREATE FUNCTION heard.refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() WHERE object_identity LIKE '%forbidden%') THEN
		RAISE EXCEPTION 'no such index here';
	END IF;
END $$;
CREATE EVENT TRIGGER heard_end ON ddl_command_end WHEN TAG IN ('CREATE TABLE', 'CREATE INDEX', 'ALTER TABLE') EXECUTE FUNCTION heard.command_end();
CREATE EVENT TRIGGER heard_drop ON sql_drop EXECUTE FUNCTION heard.dropped();
CREATE EVENT TRIGGER heard_rewrite ON table_rewrite EXECUTE FUNCTION heard.rewrite();

CREATE TABLE heard.t (k int, v text);
INSERT INTO heard.t SELECT i, 'v' || i FROM generate_series(1, 1000) i;
CREATE INDEX t_k ON heard.t USING sherman (k);
CREATE INDEX CONCURRENTLY t_v ON heard.t USING sherman (v);
REINDEX INDEX heard.t_k;
ALTER TABLE heard.t ALTER k TYPE bigint;
DROP INDEX heard.t_v;
SET sherman.constraints = on;
CREATE TABLE heard.u (k int PRIMARY KEY, v int UNIQUE);
ALTER TABLE heard.u DROP CONSTRAINT u_v_key;
ALTER TABLE heard.u ADD UNIQUE (v);
RESET sherman.constraints;
SELECT event, tag, what FROM heard.log ORDER BY n;
SELECT c.relname, a.amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.relnamespace = 'heard'::regnamespace AND c.relkind = 'i' ORDER BY 1;

-- One that raises: the index is gone with its transaction, and the table is as it was.
CREATE EVENT TRIGGER heard_refuse ON ddl_command_end EXECUTE FUNCTION heard.refuse();
CREATE INDEX forbidden ON heard.t USING sherman (v);
SELECT count(*) FROM sherman_stat_indexes WHERE indexrelid::regclass::text LIKE '%forbidden%';
CREATE INDEX allowed ON heard.t USING sherman (v);
DROP EVENT TRIGGER heard_refuse;

-- One that makes an index for each new table.
CREATE FUNCTION heard.make_index() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE made record;
BEGIN
	FOR made IN SELECT * FROM pg_event_trigger_ddl_commands() WHERE object_type = 'table' LOOP
		EXECUTE format('CREATE INDEX ON %s USING sherman (k)', made.object_identity);
	END LOOP;
END $$;
CREATE EVENT TRIGGER heard_make ON ddl_command_end WHEN TAG IN ('CREATE TABLE', 'CREATE TABLE AS') EXECUTE FUNCTION heard.make_index();
CREATE TABLE heard.made (k int, v int);
CREATE TABLE heard.filled AS SELECT i AS k FROM generate_series(1, 500) i;
DROP EVENT TRIGGER heard_make;
DROP EVENT TRIGGER heard_end;
DROP EVENT TRIGGER heard_drop;
DROP EVENT TRIGGER heard_rewrite;
INSERT INTO heard.made SELECT i, i FROM generate_series(1, 500) i;
SELECT indexrelid::regclass, sherman_check(indexrelid, true) FROM sherman_stat_indexes WHERE indexrelid::regclass::text LIKE 'heard.%' ORDER BY indexrelid::regclass::text;
DROP SCHEMA heard CASCADE;

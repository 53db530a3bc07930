-- The size of an index whose key no UPDATE changes beside btree's, in whatever order rows are updated in: by the key's own, in the
-- reverse, in another, and with keys that are compared by a comparator; after one, two, three and five updates of all rows.
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/settle.psql'
\i :include
CREATE TABLE sizes (keys text, round int, ratio numeric) WITH (autovacuum_enabled = off);
CREATE PROCEDURE churn(keys text, key text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE TABLE churn WITH (autovacuum_enabled = off) AS
		SELECT i AS id, %s AS k, 0 AS v, ''x'' AS filler FROM generate_series(1, 10000) i', key);
	CREATE INDEX churn_s ON churn USING sherman (k);
	CREATE INDEX churn_b ON churn USING btree (k);
	CREATE INDEX churn_v ON churn USING btree (v);
	FOR round IN 1..5 LOOP
		COMMIT;
		CALL settle();
		UPDATE churn SET v = v + 1;
		INSERT INTO sizes SELECT keys, round, node_bytes::numeric / pg_relation_size('churn_b')
		FROM sherman_stat_indexes WHERE indexrelid = 'churn_s'::regclass;
	END LOOP;
	COMMIT;
	PERFORM sherman_check('churn_s', true);
	DROP TABLE churn;
END $$;
CALL churn('ascending', 'i::bigint');
CALL churn('descending', '-i');
CALL churn('mixed', '(i * 7919::bigint) % 1000003');
CALL churn('text', 'md5(i::text)');
SELECT keys, count(*), max(ratio) <= 1.3 AS within FROM sizes GROUP BY keys ORDER BY keys;
DROP TABLE sizes;
DROP PROCEDURE churn, settle;

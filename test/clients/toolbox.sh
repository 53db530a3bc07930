# What a DBA has at hand in contrib: pgstattuple, pageinspect, pg_prewarm, pg_visibility, pg_freespacemap,
# pg_buffercache, postgres_fdw, dblink, tablefunc, over tables with sherman indexes. What cannot look into our index says so.
for extension in pgstattuple pageinspect pg_prewarm pg_visibility pg_freespacemap pg_buffercache postgres_fdw dblink; do sql "CREATE EXTENSION $extension"; done
sql "CREATE TABLE t (id int PRIMARY KEY WITH (sherman), k text)" "CREATE INDEX t_k ON t USING sherman (k)" "INSERT INTO t SELECT n, md5(n::text) FROM generate_series(1, 3000) n" "VACUUM ANALYZE t"
fails_with 'is not a btree index' sql "SELECT * FROM pgstatindex('t_k')"
fails_with 'is not a btree index' sql "SELECT * FROM bt_metap('t_k')"
fails_with 'index "t_k" \(.*\) is not supported' sql "SELECT * FROM pgstattuple('t_k')"
sql "SELECT pg_prewarm('t_k')" "SELECT count(*) FROM pg_freespace('t')" "SELECT * FROM pg_visibility_map_summary('t')" "SELECT * FROM pgstattuple('t')" "SELECT count(*) FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('t_k')"
sql "CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '/tmp', dbname '$PGDATABASE')" "CREATE USER MAPPING FOR postgres SERVER other OPTIONS (user 'postgres')" \
	"CREATE FOREIGN TABLE f (id int, k text) SERVER other OPTIONS (table_name 't', use_remote_estimate 'true')"
is 'rows by a foreign table' "$(sql "SELECT count(*) FROM f WHERE id BETWEEN 10 AND 19" "SELECT id FROM f WHERE k = md5('77')")" $'10\n77'
sql "UPDATE f SET k = 'changed' WHERE id = 5" "DELETE FROM f WHERE id = 6" "INSERT INTO f VALUES (-1, 'new')"
fails_with 'duplicate key' sql "INSERT INTO f VALUES (-1, 'again')"
is 'sizes' "$(sql "SELECT pg_relation_size('t_k'), sherman_relation_size('t_k') > 8192, pg_indexes_size('t')")" '8192|t|16384'
psql -XAt -c '\di+' -c '\d+ t' >described
grep -q 'sherman' described
verify 2

# pg_dump -j and pg_restore -j of a database with every kind of sherman index and constraint, into one that has none of the settings; its schema alone,
# its data alone; and reindexdb, vacuumdb and clusterdb with several jobs over what came of it.
sql "SET sherman.constraints = on" \
	"CREATE TABLE a (id bigint PRIMARY KEY, code text UNIQUE DEFERRABLE, at date, during int4range)" \
	"CREATE INDEX a_at ON a USING sherman (at DESC NULLS LAST, id) INCLUDE (code)" "CREATE INDEX a_expression ON a USING sherman ((id % 17))" \
	"CREATE INDEX a_part ON a USING sherman (during) WHERE id > 500" "CREATE UNIQUE INDEX a_nulls ON a USING sherman (at, code) NULLS NOT DISTINCT" \
	"ALTER TABLE a ADD CONSTRAINT a_exclude EXCLUDE USING sherman ((id + 1) WITH =)" "ALTER TABLE a CLUSTER ON a_at" "ALTER INDEX a_expression ALTER COLUMN 1 SET STATISTICS 200"
sql "CREATE TABLE p (id int, at date) PARTITION BY RANGE (at)" "CREATE INDEX p_id ON p USING sherman (id)" "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM ('2026-01-01') TO ('2026-07-01')" \
	"CREATE TABLE p2 PARTITION OF p FOR VALUES FROM ('2026-07-01') TO ('2027-01-01')" "INSERT INTO p SELECT n, '2026-01-01'::date + n % 365 FROM generate_series(1, 3000) n" \
	"CREATE MATERIALIZED VIEW m AS SELECT id, count(*) FROM p GROUP BY id" "CREATE INDEX m_id ON m USING sherman (id)" \
	"INSERT INTO a SELECT n, 'code ' || n, '2026-01-01'::date + (n % 500)::int, int4range(n::int, (n + 3)::int) FROM generate_series(1, 5000) n"
verify 10
definitions() { PGDATABASE=$1 sql "SELECT pg_get_indexdef(indexrelid) FROM sherman_stat_indexes ORDER BY 1" "SELECT conname, condeferrable FROM pg_constraint ORDER BY 1"; }
pg_dump -Fd -j 3 -f dump.d "$PGDATABASE"
createdb restored
pg_restore -j 3 -d restored --exit-on-error dump.d
is 'what came back' "$(definitions restored)" "$(definitions "$PGDATABASE")"
verify 10 restored
createdb by_parts
pg_restore -s -d by_parts --exit-on-error dump.d
pg_restore -a -j 3 --disable-triggers -d by_parts --exit-on-error dump.d
verify 10 by_parts
createdb plain
pg_dump --clean --if-exists "$PGDATABASE" | psql -qX -v ON_ERROR_STOP=1 -d plain >/dev/null
pg_dump --clean --if-exists "$PGDATABASE" | psql -qX -v ON_ERROR_STOP=1 -d plain >/dev/null
verify 10 plain
export PGDATABASE=restored
sql "DELETE FROM a WHERE id % 3 = 0" "DELETE FROM p WHERE id % 3 = 0"
vacuumdb -q -j 3 -z
vacuumdb -q -j 2 -P 2
# Not with -j: two of them meet in the catalogs, which the manual warns of.
vacuumdb -q -f
verify 10
reindexdb -q -j 3
reindexdb -q -j 2 --concurrently -t a -t p1
reindexdb -q -i a_at --concurrently
clusterdb -q
verify 10

# pg_repack: tables whose keys and other indexes are sherman's, whole and in an order, their indexes alone, and while others write.
sql "CREATE EXTENSION pg_repack" "SET sherman.constraints = on" \
	"CREATE TABLE item (id bigint PRIMARY KEY, code uuid NOT NULL DEFAULT gen_random_uuid() UNIQUE, name text, at timestamptz DEFAULT now())" \
	"CREATE INDEX item_name ON item USING sherman (lower(name), id)" "CREATE INDEX item_at ON item USING sherman (at DESC) WITH (fillfactor = 70)" \
	"CREATE INDEX item_some ON item USING sherman (name) INCLUDE (at) WHERE id % 3 = 0" \
	"INSERT INTO item (id, name) SELECT n, 'name ' || n % 1000 FROM generate_series(1, 20000) n" "DELETE FROM item WHERE id % 2 = 0"
before=$(sql "SELECT pg_relation_filenode('item'), sherman_relation_size('item_pkey')")
definitions=$(sql "SELECT pg_get_indexdef(indexrelid) FROM sherman_stat_indexes ORDER BY 1" "SELECT conname, contype FROM pg_constraint ORDER BY 1")
pg_repack -d "$PGDATABASE" -t item
[ "$before" != "$(sql "SELECT pg_relation_filenode('item'), sherman_relation_size('item_pkey')")" ]
verify 5
pg_repack -d "$PGDATABASE" -t item -o 'at DESC' -j 2
verify 5
# Beside sessions that write.
sql "CREATE SEQUENCE ids START 100000"
cat >writes.sql <<SQL
INSERT INTO item (id, name) SELECT nextval('ids'), 'late' FROM generate_series(1, 5);
UPDATE item SET name = 'changed', at = clock_timestamp() WHERE id = (SELECT id FROM item WHERE id > (random() * 20000)::bigint ORDER BY id LIMIT 1);
DELETE FROM item WHERE id = (SELECT id FROM item WHERE id > (random() * 20000)::bigint ORDER BY id LIMIT 1);
SQL
pgbench -n -c 3 -T 20 -f writes.sql >writes.log 2>&1 &
writing=$!
sleep 1
pg_repack -d "$PGDATABASE" -t item --no-kill-backend
pg_repack -d "$PGDATABASE" -t item --only-indexes
pg_repack -d "$PGDATABASE" -t item
pg_repack -d "$PGDATABASE" -i item_name
wait $writing
grep -q 'number of failed transactions: 0 ' writes.log
! grep -E 'error|aborted' writes.log
verify 5
is 'indexes and constraints' "$(sql "SELECT pg_get_indexdef(indexrelid) FROM sherman_stat_indexes ORDER BY 1" "SELECT conname, contype FROM pg_constraint ORDER BY 1")" "$definitions"
sql "INSERT INTO item (id, name) VALUES (1, 'again') ON CONFLICT (id) DO UPDATE SET name = excluded.name"
fails_with 'duplicate key' sql "INSERT INTO item (id, code) SELECT -1, code FROM item LIMIT 1"
sql "DROP EXTENSION pg_repack"
verify 5

# Logical replication between two databases: sherman keys as replica identities, rows found by them at the subscriber, a first copy and changes, and two
# indexes there that the publisher has not.
sql "CREATE TABLE stock (id uuid PRIMARY KEY WITH (sherman), shelf int NOT NULL, amount int)" "CREATE TABLE shelf (no int NOT NULL, name text)" \
	"CREATE UNIQUE INDEX shelf_no ON shelf USING sherman (no)" "ALTER TABLE shelf REPLICA IDENTITY USING INDEX shelf_no" \
	"INSERT INTO stock SELECT md5(n::text)::uuid, n % 20, n FROM generate_series(1, 3000) n" "INSERT INTO shelf SELECT n, 'shelf ' || n FROM generate_series(1, 50) n" \
	"CREATE PUBLICATION everything FOR ALL TABLES" "SELECT pg_create_logical_replication_slot('copied', 'pgoutput')"
createdb subscriber
pg_dump -s -t stock -t shelf "$PGDATABASE" >schema.sql
psql -qX -d subscriber -c 'CREATE EXTENSION sherman' -f schema.sql
psql -qX -d subscriber -c "CREATE INDEX stock_shelf ON stock USING sherman (shelf, amount)" \
	-c "CREATE SUBSCRIPTION s CONNECTION 'host=/tmp user=postgres dbname=$PGDATABASE' PUBLICATION everything WITH (create_slot = false, slot_name = copied)"
content() { psql -XAtq -d "$1" -c "SELECT md5(string_agg(s::text, ',' ORDER BY id)) FROM stock s" -c "SELECT md5(string_agg(s::text, ',' ORDER BY no)) FROM shelf s"; }
same() { [ "$(content "$PGDATABASE")" = "$(content subscriber)" ]; }
wait_for same
cat >changes.sql <<SQL
\set n random(1, 3000)
UPDATE stock SET amount = amount + 1, shelf = :n % 20 WHERE id = md5(:n::text)::uuid;
DELETE FROM stock WHERE id = md5((:n * 7 % 3000)::text)::uuid;
INSERT INTO stock VALUES (gen_random_uuid(), :n % 20, 1);
UPDATE shelf SET name = 'name ' || :n WHERE no = :n % 50;
SQL
pgbench -n -c 3 -t 300 -f changes.sql
wait_for same
verify 2
verify 3 subscriber
psql -qX -d subscriber -c 'DROP SUBSCRIPTION s'

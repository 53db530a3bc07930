# pgbouncer in transaction mode: many clients over few sessions, each transaction in another one. A client's option for one of sherman's settings is
# refused by pgbouncer, and ignored if it is told so; settings of the role reach every session.
cat >pgbouncer.ini <<SETTINGS
[databases]
* = host=/tmp
[pgbouncer]
listen_addr =
unix_socket_dir = $PWD
listen_port = 6432
auth_type = trust
auth_file = $PWD/users
admin_users = keeper
pool_mode = transaction
default_pool_size = 4
max_client_conn = 200
logfile = $PWD/pgbouncer.log
pidfile = $PWD/pgbouncer.pid
SETTINGS
printf '"postgres" ""\n"keeper" ""\n' >users
pgbouncer -d pgbouncer.ini
trap 'kill "$(cat pgbouncer.pid)"' EXIT
through() { PGHOST=$PWD PGPORT=6432 "$@"; }
wait_for through sql "SELECT 1"
sql "CREATE TABLE account (id uuid PRIMARY KEY WITH (sherman), owner int, balance bigint DEFAULT 0)" "CREATE INDEX account_owner ON account USING sherman (owner)" \
	"INSERT INTO account SELECT md5(n::text)::uuid, n FROM generate_series(1, 2000) n"
cat >transfer.sql <<SQL
\set a random(1, 2000)
\set b random(1, 2000)
\set n random(1, 1000000000)
BEGIN;
UPDATE account SET balance = balance - 1 WHERE id = md5(least(:a, :b)::text)::uuid;
UPDATE account SET balance = balance + 1 WHERE owner = greatest(:a, :b);
INSERT INTO account VALUES (md5(:n::text)::uuid, 3000 + :n % 1000, 0) ON CONFLICT (id) DO UPDATE SET balance = account.balance;
COMMIT;
SELECT balance FROM account WHERE owner = :a;
SQL
through pgbench -n -c 60 -j 2 -T 10 -f transfer.sql
is 'the sum of what was moved' "$(sql "SELECT sum(balance) FROM account")" 0
[ "$(sql "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()")" -le 4 ]
fails_with 'unsupported startup parameter' env PGHOST="$PWD" PGPORT=6432 PGOPTIONS='-c sherman.constraints=on' psql -X -c 'SELECT 1'
sql "ALTER ROLE postgres IN DATABASE \"$PGDATABASE\" SET sherman.constraints = on"
through psql -qX -d pgbouncer -U keeper -c RECONNECT
is 'a setting of the role in the pool' "$(through sql 'SHOW sherman.constraints')" on
through sql "CREATE TABLE late (id int PRIMARY KEY)" "INSERT INTO late SELECT generate_series(1, 100)"
verify 3

# pgBackRest: a full and an incremental backup, a restore beside the living original, and one over it to an earlier time. In the restored clusters the
# indexes are broken, with a reason, queries are right meanwhile, and the indexes are rebuilt by themselves; the original's stay as they are.
# Uses clusters of its own, in this directory.
primary=$PWD/primary restored=$PWD/restored
cat >pgbackrest.conf <<CONFIGURATION
[global]
repo1-path=$PWD/repository
log-path=$PWD
lock-path=$PWD
spool-path=$PWD
log-level-console=warn
start-fast=y

[orders]
pg1-path=$primary
pg1-socket-path=$PWD
pg1-user=postgres
CONFIGURATION
export PGBACKREST_CONFIG=$PWD/pgbackrest.conf PGHOST=$PWD PGDATABASE=postgres
trap 'for data in "$primary" "$restored"; do [ ! -e "$data/postmaster.pid" ] || pg_ctl -D "$data" -m immediate -w stop; done' EXIT

backrest() { pgbackrest --stanza=orders "$@"; }
start() { pg_ctl -D "$1" -l "$1.log" -w start; }
# states: of all indexes, and why.
states() { sql "SELECT string_agg(DISTINCT state || ': ' || coalesce(reason, ''), ', ') FROM sherman_stat_indexes"; }
total() { sql "SELECT count(*) || ' ' || sum(n) FROM t" "SELECT n FROM t WHERE id = md5('7')::uuid"; }
promoted() { [ "$(sql "SELECT pg_is_in_recovery()")" = f ]; }
healthy() { [ "$(sql "SELECT bool_and(state = 'ok') FROM sherman_stat_indexes")" = t ]; }
# broken_and_rebuilt WHERE: broken as those of another history are, with a reason; whole again once they may be rebuilt.
broken_and_rebuilt()
{
	echo "states of $1: $(states)"
	grep -q '^broken: .' <<<"$(states)"
	fails_with 'is broken' sql "INSERT INTO t VALUES (md5('7')::uuid, 1, 'x')"
	sql "ALTER SYSTEM SET sherman.auto_rebuild = on" "SELECT pg_reload_conf()" >reloaded
	wait_for healthy
	verify 3
}

initdb -D "$primary" --no-sync -A trust -U postgres -E UTF8 --locale=C.UTF-8
cat >>"$primary/postgresql.conf" <<SETTINGS
listen_addresses = ''
unix_socket_directories = '$PWD'
shared_preload_libraries = 'sherman'
sherman.embedded_memory = 128MB
sherman.auto_rebuild = off
archive_mode = on
archive_command = 'pgbackrest --config=$PGBACKREST_CONFIG --stanza=orders archive-push %p'
fsync = off
SETTINGS
start "$primary"
backrest stanza-create
sql "CREATE EXTENSION sherman" "CREATE TABLE t (id uuid PRIMARY KEY WITH (sherman), n int, word text)" "CREATE INDEX t_n ON t USING sherman (n)" \
	"CREATE UNIQUE INDEX t_word ON t USING sherman (word)" "INSERT INTO t SELECT md5(g::text)::uuid, g, 'word ' || g FROM generate_series(1, 5000) g"
backrest check
backrest --type=full backup
sql "UPDATE t SET n = n + 1 WHERE n % 10 = 0" "DELETE FROM t WHERE n > 4900" "VACUUM t"
backrest --type=incr backup
sql "INSERT INTO t SELECT md5(g::text)::uuid, g, 'word ' || g FROM generate_series(6000, 6999) g"
before=$(total)
sql "SELECT pg_create_restore_point('noon')" >point
sql "UPDATE t SET n = 0 WHERE n < 1000" "SELECT pg_switch_wal()" >switched
after=$(total)

# Beside the original, which lives on; a port of its own is its socket's name.
backrest --pg1-path="$restored" --type=name --target=noon --target-action=promote restore
printf 'port = 5433\narchive_mode = off\n' >>"$restored/postgresql.conf"
start "$restored"
export PGPORT=5433
wait_for promoted
is 'the copy' "$(total)" "$before"
broken_and_rebuilt 'the copy'
pg_ctl -D "$restored" -m fast -w stop
unset PGPORT
is 'the original' "$(total)" "$after"
verify 3

# Over the original, whose memory is still there.
pg_ctl -D "$primary" -m fast -w stop
backrest --delta --type=name --target=noon --target-action=promote restore
start "$primary"
wait_for promoted
is 'the original, set back' "$(total)" "$before"
broken_and_rebuilt 'the original, set back'

# Once more, to the end of the archive.
pg_ctl -D "$primary" -m fast -w stop
backrest --delta restore
start "$primary"
wait_for promoted
broken_and_rebuilt 'the original, restored to the end of the archive'
pg_ctl -D "$primary" -m fast -w stop

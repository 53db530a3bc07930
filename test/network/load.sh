# Failures under a load: what script/test long network (tcp, network namespaces) and script/test long rdma (verbs, virtual machines) have
# in common. Sourced behind script/lib/common.sh; the names of cases begin with case_.
#
# Who sources it defines
#	net COMMAND                tells the switch: cut FROM TO, heal * *, ...
#	start_node NUMBER          starts a memory node and waits until it serves
#	stop_node NUMBER SIGNAL    ends it, and waits for that
# and sets
#	POSTGRES FIRST SECOND      numbers of the machines: PostgreSQL's, and the memory nodes'
#	CLIENTS                    that the load has
#	OPERATION_TIMEOUT          seconds: deadline of PostgreSQL's side
#	LONG_FAULT                 seconds: a fault that outlasts it
#	UNREACHABLE                SQLSTATEs that clients may have meanwhile: 08006
#	RECOVERY                   seconds that a recovery may take before it is a failure: generous, for the machine may be busy
#	LOAD_PROGRAM               test/network/load.c, built

# The access method of the load's indexes: btree is what sherman's times are compared with.
export METHOD=sherman

# Seconds in which the clients answer what needs nothing of PostgreSQL: on whatever machine.
export PATIENCE=60

# ---- waiting

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for()
{
	local until=$((SECONDS + $1))

	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $until ] || { echo "not within the time: $*"; return 1; }
		sleep 0.1
	done
}

not()
{
	! "$@"
}

# now: seconds with their thousandths
now()
{
	printf '%.3f\n' "$EPOCHREALTIME"
}

since()
{
	awk -v from="$1" -v to="$EPOCHREALTIME" 'BEGIN { printf "%.2f", to - from }'
}

# ---- PostgreSQL

# create_postgres ADDRESSES KEY_FILE WORKERS: a cluster in $WORK/data that uses these memory nodes.
create_postgres()
{
	cluster_create data <<-CONFIGURATION
		sherman.memory_nodes = '$1'
		sherman.key_file = '$2'
		sherman.connection_workers = $3
		sherman.operation_timeout = ${OPERATION_TIMEOUT}s
		sherman.attach_timeout = 30s
		sherman.collect_interval = 5s
		autovacuum_naptime = 1s
		autovacuum_vacuum_scale_factor = 0.02
		max_connections = 50
		restart_after_crash = on
		log_min_error_statement = panic
	CONFIGURATION
}

value()
{
	run_psql -At -c "$1"
}

all_attached()
{
	[ "$(value "SELECT count(*) FILTER (WHERE state = 'attached') FROM sherman_stat_memory_nodes")" = 2 ]
}

# ---- the load

create_tables()
{
	run_psql -v method="$METHOD" -f "$TOP/test/network/tables.sql"
}

# begin_load: tables, the clients, and pgbench beside them.
begin_load()
{
	create_tables
	coproc LOAD { exec "$LOAD_PROGRAM" "host=$PGHOST user=postgres dbname=postgres" $CLIENTS 2>"$WORK/load.err"; }
	load_pid=$LOAD_PID
	touch "$WORK/bench.on"
	bench_loop >"$WORK/bench.log" 2>&1 &
	bench_pid=$!
	sleep 2
}

# pgbench ends when all of its clients have met an error: it is started again.
bench_loop()
{
	while [ -e "$WORK/bench.on" ]; do
		"$PGBIN/pgbench" -n -c 2 -T 3 -f "$TOP/test/network/accounts.pgbench" || sleep 0.2
	done
}

# ask SECONDS COMMAND: of the clients; their answer is printed, and must begin with ok.
ask()
{
	local answer

	echo "${*:2}" >&"${LOAD[1]}"
	read -r -t "$1" -u "${LOAD[0]}" answer || { echo "no answer to ${*:2}"; return 1; }
	echo "$answer"
	[[ $answer == ok* ]]
}

# recovered ERRORS: all clients work again, and had only errors that match this expression; `met` is which, `met_times` what the clients' clocks say.
recovered()
{
	local answer code

	answer=$(ask $((RECOVERY + PATIENCE)) recover $RECOVERY) || { echo "$answer"; return 1; }
	met_times=${answer#ok }
	say "	$met_times"
	wait_for $RECOVERY all_attached
	# No statement may outlast its deadline by far, but for a machine that stands still.
	awk -v longest="$(sed -E 's/.* longest=([0-9.]+).*/\1/' <<<"$answer")" -v most=$((OPERATION_TIMEOUT + 90)) \
		'BEGIN { exit longest > most }' || { echo "a statement took too long"; return 1; }
	met=$(sed 's/.*errors=//; s/,/ /g' <<<"$answer")
	for code in $met; do
		[[ ${code%:*} =~ ^($1)$ ]] || { echo "unexpected error $code: $(cat "$WORK/load.err")"; return 1; }
	done
}

# end_load: the clients and pgbench end, and every answer is compared.
end_load()
{
	rm -f "$WORK/bench.on"
	wait $bench_pid || true
	ask $((RECOVERY + PATIENCE)) pause >/dev/null
	verify_all
	ask $((RECOVERY + PATIENCE)) verify
	echo quit >&"${LOAD[1]}"
	wait "$load_pid"
}

all_good()
{
	[ "$(value "SELECT count(*) FROM sherman_stat_indexes WHERE state <> 'ok'")" = 0 ]
}

# verify_all: indexes are good, agree with their tables, and no transfer of pgbench is lost.
verify_all()
{
	local index

	wait_for $RECOVERY all_good || { run_psql -c 'TABLE sherman_stat_indexes'; return 1; }
	for index in load_key load_name accounts_id; do
		[ "$METHOD" = btree ] ||
			[ "$(value "SELECT sherman_check('$index', true)")" = 0 ] || { echo "sherman_check finds problems in $index"; return 1; }
	done
	[ "$(value 'SELECT (SELECT sum(balance) FROM accounts) = (SELECT coalesce(sum(delta), 0) FROM history)')" = t ] ||
		{ echo "balances and history of pgbench differ"; return 1; }
}

# ---- cases

# Without faults: build, scan, insert, vacuum; indexes grow onto both memory nodes.
case_basics()
{
	create_tables
	run_psql <<-SQL
		DROP INDEX load_key, load_name;
		INSERT INTO load SELECT g, g * 7919 % 1000003 + 1, 'name ' || g FROM generate_series(1, 100000) g;
		CREATE INDEX load_key ON load USING sherman (key);
		CREATE INDEX load_name ON load USING sherman (name);
		DELETE FROM load WHERE id % 3 = 0;
		VACUUM load;
		INSERT INTO load SELECT g, g * 7919 % 1000003 + 1, 'name ' || g FROM generate_series(100001, 103000) g;
	SQL
	verify_all
	[ "$(value "SET enable_seqscan = off; SELECT count(*) FROM (SELECT 1 FROM load WHERE key > 0 ORDER BY key) x")" = 69667 ]
	[ "$(value "SELECT count(*) FILTER (WHERE used_bytes > 0) FROM sherman_stat_memory_nodes")" = 2 ] ||
		{ echo "not all memory nodes are used"; run_psql -c 'TABLE sherman_stat_memory_nodes'; return 1; }
}

# disturbance SECONDS ERRORS COMMAND...: load, the switch's command for so long, and everything good afterwards. ENOUGH, if it is set,
# must be true before the end.
disturbance()
{
	local seconds=$1 errors=$2 command

	shift 2
	begin_load
	ask $PATIENCE fault >/dev/null
	for command in "$@"; do net "$command"; done
	sleep "$seconds"
	wait_for $RECOVERY "${ENOUGH:-true}"
	net 'heal * *'
	ask $PATIENCE heal >/dev/null
	recovered "$errors"
	end_load
}

# What lasts longer than the deadline of an operation is an error in time, and good again afterwards.
case_partition_long()
{
	disturbance $LONG_FAULT "$UNREACHABLE" 'cut * *'
	[ -n "$met" ] || { echo "nobody noticed the cut"; return 1; }
}

# Who needs nothing of the other memory node goes on.
case_partition_each_node()
{
	local node

	for node in $FIRST $SECOND; do
		ENOUGH=one_is_away disturbance $LONG_FAULT "$UNREACHABLE" "cut $POSTGRES $node" "cut $node $POSTGRES"
	done
}

# The server has noticed; clients whose indexes lie on the other memory node need not.
one_is_away()
{
	[ "$(value "SELECT count(*) FROM sherman_stat_memory_nodes WHERE state <> 'attached'")" = 1 ]
}

# One way only: requests arrive and their answers do not, or the other way round.
case_one_way_requests()
{
	disturbance $LONG_FAULT "$UNREACHABLE" "cut $POSTGRES *"
}

case_one_way_replies()
{
	disturbance $LONG_FAULT "$UNREACHABLE" "cut * $POSTGRES"
}

# restart_under_load SIGNAL ERRORS
restart_under_load()
{
	begin_load
	ask $PATIENCE fault >/dev/null
	stop_node $FIRST "$1"
	sleep 3
	start_node $FIRST
	ask $PATIENCE heal >/dev/null
	recovered "$2"
	end_load
}

case_node_restart()
{
	restart_under_load TERM "$UNREACHABLE|57P03"
}

case_node_kill()
{
	restart_under_load KILL "$UNREACHABLE"
}

# Shared by the scripts that measure PostgreSQL with sherman in it: script/bench, bench-network, bench-replicas, bench-connections.
# Sourced behind lib.sh, not run.

# bench_prepare [PACKAGE...]: an installation with the extension, and these packages beside those that it needs.
bench_prepare()
{
	install_own_packages "$@"
	make_workplace
	make_prefix
	build_extension
}

# bench_cluster [NAME] [configuration lines on stdin]: a server that does nothing in the background, and nothing in parallel. Refuses
# a build for tests: ASSERTS may stand in the environment. Plans that are forced upon the planner cost more than any other; that would
# have each of them compiled, for longer than it runs: so there is no jit.
bench_cluster()
{
	{
		cat
		cat <<-CONFIGURATION
			checkpoint_timeout = 1h
			autovacuum = off
			max_parallel_maintenance_workers = 0
			max_parallel_workers_per_gather = 0
			synchronous_commit = off
			jit = off
		CONFIGURATION
	} | cluster_create "${1:-bench}"
	cluster_start "${1:-bench}"
	[ "$(run_psql -At -c "SELECT count(*) FROM pg_settings WHERE name LIKE 'sherman.debug%'")" = 0 ] || die "this is a build for tests"
}

# timed SQL...: milliseconds of the last statement; settings may go before it.
timed()
{
	run_psql -At -c '\timing on' "${@/#/-c}" | sed -nE 's/^Time: ([0-9.]+) ms.*/\1/p' | tail -n 1
}

# record FIELD...: a line of $raw, with tabs between.
record()
{
	local IFS=$'\t'

	printf '%s\n' "$*" >>"$raw"
}

# figure NAME UNIT METHOD VALUE: a line of $raw.
figure()
{
	record "$group" "$1" "$2" "$3" "$turn" "$4"
}

# methods: both, and another one first in each round.
methods()
{
	if ((turn % 2)); then echo btree sherman; else echo sherman btree; fi
}

divide()
{
	awk -v a="$1" -v b="$2" 'BEGIN { printf "%.6f", a / b }'
}

# us_each MILLISECONDS COUNT
us_each()
{
	divide "$1" "$(divide "$2" 1000)"
}

# round_trips: of all of sherman's indexes since the server started; sessions add theirs when they end.
round_trips()
{
	run_psql -At -c "SELECT coalesce(sum(round_trips), 0) FROM sherman_stat_indexes"
}

# statement NAME COUNT METHOD SQL...: a figure, the time of the last statement for each of so many. Where count_round_trips is set, the round
# trips of sherman's, likewise.
statement()
{
	local before=0

	[ -z "${count_round_trips:-}" ] || [ "$3" != sherman ] || before=$(round_trips)
	figure "$1" "us each" "$3" "$(us_each "$(timed "${@:4}")" "$2")"
	[ -z "${count_round_trips:-}" ] || [ "$3" != sherman ] ||
		figure "$1" "us each" "round trips" "$(divide $(($(round_trips) - before)) "$2")"
}

# new_target METHOD COLUMNS KEY...: the table that is written to, with an index of each of these keys; none: without one.
new_target()
{
	local method=$1 number=0 key

	run_psql -c "DROP TABLE IF EXISTS target" -c "CREATE TABLE target ($2)"
	for key in "${@:3}"; do
		[ "$method" = none ] || run_psql -c "CREATE ${unique:-} INDEX target_$((++number)) ON target USING $method ($key)"
	done
	run_psql -c "CHECKPOINT"
}

# bench_query NAME COUNT QUERY [on|off [again]]: over tables that differ in the method of their index only, and by nothing but that index;
# `on` demands an index-only scan. It is the first statement of a session that touches the index, and so connects it; with `again` the second.
bench_query()
{
	local name=$1 count=$2 query=$3 index_only=${4:-off} again=${5:-} scan="Index Scan" method setting settings=()

	[ "$index_only" = off ] || scan="Index Only Scan"
	for setting in seqscan bitmapscan hashjoin mergejoin material memoize sort incremental_sort hashagg; do
		settings+=("SET enable_$setting = off")
	done
	settings+=("SET enable_indexonlyscan = $index_only")
	for method in $(methods); do
		run_psql -At "${settings[@]/#/-c}" -c "EXPLAIN ${query//METHOD/$method}" | grep -q "$scan using [a-z]*_${method}_" ||
			die "$name: not by the index of $method"
		statement "$name" "$count" "$method" "${settings[@]}" ${again:+"${query//METHOD/$method}"} "${query//METHOD/$method}"
	done
}

# bench_lookup NAME COUNT: of bigint, each key by itself.
bench_lookup()
{
	bench_query "$1" "$2" "SELECT count(t.v) FROM (SELECT * FROM probe LIMIT $2) p JOIN keyed_METHOD t ON t.bigint_key = p.bigint_key"
}

# at_most COUNT: or as many as there are.
at_most()
{
	echo $(($1 < rows / 2 ? $1 : rows / 2))
}

bench_any()
{
	local count

	count=$(at_most 20000)
	bench_query "= ANY of 1,000 keys, a key" "$count" "SELECT sum(t.n) FROM generate_series(1, $count, 1000) first, LATERAL (SELECT count(v) AS n FROM keyed_METHOD
		WHERE bigint_key = ANY (ARRAY(SELECT bigint_key FROM probe OFFSET first - 1 LIMIT 1000))) t"
	bench_query "= ANY of 1,000 neighboring keys, a key" "$rows" "SELECT sum(t.n) FROM generate_series(1, $rows, 1000) first, LATERAL (SELECT count(v) AS n FROM ordered_METHOD
		WHERE k = ANY (ARRAY(SELECT generate_series(first, first + 999)))) t"
}

# transactions SCRIPT METHOD [CLIENTS]: 8 clients, or so many, for some seconds; pgbench's report.
transactions()
{
	PGOPTIONS="$PGOPTIONS -c enable_seqscan=off" "$PGBIN/pgbench" -n -c "${3:-8}" -j 2 -T "$seconds" -M prepared -D rows="$rows" \
		-f <(sed "s/METHOD/$2/" "$TOP/bench/$1.pgbench") postgres 2>/dev/null
}

# us_a_transaction REPORT
us_a_transaction()
{
	divide 1000000 "$(sed -nE 's/^tps = ([0-9.]+).*/\1/p' <<<"$1")"
}

# rounds COMMAND: and says so.
rounds()
{
	for ((turn = 1; turn <= repeat; turn++)); do
		say "$group: round $turn of $repeat" >&2
		"$1"
	done
}

# on_cluster NAME WIDE SHARED_BUFFERS COMMAND... [configuration lines on stdin]: a server with the tables, and all that is measured there.
on_cluster()
{
	local configuration

	configuration=$(
		cat
		cat <<-CONFIGURATION
			shared_buffers = $3
			maintenance_work_mem = 512MB
			max_wal_size = 20GB
			synchronize_seqscans = off
		CONFIGURATION
	)
	bench_cluster "$1" <<<"$configuration"
	run_psql -f "$TOP/bench/tables.sql" -v rows="$rows" -v wide="$2"
	"${@:4}"
	cluster_stop "$1" immediate
	rm -rf "${WORK:?}/$1"
}

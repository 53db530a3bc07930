# Shared by the scripts that measure PostgreSQL with sherman in it: script/bench, bench-replicas, bench-connections. Sourced behind
# lib.sh, not run.

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

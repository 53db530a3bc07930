
# Broken indexes are rebuilt by themselves unless that is switched off, the log says at a start how many there are and why, and
# sherman_rebuild_all() has them rebuilt once.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('main');
my $all_states = q{SELECT string_agg(state, ' ' ORDER BY indexrelid::regclass::text) FROM sherman_stat_indexes};

# Starts without the memory.
sub start_without_memory
{
	$node->stop('immediate');
	unlink memory_files($node);
	start_again($node);
	return;
}

is($node->safe_psql('postgres', q{SELECT boot_val FROM pg_settings WHERE name = 'sherman.auto_rebuild'}), 'on', 'it is on by default');
$node->safe_psql('postgres', q{
	CREATE ROLE stranger;
	CREATE TABLE t (k int, v int, EXCLUDE USING sherman (v WITH =)); INSERT INTO t SELECT g, g FROM generate_series(1, 1000) g;
	CREATE INDEX t_k ON t USING sherman (k);
	CREATE DATABASE other});
$node->safe_psql('other', q{CREATE EXTENSION sherman; CREATE TABLE t AS SELECT generate_series(1, 1000) AS k; CREATE UNIQUE INDEX t_k ON t USING sherman (k)});

# ---- Off: nothing is rebuilt, and the log says so.
my $log = -s $node->logfile;
start_without_memory();
$node->wait_for_log(qr/WARNING:  2 of 2 sherman indexes of database "postgres" are broken\n.*DETAIL:  2: [^\n]+\n.*HINT:  Rebuild them with REINDEX, or all of them with SELECT sherman_rebuild_all\(\)/, $log);
$node->wait_for_log(qr/WARNING:  1 of 1 sherman indexes of database "other" are broken/, $log);
unlike(slurp_file($node->logfile, $log), qr/was promoted|is rebuilt/, 'nobody was promoted, and nothing is rebuilt');
is($node->safe_psql('postgres', $all_states), 'broken broken', 'they stay broken');

# ---- Once.
my $stderr;
$node->psql('postgres', 'SET ROLE stranger; SELECT sherman_rebuild_all()', stderr => \$stderr);
like($stderr, qr/permission denied for function sherman_rebuild_all/, 'not for everybody');
$node->safe_psql('postgres', 'SELECT sherman_rebuild_all()');
ok($node->poll_query_until('postgres', "SELECT ($all_states) = 'ok broken'"), 'what can be is rebuilt');
ok($node->poll_query_until('other', "SELECT ($all_states) = 'ok'"), 'in other databases, too');
is($node->safe_psql('postgres', q{SELECT qualified_name, state FROM sherman_stat_progress_rebuild}), 'public.t_v_excl|manual', 'the rest is for a REINDEX');
is(check_index($node, 't_k'), '0', 'it is whole');
$node->safe_psql('postgres', 'REINDEX TABLE t');

# ---- By itself.
$node->append_conf('postgresql.conf', 'sherman.auto_rebuild = on');
$log = -s $node->logfile;
start_without_memory();
$node->wait_for_log(qr/WARNING:  2 of 2 sherman indexes of database "postgres" are broken\n.*DETAIL:  2: [^\n]+\n.*HINT:  They are rebuilt in the background/, $log);
ok($node->poll_query_until('postgres', "SELECT ($all_states) = 'ok broken'"), 'rebuilt by itself');
ok($node->poll_query_until('other', "SELECT ($all_states) = 'ok'"), 'in other databases, too');

# ---- It gives way to others: it sleeps whenever it has read as much as vacuum_cost_limit.
$node->safe_psql('postgres', q{CREATE TABLE slow AS SELECT g AS k FROM generate_series(1, 5000) g; CREATE INDEX slow_k ON slow USING sherman (k)});
$node->append_conf('postgresql.conf', "sherman.rebuild_cost_delay = 100ms\nvacuum_cost_limit = 1");
start_without_memory();
ok($node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_progress_create_index JOIN pg_stat_activity USING (pid)
	WHERE phase LIKE 'building index%' AND wait_event = 'VacuumDelay'}), 'a rebuild sleeps while it reads the table');
ok($node->poll_query_until('postgres', q{SELECT state = 'ok' FROM sherman_stat_indexes WHERE indexrelid = 'slow_k'::regclass}), 'and comes to its end');

$node->stop;
done_testing();

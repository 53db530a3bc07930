
# On a hot standby indexes are hidden, and no memory node runs; after promotion they are broken until REINDEX.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $primary = new_cluster('primary', allows_streaming => 1, conf => "sherman.heal = off\n");
my ($stdout, $stderr, $status);

$primary->safe_psql(
	'postgres', q{
	CREATE TABLE t (id int, word text);
	INSERT INTO t SELECT g, md5(g::text) FROM generate_series(1, 5000) g;
	CREATE INDEX t_id ON t USING sherman (id);
	ANALYZE t;
});
$primary->backup('base');

my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "sherman.embedded_directory = '" . memory_directory($standby) . "'\n");
ok(!-e $standby->data_dir . '/pg_dynshmem/sherman.state', 'a backup does not copy the state file');
$standby->start;

$primary->safe_psql('postgres', 'INSERT INTO t SELECT g, md5(g::text) FROM generate_series(5001, 6000) g; DELETE FROM t WHERE id < 100; VACUUM t');
$primary->wait_for_catchup($standby);
is($standby->safe_psql('postgres', 'SELECT count(*) FROM t WHERE id BETWEEN 5990 AND 6010'), '11', 'the standby reads the table');
ok(!uses_index($standby, 't_id', 'SELECT * FROM t WHERE id = 500'), 'without the index');
is(state_of($standby, 't_id'), 'hidden', 'which is hidden');
like($standby->safe_psql('postgres', 'SELECT reason FROM sherman_stat_indexes') . $standby->safe_psql('postgres', 'SELECT reason FROM sherman_stat_memory_nodes'),
	qr/the server is in recovery.*this server is in recovery/, 'for that reason');
is($standby->safe_psql('postgres', 'SELECT state FROM sherman_stat_memory_nodes'), 'hidden', 'so is the memory node');
is(scalar memory_files($standby), 0, 'no memory was made');
is(state_of($primary, 't_id'), 'ok', 'the primary\'s index is good');

# What the primary flags, the standby learns.
$primary->stop('immediate');
$primary->start;
$primary->safe_psql('postgres', 'INSERT INTO t VALUES (7000)');
is(state_of($primary, 't_id'), 'broken', 'after a crash the primary\'s index is broken');
$primary->wait_for_catchup($standby);
$primary->safe_psql('postgres', 'REINDEX INDEX t_id');
is(check_index($primary, 't_id'), '0', 'REINDEX heals it');
$primary->wait_for_catchup($standby);

$standby->promote;
$standby->poll_query_until('postgres', q{SELECT state = 'attached' FROM sherman_stat_memory_nodes})
  or die 'the promoted server does not attach';
is(state_of($standby, 't_id'), 'broken', 'after promotion the index is broken: its memory is the primary\'s');
$standby->wait_for_log(qr/WARNING:  1 of 1 sherman indexes of database "postgres" are broken\n.*DETAIL:  This server was promoted\. 1: /);
like($standby->safe_psql('postgres', 'SELECT reason FROM sherman_stat_indexes'), qr/^this server was promoted; /, 'the view names the promotion');
(undef, undef, $stderr) = $standby->psql('postgres', 'SELECT count(*) FROM t WHERE id = 7000');
like($stderr, qr/WARNING:  index "t_id" is broken and is not used: this server was promoted; .*HINT:  .*REINDEX INDEX public\.t_id, .*SELECT sherman_rebuild_all\(\)/s,
	'and the warning the statement that rebuilds it');
is($standby->safe_psql('postgres', 'SELECT count(*) FROM t WHERE id = 7000'), '1', 'queries go on without it');
$standby->safe_psql('postgres', 'INSERT INTO t VALUES (8000); DELETE FROM t WHERE id < 200; VACUUM t');
$standby->safe_psql('postgres', 'REINDEX INDEX t_id');
is(check_index($standby, 't_id'), '0', 'REINDEX heals it');
ok(uses_index($standby, 't_id', 'SELECT * FROM t WHERE id = 500'), 'and it is used');
is(check_index($primary, 't_id'), '0', 'the primary\'s index is whole');
$standby->restart;
is(state_of($standby, 't_id'), 'ok', 'the promoted server keeps it over a restart');

$standby->stop;
$primary->stop;
done_testing();

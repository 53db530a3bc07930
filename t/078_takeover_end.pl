
# sherman_take_over() beside the end of recovery: each notes what it knows in the state file, which both copy, change and write. Whoever
# comes second sees what the first one has noted, and nothing is noted for a server that has begun a history of its own.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use Msd;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

need_steps();

my $msd = Msd->new('a', size => 64);
my $node = new_cluster('main',
	allows_streaming => 1,
	conf => "sherman.attach_timeout = 60s\nsherman.memory_nodes = '" . $msd->address . "'\n" . Msd::configuration());
my ($first_out, $first_errors, $second_out, $second_errors) = ('', '', '', '');

# A session that is told to take over, and acts at a step: 1, before it notes its wish; 2, before the write of the state file.
sub acts
{
	my ($server, $action, $step, $out, $errors) = @_;
	my $offset = -s $server->logfile;
	my $run = IPC::Run::start(
		[   'psql', '-XAtq', '-v', 'VERBOSITY=verbose', '-d', $server->connstr('postgres'),
			map { ('-c', $_) } "SET sherman.debug_action = $action", "SET sherman.debug_step = $step", 'SELECT sherman_take_over()'
		],
		'>', $out, '2>', $errors);

	$server->wait_for_log(qr/sherman\.debug_step: $action at step $step, before /, $offset);
	return $run;
}

sub waits
{
	my ($server, $who) = @_;

	return $server->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'LWLock' AND $who");
}

$node->safe_psql(
	'postgres', q{
	CREATE TABLE rows (id int, word text);
	INSERT INTO rows SELECT g, md5(g::text) FROM generate_series(1, 3000) g;
	CREATE INDEX rows_id ON rows USING sherman (id);
});
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$node->safe_psql('postgres', 'INSERT INTO rows SELECT g FROM generate_series(3001, 4000) g');
$node->wait_for_catchup($standby);
$standby->safe_psql('postgres', 'SELECT sherman_take_over(false)');

# Recovery ends while one session is in the middle of noting its wish, and another one has still to note it.
my $second = acts($standby, 'hang', 1, \$second_out, \$second_errors);
my $late = $standby->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%sherman_take_over()' AND pid <> pg_backend_pid()});
my $first = acts($standby, 'pause', 2, \$first_out, \$first_errors);
$standby->safe_psql('postgres', 'SELECT pg_promote(false)');
ok(waits($standby, q{backend_type = 'startup'}), 'the end of recovery waits for a session that notes its wish');
is($standby->safe_psql('postgres', 'SELECT pg_is_in_recovery()'), 't', 'so that there is no history of its own yet');
$standby->reload;
ok($first->finish, 'the session goes on');
is($first_errors, '', 'without an error');
$standby->poll_query_until('postgres', q{SELECT NOT pg_is_in_recovery() AND (SELECT bool_or(state = 'attached') FROM sherman_stat_memory_nodes)}) or die 'not attached';
ok($standby->log_contains(qr/sherman indexes are taken over as they were at/), 'its wish is fulfilled');
# Who hangs goes on when it is canceled: it is told why it comes too late before it looks for a cancel.
$standby->safe_psql('postgres', "SELECT pg_cancel_backend($late)");
$second->finish;
like($second_errors, qr/55000.*this server has begun a history of its own/s, 'the session that comes too late is told so');
index_agrees($standby, 'taken over');
is($standby->safe_psql('postgres', q{SELECT sherman_heal('rows_id')}), '0', 'it is healed');
is(check_index($standby, 'rows_id'), '0', 'and has what the table has');

done_testing();

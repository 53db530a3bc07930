
# Taking over a cut history: a promoted standby, a rewound primary and a server that is restored to a point in time go on with the indexes of
# the server that they are a copy of, if they are told to.  What that has changed later is healed or broken, and it is fenced out.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use Msd;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Sherman;
use Takeover;
use Test::More;

my $msd = Msd->new('a', size => 128);
my $conf = "sherman.operation_timeout = 5s\nsherman.attach_timeout = 60s\nsherman.memory_nodes = '" . $msd->address . "'\n" . Msd::configuration();
my $node = new_cluster('main',
	allows_streaming => 1,
	conf => "${conf}wal_log_hints = on\nwal_keep_size = 512MB\nmax_wal_size = 1GB\nbgwriter_lru_maxpages = 0\n");

# The state of an index of a server that has taken it over, whose entries are read while they are in doubt, among rows in the
# places of those that are not there, and then healed.
sub healed
{
	my ($server, $index, $what) = @_;

	is(state_of($server, $index), 'healing', "$what: $index is in doubt");
	index_agrees($server, "$what, $index in doubt");
	return;
}

# A new row takes the place of each that was lost, in its turn, so that an entry that is wrong finds one.
sub fill_places
{
	my ($server, $word) = @_;

	return $server->safe_psql('postgres', "INSERT INTO rows SELECT 100000 + g, '$word' FROM generate_series(1, 3000) g");
}

sub heal_all
{
	my ($server, $what) = @_;

	foreach my $index ('rows_id', 'others_id')
	{
		is($server->safe_psql('postgres', "SELECT sherman_heal('$index')"), '0', "$what: $index is healed");
		is(state_of($server, $index), 'ok', "$what: and good");
		is(check_index($server, $index), '0', "$what: and whole");
	}
	index_agrees($server, "$what, healed");
	return;
}

# The original's settings, and no other.
sub follow
{
	my ($server, $text, $upstream) = @_;

	unlink $server->data_dir . '/postgresql.conf';
	append_to_file($server->data_dir . '/postgresql.conf', $text);
	$server->enable_streaming($upstream);
	return;
}

$node->safe_psql(
	'postgres', q{
	CREATE TABLE rows (id int, word text);
	INSERT INTO rows SELECT g, md5(g::text) FROM generate_series(1, 3000) g;
	CREATE INDEX rows_id ON rows USING sherman (id);
	CREATE TABLE others (id int);
	INSERT INTO others SELECT generate_series(1, 3000);
	CREATE INDEX others_id ON others USING sherman (id);
	CREATE TABLE plain (id int, word text);
});

#
# The primary has crashed twice; its standby is promoted at an earlier place, while the primary lives.
#
my ($status, $stdout, $stderr);

for my $run (1 .. 2)
{
	$node->safe_psql('postgres', "INSERT INTO rows VALUES (0, 'first'); INSERT INTO others VALUES (0)");
	lose($node, "SET synchronous_commit = off; INSERT INTO rows SELECT 5000 + g, 'lost $run' FROM generate_series(1, 500) g");
	start_again($node);
}
index_agrees($node, 'the primary behind two crashes');
# A standby that has nothing but its backup does not know whether the last run goes on; one that follows the primary waits for that.
my $offset = -s $node->logfile;
wait_noted($node, $offset);
my $launcher = $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'sherman launcher'});
kill 'STOP', $launcher;
$offset = -s $node->logfile;
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "primary_conninfo = ''\n");
$standby->start;
($status, $stdout, $stderr) = $standby->psql('postgres', 'SELECT sherman_take_over()');
like($stderr, qr/WAL that shows where the last run .* ends is not here/, 'without the WAL nothing is taken over');
like($stderr, qr/HINT: .* call this function again/, 'as long as it is not there, says the hint');
$standby->enable_streaming($node);
$standby->reload;
$standby->poll_query_until('postgres', q{SELECT status = 'streaming' FROM pg_stat_wal_receiver}) or die 'no streaming';
my $waits = IPC::Run::start([ 'psql', '-XAtq', '-d', $standby->connstr('postgres'), '-c', 'SELECT sherman_take_over()' ], '>', \$stdout, '2>', \$stderr);
$standby->poll_query_until('postgres', q{SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE query LIKE '%take_over()' AND pid <> pg_backend_pid()}) or die 'nobody waits';
kill 'CONT', $launcher;
ok($waits->finish, 'which a standby that follows the primary waits for');
is($stderr, '', 'without an error');
is($standby->safe_psql('postgres', 'SELECT sherman_take_over(false)'), '', 'it is told not to');
wait_noted($node, $offset);
$node->safe_psql('postgres', q{DELETE FROM rows WHERE id <= 100; VACUUM rows; INSERT INTO rows SELECT 6000 + g, 'kept' FROM generate_series(1, 500) g; INSERT INTO others VALUES (0)});
$node->wait_for_catchup($standby);
$standby->safe_psql('postgres', q{ALTER SYSTEM SET primary_conninfo = ''});
$standby->reload;
$standby->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_stat_wal_receiver') or die 'still receiving';
$node->safe_psql('postgres', q{INSERT INTO rows SELECT 7000 + g, 'later' FROM generate_series(1, 2000) g; INSERT INTO others SELECT 7000 + g FROM generate_series(1, 2000) g});

($status, $stdout, $stderr) = $node->psql('postgres', 'SELECT sherman_take_over()');
like($stderr, qr/this server has begun a history of its own/, 'a server that is no copy takes nothing over');
is($standby->safe_psql('postgres', 'SELECT sherman_take_over()'), '', 'a standby is told to take over');
is(state_of($standby, 'rows_id'), 'hidden', 'and hides indexes still');
$standby->promote;
wait_attached($standby);
ok($standby->log_contains(qr/sherman indexes are taken over as they were at/), 'the log tells it');
like($standby->safe_psql('postgres', 'SELECT string_agg(known_by, \', \' ORDER BY epoch) FROM sherman_epochs'), qr/, taken over$/, 'so does the view');
is($standby->safe_psql('postgres', 'SELECT count(*) FROM rows WHERE id BETWEEN 7000 AND 9000'), '0', 'promoted, it has not all rows of the primary');
healed($standby, 'rows_id', 'promoted');
fill_places($standby, 'new');
healed($standby, 'rows_id', 'promoted, with new rows');
is(state_of($standby, 'others_id'), 'healing', 'the other index is in doubt');

# The primary, which lives, is fenced out.
($status, $stdout, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\nINSERT INTO rows VALUES (12345, 'primary')");
like($stderr, qr/08006/, 'the old primary does not reach its memory node');
index_agrees($node, 'the old primary');

# Behind a crash right away the indexes are healed, and not broken.
$standby->stop('immediate');
$standby->start;
wait_attached($standby);
is(state_of($standby, 'rows_id'), 'healing', 'the new primary survives a crash right behind its promotion');
index_agrees($standby, 'promoted, crashed');
heal_all($standby, 'promoted');
$standby->restart;
is(state_of($standby, 'rows_id'), 'ok', 'it keeps them over a restart');

#
# The old primary is rewound, as a standby. The new one crashes, and loses rows; it goes on without its launcher, so that nobody has
# noted where its WAL ended, and then it is lost for good.
#
my $text = slurp_file($node->data_dir . '/postgresql.conf');
$node->stop;
$standby->safe_psql('postgres', 'ALTER SYSTEM RESET primary_conninfo');
$standby->safe_psql('postgres', q{INSERT INTO rows VALUES (0, 'second'); INSERT INTO others VALUES (0); CHECKPOINT});
command_ok([ 'pg_rewind', '--source-server', $standby->connstr('postgres'), '--target-pgdata', $node->data_dir, '--no-sync' ], 'the old primary is rewound');
follow($node, $text, $standby);
$node->start;
is(state_of($node, 'rows_id'), 'hidden', 'as a standby it hides the index');
my $lost = lose($standby, q{SET synchronous_commit = off; INSERT INTO rows SELECT 9000 + g, 'lost' FROM generate_series(1, 500) g; SELECT pg_current_wal_insert_lsn()});
$standby->append_conf('postgresql.conf', "max_worker_processes = 0\n");
$standby->start;
$standby->safe_psql('postgres', q{INSERT INTO plain SELECT g, repeat('x', 1000) FROM generate_series(1, 5000) g});
is($standby->safe_psql('postgres', "SELECT pg_current_wal_flush_lsn() > '$lost'"), 't', 'its WAL goes on beyond what was lost');
$standby->wait_for_catchup($node);
is($node->safe_psql('postgres', 'SELECT sherman_take_over()'), '', 'the old primary is told to take over');
is($node->safe_psql('postgres', 'SELECT sherman_take_over(false)'), '', 'and not to');
$node->restart;
is($node->safe_psql('postgres', 'SELECT sherman_take_over()'), '', 'and again');
# Nobody decides, as long as there is no launcher: changes are not skipped.
$node->append_conf('postgresql.conf', "max_worker_processes = 0\n");
$node->adjust_conf('postgresql.conf', 'sherman.attach_timeout', '1s');
$node->restart;
$standby->stop('immediate');
$node->promote;
($status, $stdout, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\nINSERT INTO rows VALUES (12345, 'early')");
like($stderr, qr/08006/, 'before it is decided whose the index is no change is skipped');
index_agrees($node, 'before it is decided');
$node->stop('immediate');
$node->adjust_conf('postgresql.conf', 'max_worker_processes', '8');
$node->adjust_conf('postgresql.conf', 'sherman.attach_timeout', '60s');
$node->start;
wait_attached($node);
healed($node, 'rows_id', 'rewound and promoted');
fill_places($node, 'newer');
healed($node, 'rows_id', 'rewound and promoted, with new rows');
heal_all($node, 'rewound and promoted');

#
# To a point in time: rows are there again that were removed from one index; the other has changed, too, but nothing was taken away.
#
$offset = -s $node->logfile;
$node->backup('second');
wait_noted($node, $offset);
$node->safe_psql('postgres', q{INSERT INTO rows SELECT 11000 + g, 'before' FROM generate_series(1, 500) g; INSERT INTO others VALUES (0);
	INSERT INTO others SELECT 11000 + g FROM generate_series(1, 500) g; SELECT pg_create_restore_point('before')});
$node->safe_psql('postgres', q{DELETE FROM rows WHERE id BETWEEN 1000 AND 2000; VACUUM rows; INSERT INTO rows SELECT 12000 + g, 'after' FROM generate_series(1, 1500) g;
	INSERT INTO others SELECT 12000 + g FROM generate_series(1, 500) g; SELECT pg_switch_wal()});
my $past = PostgreSQL::Test::Cluster->new('past');
$past->init_from_backup($node, 'second');
$past->append_conf('postgresql.conf', "restore_command = 'cp \"" . $node->data_dir . "/pg_wal/%f\" \"%p\"'\nrecovery_target_name = 'before'\nrecovery_target_action = 'pause'\n");
$past->set_recovery_mode;
$past->start;
$past->poll_query_until('postgres', q{SELECT pg_get_wal_replay_pause_state() = 'paused'}) or die 'recovery has not come to its target';
$past->safe_psql('postgres', 'SELECT sherman_take_over(); SELECT pg_wal_replay_resume()');
wait_attached($past);
is($past->safe_psql('postgres', 'SELECT count(*) FROM rows WHERE id BETWEEN 1000 AND 2000'), '1001', 'restored to before rows were deleted');
is(state_of($past, 'rows_id'), 'broken', 'an index that they were removed from is broken');
index_agrees($past, 'restored');
is(state_of($past, 'others_id'), 'healing', 'one without removals is in doubt');
is($past->safe_psql('postgres', q{SET enable_seqscan = off; SELECT count(*) FROM others WHERE id > 11000}), '500', 'and answers rightly');
$past->safe_psql('postgres', 'REINDEX INDEX rows_id');
heal_all($past, 'restored');
($status, $stdout, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\nINSERT INTO others VALUES (12345)");
like($stderr, qr/08006/, 'the original does not reach its memory node');

#
# The memory node comes back with memory that is older than the tables.
#
$offset = -s $past->logfile;
$past->backup('third');
wait_noted($past, $offset);
my $heir = PostgreSQL::Test::Cluster->new('heir');
$heir->init_from_backup($past, 'third', has_streaming => 1);
$heir->append_conf('postgresql.conf', "restore_command = ''\nrecovery_target_name = ''\n");
$heir->start;
$msd->stop;
system_or_bail('cp', '-a', '--sparse=always', $msd->{memory}, "$msd->{memory}.copy");
$msd->start;
$past->restart;
wait_attached($past);
$past->safe_psql('postgres', q{INSERT INTO rows SELECT 15000 + g, 'later' FROM generate_series(1, 500) g});
$past->wait_for_catchup($heir);
$heir->safe_psql('postgres', 'SELECT sherman_take_over()');
$past->stop('immediate');
$msd->stop;
rename "$msd->{memory}.copy", $msd->{memory} or die "$msd->{memory}: $!";
$msd->start;
$heir->promote;
wait_attached($heir);
is($heir->safe_psql('postgres', 'SELECT count(*) FROM rows WHERE id > 15000 AND id < 16000'), '500', 'the heir has all rows');
is(state_of($heir, 'rows_id'), 'broken', 'memory that is older than the tables is not believed');
index_agrees($heir, 'older memory');

$heir->stop;
$node->stop;
done_testing();

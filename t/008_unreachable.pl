
# The memory node does not answer for a while: who meets that gets an error, nobody goes on until all old channels are dead,
# and then everything is as before, unless a change was skipped.

use strict;
use warnings;

use FindBin;
use IPC::Run;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_cluster('main');
my ($stdout, $stderr, $status);
my $memory_node = node_pid($node);

END { kill 'CONT', $memory_node if $memory_node }

# The memory node does not answer from now on.  Whoever connects to it here finds that out soon.
my $busy;
sub shut_out
{
	$node->safe_psql('postgres', "ALTER SYSTEM SET sherman.operation_timeout = '1s'");
	$node->safe_psql('postgres', "ALTER SYSTEM SET sherman.attach_timeout = '1s'");
	$node->reload;
	$busy->quit if $busy;
	$busy = $node->background_psql('postgres', on_error_stop => 0);
	$busy->query('\set VERBOSITY verbose');
	for my $try (1 .. 60)
	{
		$busy->query('INSERT INTO grows VALUES (0)');
		last if $busy->{stderr} !~ /ERROR/;
		$busy->{stderr} = '';
	}
	kill 'STOP', $memory_node;
}

# It answers again, and has as much time for that as a busy machine needs.
sub admit_node
{
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
	$node->reload;
	kill 'CONT', $memory_node;
	$node->poll_query_until('postgres', q{SELECT state = 'attached' FROM sherman_stat_memory_nodes}) or die 'not attached again';
}

$node->safe_psql(
	'postgres', q{
	CREATE TABLE grows (id int);
	CREATE INDEX grows_id ON grows USING sherman (id);
	CREATE TABLE quiet (id int);
	INSERT INTO quiet SELECT generate_series(1, 10000);
	CREATE INDEX quiet_id ON quiet USING sherman (id);
	ANALYZE;
});

# A session with a connection and a plan that does not depend on a parameter.
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query('SET plan_cache_mode = force_generic_plan; PREPARE lookup(int) AS SELECT count(*) FROM quiet WHERE id = $1');
is($session->query('EXECUTE lookup(5)'), '1', 'a prepared statement uses the index');

# It had its connection before: the memory is still mapped, but nobody may use it until the doubt is ended.
shut_out();
$busy->query('INSERT INTO grows SELECT g FROM generate_series(1, 100000) g');
like($busy->{stderr}, qr/08006/, 'an insert that needs an extent fails with 08006');
is($node->safe_psql('postgres', 'SELECT state FROM sherman_stat_memory_nodes'), 'unreachable', 'nobody uses the memory node');
is(state_of($node, 'quiet_id'), 'unreachable', 'indexes are unreachable');
is($session->query('EXECUTE lookup(5)'), '1', 'the prepared statement is planned without the index');
is($node->safe_psql('postgres', 'SELECT count(*) FROM quiet WHERE id = 7'), '1', 'so are others');
$status = $node->psql('postgres', 'INSERT INTO quiet VALUES (1)', stderr => \$stderr);
isnt($status, 0, 'inserts are refused');

admit_node();
is(state_of($node, 'quiet_id'), 'ok', 'when it answers again the indexes are good');
is(state_of($node, 'grows_id'), 'ok', 'all of them');
is(check_index($node, 'quiet_id'), '0', 'and whole');
is(check_index($node, 'grows_id'), '0', 'all of them');
is($session->query('EXECUTE lookup(5)'), '1', 'the prepared statement goes on');
$busy->query('INSERT INTO grows VALUES (-1)');
$busy->query('INSERT INTO grows VALUES (-2)');
is($node->safe_psql('postgres', 'SELECT count(*) FROM grows WHERE id = -2'), '1', 'the session that failed connects anew');
is(check_index($node, 'grows_id'), '0', 'its rows are in the index');

# A cursor in the middle of the index, which will be broken before it goes on.
my $reader = $node->background_psql('postgres', on_error_stop => 0);
$reader->query('\set VERBOSITY verbose');
$reader->query('SET enable_seqscan = off; BEGIN; DECLARE c CURSOR FOR SELECT id FROM quiet ORDER BY id');
is($reader->query('FETCH 1 FROM c'), '1', 'a cursor reads through the index');

# The same, with a setting that prefers inserts to the index: the flag stays although its transaction is rolled back.
shut_out();
$busy->query('INSERT INTO grows SELECT g FROM generate_series(1, 100000) g');
is($node->safe_psql('postgres', 'SELECT state FROM sherman_stat_memory_nodes'), 'unreachable', 'shut out again');
$node->safe_psql('postgres', 'BEGIN; SET sherman.on_unavailable = break; INSERT INTO quiet VALUES (20000); ROLLBACK');
is(state_of($node, 'quiet_id'), 'broken', 'the index is broken though the insert was rolled back');
is($session->query('EXECUTE lookup(5)'), '1', 'the prepared statement answers');
admit_node();
$reader->query('MOVE 9000 FROM c');
like($reader->{stderr}, qr/ERROR:  55000: .*is broken and cannot be used/s, 'the cursor ends with 55000');
$reader->query('ROLLBACK');
$reader->quit;
is(state_of($node, 'quiet_id'), 'broken', 'broken is final');
is(state_of($node, 'grows_id'), 'ok', 'the other index is good');
is($session->query('EXECUTE lookup(5)'), '1', 'the prepared statement answers');
$node->safe_psql('postgres', 'INSERT INTO quiet VALUES (20001)');
$node->safe_psql('postgres', 'REINDEX INDEX quiet_id');
is(check_index($node, 'quiet_id'), '0', 'REINDEX heals it');
is(check_index($node, 'grows_id'), '0', 'the other one is whole');
$session->quit;
$busy->quit;
$busy = undef;

# Who has waited for another transaction's row looks at the index anew: what it can be asked for may have changed meanwhile. Here
# nobody asks the memory node, which would answer nothing.
$node->safe_psql('postgres', 'CREATE TABLE waits (k int); CREATE UNIQUE INDEX waits_k ON waits USING sherman (k)');
# A command goes on with the settings that it began with.
$node->safe_psql('postgres', "ALTER SYSTEM SET sherman.operation_timeout = '5s'");
$node->safe_psql('postgres', "ALTER SYSTEM SET sherman.attach_timeout = '5s'");
$node->reload;
my $first = $node->background_psql('postgres');
my $second = $node->background_psql('postgres', on_error_stop => 0);
$first->query_safe('BEGIN; INSERT INTO waits VALUES (1)');
$second->query('\set VERBOSITY verbose');
$second->query_until(qr/begins/, "\\echo begins\nINSERT INTO waits VALUES (1);\n");
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'transactionid'}) or die 'nobody waits';
shut_out();
$busy->query('INSERT INTO grows SELECT g FROM generate_series(1, 200000) g');
$node->poll_query_until('postgres', q{SELECT state <> 'attached' FROM sherman_stat_memory_nodes}) or die 'attached all the time';
$first->query_safe('ROLLBACK');
$second->query('SELECT 1');
like($second->{stderr}, qr/ERROR:  08006: index "waits_k": memory node .* is not attached/, 'who has waited finds the index unreachable');
admit_node();
is($node->safe_psql('postgres', 'INSERT INTO waits VALUES (1) RETURNING k'), '1', 'and later it is good');
$_->quit foreach $first, $second, $busy;
$busy = undef;

# A cancel or a termination while the memory node is asked is no doubt: it answers soon, and that is waited for.
my $offset = -s $node->logfile;
my $canceled = 0;
my $calls = 'DO $$ BEGIN FOR i IN 1..100000 LOOP REINDEX INDEX tiny_id; END LOOP; END $$';
$node->safe_psql('postgres', 'CREATE TABLE tiny (id int); CREATE INDEX tiny_id ON tiny USING sherman (id)');
for my $round (1 .. 6)
{
	my $out = '';
	my $client = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', $calls ], '>', \$out, '2>&1');
	my $call = $round % 2 ? 'pg_cancel_backend' : 'pg_terminate_backend';
	my $working = q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'DO%' AND state = 'active'};

	$node->poll_query_until('postgres', $working) or die 'nobody builds';
	usleep(100_000);
	kill 'STOP', $memory_node;
	usleep(50_000);
	$node->safe_psql('postgres', "SELECT $call(pid) FROM pg_stat_activity WHERE query LIKE 'DO%'");
	usleep(100_000);
	kill 'CONT', $memory_node;
	IPC::Run::finish($client);
	$canceled++ if $out =~ /canceling statement|terminating connection/;
}
is($canceled, 6, 'commands are canceled and terminated');
ok(!$node->log_contains('not attached|does not answer', $offset), 'nobody was shut out for that');
is(state_of($node, 'grows_id'), 'ok', 'the index is good');
is(check_index($node, 'grows_id'), '0', 'and whole');

$node->restart;
is(state_of($node, 'grows_id'), 'ok', 'the epoch ended clean');

# What breaks an index is durable before the change is skipped, whatever becomes of that: nothing flushes it later, neither a commit
# nor the WAL writer. The index was not changed in this epoch, so nothing else tells.
$node->append_conf('postgresql.conf', "synchronous_commit = off\nwal_writer_delay = 10s\nsherman.on_unavailable = break\n");
$node->restart;
is(state_of($node, 'quiet_id'), 'ok', 'the index is good, and not changed');
$memory_node = node_pid($node);
$busy = undef;
$session = $node->background_psql('postgres', on_error_stop => 0);
shut_out();
$busy->query('INSERT INTO grows SELECT g FROM generate_series(1, 100000) g');
$session->query('BEGIN');
$session->query('INSERT INTO quiet VALUES (20002)');
like($session->{stderr}, qr/WARNING:  index "quiet_id" was marked as broken/, 'an open transaction breaks it');
$node->stop('immediate');
foreach my $client ($session, $busy)
{
	eval { $client->{run}->finish };
}
$node->append_conf('postgresql.conf', "synchronous_commit = on\nwal_writer_delay = 200ms\n");
$node->start;
$memory_node = undef;
is(state_of($node, 'quiet_id'), 'broken', 'the index is broken after a crash at once');
is($node->safe_psql('postgres', q{SELECT reason FROM sherman_stat_indexes WHERE indexrelid = 'quiet_id'::regclass}),
	'a change was skipped while the memory node was away', 'by what its metapage says');

$node->stop;
done_testing();


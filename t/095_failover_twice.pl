
# Promotions in a row, with synchronous replication: a standby that is promoted takes the indexes when a synchronous standby follows it.  Until then another
# server may be promoted in its place, as nothing was acknowledged: that one has the indexes, whole, as the first one has not touched them.

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

my $msd = Msd->new('a', size => 64, transport => 'tls');
# Without a common archive both who are promoted have a timeline of one number.
my $old = new_cluster('old',
	allows_streaming => 1,
	conf => "sherman.take_over = auto\nsherman.operation_timeout = 5s\nsherman.attach_timeout = 3s\nsherman.auto_rebuild = off\n"
	  . "sherman.memory_nodes = '" . $msd->address . "'\n"
	  . Msd::configuration()
	  . "autovacuum = off\nwal_keep_size = 512MB\nrecovery_target_timeline = latest\nwal_retrieve_retry_interval = 100ms\n");

my $waits = qr/sherman indexes wait for a synchronous standby that follows this server/;
my $select = 'SELECT word FROM rows WHERE id = 77';
my $answer = '28dd2c7955ce926456240b2ff0100bde';

sub follow
{
	my ($standby, $source) = @_;

	$standby->safe_psql('postgres', "ALTER SYSTEM SET primary_conninfo = '" . $source->connstr . ' application_name=' . $standby->name . "'");
	$standby->reload;
	return;
}

sub tree_of
{
	my $server = shift;

	return $server->safe_psql('postgres', q{SELECT tree FROM sherman_stat_indexes WHERE indexrelname = 'rows_id'});
}

# A statement in a session of its own, when it waits for a standby.
sub begin_waiting
{
	my ($server, $what, $sql) = @_;
	my ($out, $errors) = ('', '');
	my $run = IPC::Run::start([ 'psql', '-XAtq', '-d', $server->connstr('postgres'), '-c', $sql ], '>', \$out, '2>', \$errors);

	ok($server->poll_query_until('postgres', qq{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Extension' AND query = \$\$$sql\$\$}), "$what waits for a standby");
	return [ $run, \$errors ];
}

# Promoted, and followed by nobody: it has taken nothing, and says so.
sub is_not_followed
{
	my ($server, $offset) = @_;
	my $name = $server->name;

	$server->wait_for_log($waits, $offset // 0);
	is($server->safe_psql('postgres', q{SELECT DISTINCT state || ': ' || reason FROM sherman_stat_memory_nodes}),
		'attaching: this server was promoted, and waits for a synchronous standby that follows it', "$name: the view of memory nodes");
	is($server->safe_psql('postgres', q{SELECT state || ': ' || reason FROM sherman_stat_indexes WHERE indexrelname = 'rows_id'}),
		'attaching: this server was promoted, and waits for a synchronous standby that follows it', "$name: the view of indexes");
	ok(!$server->log_contains(qr/attaching to memory node/, $offset // 0), "$name has not touched the memory node");
	return;
}

$old->safe_psql('postgres', q{CREATE TABLE rows (id int, word text); INSERT INTO rows SELECT g, md5(g::text) FROM generate_series(1, 3000) g; CREATE INDEX rows_id ON rows USING sherman (id); ANALYZE rows});
my $tree = tree_of($old);
my ($one, $two, $three) = map { standby_of($old, $_) } qw(one two three);
wait_noted($old);
$old->safe_psql('postgres', q{ALTER SYSTEM SET synchronous_standby_names = '*'});
$old->reload;
$old->poll_query_until('postgres', q{SELECT count(*) = 3 FROM pg_stat_replication WHERE sync_state IN ('sync', 'potential')}) or die 'not synchronous';
$old->safe_psql('postgres', 'DELETE FROM rows WHERE id > 2000; VACUUM rows; INSERT INTO rows SELECT g, md5(g::text) FROM generate_series(4001, 5000) g');
$old->wait_for_catchup($_) foreach $one, $two, $three;
# The first one is promoted where the others have more.
$one->safe_psql('postgres', q{ALTER SYSTEM SET primary_conninfo = ''});
$one->reload;
$old->poll_query_until('postgres', q{SELECT count(*) = 2 FROM pg_stat_replication}) or die 'the first one follows still';
$old->safe_psql('postgres', 'CREATE TABLE more AS SELECT generate_series(1, 10000)');
$old->wait_for_catchup($_) foreach $two, $three;
# As Patroni does it: right before the promotion.
foreach my $standby ($one, $two, $three)
{
	$standby->safe_psql('postgres', q{ALTER SYSTEM SET synchronous_standby_names = '*'});
	$standby->safe_psql('postgres', q{ALTER SYSTEM SET primary_conninfo = ''});
	$standby->reload;
}
$old->stop('immediate');

#
# The first one: queries are answered, changes wait for longer than sherman.attach_timeout if their commits would.
#
$one->promote;
is_not_followed($one);
is($one->safe_psql('postgres', "SET statement_timeout = '60s'; $select"), $answer, 'a query is answered');
unlike($one->safe_psql('postgres', "EXPLAIN $select"), qr/rows_id/, 'by the table');
my $offset;
my $insert = begin_waiting($one, 'an INSERT', q{INSERT INTO rows VALUES (6000, 'lost')});
my ($status, $out, $errors) = $one->psql('postgres', q{SET synchronous_commit = local; INSERT INTO rows VALUES (6003, 'local')});
like($errors, qr/index "rows_id": this server was promoted, and no synchronous standby follows it yet/, 'who does not wait at the commit waits for sherman.attach_timeout');
my $update = begin_waiting($one, 'an UPDATE', q{UPDATE rows SET id = -id WHERE id = 5});
$one->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'UPDATE%'});
$update->[0]->finish;
like(${ $update->[1] }, qr/canceling statement due to user request/, 'it can be canceled');
ok($insert->[0]->pumpable, 'the INSERT waits still');

# A standby that was ahead of its promotion has not that WAL, whatever it says that it has flushed.
$offset = -s $three->logfile;
follow($three, $one);
$three->wait_for_log(qr/new timeline 2 forked off current database system timeline 1 before current recovery point/, $offset);
# Each time that it comes it is counted only if its answer is there before it has been sent the rest of the timeline.
$one->wait_for_log(qr/standby "three" is now a synchronous standby/);
$offset = -s $three->logfile;
$three->wait_for_log(qr/new timeline 2 forked off/, $offset);
ok($insert->[0]->pumpable && $one->safe_psql('postgres', q{SELECT bool_and(state = 'attaching') FROM sherman_stat_memory_nodes}) eq 't', 'it follows nobody');
$three->safe_psql('postgres', q{ALTER SYSTEM SET primary_conninfo = ''});
$three->reload;

# Started anew it waits as before.
$one->stop('immediate');
$insert->[0]->finish;
$offset = -s $one->logfile;
$one->start;
$one->wait_for_log($waits, $offset);
is($one->safe_psql('postgres', $select), $answer, 'started anew: a query is answered');
$one->stop('immediate');

#
# The old primary is promoted in its place, and followed.
#
$old->append_conf('postgresql.conf', "primary_conninfo = ''\n");
$old->set_standby_mode;
$offset = -s $old->logfile;
$old->start;
$old->promote;
is_not_followed($old, $offset);
$insert = begin_waiting($old, 'an INSERT there', q{INSERT INTO rows VALUES (6001, 'kept')});
follow($two, $old);
wait_attached($old);
$insert->[0]->finish;
is(${ $insert->[1] }, '', 'the INSERT goes on');
is($old->safe_psql('postgres', 'SELECT count(*) FROM rows WHERE id > 5000'), '1', 'its row is there');
is(tree_of($old), $tree, 'the old primary has the index');
is_whole($old, 'the old primary');
$old->safe_psql('postgres', 'DELETE FROM rows WHERE id % 7 = 3; VACUUM rows; INSERT INTO rows SELECT g, md5(g::text) FROM generate_series(7001, 8000) g');
ok($two->poll_query_until('postgres', q{SELECT state = 'ok' FROM sherman_stat_indexes WHERE indexrelname = 'rows_id'}), 'and its standby reads it');
$old->wait_for_catchup($two);

#
# The first one comes back, without pg_rewind: it may go on waiting, and where it wants no standby it finds out that the indexes are another server's.
#
$offset = -s $one->logfile;
$one->start;
$one->wait_for_log($waits, $offset);
is($old->safe_psql('postgres', q{INSERT INTO rows VALUES (8001, 'there'); SELECT state FROM sherman_stat_memory_nodes}), 'attached', 'beside one that waits');
$one->safe_psql('postgres', q{ALTER SYSTEM SET synchronous_standby_names = ''});
$one->reload;
wait_attached($one);
ok($one->log_contains(qr/another server has taken over the sherman indexes of this one/), 'it knows that the indexes are another one\'s');
is(state_of($one, 'rows_id'), 'broken', 'and has them not');
is($old->safe_psql('postgres', q{INSERT INTO rows VALUES (8002, 'there'); SELECT state FROM sherman_stat_memory_nodes}), 'attached', 'the old primary was not fenced');
is_whole($old, 'beside one that came back');
$one->stop;

#
# A promoted server of which the administrator wants no standby any more.
#
$old->stop('immediate');
$two->safe_psql('postgres', q{ALTER SYSTEM SET primary_conninfo = ''});
$two->reload;
$two->promote;
is_not_followed($two);
$insert = begin_waiting($two, 'an INSERT at the next one', q{INSERT INTO rows VALUES (9000, 'alone')});
$two->safe_psql('postgres', q{ALTER SYSTEM SET synchronous_standby_names = ''});
$two->reload;
wait_attached($two);
$insert->[0]->finish;
is(${ $insert->[1] }, '', 'without a standby it goes on');
is(tree_of($two), $tree, 'the next one has the index');
is_whole($two, 'the next one');

# Once it has them a restart waits for nobody.
$two->safe_psql('postgres', q{ALTER SYSTEM SET synchronous_standby_names = '*'});
$offset = -s $two->logfile;
$two->restart;
wait_attached($two);
ok(!$two->log_contains($waits, $offset), 'a restart waits for no standby');
is($two->safe_psql('postgres', "EXPLAIN $select") =~ /rows_id/ ? 1 : 0, 1, 'and has its index');

unlike(slurp_file($_->logfile), qr/PANIC|TRAP|terminated by signal/, $_->name . ' has not crashed') foreach $old, $one, $two, $three;
$_->stop foreach $two, $three;
done_testing();

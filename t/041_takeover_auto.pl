
# sherman.take_over = auto: a standby that is promoted takes over the indexes of its primary without having been told. Switchovers to and
# fro, without pg_rewind; a failover while the primary lives; who is promoted and does not take over.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Sherman;
use Takeover;
use Test::More;

my $msd = Msd->new('a', size => 128);
my $first = new_cluster('first',
	allows_streaming => 1,
	conf => "sherman.operation_timeout = 5s\nsherman.attach_timeout = 60s\nsherman.take_over = auto\nsherman.auto_rebuild = off\n"
	  . "sherman.memory_nodes = '"
	  . $msd->address . "'\n"
	  . Msd::configuration()
	  . "wal_log_hints = on\nwal_keep_size = 512MB\nrecovery_target_timeline = latest\n");
my ($status, $stdout, $stderr);

sub times_taken_over
{
	my $server = shift;
	my $log = slurp_file($server->logfile);

	return scalar(() = $log =~ /sherman indexes are taken over as they were at/g);
}

sub standby_of
{
	my ($name, $primary) = @_;
	my $standby = PostgreSQL::Test::Cluster->new($name);

	$primary->backup($name);
	$standby->init_from_backup($primary, $name, has_streaming => 1);
	$standby->start;
	wait_noted($primary);
	$primary->wait_for_catchup($standby);
	return $standby;
}

# Whether all is there: the tree that was built at the beginning, whole.
my $tree;

sub is_the_same
{
	my ($server, $what) = @_;

	is_whole($server, $what);
	is($server->safe_psql('postgres', q{SELECT tree FROM sherman_stat_indexes WHERE indexrelname = 'rows_id'}), $tree, "$what: it was not rebuilt");
	return;
}

$first->safe_psql(
	'postgres', q{
	CREATE TABLE rows (id int, word text);
	INSERT INTO rows SELECT g, md5(g::text) FROM generate_series(1, 3000) g;
	CREATE INDEX rows_id ON rows USING sherman (id);
});
$tree = $first->safe_psql('postgres', q{SELECT tree FROM sherman_stat_indexes WHERE indexrelname = 'rows_id'});
my $second = standby_of('second', $first);

#
# Switchovers: the primary is shut down, its standby is promoted, the old one follows. Each changes the index, VACUUM among that.
#
my ($primary, $standby) = ($first, $second);

for my $round (1 .. 4)
{
	my $before = times_taken_over($standby);

	$primary->safe_psql('postgres', "DELETE FROM rows WHERE id % 50 = $round; VACUUM rows; INSERT INTO rows SELECT $round * 10000 + g, 'new' FROM generate_series(1, 500) g");
	$primary->stop;
	$standby->promote;
	wait_attached($standby);
	is(times_taken_over($standby), $before + 1, "switchover $round: the standby takes over");
	is_the_same($standby, "switchover $round");
	$primary->adjust_conf('postgresql.conf', 'primary_conninfo', "'" . $standby->connstr . "'") if $round > 2;
	$primary->enable_streaming($standby) if $round <= 2;
	$primary->set_standby_mode if $round > 2;
	$primary->start;
	$standby->wait_for_catchup($primary);
	is(state_of($primary, 'rows_id'), 'hidden', "switchover $round: the old primary follows, and hides the index");
	($primary, $standby) = ($standby, $primary);
}

#
# Who takes over by the setting cannot be told not to.
#
($status, $stdout, $stderr) = $standby->psql('postgres', "\\set VERBOSITY verbose\nSELECT sherman_take_over(false)");
like($stderr, qr/55000.*"sherman\.take_over" is "auto".*HINT: .*ALTER SYSTEM SET sherman\.take_over = 'manual'/s, 'sherman_take_over(false) says what to do instead');

#
# Behind the last replay nothing has happened: recovery has no end of its own.
#
$primary->stop;
$standby->stop;
my $count = times_taken_over($primary);
$primary->set_standby_mode;
$primary->adjust_conf('postgresql.conf', 'primary_conninfo', "''");
$primary->start;
$primary->promote;
wait_attached($primary);
is(times_taken_over($primary), $count + 1, 'a server that had nothing to replay takes over');
is_the_same($primary, 'nothing to replay');

#
# A primary that lives: it is fenced out. A crash before the launcher has decided changes nothing.
#
my $third = standby_of('third', $primary);
$primary->safe_psql('postgres', q{INSERT INTO rows SELECT 60000 + g, 'new' FROM generate_series(1, 500) g});
$primary->wait_for_catchup($third);
# A hot standby wants as many workers as its primary has.
$third->append_conf('postgresql.conf', "max_worker_processes = 0\nhot_standby = off\nsherman.attach_timeout = 1s\n");
$third->restart;
$third->promote;
$third->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'not promoted';
($status, $stdout, $stderr) = $third->psql('postgres', "\\set VERBOSITY verbose\nINSERT INTO rows VALUES (12345, 'early')");
like($stderr, qr/08006/, 'before it is decided whose the index is no change is skipped');
$third->stop('immediate');
$third->adjust_conf('postgresql.conf', 'max_worker_processes', '8');
$third->adjust_conf('postgresql.conf', 'hot_standby', 'on');
$third->adjust_conf('postgresql.conf', 'sherman.attach_timeout', '60s');
$third->start;
wait_attached($third);
is(times_taken_over($third), 1, 'a crash right behind the promotion does not undo it');
is_the_same($third, 'a failover');
($status, $stdout, $stderr) = $primary->psql('postgres', "\\set VERBOSITY verbose\nINSERT INTO rows VALUES (12345, 'primary')");
like($stderr, qr/08006/, 'the old primary does not reach its memory node');
index_agrees($primary, 'the old primary');
$primary->stop('immediate');

#
# A backup that is restored to a point in time, beside the living owner: no standby, so nothing is taken.
#
$third->backup('past');
wait_noted($third);
$third->safe_psql('postgres', q{INSERT INTO rows VALUES (70000, 'last'); SELECT pg_create_restore_point('there'); SELECT pg_switch_wal()});
my $past = PostgreSQL::Test::Cluster->new('past');
$past->init_from_backup($third, 'past');
$past->append_conf('postgresql.conf',
	"restore_command = 'cp \"" . $third->data_dir . "/pg_wal/%f\" \"%p\"'\nrecovery_target_name = 'there'\nrecovery_target_action = 'promote'\n");
$past->set_recovery_mode;
$past->start;
wait_attached($past);
is(times_taken_over($past), 0, 'a restored backup takes nothing over');
is(state_of($past, 'rows_id'), 'broken', 'its index is broken');
$third->safe_psql('postgres', q{INSERT INTO rows VALUES (70001, 'more')});
is_the_same($third, 'the owner beside a restored backup');
$past->stop;

#
# A standby whose setting was changed back.
#
my $fourth = standby_of('fourth', $third);
$fourth->safe_psql('postgres', q{ALTER SYSTEM SET sherman.take_over = 'manual'});
$fourth->reload;
$fourth->poll_query_until('postgres', q{SELECT current_setting('sherman.take_over') = 'manual'}) or die 'not reloaded';
$fourth->promote;
wait_attached($fourth);
is(times_taken_over($fourth), 0, 'a standby whose setting was changed to manual takes nothing over');
is(state_of($fourth, 'rows_id'), 'broken', 'its index is broken');
is_the_same($third, 'the owner beside a standby that was promoted');
$fourth->stop;

#
# An old primary that has followed its successor, and is promoted beside it without a word: what was its own is the other one's by now.
#
my $fifth = standby_of('fifth', $third);
$third->stop;
$fifth->promote;
wait_attached($fifth);
is_the_same($fifth, 'the successor');
$third->append_conf('postgresql.conf', "sherman.take_over = manual\n");
$third->adjust_conf('postgresql.conf', 'primary_conninfo', "'" . $fifth->connstr . "'");
$third->set_standby_mode;
$third->start;
$fifth->safe_psql('postgres', q{INSERT INTO rows VALUES (80000, 'successor')});
$fifth->wait_for_catchup($third);
my $session = $fifth->background_psql('postgres', on_error_stop => 0);
$session->query_safe(q{INSERT INTO rows VALUES (80001, 'session')});
$third->promote;
wait_attached($third);
is(state_of($third, 'rows_id'), 'broken', 'an old primary that is promoted beside its successor does not have the index');
like(slurp_file($third->logfile), qr/WARNING:  another server has taken over the sherman indexes of this one: here they are broken/, 'and says why');
index_agrees($third, 'the old primary beside its successor');
is($session->query(q{INSERT INTO rows VALUES (80002, 'session') RETURNING 1}), '1', 'the sessions of the successor go on');
$session->quit;
is_the_same($fifth, 'the successor beside the old primary');
$fifth->stop;
$third->stop;
done_testing();


# A promoted server that no synchronous standby follows yet: what its sessions meet that were there before, who waits and who does not, and that no index is
# lost to the wait: to a setting, to autovacuum, to WAL that is removed meanwhile, to a follower that was told too little.

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

my $waits = qr/sherman indexes wait for a synchronous standby that follows this server/;
my $refused = qr/index "rows_id": this server was promoted, and no synchronous standby follows it yet/;
my $filled = q{SET synchronous_commit = local; INSERT INTO filler SELECT repeat('x', 500) FROM generate_series(1, 100)};

# A primary with these memory nodes, and standbys of it that have all that it has.
sub servers
{
	my ($names, $nodes, $conf) = @_;
	my $primary = new_cluster("primary_of_$names->[0]",
		allows_streaming => 1,
		conf => "sherman.take_over = auto\nsherman.operation_timeout = 5s\nsherman.attach_timeout = 2s\nsherman.auto_rebuild = off\n"
		  . "sherman.memory_nodes = '" . join(', ', map { $_->address } @$nodes) . "'\n"
		  . Msd::configuration()
		  . "autovacuum = off\nhot_standby_feedback = off\nwal_retrieve_retry_interval = 100ms\n$conf");

	$primary->safe_psql('postgres', q{
		CREATE TABLE rows (id int, word text);
		INSERT INTO rows SELECT g, md5(g::text) FROM generate_series(1, 3000) g;
		CREATE INDEX rows_id ON rows USING sherman (id);
		CREATE TABLE few (id int, word text) WITH (fillfactor = 10);
		INSERT INTO few SELECT g, 'w' FROM generate_series(1, 300) g;
		CREATE INDEX few_id ON few USING sherman (id);
		CREATE TABLE filler (text text);
		ANALYZE});
	my @standbys = map { standby_of($primary, $_) } @$names;
	wait_noted($primary);
	$primary->wait_for_catchup($_) foreach @standbys;
	return ($primary, @standbys);
}

# It follows nobody any more, and what is promoted wants these standbys.
sub alone
{
	my ($server, $names) = @_;

	$server->safe_psql('postgres', "ALTER SYSTEM SET synchronous_standby_names = '$names'");
	$server->safe_psql('postgres', q{ALTER SYSTEM SET primary_conninfo = ''});
	$server->reload;
	return;
}

#
# Sessions that were there before, the wait, and WAL that goes meanwhile.
#
my $msd = Msd->new('a', size => 64, transport => 'tls');
my ($old, $one) = servers(['one'], [$msd], "wal_keep_size = 0\nmin_wal_size = 32MB\nsherman.on_unavailable = 'break'\nsherman.attach_timeout = 300s\n");
my $cursor = $one->background_psql('postgres', on_error_stop => 0);

$cursor->query_safe('SET enable_seqscan = off; BEGIN; DECLARE words CURSOR FOR SELECT word FROM few WHERE id = 77');
alone($one, '*');
$old->stop('immediate');
if (has_steps())
{
	$one->append_conf('postgresql.conf', "sherman.debug_process = 'sherman launcher'\nsherman.debug_action = hang\nsherman.debug_step = 1\n");
	$one->reload;
}
$one->promote;
if (has_steps())
{
	# A query before the launcher has looked.
	$one->wait_for_log(qr/sherman\.debug_step: hang at step/);
	my $early = $one->background_psql('postgres', on_error_stop => 0);

	$early->query_until(qr/begun/, "\\echo begun\nSET statement_timeout = '60s';\nSELECT word FROM rows WHERE id = 77;\n");
	$one->append_conf('postgresql.conf', "sherman.debug_step = 0\n");
	$one->reload;
	$one->wait_for_log($waits);
	like($early->query('SELECT 1'), qr/^1$/m, 'a query that was there before the wait ends');
	is($early->{stderr}, '', 'without an error');
	$early->quit;
}
$one->wait_for_log($waits);
$cursor->query("SET statement_timeout = '60s'; FETCH words");
like($cursor->{stderr}, qr/canceling statement due to conflict with recovery|no synchronous standby follows it yet/, 'a cursor of before ends at once');
$cursor->quit;

# Queries wait for no memory node meanwhile; changes do.
is($one->safe_psql('postgres', q{SET statement_timeout = '60s'; SELECT count(*) FROM rows WHERE id = 77}), '1', 'a query is answered');
$one->append_conf('postgresql.conf', "sherman.attach_timeout = 2s\n");
$one->reload;
my ($status, $out, $errors) = $one->psql('postgres', q{SET synchronous_commit = local; INSERT INTO rows VALUES (6003, 'local')});
like($errors, $refused, 'whose commit does not wait is refused');
$one->append_conf('postgresql.conf', "autovacuum = on\nautovacuum_naptime = 1s\nautovacuum_vacuum_threshold = 10\nautovacuum_vacuum_scale_factor = 0\n");
$one->reload;
$one->safe_psql('postgres', q{SET synchronous_commit = local; DELETE FROM rows WHERE id > 2000});
$one->wait_for_log(qr/ERROR:  $refused.*?automatic vacuum of table "postgres.public.rows"/s);
is($one->safe_psql('postgres', q{SELECT state FROM sherman_stat_indexes WHERE indexrelname = 'rows_id'}), 'attaching', 'with sherman.on_unavailable = break neither of them breaks the index');
$one->append_conf('postgresql.conf', "autovacuum = off\n");
$one->reload;

# Deposed, with WAL that has passed meanwhile, and promoted again.
foreach (1 .. 2)
{
	$one->safe_psql('postgres', "$filled; SELECT pg_switch_wal(); CHECKPOINT");
}
# The last page of history that tells of its run is in a segment that the shutdown removes.
wait_noted($one);
$one->safe_psql('postgres', "$filled; SELECT pg_switch_wal()");
$one->stop;
$one->set_standby_mode;
my $offset = -s $one->logfile;
$one->start;
$one->promote;
$one->wait_for_log($waits, $offset);
$one->safe_psql('postgres', q{ALTER SYSTEM SET synchronous_standby_names = ''});
$one->reload;
wait_attached($one);
is_whole($one, 'deposed while it waited, and promoted again');
is($one->safe_psql('postgres', 'SELECT count(*) FROM rows'), '2000', 'with its rows');
$one->stop;

#
# A snapshot of the standby does not believe the old primary's marks.
#
my $other = Msd->new('b', size => 64, transport => 'tls');
my $third = Msd->new('c', size => 64, transport => 'tls');
my ($primary, $two) = servers(['two'], [$other], '');
my $reader = $two->background_psql('postgres', on_error_stop => 0);
my $count = 'SELECT count(word) FROM few WHERE id = 77';

$reader->query_safe("SET enable_seqscan = off; SET enable_bitmapscan = off; PREPARE word AS $count; SET plan_cache_mode = force_generic_plan; EXECUTE word");
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$cursor = $two->background_psql('postgres', on_error_stop => 0);
$cursor->query_safe("SET enable_seqscan = off; SET enable_bitmapscan = off; BEGIN; DECLARE words CURSOR FOR SELECT word FROM few WHERE id = 77");
# The old primary marks the entry as dead.
$primary->safe_psql('postgres', 'DELETE FROM few WHERE id = 77');
$primary->safe_psql('postgres', "SET enable_seqscan = off; SET enable_bitmapscan = off; $count; $count");
$primary->wait_for_catchup($two);
# There is one more memory node, on which nothing lies, and which goes with the primary.
foreach my $server ($primary, $two)
{
	$server->append_conf('postgresql.conf', "sherman.memory_nodes = '" . $other->address . ', ' . $third->address . "'\n");
	$server->reload;
}
$primary->poll_query_until('postgres', q{SELECT count(*) = 2 FROM sherman_stat_memory_nodes WHERE state = 'attached'}) or die 'not attached';
wait_noted($primary);
$primary->wait_for_catchup($two);
alone($two, '');
$primary->stop('immediate');
$third->stop;
$two->promote;
wait_attached($two);
is($reader->query($count), '1', 'a snapshot of the standby sees the row');
is($reader->query('EXECUTE word'), '1', 'by a plan of before, too');
$cursor->query('FETCH words');
like($cursor->{stderr}, qr/canceling statement due to conflict with recovery/, 'a scan that was planned then ends with a conflict');
$cursor->quit;
$reader->quit;
is($two->safe_psql('postgres', "SET enable_seqscan = off; $count"), '0', 'a new one does not');

#
# A server at work, which has attached in its timeline, waits for nobody: neither when standbys are wanted later, nor behind a restart; memory nodes that are
# away still are of the timeline before.
#
$offset = -s $two->logfile;
$two->safe_psql('postgres', q{ALTER SYSTEM SET synchronous_standby_names = 'nobody'});
$two->reload;
# Some rounds of the launcher.
sleep 2;
$two->restart;
wait_attached($two);
ok(!$two->log_contains($waits, $offset), 'neither a setting nor a restart has it wait');
index_agrees($two, 'with standbys that are not there');
$two->stop('immediate');

#
# A follower that knows of the promotion, and not of the epoch that was about to be opened: it is promoted, and has the indexes.
#
my $fourth = Msd->new('d', size => 64, transport => 'tls');
my ($first, $three, $four) = servers([ 'three', 'four' ], [$fourth], "wal_keep_size = 512MB\n");

alone($_, '*') foreach $three, $four;
$first->stop('immediate');
$three->promote;
$three->wait_for_log($waits);
my $position = $three->safe_psql('postgres', 'SELECT pg_current_wal_flush_lsn()');
my $launcher = $three->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'sherman launcher'});

kill 'STOP', $launcher;
$four->safe_psql('postgres', "ALTER SYSTEM SET primary_conninfo = '" . $three->connstr . " application_name=four'");
$four->reload;
$three->poll_query_until('postgres', qq{SELECT count(*) = 1 FROM pg_stat_replication WHERE flush_lsn >= '$position' AND state = 'streaming'}) or die 'it does not follow';
my $receiver = $four->safe_psql('postgres', 'SELECT pid FROM pg_stat_wal_receiver');

kill 'STOP', $receiver;
kill 'CONT', $launcher;
$three->wait_for_log(qr/is not attached: no synchronous standby has been told of it/);
ok(!$three->log_contains(qr/attached to memory node/), 'the leader attaches nothing that its follower does not know of');
$three->stop('immediate');
kill 'CONT', $receiver;
alone($four, '');
$four->promote;
wait_attached($four);
is_whole($four, 'the follower');

unlike(slurp_file($_->logfile), qr/PANIC|TRAP|terminated by signal/, $_->name . ' has not crashed') foreach $one, $two, $three, $four;
$four->stop;
done_testing();

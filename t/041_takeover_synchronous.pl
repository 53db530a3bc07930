
# With a synchronous standby no promotion costs an index: entries are removed, and an index is changed for the first time in a run, only when
# the standby has the WAL of it. The standby's WAL receiver is stopped meanwhile, so that nothing gets there.

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

my $msd = Msd->new('a', size => 64);
my $primary = new_cluster('primary',
	allows_streaming => 1,
	conf => "sherman.attach_timeout = 60s\nsherman.take_over = auto\nsherman.auto_rebuild = off\nwal_sender_timeout = 0\nwal_receiver_timeout = 0\n"
	  . "sherman.memory_nodes = '"
	  . $msd->address . "'\n"
	  . Msd::configuration());
my ($out, $errors, $receiver);

# A standby that commits wait for, once the launcher's note of the primary's run has come to it.
sub synchronous_standby
{
	my $name = shift;
	my $standby = PostgreSQL::Test::Cluster->new($name);

	$primary->backup($name);
	$standby->init_from_backup($primary, $name, has_streaming => 1);
	$standby->append_conf('postgresql.conf', "synchronous_standby_names = ''\n");
	$standby->start;
	wait_noted($primary);
	$primary->safe_psql('postgres', "ALTER SYSTEM SET synchronous_standby_names = '$name'");
	$primary->reload;
	$primary->poll_query_until('postgres', q{SELECT sync_state = 'sync' FROM pg_stat_replication}) or die 'not synchronous';
	$primary->wait_for_catchup($standby);
	return $standby;
}

sub stop_receiver
{
	my $standby = shift;

	$receiver = $standby->safe_psql('postgres', 'SELECT pid FROM pg_stat_wal_receiver');
	kill 'STOP', $receiver;
	return;
}

# A statement that waits for the standby.
sub waits
{
	my ($what, $sql) = @_;
	my $run = IPC::Run::start([ 'psql', '-XAtq', '-d', $primary->connstr('postgres'), '-c', $sql ], '>', \$out, '2>', \$errors);

	ok($primary->poll_query_until('postgres', qq{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Extension' AND query = \$\$$sql\$\$}),
		"$what waits for the standby");
	return $run;
}

sub promote_instead_of
{
	my ($standby) = @_;

	$primary->stop('immediate');
	kill 'CONT', $receiver;
	$standby->promote;
	wait_attached($standby);
	return;
}

$primary->safe_psql(
	'postgres', q{
	CREATE TABLE rows (id int, word text);
	INSERT INTO rows SELECT g, md5(g::text) FROM generate_series(1, 3000) g;
	CREATE INDEX rows_id ON rows USING sherman (id);
});

#
# VACUUM. What the standby has not is a DELETE whose commit did not wait.
#
my $first = synchronous_standby('alpha');
stop_receiver($first);
$primary->safe_psql('postgres', 'SET synchronous_commit = local; DELETE FROM rows WHERE id % 2 = 0');
my $vacuum = waits('VACUUM', 'VACUUM rows');
$primary->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query = 'VACUUM rows'});
$vacuum->finish;
like($errors, qr/canceling statement due to user request/, 'it can be canceled');
is(check_index($primary, 'rows_id'), '0', 'nothing was removed');
$vacuum = waits('VACUUM again', 'VACUUM rows');
promote_instead_of($first);
$vacuum->finish;
is($first->safe_psql('postgres', 'SELECT count(*) FROM rows'), '3000', 'the promoted server has the rows');
is_whole($first, 'VACUUM beside a promotion');

#
# The first change in a run. The launcher's own note of the run is there; the index's metapage is not.
#
$primary = $first;
my $second = synchronous_standby('beta');
$primary->safe_psql('postgres', q{ALTER SYSTEM SET synchronous_standby_names = ''});
$primary->restart;
wait_attached($primary);
$primary->safe_psql('postgres', q{ALTER SYSTEM SET synchronous_standby_names = 'beta'});
$primary->reload;
$primary->poll_query_until('postgres', q{SELECT sync_state = 'sync' FROM pg_stat_replication}) or die 'not synchronous';
$primary->wait_for_catchup($second);
stop_receiver($second);
my $insert = waits('the first INSERT since the start', q{INSERT INTO rows VALUES (5000, 'first')});
promote_instead_of($second);
$insert->finish;
is($second->safe_psql('postgres', 'SELECT count(*) FROM rows'), '3000', 'the promoted server has not the row');
is_whole($second, 'an INSERT beside a promotion');

#
# Who does not wait for the standby at the commit does not wait for it before.
#
$primary = $second;
my $third = synchronous_standby('gamma');
stop_receiver($third);
$primary->safe_psql('postgres', q{SET synchronous_commit = local; DELETE FROM rows WHERE id % 3 = 0});
is($primary->safe_psql('postgres', q{SET synchronous_commit = local; VACUUM rows; SELECT count(*) FROM rows WHERE id % 3 = 0}), '0', 'with synchronous_commit = local VACUUM does not wait');

#
# Nobody has set it for autovacuum, whose commits are local always: it gives up, as other tables wait for it.
#
my $offset = -s $primary->logfile;
$primary->safe_psql('postgres', q{SET synchronous_commit = local; DELETE FROM rows WHERE id % 5 = 0});
$primary->append_conf('postgresql.conf', "sherman.attach_timeout = 1s\nautovacuum = on\nautovacuum_naptime = 1s\nautovacuum_vacuum_threshold = 10\nautovacuum_vacuum_scale_factor = 0\n");
$primary->reload;
$primary->wait_for_log(qr/ERROR:  no synchronous standby has the WAL behind which an index may be changed.*?CONTEXT:  while vacuuming index "rows_id".*?automatic vacuum of table "postgres.public.rows"/s, $offset);
is($primary->safe_psql('postgres', q{SELECT autovacuum_count FROM pg_stat_user_tables WHERE relname = 'rows'}), '0', 'autovacuum does not remove what the standby has');
kill 'CONT', $receiver;
ok($primary->poll_query_until('postgres', q{SELECT autovacuum_count > 0 FROM pg_stat_user_tables WHERE relname = 'rows'}), 'with the standby it does');

$third->stop;
$primary->stop;
done_testing();


# Copies of a server that reach the same memory nodes: base backups, restores to a point in time, promoted standbys, rewound primaries,
# and a copy that takes itself for the original.  Answers are right everywhere, and nobody touches what is another's.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Copies;
use IPC::Run;
use Msd;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my %msd = (tcp => Msd->new('a', size => 128, transport => 'tls'), shm => Msd->new('b', size => 128));
my $node = new_cluster('main',
	allows_streaming => 1,
	conf => "sherman.operation_timeout = 5s\nsherman.memory_nodes = '" . $msd{tcp}->address . "'\nsherman.embedded_memory = 0\nsherman.standby_reads = off\n" . Msd::configuration()
	  . "wal_log_hints = on\nwal_keep_size = 512MB\nmax_wal_size = 1GB\n");

# The index is good and whole.
sub good
{
	my ($server, $what) = @_;

	is(state_of($server, 'rows_id'), 'ok', "$what: the index is good");
	is(check_index($server, 'rows_id'), '0', "$what: and whole");
	return;
}

sub wait_attached
{
	my $server = shift;

	$server->poll_query_until('postgres', q{SELECT bool_or(state = 'attached') FROM sherman_stat_memory_nodes}) or die 'not attached';
	return;
}

# The original's settings, and no other.
sub set_conf
{
	my $text = shift;

	unlink $node->data_dir . '/postgresql.conf';
	append_to_file($node->data_dir . '/postgresql.conf', $text);
	return;
}

# A server from the backup, that goes on by itself.
sub restored
{
	my ($name, $conf, $recovery) = @_;
	my $copy = PostgreSQL::Test::Cluster->new($name);

	$copy->init_from_backup($node, 'base');
	$copy->append_conf('postgresql.conf', $conf);
	$copy->set_recovery_mode if $recovery;
	$copy->start;
	$copy->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'still in recovery';
	wait_attached($copy);
	return $copy;
}

$node->safe_psql(
	'postgres', q{
	CREATE TABLE rows (id int, word text);
	INSERT INTO rows SELECT g, md5(g::text) FROM generate_series(1, 3000) g;
	CREATE INDEX rows_id ON rows USING sherman (id);
});

#
# A base backup of a running server, restored while that lives.
#
$node->backup('base');
$node->safe_psql('postgres', q{INSERT INTO rows SELECT g, 'more' FROM generate_series(3001, 4000) g; SELECT pg_create_restore_point('before'); SELECT pg_switch_wal()});
$node->safe_psql('postgres', q{DELETE FROM rows WHERE id <= 500; VACUUM rows; SELECT pg_switch_wal()});
my $epochs = $node->safe_psql('postgres', 'SELECT max(epoch) FROM sherman_epochs');
my $copy = restored('copy', '');
is(state_of($copy, 'rows_id'), 'broken', 'in a restored backup the index is broken');
index_agrees($copy, 'the restored backup');
good($node, 'the original');
$copy->safe_psql('postgres', q{REINDEX INDEX rows_id; INSERT INTO rows SELECT g, 'copy' FROM generate_series(5001, 6000) g; SELECT sherman_collect()});
$node->safe_psql('postgres', q{INSERT INTO rows SELECT g, 'original' FROM generate_series(5001, 6000) g; SELECT sherman_collect()});
good($copy, 'the restored backup, rebuilt');
good($node, 'the original beside it');
is($node->safe_psql('postgres', 'SELECT max(epoch) FROM sherman_epochs'), $epochs, 'which has noticed nothing');
$copy->stop;
good($node, 'the original behind it');

#
# To a point in time before removals.
#
$copy = restored('past', "restore_command = 'cp \"" . $node->data_dir . "/pg_wal/%f\" \"%p\"'\nrecovery_target_name = 'before'\nrecovery_target_action = 'promote'\n", 1);
is($copy->safe_psql('postgres', 'SELECT count(*) FROM rows WHERE id <= 4000'), '4000', 'restored to before rows were deleted');
is(state_of($copy, 'rows_id'), 'broken', 'the index is broken');
index_agrees($copy, 'restored to a point in time');
good($node, 'the original');
# The same over the original: its directory, and its state file.
my $state = 'pg_dynshmem/sherman.state';
$copy->stop;
$node->stop;
system_or_bail('cp', '-a', $node->data_dir, $node->basedir . '/aside');
my $conf = slurp_file($node->data_dir . '/postgresql.conf');
system_or_bail('sh', '-c', 'rm -rf "$1"/* && cp -a "$2"/. "$1" && cp -a "$3/$4" "$1/$4"', 'sh', $node->data_dir, $node->backup_dir . '/base', $node->basedir . '/aside', $state);
set_conf("$conf\nrestore_command = 'cp \"" . $node->basedir . "/aside/pg_wal/%f\" \"%p\"'\nrecovery_target_name = 'before'\nrecovery_target_action = 'promote'\n");
$node->set_recovery_mode;
$node->start;
$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'still in recovery';
wait_attached($node);
is($node->safe_psql('postgres', 'SELECT count(*) FROM rows'), '4000', 'the original set back to before rows were deleted');
is(state_of($node, 'rows_id'), 'broken', 'the index is broken');
index_agrees($node, 'set back');
set_conf($conf);
$node->restart;
is(state_of($node, 'rows_id'), 'broken', 'and stays so');
$node->safe_psql('postgres', 'REINDEX INDEX rows_id');
good($node, 'rebuilt');

#
# A standby is promoted, the old primary goes on, and is rewound then.
#
my $standby = PostgreSQL::Test::Cluster->new('standby');
$node->backup('second');
$standby->init_from_backup($node, 'second', has_streaming => 1);
$standby->start;
$node->safe_psql('postgres', q{INSERT INTO rows SELECT g, 'primary' FROM generate_series(7001, 8000) g});
$node->wait_for_catchup($standby);
is(state_of($standby, 'rows_id'), 'hidden', 'on a standby the index is hidden');
$standby->promote;
wait_attached($standby);
is(state_of($standby, 'rows_id'), 'broken', 'of a promoted standby, whose primary lives, it is broken');
index_agrees($standby, 'the promoted standby');
good($node, 'the old primary');
$standby->safe_psql('postgres', q{REINDEX INDEX rows_id; INSERT INTO rows SELECT g, 'new' FROM generate_series(8001, 9000) g; CHECKPOINT});
$node->safe_psql('postgres', q{INSERT INTO rows SELECT g, 'old' FROM generate_series(8001, 8500) g; DELETE FROM rows WHERE id BETWEEN 1000 AND 2000; VACUUM rows});
good($node, 'the old primary beside it');
good($standby, 'the new one');
$node->stop;
$conf = slurp_file($node->data_dir . '/postgresql.conf');
system_or_bail('cp', '-a', $node->data_dir . "/$state", $node->basedir . '/state');
command_ok([ 'pg_rewind', '--debug', '--source-server', $standby->connstr('postgres'), '--target-pgdata', $node->data_dir, '--no-sync' ], 'the old primary is rewound');
ok(!-e $node->data_dir . "/$state", 'and has no state file any more');
# If it had, nothing would be believed either.
system_or_bail('cp', '-a', $node->basedir . '/state', $node->data_dir . "/$state");
set_conf($conf);
$node->enable_streaming($standby);
$node->start;
$standby->wait_for_catchup($node);
is(state_of($node, 'rows_id'), 'hidden', 'as a standby it hides the index');
index_agrees($node, 'rewound');
$standby->stop;
$node->promote;
wait_attached($node);
is(state_of($node, 'rows_id'), 'broken', 'promoted again, it has no index that it can believe');
index_agrees($node, 'promoted again');
$node->safe_psql('postgres', 'REINDEX INDEX rows_id');
good($node, 'rebuilt again');

#
# A copy that takes itself for the original, which lives.
#
foreach my $transport ('tcp', 'shm')
{
	$node->adjust_conf('postgresql.conf', 'sherman.memory_nodes', "'" . $msd{$transport}->address . "'");
	$node->restart;
	wait_attached($node);
	$node->safe_psql('postgres', 'REINDEX INDEX rows_id; INSERT INTO rows VALUES (1, NULL); CHECKPOINT');

	# A session in the middle of its work.
	my ($in, $out, $errors) = ('', '', '');
	my $session = IPC::Run::start([ 'psql', '-XAt', '-v', 'VERBOSITY=verbose', '-d', $node->connstr('postgres') ], '<', \$in, '>', \$out, '2>', \$errors,
		IPC::Run::timeout(2 * $PostgreSQL::Test::Utils::timeout_default));
	$in = "INSERT INTO rows VALUES (9999, 'session'); SELECT 'pid=' || pg_backend_pid();\n";
	IPC::Run::pump($session) until $out =~ /pid=(\d+)/;
	my $pid = $1;
	kill 'STOP', $pid;
	$in .= "INSERT INTO rows VALUES (777777, 'late'); SELECT 'over';\n";
	IPC::Run::pump_nb($session);

	# Race -- a launcher that notices the fence takes the memory node back before the copy opens its epoch, and the copy is refused then.
	my $launcher = $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'sherman launcher'});
	my $thief = clone($node, "thief_$transport");
	kill 'STOP', $launcher;
	$thief->start;
	wait_attached($thief);
	kill 'CONT', $launcher;
	isnt(state_of($thief, 'rows_id'), 'broken', "$transport: the copy believes the index");
	$thief->safe_psql('postgres', "INSERT INTO rows SELECT g, 'copy' FROM generate_series(10001, 10500) g");

	# The original has lost the memory node, and does not take it back.
	kill 'CONT', $pid;
	$in .= "\\q\n";
	eval { IPC::Run::finish($session) };
	unlike($out, qr/INSERT 0 1\npid=\d+\nINSERT 0 1/, "$transport: a session of the original writes nothing any more");
	like($errors, qr/08006|server closed the connection|57P02/, "$transport: it gets an error");
	is($thief->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM rows WHERE id = 777777'), '0', "$transport: the copy has none of it");
	is(check_index($thief, 'rows_id'), '0', "$transport: its index is whole");
	index_agrees($thief, "$transport, the copy");
	$thief->stop;
	$node->stop('immediate', fail_ok => 1);
	$node->start;
	wait_attached($node);
	is(state_of($node, 'rows_id'), 'broken', "$transport: the original does not believe the index any more");
	index_agrees($node, "$transport, the original");
}

$node->stop;
done_testing();


# pg_upgrade of a primary with hot standbys that read its indexes. The new cluster's standby is made by pg_basebackup, or by rsync of the old one's as
# PostgreSQL's documentation has it, or by a copy of the directory with all that is in it: it has the indexes as its primary has them, and goes on with
# them. The old cluster's standby goes on with the old ones.

use strict;
use warnings;

use File::Basename qw(basename);
use FindBin;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Sherman;
use Takeover;
use Test::More;
use Upgrade;

my $tmp = $PostgreSQL::Test::Utils::tmp_check;
my $state = 'pg_dynshmem/sherman.state';

# A key that the old cluster shares with one that it is upgraded to, and one that another such cluster has for itself.
my %key = map { $_ => Msd::random_key() } qw(shared own);
my %key_file = map { $_ => "$tmp/upgrade_${_}_$$" } keys %key;
my $keys = "$tmp/upgrade_keys_$$";

END { unlink $keys, values %key_file }

Msd::write_keys($keys, %key);
Msd::write_keys($key_file{$_}, $_ => $key{$_}) foreach keys %key;

my @msd = map { Msd->new($_, size => 128, transport => 'tls', keys => $keys) } qw(a b);

sub settings
{
	my $tenant = shift;

	return
		"sherman.operation_timeout = 5s\nsherman.attach_timeout = 60s\nsherman.take_over = auto\n"
	  . "sherman.memory_nodes = '" . join(', ', map { $_->address } @msd) . "'\nsherman.key_file = '$key_file{$tenant}'\n"
	  . "hot_standby_feedback = on\nwal_keep_size = 256MB\n";
}

sub wait_both
{
	my $server = shift;

	$server->poll_query_until('postgres', q{SELECT count(*) = 2 FROM sherman_stat_memory_nodes WHERE state = 'attached'})
	  or die $server->name . ' has not both memory nodes';
	return;
}

# Indexes of tables that are logged, and how they are.
sub states
{
	my $server = shift;

	return $server->safe_psql('postgres', q{SELECT string_agg(indexrelname || ' ' || state, ', ' ORDER BY indexrelname) FROM sherman_stat_indexes WHERE indexrelname <> 'u_id'});
}

my $all_ok = 'keys_pkey ok, rows_copy ok, rows_id ok';
my $all_broken = 'keys_pkey broken, rows_copy broken, rows_id broken';

# What was changed on a primary is there by the index and by the table, on its standby, too.
sub reads_alike
{
	my ($primary, $standby, $what) = @_;

	$primary->wait_for_catchup($standby);
	$standby->poll_query_until('postgres', q{SELECT bool_and(state = 'ok') FROM sherman_stat_indexes WHERE indexrelname <> 'u_id'}) or die $standby->name . ': ' . states($standby);
	foreach my $query ('SELECT * FROM rows WHERE id = 5', q{SELECT * FROM rows WHERE word = 'x'}, 'SELECT * FROM keys WHERE id = 5')
	{
		like($standby->safe_psql('postgres', "SET enable_seqscan = off; EXPLAIN $query"), qr/(using|on) (rows_id|rows_copy|keys_pkey)/, "$what: an index is used for $query");
	}
	index_agrees($_, "$what, " . $_->name) foreach ($primary, $standby);
	return;
}

# Rows come and go.
sub change
{
	my ($server, $from) = @_;

	$server->safe_psql('postgres', "INSERT INTO rows SELECT g, md5(g::text) FROM generate_series($from, $from + 999) g; DELETE FROM rows WHERE id % 10 = 3; INSERT INTO keys SELECT g, 'new' FROM generate_series($from, $from + 99) g");
	$server->safe_psql('postgres', 'VACUUM rows');
	return;
}

# Trees of indexes, which a rebuild makes anew.
sub all_trees
{
	my $server = shift;

	return $server->safe_psql('postgres', q{SELECT string_agg(indexrelname || ' ' || tree, ', ' ORDER BY indexrelname) FROM sherman_stat_indexes WHERE indexrelname <> 'u_id'});
}

# A server that was promoted goes on with the indexes as they were.
sub goes_on
{
	my ($server, $trees, $what) = @_;

	wait_both($server);
	unlike(states($server), qr/broken|unreachable|hidden/, "$what: no index is broken");
	is_whole($server, $what);
	is(all_trees($server), $trees, "$what: none was rebuilt");
	change($server, 90000);
	index_agrees($server, "$what, changed");
	is(check_index($server, $_), '0', "$what: $_ is whole") foreach qw(rows_id rows_copy keys_pkey);
	like(($server->psql('postgres', q{INSERT INTO keys VALUES (5, 'again')}))[2], qr/duplicate key value/, "$what: keys are unique");
	return;
}

# The indexes of a cluster that was upgraded are broken, and rebuilt: one by hand, the others in the background. Its standby has them so.
sub are_rebuilt
{
	my ($primary, $standby, $what) = @_;

	wait_both($_) foreach ($primary, $standby);
	$primary->wait_for_catchup($standby);
	foreach my $server ($primary, $standby)
	{
		is(states($server), $all_broken, "$what, " . $server->name . ': indexes are broken');
		is($server->safe_psql('postgres', q{SELECT DISTINCT reason ~ 'another database cluster, from which pg_upgrade' FROM sherman_stat_indexes WHERE indexrelname <> 'u_id'}),
			't', 'with that reason');
		index_agrees($server, $what . ', without them');
	}
	$primary->safe_psql('postgres', 'REINDEX INDEX rows_id; INSERT INTO rows VALUES (20000, NULL)');
	$primary->wait_for_catchup($standby);
	$standby->poll_query_until('postgres', q{SELECT state = 'ok' FROM sherman_stat_indexes WHERE indexrelname = 'rows_id'}) or die states($standby);
	is(states($standby), 'keys_pkey broken, rows_copy broken, rows_id ok', "$what: the standby has the one that was rebuilt");
	index_agrees($standby, "$what, by that one");
	$primary->safe_psql('postgres', $_) foreach ('ALTER SYSTEM SET sherman.auto_rebuild = on', 'SELECT pg_reload_conf()');
	$primary->poll_query_until('postgres', q{SELECT bool_and(state = 'ok') FROM sherman_stat_indexes}) or die states($primary);
	reads_alike($primary, $standby, "$what, rebuilt");
	change($primary, 30000);
	reads_alike($primary, $standby, "$what, changed");
	return;
}

# A session of a server's that changes an index, to see that nobody fences it.
sub session_of
{
	my $server = shift;
	my $session = $server->background_psql('postgres', on_error_stop => 0);

	$session->query_safe('INSERT INTO rows VALUES (40001, NULL)');
	return $session;
}

sub is_undisturbed
{
	my ($server, $session, $offset, $what) = @_;

	is($session->query_safe('INSERT INTO rows VALUES (40002, NULL) RETURNING 1'), '1', "$what: its sessions go on");
	is(states($server), $all_ok, "$what: its indexes are ok");
	is(check_index($server, $_), '0', "$what: $_ is whole") foreach qw(rows_id rows_copy keys_pkey);
	unlike(slurp_file($server->logfile, $offset), qr/fenced|another server|attaching to memory node/, "$what: no memory node was taken from it");
	$session->quit;
	return;
}

# The control file's checkpoint.
sub checkpoint_of
{
	my $server = shift;
	my ($out) = run_command([ $server->config_data('--bindir') . '/pg_controldata', $server->data_dir ]);

	return $out =~ /^Latest checkpoint location: +(\S+)/m ? $1 : die $out;
}

sub move
{
	my ($from, $to) = @_;

	system('mv', $from, $to) == 0 or die "could not move $from";
	return;
}

# Where a server has its directory from now on; it has none at its own place.
sub is_at
{
	my ($server, $place) = @_;

	symlink $place, $server->basedir or die "symlink: $!";
	return;
}

# Makes a standby, of what is in its directory, follow a server.
sub follow
{
	my ($standby, $primary) = @_;

	$standby->append_conf('postgresql.conf', 'port = ' . $standby->port . "\nunix_socket_directories = '" . $standby->host . "'\n");
	$standby->enable_streaming($primary);
	return;
}

#
# The old cluster, and two standbys.
#
my $old = old_cluster('old', allows_streaming => 1, conf => settings('shared'));
$old->safe_psql(
	'postgres', q{
	CREATE TABLE rows (id int, word text);
	INSERT INTO rows SELECT g, md5(g::text) FROM generate_series(1, 5000) g;
	CREATE INDEX rows_id ON rows USING sherman (id);
	CREATE INDEX rows_copy ON rows USING sherman (word) WITH (replicas = 1);
	CREATE TABLE keys (id int PRIMARY KEY WITH (sherman), word text);
	INSERT INTO keys SELECT g, 'old' FROM generate_series(1, 1000) g;
	CREATE UNLOGGED TABLE u (id int);
	INSERT INTO u SELECT generate_series(1, 500);
	CREATE INDEX u_id ON u USING sherman (id);
	VACUUM ANALYZE;
});
my ($beside, $kept) = map { standby_of($old, $_) } qw(beside kept);
wait_both($_) foreach ($beside, $kept);
change($old, 10000);
reads_alike($old, $_, 'the old cluster') foreach ($beside, $kept);
my $old_trees = all_trees($old);
wait_noted($old);
$old->stop;
my $checkpoint = checkpoint_of($old);
foreach my $standby ($beside, $kept)
{
	$standby->poll_query_until('postgres', "SELECT pg_last_wal_replay_lsn() > '$checkpoint'") or die 'it lags';
	$standby->safe_psql('postgres', 'CHECKPOINT');
}
$kept->stop;
is(checkpoint_of($kept), $checkpoint, 'the standby that is upgraded had all of the old primary');

#
# By pg_basebackup, with files that are copied, so that the old cluster's standby may run on.
#
my $new = upgraded_cluster('new', allows_streaming => 1, conf => settings('shared'));
command_ok(pg_upgrade($old, $new), 'pg_upgrade');
ok(!-e $new->data_dir . "/$state", 'the new cluster has not used a memory node');
is(states($beside), $all_ok, 'the old cluster\'s standby reads the old indexes');
$new->start;
my $fresh = standby_of($new, 'fresh');
are_rebuilt($new, $fresh, 'by pg_basebackup');
is(states($beside), $all_ok, 'the old cluster\'s standby reads them still');
index_agrees($beside, 'the old cluster\'s standby');
$beside->restart;
wait_both($beside);
is(states($beside), $all_ok, 'and when it was started again');
index_agrees($beside, 'the old cluster\'s standby, started again');

my $session = session_of($new);
my $offset = -s $new->logfile;
$beside->promote;
goes_on($beside, $old_trees, 'the old cluster\'s standby, promoted');
is_undisturbed($new, $session, $offset, 'the new cluster beside that');
reads_alike($new, $fresh, 'the new cluster beside that');
$beside->stop;

wait_noted($new);
$new->wait_for_catchup($fresh);
my $trees = all_trees($new);
$new->stop;
$fresh->promote;
goes_on($fresh, $trees, 'the new standby, promoted');
is($fresh->safe_psql('postgres', 'INSERT INTO u VALUES (1); SET enable_seqscan = off; SELECT count(*) FROM u WHERE id = 1'), '1', 'the unlogged table is empty there, and its index good');
is(check_index($fresh, 'u_id'), '0', 'and whole');
$fresh->stop;

#
# By rsync, with files that are linked: the old cluster is gone with that.
#
my $linked = upgraded_cluster('linked', allows_streaming => 1, conf => settings('own'));
command_ok(pg_upgrade($old, $linked, '--link'), 'pg_upgrade --link');
my $machine = "$tmp/machine";
my ($old_name, $new_name) = map { basename($_->basedir) } ($old, $linked);
mkdir $machine or die "mkdir: $!";
move($kept->basedir, "$machine/$old_name");
is_at($kept, "$machine/$old_name");
my @copy = `sh -c 'command -v rsync'` ?
  ('rsync', qw(--archive --delete --hard-links --size-only --no-inc-recursive --relative)) :
  # The same, file by file.
  ('sh', '-c', 'rm -r "$3$1" && cp -a --parents "$@"', 'sh');
chdir $tmp or die;
system_or_bail(@copy, "./$old_name/pgdata", "./$new_name/pgdata", "$machine/");
my $synced = PostgreSQL::Test::Cluster->new('synced');
rmdir $synced->basedir;
is_at($synced, "$machine/$new_name");
follow($synced, $linked);
ok(!-e $synced->data_dir . "/$state", 'the standby has no state of its own');
$linked->start;
$synced->start;
are_rebuilt($linked, $synced, 'by rsync');

#
# By a copy of the upgraded directory behind its first runs, with the state file. On another machine the directory that this names is not there, or is
# the copy itself.
#
$linked->stop;
ok(-e $linked->data_dir . "/$state", 'the new primary has a state file');
my $copied = PostgreSQL::Test::Cluster->new('copied');
system_or_bail('cp', '-a', $linked->data_dir, $copied->data_dir);
follow($copied, $linked);
my $data = $linked->data_dir;
move($data, "$tmp/primary");
symlink "$tmp/primary", $data or die "symlink: $!";
$linked->start;
wait_both($linked);
unlink $data or die "unlink: $!";
$copied->start;
symlink "$tmp/primary", $data or die "symlink: $!";
wait_both($copied);
like(slurp_file($copied->logfile), qr/LOG:  the state of sherman indexes came with a copy of "\Q$data\E"/, 'a copy knows whose state file it has');
reads_alike($linked, $copied, 'a copy with the state file');
$copied->safe_psql('postgres', $_) foreach ('ALTER SYSTEM SET sherman.take_over = manual', 'ALTER SYSTEM SET sherman.auto_rebuild = off', 'SELECT pg_reload_conf()');
$session = session_of($linked);
$offset = -s $linked->logfile;
$linked->wait_for_catchup($copied);
$copied->promote;
wait_both($copied);
is(states($copied), $all_broken, 'promoted without the word to take over it has none of the indexes');
index_agrees($copied, 'a copy with the state file, promoted');
is_undisturbed($linked, $session, $offset, 'its primary beside that');
$copied->stop;

# The primary is lost.
reads_alike($linked, $synced, 'by rsync');
wait_noted($linked);
$linked->wait_for_catchup($synced);
$trees = all_trees($linked);
$linked->stop('immediate');
$synced->promote;
goes_on($synced, $trees, 'the standby by rsync, promoted');
unlike(slurp_file($_->logfile), qr/PANIC|TRAP|terminated by signal/, $_->name . ': nothing has crashed') foreach ($beside, $new, $fresh, $linked, $copied, $synced);
$synced->stop;
done_testing();

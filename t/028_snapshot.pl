
# Snapshots of memory nodes: planned restarts of the machine cost no rebuild, and a snapshot that was used before is not believed.
# What a restart of the machine takes away is the memory segment.

use strict;
use warnings;

use File::Copy;
use FindBin;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Utils;
use Rows;
use Sherman;
use Test::More;
use Time::HiRes qw(usleep);

my ($stdout, $stderr, $status);

# Whether the indexes are broken, the answers right, and REINDEX makes it good.
sub is_broken
{
	my ($node, $when) = @_;

	is(state_of($node, 't_id'), 'broken', "$when: the index is broken");
	is($node->safe_psql('postgres', "SELECT count(*) FROM t WHERE id BETWEEN 1 AND 1000000"), row_count(), 'the answer is right');
	$node->safe_psql('postgres', 'REINDEX TABLE t');
	is_whole($node, 'after REINDEX');
	return;
}

# ---- the embedded node ----

my $node = new_cluster('embedded', memory => 16);
my $snapshot = $node->data_dir . '/pg_dynshmem/sherman.snapshot';
my $old = $node->data_dir . '/pg_dynshmem/old';

sub log_has
{
	my ($pattern, $what) = @_;

	like(slurp_file($node->logfile), $pattern, $what);
	return;
}

make_table($node, 3000);
$node->stop;
ok(-s $snapshot, 'there is a snapshot after the end');
log_has(qr/the memory is saved to the snapshot "pg_dynshmem\/sherman.snapshot": \d+ MB, \d+ MB\/s/, 'the log says so');
copy($snapshot, $old) or die 'could not copy the snapshot';
lose_memory($node);
$node->start;
is_whole($node, 'after a restart of the machine');
log_has(qr/the snapshot "pg_dynshmem\/sherman.snapshot" is loaded/, 'the log says where it is from');
ok(!-e $snapshot, 'the snapshot was used up');

# Again, with changes of all kinds.
insert($node, 2000);
$node->safe_psql('postgres', 'DELETE FROM t WHERE id % 7 = 0; VACUUM t; INSERT INTO t SELECT g, md5(g::text) FROM generate_series(7, 5000, 7) g');
$node->stop;
lose_memory($node);
$node->start;
is_whole($node, 'after the next one');

# Without one the memory is what is there.
$node->restart;
is_whole($node, 'the memory is kept');
ok(!-e $snapshot, 'and no snapshot stays');

# An older snapshot is put back, in place of the one that was used, and in place of a newer one.
$node->stop;
lose_memory($node);
copy($old, $snapshot) or die 'could not put the snapshot back';
$node->start;
is_broken($node, 'an older snapshot');
$node->stop;
move($snapshot, $old) or die 'could not move the snapshot';
$node->start;
is_whole($node, 'without the snapshot, the memory');
$node->safe_psql('postgres', 'DELETE FROM t WHERE id = 1');
insert($node, 1);
$node->safe_psql('postgres', 'INSERT INTO t VALUES (1, NULL)');
$node->stop('immediate');
lose_memory($node);
copy($old, $snapshot) or die 'could not put the snapshot back';
$node->start;
is_broken($node, 'the snapshot of before a crash');

# A crash after the snapshot was used: the memory is there, and what was changed is healed, as without snapshots.
$node->safe_psql('postgres', 'CREATE TABLE u (id int); CREATE INDEX u_id ON u USING sherman (id); INSERT INTO u SELECT generate_series(1, 100)');
$node->stop;
lose_memory($node);
$node->start;
is(state_of($node, 'u_id'), 'ok', 'a second table, good after the restart');
insert($node, 10);
$node->stop('immediate');
ok(!-e $snapshot, 'a server that is stopped at once leaves no snapshot');
$node->start;
is(state_of($node, 'u_id'), 'ok', 'after a crash what was not changed is good');
is(state_of($node, 't_id'), 'healing', 'what was changed is in doubt');
is($node->safe_psql('postgres', "SELECT sherman_heal('t_id') + sherman_heal('t_pad')"), '0', 'and healed');
is_whole($node, 'healed');

# A damaged one is refused, and kept aside.
$node->stop;
lose_memory($node);
open(my $file, '+<', $snapshot) or die "$snapshot: $!";
seek($file, 20000, 0);
print {$file} 'damage';
close $file;
$node->start;
# Behind that the memory node is there.
is_broken($node, 'a damaged snapshot');
ok(glob("$snapshot.kept-damaged-*") && !-e $snapshot, 'a damaged snapshot is kept aside');
log_has(qr/WARNING: .*is refused: the checksum of a block is wrong/, 'the log says why');

# Another history: the snapshot goes with the memory.
$node->safe_psql('postgres', 'REINDEX INDEX u_id');
$node->stop;
unlink $node->data_dir . '/pg_dynshmem/sherman.state' or die 'could not remove the state file';
lose_memory($node);
$node->start;
log_has(qr/"pg_dynshmem\/sherman.snapshot" is not used any more, and is kept as/, 'a snapshot of a history that is not ours is set aside');
is($node->safe_psql('postgres', q{SELECT string_agg(kind || ' ' || coalesce(reason, '-'), ', ' ORDER BY kind, reason) FROM sherman_files()
	WHERE path LIKE 'pg_dynshmem%'}), 'kept damaged, kept unproven, state file -', 'both are shown, with the reason');
my $kept = $node->safe_psql('postgres', q{SELECT path FROM sherman_files() WHERE reason = 'unproven' AND bytes > 0 AND since > now() - interval '1 hour'});
# Another server's memory lies beside ours.
my $beside = new_cluster('beside', start => 0);
my $others = q{SELECT string_agg(reason, ', ') FROM sherman_files() WHERE kind = 'other memory'};
$beside->append_conf('postgresql.conf', "sherman.embedded_directory = '" . $node->safe_psql('postgres', 'SHOW sherman.embedded_directory') . "'");
is($node->safe_psql('postgres', $others), '', 'there is none');
$beside->start;
is($node->safe_psql('postgres', $others), 'a server that runs uses it', 'that of others is shown, in use');
$beside->stop;
is($node->safe_psql('postgres', $others), 'no server that runs uses it', 'and without its server');
unlink $node->safe_psql('postgres', q{SELECT path FROM sherman_files() WHERE kind = 'other memory'}) or die 'the other memory is not there';
foreach my $other ($snapshot, 'pg_dynshmem/sherman.state', 'PG_VERSION', '../../../etc/passwd', "$kept/../sherman.state")
{
	$status = $node->psql('postgres', "SELECT sherman_remove_file('$other')", stderr => \$stderr);
	like($stderr, qr/is no file that this server has set aside/, "$other is not removed");
}
$node->safe_psql('postgres', 'CREATE ROLE nobody');
isnt($node->psql('postgres', "SET ROLE nobody; SELECT sherman_remove_file('$kept')"), 0, 'nor anything by somebody else');
isnt($node->psql('postgres', 'SET ROLE nobody; SELECT * FROM sherman_files()'), 0, 'who does not see it either');
$node->safe_psql('postgres', "SELECT sherman_remove_file('$kept')");
ok(!-e $node->data_dir . "/$kept", 'a superuser removes what was set aside');
is_broken($node, 'an unproven start');

# Not wanted: decided when the server stops.
$node->append_conf('postgresql.conf', "sherman.embedded_snapshot = off\n");
$node->reload;
$node->stop;
ok(!-e $snapshot, 'without the setting there is no snapshot');
lose_memory($node);
$node->start;
is_broken($node, 'without a snapshot');
is($node->safe_psql('postgres', q{SELECT string_agg(kind, ', ') FROM sherman_files() WHERE kind LIKE '%memory'}), 'memory', 'our own memory is not that of others');
$node->stop;

# ---- memory nodes of their own ----

my $saved = "$PostgreSQL::Test::Utils::tmp_check/saved_$$";

END { unlink $saved, "$saved.old" if defined $saved }

my $msd = Msd->new('saved', transport => 'tcp', size => 16, flags => [ '--snapshot', $saved ]);

$node = new_cluster('main', conf => "sherman.memory_nodes = '" . $msd->address . "'\n");

# Waits until the server is attached to the memory node, in this state or another.
sub wait_attached
{
	return $node->poll_query_until('postgres', "SELECT every(state = 'attached') FROM sherman_stat_memory_nodes");
}

sub wait_away
{
	return $node->poll_query_until('postgres', "SELECT every(state <> 'attached') FROM sherman_stat_memory_nodes");
}

# Waits until the launcher has attached anew, behind this place of the log: before, it may not know yet that it has to.
sub wait_attached_since
{
	my $offset = shift;

	foreach my $i (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return 1 if slurp_file($node->logfile, $offset) =~ /attached to memory node 0/;
		usleep(100_000);
	}
	return 0;
}

ok(wait_attached(), 'attached to the memory node');
make_table($node, 3000);

# The memory node's machine is restarted; the server runs on.
is($msd->stop, 0, 'the memory node ends');
ok(-s $saved, 'there is a snapshot');
copy($saved, "$saved.old") or die 'could not copy the snapshot';
ok(wait_away(), 'the server sees that');
$msd->lose_memory;
$msd->start;
ok(wait_attached(), 'and that it is back');
is_whole($node, 'after a restart of the memory node\'s machine');
ok(!-e $saved, 'the snapshot was used up');
insert($node, 500);

# Both machines.
$node->stop;
is($msd->stop, 0, 'the memory node ends');
$msd->lose_memory;
$msd->start;
$node->start;
ok(wait_attached(), 'attached');
is_whole($node, 'after a restart of both');
insert($node, 500);

# An older one, while the server runs.
is($msd->stop, 0, 'the memory node ends');
ok(wait_away(), 'the server sees that');
$msd->lose_memory;
move("$saved.old", $saved) or die 'could not put the snapshot back';
$msd->start;
ok(wait_attached(), 'attached');
is_broken($node, 'an older snapshot');

# A session that finds the memory node again before the launcher has: it may change nothing there, or a copy of the snapshot could not be
# told from what is there then.
my ($launcher) = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'sherman launcher'");
kill 'STOP', $launcher;
is($msd->stop, 0, 'the memory node ends');
copy($saved, "$saved.old") or die 'could not copy the snapshot';
$msd->start;
$status = $node->psql('postgres', "INSERT INTO t VALUES (0, 'ahead of the launcher')", stderr => \$stderr);
isnt($status, 0, 'an insert ahead of the launcher is refused');
is($msd->stop, 0, 'the memory node ends');
$msd->lose_memory;
move("$saved.old", $saved) or die 'could not put the snapshot back';
$msd->start;
my $offset = -s $node->logfile;
kill 'CONT', $launcher;
ok(wait_attached_since($offset), 'attached');
is_whole($node, 'a snapshot that nothing was changed after');

$node->stop;
$msd->stop;
done_testing();

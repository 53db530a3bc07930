
# The embedded memory node and files of another history that cannot be set aside, as so many were already: it does not serve, and they
# stay as they are, until somebody makes room.

use strict;
use warnings;

use Digest::MD5 qw(md5_hex);
use File::Copy;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

# SET_ASIDE_MOST of rdma/memory/set_aside.h.
my $most = 16;

my $node = new_cluster('embedded', memory => 16, conf => "sherman.attach_timeout = 1s\n");
my $snapshot = $node->data_dir . '/pg_dynshmem/sherman.snapshot';

sub content
{
	return md5_hex(slurp_file($snapshot));
}

# Another history: the machine was restarted, and the state file is gone.
sub forget_history
{
	unlink $node->data_dir . '/pg_dynshmem/sherman.state' or die 'could not remove the state file';
	foreach my $memory (memory_files($node))
	{
		unlink $memory or die "$memory: $!";
	}
	return;
}

# That stands, as long as it is tried again.
sub is_held
{
	ok($node->poll_query_until('postgres',
			q{SELECT count(*) > 0 FROM sherman_stat_memory_nodes WHERE reason LIKE '%files of another history are in its way%'}),
		'the memory node does not serve, and says why');
	return;
}

sub answers
{
	my $when = shift;

	is($node->safe_psql('postgres', 'SELECT count(*), sum(id) FROM t WHERE id > 500'), '500|375250', "the answer is right $when");
	return;
}

$node->safe_psql('postgres', 'CREATE TABLE t (id int); INSERT INTO t SELECT generate_series(1, 1000); CREATE INDEX t_id ON t USING sherman (id)');
$node->stop;
ok(-s $snapshot, 'there is a snapshot');
my $before = content();
my @kept = map { sprintf '%s.kept-damaged-20260101T0000%02dZ', $snapshot, $_ } 1 .. $most;
copy($snapshot, $_) or die "could not copy the snapshot: $!" foreach @kept;
forget_history();

my $offset = -s $node->logfile;
$node->start;
is_held();
my $log = slurp_file($node->logfile, $offset);
like($log, qr/WARNING:  "pg_dynshmem\/sherman.snapshot" does not fit this data directory's history, and cannot be set aside/, 'the log says so');
like($log, qr/HINT:  SELECT \* FROM sherman_files\(\) shows what was set aside/, 'and what to do');
answers('without a memory node');
is(content(), $before, 'the snapshot is as it was');
is($node->safe_psql('postgres', q{SELECT count(*) FROM sherman_files() WHERE kind = 'kept'}), $most, 'what was set aside is shown');
is(scalar(grep { -e } @kept), $most, 'nothing of it was removed');

# As long as there is no room it stays so, over restarts, too.
$node->restart;
is_held();
answers('behind a restart');
is(content(), $before, 'the snapshot is as it was, behind a restart');
is(scalar(grep { -e } @kept), $most, 'and so is the rest');

# The state file, too: in its place is one of another history, perhaps.
my $state = $node->data_dir . '/pg_dynshmem/sherman.state';
my @states = map { sprintf '%s.kept-not-ours-20260101T0000%02dZ', $state, $_ } 1 .. $most;
$node->stop;
append_to_file($_, 'kept') foreach @states;
rename $state, "$state.good" or die "rename: $!";
append_to_file($state, "another server's");
foreach my $when ('once', 'twice')
{
	$node->start;
	answers("with another server's state file, $when");
	is_held();
	$node->stop;
	is(slurp_file($state), "another server's", 'the state file is as it was');
	is(content(), $before, 'and so is the snapshot');
}
unlink $state, @states;
rename "$state.good", $state or die "rename: $!";
$node->start;

$node->safe_psql('postgres', "SELECT sherman_remove_file('pg_dynshmem/" . ($kept[0] =~ s/.*\///r) . "')");
$node->restart;
$node->poll_query_until('postgres', q{SELECT every(state = 'attached') FROM sherman_stat_memory_nodes}) or die 'not attached';
my ($aside) = grep { my $file = $_; !grep { $_ eq $file } @kept } glob("$snapshot.kept-*");
ok(defined $aside && md5_hex(slurp_file($aside)) eq $before, 'with room the snapshot is set aside');
is(state_of($node, 't_id'), 'broken', 'the index is broken');
answers('without the index');
$node->safe_psql('postgres', 'REINDEX TABLE t');
is(check_index($node, 't_id'), '0', 'and good behind REINDEX');
answers('through the index');

$node->stop;
done_testing();

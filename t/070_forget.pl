# From the embedded memory node to memory nodes of one's own, and one of these off again: what is left behind is forgotten, and its indexes
# are rebuilt elsewhere.  No table refuses a row for longer than the administrator wants.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('main', conf => Msd::configuration() . "sherman.memory_nodes = ''\nsherman.auto_rebuild = off\n");
my ($stdout, $stderr);

sub set_nodes
{
	my $list = join(', ', @_);

	$node->adjust_conf('postgresql.conf', 'sherman.memory_nodes', "'$list'");
	$node->reload;
	return;
}

sub fails
{
	my ($sql, $like, $what) = @_;

	$node->psql('postgres', "\\set VERBOSITY verbose\n$sql", stdout => \$stdout, stderr => \$stderr);
	like($stderr, $like, $what);
	return;
}

sub pending
{
	return "(SELECT pending_restart FROM pg_settings WHERE name = 'sherman.memory_nodes')";
}

sub state
{
	my $what = shift;

	return "(SELECT state FROM sherman_stat_indexes WHERE indexrelid = '$what'::regclass)";
}

sub reason
{
	my $what = shift;

	return "(SELECT reason FROM sherman_stat_indexes WHERE indexrelid = '$what'::regclass)";
}

sub whole
{
	my $rows = $node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM t WHERE a > 0');

	is($rows, $node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; SELECT count(*) FROM t WHERE a > 0'),
		"$_[0]: all rows");
	is(check_index($node, 't_a'), 0, "$_[0]: the index is whole");
	return;
}

$node->safe_psql('postgres', q(
	CREATE TABLE t (a int);
	INSERT INTO t SELECT generate_series(1, 2000);
	CREATE UNIQUE INDEX t_a ON t USING sherman (a);
	CREATE ROLE somebody;));

# To a memory node of one's own.
my $first = Msd->new('first');
set_nodes($first->address);
ok($node->poll_query_until('postgres', 'SELECT ' . pending()), 'pg_settings says that it takes a restart');
like($node->safe_psql('postgres', 'SELECT reason FROM sherman_stat_memory_nodes'), qr/was changed, which takes a restart/, 'and so does the memory node in use');
fails('SELECT sherman_forget_memory_node(0)', qr/ERROR:  55006: .*cannot be forgotten.*HINT: .*sherman\.memory_nodes/s,
	'the one in use is not forgotten');
set_nodes();
ok($node->poll_query_until('postgres', 'SELECT NOT ' . pending()), 'back to what it was: no restart');
set_nodes($first->address);
$node->restart;
is($node->safe_psql('postgres', 'SELECT ' . pending()), 'f', 'after the restart it is in use');
ok($node->poll_query_until('postgres', "SELECT state = 'attached' FROM sherman_stat_memory_nodes WHERE position = 1"), 'a second position');
is($node->safe_psql('postgres', 'SELECT ' . state('t_a')), 'unreachable', 'what lies in the embedded memory is unreachable, and nobody waits for it');
like($node->safe_psql('postgres', 'SELECT ' . reason('t_a')), qr/memory node 0 \("shm:[^"]*"\) is not in "sherman\.memory_nodes"/, 'the setting is the reason');
unlike($node->safe_psql('postgres', 'SET ROLE somebody; SELECT ' . reason('t_a')), qr/shm:/, 'not everybody is told where it was');
like($node->safe_psql('postgres', 'SET ROLE somebody; SELECT ' . reason('t_a')), qr/memory node 0 is not in "sherman\.memory_nodes"/, 'but why');
fails('INSERT INTO t VALUES (0)', qr/ERROR:  08006/, 'a unique index refuses');
fails('SET ROLE somebody; SELECT sherman_forget_memory_node(0)', qr/ERROR:  42501/, 'nobody but a superuser forgets a memory node');
fails('SELECT sherman_forget_memory_node(1)', qr/ERROR:  55006/, 'one that is attached is not forgotten');
fails("SELECT sherman_forget_memory_node($_)", qr/ERROR:  42704: .*there is no memory node/, "there is no memory node $_") for (-1, 2, 31, 32, 2147483647);
$node->safe_psql('postgres', 'SELECT sherman_forget_memory_node(0)');
is($node->safe_psql('postgres', 'SELECT ' . state('t_a')), 'broken', 'it is broken');
like($node->safe_psql('postgres', 'SELECT ' . reason('t_a')), qr/given up by sherman_forget_memory_node/, 'and the view says why');
is($node->safe_psql('postgres', q{SELECT memory_nodes IS NULL FROM sherman_stat_indexes WHERE indexrelname = 't_a'}), 't', 'it lies on none any more');
is($node->safe_psql('postgres', 'SELECT count(*) FROM sherman_stat_memory_nodes'), 1, 'one memory node is left');
fails('SELECT sherman_forget_memory_node(0)', qr/ERROR:  42704/, 'it is forgotten once');
$node->safe_psql('postgres', 'REINDEX INDEX t_a; INSERT INTO t VALUES (100000)');
whole('rebuilt');

# One more; then the first is taken off for good.
my $second = Msd->new('second');
set_nodes($first->address, $second->address);
ok($node->poll_query_until('postgres', "SELECT count(*) = 2 FROM sherman_stat_memory_nodes WHERE state = 'attached'"), 'two memory nodes');
my $position = $node->safe_psql('postgres', "SELECT position FROM sherman_stat_memory_nodes WHERE address = '" . $first->address . "'");
$first->stop;
ok($node->poll_query_until('postgres', "SELECT state <> 'attached' FROM sherman_stat_memory_nodes WHERE position = $position"), 'one has ended');
fails("SELECT sherman_forget_memory_node($position)", qr/ERROR:  55006: .*in the list/s, 'as long as it is in the list it may come back');
set_nodes($second->address);
ok($node->poll_query_until('postgres', 'SELECT sherman_forget_memory_node(' . $position . ') IS NOT NULL'), 'behind the reload it is forgotten');
is($node->safe_psql('postgres', 'SELECT ' . state('t_a')), 'broken', 'what lay on it is broken');
like($node->safe_psql('postgres', 'SELECT ' . reason('t_a')), qr/given up by sherman_forget_memory_node/, 'with that reason');
unlike($node->safe_psql('postgres', q{SELECT coalesce(memory_nodes::text, '') FROM sherman_stat_indexes WHERE indexrelname = 't_a'}), qr/\b$position\b/,
	'the memory node is not named any more');

# That outlives a crash, and the memory node's coming back.
$node->stop('immediate');
$first->start;
set_nodes_in_file($second->address, $first->address);
$node->start;
ok($node->poll_query_until('postgres', "SELECT count(*) = 2 FROM sherman_stat_memory_nodes WHERE state = 'attached'"), 'it is back, as a new one');
is($node->safe_psql('postgres', 'SELECT ' . state('t_a')), 'broken', 'what was broken stays so');
isnt($node->safe_psql('postgres', 'SELECT ' . reason('t_a')), '', 'with a reason');
$node->safe_psql('postgres', 'REINDEX INDEX t_a; INSERT INTO t VALUES (100001)');
whole('rebuilt once more');
$node->stop;

done_testing();

sub set_nodes_in_file
{
	$node->adjust_conf('postgresql.conf', 'sherman.memory_nodes', "'" . join(', ', @_) . "'");
	return;
}

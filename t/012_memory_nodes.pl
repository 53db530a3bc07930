
# Memory nodes of their own instead of the embedded one: an index that lies on two of them, each of which comes and goes.

use strict;
use warnings;

use FindBin;
use IPC::Run;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;
use Time::HiRes qw(usleep);

my ($stdout, $stderr, $status);
my @msd = (Msd->new('a'), Msd->new('b'));
my $node = new_cluster('main', conf => "sherman.attach_timeout = 2s\nsherman.operation_timeout = 10s\n", start => 0);

sub set_nodes
{
	my $list = join(', ', @_);

	$node->adjust_conf('postgresql.conf', 'sherman.memory_nodes', "'$list'");
	$node->reload;
	return;
}

# One column of the view for all positions in order, as "a|b".
sub nodes
{
	my $column = shift;

	return $node->safe_psql('postgres', "SELECT string_agg(coalesce($column\::text, '-'), '|' ORDER BY position) FROM sherman_memory_nodes");
}

sub wait_for
{
	my ($column, $value) = @_;

	return $node->poll_query_until('postgres',
		"SELECT string_agg(coalesce($column\::text, '-'), '|' ORDER BY position) = '$value' FROM sherman_memory_nodes");
}

sub wait_for_state
{
	my ($index, $state, $database) = @_;

	return $node->poll_query_until($database // 'postgres', "SELECT state = '$state' FROM sherman_indexes WHERE index = '$index'::regclass");
}

sub lies_on
{
	my $index = shift;

	return $node->safe_psql('postgres', "SELECT memory_nodes FROM sherman_indexes WHERE index = '$index'::regclass");
}

# Runs SQL that must fail; returns the error.
sub fails
{
	my ($sql, $what) = @_;

	$status = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql", stdout => \$stdout, stderr => \$stderr);
	isnt($status, 0, $what);
	return $stderr;
}

# What a query says by the index and without it.
sub same_answers
{
	my ($what) = @_;
	my $query = 'SELECT count(*), sum(hashint8(id)), min(id), max(id) FROM rows WHERE id >= 0';
	my $heap = $node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; $query");

	is($node->safe_psql('postgres', "SET enable_seqscan = off; $query"), $heap, "$what: index and table have the same rows");
	is(check_index($node, 'rows_id'), '0', "$what: the index is whole");
	return;
}

#
# Setting up.
#
$node->append_conf('postgresql.conf', "sherman.memory_nodes = ''\n");
$node->adjust_conf('postgresql.conf', 'sherman.memory_nodes', "'" . $msd[0]->address . ', ' . $msd[1]->address . "'");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION sherman');
ok(wait_for('state', 'attached|attached'), 'both memory nodes are attached');
is(nodes('address'), join('|', map { $_->address } @msd), 'in the order of the list');
is(nodes('transport'), 'shm|shm', 'the transport is shown');
like(nodes('capabilities'), qr/operations atomic/, 'and what it can do');
is(scalar(memory_files($node)), 0, 'there is no embedded memory node');

foreach my $bad ('host', 'host:', ':5', 'host:0', 'host:70000', 'ho st:5', 'tcp:', 'udp:h:5', 'shm:relative', 'a:1,,b:2', 'a:1, tcp:a:1', '[::1:5')
{
	like(fails("ALTER SYSTEM SET sherman.memory_nodes = '$bad'", "'$bad' is refused"), qr/ERROR:  22023: .*DETAIL: /s, 'with a reason');
}
foreach my $good ('', 'host:1', ' tcp:host.domain:65535 , shm:/a/path,[::1]:7000, verbs:h:1', '10.0.0.1:7000')
{
	$node->safe_psql('postgres', "ALTER SYSTEM SET sherman.memory_nodes = '$good'");
	pass("'$good' is taken");
}
$node->safe_psql('postgres', 'ALTER SYSTEM RESET sherman.memory_nodes');

#
# Work.
#
$node->safe_psql(
	'postgres', q{
	CREATE TABLE rows (id bigint, word text);
	INSERT INTO rows SELECT (g * 7919) % 200003, md5(g::text) FROM generate_series(1, 200000) g;
	CREATE INDEX rows_id ON rows USING sherman (id);
	CREATE INDEX rows_word ON rows USING sherman (word);
	ANALYZE rows;
});
is(lies_on('rows_id'), '{0,1}', 'an index lies on both');
is(lies_on('rows_word'), '{0,1}', 'the other one too');
is($node->safe_psql('postgres', 'SELECT max(memory_used) <= 1.25 * avg(memory_used) AND min(memory_used) >= 0.75 * avg(memory_used) FROM sherman_memory_nodes'),
	't', 'each memory node has its part');
same_answers('after the build');
$node->safe_psql('postgres', 'INSERT INTO rows SELECT 300000 + g, md5(g::text) FROM generate_series(1, 50000) g');
$node->safe_psql('postgres', 'DELETE FROM rows WHERE id % 3 = 0; VACUUM rows');
same_answers('after inserts and VACUUM');
is(check_index($node, 'rows_word'), '0', 'the other one is whole');

$node->restart;
is(state_of($node, 'rows_id'), 'ok', 'good after a restart');
same_answers('after a restart');

# The order of the list means nothing.
set_nodes($msd[1]->address, $msd[0]->address);
$node->restart;
is(state_of($node, 'rows_id'), 'ok', 'good with the list the other way round');
is(nodes('address'), join('|', map { $_->address } @msd), 'positions stay with their memory');
same_answers('with the list the other way round');
set_nodes($msd[0]->address, $msd[1]->address);

$node->stop;
done_testing();

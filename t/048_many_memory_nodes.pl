
# As many memory nodes as one server can have: an index lies on all of them, the last one comes and goes, and one more is refused.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

use constant NODES => 32;

my @msd = map { Msd->new("n$_", size => 8, flags => [ '--channels', '64', '--trees', '64' ]) } 0 .. NODES - 1;
my $list = join(', ', map { $_->address } @msd);
my $node = new_cluster('main', conf => "sherman.memory_nodes = '$list'\nsherman.operation_timeout = 10s\n" . Msd::configuration());
my ($stdout, $stderr);

sub attached
{
	my $count = shift;

	return $node->poll_query_until('postgres', "SELECT count(*) = $count FROM sherman_stat_memory_nodes WHERE state = 'attached'");
}

sub same_answers
{
	my $what = shift;

	is(check_index($node, 'rows_id'), '0', "$what: the index is whole");
	is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*), sum(id) FROM rows WHERE id BETWEEN 1000 AND 90000'),
		'89001|4049545500', "$what: and answers");
	return;
}

ok(attached(NODES), 'all of them are attached');

# One more.
isnt($node->psql('postgres', "\\set VERBOSITY verbose\nALTER SYSTEM SET sherman.memory_nodes = '$list, shm:/one/more'", stdout => \$stdout, stderr => \$stderr),
	0, 'one more is refused');
like($stderr, qr/ERROR:  22023: .*DETAIL:  There are more than 32 memory nodes\./s, 'with the number that there can be');

# An index that grows by a build and by inserts.
$node->safe_psql(
	'postgres', q{
	CREATE TABLE rows AS SELECT g AS id FROM generate_series(1, 200000) g;
	CREATE INDEX rows_id ON rows USING sherman (id);
	INSERT INTO rows SELECT 1000000 + (g * 7919) % 150001 FROM generate_series(1, 150000) g;
	ANALYZE rows;
});
is($node->safe_psql('postgres', q{SELECT memory_nodes = array(SELECT generate_series(0, 31)) FROM sherman_stat_indexes WHERE indexrelid = 'rows_id'::regclass}),
	't', 'an index lies on all of them');
same_answers('made');

# The last one.
$msd[-1]->crash;
ok(attached(NODES - 1), 'the last one is killed');
is($node->safe_psql('postgres', q{SELECT string_agg(position::text, ',') FROM sherman_stat_memory_nodes WHERE state <> 'attached'}), NODES - 1, 'and no other is away');
is(state_of($node, 'rows_id'), 'unreachable', 'the index is unreachable');
isnt($node->psql('postgres', "\\set VERBOSITY verbose\nINSERT INTO rows SELECT g FROM generate_series(1, 100000) g", stdout => \$stdout, stderr => \$stderr), 0,
	'inserts fail');
like($stderr, qr/ERROR:  08006: /, 'with 08006');
$msd[-1]->start;
ok(attached(NODES), 'it comes back');
same_answers('back');

# What the state file and the metapage say of all of them.
$node->restart;
ok(attached(NODES), 'all are attached after a restart');
is(state_of($node, 'rows_id'), 'ok', 'the index is good');
same_answers('restarted');

$node->stop;
done_testing();

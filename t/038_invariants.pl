
# Invariants of crash safety that no other test is about (doc/internals/invariants.md).  Nothing is taken out of an index before the WAL that it follows
# from is flushed, and the removal noted (N10): so a crash right behind VACUUM, or behind healing, costs no index.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('main', conf => "synchronous_commit = off\nwal_writer_delay = 10s\nbgwriter_lru_maxpages = 0\n");
my $rows = 'SELECT count(*), sum(k) FROM removed WHERE k > 0';

# Index and table say the same, and the index is not lost.
sub not_lost
{
	my ($what) = @_;

	like(state_of($node, 'removed_k'), qr/^(healing|ok)$/, "$what: the index is not broken");
	is($node->safe_psql('postgres', "SET enable_seqscan = off; SET enable_bitmapscan = off; $rows"),
		$node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; $rows"),
		"$what: index and table say the same");
	is(check_index($node, 'removed_k'), '0', "$what: the index is whole");
	return;
}

$node->safe_psql('postgres', q{
	CREATE TABLE removed (k int);
	INSERT INTO removed SELECT generate_series(1, 1000);
	CREATE INDEX removed_k ON removed USING sherman (k)});
$node->restart;

# The deletions are not flushed by anybody but VACUUM. The last rows stay, so that the table is not truncated, which flushes, too.
lose($node, 'INSERT INTO removed VALUES (1001)', 'DELETE FROM removed WHERE k BETWEEN 100 AND 600', 'VACUUM removed');
start_again($node);
not_lost('a crash behind VACUUM');
is($node->safe_psql('postgres', 'SELECT count(*) FROM removed'), '500', 'what VACUUM has taken away is deleted');

# Healing takes away what was lost, and is lost itself.
lose($node, 'INSERT INTO removed SELECT generate_series(2001, 2500)');
start_again($node);
lose($node, 'INSERT INTO removed VALUES (1002)', 'DELETE FROM removed WHERE k < 50', q{SELECT sherman_heal('removed_k')});
start_again($node);
not_lost('a crash behind healing');

$node->stop;
done_testing();

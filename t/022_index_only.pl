
# Index-only scans beside updates and VACUUM: every snapshot has each key once, so a row that comes back from the dead, or one
# that is missed, changes count or sum (doc/internals/index-only-scans.md).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('main', conf => "autovacuum = off\nfsync = off\n");

$node->safe_psql(
	'postgres', q{
	CREATE TABLE whole (k int, version int, word text COLLATE "C");
	INSERT INTO whole SELECT g, 0, 'word ' || g FROM generate_series(1, 2000) g;
	CREATE INDEX whole_k ON whole USING sherman (k) INCLUDE (version);
	CREATE INDEX whole_word ON whole USING sherman (word) INCLUDE (k);
});
$node->safe_psql('postgres', 'VACUUM ANALYZE whole');

my $settings = 'SET enable_seqscan = off; SET enable_bitmapscan = off;';
my ($forward, $backward) = ('SELECT k FROM whole WHERE k > 0 ORDER BY k', q{SELECT k FROM whole WHERE word > 'w' ORDER BY word DESC});
for my $query ($forward, $backward)
{
	like($node->safe_psql('postgres', "$settings EXPLAIN $query"), qr/Index Only Scan/, $query);
}

# A division by zero where a snapshot has other rows.
$node->pgbench(
	'--no-vacuum --client=6 --jobs=2 --transactions=600 --max-tries=1',
	0,
	[qr{number of failed transactions: 0 \(0.000%\)}],
	[qr{^$}],
	'6 clients with 600 transactions each',
	{
		'update@20' => q{
			\set k random(1, 2000)
			UPDATE whole SET version = version + 1 WHERE k = :k;
		},
		'vacuum@3' => q{
			VACUUM whole;
		},
		'forward@1' => qq{
			$settings
			SELECT 1 / (count(*) = 2000 AND sum(k) = 2001000)::int FROM ($forward) s;
		},
		'backward@1' => qq{
			$settings
			SELECT 1 / (count(*) = 2000 AND sum(k) = 2001000)::int FROM ($backward) s;
		}
	});

is(check_index($node, 'whole_k'), '0', 'the index is its table');
is(check_index($node, 'whole_word'), '0', 'and so is the other');
$node->stop;
done_testing();

# Many indexes at once: one statement and one transaction over 1,200 partitions, while another session holds them all; shared memory that
# dropped indexes had is used again; a session that is told of changes by others keeps its handles.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $PARTITIONS = 1200;
my $node = new_cluster('main', conf => "sherman.embedded_memory = 512MB\nmax_locks_per_transaction = 256\n");

$node->safe_psql('postgres', 'CREATE TABLE t (a int); CREATE INDEX t_a ON t USING sherman (a); INSERT INTO t VALUES (1)');
my $used = used($node);
$node->safe_psql('postgres', join ";\n", 'CREATE TABLE p (a int, b int) PARTITION BY LIST (a)',
	(map { "CREATE TABLE p$_ PARTITION OF p FOR VALUES IN ($_)" } 1 .. $PARTITIONS),
	'CREATE INDEX ON p USING sherman (b)');
is(trees($node), $PARTITIONS + 1, 'an index for each partition');

# A session whose transaction holds all of them.
my $holder = $node->background_psql('postgres');
$holder->query_safe('BEGIN');
$holder->query_safe("INSERT INTO p SELECT i, i FROM generate_series(1, $PARTITIONS) i");
my $idle = $node->background_psql('postgres');
$idle->query_safe('BEGIN; SET enable_seqscan = off');
is($idle->query_safe('SELECT count(*) FROM p WHERE b >= 0'), 0, 'another session has all of them open, too');

$node->safe_psql('postgres', "INSERT INTO p SELECT i, i FROM generate_series(1, $PARTITIONS) i");
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM t WHERE a = 1'), 1, 'a third one uses another index');
$node->safe_psql('postgres', 'VACUUM t');
$holder->query_safe('COMMIT');
$holder->quit;
$idle->quit;
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*), sum(b) FROM p WHERE b > 0'),
	join('|', 2 * $PARTITIONS, $PARTITIONS * ($PARTITIONS + 1)), 'all rows are there');
is(check_index($node, "p$_"."_b_idx"), 0, "index $_ is whole") for (1, 600, $PARTITIONS);

# A transaction in which others' ANALYZE invalidates the index again and again: it opens the index once.
$node->safe_psql('postgres', "ALTER TABLE t SET (autovacuum_enabled = off)");
my $long = $node->background_psql('postgres');
$long->query_safe('BEGIN; SET enable_seqscan = off');
$long->query_safe('SELECT count(*) FROM t WHERE a = 1');
my $before = $long->query_safe("SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'sherman index'");
for (1 .. 20)
{
	$node->safe_psql('postgres', 'ANALYZE t');
	$long->query_safe('SELECT count(*) FROM t WHERE a = 1');
}
is($long->query_safe("SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'sherman index'"), $before,
	'handles do not pile up in a transaction');
$long->query_safe('COMMIT');
$long->quit;

$node->safe_psql('postgres', 'DROP TABLE p');
ok(wait_until_used($node, $used), 'the trees of dropped partitions are freed');
$node->stop;

done_testing();

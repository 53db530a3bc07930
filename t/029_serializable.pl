
# SERIALIZABLE where no leaf can be named: an index that has no tree yet, and one that is broken by now.  The first transaction of
# each pair has read that there is no such row, and is prepared; the second one inserts it, and reads what the first one wrote.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

# Sessions connect for themselves: a connection worker would have its connection before the memory node is stopped (break_index).
my $node = new_cluster('main',
	conf => "max_prepared_transactions = 4\nenable_seqscan = off\nenable_bitmapscan = off\nsherman.connection_workers = 0\n");

my $memory_node;

END { kill 'CONT', $memory_node if $memory_node }

sub sql
{
	return $node->safe_psql('postgres', shift);
}

# The first transaction: reads the table by its index, writes to another one.
sub read_and_prepare
{
	my $table = shift;

	is(sql("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM $table WHERE k = 42; INSERT INTO beside_$table VALUES (1);
		PREPARE TRANSACTION 'of_$table'"), '0', "$table: a transaction finds no row");
}

# The second one: SQLSTATE, or nothing if it commits.
sub write_and_read
{
	my $table = shift;
	my $stderr;

	$node->psql('postgres', "\\set VERBOSITY verbose\nBEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM beside_$table;
		INSERT INTO $table VALUES (42); COMMIT", stderr => \$stderr);
	return $stderr =~ /ERROR:  (\w{5})/ ? $1 : '';
}

# The memory node does not answer a session that is new to it, whose insert marks the index as broken and goes on.
sub break_index
{
	my $table = shift;

	sql("ALTER SYSTEM SET sherman.operation_timeout = '1s'");
	sql("ALTER SYSTEM SET sherman.attach_timeout = '1s'");
	$node->reload;
	$memory_node = node_pid($node);
	kill 'STOP', $memory_node;
	for my $try (1 .. 300)
	{
		last if slurp_file("/proc/$memory_node/stat") =~ /^\d+ \(.*\) T/;
		select(undef, undef, undef, 0.1);
	}
	sql("SET client_min_messages = error; SET sherman.on_unavailable = break; INSERT INTO $table VALUES (-1)");
	sql('ALTER SYSTEM RESET ALL');
	$node->reload;
	kill 'CONT', $memory_node;
	$node->poll_query_until('postgres', q{SELECT state = 'attached' FROM sherman_stat_memory_nodes}) or die 'not attached again';
}

sql(q{
	CREATE UNLOGGED TABLE fresh (k int);
	CREATE INDEX fresh_k ON fresh USING sherman (k);
	INSERT INTO fresh SELECT generate_series(1, 10);
	CREATE TABLE beside_fresh (n int);
	CREATE TABLE beside_lost (n int);
});

# A crash empties the unlogged table, whose index has no tree then.
$node->stop('immediate');
$node->start;
is(state_of($node, 'fresh_k'), 'ok', 'an index is empty');
is(sql(q{SELECT tree IS NULL FROM sherman_stat_indexes WHERE indexrelid = 'fresh_k'::regclass}), 't', 'it has no tree');
ok(uses_index($node, 'fresh_k', 'SELECT count(*) FROM fresh WHERE k = 42'), 'rows are looked for by it');
read_and_prepare('fresh');
is(write_and_read('fresh'), '40001', 'who inserts the row into the index without a tree conflicts with who found none');
sql("COMMIT PREPARED 'of_fresh'");
is(write_and_read('fresh'), '', 'behind it nobody is in the way');
is(sql('SELECT count(*) FROM fresh WHERE k = 42'), '1', 'the row is there');

# An index is broken between the two.
sql(q{
	CREATE TABLE lost (k int);
	CREATE INDEX lost_k ON lost USING sherman (k);
	INSERT INTO lost SELECT generate_series(1000, 2000);
});
ok(uses_index($node, 'lost_k', 'SELECT count(*) FROM lost WHERE k = 42'), 'rows are looked for by another index');
read_and_prepare('lost');
break_index('lost');
is(state_of($node, 'lost_k'), 'broken', 'it is broken');
is(write_and_read('lost'), '40001', 'so does who inserts a row that the broken index is not told of');
sql("COMMIT PREPARED 'of_lost'");
is(write_and_read('lost'), '', 'behind it nobody is in the way');
sql('REINDEX INDEX lost_k');
is(check_index($node, 'lost_k'), '0', 'the broken index is healed');
$node->stop;

done_testing();

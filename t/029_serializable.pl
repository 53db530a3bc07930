
# SERIALIZABLE where no leaf can be named: an index that has no tree yet, and one that is broken by now.  The first transaction of
# each pair has read that there is no such row, and is prepared; the second one inserts it, and reads what the first one wrote.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('main', conf => "max_prepared_transactions = 4\nenable_seqscan = off\nenable_bitmapscan = off\n");

sub sql
{
	return $node->safe_psql('postgres', shift);
}

# The first transaction: reads the table by its index, writes to "other".
sub read_and_prepare
{
	my $table = shift;

	is(sql("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM $table WHERE k = 42; INSERT INTO other VALUES ('$table');
		PREPARE TRANSACTION 'of_$table'"), '0', "$table: a transaction finds no row");
}

# The second one: SQLSTATE, or nothing if it commits.
sub write_and_read
{
	my ($table, $key) = @_;
	my $stderr;

	$node->psql('postgres', "\\set VERBOSITY verbose\nBEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM other;
		INSERT INTO $table VALUES ($key); COMMIT", stderr => \$stderr);
	return $stderr =~ /ERROR:  (\w{5})/ ? $1 : '';
}

sql(q{
	CREATE TABLE other (who text);
	CREATE UNLOGGED TABLE fresh (k int);
	CREATE INDEX fresh_k ON fresh USING sherman (k);
	CREATE TABLE lost (k int);
	CREATE INDEX lost_k ON lost USING sherman (k);
	INSERT INTO fresh SELECT generate_series(1, 10);
	INSERT INTO lost SELECT generate_series(1000, 2000);
});
ok(uses_index($node, 'lost_k', 'SELECT count(*) FROM lost WHERE k = 42'), 'rows are looked for by the index');
read_and_prepare('lost');

# The crash empties the unlogged table, whose index has no tree then; the memory goes with it.
my @memory = memory_files($node);
$node->stop('immediate');
unlink @memory or die 'could not remove the memory';
$node->start;
is(state_of($node, 'lost_k'), 'broken', 'an index is broken');
is(state_of($node, 'fresh_k'), 'ok', 'another one is empty');
is(sql(q{SELECT tree IS NULL FROM sherman_indexes WHERE index = 'fresh_k'::regclass}), 't', 'it has no tree');
ok(uses_index($node, 'fresh_k', 'SELECT count(*) FROM fresh WHERE k = 42'), 'rows are looked for by it');

read_and_prepare('fresh');
is(write_and_read('fresh', 42), '40001', 'who inserts the row into the index without a tree conflicts with who found none');
is(write_and_read('lost', 42), '40001', 'so does who inserts a row that the broken index is not told of');
sql("COMMIT PREPARED 'of_fresh'; COMMIT PREPARED 'of_lost'");
is(sql('SELECT count(*) FROM other'), '2', 'the first transactions of both pairs commit');

# Behind them nobody is in the way.
is(write_and_read('fresh', 42), '', 'the same is possible now');
is(write_and_read('lost', 42), '', 'and for the broken index');
is(sql('SELECT count(*) FROM fresh WHERE k = 42'), '1', 'the row is there');
sql('REINDEX INDEX lost_k');
is(check_index($node, 'lost_k'), '0', 'the broken index is healed');
$node->stop;

done_testing();


# What an index writes into the WAL: its metapage when it is built, and once in each epoch that changes it; nothing for what becomes
# of its entries.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('main');

# Runs SQL and returns the records that the whole server wrote meanwhile.
sub records_of
{
	my $sql = shift;
	my $begin = $node->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');

	$node->safe_psql('postgres', $sql);
	# Flushed, so that all of it can be read.
	my $end = $node->safe_psql('postgres', 'CREATE TABLE mark (); DROP TABLE mark; SELECT pg_current_wal_flush_lsn()');
	my ($stdout, $stderr) = run_command([ 'pg_waldump', '-p', $node->data_dir . '/pg_wal', '-s', $begin, '-e', $end ]);

	$stdout =~ /rmgr: Transaction/ or die "pg_waldump: $stderr";
	return split(/\n/, $stdout);
}

# How many of them name this table or index.
sub records_about
{
	my ($relation, @records) = @_;
	my $file = $node->safe_psql('postgres', "SELECT pg_relation_filenode('$relation')");

	return scalar grep { m{\brel \d+/\d+/$file\b} } @records;
}

$node->safe_psql('postgres', q{
	CREATE TABLE words (id int, word text);
	INSERT INTO words SELECT g, md5(g::text) FROM generate_series(1, 5000) g});
my @records = records_of('CREATE INDEX words_word ON words USING sherman (word); CREATE INDEX words_id ON words USING sherman (id)');
is(records_about('words_word', @records), 1, 'a build writes a metapage');

@records = records_of(q{
	INSERT INTO words SELECT g, md5(g::text) FROM generate_series(5001, 10000) g;
	COPY words (id) FROM PROGRAM 'seq 20001 20100';
	UPDATE words SET word = md5(word) WHERE id <= 2000;
	DELETE FROM words WHERE id % 3 = 0;
	VACUUM words});
cmp_ok(records_about('words', @records), '>', 10000, 'the table writes its rows');
is(records_about($_, @records), 0, "$_ writes nothing") foreach qw(words_word words_id);
is(scalar(grep { /rmgr: Generic/ } @records), 0, 'nor does anything else in their name');
is(check_index($node, $_), '0', "$_ is whole") foreach qw(words_word words_id);

# In each epoch the first change says so in the metapage.
$node->restart;
@records = records_of('INSERT INTO words SELECT g, md5(g::text) FROM generate_series(40001, 40500) g; DELETE FROM words WHERE id % 5 = 0; VACUUM words');
is(records_about($_, @records), 1, "$_ writes its metapage once in another epoch") foreach qw(words_word words_id);

# That records of an index are seen at all.
$node->safe_psql('postgres', 'CREATE INDEX words_btree ON words (word)');
@records = records_of('INSERT INTO words SELECT g, md5(g::text) FROM generate_series(30001, 30500) g');
cmp_ok(records_about('words_btree', @records), '>=', 500, 'btree writes its entries');
is(records_about('words_word', @records), 0, 'beside it sherman writes nothing');

$node->stop;
done_testing();

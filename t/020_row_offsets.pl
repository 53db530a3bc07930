
# A row's offset in its block has 12 bits in an entry. Heap needs fewer; a table access method with farther rows is refused.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('offsets');
my $library = "$PostgreSQL::Test::Utils::tmp_check/far_rows.so";

system_or_bail(
	$ENV{CC} // 'cc', '-O2', '-fPIC', '-shared',
	'-I' . $node->config_data('--includedir-server'), "$FindBin::RealBin/far_rows.c", '-o', $library);
$node->safe_psql(
	'postgres', qq{
	CREATE FUNCTION far_rows_handler(internal) RETURNS table_am_handler AS '$library' LANGUAGE C;
	CREATE ACCESS METHOD far_rows TYPE TABLE HANDLER far_rows_handler;
	CREATE TABLE t (id int, word text) USING far_rows;
	CREATE INDEX t_id ON t USING sherman (id);
	CREATE INDEX t_word ON t USING sherman (word);
});

# Result of an INSERT whose row has this offset.
sub insert_at
{
	my $offset = shift;

	return $node->psql('postgres',
		"SET far_rows.row_offset = $offset; \\set VERBOSITY verbose\nINSERT INTO t VALUES ($offset, 'word')");
}

my ($status, $stdout, $stderr) = insert_at(4095);
is($status, 0, 'the last offset that fits') or diag($stderr);
my $used = used($node);

foreach my $offset (4096, 65535)
{
	($status, $stdout, $stderr) = insert_at($offset);
	like($stderr, qr/ERROR:  0A000: access method "sherman" does not support row offsets above 4095/, "offset $offset");
	like($stderr, qr/DETAIL:  Index "t_id" was given row \(0,$offset\)\./, 'which row');
}
is(used($node), $used, 'no memory was taken');
is(state_of($node, $_), 'ok', "$_ is good") foreach 't_id', 't_word';
is($node->safe_psql('postgres', 'SELECT id FROM t'), '4095', 'the rows are not there');
is( $node->safe_psql('postgres', "SELECT inserts FROM sherman_index_counters('t_id')"), 1,
	'nor are their entries');

$node->stop;
done_testing();


# A table t (id, pad) whose rows are numbered from 1 on, with an index of each kind, and whether they are all there: for tests of what
# becomes of memory nodes and of their servers.

package Rows;

use strict;
use warnings;

use Exporter 'import';
use Sherman;
use Test::More;

our @EXPORT = qw(make_table insert row_count is_whole lose_memory);

# Those that the test has inserted.
my $rows = 0;

sub row_count
{
	return $rows;
}

# So many more.
sub insert
{
	my ($node, $count) = @_;

	$node->safe_psql('postgres', "INSERT INTO t SELECT g, md5(g::text) FROM generate_series($rows + 1, $rows + $count) g");
	$rows += $count;
	return;
}

# The table, with so many rows.
sub make_table
{
	my ($node, $count) = @_;

	$rows = 0;
	$node->safe_psql('postgres', 'CREATE TABLE t (id int, pad text); CREATE INDEX t_id ON t USING sherman (id);
		CREATE UNIQUE INDEX t_pad ON t USING sherman (pad)');
	insert($node, $count);
	return;
}

# Whether both indexes are whole and have the table's rows, and answers come through them.
sub is_whole
{
	my ($node, $when) = @_;

	foreach my $index ('t_id', 't_pad')
	{
		is(state_of($node, $index), 'ok', "$when: $index is good");
		is(check_index($node, $index), '0', 'and whole');
	}
	ok(uses_index($node, 't_id', "SELECT * FROM t WHERE id = $rows"), 'the planner uses it');
	is($node->safe_psql('postgres', "SET enable_seqscan = off; SELECT count(*) FROM t WHERE id BETWEEN 1 AND 1000000"), $rows,
		'all rows are found through it');
	return;
}

# The machine of an embedded memory node was restarted while the server was down: its memory is gone.
sub lose_memory
{
	my $node = shift;

	foreach my $memory (memory_files($node))
	{
		unlink $memory or die "$memory: $!";
	}
	return;
}

1;


# A memory node that is full: the error says which indexes have how much, and what to do; and what makes room works there: VACUUM, TRUNCATE,
# REINDEX of a table that was emptied, DROP.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('main', memory => 64, conf => "sherman.embedded_snapshot = off\n");
my ($stdout, $stderr, $status);

sub query
{
	return $node->safe_psql('postgres', $_[0]);
}

# Runs SQL; returns the errors.
sub errors_of
{
	$status = $node->psql('postgres', "\\set VERBOSITY verbose\n$_[0]", stdout => \$stdout, stderr => \$stderr);
	return $stderr;
}

query('CREATE TABLE big (id int, pad text); CREATE INDEX big_pad ON big USING sherman (pad); CREATE INDEX big_id ON big USING sherman (id);
	CREATE TABLE small (id int); CREATE INDEX small_id ON small USING sherman (id); INSERT INTO small SELECT generate_series(1, 20000)');
my $rows = 0;
while ($rows < 400000)
{
	last if errors_of("INSERT INTO big SELECT g, (SELECT string_agg(md5(g::text || i), '') FROM generate_series(1, 30) i)
		FROM generate_series($rows, $rows + 3999) g") ne '';
	$rows += 4000;
}
# The others may have some left.
my $full = $stderr;
foreach my $try (1 .. 100)
{
	last if errors_of("INSERT INTO small SELECT generate_series(1, 5000) * 1000 + $try") ne '';
}
like($full, qr/ERROR:  53200: memory node is full.*\nHINT:  Raise "sherman.embedded_memory" .*SELECT index, sherman_relation_size\(index\)/s,
	'it is full, and the hint says what to do');
my ($query) = $full =~ /: (SELECT index, .*?) shows/;
like(query($query), qr/^big_pad\|\d{8}\n/, 'the query of the hint shows who has the memory');
like(errors_of('REINDEX INDEX big_pad'), qr/ERROR:  53200: .*REINDEX needs room/s, 'REINDEX finds no room for a copy, as the hint says');
is(check_index($node, 'big_pad'), '0', 'the index is whole');
foreach my $sql ('VACUUM small', 'DELETE FROM small', 'VACUUM small', 'REINDEX TABLE small', 'DELETE FROM big WHERE id % 10 <> 0', 'VACUUM big', 'TRUNCATE big')
{
	is(errors_of($sql), '', "$sql works where it is full");
}
ok($node->poll_query_until('postgres', 'SELECT memory_used < 1024 * 1024 FROM sherman_memory_nodes'), 'the memory is there again');
is(errors_of('INSERT INTO big SELECT g, md5(g::text) FROM generate_series(1, 10000) g; REINDEX TABLE big'), '', 'and can be used');
is(check_index($node, 'big_pad') + check_index($node, 'small_id'), 0, 'all is whole');
$node->stop;
done_testing();

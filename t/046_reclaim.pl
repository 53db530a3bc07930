# What unclean ends of the server leave free in indexes is found again: by VACUUM, once in each run of the server. However often
# the server ends like that, indexes whose entries come and go stay as large as they were: but for an extent or two, as a VACUUM
# leaves emptied leaves to the next one where calls in progress take long.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

# Ends of the server; by the first of them the indexes have got their size.
my $ends = 40;
my $first = 8;
my $rows = 6000;
my $slack = 2 * 128 * 1024;

my $node = new_cluster('main', memory => 32, conf => "autovacuum = off\nfsync = off\n");
my @indexes = qw(t_id t_word t_pair);

$node->safe_psql('postgres', qq{
	CREATE TABLE t (id bigint, word uuid);
	CREATE INDEX t_id ON t USING sherman (id);
	CREATE INDEX t_word ON t USING sherman (word);
	CREATE INDEX t_pair ON t USING sherman (id, word);
	INSERT INTO t SELECT g, md5(g::text)::uuid FROM generate_series(1, $rows) g;
});

sub index_bytes
{
	return $node->safe_psql('postgres', 'SELECT sum(total_bytes) FROM sherman_stat_indexes');
}

my $early;
for my $end (1 .. $ends)
{
	my $from = $end % 3 * $rows / 3;
	my $to = $from + $rows / 3;

	$node->stop('immediate');
	start_again($node);
	# Splits before the look, merges and splits behind it.
	$node->safe_psql('postgres', qq{
		DELETE FROM t WHERE id > $from AND id <= $to;
		INSERT INTO t SELECT g, md5(g::text)::uuid FROM generate_series($from + 1, $from + 500) g;
		VACUUM t;
		VACUUM t;
		INSERT INTO t SELECT g, md5(g::text)::uuid FROM generate_series($from + 501, $to) g;
	});
	$early = index_bytes() if $end == $first;
}
my $late = index_bytes();
note("$early bytes after $first ends, $late after $ends");
cmp_ok($late, '<=', $early + $slack, "the indexes' memory after $ends unclean ends is that after $first");
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), $rows, 'all rows are there');
is(check_index($node, $_), 0, "$_ is whole") foreach @indexes;

# The same beside several sessions that insert, whose nodes are taken while VACUUM looks.
my $script = $node->basedir . '/insert.sql';
append_to_file($script, q{
	\set key random(1, 1000000)
	INSERT INTO t SELECT :key + g, md5((:key + g)::text)::uuid FROM generate_series(1, 20) g;
});
for my $end (1 .. 4)
{
	my $out = '';
	my $bench = IPC::Run::start([ 'pgbench', '-n', '-c', '4', '-t', '100', '-f', $script, $node->connstr('postgres') ], '<', \undef, '>', \$out, '2>&1');

	$node->safe_psql('postgres', 'VACUUM t');
	ok(IPC::Run::finish($bench), "sessions insert beside the look, end $end") or diag($out);
	$node->safe_psql('postgres', "DELETE FROM t WHERE id > $rows");
	$node->stop('immediate');
	start_again($node);
	is(check_index($node, $_), 0, "$_ is whole, end $end") foreach @indexes;
}

done_testing();


# VACUUM gives sherman's indexes to parallel workers where min_parallel_index_scan_size lets it: their files are one page.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('main', conf => "max_worker_processes = 16\n");

$node->safe_psql('postgres', q{
	CREATE TABLE p (id int, k bigint, t text);
	INSERT INTO p SELECT i, (i * 7919) % 20011, md5(i::text) FROM generate_series(1, 20000) i;
	CREATE INDEX p_id ON p USING sherman (id);
	CREATE INDEX p_k ON p USING sherman (k);
	CREATE INDEX p_t ON p USING sherman (t COLLATE "C");
	DELETE FROM p WHERE id > 5000 AND id % 4 <> 0;
	DELETE FROM p WHERE id <= 5000;
});
# Nobody's snapshot holds the rows: the collector's visits are short, but they are.
my $settled = q{SELECT count(*) = 0 FROM pg_stat_activity
	WHERE pid <> pg_backend_pid() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)};
my $removed = q{SELECT array_agg(reltuples::int ORDER BY relname) FROM pg_class WHERE relname IN ('p_id', 'p_k', 'p_t')};
my ($vacuum, $report);
for my $try (1 .. 50)
{
	$node->poll_query_until('postgres', $settled) or die 'somebody holds a snapshot';
	$node->psql('postgres', 'SET min_parallel_index_scan_size = 0; VACUUM (PARALLEL 2, VERBOSE) p', stderr => \$vacuum);
	$report .= $vacuum;
	last if $node->safe_psql('postgres', $removed) eq '{3750,3750,3750}';
}
like($report, qr/launched [12] parallel vacuum workers? for index vacuuming \(planned: 2\)/, 'workers vacuum indexes');
is($node->safe_psql('postgres', $removed), '{3750,3750,3750}', 'the entries of deleted rows are gone, whoever removed them');
like($report, qr/index "p_id": pages: \d+ in total, [1-9]\d* newly deleted/, 'emptied leaves are folded there, too');
foreach my $index (qw(p_id p_k p_t))
{
	is(check_index($node, $index), '0', "$index is whole");
}

$node->safe_psql('postgres', q{INSERT INTO p SELECT i, i, i::text FROM generate_series(30001, 31000) i});
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM p WHERE id > 30000'), '1000', 'new rows are found');
$node->stop;

done_testing();

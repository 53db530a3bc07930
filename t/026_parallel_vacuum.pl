
# VACUUM gives sherman's indexes to parallel workers where min_parallel_index_scan_size lets it: their files are one page.  It is
# charged for leaves, which are no pages of PostgreSQL's.

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
# Nobody's snapshot holds the rows: the collector's runs are short, but they are.
my $settled = q{SELECT count(*) = 0 FROM pg_stat_activity
	WHERE pid <> pg_backend_pid() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)};
my $removed = q{SELECT array_agg(reltuples::int ORDER BY relname) FROM pg_class WHERE relname IN ('p_id', 'p_k', 'p_t')};
my $merged = qr/index "p_id": pages: \d+ in total, [1-9]\d* newly deleted/;
my ($vacuum, $report);
for my $try (1 .. 50)
{
	$node->poll_query_until('postgres', $settled) or die 'somebody holds a snapshot';
	$node->psql('postgres', 'SET min_parallel_index_scan_size = 0; VACUUM (PARALLEL 2, VERBOSE) p', stderr => \$vacuum);
	$report .= $vacuum;
	last if $report =~ $merged && $node->safe_psql('postgres', $removed) eq '{3750,3750,3750}';
	# Leaves are merged when no call on any tree goes on: where processes of the other indexes have to wait for a processor inside of
	# one, they stay for the next VACUUM that has something to remove.
	$node->safe_psql('postgres', q{INSERT INTO p VALUES (0, 0, ''); DELETE FROM p WHERE id = 0});
}
like($report, qr/launched [12] parallel vacuum workers? for index vacuuming \(planned: 2\)/, 'workers vacuum indexes');
is($node->safe_psql('postgres', $removed), '{3750,3750,3750}', 'the entries of deleted rows are gone, whoever removed them');
like($report, $merged, 'emptied leaves are merged there, too');
foreach my $index (qw(p_id p_k p_t))
{
	is(check_index($node, $index), '0', "$index is whole");
}

$node->safe_psql('postgres', q{INSERT INTO p SELECT i, i, i::text FROM generate_series(30001, 31000) i});
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM p WHERE id > 30000'), '1000', 'new rows are found');

# What VACUUM is charged, without sleeping in between: the table's own pages cost nothing here. The catalogs' may be read as well.
my $library = "$PostgreSQL::Test::Utils::tmp_check/cost_balance.so";
system_or_bail(
	$ENV{CC} // 'cc', '-O2', '-fPIC', '-shared',
	'-I' . $node->config_data('--includedir-server'), "$FindBin::RealBin/cost_balance.c", '-o', $library);
$node->safe_psql('postgres', qq{
	CREATE FUNCTION cost_balance() RETURNS int AS '$library' LANGUAGE C;
	CREATE TABLE costly (k bigint) WITH (autovacuum_enabled = off);
	INSERT INTO costly SELECT i FROM generate_series(1, 50000) i;
	CREATE INDEX costly_k ON costly USING sherman (k);
});
my $pages = $node->safe_psql('postgres', q{SELECT sherman_relation_size('costly_k') / 8192});
cmp_ok($pages, '>', 60, 'an index of some pages');
my $rest = 0;

# Deletes every tenth row, and returns what VACUUM is charged for that with these settings.
sub charged
{
	my ($settings) = @_;

	$node->safe_psql('postgres', "DELETE FROM costly WHERE k % 10 = $rest");
	$rest++;
	$node->poll_query_until('postgres', $settled) or die 'somebody holds a snapshot';
	return $node->safe_psql('postgres', qq{
		SET vacuum_cost_delay = '0.01ms';
		SET vacuum_cost_limit = 10000;
		SET vacuum_cost_page_hit = 0;
		SET vacuum_cost_page_miss = 0;
		SET vacuum_cost_page_dirty = 0;
		$settings
		SET log_min_messages = info;
		LOAD '$library';
		VACUUM (VERBOSE, INDEX_CLEANUP ON, TRUNCATE OFF) costly;
		SELECT cost_balance();
	});
}
is(charged(''), '0', 'what costs nothing is not charged');
# Not all of its memory is leaves.
my $read = charged('SET vacuum_cost_page_miss = 10;');
ok($read > 5 * $pages && $read < 15 * $pages, "$pages pages read cost $read");
my $written = charged('SET vacuum_cost_page_dirty = 20;');
ok($written > 1.75 * $read && $written < 2.25 * $read, "and written $written");

# Between leaves it sleeps: so long that it is seen.
$node->safe_psql('postgres', "DELETE FROM costly WHERE k % 10 = $rest");
$node->poll_query_until('postgres', $settled) or die 'somebody holds a snapshot';
$vacuum = $node->background_psql('postgres', on_error_stop => 0);
$vacuum->query_until(
	qr/begins/, q{
	SET vacuum_cost_delay = 100;
	SET vacuum_cost_limit = 1;
	SET vacuum_cost_page_hit = 0;
	SET vacuum_cost_page_miss = 10;
	SET vacuum_cost_page_dirty = 0;
	\echo begins
	VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) costly;
});
ok( $node->poll_query_until(
		'postgres', q{SELECT count(*) = 1 FROM pg_stat_progress_vacuum JOIN pg_stat_activity USING (pid)
			WHERE phase = 'vacuuming indexes' AND wait_event = 'VacuumDelay'}),
	'between leaves it sleeps');
$node->safe_psql('postgres', 'SELECT pg_cancel_backend(pid) FROM pg_stat_progress_vacuum');
$vacuum->quit;
is(check_index($node, 'costly_k'), '0', 'the index is whole');
$node->stop;

done_testing();


# Nested loops over an index on a memory node across the network: outer rows are read ahead, and the leaves for them fetched together.
# All kinds of joins give the same rows with and without, in the same order, in far fewer round trips.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Msd;
use Sherman;
use Test::More;

my $msd = Msd->new('a', size => 64, transport => 'tls');
my $node = new_cluster('main', conf => "sherman.memory_nodes = '" . $msd->address . "'\n" . Msd::configuration());

$node->safe_psql('postgres', q{
	CREATE TABLE rows (id int, other int, name text COLLATE "C");
	INSERT INTO rows SELECT g, g % 100, md5(g::text) FROM generate_series(1, 30000) g;
	CREATE INDEX rows_id ON rows USING sherman (id);
	CREATE INDEX rows_both ON rows USING sherman (other, id);
	CREATE INDEX rows_name ON rows USING sherman (name);
	CREATE TABLE wanted (n int, id int, other bigint, name text COLLATE "C");
	INSERT INTO wanted SELECT g, CASE WHEN g % 10 <> 0 THEN g * 7919 % 40000 END, g % 120, md5((g * 3)::text) FROM generate_series(1, 3000) g;
	CREATE FUNCTION tick(int) RETURNS int LANGUAGE plpgsql VOLATILE AS 'BEGIN RETURN $1; END';
	VACUUM ANALYZE rows, wanted;
});

my $loops = join '', map { "SET enable_$_ = off;" } qw(hashjoin mergejoin seqscan material sort);

sub answer
{
	my ($query, $lookahead, $settings) = @_;

	return $node->safe_psql('postgres', "$loops $settings SET sherman.enable_lookahead = $lookahead; $query");
}

sub plan
{
	my ($query, $settings) = @_;

	return answer("EXPLAIN (COSTS OFF) $query", 'on', $settings);
}

sub round_trips
{
	return $node->safe_psql('postgres', 'SELECT sum(round_trips) FROM sherman_stat_indexes');
}

# Name, whether the plan has a lookahead, query, settings.
my @queries = (
	[ 'inner join', 1, 'SELECT w.n, r.other FROM wanted w JOIN rows r ON r.id = w.id' ],
	[ 'left join', 1, 'SELECT w.n, r.other FROM wanted w LEFT JOIN rows r ON r.id = w.id' ],
	[ 'semi-join', 1, 'SELECT w.n FROM wanted w WHERE EXISTS (SELECT FROM rows r WHERE r.id = w.id AND r.other > 3)' ],
	[ 'anti-join', 1, 'SELECT w.n FROM wanted w WHERE NOT EXISTS (SELECT FROM rows r WHERE r.id = w.id)' ],
	[ 'limit', 1, 'SELECT w.n, r.other FROM wanted w JOIN rows r ON r.id = w.id LIMIT 5' ],
	[ 'other types', 1, 'SELECT w.n, r.id FROM wanted w JOIN rows r ON r.other = w.other AND r.id < w.n' ],
	[ 'keys that integers do not decide', 1, 'SELECT w.n, r.id FROM wanted w JOIN rows r ON r.name = w.name' ],
	[ 'expression', 1, 'SELECT w.n, r.other FROM wanted w JOIN rows r ON r.id = w.id + 1 WHERE w.n % 3 = 0' ],
	[ 'arrays', 1, 'SELECT w.n, r.id FROM wanted w JOIN rows r ON r.id = ANY (ARRAY[w.id, w.n])' ],
	[ 'index-only', 1, 'SELECT w.n, r.id FROM wanted w JOIN rows r ON r.other = w.id % 100 AND r.id = w.id' ],
	[ 'bitmap', 1, 'SELECT w.n, r.id FROM wanted w JOIN rows r ON r.other = w.other', 'SET enable_indexscan = off; SET enable_indexonlyscan = off;' ],
	[ 'memoize', 1, 'SELECT w.n, r.name FROM wanted w JOIN rows r ON r.id = w.other' ],
	[ 'lateral', 1, 'SELECT w.n, r.id FROM wanted w, LATERAL (SELECT id FROM rows WHERE rows.id >= w.id ORDER BY id LIMIT 1) r' ],
	[ 'rescans', 1, 'SELECT g, (SELECT count(*) FROM wanted w JOIN rows r ON r.id = w.id WHERE w.n % 50 = g) FROM generate_series(1, 20) g' ],
	[ 'two loops', 1, 'SELECT w.n, r.other, s.id FROM wanted w JOIN rows r ON r.id = w.id JOIN rows s ON s.id = r.other + w.n' ],
	[ 'in parallel', 1, 'SELECT count(*), sum(r.other) FROM wanted w JOIN rows r ON r.id = w.id',
		'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET enable_seqscan = on;' ],
	[ 'rows that are locked', 0, 'SELECT r.other FROM (SELECT id FROM wanted WHERE n < 50 FOR UPDATE OFFSET 0) w JOIN rows r ON r.id = w.id' ],
	[ 'volatile outer rows', 0, 'SELECT r.other FROM (SELECT tick(id) AS id FROM wanted WHERE n < 50 OFFSET 0) w JOIN rows r ON r.id = w.id' ],
	[ 'nothing passed', 0, 'SELECT count(*) FROM wanted w, rows r WHERE r.id = 5' ],
);

foreach my $case (@queries)
{
	my ($name, $ahead, $query, $settings) = (@$case, '');
	my $with = answer($query, 'on', $settings);

	is($with, answer($query, 'off', $settings), "$name: the same rows, in the same order");
	isnt($with, '', "$name: there are rows");
	is((plan($query, $settings) =~ /Sherman Lookahead/) ? 1 : 0, $ahead, "$name: " . ($ahead ? 'with' : 'without') . ' a lookahead');
}

# A loop that ends early has read few rows in vain.
like(answer('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT r.other FROM wanted w JOIN rows r ON r.id = w.id LIMIT 1', 'on', ''),
	qr/Rows Ahead: 0\n.*actual rows=1(\.00)? /, 'one row is wanted, and one is read');

# Others change rows that a join is about to update: its rows are joined once more by their new values, with the rows that
# they had, through the same nodes.
my $other = $node->background_psql('postgres');
$other->query_safe('BEGIN; UPDATE wanted SET id = id + 1 WHERE n = 1');
my $update = $node->background_psql('postgres', on_error_stop => 0);
$update->query_safe($loops);
$update->query_until(qr/started/, "\\echo started\nUPDATE wanted w SET other = r.id FROM rows r WHERE r.id = w.id AND w.n < 100;\n");
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'});
$other->query_safe('COMMIT');
$update->query('SELECT 1');
$update->quit;
$other->quit;
is($node->safe_psql('postgres', 'SELECT id, other FROM wanted WHERE n = 1'), '7920|1', 'a row that has changed meanwhile does not fit the row that it had');

# Behind a restart nothing is cached.
sub trips_of
{
	my $lookahead = shift;
	my $before;

	$node->restart;
	$node->safe_psql('postgres', 'SELECT count(*) FROM sherman_stat_indexes');
	$before = round_trips();
	answer('SELECT count(r.other) FROM wanted w JOIN rows r ON r.id = w.id', $lookahead, '');
	return round_trips() - $before;
}

my $without = trips_of('off');
my $with = trips_of('on');
cmp_ok($with * 5, '<', $without, "round trips for 2,700 lookups: $with, without a lookahead $without");

like(answer('EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT r.other FROM wanted w JOIN rows r ON r.id = w.id', 'on', ''),
	qr/Sherman Lookahead.*\n +Leaves Of: rows_id\n +Fetches: 1\d\n +Rows Ahead: 2\d\d\d\n/, 'EXPLAIN tells what was fetched');

done_testing();


# What the planner knows of round trips to memory nodes: a scan whose leaves the cache of leaves has no room for costs its round trips, and
# a plan with fewer of them is taken where that is better.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $tcp = Msd->new('a', size => 64, transport => 'tls');
my $shm = Msd->new('b', size => 64);

# A server with memory nodes; an index of 3 MB, one of 200 KB.
sub server
{
	my ($name, $memory_nodes, $cache_mb) = @_;
	my $node = new_cluster($name, conf => "sherman.memory_nodes = '$memory_nodes'\nsherman.cache_size = ${cache_mb}MB\n" . Msd::configuration());

	$node->safe_psql('postgres', q{
		CREATE TABLE rows (id int, other int);
		INSERT INTO rows SELECT g * 7919 % 100003, g FROM generate_series(1, 100000) g;
		CREATE INDEX rows_id ON rows USING sherman (id);
		CREATE TABLE few (id int);
		INSERT INTO few SELECT g FROM generate_series(1, 5000) g;
		CREATE INDEX few_id ON few USING sherman (id);
		CREATE TABLE wanted (id int);
		INSERT INTO wanted SELECT g * 31 FROM generate_series(1, 50) g;
		VACUUM ANALYZE rows, few, wanted;
	});
	return $node;
}

# The total and the startup cost of a query's plan, which is one by the index.
sub cost
{
	my ($node, $round_trip_cost, $query, $settings) = @_;
	my $plan = $node->safe_psql('postgres', "SET sherman.round_trip_cost = $round_trip_cost; SET enable_seqscan = off; SET enable_bitmapscan = off; " .
		($settings // '') . " EXPLAIN $query");

	like($plan, qr/sherman|rows_id|few_id/i, "by the index: $query");
	$plan =~ /cost=([0-9.]+)\.\.([0-9.]+)/ or die $plan;
	return ($2, $1);
}

sub join_plan
{
	my ($node, $round_trip_cost) = @_;

	return $node->safe_psql('postgres', "SET sherman.enable_lookahead = off; SET sherman.round_trip_cost = $round_trip_cost; SET enable_mergejoin = off;
		EXPLAIN (COSTS OFF) SELECT * FROM wanted JOIN rows USING (id)");
}

my $one = 'SELECT * FROM rows WHERE id = 5';
my $range = 'SELECT * FROM rows WHERE id BETWEEN 1000 AND 30000';
my $array = 'SELECT * FROM rows WHERE id = ANY (ARRAY(SELECT g * 37 FROM generate_series(1, 10) g))';

#
# A memory node across the network, and room for a small part of the leaves.
#
my $small = server('small', $tcp->address, 1);
like(slurp_file($small->logfile), qr/attached to memory node 0 .*\n.*DETAIL:  A round trip takes [1-9]\d* us\./, 'the round trip is in the log');
is($small->safe_psql('postgres', q{SELECT extract(microseconds FROM round_trip)::int FROM sherman_stat_memory_nodes}),
	slurp_file($small->logfile) =~ /DETAIL:  A round trip takes (\d+) us\./ ? $1 : '', 'and in the view');
foreach my $case ([ 'a lookup', $one ], [ 'a range', $range ], [ 'an array', $array ])
{
	my ($name, $query) = @$case;
	my ($without) = cost($small, 0, $query);
	my ($measured, $measured_startup) = cost($small, -1, $query);
	my ($far, $far_startup) = cost($small, 1000, $query);

	cmp_ok($measured, '>', $without, "$name costs its round trips, as they were measured");
	cmp_ok($far, '>', $measured, 'and more where they are said to cost more');
	cmp_ok($far_startup, '>', $measured_startup, 'the first of them before the first row');
}
# A leaf of ten or so does not fit: a lookup waits for most of a round trip, a range for few of them, an array for one for each 64 keys.
cmp_ok((cost($small, 10000, $one))[0] - (cost($small, 0, $one))[0], '<', 10200, 'a lookup waits once');
cmp_ok((cost($small, 10000, $one))[0] - (cost($small, 0, $one))[0], '>', 5000, 'and not much less than once');
cmp_ok((cost($small, 10000, $range))[0] - (cost($small, 0, $range))[0], '<', 10000 * (29000 / 45 / 64 + 3), 'a range once for each chain of leaves');
like(join_plan($small, 0), qr/Nested Loop/, 'without costs for round trips the join is a nested loop');
like(join_plan($small, 1000), qr/Hash Join/, 'with them it is a hash join');
# A lookahead shares them between outer rows.
my $loops = 'SET enable_seqscan = on; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off;';
my $join = 'SELECT * FROM wanted JOIN rows USING (id)';
cmp_ok((cost($small, 1000, $join, "$loops SET sherman.enable_lookahead = on;"))[0], '<',
	(cost($small, 1000, $join, "$loops SET sherman.enable_lookahead = off;"))[0] / 10, 'a lookahead makes them cheap');
my ($near) = cost($small, 0, 'SELECT * FROM few WHERE id = 5');
my ($kept) = cost($small, 1000, 'SELECT * FROM few WHERE id = 5');
is($kept, $near, 'what the cache of leaves has room for costs none');
$small->stop;

#
# Room for all leaves; and a memory node whose memory is mapped.
#
my $large = server('large', $tcp->address, 64);
is((cost($large, 1000, $one))[0], (cost($large, 0, $one))[0], 'with a large cache a lookup costs no round trip');
like(join_plan($large, 1000), qr/Nested Loop/, 'and the join is a nested loop');
$large->stop;
my $mapped = server('mapped', $shm->address, 1);
is((cost($mapped, 1000, $one))[0], (cost($mapped, 0, $one))[0], 'nobody waits for mapped memory');
is($mapped->safe_psql('postgres', 'SELECT round_trip IS NULL FROM sherman_stat_memory_nodes'), 't', 'as the view says');
$mapped->stop;

done_testing();

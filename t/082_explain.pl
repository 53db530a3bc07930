# EXPLAIN (ANALYZE, BUFFERS): what a statement has moved between the server and memory nodes across the network, as sherman_stat_indexes
# counts it; by index scan from PostgreSQL 18 on; in all formats; with parallel workers, through connection workers. Over a node that is
# mapped, nothing.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use JSON::PP qw(decode_json);
use Msd;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

use constant ROWS => 20000;

my $analyze = 'ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF, COSTS OFF';
my $far = Msd->new('far', transport => 'tcp');
my $node = new_cluster('explain', conf => "sherman.memory_nodes = '" . $far->address . "'\nsherman.cache_size = 64MB\nwal_level = minimal\nmax_wal_senders = 0\n");
my $by_node = $node->safe_psql('postgres', 'SHOW server_version_num') >= 180000;
my $counts = "SELECT 'counts', leaf_cache_hits, leaf_cache_misses, round_trips, read_bytes, written_bytes FROM sherman_stat_indexes WHERE indexrelid = 'rows_k'::regclass";

# One session, whose plans are by the index: what its statements write.
sub session
{
	my ($settings, @statements) = @_;

	return $node->safe_psql('postgres', join(";\n", 'SET enable_seqscan = off', $settings, @statements) . ';');
}

# What the line of the text, or the last of several, says: hits, misses, round trips, bytes read, bytes written.
sub traffic
{
	my ($plan) = @_;
	my @lines = $plan =~ /Sherman: (leaf cache .*)/g;

	return '' if !@lines;
	return join(' ', $lines[-1] =~ /^leaf cache hits=(\d+) misses=(\d+), round trips=(\d+), bytes read=(\d+) written=(\d+)$/);
}

# What the index has counted when all sessions and workers have given in what they have counted by themselves, which they do at their end.
sub settled_counts
{
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type IN ('client backend', 'parallel worker')") or die;
	return session('', $counts);
}

# A query as EXPLAIN shows it, between the index's counts before it, when it was planned once and no other process has anything to give in, and
# behind it.
sub measured_apart
{
	my ($settings, $query) = @_;

	settled_counts();
	return join("\n", session($settings, "EXPLAIN (COSTS OFF) $query", $counts, "EXPLAIN ($analyze) $query"), settled_counts());
}

# The same of the index, between two lines of $counts.
sub counted
{
	my @before_and_after = $_[0] =~ /^counts\|(.*)$/mg;
	my ($before, $after) = map { [ split /\|/ ] } @before_and_after;

	return join(' ', map { $after->[$_] - $before->[$_] } 0 .. 4);
}

$node->safe_psql('postgres', 'CREATE TABLE rows (k bigint, other int); INSERT INTO rows SELECT g * 2, g FROM generate_series(1, ' . ROWS . ') g;
	CREATE INDEX rows_k ON rows USING sherman (k); VACUUM ANALYZE rows;
	CREATE TABLE plain (k bigint); INSERT INTO plain SELECT generate_series(1, 1000); CREATE INDEX plain_k ON plain (k); VACUUM ANALYZE plain');

my $one = 'SELECT other FROM rows WHERE k = 2000';
my $all = 'SELECT count(*) FROM rows WHERE k >= 0';
my %ways = (
	'an index scan' => [ 'SET enable_bitmapscan = off; SET enable_indexonlyscan = off', $one ],
	'an index-only scan' => [ 'SET enable_bitmapscan = off', $all ],
	'a bitmap scan' => [ 'SET enable_indexscan = off; SET enable_indexonlyscan = off', $all ]);

# Scans until every leaf was admitted to the cache: each that is read is with a probability of a tenth.
foreach my $try (1 .. 40)
{
	last if session('SET enable_bitmapscan = off', ($all) x 10, "EXPLAIN ($analyze) $all") =~ /Sherman: leaf cache hits=\d+ misses=0,/;
}

# ---- a statement, and its scan

foreach my $way (sort keys %ways)
{
	my ($settings, $query) = @{ $ways{$way} };
	my $output = session($settings, $query, $counts, "EXPLAIN ($analyze) $query", $counts);
	my @lines = $output =~ /^( *)Sherman: /mg;

	is(traffic($output), counted($output), "$way: what the statement has moved is what the index counts");
	is(scalar @lines, $by_node ? 2 : 1, "$way: one line for the statement, and one for a scan where the version has a place for it");
	is(length $lines[-1], 0, "$way: that of the statement stands by itself");
	next if !$by_node;
	cmp_ok(length $lines[0], '>', 0, "$way: that of the scan below its node");
	my ($scan, $statement) = $output =~ /Sherman: (.*)/g;
	is($scan, $statement, "$way: both are the same, as the scan is all that the statement does");
}
like(session($ways{'an index scan'}[0], $one, "EXPLAIN ($analyze) $one"), qr/Sherman: leaf cache hits=1 misses=0, round trips=0, bytes read=0 written=0$/m,
	'a lookup of a leaf that is kept: one hit');

# ---- without the cache: each leaf is a round trip

$node->safe_psql('postgres', 'CREATE INDEX rows_other ON rows USING sherman (other)');
my $lookup = 'SELECT k FROM rows WHERE other = 15000';
like(session('SET enable_bitmapscan = off', 'SELECT k FROM rows WHERE other = 5000', "EXPLAIN ($analyze) $lookup"),
	qr/Sherman: leaf cache hits=0 misses=1, round trips=[12], bytes read=[1-9]\d* written=0$/m, 'a lookup of a leaf that is not: a round trip for it, and perhaps for an inner node');

# A bitmap scan reads all leaves of a range together from the first on, where another scan begins with one and doubles.
sub range_trips
{
	my ($setting, $range) = @_;

	return (split / /, traffic(session($setting, 'SELECT k FROM rows WHERE other = 1', "EXPLAIN ($analyze) SELECT k FROM rows WHERE other $range")))[2];
}
my $whole = range_trips('SET enable_indexscan = off', 'BETWEEN 2000 AND 7000');
my $begun = range_trips('SET enable_bitmapscan = off', 'BETWEEN 9000 AND 14000');
note("round trips of a range: $whole by a bitmap scan, $begun by an index scan");
cmp_ok($whole + 3, '<=', $begun, 'a bitmap scan reads on to its end');

# Neighboring keys of an array: their leaves come together, also those that a key goes on in which equals a fence as far as its bytes tell.
$node->safe_psql('postgres', q{CREATE TABLE names (name text); INSERT INTO names SELECT 'a name of some length, number ' || to_char(g, 'FM000000') FROM generate_series(1, 20000) g;
	CREATE INDEX names_name ON names USING sherman (name); VACUUM ANALYZE names});
my $neighbors = q{SELECT count(*) FROM names WHERE name = ANY (ARRAY(SELECT 'a name of some length, number ' || to_char(g, 'FM000000') FROM generate_series(5001, 10000) g))};
my $scan = session('SET enable_bitmapscan = off', 'SELECT name FROM names WHERE name = $$a$$', "EXPLAIN ($analyze) $neighbors");
my (undef, $misses, $trips) = split / /, traffic($scan);
note("5,000 neighboring keys of an array: $misses leaves, $trips round trips");
cmp_ok($trips, '<', $misses / 4, 'neighboring keys of an array wait for few round trips');

# ---- who is not to see it

like(session('SET enable_bitmapscan = off', "EXPLAIN (ANALYZE, BUFFERS) $one"), qr/Sherman: .* written=0, wait time=\d+\.\d{3}$/m, 'with TIMING, the time too');
unlike(session('', "EXPLAIN (ANALYZE, BUFFERS OFF, COSTS OFF) $one"), qr/Sherman/, 'without BUFFERS nothing');
unlike(session('', "EXPLAIN (COSTS OFF) $one"), qr/Sherman/, 'without ANALYZE nothing');
unlike(session('', "EXPLAIN ($analyze) SELECT * FROM plain WHERE k = 5"), qr/Sherman/, 'nothing of a statement without such an index');

# ---- changes, functions, nested statements

my $insert = session('', 'BEGIN', 'INSERT INTO rows VALUES (4001, 0)', $counts, "EXPLAIN ($analyze) INSERT INTO rows SELECT 4003 + 2 * g, 0 FROM generate_series(1, 3) g", $counts, 'ROLLBACK');
like($insert, qr/Sherman: leaf cache hits=\d+ misses=\d+, round trips=[1-9]\d*, bytes read=\d+ written=[1-9]\d*$/m, 'an insert has moved something');
$node->safe_psql('postgres', 'CREATE FUNCTION looked_up(wanted bigint) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT other FROM rows WHERE k = wanted); END $$;
	CREATE FUNCTION fails(wanted bigint) RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM FROM rows WHERE k = wanted; RAISE EXCEPTION $e$no$e$; END $$;
	CREATE FUNCTION explained(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY EXECUTE query; END $$');
my $nested = session('SET enable_bitmapscan = off', 'SELECT looked_up(2000)', "EXPLAIN ($analyze) SELECT looked_up(2000)");
like($nested, qr/^Sherman: leaf cache hits=1 misses=0,/m, 'what functions do counts for the statement');
is(scalar(() = $nested =~ /Sherman: /g), 1, 'once');
my ($status, $out, $err) = $node->psql('postgres', "SET enable_seqscan = off; SET enable_bitmapscan = off; $one; EXPLAIN ($analyze) SELECT fails(2000); EXPLAIN ($analyze) $one",
	on_error_stop => 0);
like($err, qr/no/, 'a statement that fails');
like($out, qr/^Sherman: leaf cache hits=1 misses=0, round trips=0, bytes read=0 written=0$/m, 'adds nothing to the next one');
my $inside = session('SET enable_bitmapscan = off', $one, "SELECT explained('EXPLAIN ($analyze) $one')");
like($inside, qr/^Sherman: leaf cache hits=1 misses=0,/m, 'EXPLAIN inside of a function');

my $around = session('SET enable_bitmapscan = off', $one, "EXPLAIN ($analyze) SELECT explained('EXPLAIN ($analyze) $one')");
like($around, qr/^Sherman: leaf cache hits=1 misses=0,/m, 'EXPLAIN of a statement that explains one');

# ---- formats

my ($plan) = @{ decode_json(session('SET enable_bitmapscan = off', $one, "EXPLAIN ($analyze, FORMAT JSON) $one") =~ s/^\d+$//mr) };
is_deeply($plan->{Sherman}, { 'Leaf Cache Hits' => 1, 'Leaf Cache Misses' => 0, 'Round Trips' => 0, 'Bytes Read' => 0, 'Bytes Written' => 0 }, 'JSON, of the statement');
is_deeply($plan->{Plan}{Sherman}, $by_node ? $plan->{Sherman} : undef, 'JSON, of the scan');
like(session('SET enable_bitmapscan = off', $one, "EXPLAIN ($analyze, FORMAT XML) $one"),
	qr{<Sherman>\s*<Leaf-Cache-Hits>1</Leaf-Cache-Hits>.*<Bytes-Written>0</Bytes-Written>\s*</Sherman>\s*</Query>}s, 'XML, in the group of the statement');
like(session('SET enable_bitmapscan = off', $one, "EXPLAIN ($analyze, FORMAT YAML) $one"), qr/^  Sherman: *\n    Leaf Cache Hits: 1\n    Leaf Cache Misses: 0$/m, 'YAML');

# ---- parallel workers

my $parallel = 'SET enable_bitmapscan = off; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET min_parallel_index_scan_size = 0; ' .
	'SET max_parallel_workers_per_gather = 2; SET parallel_leader_participation = ';
foreach my $leader ('on', 'off')
{
	my $output = measured_apart($parallel . $leader, $all);
	my ($launched) = $output =~ /Workers Launched: (\d)/;

	cmp_ok($launched // 0, '>', 0, "leader $leader: there are workers");
	is(traffic($output), counted($output), "leader $leader: the statement has moved what its workers have");
	my @lines = $output =~ /Sherman: (.*)/g;
	is($lines[0], $lines[-1], "leader $leader: and so has the scan");
}
my $repeated = measured_apart($parallel . 'off', 'SELECT (SELECT count(*) FROM rows WHERE k >= 2 * g) FROM generate_series(1, 3) g');
is(traffic($repeated), counted($repeated), 'workers that are launched again');

# ---- what writes plans to the log

if ($by_node)
{
	my $offset = -s $node->logfile;

	session("LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on; SET auto_explain.log_buffers = on; SET auto_explain.log_timing = off; SET enable_bitmapscan = off",
		$one, $one);
	like(slurp_file($node->logfile, $offset), qr/Sherman: leaf cache hits=1 misses=0, round trips=0, bytes read=0 written=0$/m, 'auto_explain');
	like(session('SET enable_bitmapscan = off', "PREPARE looked AS $one", 'EXECUTE looked', "EXPLAIN ($analyze) EXECUTE looked"), qr/^Sherman: leaf cache hits=1/m, 'a prepared statement');
}

# ---- through connection workers, and over a memory node that is mapped

$node->append_conf('postgresql.conf', 'sherman.connection_workers = 2');
$node->restart;
# A worker may answer before the session has gone to sleep: of some lookups of other leaves each one waits.
my $through_workers = '';

for my $key (1 .. 40)
{
	$through_workers = session('SET enable_bitmapscan = off', 'EXPLAIN (ANALYZE, BUFFERS) SELECT k FROM rows WHERE other = ' . 500 * $key);
	last if $through_workers =~ /wait time=(?!0\.000)/;
}
like($through_workers, qr/Sherman: leaf cache hits=0 misses=1, round trips=[1-9]\d*, bytes read=\d+ written=0, wait time=(?!0\.000)\d+\.\d{3}$/m,
	'through connection workers, with the time');
$node->stop;
my $mapped = new_cluster('mapped');
$mapped->safe_psql('postgres', 'CREATE TABLE rows (k bigint); INSERT INTO rows SELECT generate_series(1, 1000); CREATE INDEX rows_k ON rows USING sherman (k); VACUUM ANALYZE rows');
# A list that waits for a start is none that is used.
$mapped->append_conf('postgresql.conf', "sherman.memory_nodes = 'tcp:127.0.0.1:1'");
$mapped->reload;
$mapped->poll_query_until('postgres', "SELECT pending_restart FROM pg_settings WHERE name = 'sherman.memory_nodes'") or die;
my $over = $mapped->safe_psql('postgres', "SET enable_seqscan = off; EXPLAIN ($analyze) SELECT * FROM rows WHERE k = 5; EXPLAIN ($analyze, FORMAT JSON) SELECT * FROM rows WHERE k = 5");
like($over, qr/rows_k/, 'over the embedded memory node the index is used');
unlike($over, qr/Sherman/, 'and nothing is said of a network');

done_testing();

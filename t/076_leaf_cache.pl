# Leaves of memory nodes across the network in shared memory (sherman.cache_size): lookups without a round trip, inserts with one; what
# sherman_stat_cache shows; a memory node that comes back; and a cache that is far too small.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

use constant ROWS => 20000;

my $far = Msd->new('far', transport => 'tcp');
my $node = new_cluster('leaves', conf => "sherman.memory_nodes = '" . $far->address . "'\nsherman.cache_size = 64MB\n");

# One session: its counters are its own work, as nobody else uses the index.
sub session
{
	my @statements = @_;

	return $node->safe_psql('postgres', join(";\n", 'SET enable_seqscan = off', 'SET enable_bitmapscan = off', @statements) . ';');
}

my $count = 'SELECT count(*) FROM rows WHERE k >= 0';
# Counters of the index, as one row.
my $now = "SELECT round_trips, leaf_cache_hits, leaf_cache_misses FROM sherman_stat_indexes WHERE indexrelid = 'rows_k'::regclass";
# A statement of 1,000 lookups by the index, and single inserts into as many leaves.
my $lookups = 'DO $$ BEGIN FOR i IN 1 .. 1000 LOOP PERFORM FROM rows WHERE k = i * 20; END LOOP; END $$';
my @inserts = map { 'INSERT INTO rows VALUES (' . ($_ * 400 + 1) . ')' } 1 .. 40;

# Scans until every leaf was admitted: each that is read is with a probability of a tenth.
sub warm
{
	foreach my $try (1 .. 40)
	{
		my @misses = split /\n/, session("$now", ("$count") x 10, "$now");

		return 1 if (split /\|/, $misses[0])[2] == (split /\|/, $misses[-1])[2] && $try > 1;
	}
	return 0;
}

$node->safe_psql('postgres', 'CREATE TABLE rows (k bigint); INSERT INTO rows SELECT g * 2 FROM generate_series(1, ' . ROWS . ') g;
	CREATE INDEX rows_k ON rows USING sherman (k); VACUUM ANALYZE rows');
ok(uses_index($node, 'rows_k', 'SELECT FROM rows WHERE k = 20'), 'the index is used');
ok(warm(), 'in the end all leaves are kept');

my ($before, $after) = split /\n/, session($now, $lookups, $now);
my @delta = map { (split /\|/, $after)[$_] - (split /\|/, $before)[$_] } 0 .. 2;
is("@delta[0, 2]", '0 0', '1,000 lookups are no round trip');
is($delta[1], 1000, 'and 1,000 hits');

# The first change of a tree in an epoch tells its record, by calls.
session('INSERT INTO rows VALUES (3)');
($before, $after) = split /\n/, session($now, @inserts, $now);
@delta = map { (split /\|/, $after)[$_] - (split /\|/, $before)[$_] } 0 .. 2;
is($delta[0], scalar @inserts, 'an insert into a leaf that is kept is one round trip');
is($delta[2], 0, 'and no miss');
is(session($count), ROWS + 1 + @inserts, 'all rows are found');

my ($leaves) = grep { /^leaves/ } split /\n/, $node->safe_psql('postgres', 'SELECT kind, nodes > 100, used_bytes <= total_bytes, hits > 1000, misses > 100 FROM sherman_stat_cache');
is($leaves, 'leaves|t|t|t|t', 'sherman_stat_cache shows the leaves');
is($node->safe_psql('postgres', 'SELECT sum(total_bytes) <= 64 * 1024 * 1024 FROM sherman_stat_cache'), 't', 'both kinds lie within the setting');

# ---- a memory node that comes back

my $misses = (split /\|/, session($now))[2];
my $state = "(SELECT state FROM sherman_stat_indexes WHERE indexrelid = 'rows_k'::regclass)";
$far->crash;
$node->poll_query_until('postgres', "SELECT $state = 'unreachable'") or die 'it is not missed';
$far->start;
$node->poll_query_until('postgres', "SELECT $state = 'ok'") or die 'it is not back';
is(session($count), ROWS + 1 + @inserts, 'behind a restart of the memory node all rows are found');
cmp_ok((split /\|/, session($now))[2], '>=', $misses + 100, 'and none in what was kept before');

# ---- far too small

$node->append_conf('postgresql.conf', "sherman.cache_size = 1MB\n");
$node->restart;
$node->safe_psql('postgres', 'CREATE TABLE more (id int, word text); CREATE INDEX more_id ON more USING sherman (id); CREATE INDEX more_word ON more USING sherman (word)');
$node->append_conf('postgresql.conf', "autovacuum = on\nautovacuum_naptime = 1s\n");
$node->reload;
my $script = PostgreSQL::Test::Utils::tempdir() . '/load.pgbench';
append_to_file($script, <<'SCRIPT');
\set id random(1, 20000)
INSERT INTO more SELECT :id + g, md5((:id + g)::text) FROM generate_series(0, 3) g;
UPDATE more SET word = md5(word) WHERE id = :id;
DELETE FROM more WHERE id = :id + 7;
SELECT count(*) FROM more WHERE id BETWEEN :id AND :id + 50;
SCRIPT
$node->command_ok([ 'pgbench', '-n', '-c', 4, '-t', 400, '-f', $script, 'postgres' ], 'four sessions at once, with a cache of 1 MB');
is(check_index($node, $_), '0', "$_ is whole") foreach qw(more_id more_word rows_k);
is($node->safe_psql('postgres', "SET enable_seqscan = off; SELECT count(*), sum(hashtext(word)) FROM more WHERE id > 0"),
	$node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; SELECT count(*), sum(hashtext(word)) FROM more WHERE id > 0"),
	'index and table say the same');

# ---- on this host there is nothing to spare

my $near = Msd->new('near', transport => 'shm');
$node->append_conf('postgresql.conf', "sherman.memory_nodes = '" . $near->address . ', ' . $far->address . "'\nsherman.cache_size = 64MB\n");
$node->restart;
$node->poll_query_until('postgres', "SELECT count(*) = 2 FROM sherman_stat_memory_nodes WHERE state = 'attached'") or die 'they are not there';
$far->stop;
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM sherman_stat_memory_nodes WHERE state = 'attached'") or die 'it is still there';
$node->safe_psql('postgres', 'CREATE TABLE local (k int); CREATE INDEX local_k ON local USING sherman (k); INSERT INTO local SELECT generate_series(1, 5000)');
session(('SELECT count(*) FROM local WHERE k > 0') x 5);
is($node->safe_psql('postgres', "SELECT leaf_cache_hits, leaf_cache_misses FROM sherman_stat_indexes WHERE indexrelid = 'local_k'::regclass"), '0|0',
	'leaves of a memory node that is mapped are not kept');
done_testing();

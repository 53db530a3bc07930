
# A session that reads what the server's cache of leaves has connects to no memory node, if the launcher has heard it lately; it connects for
# the first leaf that is not there, and before it changes anything.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

need_steps();

use constant ROWS => 20000;

my $node;

# A server with memory nodes of these names, a table that is read, and one whose leaves nobody has read yet: those of a build are not kept.
sub server
{
	my ($name, @names) = @_;
	my @msd = map { Msd->new($_, size => 64, transport => 'tls') } @names;

	$node = new_cluster($name,
		conf => "sherman.memory_nodes = '" . join(', ', map { $_->address } @msd) . "'\nsherman.operation_timeout = '4s'\n" . Msd::configuration());
	attached(scalar @msd);
	$node->safe_psql('postgres', 'CREATE TABLE rows (id int, other int); INSERT INTO rows SELECT g, g FROM generate_series(1, ' . ROWS . ') g;
		CREATE INDEX rows_id ON rows USING sherman (id); VACUUM ANALYZE rows;
		CREATE TABLE cold (id int, word text); INSERT INTO cold SELECT g, g FROM generate_series(1, 3000) g; CREATE INDEX cold_id ON cold USING sherman (id);
		CREATE TABLE wanted AS SELECT g * 100 AS id FROM generate_series(1, 100) g; ANALYZE wanted');
	return @msd;
}

sub attached
{
	my ($count) = @_;

	$node->poll_query_until('postgres', "SELECT count(*) = $count FROM sherman_stat_memory_nodes WHERE state = 'attached'") or die 'it is not so';
	return;
}

# Of the statements in a new session, what each returns, and how many steps it was: two are a connection, and two each chain and each call.
sub steps
{
	my @statements = @_;
	my ($out, $errors) = run_command(
		[   'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'), '-c', 'SET enable_seqscan = off',
			map { ('-c', $_) } map { ('SET sherman.debug_step = 2000000000', $_, 'SHOW sherman.debug_passed') } @statements ]);

	is($errors, '', 'no error');
	return join ' ', split /\n/, $out;
}

# The same until it is this.
sub steps_become
{
	my ($expected, $name, @statements) = @_;
	my $steps;

	foreach my $try (1 .. 60)
	{
		$steps = steps(@statements);
		last if $steps =~ $expected;
		sleep 1;
	}
	like($steps, $expected, $name);
	return;
}

# ---- two memory nodes, and nothing is wrong

server('two', 'a', 'b');
is($node->safe_psql('postgres', q{SELECT sum(cardinality(memory_nodes)) FROM sherman_stat_indexes WHERE indexrelid = 'rows_id'::regclass}), 2,
	'the index lies on both memory nodes');

# Whatever reads leaves, and nothing but leaves that the cache has.
my %reads = (
	'a range' => [ 'SET enable_bitmapscan = off; SELECT count(other) FROM rows WHERE id > 0', ROWS ],
	'an index-only scan' => [ 'SET enable_bitmapscan = off; SELECT count(id) FROM rows WHERE id > 0', ROWS ],
	'a bitmap scan' => [ 'SET enable_indexscan = off; SET enable_indexonlyscan = off; SELECT count(other) FROM rows WHERE id > 100', ROWS - 100 ],
	'a lookup' => [ 'SELECT other FROM rows WHERE id = 777', 777 ],
	'an array' => [ 'SELECT count(*) FROM rows WHERE id = ANY (ARRAY(SELECT g * 99 FROM generate_series(1, 100) g))', 100 ],
	'a join' => [ 'SET enable_hashjoin = off; SET enable_mergejoin = off; SELECT count(other) FROM wanted JOIN rows USING (id)', 100 ],
	'backwards' => [ 'SELECT id FROM rows ORDER BY id DESC LIMIT 1', ROWS ],
	'serializable' => [ 'BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(other) FROM rows WHERE id < 5000; COMMIT', 4999 ],
	'in parallel' => [ 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET min_parallel_index_scan_size = 0;
		SELECT count(other) FROM rows WHERE id > 0', ROWS ]);
my $range = $reads{'a range'}[0];

# The first ones fill the cache: of leaves that are read one of ten is kept.
steps_become(qr/^@{[ROWS]} 0 @{[ROWS]} 0$/, 'in the end a new session reads without a connection', $range, $range);
foreach my $name (sort keys %reads)
{
	my ($query, $result) = @{ $reads{$name} };

	steps_become(qr/^$result 0$/, "$name: no connection", $query);
}
is(steps('EXPLAIN (COSTS OFF) SELECT * FROM rows WHERE id = 5') =~ s/.* //r, 0, 'nor for a plan alone');

# What the cache does not have is fetched, and for a change there is a connection before it begins.
like(steps('SELECT word FROM cold WHERE id = 1000', 'SELECT word FROM cold WHERE id = 1000'), qr/^1000 [1-9]\d* 1000 0$/, 'a leaf that is not there: a connection, and the leaf');
my @changes = split / /, steps('SELECT other FROM rows WHERE id = 778', 'INSERT INTO rows VALUES (-1, -1)');
is("@changes[0, 1]", '778 0', 'a session that has read');
cmp_ok($changes[2], '>=', 4, 'connects to change something');
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM rows WHERE id < 0'), 1, 'and has changed it');
$node->stop;

# ---- one memory node, that is away, and the launcher does not notice

my ($msd) = server('one', 'c');
steps_become(qr/^@{[ROWS]} 0$/, 'in the cache', $range);
steps_become(qr/ 0$/, 'and the way to what is not', 'EXPLAIN (COSTS OFF) SELECT word FROM cold WHERE id = 5');

sub reader
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->query('\set VERBOSITY verbose');
	$session->query('SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan');
	$session->query("PREPARE kept(int) AS SELECT other FROM rows WHERE id = \$1; PREPARE cold(int) AS SELECT word FROM cold WHERE id = \$1");
	return $session;
}

my $session = reader();
my $changer = reader();
my $impatient = reader();
foreach my $each ($session, $changer, $impatient)
{
	is($each->query('SET sherman.debug_step = 2000000000; EXECUTE kept(777)'), '777', 'a session reads');
	is($each->query('EXECUTE kept(778)'), '778', 'again');
	is($each->query('SHOW sherman.debug_passed'), '0', 'and has no connection');
}
like($session->query('EXPLAIN EXECUTE cold(5)'), qr/cold_id/, 'and has a plan for more');
is($session->query('SHOW sherman.debug_passed'), '0', 'and still no connection');
my $launcher = $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'sherman launcher'});
kill 'STOP', $launcher, $msd->{pid};
$impatient->query("SET statement_timeout = '200ms'; EXECUTE cold(2000)");
like($impatient->{stderr}, qr/ERROR:  57014: /, 'an attempt to connect ends by a cancel, which is the error');
$impatient->quit;
$msd->crash;
is($session->query('EXECUTE kept(779)'), '779', 'what the cache has is read without the memory nodes');
steps_become(qr/ [1-9]\d*$/, 'a plan looks for itself when the launcher has heard nothing for some time', 'EXPLAIN (COSTS OFF) SELECT * FROM rows WHERE id = 5');
$session->query('EXECUTE cold(2999)');
like($session->{stderr}, qr/ERROR:  08006: /, 'what it does not have is an error');
$session->{stderr} = '';
$session->query('EXECUTE kept(779)');
like($session->{stderr}, qr/ERROR:  08006: /, 'and so is then what it has');
$session->{stderr} = '';
is($changer->query("SET sherman.on_unavailable = break; INSERT INTO rows VALUES (-2, -2); SELECT 'added'"), 'added', 'a change finds that before it begins');
is($changer->{stderr} =~ /ERROR/, '', 'without an error');
kill 'CONT', $launcher;
attached(0);
is($session->query('EXECUTE cold(2999)'), '2999', 'when the launcher has noticed, others find their rows by the table');
is($session->query('EXECUTE kept(-2)'), '-2', 'all of them');
$msd->start;
attached(1);
is(state_of($node, 'rows_id'), 'broken', 'the index that was not changed is broken');
is(state_of($node, 'cold_id'), 'ok', 'the other one is not');
is($session->query('EXECUTE cold(2999)'), '2999', 'and the session goes on with it');
$_->quit foreach $session, $changer;

# ---- a session that is not let in

$node->safe_psql('postgres', 'REINDEX INDEX rows_id');
steps_become(qr/^@{[ROWS]} 0$/, 'rebuilt, and in the cache', $range);
my ($key_file) = $node->safe_psql('postgres', 'SHOW sherman.key_file');
my $keys = slurp_file($key_file);
Msd::write_keys($key_file, main => Msd::random_key());
$session = reader();
is($session->query('EXECUTE kept(777)'), '777', 'with a key that is not known any more it reads what there is');
$session->query('EXECUTE cold(1000)');
like($session->{stderr}, qr/ERROR:  08006: /, 'and no more');
$session->{stderr} = '';
$session->query('EXECUTE kept(777)');
like($session->{stderr}, qr/ERROR/, 'and then nothing');
$session->{stderr} = '';
$session->query('SELECT other FROM rows WHERE id = 777');
like($session->{stderr}, qr/ERROR/, 'with a new plan, too');
append_to_file("$key_file.new", $keys);
chmod 0600, "$key_file.new";
rename "$key_file.new", $key_file;
is($session->query('SELECT other FROM rows WHERE id = 777'), '777', 'with the right key all is well');
$session->quit;

done_testing();

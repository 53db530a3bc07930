
# Entries of a unique index that one statement adds together: few round trips, nobody adds a key that another session is checking, and
# a memory node that is away, or full, when they go fails the statement as a whole.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

# ---- A check that is held at each of its steps, while VACUUM removes what it has read, and another statement adds the key among others.
my $node = new_cluster('held', conf => "autovacuum = off\nsherman.operation_timeout = 600s\n");
# Has a client begin a statement, and waits until it waits for something, or is over. True: it is over.
sub begin
{
	my ($client, $name, $statement) = @_;
	my $of = "application_name = '$name' AND query LIKE '" . substr($statement, 0, 6) . "%'";

	$client->query_until(qr/begins/, "\\echo begins\n$statement;\n");
	$node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE $of AND (state = 'idle' OR wait_event_type IN ('Lock', 'Extension'))")
	  or die "$name goes on and on";
	return $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE $of AND state = 'idle'");
}

sub client
{
	my ($name, $settings) = @_;
	my $client = $node->background_psql('postgres', on_error_stop => 0);

	$client->query("SET application_name = $name; $settings");
	return $client;
}

my $waited = 0;
my $passed = 0;
for my $step (1 .. 40)
{
	# One of its own for each, so that all steps are those of the same way. The rows of many have no room where one has gone.
	my $table = "again_$step";

	$node->safe_psql('postgres', "CREATE TABLE $table (k int, w text);
		ALTER TABLE $table ALTER w SET STORAGE PLAIN;
		INSERT INTO $table SELECT i * 10, 'first' FROM generate_series(1, 400) i;
		CREATE UNIQUE INDEX ${table}_k ON $table USING sherman (k);
		DELETE FROM $table WHERE k = 2000");
	my $slow = client('slow', "SET sherman.debug_action = pause; SET sherman.debug_step = $step");
	my $many = client('many', '');
	my $vacuum = client('vacuum', '');
	$passed = begin($slow, 'slow', "INSERT INTO $table VALUES (2000, 'slow')");
	begin($vacuum, 'vacuum', 'VACUUM (INDEX_CLEANUP ON) ' . $table);
	begin($many, 'many', "INSERT INTO $table SELECT i, repeat('m', 6000) FROM generate_series(1997, 2003) i");
	$waited += $node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE application_name = 'many' AND wait_event_type = 'Lock'});
	$node->reload;
	$_->query('SELECT 1') foreach ($slow, $vacuum, $many);
	$_->quit foreach ($slow, $vacuum, $many);
	is($node->safe_psql('postgres', "SELECT count(*) FROM $table WHERE k + 0 = 2000"), '1', "step $step: one row has the key");
	is(check_index($node, "${table}_k"), '0', "step $step: the index is whole");
	last if $passed;
}
ok($passed, 'no step was left out');
ok($waited > 0, 'and one was waited for');
$node->stop;

# ---- Across the network.
my $msd = Msd->new('home', transport => 'tcp', size => 64);
$node = new_cluster('main', conf => "sherman.memory_nodes = '" . $msd->address . "'\nsherman.attach_timeout = 1s\nsherman.operation_timeout = 2s\nsherman.autoheal = off\n");

END { kill 'CONT', $msd->{pid} if $msd }

sub query
{
	return $node->safe_psql('postgres', $_[0]);
}

sub round_trips
{
	return query('SELECT sum(round_trips) FROM sherman_stat_indexes');
}

make_held_at($node);
query(q{
	CREATE TABLE rows (k bigint, w text);
	CREATE UNIQUE INDEX rows_k ON rows USING sherman (k);
	INSERT INTO rows SELECT hashint8extended(i, 0) FROM generate_series(1, 20000) i;
});
my $file = "$PostgreSQL::Test::Utils::tmp_check/rows.copy";
query("COPY (SELECT hashint8extended(i, 0) FROM generate_series(60001, 80000) i) TO '$file'");
my $before = round_trips();
for my $case (
	[ 'random keys', 'INSERT INTO rows SELECT hashint8extended(i, 0) FROM generate_series(20001, 40000) i' ],
	[ 'ascending keys', 'INSERT INTO rows SELECT i FROM generate_series(1, 20000) i' ],
	[ 'descending keys', 'INSERT INTO rows SELECT -i FROM generate_series(1, 20000) i' ],
	[ 'COPY', "COPY rows (k) FROM '$file'" ])
{
	my ($what, $statement) = @$case;

	query($statement);
	my $now = round_trips();
	note($what . ': ' . ($now - $before) / 20000 . ' round trips a row');
	cmp_ok($now - $before, '<', 4000, "$what: less than 0.2 round trips a row");
	$before = round_trips();
}
is(check_index($node, 'rows_k'), '0', 'the index is whole');

# The memory node is away when they go; what is tried again then finds nothing of them.
my $rows = query('SELECT count(*) FROM rows');
my $holder = $node->background_psql('postgres');
$holder->query_safe('SELECT pg_advisory_lock(1)');
my $writer = $node->background_psql('postgres', on_error_stop => 0);
$writer->query_until(qr/begins/, "\\set VERBOSITY verbose\n\\echo begins\nINSERT INTO rows SELECT held_at(i, 100200) FROM generate_series(100001, 100200) i;\n");
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'advisory'}) or die 'nobody is held';
kill 'STOP', $msd->{pid};
$holder->query_safe('SELECT pg_advisory_unlock(1)');
$writer->query('SELECT 1');
like($writer->{stderr}, qr/ERROR:  08006/, 'a memory node that does not answer: an error');
kill 'CONT', $msd->{pid};
$node->poll_query_until('postgres', q{SELECT every(state = 'attached') FROM sherman_stat_memory_nodes}) or die 'not attached';
is(query('SELECT count(*) FROM rows'), $rows, 'the rows are gone');
is(query('SELECT state FROM sherman_stat_indexes'), 'ok', 'the index is good');
query('INSERT INTO rows SELECT i FROM generate_series(100001, 100200) i');
is(query('SELECT count(*), count(DISTINCT k) FROM rows'), ($rows + 200) . '|' . ($rows + 200), 'they can be added');
is(check_index($node, 'rows_k'), '0', 'the index is whole');

# It dies in the midst of a transaction that has added some.
$writer->query('BEGIN; INSERT INTO rows SELECT i FROM generate_series(200001, 200200) i');
$msd->crash;
$writer->query('INSERT INTO rows SELECT i FROM generate_series(200201, 200400) i; COMMIT');
$msd->start;
$node->poll_query_until('postgres', q{SELECT every(state = 'attached') FROM sherman_stat_memory_nodes}) or die 'not attached';
query('SELECT sherman_heal(indexrelid) FROM sherman_stat_indexes');
query('INSERT INTO rows SELECT i FROM generate_series(200001, 200400) i');
is(query('SELECT count(*), count(DISTINCT k) FROM rows'), ($rows + 600) . '|' . ($rows + 600), 'killed: they can be added');
is(check_index($node, 'rows_k'), '0', 'the index is whole');
$writer->quit;
$holder->quit;

# Behind a crash of the server they go one by one until the index is healed.
query('INSERT INTO rows SELECT i FROM generate_series(300001, 300200) i');
$node->stop('immediate');
$node->start;
$before = round_trips();
query('INSERT INTO rows SELECT i FROM generate_series(300201, 300400) i');
cmp_ok(round_trips() - $before, '>=', 200, 'an index with unverified leaves: each by itself');
query('SELECT sherman_heal(indexrelid) FROM sherman_stat_indexes');
$before = round_trips();
query('INSERT INTO rows SELECT i FROM generate_series(300401, 300600) i');
cmp_ok(round_trips() - $before, '<', 100, 'healed: they go together');
is(query('SELECT count(*), count(DISTINCT k) FROM rows'), ($rows + 1200) . '|' . ($rows + 1200), 'all of them are there');
is(check_index($node, 'rows_k'), '0', 'the index is whole');
$node->stop;
$msd->stop;
$msd = undef;
done_testing();


# Entries of one statement that wait for its end, when the memory node is full, away, or does not answer then, and when the command is
# canceled: the statement fails as a whole, nothing that was committed is lost, and no index is broken that need not be.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $msd = Msd->new('home', transport => 'tcp', size => 16);
my $node = new_cluster('main',
	conf => "sherman.memory_nodes = '" . $msd->address . "'\nsherman.attach_timeout = 1s\nsherman.operation_timeout = 2s\nmax_prepared_transactions = 10\n");

END { kill 'CONT', $msd->{pid} if $msd }

sub query
{
	return $node->safe_psql('postgres', $_[0]);
}

sub wait_for_state
{
	my ($state) = @_;

	$node->poll_query_until('postgres', "SELECT every(state = '$state') FROM sherman_stat_memory_nodes") or die "not $state";
	return;
}

# Stops the memory node.  A view tells that it does not let its own session in; the launcher, for all sessions, that it is away.
sub stop_memory_node
{
	my $offset = -s $node->logfile;

	kill 'STOP', $msd->{pid};
	$node->wait_for_log(qr/memory node ".*" is not attached/, $offset);
	wait_for_state('unreachable');
	return;
}

make_held_at($node);
query(q{
	CREATE TABLE rows (id int, k text);
	INSERT INTO rows SELECT i, md5(i::text) FROM generate_series(1, 1000) i;
	CREATE INDEX rows_id ON rows USING sherman (id);
	CREATE INDEX rows_k ON rows USING sherman (k);
	CREATE FUNCTION added(index regclass) RETURNS bigint LANGUAGE sql VOLATILE AS $$ SELECT inserts FROM sherman_index_counters(index) $$;
});

# A statement whose entries wait, all but the first: it goes on when release() is called.
my $holder = $node->background_psql('postgres');
my $writer;

sub hold
{
	my ($from, $to, $settings) = @_;

	$holder->query_safe('SELECT pg_advisory_lock(1)');
	$writer = $node->background_psql('postgres', on_error_stop => 0);
	$writer->query("\\set VERBOSITY verbose\n" . ($settings // ''));
	$writer->query_until(qr/begins/, "\\echo begins\nINSERT INTO rows SELECT held_at(i, $to), md5(i::text) FROM generate_series($from, $to) i;\n");
	$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'advisory'}) or die 'nobody is held';
	return;
}

sub release
{
	$holder->query_safe('SELECT pg_advisory_unlock(1)');
	return;
}

# What the statement ends with, as the writer says.
sub outcome
{
	$writer->query('SELECT 1');
	my $errors = $writer->{stderr};

	$writer->quit;
	return $errors;
}

# The rows that are there, and both indexes: whole.
sub whole
{
	my ($rows, $what) = @_;

	is(query('SELECT count(*) FROM rows'), $rows, "$what: the rows");
	is(query(q{SELECT string_agg(state, ',') FROM sherman_stat_indexes}), 'ok,ok', "$what: both indexes are good");
	is(check_index($node, $_), '0', "$what: $_ is whole") foreach ('rows_id', 'rows_k');
	is(query('SET enable_seqscan = off; SELECT count(*), count(DISTINCT id) FROM rows WHERE id > 0'), "$rows|$rows", "$what: and finds them");
	return;
}

# It is away when the statement ends.
hold(2001, 2100);
stop_memory_node();
release();
like(outcome(), qr/ERROR:  08006/, 'a memory node that is away by then: an error');
kill 'CONT', $msd->{pid};
wait_for_state('attached');
whole(1000, 'away');

# It stops answering, and nobody knows that yet: the chain times out, and so does its reset.
hold(2101, 2200);
kill 'STOP', $msd->{pid};
release();
like(outcome(), qr/ERROR:  08006/, 'one that does not answer: an error');
kill 'CONT', $msd->{pid};
wait_for_state('attached');
whole(1000, 'no answer');

# It dies.
hold(2201, 2300);
$msd->crash;
release();
like(outcome(), qr/ERROR:  08006/, 'one that has died: an error');
$msd->start;
wait_for_state('attached');
query("SELECT sherman_heal(indexrelid) FROM sherman_stat_indexes");
whole(1000, 'died');

# The command is canceled while it adds them; its time is over.
query("ALTER SYSTEM SET sherman.operation_timeout = '60s'");
$node->reload;
foreach my $case ([ 'canceled', '', qr/ERROR:  57014: canceling statement due to user request/ ],
	[ 'out of time', "SET statement_timeout = '3s'", qr/ERROR:  57014: canceling statement due to statement timeout/ ])
{
	my ($what, $settings, $error) = @$case;

	hold(2301, 2400, $settings);
	kill 'STOP', $msd->{pid};
	release();
	$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'INSERT%' AND wait_event_type = 'Extension'}) or die 'nobody waits';
	query(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'INSERT%'}) if $what eq 'canceled';
	sleep 4 if $what ne 'canceled';
	kill 'CONT', $msd->{pid};
	like(outcome(), $error, "$what: an error");
	whole(1000, $what);
}
query('ALTER SYSTEM RESET sherman.operation_timeout');
$node->reload;

# A savepoint of before is what it is rolled back to, and the transaction goes on.
hold(2401, 2500, 'BEGIN; INSERT INTO rows SELECT i, md5(i::text) FROM generate_series(1001, 1100) i; SAVEPOINT s;');
stop_memory_node();
release();
$writer->query('ROLLBACK TO s');
kill 'CONT', $msd->{pid};
wait_for_state('attached');
$writer->query('INSERT INTO rows SELECT i, md5(i::text) FROM generate_series(1101, 1200) i; COMMIT');
like(outcome(), qr/ERROR:  08006/, 'in a subtransaction: an error');
whole(1200, 'savepoint');

# A subtransaction that ends while its statement goes on, as only C can do it: its entries go with it.
my $library = "$PostgreSQL::Test::Utils::tmp_check/rows_by_hand.so";
system_or_bail(
	$ENV{CC} // 'cc', '-O2', '-fPIC', '-shared',
	'-I' . $node->config_data('--includedir-server'), "$FindBin::RealBin/rows_by_hand.c", '-o', $library);
query("CREATE FUNCTION add_rows(regclass, int, int, boolean) RETURNS void AS '$library' LANGUAGE C");
is(query(q{
	CREATE TABLE by_hand (id int);
	CREATE INDEX by_hand_id ON by_hand USING sherman (id);
	SELECT x[3] - x[1] FROM (SELECT ARRAY[added('by_hand_id'), (SELECT 0 FROM add_rows('by_hand', 1, 50, true)), added('by_hand_id')] AS x) y}),
	'50', 'those of a subtransaction go when it ends');
is(query(q{SELECT x[3] - x[1] FROM (SELECT ARRAY[added('by_hand_id'), (SELECT 0 FROM add_rows('by_hand', 51, 100, false)), added('by_hand_id')] AS x) y}),
	'1', 'or are dropped with it');
is(query('SELECT count(*) FROM by_hand'), '50', 'as their rows are');
is(check_index($node, 'by_hand_id'), '0', 'the index is whole');
query('DROP TABLE by_hand');

# An index that becomes broken while entries wait for it is passed over, as it is by single rows.
hold(3001, 3100);
stop_memory_node();
query("SET sherman.on_unavailable = break; INSERT INTO rows VALUES (1201, 'broken')");
release();
is(outcome(), '', 'the statement that they wait in goes on');
kill 'CONT', $msd->{pid};
wait_for_state('attached');
is(query(q{SELECT string_agg(state, ',') FROM sherman_stat_indexes}), 'broken,broken', 'both are broken');
is(query('SELECT count(*) FROM rows'), '1301', 'all rows are there');
query('REINDEX TABLE rows');
whole(1301, 'rebuilt');
hold(3101, 3200, 'SET sherman.on_unavailable = break');
stop_memory_node();
release();
like(outcome(), qr/WARNING:  .*index "rows_id" was marked as broken/, 'and what waits breaks it where that is wanted');
kill 'CONT', $msd->{pid};
wait_for_state('attached');
is(query('SELECT count(*) FROM rows'), '1401', 'all rows are there');
query('REINDEX TABLE rows');
whole(1401, 'rebuilt again');

# It is full.
$node->psql('postgres', "\\set VERBOSITY verbose\nINSERT INTO rows SELECT i, (SELECT string_agg(md5(i::text || j), '') FROM generate_series(1, 30) j) FROM generate_series(10001, 35000) i", stderr => \my $stderr);
like($stderr, qr/ERROR:  53200/, 'a full memory node: an error');
whole(1401, 'full');

$holder->quit;
$node->stop;
$msd->stop;
$msd = undef;
done_testing();

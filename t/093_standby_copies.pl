
# A hot standby reads indexes with a copy (replicas = 1).  The primary reaches the memory nodes by ways of its own, which can be shut: so it loses a memory node
# that the standby still reaches, and what that one has is old.  Answers are right whichever of the two halves is lost, cut off or killed, beside changes, behind
# a crash of the primary, and when the standby is promoted.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Cluster;
use POSIX ();
use PostgreSQL::Test::Utils;
use Relay;
use Sherman;
use StandbyLoad;
use Takeover;
use Test::More;

my $seconds = $ENV{SHERMAN_STANDBY_SECONDS} // 8;
my @msd = map { Msd->new($_, size => 128, transport => 'tls') } qw(a b);
my @ways = map { Relay->new($_->address) } @msd;
my $primary = new_cluster('primary',
	allows_streaming => 1,
	conf => "sherman.operation_timeout = 5s\nsherman.attach_timeout = 60s\nsherman.failover_after = 200ms\nsherman.gone_after = -1\nsherman.take_over = auto\n"
	  . "sherman.memory_nodes = '" . join(', ', map { $_->address } @ways) . "'\n"
	  . Msd::configuration()
	  . "wal_keep_size = 512MB\nmax_standby_streaming_delay = 2s\nhot_standby_feedback = off\n");

# An index whose home is this memory node; that is drawn by lot.
sub index_at
{
	my ($name, $definition, $home) = @_;

	$primary->safe_psql('postgres', "CREATE INDEX $name ON $definition WITH (replicas = 1)");
	move_to($name, $home);
	return;
}

sub move_to
{
	my ($name, $home) = @_;

	for (1 .. 40)
	{
		return if $primary->safe_psql('postgres', "SELECT memory_nodes[1] = $home AND replicas = 'both' FROM sherman_stat_indexes WHERE indexrelname = '$name'") eq 't';
		$primary->safe_psql('postgres', "REINDEX INDEX $name");
	}
	die "$name is never at $home";
}

prepare_rows($primary);
$primary->safe_psql('postgres', 'DROP INDEX rows_id, rows_word, rows_part, rows_pair');
index_at('rows_id', 'rows USING sherman (id)', 0);
index_at('rows_word', 'rows USING sherman (word)', 1);
index_at('rows_part', 'rows USING sherman (part, id)', 0);
$primary->safe_psql('postgres', 'VACUUM ANALYZE rows');
my $standby = standby_of($primary, 'standby', "sherman.memory_nodes = '" . join(', ', map { $_->address } @msd) . "'\n");
wait_noted($primary);
$primary->wait_for_catchup($standby);

# Waits until a memory node is in this state; all are without a number.
sub wait_node
{
	my ($server, $state, $position) = @_;
	my $which = defined $position ? "WHERE position = $position" : '';

	$server->poll_query_until('postgres', "SELECT count(*) > 0 AND bool_and(state = '$state') FROM sherman_stat_memory_nodes $which")
	  or die $server->name . " has not $state\n" . situation($server);
	return;
}

sub wait_shown
{
	my ($server, $shown) = @_;

	$server->poll_query_until('postgres', "SELECT bool_and(state = 'ok' AND replicas = '$shown') FROM sherman_stat_indexes WHERE indexrelid::regclass::text LIKE 'rows%'")
	  or die $server->name . " does not show $shown\n" . situation($server);
	return;
}

# The answers of a query by index and by the table, in one snapshot.
my @queries = (
	'SELECT sum(id), count(*) FROM rows WHERE id BETWEEN 100 AND 900',
	'SELECT id FROM rows WHERE id > 500 ORDER BY id LIMIT 50',
	'SELECT id FROM rows WHERE id > 5500 ORDER BY id DESC LIMIT 500',
	'SELECT word FROM rows WHERE id = ANY (ARRAY[5, 500, 5000, 50000, 8001])',
	q{SELECT count(*), min(id) FROM rows WHERE word BETWEEN '3' AND '5'},
	'SELECT part, id FROM rows WHERE part = 3 AND id > 100');
my @kinds = (
	[ 'index', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off' ],
	[ 'index only', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = on' ],
	[ 'bitmap', 'SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off' ]);
my $by_table = 'SET enable_seqscan = on; SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off';
my $reset = 'SET enable_indexscan = on; SET enable_bitmapscan = on; SET enable_indexonlyscan = on';

sub digest
{
	return "SELECT coalesce(md5(string_agg(q::text, ' ' ORDER BY q::text)), 'nothing') FROM ($_[0]) q";
}

# By a session that has its indexes open already.
sub compare_in
{
	my ($session, $what) = @_;
	my $bad = '';

	foreach my $kind (@kinds)
	{
		foreach my $query (@queries)
		{
			my $out = $session->query("$by_table; " . digest($query) . "; $reset; $kind->[1]; " . digest($query));
			my ($table, $index) = split(/\n/, $out // '');

			$bad .= "$kind->[0]: $query\n" if ($table // 'none') ne ($index // 'no answer');
		}
	}
	is($bad, '', $what);
	return;
}

my $session = $standby->background_psql('postgres', on_error_stop => 0);

$session->set_query_timer_restart;

# By one that has been there all the time, and by a new one.
sub compare
{
	my $what = shift;
	my $new = $standby->background_psql('postgres', on_error_stop => 0);

	compare_in($session, "$what, in an old session");
	compare_in($new, "$what, in a new one");
	$new->quit;
	return;
}

sub change
{
	my ($first, $more) = @_;

	$primary->safe_psql('postgres', "INSERT INTO rows SELECT g, md5(g::text), g % 10, 'new' FROM generate_series($first, $first + 500) g;
		UPDATE rows SET word = md5(word), id = id + 1 WHERE id % 5 = 0; DELETE FROM rows WHERE id % 11 = 0");
	$primary->safe_psql('postgres', "VACUUM rows; INSERT INTO rows SELECT g, md5(g::text), g % 10, 'reused' FROM generate_series($first + 501, $first + 900) g");
	$primary->wait_for_catchup($standby);
	return;
}

sub make_both
{
	$primary->safe_psql('postgres', 'REINDEX INDEX CONCURRENTLY rows_id; REINDEX INDEX CONCURRENTLY rows_word; REINDEX INDEX CONCURRENTLY rows_part');
	move_to('rows_id', 0);
	move_to('rows_word', 1);
	move_to('rows_part', 0);
	$primary->wait_for_catchup($standby);
	wait_shown($standby, 'both');
	return;
}

wait_node($standby, 'attached');
wait_shown($standby, 'both');
ok(uses_index($standby, $_->[0], $_->[1]), "the planner of the standby chooses $_->[0]")
  foreach ([ 'rows_id', 'SELECT * FROM rows WHERE id = 500' ], [ 'rows_word', q{SELECT * FROM rows WHERE word = 'x'} ]);
compare('what was built');
change(6000);
compare('changes and VACUUM');

# ---- A memory node is cut off from the primary, and from nobody else.  What it has gets old: a half of each kind.

# A query that has begun before that reads on there.  Rows further on were deleted before, and VACUUM removes their entries from the other half alone; where
# it begins none were, so that it looks at no page of the table, which VACUUM would end it for.
$primary->safe_psql('postgres', q{
	CREATE TABLE dead (id int) WITH (fillfactor = 100);
	INSERT INTO dead SELECT g FROM generate_series(1, 20000) g;
});
index_at('dead_id', 'dead USING sherman (id)', 0);
$primary->safe_psql('postgres', 'VACUUM (FREEZE, ANALYZE) dead; DELETE FROM dead WHERE id % 2 = 0 AND id > 5000');
$primary->wait_for_catchup($standby);
$standby->poll_query_until('postgres', q{SELECT state = 'ok' FROM sherman_stat_indexes WHERE indexrelname = 'dead_id'}) or die;
my $reads_on = $standby->background_psql('postgres', on_error_stop => 0);
$reads_on->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off; BEGIN ISOLATION LEVEL REPEATABLE READ; DECLARE c CURSOR FOR SELECT id FROM dead WHERE id > 0 ORDER BY id');
is($reads_on->query_safe('FETCH 1 FROM c'), '1', 'a query has begun');
# One that is planned makes a session look at the index anew, in any case; a plan that is kept does not.
my $kept = $standby->background_psql('postgres', on_error_stop => 0);
$kept->set_query_timer_restart;
$kept->query_safe('SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; PREPARE by_id AS SELECT count(*) FROM rows WHERE id = 5550');
my $there = $kept->query_safe('EXECUTE by_id');
$ways[0]->shut;
wait_node($primary, 'unreachable', 0);
$primary->safe_psql('postgres', 'VACUUM dead');
is($primary->safe_psql('postgres', q{SELECT replicas FROM sherman_stat_indexes WHERE indexrelname = 'dead_id'}), 'one', 'the primary has given up a home');
$primary->wait_for_catchup($standby);
my $fetched = $reads_on->query('FETCH 10000 FROM c');
cmp_ok($fetched, '=~', qr/^4999$/m, 'it reads on');
is(scalar(grep { /^\d+$/ && $_ % 2 == 0 && $_ > 5000 } split(/\n/, $fetched)), 0, 'it finds no row that was deleted before it began');
eval { $reads_on->quit };

$primary->safe_psql('postgres', q{INSERT INTO rows VALUES (5550, 'added', 3, 'added')});
$primary->wait_for_catchup($standby);
is($kept->query_safe('EXECUTE by_id'), $there + 1, 'a plan that is kept finds the row that was added behind that');
change(7000);
wait_node($standby, 'attached');
compare('a memory node is cut off from the primary');
wait_shown($standby, 'one');
ok(uses_index($standby, 'rows_id', 'SELECT * FROM rows WHERE id = 500'), 'the index whose home is cut off is used');
change(8000);
compare('and more changes');

# The primary crashes meanwhile.
$primary->stop('immediate');
$primary->start;
wait_node($primary, 'attached', 1);
change(9000);
wait_node($standby, 'attached');
compare('the primary has crashed, and goes on without it');

# It is back, and is not used again; then there are copies again.
$ways[0]->open_again;
wait_node($primary, 'attached');
change(10000);
wait_node($standby, 'attached');
compare('it is back');
wait_shown($standby, 'one');
make_both();
change(11000);
compare('copies are there again');

# ---- The same beside a load: first the one, then the other.

foreach my $lost (0, 1)
{
	# Where nothing is in the way of replay it is waited for as long as it takes on a busy machine.
	$standby->safe_psql('postgres', $_) foreach 'ALTER SYSTEM SET hot_standby_feedback = on', q{ALTER SYSTEM SET max_standby_streaming_delay = '60s'};
	$standby->reload;
	$primary->poll_query_until('postgres', 'SELECT backend_xmin IS NOT NULL FROM pg_stat_replication') or die 'no feedback';
	my @changes = start_changes($primary, $seconds + 1);
	my $pid = fork // die "fork: $!";

	if ($pid == 0)
	{
		select(undef, undef, undef, $seconds / 4);
		$ways[$lost]->shut;
		POSIX::_exit(0);
	}
	my ($done, $canceled, $pinned, $bad) = compare_for($standby, $seconds, 3);

	waitpid($pid, 0);
	is($bad, '', "memory node $lost is cut off: no answer differs");
	note("$done compared, $canceled canceled, $pinned for a page");
	cmp_ok($done, '>', 0, 'some have got to their end');
	$standby->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
	$standby->reload;
	ok(ends_well($_), "$_->{name} beside it") foreach @changes;
	$primary->wait_for_catchup($standby);
	wait_shown($standby, 'one');
	compare("memory node $lost was cut off");
	$ways[$lost]->open_again;
	wait_node($primary, 'attached');
	wait_node($standby, 'attached');
	make_both();
}

# ---- A memory node is killed.  As long as the primary has not gone on without it there is no saying what is whole.

$msd[0]->crash;
wait_node($standby, 'unreachable', 0);
compare('a memory node is gone: what is not to be had is not used');
is(state_of($standby, 'rows_id'), 'unreachable', 'an index whose home it was');
is(state_of($standby, 'rows_word'), 'ok', 'one whose copy it had is read as ever');
change(12000);
wait_shown($standby, 'one');
compare('the primary goes on without it');
ok(uses_index($standby, 'rows_id', 'SELECT * FROM rows WHERE id = 500'), 'and so does the standby');
$msd[0]->start;
wait_node($primary, 'attached');
wait_node($standby, 'attached');
make_both();
compare('it is back, and copies are there again');
is($primary->safe_psql('postgres', "SELECT sherman_resync('$_')"), '0', "$_ and its copy are equal") foreach qw(rows_id rows_word rows_part);

# An index that the primary has left entries out of, as its home is cut off from the primary alone.
$primary->safe_psql('postgres', q{CREATE TABLE plain (id int); INSERT INTO plain SELECT g FROM generate_series(1, 1000) g});
$primary->safe_psql('postgres', 'CREATE INDEX plain_id ON plain USING sherman (id)');
my $home = $primary->safe_psql('postgres', q{SELECT memory_nodes[1] FROM sherman_stat_indexes WHERE indexrelname = 'plain_id'});
$primary->wait_for_catchup($standby);
$standby->poll_query_until('postgres', q{SELECT state = 'ok' FROM sherman_stat_indexes WHERE indexrelname = 'plain_id'}) or die;
my $ask = 'SET client_min_messages = error; SET enable_seqscan = off; SELECT count(*) FROM plain WHERE id = 2000';
is($session->query_safe($ask), '0', 'a row that is not there yet');
$kept->query_safe('PREPARE plain AS SELECT count(*) FROM plain WHERE id = 2000');
is($kept->query_safe('EXECUTE plain'), '0', 'nor by a plan that is kept');
$ways[$home]->shut;
wait_node($primary, 'unreachable', $home);
$primary->safe_psql('postgres', q{SET sherman.on_unavailable = 'break'; INSERT INTO plain VALUES (2000)});
$primary->wait_for_catchup($standby);
isnt($kept->query('EXECUTE plain'), '0', 'an index without its entry is not used by a plan that is kept');
is($session->query_safe($ask), '1', 'nor by a new one, though it can be reached');
$kept->quit;
$ways[$home]->open_again;
wait_node($primary, 'attached');
$primary->safe_psql('postgres', 'DROP TABLE plain, dead');
make_both();

# ---- It is promoted, in the middle of a failover: the other half is what counts.

$ways[0]->shut;
wait_node($primary, 'unreachable', 0);
change(13000);
wait_noted($primary);
$primary->wait_for_catchup($standby);
$session->quit;
$primary->stop;
$standby->promote;
wait_attached($standby);
wait_node($standby, 'attached');
isnt(state_of($standby, $_), 'broken', "$_ is the new primary's") foreach qw(rows_id rows_word rows_part);
$standby->safe_psql('postgres', q{INSERT INTO rows SELECT g, md5(g::text), 3, 'promoted' FROM generate_series(20000, 20100) g});
is(check_index($standby, $_), '0', "$_ is whole") foreach qw(rows_id rows_word rows_part);
$session = $standby->background_psql('postgres', on_error_stop => 0);
compare('what is read by the new primary');
$session->quit;
unlike(slurp_file($_->logfile), qr/PANIC|TRAP|terminated by signal/, $_->name . ': nothing has crashed') foreach $primary, $standby;
$standby->stop;
done_testing();


# Entries of one statement on their way to two memory nodes, into a unique index and another one, by a session and by an apply worker: at steps all
# along the way a memory node is killed, stops, or loses its connections; the command is canceled; memory nodes are full, and then that,
# too.  The statement fails as a whole or has all of its rows, nothing that was committed is lost, and both indexes are whole.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Utils;
use Relay;
use Sherman;
use Test::More;
use Time::HiRes qw(usleep);

need_steps();

my $rows = 200;
my $base = 6000;
my $round = 0;
my @msd = map { Msd->new($_, size => 16, transport => 'tcp') } 'a', 'b';
my @relays = map { Relay->new($_->address) } @msd;
my $node = new_cluster('main', allows_streaming => 'logical',
	conf => "sherman.memory_nodes = '" . join(', ', map { $_->address } @relays) . "'\nsherman.attach_timeout = 1s\nsherman.operation_timeout = 2s\n" .
	  "wal_retrieve_retry_interval = 100ms\nmax_worker_processes = 12\n");

END { kill 'CONT', map { $_->{pid} // () } @msd }

sub query
{
	return $node->safe_psql('postgres', $_[0]);
}

sub wait_until_attached
{
	$node->poll_query_until('postgres', q{SELECT count(*) = 2 AND bool_and(state = 'attached') FROM sherman_stat_memory_nodes}) or die "not attached\n" . situation($node);
	return;
}

# Rows with keys of their own in each round: at random, so that they are of many leaves at both memory nodes.
sub insert
{
	my ($number, $count) = @_;

	return "INSERT INTO rows SELECT hashint8extended(i, $number), hashint8extended(i, -1 - $number) FROM generate_series(1, " . ($count // $rows) . ') i';
}

my $table = 'CREATE TABLE rows (k bigint, w bigint)';
query("$table;
	CREATE UNIQUE INDEX rows_k ON rows USING sherman (k);
	CREATE INDEX rows_w ON rows USING sherman (w)");
query(insert(0, $base));
my $count = $base;

# All rows that are to be there are, once, and by both indexes, which are whole.
sub whole
{
	my ($what) = @_;
	my $sum = 'count(*), sum(hashint8(k)::numeric), sum(hashint8(w)::numeric) FROM rows';
	my $by_table = query("SET enable_indexscan = off; SET enable_bitmapscan = off; SELECT $sum");

	like($by_table, qr/^$count\|/, "$what: the rows");
	is(query("SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT $sum WHERE k IS NOT NULL"), $by_table, "$what: by the unique index");
	is(query("SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT $sum WHERE w IS NOT NULL"), $by_table, "$what: by the other index");
	is(query(q{SELECT string_agg(state || sherman_check(indexrelid, true), ' ') FROM sherman_stat_indexes WHERE indexrelid IN ('rows_k'::regclass, 'rows_w'::regclass)}),
		'ok0 ok0', "$what: both are whole");
	return;
}

sub count_rows
{
	return query('SET enable_indexscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM rows');
}

# What befalls a memory node, and how that ends.
my %faults = (
	cut => { begin => sub { $relays[ $_[0] ]->cut; usleep(100_000) }, end => sub { } },
	killed => { begin => sub { $msd[ $_[0] ]->crash }, end => sub { $msd[ $_[0] ]->start } },
	stopped => { begin => sub { kill 'STOP', $msd[ $_[0] ]{pid} }, end => sub { kill 'CONT', $msd[ $_[0] ]{pid} } });

sub end_fault
{
	my ($fault, $which) = @_;

	$faults{$fault}{end}->($which);
	wait_until_attached();
	query(q{SELECT sherman_heal(indexrelid) FROM sherman_stat_indexes WHERE state = 'healing'});
	return;
}

# Numbers spread evenly over 1 .. $steps.
sub spread
{
	my ($steps, $count) = @_;

	return map { 1 + int(($_ - 0.5) * $steps / $count) } 1 .. $count;
}

# Waits until a process has got to its step; false: it was through before.
sub wait_for_step
{
	my ($offset, $through) = @_;

	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return 1 if slurp_file($node->logfile, $offset) =~ /sherman\.debug_step: pause at/;
		return 0 if $through->();
		usleep(100_000);
	}
	die "no step, and no end\n" . situation($node);
}

# ---- A session.

# Runs a statement up to a step, or its end, has something done there, and lets it go on.  Returns its errors.
sub run_with
{
	my ($step, $statement, $act) = @_;
	my $offset = -s $node->logfile;
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->query("\\set VERBOSITY verbose\nSET application_name = 'writer'; SET sherman.debug_action = pause; SET sherman.debug_step = $step");
	$session->query_until(qr/begins/, "\\echo begins\n$statement;\n");
	wait_for_step($offset, sub { query(q{SELECT count(*) FROM pg_stat_activity WHERE application_name = 'writer' AND state = 'idle' AND query ~ '^INSERT'}) });
	$act->();
	$node->reload;
	$session->query('SELECT 1');
	my $errors = $session->{stderr};

	$session->quit;
	# That of the client, of each query.
	return join("\n", grep { /ERROR|WARNING|FATAL|PANIC/ } split(/\n/, $errors));
}

# The steps of a statement that goes through.
sub count_steps
{
	my ($statement) = @_;
	my ($steps) = query("SET sherman.debug_step = 1000000; $statement; SHOW sherman.debug_passed") =~ /(\d+)\z/;

	return $steps;
}

# Statements that have failed by each fault, and the indexes that were named.
my %failed;

# The statement of the next round with a fault at a step: it has all of its rows, or none, while the memory node is away, too.
sub fault_at
{
	my ($fault, $which, $step) = @_;
	my $what = "$fault at step $step";
	my $errors = run_with($step, insert(++$round), sub { $faults{$fault}{begin}->($which) });

	if ($errors eq '')
	{
		$count += $rows;
		is(count_rows(), $count, "$what: all of its rows are there");
		end_fault($fault, $which);
		whole($what);
		return;
	}
	like($errors, qr/^(?:psql:\S* )?ERROR:  08006: memory node of index "rows_[kw]" [^\n]*$/, "$what: an error that says so");
	$failed{$fault}++;
	$failed{$1}++ if $errors =~ /"(rows_[kw])"/;
	is(count_rows(), $count, "$what: none of its rows is there");
	end_fault($fault, $which);
	query(insert($round));
	$count += $rows;
	whole("$what, and the same rows once more");
	return;
}

my $steps = count_steps(insert(++$round));

$count += $rows;
whole('no fault');
note("$steps steps");
foreach my $fault ('cut', 'killed', 'stopped')
{
	my $which = 0;

	fault_at($fault, $which++ % 2, $_) foreach spread($steps, $fault eq 'cut' ? 6 : 5);
}
ok($failed{$_}, "$_: statements have failed") foreach 'killed', 'stopped', 'rows_k', 'rows_w';

# ---- Canceled, at each step: an error, and none of its rows, or all of them, and the next statement is not
# canceled in its place.
$steps = count_steps(insert(++$round));
$count += $rows;
my $script = "SET sherman.debug_action = cancel;\n";
my @steps = 1 .. $steps;

foreach my $step (@steps)
{
	$round++;
	$script .= "SET sherman.debug_step = $step;\n" . insert($round) . ";\n\\echo step $step :SQLSTATE\nSET sherman.debug_step = 0;\n" .
	  "SELECT 'rows', count(*) FROM rows WHERE k = ANY (SELECT hashint8extended(i, $round) FROM generate_series(1, $rows) i);\n";
}
my ($status, $stdout) = $node->psql('postgres', $script, on_error_stop => 0);
my @outcomes = $stdout =~ /^step (\d+ \d+\nrows\|\d+)$/mg;
my %outcomes;

foreach (@outcomes)
{
	my ($step, $state, $found) = /^(\d+) (\d+)\nrows\|(\d+)/;

	push @{ $outcomes{"$state|$found"} }, $step;
	$count += $found;
}
is(scalar(@outcomes), scalar(@steps), 'canceled: the session goes on');
is(join(' ', sort keys %outcomes), "00000|$rows 57014|0", 'canceled: all rows, or an error and none');
note("$_ at steps @{ $outcomes{$_} } of $steps") foreach sort keys %outcomes;
whole('canceled');

# By another thing than a user: its time is over in the last wave.
my $errors = run_with($steps - 6, "SET statement_timeout = '1s';\n" . insert(++$round), sub { sleep 2 });

like($errors, qr/^$|ERROR:  57014: canceling statement due to statement timeout/, 'out of time in the last wave: an error that says so, or none');
$count += $rows if $errors eq '';
whole('out of time');

# ---- An apply worker.
my $publisher = new_cluster('publisher', allows_streaming => 'logical');

$publisher->safe_psql('postgres', "$table; CREATE PUBLICATION pub FOR TABLE rows");
query("CREATE SUBSCRIPTION sub CONNECTION '" . $publisher->connstr . " dbname=postgres' PUBLICATION pub");
$node->poll_query_until('postgres', q{SELECT count(*) = 1 AND bool_and(srsubstate IN ('r', 's')) FROM pg_subscription_rel}) or die 'not subscribed';
$publisher->wait_for_catchup('sub');
my $worker = query(q{SELECT backend_type FROM pg_stat_activity WHERE backend_type ~ '^logical replication (apply )?worker$'});

sub publish
{
	my ($count) = @_;

	$publisher->safe_psql('postgres', insert(++$round, $count));
	return;
}

# At steps of the worker: it fails and says why, and tries again until the memory node is there, and then all rows are there, once.
sub worker_fault_at
{
	my ($fault, $which, $step) = @_;
	my $what = "apply worker, $fault at step $step";
	my $offset = -s $node->logfile;
	my $has_failed;

	query("ALTER SYSTEM SET sherman.debug_process = '$worker'");
	query('ALTER SYSTEM SET sherman.debug_action = pause');
	query("ALTER SYSTEM SET sherman.debug_step = $step");
	$node->reload;
	# On a busy machine the rows may be there before the worker has read the settings: then others meet the step.
	foreach my $try (1 .. 5)
	{
		publish();
		last if wait_for_step($offset, sub { count_rows() != $count });
		die "$what: it was not met" if $try == 5;
		$publisher->wait_for_catchup('sub');
		$count = count_rows();
	}
	$faults{$fault}{begin}->($which);
	query('ALTER SYSTEM RESET sherman.debug_step');
	query('ALTER SYSTEM RESET sherman.debug_process');
	$node->reload;
	$has_failed = $node->poll_query_until('postgres', "SELECT count(*) = $count + $rows FROM rows") if $fault eq 'cut';
	$node->wait_for_log(qr/ERROR:  memory node of index "rows_[kw]"/, $offset) if $fault ne 'cut';
	is(count_rows(), $count, "$what: none of its rows is there") if $fault ne 'cut';
	end_fault($fault, $which);
	$publisher->wait_for_catchup('sub');
	$count += $rows;
	whole($what);
	return;
}

my $which = 0;

foreach my $fault ('cut', 'killed', 'stopped')
{
	worker_fault_at($fault, $which++ % 2, $_) foreach spread($steps - 10, 3);
}

# ---- Full memory nodes.
query('CREATE TABLE filler (id int, pad text); CREATE INDEX filler_pad ON filler USING sherman (pad)');
my $many = 20000;
my $wanted = 4000;

foreach my $try (1 .. 1000)
{
	# Pieces of one text that cannot be compressed; in smaller steps as there is less room.
	last if $node->psql('postgres', "INSERT INTO filler SELECT i, i || ':' || $try || substr(t, i * 13, 1200) FROM generate_series(1, $wanted) i,
		(SELECT string_agg(md5(j::text || $try), '') AS t FROM generate_series(1, 2000) j) b") != 0 && ($wanted = int($wanted / 4)) < 2;
}
# And what room the leaves have that are there, but for less than is asked for next.
foreach my $try (1 .. 1000)
{
	last if $node->psql('postgres', insert(++$round, $many / 4)) != 0;
	$count += $many / 4;
}
$errors = run_with(1_000_000, insert(++$round, $many), sub { });
like($errors, qr/ERROR:  53200: memory node is full/, 'full: an error that says so');
whole('full');
$steps = 60;
$which = 0;
foreach my $fault ('cut', 'killed', 'stopped')
{
	foreach my $step (spread($steps, 3))
	{
		my $place = $which++ % 2;

		$errors = run_with($step, insert(++$round, $many), sub { $faults{$fault}{begin}->($place) });
		like($errors, qr/ERROR:  (?:53200: memory node is full|08006: memory node of index "rows_[kw]")/, "full, and $fault at step $step: an error that says so");
		is(count_rows(), $count, "full, and $fault at step $step: none of its rows is there");
		end_fault($fault, $place);
		whole("full, and $fault at step $step");
	}
}
my $offset = -s $node->logfile;

publish($many);
$node->wait_for_log(qr/ERROR:  memory node is full/, $offset);
is(count_rows(), $count, 'full: the apply worker has added none of its rows');
query('DROP TABLE filler');
$publisher->wait_for_catchup('sub');
$count += $many;
whole('the apply worker, and there is room again');
query('DROP SUBSCRIPTION sub');
$publisher->stop;

$node->stop;
$_->stop foreach @msd;
done_testing();

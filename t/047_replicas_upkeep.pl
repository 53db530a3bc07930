
# Upkeep of indexes with replicas = 1: VACUUM, sherman_check(), sherman_resync() and sherman_heal() that meet the loss of a memory node
# in the middle go on with the other one, as queries and inserts do (t/040_replicas).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use Msd;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

need_steps();

my @msd = (Msd->new('a', size => 64), Msd->new('b', size => 64));
my $node = new_cluster('main',
	conf => "sherman.attach_timeout = 5min\nsherman.failover_after = 100ms\nsherman.gone_after = -1\nsherman.memory_nodes = '"
	  . join(', ', map { $_->address } @msd) . "'\n" . Msd::configuration());

sub query
{
	return $node->safe_psql('postgres', shift);
}

sub wait_for
{
	my $sql = shift;

	$node->poll_query_until('postgres', $sql) or die "in vain: $sql";
	return;
}

sub all_attached
{
	wait_for(q{SELECT count(*) = 2 AND bool_and(state = 'attached') FROM sherman_stat_memory_nodes});
	return;
}

sub shown
{
	return query(shift . q{ FROM sherman_stat_indexes WHERE indexrelid = 'rows_id'::regclass});
}

# The table and its index as ever, with a copy, and rows to be removed: all of some leaves, so that they are merged, and some of others.
sub prepare
{
	query(q{TRUNCATE rows; INSERT INTO rows SELECT g FROM generate_series(1, 3000) g; REINDEX INDEX rows_id});
	query(q{DELETE FROM rows WHERE id % 5 = 0 OR id BETWEEN 1000 AND 2000});
	is(shown('SELECT replicas'), 'both', 'there is a copy');
	return;
}

# What psql is to do: the statement, in a session that acts at a step. It has much less time than whoever waits for a memory node.
sub session
{
	my ($statement, $step, @behind) = @_;

	return ('psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-v', 'VERBOSITY=verbose', '-d', $node->connstr('postgres'),
		map { ('-c', $_) } q{SET statement_timeout = '60s'}, 'SET sherman.debug_action = pause', "SET sherman.debug_step = $step", $statement, @behind);
}

# Steps that a statement takes.
sub steps_of
{
	my $statement = shift;
	my ($out) = run_command([ session($statement, 2_000_000_000, 'SHOW sherman.debug_passed') ]);

	$out =~ /(\d+)$/ or die "no steps: $out";
	return $1;
}

# meets_loss(statement, step, half, what): the statement is held up at that step, while the memory node of the home or of the copy is lost.
sub meets_loss
{
	my ($statement, $step, $half, $what) = @_;
	my %position;
	my $offset = -s $node->logfile;
	my ($out, $errors) = ('', '');

	@position{ 'home', 'copy' } = shown('SELECT memory_nodes') =~ /^\{(\d),(\d)\}$/ or die "$what: not on two memory nodes";
	$what = "$what, the $half is lost at step $step";
	my $run = IPC::Run::start([ session($statement, $step) ], '>', \$out, '2>', \$errors);
	$node->wait_for_log(qr/sherman\.debug_step: pause at step $step,/, $offset);
	$msd[ $position{$half} ]->crash;
	wait_for("SELECT state = 'unreachable' FROM sherman_stat_memory_nodes WHERE position = $position{$half}");
	$node->reload;
	ok($run->finish, "$what: it goes on");
	is($errors, '', "$what: without an error");
	return ($out, $position{$half}, $what);
}

# Behind it the index is whole, on the other memory node alone if it was changed; then both are there again.
sub whole_behind
{
	my ($lost, $what) = @_;

	is(check_index($node, 'rows_id'), '0', "$what: the index has what the table has");
	is(query('SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM rows WHERE id > 0'),
		query('SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM rows WHERE id > 0'),
		"$what: a scan has as many rows");
	is(shown('SELECT state'), 'ok', "$what: it is good");
	$msd[$lost]->start;
	all_attached();
	return;
}

query('CREATE TABLE rows (id bigint); CREATE INDEX rows_id ON rows USING sherman (id) WITH (replicas = 1)');

# ---- VACUUM: noting the removal, in the walk, in merging.

prepare();
my $steps = steps_of('VACUUM (INDEX_CLEANUP on) rows');

note("VACUUM has $steps steps");
foreach my $half ('home', 'copy')
{
	foreach my $part (0, 0.3, 0.6, 0.95)
	{
		prepare();
		my (undef, $lost, $what) = meets_loss('VACUUM (INDEX_CLEANUP on) rows', 1 + int($part * $steps), $half, 'VACUUM');

		is(shown('SELECT replicas'), 'one', "$what: on the other memory node alone");
		whole_behind($lost, $what);
	}
}

# ---- sherman_check(): reading the tree, and comparing the copies.

prepare();
query('VACUUM rows');
$steps = steps_of(q{SELECT sherman_check('rows_id', true)});
note("sherman_check() has $steps steps");
foreach my $case ([ 'home', 0.2 ], [ 'home', 0.9 ], [ 'copy', 0.9 ])
{
	my ($half, $part) = @$case;

	prepare();
	my ($out, $lost, $what) = meets_loss(q{SELECT sherman_check('rows_id', true)}, 1 + int($part * $steps), $half, 'sherman_check()');

	like($out, qr/^0$/, "$what: no problem is found");
	whole_behind($lost, $what);
}

# ---- sherman_resync(), whose copy goes; sherman_heal() behind a crash: the home is the tree, the copy was not compared yet.

prepare();
my (undef, $lost, $what) = meets_loss(q{SELECT sherman_resync('rows_id')}, 10, 'copy', 'sherman_resync()');
whole_behind($lost, $what);
prepare();
query(q{INSERT INTO rows VALUES (5000)});
$node->stop('immediate');
start_again($node);
is(shown('SELECT state, replicas'), 'healing|in doubt', 'a crash');
(undef, $lost, $what) = meets_loss(q{SELECT sherman_heal('rows_id')}, 50, 'copy', 'sherman_heal()');
whole_behind($lost, $what);
unlike(slurp_file($node->logfile), qr/PANIC|TRAP/, 'no process failed');

$node->stop;
done_testing();


# What a plan asks memory nodes for: nothing, unless there is a path that would use an index of ours; the first such plan of a session
# connects if the launcher has heard nothing of late.  So it may find that the memory node is away, and goes on without the index.

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

my $msd = Msd->new('a', size => 64, transport => 'tls');
my $node = new_cluster('main', conf => "sherman.memory_nodes = '" . $msd->address . "'\n" . Msd::configuration());

sub session
{
	my @statements = @_;

	return ('psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-v', 'VERBOSITY=verbose', '-d', $node->connstr('postgres'), map { ('-c', $_) } @statements);
}

# Steps of each statement, all in one new session: two are a connection, and two each chain and each call.
sub steps_of
{
	my @statements = @_;
	my ($out, $errors) = run_command([ session(map { ('SET sherman.debug_step = 2000000000', "DO \$\$ BEGIN $_; END \$\$", 'SHOW sherman.debug_passed') } @statements) ]);

	is($errors, '', 'no error');
	return join ' ', split /\n/, $out;
}

$node->safe_psql('postgres', q{
	CREATE TABLE rows (id int, other int, name text COLLATE "C");
	INSERT INTO rows SELECT g, g % 100, md5(g::text) FROM generate_series(1, 50000) g;
	CREATE INDEX rows_id ON rows USING sherman (id);
	CREATE UNIQUE INDEX rows_name ON rows USING sherman (name);
	CREATE INDEX rows_part ON rows USING sherman (other) WHERE id < 100;
	ANALYZE rows;
});

# Looked for by nothing that an index has, beside another table, and by a unique index for whether a join is needed: that is known without it.
my @elsewhere = (
	q{EXECUTE 'EXPLAIN SELECT * FROM rows WHERE other = 5'},
	q{EXECUTE 'EXPLAIN SELECT sum(other) FROM rows'},
	q{EXECUTE 'EXPLAIN SELECT a.other FROM rows a JOIN pg_class c ON c.relpages = a.other'},
	q{PERFORM count(*) FROM (SELECT * FROM rows WHERE other = 5 OFFSET 0) r});
my $by_index = q{EXECUTE 'EXPLAIN SELECT * FROM rows WHERE id = 25000'};

foreach my $life ('where it was built', 'behind a restart')
{
	is(steps_of(@elsewhere), '0 0 0 0', "$life: plans without a use for an index ask for nothing, and do not connect");
	like(steps_of($elsewhere[0], $by_index, $by_index, $by_index, $elsewhere[1]), $life =~ /restart/ ? qr/^0 [1-9]\d* \d+ 0 0$/ : qr/^0 \d+ \d+ 0 0$/,
		"$life: one that could use it does once, until it knows the way");
	is(steps_of(($by_index) x 3, q{EXECUTE 'EXPLAIN SELECT * FROM rows WHERE id = 25000 AND other = 5'}), '0 0 0 0',
		"$life: a session that comes later does not even connect");
	$node->restart;
	$node->poll_query_until('postgres', q{SELECT state = 'attached' FROM sherman_stat_memory_nodes}) or die 'not attached';
}

# The memory node goes while a plan is about to connect, as the launcher has heard nothing of late: to the session everything is still well.
my $launcher = $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'sherman launcher'});
kill 'STOP', $launcher;
foreach my $try (1 .. 60)
{
	last if steps_of($by_index) ne '0';
	sleep 1;
}
my $offset = -s $node->logfile;
my ($out, $errors) = ('', '');
my $run = IPC::Run::start(
	[   session('SET enable_seqscan = off', 'SET sherman.debug_action = pause', 'SET sherman.debug_step = 1',
			'SELECT other FROM rows WHERE id = 25042', 'SELECT id FROM rows WHERE id < 3 ORDER BY id') ],
	'>', \$out, '2>', \$errors);
$node->wait_for_log(qr/sherman\.debug_step: pause at step 1, before connect/, $offset);
$msd->crash;
kill 'CONT', $launcher;
$node->poll_query_until('postgres', q{SELECT state = 'unreachable' FROM sherman_stat_memory_nodes}) or die 'reachable all the time';
$node->reload;
ok($run->finish, 'the query goes on');
is($errors, '', 'without an error');
is($out, "42\n1\n2\n", 'by the table');
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT other FROM rows WHERE id = 25043'), '43', 'so do others');

$msd->start;
$node->poll_query_until('postgres', q{SELECT state = 'attached' FROM sherman_stat_memory_nodes}) or die 'not attached';
ok(uses_index($node, 'rows_id', 'SELECT * FROM rows WHERE id = 25042'), 'when it is back the index is used');
is(check_index($node, 'rows_id'), '0', 'and whole');

done_testing();

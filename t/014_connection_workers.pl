
# Connection workers: all kinds of work go through them; a worker that ends under load is replaced, and nobody's rows suffer;
# cancels, short sessions, and what happens when there is no worker.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;
use Time::HiRes 'usleep';

my $node = new_cluster('workers', conf => "sherman.connection_workers = 2\nsherman.operation_timeout = 120s\n");

sub figure
{
	my $column = shift;

	return $node->safe_psql('postgres', "SELECT sum($column) FROM sherman_stat_connection_workers");
}

$node->safe_psql('postgres', q{
	CREATE TABLE entries (id bigint, name text, number int);
	INSERT INTO entries SELECT i, md5(i::text), i % 100 FROM generate_series(1, 5000) i;
	CREATE INDEX entries_id ON entries USING sherman (id);
	CREATE INDEX entries_name ON entries USING sherman (name);
	CREATE INDEX entries_both ON entries USING sherman (id, name);
	UPDATE entries SET number = number + 1 WHERE id % 7 = 0;
	DELETE FROM entries WHERE id % 11 = 0;
	VACUUM entries;
});
cmp_ok(figure('chains'), '>', 100, 'chains went through the workers');
is(check_index($node, $_), '0', "$_ is whole") for qw(entries_id entries_name entries_both);
is($node->safe_psql('postgres', 'SELECT max(connections) FROM sherman_stat_connection_workers'),
	1, 'no worker has more than one connection');

# A load whose workers are ended again and again.
$node->safe_psql('postgres', 'CREATE TABLE load (id bigserial, value double precision);'
	  . 'CREATE INDEX load_value ON load USING sherman (value)');
my $script = PostgreSQL::Test::Utils::tempdir() . '/load.sql';
append_to_file($script, "INSERT INTO load (value) SELECT random() FROM generate_series(1, 5);\n"
	  . "SELECT count(*) FROM load WHERE value BETWEEN 0.5 AND 0.501;\n");
my $load = IPC::Run::start(
	[ 'pgbench', '-n', '-c', '4', '-t', '400', '-f', $script, '-h', $node->host, '-p', $node->port, 'postgres' ],
	'>', \my $output, '2>&1');
for my $round (1 .. 3)
{
	my $starts = figure('starts');

	kill 'TERM', split(/\n/, $node->safe_psql('postgres', 'SELECT pid FROM sherman_stat_connection_workers'));
	ok( $node->poll_query_until('postgres',
			"SELECT sum(starts) >= $starts + 2 AND count(pid) = 2 FROM sherman_stat_connection_workers"),
		"ended workers are started again, round $round");
}
$load->finish;
is($load->result(0), 0, 'the load has met no error') or diag($output);
is($node->safe_psql('postgres', 'SELECT count(*) FROM load'), 4 * 400 * 5, 'all rows are there');
is(check_index($node, 'load_value'), '0', 'in its index too');
is(state_of($node, 'load_value'), 'ok', 'its index is good');

# Cancels in the middle of everything.
$load = IPC::Run::start(
	[ 'pgbench', '-n', '-c', '4', '-t', '300', '-f', $script, '-h', $node->host, '-p', $node->port, 'postgres' ],
	'>', \$output, '2>&1');
for (1 .. 20)
{
	$node->safe_psql('postgres',
		"SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE application_name = 'pgbench'");
	usleep(20_000);
}
$load->finish;
is(check_index($node, 'load_value'), '0', 'its index is whole after cancels');

# Writers of one leaf wait for each other in this server, and take the lock over from each other: as often as it takes.
$node->safe_psql('postgres', 'CREATE TABLE hot (id int); CREATE INDEX hot_id ON hot USING sherman (id)');
my $hot = PostgreSQL::Test::Utils::tempdir() . '/hot.sql';
my $counters = q{SELECT lock_waits > 0 AND handovers > 0, handovers <= lock_waits AND handover_images <= handovers
	AND lock_acquisitions > 0 FROM sherman_stat_indexes WHERE indexrelid = 'hot_id'::regclass};
append_to_file($hot, "INSERT INTO hot VALUES (1);\n");
for my $round (1 .. 100)
{
	last if $node->safe_psql('postgres', $counters) =~ /^t/;
	system_log('pgbench', '-n', '-c', '8', '-t', '50', '-f', $hot, '-h', $node->host, '-p', $node->port, 'postgres') == 0
	  or die 'pgbench failed';
}
is($node->safe_psql('postgres', $counters), 't|t', 'waits for locks and handovers are counted');
is(check_index($node, 'hot_id'), '0', 'and nothing is lost by them');

# Short sessions, and more of them than before; each takes its slot from one that has gone.
my $calls = figure('calls');
$node->command_ok(
	[ 'pgbench', '-n', '-C', '-c', '8', '-t', '25', '-f', $script, '-h', $node->host, '-p', $node->port, 'postgres' ],
	'a session for each transaction');
cmp_ok(figure('calls'), '>=', $calls + 200, 'each of them was served');
ok($node->poll_query_until('postgres', 'SELECT sum(clients) <= 1 FROM sherman_stat_connection_workers'),
	'and has given its slot back');
is($node->safe_psql('postgres', 'SELECT sum(connections) FROM sherman_stat_connection_workers'),
	2, 'over the same connections');
is(check_index($node, 'load_value'), '0', 'its index is whole after short sessions');

# A clean end with workers, and indexes that survive it.
$node->restart;
is(state_of($node, $_), 'ok', "$_ is good after a restart") for qw(entries_id entries_name entries_both load_value);
is(check_index($node, 'load_value'), '0', 'and load_value is whole');

$node->stop;

done_testing();


# Keys of a statement with ON CONFLICT whose entries wait: few round trips; nothing is left of them when a memory node is away, or a session or
# a transaction ends; more of them than there is room for.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;
use Time::HiRes qw(usleep);

my $library = "$PostgreSQL::Test::Utils::tmp_check/bystander.so";
my $msd = Msd->new('home', transport => 'tcp', size => 128);
my $node = new_cluster('main', start => 0,
	conf => "sherman.memory_nodes = '" . $msd->address . "'\nsherman.attach_timeout = 1s\nsherman.operation_timeout = 2s\nsherman.autoheal = off\n" .
	  "autovacuum = off\nbgwriter_lru_maxpages = 0\n");

END { kill 'CONT', $msd->{pid} if $msd }

system_or_bail($ENV{CC} // 'cc', '-O1', '-fPIC', '-shared', '-w', '-I' . $node->config_data('--includedir-server'), "$FindBin::RealBin/bystander.c", '-o', $library);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'sherman, $library'");
$node->start;
$node->safe_psql('postgres', "CREATE EXTENSION IF NOT EXISTS sherman;
	CREATE FUNCTION held_abort() RETURNS void LANGUAGE c AS '$library', 'bystander_held_abort'");

sub query
{
	return $node->safe_psql('postgres', $_[0]);
}

sub round_trips
{
	return query('SELECT sum(round_trips) FROM sherman_stat_indexes');
}

sub is_whole
{
	my ($what) = @_;

	is(query('SELECT count(*) - count(DISTINCT k) FROM rows'), '0', "$what: no key comes twice");
	is(check_index($node, $_), '0', "$what: $_ is whole") foreach qw(rows_k rows_v);
	return;
}

# Has a session run a statement that is held up at one of its rows.
sub begin_held
{
	my ($name, $statement) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->query("SET application_name = '$name'");
	$session->query_until(qr/begins/, "\\set VERBOSITY verbose\n\\echo begins\n$statement;\n");
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = '$name' AND wait_event = 'advisory'")
	  or die "$name is not held";
	return $session;
}

# Whoever holds them up; a session of its own each time, as all that is done by one has to be done in time.
my $holder;

sub hold
{
	$holder = $node->background_psql('postgres');
	$holder->query_safe('SELECT pg_advisory_lock(1)');
	return;
}

sub let_go
{
	$holder->query_safe('SELECT pg_advisory_unlock(1)');
	$holder->quit;
	return;
}

make_held_at($node);
query(q{
	CREATE TABLE rows (k bigint, v int DEFAULT 0);
	CREATE UNIQUE INDEX rows_k ON rows USING sherman (k);
	CREATE INDEX rows_v ON rows USING sherman (v);
	INSERT INTO rows SELECT hashint8extended(i, 0), i FROM generate_series(1, 20000) i;
});

# ---- Round trips.
my $before = round_trips();
for my $case (
	[ 'new rows', 'INSERT INTO rows SELECT hashint8extended(i, 0) FROM generate_series(20001, 40000) i ON CONFLICT DO NOTHING' ],
	[ 'every second row', 'INSERT INTO rows SELECT hashint8extended(i * 2, 0) FROM generate_series(15001, 35000) i ON CONFLICT (k) DO NOTHING' ],
	[ 'rows of the statement', 'INSERT INTO rows SELECT i / 2 FROM generate_series(1, 20000) i ON CONFLICT DO NOTHING' ],
	[ 'new rows, or updates', 'INSERT INTO rows SELECT i FROM generate_series(5001, 25000) i ON CONFLICT (k) DO UPDATE SET v = rows.v + 1' ])
{
	my ($what, $statement) = @$case;

	query($statement);
	my $now = round_trips();
	note($what . ': ' . ($now - $before) / 20000 . ' round trips a row');
	cmp_ok($now - $before, '<', $what =~ /updates/ ? 12000 : 4000, "$what: few round trips a row");
	$before = round_trips();
}
# The first of them meet an index that is one leaf.
query('CREATE TABLE fresh (k bigint); CREATE UNIQUE INDEX fresh_k ON fresh USING sherman (k)');
$before = round_trips();
query('INSERT INTO fresh SELECT hashint8extended(i, 0) FROM generate_series(1, 20000) i ON CONFLICT DO NOTHING');
cmp_ok(round_trips() - $before, '<', 2000, 'into an empty index: few round trips a row');
is(query('SELECT count(*) FROM fresh'), '20000', 'all rows');
is(check_index($node, 'fresh_k'), '0', 'it is whole');
is_whole('behind them');

# ---- The memory node is away when they go.
my $rows = query('SELECT count(*) FROM rows');
my $held = 'INSERT INTO rows SELECT held_at(i, 100200), i FROM generate_series(100001, 100200) i ON CONFLICT DO NOTHING';
my $again = 'INSERT INTO rows SELECT i, i FROM generate_series(100001, 100200) i ON CONFLICT DO NOTHING';
hold();
my $writer = begin_held('away', $held);
kill 'STOP', $msd->{pid};
let_go();
$writer->query('SELECT 1');
like($writer->{stderr}, qr/ERROR:  08006/, 'a memory node that does not answer: an error');
kill 'CONT', $msd->{pid};
$node->poll_query_until('postgres', q{SELECT every(state = 'attached') FROM sherman_stat_memory_nodes}) or die 'not attached';
is(query('SELECT count(*) FROM rows'), $rows, 'the rows are gone');
query($again);
is(query('SELECT count(*) FROM rows'), $rows + 200, 'they can be added');
is_whole('behind it');
$writer->quit;

# ---- A session that is ended.
query('DELETE FROM rows WHERE k BETWEEN 100001 AND 100200');
hold();
$writer = begin_held('ended', $held);
query(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ended'});
$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'ended'}) or die 'it has not ended';
query($again);
is(query('SELECT count(*) FROM rows'), $rows + 200, 'a session ends: its rows can be added');
let_go();

# ---- A transaction that has aborted, and is held up before it takes its keys back: VACUUM gives the places of its rows to others.
query('DELETE FROM rows WHERE k BETWEEN 100001 AND 100200; VACUUM rows; CREATE TABLE few (k int, w text);
	CREATE UNIQUE INDEX few_k ON few USING sherman (k)');
hold();
$writer = begin_held('aborted', 'SELECT held_abort(); INSERT INTO few SELECT held_at(i, 10) / (10 - i), NULL FROM generate_series(1, 10) i ON CONFLICT DO NOTHING');
let_go();
my $file = $node->data_dir . '/bystander.abort';
for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	last if -e $file;
	usleep(100_000);
}
query('VACUUM (INDEX_CLEANUP ON) few');
query(q{INSERT INTO few SELECT i, 'other' FROM generate_series(-20, -1) i});
query(q{INSERT INTO few VALUES (4, 'plain')});
query(q{INSERT INTO few SELECT i / (10 - i), 'new' FROM generate_series(1, 9) i ON CONFLICT DO NOTHING});
is(query(q{SELECT w, count(*), min(k), max(k) FROM few GROUP BY w ORDER BY w}), "new|4|0|9\nother|20|-20|-1\nplain|1|4|4", 'keys of a transaction that has aborted are nobody\'s');
is(check_index($node, 'few_k'), '0', 'the index is whole');
unlink $file;
$writer->query('SELECT 1');
$writer->quit;

# ---- More of them than there is room for.
hold();
my @writers = map { begin_held("crowd$_", "INSERT INTO rows SELECT held_at(i + $_ * 0, 8100) + 1000000 * $_, 1 FROM generate_series(1, 8100) i ON CONFLICT DO NOTHING") } (1 .. 4);
query('INSERT INTO rows SELECT i + 5000000, 1 FROM generate_series(1, 8100) i ON CONFLICT DO NOTHING');
let_go();
foreach (@writers)
{
	$_->query('SELECT 1');
	$_->quit;
}
is(query('SELECT count(*) FROM rows WHERE k > 1000000 AND k < 6000000'), 5 * 8100, 'all of a crowd are there');
is_whole('behind the crowd');
$node->stop;
$msd->stop;
$msd = undef;
done_testing();

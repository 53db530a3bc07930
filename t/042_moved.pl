
# Before an index is changed for the first time in a run its metapage says so, and then its record at the memory node: an end at any step of
# that costs nothing; neither does it that the metapage's file is left, and the new one is given up again.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

# Steps of a first change: metapage, flush, record; the rest is the insert and its commit.
my $steps = 8;

my $node = new_cluster('main', conf => "wal_level = minimal\nmax_wal_senders = 0\n");

sub all_good
{
	my $what = shift;

	$node->poll_query_until('postgres', q{SELECT bool_and(state <> 'attaching') FROM sherman_stat_indexes}) or die 'still attaching';
	is($node->safe_psql('postgres', q{SELECT count(*), count(*) FILTER (WHERE state IN ('ok', 'healing')), sum(sherman_check(indexrelid, true)) FROM sherman_stat_indexes}),
		join('|', ($node->safe_psql('postgres', 'SELECT count(*) FROM sherman_stat_indexes')) x 2, 0), "$what: all indexes are good and whole");
	return;
}

$node->safe_psql('postgres', "SET allow_in_place_tablespaces = on; CREATE TABLESPACE elsewhere LOCATION ''");
$node->safe_psql('postgres', "CREATE TABLE $_ (k int); CREATE INDEX ${_}_k ON $_ USING sherman (k); INSERT INTO $_ SELECT generate_series(1, 100)")
  foreach ('one', 'several', 'committed', 'stays', map { "t$_" } 1 .. $steps);

# The first changes of a run.
$node->restart;
$node->safe_psql('postgres', 'BEGIN; ALTER INDEX one_k SET TABLESPACE elsewhere; INSERT INTO one VALUES (101); ROLLBACK');
$node->safe_psql('postgres', 'BEGIN; ALTER INDEX ALL IN TABLESPACE pg_default SET TABLESPACE elsewhere; INSERT INTO several VALUES (101); ROLLBACK');
$node->safe_psql('postgres', 'BEGIN; ALTER INDEX committed_k SET TABLESPACE elsewhere; INSERT INTO committed VALUES (101); COMMIT');
all_good('moved');
$node->restart;
all_good('moved, in the next run');
is($node->safe_psql('postgres', q{SELECT relname FROM pg_class WHERE reltablespace = (SELECT oid FROM pg_tablespace WHERE spcname = 'elsewhere')}),
	'committed_k', 'one has moved');

if (!has_steps())
{
  SKIP: { skip('the installed library has no crash points (make ASSERTS=1)', 1) }
	$node->stop;
	done_testing();
	exit 0;
}

# Each session comes to another step of its first change, and no further; another one has not come to an end.
my $session = $node->background_psql('postgres');
$session->query_safe('BEGIN; ALTER INDEX stays_k SET TABLESPACE elsewhere; INSERT INTO stays VALUES (101)');
my $offset = -s $node->logfile;
my @sessions = map {
	IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', 'SET sherman.debug_action = hang', '-c', "SET sherman.debug_step = $_", '-c', "INSERT INTO t$_ VALUES (101)" ],
		'>', '/dev/null', '2>', '/dev/null')
} 1 .. $steps;
$node->wait_for_log(qr/hang at step $_,/, $offset) foreach 1 .. $steps;
my $log = slurp_file($node->logfile, $offset);
like($log, qr/hang at step \d+, $_ metapage/, "a session is held up $_ the metapage is written") foreach ('before', 'after');
like($log, qr/hang at step \d+, $_ flush of WAL/, "a session is held up $_ its WAL is flushed") foreach ('before', 'after');
note(join('; ', $log =~ /hang at (step \d+, .*)/g));
$node->stop('immediate', fail_ok => 1);
eval { IPC::Run::finish($_) } foreach @sessions;
eval { $session->{run}->finish };
start_again($node);
all_good('ended at all steps');

$node->stop;
done_testing();

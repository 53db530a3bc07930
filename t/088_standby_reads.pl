
# A hot standby reads the indexes of its primary at the memory nodes: scans of every kind, beside changes of all kinds on the primary, with replay that is
# held up, without hot_standby_feedback and with it; a memory node that goes, a primary that crashes, a promotion.

use strict;
use warnings;

use FindBin;
use HTTP::Tiny;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Sherman;
use Takeover;
use Test::More;
use Time::HiRes qw(sleep time);

my @msd = map { Msd->new($_, size => 128, transport => 'tls', flags => [ '--metrics', '127.0.0.1:0' ]) } qw(a b);
my $primary = new_cluster('primary',
	allows_streaming => 1,
	conf => "sherman.operation_timeout = 5s\nsherman.attach_timeout = 60s\nsherman.take_over = auto\n"
	  . "sherman.memory_nodes = '" . join(', ', map { $_->address } @msd) . "'\n"
	  . Msd::configuration()
	  . "wal_keep_size = 512MB\nmax_standby_streaming_delay = 2s\nhot_standby_feedback = off\n");

$primary->safe_psql(
	'postgres', q{
	CREATE TABLE rows (id int, word text, part int);
	INSERT INTO rows SELECT g, md5(g::text), g % 10 FROM generate_series(1, 6000) g;
	CREATE INDEX rows_id ON rows USING sherman (id);
	CREATE INDEX rows_word ON rows USING sherman (word);
	CREATE INDEX rows_part ON rows USING sherman (id) WHERE part = 3;
	CREATE INDEX rows_upper ON rows USING sherman (upper(word));
	VACUUM ANALYZE rows;
});
my $standby = standby_of($primary, 'standby');
wait_noted($primary);
$primary->wait_for_catchup($standby);
wait_both($standby);
is(state_of($standby, $_), 'ok', "$_ can be read") foreach qw(rows_id rows_word rows_part rows_upper);

# A memory node's metrics as they are now: it gives its figures anew some times a second.
sub metrics_of
{
	my $msd = shift;
	my $began = time;
	my ($port) = slurp_file($msd->{log}) =~ /metrics at port (\d+)/ or die 'msd serves no metrics';

	for (;;)
	{
		my $page = HTTP::Tiny->new(timeout => 30, http_proxy => undef)->get("http://127.0.0.1:$port/metrics");

		$page->{success} or die "no metrics: $page->{content}";
		my ($age) = $page->{content} =~ /^sherman_msd_figures_age_seconds ([\d.]+)/m;
		return $page->{content} if $age < time - $began;
		sleep 0.1;
	}
}

# How often the record of a tree was asked for at the memory nodes.
sub records_read
{
	my $count = 0;

	foreach my $msd (@msd)
	{
		$count += $1 if metrics_of($msd) =~ /^sherman_msd_call_duration_seconds_count\{method="read"\} (\d+)/m;
	}
	return $count;
}

# A session on the standby that looks up each of some rows by the index.
sub look_up
{
	my $lookups = join('', map { "SELECT count(*) FROM rows WHERE id = $_;\n" } 101 .. 150);

	return $standby->safe_psql('postgres', "SET enable_seqscan = off; SET enable_bitmapscan = off;\n$lookups") =~ tr/1//;
}

sub wait_both
{
	my $server = shift;

	$server->poll_query_until('postgres', q{SELECT count(*) = 2 FROM sherman_stat_memory_nodes WHERE state = 'attached'}) or die $server->name . ' has not both memory nodes';
	return;
}

# Leaves that were not changed lately say themselves that nothing is lacking: the record is asked for once in a session.  WAL positions of leaves are
# rounded up.
$primary->safe_psql('postgres', 'SELECT pg_switch_wal(); CREATE TABLE nothing ()');
$primary->wait_for_catchup($standby);
my $before = records_read();
is(look_up(), 50, 'rows are found');
my $asked = records_read() - $before;
cmp_ok($asked, '>=', 1, 'a session asks for the record');
cmp_ok($asked, '<=', 2, "and not for each row ($asked times)");
$primary->safe_psql('postgres', 'UPDATE rows SET id = id WHERE id BETWEEN 90 AND 160');
$primary->wait_for_catchup($standby);
$before = records_read();
is(look_up(), 50, 'rows are found that were changed');
cmp_ok(records_read() - $before, '>=', 50, 'for leaves that were changed lately it is asked each time');

# The answers of a query by index and by the table, in one snapshot.
my @queries = (
	'SELECT sum(id), count(*) FROM rows WHERE id BETWEEN 100 AND 900',
	'SELECT id FROM rows WHERE id > 500 ORDER BY id LIMIT 50',
	'SELECT id FROM rows WHERE id < 5000 ORDER BY id DESC LIMIT 50',
	'SELECT word FROM rows WHERE id = ANY (ARRAY[5, 500, 5000, 50000, 8001])',
	q{SELECT count(*), min(id) FROM rows WHERE word BETWEEN '3' AND '5'},
	q{SELECT id FROM rows WHERE upper(word) = upper(md5('77'))},
	'SELECT count(id), max(id) FROM rows WHERE part = 3',
	'SELECT count(*) FROM rows WHERE id > 5000');
my @ways = (
	[ 'index', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off' ],
	[ 'index only', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = on' ],
	[ 'bitmap', 'SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off' ],
	[ 'parallel', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_index_scan_size = 0; SET min_parallel_table_scan_size = 0' ]);

sub compare
{
	my $what = shift;
	my $bad = '';

	foreach my $way (@ways)
	{
		my $text = "BEGIN ISOLATION LEVEL REPEATABLE READ;\n";

		$text .= "RESET ALL; SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; SELECT md5(string_agg(q::text, ' ' ORDER BY q::text)) FROM ($_) q;\nRESET ALL; $way->[1]; SELECT md5(string_agg(q::text, ' ' ORDER BY q::text)) FROM ($_) q;\n"
		  foreach @queries;
		my ($status, $out, $error) = $standby->psql('postgres', "SET client_min_messages = error; $text COMMIT");
		my @lines = split(/\n/, $out);

		$bad .= "$way->[0]: $error\n" if $status != 0;
		foreach my $i (0 .. $#queries)
		{
			my ($table, $index) = @lines[2 * $i, 2 * $i + 1];

			$bad .= "$way->[0]: $queries[$i]\n" if ($table // 'none') ne ($index // 'no answer');
		}
	}
	is($bad, '', $what);
	return;
}

ok(uses_index($standby, 'rows_id', 'SELECT * FROM rows WHERE id = 500'), 'the planner chooses it');
compare('what was built');
$primary->safe_psql('postgres', "INSERT INTO rows SELECT g, md5(g::text), g % 10 FROM generate_series(6001, 8000) g; UPDATE rows SET part = part + 1 WHERE id % 7 = 0; DELETE FROM rows WHERE id % 11 = 0");
$primary->wait_for_catchup($standby);
compare('inserts, updates and deletes');
$primary->safe_psql('postgres', 'VACUUM rows');
$primary->wait_for_catchup($standby);
compare('VACUUM');

# Replay is held up: the tables are old, the trees are not.
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
$standby->poll_query_until('postgres', q{SELECT pg_get_wal_replay_pause_state() = 'paused'}) or die;
$primary->safe_psql('postgres', "INSERT INTO rows SELECT g, md5(g::text), g % 10 FROM generate_series(8001, 12000) g; UPDATE rows SET word = md5(word) WHERE id % 5 = 0");
compare('rows that are not replayed yet are not there');
$primary->safe_psql('postgres', 'DELETE FROM rows WHERE id % 2 = 0; VACUUM rows; INSERT INTO rows SELECT g, md5(g::text), g % 10 FROM generate_series(12001, 14000) g');
my ($status, $out, $error) = $standby->psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM rows WHERE id BETWEEN 1 AND 100', extra_params => [ '-v', 'VERBOSITY=verbose' ]);
like($error, qr/ERROR:  40001: canceling statement due to conflict with recovery\n.*rows_id.*paused/s, 'rows were removed that it may still see: 40001');
# It may be canceled itself, by what it lets go on.
$standby->psql('postgres', 'SELECT pg_wal_replay_resume()');
$primary->wait_for_catchup($standby);
compare('and when it goes on, all is there');


# The primary's catalogs go on, too.
$primary->safe_psql('postgres', 'REINDEX INDEX rows_id; REINDEX INDEX CONCURRENTLY rows_word; DROP INDEX rows_upper; CREATE INDEX rows_upper ON rows USING sherman (lower(word), part)');
$primary->wait_for_catchup($standby);
compare('indexes that were rebuilt, dropped, made');
$standby->poll_query_until('postgres', q{SELECT bool_and(state = 'ok') FROM sherman_stat_indexes}) or die 'new ones are not read';
ok(uses_index($standby, 'rows_upper', q{SELECT * FROM rows WHERE lower(word) = 'x'}), 'a new one is used');
compare('by those that are new');

# Entries that a scan has marked as dead go without VACUUM and without a trace in the table, before a leaf is split: queries that still see their rows are
# told, and end.
$primary->safe_psql('postgres', 'CREATE TABLE marked (id int); INSERT INTO marked SELECT g FROM generate_series(1, 60) g; CREATE INDEX marked_id ON marked USING sherman (id)');
$primary->wait_for_catchup($standby);
$standby->poll_query_until('postgres', q{SELECT bool_and(state = 'ok') FROM sherman_stat_indexes}) or die 'new ones are not read';
my $old = $standby->background_psql('postgres', on_error_stop => 0);
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SET enable_seqscan = off');
is($old->query_safe('SELECT count(*) FROM marked WHERE id BETWEEN 10 AND 20'), '11', 'a snapshot sees rows');
$primary->safe_psql('postgres', 'DELETE FROM marked WHERE id BETWEEN 10 AND 20');
$primary->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM marked WHERE id BETWEEN 10 AND 20; SELECT count(*) FROM marked WHERE id BETWEEN 10 AND 20');
$primary->safe_psql('postgres', join('', map { "INSERT INTO marked VALUES (30);\n" } 1 .. 20));
cmp_ok($primary->safe_psql('postgres', q{SELECT dead_removals FROM sherman_stat_indexes WHERE indexrelname = 'marked_id'}), '>', 0, 'their entries go');
$primary->wait_for_catchup($standby);
my $answer = eval { $old->query('SELECT count(*) FROM marked WHERE id BETWEEN 10 AND 20') } // '';
ok($answer eq '11' || $answer eq '', "it sees them, or is told (it says '$answer')");
eval { $old->quit };

# A tree that is gone while its index is still there, as far as was replayed.
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
$standby->poll_query_until('postgres', q{SELECT pg_get_wal_replay_pause_state() = 'paused'}) or die;
my $trees = trees($primary);
my $used = $primary->safe_psql('postgres', 'SELECT sum(used_bytes) FROM sherman_stat_memory_nodes');
$primary->safe_psql('postgres', 'DROP INDEX rows_word; SELECT sherman_collect()');
$primary->poll_query_until('postgres', "SELECT sum(used_bytes) < $used FROM sherman_stat_memory_nodes") or die 'the tree stays';
($status, $out, $error) = $standby->psql('postgres', q{SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM rows WHERE word > 'f'}, extra_params => [ '-v', 'VERBOSITY=verbose' ]);
like($error, qr/ERROR:  40001: canceling statement due to conflict with recovery\n.*rows_word.*dropped or rebuilt/s, 'a tree that is gone: 40001');
# It may be canceled itself, by what it lets go on.
$standby->psql('postgres', 'SELECT pg_wal_replay_resume()');
$primary->wait_for_catchup($standby);
compare('and then the index is gone, too');

# A memory node that is away, and comes back.
$msd[0]->crash;
$standby->poll_query_until('postgres', q{SELECT bool_or(state = 'unreachable') FROM sherman_stat_indexes}) or die 'the standby takes no notice';
compare('a memory node is away: what is not to be had is not used');
$msd[0]->start;
wait_both($standby);
wait_both($primary);
compare('it is back');

# The primary crashes: its sessions, then all of it.  What it had not written to its WAL is in the trees still.
$primary->safe_psql('postgres', "SET synchronous_commit = off; INSERT INTO rows SELECT g, md5(g::text), g % 10 FROM generate_series(60001, 61000) g");
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
$standby->poll_query_until('postgres', q{SELECT pg_get_wal_replay_pause_state() = 'paused'}) or die;
$primary->stop('immediate');
$primary->start;
wait_both($primary);
$primary->safe_psql('postgres', "INSERT INTO rows SELECT g, 'new run', 3 FROM generate_series(1, 10) g");
wait_both($standby);
($status, $out, $error) = $standby->psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM rows WHERE id BETWEEN 1 AND 100', extra_params => [ '-v', 'VERBOSITY=verbose' ]);
like($error, qr/ERROR:  40001: canceling statement due to conflict with recovery/, 'what a new run of the primary has changed is not believed before its beginning is replayed');
$standby->psql('postgres', 'SELECT pg_wal_replay_resume()');
$primary->safe_psql('postgres', "INSERT INTO rows SELECT g, 'later', g % 10 FROM generate_series(62001, 64000) g; DELETE FROM rows WHERE id % 13 = 0; VACUUM rows");
$primary->wait_for_catchup($standby);
wait_both($standby);
compare('the primary has crashed, and goes on');
$standby->restart;
wait_both($standby);
compare('the standby was restarted');

# The primary is started anew, twice, and changes its indexes each time: the standby knows them as they were before.
foreach my $run (1 .. 2)
{
	$primary->restart;
	wait_both($primary);
	wait_both($standby);
	$primary->safe_psql('postgres', "INSERT INTO rows SELECT g, 'latest', g % 10 FROM generate_series(64000 + 10 * $run, 64009 + 10 * $run) g");
	$primary->wait_for_catchup($standby);
}
wait_both($standby);
compare('the primary was started anew');

# It is promoted: what it has read it now has, and changes.
my $session = $standby->background_psql('postgres', on_error_stop => 0);
$session->query_safe('SET enable_seqscan = off');
is($session->query_safe('SELECT count(*) FROM rows WHERE id BETWEEN 62001 AND 62020'), '19', 'a session reads');
wait_noted($primary);
$primary->wait_for_catchup($standby);
$primary->stop;
# Nobody judges an index before its memory node is attached: that takes a while here.
$_->crash foreach @msd;
$standby->promote;
$standby->poll_query_until('postgres', q{SELECT NOT pg_is_in_recovery()}) or die;
(undef, undef, $error) = $standby->psql('postgres', q{SET statement_timeout = '1s'; INSERT INTO rows VALUES (64011, 'early', 1)});
like($error, qr/canceling statement due to statement timeout|memory node/, 'a change waits');
unlike($error, qr/broken/, 'and calls nothing broken');
$_->start foreach @msd;
wait_attached($standby);
wait_both($standby);
is($session->query_safe('INSERT INTO rows SELECT 70001, md5(\'x\'), 3; SELECT count(*) FROM rows WHERE id BETWEEN 62001 AND 62020 OR id = 70001'), '20', 'and changes rows when the server was promoted');
$session->quit;
isnt(state_of($standby, 'rows_id'), 'broken', 'the index is this server\'s now');
compare('what is read by the new primary');
is(check_index($standby, $_), '0', "$_ is whole") foreach qw(rows_id rows_part rows_upper);
unlike(slurp_file($standby->logfile), qr/PANIC|TRAP|terminated by signal/, 'nothing has crashed');
$standby->stop;
done_testing();

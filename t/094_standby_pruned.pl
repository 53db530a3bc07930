
# Entries of rows that another process has pruned before are removed by who finds a full leaf.  Nothing tells by then which transactions have deleted
# these rows: a hot standby has to replay the pruning before it may miss the entries.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $msd = Msd->new('far', size => 128, transport => 'tls');
my $primary = new_cluster('primary',
	allows_streaming => 1,
	conf => "sherman.operation_timeout = 5s\nsherman.attach_timeout = 60s\nsherman.memory_nodes = '" . $msd->address . "'\n"
	  . Msd::configuration()
	  . "wal_keep_size = 512MB\nmax_standby_streaming_delay = 2s\nhot_standby_feedback = off\n");

# An update of val puts a new entry of the same id beside the old one.
$primary->safe_psql(
	'postgres', q{
	CREATE TABLE rows (id int, val int) WITH (fillfactor = 50, autovacuum_enabled = off);
	INSERT INTO rows SELECT g, 0 FROM generate_series(1, 400) g;
	CREATE INDEX rows_id ON rows USING sherman (id);
	CREATE INDEX rows_val ON rows USING sherman (val);
	VACUUM ANALYZE rows;
});
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

sub changed
{
	my ($from, $to) = @_;

	return "UPDATE rows SET val = val + 1 WHERE id BETWEEN $from AND $to";
}

# Rows of the first leaf are changed before the snapshot of the standby, those of another leaf behind it.
$primary->safe_psql('postgres', changed(1, 20));
$primary->wait_for_catchup($standby);
$standby->poll_query_until('postgres', q{SELECT bool_and(state = 'ok') FROM sherman_stat_indexes}) or die 'indexes are not read';
my $reader = $standby->background_psql('postgres', on_error_stop => 0);
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SET enable_seqscan = off');
is($reader->query_safe('SELECT sum(val) FROM rows WHERE id BETWEEN 1 AND 20'), '20', 'a snapshot of the standby');
$primary->safe_psql('postgres', changed(300, 320));

# A session fills the first leaf: what is removed there was deleted before that snapshot, so the standby may go on.
my $removed = q{SELECT dead_removals FROM sherman_stat_indexes WHERE indexrelname = 'rows_id'};
my $writer = $primary->background_psql('postgres');
# It comes to no other pages than those of its rows, and marks no entries.
$writer->query_safe('SET enable_seqscan = off; SET enable_indexscan = off; BEGIN ISOLATION LEVEL REPEATABLE READ');
$writer->query_safe(join(';', (changed(1, 20)) x 10));
my $first = $writer->query_safe($removed);
cmp_ok($first, '>', 0, 'old entries of the first leaf go');
$primary->wait_for_catchup($standby);
is($reader->query_safe('SELECT sum(val) FROM rows WHERE id BETWEEN 300 AND 320'), '0', 'the snapshot is still there');
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_pause()');
$standby->poll_query_until('postgres', q{SELECT pg_get_wal_replay_pause_state() = 'paused'}) or die 'it is not paused';

# Another one prunes the other rows, and the first fills their leaf.
$primary->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP off) rows');
$writer->query_safe(join(';', (changed(300, 320)) x 10));
cmp_ok($writer->query_safe($removed), '>', $first, 'and those of the other leaf');
my $answer = $reader->query('SELECT count(*) FROM rows WHERE id BETWEEN 300 AND 320');
is($answer, '', 'the standby does not answer without them');
like($reader->{stderr}, qr/canceling statement due to conflict with recovery/, 'but says why');
eval { $reader->quit };
$writer->query_safe('COMMIT');
$writer->quit;
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
$primary->wait_for_catchup($standby);
is($standby->safe_psql('postgres', 'SET enable_seqscan = off; SELECT sum(val) FROM rows WHERE id BETWEEN 300 AND 320'), 21 * 11, 'a new snapshot sees the new rows');
is(check_index($primary, $_), '0', "$_ is whole") foreach qw(rows_id rows_val);
$standby->stop;
$primary->stop;
done_testing();

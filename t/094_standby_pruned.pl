
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
use Takeover;
use Test::More;

my $msd = Msd->new('far', size => 128, transport => 'tls');
my $primary = new_cluster('primary',
	allows_streaming => 1,
	conf => "sherman.operation_timeout = 3s\nsherman.attach_timeout = 60s\nsherman.memory_nodes = '" . $msd->address . "'\n"
	  . Msd::configuration()
	  . "wal_keep_size = 512MB\nmax_standby_streaming_delay = -1\nhot_standby_feedback = off\n");

# An update of val puts a new entry of the same id beside the old one.
$primary->safe_psql(
	'postgres', q{
	CREATE TABLE rows (id int, val int) WITH (fillfactor = 50, autovacuum_enabled = off);
	INSERT INTO rows SELECT g, 0 FROM generate_series(1, 400) g;
	CREATE INDEX rows_id ON rows USING sherman (id);
	CREATE INDEX rows_val ON rows USING sherman (val);
	VACUUM ANALYZE rows;
});
my $standby = standby_of($primary, 'standby');

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

# A session fills the first leaf: what is removed there was deleted before that snapshot.
my $removed = q{SELECT dead_removals FROM sherman_stat_indexes WHERE indexrelname = 'rows_id'};
my $writer = $primary->background_psql('postgres');
# It comes to no other pages than those of its rows, and marks no entries.
$writer->query_safe('SET enable_seqscan = off; SET enable_indexscan = off; BEGIN ISOLATION LEVEL REPEATABLE READ');
$writer->query_safe(join(';', (changed(1, 20)) x 10));
my $first = $writer->query_safe($removed);
cmp_ok($first, '>', 0, 'old entries of the first leaf go');

# Replay goes on as far as that snapshot lets it.
sub replay_has_come_to_its_end
{
	my $end = $primary->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');

	$standby->poll_query_until('postgres', qq{SELECT pg_last_wal_replay_lsn() >= '$end'::pg_lsn OR
		EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'startup' AND wait_event LIKE 'RecoveryConflict%')}) or die 'replay stands still';
	return;
}
replay_has_come_to_its_end();

# Another one prunes the other rows, and the first fills their leaf.
$primary->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP off) rows');
$writer->query_safe(join(';', (changed(300, 320)) x 10));
cmp_ok($writer->query_safe($removed), '>', $first, 'and those of the other leaf');
replay_has_come_to_its_end();
my $answer = $reader->query('SELECT count(*) FROM rows WHERE id BETWEEN 300 AND 320');
is($answer, '', 'the standby does not answer without them');
like($reader->{stderr}, qr/canceling statement due to conflict with recovery/, 'but says why');
eval { $reader->quit };
$writer->query_safe('COMMIT');
$writer->quit;
$primary->wait_for_catchup($standby);
is($standby->safe_psql('postgres', 'SET enable_seqscan = off; SELECT sum(val) FROM rows WHERE id BETWEEN 300 AND 320'), 21 * 11, 'a new snapshot sees the new rows');

# An entry that is marked as dead, whose row nobody has pruned, goes with others of its leaf: the leaf itself says that a standby has to replay what
# the primary has told of the mark.
$primary->safe_psql(
	'postgres', q{
	CREATE TABLE marked (id int, filler text) WITH (autovacuum_enabled = off);
	INSERT INTO marked SELECT 1, repeat('x', 500);
	INSERT INTO marked SELECT g, repeat('x', 500) FROM generate_series(100, 130) g;
	INSERT INTO marked VALUES (2, 'x'), (3, 'x');
	CREATE INDEX marked_id ON marked USING sherman (id);
	VACUUM ANALYZE marked;
	DELETE FROM marked WHERE id = 1;
	SELECT pg_switch_wal();
	CREATE TABLE nothing ();
});
$primary->wait_for_catchup($standby);
$standby->poll_query_until('postgres', q{SELECT bool_and(state = 'ok') FROM sherman_stat_indexes}) or die 'indexes are not read';
$reader = $standby->background_psql('postgres', on_error_stop => 0);
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SET enable_seqscan = off; SET enable_bitmapscan = off');
is($reader->query_safe('SELECT count(*) FROM marked WHERE id = 2'), '1', 'a snapshot of the standby');
$primary->safe_psql('postgres', 'DELETE FROM marked WHERE id = 2');
my $holder = $primary->background_psql('postgres');
$holder->query_safe(q{BEGIN; DECLARE there CURSOR FOR SELECT id FROM marked WHERE ctid = (SELECT ctid FROM marked WHERE id = 3)});
is($holder->query_safe('FETCH there'), '3', 'its page is in use');
$primary->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT id FROM marked WHERE id = 2; SELECT id FROM marked WHERE id = 2');
is($primary->safe_psql('postgres', q{SELECT dead_marks FROM sherman_stat_indexes WHERE indexrelname = 'marked_id'}), '1', 'its entry is marked');
$primary->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP on, TRUNCATE off) marked');
is($primary->safe_psql('postgres', q{SELECT entries FROM sherman_stat_indexes WHERE indexrelname = 'marked_id'}), '32', 'and goes with another one');
replay_has_come_to_its_end();
$answer = $reader->query('SELECT count(*) FROM marked WHERE id = 2');
is($answer, '', 'the standby does not answer without it');
like($reader->{stderr}, qr/canceling statement due to conflict with recovery/, 'but says why');
eval { $reader->quit };
$holder->quit;
is(check_index($primary, $_), '0', "$_ is whole") foreach qw(rows_id rows_val marked_id);
$standby->stop;
$primary->stop;
done_testing();


# A hot standby reads the indexes of its primary while that changes the rows, and VACUUM removes what is dead: each query by the table and by an
# index in one snapshot.  With hot_standby_feedback nothing is canceled; without it 40001 is all that happens.  SHERMAN_STANDBY_SECONDS: how long,
# of each of the two.  $SHERMAN_TEST_VERBS: over this device, in a slow machine (test/rdma/standby).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Sherman;
use StandbyLoad;
use Takeover;
use Test::More;

my $seconds = $ENV{SHERMAN_STANDBY_SECONDS} // 8;
my $verbs = defined $ENV{SHERMAN_TEST_VERBS};
my $patience = $verbs ? '5min' : '60s';
my @msd = map { Msd->new($_, size => 256, transport => $verbs ? 'verbs' : 'tls') } qw(a b);
my $primary = new_cluster('primary',
	allows_streaming => 1,
	conf => "sherman.operation_timeout = " . ($verbs ? $patience : '10s') . "\nsherman.attach_timeout = $patience\nsherman.take_over = auto\njit = off\n"
	  . "sherman.memory_nodes = '" . join(', ', map { $_->address } @msd) . "'\n"
	  . Msd::configuration()
	  . "wal_keep_size = 1GB\nmax_standby_streaming_delay = 1s\nhot_standby_feedback = off\nwal_receiver_status_interval = 1s\nlog_min_messages = warning\n");

prepare_rows($primary);
$primary->safe_psql('postgres', q{SELECT pg_create_physical_replication_slot('standby')});
my $standby = standby_of($primary, 'standby', "primary_slot_name = standby\n");
$primary->wait_for_catchup($standby);
$standby->poll_query_until('postgres', q{SELECT count(*) = 2 FROM sherman_stat_memory_nodes WHERE state = 'attached'}) or die 'the standby attaches nothing';

is($standby->safe_psql('postgres', 'SELECT string_agg(DISTINCT transport, $$ $$) FROM sherman_stat_memory_nodes'), $msd[0]->scheme, 'it reads over ' . $msd[0]->scheme);

foreach my $feedback (qw(off on))
{
	$standby->safe_psql('postgres', "ALTER SYSTEM SET hot_standby_feedback = $feedback");
	# Where nothing is in the way of replay it is waited for as long as it takes on a busy machine.
	$standby->safe_psql('postgres', qq{ALTER SYSTEM SET max_standby_streaming_delay = '$patience'}) if $feedback eq 'on';
	$standby->reload;
	$primary->poll_query_until('postgres', q{SELECT xmin IS } . ($feedback eq 'on' ? 'NOT ' : '') . q{NULL FROM pg_replication_slots}) or die;
	# The primary holds back what the standby sees from there on.
	$primary->poll_query_until('postgres', q{SELECT count(*) } . ($feedback eq 'on' ? '= 1' : '= 0') . q{ FROM pg_stat_activity WHERE backend_type = 'sherman horizon' AND backend_xmin IS NOT NULL}) or die 'no horizon';
	my @changes = start_changes($primary, $seconds + 1, $verbs ? 1 : 2);
	my ($done, $canceled, $pinned, $bad) = compare_for($standby, $seconds, $verbs ? 2 : 3);

	is($bad, '', "feedback $feedback: no answer differs");
	note("feedback $feedback: $done compared, $canceled canceled, $pinned for a page");
	cmp_ok($done, '>', 0, "feedback $feedback: some have got to their end");
	is($canceled + $pinned, 0, 'with feedback none is canceled, for whatever reason') if $feedback eq 'on';
	ok(ends_well($_), "$_->{name} beside it") foreach @changes;
}
$primary->wait_for_catchup($standby);
is(check_index($primary, $_), '0', "$_ is whole") foreach qw(rows_id rows_word rows_part rows_pair);
$standby->stop;
$primary->stop;
done_testing();

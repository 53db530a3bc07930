
# A standby is promoted while its primary lives and is at work: whoever was fenced does not attach again before the other one has noted that the memory
# node is its own.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Launcher;
use Msd;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Sherman;
use Takeover;
use Test::More;

need_steps();

my $msd = Msd->new('a', size => 64, transport => 'tls');
my $primary = new_cluster('primary',
	allows_streaming => 1,
	conf => "sherman.take_over = auto\nsherman.operation_timeout = 5s\nsherman.attach_timeout = 0\n"
	  . "sherman.memory_nodes = '" . $msd->address . "'\n"
	  . Msd::configuration());

$primary->safe_psql('postgres', q{CREATE TABLE rows (id int, word text); INSERT INTO rows SELECT g, md5(g::text) FROM generate_series(1, 1000) g; CREATE INDEX rows_id ON rows USING sherman (id)});
my $standby = standby_of($primary, 'standby', "sherman.debug_process = 'sherman launcher'\nsherman.debug_action = pause\nsherman.debug_step = 6\n");
wait_noted($primary);
$primary->wait_for_catchup($standby);

# It has fenced the primary, and has noted nothing yet.
$standby->promote;
$standby->wait_for_log(qr/sherman\.debug_step: pause at step 6, /);
ok($standby->log_contains(qr/pause at step 6, after attach/), 'the standby has fenced its primary');
my ($status, $out, $error) = $primary->psql('postgres', 'INSERT INTO rows VALUES (1001, 1001)');
isnt($status, 0, 'whose sessions notice that');
release_launcher($standby);
ok( $standby->poll_query_until('postgres', q{SELECT NOT pg_is_in_recovery() AND state = 'attached' FROM sherman_stat_memory_nodes}),
	'the standby has the memory node');
is_whole($standby, 'taken over from a primary that is at work');
ok( $primary->poll_query_until('postgres', q{SELECT reason LIKE '%another server%' FROM sherman_stat_memory_nodes}),
	'the primary says who has it');
is($standby->safe_psql('postgres', 'INSERT INTO rows VALUES (1002, 1002); SELECT state FROM sherman_stat_memory_nodes'), 'attached', 'and leaves it alone');
index_agrees($primary, 'the primary without the index');
$_->stop foreach $standby, $primary;
done_testing();


# More sessions on a hot standby than its memory node has channels for: those that get none are told what to raise, and the primary gets in all the same.

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

use constant { CHANNELS => 16, SESSIONS => 14 };

my $msd = Msd->new('a', size => 64, transport => 'tls', flags => [ '--channels', CHANNELS ]);
my $primary = new_cluster('primary',
	allows_streaming => 1,
	conf => "max_connections = 40\nsherman.operation_timeout = 10s\nsherman.attach_timeout = 60s\nsherman.memory_nodes = '" . $msd->address . "'\n" . Msd::configuration());

$primary->safe_psql(
	'postgres', q{
	CREATE TABLE rows (id int);
	INSERT INTO rows SELECT g FROM generate_series(1, 5000) g;
	CREATE INDEX rows_id ON rows USING sherman (id);
	VACUUM ANALYZE rows;
});
my $standby = standby_of($primary, 'standby');
$primary->wait_for_catchup($standby);
$standby->poll_query_until('postgres', q{SELECT state = 'ok' FROM sherman_stat_indexes}) or die 'the standby reads nothing';

# Each goes on, and so keeps what it has.
my @sessions = map { $standby->background_psql('postgres', on_error_stop => 0) } 1 .. SESSIONS;
my ($served, $refused) = (0, 0);

foreach my $session (@sessions)
{
	$session->query('SET enable_seqscan = off; SET enable_bitmapscan = off');
	my $answer = $session->query('SELECT count(*) FROM rows WHERE id BETWEEN 10 AND 20');

	if ($answer eq '11')
	{
		$served++;
		next;
	}
	$refused++;
	like($session->{stderr}, qr/ERROR:.*index "rows_id" does not answer.*"channels" is not for standbys.*HINT:.*raise its "channels"/s, 'who is refused is told why');
	$session->{stderr} = '';
}
note("$served are served, $refused are not");
cmp_ok($served, '>=', CHANNELS / 4, 'sessions use the index');
cmp_ok($refused, '>=', SESSIONS - CHANNELS * 3 / 4, 'and not as many as there are channels');
like($sessions[-1]->query('SELECT state, reason FROM sherman_stat_indexes'),
	qr/memory node 0 .*does not let this session in.*"channels" is not for standbys/, 'so says its view');
is($sessions[-1]->query('RESET enable_seqscan; SET enable_indexscan = off; SET enable_indexonlyscan = off; SELECT count(*) FROM rows WHERE id BETWEEN 10 AND 20'), '11', 'without the index it has its answer');
like(slurp_file($msd->{log}), qr/a reader of tenant "main" is refused: .*raise channels/, 'and the log of the memory node');

# The primary's next session gets in, and its launcher after a crash.
ok(uses_index($primary, 'rows_id', 'SELECT * FROM rows WHERE id = 7'), 'the primary uses its index');
$primary->safe_psql('postgres', 'INSERT INTO rows SELECT g FROM generate_series(5001, 5100) g');
$primary->stop('immediate');
$primary->start;
$primary->poll_query_until('postgres', q{SELECT state IN ('ok', 'healing') FROM sherman_stat_indexes}) or die 'the primary does not attach';
$primary->safe_psql('postgres', 'INSERT INTO rows SELECT g FROM generate_series(5101, 5200) g');
is(check_index($primary, 'rows_id'), '0', 'its index is whole');

# Who goes makes room for another one.
$_->quit foreach @sessions;
ok(uses_index($standby, 'rows_id', 'SELECT * FROM rows WHERE id = 7'), 'a session that comes later uses the index');
$standby->stop;
$primary->stop;
done_testing();

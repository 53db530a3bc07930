
# Memory nodes that start with other sizes: settings that change the number of channels or the size of the memory cost no index, whether
# the server was stopped, died, or is started from a snapshot; and memory that is in use is not taken away.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Utils;
use Rows;
use Sherman;
use Test::More;

my ($stdout, $stderr, $status);

my $node = new_cluster('embedded', memory => 16, conf => "max_connections = 20\nmax_wal_senders = 0\n");

sub set
{
	my %settings = @_;

	$node->append_conf('postgresql.conf', join('', map { "$_ = $settings{$_}\n" } sort keys %settings));
	return;
}

sub total
{
	return $node->safe_psql('postgres', 'SELECT total_bytes FROM sherman_stat_memory_nodes') / 1024 / 1024;
}

# What the log says since this was called last.
my $read = 0;

sub log_since
{
	my $text = slurp_file($node->logfile, $read);

	$read = -s $node->logfile;
	return $text;
}

make_table($node, 5000);
is_whole($node, 'at first');

# Every setting that the number of channels follows from.
set(max_connections => 300, max_worker_processes => 30, max_prepared_transactions => 20, autovacuum_max_workers => 20);
log_since();
$node->restart;
is_whole($node, 'with more connections');
like(log_since(), qr/16 MB and 512 channels now, and had 16 MB and 256 channels: its content is kept/, 'the log says what changed');
insert($node, 100);

# Others that shared memory is sized by.
set('sherman.max_indexes' => 64, 'sherman.connection_workers' => 2, 'sherman.cache_size' => "'16MB'", max_connections => 20);
$node->restart;
is_whole($node, 'with fewer, and with connection workers');
insert($node, 100);

set('sherman.embedded_memory' => "'64MB'", 'sherman.connection_workers' => 0);
$node->restart;
is_whole($node, 'with more memory');
is(total(), 64, 'there is more of it');
# More than there was before.
$node->safe_psql('postgres', "CREATE TABLE big (pad text); INSERT INTO big
	SELECT (SELECT string_agg(md5(g::text || i), '') FROM generate_series(1, 20) i) FROM generate_series(1, 30000) g;
	CREATE INDEX big_pad ON big USING sherman (pad)");
cmp_ok(used($node), '>', 20 * 1024 * 1024, 'and it is used');
is(check_index($node, 'big_pad'), '0', 'an index that needs it is whole');

# Less than is in use: kept, with a warning, and not more is granted.
set('sherman.embedded_memory' => "'8MB'");
log_since();
$node->restart;
is_whole($node, 'with less memory than is in use');
is(check_index($node, 'big_pad'), '0', 'the large index is whole, too');
like(log_since(), qr/WARNING:  the embedded memory node keeps \d+ MB of memory, where [^\n]* is 8 MB\n.*HINT:  [^\n]*"sherman.embedded_memory"/s, 'the log says that it is kept, and what to do');
is(total(), 8, 'the setting counts');
$status = $node->psql('postgres', "\\set VERBOSITY verbose\nCREATE INDEX more ON t USING sherman (id, pad)", stderr => \$stderr);
like($stderr, qr/ERROR:  53200: .*HINT:  .*embedded_memory/s, 'no more than that is granted');
$node->safe_psql('postgres', 'DROP TABLE big');
ok($node->poll_query_until('postgres', 'SELECT used_bytes < 8 * 1024 * 1024 FROM sherman_stat_memory_nodes'), 'memory is given back');
$node->safe_psql('postgres', 'CREATE INDEX more ON t USING sherman (id, pad)');
$node->restart;
is_whole($node, 'and when it fits');

# Over a crash.
set('sherman.embedded_memory' => "'32MB'", max_connections => 400);
insert($node, 500);
$node->stop('immediate');
log_since();
$node->start;
is(state_of($node, $_), 'healing', "other sizes after a crash: $_ is in doubt") foreach qw(t_id t_pad);
is($node->safe_psql('postgres', "SELECT sherman_heal('t_id') + sherman_heal('t_pad')"), '0', 'and healed whole');
is_whole($node, 'healed');
like(log_since(), qr/32 MB and 512 channels now, and had \d+ MB and 256 channels: its content is kept/, 'the sizes were changed');
is(total(), 32, 'to those of the settings');

# Over a restart of the machine, with the memory elsewhere.
my $other = "$PostgreSQL::Test::Utils::tmp_check/memory_$$";

mkdir $other or die "$other: $!";
$node->stop;
lose_memory($node);
set('sherman.embedded_memory' => "'48MB'", max_connections => 30);
$node->start;
is_whole($node, 'other sizes from a snapshot');
is(total(), 48, 'as the settings are');
insert($node, 100);
set('sherman.embedded_directory' => "'$other'", 'sherman.embedded_memory' => "'16MB'");
$node->restart;
is_whole($node, 'in another directory');
is(total(), 16, 'and of another size');
$node->stop;
unlink glob("$other/*");
rmdir $other;

# A memory node of its own, while the server runs.
my $msd = Msd->new('sizes', transport => 'tcp', size => 16, flags => [ '--channels', '20' ]);

$node = new_cluster('main', conf => "sherman.memory_nodes = '" . $msd->address . "'\n");
ok($node->poll_query_until('postgres', "SELECT every(state = 'attached') FROM sherman_stat_memory_nodes"), 'attached to a memory node');
make_table($node, 5000);
foreach my $round ([ 64, 90, 'stop' ], [ 8, 12, 'stop' ], [ 32, 40, 'kill' ])
{
	my ($size, $channels, $end) = @{$round};

	insert($node, 300);
	$end eq 'stop' ? $msd->stop : $msd->crash;
	ok($node->poll_query_until('postgres', "SELECT every(state <> 'attached') FROM sherman_stat_memory_nodes"), "$end: it is away");
	$msd->{size} = $size;
	$msd->{flags} = [ '--channels', $channels ];
	$msd->start;
	ok($node->poll_query_until('postgres', "SELECT every(state = 'attached') FROM sherman_stat_memory_nodes"), 'and back');
	$node->safe_psql('postgres', "SELECT sherman_heal('t_id') + sherman_heal('t_pad')");
	is_whole($node, "$size MB and $channels channels");
	is(total(), $size, 'and so much memory');
}
$node->stop;
$msd->stop;
done_testing();

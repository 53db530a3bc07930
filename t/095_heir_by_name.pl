
# A standby that finds the file of another one's promotion, and is promoted itself before it gets anything of what was written behind that, has the other
# one's timeline as its parent by name alone.  It is an heir beside it, and leaves it the indexes.

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

my $msd = Msd->new('a', size => 64, transport => 'tls');
my $archive = PostgreSQL::Test::Utils::tempdir();
# All find the files of timelines, and no WAL but by streaming.
my $primary = new_cluster('primary',
	allows_streaming => 1,
	conf => "sherman.take_over = auto\nsherman.operation_timeout = 5s\nsherman.attach_timeout = 2s\n"
	  . "sherman.memory_nodes = '" . $msd->address . "'\n"
	  . Msd::configuration()
	  . "archive_mode = on\narchive_command = 'case %f in *.history) cp \"%p\" \"$archive/%f\";; esac'\nrestore_command = 'cp \"$archive/%f\" \"%p\"'\n");

$primary->safe_psql('postgres', q{CREATE TABLE rows (id int, word text); INSERT INTO rows SELECT g, md5(g::text) FROM generate_series(1, 1000) g; CREATE INDEX rows_id ON rows USING sherman (id)});
my ($first, $second) = map { standby_of($primary, $_) } qw(first second);
wait_noted($primary);
$primary->wait_for_catchup($_) foreach $first, $second;
$primary->stop('immediate');

$first->promote;
wait_attached($first);
$first->safe_psql('postgres', 'INSERT INTO rows SELECT g, md5(g::text) FROM generate_series(1001, 1100) g');
# It looks for a newer timeline each time that it finds no WAL.
$second->wait_for_log(qr/new target timeline is 2/);
$second->promote;
wait_attached($second);
like(slurp_file($second->data_dir . '/pg_wal/00000003.history'), qr/^2\t/m, 'the second one has the timeline of the first one as its parent');
ok($second->log_contains(qr/another server has taken over the sherman indexes of this one/), 'it says who has the indexes');
is(state_of($second, 'rows_id'), 'broken', 'and has them not');

is($first->safe_psql('postgres', 'INSERT INTO rows VALUES (1101, 1101); SELECT state FROM sherman_stat_memory_nodes'), 'attached', 'the first one was not fenced');
is_whole($first, 'beside an heir by name alone');
index_agrees($second, 'the heir by name alone');
$_->stop foreach $first, $second;
done_testing();

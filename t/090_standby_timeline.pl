
# A standby of a standby that is promoted while the primary lives: it follows a history in which the primary's indexes have no part, and does not read them
# any more, whatever WAL positions say.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $msd = Msd->new('a', size => 64, transport => 'tls');
my $primary = new_cluster('primary',
	allows_streaming => 1,
	conf => "sherman.memory_nodes = '" . $msd->address . "'\n" . Msd::configuration()
	  . "wal_keep_size = 512MB\nmax_standby_streaming_delay = 1s\nrecovery_target_timeline = latest\n");

$primary->safe_psql('postgres', 'CREATE TABLE rows (id int); INSERT INTO rows SELECT g FROM generate_series(1, 1000) g; CREATE INDEX rows_id ON rows USING sherman (id); VACUUM ANALYZE rows');
$primary->backup('base');
my $first = PostgreSQL::Test::Cluster->new('first');
$first->init_from_backup($primary, 'base', has_streaming => 1);
# It goes on without memory nodes, and so says nothing of its own.
$first->append_conf('postgresql.conf', "sherman.memory_nodes = ''\nsherman.embedded_memory = 0\n");
$first->start;
my $second = PostgreSQL::Test::Cluster->new('second');
$second->init_from_backup($primary, 'base', has_streaming => 1);
$second->enable_streaming($first);
$second->start;
$primary->wait_for_catchup($first);
$second->poll_query_until('postgres', q{SELECT state = 'ok' FROM sherman_stat_indexes}) or die 'the second standby does not read';
ok(uses_index($second, 'rows_id', 'SELECT * FROM rows WHERE id = 500'), 'a standby of a standby reads the primary\'s index');

sub seen
{
	my $way = shift;
	my ($status, $out) = $second->psql('postgres', "SET client_min_messages = error; SET $way = off; SELECT count(*) FROM rows WHERE id BETWEEN 1 AND 300");

	return $out;
}

is(seen('enable_seqscan'), '300', 'all rows by index');
$first->promote;
# It is behind the primary, and comes past it.
$primary->safe_psql('postgres', 'DELETE FROM rows WHERE id <= 200; VACUUM rows');
$first->safe_psql('postgres', 'CREATE TABLE filler AS SELECT repeat(\'x\', 100) FROM generate_series(1, 20000)');
$first->wait_for_catchup($second);
isnt(seen('enable_seqscan'), '100', 'rows that the old primary has removed are not taken for removed') foreach 1 .. 5;
is(seen('enable_indexscan'), '300', 'they are there');
$second->poll_query_until('postgres', q{SELECT state = 'hidden' FROM sherman_stat_indexes}) or die 'the index is not hidden';
is(seen('enable_seqscan'), '300', 'and are found without the index');
$second->stop;
$first->stop;
$primary->stop;
done_testing();


# Fast restarts in the middle of everything: inserts, scans, VACUUM, builds, drops, cancels.  Whatever is in flight ends before
# the epoch does, and every index is good and whole afterwards, each time.
#
# SHERMAN_RESTARTS=60 does it so often.

use strict;
use warnings;

use FindBin;
use IPC::Run;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;
use Time::HiRes qw(usleep);

my $rounds = $ENV{SHERMAN_RESTARTS} // 10;
my $node = new_cluster('main', conf => "autovacuum = on\nautovacuum_naptime = 1s\nautovacuum_vacuum_threshold = 100\n"
	  . "autovacuum_vacuum_scale_factor = 0.01\nsherman.collect_interval = 1\nmax_connections = 40\n");
my @indexes = qw(load_id load_word load_wide load_partial rebuilt_word);

$node->safe_psql(
	'postgres', q{
	CREATE TABLE load (id bigserial, word text);
	INSERT INTO load (word) SELECT md5(g::text) FROM generate_series(1, 5000) g;
	CREATE INDEX load_id ON load USING sherman (id);
	CREATE INDEX load_word ON load USING sherman (word, id);
	CREATE INDEX load_wide ON load USING sherman (repeat(word, 8));
	CREATE INDEX load_partial ON load USING sherman (word DESC) WHERE id % 7 = 0;
	CREATE TABLE rebuilt AS SELECT g AS id, md5(g::text) AS word FROM generate_series(1, 2000) g;
	CREATE INDEX rebuilt_word ON rebuilt USING sherman (word);
});

# Each script with its weight; those that are canceled fail, which pgbench takes for the end of a client: psql runs them.
my %scripts = (
	changes => q{
		\set id random(1, 100000)
		INSERT INTO load (word) SELECT md5((:id + g)::text) FROM generate_series(1, 10) g;
		UPDATE load SET word = md5(word) WHERE id IN (SELECT id FROM load WHERE word > md5(:id::text) ORDER BY word LIMIT 3 FOR UPDATE SKIP LOCKED);
		DELETE FROM load WHERE id IN (SELECT id FROM load WHERE word < md5(:id::text) ORDER BY word DESC LIMIT 4 FOR UPDATE SKIP LOCKED);
	},
	scans => q{
		\set id random(1, 100000)
		SELECT count(*) FROM load WHERE id BETWEEN :id AND :id + 100;
		SELECT id FROM load ORDER BY word DESC LIMIT 20;
		SELECT id FROM load WHERE repeat(word, 8) > md5(:id::text) ORDER BY repeat(word, 8) LIMIT 5;
	},
	rolled_back => q{
		BEGIN;
		INSERT INTO load (word) SELECT md5(g::text) FROM generate_series(1, 50) g;
		ROLLBACK;
	});
my @bench = ('pgbench', '-n', '-c', '6', '-T', '3600');
while (my ($name, $text) = each %scripts)
{
	append_to_file($node->basedir . "/$name.sql", $text);
	push @bench, '-f', $node->basedir . "/$name.sql";
}
# Cancelled now and then; builds, drops and VACUUM without a pause.
my $canceled = q{SET statement_timeout = 7; } . join('; ', map { "INSERT INTO load (word) SELECT md5(random()::text) FROM generate_series(1, 2000)" } 1 .. 3);
my $maintenance = q{
	REINDEX INDEX rebuilt_word;
	VACUUM load;
	CREATE TABLE IF NOT EXISTS passing (id int); CREATE INDEX ON passing USING sherman (id);
	INSERT INTO passing SELECT generate_series(1, 3000); DROP TABLE passing;
	REINDEX INDEX CONCURRENTLY rebuilt_word;
};

# Starts a client that repeats a text until the server ends it.
sub start_loop
{
	my ($text, $output) = @_;
	my $file = $node->basedir . '/loop.' . int(rand(1e9)) . '.sql';

	append_to_file($file, "$text;\n" x 300);
	return IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-f', $file ], '>', $output, '2>&1');
}

for my $round (1 .. $rounds)
{
	my @output = ('') x 3;
	my $seen = $node->safe_psql('postgres', 'SELECT last_value FROM load_id_seq');
	my @clients = (
		IPC::Run::start([ @bench, $node->connstr('postgres') ], '>', \$output[0], '2>&1'),
		start_loop($canceled, \$output[1]),
		start_loop($maintenance, \$output[2]));

	$node->poll_query_until('postgres', "SELECT last_value > $seen + 500 FROM load_id_seq") or die "no load: @output";
	usleep(int(rand(700_000)));
	$node->restart;
	IPC::Run::finish($_) for @clients;
	unlike(join('', @output), qr/WARNING|PANIC|is broken|damaged|not answer/, "round $round: nobody met anything but the end of the server");
	# The first command after a start, perhaps before the launcher is there.
	$node->safe_psql('postgres', q{INSERT INTO load (word) VALUES ('early')});
	state_of($node, $indexes[0]);
	# What a concurrent rebuild leaves behind when it is ended is invalid.
	is($node->safe_psql('postgres', q{
		SELECT string_agg(format('%s %s %s', indexrelid::regclass, state, reason), ', ') FROM sherman_stat_indexes
		WHERE state <> 'ok' AND (SELECT indisvalid FROM pg_index i WHERE i.indexrelid = sherman_stat_indexes.indexrelid)}),
		'', "round $round: all indexes are good");
	is(join(' ', map { check_index($node, $_) } @indexes), join(' ', (0) x @indexes), "round $round: and whole");
}

$node->stop;
done_testing();

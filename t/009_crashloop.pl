
# Crashes in the middle of everything, again and again, without healing: afterwards an index is broken or it is whole, never anything
# else, and memory of broken ones comes back.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_cluster('main', conf => "synchronous_commit = off\nwal_writer_delay = 10s\nrestart_after_crash = on\nfsync = off\nsherman.heal = off\n");
my @indexes = qw(mix_key mix_word mix_wide);

$node->safe_psql(
	'postgres', q{
	CREATE TABLE mix (id bigserial, key int, word text);
	INSERT INTO mix (key, word) SELECT g % 500, md5(g::text) FROM generate_series(1, 5000) g;
	CREATE INDEX mix_key ON mix USING sherman (key);
	CREATE INDEX mix_word ON mix USING sherman (word);
	CREATE INDEX mix_wide ON mix USING sherman (repeat(word, 8));
	CREATE TABLE still AS SELECT g AS id FROM generate_series(1, 3000) g;
	CREATE INDEX still_id ON still USING sherman (id);
});
$node->restart;

my $script = $node->basedir . '/mix.sql';
append_to_file($script, q{
	\set key random(1, 500)
	INSERT INTO mix (key, word) SELECT :key, md5(random()::text) FROM generate_series(1, 5);
	UPDATE mix SET key = key + 1, word = md5(random()::text) WHERE id IN (SELECT id FROM mix WHERE key = :key LIMIT 3);
	DELETE FROM mix WHERE id IN (SELECT id FROM mix WHERE key = :key + 7 LIMIT 4);
	SELECT count(*) FROM mix WHERE key BETWEEN :key AND :key + 3;
});

# A random backend of pgbench.
sub busy_backend
{
	return $node->safe_psql('postgres',
		q{SELECT pid FROM pg_stat_activity WHERE query ~ 'mix' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1});
}

for my $round (1 .. 2)
{
	for my $how (qw(backend node immediate))
	{
		my $out = '';
		my $bench = IPC::Run::start(
			[ 'pgbench', '-n', '-c', '6', '-T', '30', '-f', $script, $node->connstr('postgres') ],
			'>', \$out, '2>&1');

		# All indexes are being changed; then at any moment.
		$node->poll_query_until('postgres',
			"SELECT count(*) = 3 FROM sherman_stat_indexes WHERE indexrelid::regclass::text ~ '^mix_' AND inserts > 20") or die "no load: $out";
		usleep(int(rand(400_000)));
		$node->safe_psql('postgres', 'VACUUM mix');
		if ($how eq 'immediate')
		{
			$node->stop('immediate');
			$node->start;
		}
		else
		{
			my $pid = $how eq 'node' ? node_pid($node) : busy_backend();
			my $offset = -s $node->logfile;

			$pid =~ /^[1-9]\d+$/ or die "no process to kill: $pid $out";
			kill 'KILL', $pid;
			$node->wait_for_log(qr/all server processes terminated; reinitializing/, $offset);
			$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'the server does not come back';
		}
		IPC::Run::finish($bench);
		$node->poll_query_until('postgres', q{SELECT state = 'attached' FROM sherman_stat_memory_nodes}) or die 'not attached';
		for my $index (@indexes)
		{
			is(state_of($node, $index), 'broken', "round $round, $how: $index was being changed and is broken");
		}
		is(state_of($node, 'still_id'), 'ok', "round $round, $how: an index at rest is good");
		is(check_index($node, 'still_id'), '0', "round $round, $how: and whole");
		$node->safe_psql('postgres', 'INSERT INTO mix (key, word) VALUES (1, \'after\'); REINDEX TABLE mix');
		for my $index (@indexes)
		{
			is(check_index($node, $index), '0', "round $round, $how: $index is whole after REINDEX");
		}
		ok(wait_until_used($node, $node->safe_psql('postgres', 'SELECT sum(total_bytes) FROM sherman_stat_indexes')),
			"round $round, $how: the broken trees' memory comes back");
		# The next round begins with a clean epoch.
		$node->restart;
	}
}

$node->stop;
done_testing();

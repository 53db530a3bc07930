
# Eight clients insert, update, delete, look up and scan, with vacuum beside them; then every index is compared with its table.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('main', conf => "autovacuum = on\nautovacuum_naptime = 1s\nautovacuum_vacuum_threshold = 100\n"
	  . "autovacuum_vacuum_scale_factor = 0.01\nfsync = off\n");

$node->safe_psql(
	'postgres', q{
	CREATE TABLE mix (id bigserial, key int, word text);
	INSERT INTO mix (key, word) SELECT g % 1000, md5(g::text) FROM generate_series(1, 10000) g;
	CREATE INDEX mix_key ON mix USING sherman (key);
	CREATE INDEX mix_word ON mix USING sherman (word, id DESC);
	CREATE INDEX mix_id ON mix USING sherman (id);
	CREATE INDEX mix_partial ON mix USING sherman (lower(word)) WHERE key < 100;
});

$node->pgbench(
	'--no-vacuum --client=8 --jobs=2 --transactions=800 --max-tries=1',
	0,
	[qr{number of failed transactions: 0 \(0.000%\)}, qr{latency average}],
	[qr{^$}],
	'8 clients with 800 transactions each',
	{
		'insert@4' => q{
			\set key random(1, 1000)
			INSERT INTO mix (key, word) VALUES (:key, md5(random()::text)), (:key, md5(random()::text));
		},
		'update@3' => q{
			\set key random(1, 1000)
			UPDATE mix SET word = md5(random()::text), key = key + 1
			WHERE id IN (SELECT id FROM mix WHERE key = :key ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED);
		},
		'delete@3' => q{
			\set key random(1, 1000)
			DELETE FROM mix WHERE id IN (SELECT id FROM mix WHERE key = :key ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED);
		},
		'lookup@3' => q{
			\set key random(1, 1000)
			SET enable_seqscan = off;
			SELECT count(*) FROM mix WHERE key = :key;
		},
		'scan@2' => q{
			SET enable_seqscan = off;
			SELECT id FROM mix WHERE word > md5(random()::text) ORDER BY word, id DESC LIMIT 50;
			SELECT id FROM mix ORDER BY id DESC LIMIT 10;
		},
		'rollback@1' => q{
			\set key random(1, 1000)
			BEGIN;
			INSERT INTO mix (key, word) VALUES (:key, 'rolled back');
			SAVEPOINT s;
			INSERT INTO mix (key, word) VALUES (:key, 'rolled back too');
			ROLLBACK TO s;
			ROLLBACK;
		}
	});

for my $index (qw(mix_key mix_word mix_id mix_partial))
{
	is(check_index($node, $index), '0', "$index is whole");
}
cmp_ok($node->safe_psql('postgres', q{SELECT inserts FROM sherman_stat_indexes WHERE indexrelid = 'mix_key'::regclass}),
	'>', 100, 'there was something to do');
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM mix WHERE key >= 0'),
	$node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM mix WHERE key >= 0'),
	'an index scan and a sequential scan count the same');
$node->safe_psql('postgres', 'VACUUM mix');
is(check_index($node, 'mix_word'), '0', 'whole after a last VACUUM');
$node->restart;
is(check_index($node, 'mix_word'), '0', 'and after a restart');

$node->stop;
done_testing();

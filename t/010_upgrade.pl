
# pg_upgrade copies files into a new cluster: no memory node is touched meanwhile, and the indexes are broken until REINDEX.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;
use Upgrade;

my $old = old_cluster('old');

$old->safe_psql(
	'postgres', q{
	CREATE EXTENSION citext;
	CREATE TABLE k (id int PRIMARY KEY WITH (sherman), mail citext UNIQUE WITH (sherman), room int, n int, EXCLUDE USING sherman (room WITH =));
	INSERT INTO k SELECT g, 'User' || g, g, g FROM generate_series(1, 300) g;
	CREATE TABLE t (id int, word text);
	INSERT INTO t SELECT g, md5(g::text) FROM generate_series(1, 3000) g;
	CREATE INDEX t_id ON t USING sherman (id);
	CREATE UNLOGGED TABLE u (id int);
	INSERT INTO u SELECT generate_series(1, 500);
	CREATE INDEX u_id ON u USING sherman (id);
});
$old->stop;
my $memory = join(' ', memory_files($old));

my $new = upgraded_cluster('new');
command_ok(pg_upgrade($old, $new, '--check'), 'pg_upgrade --check finds nothing');
command_ok(pg_upgrade($old, $new), 'pg_upgrade');
is(scalar memory_files($new), 0, 'the new cluster touched no memory node');

$new->start;
is($new->safe_psql('postgres', q{SELECT string_agg(conname || ' ' || amname || ' ' || coalesce(c.reloptions::text, ''), ', ' ORDER BY conname)
	FROM pg_constraint JOIN pg_class c ON c.oid = conindid JOIN pg_am a ON a.oid = relam WHERE conrelid = 'k'::regclass}),
	'k_mail_key sherman {sherman=true}, k_pkey sherman {sherman=true}, k_room_excl sherman ', 'constraints are sherman\'s as before');
is($new->safe_psql('postgres', q{SELECT count(*) FROM sherman_stat_indexes WHERE indexrelid::regclass::text LIKE 'k\\_%' AND state = 'broken'}), '3', 'and broken');
is($new->safe_psql('postgres', 'SELECT n FROM k WHERE id = 5'), '5', 'whose table is read without them');
like(($new->psql('postgres', 'INSERT INTO k VALUES (5)'))[2], qr/index "k_pkey" is broken/, 'and not changed');
is(state_of($new, 't_id'), 'broken', 'the index is broken');
like($new->safe_psql('postgres', q{SELECT reason FROM sherman_stat_indexes WHERE indexrelid = 't_id'::regclass}),
	qr/another database cluster, from which pg_upgrade/, 'the view says why');
is($new->safe_psql('postgres', 'SELECT count(*) FROM t WHERE id = 5'), '1', 'queries go on without it');
is($new->safe_psql('postgres', 'SELECT count(*) FROM u'), '500', 'the unlogged table is there');
isnt(state_of($new, 'u_id'), 'ok', 'its index, whose rows were copied, is not taken for an empty one');
$new->safe_psql('postgres', 'INSERT INTO t VALUES (4000); DELETE FROM t WHERE id < 100; VACUUM t');
$new->safe_psql('postgres', 'REINDEX DATABASE postgres');
is(check_index($new, 't_id'), '0', 'REINDEX heals it');
is(check_index($new, 'u_id'), '0', 'and the unlogged one');
for my $index ('k_pkey', 'k_mail_key', 'k_room_excl')
{
	is(check_index($new, $index), '0', "and $index");
}
like(($new->psql('postgres', q{INSERT INTO k VALUES (1000, 'USER5')}))[2], qr/duplicate key value violates unique constraint "k_mail_key"/, 'which knows what is equal');
$new->stop;

is(join(' ', memory_files($old)), $memory, 'the old cluster has its memory');
$old->start;
is(state_of($old, 't_id'), 'ok', 'and its index');
is(check_index($old, 't_id'), '0', 'which is whole');
is($old->safe_psql('postgres', 'SELECT max(epoch) FROM sherman_epochs'), '2', 'it was attached to no memory node in between');
$old->stop;

done_testing();


# Without preload, and in single-user mode: tables with sherman indexes are read, dumped, dropped and frozen; what would
# need the index says so.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('main', conf => "autovacuum_freeze_max_age = 100000\n");
my ($stdout, $stderr, $status);

# Runs SQL that must fail with 55000 and the hint to preload.
sub fails
{
	my ($sql, $what) = @_;

	$status = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql", stdout => \$stdout, stderr => \$stderr);
	isnt($status, 0, $what);
	like($stderr, qr/ERROR:  55000: .*HINT:  Add sherman to shared_preload_libraries/s, "$what: 55000 with a hint");
}

$node->safe_psql(
	'postgres', q{
	CREATE TABLE t (id int, word text);
	INSERT INTO t SELECT g, md5(g::text) FROM generate_series(1, 5000) g;
	CREATE INDEX t_id ON t USING sherman (id);
	CREATE TABLE rescued AS SELECT id FROM t;
	CREATE INDEX rescued_id ON rescued USING sherman (id);
	CREATE TABLE old (id int, pad text);
	INSERT INTO old SELECT g, 'x' FROM generate_series(1, 3000) g;
	CREATE INDEX old_id ON old USING sherman (id);
	CREATE TABLE spent (id int);
	CREATE TABLE dropped (id int);
	CREATE INDEX dropped_id ON dropped USING sherman (id);
	ANALYZE;
});
$node->stop;
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
$node->start;

is($node->safe_psql('postgres', 'SELECT count(*) FROM t WHERE id BETWEEN 1 AND 100'), '100', 'the table is read');
ok(!uses_index($node, 't_id', 'SELECT * FROM t WHERE id = 5'), 'without the index');
is($node->safe_psql('postgres', 'SELECT state FROM sherman_stat_indexes WHERE indexrelid = \'t_id\'::regclass'), 'hidden', 'which is hidden');
is($node->safe_psql('postgres', 'SELECT count(*) FROM sherman_stat_memory_nodes'), '0', 'there is no memory node');
command_ok([ 'pg_dump', '-d', $node->connstr('postgres'), '-f', $node->basedir . '/dump.sql' ], 'it is dumped');
like(slurp_file($node->basedir . '/dump.sql'), qr/CREATE INDEX t_id ON public.t USING sherman \(id\)/, 'with its index');
fails('INSERT INTO t VALUES (6000)', 'insert');
fails('CREATE INDEX another ON t USING sherman (word)', 'build');
fails('REINDEX INDEX t_id', 'rebuild');
fails('SELECT sherman_check(\'t_id\')', 'check');
# The planner is not asked which index this one scans.
fails('CLUSTER t USING t_id', 'scan');
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), '5000', 'nothing was changed by what failed');
$node->safe_psql('postgres', 'DELETE FROM t WHERE id <= 100');
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), '4900', 'rows are deleted');
$status = $node->psql('postgres', 'VACUUM FREEZE t', stdout => \$stdout, stderr => \$stderr);
is($status, 0, 'VACUUM comes to its end');
like($stderr, qr/WARNING:  index "t_id" was marked as broken/, 'at the price of the index');
is($node->safe_psql('postgres', q{SELECT age(relfrozenxid) < 10 FROM pg_class WHERE relname = 't'}), 't', 'the table is frozen');

# Near wraparound VACUUM passes by all indexes, and so leaves this one as it is; its failsafe begins at 1.05 times
# autovacuum_freeze_max_age.
$node->safe_psql('postgres', 'DELETE FROM old WHERE id <= 1000');
$node->safe_psql('postgres', q{
	DO $$
	BEGIN
		FOR i IN 1 .. 110000 LOOP
			BEGIN
				INSERT INTO spent VALUES (i);
			EXCEPTION WHEN division_by_zero THEN
				NULL;
			END;
		END LOOP;
	END $$});
$status = $node->psql('postgres', 'SET vacuum_failsafe_age = 0; VACUUM FREEZE old', stdout => \$stdout, stderr => \$stderr);
is($status, 0, 'VACUUM by its failsafe comes to its end');
like($stderr, qr/WARNING:  bypassing nonessential maintenance of table "postgres.public.old" as a failsafe/, 'it was the failsafe');
unlike($stderr, qr/broken/, 'not at the price of the index');
is($node->safe_psql('postgres', q{SELECT age(relfrozenxid) < 10 FROM pg_class WHERE relname = 'old'}), 't', 'the table is frozen');
$node->safe_psql('postgres', 'DROP TABLE dropped');
is($node->safe_psql('postgres', q{SELECT to_regclass('dropped_id') IS NULL}), 't', 'a table with an index is dropped');
$node->stop;

# Nor shall autovacuum find all tables old from here on.
$node->append_conf('postgresql.conf', "autovacuum_freeze_max_age = 200000000\n");

# Single-user mode: VACUUM must come to its end, at the price of the index.
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "'sherman'");
my $commands = "DELETE FROM t WHERE id <= 150;\nVACUUM FREEZE t;\nSELECT count(*) AS rest FROM t;\n"
  . "DELETE FROM rescued WHERE id <= 3000;\nVACUUM FREEZE rescued;\n";
my $result = run_log(
	[ 'postgres', '--single', '-D', $node->data_dir, 'postgres' ],
	'<', \$commands,
	'>', \$stdout, '2>', \$stderr);
ok($result, 'single-user mode works');
like($stdout, qr/rest = "4850"/, 'rows are read and deleted there');

like($stderr, qr/WARNING:  index "rescued_id" was marked as broken/, 'VACUUM comes to its end there too');

# Back to normal: what happened without us is not proven to fit.
$node->start;
is(state_of($node, 't_id'), 'broken', 'the index is broken after runs without a memory node');
$node->safe_psql('postgres', 'INSERT INTO t VALUES (6000)');
$node->safe_psql('postgres', 'REINDEX INDEX t_id');
is(check_index($node, 't_id'), '0', 'REINDEX heals it');
ok(uses_index($node, 't_id', 'SELECT * FROM t WHERE id = 5'), 'and it is used');

# What pg_dump wrote can be restored.
$node->safe_psql('postgres', 'CREATE DATABASE restored');
$node->command_ok([ 'psql', '-X', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('restored'), '-f', $node->basedir . '/dump.sql' ],
	'the dump is restored');
is(check_index($node, 't_id', 'restored'), '0', 'with its index');

$node->stop;
done_testing();

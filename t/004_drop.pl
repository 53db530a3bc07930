
# The memory of indexes that are gone comes back, never before commit, and the collector is in nobody's way.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('main', conf => "max_prepared_transactions = 5\nmax_worker_processes = 8\n");

sub sql
{
	return $node->safe_psql('postgres', shift);
}

# Extents of one database's trees, as their owner sees them.
sub owned
{
	my $database = shift // 'postgres';

	return $node->safe_psql($database, 'SELECT coalesce(sum(total_bytes), 0) FROM sherman_stat_indexes');
}

# Waits until the memory in use is what the indexes of this database own, and no more.
sub accounted
{
	my ($what, $other) = @_;
	my $bytes = owned() + ($other // 0);

	ok(wait_until_used($node, $bytes), "$what: the memory comes back");
}

sql(q{
	CREATE TABLE base (id int, word text);
	INSERT INTO base SELECT g, md5(g::text) FROM generate_series(1, 20000) g;
	CREATE INDEX base_id ON base USING sherman (id);
});
accounted('nothing gone');
my $base = owned();
cmp_ok($base, '>', 64 * 1024, 'an index has extents');

# Each of these leaves the memory as it was.
sql('CREATE INDEX dropped ON base USING sherman (word)');
cmp_ok(owned(), '>', $base, 'another index takes more');
is(used($node), owned(), 'what is used is what the indexes own');
sql('DROP INDEX dropped');
accounted('DROP INDEX');

sql('BEGIN; CREATE INDEX rolled_back ON base USING sherman (word); ROLLBACK');
accounted('CREATE INDEX rolled back');

sql('BEGIN; SAVEPOINT a; CREATE INDEX rolled_back ON base USING sherman (word); ROLLBACK TO a; SELECT 1; COMMIT');
accounted('CREATE INDEX in a subtransaction rolled back');

sql('CREATE TABLE gone (id int); INSERT INTO gone SELECT generate_series(1, 5000); CREATE INDEX gone_id ON gone USING sherman (id)');
sql('DROP TABLE gone');
accounted('DROP TABLE');

sql('CREATE SCHEMA s; CREATE TABLE s.gone (id int); CREATE INDEX gone_id ON s.gone USING sherman (id); INSERT INTO s.gone SELECT generate_series(1, 5000)');
sql('SET client_min_messages = error; DROP SCHEMA s CASCADE');
accounted('DROP SCHEMA');

sql('REINDEX INDEX base_id');
accounted('REINDEX');
sql('REINDEX INDEX CONCURRENTLY base_id');
accounted('REINDEX CONCURRENTLY');
sql('BEGIN; REINDEX INDEX base_id; ROLLBACK');
accounted('REINDEX rolled back');
sql('VACUUM FULL base');
accounted('VACUUM FULL');
sql('CLUSTER base USING base_id');
accounted('CLUSTER');
is(check_index($node, 'base_id'), '0', 'the index is whole after all that');
is(sql(q{SELECT count(*) FROM base WHERE id BETWEEN 1 AND 100}), '100', 'and answers');

sql('CREATE TABLE emptied (id int); INSERT INTO emptied SELECT generate_series(1, 5000); CREATE INDEX emptied_id ON emptied USING sherman (id)');
sql('BEGIN; TRUNCATE emptied; ROLLBACK');
accounted('TRUNCATE rolled back');
is(check_index($node, 'emptied_id'), '0', 'and the old index is the index');
is(sql('SET enable_seqscan = off; SELECT count(*) FROM emptied WHERE id < 11'), '10', 'with its rows');
sql('TRUNCATE emptied');
accounted('TRUNCATE');
sql('BEGIN; CREATE TABLE short (id int); CREATE INDEX ON short USING sherman (id); INSERT INTO short VALUES (1); TRUNCATE short; INSERT INTO short VALUES (2); TRUNCATE short; COMMIT');
accounted('TRUNCATE in the creating transaction');
sql('DROP TABLE short, emptied');
accounted('DROP of both');

# Never before commit: an open transaction keeps what it may still roll back to.
sql('CREATE INDEX kept ON base USING sherman (word)');
my $with_kept = owned();
my $session = $node->background_psql('postgres');
$session->query_safe('BEGIN; DROP INDEX kept');
is(sql('SELECT sherman_collect()'), '0', 'the collector frees nothing that an open transaction dropped');
is(used($node), $with_kept, 'the memory is still there');
$session->query_safe('ROLLBACK');
is(check_index($node, 'kept'), '0', 'rolled back, the index is whole');

$session->query_safe('BEGIN; REINDEX INDEX kept');
is(sql('SELECT sherman_collect()'), '0', 'nor what it rebuilt, old or new');
$session->query_safe('COMMIT');
accounted('REINDEX in a long transaction');
is(check_index($node, 'kept'), '0', 'the new tree is whole');

$session->query_safe(q{BEGIN; DROP INDEX kept; PREPARE TRANSACTION 'drop'});
is(sql('SELECT sherman_collect()'), '0', 'nor what a prepared transaction dropped');
sql(q{ROLLBACK PREPARED 'drop'});
is(check_index($node, 'kept'), '0', 'rolled back, the index is whole');
$session->query_safe(q{BEGIN; CREATE INDEX prepared ON base USING sherman (word, id); PREPARE TRANSACTION 'create'});
is(sql('SELECT sherman_collect()'), '0', 'nor what one created');
sql(q{COMMIT PREPARED 'create'});
is(check_index($node, 'prepared'), '0', 'committed, the index is whole');
$session->query_safe(q{BEGIN; DROP INDEX prepared, kept; PREPARE TRANSACTION 'drop'});
sql(q{COMMIT PREPARED 'drop'});
sql('SELECT sherman_collect()');
accounted('DROP in a prepared transaction');

# The index's oid may change while its file and tree stay.
sql(q{CREATE TABLE widened (c varchar(10)); INSERT INTO widened SELECT 'v' || g FROM generate_series(1, 3000) g; CREATE INDEX widened_c ON widened USING sherman (c)});
my $oid = sql(q{SELECT 'widened_c'::regclass::oid});
my $tree = sql(q{SELECT tree FROM sherman_stat_indexes WHERE indexrelid = 'widened_c'::regclass});
sql('ALTER TABLE widened ALTER c TYPE varchar(20)');
isnt(sql(q{SELECT 'widened_c'::regclass::oid}), $oid, 'ALTER TYPE made another index');
is(sql('SELECT sherman_collect()'), '0', 'nothing is freed');
is(sql(q{SELECT tree FROM sherman_stat_indexes WHERE indexrelid = 'widened_c'::regclass}), $tree, 'it has the old tree');
is(check_index($node, 'widened_c'), '0', 'which is whole');
sql('DROP TABLE widened');
accounted('DROP after ALTER TYPE');

# Databases: copies are broken and leave the original alone; dropped ones give all back.
$node->safe_psql('postgres', 'CREATE DATABASE source');
$node->safe_psql('source',
	'CREATE EXTENSION sherman; CREATE TABLE t (id int); INSERT INTO t SELECT generate_series(1, 5000); CREATE INDEX t_id ON t USING sherman (id)');
my $source = owned('source');
for my $strategy (qw(wal_log file_copy))
{
	$node->safe_psql('postgres', "CREATE DATABASE copy TEMPLATE source STRATEGY $strategy");
	is(state_of($node, 't_id', 'copy'), 'broken', "the index of a copy by $strategy is broken");
	$node->safe_psql('copy', 'INSERT INTO t VALUES (0); DELETE FROM t WHERE id < 10; VACUUM t');
	is(check_index($node, 't_id', 'source'), '0', 'the original is whole');
	$node->safe_psql('copy', 'REINDEX INDEX t_id');
	is(check_index($node, 't_id', 'copy'), '0', 'REINDEX gives the copy its own tree');
	accounted('copied database', $source + owned('copy'));
	$node->safe_psql('postgres', 'DROP DATABASE copy');
	accounted('DROP DATABASE', $source);
	is(check_index($node, 't_id', 'source'), '0', 'the original is still whole');
}
$node->safe_psql('postgres', 'ALTER DATABASE source RENAME TO renamed');
is(check_index($node, 't_id', 'renamed'), '0', 'a renamed database keeps its indexes');
$node->safe_psql('postgres', 'ALTER DATABASE renamed ALLOW_CONNECTIONS false');
is(sql('SELECT sherman_collect()'), '0', 'a database that nobody may connect to keeps its trees');
is(used($node), owned() + $source, 'all of them');
$node->safe_psql('postgres', 'DROP DATABASE renamed');
accounted('DROP DATABASE without connections');

# Databases are made, copied, renamed and dropped while the collector is busy with them, wherever it is: core itself waits 5 s
# for others in a database, and then fails. 018_collector.pl holds it there.
sql('ALTER SYSTEM SET sherman.collect_interval = 1');
$node->reload;
$node->safe_psql('postgres', 'CREATE DATABASE busy_template');
$node->safe_psql('busy_template', 'CREATE EXTENSION sherman; CREATE TABLE t (id int)');
for my $round (1 .. 6)
{
	for my $command (
		'CREATE DATABASE busy TEMPLATE busy_template',
		'CREATE DATABASE busy_copy TEMPLATE busy',
		'ALTER DATABASE busy_copy RENAME TO busy_renamed',
		'DROP DATABASE busy_renamed',
		'DROP DATABASE busy')
	{
		$node->safe_psql('postgres', $command);
		$node->safe_psql('busy', 'CREATE INDEX t_id ON t USING sherman (id); DROP INDEX t_id; CREATE INDEX t_id ON t USING sherman (id)')
		  if $command =~ /busy TEMPLATE/;
	}
}
accounted('dropped databases');

# Trees of a crash: no one names them, their creators are lost.
$session->quit;
$session = $node->background_psql('postgres');
$session->query_safe('BEGIN; CREATE INDEX lost ON base USING sherman (word)');
$node->stop('immediate');
eval { $session->{run}->finish };
$node->start;
sql('REINDEX INDEX base_id');
accounted('CREATE INDEX cut off by a crash');
is(check_index($node, 'base_id'), '0', 'the index is whole');
sql('DROP TABLE base');
ok(wait_until_used($node, 0), 'at the end nothing is used');

$node->stop;
done_testing();

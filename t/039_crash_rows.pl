
# What PostgreSQL does around tables beside plain inserts, each ended by a crash: prepared transactions, subtransactions, unlogged tables,
# copied databases, other tablespaces, wal_level = minimal; and a base backup of a server that goes on.  Index and table say the same
# afterwards, also where other rows have taken the places of lost ones.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $by_index = 'SET client_min_messages = error; SET enable_seqscan = off; SET enable_bitmapscan = off;';
my $by_table = 'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;';

# Of those up to a number the table has these rows, "count|sum", and the index all that the table has.  Lost may be what was
# written last: others may have flushed it.
sub rows_are
{
	my ($server, $table, $last, $expected, $what, $database) = @_;
	my $query = "SELECT count(*), sum(k) FROM $table WHERE k > 0";

	$database //= 'postgres';
	is($server->safe_psql($database, "$by_table $query AND k <= $last"), $expected, "$what: the table's rows");
	rows_fit($server, $table, $what, $database);
	return;
}

# The index has the rows that the table has.
sub rows_fit
{
	my ($server, $table, $what, $database) = @_;
	my $query = "SELECT count(*), sum(k) FROM $table WHERE k > 0";

	$database //= 'postgres';
	is($server->safe_psql($database, "$by_index $query"), $server->safe_psql($database, "$by_table $query"), "$what: the index says the same");
	is(check_index($server, "${table}_k", $database), '0', "$what: the index is whole");
	return;
}

# The sum of the numbers from one to another.
sub sum
{
	my ($from, $to) = @_;

	return ($from + $to) * ($to - $from + 1) / 2;
}

my $node = new_cluster('main',
	conf => "synchronous_commit = off\nwal_writer_delay = 10s\nbgwriter_lru_maxpages = 0\nmax_prepared_transactions = 5\nallow_in_place_tablespaces = on\n");

is($node->safe_psql('postgres', 'SHOW wal_level'), 'minimal', 'wal_level');
$node->safe_psql('postgres', "SET allow_in_place_tablespaces = on; CREATE TABLESPACE elsewhere LOCATION ''");
$node->safe_psql('postgres', "CREATE TABLE $_ (k int); CREATE INDEX ${_}_k ON $_ USING sherman (k)") foreach qw(twophase nested moved stays);
$node->safe_psql('postgres', 'CREATE UNLOGGED TABLE volatile (k int); CREATE INDEX volatile_k ON volatile USING sherman (k); INSERT INTO volatile SELECT generate_series(1, 100)');
$node->restart;

# To prepare a transaction flushes: what was written before is there, what came later is lost.  A tablespace that was left in a
# transaction which nobody ended.
$node->safe_psql('postgres', 'SET synchronous_commit = on; INSERT INTO stays VALUES (1)');
my $session = $node->background_psql('postgres');
$session->query_safe('BEGIN; ALTER INDEX stays_k SET TABLESPACE elsewhere; INSERT INTO stays VALUES (7)');
lose($node,
	'INSERT INTO nested SELECT generate_series(1, 50)',
	'BEGIN; SAVEPOINT a; INSERT INTO nested SELECT generate_series(51, 100); ROLLBACK TO a; INSERT INTO nested SELECT generate_series(101, 150);'
	  . ' SAVEPOINT b; INSERT INTO nested SELECT generate_series(151, 160); RELEASE b; COMMIT',
	'ALTER INDEX moved_k SET TABLESPACE elsewhere; INSERT INTO moved SELECT generate_series(1, 100)',
	'BEGIN; ALTER TABLE moved SET TABLESPACE elsewhere; ROLLBACK',
	'INSERT INTO twophase SELECT generate_series(1, 100)',
	q{BEGIN; INSERT INTO twophase SELECT generate_series(101, 200); SAVEPOINT s; INSERT INTO twophase SELECT generate_series(1001, 1100);}
	  . q{ ROLLBACK TO s; PREPARE TRANSACTION 'kept'},
	q{BEGIN; INSERT INTO twophase SELECT generate_series(201, 300); DELETE FROM twophase WHERE k <= 10; PREPARE TRANSACTION 'undone'},
	'INSERT INTO twophase SELECT generate_series(301, 400)',
	'INSERT INTO nested SELECT generate_series(301, 400)',
	'BEGIN; SAVEPOINT a; INSERT INTO nested SELECT generate_series(401, 450); ROLLBACK TO a; INSERT INTO nested VALUES (1000); COMMIT',
	'INSERT INTO moved SELECT generate_series(301, 400)');
eval { $session->{run}->finish };
start_again($node);
like(state_of($node, "${_}_k"), qr/^(healing|ok)$/, "$_ is not lost") foreach qw(twophase nested moved);
rows_are($node, 'twophase', 100, '100|' . sum(1, 100), 'prepared transactions');
rows_are($node, 'nested', 160, '110|' . (sum(1, 50) + sum(101, 160)), 'subtransactions');
rows_are($node, 'moved', 100, '100|' . sum(1, 100), 'another tablespace');
rows_are($node, 'stays', 1000, '1|1', 'another tablespace, in a transaction that did not end');
is($node->safe_psql('postgres', q{SELECT relname FROM pg_class WHERE reltablespace = (SELECT oid FROM pg_tablespace WHERE spcname = 'elsewhere')}),
	'moved_k', 'one of them has moved');
rows_are($node, 'volatile', 1000, '0|', 'an unlogged table');

# Other rows in the places of those that are lost, and then the transactions are decided.
$node->safe_psql('postgres', "INSERT INTO $_ SELECT generate_series(501, 600)") foreach qw(twophase nested moved stays volatile);
rows_fit($node, 'twophase', 'others in their places');
$node->safe_psql('postgres', q{COMMIT PREPARED 'kept'});
$node->safe_psql('postgres', q{ROLLBACK PREPARED 'undone'});
rows_are($node, 'twophase', 200, '200|' . sum(1, 200), 'decided');
rows_fit($node, $_, "others in the places of $_") foreach qw(nested moved stays volatile);
$node->safe_psql('postgres', "VACUUM $_") foreach qw(twophase nested moved);

# A decision outlives a crash, whatever came behind it; so do a copied database and what was made without WAL.
$node->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE postgres');
$node->safe_psql('postgres', q{BEGIN; INSERT INTO twophase SELECT generate_series(701, 710); PREPARE TRANSACTION 'third'});
$node->safe_psql('postgres', 'BEGIN; CREATE TABLE bare (k int); INSERT INTO bare SELECT generate_series(1, 500); CREATE INDEX bare_k ON bare USING sherman (k); COMMIT');
$node->safe_psql('postgres', 'BEGIN; TRUNCATE nested; INSERT INTO nested SELECT generate_series(1, 20); COMMIT');
$node->safe_psql('postgres', 'REINDEX INDEX moved_k');
$session = $node->background_psql('postgres');
$session->query_safe('BEGIN; CREATE TABLE never (k int); INSERT INTO never SELECT generate_series(1, 500); CREATE INDEX never_k ON never USING sherman (k)');
lose($node,
	q{SET synchronous_commit = on; COMMIT PREPARED 'third'},
	'INSERT INTO twophase SELECT generate_series(801, 900)',
	'INSERT INTO bare SELECT generate_series(801, 900)',
	'INSERT INTO moved SELECT generate_series(801, 900)',
	'INSERT INTO nested SELECT generate_series(801, 900)');
eval { $session->{run}->finish };
start_again($node);
is($node->safe_psql('postgres', 'SELECT count(*) FROM twophase WHERE k BETWEEN 701 AND 710'), '10', 'a decision is kept');
rows_are($node, 'twophase', 200, '200|' . sum(1, 200), 'a decision');
rows_are($node, 'bare', 500, '500|' . sum(1, 500), 'a table and its index of one transaction');
rows_are($node, 'nested', 20, '20|' . sum(1, 20), 'emptied and filled');
rows_fit($node, 'moved', 'built again');
is($node->safe_psql('postgres', q{SELECT to_regclass('never_k') IS NULL}), 't', 'what was not committed is not there');
is(state_of($node, 'twophase_k', 'copy'), 'broken', 'the index of a copied database is broken');
is($node->safe_psql('copy', "$by_index SELECT count(*) FROM twophase WHERE k <= 200"), '200', 'its rows are there');
$node->safe_psql('copy', 'REINDEX INDEX twophase_k; SET synchronous_commit = on; INSERT INTO twophase VALUES (9999)');
lose($node, 'INSERT INTO twophase SELECT generate_series(801, 900)');
start_again($node);
rows_fit($node, 'twophase', 'the original', 'copy');
rows_are($node, 'twophase', 200, '200|' . sum(1, 200), 'beside its copy');
$node->stop;

# A base backup while rows come in; both go on.
my $origin = new_cluster('origin', allows_streaming => 1);
$origin->safe_psql('postgres', 'CREATE TABLE busy (k serial); CREATE INDEX busy_k ON busy USING sherman (k); INSERT INTO busy SELECT FROM generate_series(1, 1000)');
my $errors = '';
my $inserts = IPC::Run::start(
	[ 'psql', '-XAtq', '-d', $origin->connstr('postgres'), '-c', 'DO $$BEGIN FOR i IN 1..1000000 LOOP INSERT INTO busy DEFAULT VALUES; COMMIT; END LOOP; END$$' ],
	'>', '/dev/null', '2>', \$errors);
$origin->poll_query_until('postgres', 'SELECT count(*) > 1100 FROM busy') or die 'nothing happens';
$origin->backup('online');
my $copy = PostgreSQL::Test::Cluster->new('restored');
$copy->init_from_backup($origin, 'online');
$copy->append_conf('postgresql.conf', "sherman.embedded_directory = '" . memory_directory($copy) . "'\n");
$copy->start;
cmp_ok($copy->safe_psql('postgres', "$by_index SELECT count(*) FROM busy WHERE k > 0"), '>', 1000, 'rows are restored');
is($copy->safe_psql('postgres', "$by_index SELECT count(*), sum(k) FROM busy WHERE k > 0"),
	$copy->safe_psql('postgres', "$by_table SELECT count(*), sum(k) FROM busy WHERE k > 0"), 'the copy answers right');
$origin->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'DO %'});
IPC::Run::finish($inserts);
like($errors, qr/terminating connection/, 'rows came in all the time');
is(state_of($origin, 'busy_k'), 'ok', 'the original\'s index is good');
rows_fit($origin, 'busy', 'the original');
$copy->safe_psql('postgres', 'REINDEX INDEX busy_k; INSERT INTO busy DEFAULT VALUES');
rows_fit($copy, 'busy', 'the copy, built again');
lose($origin, 'SET synchronous_commit = off; INSERT INTO busy DEFAULT VALUES');
start_again($origin);
rows_fit($origin, 'busy', 'the original behind a crash');
rows_fit($copy, 'busy', 'its copy');
$copy->stop;
$origin->stop;
done_testing();


# After an unclean end indexes are whole again at the first query: entries whose rows are lost are found out by a look at the table,
# whatever rows have taken their places since.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('main', conf => "synchronous_commit = off\nbgwriter_lru_maxpages = 0\nmax_prepared_transactions = 5\n");
my $index_scan = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET client_min_messages = error;';
my $bitmap_scan = 'SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off;';

# The answer is the same by every way to the rows.
sub answers
{
	my ($query, $expected, $what) = @_;

	is($node->safe_psql('postgres', "$index_scan $query"), $expected, "$what: by the index");
	is($node->safe_psql('postgres', "$bitmap_scan $query"), $expected, "$what: by a bitmap");
	is($node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; $query"),
		$expected, "$what: by the table");
	return;
}

sub fails
{
	my ($sql, $error, $what) = @_;
	my ($stdout, $stderr);

	$node->psql('postgres', $sql, stdout => \$stdout, stderr => \$stderr);
	like($stderr, $error, $what);
	return;
}

$node->safe_psql(
	'postgres', q{
	CREATE TABLE rows (k int, n numeric, word text, flag bool);
	INSERT INTO rows SELECT g, g, 'word ' || g, true FROM generate_series(1, 1000) g;
	CREATE INDEX rows_k ON rows USING sherman (k);
	CREATE INDEX rows_n ON rows USING sherman (n) INCLUDE (word);
	CREATE INDEX rows_word ON rows USING sherman (word);
	CREATE INDEX rows_long ON rows USING sherman (repeat(word, 9));
	CREATE INDEX rows_flag ON rows USING sherman (k) WHERE flag;
	CREATE UNIQUE INDEX rows_unique ON rows USING sherman (k, n);
	CREATE TABLE excluded (k int, EXCLUDE USING sherman (k WITH =));
	INSERT INTO excluded SELECT generate_series(1, 1000);
	CREATE TABLE still AS SELECT generate_series(1, 1000) AS k;
	CREATE INDEX still_k ON still USING sherman (k);
});
my @indexes = qw(rows_k rows_n rows_word rows_long rows_flag rows_unique excluded_k_excl);
$node->restart;
# The first change of each index in a run flushes WAL: that is not to be behind rows which are to be lost.
$node->safe_psql('postgres', q{BEGIN; INSERT INTO rows VALUES (0, 0, 'none', true); INSERT INTO excluded VALUES (0); ROLLBACK});

# Rows are lost, and nobody has taken their places: not even the table's blocks are there.
lose($node, q{
	INSERT INTO rows SELECT g, g, 'lost ' || g, true FROM generate_series(1001, 3000) g;
	INSERT INTO excluded SELECT generate_series(1001, 2000)});
start_again($node);
my $rows = $node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM rows');
is($rows, '1000', 'the rows are lost');
is(state_of($node, $_), 'healing', "$_ is being healed") for @indexes;
is(state_of($node, 'still_k'), 'ok', 'an index that was not changed is not');
answers('SELECT count(*), max(word) FROM rows WHERE k > 900', '100|word 999', 'rows without blocks');
answers('SELECT count(*), max(k) FROM rows WHERE n > 900', '100|1000', 'numbers');
is($node->safe_psql('postgres', "$index_scan SELECT k FROM rows ORDER BY k DESC LIMIT 2"), "1000\n999", 'backward');
is($node->safe_psql('postgres', "$index_scan SELECT max(k) FROM rows"), '1000', 'the last one');
is(check_index($node, $_), '0', "$_ is whole") for @indexes;

# Others take their places.
$node->safe_psql('postgres', q{INSERT INTO rows SELECT g, g, 'new ' || g, false FROM generate_series(3001, 4500) g});
answers('SELECT count(*) FROM rows WHERE k > 1000', '1500', 'rows in the place of others');
answers('SELECT count(*) FROM rows WHERE k BETWEEN 1001 AND 3000', '0', 'lost keys');
answers(q{SELECT count(*) FROM rows WHERE word LIKE 'lost%'}, '0', 'lost words');
answers('SELECT count(*) FROM rows WHERE flag AND k > 500', '500', 'a partial index');
is($node->safe_psql('postgres', "$index_scan SELECT k FROM rows WHERE k > 998 ORDER BY k LIMIT 3"), "999\n1000\n3001", 'in order');
is(check_index($node, $_), '0', "$_ is whole") for @indexes;

# Keys that are lost are free; those that are there are not.
$node->safe_psql('postgres', q{INSERT INTO rows VALUES (1001, 1001, 'again', true); INSERT INTO excluded VALUES (1001), (1500)});
$node->safe_psql('postgres', q{INSERT INTO excluded VALUES (1502) ON CONFLICT DO NOTHING});
answers('SELECT word FROM rows WHERE k = 1001', 'again', 'a lost key');
fails(q{INSERT INTO rows VALUES (1001, 1001, 'twice', true)}, qr/duplicate key value violates unique constraint "rows_unique"/, 'it is one once');
fails('INSERT INTO excluded VALUES (1500)', qr/conflicting key value violates exclusion constraint/, 'the same of a constraint');
fails('INSERT INTO excluded VALUES (17)', qr/conflicting key value violates exclusion constraint/, 'and of a row from before');
is($node->safe_psql('postgres', 'INSERT INTO excluded VALUES (1502) ON CONFLICT DO NOTHING; SELECT count(*) FROM excluded WHERE k = 1502'), '1', 'ON CONFLICT');
is(check_index($node, $_), '0', "$_ is whole") for @indexes;

# Another crash, over leaves that are in doubt still (N9).
$node->safe_psql('postgres', q{SET synchronous_commit = on; DELETE FROM rows WHERE k > 3500;});
lose($node, q{INSERT INTO rows SELECT g, g, 'lost again ' || g, true FROM generate_series(5001, 6000) g});
start_again($node);
answers('SELECT count(*) FROM rows WHERE k > 3000', '500', 'twice lost');
answers(q{SELECT count(*) FROM rows WHERE word LIKE 'lost%'}, '0', 'twice lost words');
is(check_index($node, $_), '0', "$_ is whole") for @indexes;

# A clean end in between changes nothing: what is in doubt stays so.
$node->restart;
is(state_of($node, 'rows_k'), 'healing', 'a restart does not end the doubt');
answers('SELECT count(*) FROM rows WHERE k BETWEEN 1002 AND 3000', '0', 'after a restart');

# Healing ends it, and takes what is lost away; a crash afterwards does not bring it back.
foreach my $index (@indexes)
{
	is($node->safe_psql('postgres', "SELECT sherman_heal('$index')"), '0', "$index is healed");
	is(state_of($node, $index), 'ok', "$index is not in doubt any more");
	is(check_index($node, $index), '0', "$index is whole");
	ok($node->safe_psql('postgres', "SELECT sum(deletes) > 500 FROM sherman_stat_indexes WHERE indexrelid = '$index'::regclass") eq 't', "$index has lost what was lost");
}
answers('SELECT count(*) FROM rows WHERE k BETWEEN 1002 AND 3000', '0', 'healed');
lose($node, q{INSERT INTO rows SELECT g, g, 'lost ' || g, true FROM generate_series(7001, 8000) g});
start_again($node);
answers('SELECT count(*) FROM rows WHERE k > 3000', '500', 'a crash after healing');
is(check_index($node, $_), '0', "$_ is whole") for @indexes;
is($node->safe_psql('postgres', "SELECT sherman_heal('$_')"), '0', "$_ is healed again") for @indexes;
is(state_of($node, 'rows_k'), 'ok', 'and not in doubt');

# The place of a lost row is taken by one with an equal key that is another value, and other included columns (N7); by one that does not
# fit a partial index's predicate.
$node->safe_psql('postgres', q{
	CREATE TABLE equal (n numeric, word text, open bool);
	INSERT INTO equal SELECT g, 'before', true FROM generate_series(1, 10) g;
	CREATE INDEX equal_n ON equal USING sherman (n) INCLUDE (word);
	CREATE INDEX equal_open ON equal USING sherman (n) WHERE open;
	CHECKPOINT});
lose($node, q{INSERT INTO equal VALUES (100.0, 'lost', true)});
start_again($node);
$node->safe_psql('postgres', q{SET synchronous_commit = on; INSERT INTO equal VALUES (100.00, 'there', false)});
is($node->safe_psql('postgres', 'SELECT count(*) FROM equal WHERE ctid = (SELECT max(ctid) FROM equal)'), '1', 'a row is where another one was');
is($node->safe_psql('postgres', "$index_scan SELECT n, word FROM equal WHERE n = 100"), '100.00|there', 'included columns are those of the row');
is($node->safe_psql('postgres', "$index_scan SELECT n FROM equal WHERE n = 100"), '100.00', 'and so is the key');
is($node->safe_psql('postgres', "$index_scan SELECT count(word) FROM equal WHERE n = 100 AND open"), '0', 'a row that the predicate leaves out');
is($node->safe_psql('postgres', "$bitmap_scan SELECT count(word) FROM equal WHERE n = 100 AND open"), '0', 'by a bitmap as well');
is(check_index($node, 'equal_n'), '0', 'the index is whole');

# A lost key that begins, as far as the normalized one goes, like the key of the row in its place, which is in another leaf: only the
# rest tells them apart.
$node->safe_psql('postgres', q{
	CREATE TABLE prefixes (word text, note text); INSERT INTO prefixes SELECT repeat('x', 60) || to_char(g, 'FM0000'), g FROM generate_series(1, 1000) g;
	CREATE INDEX prefixes_word ON prefixes USING sherman (word) INCLUDE (note); CHECKPOINT});
lose($node, q{INSERT INTO prefixes VALUES (repeat('x', 60) || '0100 is lost', 'same')});
start_again($node);
$node->safe_psql('postgres', q{SET synchronous_commit = on; INSERT INTO prefixes VALUES (repeat('x', 60) || '0900 is there', 'same')});
is($node->safe_psql('postgres', "$index_scan SELECT count(note) FROM prefixes WHERE word = repeat('x', 60) || '0100 is lost'"), '0', 'a lost key does not return another row');
is($node->safe_psql('postgres', "$index_scan SELECT count(note) FROM prefixes WHERE word > repeat('x', 60)"), '1001', 'which comes once');
is($node->safe_psql('postgres', q{SELECT sherman_heal('prefixes_word')}), '0', 'it is healed');
is($node->safe_psql('postgres', q{SELECT deletes FROM sherman_stat_indexes WHERE indexrelid = 'prefixes_word'::regclass}), '1', 'and the lost key is gone');
is(check_index($node, 'prefixes_word'), '0', 'the index is whole');

# Keys of a unique index that are lost, with rows in their places that have their entries in another leaf.
$node->safe_psql('postgres', q{
	CREATE TABLE once (k int);
	INSERT INTO once SELECT generate_series(2, 400, 2);
	CREATE UNIQUE INDEX once_k ON once USING sherman (k);
	CHECKPOINT});
lose($node, q{INSERT INTO once SELECT generate_series(1, 19, 2)});
start_again($node);
$node->safe_psql('postgres', q{SET synchronous_commit = on; INSERT INTO once SELECT generate_series(1001, 1010)});
$node->safe_psql('postgres', q{INSERT INTO once SELECT generate_series(1, 19, 2)});
fails("INSERT INTO once VALUES ($_)", qr/duplicate key value violates unique constraint "once_k"/, "$_ is there") for (6, 15, 1005);
is(check_index($node, 'once_k'), '0', 'the index is whole');

# A chain of updates whose first member has another key, and which a prepared transaction keeps.
$node->safe_psql('postgres', q{CREATE TABLE chain (a int, b int); INSERT INTO chain VALUES (1, 1)});
$node->safe_psql('postgres', q{BEGIN; SELECT txid_current(); CREATE TABLE held (); PREPARE TRANSACTION 'holds'});
$node->safe_psql('postgres', q{UPDATE chain SET a = 2});
$node->safe_psql('postgres', q{CREATE INDEX chain_a ON chain USING sherman (a); INSERT INTO chain VALUES (3, 3)});
$node->safe_psql('postgres', q{SET synchronous_commit = on; CREATE TABLE flushed ()});
lose($node, q{INSERT INTO chain VALUES (4, 4)});
start_again($node);
is(state_of($node, 'chain_a'), 'healing', 'an index over a chain');
is($node->safe_psql('postgres', "$index_scan SELECT string_agg(a::text, ' ') FROM (SELECT a FROM chain WHERE a > 0 ORDER BY a) s"), '2 3', 'a later member of the chain');
$node->safe_psql('postgres', 'CLUSTER chain USING chain_a');
is($node->safe_psql('postgres', 'SELECT count(*) FROM chain'), '2', 'CLUSTER takes it along');
$node->safe_psql('postgres', q{ROLLBACK PREPARED 'holds'});

# What an index's owner has written runs as he, whoever heals (N22; t/050_owners_code has who reads).
$node->safe_psql('postgres', q{
	SET synchronous_commit = on; CREATE ROLE owner; GRANT CREATE ON SCHEMA public TO owner; SET ROLE owner;
	CREATE TABLE owned (k int);
	CREATE FUNCTION told(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN IF current_user <> 'owner' THEN RAISE 'it runs as %', current_user; END IF; RETURN k; END $$;
	CREATE INDEX owned_told ON owned USING sherman (told(k)) WHERE told(k) > 0;
	INSERT INTO owned SELECT generate_series(1, 10)});
lose($node, q{SET ROLE owner; INSERT INTO owned SELECT generate_series(11, 20)});
start_again($node);
is(state_of($node, 'owned_told'), 'healing', 'an index over functions');
is($node->safe_psql('postgres', q{SELECT sherman_heal('owned_told')}), '0', 'its functions run as its owner');
is(check_index($node, 'owned_told'), '0', 'it is whole');
is($node->safe_psql('postgres', "$index_scan SET ROLE owner; SELECT count(k) FROM owned WHERE told(k) > 0"), '10', 'it has its rows');

# The data directory is set back to where rows are alive whose entries were removed since: nobody has them any more.
$node->safe_psql('postgres', q{
	CREATE TABLE back (k int); INSERT INTO back SELECT generate_series(1, 1000); CREATE INDEX back_k ON back USING sherman (k);
	CREATE TABLE ahead (k int); INSERT INTO ahead SELECT generate_series(1, 1000); CREATE INDEX ahead_k ON ahead USING sherman (k);
	CHECKPOINT; CHECKPOINT});
my $copy = $node->basedir . '/copy';
my $data = $node->data_dir;
system_or_bail('cp', '-a', $data, $copy);
$node->safe_psql('postgres', q{SET synchronous_commit = on; DELETE FROM back WHERE k > 500; INSERT INTO ahead SELECT generate_series(1001, 2000)});
$node->safe_psql('postgres', 'VACUUM back');
$node->stop('immediate');
# Into the very same directory.
system_or_bail('sh', '-c', "find '$data' -mindepth 1 -delete && cp -a '$copy'/. '$data' && rm -f '$data/postmaster.pid'");
start_again($node);
is(state_of($node, 'back_k'), 'broken', 'an index whose entries were removed is broken');
is(state_of($node, 'ahead_k'), 'healing', 'one that has too many is not');
answers('SELECT count(*) FROM back WHERE k > 400', '600', 'rows that are there again');
answers('SELECT count(*) FROM ahead WHERE k > 400', '600', 'rows that are not there any more');
is(check_index($node, 'ahead_k'), '0', 'it is whole');

# Rows of a statement in progress have taken the places of rows that were lost, half of them with the same keys, and their entries are not
# there yet.  Of an expression the healer cannot tell whether it has had another value for such a row: it leaves the entry, and comes again.
make_held_at($node);
$node->safe_psql('postgres', 'CREATE TABLE taken (k int) WITH (autovacuum_enabled = off); INSERT INTO taken SELECT generate_series(1, 100); CREATE INDEX taken_k ON taken USING sherman (k); CREATE INDEX taken_e ON taken USING sherman ((k + 0))');
$node->restart;
$node->safe_psql('postgres', 'SET synchronous_commit = on; INSERT INTO taken VALUES (0)');
lose($node, 'INSERT INTO taken SELECT generate_series(1001, 1100)');
start_again($node);
my $holder = $node->background_psql('postgres');
$holder->query_safe('SELECT pg_advisory_lock(1)');
my $writer = $node->background_psql('postgres');
$writer->query_until(qr/begins/, "\\echo begins\nINSERT INTO taken SELECT held_at(CASE WHEN i <= 50 THEN 1000 + i ELSE 5000 + i END, 5100) FROM generate_series(1, 100) i;\n");
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'advisory'}) or die 'nobody is held';
is($node->safe_psql('postgres', q{SELECT sherman_heal('taken_k'), sherman_heal('taken_e') > 0}), '0|t', 'what may be the entry of a row in progress is left');
answers("SELECT count(*), max(k) FROM taken WHERE $_ >= 0", '101|100', "nobody finds such rows: $_") foreach ('k', 'k + 0');
$holder->query_safe('SELECT pg_advisory_unlock(1)');
$writer->query_safe('SELECT 1');
is($node->safe_psql('postgres', q{SELECT sherman_heal('taken_k'), sherman_heal('taken_e')}), '0|0', 'in the end all are healed');
answers("SELECT count(*), sum(k) FROM taken WHERE $_ > 100", '100|305050', "and have the rows: $_") foreach ('k', 'k + 0');
is(check_index($node, $_), '0', "$_ is whole") foreach ('taken_k', 'taken_e');
$_->quit foreach ($holder, $writer);

$node->stop;
done_testing();

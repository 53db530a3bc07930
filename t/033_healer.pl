
# Indexes that a crash has left unverified are healed by themselves: by the healer, which is in nobody's way, and by VACUUM.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('main',
	conf => "synchronous_commit = off\nbgwriter_lru_maxpages = 0\nrestart_after_crash = on\ndeadlock_timeout = 100ms\nwal_writer_delay = 2s\n"
	# The end of the WAL can be found whenever the last checkpoint was.
	. "wal_keep_size = 128MB\n");
my $by_index = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET client_min_messages = error;';
my $by_table = 'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;';

# The healer is told to begin, or to come no more.
sub autoheal
{
	my $value = shift;

	$node->append_conf('postgresql.conf', "sherman.autoheal = $value\n");
	$node->reload;
	return;
}

# Without a lock on the index, or its table.
sub ok_in_time
{
	my ($index, $what) = @_;

	ok($node->poll_query_until('postgres', "SELECT state = 'ok' FROM sherman_index_info('$index')"), $what);
	return;
}

sub same_answer
{
	my ($query, $what) = @_;

	is($node->safe_psql('postgres', "$by_index $query"), $node->safe_psql('postgres', "$by_table $query"), $what);
	return;
}

# Waits until the healer is at this index, and returns its process.
sub healer_at
{
	my ($relation, $database) = @_;
	my $query = "SELECT p.pid FROM sherman_stat_progress_heal p JOIN pg_stat_activity a USING (pid)
		WHERE p.phase = 'looking up entries' AND a.backend_type = 'sherman healer' AND a.wait_event IS NOT NULL AND p.indexrelid = $relation";

	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM ($query) q") or die "the healer is not at $relation";
	return $node->safe_psql('postgres', $query);
}

# Queries of the healer have no text: only there the function waits, raises and tries what it must not.
$node->safe_psql(
	'postgres', q{
	CREATE ROLE owner; CREATE ROLE reader; GRANT ALL ON SCHEMA public TO owner;
	CREATE FUNCTION waits(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN IF current_query() IS NULL AND k = 5000 THEN PERFORM pg_sleep(600); END IF; RETURN k; END $$;
	CREATE FUNCTION raises(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN IF current_query() IS NULL AND k = 500 THEN RAISE 'not this row'; END IF; RETURN k; END $$;
	SET ROLE owner;
	CREATE FUNCTION rises() RETURNS void LANGUAGE plpgsql VOLATILE AS $$
	BEGIN ALTER ROLE owner SUPERUSER; EXCEPTION WHEN insufficient_privilege THEN RETURN; END $$;
	CREATE FUNCTION tries(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN IF current_query() IS NULL THEN PERFORM public.rises(); END IF; RETURN k; END $$;
	CREATE TABLE plain (k int, word text);
	CREATE TABLE owned (k int);
	RESET ROLE;
	CREATE TABLE raising (k int);
	INSERT INTO plain SELECT g * 10, 'word ' || g FROM generate_series(1, 1000) g;
	INSERT INTO owned SELECT k FROM plain;
	INSERT INTO raising SELECT k FROM plain;
	CREATE INDEX raising_k ON raising USING sherman (raises(k));
	CREATE INDEX plain_k ON plain USING sherman (k);
	CREATE INDEX plain_word ON plain USING sherman (repeat(word, 9));
	CREATE INDEX owned_k ON owned USING sherman (tries(k)) WHERE tries(k) > 0;
	CHECKPOINT;
});
# Every leaf gets an entry whose row is lost.
my $lost = q{
	INSERT INTO raising SELECT g * 10 + 5 FROM generate_series(1, 1000) g;
	INSERT INTO plain SELECT g * 10 + 5, 'lost ' || g FROM generate_series(1, 1000) g;
	INSERT INTO owned SELECT g * 10 + 5 FROM generate_series(1, 1000) g};

# ---- VACUUM heals, without the healer; but not where it would have to run what users have written.
lose($node, $lost);
start_again($node);
is(state_of($node, $_), 'healing', "$_ is in doubt") foreach qw(plain_k plain_word owned_k raising_k);
$node->safe_psql('postgres', 'VACUUM plain');
is(state_of($node, 'plain_k'), 'ok', 'VACUUM has healed an index');
is(state_of($node, 'plain_word'), 'healing', 'and left one over an expression');
is(check_index($node, 'plain_k'), '0', 'what it healed is whole');
is($node->safe_psql('postgres', q{SELECT deletes FROM sherman_stat_indexes WHERE indexrelid = 'plain_k'::regclass}), '1000', 'what was lost is gone');
same_answer('SELECT count(*), sum(k) FROM plain WHERE k > 100', 'the answer is right');

# ---- The healer, and one index of which a row raises an error.
my $log = -s $node->logfile;
autoheal('on');
ok_in_time($_, "$_ is healed by itself") foreach qw(plain_word owned_k);
$node->wait_for_log(qr/LOG:  sherman healer: index "public.plain_word": \d+ of \d+ leaves healed, 1000 entries removed, 0 leaves left unverified/, $log);
$node->wait_for_log(qr/WARNING:  entries of index "raising_k" are left unverified.*\n.*DETAIL:  not this row/, $log);
$node->wait_for_log(qr/LOG:  sherman healer: index "public.raising_k": [1-9]\d* of \d+ leaves healed, \d+ entries removed, 1 leaves left unverified/, $log);
is(state_of($node, 'raising_k'), 'healing', 'where a row raises an error a leaf is left unverified');
same_answer("SELECT count(*), sum(k) FROM $_ WHERE raises(k) > 0", "the answer of $_ is right") foreach qw(raising);
is(check_index($node, $_), '0', "$_ is whole") foreach qw(plain_word owned_k raising_k);
is($node->safe_psql('postgres', q{SELECT rolsuper FROM pg_roles WHERE rolname = 'owner'}), 'f', 'functions run as the owner of the table');
is($node->safe_psql('postgres', q{SELECT sherman_heal('raising_k')}), '0', 'a user heals the rest');
is(state_of($node, 'raising_k'), 'ok', 'and nothing is left');
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM sherman_stat_progress_heal'), 'nobody heals any more');

# An error in a user's call is told, and its leaf is left as well.
$node->safe_psql('postgres', q{
	CREATE TABLE odd (k int); INSERT INTO odd SELECT generate_series(10, 10000, 10);
	CREATE FUNCTION strict_one(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN IF current_setting('test.fails', true) = 'yes' AND k = 500 THEN RAISE 'not today'; END IF; RETURN k; END $$;
	CREATE INDEX odd_k ON odd USING sherman (strict_one(k)); CHECKPOINT});
autoheal('off');
lose($node, 'INSERT INTO odd SELECT generate_series(15, 10005, 10)');
start_again($node);
my ($out, $err);
$node->psql('postgres', q{SET test.fails = 'yes'; SELECT sherman_heal('odd_k')}, stdout => \$out, stderr => \$err);
is($out, '1', 'the number of leaves left');
like($err, qr/WARNING:  entries of index "odd_k" are left unverified.*\nDETAIL:  not today/, 'the user is told why');
is(state_of($node, 'odd_k'), 'healing', 'it is in doubt still');
$node->safe_psql('postgres', 'DROP TABLE odd, raising');

# ---- Who is in the way of the healer is passed by; who waits for it has it canceled.
$node->safe_psql('postgres', q{
	CREATE TABLE locked (k int); CREATE TABLE waiting (k int); CREATE TABLE behind (k int);
	INSERT INTO locked SELECT generate_series(10, 10000, 10);
	INSERT INTO waiting SELECT * FROM locked; INSERT INTO behind SELECT * FROM locked;
	CREATE INDEX locked_k ON locked USING sherman (k);
	CREATE INDEX behind_k ON behind USING sherman (k);
	CREATE INDEX waiting_k ON waiting USING sherman (waits(k));
	CHECKPOINT});
my $lost_here = 'INSERT INTO locked SELECT generate_series(15, 10005, 10); INSERT INTO behind SELECT generate_series(15, 10005, 10);
	INSERT INTO waiting SELECT generate_series(15, 10005, 10)';

lose($node, $lost_here);
start_again($node);
my $locker = $node->background_psql('postgres');
$locker->query_safe('BEGIN; LOCK TABLE locked IN ACCESS EXCLUSIVE MODE');
my $relation = $node->safe_psql('postgres', q{SELECT 'waiting_k'::regclass::oid});
autoheal('on');
my $healer = healer_at($relation);
ok_in_time('behind_k', 'an index is healed while another table is locked');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_locks WHERE NOT granted'), '0', 'the healer waits for nobody');
is($node->safe_psql('postgres', q{SET ROLE reader;
	SELECT datname, indexrelname, leaves_total > 10, leaves_done >= 1, leaves_left, entries_removed > 0, started_at < now() FROM sherman_stat_progress_heal}),
	'postgres|waiting_k|t|t|0|t|t', 'anybody sees how far it is');
same_answer('SELECT count(*), sum(k) FROM waiting WHERE waits(k) > 0', 'the answer is right while the healer is at it');
$node->safe_psql('postgres', q{SET statement_timeout = '100s'; DROP TABLE waiting});
pass('a table that the healer is at is dropped');
$locker->query_safe('COMMIT');
$locker->quit;
ok_in_time('locked_k', 'what was locked is healed later');

# ---- Commands on databases.
autoheal('off');
$node->safe_psql('postgres', 'CREATE DATABASE visited');
$node->safe_psql('visited', q{
	CREATE EXTENSION sherman; CREATE TABLE waiting (k int); INSERT INTO waiting SELECT generate_series(10, 10000, 10);
	CREATE FUNCTION waits(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN IF current_query() IS NULL AND k = 5000 THEN PERFORM pg_sleep(600); END IF; RETURN k; END $$;
	CREATE INDEX waiting_k ON waiting USING sherman (waits(k)); CHECKPOINT;
	INSERT INTO waiting SELECT generate_series(15, 10005, 10)});
$relation = $node->safe_psql('visited', q{SELECT 'waiting_k'::regclass::oid});
$node->stop('immediate');
start_again($node);
is(state_of($node, 'waiting_k', 'visited'), 'healing', 'an index of another database is in doubt');
autoheal('on');
foreach my $command ('CREATE DATABASE copy TEMPLATE visited', 'ALTER DATABASE visited RENAME TO renamed', 'DROP DATABASE renamed')
{
	$healer = healer_at($relation);
	$node->safe_psql('postgres', "SET statement_timeout = '100s'; $command");
	is($node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE pid = $healer"), '0', "$command: the healer has left");
}
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_database WHERE datname IN ('visited', 'renamed')}), '0', 'the database is gone');

# ---- Ends of the server while the healer is at work: one that is asked for, and one by the healer's own death.
$node->safe_psql('postgres', q{
	CREATE TABLE waiting (k int); INSERT INTO waiting SELECT generate_series(10, 10000, 10);
	CREATE INDEX waiting_k ON waiting USING sherman (waits(k)); CHECKPOINT;
	INSERT INTO waiting SELECT generate_series(15, 10005, 10)});
$relation = $node->safe_psql('postgres', q{SELECT 'waiting_k'::regclass::oid});
$node->stop('immediate');
start_again($node);
healer_at($relation);
$node->stop('fast');
pass('the server is shut down while the healer is at work');
start_again($node);
$healer = healer_at($relation);
$node->safe_psql('postgres', 'INSERT INTO plain SELECT generate_series(20005, 30005, 10), 1');
kill 'KILL', $healer;
$node->wait_for_log(qr/all server processes terminated; reinitializing/, $log);
$node->poll_query_until('postgres', q{SELECT count(*) > 0 AND bool_and(state = 'attached') FROM sherman_stat_memory_nodes}) or die 'not attached';
healer_at($relation);
$node->safe_psql('postgres', q{CREATE OR REPLACE FUNCTION waits(k int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT k';
	SELECT pg_cancel_backend(pid) FROM sherman_stat_progress_heal});
ok_in_time($_, "$_ is healed behind the healer's own death") foreach qw(waiting_k plain_k);
same_answer('SELECT count(*), sum(k) FROM waiting WHERE waits(k) > 0', 'the answer is right');

# ---- It sleeps as autovacuum does.
$node->append_conf('postgresql.conf', "autovacuum_vacuum_cost_delay = 20ms\nautovacuum_vacuum_cost_limit = 1\n");
lose($node, 'INSERT INTO plain SELECT generate_series(30005, 40005, 10), 1');
start_again($node);
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'sherman healer' AND wait_event = 'VacuumDelay'}),
	'the healer sleeps between leaves');
ok_in_time('plain_k', 'and comes to an end');
$node->append_conf('postgresql.conf', 'autovacuum_vacuum_cost_delay = 0');

# ---- Under load.
my $load = $node->basedir . '/load.sql';
append_to_file($load, q{\set k random(1, 100000)
	INSERT INTO plain VALUES (:k, :k);
	DELETE FROM plain WHERE k BETWEEN :k AND :k + 100 AND k % 10 = 5;});
foreach my $cycle (1 .. 2)
{
	my $bench_out = '';
	my $bench = IPC::Run::start([ 'pgbench', '-n', '-c', '3', '-T', '60', '-f', $load, $node->connstr('postgres') ], '>', \$bench_out, '2>&1');

	$node->poll_query_until('postgres', q{SELECT sum(inserts) > 300 FROM sherman_stat_indexes}) or die "no load: $bench_out";
	$node->stop('immediate');
	IPC::Run::finish($bench);
	start_again($node);
	same_answer('SELECT count(*), sum(k) FROM plain WHERE k > 100', "cycle $cycle: the answer is right");
	ok_in_time($_, "cycle $cycle: $_ is healed by itself") foreach qw(plain_k plain_word);
	same_answer('SELECT count(*), sum(k) FROM plain WHERE k > 100', "cycle $cycle: the answer is right afterwards");
	is(check_index($node, $_), '0', "cycle $cycle: $_ is whole") foreach qw(plain_k plain_word);
}
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|leak/, 'no process failed, and nothing was left open');

$node->stop;
done_testing();

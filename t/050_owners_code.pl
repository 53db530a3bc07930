
# What a table's owner has written into an index (functions in its expressions and its predicate) runs in nobody's session that only
# reads or inserts, and where it runs, the session's search_path does not lead it to somebody else's functions.  Nor does it cost an
# entry if it is not truly immutable.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('main',
	conf => "synchronous_commit = off\nbgwriter_lru_maxpages = 0\nwal_writer_delay = 2s\nwal_keep_size = 128MB\nmin_parallel_table_scan_size = 0\n");
my $by_index = 'SET enable_seqscan = off; SET client_min_messages = error;';
my $evil_path = 'SET search_path = evil, pg_catalog, public;';
my $as_evil = "$by_index SET ROLE evil; $evil_path";

sub set
{
	my ($setting, $value) = @_;

	$node->append_conf('postgresql.conf', "$setting = $value\n");
	$node->reload;
	return;
}

# The errors and warnings of statements.
sub errors_of
{
	my ($sql) = @_;
	my $errors;

	$node->psql('postgres', "\\set VERBOSITY verbose\n$sql", stderr => \$errors);
	return $errors;
}

# Whether somebody else's functions have run with more rights than his own.
sub nobody_rose
{
	my ($what) = @_;

	is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_roles WHERE rolname IN ('evil', 'owner') AND rolsuper}), '0', "$what: nobody has become a superuser");
	$node->safe_psql('postgres', 'ALTER ROLE evil NOSUPERUSER');
	return;
}

my @words = qw(words_suf words_sql words_partial words_lower words_once words_alone);

# The superuser's table; its functions find lower() by the path.
$node->safe_psql('postgres', q{
	CREATE ROLE owner; CREATE ROLE evil; GRANT ALL ON SCHEMA public TO owner; GRANT evil TO CURRENT_USER;
	CREATE SCHEMA evil AUTHORIZATION evil;
	CREATE FUNCTION suf(v text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$BEGIN RETURN lower(v); END $$;
	CREATE FUNCTION sql(v text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$SELECT lower(v)$$;
	CREATE TABLE words (k int, v text);
	INSERT INTO words SELECT g, 'Word ' || g FROM generate_series(1, 500) g;
	CREATE INDEX words_suf ON words USING sherman (suf(v));
	CREATE INDEX words_sql ON words USING sherman (sql(v));
	CREATE INDEX words_partial ON words USING sherman (k) WHERE suf(v) <> 'none';
	CREATE INDEX words_lower ON words USING sherman (lower(v)) WHERE k > 0;
	CREATE UNIQUE INDEX words_once ON words USING sherman (suf(v), k);
	ALTER TABLE words ADD CONSTRAINT words_alone EXCLUDE USING sherman (suf(v) WITH =);
	CREATE TABLE picky (k int, v text);
	INSERT INTO picky SELECT g, 'Word ' || g FROM generate_series(1, 500) g;
	ALTER TABLE picky ADD CONSTRAINT picky_alone EXCLUDE USING sherman (k WITH =) WHERE (suf(v) <> 'none');
	GRANT SELECT, INSERT ON words, picky TO evil;
	SET ROLE evil;
	CREATE FUNCTION evil.lower(v text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
	BEGIN
		BEGIN PERFORM evil.rise(); EXCEPTION WHEN OTHERS THEN NULL; END;
		RETURN pg_catalog.lower(v);
	END $$;
	CREATE FUNCTION evil.rise() RETURNS void LANGUAGE plpgsql VOLATILE AS $$BEGIN ALTER ROLE evil SUPERUSER; END $$;
	RESET ROLE;
	CHECKPOINT});
# Every leaf gets an entry whose row is lost.
my $lose_words = q{INSERT INTO words SELECT g, 'Word ' || g || ' is lost' FROM generate_series(501, 1000) g;
	INSERT INTO words SELECT g, 'Word ' || g - 1000 || ' is lost' FROM generate_series(1001, 1500) g;
	INSERT INTO picky SELECT g, 'Word ' || g FROM generate_series(501, 600) g; INSERT INTO picky SELECT g, 'none' FROM generate_series(1, 500) g};
lose($node, $lose_words);
start_again($node);
is(state_of($node, $_), 'healing', "$_ is in doubt") foreach @words;

# ---- Readers.
is($node->safe_psql('postgres', "$as_evil SELECT k FROM words WHERE public.suf(v) = 'word 7'"), '7', 'a reader finds a row');
is($node->safe_psql('postgres', "$as_evil SELECT count(*) FROM words WHERE public.sql(v) > 'word'"), '500', 'and what is lost is lost');
is($node->safe_psql('postgres', "$as_evil SELECT count(*) FROM words WHERE k BETWEEN 10 AND 600 AND public.suf(v) <> 'none'"), '491', 'the same of a partial index');
like($node->safe_psql('postgres', "$as_evil EXPLAIN SELECT k FROM words WHERE public.suf(v) = 'word 7'"), qr/Bitmap Index Scan on words_/,
	'an index over functions is read for a bitmap, whose rows are tested by the query itself');
like($node->safe_psql('postgres', "$by_index SET enable_bitmapscan = off; EXPLAIN SELECT k FROM words WHERE lower(v) = 'word 7' AND k > 0"),
	qr/Index Scan using words_lower/, "one over PostgreSQL's own functions is read as ever");
unlike($node->safe_psql('postgres', "$by_index EXPLAIN SELECT k FROM words WHERE k = 7 AND public.suf(v) <> 'none'"), qr/words_partial/, 'one with functions in its predicate is not');
nobody_rose('readers');

# ---- Who inserts, while nobody heals: what nobody may look up for him is an error, at once.
like(errors_of("$as_evil INSERT INTO public.words VALUES (7, 'Word 7')"),
	qr/ERROR:  55000: index "words_once" cannot be used here before it is healed\nDETAIL:  A crash has left .*"sherman.autoheal" is off.\nHINT:  Run SELECT sherman_heal\('public.words_once'\), or REINDEX INDEX public.words_once, as the owner/,
	'a unique index');
$node->safe_psql('postgres', q{SELECT sherman_heal('words_once')});
like(errors_of("$as_evil INSERT INTO public.picky VALUES (7, 'Word 7')"), qr/ERROR:  55000: index "picky_alone" cannot be used here before it is healed/, 'a partial exclusion constraint');
like(errors_of("$as_evil INSERT INTO public.picky VALUES (7, 'Word 7') ON CONFLICT DO NOTHING"), qr/ERROR:  55000: index "picky_alone"/, 'ON CONFLICT');
like(errors_of("BEGIN; SET sherman.autoheal = 'on'"), qr/cannot be changed now/, 'nobody else decides when the healer comes');
like(errors_of("$as_evil INSERT INTO public.words VALUES (8, 'Word 7')"), qr/ERROR:  23P01: conflicting key value violates exclusion constraint "words_alone"/, 'one without predicate forms the keys for itself');
is($node->safe_psql('postgres', "$as_evil INSERT INTO public.words VALUES (8, 'Word 7') ON CONFLICT DO NOTHING RETURNING k"), '', 'and so does ON CONFLICT');
$node->safe_psql('postgres', "$as_evil INSERT INTO public.words VALUES (550, 'Word 550 is lost')");
is($node->safe_psql('postgres', 'SELECT count(*) FROM words'), '501', 'a key whose row is lost is free');
nobody_rose('inserts');

# ---- Maintenance, by a superuser whose path is somebody else's; by the first plan the relcache has what is in the index with that path.
foreach my $command ("SELECT sherman_check('words_sql', true) + sherman_check('words_partial', true)", "SELECT sherman_heal('words_sql') + sherman_heal('words_partial')",
	'CLUSTER words USING words_suf', 'VACUUM words', 'REINDEX INDEX words_sql', 'REINDEX TABLE words', 'SET max_parallel_maintenance_workers = 2; CREATE INDEX later ON words USING sherman (suf(v))')
{
	my $answer = $node->safe_psql('postgres', "$by_index $evil_path EXPLAIN SELECT count(*) FROM words WHERE sql(v) = 'none'; $command");

	like($answer, $command =~ /^SELECT/ ? qr/\n0$/ : qr/Scan/, $command);
	nobody_rose($command);
}
is($node->safe_psql('postgres', "SELECT count(*) FROM words"), '501', 'no row is lost');
is(check_index($node, $_), '0', "$_ is whole") foreach @words;

# ---- The healer, for whom sessions wait.
my $lose_again = q{INSERT INTO words SELECT g, 'Word ' || g || ' is lost' FROM generate_series(2001, 2400) g; INSERT INTO picky SELECT g, 'none' FROM generate_series(1, 600) g;
	INSERT INTO picky SELECT g, 'Word ' || g FROM generate_series(501, 600) g};
$node->safe_psql('postgres', q{SELECT sherman_heal('picky_alone')});
lose($node, $lose_again);
start_again($node);
is(state_of($node, $_), 'healing', "$_ is in doubt again") foreach qw(words_once picky_alone);
my $locker = $node->background_psql('postgres', on_error_stop => 0);
$locker->query_safe('BEGIN; LOCK TABLE picky IN SHARE MODE');
set('sherman.autoheal', 'on');
like(errors_of("$as_evil INSERT INTO public.words VALUES (7, 'Word 7')"), qr/ERROR:  23505: duplicate key value violates unique constraint "words_once"/, 'who inserts waits for the healer');
$locker->query("INSERT INTO picky VALUES (7, 'Word 7')");
like($locker->{stderr}, qr/ERROR:  index "picky_alone" cannot be used here.*This session has locked the table/s, 'unless he keeps it away himself');
$locker->{stderr} = '';
$locker->query_safe('ROLLBACK');
$locker->quit;
like(errors_of("$as_evil INSERT INTO public.picky VALUES (7, 'Word 7')"), qr/ERROR:  23P01: conflicting key value violates exclusion constraint "picky_alone"/, 'a scan waits, too, and reads on');
ok($node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM sherman_stat_indexes WHERE state = 'healing'}), 'all is healed');
is($node->safe_psql('postgres', "$by_index SELECT count(*) FROM words WHERE suf(v) LIKE 'word%is lost'"), '1', 'what was lost is gone');
nobody_rose('the healer');

# ---- A function that needs its session's path: the healer says so once, and who needs the index learns where to look.
set('sherman.autoheal', 'off');
$node->safe_psql('postgres', q{
	SET ROLE owner;
	CREATE FUNCTION helper(k int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT k';
	CREATE FUNCTION needs(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RETURN public.helper(k); END $$;
	CREATE TABLE needy (k int); INSERT INTO needy SELECT generate_series(1, 100);
	CREATE UNIQUE INDEX needy_k ON needy USING sherman (needs(k));
	CREATE OR REPLACE FUNCTION needs(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RETURN helper(k); END $$;
	RESET ROLE; CHECKPOINT});
lose($node, 'INSERT INTO needy SELECT generate_series(101, 120)');
start_again($node);
my $log = -s $node->logfile;
set('sherman.autoheal', 'on');
$node->wait_for_log(qr/WARNING:  entries of index "needy_k" are left unverified, as their rows cannot be looked up\n.*DETAIL:  function helper\(integer\) does not exist/, $log);
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM sherman_stat_progress_heal'), 'the healer has been there');
like(errors_of('SET sherman.heal_timeout = 0; INSERT INTO needy VALUES (7)'), qr/ERROR:  55000: index "needy_k" cannot be used here/, 'an insert that needs it fails');
like(errors_of("SET sherman.heal_timeout = '20s'; INSERT INTO needy VALUES (7)"), qr/The healer has tried in vain; the server's log says why/, 'and waits for nothing');
like(errors_of('REINDEX INDEX needy_k'), qr/ERROR:  42883: function helper\(integer\) does not exist/, 'REINDEX has the same path');
like(errors_of(q{SET ROLE owner; SELECT sherman_heal('needy_k')}), qr/WARNING:  42883: entries of index "needy_k" are left unverified/, 'and so has sherman_heal()');
$node->safe_psql('postgres', 'ALTER FUNCTION needs SET search_path = public');

# ---- sherman_heal() and sherman_check() are for the owner, and for nobody else: who may not call them waits for no lock.
set('sherman.autoheal', 'off');
is($node->safe_psql('postgres', q{SET ROLE owner; SELECT sherman_heal('needy_k'), sherman_check('needy_k', true)}), '0|0', 'the owner of a table heals and checks its index');
$locker = $node->background_psql('postgres');
$locker->query_safe('BEGIN; LOCK TABLE needy IN ACCESS EXCLUSIVE MODE');
like(errors_of("SET lock_timeout = '1s'; SET ROLE evil; SELECT $_('needy_k')"), qr/ERROR:  42501: must be owner of index needy_k/, "nobody else: $_") foreach qw(sherman_heal sherman_check);
$locker->query_safe('COMMIT');
$locker->quit;

# ---- Functions that are not truly immutable: no entry goes because of them, and what does not need them does not call them.
$node->safe_psql('postgres', q{
	CREATE TABLE factor (f int); INSERT INTO factor VALUES (1);
	CREATE FUNCTION times(v int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN
		IF (SELECT f FROM public.factor) = 0 THEN RAISE 'no factor'; END IF;
		RETURN v * (SELECT f FROM public.factor);
	END $$;
	CREATE TABLE moods (k int, v int); INSERT INTO moods SELECT g, g FROM generate_series(1, 200) g;
	CREATE INDEX moods_times ON moods USING sherman (times(v));
	CREATE INDEX moods_both ON moods USING sherman (k, times(v));
	CREATE INDEX moods_some ON moods USING sherman (k) WHERE times(v) > 0;
	CHECKPOINT});
lose($node, 'INSERT INTO moods SELECT g, g FROM generate_series(201, 300) g');
start_again($node);
# Their places are taken, so that it takes more than a look whether there is a row.
$node->safe_psql('postgres', q{SET synchronous_commit = on; INSERT INTO moods SELECT g, g FROM generate_series(401, 450) g; UPDATE factor SET f = 0});
is($node->safe_psql('postgres', "$by_index SELECT count(*) FROM moods WHERE k BETWEEN 191 AND 410"), '20', 'a query that does not need the function does not call it');
foreach my $f (-1, 3)
{
	$node->safe_psql('postgres', "SET synchronous_commit = on; UPDATE factor SET f = $f");
	like(errors_of("SELECT sherman_heal('$_')"),
		$_ eq 'moods_some' && $f > 0 ? qr/^$/ : qr/WARNING:  55000: entries of index "$_" are left unverified, as its rows give other values now.*HINT:  Rebuild it with REINDEX/s, "factor $f: $_")
		foreach qw(moods_times moods_both moods_some);
}
$node->safe_psql('postgres', 'SET synchronous_commit = on; UPDATE factor SET f = 1');
foreach my $index (qw(moods_times moods_both moods_some))
{
	is($node->safe_psql('postgres', "SELECT sherman_heal('$index')"), '0', "$index is healed once the function is what it was");
	is(state_of($node, $index), 'ok', "$index is not in doubt any more");
	is(check_index($node, $index), '0', "$index has all its entries");
	is($node->safe_psql('postgres', "SELECT deletes FROM sherman_stat_indexes WHERE indexrelid = '$index'::regclass"), '100', "$index has lost those of lost rows");
}

$node->stop;
done_testing();


# Unique indexes under sessions that change the same few keys, with VACUUM beside them; and when they are broken.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('main', conf => "deadlock_timeout = 20ms\nmax_prepared_transactions = 2\nsherman.heal = off\n");
my $sessions = 4;
my $steps = 600;
my $keys = 40;

$node->safe_psql(
	'postgres', qq{
	CREATE TABLE t (k int, word text, v int);
	CREATE UNIQUE INDEX t_k ON t USING sherman (k);
	CREATE UNIQUE INDEX t_word ON t USING sherman (word);
	ALTER TABLE t ADD CONSTRAINT t_v EXCLUDE USING sherman (v WITH =);
	-- Changes of random keys in transactions of random length that end one way or the other.  Of a failed change only its
	-- subtransaction is undone; a deadlock ends the transaction.
	CREATE PROCEDURE work(steps int, keys int) LANGUAGE plpgsql AS \$\$
	DECLARE
		a int;
		b int;
		outcome float;
	BEGIN
		FOR i IN 1..steps LOOP
			a := 1 + random() * (keys - 1);
			b := 1 + random() * (keys - 1);
			outcome := random();
			BEGIN
				CASE (random() * 6)::int
					WHEN 0 THEN INSERT INTO t VALUES (a, 'word ' || a, a);
					WHEN 1 THEN INSERT INTO t VALUES (a, 'word ' || a, a) ON CONFLICT DO NOTHING;
					WHEN 2 THEN INSERT INTO t VALUES (a, 'word ' || a, NULL) ON CONFLICT (k) DO UPDATE SET word = 'word ' || b;
					WHEN 3 THEN DELETE FROM t WHERE k = a;
					WHEN 4 THEN UPDATE t SET k = b WHERE k = a;
					WHEN 5 THEN DELETE FROM t WHERE k = a; INSERT INTO t VALUES (a, 'word ' || b, b);
					ELSE INSERT INTO t VALUES (-a - keys * pg_backend_pid(), NULL, NULL) ON CONFLICT (word) DO NOTHING;
				END CASE;
			EXCEPTION
				WHEN unique_violation OR exclusion_violation THEN NULL;
				WHEN deadlock_detected THEN outcome := 1;
			END;
			IF outcome < 0.4 THEN COMMIT; ELSIF outcome > 0.8 THEN ROLLBACK; END IF;
		END LOOP;
	END \$\$;
});

# What must hold whatever happened.
sub check_unique
{
	my $what = shift;

	is($node->safe_psql('postgres', "SELECT string_agg(sherman_check(i::regclass, true)::text, ' ') FROM unnest('{t_k,t_word,t_v}'::text[]) i"),
		'0 0 0', "$what: the indexes hold the table's rows");
	is($node->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_bitmapscan = off;
		SELECT count(*) - count(DISTINCT k), count(word) - count(DISTINCT word), count(v) - count(DISTINCT v) FROM t'),
		'0|0|0', "$what: each key is there once");
}

my @psql = map {
	my ($stdin, $stdout, $stderr) = ("SET statement_timeout = '180s';\nCALL work($steps, $keys);\n\\q\n", '', '');
	my $run = IPC::Run::start([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres') ], '<', \$stdin, '>', \$stdout, '2>', \$stderr);

	[ $run, \$stderr ];
} 1 .. $sessions;
for (1 .. 5)
{
	$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) t');
	$node->safe_psql('postgres', 'REINDEX INDEX CONCURRENTLY t_k') if $_ == 2;
}
foreach (@psql)
{
	my ($run, $stderr) = @$_;

	$run->finish;
	is($$stderr, '', 'a session changed keys to its end');
}
check_unique('after the sessions');
$node->safe_psql('postgres', 'VACUUM (INDEX_CLEANUP ON) t');
check_unique('after VACUUM');

# A prepared transaction has the key: it is waited for until it is decided, across a restart, too.
$node->safe_psql('postgres', "DELETE FROM t; BEGIN; INSERT INTO t VALUES (1, 'one', 1); PREPARE TRANSACTION 'one'");
$node->restart;
is(state_of($node, 't_k'), 'ok', 'the index has survived the restart');
my ($stdout, $stderr);
$node->psql('postgres', "SET lock_timeout = '100ms'; INSERT INTO t VALUES (1, 'uno', 2)", stderr => \$stderr);
like($stderr, qr/canceling statement due to lock timeout.*while inserting index tuple \(\d+,\d+\) in relation "t_k"/s,
	'a key of a prepared transaction is waited for');
$node->safe_psql('postgres', "COMMIT PREPARED 'one'");
$node->psql('postgres', "INSERT INTO t VALUES (1, 'uno', 2)", stderr => \$stderr);
like($stderr, qr/duplicate key value violates unique constraint "t_k"/, 'and is taken when it has committed');

# After an unclean end: what might make a duplicate is refused, the rest goes on.
$node->stop('immediate');
$node->start;
is(state_of($node, 't_k'), 'broken', 'after an unclean end the index is broken');
foreach my $sql ("INSERT INTO t VALUES (5, 'five', 5)", "INSERT INTO t VALUES (1, 'five', 5) ON CONFLICT DO NOTHING",
	"INSERT INTO t VALUES (1, 'five', 5) ON CONFLICT (k) DO UPDATE SET v = 7", 'UPDATE t SET k = 7')
{
	$node->psql('postgres', "\\set VERBOSITY verbose\n$sql", stderr => \$stderr);
	like($stderr, qr/ERROR:  55000: index "t_\w+" is broken and cannot be used.*HINT:  Rebuild it with REINDEX/s, "$sql is refused");
}
is($node->safe_psql('postgres', 'SELECT k, word, v FROM t WHERE k = 1'), '1|one|1', 'rows are read');
$node->safe_psql('postgres', 'DELETE FROM t WHERE k = 1');
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), '0', 'and deleted');
$node->safe_psql('postgres', "REINDEX TABLE t; INSERT INTO t VALUES (1, 'one', 1)");
$node->psql('postgres', "INSERT INTO t VALUES (2, 'one', 2)", stderr => \$stderr);
like($stderr, qr/duplicate key value violates unique constraint "t_word"/, 'REINDEX heals them');
check_unique('after REINDEX');

done_testing();

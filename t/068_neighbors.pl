
# Another extension that uses the same hooks (t/neighbor.c), loaded before sherman and behind it: both do what they do alone
# (doc/internals/fragile.md).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $library = "$PostgreSQL::Test::Utils::tmp_check/neighbor.so";
my $node = new_cluster('neighbors', start => 0, extra => [ '--locale=C', '--encoding=UTF8' ]);

system_or_bail($ENV{CC} // 'cc', '-O1', '-fPIC', '-shared', '-w', '-I' . $node->config_data('--includedir-server'), "$FindBin::RealBin/neighbor.c", '-o', $library);

my $tables = q{
	CREATE TABLE t (id int PRIMARY KEY, word text, flag boolean, a int, b int);
	INSERT INTO t SELECT i, 'word ' || i, i % 100 = 0, i / 10, i % 10 FROM generate_series(1, 10000) i;
	CREATE INDEX t_word ON t USING sherman (word);
	CREATE INDEX t_flag ON t USING sherman (flag);
	CREATE INDEX t_a_b ON t USING sherman (a, b);
	CREATE INDEX hidden_b ON t USING sherman (b, a);
	CREATE TABLE told (v int, w int);
	INSERT INTO told SELECT i, i FROM generate_series(1, 10000) i;
	CREATE INDEX ON told USING sherman (v);
	CREATE TABLE grows (v int);
	INSERT INTO grows SELECT generate_series(1, 10000);
	CREATE INDEX ON grows USING sherman (v);
	CREATE TABLE parted (k int, v int) PARTITION BY RANGE (k);
	CREATE TABLE part_b PARTITION OF parted FOR VALUES FROM (0) TO (10);
	CREATE TABLE part_s PARTITION OF parted FOR VALUES FROM (10) TO (20);
	CREATE UNIQUE INDEX ON part_s USING sherman (k);
	CREATE UNIQUE INDEX ON part_b USING btree (k);
	VACUUM ANALYZE t, told, grows;
	INSERT INTO grows SELECT generate_series(10001, 14000);
};

# One session's plans and answers, with what the neighbor has seen at the end.
sub answers
{
	my $questions = q{
		SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off; SET client_min_messages = error;
		EXPLAIN (COSTS OFF) SELECT * FROM t WHERE word LIKE 'word 77%';
		EXPLAIN (COSTS OFF) SELECT * FROM t WHERE flag;
		EXPLAIN (COSTS OFF) SELECT * FROM t WHERE (a, b) > (990, 3) ORDER BY a, b;
		SELECT count(*) FROM t WHERE (a, b) > (990, 3);
		EXPLAIN (COSTS OFF) SELECT * FROM t WHERE (b, a) > (9, 990);
		EXPLAIN SELECT * FROM grows WHERE v > 10000;
		EXPLAIN SELECT * FROM told WHERE w IS NULL;
		EXPLAIN SELECT * FROM told WHERE v > 9990;
		INSERT INTO t VALUES (1, 'again') ON CONFLICT (id) DO UPDATE SET word = excluded.word RETURNING id, word;
		INSERT INTO t (id) VALUES (1) ON CONFLICT DO NOTHING;
		INSERT INTO parted VALUES (1, 1), (2, 2), (1, 3) ON CONFLICT (k) DO NOTHING;
		INSERT INTO parted VALUES (3, 1) ON CONFLICT DO NOTHING;
		INSERT INTO parted VALUES (4, 1), (11, 1) ON CONFLICT DO NOTHING;
		INSERT INTO parted VALUES (11, 1), (12, 1);
		WITH one AS (INSERT INTO parted VALUES (5, 1) ON CONFLICT DO NOTHING RETURNING k) INSERT INTO parted SELECT k + 1, k FROM one ON CONFLICT DO NOTHING;
		INSERT INTO parted VALUES (13, 1) ON CONFLICT DO NOTHING;
		SELECT count(*) FROM parted;
		CREATE TABLE marked (k int PRIMARY KEY WITH (sherman));
		SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = 'marked_pkey';
	};
	my ($status, $out, $error) = $node->psql('postgres', "\\set VERBOSITY terse\n$questions", on_error_stop => 0);

	$error =~ s/psql:<stdin>:\d+: //g;
	# Costs depend on when autovacuum and the cache have seen what.
	$out =~ s/cost=\S+ //g;
	return "$out\n$error";
}

my %said;

for my $libraries ('sherman', 'neighbor, sherman', 'sherman, neighbor')
{
	(my $list = $libraries) =~ s/neighbor/$library/;
	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$list'\n");
	$node->start;
	$node->safe_psql('postgres', 'DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE EXTENSION sherman');
	$node->safe_psql('postgres', "SET sherman.constraints = on; $tables");
	$node->safe_psql('postgres', 'ALTER INDEX hidden_b RENAME TO seen_b') if $libraries eq 'sherman';
	$said{$libraries} = answers();
	if ($libraries ne 'sherman')
	{
		$node->safe_psql('postgres', "CREATE FUNCTION neighbor_seen() RETURNS text LANGUAGE C AS '$library'");
		is( $node->safe_psql('postgres',
				q{SET client_min_messages = error; EXPLAIN SELECT * FROM told WHERE v > 5; INSERT INTO parted VALUES (7, 7) ON CONFLICT DO NOTHING; SELECT neighbor_seen()}) =~ s/.*\n//sr,
			'1 1 1 1 1', "$libraries: the neighbor has seen all");
		is($node->safe_psql('postgres', 'WITH i AS MATERIALIZED (SELECT indexrelid::regclass FROM sherman_stat_indexes) SELECT count(*) FROM i WHERE sherman_check(indexrelid, true) <> 0'), '0', "$libraries: all indexes are whole");
	}
	$node->stop;
}

like($said{sherman}, qr/Index Scan using t_word on t.*Index Scan using t_flag on t.*Index Cond: \(a >= 990\)/s, 'alone: LIKE, a boolean and a row comparison by indexes');
if ($node->pg_version < 18)
{
	like($said{sherman}, qr/ON CONFLICT is not supported through partitioned table "parted"/, 'alone: the refusal has its words');
}
else
{
	unlike($said{sherman}, qr/ON CONFLICT is not supported/, 'alone: nothing is refused');
}
unlike($said{sherman}, qr/non-btree speculative/, 'alone: core\'s are not seen');
like($said{sherman}, qr/Index Scan using seen_b/, 'alone: an index that the neighbor would hide');
# What the neighbor is for differs, and nothing else.
for my $libraries ('neighbor, sherman', 'sherman, neighbor')
{
	unlike($said{$libraries}, qr/hidden_b/, "$libraries: what it hides stays hidden");
	like($said{$libraries}, qr/told.*rows=5000/s, "$libraries: its statistics count");
}
is($said{'neighbor, sherman'}, $said{'sherman, neighbor'}, 'in either order the same');
(my $rest = $said{'sherman, neighbor'}) =~ s/.*?(?=id\|word|1\|again)//s;
(my $alone = $said{sherman}) =~ s/.*?(?=id\|word|1\|again)//s;
is($rest, $alone, 'changes and their errors are those without it');

done_testing();


# A clean restart keeps indexes: nothing is rebuilt, nothing is lost, however the server is restarted.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('main');

$node->safe_psql(
	'postgres', q{
	CREATE TABLE words (id int, word text);
	CREATE INDEX words_id ON words USING sherman (id);
	CREATE INDEX words_word ON words USING sherman (word);
	INSERT INTO words SELECT g, md5(g::text) FROM generate_series(1, 20000) g;
	DELETE FROM words WHERE id % 10 = 0;
	VACUUM words;
	ANALYZE words;
});
my $answer = "SELECT id FROM words WHERE word BETWEEN '7' AND '72' ORDER BY word";
my $expected = $node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_bitmapscan = off; $answer");
my $tree = $node->safe_psql('postgres', q{SELECT tree FROM sherman_stat_indexes WHERE indexrelid = 'words_word'::regclass});
my ($memory) = memory_files($node);

isnt($expected, '', 'the query has an answer');

for my $mode (qw(fast smart fast))
{
	my $used = used($node);

	$node->stop($mode);
	$node->start;
	is(state_of($node, 'words_word'), 'ok', "index is good after a $mode restart");
	is($node->safe_psql('postgres', q{SELECT tree FROM sherman_stat_indexes WHERE indexrelid = 'words_word'::regclass}),
		$tree, 'it is the same tree');
	is(used($node), $used, 'it has the same memory');
	is($node->safe_psql('postgres', q{SELECT inserts + extents FROM sherman_stat_indexes WHERE indexrelid = 'words_word'::regclass}),
		'0', 'nothing was inserted into it');
	ok(uses_index($node, 'words_word', $answer), 'the planner uses it');
	is($node->safe_psql('postgres', "SET enable_seqscan = off; $answer"), $expected, 'it answers as before');
	is(check_index($node, 'words_word'), '0', 'it is whole');
	is(check_index($node, 'words_id'), '0', 'so is the other one');
	$node->safe_psql('postgres', q{INSERT INTO words SELECT g, md5(g::text) FROM generate_series(30001, 30100) g});
	$node->safe_psql('postgres', q{DELETE FROM words WHERE id > 30000; VACUUM words});
}

# Two restarts in quick succession: the launcher of the one in between hardly comes to attach.
$node->restart;
$node->restart;
is(state_of($node, 'words_word'), 'ok', 'index is good after two restarts');
is(check_index($node, 'words_word'), '0', 'and whole');

is_deeply([ memory_files($node) ], [$memory], 'one memory segment, the one of the beginning');

# Stop while clients are busy: their transactions end, the epoch is closed behind them.
my $client = $node->background_psql('postgres', on_error_stop => 0);
$client->query('BEGIN; INSERT INTO words VALUES (40000, md5(\'40000\'))');
$node->stop('fast');
$client->{run}->finish;
$node->start;
is(state_of($node, 'words_id'), 'ok', 'index is good after a stop with a client connected');
is(check_index($node, 'words_id'), '0', 'and whole');
$node->stop;

# PostgreSQL may make its children more killable than the postmaster for the kernel that wants memory: the memory node does not
# stay so.
sub oom_score
{
	my $score = slurp_file('/proc/' . shift . '/oom_score_adj');

	chomp $score;
	return $score;
}

SKIP:
{
	skip 'the system has no oom_score_adj', 3 unless -w '/proc/self/oom_score_adj';
	local $ENV{PG_OOM_ADJUST_FILE} = '/proc/self/oom_score_adj';
	local $ENV{PG_OOM_ADJUST_VALUE} = 1000;

	$node->start;
	is(state_of($node, 'words_id'), 'ok', 'the memory node is there');
	is($node->safe_psql('postgres', q{SELECT trim(E'\n' FROM pg_read_file('/proc/self/oom_score_adj'))}),
		'1000', 'a session is the first to be killed');
	cmp_ok(oom_score(node_pid($node)), '<=', oom_score(slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/),
		'the memory node is no more killable than the postmaster');
	$node->stop;
}
done_testing();

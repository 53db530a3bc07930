
# No room below the data directory for the state file: the server then believes less, and never more.  Whatever could not be noted, by
# which process and at what moment, answers are right, and indexes are as good again, at the latest, as behind a crash.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Launcher;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

need_steps();

plan skip_all => 'the system has no /dev/full' unless -c '/dev/full';

# Nothing is flushed but what is asked for.
my $node = new_cluster('main', conf => "synchronous_commit = off\nwal_writer_delay = 10s\nbgwriter_lru_maxpages = 0\nsherman.attach_timeout = 1s\nsherman.operation_timeout = 20s\n");

# What is to become the state file is written to a device that is full.
sub fill
{
	my $file = $node->data_dir . '/pg_dynshmem/sherman.state.new';

	unlink $file;
	symlink('/dev/full', $file) or die "$file: $!";
	return;
}

sub make_room
{
	unlink($node->data_dir . '/pg_dynshmem/sherman.state.new') or die "sherman.state.new: $!";
	return;
}

sub wait_attached
{
	$node->poll_query_until('postgres', q{SELECT state = 'attached' FROM sherman_stat_memory_nodes}) or die 'not attached';
	return;
}

# A server that cannot note what it is about to do does nothing with memory nodes.
sub attaches_when_there_is_room
{
	my ($what) = @_;
	my ($out, $err);

	ok($node->poll_query_until('postgres', q{SELECT state = 'unreachable' AND reason <> '' FROM sherman_stat_memory_nodes}), "$what: the memory node is not attached");
	isnt($node->psql('postgres', "\\set VERBOSITY verbose\nINSERT INTO rows VALUES (-1)", stdout => \$out, stderr => \$err), 0, "$what: inserts are refused");
	like($err, qr/ERROR:  08006: /, "$what: with 08006");
	index_agrees($node, "$what, without the memory node");
	$node->safe_psql('postgres', "INSERT INTO others SELECT g, repeat('x', 200) FROM generate_series(1, 1000) g");
	make_room();
	wait_attached();
	return;
}

# The last epoch's end, and how it is known.
sub is_known_by
{
	my ($expected, $what) = @_;

	wait_attached();
	is($node->safe_psql('postgres', 'SELECT clean, known_by FROM sherman_epochs ORDER BY epoch DESC OFFSET 1 LIMIT 1'), $expected, $what);
	return;
}

# Behind what is no clean end: right at once, and good once it is healed.
sub heals
{
	my ($what) = @_;

	is(state_of($node, 'rows_id'), 'healing', "$what: the index is being healed");
	index_agrees($node, "$what, in doubt");
	$node->safe_psql('postgres', q{INSERT INTO rows SELECT g, 'in the place of others' FROM generate_series(9000, 9300) g});
	index_agrees($node, "$what, with new rows");
	$node->safe_psql('postgres', q{SELECT sherman_heal('rows_id'); DELETE FROM rows WHERE id >= 9000});
	is(state_of($node, 'rows_id'), 'ok', "$what: and then good");
	is(check_index($node, 'rows_id'), '0', "$what: and whole");
	index_agrees($node, $what);
	return;
}

# Rows that the index has, and the table loses.
my $rows = q{INSERT INTO rows SELECT g, 'lost' FROM generate_series(5001, 5300) g};

sub lost
{
	is($node->safe_psql('postgres', q{SET enable_indexscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM rows WHERE word = 'lost'}), '0', 'rows are lost');
	return;
}

$node->safe_psql(
	'postgres', q{
	CREATE TABLE others (id int, word text);
	CREATE TABLE rows (id int, word text);
	INSERT INTO rows SELECT g, md5(g::text) FROM generate_series(1, 1000) g;
	CREATE INDEX rows_id ON rows USING sherman (id);
	ANALYZE rows;
});

#
# When it starts: the epoch cannot begin.
#
$node->stop;
fill();
$node->start;
attaches_when_there_is_room('start');
ok($node->log_contains(qr/WARNING:  could not write file "pg_dynshmem\/sherman\.state\.new": No space left on device/), 'the log says why');
is(state_of($node, 'rows_id'), 'ok', 'then the index is good');
is(check_index($node, 'rows_id'), '0', 'and whole');

#
# In the middle of an attach, when the epoch has begun already.
#
$node->stop;
hold_launcher($node, 'before attach');
fill();
release_launcher($node);
attaches_when_there_is_room('attach');
is(state_of($node, 'rows_id'), 'ok', 'then the index is good');
is(check_index($node, 'rows_id'), '0', 'and whole');

#
# When it ends: the next start does not know that it was a clean end, and finds it in the WAL.
#
$node->safe_psql('postgres', q{INSERT INTO rows SELECT g, 'kept' FROM generate_series(2001, 2100) g});
fill();
$node->stop;
make_room();
$node->start;
is_known_by('f|next start in the WAL', 'a clean end that could not be noted is none, but is found');
heals('end');

#
# When a checkpoint begins, whose WAL a start behind a crash relies on. (As long as it cannot be noted, the launcher tries, and flushes
# WAL each time: rows may be lost or not.)
#
fill();
$node->safe_psql('postgres', "INSERT INTO others VALUES (0); CHECKPOINT; SET synchronous_commit = on; INSERT INTO others VALUES (1)");
lose($node, $rows);
make_room();
$node->start;
is_known_by('f|next start in the WAL', 'a checkpoint that could not be noted is looked for in the WAL');
heals('checkpoint');

#
# When recovery has found the end.
#
lose($node, $rows);
fill();
$node->start;
attaches_when_there_is_room('recovery');
lost();
is_known_by('f|end of recovery', 'this run knows what it has found');
heals('recovery');

# The same, and the next crash takes that away: WAL has gone on meanwhile, beyond what was lost.
lose($node, $rows);
fill();
$node->start;
$node->safe_psql('postgres', "INSERT INTO others SELECT g, repeat('x', 200) FROM generate_series(1, 1000) g; SET synchronous_commit = on; INSERT INTO others VALUES (2)");
$node->stop('immediate');
make_room();
$node->start;
is_known_by('f|next start in the WAL', 'the next run finds it once more, in the WAL');
lost();
heals('two crashes');

$node->restart;
is(state_of($node, 'rows_id'), 'ok', 'the index is good behind a clean end');
is(check_index($node, 'rows_id'), '0', 'and whole');
index_agrees($node, 'the end');

$node->stop;
done_testing();

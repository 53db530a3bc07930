
# A memory node is lost: for a while, then for good. Indexes that lie there are broken when it is gone, and good again when it comes
# back, unless something was skipped. With sherman.auto_rebuild they are rebuilt on the other one.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my @msd = (Msd->new('a'), Msd->new('b'));
my $node = new_cluster('main',
	conf => "restart_after_crash = on\nsherman.attach_timeout = 2s\nsherman.gone_after = -1\nsherman.rebuild_tries = 2\nsherman.memory_nodes = '"
	  . join(', ', map { $_->address } @msd) . "'\n" . Msd::configuration());
my ($stderr, $held);

sub set
{
	my ($setting, $value) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET $setting = '$value'");
	$node->reload;
	return;
}

sub query
{
	return $node->safe_psql('postgres', shift);
}

sub wait_for
{
	my ($sql, $what) = @_;

	ok($node->poll_query_until('postgres', $sql), $what);
	return;
}

sub wait_for_state
{
	my ($index, $state, $what) = @_;

	wait_for("SELECT state = '$state' FROM sherman_stat_indexes WHERE indexrelid = to_regclass('$index')", $what);
	return;
}

# The second memory node comes or goes.
sub leave
{
	$msd[1]->crash;
	wait_for(q{SELECT state IN ('unreachable', 'gone') FROM sherman_stat_memory_nodes WHERE position = 1}, 'a memory node goes');
	return;
}

sub come
{
	$msd[1]->start;
	wait_for(q{SELECT bool_and(state = 'attached') FROM sherman_stat_memory_nodes}, 'it comes back');
	return;
}

sub lies_on
{
	my $index = shift;

	return query("SELECT memory_nodes FROM sherman_stat_indexes WHERE indexrelid = '$index'::regclass");
}

# Runs the command, which makes an index, again until that lies on the second memory node, too: which ones is drawn by lot.
sub make_there
{
	my ($index, $make, $drop) = @_;

	foreach my $attempt (1 .. 200)
	{
		query($make);
		return if lies_on($index) =~ /1/;
		query($drop // "DROP INDEX $index");
	}
	die "$index does not get there";
}

sub table_with_index
{
	my ($table, $columns) = @_;

	query("CREATE TABLE $table AS SELECT g AS id FROM generate_series(1, 3000) g");
	make_there("${table}_id", "CREATE INDEX ${table}_id ON $table USING sherman ($columns)");
	return;
}

# What tells an index and its rebuilds apart.
sub identity
{
	my $index = shift;

	return query("SELECT oid, relfilenode FROM pg_class WHERE oid = '$index'::regclass");
}

# That it is, as a whole, on the first memory node.
sub rebuilt
{
	my ($index, $what) = @_;

	# Behind a crash of the server it may have to be healed.
	wait_for("SELECT state IN ('ok', 'healing') FROM sherman_stat_indexes WHERE indexrelid = to_regclass('$index')", "$what: $index is rebuilt");
	is(lies_on($index), '{0}', "$what: on the memory node that is left");
	is(check_index($node, $index), '0', "$what: it is whole");
	return;
}

sub refused
{
	my ($sql, $code, $what) = @_;

	isnt($node->psql('postgres', "\\set VERBOSITY verbose\n$sql", stderr => \$stderr), 0, $what);
	like($stderr, qr/ERROR:  $code/, "$what: $code");
	return;
}

# A session that holds a lock on a table.
sub holder
{
	my ($table, $mode) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->query("BEGIN; LOCK $table IN $mode MODE");
	return $session;
}

sub release
{
	my $session = shift;

	$session->query('COMMIT');
	$session->quit;
	return;
}

# SQL: the row of an index in the view.
sub row
{
	my ($columns, $index) = @_;

	return "SELECT $columns FROM sherman_stat_progress_rebuild WHERE qualified_name = 'public.$index'";
}

# Kills the process that rebuilds "killed_id", and is held in that phase, when this index is to be dropped.
sub kill_when
{
	my ($phase, $left) = @_;

	wait_for("SELECT count(*) = 1 FROM pg_stat_progress_create_index WHERE phase = '$phase'", "held in '$phase'");
	is(query("SELECT indisvalid FROM pg_index WHERE indexrelid = '$left'::regclass"), 'f', "there is '$left'");
	my $pid = query(row('pid', 'killed_id'));
	my $log = -s $node->logfile;

	kill 'KILL', $pid;
	eval { $held->{run}->finish };
	wait_for(q{SELECT state = 'attached' FROM sherman_stat_memory_nodes WHERE position = 0}, 'the server is back behind a crash');
	$node->wait_for_log(qr/sherman rebuild: dropping "$left"/, $log);
	return;
}

my $invalid = 'SELECT count(*) FROM pg_index WHERE NOT indisvalid';

query('CREATE FUNCTION picky(id int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN id; END $$');
table_with_index('plain', 'id');
query('CREATE TABLE uni AS SELECT g AS id FROM generate_series(1, 3000) g');
make_there('uni_id', 'CREATE UNIQUE INDEX uni_id ON uni USING sherman (id)');
query('CREATE TABLE excluding (id int)');
make_there('excluding_id', 'ALTER TABLE excluding ADD CONSTRAINT excluding_id EXCLUDE USING sherman (id WITH =)',
	'ALTER TABLE excluding DROP CONSTRAINT excluding_id');
my $count = 'SELECT count(*) FROM plain WHERE id = 7';

query('CREATE ROLE stranger');
refused('SET ROLE stranger; SELECT * FROM sherman_stat_progress_rebuild', '42501', 'what errors tell is not for everybody');

# ---- Away for a while: nobody rebuilds, and nothing is broken.

my $before = identity('plain_id');
leave();
is(state_of($node, 'plain_id'), 'unreachable', 'an index there is unreachable');
# Nobody has looked before.
my $log = -s $node->logfile;
set('sherman.auto_rebuild', 'on');
$node->wait_for_log(qr/sherman rebuild: \d of 3 indexes are broken/, $log);
like(slurp_file($node->logfile, $log), qr/sherman rebuild: 0 of 3 indexes are broken/, 'and is not taken for broken');
is(query('SELECT count(*) FROM sherman_stat_progress_rebuild'), '0', 'nothing is to be rebuilt');
is(query($count), '1', 'a query runs without it');
refused('INSERT INTO plain VALUES (-1)', '08006', 'an insert fails');
come();
is(state_of($node, 'plain_id'), 'ok', 'back with its memory: it is good');
is(identity('plain_id'), $before, 'without a rebuild');
is(check_index($node, 'plain_id'), '0', 'and whole');

# ---- Gone, and nobody rebuilds: broken until it is back, unless a change was skipped.

set('sherman.auto_rebuild', 'off');
set('sherman.gone_after', '0');
leave();
wait_for_state('plain_id', 'broken', 'when it is gone its indexes are broken');
is(query(q{SELECT reason FROM sherman_stat_indexes WHERE indexrelid = 'plain_id'::regclass}), 'a memory node that it lies on was away for longer than sherman.gone_after', 'with the reason');
is(query('SELECT state FROM sherman_stat_memory_nodes WHERE position = 1'), 'gone', 'the view of memory nodes says so');
is(query("SET client_min_messages = error; $count"), '1', 'queries run without them');
refused('INSERT INTO uni VALUES (-1)', '55000', 'inserts into unique indexes fail');
$msd[0]->crash;
wait_for_state('plain_id', 'unreachable', 'while no memory node is attached none is gone');
$msd[0]->start;
come();
is(state_of($node, $_), 'ok', "$_ is good again when it is back") foreach qw(plain_id uni_id excluding_id);
is(identity('plain_id'), $before, 'without a rebuild');
leave();
wait_for_state('plain_id', 'broken', 'gone again');
query('SET client_min_messages = error; INSERT INTO plain VALUES (-1)');
pass('inserts into others go on');
come();
is(state_of($node, 'plain_id'), 'broken', 'then it stays broken');
is(state_of($node, 'uni_id'), 'ok', 'and the unique one is good');
is(check_index($node, 'uni_id'), '0', 'and whole');
make_there('plain_id', 'REINDEX INDEX plain_id', 'SELECT 1');

# ---- Gone, and rebuilt on the memory node that is left, while a transaction goes on in the table.

$held = holder('plain', 'ROW EXCLUSIVE');
set('sherman.auto_rebuild', 'on');
leave();
wait_for(row("state = 'running' AND tries = 1 AND tries_left = 1", 'plain_id'), 'the view shows what is being rebuilt');
wait_for(q{SELECT count(*) = 1 FROM pg_stat_progress_create_index p JOIN sherman_stat_progress_rebuild r USING (pid)
	WHERE command = 'REINDEX CONCURRENTLY' AND phase = 'waiting for writers before build' AND index_relid = r.indexrelid}, 'so does progress');
query('SET client_min_messages = error; INSERT INTO plain VALUES (-2)');
is(query("SET client_min_messages = error; $count"), '1', 'queries and inserts go on');
release($held);
rebuilt($_, 'gone') foreach qw(plain_id uni_id);
query('INSERT INTO uni VALUES (-1)');
is(query('SELECT count(*) FROM plain WHERE id < 0'), '2', 'with what was inserted meanwhile');
is(query(row('state, last_error', 'excluding_id')), 'manual|indexes of exclusion constraints cannot be rebuilt concurrently',
	'one is left to the user');
wait_for('SELECT count(*) = 1 FROM sherman_stat_progress_rebuild', 'and that is all');
come();
is(state_of($node, 'excluding_id'), 'ok', 'it is good again when the memory node is back');
wait_for('SELECT count(*) = 0 FROM sherman_stat_progress_rebuild', 'nothing is left to do');
query('SELECT sherman_collect()');
wait_for('SELECT sum(used_bytes) = (SELECT coalesce(sum(total_bytes), 0) FROM sherman_stat_indexes) FROM sherman_stat_memory_nodes',
	'what the old ones had there is freed');

# ---- A rebuild that fails: so many tries, and then it is the user's.

table_with_index('failing', 'picky(id)');
my $picky = q{CREATE OR REPLACE FUNCTION picky(id int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN %s; RETURN id; END $$};
query(sprintf($picky, q{RAISE 'not today'}));
leave();
wait_for(row("state = 'given up' AND tries = 2 AND tries_left = 0 AND last_error = 'not today'", 'failing_id'), 'after two tries an index is given up');
wait_for("SELECT ($invalid) = 0", 'nothing is left of them');
$node->psql('postgres', 'REINDEX INDEX CONCURRENTLY failing_id', stderr => \$stderr);
is(query($invalid), '1', 'what a user leaves behind');
query(sprintf($picky, 'NULL'));
query('REINDEX INDEX failing_id');
wait_for('SELECT count(*) = 0 FROM ' . '(' . row('1', 'failing_id') . ') r', 'REINDEX is the end of it');
is(check_index($node, 'failing_id'), '0', 'and the index is good');
come();

# ---- A user's own REINDEX CONCURRENTLY goes on beside it.

table_with_index('shared', 'id');
make_there('shared_second', 'CREATE INDEX shared_second ON shared USING sherman ((id + 1))');
$held = holder('shared', 'ROW EXCLUSIVE');
my $user = $node->background_psql('postgres', on_error_stop => 0);
$user->query_until(qr/begun/, "\\echo begun\nREINDEX INDEX CONCURRENTLY shared_id;\n\\echo ended\n");
wait_for(q{SELECT count(*) = 1 FROM pg_stat_progress_create_index WHERE phase = 'waiting for writers before build'}, 'a user rebuilds an index');
$log = -s $node->logfile;
leave();
$node->wait_for_log(qr/sherman rebuild: index "public.shared_second" has to wait/, $log);
is(query(row('tries', 'shared_second')), '0', 'the other one has to wait, which is no try');
release($held);
# Whatever the memory node does to it, nobody else touches it.
$user->query_until(qr/ended/, "\n");
rebuilt($_, 'behind the user') foreach qw(shared_id shared_second);
unlike($user->{stderr} // '', qr/could not open relation|does not exist/, 'what the user makes is not dropped');
$user->quit;

# ---- The server dies in the middle: what that leaves is dropped, and the try counts.

come();
table_with_index('killed', 'id');
$held = holder('killed', 'ROW EXCLUSIVE');
leave();
set('sherman.rebuild_tries', '1');
kill_when('waiting for writers before build', 'killed_id_ccnew');
wait_for(row("state = 'given up' AND tries = 1 AND last_error LIKE 'the server ended %'", 'killed_id'), 'the try counts');
wait_for("SELECT ($invalid) = 1", 'nothing is left of it');
# Longer than the pause behind a first try.
sleep 3;
is(query(row('state, tries', 'killed_id')), 'given up|1', 'nobody tries again');
$held = holder('killed', 'ACCESS SHARE');
set('sherman.rebuild_tries', '2');
kill_when('waiting for readers before marking dead', 'killed_id_ccold');
rebuilt('killed_id', 'behind two crashes');
wait_for("SELECT ($invalid) = 1", 'nothing is left but what the user left');
$log = slurp_file($node->logfile);
like($log, qr/index "public.killed_id" is rebuilt concurrently, try 2 of 2/, 'a try that the server did not survive counts');
unlike($log, qr/try 3 of/, 'no index was tried more often');

# ---- It is not in the way of DROP DATABASE, nor of the server's end.

come();
query('CREATE DATABASE dropped');
$node->safe_psql('dropped', q{CREATE EXTENSION sherman; CREATE TABLE slow (id int); INSERT INTO slow VALUES (1);
	CREATE FUNCTION sleepy(id int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN id; END'});
foreach my $attempt (1 .. 200)
{
	$node->safe_psql('dropped', 'DROP INDEX IF EXISTS slow_id; CREATE INDEX slow_id ON slow USING sherman (sleepy(id))');
	last if $node->safe_psql('dropped', 'SELECT memory_nodes FROM sherman_stat_indexes') =~ /1/;
}
$node->safe_psql('dropped', q{CREATE OR REPLACE FUNCTION sleepy(id int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(3600); RETURN id; END'});
leave();
my $running = row("datname = 'dropped' AND state = 'running' AND tries = 1", 'slow_id')
  . " AND EXISTS (SELECT FROM pg_stat_progress_create_index WHERE phase LIKE 'building index%')";
wait_for($running, 'an index is being rebuilt');
$node->restart;
wait_for($running, 'again when the server was restarted, which is no try');
query('DROP DATABASE dropped');
wait_for(q{SELECT count(*) = 0 FROM sherman_stat_progress_rebuild WHERE datname = 'dropped'}, 'its database is dropped');
come();
query('SELECT sherman_collect()');
wait_for('SELECT sum(used_bytes) = (SELECT coalesce(sum(total_bytes), 0) FROM sherman_stat_indexes) FROM sherman_stat_memory_nodes', 'and all memory accounted for');
unlike(slurp_file($node->logfile), qr/PANIC|TRAP/, 'no process failed');

$node->stop;
done_testing();


# Temporary tables of other sessions: the collector and the views read what their indexes name, nobody else gets at them, and their
# memory comes back however they end.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

# The collector comes after a hint, or not while this test lasts.
my $msd = Msd->new('a');
my $node = new_cluster('main',
	conf => "restart_after_crash = on\nsherman.collect_interval = 1h\nsherman.memory_nodes = '" . $msd->address . "'\n");

sub wait_for_node
{
	my $state = shift;

	$node->poll_query_until('postgres', "SELECT bool_and(state = '$state') FROM sherman_stat_memory_nodes") or die "the memory node is not $state";
}

wait_for_node('attached');

sub sql
{
	return $node->safe_psql('postgres', shift);
}

sub session
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);

	$session->set_query_timer_restart;
	$session->query_safe('SET enable_seqscan = off; SET enable_bitmapscan = off');
	return $session;
}

# Runs SQL that must fail in a session that goes on.
sub fails
{
	my ($query, $expected, $what) = @_;
	my ($stdout, $stderr);

	isnt($node->psql('postgres', "\\set VERBOSITY verbose\n$query", stdout => \$stdout, stderr => \$stderr), 0, $what);
	like($stderr, $expected, "$what: the error");
}

# Asks for what is over only when the server says so.
sub wait_for_end
{
	my $pid = shift;

	$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid") or die "process $pid does not end";
}

# Sessions with a temporary table "first", of which the last one has this schema: the place of a session that is gone is another one's, when
# the server is done with it.
sub sessions_until
{
	my $schema = shift;

	return sessions_with(
		sub { my $session = session(); $session->query_safe('CREATE TEMP TABLE first ()'); return $session },
		'SELECT pg_my_temp_schema()::regnamespace', $schema);
}

my $make = q{CREATE TEMP TABLE t (k int, w text);
	INSERT INTO t SELECT g, md5(g::text) FROM generate_series(1, 5000) g;
	CREATE UNIQUE INDEX t_k ON t USING sherman (k);
	CREATE INDEX t_w ON t USING sherman (w)};
my $whole = q{SELECT sherman_check('t_k', true) + sherman_check('t_w', true)};

# The collector, which looks twice, frees nothing; the session's indexes are whole.
sub survives
{
	my ($session, $what) = @_;

	is(sql('SELECT sherman_collect()'), '0', "$what: nothing is freed");
	is($session->query_safe($whole), '0', "$what: the indexes are whole");
}

sql(q{CREATE TABLE base (id int); INSERT INTO base SELECT generate_series(1, 5000); CREATE INDEX base_id ON base USING sherman (id)});
my $base = used($node);

# ---- the collector reads another session's metapages

my $owner = session();
$owner->query_safe($make);
survives($owner, 'built');
$owner->query_safe('REINDEX TABLE t');
sql('SELECT sherman_collect()');
survives($owner, 'rebuilt');
# The tree is made by the first insert, the metapage written in place.
$owner->query_safe(q{TRUNCATE t; INSERT INTO t SELECT g, md5(g::text) FROM generate_series(1, 6000) g});
sql('SELECT sherman_collect()');
survives($owner, 'filled after TRUNCATE');
$owner->query_safe('BEGIN; ALTER TABLE t ALTER w TYPE varchar(40); SAVEPOINT s; DROP INDEX t_w');
is(sql('SELECT sherman_collect()'), '0', 'in the middle of changes nothing is freed');
$owner->query_safe('ROLLBACK TO s; COMMIT');
sql('SELECT sherman_collect()');
survives($owner, 'changed');

# ---- what others see, and do not

my $schema = $owner->query_safe('SELECT pg_my_temp_schema()::regnamespace');
is( sql(q{SELECT indexrelid::regclass, state, entries > 0, total_bytes > 0, total_bytes = sherman_relation_size(indexrelid) FROM sherman_stat_indexes WHERE indexrelid::regclass::text LIKE '%.t\__' ORDER BY 1}),
	"$schema.t_k|ok|t|t|t\n$schema.t_w|ok|t|t|t",
	'the view shows the indexes of another session');
is(sql(q{SELECT count(inserts) FROM sherman_stat_indexes WHERE indexrelid::regclass::text LIKE '%.t\__'}), '2', 'and counters');
ok(wait_until_used($node, sql('SELECT sum(total_bytes) FROM sherman_stat_indexes')), 'what is used is what they own');
fails("SELECT sherman_check('$schema.t_k', $_)", qr/ERROR:  0A000: cannot access temporary tables of other sessions/, "sherman_check by another session ($_)") foreach qw(false true);
fails("SET enable_seqscan = off; SET enable_bitmapscan = $_; SELECT * FROM $schema.t WHERE k = -1", qr/ERROR:  0A000: cannot access temporary tables of other sessions/, "a query by another session (bitmaps $_)") foreach qw(off on);
fails("INSERT INTO $schema.t VALUES (0)", qr/ERROR:  0A000: cannot access temporary tables of other sessions/, 'an insert by another session');
fails("REINDEX INDEX $schema.t_k", qr/ERROR:  0A000: cannot reindex temporary tables of other sessions/, 'REINDEX by another session');
survives($owner, 'after all that');

# ---- a metapage that cannot be read is not taken for one that names nothing

my $file = $node->data_dir . '/' . $owner->query_safe(q{SELECT pg_relation_filepath('t_k')});
like($file, qr/\/t\d+_\d+$/, 'a file of the session');

# Replaces bytes of the metapage's contents; returns those that were there.
sub overwrite
{
	my $bytes = shift;

	open(my $handle, '+<:raw', $file) or die "$file: $!";
	sysseek($handle, 64, 0);
	sysread($handle, my $old, length $bytes);
	sysseek($handle, 64, 0);
	syswrite($handle, $bytes);
	close $handle;
	return $old;
}
my $alive = used($node);
my $before = overwrite("\xa5" x 8);
sql('CREATE INDEX suspect ON base USING sherman (id); DROP INDEX suspect');
is(sql('SELECT sherman_collect()'), '0', 'while a metapage is half written nothing is judged');
is(sql(q{SELECT state, reason FROM sherman_stat_indexes WHERE indexrelid::regclass::text LIKE '%.t_k'}),
	'broken|the index was written by another version, or its metapage is damaged', 'the view says what it sees');
overwrite($before);
sql('SELECT sherman_collect()');
ok(wait_until_used($node, $alive), 'then what is dead is freed');
survives($owner, 'untorn');

# ---- ON COMMIT DELETE ROWS: each end of a transaction leaves a tree

$owner->query_safe('CREATE TEMP TABLE d (k int PRIMARY KEY, EXCLUDE USING sherman (k WITH =)) ON COMMIT DELETE ROWS; CREATE INDEX d_k ON d USING sherman (k DESC)');
my $kept = used($node);
for my $round (1 .. 50)
{
	$owner->query_safe("INSERT INTO d SELECT generate_series($round, $round + 100)");
}
is($owner->query_safe('SELECT count(*) FROM d'), '0', 'the rows of 50 transactions are gone');
ok(wait_until_used($node, $kept), 'and so is the memory, without being asked for');
$owner->query_safe("BEGIN; INSERT INTO d SELECT generate_series(1, 100)");
is(sql('SELECT sherman_collect()'), '0', 'a transaction keeps what it has');
is($owner->query_safe(q{SELECT count(*), sherman_check('d_k', true), sherman_check('d_k_excl', true) FROM d WHERE k > 0}), '100|0|0', 'whole');
$owner->query_safe('ROLLBACK');
is(sql('SELECT sherman_collect()'), '0', 'rolled back, the metapages name the trees still');
is($owner->query_safe(q{SELECT count(*), sherman_check('d_k', true) FROM d WHERE k > 0}), '0|0', 'without rows');
ok(wait_until_used($node, $kept), 'the next commit gives them up');

# It needs no memory node: an error would leave the other indexes with entries of rows that are gone.
$owner->query_safe('BEGIN; INSERT INTO d SELECT generate_series(1, 100)');
$msd->stop;
wait_for_node('unreachable');
$owner->query_safe('COMMIT');
is($owner->query_safe('SELECT count(*) FROM d WHERE k > 0'), '0', 'a commit while the memory node is away empties all indexes');
$owner->query('INSERT INTO d VALUES (1)');
like($owner->{stderr}, qr/ERROR:  .* memory node /, 'an insert is refused');
$owner->{stderr} = '';
$msd->start;
wait_for_node('attached');
$owner->query_safe('BEGIN; INSERT INTO d VALUES (1), (7)');
is($owner->query_safe('SELECT k FROM d WHERE k > 0 ORDER BY k DESC'), "7\n1", 'until it is back');
$owner->query_safe('COMMIT');
ok(wait_until_used($node, $kept), 'with nothing left behind');

# A commit that fails behind the point where the rows are deleted: of two that read what the other writes.
my $rival = session();
$_->query_safe('BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT sum(id) FROM base') foreach $owner, $rival;
$owner->query_safe('INSERT INTO d SELECT generate_series(1, 100); INSERT INTO base VALUES (0)');
$rival->query_safe('INSERT INTO base VALUES (-1); COMMIT');
$owner->query('COMMIT');
like($owner->{stderr}, qr/could not serialize access/, 'a transaction fails at its end');
$owner->{stderr} = '';
is($owner->query_safe(q{SELECT count(*), sherman_check('d_k', true), sherman_check('d_k_excl', true) FROM d WHERE k > 0}), '0|0|0', 'the indexes are empty');
$owner->query_safe('BEGIN; INSERT INTO d VALUES (1), (7)');
is($owner->query_safe('SELECT k FROM d WHERE k > 0 ORDER BY k'), "1\n7", 'and work');
$owner->query_safe('COMMIT');
$rival->quit;
ok(wait_until_used($node, $kept), 'nothing is left behind');

# ---- the ends of sessions

# The end of a session that first used its memory node (and so leaves it last), and of one that first made a temporary table.
for my $first ('SELECT count(*) FROM base WHERE id > 0', 'CREATE TEMP TABLE early (k int)')
{
	my $other = session();
	$other->query_safe($first);
	$other->query_safe($make);
	cmp_ok(used($node), '>', $kept, 'a session with indexes');
	$other->quit;
	ok(wait_until_used($node, $kept), "they are freed at its end ($first)");
}
my $killed = session();
my $pid = $killed->query_safe('SELECT pg_backend_pid()');
$killed->query_safe("$make; BEGIN; INSERT INTO t VALUES (0); DECLARE c CURSOR FOR SELECT k FROM t ORDER BY k; FETCH 10 FROM c");
sql("SELECT pg_terminate_backend($pid)");
wait_for_end($pid);
ok(wait_until_used($node, $kept), 'and at the end of one that is terminated');
eval { $killed->{run}->finish };
my $discarder = session();
$discarder->query_safe($make);
$discarder->query_safe('DISCARD ALL');
ok(wait_until_used($node, $kept), 'and by DISCARD ALL');
$discarder->quit;
$owner->quit;
ok(wait_until_used($node, $base), 'the memory is what it was at the beginning');

# ---- a crash leaves rows in the catalogs: with the files, as the setting says, or without; autovacuum or the next session drops them

for my $remove (qw(on off))
{
	sql("ALTER SYSTEM SET remove_temp_files_after_crash = $remove");
	$node->reload;
	# Not the first of them: after the crash a process of the server's may have that place.
	my @crowd = map { session() } 1 .. 8;
	$owner = $crowd[-1];
	$pid = $owner->query_safe('SELECT pg_backend_pid()');
	$owner->query_safe($make);
	$schema = $owner->query_safe('SELECT pg_my_temp_schema()::regnamespace');
	my $log = -s $node->logfile;
	kill 'KILL', $pid;
	$node->wait_for_log(qr/database system is ready to accept connections/, $log);
	wait_for_node('attached');
	foreach my $lost (@crowd) { eval { $lost->{run}->finish } }
	sql('REINDEX INDEX base_id');
	is(sql(q{SELECT state, reason FROM sherman_stat_indexes WHERE indexrelid::regclass::text LIKE '%t\__' ORDER BY 1}),
		join("\n", ('broken|the session of its temporary table has ended') x 2),
		"crash (files removed: $remove): the rows are left, and the view says of what");
	$base = sql(q{SELECT total_bytes FROM sherman_stat_indexes WHERE indexrelid = 'base_id'::regclass});
	ok(wait_until_used($node, $base), 'their memory is freed');
	if ($remove eq 'off')
	{
		sql("ALTER SYSTEM SET autovacuum_naptime = '1s'");
		sql('ALTER SYSTEM SET autovacuum = on');
		$node->reload;
		ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM sherman_stat_indexes}), 'autovacuum drops them');
		is(sql('SELECT count(*) FROM pg_class WHERE relpersistence = \'t\''), '0', 'and their tables');
	}
	my @sessions = sessions_until($schema);
	$owner = $sessions[-1];
	$owner->query_safe("DROP TABLE first; $make");
	is($owner->query_safe($whole), '0', 'the next session in that place makes its own');
	survives($owner, 'in the same place');
	is(sql(q{SELECT count(*) FROM sherman_stat_indexes WHERE indexrelid::regclass::text LIKE '%t\__'}), '2', 'and nothing is left of the old ones');
	$_->quit foreach @sessions;
	ok(wait_until_used($node, $base), 'its memory comes back');
	$log = substr(slurp_file($node->logfile), $log);
	unlike($log, qr/(ERROR|WARNING): .*(t\d_\d|temporary|could not)/, 'nothing was logged of it');
	unlike($log, qr/PANIC|TRAP/, 'no process failed');
}

$node->stop;
done_testing();


# Beside another extension that leans on the same inside of PostgreSQL (t/bystander.c), loaded before sherman and behind it: latches,
# flags of processes, callbacks at a process's end and before a commit, commands (doc/internals/fragile.md).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;
use Time::HiRes qw(usleep);

my $library = "$PostgreSQL::Test::Utils::tmp_check/bystander.so";
# Across the network: what it does not answer is waited for.
my $msd = Msd->new('a', size => 128, transport => 'tls');
my $node = new_cluster('bystander', start => 0, allows_streaming => 1, extra => [ '--data-checksums' ],
	conf => "sherman.memory_nodes = '" . $msd->address . "'\n" . Msd::configuration()
	  . "sherman.operation_timeout = 120s\nsherman.connection_workers = 1\nbgwriter_lru_maxpages = 0\nwal_keep_size = 128MB\ndeadlock_timeout = 100ms\n");

system_or_bail($ENV{CC} // 'cc', '-O1', '-fPIC', '-shared', '-w', '-I' . $node->config_data('--includedir-server'), "$FindBin::RealBin/bystander.c", '-o', $library);

sub sql { return $node->safe_psql('postgres', $_[0]); }

sub wait_for
{
	my ($query, $what) = @_;

	$node->poll_query_until('postgres', $query) or die "$what: " . situation($node);
	return;
}

# Waits until a file of the data directory is there.
sub wait_for_file
{
	my ($name) = @_;
	my $path = $node->data_dir . "/$name";

	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return if -e $path;
		usleep(100_000);
	}
	die "no $name";
}

sub pid_of { return $_[0]->query_safe('SELECT pg_backend_pid()'); }

# Has a session run a statement that ends later.
sub begin
{
	my ($session, $statement) = @_;

	$session->query_until(qr/started/, "\\echo started\n$statement;\n");
	return;
}

# A session's insert that waits for the memory node, which does not answer. Sessions look for that without the memory node.
sub stuck_insert
{
	my ($session, $rows) = @_;
	my $pid = pid_of($session);

	kill 'STOP', $msd->{pid};
	begin($session, "INSERT INTO t SELECT generate_series($rows)");
	wait_for("SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $pid AND state = 'active'", 'no wait');
	return $pid;
}

# ---- Latches: who waits for the memory node is woken by others again and again; and whoever has the place of one that has gone is woken
# by what that had waited for.
sub latches
{
	my ($what) = @_;
	my $count = sql('SELECT count(*) FROM t');
	my $waits = $node->background_psql('postgres');
	my $pid = stuck_insert($waits, '10001, 10100');

	sql("SELECT bystander_wake($pid, 200)");
	is(sql("SELECT wait_event_type FROM pg_stat_activity WHERE pid = $pid"), 'Extension', "$what: wakened, a session waits on for the memory node");
	kill 'CONT', $msd->{pid};
	is($waits->query_safe('SELECT count(*) FROM t'), $count + 100, "$what: and ends well");

	my $place = $waits->query_safe('SELECT bystander_place()');
	my $offset = -s $node->logfile;
	$pid = stuck_insert($waits, '10101, 10200');
	# Its end waits for the end of what is in doubt.
	sql("SELECT pg_terminate_backend($pid)");
	kill 'CONT', $msd->{pid};
	$node->wait_for_log(qr/FATAL:  terminating connection due to administrator command/, $offset);
	eval { $waits->quit };
	wait_for("SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid", 'it stays');
	my @others = sessions_with(sub { $node->background_psql('postgres') }, 'SELECT bystander_place()', $place);
	my $heir = $others[-1];
	pass("$what: its place is another session's");
	my $file = $node->data_dir . "/bystander.go";
	my $heirs_pid = pid_of($heir);
	begin($heir, "SELECT 'woken', bystander_wait('bystander.go')");
	wait_for_file("bystander.waits.$heirs_pid");
	sql("SELECT bystander_wake($heirs_pid, 20)");
	sql('INSERT INTO t SELECT generate_series(20001, 20100)');
	is(sql("SELECT state FROM pg_stat_activity WHERE pid = $heirs_pid"), 'active', "$what: who waits by its latch for something else waits on");
	append_to_file($file, '');
	like($heir->query_safe('SELECT 1'), qr/woken\|\d+\n1/, "$what: until that is there");
	unlink $file;
	is($heir->query_safe('INSERT INTO t VALUES (-1) RETURNING a'), '-1', "$what: and changes the index");
	$_->quit foreach @others;
	is(check_index($node, 't_a'), '0', "$what: which is whole");
	return;
}

# ---- The healer has autovacuum's flag and nothing else of it: it is told apart, it is nobody's worker that autovacuum counts, and neither
# a build nor a lock waits for it.
sub healer
{
	my ($what) = @_;

	sql(q{CREATE TABLE waiting (k int); INSERT INTO waiting SELECT generate_series(10, 10000, 10); CREATE TABLE other AS TABLE waiting;
		CREATE INDEX waiting_k ON waiting USING sherman (waits(k)); CHECKPOINT; INSERT INTO waiting SELECT generate_series(15, 10005, 10)});
	$node->stop('immediate');
	start_again($node);
	is(state_of($node, 'waiting_k'), 'healing', "$what: an index is in doubt");
	sql('ALTER SYSTEM SET sherman.autoheal = on');
	$node->reload;
	my $at = q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'sherman healer' AND wait_event = 'PgSleep'};
	wait_for("SELECT count(*) = 1 FROM ($at) q", 'no healer');
	my $pid = sql($at);
	my $offset = -s $node->logfile;
	is(sql('SELECT bystander_flagged()'), "{$pid}", "$what: the healer has autovacuum's flag");
	is(sql(q{SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'autovacuum%'}), '0', "$what: and is shown as what it is");
	is(sql('SELECT count(*) FROM pg_stat_progress_vacuum'), '0', "$what: it is no VACUUM");
	sql(q{SET statement_timeout = '60s'; CREATE INDEX CONCURRENTLY other_k ON other (k)});
	is(sql("SELECT count(*) FROM ($at) q WHERE pid = $pid"), '1', "$what: a build in a transaction of its own does not wait for it, and leaves it alone");
	sql(q{SET statement_timeout = '60s'; BEGIN; LOCK TABLE waiting; COMMIT});
	$node->wait_for_log(qr/sending cancel to blocking autovacuum PID $pid/, $offset);
	sql(q{ALTER SYSTEM RESET sherman.autoheal});
	$node->reload;
	sql('DROP TABLE waiting, other');
	return;
}

# ---- Rebuilds are no commands that others follow.
sub rebuild
{
	my ($what) = @_;

	sql(q{CREATE TABLE broken (k int); INSERT INTO broken SELECT generate_series(1, 1000); CREATE INDEX broken_k ON broken USING sherman (k)});
	$msd->crash;
	wait_for(q{SELECT state IN ('unreachable', 'gone') FROM sherman_stat_memory_nodes}, 'it is there');
	sql(q{SET sherman.on_unavailable = break; SET client_min_messages = error; INSERT INTO broken VALUES (-1)});
	$msd->start;
	wait_for(q{SELECT state = 'attached' FROM sherman_stat_memory_nodes}, 'it is not there');
	is(state_of($node, 'broken_k'), 'broken', "$what: an index is broken");
	my $offset = -s $node->logfile;
	sql('ALTER SYSTEM SET sherman.auto_rebuild = on');
	$node->reload;
	wait_for(q{SELECT state = 'ok' FROM sherman_stat_indexes WHERE indexrelid = to_regclass('broken_k')}, 'no rebuild');
	my $log = slurp_file($node->logfile, $offset);
	unlike($log, qr/bystander: REINDEX/, "$what: its rebuild is nobody else's");
	is(sql(q{SELECT count(*) FROM pg_index WHERE NOT indisvalid}), '0', "$what: and leaves nothing");
	is(check_index($node, 'broken_k'), '0', "$what: it is whole");
	$offset = -s $node->logfile;
	sql('REINDEX INDEX broken_k');
	like(slurp_file($node->logfile, $offset), qr/bystander: REINDEX/, "$what: a user's is seen");
	sql('ALTER SYSTEM RESET sherman.auto_rebuild');
	sql('DROP TABLE broken');
	$node->reload;
	return;
}

# ---- Rows that the other extension adds in its own callback before a commit, which may come behind ours.
sub rows_at_commit
{
	my ($what) = @_;

	sql('CREATE TABLE late (k int); CREATE INDEX late_k ON late USING sherman (k)');
	sql(q{INSERT INTO late SELECT generate_series(51, 100); SELECT bystander_at_commit('late')});
	is(sql('SELECT count(*) FROM late'), '100', "$what: rows are added before a commit");
	is(check_index($node, 'late_k'), '0', "$what: and have their entries");
	sql('DROP TABLE late');
	return;
}

# ---- The postmaster is gone: a process in the midst of a wait for the memory node ends, without anybody's callbacks; others end as core
# has it.
sub postmaster_gone
{
	my ($what) = @_;
	my ($waits, $idles) = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 2;
	my $idle_pid = pid_of($idles);

	begin($idles, "SELECT bystander_wait('bystander.never')");
	wait_for_file("bystander.waits.$idle_pid");
	my $pid = stuck_insert($waits, '30001, 30100');
	kill 'KILL', (slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/);
	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		last unless kill(0, $pid) || kill(0, $idle_pid);
		usleep(100_000);
	}
	ok(!kill(0, $pid), "$what: who waits for the memory node ends with the postmaster");
	ok(!-e $node->data_dir . "/bystander.end.$pid", "$what: without a callback");
	wait_for_file("bystander.end.$idle_pid");
	pass("$what: who waits for something else ends as ever");
	kill 'CONT', $msd->{pid};
	$_->{run}->kill_kill foreach $waits, $idles;
	start_again($node);
	wait_for(q{SELECT state = 'attached' FROM sherman_stat_memory_nodes}, 'not attached');
	like(state_of($node, 't_a'), qr/^(healing|ok)$/, "$what: the next server has the index");
	is(sql('SET enable_seqscan = off; SELECT count(*) FROM t WHERE a > 30000'), '0', "$what: with the right rows");
	return;
}

# ---- The page of history: whole for what looks at checksums, and replayed where nobody has the library.
sub page_of_history
{
	my ($what) = @_;
	my $page = $node->data_dir . '/global/9731';
	my $standby = PostgreSQL::Test::Cluster->new('standby_' . ($what =~ /^before/ ? 'a' : 'b'));
	my $backup = $standby->name;

	$node->command_ok([ 'pg_basebackup', '-D', $node->backup_dir . "/$backup", '-h', $node->host, '-p', $node->port, '-c', 'fast' ], "$what: a base backup");
	command_ok([ 'pg_verifybackup', $node->backup_dir . "/$backup" ], "$what: which has what its manifest says");
	ok(-s $node->backup_dir . "/$backup/global/9731", "$what: with the page");
	$standby->init_from_backup($node, $backup, has_streaming => 1);
	$standby->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
	$standby->start;
	# Each attach writes it, and what is there at the end is sent at the end.
	my $old = slurp_file($page);
	$node->restart;
	wait_for(q{SELECT state = 'attached' FROM sherman_stat_memory_nodes}, 'not attached');
	sql('INSERT INTO t VALUES (-2); DELETE FROM t WHERE a = -2; CHECKPOINT');
	$node->wait_for_catchup($standby);
	$node->stop;
	$standby->stop;
	ok(slurp_file($page) ne $old, "$what: it is written anew");
	ok(slurp_file($standby->data_dir . '/global/9731') eq slurp_file($page), "$what: and a standby without the library has replayed it");
	command_ok([ 'pg_checksums', '--check', '-D', $_->data_dir ], "$what: all checksums are right on " . $_->name) foreach $node, $standby;
	$node->start;
	wait_for(q{SELECT state = 'attached' FROM sherman_stat_memory_nodes}, 'not attached');
	return;
}

for my $libraries ("$library, sherman", "sherman, $library")
{
	my $what = $libraries =~ /^sherman/ ? 'behind sherman' : 'before sherman';

	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$libraries'\n");
	$node->start;
	$node->safe_psql('postgres', 'DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE EXTENSION sherman');
	sql("CREATE FUNCTION bystander_$_ LANGUAGE C STRICT AS '$library'")
	  foreach 'flagged() RETURNS int[]', 'place() RETURNS int', 'wake(int, int) RETURNS bool', 'wait(text) RETURNS int', 'at_commit(regclass) RETURNS void';
	# Queries of the healer have no text: only there the function waits.
	sql(q{CREATE FUNCTION waits(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
		BEGIN IF current_query() IS NULL AND k = 5000 THEN PERFORM pg_sleep(600); END IF; RETURN k; END $$;
		CREATE TABLE t (a int); INSERT INTO t SELECT generate_series(1, 1000); CREATE INDEX t_a ON t USING sherman (a)});
	latches($what);
	healer($what);
	rebuild($what);
	rows_at_commit($what);
	page_of_history($what);
	postmaster_gone($what);
	$node->stop;
}
unlike(slurp_file($node->logfile), qr/PANIC|TRAP/, 'no process failed');

done_testing();


# Where the WAL of an epoch ends: known by the shutdown checkpoint, by recovery, by the checkpoint that recovery found nothing
# behind, by the WAL itself where others ran the server in between, or not at all.  The first end counts (N1, N2, N3).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

# Nothing is flushed but what is asked for.
my $node = new_cluster('main', conf => "synchronous_commit = off\nwal_writer_delay = 10s\nbgwriter_lru_maxpages = 0\nmax_wal_size = 64MB\nmin_wal_size = 32MB\n");

# The epoch before the one in use, as "clean|wal_end|known_by"; waits until there is one in use.
sub last_epoch
{
	$node->poll_query_until('postgres', q{SELECT state = 'attached' FROM sherman_stat_memory_nodes}) or die 'not attached';
	return $node->safe_psql('postgres', 'SELECT clean, wal_end, known_by FROM sherman_epochs ORDER BY epoch DESC OFFSET 1 LIMIT 1');
}

sub newest
{
	return $node->safe_psql('postgres', 'SELECT epoch, clean IS NULL, wal_end IS NULL, known_by IS NULL FROM sherman_epochs ORDER BY epoch DESC LIMIT 1');
}

# Whether the first LSN is before the second.
sub before
{
	return $node->safe_psql('postgres', "SELECT '$_[0]'::pg_lsn < '$_[1]'::pg_lsn") eq 't';
}

# Inserts rows that are lost with the WAL that nobody has flushed, and ends unclean, perhaps behind a checkpoint that the launcher
# has not seen yet.  Returns where their WAL ended.
sub lose_rows
{
	my $checkpoint = shift // 'CHECKPOINT';

	return lose($node, "$checkpoint; INSERT INTO rows SELECT generate_series(1, 100); SELECT pg_current_wal_insert_lsn()");
}

$node->safe_psql('postgres', 'CREATE TABLE rows (id int); CREATE INDEX rows_id ON rows USING sherman (id); CREATE TABLE others (id int, word text)');
is(newest(), '1|t|t|t', 'the first epoch is in use');

$node->restart;
like(last_epoch(), qr/^t\|[0-9A-F]+\/[0-9A-F]+\|shutdown checkpoint$/, 'a clean end is known by its checkpoint');
is(newest(), '2|t|t|t', 'the next epoch is in use');

# A crash: what is lost lies behind the end.
my $lost = lose_rows('SET synchronous_commit = on; INSERT INTO others VALUES (0); SET synchronous_commit = off');
$node->start;
my ($clean, $end, $known_by) = split(/\|/, last_epoch());
is($clean, 'f', 'a crash is no clean end');
is($known_by, 'end of recovery', 'its end is known by recovery');
ok(before($end, $lost), 'rows lie behind it');
is($node->safe_psql('postgres', 'SELECT count(*) FROM rows'), '0', 'which are lost');
ok($node->log_contains(qr/LOG:  the WAL of epoch 2 of sherman indexes ends at \Q$end\E/), 'the log tells it');

# Right behind a start there is nothing to recover.
$node->restart;
$node->safe_psql('postgres', 'INSERT INTO rows SELECT generate_series(1, 100)');
$lost = $node->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
my $there = $node->safe_psql('postgres', 'SELECT count(*) FROM rows');
$node->stop('immediate');
$node->start;
($clean, $end) = split(/\|/, last_epoch());
is($clean, 'f', 'a crash that nothing is to be recovered of is no clean end');
ok(before($end, $lost) || $node->safe_psql('postgres', 'SELECT count(*) FROM rows') eq $there, 'what it lost, if anything, lies behind the end');

# Two crashes, the second one without any memory node in between: the first end counts, though the WAL has gone on beyond what
# was lost.
$lost = lose_rows();
my $epochs = 0;
foreach my $way ('without a memory node', 'without a launcher')
{
	my $setting = $way eq 'without a launcher' ? 'max_worker_processes = 0' : 'sherman.embedded_memory = 0';

	$node->append_conf('postgresql.conf', "$setting\n");
	$node->start;
	$node->safe_psql('postgres', "INSERT INTO others SELECT g, repeat('x', 200) FROM generate_series(1, 5000) g; CHECKPOINT; INSERT INTO others VALUES (0)");
	ok(before($lost, $node->safe_psql('postgres', 'SELECT pg_current_wal_flush_lsn()')), "$way the WAL goes on");
	$node->stop('immediate');
	$node->adjust_conf('postgresql.conf', (split(/ /, $setting))[0], $way eq 'without a launcher' ? '8' : '256MB');
	$node->start if $way eq 'without a launcher';
}
($clean, $end, $known_by) = split(/\|/, last_epoch());
is($clean, 'f', 'two crashes are no clean end');
ok(before($end, $lost), 'the first of three ends counts');

# The same, and then a run that ended well: the index's WAL ended before.
$lost = lose_rows();
$node->append_conf('postgresql.conf', "max_worker_processes = 0\n");
$node->start;
$node->safe_psql('postgres', "INSERT INTO others SELECT g, repeat('x', 200) FROM generate_series(1, 5000) g");
$node->stop;
$node->adjust_conf('postgresql.conf', 'max_worker_processes', '8');
$node->start;
($clean, $end, $known_by) = split(/\|/, last_epoch());
is($clean, 'f', 'a clean end of a run without memory nodes is none of the epoch');
ok(before($end, $lost), 'the end of the crash before it counts');

# Somebody runs the server without us: his recovery found the end, and the WAL shows it.
$lost = lose_rows();
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$node->start;
$node->safe_psql('postgres', "INSERT INTO others SELECT g, repeat('x', 200) FROM generate_series(1, 5000) g");
$node->stop;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'sherman'\n");
$node->start;
($clean, $end, $known_by) = split(/\|/, last_epoch());
is("$clean $known_by", 'f next start in the WAL', 'an end that nobody of us saw is found in the WAL');
ok(before($end, $lost), 'it is the first one');

# The same, and the WAL is gone.
$lost = lose_rows();
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$node->start;
$node->safe_psql('postgres', "INSERT INTO others SELECT g, repeat('x', 200) FROM generate_series(1, 5000) g; SELECT pg_switch_wal(); CHECKPOINT") for (1 .. 6);
$node->stop;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'sherman'\n");
$node->start;
is(last_epoch(), 'f||not known', 'without the WAL nothing is known');
is(state_of($node, 'rows_id'), 'healing', 'and all that was changed is in doubt');
is(check_index($node, 'rows_id'), '0', 'the index is whole');

# Removals that were noted where the last record ends, a checkpoint's, are proven if recovery finds nothing behind.
$node->safe_psql('postgres', q{DELETE FROM rows; VACUUM rows; SELECT sherman_heal('rows_id')});
lose($node, 'INSERT INTO rows SELECT generate_series(1, 100)');
$node->start;
is(state_of($node, 'rows_id'), 'healing', 'rows were lost once more');
is($node->safe_psql('postgres', q{SELECT sherman_heal('rows_id')}), '0', 'their entries are removed');
$node->stop('immediate');
$node->start;
isnt(state_of($node, 'rows_id'), 'broken', 'a crash right behind that costs nothing');
is(check_index($node, 'rows_id'), '0', 'the index is whole');

# Older WAL is gone as soon as a checkpoint ends: that it was ours is known when it begins.
sub fill_wal
{
	$node->safe_psql('postgres', "INSERT INTO others SELECT g, repeat('x', 200) FROM generate_series(1, 20000) g; SELECT pg_switch_wal()") for (1 .. 4);
	return;
}

$node->safe_psql('postgres', 'VACUUM others; CHECKPOINT');
fill_wal();
$lost = lose_rows();
$node->start;
($clean, $end, $known_by) = split(/\|/, last_epoch());
like("$clean $known_by", qr/^f (end of recovery|last checkpoint, no recovery)$/, 'a crash behind the command CHECKPOINT, whose older WAL is gone');
isnt(state_of($node, 'rows_id'), 'broken', 'costs nothing');

# One that takes its time: it is seen to begin, and not to end.
$node->append_conf('postgresql.conf', "wal_level = replica\nmax_wal_size = 1GB\n");
$node->restart;
fill_wal();
my $offset = -s $node->logfile;
my $out = '';
my $backup = IPC::Run::start([ 'psql', '-XAtc', "SELECT 'begun' FROM pg_backup_start('slow')", '-d', $node->connstr('postgres') ], '>', \$out, '2>&1');
$node->wait_for_log(qr/checkpoint starting: force wait/, $offset);
$node->safe_psql('postgres', 'INSERT INTO others VALUES (0)');
$node->wait_for_log(qr/sherman: a checkpoint has begun at/, $offset);
my $launcher = $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'sherman launcher'});
kill 'STOP', $launcher;
unlike(slurp_file($node->logfile, $offset), qr/checkpoint complete/, 'it goes on');
$node->append_conf('postgresql.conf', "checkpoint_completion_target = 0\n");
$node->reload;
IPC::Run::finish($backup);
like($out, qr/^begun$/, 'it has ended, and the launcher has not seen it');
$node->safe_psql('postgres', 'INSERT INTO rows SELECT generate_series(1, 100)');
kill 'KILL', $launcher;
$node->stop('immediate', fail_ok => 1);
$node->start;
($clean, $end, $known_by) = split(/\|/, last_epoch());
is("$clean $known_by", 'f end of recovery', 'a crash behind a checkpoint that was only seen to begin');
isnt(state_of($node, 'rows_id'), 'broken', 'costs nothing');
is(check_index($node, 'rows_id'), '0', 'the index is whole');

# A crash of a run that used no memory node, behind a clean end: that end still holds.
$node->safe_psql('postgres', q{SELECT sherman_heal('rows_id')});
foreach my $checkpoint ('', '; CHECKPOINT; INSERT INTO others VALUES (0)')
{
	$node->stop;
	$node->append_conf('postgresql.conf', "sherman.embedded_memory = 0\n");
	my $begin = -s $node->logfile;
	$node->start;
	$node->safe_psql('postgres', "INSERT INTO others VALUES (0)$checkpoint");
	# Where the launcher is slow to start nobody waits for it, and nothing would be known.
	$node->wait_for_log(qr/sherman: a checkpoint has begun at/, $begin) if $checkpoint;
	$node->stop('immediate');
	$node->adjust_conf('postgresql.conf', 'sherman.embedded_memory', '256MB');
	$node->start;
	like(last_epoch(), qr/^t\|.*\|shutdown checkpoint$/, 'a crash of a run without a memory node is none of the epoch');
	is(state_of($node, 'rows_id'), 'ok', 'and all indexes are good');
}
# Of a run without us nothing is known.
$node->stop;
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$node->start;
$node->safe_psql('postgres', 'INSERT INTO others VALUES (0); CHECKPOINT');
$node->stop('immediate');
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'sherman'\n");
$node->start;
is(state_of($node, 'rows_id'), 'broken', 'a crash of a run without us is not believed');
$node->safe_psql('postgres', 'REINDEX INDEX rows_id');

# pg_resetwal takes the WAL away, and with it the metapage of what was changed in the epoch.
$node->restart;
lose_rows();
command_ok([ 'pg_resetwal', '-f', '-D', $node->data_dir ], 'pg_resetwal behind a crash');
$node->start;
is(last_epoch(), 'f||not known', 'nothing is known of the WAL');
is(state_of($node, 'rows_id'), 'broken', 'what was changed is broken');
$node->safe_psql('postgres', 'REINDEX INDEX rows_id');
$node->stop;
command_ok([ 'pg_resetwal', '-D', $node->data_dir ], 'pg_resetwal behind a clean end');
$node->start;
is(state_of($node, 'rows_id'), 'broken', 'nothing is believed behind an end that we did not see');

$node->stop;
done_testing();

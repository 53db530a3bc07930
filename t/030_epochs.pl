
# Where the WAL of an epoch ends: known by the shutdown checkpoint, by recovery, by the checkpoint that recovery found nothing
# behind, by the WAL itself where others ran the server in between, or not at all.  The first end counts (N1, N2, N3).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

# Nothing is flushed but what is asked for.
my $node = new_cluster('main', conf => "synchronous_commit = off\nwal_writer_delay = 10s\nmax_wal_size = 64MB\nmin_wal_size = 32MB\n");

# The epoch before the one in use, as "clean|wal_end|known_by"; waits until there is one in use.
sub last_epoch
{
	$node->poll_query_until('postgres', q{SELECT state = 'attached' FROM sherman_memory_nodes}) or die 'not attached';
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
	my $end = $node->safe_psql('postgres', "$checkpoint; INSERT INTO rows SELECT generate_series(1, 100); SELECT pg_current_wal_insert_lsn()");

	$node->stop('immediate');
	return $end;
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
ok(before($end, $lost) || $node->safe_psql('postgres', 'SELECT count(*) FROM rows') eq '100', 'lost rows lie behind it');
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
ok(before($end, $lost) || $node->safe_psql('postgres', 'SELECT count(*) FROM rows') eq $there, 'what it lost lies behind the end');

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

$node->stop;
done_testing();

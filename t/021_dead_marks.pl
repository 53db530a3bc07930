
# Dead marks whose evidence a crash takes away hide no row: the rows are alive again, and the marks are void.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_cluster('main', conf => "synchronous_commit = off\nrestart_after_crash = off\n");
my $count = 'SELECT count(filler) FROM marked WHERE k BETWEEN 1 AND 500';

$node->safe_psql('postgres', q{
	CREATE TABLE marked (k int, filler text);
	INSERT INTO marked SELECT i, 'x' FROM generate_series(1, 500) i;
	CREATE INDEX marked_k ON marked USING sherman (k);
	INSERT INTO marked VALUES (501, 'x');
	CHECKPOINT;
});
# Nobody is to flush the deletion: the WAL writer stands still. It never goes on, but ends by the SIGQUIT that waits for it.
my $walwriter = $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'});
kill('STOP', $walwriter) == 1 or die 'no WAL writer';
my $marks = $node->safe_psql('postgres', q{
	SELECT pg_current_wal_insert_lsn() AS before \gset
	DELETE FROM marked WHERE k <= 400;
	SET enable_seqscan = off;
	SET enable_bitmapscan = off;
	DO $$
	BEGIN
		FOR i IN 1..3000 LOOP
			PERFORM pg_current_xact_id();
			COMMIT;
			PERFORM count(filler) FROM marked WHERE k BETWEEN 1 AND 500;
			EXIT WHEN (SELECT dead_marks >= 400 FROM sherman_stat_indexes WHERE indexrelid = 'marked_k'::regclass);
			PERFORM pg_sleep(0.02);
		END LOOP;
	END $$;
	SELECT dead_marks FROM sherman_stat_indexes WHERE indexrelid = 'marked_k'::regclass;
	SELECT pg_current_wal_flush_lsn() <= :'before'::pg_lsn;
});
is($marks, "400\nt", 'the deleted rows are marked in the index, and their deletion is not flushed');

kill('QUIT', $walwriter);
kill('CONT', $walwriter);
my $pid_file = $node->data_dir . '/postmaster.pid';
for (my $i = 0; $i < 600 && -e $pid_file; $i++) { usleep(100_000) }
$node->stop('immediate', fail_ok => 1);
$node->start;
$node->poll_query_until('postgres', q{SELECT state = 'attached' FROM sherman_stat_memory_nodes}) or die 'not attached';

my $alive = $node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_bitmapscan = off; $count");
is($alive, '500', 'the deletion is lost');
is(state_of($node, 'marked_k'), 'healing', 'the index is in doubt');
is($node->safe_psql('postgres', "SET enable_seqscan = off; SET client_min_messages = error; $count"),
	$alive, 'queries leave out no row');
$node->safe_psql('postgres', 'REINDEX INDEX marked_k');
is($node->safe_psql('postgres', "SET enable_seqscan = off; $count"), $alive, 'nor do they with the index built anew');
is(check_index($node, 'marked_k'), '0', 'which is whole');

# A clean end proves the marks.
$node->safe_psql('postgres', q{INSERT INTO marked SELECT i, 'x' FROM generate_series(501, 1000) i});
$node->safe_psql('postgres', q{DELETE FROM marked WHERE k BETWEEN 600 AND 900});
$node->safe_psql('postgres', q{SET enable_seqscan = off; SELECT count(filler) FROM marked WHERE k > 500});
$node->restart;
$node->poll_query_until('postgres', q{SELECT state = 'attached' FROM sherman_stat_memory_nodes}) or die 'not attached';
is(state_of($node, 'marked_k'), 'ok', 'after a clean end the index is good');
$node->safe_psql('postgres', q{INSERT INTO marked SELECT 700, 'y' FROM generate_series(1, 500) i});
is($node->safe_psql('postgres', q{SET enable_seqscan = off; SELECT count(filler) FROM marked WHERE k BETWEEN 600 AND 900}),
	'500', 'dead entries have gone, and new ones are there');
is(check_index($node, 'marked_k'), '0', 'and the index is whole');

# A tree that nobody has changed since the start is believed after a crash: so it is not marked either. Beside it is one that was
# changed, to tell when marks would be made.
$node->safe_psql('postgres', q{
	CREATE TABLE changed (k int, filler text);
	INSERT INTO changed SELECT i, 'x' FROM generate_series(1, 100) i;
	CREATE INDEX changed_k ON changed USING sherman (k);
});
$node->restart;
$node->poll_query_until('postgres', q{SELECT state = 'attached' FROM sherman_stat_memory_nodes}) or die 'not attached';
$node->safe_psql('postgres', q{INSERT INTO changed VALUES (101, 'x'); CHECKPOINT});
$marks = $node->safe_psql('postgres', q{
	BEGIN;
	DELETE FROM marked WHERE k = 700;
	DELETE FROM changed WHERE k <= 100;
	COMMIT;
	SET enable_seqscan = off;
	SET enable_bitmapscan = off;
	DO $$
	BEGIN
		FOR i IN 1..3000 LOOP
			PERFORM pg_current_xact_id();
			COMMIT;
			PERFORM count(filler) FROM marked WHERE k = 700;
			PERFORM count(filler) FROM changed WHERE k <= 100;
			EXIT WHEN (SELECT dead_marks >= 100 FROM sherman_stat_indexes WHERE indexrelid = 'changed_k'::regclass);
			PERFORM pg_sleep(0.02);
		END LOOP;
		-- What the last round has not told yet.
		PERFORM count(filler) FROM marked WHERE k = 700;
	END $$;
	SELECT string_agg(dead_marks::text, ' ' ORDER BY indexrelid::regclass::text) FROM sherman_stat_indexes
		WHERE indexrelid IN ('marked_k'::regclass, 'changed_k'::regclass);
});
is($marks, '100 0', 'the changed index is marked, the other is not');
$node->stop('immediate');
$node->start;
$node->poll_query_until('postgres', q{SELECT state = 'attached' FROM sherman_stat_memory_nodes}) or die 'not attached';
is(state_of($node, 'marked_k'), 'ok', 'after a crash the one that was not changed is good');
is(check_index($node, 'marked_k'), '0', 'and leaves out no row');

done_testing();

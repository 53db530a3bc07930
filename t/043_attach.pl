
# A server whose launcher is slow: it is waited for, but not for ever (N16); and a copy of the server that comes between the launcher's
# look at a memory node and its fence is seen (N20).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Copies;
use Launcher;
use Msd;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

need_steps();

my $msd = Msd->new('a', size => 64);
my $node = new_cluster('main', conf => "sherman.attach_timeout = 600s\nsherman.memory_nodes = '" . $msd->address . "'\nsherman.embedded_memory = 0\n" . Msd::configuration());
my $query = 'SET enable_seqscan = off; SELECT count(*) FROM rows WHERE id BETWEEN 1 AND 10';

# A session with a statement that has been sent, and that waits, or is over.
sub session
{
	my ($sql) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $session->query('SELECT pg_backend_pid()');

	$session->query_until(qr/begun/, "\\echo begun\n$sql;\n");
	$node->poll_query_until('postgres', "SELECT state = 'idle' OR wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = $pid") or die 'no session';
	return ($session, $node->safe_psql('postgres', "SELECT state FROM pg_stat_activity WHERE pid = $pid"));
}

# Runs SQL that must fail; returns the error.
sub fails
{
	my ($sql, $what) = @_;
	my ($out, $err);

	isnt($node->psql('postgres', "\\set VERBOSITY verbose\nSET statement_timeout = '60s';\n$sql", stdout => \$out, stderr => \$err), 0, $what);
	return $err;
}

$node->safe_psql(
	'postgres', q{
	CREATE TABLE rows (id int, word text);
	INSERT INTO rows SELECT g, md5(g::text) FROM generate_series(1, 2000) g;
	CREATE INDEX rows_id ON rows USING sherman (id);
	CREATE TABLE quiet (id int);
	INSERT INTO quiet SELECT generate_series(1, 2000);
	CREATE INDEX quiet_id ON quiet USING sherman (id);
	ANALYZE;
});
$node->stop;

#
# Who comes first waits, and then has the index.
#
my $step = hold_launcher($node, 'before attach');
my ($reader, $reading) = session($query);
my ($writer, $writing) = session(q{INSERT INTO rows VALUES (3000, 'early')});
is($reading, 'active', 'a query waits for the launcher');
is($writing, 'active', 'so does an insert');
is($node->safe_psql('postgres', q{SELECT state FROM sherman_stat_indexes WHERE indexrelid = 'rows_id'::regclass}), 'attaching', 'as the view says');
release_launcher($node);
is($reader->query(q{SELECT 'next'}), "10\nnext", 'the query answers');
is($writer->query(q{SELECT 'next'}), 'next', 'the insert comes to its end');
is($writer->{stderr}, '', 'without an error');
is(state_of($node, 'rows_id'), 'ok', 'the index is good');
is(check_index($node, 'rows_id'), '0', 'and whole');
$_->quit foreach $reader, $writer;

#
# Nobody waits for ever.
#
$node->append_conf('postgresql.conf', "sherman.attach_timeout = 500ms\n");
$node->stop;
hold_launcher($node, 'before attach', $step);
like(fails('INSERT INTO rows VALUES (3001)', 'an insert is refused'), qr/ERROR:  08006: /, 'with 08006');
is($node->safe_psql('postgres', "SET statement_timeout = '60s'; $query"), '10', 'a query does without the index');
is($node->safe_psql('postgres', q{SELECT state FROM sherman_stat_indexes WHERE indexrelid = 'rows_id'::regclass}), 'attaching', 'which is not given up');
release_launcher($node);
is(state_of($node, 'rows_id'), 'ok', 'and good when the launcher comes');
is(check_index($node, 'rows_id'), '0', 'and whole');

#
# A copy comes when the launcher has looked at the memory node, and has not fenced it yet. What it made there is not believed, also of
# an index that it did not touch.
#
$node->append_conf('postgresql.conf', "sherman.attach_timeout = 600s\n");
$node->stop;
my $clone = clone($node, 'clone');
hold_launcher($node, 'before attach', $step);
$clone->start;
is(state_of($clone, 'rows_id'), 'ok', 'the copy has the memory node');
$clone->safe_psql('postgres', q{INSERT INTO rows SELECT g, 'copy' FROM generate_series(5001, 6000) g; DELETE FROM rows WHERE id <= 1000; VACUUM rows});
is(check_index($clone, 'rows_id'), '0', 'its index is whole');
release_launcher($node);
is(state_of($node, 'rows_id'), 'broken', 'the original does not believe the index that the copy has changed');
is(state_of($node, 'quiet_id'), 'broken', 'nor the other one');
index_agrees($node, 'the original');
$clone->stop('immediate');
$node->safe_psql('postgres', 'REINDEX TABLE rows; REINDEX TABLE quiet');
is(check_index($node, $_), '0', "$_ rebuilt is whole") foreach qw(rows_id quiet_id);

$node->stop;
done_testing();

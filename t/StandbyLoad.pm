
# Queries on a hot standby, each by the table and by an index in one snapshot, while the primary changes the rows.

package StandbyLoad;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run qw(start finish);
use POSIX ();
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(prepare_rows start_changes ends_well compare_for compare_all change_rows);

# The table, its indexes, and the function that compares.
sub prepare_rows
{
	my $primary = shift;

	$primary->safe_psql(
		'postgres', q{
		CREATE TABLE rows (id int, word text, part int, filler text) WITH (fillfactor = 70);
		INSERT INTO rows SELECT g, md5(g::text), g % 10, repeat('x', 50) FROM generate_series(1, 5000) g;
		CREATE INDEX rows_id ON rows USING sherman (id);
		CREATE INDEX rows_word ON rows USING sherman (word);
		CREATE INDEX rows_part ON rows USING sherman (id) WHERE part = 3;
		CREATE INDEX rows_pair ON rows USING sherman (part, id);
		ANALYZE rows;
		CREATE FUNCTION compare(kind int, a int, seconds float) RETURNS void LANGUAGE plpgsql AS $$
		DECLARE
			query text;
			ways text[] := ARRAY['enable_indexscan', 'enable_indexonlyscan', 'enable_bitmapscan'];
			by_table text;
			by_index text;
		BEGIN
			query := CASE kind % 6
				WHEN 0 THEN format('SELECT id, word FROM rows WHERE id BETWEEN %s AND %s', a, a + 100)
				WHEN 1 THEN format('SELECT id FROM rows WHERE id >= %s ORDER BY id LIMIT 100', a)
				WHEN 2 THEN format('SELECT word FROM rows WHERE word >= md5(%L) ORDER BY word DESC LIMIT 70', a)
				WHEN 3 THEN format('SELECT id, part FROM rows WHERE part = 3 AND id BETWEEN %s AND %s', a, a + 1000)
				WHEN 4 THEN format('SELECT id FROM rows WHERE id = ANY (ARRAY[%s, %s, %s, %s])', a, a + 1, a + 7, a / 2)
				ELSE format('SELECT part, id FROM rows WHERE part = %s AND id < %s', a % 10, a)
			END;
			PERFORM pg_sleep(seconds);
			PERFORM set_config('enable_seqscan', 'on', true);
			PERFORM set_config(way, 'off', true) FROM unnest(ways) way;
			EXECUTE format('SELECT string_agg(q::text, '' '' ORDER BY q::text) FROM (%s) q', query) INTO by_table;
			PERFORM set_config('enable_seqscan', 'off', true);
			PERFORM set_config(ways[1 + kind / 6 % 3], 'on', true);
			EXECUTE format('SELECT string_agg(q::text, '' '' ORDER BY q::text) FROM (%s) q', query) INTO by_index;
			IF by_table IS DISTINCT FROM by_index THEN
				RAISE EXCEPTION 'answers differ, way %: % by table: % by index: %', kind / 6 % 3, query, by_table, by_index USING ERRCODE = 'data_corrupted';
			END IF;
		END $$;
	});
	return;
}

# pgbench in the background, by a script of one transaction.
sub pgbench
{
	my ($server, $name, $script, $clients, $seconds, @more) = @_;
	my $file = "$PostgreSQL::Test::Utils::tmp_check/$name.pgbench";
	my %run = (name => $name, out => '');

	append_to_file($file, $script);
	$run{handle} = start(
		[ 'pgbench', '-n', '-c', $clients, '-j', $clients, '-T', $seconds, '-f', $file, @more, $server->connstr('postgres') ],
		'>', \$run{out}, '2>&1');
	return \%run;
}

# Rows come, go, change and are moved, entries are marked as dead, old versions pile up, and VACUUM removes what is dead. So many clients do it.
sub start_changes
{
	my ($primary, $seconds, $clients) = @_;

	return (
		pgbench($primary, 'changes', q{
			\set a random(1, 6000)
			\set b random(1, 20)
			BEGIN;
			DELETE FROM rows WHERE id BETWEEN :a AND :a + :b;
			INSERT INTO rows SELECT g, md5(g::text), g % 10, repeat('y', 50) FROM generate_series(:a, :a + :b) g;
			COMMIT;
			UPDATE rows SET filler = repeat('z', 40) WHERE id BETWEEN :a + 500 AND :a + 503;
			UPDATE rows SET part = (part + 1) % 10 WHERE id = :a + 600;
			UPDATE rows SET id = id + 1 WHERE id = :a + 700;
			SELECT count(*) FROM rows WHERE id BETWEEN :a AND :a + 50;
		}, $clients // 2, $seconds),
		pgbench($primary, 'vacuum', "VACUUM (TRUNCATE off) rows;\n\\sleep 300 ms\n", 1, $seconds));
}

# Waits for it; whether it has come to its end.
sub ends_well
{
	my $run = shift;
	my $good = finish($run->{handle});

	diag("$run->{name}: $run->{out}") if !$good;
	return $good;
}

# Sessions that compare, in processes of their own, until the time is over: each statement takes its snapshot, waits for a while, and compares.  PostgreSQL
# ends some sessions that are in the way of replay, and cancels the statements of others: sessions begin anew.  Returns how many statements have compared,
# how many were canceled for rows that they might have seen, and for a page that they were at, and what went wrong.
sub compare_for
{
	my ($standby, $seconds, $clients) = @_;
	my @pids;

	foreach my $client (1 .. $clients)
	{
		my $pid = fork // die "fork: $!";

		if ($pid != 0)
		{
			push @pids, $pid;
			next;
		}
		srand(1000 * $client + $$);
		open(my $out, '>', result_file($client)) or POSIX::_exit(1);
		printf {$out} "%d %d %d %s\n", compare_until($standby, time + $seconds);
		close $out;
		POSIX::_exit(0);
	}
	my ($done, $canceled, $pinned, $bad) = (0, 0, 0, '');

	foreach my $client (1 .. $clients)
	{
		waitpid($pids[ $client - 1 ], 0);
		my ($mine, $mine_canceled, $mine_pinned, $mine_bad) = slurp_file(result_file($client)) =~ /^(\d+) (\d+) (\d+) (.*)$/s;

		$done += $mine;
		$canceled += $mine_canceled;
		$pinned += $mine_pinned;
		$bad .= $mine_bad if $mine_bad =~ /\S/;
	}
	return ($done, $canceled, $pinned, $bad);
}

# A round of changes of all kinds, VACUUM among them unless $keep says that nothing is to be removed so.
sub change_rows
{
	my ($primary, $round, $keep) = @_;
	my $from = 600 * $round;

	$primary->safe_psql('postgres', $_) foreach (
		"DELETE FROM rows WHERE id BETWEEN $from AND $from + 80",
		"INSERT INTO rows SELECT g, md5(g::text), g % 10, 'round $round' FROM generate_series($from + 40, $from + 90) g",
		"UPDATE rows SET filler = 'round $round' WHERE id BETWEEN $from + 100 AND $from + 140",
		"UPDATE rows SET part = (part + 1) % 10, word = md5(word) WHERE id BETWEEN $from + 200 AND $from + 260",
		$keep ? () : 'VACUUM (TRUNCATE off) rows');
	return;
}

# Each kind of query once, among rows that are changed and rows that are not, at a server as it is: how many were compared, how many were canceled, and what went wrong.
sub compare_all
{
	my ($server) = @_;
	my $script = "SET client_min_messages = error;\nSET default_transaction_isolation = 'repeatable read';\n";
	my ($out, $error);

	$script .= sprintf("SELECT compare(%d, %d, 0);\n", $_, (1, 590, 1230, 1805, 4990)[ $_ % 5 ]) foreach 0 .. 17;
	IPC::Run::run([ 'psql', '-XqtA', '-d', $server->connstr('postgres') ], '<', \$script, '>', \$out, '2>', \$error);
	my $done = () = $out =~ /\n/g;
	my $canceled = () = $error =~ /ERROR: .* due to conflict with recovery/g;
	my $bad = join("\n", grep { /(ERROR|FATAL|PANIC): / && !/due to conflict with recovery/ } split(/\n/, $error));

	return ($done, $canceled, $bad);
}

sub result_file
{
	return "$PostgreSQL::Test::Utils::tmp_check/compared_" . shift;
}

sub compare_until
{
	my ($standby, $end) = @_;
	my ($done, $canceled, $pinned, $bad) = (0, 0, 0, '');

	while (time < $end && $bad eq '')
	{
		my $script = "SET default_transaction_isolation = 'repeatable read';\n";
		my ($out, $error);

		$script .= sprintf("SELECT compare(%d, %d, %f);\n", rand(18), 1 + rand(6000), rand() < 0.5 ? 0 : rand(0.3)) foreach 1 .. 20;
		IPC::Run::run([ 'psql', '-XqtA', '-d', $standby->connstr('postgres') ], '<', \$script, '>', \$out, '2>', \$error);
		$done += () = $out =~ /^$/mg;
		foreach my $line (split(/\n/, $error))
		{
			$pinned++ if $line =~ /DETAIL: .*(a page of the table was in use|holding shared buffer pin)/;
			$canceled++ if $line =~ /(ERROR|FATAL): .* due to conflict with recovery/;
			$bad .= "$line\n" if $line =~ /(ERROR|FATAL|PANIC): / && $line !~ /due to conflict with recovery/;
		}
	}
	return ($done, $canceled - $pinned, $pinned, $bad);
}

1;

# Concurrent sessions: some change a table with a btree and a sherman index over equal columns, and clean it up, while others compare
# what the two answer to one snapshot; all of them count in a table with a unique sherman index, and add batches of rows to twins with
# unique indexes, some of whose keys others add at the same time.

package Differential::Sessions;

use strict;
use warnings;

use Exporter 'import';
use Differential::Values;

our @EXPORT = qw(make_sessions write_session read_session end_sessions);

# Values that a counter is kept for; fewer than there are statements, so that sessions meet.
use constant COUNTERS => 300;

# Keys of batches: those below 0 are never removed.
use constant BATCH_KEYS => 400;

sub make_sessions
{
	return <<'SQL';
DROP TABLE IF EXISTS t;
CREATE TABLE t (id serial, writer int, k int, k_ int, e text, e_ text) WITH (autovacuum_enabled = off);
CREATE INDEX by_btree ON t (k) INCLUDE (e) WITH (deduplicate_items = off);
CREATE INDEX by_sherman ON t USING sherman (k_) INCLUDE (e_);
CREATE TABLE counter (k int, n int);
CREATE UNIQUE INDEX counter_k ON counter USING sherman (k);
CREATE TABLE counted (n int);
-- Counts by hand what ON CONFLICT would: whoever is told that the key is there finds it.
CREATE FUNCTION count_one(key int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO counter VALUES (key, 1);
EXCEPTION WHEN unique_violation THEN
	UPDATE counter SET n = n + 1 WHERE k = key;
	IF NOT FOUND THEN
		RAISE WARNING 'key % is a duplicate of none', key;
	END IF;
END $$;
CREATE TABLE batch_s (k int, writer int, w text);
CREATE UNIQUE INDEX batch_s_k ON batch_s USING sherman (k);
CREATE TABLE batch_b (k int, writer int, w text);
CREATE UNIQUE INDEX batch_b_k ON batch_b (k);
-- What is known of them: keys that came (1) and went (-1), in the transactions that did that.
CREATE TABLE batched (name text, k int, n int);
CREATE TABLE batch_outcome (name text, way text, outcome text);
-- Adds rows with all of these keys, or none, in one of the ways in which rows come.
CREATE FUNCTION add_batch(name text, keys int[], writer int, way text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	half int := cardinality(keys) / 2;
	file text := current_setting('data_directory') || '/batch_' || pg_backend_pid();
	add text := format('INSERT INTO %I SELECT k, %s, repeat(''w'', k %% 40 + 40) FROM unnest($1) k', name, writer);
	found bool; key int; detail text; outcome text := 'added';
BEGIN
	BEGIN
		IF way = 'apart' THEN
			EXECUTE add USING keys[1:half];
			EXECUTE add USING keys[half + 1:];
		ELSIF way = 'copy' THEN
			EXECUTE format('COPY (SELECT k, %s, ''copy'' FROM unnest(%L::int[]) k) TO %L', writer, keys, file);
			EXECUTE format('COPY %I FROM %L', name, file);
		ELSE
			EXECUTE add USING keys;
		END IF;
		INSERT INTO batched SELECT name, k, 1 FROM unnest(keys) k;
	EXCEPTION
		WHEN unique_violation THEN
			GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
			key := substring(detail FROM '=\((-?\d+)\)');
			outcome := 'duplicate';
		WHEN deadlock_detected THEN
			outcome := 'deadlock';
	END;
	-- Whoever is told that a key is there finds it, unless it has gone since.
	IF key IS NOT NULL THEN
		EXECUTE format('SELECT EXISTS (SELECT FROM %I WHERE k = $1)', name) INTO found USING key;
		found := found OR key > 0 OR cardinality(array_positions(keys, key)) > 1;
		IF NOT found THEN
			RAISE WARNING 'key % of % is a duplicate of none', key, name;
		END IF;
		INSERT INTO outcome VALUES (found AND key = ANY (keys));
	END IF;
	INSERT INTO batch_outcome VALUES (name, way, outcome);
END $$;
CREATE FUNCTION remove_batch(name text, writer int, part int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('WITH gone AS (DELETE FROM %I WHERE writer = %s AND k > 0 AND k %% 7 = %s RETURNING k)
		INSERT INTO batched SELECT %L, k, -1 FROM gone', name, writer, part, name);
END $$;
SQL
}

# Some keys, most often without one twice; those of others near them.
sub batch_keys
{
	my $count = integer(2, chance(0.8) ? 40 : 200);
	my $first = integer(-(BATCH_KEYS), BATCH_KEYS);
	my @keys = chance(0.5) ? map { $first + $_ } 1 .. $count : map { integer(-(BATCH_KEYS), BATCH_KEYS) } 1 .. $count;
	my %seen;

	@keys = sort { rand() <=> 0.5 } @keys if chance(0.5);
	@keys = grep { !$seen{$_}++ } @keys if chance(0.9);
	return 'ARRAY[' . join(', ', @keys) . ']';
}

# Batches of one transaction, by both twins; where there are several, others wait for what it has.
sub write_batches
{
	my ($out, $writer) = @_;

	print $out "BEGIN;\n";
	for my $n (1 .. pick(1, 1, 2, 3))
	{
		my ($keys, $way) = (batch_keys(), pick('select', 'select', 'apart', 'copy'));

		print $out "SELECT add_batch('batch_$_', $keys, $writer, '$way') \\g /dev/null\n" foreach ('s', 'b');
		print $out "SELECT pg_sleep(0.002) \\g /dev/null\n" if chance(0.5);
	}
	print $out chance(0.8) ? "COMMIT;\n" : "ROLLBACK;\n";
	if (chance(0.6))
	{
		my $part = integer(0, 6);

		print $out "SELECT remove_batch('batch_$_', $writer, $part) \\g /dev/null\n" foreach ('s', 'b');
	}
	print $out 'VACUUM (TRUNCATE OFF) ' . pick('batch_s', 'batch_b') . ";\n" if chance(0.1);
}

# write_session(out, writer, statements): each writer changes rows of its own, so that none waits for two others.
sub write_session
{
	my ($out, $writer, $statements) = @_;

	print $out "SET deadlock_timeout = '20ms';\n";
	for my $n (1 .. $statements)
	{
		my $kind = rand();
		my $first = integer(-100, 100);

		if (chance(0.15))
		{
			write_batches($out, $writer);
		}
		elsif ($kind < 0.4)
		{
			print $out "INSERT INTO t (writer, k, k_, e, e_) SELECT $writer, k, k, 'e' || k, 'e' || k FROM generate_series($first, "
			  . ($first + integer(0, 40)) . ") k;\n";
		}
		elsif ($kind < 0.55)
		{
			print $out "UPDATE t SET k = k + 1, k_ = k_ + 1 WHERE writer = $writer AND id % 9 = " . integer(0, 8) . ";\n";
		}
		elsif ($kind < 0.7)
		{
			print $out "DELETE FROM t WHERE writer = $writer AND id % 4 = " . integer(0, 3) . ";\n";
		}
		elsif ($kind < 0.72)
		{
			print $out "VACUUM (TRUNCATE OFF) " . pick('t', 'counter') . ";\n";
		}
		else
		{
			my $key = integer(1, COUNTERS);
			print $out chance(0.5)
			  ? "INSERT INTO counter AS c VALUES ($key, 1) ON CONFLICT (k) DO UPDATE SET n = c.n + 1;\n"
			  : "SELECT count_one($key) \\g /dev/null\n";
			print $out "INSERT INTO counted VALUES (1);\n";
		}
	}
}

# read_session(out, queries): both queries of a comparison see one snapshot.
sub read_session
{
	my ($out, $queries) = @_;

	for my $n (1 .. $queries)
	{
		my $query = 'SELECT ' . pick('id, @@, e', 'id, @@', '@@', '@@, e') . ' FROM t WHERE '
		  . predicate({ type => 'int4', narrow => 1 }) . pick('', '', ' ORDER BY @@', ' ORDER BY @@ DESC');
		(my $ours = named($query, 'k_')) =~ s/, e\b/, e_/;

		print $out "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT compare(\$q\$$ours\$q\$, \$q\$" . named($query, 'k')
		  . "\$q\$, false, NULL, true) \\g /dev/null\nCOMMIT;\n";
	}
}

# What holds when all are done.
sub end_sessions
{
	return <<'SQL';
SELECT compare('SELECT id, k_, e_ FROM t WHERE k_ > -1000', 'SELECT id, k, e FROM t WHERE k > -1000', false, NULL, true) \g /dev/null
INSERT INTO outcome SELECT sum(n) = (SELECT count(*) FROM counted) AND count(*) = count(DISTINCT k) FROM counter;
INSERT INTO outcome SELECT sherman_check('by_sherman', true) = 0 AND sherman_check('counter_k', true) = 0 AND sherman_check('batch_s_k', true) = 0;
-- Each twin has the rows that came and did not go, each key once, by its index, too.
INSERT INTO outcome SELECT NOT EXISTS (
	(SELECT k FROM batched WHERE name = 'batch_s' GROUP BY k HAVING sum(n) > 0) EXCEPT ALL SELECT k FROM batch_s WHERE k > -1000);
INSERT INTO outcome SELECT NOT EXISTS (
	SELECT k FROM batch_s WHERE k > -1000 EXCEPT ALL (SELECT k FROM batched WHERE name = 'batch_s' GROUP BY k HAVING sum(n) = 1));
INSERT INTO outcome SELECT max(n) = 1 FROM (SELECT sum(n) AS n FROM batched GROUP BY name, k) x;
-- Sessions have met; else this proves nothing.
INSERT INTO outcome SELECT every(duplicates > 0 AND added > duplicates / 10) FROM (
	SELECT count(*) FILTER (WHERE outcome = 'duplicate') AS duplicates, count(*) FILTER (WHERE outcome = 'added') AS added
	FROM batch_outcome GROUP BY name) x;
\pset tuples_only on
\pset format unaligned
SELECT 'batches of ' || name || ', ' || way || ': ' || string_agg(count || ' ' || outcome, ', ' ORDER BY outcome)
FROM (SELECT name, way, outcome, count(*) FROM batch_outcome GROUP BY 1, 2, 3) x GROUP BY name, way ORDER BY 1;
SQL
}

1;

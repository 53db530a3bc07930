# Concurrent sessions: some change a table with a btree and a sherman index over equal columns, and clean it up, while others compare
# what the two answer to one snapshot; all of them count in a table with a unique sherman index.

package Differential::Sessions;

use strict;
use warnings;

use Exporter 'import';
use Differential::Values;

our @EXPORT = qw(make_sessions write_session read_session end_sessions);

# Values that a counter is kept for; fewer than there are statements, so that sessions meet.
use constant COUNTERS => 300;

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
SQL
}

# write_session(out, writer, statements): each writer changes rows of its own, so that none waits for two others.
sub write_session
{
	my ($out, $writer, $statements) = @_;

	for my $n (1 .. $statements)
	{
		my $kind = rand();
		my $first = integer(-100, 100);

		if ($kind < 0.4)
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
INSERT INTO outcome SELECT sherman_check('by_sherman', true) = 0 AND sherman_check('counter_k', true) = 0;
SQL
}

1;


# Whether every sherman index of a database finds what its table has: in both directions, whole rows and keys alone, and each of
# the table's rows (sherman_check).

package Answers;

use strict;
use warnings;

use Sherman;
use Test::More;

# install(node): in database "postgres".
sub install
{
	my ($node) = @_;

	$node->safe_psql('postgres', <<'SQL');
-- Equal numerics may be written in several ways.
CREATE VIEW indexes_to_compare AS
	SELECT x.indexrelid::regclass AS i, x.state AS state, i.indrelid::regclass AS t, pg_get_indexdef(x.indexrelid, 1, true) AS k,
		coalesce('WHERE ' || pg_get_expr(i.indpred, i.indrelid), '') AS condition,
		CASE a.atttypid WHEN 'numeric'::regtype THEN 'trim_scale(k)::text' ELSE 'k::text' END AS word
	FROM sherman_stat_indexes x JOIN pg_index i ON i.indexrelid = x.indexrelid JOIN pg_attribute a ON a.attrelid = x.indexrelid AND a.attnum = 1
	WHERE i.indisvalid;
CREATE FUNCTION answers(t regclass, k text, condition text, word text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE direction text; answer text; answers text := '';
BEGIN
	FOREACH direction IN ARRAY ARRAY['ASC', 'DESC'] LOOP
		EXECUTE format('SELECT count(*) || '' '' || sum(hashtext(r::text)::bigint) || '' '' || md5(string_agg(%5$s, '','')) FROM (SELECT r, %2$s AS k FROM %1$s r %4$s ORDER BY %2$s %3$s) s', t, k, direction, condition, word) INTO answer;
		answers := answers || coalesce(answer, '0 rows') || '; ';
		EXECUTE format('SELECT count(*) || '' '' || md5(string_agg(%5$s, '','')) FROM (SELECT %2$s AS k FROM %1$s r %4$s ORDER BY %2$s %3$s) s', t, k, direction, condition, word) INTO answer;
		answers := answers || coalesce(answer, '0 rows') || '; ';
	END LOOP;
	RETURN answers;
END $$;
CREATE FUNCTION by_table(t regclass, k text, condition text, word text) RETURNS text LANGUAGE sql
	SET enable_indexscan = off SET enable_indexonlyscan = off SET enable_bitmapscan = off
	AS 'SELECT answers(t, k, condition, word)';
CREATE FUNCTION by_index(t regclass, k text, condition text, word text) RETURNS text LANGUAGE sql
	SET enable_seqscan = off SET enable_sort = off SET enable_bitmapscan = off
	AS 'SELECT answers(t, k, condition, word)';
SQL
	return;
}

# compare(node, what, states): looks at all indexes, whose states must match; those that are broken are not asked.  Returns figures:
# indexes, wrong, rows (compared, once for each index), healing (indexes in that state).
sub compare
{
	my ($node, $what, $states) = @_;
	my %figures = (indexes => 0, wrong => 0, rows => 0, healing => 0);
	my $result = $node->safe_psql('postgres', q{
		SET client_min_messages = error;
		BEGIN ISOLATION LEVEL REPEATABLE READ;
		SELECT i, state, by_table(t, k, condition, word),
			CASE state WHEN 'broken' THEN by_table(t, k, condition, word) ELSE by_index(t, k, condition, word) END,
			CASE state WHEN 'broken' THEN 0 ELSE sherman_check(i, true) END FROM indexes_to_compare ORDER BY i::text;
		COMMIT});

	foreach my $line (split /\n/, $result)
	{
		my ($index, $state, $by_table, $by_index, $problems) = split /\|/, $line;

		$figures{indexes}++;
		$figures{healing} += $state eq 'healing';
		$figures{rows} += $1 if $by_table =~ /^(\d+) /;
		next if $state =~ /^($states)$/ && $by_table eq $by_index && $problems eq '0';
		$figures{wrong}++;
		diag("$what: $index is $state, $problems problems; by the table:\n$by_table\nby the index:\n$by_index");
	}
	is($figures{wrong}, 0, "$what: each of $figures{indexes} indexes finds what its table has");
	return %figures;
}

1;

# Rounds of changes: two tables with equal rows, one with a unique btree index, one with a unique sherman index. Each statement runs
# on either; both must do the same, or fail with the same error and detail.

package Differential::Changes;

use strict;
use warnings;

use Exporter 'import';
use Differential::Values;

our @EXPORT = qw(change_round make_changes);

# SQL functions that run a statement on both tables; TABLE in it stands for the table.
sub make_changes
{
	return <<'SQL';
CREATE FUNCTION outcome_of(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE answer text; message text; detail text;
BEGIN
	EXECUTE 'WITH x AS (' || statement || ' RETURNING *) SELECT string_agg(x::text, '','' ORDER BY x::text COLLATE "C") FROM x' INTO answer;
	SET CONSTRAINTS ALL IMMEDIATE;
	RETURN answer;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
	RETURN regexp_replace(concat_ws(' | ', SQLSTATE, message, detail), '"twin_[bs]', '"twin_', 'g');
END $$;
CREATE FUNCTION change(statement text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	ours text := outcome_of(replace(statement, 'TABLE', 'twin_s'));
	peers text := outcome_of(replace(statement, 'TABLE', 'twin_b'));
BEGIN
	IF ours IS DISTINCT FROM peers THEN
		RAISE WARNING E'outcomes differ: % by sherman, % by btree\n  %\n  %', ours, peers, statement,
			(SELECT indexdef FROM pg_indexes WHERE indexname = 'twin_s_key');
	END IF;
	INSERT INTO outcome VALUES (ours IS NOT DISTINCT FROM peers);
END $$;
-- All rows of both, and each row of ours by its index.
CREATE FUNCTION same_twins() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	ours text[] := ARRAY(SELECT x::text FROM twin_s x ORDER BY x::text COLLATE "C");
	peers text[] := ARRAY(SELECT x::text FROM twin_b x ORDER BY x::text COLLATE "C");
	problems bigint := sherman_check('twin_s_key', true);
BEGIN
	IF ours IS DISTINCT FROM peers OR problems > 0 THEN
		RAISE WARNING E'tables differ, or % problems\n  %', problems, (SELECT indexdef FROM pg_indexes WHERE indexname = 'twin_s_key');
	END IF;
	INSERT INTO outcome VALUES (ours IS NOT DISTINCT FROM peers AND problems = 0);
END $$;
SQL
}

# The kinds of unique index; of a constraint it is core's setting that asks for sherman.
sub make_twins
{
	my ($out, $columns, $constraint, $distinct, $where) = @_;
	my $names = join ', ', map { $_->{name} } @$columns;
	my $include = chance(0.3) ? ' INCLUDE (v)' : '';

	print $out "DROP TABLE IF EXISTS twin_s, twin_b;\n";
	for my $twin ('s', 'b')
	{
		print $out "CREATE TABLE twin_$twin (id int, v int, " . join(', ', map { "$_->{name} $_->{type}" } @$columns) . ");\n";
		if ($constraint)
		{
			print $out 'SET sherman.constraints = ' . ($twin eq 's' ? 'on' : 'off') . ";\n"
			  . "ALTER TABLE twin_$twin ADD CONSTRAINT twin_${twin}_key UNIQUE$distinct ($names)$include$constraint;\n";
		}
		else
		{
			print $out "CREATE UNIQUE INDEX twin_${twin}_key ON twin_$twin" . ($twin eq 's' ? ' USING sherman' : '') . " ($names)$include$distinct$where;\n";
		}
	}
	print $out "RESET sherman.constraints;\n";
}

sub row
{
	my ($columns, $id) = @_;

	return "($id, " . integer(0, 99) . join('', map { ', ' . (chance(0.08) ? "NULL::" . base($_->{type}) : literal($_)) } @$columns) . ')';
}

# An action of ON CONFLICT, or none.
sub on_conflict
{
	my ($columns, $where) = @_;
	my $target = '(' . join(', ', map { $_->{name} } @$columns) . ')' . $where;

	return '' if chance(0.4);
	return ' ON CONFLICT DO NOTHING' if chance(0.2);
	return " ON CONFLICT $target DO NOTHING" if chance(0.3);
	return " ON CONFLICT $target DO UPDATE SET v = x.v + EXCLUDED.v, id = EXCLUDED.id" . (chance(0.3) ? ' WHERE x.v % 2 = 0' : '');
}

sub random_change
{
	my ($columns, $where, $id, $last) = @_;
	my $column = pick(@$columns);
	my $kind = rand();

	return 'INSERT INTO TABLE AS x VALUES ' . join(', ', map { row($columns, $id + $_) } 1 .. (chance(0.7) ? 1 : integer(2, 6))) . on_conflict($columns, $where)
	  if $kind < 0.7;
	return "UPDATE TABLE SET $column->{name} = " . literal($column) . ' WHERE id = ' . integer(1, $last) if $kind < 0.8;
	return 'UPDATE TABLE SET v = v + 1 WHERE id % ' . integer(3, 9) . ' = 0' if $kind < 0.85;
	return 'DELETE FROM TABLE WHERE id % ' . integer(5, 20) . ' = ' . integer(0, 4) if $kind < 0.93;
	return "DELETE FROM TABLE WHERE $column->{name} = " . literal($column);
}

# change_round(out, changes): writes one round's statements.
sub change_round
{
	my ($out, $changes) = @_;
	my @columns = map { { name => "k$_", type => pick(types()), narrow => chance(0.7) ? 1 : 0 } } 1 .. pick(1, 1, 2);
	my $distinct = pick('', '', ' NULLS NOT DISTINCT');
	my $constraint = chance(0.4) ? pick(' NOT DEFERRABLE', ' NOT DEFERRABLE', ' DEFERRABLE INITIALLY DEFERRED') : '';
	my $where = !$constraint && chance(0.3) ? ' WHERE v % 3 <> 0' : '';
	my $id = 0;

	make_twins($out, \@columns, $constraint, $distinct, $where);
	for my $n (1 .. $changes)
	{
		print $out 'SELECT change($q$' . random_change(\@columns, $where, $id, $id + 1) . "\$q\$) \\g /dev/null\n";
		$id += 6;
		print $out "VACUUM twin_s, twin_b;\n" if $n % 60 == 0;
		print $out "SELECT same_twins() \\g /dev/null\n" if $n % 40 == 0;
	}
	print $out "SELECT same_twins() \\g /dev/null\n";
}

1;

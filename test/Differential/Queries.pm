# Rounds of queries: one table, a btree and a sherman index over columns with equal values, each query once by either.

package Differential::Queries;

use strict;
use warnings;

use Exporter 'import';
use Differential::Values;

our @EXPORT = qw(query_round);

sub key_list
{
	my ($columns, $suffix) = @_;

	return join ', ', map { "$_->{name}$suffix$_->{order}$_->{nulls}" } @$columns;
}

sub make_table
{
	my ($out, $stored) = @_;

	print $out "DROP TABLE IF EXISTS t; CREATE TABLE t (id serial, "
	  . join(', ', map { "$_->{name} $_->{type}, $_->{name}_ $_->{type}" } @$stored) . ");\n"
	  . "ALTER TABLE t SET (parallel_workers = 2);\n";
}

sub make_indexes
{
	my ($out, $columns, $covering) = @_;
	my $include = sub { return $covering ? ") INCLUDE (id, e$_[0])" : ')'; };

	print $out 'CREATE INDEX by_btree ON t (' . key_list($columns, '') . $include->('') . ' WITH (deduplicate_items = off); '
	  . 'CREATE INDEX by_sherman ON t USING sherman (' . key_list($columns, '_') . $include->('_') . ";\n";
}

sub insert_rows
{
	my ($out, $stored, $count) = @_;

	for (my $done = 0; $done < $count; $done += 100)
	{
		my @values;
		for (1 .. ($count - $done < 100 ? $count - $done : 100))
		{
			push @values, '(' . join(', ', map { my $value = chance(0.08) ? 'NULL' : literal($_); ($value, $value) } @$stored) . ')';
		}
		print $out 'INSERT INTO t (' . join(', ', map { "$_->{name}, $_->{name}_" } @$stored) . ') VALUES ' . join(', ', @values) . ";\n";
	}
}

sub change_rows
{
	my ($out, $stored) = @_;

	insert_rows($out, $stored, integer(1, 100));
	print $out "DELETE FROM t WHERE id % " . integer(7, 30) . " = 0;\n" if chance(0.5);
	print $out 'UPDATE t SET ' . join(', ', map { "$_->{name} = NULL, $_->{name}_ = NULL" } pick(@$stored)) . " WHERE id % " . integer(15, 40) . " = 1;\n"
	  if chance(0.3);
	print $out "VACUUM t;\n" if chance(0.5);
}

# ORDER BY as the index has it (direction 1) or the other way (-1).
sub order_by
{
	my ($columns, $suffix, $direction) = @_;

	return ' ORDER BY ' . join(', ', map {
		my $descending = $_->{order} ne '';
		my $first = $_->{nulls} eq '' ? $descending : $_->{nulls} =~ /FIRST/;
		if ($direction < 0) { $descending = !$descending; $first = !$first; }
		"$_->{name}$suffix" . ($descending ? ' DESC' : ' ASC') . ($first ? ' NULLS FIRST' : ' NULLS LAST');
	} @$columns);
}

# A query by either index: { text => [sherman's, btree's], ordered, moves, parallel }.
sub random_query
{
	my ($columns, $stored, $covering, $parallel) = @_;
	my @wheres = chance(0.3) ? key_predicates($columns) : map { chance(0.65) ? [ $_->{name}, predicate($_) ] : () } @$columns;
	my $direction = pick(1, 1, -1, 0);
	# In the index's order, or with a condition on its first column, there is no better way. Whether a row is null no index is asked.
	my $of_row = $columns->[0]{type} eq 'pair' && @wheres && $wheres[0][1] =~ /IS (NOT )?NULL$/;
	my $indexed = $direction || (@wheres && $wheres[0][0] eq $columns->[0]{name} && !$of_row);
	my %query = (ordered => $direction ? 'true' : 'false', indexed => $indexed ? 'true' : 'false', moves => 'NULL', text => []);
	my $limit = '';

	if ($direction && chance(0.3))
	{
		$query{moves} = 'ARRAY[' . join(',', map { integer(1, 12) * pick(1, 1, -1) } 1 .. integer(1, 8)) . ']';
	}
	elsif ($direction && chance(0.3))
	{
		$limit = ' LIMIT ' . integer(0, 30) . (chance(0.3) ? ' OFFSET ' . integer(0, 20) : '');
	}
	for my $suffix ('_', '')
	{
		my $where = join ' AND ', map { '(' . named($_->[1], $_->[0] . $suffix) . ')' } @wheres;
		push @{ $query{text} }, 'SELECT id, ' . join(', ', map { $covering ? "$_->{name}$suffix" : $_->{name} } @$stored) . ' FROM t'
		  . ($where ? " WHERE $where" : '') . ($direction ? order_by($columns, $suffix, $direction) : '') . $limit;
	}
	# Without an order only: processes return equal keys in any.
	$query{parallel} = !$direction && chance($parallel);
	return \%query;
}

# A merge join of the table with itself, whose inner side goes back to a mark for each duplicate.
sub random_join
{
	my ($columns) = @_;
	my $name = $columns->[0]{name};
	my $rest = 'a.id % 7 = ' . integer(0, 6) . ' AND b.id % 5 = ' . integer(0, 4);

	return {
		text => [ map { "SELECT a.id, b.id AS other FROM t a JOIN t b ON a.$name$_ = b.$name$_ WHERE $rest" } '_', '' ],
		ordered => 'false', indexed => 'true', moves => 'NULL', join => 1 };
}

sub send_query
{
	my ($out, $query) = @_;

	print $out "SET max_parallel_workers_per_gather = 2; SET cpu_tuple_cost = 1;\n" if $query->{parallel};
	print $out "SET enable_hashjoin = off; SET enable_nestloop = off; SET enable_bitmapscan = off;\n" if $query->{join};
	print $out "SELECT compare(\$q\$$query->{text}[0]\$q\$, \$q\$$query->{text}[1]\$q\$, $query->{ordered}, $query->{moves}, $query->{indexed}) \\g /dev/null\n";
	print $out "SET max_parallel_workers_per_gather = 0; RESET cpu_tuple_cost;\n" if $query->{parallel};
	print $out "RESET enable_hashjoin; RESET enable_nestloop;\n" if $query->{join};
}

# query_round(out, queries, parallel): writes one round's statements; that share of the queries without an order is parallel.
sub query_round
{
	my ($out, $queries, $parallel) = @_;
	my @columns;

	for my $i (1 .. pick(1, 1, 2, 2, 3))
	{
		push @columns, {
			name => "c$i", type => pick(types()), narrow => chance(0.5) ? 1 : 0,
			order => pick('', '', ' DESC'), nulls => pick('', '', ' NULLS FIRST', ' NULLS LAST') };
	}
	# Half of the rounds ask for columns that the indexes have: by index-only scans, with included columns.
	my $covering = chance(0.5);
	my @stored = (@columns, { name => 'e', type => pick(types()), narrow => 0 });
	my $rows  = pick(0, 1, 60, 400, 1200, 1200);
	my $early = chance(0.5);    # indexes before the rows: the insert path; after: the build

	make_table($out, \@stored);
	make_indexes($out, \@columns, $covering) if $early;
	insert_rows($out, \@stored, $rows);
	make_indexes($out, \@columns, $covering) if !$early;
	for my $n (1 .. $queries)
	{
		change_rows($out, \@stored) if $n % 60 == 0 && $rows;
		print $out 'SET enable_bitmapscan = ' . pick('off', 'on') . ";\n" if $n % 10 == 1;
		send_query($out, $n % 25 == 0 ? random_join(\@columns) : random_query(\@columns, \@stored, $covering, $parallel));
	}
	print $out "DO \$\$ BEGIN IF sherman_check('by_sherman', true) <> 0 THEN RAISE 'sherman_check found problems'; END IF; END \$\$;\n";
}

1;

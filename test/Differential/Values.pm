# Random values and predicates of every type that has an order: what the differential test draws from.

package Differential::Values;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(pick chance integer types literal quoted base predicate named make_types key_predicates);

sub pick    { return $_[ int(rand(@_)) ]; }
sub chance  { return rand() < $_[0]; }
sub integer { my ($low, $high) = @_; return $low + int(rand($high - $low + 1)); }

sub word { return join '', map { pick('a' .. 'f') } 1 .. integer($_[0], $_[1]); }

# Digits with the check digit of EAN-13.
sub ean
{
	my ($digits) = @_;
	my $sum = 0;

	$digits .= integer(0, 9) while length($digits) < 12;
	$sum += substr($digits, $_, 1) * ($_ % 2 ? 3 : 1) for 0 .. 11;
	return $digits . (10 - $sum % 10) % 10;
}

sub range { my ($low) = @_; return pick('[', '(') . $low . ',' . ($low + integer(1, 9)) . pick(']', ')'); }

# One random literal of a type, from a narrow pool (many duplicates) or a wide one.
my @words = qw(a b ab abc abd z zz Zeta alpha Alpha beta gamma sherman btree leaf fence sibling);
my %literal = (
	int2    => sub { $_[0] ? integer(-5, 5) : integer(-32768, 32767) },
	int4    => sub { $_[0] ? integer(-20, 20) : integer(-2147483648, 2147483647) },
	int8    => sub { $_[0] ? integer(-20, 20) : sprintf("%d", rand(8e18) - 4e18) },
	oid     => sub { $_[0] ? integer(0, 20) : integer(0, 4294967295) },
	xid8    => sub { $_[0] ? integer(0, 20) : sprintf("%d", rand(8e18)) },
	money   => sub { $_[0] ? integer(-5, 5) : integer(-100000, 100000) / 100 },
	pg_lsn  => sub { sprintf '%X/%X', integer(0, $_[0] ? 1 : 1000), integer(0, $_[0] ? 9 : 1e9) },
	float4  => sub { $_[0] ? pick(0, -0.0, 1.5, 'NaN', 'Infinity', '-Infinity') : rand(1e6) - 5e5 },
	float8  => sub { $_[0] ? pick('0', '-0', '1.5', '-1.5', 'NaN', 'Infinity', '-Infinity') : rand(1e12) - 5e11 },
	numeric => sub { $_[0] ? pick('0', '1', '1.0', '1.00', '-1', 'NaN', '1e100', '-1e-20') : rand(1e9) - 5e8 },
	bool    => sub { pick('t', 'f') },
	text    => sub { $_[0] ? pick(@words, '') : word(1, 14) . (chance(0.03) ? 'x' x integer(20, 900) : '') },
	'text COLLATE "C"'        => sub { $_[0] ? pick(@words, '') : join('', map { pick('a' .. 'c') } 1 .. integer(1, 30)) },
	'text COLLATE "en-x-icu"' => sub { $_[0] ? pick(@words, '') : join('', map { pick('a', 'A', 'b', 'B', 'c', '-', ' ') } 1 .. integer(1, 12)) },
	varchar   => sub { $_[0] ? pick(@words) : join('', map { pick('A' .. 'F', 'a' .. 'f') } 1 .. integer(1, 10)) },
	'char(6)' => sub { pick(@words) },
	'"char"'  => sub { pick('a' .. 'z') },
	name      => sub { $_[0] ? pick(@words) : 'n' . integer(1, 100000) },
	bytea     => sub { '\\x' . join('', map { sprintf '%02x', integer(0, 255) } 1 .. integer(0, $_[0] ? 1 : 12)) },
	'bit(6)'  => sub { join '', map { $_[0] && $_ < 5 ? 0 : pick(0, 1) } 1 .. 6 },
	varbit    => sub { my $most = $_[0] ? 2 : 40; join '', map { pick(0, 1) } 1 .. integer(0, $most) },
	uuid      => sub {
		my $n = $_[0] ? integer(0, 20) : integer(0, 2**31);
		sprintf('%08x-0000-4000-8000-%012x', ($n * 2654435761) % 2**32, $n);
	},
	date        => sub { sprintf '%d-%02d-%02d', $_[0] ? 2026 : integer(1900, 2100), integer(1, $_[0] ? 2 : 12), integer(1, 28) },
	timestamptz => sub { sprintf '2026-%02d-%02d %02d:00+00', integer(1, $_[0] ? 1 : 12), integer(1, 28), integer(0, 23) },
	timestamp   => sub { sprintf '2026-%02d-%02d %02d:00', integer(1, $_[0] ? 1 : 12), integer(1, 28), integer(0, 23) },
	time        => sub { sprintf '%02d:%02d', integer(0, 23), $_[0] ? 0 : integer(0, 59) },
	timetz      => sub { sprintf '%02d:00%+03d', integer(0, 23), integer(-5, $_[0] ? -4 : 5) },
	interval    => sub { integer(-3, 3) . ' mons ' . integer(-40, 40) . ' days ' . integer(0, $_[0] ? 2 : 86400) . ' s' },
	inet        => sub { '10.' . integer(0, $_[0] ? 1 : 255) . '.' . integer(0, 3) . '.' . integer(0, 255) . pick('', '/8', '/16', '/24') },
	cidr        => sub { '10.' . integer(0, $_[0] ? 9 : 255) . pick('.0.0/16', '.4.0/24', '.4.4/32') },
	macaddr     => sub { my $most = $_[0] ? 1 : 255; join ':', map { sprintf '%02x', integer(0, $most) } 1 .. 6 },
	macaddr8    => sub { my $most = $_[0] ? 1 : 255; join ':', map { sprintf '%02x', integer(0, $most) } 1 .. 8 },
	'int4[]'    => sub { my $most = $_[0] ? 2 : 100; '{' . join(',', map { integer(0, $most) } 1 .. integer(0, 4)) . '}' },
	'text[]'    => sub { '{' . join(',', map { pick(@words) } 1 .. integer(0, $_[0] ? 1 : 4)) . '}' },
	int4range   => sub { chance(0.1) ? 'empty' : range($_[0] ? integer(0, 5) : integer(-1000, 1000)) },
	numrange    => sub { chance(0.1) ? pick('empty', '(,)', '(,3]', '[3,)') : range($_[0] ? integer(0, 5) : integer(-1000, 1000) / 8) },
	int4multirange => sub { '{' . join(',', map { range(20 * $_) } 1 .. integer(0, 3)) . '}' },
	jsonb       => sub { pick('null', 'true', '[]', '{}', integer(0, $_[0] ? 5 : 1000), '"' . pick(@words) . '"', '{"a": ' . integer(0, 9) . '}', '[1, ' . integer(0, 9) . ']') },
	tsvector    => sub { join ' ', map { pick(@words) } 1 .. integer(1, $_[0] ? 1 : 5) },
	tsquery     => sub { join ' & ', map { pick(@words) } 1 .. integer(1, $_[0] ? 1 : 3) },
	mood        => sub { pick('sad', 'even', 'glad', 'overjoyed') },
	pair        => sub { '(' . integer(0, $_[0] ? 3 : 1000) . ',' . pick(@words, '') . ')' },
	citext      => sub { $_[0] ? pick(@words, map { uc } @words) : join('', map { pick('a' .. 'd', 'A' .. 'D') } 1 .. integer(1, 8)) },
	hstore      => sub { join ',', map { 'k' . $_ . '=>' . integer(0, $_[0] ? 1 : 50) } 1 .. integer(0, 2) },
	ltree       => sub { my $most = $_[0] ? 2 : 5; join '.', map { pick('a' .. 'd') } 1 .. integer(1, $most) },
	ean13       => sub { ean($_[0] ? '20000000000' : '2') },
	isbn13      => sub { ean($_[0] ? '97800000000' : '978') });

# Types whose constants may also be given in another type of their family.
my %foreign = (
	int2 => [ 'int4', 'int8' ], int4 => [ 'int2', 'int8' ], int8 => [ 'int2', 'int4' ],
	float4 => ['float8'], float8 => ['float4'],
	date => [ 'timestamp', 'timestamptz' ], timestamp => [ 'date', 'timestamptz' ], timestamptz => [ 'date', 'timestamp' ],
	text => ['name'], name => ['text'], isbn13 => ['ean13']);

# Operators of a type that has others for its order.
my %operator = (hstore => { '<' => '#<#', '<=' => '#<=#', '>' => '#>#', '>=' => '#>=#' });

my @types = sort keys %literal;

sub types { return @types; }

# SQL that makes what of these the server does not have; extensions come into the schema that is first in the search path.
sub make_types
{
	return <<'SQL';
CREATE TYPE mood AS ENUM ('sad', 'even', 'glad', 'overjoyed');
CREATE TYPE pair AS (a int, b text);
CREATE EXTENSION citext SCHEMA differential;
CREATE EXTENSION hstore SCHEMA differential;
CREATE EXTENSION ltree SCHEMA differential;
CREATE EXTENSION isn SCHEMA differential;
SQL
}

sub quoted { my ($value, $type) = @_; $value =~ s/'/''/g; return "'$value'::$type"; }

sub base { my ($type) = @_; $type =~ s/ COLLATE.*//; return $type; }

# A value of a column: { type, narrow }.
sub literal
{
	my ($column) = @_;

	return quoted($literal{ $column->{type} }->($column->{narrow}), base($column->{type}));
}

sub constant
{
	my ($column) = @_;
	my $type = base($column->{type});

	# A name has the collation "C", by which the comparison then is: an index of text helps only where it has that collation, too.
	return literal($column) if !$foreign{$type} || $type eq 'text' && $column->{type} !~ /COLLATE "C"/ || chance(0.75);
	my $other = pick(@{ $foreign{$type} });
	my $value = $literal{$other}->($column->{narrow});
	# Not every EAN is an ISBN, but every ISBN is an EAN.
	$value = $literal{$type}->($column->{narrow}) if $other eq 'ean13';
	return quoted($value, $other);
}

sub comparison
{
	my ($column, @operators) = @_;
	my $chosen = pick(@operators);

	return '@@ ' . ($operator{ $column->{type} }{$chosen} // $chosen) . ' ' . constant($column);
}

# Predicates; @@ stands for the column's name.

# array_predicate(column, most): an equality with one of so many values at most.
sub array_predicate
{
	my ($column, $most) = @_;
	my $type = base($column->{type});
	my @values = map { chance(0.05) ? "NULL::$type" : literal($column) } 1 .. integer(1, $most);

	return '@@ = ANY (ARRAY[' . join(',', @values) . "]::${type}[])";
}

# key_predicates(columns): as many keys of an index as lie side by side: lists, and values, of its first columns, and then perhaps a range. Each
# as [ name, predicate ].
sub key_predicates
{
	my ($columns) = @_;
	my @made;

	for my $column (@$columns)
	{
		my $array = chance(0.7) && base($column->{type}) !~ /\[\]/;
		my $range = !$array && @made && chance(0.6);

		push @made, [ $column->{name}, $array ? array_predicate($column, pick(3, 12, 60)) : comparison($column, $range ? ('<', '<=', '>', '>=') : '=') ];
		last if $range;
	}
	return @made;
}

sub predicate
{
	my ($column) = @_;
	my $type = base($column->{type});

	return '@@ IS NULL'     if chance(0.06);
	return '@@ IS NOT NULL' if chance(0.06);
	return array_predicate($column, 6) if chance(0.15) && $type !~ /\[\]/;
	return comparison($column, '<', '<=', '>', '>=') . ' AND ' . comparison($column, '<', '<=', '>', '>=') if chance(0.2);
	return comparison($column, '=', '=', '<', '<=', '>', '>=');
}

sub named { my ($text, $name) = @_; $text =~ s/\@\@/$name/g; return $text; }

1;

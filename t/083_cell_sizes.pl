
# The sizes of an index's cells are those that its metapage names: indexes of version 1.0, whose cells had 16, 32 or 64 bytes, go on
# as they are, and what no index of their definition can have is refused. A build chooses sizes by the rows.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Metapage;
use Sherman;
use Test::More;

# Where a metapage has the sizes: of the cell, and behind that of the normalized key.
use constant CELL_BYTES => 92;

my $node = new_cluster('main');
# Metapages are changed by hand.
$node->append_conf('postgresql.conf', 'ignore_checksum_failure = on');
$node->restart;

# Columns, and the sizes of version 1.0: of the cell, and of the normalized key in it.
my @kinds = (
	[ 'u', 32, 24 ],
	[ 'u, v', 64, 56 ],
	[ 'u) INCLUDE (a', 64, 16 ],
	[ 'w', 32, 8 ],
	[ 'w) INCLUDE (a', 64, 16 ],
	[ 'a, b, w', 64, 24 ],
	[ 'a, r', 64, 16 ],
	[ 'j', 64, 8 ],
	[ 'a', 16, 8 ]);

# Gives a metapage other sizes, and returns those that it had; the server is stopped.
sub set_sizes
{
	my ($path, $cell, $norm) = @_;
	return join(' ', unpack('CC', metapage_change($path, CELL_BYTES, pack('CC', $cell, $norm))));
}

# All are whole, and as the table is.
sub agree
{
	my ($prefix, $when) = @_;
	my @problems = grep { state_of($node, "$prefix$_") ne 'ok' || check_index($node, "$prefix$_") ne '0' } 0 .. $#kinds;
	is("@problems", '', "$prefix: indexes agree with the table $when");
}

# An index over a table that is empty has the sizes of its definition; those of an unlogged one are in its init fork.
$node->safe_psql(
	'postgres', q{
	CREATE UNLOGGED TABLE t (id int, u uuid, v uuid, w text COLLATE "C", a int, b int, r float8, j jsonb);
	CREATE FUNCTION fill(first int, last int) RETURNS void LANGUAGE sql AS $$
		INSERT INTO t SELECT g, md5(g::text)::uuid, md5((-g)::text)::uuid, left(md5(g::text), 6 + g % 10) || '@example.com', g % 50, g % 7,
			g / 3.0, jsonb_build_object('n', g) FROM generate_series(first, last) g $$;
});
$node->safe_psql('postgres', "CREATE INDEX old_$_ ON t USING sherman ($kinds[$_][0])") for 0 .. $#kinds;
my @paths = map { metapage_path($node, "old_$_") } 0 .. $#kinds;
$node->safe_psql('postgres', 'CHECKPOINT');
$node->stop('immediate');
my @had = map { set_sizes("$paths[$_]_init", @{ $kinds[$_] }[ 1, 2 ]) } 0 .. $#kinds;
is("@had", '24 16 48 40 40 16 32 8 64 16 64 16 40 16 64 8 16 8', 'new indexes have cells of other sizes');
$node->start;
$node->safe_psql('postgres', 'SELECT fill(1, 4000); DELETE FROM t WHERE id % 5 = 0; VACUUM t; UPDATE t SET b = b + 1 WHERE id % 3 = 0');
agree('old_', 'that they were made for');
# Sizes are kept by what makes no new file.
$node->restart;
$node->safe_psql('postgres', 'SELECT fill(4001, 5000)');
agree('old_', 'after a restart');
$node->stop;
my @old = map { set_sizes($paths[$_], @{ $kinds[$_] }[ 1, 2 ]) } 0 .. $#kinds;
is("@old", join(' ', map { "$kinds[$_][1] $kinds[$_][2]" } 0 .. $#kinds), 'their metapages say how long their cells are');
$node->start;

# Beside them those that are made now, by what the rows are.
$node->safe_psql('postgres', "CREATE INDEX new_$_ ON t USING sherman ($kinds[$_][0])") for 0 .. $#kinds;
$node->safe_psql('postgres', 'SELECT fill(5001, 6000); DELETE FROM t WHERE id % 7 = 0; VACUUM t');
agree($_, 'beside the others') for 'old_', 'new_';
$node->safe_psql('postgres', "REINDEX INDEX old_$_") for 0 .. $#kinds;
agree('old_', 'behind REINDEX');
@paths = map { metapage_path($node, "new_$_") } 0 .. $#kinds;
my @remade = map { metapage_path($node, "old_$_") } 0 .. $#kinds;
$node->stop;
my @new = map { set_sizes($paths[$_], 16, 16) } 0 .. $#kinds;
is("@new", '24 16 48 40 40 16 40 8 40 16 48 16 40 16 48 8 16 8', 'a build chooses cells by the rows');
# What the last kind has would cut the keys of the others.
is(join(' ', map { set_sizes($remade[$_], 16, 8) } 0 .. $#kinds), "@new", 'as REINDEX does');

# What no index of its definition can have: a normalized key that has no room, or that lacks a part.
$node->start;
for my $index ((map { "new_$_" } 0 .. $#kinds), (map { "old_$_" } 0 .. $#kinds - 1))
{
	like(($node->psql('postgres', "SELECT sherman_check('$index')"))[2], qr/written by another version/, "$index is refused");
}
is($node->safe_psql('postgres', "SET enable_seqscan = off; SET client_min_messages = error; SELECT count(*) FROM t WHERE u = md5('8')::uuid"), '1',
	'and not used');
$node->safe_psql('postgres', 'REINDEX TABLE t');
agree($_, 'behind REINDEX of those that were refused') for 'old_', 'new_';
$node->stop;

done_testing();

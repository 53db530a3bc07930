
# `= ANY` of neighboring keys while the leaves that were read ahead for it are split, and images of theirs are freed: what a leaf was judged by is
# read anew, and is another one then. Each scan is compared with one of the table, by the same snapshot.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

use constant ROWS => 3000;

my $far = Msd->new('far', transport => 'tcp');
my $node = new_cluster('spans', conf => "sherman.memory_nodes = '" . $far->address . "'\nsherman.cache_size = 1MB\nautovacuum = off\n");

# Rows of which every third one is wanted. Their keys are the same for longer than entries keep of them, so that a leaf is read with its images;
# every tenth one is dead before any scan begins.
my $key = q{to_char(g / 10, 'FM00000') || repeat(' of the same', 4) || to_char(g, 'FM00000') || md5(g::text) || md5((-g)::text)};
sub fill
{
	$node->safe_psql('postgres', "DROP TABLE IF EXISTS rows; CREATE TABLE rows (t text, g int); ALTER TABLE rows ALTER t SET STORAGE PLAIN;
		INSERT INTO rows SELECT $key, g FROM generate_series(2, 2 * @{[ ROWS ]}, 2) g; CREATE INDEX rows_t ON rows USING sherman (t); ANALYZE rows;
		DELETE FROM rows WHERE g % 4 = 0 AND g % 6 <> 0");
	return;
}

# In one session with a cursor over the wanted rows: as many rows are fetched as given, then the rows between come, and the dead ones go; then the rest.
# Returns how many rows came, and how many are missing, or too many, by the snapshot of the cursor.
sub meanwhile
{
	my ($direction, $first) = @_;

	fill();
	my $session = $node->background_psql('postgres', on_error_stop => 1);
	my $wanted = "ARRAY(SELECT $key FROM generate_series(6, 2 * @{[ ROWS ]}, 6) g)";

	$session->query_safe("SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET jit = off;
		BEGIN ISOLATION LEVEL REPEATABLE READ;
		DECLARE wanted CURSOR FOR SELECT g FROM rows WHERE t = ANY ($wanted) ORDER BY t $direction;");
	my @came = split /\n/, $session->query_safe("FETCH $first FROM wanted");
	is(scalar @came, $first, "$direction: the first $first rows");
	$node->safe_psql('postgres', "VACUUM (INDEX_CLEANUP ON) rows; INSERT INTO rows SELECT $key, g FROM generate_series(1, 2 * @{[ ROWS ]}, 2) g");
	push @came, split /\n/, $session->query_safe('FETCH ALL FROM wanted');
	my @there = split /\n/, $session->query_safe('CLOSE wanted; SET enable_indexscan = off; SET enable_seqscan = on; SELECT g FROM rows WHERE g % 6 = 0');
	$session->quit;
	my %came = map { $_ => 1 } @came;
	my %there = map { $_ => 1 } @there;
	return sprintf('%d missing, %d too many, %d twice', scalar(grep { !$came{$_} } @there), scalar(grep { !$there{$_} } @came), @came - keys %came);
}

foreach my $direction ('ASC', 'DESC')
{
	is(meanwhile($direction, $_), '0 missing, 0 too many, 0 twice', "$direction, split behind $_ rows") foreach 1, 30, 70, 150, 400;
}

done_testing();


# Crash points of indexes with replicas = 1: ends at every step between the two copies, between them and WAL, and while a memory node
# that is lost is given up.  Behind each the index finds what its table has; healed, its copies are the same, or it has but one.
# With SHERMAN_CRASH_POINTS=all no step is left out (as t/037_crash_points).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use CrashPoints;
use Msd;
use Sherman;
use Test::More;

my @msd = (Msd->new('a'), Msd->new('b'));
my $points = CrashPoints->new(conf => "sherman.failover_after = 0\nsherman.attach_timeout = 1min\nsherman.gone_after = -1\n"
	  . "sherman.memory_nodes = '" . join(', ', map { $_->address } @msd) . "'\n" . Msd::configuration());
my $node = $points->{node};

my $table = q{CREATE TABLE T (k int, w text); INSERT INTO T SELECT g * 10, 'first' FROM generate_series(1, 10) g};
my $index = 'CREATE INDEX T_k ON T USING sherman (k) WITH (replicas = 1)';
my $base = "$table; $index";
my $one = q{INSERT INTO T VALUES (G * 7919 % 10007, 'more')};

sub all_attached
{
	$node->poll_query_until('postgres', q{SELECT count(*) = 2 AND bool_and(state = 'attached') FROM sherman_stat_memory_nodes}) or die 'not attached';
	return;
}

# Healed, an index has two copies that are the same, or one.
sub copies_are_well
{
	my $what = shift;

	is($node->safe_psql('postgres', q{SELECT coalesce(sum(sherman_resync(indexrelid)), 0) FROM sherman_stat_indexes WHERE replicas NOT IN ('one', 'none')}),
		'0', "$what: copies are the same");
	return;
}

# The table's index anew, until its home is that memory node: the other one has the copy.
sub home_at
{
	my $position = shift;

	return qq{DO 'BEGIN WHILE (SELECT memory_nodes[1] <> $position FROM sherman_stat_indexes WHERE indexrelid = ''T_k''::regclass)
		LOOP REINDEX INDEX T_k; END LOOP; END'};
}

# One of the two is away while the statement runs.
my %lost = (
	ready => sub { $msd[0]->start unless defined $msd[0]{pid}; all_attached(); },
	before => sub {
		$msd[0]->crash;
		$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM sherman_stat_memory_nodes WHERE state = 'unreachable'}) or die 'not lost';
		$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM sherman_stat_indexes WHERE state <> 'ok'}) or die 'no copy stands in';
	},
	between => sub { $msd[0]->start; });

my $leaf_split = $points->insert_with_most_steps($base, $one, 81, 160);

$points->enumerate(
	name => 'insert with a copy',
	prepare => $base,
	act => q{INSERT INTO T VALUES (55, 'new')},
	after => \&copies_are_well,
	cancel => 1);
$points->enumerate(
	name => 'split of a leaf with a copy',
	prepare => "$base; INSERT INTO T SELECT g * 7919 % 10007, 'more' FROM generate_series(1, $leaf_split - 1) g",
	act => $one =~ s/\bG\b/$leaf_split/r,
	after => \&copies_are_well,
	most => 20);
$points->enumerate(
	name => 'CREATE INDEX with a copy',
	prepare => $table,
	act => $index,
	after => \&copies_are_well,
	met => [ 'before call COPY', 'after call COPY' ],
	most => 20);
foreach my $half (qw(home copy))
{
	$points->enumerate(
		%lost,
		name => "insert when the memory node of the $half is lost",
		prepare => "$base; " . home_at($half eq 'home' ? 0 : 1),
		act => q{INSERT INTO T VALUES (55, 'new')},
		after => sub {
			my $what = shift;

			copies_are_well($what);
			is($node->safe_psql('postgres', q{SELECT count(*) > 0 FROM sherman_stat_indexes WHERE replicas = 'one'}), 't', "$what: some have given it up");
			$msd[0]->start unless defined $msd[0]{pid};
		},
		met => [ 'before flush of WAL', 'after flush of WAL' ]);
}
note("$points->{points} points");
is($points->{wrong}, 0, 'nothing is wrong');
$node->stop;
done_testing();

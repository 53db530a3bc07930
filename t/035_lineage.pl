
# Whose history an index belongs to: before an index is changed in an epoch its metapage says so, by WAL.  An index that was changed in
# another history than the tables were is broken, whatever numbers of epochs and LSNs say (N4).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Copies;
use Msd;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $msd = Msd->new('a', size => 128);
my $conf = "sherman.attach_timeout = 10s\nsherman.operation_timeout = 2s\nsherman.memory_nodes = '" . $msd->address . "'\nsherman.embedded_memory = 0\n" . Msd::configuration();
my $node = new_cluster('main', allows_streaming => 1, conf => "$conf\nwal_log_hints = on\nmax_wal_size = 1GB\nwal_keep_size = 512MB\nbgwriter_lru_maxpages = 0\n");

sub broken_for
{
	my ($server, $index) = @_;

	state_of($server, $index);
	return $server->safe_psql('postgres', "SELECT state || ': ' || reason FROM sherman_stat_indexes WHERE indexrelid = '$index'::regclass");
}

# What is in the data directory goes elsewhere, or comes from there: the directory stays, and so whom the server takes itself for.
sub move_contents
{
	my ($from, $to) = @_;

	mkdir $to, 0700;
	foreach my $file (glob("$from/*"))
	{
		my $name = (split(/\//, $file))[-1];

		rename $file, "$to/$name" or die "$file: $!";
	}
	return;
}

$node->safe_psql(
	'postgres', q{
	CREATE TABLE rows (id int, word text);
	INSERT INTO rows SELECT g, md5(g::text) FROM generate_series(1, 3000) g;
	CREATE INDEX rows_id ON rows USING sherman (id);
	CREATE TABLE others (id int);
	INSERT INTO others SELECT generate_series(1, 100);
	CREATE INDEX others_id ON others USING sherman (id);
});

#
# Epochs of one history: each that changes an index says so in its metapage, and only once.
#
sub metapage
{
	return $node->safe_psql('postgres', q{CHECKPOINT; SELECT md5(pg_read_binary_file(pg_relation_filepath('rows_id')))});
}

foreach my $run (1 .. 2)
{
	$node->restart;
	is(state_of($node, 'rows_id'), 'ok', "run $run: the index is good");
	my $before = metapage();
	$node->safe_psql('postgres', "SELECT count(*) FROM rows WHERE id = 1");
	is(metapage(), $before, "run $run: reading leaves the metapage alone");
	$node->safe_psql('postgres', "INSERT INTO rows SELECT 100000 + g, 'run' FROM generate_series(1, 100) g");
	my $behind = metapage();
	isnt($behind, $before, "run $run: a change writes it");
	$node->safe_psql('postgres', "INSERT INTO rows SELECT 200000 + g, 'run' FROM generate_series(1, 100) g; DELETE FROM rows WHERE id = 17 + $run; VACUUM rows");
	is(metapage(), $behind, "run $run: once");
	index_agrees($node, "run $run");
}

# The memory node ends in between: the metapage says so, the tree's record does not.
$node->restart;
is(state_of($node, 'rows_id'), 'ok', 'the index is good');
isnt($node->psql('postgres', "SET enable_seqscan = off; SELECT count(*) FROM rows WHERE id = 1;\n\\! kill -STOP $msd->{pid}\nINSERT INTO rows VALUES (0)"), 0,
	'a change that the memory node does not answer fails');
$msd->crash;
$msd->start;
$node->restart;
is(state_of($node, 'rows_id'), 'ok', 'the index is good without it');
$node->safe_psql('postgres', 'INSERT INTO rows VALUES (0)');
$node->restart;
is(state_of($node, 'rows_id'), 'ok', 'and behind the next change');
index_agrees($node, 'behind both');

# What the metapage says is durable before the memory node knows it, whatever becomes of the row.
$node->restart;
is(state_of($node, 'rows_id'), 'ok', 'the index is good');
lose($node, 'SET synchronous_commit = off; INSERT INTO rows VALUES (0)');
$node->start;
is(state_of($node, 'rows_id'), 'healing', 'a crash behind the first change of an epoch');
is($node->safe_psql('postgres', q{SELECT sherman_heal('rows_id')}), '0', 'is healed');
index_agrees($node, 'healed');

#
# Two runs from one beginning: the tables of the first, the memory of the second one. All numbers of epochs fit: else nothing in that
# memory would be believed (t/060_place).
#
my $data = $node->data_dir;
my $aside = $node->basedir;
$node->stop;
$msd->stop;
mkdir "$aside/copy", 0700;
system_or_bail('cp', '-a', "$data/.", "$aside/copy");
system_or_bail('cp', '-a', '--sparse=always', $msd->{memory}, "$msd->{memory}.copy");
$msd->start;
$node->start;
$node->safe_psql('postgres', q{INSERT INTO rows SELECT 10000 + g, 'first' FROM generate_series(1, 1000) g; DELETE FROM rows WHERE id < 1000; VACUUM rows});
index_agrees($node, 'the first one');
$node->stop;
$msd->stop;
move_contents($data, "$aside/first");
move_contents("$aside/copy", $data);
rename "$msd->{memory}.copy", $msd->{memory} or die "$msd->{memory}: $!";
$msd->start;
$node->start;
is(state_of($node, 'rows_id'), 'ok', 'set back altogether, the index is good');
$node->safe_psql('postgres', q{INSERT INTO rows SELECT 20000 + g, 'second' FROM generate_series(1, 1000) g; DELETE FROM rows WHERE id BETWEEN 1000 AND 2000; VACUUM rows});
index_agrees($node, 'the second one');
$node->stop;
move_contents($data, "$aside/second");
move_contents("$aside/first", $data);
steal_epoch("$aside/second", $data, $msd->{memory});
$node->start;
like(broken_for($node, 'rows_id'), qr/^broken: .* another history/, 'an index that was changed in the other history is broken');
is(state_of($node, 'others_id'), 'ok', 'one that was not changed is good');
index_agrees($node, 'the first one again');
$node->safe_psql('postgres', q{INSERT INTO rows VALUES (1)});
$node->restart;
like(broken_for($node, 'rows_id'), qr/^broken: .* another history/, 'it stays so');
$node->safe_psql('postgres', 'REINDEX TABLE rows');
is(state_of($node, 'rows_id'), 'ok', 'REINDEX makes it good');
index_agrees($node, 'rebuilt');

$node->stop;
done_testing();

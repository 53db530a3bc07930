
# Indexes have the images that they were made with: whole ones, of versions that knew no others, go on beside brief ones. Their
# metapages say which. REINDEX makes them brief.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Metapage;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

# Before a metapage's checksum: the kinds of 32 columns, of which the first has the flag, and the versions of as many collations.
use constant { KINDS => -32 * 4 - 32, BRIEF => 0x80 };

my $node = new_cluster('main', memory => 1024, extra => [ '--encoding=UTF8', '--locale=C.UTF-8' ]);
# Metapages are changed by hand.
$node->append_conf('postgresql.conf', "ignore_checksum_failure = on\nmax_locks_per_transaction = 256\njit = off\nsherman.enable_lookahead = off");
$node->restart;

# Changes the flag in an index's metapage, and returns whether it was set; the server is stopped.
sub set_brief
{
	my ($path, $brief) = @_;
	my $kind = unpack('C', metapage_change($path, KINDS, "\0"));

	metapage_change($path, KINDS, pack('C', ($kind & ~BRIEF) | ($brief ? BRIEF : 0)));
	return ($kind & BRIEF) != 0;
}

sub run
{
	my ($statement) = @_;
	return $node->safe_psql('postgres', "SET client_min_messages = warning; SET search_path = public; $statement");
}

# All that is in the table comes back from the index.
sub agree
{
	my ($when) = @_;
	is(run('SELECT * FROM judge_all()'), '98|98|98', "what comes back from the indexes is what the tables have, $when");
}

run(join("\n", map { slurp_file("$FindBin::RealBin/../sql/include/$_.psql") } qw(agrees samples index_only key_images)));

# An index over an unlogged table that is empty is its definition alone, in its init fork: so it is made by another version.
run("SELECT make_all('UNLOGGED', 0)");
my @paths = map { metapage_path($node, "image_${_}_index") } 1 .. 98;
run('CHECKPOINT');
$node->stop('immediate');
my $brief = grep { set_brief("${_}_init", 0) } @paths;
cmp_ok($brief, '>', 60, 'new indexes have brief images, but for those without any');
$node->start;
run(q{SELECT on_all('INSERT INTO %s SELECT * FROM all_rows')});
agree('with whole images');
my $whole_bytes = run('SELECT sum(sherman_relation_size(c.oid)) FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE amname = \'sherman\'');
$node->restart;
run(q{SELECT on_all('INSERT INTO %s SELECT * FROM all_rows WHERE id %% 3 = 0'); SELECT on_all('DELETE FROM %s WHERE id %% 7 = 0')});
$node->safe_psql('postgres', join(' ', map { "VACUUM image_$_;" } 1 .. 98));
agree('after a restart, changes and VACUUM');
$node->stop;
is(scalar(grep { set_brief($_, 0) } @paths), 0, 'indexes with whole images say so for ever');
$node->start;
agree('as before');

run(q{SELECT on_all('REINDEX TABLE %s')});
agree('behind REINDEX');
@paths = map { metapage_path($node, "image_${_}_index") } 1 .. 98;
$node->stop;
is(scalar(grep { set_brief($_, 1) } @paths), $brief, 'which made brief images of all that can have them');
$node->stop;

done_testing();


# Promotions in a row: the first heir of a server's indexes is deposed before anybody has followed it, and another standby is promoted in its place, to a
# timeline of the same number.  That one has the indexes which the first one has not changed; of the others it believes nothing.  An heir that lives
# is not fenced, one that comes back fences nobody.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Sherman;
use StandbyLoad;
use Takeover;
use Test::More;

my $msd = Msd->new('a', size => 128, transport => 'tls');
my $old = new_cluster('old',
	allows_streaming => 1,
	conf => "sherman.operation_timeout = 5s\nsherman.attach_timeout = 60s\nsherman.take_over = auto\nsherman.auto_rebuild = off\n"
	  . "sherman.memory_nodes = '" . $msd->address . "'\n"
	  . Msd::configuration()
	  . "wal_keep_size = 512MB\nautovacuum = off\nrecovery_target_timeline = latest\n");

prepare_rows($old);
$old->safe_psql('postgres', q{
	CREATE TABLE busy (id int);
	INSERT INTO busy SELECT generate_series(1, 2000);
	CREATE INDEX busy_id ON busy USING sherman (id);
	CREATE TABLE still (id int);
	INSERT INTO still SELECT generate_series(1, 2000);
	CREATE INDEX still_id ON still USING sherman (id);
	ANALYZE});

sub standby_of
{
	my ($name, $source) = @_;
	my $standby = PostgreSQL::Test::Cluster->new($name);

	$source->safe_psql('postgres', 'ALTER SYSTEM RESET primary_conninfo');
	$source->backup($name);
	$standby->init_from_backup($source, $name, has_streaming => 1);
	$standby->start;
	return $standby;
}

my ($one, $two, $three) = map { standby_of($_, $old) } qw(one two three);
my $rows = q{'rows_id', 'rows_word', 'rows_part', 'rows_pair'};

sub states_of
{
	my ($server, $indexes) = @_;

	return $server->safe_psql('postgres', "SELECT string_agg(DISTINCT state, ' ') FROM sherman_stat_indexes WHERE indexrelname IN ($indexes)");
}

sub trees_of
{
	my ($server, $indexes) = @_;

	return $server->safe_psql('postgres', "SELECT string_agg(tree, ' ' ORDER BY indexrelname) FROM sherman_stat_indexes WHERE indexrelname IN ($indexes)");
}

sub right
{
	my ($server, $what) = @_;
	my ($done, $canceled, $bad) = compare_all($server);

	is($bad, '', $what . ': ' . $server->name . ' answers rightly');
	is($done, 18, $what . ': ' . $server->name . ' answers all');
	foreach my $table (qw(busy still))
	{
		my $query = "SELECT count(*), sum(id) FROM $table WHERE id > 1500";

		is($server->safe_psql('postgres', "SET enable_seqscan = off; $query"), $server->safe_psql('postgres', "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; $query"),
			$what . ": table $table at " . $server->name);
	}
	return;
}

# These indexes are the server's own, and whole, and none of them was rebuilt.
sub has
{
	my ($server, $what, $indexes, $trees) = @_;

	unlike(states_of($server, $indexes), qr/broken|unreachable|attaching/, $what . ': ' . $server->name . ' has the indexes');
	right($server, $what);
	$server->safe_psql('postgres', "SELECT sherman_heal(indexrelid) FROM sherman_stat_indexes WHERE indexrelname IN ($indexes)");
	is($server->safe_psql('postgres', "SELECT sum(sherman_check(indexrelid, true)) FROM sherman_stat_indexes WHERE indexrelname IN ($indexes)"), '0', "$what: they are whole");
	is(trees_of($server, $indexes), $trees, "$what: and the same");
	return;
}

# The launcher has found out that they are another server's.
sub is_a_copy
{
	my ($server, $what) = @_;

	$server->wait_for_log(qr/another server has taken over the sherman indexes of this one/);
	wait_attached($server);
	is($server->safe_psql('postgres', q{SELECT string_agg(DISTINCT state, ' ') FROM sherman_stat_indexes}), 'broken', $what . ': ' . $server->name . ' has no indexes');
	right($server, $what);
	return;
}

wait_noted($old);
change_rows($old, 1);
$old->wait_for_catchup($_) foreach $one, $two, $three;
my $trees = trees_of($old, $rows);
my $still = trees_of($old, q{'still_id'});
my $timelines = 'SELECT timeline_id FROM pg_control_checkpoint()';

# No standby follows any other server by itself.
foreach my $standby ($one, $two, $three)
{
	$standby->safe_psql('postgres', q{ALTER SYSTEM SET primary_conninfo = ''});
	$standby->reload;
}
$old->stop('immediate');

#
# The first heir changes one index, and dies.
#
$one->promote;
wait_attached($one);
is(trees_of($one, $rows), $trees, 'the first heir has them');
$one->safe_psql('postgres', 'DELETE FROM busy WHERE id > 1900; VACUUM busy; INSERT INTO busy SELECT generate_series(3001, 3100)');

# Whom it leaves behind reads, and is nobody that could have changed anything.
my $left = standby_of('left', $one);
ok($left->poll_query_until('postgres', q{SELECT bool_or(state = 'ok') FROM sherman_stat_indexes}), 'a standby of it reads');
$one->stop('immediate');

# Who was not promoted takes nothing from one that was, whether that lives or not.
$old->start;
is_a_copy($old, 'while the first heir is away');
$old->stop;
$two->promote;
wait_attached($two);
ok(!$two->log_contains(qr/promoted as well/), 'no reader is waited for');
is($two->safe_psql('postgres', "CHECKPOINT; $timelines"), '2', 'the second one is in a timeline of the number that the first one had');
has($two, 'promoted behind one that died', $rows, $trees);
is(states_of($two, q{'busy_id'}), 'broken', 'what that one has changed is broken');
like($two->safe_psql('postgres', q{SELECT reason FROM sherman_stat_indexes WHERE indexrelname = 'busy_id'}), qr/another|history/, 'and it is said why');
change_rows($two, 2);
right($two, 'promoted behind one that died, and changed');

#
# The first one comes back, as the primary that it was: it may not have them.
#
$one->start;
is_a_copy($one, 'come back');
change_rows($one, 3);
has($two, 'beside the one that came back', $rows, $trees);
$one->stop;
$left->stop;

#
# A third one is promoted while the second one lives: it waits, as the memory node may only not have noticed yet; then the second one dies.
#
$three->promote;
$three->poll_query_until('postgres', q{SELECT bool_or(reason LIKE '%promoted as well%') FROM sherman_stat_memory_nodes}) or die 'it does not say that it waits';
has($two, 'beside one that waits', $rows, $trees);
$two->stop('immediate');
wait_attached($three);
has($three, 'promoted behind one that lived for a while', q{'still_id'}, $still);
is(states_of($three, "'busy_id', $rows"), 'broken', 'what others have changed is broken');
$three->safe_psql('postgres', 'REINDEX TABLE rows; REINDEX TABLE busy');
$trees = trees_of($three, $rows);

#
# The second one, which lives again, sees that it was deposed.
#
$two->start;
is_a_copy($two, 'deposed');
has($three, 'beside one that was deposed', $rows, $trees);
$two->stop;

#
# A primary that has followed another one without pg_rewind, and is not to take over: promoted beside that one it fences nobody.
#
my $four = standby_of('four', $three);
wait_noted($three);
change_rows($three, 4);
$three->wait_for_catchup($four);
$three->stop;
$four->promote;
wait_attached($four);
has($four, 'switchover', $rows, $trees);
$three->append_conf('postgresql.conf', "sherman.take_over = manual\nprimary_conninfo = '" . $four->connstr . " application_name=three'\n");
$three->set_standby_mode;
$three->start;
change_rows($four, 5);
$four->wait_for_catchup($three);
$three->promote;
is_a_copy($three, 'it was a standby');
has($four, 'beside a former primary', $rows, $trees);

unlike(slurp_file($_->logfile), qr/PANIC|TRAP|terminated by signal/, $_->name . ' has not crashed') foreach $old, $one, $two, $three, $four, $left;
$_->stop foreach $three, $four;
done_testing();

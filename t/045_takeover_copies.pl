
# Taking over a cut history (t/041_takeover) whose indexes have copies: with both memory nodes there, with one of them away at the time,
# and where the server that is taken over from has given one up, before the cut or behind it.  What the index says is what the table
# says, always: healed, broken or unreachable.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my @msd = (Msd->new('a', size => 128), Msd->new('b', size => 128));
my $conf = "sherman.attach_timeout = 2min\nsherman.failover_after = 200ms\nsherman.gone_after = -1\nsherman.memory_nodes = '"
  . join(', ', map { $_->address } @msd) . "'\n" . Msd::configuration();

sub shown
{
	my ($server, $columns) = @_;

	return $server->safe_psql('postgres', "SELECT $columns FROM sherman_stat_indexes WHERE indexrelid = 'rows_id'::regclass");
}

# The index anew, until its home is that memory node.
sub rebuild_at
{
	my ($server, $index, $position) = @_;

	$server->safe_psql('postgres', "DO 'BEGIN LOOP REINDEX INDEX $index;
		EXIT WHEN (SELECT memory_nodes[1] = $position FROM sherman_stat_indexes WHERE indexrelid = ''$index''::regclass); END LOOP; END'");
	return;
}

# The daemons of the index's home and of its copy.
sub pair
{
	my $server = shift;

	shown($server, 'memory_nodes') =~ /^\{(\d),(\d)\}$/ or die 'not on two memory nodes';
	return ($1, $2);
}

sub wait_attached
{
	my ($server, $count) = @_;

	$server->poll_query_until('postgres',
		"SELECT NOT pg_is_in_recovery() AND (SELECT count(*) = $count FROM sherman_stat_memory_nodes WHERE state = 'attached')") or die 'not attached';
	return;
}

sub wait_lost
{
	my ($server, $position) = @_;

	$server->poll_query_until('postgres', "SELECT state = 'unreachable' FROM sherman_stat_memory_nodes WHERE position = $position") or die 'not lost';
	return;
}

my $rows = 3000;

sub add_rows
{
	my ($server, $word) = @_;

	$server->safe_psql('postgres', "INSERT INTO rows SELECT $rows + g, '$word' FROM generate_series(1, 1000) g");
	$rows += 1000;
	return;
}

# A standby of the server that has all that it has, and gets nothing more: the cut.
sub cut
{
	my ($server, $name, $text) = @_;
	my $heir = PostgreSQL::Test::Cluster->new($name);

	$server->backup($name);
	$heir->init_from_backup($server, $name, has_streaming => 1);
	$heir->append_conf('postgresql.conf', $text // '');
	$heir->start;
	# It waits for what it lacks.
	is($heir->safe_psql('postgres', 'SELECT sherman_take_over()'), '', "$name is to take over");
	add_rows($server, $name);
	$server->wait_for_catchup($heir);
	$heir->safe_psql('postgres', q{ALTER SYSTEM SET primary_conninfo = ''});
	$heir->reload;
	$heir->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_stat_wal_receiver') or die 'still receiving';
	return $heir;
}

# Promoted, it has so many memory nodes.
sub take_over
{
	my ($heir, $count) = @_;

	$heir->promote;
	wait_attached($heir, $count);
	$heir->safe_psql('postgres', 'ALTER SYSTEM RESET primary_conninfo');
	return;
}

# Who was not to wait for what is lost does so from now on.
sub patient
{
	my $server = shift;

	$server->append_conf('postgresql.conf', "sherman.attach_timeout = 2min\n");
	$server->reload;
	$server->poll_query_until('postgres', q{SELECT current_setting('sherman.attach_timeout') = '2min'}) or die 'not patient';
	return;
}

# What is in doubt is read rightly, also with rows in the places of those that were lost; and healed.
sub heals
{
	my ($server, $copies, $what) = @_;

	is(state_of($server, 'rows_id'), 'healing', "$what: the index is in doubt");
	index_agrees($server, $what);
	$server->safe_psql('postgres', "INSERT INTO rows SELECT 1000000 + g, 'new' FROM generate_series(1, 3000) g");
	index_agrees($server, "$what, with new rows");
	is($server->safe_psql('postgres', q{SELECT sherman_heal('rows_id')}), '0', "$what: it is healed");
	is(shown($server, 'state, replicas'), "ok|$copies", "$what: and good");
	is(check_index($server, 'rows_id'), '0', "$what: and whole");
	is($server->safe_psql('postgres', q{SELECT sherman_resync('rows_id')}), '0', "$what: copies are the same") if $copies eq 'both';
	index_agrees($server, "$what, healed");
	$server->safe_psql('postgres', 'DELETE FROM rows WHERE id > 1000000');
	return;
}

my $first = new_cluster('first',
	allows_streaming => 1,
	extra => ['--wal-segsize=1'],
	conf => "${conf}wal_keep_size = 64MB\nmin_wal_size = 2MB\nbgwriter_lru_maxpages = 0\n");

$first->safe_psql(
	'postgres', q{
	CREATE TABLE rows (id int, word text);
	INSERT INTO rows SELECT g, md5(g::text) FROM generate_series(1, 3000) g;
	CREATE INDEX rows_id ON rows USING sherman (id) WITH (replicas = 1);
	CREATE TABLE quiet AS SELECT g AS id FROM generate_series(1, 1000) g;
	CREATE INDEX quiet_home ON quiet USING sherman (id) WITH (replicas = 1);
	CREATE INDEX quiet_copy ON quiet USING sherman (id) WITH (replicas = 1);
	CREATE TABLE others AS SELECT g AS id FROM generate_series(1, 1000) g;
	CREATE INDEX others_id ON others USING sherman (id) WITH (replicas = 1);
});
is(shown($first, 'replicas'), 'both', 'the index has a copy');

# ---- Both are there. The server that was taken over from lives; behind the cut it has taken entries away from one index.

my $second = cut($first, 'second');
add_rows($first, 'lost');
$first->safe_psql('postgres', 'DELETE FROM others WHERE id <= 500; VACUUM others');
take_over($second, 2);
is(shown($second, 'replicas'), 'in doubt', 'taken over, copies are in doubt');
is(state_of($second, 'others_id'), 'broken', 'removed behind the cut: broken');
is($second->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM others WHERE id <= 500'), '500', 'its rows are there');
$second->safe_psql('postgres', 'REINDEX INDEX others_id');
is($second->safe_psql('postgres', q{SELECT state, replicas FROM sherman_stat_indexes WHERE indexrelid = 'others_id'::regclass}), 'ok|both', 'rebuilt, it has a copy');
is(check_index($second, 'others_id'), '0', 'and is whole');
heals($second, 'both', 'both are there');
my ($stdout, $stderr);
isnt($first->psql('postgres', "\\set VERBOSITY verbose\nSET statement_timeout = '60s'; INSERT INTO rows VALUES (-1)", stderr => \$stderr), 0, 'the old one writes nothing');
like($stderr, qr/ERROR:  08006/, 'with 08006');
index_agrees($first, 'the old one');
$first->stop('immediate');

# ---- Behind the cut the home is lost, and the old one goes on with the copy alone: that is not what the new one takes for the index.

# Two indexes are not changed in the run of the cut; the one has its home where rows_id has it, the other where that has its copy.
my ($home, $copy) = pair($second);
rebuild_at($second, 'quiet_home', $home);
rebuild_at($second, 'quiet_copy', $copy);
$second->restart;
wait_attached($second, 2);
my $third = cut($second, 'third', "sherman.attach_timeout = 2s\n");
$msd[$home]->crash;
wait_lost($second, $home);
add_rows($second, 'lost');
is(shown($second, 'replicas, memory_nodes'), "one|{$copy}", 'the old one is on the copy alone');
$second->safe_psql('postgres', 'INSERT INTO quiet SELECT g FROM generate_series(2001, 3000) g');
$second->stop('immediate');
take_over($third, 1);
is(state_of($third, 'rows_id'), 'unreachable', 'home lost behind the cut: a copy in doubt does not stand in');
index_agrees($third, 'home lost behind the cut');
$msd[$home]->start;
wait_attached($third, 2);
is($third->safe_psql('postgres', "SELECT state, replicas FROM sherman_stat_indexes WHERE indexrelid = 'quiet_home'::regclass"),
	'healing|in doubt', 'an index whose copy alone was changed for the first time behind the cut is in doubt, too');
is($third->safe_psql('postgres', "SELECT state FROM sherman_stat_indexes WHERE indexrelid = 'quiet_copy'::regclass"),
	'broken', 'one whose home was is broken: it is of another history');
heals($third, 'both', 'home is back');
is($third->safe_psql('postgres', q{SELECT sherman_heal('quiet_home'), sherman_resync('quiet_home'), sherman_check('quiet_home', true)}),
	'0|0|0', 'healed, its copies are the same, and it has what the table has');

# ---- The copy is lost behind the cut: the home has everything.

patient($third);
($home, $copy) = pair($third);
my $fourth = cut($third, 'fourth', "sherman.attach_timeout = 2s\n");
$msd[$copy]->crash;
wait_lost($third, $copy);
add_rows($third, 'lost');
is(shown($third, 'replicas, memory_nodes'), "one|{$home}", 'the old one is on its home alone');
$third->stop('immediate');
take_over($fourth, 1);
is(state_of($fourth, 'rows_id'), 'healing', 'copy lost behind the cut: its home is good');
patient($fourth);
heals($fourth, 'one', 'copy lost behind the cut');
$msd[$copy]->start;
wait_attached($fourth, 2);
is(shown($fourth, 'replicas, memory_nodes'), "one|{$home}", 'it stays given up');
index_agrees($fourth, 'the copy is back');

# ---- The home is given up before the cut: what has come back of it is not looked at.

$fourth->safe_psql('postgres', 'REINDEX INDEX rows_id');
($home, $copy) = pair($fourth);
$msd[$home]->crash;
wait_lost($fourth, $home);
add_rows($fourth, 'alone');
is(shown($fourth, 'replicas, memory_nodes'), "one|{$copy}", 'on the copy alone, before the cut');
my $fifth = cut($fourth, 'fifth');
add_rows($fourth, 'lost');
$fourth->stop('immediate');
$msd[$home]->start;
take_over($fifth, 2);
is(shown($fifth, 'memory_nodes'), "{$copy}", 'who was given up stays so');
heals($fifth, 'one', 'home given up before the cut');

unlike(slurp_file($_->logfile), qr/PANIC|TRAP/, $_->name . ': no process failed') foreach $first, $second, $third, $fourth, $fifth;

$fifth->stop;
done_testing();

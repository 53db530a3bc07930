
# Indexes with replicas = 1: the loss of a memory node costs no rebuild and no statement, whichever of the two it is, and a daemon that
# is restarted costs nothing; who was given up is never used again; a copy that a crash has left unverified does not stand in for anything
# before it was compared; and copies come back by themselves.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Load;
use Msd;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

# Statements wait so long at most: not in vain, however busy the machine is.
use constant WAIT => '2min';

my @msd = (Msd->new('a'), Msd->new('b'));
my $node = new_cluster('main',
	conf => "max_prepared_transactions = 1\nsherman.attach_timeout = ${\WAIT}\nsherman.failover_after = 200ms\nsherman.gone_after = -1\nsherman.memory_nodes = '"
	  . join(', ', map { $_->address } @msd) . "'\n" . Msd::configuration());
my $stderr;

sub query
{
	return $node->safe_psql('postgres', shift);
}

sub set
{
	my ($name, $value) = @_;

	query("ALTER SYSTEM SET sherman.$name = '$value'");
	$node->reload;
	wait_for("SELECT current_setting('sherman.$name') = '$value'", "$name is $value");
	return;
}

sub wait_for
{
	my ($sql, $what) = @_;

	ok($node->poll_query_until('postgres', $sql), $what);
	return;
}

sub shown
{
	my ($columns, $index) = @_;

	return query("SELECT $columns FROM sherman_stat_indexes WHERE indexrelid = '$index'::regclass");
}

# The daemons of an index's home and of its copy. Which of them is which is drawn by lot.
sub pair
{
	my $index = shift;

	shown('memory_nodes', $index) =~ /^\{(\d),(\d)\}$/ or die "$index is not on two memory nodes";
	return (home => $1, copy => $2);
}

sub lose_node
{
	my $position = shift;

	$msd[$position]->crash;
	wait_for("SELECT state = 'unreachable' FROM sherman_stat_memory_nodes WHERE position = $position", "memory node $position is lost");
	return;
}

# Ends the load: no statement of it has failed, or has found anything but what there is.
sub load_was_well
{
	my ($load, $what) = @_;

	$load->stop;
	is($load->{errors}, '', "$what: no statement has failed");
	is($load->{wrong}, 0, "$what: all answers are right");
	return;
}

sub all_attached
{
	wait_for(q{SELECT count(*) = 2 AND bool_and(state = 'attached') FROM sherman_stat_memory_nodes}, 'all memory nodes are attached');
	return;
}

sub identity
{
	my $index = shift;

	return query("SELECT oid, relfilenode FROM pg_class WHERE oid = '$index'::regclass");
}

# That it is what the table says, both ways.
sub whole
{
	my ($index, $table, $what) = @_;

	is(check_index($node, $index), '0', "$what: $index has what the table has");
	is(query("SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM $table WHERE id > -1000"),
		query("SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM $table WHERE id > -1000"),
		"$what: a scan of $index has as many rows");
	ok(uses_index($node, $index, "SELECT * FROM $table WHERE id = 7"), "$what: $index is used");
	return;
}

query('CREATE TABLE rows (id bigint, word text)');
query(q{INSERT INTO rows SELECT g, 'made' FROM generate_series(1, 20000) g});
query('CREATE INDEX rows_id ON rows USING sherman (id) WITH (replicas = 1)');
query('CREATE TABLE idle AS SELECT g AS id FROM generate_series(1, 5000) g');
query('CREATE INDEX idle_id ON idle USING sherman (id) WITH (replicas = 1)');
is(shown('replicas', 'rows_id'), 'both', 'an index has a copy');
whole('rows_id', 'rows', 'made');

# ---- The home is lost, for good, under load.

my %rows = pair('rows_id');
my $before = identity('rows_id');
my $load = Load->start($node, 2);
wait_for(q{SELECT count(*) > 400 FROM rows WHERE word = 'load'}, 'sessions write');
lose_node($rows{home});
wait_for(q{SELECT replicas = 'one' FROM sherman_stat_indexes WHERE indexrelid = 'rows_id'::regclass}, 'the copy stands in');
my $written = query('SELECT count(*) FROM rows');
wait_for("SELECT count(*) > $written + 400 FROM rows", 'sessions go on');
load_was_well($load, 'home lost');
is(identity('rows_id'), $before, 'without a rebuild');
is(shown('state, memory_nodes', 'rows_id'), "ok|{$rows{copy}}", 'it is on the other memory node alone');
whole('rows_id', 'rows', 'home lost');
query('DELETE FROM rows WHERE id % 3 = 0');
query('VACUUM rows');
whole('rows_id', 'rows', 'home lost, VACUUM');

set('attach_timeout', '2s');
$node->stop('immediate');
start_again($node, 1);
set('attach_timeout', WAIT);
is(shown('state', 'rows_id'), 'healing', 'a crash leaves it in doubt');
whole('rows_id', 'rows', 'home lost, crash');
query(q{SELECT sherman_heal('rows_id')});
is(shown('state', 'rows_id'), 'ok', 'and it is healed');
whole('rows_id', 'rows', 'home lost, healed');

# ---- The home comes back: what it has is garbage, and nobody looks at it.

$msd[ $rows{home} ]->start;
all_attached();
query(q{INSERT INTO rows VALUES (-7, 'back')});
is(query('SET enable_seqscan = off; SELECT count(*) FROM rows WHERE id = -7'), '1', 'who was given up is not used');
whole('rows_id', 'rows', 'home is back');
query('DROP TABLE idle');
query('SELECT sherman_collect()');
wait_for("SELECT used_bytes = 0 FROM sherman_stat_memory_nodes WHERE position = $rows{home}", 'its memory is freed there');
# Once more, when nothing of it is left there: the copy is no garbage for that.
query('SELECT sherman_collect()');
whole('rows_id', 'rows', 'garbage collected');

# ---- A new copy, by REINDEX; then the copy is lost.

query('REINDEX INDEX rows_id');
is(shown('replicas', 'rows_id'), 'both', 'REINDEX makes a new copy');
%rows = pair('rows_id');
$before = identity('rows_id');

# ---- Daemons are restarted under load: that costs no copy, and what is left unverified is compared by the healer.

query(q{ALTER SYSTEM SET sherman.failover_after = '1h'});
$node->restart;
all_attached();
$load = Load->start($node, 2);
foreach my $which ('home', 'copy')
{
	my $log = -s $node->logfile;

	$load->wait_for(200);
	lose_node($rows{$which});
	# With a short failover_after the copy would be given up behind the first attempt to attach that fails.
	$node->wait_for_log(qr/memory node ".*" is not attached/, $log);
	sleep 1;
	$msd[$rows{$which}]->start;
	all_attached();
	$load->wait_for(200);
	is(shown('memory_nodes', 'rows_id'), "{$rows{home},$rows{copy}}", "restart of the $which: both are in use still");
}
load_was_well($load, 'restarts');
set('autoheal', 'on');
wait_for(q{SELECT state = 'ok' AND replicas = 'both' FROM sherman_stat_indexes WHERE indexrelid = 'rows_id'::regclass}, 'no doubt is left');
set('autoheal', 'off');
is(query(q{SELECT sherman_resync('rows_id')}), '0', 'and nothing differs');
is(identity('rows_id'), $before, 'without a rebuild');
whole('rows_id', 'rows', 'restarts');

# ---- The copy is lost.

set('failover_after', '200ms');
lose_node($rows{copy});
whole('rows_id', 'rows', 'copy lost');
is(shown('replicas', 'rows_id'), 'one away', 'as long as nobody writes both are there');
query(q{INSERT INTO rows VALUES (-8, 'alone')});
is(shown('replicas, memory_nodes', 'rows_id'), "one|{$rows{home}}", 'before the first write the copy is given up');
is(identity('rows_id'), $before, 'without a rebuild');
whole('rows_id', 'rows', 'copy given up');

# ---- N21: the copy alone is there after a restart. It lacks a row.

# It is not collected before anybody has looked at it: nothing is, as long as an index of the database is locked exclusively.
query('CREATE TABLE locked (id bigint)');
query('CREATE INDEX locked_id ON locked USING sherman (id)');
query(q{BEGIN; DROP TABLE locked; PREPARE TRANSACTION 'locked'});
set('attach_timeout', '2s');
$node->stop;
$msd[ $rows{home} ]->stop;
$msd[ $rows{copy} ]->start;
start_again($node, 1);
is(shown('state', 'rows_id'), 'unreachable', 'a stale copy does not stand in');
isnt($node->psql('postgres', q{INSERT INTO rows VALUES (-9, 'nowhere')}, stderr => \$stderr), 0, 'nothing is written there');
like($stderr, qr/is not attached/, 'with the reason');
is(query('SELECT count(*) FROM rows WHERE id = -8'), '1', 'queries run without it');
$msd[ $rows{home} ]->start;
all_attached();
whole('rows_id', 'rows', 'home is back, with the truth');
query(q{COMMIT PREPARED 'locked'});
set('attach_timeout', WAIT);

# ---- The copy is lost under load.

query('REINDEX INDEX rows_id');
%rows = pair('rows_id');
$load = Load->start($node, 2);
$load->wait_for(200);
lose_node($rows{copy});
$load->wait_for(400);
load_was_well($load, 'copy lost');
is(shown('replicas, memory_nodes', 'rows_id'), "one|{$rows{home}}", 'under load a copy that is lost is given up');
whole('rows_id', 'rows', 'copy lost under load');
$msd[ $rows{copy} ]->start;
all_attached();

# ---- A crash leaves doubt: the copy stands in for nothing until it was compared.

query('REINDEX INDEX rows_id');
%rows = pair('rows_id');
$load = Load->start($node, 2);
$written = query('SELECT count(*) FROM rows');
wait_for("SELECT count(*) > $written + 400 FROM rows", 'sessions write');
$node->stop('immediate');
$load->stop;
start_again($node);
is(shown('replicas', 'rows_id'), 'in doubt', 'a crash leaves the copies in doubt');
lose_node($rows{home});
wait_for(q{SELECT state = 'unreachable' FROM sherman_stat_indexes WHERE indexrelid = 'rows_id'::regclass}, 'a copy in doubt does not stand in');
$msd[ $rows{home} ]->start;
all_attached();
query(q{SELECT sherman_resync('rows_id')});
is(shown('state, replicas', 'rows_id'), 'ok|both', 'compared, it is good again');
is(query(q{SELECT sherman_resync('rows_id')}), '0', 'and nothing differs');
query(q{INSERT INTO rows VALUES (-11, 'crash')});
$node->stop('immediate');
start_again($node);
is(shown('state, replicas', 'rows_id'), 'healing|in doubt', 'another crash');
query(q{SELECT sherman_heal('rows_id')});
is(shown('state, replicas', 'rows_id'), 'ok|both', 'to heal is to compare, too');
lose_node($rows{home});
wait_for(q{WITH new AS (INSERT INTO rows VALUES (-10, 'again') RETURNING 1) SELECT true FROM new}, 'inserts go on');
whole('rows_id', 'rows', 'home lost behind a crash');

# ---- One memory node is too few: what is built is built without the copy, and stops nothing else.

is($node->psql('postgres', "\\set VERBOSITY verbose\nREINDEX DATABASE postgres", stderr => \$stderr), 0, 'with one memory node all can be rebuilt');
like($stderr, qr/WARNING:  01000: index "rows_id" is built without its copy\nDETAIL:  Fewer than two .*\nHINT:  .*REINDEX INDEX CONCURRENTLY public.rows_id/,
	'with a warning for what has no copy now');
is(() = $stderr =~ /"rows_id" is built without/g, 1, 'which comes once');
is(shown('state, replicas', 'rows_id'), 'ok|none', 'as the view says');
is($node->psql('postgres', 'BEGIN; CREATE TABLE emptied (id int); CREATE INDEX ON emptied USING sherman (id) WITH (replicas = 1);
	INSERT INTO emptied VALUES (1); TRUNCATE emptied; ROLLBACK', stderr => \$stderr), 0, 'a table can be made, and emptied');
query('ALTER INDEX rows_id SET (replicas = 0)');
query('REINDEX INDEX rows_id');
is(shown('replicas', 'rows_id'), '', 'where none is wanted none is missed');
query('ALTER INDEX rows_id SET (replicas = 1)');
is(shown('replicas', 'rows_id'), 'none', 'it is seen that it lacks the copy that it is to have');

# ---- By themselves: what is broken is rebuilt on the memory node that is there, and has a copy when there is another one.

$msd[ $rows{copy} ]->crash;
$msd[ $rows{copy} ]->lose_memory;
$msd[ $rows{copy} ]->start;
wait_for(q{SELECT state = 'broken' FROM sherman_stat_indexes WHERE indexrelid = 'rows_id'::regclass}, 'its memory is lost');
set('auto_rebuild', 'on');
wait_for(q{SELECT state = 'ok' AND replicas = 'none' FROM sherman_stat_indexes WHERE indexrelid = 'rows_id'::regclass}, 'it is rebuilt without a copy');
whole('rows_id', 'rows', 'rebuilt');
$msd[ $rows{home} ]->start;
wait_for(q{SELECT state = 'ok' AND replicas = 'both' FROM sherman_stat_indexes WHERE indexrelid = 'rows_id'::regclass}, 'it has a copy again');
whole('rows_id', 'rows', 'rebuilt with a copy');
unlike(slurp_file($node->logfile), qr/PANIC|TRAP/, 'no process failed');

$node->stop;
done_testing();

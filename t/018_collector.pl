
# The collector in the middle of a run: commands on databases end it, and what commits while it looks is not taken for dead.
# A run is held by the lock of a catalog that it opens.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_cluster('main', conf => "max_prepared_transactions = 5\nsherman.collect_interval = 1\nallow_in_place_tablespaces = on\n");

# A session that is there before locks keep others from connecting.
sub session
{
	my $session = $node->background_psql(shift);

	$session->set_query_timer_restart;
	return $session;
}

# Asks until the answer matches, or for two minutes; returns the last answer.
sub poll
{
	my ($session, $query, $wanted) = @_;
	my $answer;

	for (1 .. 1200)
	{
		$answer = $session->query_safe($query);
		last if $answer =~ $wanted;
		usleep(100_000);
	}
	return $answer;
}

my $locker = session('postgres');

# ---- Commands on databases do not wait for a run, nor fail because of it: they end it.

my $commander = session('postgres');

# Process id of the collector's worker that waits, in the database "visited", for the catalog that its start reads.
my $held = q{SELECT l.pid FROM pg_locks l JOIN pg_locks d USING (pid)
	WHERE l.relation = 'pg_db_role_setting'::regclass AND NOT l.granted
	AND d.classid = 'pg_database'::regclass AND d.objid = (SELECT oid FROM pg_database WHERE datname = 'visited')};

$commander->query_safe('CREATE DATABASE visited');
$node->safe_psql('visited', 'CREATE EXTENSION sherman; CREATE TABLE t (id int); CREATE INDEX kept ON t USING sherman (id)');
$commander->query_safe(q{CREATE TABLESPACE elsewhere LOCATION ''});
foreach my $case (
	[ 'CREATE DATABASE copy TEMPLATE visited', q{SELECT count(*) FROM pg_database WHERE datname = 'copy'} ],
	[ 'ALTER DATABASE visited SET TABLESPACE elsewhere',
		q{SELECT count(*) FROM pg_database d JOIN pg_tablespace t ON t.oid = dattablespace WHERE datname = 'visited' AND spcname = 'elsewhere'} ],
	[ 'ALTER DATABASE visited RENAME TO renamed', q{SELECT count(*) FROM pg_database WHERE datname = 'renamed'} ],
	[ 'DROP DATABASE visited', q{SELECT count(*) = 0 FROM pg_database WHERE datname = 'visited'} ])
{
	my ($command, $done) = @$case;
	my $maker = session('visited');

	$locker->query_safe('BEGIN; LOCK pg_db_role_setting IN ACCESS EXCLUSIVE MODE');
	$maker->query_safe('CREATE INDEX suspect ON t USING sherman (id); DROP INDEX suspect');
	$maker->quit;
	# Its server process may outlive it, and would be in the way too. (The locker's transaction would see the same each time.)
	poll($commander, q{SELECT count(*) FROM pg_stat_activity WHERE datname = 'visited' AND backend_type = 'client backend'}, qr/^0$/);
	my $worker = poll($locker, $held, qr/^\d+$/);
	like($worker, qr/^\d+$/, "$command: the collector is in the database");
	my $log = -s $node->logfile;
	$commander->query_until(qr/begun/, "\\echo begun\n$command;\n");
	# DROP DATABASE itself opens that catalog later.
	is(poll($locker, "SELECT count(*) FROM pg_locks WHERE pid = $worker", qr/^0$/), '0', "$command: and is sent away");
	$locker->query_safe('COMMIT');
	like($commander->query_safe($done), qr/^(1|t)$/, "$command: is done");
	$node->wait_for_log(qr/\[$worker\] FATAL:  terminating background worker "sherman collector"/, $log);
	$commander->query_safe('ALTER DATABASE renamed RENAME TO visited') if $command =~ /renamed/;
}
ok( $node->poll_query_until('postgres', q{SELECT used_bytes = 0 FROM sherman_stat_memory_nodes}),
	'the memory of the dropped database comes back');

# And as long as one is at work no run begins: what is to be collected waits. (The command waits where it has sent the others away.)
$commander->query_safe('CREATE DATABASE visited');
$node->safe_psql('visited', 'CREATE EXTENSION sherman; CREATE TABLE t (id int)');
my $maker = session('visited');
$locker->query_safe('BEGIN; LOCK pg_database IN EXCLUSIVE MODE');
$commander->query_until(qr/begun/, "\\echo begun\nDROP DATABASE visited;\n");
is(poll($locker, q{SELECT count(*) FROM pg_locks WHERE relation = 'pg_database'::regclass AND NOT granted}, qr/^1$/), '1', 'a command on a database is at work');
$maker->query_safe('CREATE INDEX suspect ON t USING sherman (id); DROP INDEX suspect');
my $freed = 0;
for (1 .. 30)
{
	usleep(100_000);
	$freed ||= used($node) == 0;
}
ok(!$freed, 'no worker goes into its database');
$maker->quit;
$locker->query_safe('COMMIT');
is($commander->query_safe(q{SELECT count(*) FROM pg_database WHERE datname = 'visited'}), '0', 'the command is done');
ok($node->poll_query_until('postgres', q{SELECT used_bytes = 0 FROM sherman_stat_memory_nodes}), 'and what is left of its database is freed');
$commander->quit;

# ---- What commits between the collector's questions.  It is held where it has asked whose transactions have ended, and has its
# snapshot of the catalogs, but has not looked at an index yet: there it needs the access method's handler.

$node->safe_psql('postgres', q{
	CREATE TABLE base (id int, c varchar(10));
	INSERT INTO base SELECT g, 'v' || g FROM generate_series(1, 3000) g;
	CREATE INDEX base_id ON base USING sherman (id);
	CREATE INDEX widened ON base USING sherman (c);
	CREATE TABLE other (id int);
	BEGIN;
	CREATE INDEX suspect ON other USING sherman (id);
	PREPARE TRANSACTION 'suspect'});
my $trees = $node->safe_psql('postgres', q{SELECT array_agg(tree ORDER BY indexrelid::regclass::text) FROM sherman_stat_indexes});

# Runs commands in a transaction that commits while a run is held, which then goes on to its end.
sub commit_in_run
{
	my ($what, $before, $during) = @_;

	$locker->query_safe("BEGIN; $before LOCK pg_proc IN ACCESS EXCLUSIVE MODE");
	my $worker = poll($locker, q{SELECT pid FROM pg_locks WHERE relation = 'pg_proc'::regclass AND NOT granted}, qr/^\d+$/);
	like($worker, qr/^\d+$/, "$what: a run is held");
	$locker->query_safe("$during COMMIT");
	is(poll($locker, "SELECT count(*) FROM pg_stat_activity WHERE pid = $worker", qr/^0$/), '0', "$what: and ends");
}

commit_in_run('CREATE INDEX', 'CREATE INDEX fresh ON base USING sherman (id, c);', '');
# Each time the oid of the index that names the tree is a new one, in looks that follow each other.
commit_in_run("ALTER TYPE $_", '', "ALTER TABLE base ALTER c TYPE varchar($_);") foreach map { 10 + $_ } 1 .. 10;

is($node->safe_psql('postgres', 'SELECT sherman_collect()'), '0', 'nothing is freed');
is( $node->safe_psql('postgres', q{SELECT array_agg(tree ORDER BY indexrelid::regclass::text) FROM sherman_stat_indexes WHERE indexrelid <> 'fresh'::regclass}),
	$trees, 'the indexes have the trees that they had');
is(check_index($node, $_), '0', "$_ is whole") foreach qw(base_id widened fresh);
$node->safe_psql('postgres', q{ROLLBACK PREPARED 'suspect'});
$node->safe_psql('postgres', 'DROP TABLE base');
ok($node->poll_query_until('postgres', q{SELECT used_bytes = 0 FROM sherman_stat_memory_nodes}), 'and what is dropped then is freed');
unlike(slurp_file($node->logfile), qr/PANIC|TRAP/, 'no process failed');

$locker->quit;
$node->stop;
done_testing();

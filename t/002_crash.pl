
# Without healing, after an unclean end every index that was changed in the last epoch is broken: hidden, skipped, shown, and healed by
# REINDEX.  The others stay good.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_cluster('main', conf => "restart_after_crash = on\nsherman.heal = off\n");
my $lookup = 'SELECT count(*) FROM changed WHERE id BETWEEN 10 AND 19';

# Waits until the server works again after a crash that it survived.
sub wait_for_recovery
{
	$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'the server does not come back';
	$node->poll_query_until('postgres', q{SELECT state = 'attached' FROM sherman_stat_memory_nodes})
	  or die 'the memory node is not attached';
}

sub worker_pid
{
	my $type = shift;

	return $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = '$type'");
}

# Runs SQL that must meet a broken index and say so.
sub refused
{
	my ($sql, $what) = @_;
	my ($stdout, $stderr);
	my $status = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql", stdout => \$stdout, stderr => \$stderr);

	isnt($status, 0, $what);
	like($stderr, qr/ERROR:  55000: index "\w+" is broken and cannot be used.*HINT:  Rebuild it with REINDEX/s, "$what: 55000 with a hint");
}

# What must hold of a broken index, whatever broke it; ends with a REINDEX that heals it.
sub check_broken
{
	my ($what) = @_;
	my ($stdout, $stderr, $status);

	is(state_of($node, 'changed_id'), 'broken', "$what: the changed index is broken");
	isnt($node->safe_psql('postgres', q{SELECT reason FROM sherman_stat_indexes WHERE indexrelid = 'changed_id'::regclass}),
		'', "$what: the view says why");
	is(state_of($node, 'kept_id'), 'ok', "$what: the index that was not changed is good");
	is(check_index($node, 'kept_id'), '0', "$what: and whole");
	ok(uses_index($node, 'kept_id', 'SELECT * FROM kept WHERE id = 5'), "$what: and used");
	ok(!uses_index($node, 'changed_id', $lookup), "$what: the planner does not see the broken one");
	$status = $node->psql('postgres', $lookup, stdout => \$stdout, stderr => \$stderr);
	like($stderr, qr/WARNING:  index "changed_id" is broken/, "$what: a query says so");
	# The planner is not asked which index this one scans.
	refused('CLUSTER changed USING changed_id', "$what: CLUSTER by it");

	# A skipped row is not to touch the metapage, where all sessions would meet. What the others are for counts, too: the table's pages.
	my $touched = $node->safe_psql('postgres', q{
		CREATE TEMP TABLE touched (plan json);
		CREATE TABLE bare (LIKE changed);
		CREATE PROCEDURE touch(name text) LANGUAGE plpgsql AS $$
		DECLARE plan json;
		BEGIN
			EXECUTE format('EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) INSERT INTO %I SELECT generate_series(100001, 102000)', name)
				INTO plan;
			INSERT INTO touched VALUES (plan);
		END $$;
		CALL touch('changed');
		CALL touch('bare');
		SELECT max(hits) - min(hits) < 500 FROM (SELECT (plan->0->'Plan'->>'Shared Hit Blocks')::int AS hits FROM touched) x;
		DROP TABLE bare;
		DROP PROCEDURE touch;
	});
	is($touched, 't', "$what: rows that are skipped do not touch the metapage");
	$node->safe_psql('postgres', 'INSERT INTO changed SELECT generate_series(102001, 102100)');
	$node->safe_psql('postgres', 'DELETE FROM changed WHERE id % 7 = 0');
	$node->safe_psql('postgres', 'VACUUM changed');
	is($node->safe_psql('postgres', 'SELECT broken_at IS NOT NULL FROM sherman_stat_indexes WHERE indexrelid = \'changed_id\'::regclass'),
		't', "$what: the skipped changes left their mark in the metapage");

	$node->restart;
	is(state_of($node, 'changed_id'), 'broken', "$what: a clean restart does not make it good again");
	$node->safe_psql('postgres', 'REINDEX INDEX changed_id');
	is(state_of($node, 'changed_id'), 'ok', "$what: REINDEX heals it");
	ok(uses_index($node, 'changed_id', $lookup), "$what: the planner sees it again");
	is(check_index($node, 'changed_id'), '0', "$what: it is whole");
	$node->safe_psql('postgres', 'INSERT INTO changed SELECT generate_series(200001, 200010)');
	is(check_index($node, 'changed_id'), '0', "$what: and takes new rows");
}

# Makes an epoch in which only one of the two indexes is changed.
sub change
{
	$node->safe_psql('postgres', 'SELECT count(*) FROM kept WHERE id < 10');
	$node->safe_psql('postgres', 'INSERT INTO changed SELECT generate_series(300001, 300010)');
	is(state_of($node, 'changed_id'), 'ok', 'good before the crash');
}

$node->safe_psql(
	'postgres', q{
	CREATE TABLE kept (id int);
	INSERT INTO kept SELECT generate_series(1, 1000);
	CREATE INDEX kept_id ON kept USING sherman (id);
	CREATE TABLE changed (id int);
	INSERT INTO changed SELECT generate_series(1, 5000);
	CREATE INDEX changed_id ON changed USING sherman (id);
	CREATE UNLOGGED TABLE volatile (id int);
	CREATE INDEX volatile_id ON volatile USING sherman (id);
	INSERT INTO volatile SELECT generate_series(1, 100);
	CREATE TABLE excluded (id int, EXCLUDE USING sherman (id WITH =));
	INSERT INTO excluded SELECT generate_series(1, 100);
	CREATE TABLE single (id int);
	CREATE UNIQUE INDEX single_id ON single USING sherman (id);
	INSERT INTO single SELECT generate_series(1, 100);
});
$node->restart;

# Immediate stop: every process is killed wherever it is.
change();
$node->safe_psql('postgres', 'INSERT INTO volatile VALUES (0); INSERT INTO excluded VALUES (0); INSERT INTO single VALUES (0)');
$node->stop('immediate');
$node->start;
is(state_of($node, 'volatile_id'), 'ok', 'an unlogged index is empty and good after a crash');
$node->safe_psql('postgres', 'INSERT INTO volatile SELECT generate_series(1, 50)');
ok(uses_index($node, 'volatile_id', 'SELECT * FROM volatile WHERE id = 5'), 'it is used');
is(check_index($node, 'volatile_id'), '0', 'it has a new tree');

refused('INSERT INTO excluded VALUES (1000)', 'an insert past a broken constraint');
refused('INSERT INTO excluded VALUES (1000) ON CONFLICT DO NOTHING', 'an insert that looks for conflicts in it');
refused('INSERT INTO excluded VALUES (1) ON CONFLICT ON CONSTRAINT excluded_id_excl DO NOTHING', 'one that names it');
refused('UPDATE excluded SET id = -1 WHERE id = 2', 'an update');
refused('INSERT INTO single VALUES (1000)', 'an insert into a broken unique index');
is($node->safe_psql('postgres', 'SELECT count(*) FROM excluded WHERE id IN (-1, 1, 2, 1000)'), '2', 'none of them came through');
$node->safe_psql('postgres', 'DELETE FROM excluded WHERE id = 1; VACUUM excluded; REINDEX TABLE excluded');
$node->safe_psql('postgres', 'INSERT INTO excluded VALUES (1000)');
my ($stdout, $stderr);
$node->psql('postgres', 'INSERT INTO excluded VALUES (1000)', stdout => \$stdout, stderr => \$stderr);
like($stderr, qr/conflicting key value violates exclusion constraint/, 'healed, it enforces its constraint');
check_broken('immediate stop');

# A backend is killed: the postmaster restarts everybody.
change();
my $client = $node->background_psql('postgres', on_error_stop => 0);
my $pid = $client->query('SELECT pg_backend_pid()');
$pid =~ /^[1-9]\d+$/ or die 'no process id';
kill 'KILL', $pid;
wait_for_recovery();
eval { $client->{run}->finish };
check_broken('killed backend');

# The memory node is killed, in the middle of inserts.
change();
$client = $node->background_psql('postgres', on_error_stop => 0);
$client->query_until(qr/begun/,
	"\\echo begun\nDO \$\$BEGIN FOR i IN 1..1000000 LOOP INSERT INTO changed VALUES (i); END LOOP; END\$\$;\n");
my $before = -s $node->logfile;
kill 'KILL', node_pid($node);
$node->wait_for_log(qr/all server processes terminated; reinitializing/, $before);
wait_for_recovery();
eval { $client->{run}->finish };
check_broken('killed memory node');

# The whole server is killed; its orphans go by themselves.
change();
$node->kill9;
for my $try (1 .. 100)
{
	# Refused as long as an orphan is attached to the old shared memory.
	last if system_log('pg_ctl', '-w', '-D', $node->data_dir, '-l', $node->logfile, 'start') == 0;
	usleep(100_000);
}
$node->_update_pid(1);
check_broken('killed postmaster');

# An unclean end, then a run without us that ends well: the server was shut down, and yet nothing is proven.
change();
$node->stop('immediate');
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$node->start;
$node->safe_psql('postgres', 'CREATE TABLE other AS SELECT generate_series(1, 1000)');
$node->stop;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'sherman'\n");
$node->start;
check_broken('run without preload');

# A crash right after a start, before anything is flushed: recovery has nothing to do, and yet it was a crash.
$node->append_conf('postgresql.conf', "synchronous_commit = off\nwal_writer_delay = 10s\n");
$node->restart;
$node->safe_psql('postgres', 'INSERT INTO changed VALUES (77)');
$node->stop('immediate');
$node->start;
is(state_of($node, 'changed_id'), 'broken', 'a crash without recovery is a crash');
$node->safe_psql('postgres', 'REINDEX INDEX changed_id');

# The launcher alone ends: the epoch goes on, nothing breaks.
change();
kill 'TERM', worker_pid('sherman launcher');
$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'sherman launcher'}) or die 'the launcher stays';
$node->safe_psql('postgres', 'INSERT INTO changed SELECT generate_series(400001, 400010)');
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'sherman launcher'}) or die 'no new launcher';
is(state_of($node, 'changed_id'), 'ok', 'a new launcher resumes the epoch');
$node->restart;
is(state_of($node, 'changed_id'), 'ok', 'and the epoch ends clean');
is(check_index($node, 'changed_id'), '0', 'the index is whole');

$node->stop;
done_testing();


# Plans that were made once and are kept: whatever becomes of the index meanwhile, each execution gives the right rows, or an
# error that says why, and never anything else.

use strict;
use warnings;

use FindBin;
use IPC::Run;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;
use Time::HiRes qw(usleep);

my $node = new_cluster('main');
my $memory_node = node_pid($node);

END { kill 'CONT', $memory_node if $memory_node }

sub sql
{
	return $node->safe_psql('postgres', shift);
}

# The memory node does not answer until admit_node(), and a session that asks it for more memory has found that out: nobody uses
# it any more.
sub shut_out
{
	sql("ALTER SYSTEM SET sherman.operation_timeout = '1s'");
	sql("ALTER SYSTEM SET sherman.attach_timeout = '1s'");
	$node->reload;
	my $asks = $node->background_psql('postgres', on_error_stop => 0);
	for my $try (1 .. 60)
	{
		$asks->query('SET client_min_messages = error; TRUNCATE asks; INSERT INTO asks VALUES (0)');
		last if $asks->{stderr} !~ /ERROR/;
		$asks->{stderr} = '';
	}
	kill 'STOP', $memory_node;
	$asks->query('INSERT INTO asks SELECT g FROM generate_series(1, 100000) g');
	$asks->quit;
	is(sql('SELECT state FROM sherman_stat_memory_nodes'), 'unreachable', 'nobody uses the memory node');
}

# It answers again.  From now on sessions are patient again, unless they shall be shut out once more.
sub admit_node
{
	my $patient = shift // 1;

	sql('ALTER SYSTEM RESET ALL') if $patient;
	$node->reload;
	kill 'CONT', $memory_node;
	$node->poll_query_until('postgres', q{SELECT state = 'attached' FROM sherman_stat_memory_nodes}) or die 'not attached again';
}

sql(q{
	CREATE TABLE t (id int, word text);
	INSERT INTO t SELECT g, md5(g::text) FROM generate_series(1, 5000) g;
	CREATE INDEX t_id ON t USING sherman (id);
	CREATE INDEX t_word ON t USING sherman (word);
	CREATE TABLE asks (id int);
	CREATE INDEX asks_id ON asks USING sherman (id);
	CREATE TABLE small AS SELECT g * 100 AS id FROM generate_series(1, 20) g;
	CREATE FUNCTION by_function(int) RETURNS bigint LANGUAGE plpgsql STABLE AS 'BEGIN RETURN (SELECT count(*) FROM t WHERE id = $1); END';
	ANALYZE;
});

# What is executed all the time.
my $statements = q{
	PREPARE lookup(int) AS SELECT count(*) FROM t WHERE id = $1;
	PREPARE ordered(int) AS SELECT array_agg(id) FROM (SELECT id FROM t WHERE id >= $1 ORDER BY id LIMIT 5) s;
	PREPARE backward(text) AS SELECT count(*) FROM (SELECT word FROM t WHERE word < $1 ORDER BY word DESC LIMIT 5) s;
	PREPARE listed(int[]) AS SELECT array_agg(id ORDER BY id) FROM t WHERE id = ANY ($1);
	PREPARE joined(int) AS SELECT count(*) FROM small s JOIN t ON t.id = s.id WHERE s.id <= $1;
	PREPARE changes(int) AS UPDATE t SET word = word || 'x' WHERE id = $1 RETURNING id;
};

# The session with the plans.  It plans by indexes where it can, so that plans without one are plain.
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query(q{
	SET plan_cache_mode = force_generic_plan;
	SET enable_seqscan = off;
	SET enable_bitmapscan = off;
	SET jit = off;
	SET client_min_messages = error;
	\set VERBOSITY verbose
} . $statements);

# What the plans say now. $more: rows with id 6000 there.
sub executions
{
	my $more = shift;

	return join("\n", 1, '{4998,4999,5000' . ($more > 0 ? join('', (',6000') x ($more > 2 ? 2 : $more)) : '') . '}', 5,
		'{1,17,4711' . ',6000' x $more . '}', 20, 1, $more, 17);
}

sub execute_all
{
	return $session->query(q{
		EXECUTE lookup(5);
		EXECUTE ordered(4998);
		EXECUTE backward('8');
		EXECUTE listed('{17,1,4711,17,6000}');
		EXECUTE joined(2000);
		SELECT by_function(4000);
		EXECUTE lookup(6000);
		EXECUTE changes(17);
	});
}

sub plan_of
{
	my $plan = $session->query("EXPLAIN EXECUTE $_[0]");

	return $plan =~ /Index (?:Only )?Scan.* using (\w+)/ ? $1 : 'none';
}

is(execute_all(), executions(0), 'plans by index: right rows');
is(plan_of('lookup(5)'), 't_id', 'they are plans by index');
is(plan_of(q{backward('8')}), 't_word', 'all of them');

# Built anew, by whatever way.
for my $command ('REINDEX INDEX t_id', 'REINDEX TABLE t', 'REINDEX TABLE CONCURRENTLY t', 'VACUUM FULL t', 'CLUSTER t USING t_word',
	'ALTER TABLE t ALTER id TYPE bigint', 'ALTER TABLE t ALTER id TYPE int')
{
	$session->query('DEALLOCATE changes; PREPARE changes(int) AS UPDATE t SET word = word || \'x\' WHERE id = $1 RETURNING id')
	  if $command =~ /TYPE/;
	sql("BEGIN; $command; COMMIT") if $command !~ /CONCURRENTLY|VACUUM/;
	sql($command) if $command =~ /CONCURRENTLY|VACUUM/;
	is($session->query('EXECUTE lookup(5); EXECUTE joined(2000)'), "1\n20", "$command: right rows");
	is(plan_of('lookup(5)'), 't_id', "$command: by the new index");
}
$session->query('DEALLOCATE ALL');
$session->query($statements);
is(execute_all(), executions(0), 'right rows after all of them');

# Dropped, and there again.
sql('DROP INDEX t_id');
is(execute_all(), executions(0), 'dropped: right rows');
is(plan_of('lookup(5)'), 'none', 'without the index');
sql('CREATE INDEX t_id ON t USING sherman (id DESC)');
is(execute_all(), executions(0), 'another one of that name: right rows');
is(plan_of('lookup(5)'), 't_id', 'by that one');

# Dropped in a transaction that has used it.
is($session->query('BEGIN; EXECUTE lookup(5); DROP INDEX t_id; EXECUTE lookup(5); EXECUTE ordered(4998)'), "1\n1\n{4998,4999,5000}",
	'dropped in between: right rows');
$session->query('ROLLBACK');
is(execute_all(), executions(0), 'and after the drop was rolled back');

# The memory node is away, and comes back.
shut_out();
is($session->query('EXECUTE lookup(5)'), '1', 'unreachable: right rows');
is($session->query('EXECUTE ordered(4998)'), '{4998,4999,5000}', 'in order');
is($session->query(q{EXECUTE listed('{17,1,4711,17,6000}')}), '{1,17,4711}', 'each once');
is(plan_of('lookup(5)'), 'none', 'without the index');
$session->{stderr} = '';
$session->query('EXECUTE changes(17)');
like($session->{stderr}, qr/ERROR:  08006: .*HINT:/s, 'a change, which the index would have to follow, is an error with a hint');
admit_node();
is(execute_all(), executions(0), 'reachable again: right rows');
is(plan_of('lookup(5)'), 't_id', 'by the index');

# Broken by an insert that was skipped: the new row is in no index, and yet found; plans that are running are ended.
$session->query('BEGIN; DECLARE c CURSOR FOR SELECT id FROM t WHERE id > 0 ORDER BY id');
is($session->query('FETCH 1 FROM c'), '1', 'a cursor in the middle of the index');
shut_out();
sql('SET sherman.on_unavailable = break; INSERT INTO t VALUES (6000, \'ffff\'), (6000, \'ffff\')');
is(state_of($node, 't_id'), 'broken', 'an insert that was skipped breaks the index');
$session->{stderr} = '';
$session->query('MOVE 4999 FROM c');
like($session->{stderr}, qr/ERROR:  55000: .*is broken/s, 'the cursor ends with 55000');
$session->query('ROLLBACK');
is($session->query('EXECUTE lookup(6000)'), '2', 'broken, and the memory node away: right rows');
admit_node();
is(state_of($node, 't_id'), 'broken', 'the index stays broken');
is(execute_all(), executions(2), 'broken: right rows');
is(plan_of('lookup(5)'), 'none', 'without the index');
sql('REINDEX TABLE t');
is(execute_all(), executions(2), 'healed: right rows');
is(plan_of('lookup(5)'), 't_id', 'by the index');
$session->quit;

# All of it beside sessions that look up and insert without a pause: a wrong answer would be a row in `wrong`.
sql(q{
	DELETE FROM t WHERE id = 6000;
	CREATE SEQUENCE fresh START 10000;
	CREATE TABLE wrong (what text);
	CREATE TABLE tally (answers int, refusals int);
	CREATE TABLE stopping (yes boolean);
	CREATE PROCEDURE hammer() LANGUAGE plpgsql AS $$
	DECLARE
		answers int := 0;
		refusals int := 0;
		k int;
		n bigint;
		found_ids int[];
	BEGIN
		WHILE NOT EXISTS (SELECT FROM stopping) LOOP
			BEGIN
				-- As an insert will; else it would wait for whoever waits for what the lookup locks.
				LOCK TABLE t IN ROW EXCLUSIVE MODE;
				k := 1 + (random() * 4900)::int;
				SELECT count(*) INTO n FROM t WHERE id = k;
				IF n <> 1 THEN
					INSERT INTO wrong VALUES (format('%s rows of %s', n, k));
				END IF;
				found_ids := ARRAY(SELECT id FROM t WHERE id >= k ORDER BY id LIMIT 3);
				IF found_ids <> ARRAY[k, k + 1, k + 2] THEN
					INSERT INTO wrong VALUES (format('%s at %s', found_ids, k));
				END IF;
				k := nextval('fresh');
				INSERT INTO t VALUES (k, 'fresh');
				SELECT count(*) INTO n FROM t WHERE id = k;
				IF n <> 1 THEN
					INSERT INTO wrong VALUES (format('%s rows of the new %s', n, k));
				END IF;
				answers := answers + 1;
			EXCEPTION WHEN connection_failure OR object_not_in_prerequisite_state THEN
				refusals := refusals + 1;
			END;
			COMMIT;
		END LOOP;
		INSERT INTO tally VALUES (answers, refusals);
	END $$;
});

# On a slow machine an operation may take longer than these sessions wait: what fails for that is done again.
sub insist
{
	my $command = shift;
	my $stderr;

	for my $try (1 .. 60)
	{
		return if $node->psql('postgres', $command, stderr => \$stderr, on_error_stop => 1) == 0;
		$stderr =~ /does not answer|not attached/ or last;
	}
	die "$command: $stderr";
}

sql("ALTER SYSTEM SET sherman.operation_timeout = '1s'");
$node->reload;
my @output = ('') x 3;
local $ENV{PGOPTIONS} = '-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_bitmapscan=off -c client_min_messages=error -c jit=off';
my @hammers = map
{
	IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', 'CALL hammer()' ], '>', \$output[$_], '2>&1')
} 0 .. 2;
delete $ENV{PGOPTIONS};
$node->poll_query_until('postgres', 'SELECT last_value > 10300 FROM fresh') or die 'nothing happens';
for my $round (1 .. 3)
{
	insist('REINDEX INDEX t_id');
	usleep(50_000);
	insist('DROP INDEX t_id');
	usleep(50_000);
	insist('CREATE INDEX t_id ON t USING sherman (id)');
	usleep(50_000);
	insist('REINDEX TABLE CONCURRENTLY t');
	usleep(100_000);
	shut_out();
	# Breaks what is still whole; then these rows are in the table alone.
	$node->psql('postgres', q{SET sherman.on_unavailable = break; INSERT INTO t SELECT g, 'skipped' FROM generate_series(5001, 5003) g})
	  if $round > 1;
	admit_node(0);
	my $seen = sql('SELECT last_value FROM fresh');
	$node->poll_query_until('postgres', "SELECT last_value > $seen + 100 FROM fresh") or die 'nothing happens';
}
sql('INSERT INTO stopping VALUES (true)');
IPC::Run::finish($_) for @hammers;
is(join('', @output), '', 'sessions that work beside all that end well');
is(sql('SELECT string_agg(what, E\'\n\') FROM wrong'), '', 'no wrong answer');
cmp_ok(sql('SELECT sum(answers) FROM tally'), '>', 100, 'but many right ones: ' . sql('SELECT sum(answers), sum(refusals) FROM tally'));
sql('ALTER SYSTEM RESET ALL');
$node->reload;
sql('REINDEX TABLE t');
is(check_index($node, 't_id'), '0', 'the index is whole');
is(check_index($node, 't_word'), '0', 'and the other one');

$node->stop;
$memory_node = undef;
done_testing();

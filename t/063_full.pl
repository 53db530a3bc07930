
# A memory node that is full: the error says which indexes have how much, and what to do; and what makes room works there: VACUUM, TRUNCATE,
# REINDEX of a table that was emptied, DROP.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('main', memory => 64, conf => "sherman.embedded_snapshot = off\n");
my ($stdout, $stderr, $status);

sub query
{
	return $node->safe_psql('postgres', $_[0]);
}

# Runs SQL; returns the errors.
sub errors_of
{
	$status = $node->psql('postgres', "\\set VERBOSITY verbose\n$_[0]", stdout => \$stdout, stderr => \$stderr);
	return $stderr;
}

query('CREATE ROLE owner; CREATE ROLE writer; CREATE ROLE watcher IN ROLE pg_monitor; CREATE TABLE big (id int, pad text); CREATE INDEX big_pad ON big USING sherman (pad); CREATE INDEX big_id ON big USING sherman (id);
	CREATE TABLE small (id int); CREATE INDEX small_id ON small USING sherman (id); INSERT INTO small SELECT generate_series(1, 20000);
	CREATE TABLE tiny (id int); CREATE INDEX tiny_id ON tiny USING sherman (id); INSERT INTO tiny VALUES (1);
	CREATE SCHEMA "Own"; CREATE TABLE "Own".owned (id int); CREATE INDEX "Owned id" ON "Own".owned USING sherman (id);
	ALTER TABLE "Own".owned OWNER TO owner; GRANT USAGE, CREATE ON SCHEMA "Own" TO owner;
	GRANT INSERT, SELECT ON ALL TABLES IN SCHEMA public, "Own" TO owner, writer, watcher; GRANT USAGE ON SCHEMA "Own" TO writer, watcher;
	CREATE FUNCTION as_superuser() RETURNS void SECURITY DEFINER LANGUAGE sql AS $$INSERT INTO big SELECT g, g::text || repeat(md5(g::text), 30) FROM generate_series(1, 4000) g$$');
my $rows = 0;
while ($rows < 400000)
{
	last if errors_of("INSERT INTO big SELECT g, (SELECT string_agg(md5(g::text || i), '') FROM generate_series(1, 30) i)
		FROM generate_series($rows, $rows + 3999) g") ne '';
	$rows += 4000;
}
# The others may have some left.
my $full = $stderr;
foreach my $try (1 .. 100)
{
	last if errors_of("INSERT INTO small SELECT generate_series(1, 5000) * 1000 + $try") ne '';
}
like($full, qr/ERROR:  53200: memory node is full.*\nHINT:  Raise "sherman.embedded_memory" .*SELECT indexrelid::regclass, total_bytes FROM sherman_stat_indexes/s,
	'it is full, and the hint says what to do');

# The DETAIL of the error that a session of this user ends with, which wants as much as there is not.
sub detail_for
{
	my ($user, $sql) = @_;

	errors_of("SET SESSION AUTHORIZATION $user; " . ($sql // 'INSERT INTO big SELECT g, g::text || repeat(md5(g::text), 30) FROM generate_series(1, 4000) g'));
	return $stderr =~ /^(?:psql:[^\n]*)?ERROR:  53200: memory node is full[^\n]*\nDETAIL:  ([^\n]*)/ ? $1 : "no such error: $stderr";
}

my $node_says = 'memory node 0 has no memory left.';
my $size = qr/\(\d+ [kM]B\)/;
my $all = qr/^\Q$node_says\E The largest indexes of this database are public\.big_pad $size, public\.(?:small_id|big_id) $size, public\.(?:small_id|big_id) $size\.$/;
like(detail_for('postgres'), $all, 'a superuser is told of the three largest indexes');
like(detail_for('watcher'), $all, 'so is a member of pg_monitor');
like(detail_for('owner'), qr/^\Q$node_says\E Your largest indexes in this database are "Own"\."Owned id" $size\.$/, 'an owner of those that are his');
is(detail_for('writer'), $node_says, 'and who owns none of none');
is(detail_for('writer', 'SELECT as_superuser()'), $node_says, 'in the function of a superuser, too');
like(detail_for('postgres', 'SET max_parallel_maintenance_workers = 2; ALTER TABLE big SET (parallel_workers = 2); REINDEX INDEX big_pad'),
	qr/^\Q$node_says\E The largest indexes of this database are public\.big_id $size, public\.small_id $size, \S+ $size; not looked at, as locked or being built: 1\.$/,
	'REINDEX, with parallel workers, of the others');
my $locker = $node->background_psql('postgres', on_error_stop => 1);
$locker->query_safe('BEGIN; DROP INDEX small_id');
# The limit is for what waits by mistake.
like(detail_for(q{postgres; SET lock_timeout = '10s'}), qr/are public\.big_pad $size, public\.big_id $size, \S+ $size; not looked at, as locked or being built: 1\.$/, 'an index that is locked is passed over');
$locker->query_safe('ROLLBACK');
$locker->quit;
# A method whose handler raises.
query(q{CREATE FUNCTION raises() RETURNS int LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'the handler has raised'; END$$});
is(detail_for('postgres', "BEGIN; INSERT INTO pg_am VALUES (99999, 'other', 'raises'::regproc, 'i'); UPDATE pg_class SET relam = 99999 WHERE relname = 'tiny_id';
	INSERT INTO big SELECT g, g::text || repeat(md5(g::text), 30) FROM generate_series(1, 4000) g"), $node_says, 'what is raised meanwhile is not the error');
ok($node->log_contains(qr/could not find the largest indexes: the handler has raised/), 'but is in the log');
my ($query) = $full =~ /: (SELECT indexrelid.*?) shows/;
like(query($query), qr/^big_pad\|\d{8}\n/, 'the query of the hint shows who has the memory');
like(errors_of('REINDEX INDEX big_pad'), qr/ERROR:  53200: .*REINDEX needs room/s, 'REINDEX finds no room for a copy, as the hint says');
is(check_index($node, 'big_pad'), '0', 'the index is whole');
foreach my $sql ('VACUUM small', 'DELETE FROM small', 'VACUUM small', 'REINDEX TABLE small', 'DELETE FROM big WHERE id % 10 <> 0', 'VACUUM big', 'TRUNCATE big')
{
	is(errors_of($sql), '', "$sql works where it is full");
}
ok($node->poll_query_until('postgres', 'SELECT used_bytes < 1024 * 1024 FROM sherman_stat_memory_nodes'), 'the memory is there again');
is(errors_of('INSERT INTO big SELECT g, md5(g::text) FROM generate_series(1, 10000) g; REINDEX TABLE big'), '', 'and can be used');
is(check_index($node, 'big_pad') + check_index($node, 'small_id'), 0, 'all is whole');

# Old rows of a table whose keys ascend go, and VACUUM gives the memory of its index to the others; it has no need of any itself.
query('TRUNCATE big, small; CREATE TABLE queue (id bigint); CREATE INDEX queue_id ON queue USING sherman (id, (id + 1), (id + 2), (id + 3)); CREATE TABLE other (id bigint); CREATE INDEX other_id ON other USING sherman (id)');
$rows = 0;
while ($rows < 4000000)
{
	last if errors_of("INSERT INTO queue SELECT generate_series($rows, $rows + 49999)") ne '';
	$rows += 50000;
}
like($stderr, qr/ERROR:  53200: memory node is full/, 'a table with ascending keys has filled the memory');
foreach my $try (1 .. 1000)
{
	last if errors_of("INSERT INTO other SELECT $try * 10000 + generate_series(1, 5000)") ne '';
}
like($stderr, qr/ERROR:  53200: memory node is full/, 'another index finds none');
my $bytes = query(q{SELECT total_bytes FROM sherman_stat_indexes WHERE indexrelid = 'queue_id'::regclass});
query("DELETE FROM queue WHERE id < $rows * 0.9");
# Until nobody's snapshot sees the rows any more.
foreach my $try (1 .. 100)
{
	is(errors_of('VACUUM queue'), '', 'VACUUM works where it is full') if $try == 1;
	query('VACUUM queue');
	last if query(q{SELECT total_bytes FROM sherman_stat_indexes WHERE indexrelid = 'queue_id'::regclass}) < $bytes / 2;
	sleep 1;
}
cmp_ok(query(q{SELECT total_bytes FROM sherman_stat_indexes WHERE indexrelid = 'queue_id'::regclass}), '<', $bytes / 2, 'the bytes of the index fall');
is(errors_of('INSERT INTO other SELECT 100000000 + generate_series(1, 400000)'), '', 'another index has the memory');
is(errors_of("INSERT INTO queue SELECT 10000000 + generate_series(1, 50000)"), '', 'and the inserts of the table go on');
is(check_index($node, 'queue_id') + check_index($node, 'other_id'), 0, 'all is whole');
$node->stop;
done_testing();

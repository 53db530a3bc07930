
# What an administrator is told, and which statement to run next.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('main', conf => "shared_preload_libraries = ''\n");

# What psql says of SQL, with codes.
sub told
{
	my ($sql) = @_;
	my ($stdout, $stderr);

	$node->psql('postgres', "\\set VERBOSITY verbose\n$sql", stdout => \$stdout, stderr => \$stderr);
	return $stderr;
}

# CREATE EXTENSION where the library is not loaded: new_cluster() has made it by now, in silence of ours.
like(told('DROP EXTENSION sherman; CREATE EXTENSION sherman'),
	qr/WARNING:  55000: sherman indexes cannot be built or used: .*HINT:  Run ALTER SYSTEM SET shared_preload_libraries = 'sherman', and restart the server\./s,
	'CREATE EXTENSION warns where the library was not loaded');
like($node->safe_psql('postgres', 'SELECT extversion FROM pg_extension WHERE extname = $$sherman$$'), qr/^1\.\d+$/, 'and succeeds');
# A family of btree's is made meanwhile.
$node->safe_psql('postgres', q{CREATE SCHEMA types; CREATE EXTENSION citext SCHEMA types;
	CREATE TYPE types.seat AS (n int);
	CREATE FUNCTION types.seat_cmp(types.seat, types.seat) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT btint4cmp($1.n, $2.n)';
	CREATE FUNCTION types.seat_lt(types.seat, types.seat) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT $1.n < $2.n';
	CREATE OPERATOR types.<<< (LEFTARG = types.seat, RIGHTARG = types.seat, FUNCTION = types.seat_lt);
	CREATE OPERATOR CLASS types.seat_ops FOR TYPE types.seat USING btree AS OPERATOR 1 types.<<<, FUNCTION 1 types.seat_cmp(types.seat, types.seat);
	CREATE ROLE somebody;
	CREATE TABLE seats (s types.seat, n int)});
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "'sherman'");
$node->restart;
unlike(told('DROP EXTENSION IF EXISTS nothing; CREATE SCHEMA again'), qr/WARNING/, 'no warning without need');

# A class without a mirror: the hint is the statement that makes it.
my $said = told('CREATE INDEX seats_s ON seats USING sherman (n, s types.seat_ops)');
like($said, qr/ERROR:  42704: access method "sherman" does not mirror btree's operator class of data type types\.seat yet.*HINT:  Have a superuser run SELECT sherman_mirror_opfamily\('types', 'seat_ops'\)\./s,
	'a class that is not mirrored');
like(told('SET ROLE somebody; CREATE INDEX ON seats USING sherman (s types.seat_ops)'), qr/ERROR:  42501/, 'who may not make it learns nothing of it');
my ($hint) = $said =~ /run (SELECT .*?\))\.\n/;
$node->safe_psql('postgres', $hint // 'SELECT 1');
($hint) = told('CREATE INDEX seats_s ON seats USING sherman (n, s types.seat_ops)') =~ /HINT:  Its mirror is (pg_catalog\.seat_ops)/;
is(told("CREATE INDEX seats_s ON seats USING sherman (n, s $hint)"), '', 'the hints help');
like(told('CREATE INDEX ON seats USING sherman (s types.nothing_ops)'), qr/ERROR:  42704: operator class "types\.nothing_ops" does not exist for access method "sherman"/, 'one that btree has not either is core\'s to refuse');

# Foreign keys, up to 17.
$node->safe_psql('postgres', 'CREATE TABLE referenced (k int PRIMARY KEY WITH (sherman)); CREATE TABLE referring (k int)');
if ($node->safe_psql('postgres', 'SHOW server_version_num') < 180000)
{
	my $refused = qr/ERROR:  0A000: only b-tree indexes are supported for foreign keys.*HINT:  Drop the referenced constraint.*WITH \(sherman = off\)/s;

	like(told('ALTER TABLE referring ADD FOREIGN KEY (k) REFERENCES referenced'), $refused, 'a foreign key that references a sherman key');
	like(told('CREATE TABLE other (k int REFERENCES referenced)'), $refused, 'the same in CREATE TABLE');
	like(told('SET sherman.constraints = on; CREATE TABLE other (k int REFERENCES referenced)'), qr/0A000: .*HINT:  With sherman\.constraints = off keys are made btree's\./s,
		'a program that makes its tables by itself, under the setting');
	like(told('DO $$BEGIN CREATE TABLE other (k int REFERENCES referenced); EXCEPTION WHEN feature_not_supported THEN RAISE NOTICE \'caught\'; END$$'),
		qr/NOTICE:  00000: caught/, 'it can be caught');
	$node->safe_psql('postgres', 'ALTER TABLE referenced DROP CONSTRAINT referenced_pkey, ADD PRIMARY KEY (k) WITH (sherman = off); ALTER TABLE referring ADD FOREIGN KEY (k) REFERENCES referenced');
	pass('the hint helps');
}

# Partitions, which the setting does not reach.
my $btree = qr/NOTICE:  00000: the unique index of "\w+" is btree's, although sherman\.constraints is on/;
like(told('SET sherman.constraints = on; CREATE TABLE parted (k int PRIMARY KEY) PARTITION BY RANGE (k)'), $btree, 'a partitioned table');
like(told('SET sherman.constraints = on; CREATE TABLE part PARTITION OF parted (UNIQUE (k)) FOR VALUES FROM (0) TO (10)'), $btree, 'a partition');
like(told('SET sherman.constraints = on; ALTER TABLE part ADD UNIQUE (k)'), $btree, 'one that there is');
is(told('SET sherman.constraints = on; CREATE TABLE plain (k int PRIMARY KEY); ALTER TABLE part ADD UNIQUE (k) WITH (sherman = off); ALTER TABLE plain ADD COLUMN v int'), '', 'nothing else is told');
is(told('CREATE TABLE parted2 (k int PRIMARY KEY) PARTITION BY RANGE (k)'), '', 'nor without the setting');

# What processes wait for has names of ours from 17 on.
my $named = $node->safe_psql('postgres', 'SHOW server_version_num') >= 170000;
ok($node->poll_query_until('postgres', q{SELECT wait_event_type || ' ' || wait_event = 'Extension } . ($named ? 'ShermanLauncherMain' : 'Extension') .
	q{' FROM pg_stat_activity WHERE backend_type = 'sherman launcher'}), 'the launcher waits between its rounds');
if ($named)
{
	my %on_the_page = map { $_ => 1 } slurp_file("$FindBin::RealBin/../doc/operate/views.md") =~ /^\| `(Sherman[A-Z]\w+)` \|/mg;

	is($node->safe_psql('postgres', q{SELECT string_agg(name, ' ' ORDER BY name COLLATE "C") FROM pg_wait_events WHERE type = 'Extension' AND name LIKE 'Sherman%'}),
		join(' ', sort keys %on_the_page), 'the events of the page are in pg_wait_events, and no others');
}

# Indexes that are broken: the hint rebuilds them.
$node->safe_psql('postgres', 'CREATE SCHEMA "S"; CREATE TABLE "S".t AS SELECT generate_series(1, 1000) AS k; CREATE UNIQUE INDEX "T k" ON "S".t USING sherman (k); ANALYZE "S".t');
$node->stop('immediate');
unlink memory_files($node);
start_again($node);
$said = told('SELECT * FROM "S".t WHERE k = 5; INSERT INTO "S".t VALUES (0)');
like($said, qr/WARNING:  55000: index "T k" is broken and is not used: the memory node's memory is not the one.*HINT:  Rebuild it with REINDEX INDEX "S"\."T k", or all broken indexes with SELECT sherman_rebuild_all\(\)\./s, 'broken: the warning');
like($said, qr/ERROR:  55000: index "T k" is broken and cannot be used.*HINT:  Rebuild it with REINDEX INDEX "S"\."T k", or/s, 'and the error of a unique one');
($hint) = $said =~ /(REINDEX INDEX .*?), or/;
is(told($hint), '', 'the hint helps');
is(state_of($node, '"S"."T k"'), 'ok', 'and the index is good');
$node->stop;

done_testing();

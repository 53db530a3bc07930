
# pg_dump and restore of a database with sherman indexes of every kind and sherman constraints: indexes come back as they are,
# and so do constraints, by their mark, whatever sherman.constraints is where they are restored.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('main');
my $dump = $node->basedir . '/dump';

sub sql
{
	my ($database, $query) = @_;

	return $node->safe_psql($database, "SET client_min_messages = error; $query");
}

# Definitions of the indexes of a kind ('constraint' or 'index'), one a line.
sub definitions
{
	my ($database, $kind) = @_;
	my $constraint = $kind eq 'constraint' ? '' : 'NOT';

	return sql($database, "SELECT pg_get_indexdef(indexrelid) || ' ' || coalesce(array_to_string(c.reloptions, ','), '')
		FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname IN ('public', 'other') AND $constraint EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('p', 'u')) ORDER BY 1");
}

# Every sherman index is whole; how many there are.
sub check
{
	my ($database, $what) = @_;

	is(sql($database, "SELECT count(*) FROM sherman_stat_indexes WHERE state <> 'ok' OR sherman_check(indexrelid, true) <> 0"), '0', "$what: whole");
	return sql($database, 'SELECT count(*) FROM sherman_stat_indexes');
}

# Restores into a new database, with these settings; by pg_restore in two processes, or by psql.
sub restore
{
	my ($database, $settings, $parallel) = @_;

	local $ENV{PGOPTIONS} = $settings;
	sql('postgres', "CREATE DATABASE $database TEMPLATE template0");
	$node->command_ok(
		$parallel
		? [ 'pg_restore', '--exit-on-error', '-j', '2', '-d', $database, "$dump.custom" ]
		: [ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $database, '-f', "$dump.sql" ],
		"$database is restored");
	delete $ENV{PGOPTIONS};
}

sql('postgres', 'CREATE DATABASE source TEMPLATE template0');
sql('source', q{
	CREATE EXTENSION sherman;
	CREATE EXTENSION citext;
	CREATE SCHEMA other;
	SET sherman.constraints = on;
	CREATE TABLE keyed (id int PRIMARY KEY, code text UNIQUE, late int, pair int, UNIQUE (late) DEFERRABLE INITIALLY DEFERRED,
		CONSTRAINT wide UNIQUE NULLS NOT DISTINCT (pair) INCLUDE (code));
	SET sherman.constraints = off;
	CREATE TABLE core (id int PRIMARY KEY);
	INSERT INTO core VALUES (1);
	INSERT INTO keyed SELECT i, 'code ' || i, -i, nullif(i, 7) FROM generate_series(1, 1000) i;
	CREATE TABLE t (id int, word text, mail citext, at timestamptz, room int, EXCLUDE USING sherman (room WITH =));
	INSERT INTO t SELECT i, md5(i::text), 'User' || i, now() + i * interval '1 hour', i FROM generate_series(1, 2000) i;
	CREATE INDEX plain ON t USING sherman (id);
	CREATE INDEX directed ON t USING sherman (word DESC, at NULLS FIRST);
	CREATE INDEX including ON t USING sherman (at) INCLUDE (word, id);
	CREATE INDEX partial ON t USING sherman (id) WHERE word < '8';
	CREATE INDEX expression ON t USING sherman (lower(word), (id % 10));
	CREATE INDEX pattern ON t USING sherman (word text_pattern_ops);
	CREATE INDEX collated ON t USING sherman (word COLLATE "C");
	CREATE INDEX options ON t USING sherman (room) WITH (fillfactor = 70, deduplicate_items = off);
	CREATE INDEX mail ON t USING sherman (mail);
	CREATE UNIQUE INDEX once ON t USING sherman (id);
	CREATE UNIQUE INDEX once_partial ON t USING sherman (room) NULLS NOT DISTINCT WHERE id > 5;
	ALTER TABLE t REPLICA IDENTITY NOTHING;
	ALTER TABLE keyed REPLICA IDENTITY USING INDEX keyed_pkey;
	CLUSTER t USING plain;
	COMMENT ON INDEX plain IS 'a plain one';
	ALTER INDEX expression ALTER COLUMN 2 SET STATISTICS 50;
	CREATE MATERIALIZED VIEW other.seen AS SELECT id, word FROM t WHERE id % 2 = 0;
	CREATE INDEX seen_id ON other.seen USING sherman (id);
	CREATE TABLE parted (k int, v int) PARTITION BY RANGE (k);
	CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (100);
	CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (100) TO (200);
	CREATE INDEX parted_v ON parted USING sherman (v);
	INSERT INTO parted SELECT i, i FROM generate_series(0, 199) i;
});
my $indexes = definitions('source', 'index');
my $constraints = definitions('source', 'constraint');
my $count = check('source', 'source');
# What the source has as btree's the setting gives to sherman, where it is on.
(my $by_sherman = $constraints) =~ s/USING btree \(id\)/USING sherman (id) WITH (sherman='true')/g;
$by_sherman =~ s/^(.*core_pkey.*) $/$1 sherman=true/m;

$node->command_ok([ 'pg_dump', '-d', 'source', '-f', "$dump.sql" ], 'plain dump');
$node->command_ok([ 'pg_dump', '-Fc', '-d', 'source', '-f', "$dump.custom" ], 'dump for pg_restore');
unlike(slurp_file("$dump.sql"), qr/sherman_(tree|meta)/, 'nothing of the extension itself is dumped');

for my $parallel (0, 1)
{
	my $how = $parallel ? 'pg_restore' : 'psql';

	restore("off_$parallel", '', $parallel);
	is(definitions("off_$parallel", 'index'), $indexes, "$how: indexes as they were");
	is(definitions("off_$parallel", 'constraint'), $constraints, "$how: constraints as they were");
	is(check("off_$parallel", $how), $count, "$how: as many as before");

	restore("on_$parallel", '-c sherman.constraints=on', $parallel);
	is(definitions("on_$parallel", 'index'), $indexes, "$how with the setting: indexes as they were");
	is(definitions("on_$parallel", 'constraint'), $by_sherman, "$how with the setting: all constraints sherman's");
	is(check("on_$parallel", "$how with the setting"), $count + 1, "$how with the setting: one index more, core's own constraint");
}
is(sql('on_1', q{SELECT string_agg(c.relname || ' ' || a.attnum || ' ' || a.attstattarget, ',') FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid
	WHERE c.relname = 'expression' AND attstattarget > 0}), 'expression 2 50', 'statistics targets come back');
is(sql('on_1', q{SELECT obj_description('plain'::regclass)}), 'a plain one', 'comments come back');
is(sql('on_1', q{SELECT indexrelid::regclass FROM pg_index WHERE indisclustered}), 'plain', 'and the order of CLUSTER');
is(sql('on_1', q{SELECT indexrelid::regclass FROM pg_index WHERE indisreplident}), 'keyed_pkey', 'and the replica identity');

# What holds afterwards is what held before.
for my $database ('off_0', 'on_1')
{
	for my $insert ('keyed (id, late) VALUES (1, 1)', 'keyed (id, code) VALUES (5000, \'code 1\')', 'keyed (id, late) VALUES (5000, -1)', 't (id) VALUES (1)')
	{
		my ($status, $out, $error) = $node->psql($database, "\\set VERBOSITY sqlstate\nINSERT INTO $insert");

		like($error, qr/ERROR:  23505/, "$database: $insert is refused");
	}
}

# Partitions that had their constraints before they were attached are restored as partitions.
sql('source', q{
	CREATE TABLE late (k int PRIMARY KEY WITH (sherman), v int);
	INSERT INTO late SELECT i, i FROM generate_series(200, 299) i;
	ALTER TABLE parted ATTACH PARTITION late FOR VALUES FROM (200) TO (300);
});
$node->command_ok([ 'pg_dump', '-d', 'source', '-f', "$dump.sql" ], 'dump with a partition');
restore('off_2', '', 0);
is(definitions('off_2', 'constraint'), definitions('source', 'constraint'), 'a partition\'s constraint is as it was');

# By whatever name the access method goes, and whoever else bears that name.
sql('postgres', 'CREATE DATABASE renamed TEMPLATE template0');
sql('renamed', q{
	CREATE EXTENSION sherman;
	SET allow_system_table_mods = on;
	UPDATE pg_am SET amname = 'far' WHERE amname = 'sherman';
	CREATE ACCESS METHOD sherman TYPE INDEX HANDLER bthandler;
});
is(sql('renamed', q{
	SET sherman.constraints = on;
	CREATE TABLE one (k int PRIMARY KEY, v text UNIQUE);
	SET sherman.constraints = off;
	CREATE TABLE two (k int PRIMARY KEY WITH (sherman));
	SELECT string_agg(DISTINCT amname, ',') FROM pg_am a JOIN pg_class c ON c.relam = a.oid WHERE relname IN ('one_pkey', 'one_v_key', 'two_pkey')}),
	'far', 'constraints get our access method under another name');

# Where the library is not loaded a marked constraint is refused, not made a btree.
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$node->restart;
sql('postgres', 'CREATE DATABASE bare TEMPLATE template0');
my ($refused, $said, $why) = $node->psql('bare', 'CREATE TABLE t (id int); ALTER TABLE t ADD CONSTRAINT t_pkey PRIMARY KEY (id) WITH (sherman=\'true\')');
like($why, qr/unrecognized parameter "sherman"/, 'without the library the constraint is refused');
$node->stop;

done_testing();

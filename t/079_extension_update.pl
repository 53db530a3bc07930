
# A database with the extension's 1.0 goes on beside a library of 1.1, and is updated with its indexes in use.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('main', start => 0);

sub sql { return $node->safe_psql('postgres', $_[0]); }

$node->start;
sql(q{CREATE EXTENSION sherman VERSION '1.0';
	CREATE TABLE t (id int, word text);
	CREATE INDEX t_id ON t USING sherman (id);
	CREATE TABLE k (id int PRIMARY KEY WITH (sherman));
	INSERT INTO t SELECT g, md5(g::text) FROM generate_series(1, 3000) g;
	INSERT INTO k SELECT generate_series(1, 100);
	CREATE ROLE reader; GRANT pg_monitor TO reader;
	CREATE VIEW mine AS SELECT index, state, entries, outside_bytes FROM sherman_indexes WHERE state <> 'broken';
	CREATE VIEW my_counts AS SELECT index, inserts, parent_posts, copy_writes FROM sherman_counters});
is(sql('SELECT extversion FROM pg_extension WHERE extname = $$sherman$$'), '1.0', 'the SQL of 1.0');
is(sql('SELECT sherman_version()'), '1.1', 'beside the library of 1.1');
is(sql(q{SELECT string_agg(index || ' ' || state || ' ' || entries, ', ' ORDER BY index::text) FROM mine}), 'k_pkey ok 100, t_id ok 3000', 'its views work');
is(sql('SELECT inserts FROM my_counts WHERE index = $$t_id$$::regclass'), '3000', 'its counters, too');
is(sql('SELECT state FROM sherman_memory_nodes'), 'attached', 'and its memory nodes');
is(sql('SELECT count(*) FROM sherman_rebuilds') . sql('SELECT count(*) FROM sherman_heal_progress') . sql('SELECT count(*) FROM sherman_connection_workers'), '000', 'and the rest');
$node->stop('immediate');
$node->start;
ok($node->poll_query_until('postgres', q{SELECT state = 'healing' FROM sherman_indexes WHERE index = 't_id'::regclass}), 'it survives a crash');
is(sql('SELECT sherman_heal($$t_id$$) + sherman_heal($$k_pkey$$)'), '0', 'and heals');
is(check_index($node, 't_id'), '0', 'and is checked');

sql('ALTER EXTENSION sherman UPDATE');
is(sql('SELECT extversion FROM pg_extension WHERE extname = $$sherman$$'), '1.1', 'updated');
is(sql(q{SELECT string_agg(indexrelname || ' ' || state, ', ' ORDER BY indexrelname) FROM sherman_stat_indexes}), 'k_pkey ok, t_id ok', 'the new views');
is(sql(q{SELECT string_agg(index || ' ' || state, ', ' ORDER BY index::text) FROM mine}), 'k_pkey ok, t_id ok', 'and views over those of 1.0');
is(sql('SET ROLE reader; SELECT count(*) FROM sherman_memory_nodes') . sql('SET ROLE reader; SELECT count(*) FROM sherman_stat_memory_nodes'), '11', 'a member of pg_monitor sees both');
sql('INSERT INTO t SELECT g, g FROM generate_series(4000, 4009) g; INSERT INTO k VALUES (1000)');
is(sql('SELECT inserts FROM sherman_stat_indexes WHERE indexrelname = $$t_id$$'), '10', 'the index goes on');
is(check_index($node, 't_id') . check_index($node, 'k_pkey'), '00', 'and is whole');

# What was updated is what is made anew.
my $contents = q{SELECT string_agg(pg_describe_object(classid, objid, 0) || coalesce(' ' || (SELECT relacl::text FROM pg_class WHERE oid = objid AND classid = 'pg_class'::regclass), '')
	|| coalesce(' ' || (SELECT proacl::text FROM pg_proc WHERE oid = objid AND classid = 'pg_proc'::regclass), ''), E'\n' ORDER BY pg_describe_object(classid, objid, 0))
	FROM pg_depend WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e' AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'sherman')};
sql('CREATE DATABASE fresh');
$node->safe_psql('fresh', 'CREATE EXTENSION sherman');
is($node->safe_psql('fresh', $contents), sql($contents), 'the same objects and privileges as in a database that began with 1.1');
$node->stop;

done_testing();

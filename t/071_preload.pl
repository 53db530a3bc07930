# Beside another extension that has resource managers of its own, loaded before sherman and behind it: the server starts, and knows after
# each crash where its WAL ends.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('main', start => 0);
my $library = "$PostgreSQL::Test::Utils::tmp_check/other_manager.so";
my $rows = 0;

system_or_bail(
	$ENV{CC} // 'cc', '-O2', '-fPIC', '-shared',
	'-I' . $node->config_data('--includedir-server'), "$FindBin::RealBin/other_manager.c", '-o', $library);
$node->append_conf('postgresql.conf', "sherman.resource_manager_id = 0\nother_manager.first = 128\nother_manager.last = 128\n");

# Starts with these libraries, first and last number of the other one, and our own; true if that succeeds.
sub starts
{
	my ($libraries, $first, $last, $own) = @_;

	$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "'$libraries'");
	$node->adjust_conf('postgresql.conf', 'other_manager.first', $first);
	$node->adjust_conf('postgresql.conf', 'other_manager.last', $last);
	$node->adjust_conf('postgresql.conf', 'sherman.resource_manager_id', $own);
	return $node->start(fail_ok => 1);
}

# Adds rows, some of which have no WAL, crashes, and starts again; then the index has the rows of the table.
sub crash
{
	my ($known_by, $what) = @_;

	$node->safe_psql('postgres', "INSERT INTO t SELECT generate_series($rows + 1, $rows + 100)");
	$rows += 100;
	$node->stop('immediate');
	ok($node->start(fail_ok => 1), "$what: it starts behind a crash");
	is(state_of($node, 't_a'), 'healing', "$what: the index is usable");
	is($node->safe_psql('postgres', 'SELECT known_by FROM sherman_epochs WHERE wal_end IS NOT NULL ORDER BY epoch DESC LIMIT 1'), $known_by,
		"$what: where its WAL ends is known by the $known_by");
	is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM t WHERE a > 0'), $rows, "$what: all rows are there");
	return;
}

ok(starts("$library, sherman", 128, 128, 0), 'behind one that has the number for experiments');
$node->safe_psql('postgres', 'CREATE EXTENSION sherman; CREATE TABLE t (a int); CREATE INDEX t_a ON t USING sherman (a)');
crash('end of recovery', 'behind it');
$node->stop;
ok(starts("sherman, $library", 128, 128, 0), 'before one that has the number for experiments');
crash('end of recovery', 'before it');
$node->stop;
ok(starts("$library, sherman", 250, 255, 0), 'behind one that has the last numbers');
crash('end of recovery', 'the last numbers');
$node->stop;
ok(!starts("sherman, $library", 255, 255, 0), 'before one that wants the number which we have taken');
ok(starts("sherman, $library", 255, 255, 200), 'a setting gives us another one');
crash('end of recovery', 'the setting');
$node->stop;
ok(starts("$library, sherman", 129, 255, 0), 'all numbers but that for experiments are taken');
crash('next start in the WAL', 'without a number');
$node->stop;

done_testing();

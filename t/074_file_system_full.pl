
# The file system of the memory is full, and the memory node is not: the error says which of the two, and once there is room again
# everything goes on.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('main', memory => 256, conf => "sherman.embedded_snapshot = off\n", start => 0);
my $library = "$PostgreSQL::Test::Utils::tmp_check/full_file_system.so";
my $sign = $node->basedir . '/full';
my ($stdout, $stderr);

system_or_bail($ENV{CC} // 'cc', '-O2', '-fPIC', '-shared', "$FindBin::RealBin/full_file_system.c", '-o', $library, '-ldl');
{
	local $ENV{LD_PRELOAD} = $library;
	local $ENV{FULL_FILE_SYSTEM} = $sign;

	$node->start;
}
$node->safe_psql('postgres', 'CREATE EXTENSION sherman; CREATE TABLE t (id int, pad text); CREATE INDEX t_pad ON t USING sherman (pad);
	INSERT INTO t SELECT g, md5(g::text) FROM generate_series(1, 1000) g');

# Runs SQL; returns the errors.
sub errors_of
{
	$node->psql('postgres', "\\set VERBOSITY verbose\n$_[0]", stdout => \$stdout, stderr => \$stderr);
	return $stderr;
}

# More than the extents have that the index was given so far.
my $insert = q{INSERT INTO t SELECT g, repeat(md5(g::text), 8) FROM generate_series(1001, 61000) g};
my $is_full = qr/ERROR:  53100: file system of the memory node's memory is full: cannot extend (?:index "t_\w+"|a sherman index)\n.*HINT:  Make room there, or mount it with a larger size: no setting of the memory node helps\. Where memory was set aside, sherman_files\(\) shows it\./s;

append_to_file($sign, '');
like(errors_of($insert), $is_full, 'INSERT: 53100, and what helps');
like(errors_of('CREATE INDEX t_id ON t USING sherman (id)'), $is_full, 'CREATE INDEX: the same');
is($node->safe_psql('postgres', 'SELECT sum(total_bytes - used_bytes) > 200 * 1024 * 1024 FROM sherman_stat_memory_nodes'), 't', 'the memory node has room');
is(errors_of(q{INSERT INTO t VALUES (0, 'one more')}), '', 'what is there has room for a row');
is($node->safe_psql('postgres', q{SET enable_seqscan = off; SELECT id FROM t WHERE pad = 'one more'}), '0', 'and is read');
unlink($sign) or die "$sign: $!";
is(errors_of($insert), '', 'with room in the file system INSERT works');
is(errors_of('CREATE INDEX t_id ON t USING sherman (id)'), '', 'and CREATE INDEX');
is($node->safe_psql('postgres', 'SET enable_seqscan = off; SELECT count(*) FROM t WHERE id > 0'), 61000, 'all rows are found');
is(check_index($node, $_), '0', "$_ is whole") foreach qw(t_pad t_id);
is(state_of($node, 't_pad'), 'ok', 'and was never given up');
$node->stop;
done_testing();


# Crashes in the middle of everything, again and again: every index is whole at the first query, and never rebuilt.  script/test-crash
# does it a thousand times.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use CrashLoop;
use Test::More;

my $loop = CrashLoop->prepare('main');

for my $cycle (1 .. ($ENV{SHERMAN_CRASH_CYCLES} // 12))
{
	# The healer is at work beside the looks of every other cycle, and in the next one's load.
	$loop->{node}->append_conf('postgresql.conf', 'sherman.autoheal = ' . ($cycle % 2 ? 'off' : 'on') . "\n");
	$loop->cycle($cycle);
}
note("$loop->{rows} rows compared with each index, $loop->{healed} indexes found being healed");
ok($loop->{healed} > 0, 'indexes were being healed');
$loop->{node}->stop;
done_testing();

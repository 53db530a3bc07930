
# Faults in the middle of everything, again and again: every index is whole at the first query, and never rebuilt.  script/test long crash
# does it a thousand times.  SHERMAN_CRASH_CYCLES: how many; SHERMAN_CRASH_SEED: that of an earlier run.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use CrashLoop;
use Test::More;

my $cycles = $ENV{SHERMAN_CRASH_CYCLES} // 20;
my $of_nodes = int($cycles * 2 / 5);

CrashLoop::seed();
my $loop = CrashLoop->prepare('main');
my $nodes = CrashLoop->prepare('nodes', nodes => 2);

$loop->cycle($_) for (1 .. $cycles - $of_nodes);
$loop->summary;
ok($loop->{healing} > 0, 'indexes were in doubt');
$loop->{node}->stop;
$nodes->cycle($_) for (1 .. $of_nodes);
$nodes->summary;
is($loop->{wrong} + $nodes->{wrong}, 0, 'nothing is wrong');
$nodes->{node}->stop;
done_testing();

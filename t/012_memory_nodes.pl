
# Memory nodes of their own instead of the embedded one, on this machine.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use MemoryNodes;
use Test::More;

memory_nodes_test('shm', 'shm', 'shm');
done_testing();

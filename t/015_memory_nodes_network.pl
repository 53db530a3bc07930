
# The same across the network, with keys, and one on this machine.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use MemoryNodes;
use Test::More;

memory_nodes_test('tls', 'tls', 'shm');
done_testing();

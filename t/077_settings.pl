
# What settings take, and what they refuse: lists of memory nodes, paths, numbers.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('main', conf => "sherman.embedded_memory = 16MB\n");

# What ALTER SYSTEM says, which checks a value and does not use it: '' if it takes it.
sub says
{
	my ($setting, $value) = @_;
	my ($status, $stdout, $stderr) = $node->psql('postgres', "ALTER SYSTEM SET $setting = '$value'; ALTER SYSTEM RESET $setting");

	return $status == 0 && $stderr eq '' ? '' : $stderr =~ /DETAIL:  (.*)/ ? $1 : $stderr;
}

my $format = 'An address is "host:port", "tcp:host:port", "verbs:host:port" or "shm:/path".';
my $most = 32;
my @hosts = map { "h$_:1" } 1 .. $most + 1;

foreach my $case (
	[ '', '' ], [ '   ', '' ], [ 'a:1', '' ], [ ' a:1 , b:65535 ', '' ], [ 'tcp:a:1, verbs:b.c-d_e:2, shm:/path/to it', '' ],
	[ '[::1]:5', '' ], [ '[a]:5', '' ], [ 'tcp:[fe80::1]:5', '' ],
	[ 'a:0', $format ], [ 'a:65536', $format ], [ 'a:100000', $format ], [ 'a:000001', $format ], [ 'a:00001', '' ], [ 'a:', $format ], [ ':1', $format ],
	[ 'a', $format ], [ '1', $format ], [ 'a:b:1', $format ], [ 'a/b:1', $format ], [ 'a b:1', $format ], [ 'a:1x', $format ],
	[ '[]:5', $format ], [ '[a:5', $format ], [ '[:5', $format ], [ 'tcp:', $format ], [ 'shm:', $format ], [ 'http:a:1', $format ],
	[ 'shm:path', 'A path after "shm:" must be absolute.' ],
	[ 'a:1,', 'An element of the list is empty.' ], [ ',a:1', 'An element of the list is empty.' ], [ 'a:1,,b:1', 'An element of the list is empty.' ],
	[ 'a:1, a:1', 'An address is there twice.' ], [ 'a:1, b:1, tcp:a:1', 'An address is there twice.' ], [ 'a:1, a:2, b:1', '' ],
	[ join(',', @hosts[ 0 .. $most - 1 ]), '' ], [ join(',', @hosts), "There are more than $most memory nodes." ])
{
	is(says('sherman.memory_nodes', $case->[0]), $case->[1], "sherman.memory_nodes = '$case->[0]'");
}

# The longest address, and one byte more: an address has a place of a fixed length, "tcp:" and a zero included.
is(says('sherman.memory_nodes', ('a' x ($_ - 2)) . ':1'), $_ <= 267 ? '' : 'An address is too long.', "an address of $_ bytes") foreach 266 .. 269;

# Paths.
is(says('sherman.embedded_directory', '/dev/shm'), '', 'an absolute directory');
is(says('sherman.embedded_directory', 'dev/shm'), 'The directory must be an absolute path.', 'a relative one');
is(says('sherman.embedded_directory', '/' . ('a' x 511)), '', 'the longest directory');
is(says('sherman.embedded_directory', '/' . ('a' x 512)), 'The path is too long.', 'one byte more');
is(says('sherman.key_file', '/' . ('a' x 1022)), '', 'the longest path of a key file');
is(says('sherman.key_file', '/' . ('a' x 1023)), 'The path is too long.', 'one byte more');

# Numbers for recovery: those of extensions, and 0.
is(says('sherman.resource_manager_id', $_), '', "resource manager $_") foreach 0, 128, 255;
is(says('sherman.resource_manager_id', $_), 'It is 0, or from 128 to 255.', "resource manager $_") foreach 1, 127;
isnt(says('sherman.resource_manager_id', 256), '', 'resource manager 256');

$node->stop;
done_testing();

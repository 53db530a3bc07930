
# A copy of a server that takes itself for the original, as one of a whole machine does.

package Copies;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;

our @EXPORT = qw(clone);

my $state = 'pg_dynshmem/sherman.state';

sub crc32c
{
	my $crc = 0xFFFFFFFF;

	foreach my $byte (unpack('C*', $_[0]))
	{
		$crc ^= $byte;
		$crc = $crc & 1 ? ($crc >> 1) ^ 0x82F63B78 : $crc >> 1 for 1 .. 8;
	}
	return $crc ^ 0xFFFFFFFF;
}

# Makes the state file of a copied data directory say that it is the original's: device and inode are behind 16 bytes, the checksum
# behind all else.
sub steal_identity
{
	my $directory = shift;
	my ($device, $inode) = (stat($directory))[ 0, 1 ];
	my $content = slurp_file("$directory/$state");
	my ($end) = grep { unpack('L', substr($content, $_, 4)) == crc32c(substr($content, 0, $_)) } (length($content) - 4, length($content) - 8);

	substr($content, 16, 16) = pack('QQ', $device, $inode);
	substr($content, $end, 4) = pack('L', crc32c(substr($content, 0, $end)));
	open(my $file, '+<:raw', "$directory/$state") or die "$state: $!";
	print {$file} $content;
	close $file;
	return;
}

# clone(node, name): the data directory as it is now, of a server that runs or not; not started.
sub clone
{
	my ($node, $name) = @_;
	my $clone = PostgreSQL::Test::Cluster->new($name);
	my $data = $clone->data_dir;

	mkdir $clone->basedir;
	# Files may come and go meanwhile.
	system('cp', '-a', $node->data_dir, $data);
	unlink "$data/postmaster.pid";
	$clone->append_conf('postgresql.conf', 'port = ' . $clone->port . "\nunix_socket_directories = '" . $clone->host . "'\n");
	steal_identity($data);
	return $clone;
}

1;

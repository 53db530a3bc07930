
# A copy of a server that takes itself for the original, as one of a whole machine does.

package Copies;

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;

our @EXPORT = qw(clone steal_epoch);

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

# change(directory, change): changes the content of its state file, and the checksum that is behind all else.
sub change
{
	my ($directory, $change) = @_;
	my $content = slurp_file("$directory/$state");
	my ($end) = grep { unpack('L', substr($content, $_, 4)) == crc32c(substr($content, 0, $_)) } (length($content) - 4, length($content) - 8);

	$change->(\$content);
	substr($content, $end, 4) = pack('L', crc32c(substr($content, 0, $end)));
	open(my $file, '+<:raw', "$directory/$state") or die "$state: $!";
	print {$file} $content;
	close $file;
	return;
}

# Makes the state file of a copied data directory say that it is the original's: behind 16 bytes are the inode of PG_VERSION, when
# that was made (0: unknown) and the directory (1024 bytes).
sub steal_identity
{
	my $directory = shift;
	my $inode = (stat("$directory/PG_VERSION"))[1];

	change($directory, sub { substr(${ $_[0] }, 16, 16 + 1024) = pack('QQa1024', $inode, 0, abs_path($directory)) });
	return;
}

# steal_epoch(from, to, memory): makes the state file of `to` take the number of the epoch at a memory node from that of `from`.  It is
# 24 bytes behind the memory's identity, which is 56 bytes behind the beginning of the memory's file.
sub steal_epoch
{
	my ($from, $to, $memory) = @_;
	my ($identity, $epoch);

	open(my $file, '<:raw', $memory) or die "$memory: $!";
	seek($file, 56, 0);
	read($file, $identity, 16) == 16 or die "$memory: $!";
	close $file;
	my $other = slurp_file("$from/$state");
	$epoch = substr($other, index($other, $identity) + 24, 8);
	change($to, sub { substr(${ $_[0] }, index(${ $_[0] }, $identity) + 24, 8) = $epoch });
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


# For the TAP tests: what is in an index's metapage, changed in its file while the server is stopped, as another version may have written it.

package Metapage;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(metapage_change metapage_path);

use constant PAGE_HEADER => 24;

sub crc32c
{
	my ($bytes) = @_;
	my $crc = 0xffffffff;

	for my $byte (unpack 'C*', $bytes)
	{
		$crc ^= $byte;
		$crc = $crc & 1 ? ($crc >> 1) ^ 0x82f63b78 : $crc >> 1 for 1 .. 8;
	}
	return $crc ^ 0xffffffff;
}

# metapage_change(path, at, bytes): puts bytes into the metapage, and makes its checksum right; returns those that it had there. `at` is behind
# the page's header, or, where it is negative, before the checksum.
sub metapage_change
{
	my ($path, $at, $bytes) = @_;
	open(my $file, '+<:raw', $path) or die "$path: $!";
	read($file, my $page, 8192);
	my $meta = substr($page, PAGE_HEADER, unpack('v', substr($page, 12, 2)) - PAGE_HEADER);
	my ($sum) = grep { crc32c(substr($meta, 0, $_)) == unpack('V', substr($meta, $_, 4)) } map { length($meta) - 4 * $_ } 1, 2;
	die "$path: no checksum" unless defined $sum;
	$at += $sum if $at < 0;
	my $had = substr($meta, $at, length($bytes));
	substr($meta, $at, length($bytes)) = $bytes;
	substr($meta, $sum, 4) = pack('V', crc32c(substr($meta, 0, $sum)));
	seek($file, PAGE_HEADER, 0);
	print $file $meta;
	close($file) or die "$path: $!";
	return $had;
}

# metapage_path(node, index): the file that has it.
sub metapage_path
{
	my ($node, $index) = @_;
	return $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('$index')");
}

1;

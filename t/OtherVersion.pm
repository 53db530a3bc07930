
# For the TAP tests: what looks like a memory node of a version to come. It answers every request with a frame of its own.

package OtherVersion;

use strict;
use warnings;

use IO::Socket::INET ();
use POSIX ();

# Longer than any test.
use constant LIFETIME => 600;

sub new
{
	my $class = shift;
	my $listener = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1', Proto => 'tcp') or die "listen: $!";
	my $self = bless { port => $listener->sockport, pid => fork // die "fork: $!" }, $class;

	return $self if $self->{pid};
	alarm LIFETIME;
	while (my $client = $listener->accept)
	{
		# {length, method HELLO, version 99, request 1}, as rdma/base/frame.h has it, and nothing.
		$client->syswrite(pack('VvvQ<', 8, 0xff01, 99, 1) . "\0" x 8) if $client->sysread(my $request, 512);
		$client->close;
	}
	POSIX::_exit(1);
}

sub address
{
	my $self = shift;

	return "tcp:127.0.0.1:$self->{port}";
}

sub stop
{
	my $self = shift;

	kill 'KILL', $self->{pid};
	waitpid($self->{pid}, 0);
	return;
}

1;

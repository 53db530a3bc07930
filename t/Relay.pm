
# A way to a memory node that can be cut: a process that passes on what comes, and on SIGUSR1 closes all connections.  New ones are let in at once, but
# not while the way is shut, which SIGUSR2 begins and ends.

package Relay;

use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;
use POSIX ();

my @all;

# new(address): `address` is 'tcp:HOST:PORT'.
sub new
{
	my ($class, $address) = @_;
	my ($to) = $address =~ /^tcp:(.*)/ or die "no relay to $address";
	my $listen = IO::Socket::INET->new(Listen => 16, LocalAddr => '127.0.0.1') or die "no relay: $!";
	my $self = bless { port => $listen->sockport }, $class;
	my $pid = fork // die "fork: $!";

	if ($pid == 0)
	{
		eval { pass_on($listen, $to) };
		# Not the test's end blocks.
		POSIX::_exit(1);
	}
	$self->{pid} = $pid;
	push @all, $self;
	return $self;
}

# Where PostgreSQL finds what is behind it.
sub address
{
	my $self = shift;

	return "tcp:127.0.0.1:$self->{port}";
}

sub cut
{
	my $self = shift;

	kill 'USR1', $self->{pid};
	return;
}

# Until open_again() nobody gets through.
sub shut
{
	my $self = shift;

	kill 'USR2', $self->{pid};
	return;
}

sub open_again
{
	my $self = shift;

	kill 'USR2', $self->{pid};
	return;
}

sub write_all
{
	my ($socket, $bytes) = @_;

	while (length $bytes)
	{
		my $written = syswrite($socket, $bytes);

		next if !defined $written && $!{EINTR};
		return 0 unless $written;
		substr($bytes, 0, $written, '');
	}
	return 1;
}

# The relay's process; it is ended by a signal.
sub pass_on
{
	my ($listen, $to) = @_;
	my $select = IO::Select->new($listen);
	my %other;
	my $cut = 0;
	my $shut = 0;
	my $end = sub {
		foreach my $socket (@_)
		{
			$select->remove($socket);
			delete $other{$socket};
			close $socket;
		}
	};

	local $SIG{USR1} = sub { $cut = 1 };
	local $SIG{USR2} = sub { $shut = !$shut; $cut = 1 };
	local $SIG{PIPE} = 'IGNORE';
	while (getppid() != 1)
	{
		# A signal that comes before it sleeps is seen a little later.
		my @ready = $select->can_read(0.05);

		if ($cut)
		{
			$cut = 0;
			$end->(grep { $_ != $listen } $select->handles);
			next;
		}
		foreach my $socket (@ready)
		{
			if ($socket == $listen)
			{
				my $client = $listen->accept or next;
				my $server = $shut ? undef : IO::Socket::INET->new(PeerAddr => $to);

				if (!$server)
				{
					close $client;
					next;
				}
				setsockopt($_, Socket::IPPROTO_TCP(), Socket::TCP_NODELAY(), 1) foreach $client, $server;
				@other{ $client, $server } = ($server, $client);
				$select->add($client, $server);
				next;
			}
			# It may have ended with the other one of the pair.
			my $peer = $other{$socket} or next;
			my $read = sysread($socket, my $bytes, 65536);

			next if !defined $read && $!{EINTR};
			$end->($socket, $peer) unless $read && write_all($peer, $bytes);
		}
	}
	return;
}

END
{
	my $status = $?;

	foreach my $self (@all)
	{
		kill 'KILL', $self->{pid};
		waitpid($self->{pid}, 0);
	}
	$? = $status;
}

1;

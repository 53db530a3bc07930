
# Memory nodes of their own for the TAP tests: daemons, each with its memory on tmpfs, that can be ended and started again.

package Msd;

use strict;
use warnings;

use File::Basename qw(basename);
use File::Temp ();
use POSIX ();
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my @all;

# The key that all memory nodes know, and all servers have.
my $keys;

# Writes a file of keys, one line for each tenant.
sub write_keys
{
	my ($file, %keys) = @_;

	open(my $out, '>', $file) or die "$file: $!";
	chmod 0600, $file;
	print {$out} "$_ $keys{$_}\n" foreach sort keys %keys;
	close $out;
	return;
}

sub random_key
{
	return join('', map { sprintf('%02x', int(rand(256))) } 1 .. 32);
}

# Lines for a server's configuration.
sub configuration
{
	if (!defined $keys)
	{
		$keys = "$PostgreSQL::Test::Utils::tmp_check/keys_$$";
		write_keys($keys, main => random_key());
	}
	return "sherman.key_file = '$keys'\n";
}

# new(name, size => MB, transport => 'shm' | 'tcp' | 'tls' | 'verbs'): started, and serving. 'tcp' is without a key, 'tls' with one; 'verbs', with one, is
# over the device $SHERMAN_TEST_VERBS, at its address $SHERMAN_TEST_VERBS_HOST (test/rdma/standby).
sub new
{
	my ($class, $name, %options) = @_;
	my $parent = $ENV{SHERMAN_TEST_MEMORY} // (-w '/dev/shm' ? '/dev/shm' : $PostgreSQL::Test::Utils::tmp_check);
	my $self = bless {
		name => $name,
		size => $options{size} // 256,
		transport => $options{transport} // 'shm',
		flags => $options{flags} // [],
		keys => $options{keys},
		port => 0,
		directory => File::Temp->newdir('msd_XXXXXX', DIR => $parent),
		# Called as the servers' are: after the test.
		log => "$PostgreSQL::Test::Utils::log_path/" . basename($0, '.pl') . "_msd_$name.log",
	}, $class;

	$self->{memory} = "$self->{directory}/memory";
	$self->{socket} = "$self->{directory}/socket";
	push @all, $self;
	$self->start;
	return $self;
}

# Where PostgreSQL finds it.
sub address
{
	my $self = shift;

	return "verbs:$ENV{SHERMAN_TEST_VERBS_HOST}:$self->{port}" if $self->{transport} eq 'verbs';
	return $self->{transport} eq 'shm' ? "shm:$self->{socket}" : "tcp:127.0.0.1:$self->{port}";
}

sub scheme
{
	my $self = shift;

	return $self->{transport} eq 'tls' ? 'tcp' : $self->{transport};
}

# The flags that say where to listen.
sub listen_flags
{
	my $self = shift;

	configuration();
	return () if $self->{transport} eq 'shm';
	return ('--listen', "$ENV{SHERMAN_TEST_VERBS_HOST}:$self->{port}", '--keys', $self->{keys} // $keys, '--verbs', $ENV{SHERMAN_TEST_VERBS})
	  if $self->{transport} eq 'verbs';
	return ('--listen', "127.0.0.1:$self->{port}", $self->{transport} eq 'tls' ? ('--keys', $self->{keys} // $keys) : '--insecure-loopback');
}

sub start
{
	my $self = shift;
	my $offset = -s $self->{log} // 0;
	my @listen = $self->listen_flags;
	my $pid = fork // die "fork: $!";

	if ($pid == 0)
	{
		# Not the test's: its descriptors, its end blocks.
		open STDIN, '<', '/dev/null';
		open STDOUT, '>>', $self->{log};
		open STDERR, '>>', $self->{log};
		exec('msd', '--memory', $self->{memory}, '--socket', $self->{socket}, '--size', "$self->{size}M", @listen, @{ $self->{flags} })
		  or POSIX::_exit(127);
	}
	$self->{pid} = $pid;
	foreach my $i (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		my $log = -e $self->{log} ? slurp_file($self->{log}, $offset) : '';

		# The port stays the same from the first start on.
		$self->{port} = $1 if $log =~ /listening at \S+, port (\d+)/;
		return if $log =~ /: ready$/m;
		last if waitpid($pid, POSIX::WNOHANG()) == $pid;
		usleep(100_000);
	}
	die "msd $self->{name} does not serve: see $self->{log}";
}

sub end
{
	my ($self, $signal) = @_;

	kill $signal, $self->{pid};
	waitpid($self->{pid}, 0);
	$self->{pid} = undef;
	return $? >> 8;
}

# SIGTERM; the memory is kept. Returns the exit status.
sub stop
{
	my $self = shift;

	return $self->end('TERM');
}

# SIGKILL; the memory is kept.
sub crash
{
	my $self = shift;

	$self->end('KILL');
	return;
}

# SIGHUP; waits until it has read its settings anew.
sub reload
{
	my $self = shift;
	my $offset = -s $self->{log};

	kill 'HUP', $self->{pid};
	foreach my $i (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return if slurp_file($self->{log}, $offset) =~ /info: reloaded/;
		usleep(100_000);
	}
	die "msd $self->{name} does not reload: see $self->{log}";
}

sub lose_memory
{
	my $self = shift;

	unlink $self->{memory} or die "$self->{memory}: $!";
	return;
}

# Serves elsewhere from the next start on.
sub move
{
	my $self = shift;

	$self->{socket} .= '_moved';
	$self->{port} = 0;
	return;
}

END
{
	my $status = $?;

	unlink $keys if defined $keys;
	foreach my $node (grep { defined $_->{pid} } @all)
	{
		$node->end('KILL');
	}
	$? = $status;
}

1;

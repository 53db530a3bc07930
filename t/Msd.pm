
# Memory nodes of their own for the TAP tests: daemons, each with its memory on tmpfs, that can be ended and started again.

package Msd;

use strict;
use warnings;

use File::Temp ();
use POSIX ();
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my @all;

# new(name, size => MB, transport => 'shm'): started, and serving.
sub new
{
	my ($class, $name, %options) = @_;
	my $parent = $ENV{SHERMAN_TEST_MEMORY} // (-w '/dev/shm' ? '/dev/shm' : $PostgreSQL::Test::Utils::tmp_check);
	my $self = bless {
		name => $name,
		size => $options{size} // 256,
		directory => File::Temp->newdir('msd_XXXXXX', DIR => $parent),
		log => "$PostgreSQL::Test::Utils::log_path/msd_$name.log",
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

	return "shm:$self->{socket}";
}

sub start
{
	my $self = shift;
	my $offset = -s $self->{log} // 0;
	my $pid = fork // die "fork: $!";

	if ($pid == 0)
	{
		# Not the test's: its descriptors, its end blocks.
		open STDIN, '<', '/dev/null';
		open STDOUT, '>>', $self->{log};
		open STDERR, '>>', $self->{log};
		exec('msd', '--memory', $self->{memory}, '--socket', $self->{socket}, '--size', "$self->{size}M") or POSIX::_exit(127);
	}
	$self->{pid} = $pid;
	foreach my $i (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return if -e $self->{log} && slurp_file($self->{log}, $offset) =~ /serving/;
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
	return;
}

END
{
	my $status = $?;

	foreach my $node (grep { defined $_->{pid} } @all)
	{
		$node->end('KILL');
	}
	$? = $status;
}

1;


# Sessions that write and read all the time, whatever happens to the server's memory nodes: each statement by itself, errors or
# not.

package Load;

use strict;
use warnings;

use POSIX ();
use PostgreSQL::Test::Utils;
use Time::HiRes qw(usleep);

# Rows are found by id; this one is always there, once.
use constant CERTAIN => 400000;

# start(node, count): begins. The table is rows (id bigint, word text); the row CERTAIN is made if it is not there.
sub start
{
	my ($class, $node, $count) = @_;
	my $base = $PostgreSQL::Test::Utils::tmp_check . '/load_' . $node->name;
	my $self = bless { flag => "$base.flag", files => [], pids => [] }, $class;
	my $certain = CERTAIN;

	$node->safe_psql('postgres', "INSERT INTO rows SELECT $certain, 'certain' WHERE NOT EXISTS (SELECT FROM rows WHERE id = $certain)");
	unlink $self->{flag};
	foreach my $number (1 .. $count)
	{
		my $file = "$base.$number";
		my $pid = fork // die "fork: $!";

		if ($pid == 0)
		{
			eval { run($file, $self->{flag}, $node->connstr('postgres'), $number) };
			POSIX::_exit(0);
		}
		push @{ $self->{pids} }, $pid;
		push @{ $self->{files} }, $file;
	}
	return $self;
}

# One session, in a process of its own.
sub run
{
	my ($file, $flag, $connection, $number) = @_;
	my $id = 2_000_000_000 * $number;

	open STDOUT, '>', $file;
	open STDERR, '>', "$file.errors";
	open(my $psql, '|-', 'psql', '-XAt', '-v', 'VERBOSITY=verbose', '-d', $connection) or POSIX::_exit(1);
	while (!-e $flag)
	{
		foreach my $i (1 .. 20)
		{
			$id += 1 + int(rand(1000));
			print {$psql} "INSERT INTO rows VALUES ($id, 'load');\n";
		}
		print {$psql} "SELECT 'certain', count(*) FROM rows WHERE id = ${\CERTAIN};\n";
		$psql->flush;
	}
	close $psql;
	return;
}

sub output
{
	my ($self, $suffix) = @_;

	return join('', map { -e "$_$suffix" ? slurp_file("$_$suffix") : '' } @{ $self->{files} });
}

sub acknowledged
{
	my $self = shift;
	my $count = () = $self->output('') =~ /^INSERT 0 1$/mg;

	return $count;
}

# Waits until that many more inserts were acknowledged.
sub wait_for
{
	my ($self, $more) = @_;
	my $wanted = $self->acknowledged + $more;

	foreach my $i (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return if $self->acknowledged >= $wanted;
		usleep(100_000);
	}
	die 'no progress: ' . $self->output('.errors');
}

# Ends. Then inserted: inserts that were acknowledged; wrong: answers that were; errors: what psql said of them.
sub stop
{
	my $self = shift;
	my $wrong;

	open(my $flag, '>', $self->{flag}) or die "$self->{flag}: $!";
	close $flag;
	waitpid($_, 0) foreach @{ $self->{pids} };
	$self->{inserted} = $self->acknowledged;
	$wrong = () = $self->output('') =~ /^certain\|(?!1$)/mg;
	$self->{wrong} = $wrong;
	$self->{errors} = $self->output('.errors');
	return;
}

1;


# The postmaster is killed while another process has the pipe open by which the others see that: a child that was just forked has it, for
# a moment.  The embedded memory node ends all the same: as long as it lives no server can be started.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;
use Time::HiRes qw(usleep);

# Longer than the memory node's loop sleeps, several times: it looks for the postmaster while the pipe is open.
use constant LOOKS_US => 1_000_000;

my $node = new_cluster('main');

# Opens the writing end of a process's pipes once more, but for those that are of another user, who started it.
sub open_pipes
{
	my $pid = shift;
	my @open;

	foreach my $descriptor (glob "/proc/$pid/fd/*")
	{
		next unless (readlink $descriptor // '') =~ /^pipe:/;
		my $info = slurp_file("/proc/$pid/fdinfo/" . ($descriptor =~ s/.*\///r));
		next unless $info =~ /^flags:\s*0*\d*1$/m;
		open my $file, '>', $descriptor or next;
		push @open, $file;
	}
	return @open;
}

$node->safe_psql('postgres', 'CREATE TABLE rows (id int); CREATE INDEX rows_id ON rows USING sherman (id); INSERT INTO rows SELECT generate_series(1, 1000)');
my $postmaster = $node->safe_psql('postgres', q{SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)});
my $memory_node = node_pid($node);
my @pipes = open_pipes($postmaster);
cmp_ok(scalar @pipes, '>', 0, 'the pipe is open here, too');
$node->kill9;
usleep(LOOKS_US);
close $_ foreach @pipes;
for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	last unless kill 0, $memory_node;
	usleep(100_000);
}
ok(!(kill 0, $memory_node), 'the memory node ends');
$node->start;
$node->poll_query_until('postgres', q{SELECT state = 'attached' FROM sherman_memory_nodes}) or die 'the memory node is not attached';
is(check_index($node, 'rows_id'), '0', 'and the next one has the index');
$node->stop;
done_testing();

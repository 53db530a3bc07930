
# The postmaster is killed while another process has the pipe open by which the others see that: a child that was just forked has it, for
# a moment.  The embedded memory node ends all the same: as long as it lives no server can be started. A session that sees it ends, and says why.

use strict;
use warnings;

use FindBin;
use IPC::Run;
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

sub ends
{
	my $pid = shift;

	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return 1 unless kill 0, $pid;
		usleep(100_000);
	}
	return 0;
}

$node->safe_psql('postgres', 'CREATE TABLE rows (id int); CREATE INDEX rows_id ON rows USING sherman (id); INSERT INTO rows SELECT generate_series(1, 100000)');
my $postmaster = $node->safe_psql('postgres', q{SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)});
my $memory_node = node_pid($node);
my @pipes = open_pipes($postmaster);
cmp_ok(scalar @pipes, '>', 0, 'the pipe is open here, too');
$node->kill9;
usleep(LOOKS_US);
close $_ foreach @pipes;
ok(ends($memory_node), 'the memory node ends');
$node->start;
$node->poll_query_until('postgres', q{SELECT state = 'attached' FROM sherman_stat_memory_nodes}) or die 'the memory node is not attached';
is(check_index($node, 'rows_id'), '0', 'and the next one has the index');

$memory_node = node_pid($node);

# A session that is between two nodes when the postmaster dies says so: nobody has canceled anything.
my $offset = -s $node->logfile;
my ($out, $errors) = ('', '');
my $session = IPC::Run::start([ 'psql', '-XAtq', '-v', 'VERBOSITY=verbose', '-d', $node->connstr('postgres'), map { ('-c', $_) } 'SET sherman.debug_action = hang',
		'SET sherman.debug_step = 6', q{SELECT sherman_check('rows_id')} ],
	'>', \$out, '2>', \$errors);
$node->wait_for_log(qr/sherman\.debug_step: hang at step 6,/, $offset);
$node->kill9;
$session->finish;
like($errors, qr/FATAL:  57P01: terminating connection due to unexpected postmaster exit/, 'a session says that its postmaster is gone');
unlike($errors, qr/user request/, 'and not that a user has canceled it');
is($out, '', 'its statement gives nothing');
ends($memory_node);
$node->start;
$node->stop;
done_testing();

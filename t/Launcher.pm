
# The launcher held up at one of its steps (am/base/crash_points.c).

package Launcher;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Utils;

our @EXPORT = qw(hold_launcher release_launcher);

# hold_launcher(node, step, number): starts the server, which has ended well, with the launcher held up at its first step of this name,
# such as "before attach". Returns the step's number, by which it is found again without trying.
sub hold_launcher
{
	my ($node, $step, $known) = @_;

	foreach my $number (defined $known ? $known : 1 .. 30)
	{
		my $offset = -s $node->logfile;

		$node->append_conf('postgresql.conf', "sherman.debug_process = 'sherman launcher'\nsherman.debug_action = hang\nsherman.debug_step = $number\n");
		$node->start;
		$node->wait_for_log(qr/sherman\.debug_step: hang at step/, $offset);
		return $number if $node->log_contains("hang at step $number, $step\n", $offset);
		$node->stop;
	}
	die "the launcher has no step '$step'";
}

# It goes on as if it had been slow.
sub release_launcher
{
	my ($node) = @_;

	$node->append_conf('postgresql.conf', "sherman.debug_step = 0\n");
	$node->reload;
	return;
}

1;

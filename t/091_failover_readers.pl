
# Failovers among standbys that read: two and three that are promoted at once, each of which would take the indexes over; the old primary, killed with WAL
# that nobody else has, started by mistake, rewound, and promoted in turn.  One server has the indexes, and the others say why they have not.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Launcher;
use Msd;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Sherman;
use StandbyLoad;
use Takeover;
use Test::More;

need_steps();

my $msd = Msd->new('a', size => 128, transport => 'tls');
# Where servers find each other's timelines, so that promotions do not make one of the same number; but they do not follow each other of themselves.
my $archive = PostgreSQL::Test::Utils::tempdir();
my $old = new_cluster('old',
	allows_streaming => 1,
	conf => "sherman.operation_timeout = 5s\nsherman.attach_timeout = 2s\nsherman.take_over = auto\n"
	  . "sherman.memory_nodes = '" . $msd->address . "'\n"
	  . Msd::configuration()
	  . "wal_log_hints = on\nwal_keep_size = 512MB\nmax_standby_streaming_delay = 100ms\nrecovery_target_timeline = current\n"
	  . "archive_mode = on\narchive_command = 'case %f in *.history) cp \"%p\" \"$archive/%f\";; esac'\nrestore_command = 'cp \"$archive/%f\" \"%p\"'\n");

prepare_rows($old);
my @names = qw(one two three);
my %standby;

$old->backup('base');
foreach my $name (@names)
{
	$standby{$name} = PostgreSQL::Test::Cluster->new($name);
	$standby{$name}->init_from_backup($old, 'base', has_streaming => 1);
	$standby{$name}->start;
}
wait_noted($old);

# The answers of a server are right; on one that is no standby nothing is canceled.
sub right
{
	my ($server, $what) = @_;
	my ($done, $canceled, $bad) = compare_all($server);

	is($bad, '', $what . ': ' . $server->name . ' answers rightly');
	is($done, 18, $what . ': ' . $server->name . ' answers all') if $canceled == 0 || $server->safe_psql('postgres', 'SELECT pg_is_in_recovery()') eq 'f';
	return;
}

sub reads
{
	my ($server, $what) = @_;

	ok($server->poll_query_until('postgres', q{SELECT bool_and(state = 'ok') FROM sherman_stat_indexes}), $what . ': ' . $server->name . ' reads the indexes');
	ok(uses_index($server, 'rows_id', 'SELECT * FROM rows WHERE id = 500'), $what . ': and uses them');
	right($server, $what);
	return;
}

sub taken_over
{
	my ($server) = @_;
	my $log = slurp_file($server->logfile);

	return scalar(() = $log =~ /sherman indexes are taken over as they were at/g);
}

sub states
{
	my $server = shift;

	return $server->safe_psql('postgres', q{SELECT string_agg(DISTINCT state, ' ') FROM sherman_stat_indexes});
}

# The indexes are this server's, none was rebuilt, and all are whole.
my $trees = $old->safe_psql('postgres', q{SELECT string_agg(tree, ' ' ORDER BY indexrelname) FROM sherman_stat_indexes});

sub has_indexes
{
	my ($server, $what) = @_;

	unlike(states($server), qr/broken|unreachable|attaching/, $what . ': ' . $server->name . ' has the indexes');
	right($server, $what);
	$server->safe_psql('postgres', q{SELECT sherman_heal(indexrelid) FROM sherman_stat_indexes});
	is($server->safe_psql('postgres', q{SELECT sum(sherman_check(indexrelid, true)) FROM sherman_stat_indexes}), '0', "$what: they are whole");
	is($server->safe_psql('postgres', q{SELECT string_agg(tree, ' ' ORDER BY indexrelname) FROM sherman_stat_indexes}), $trees, "$what: and the same");
	return;
}

# A server has not the indexes, and says why: they were used by another one since, by its view, or by its log if it has an identity of its own already.
sub lost_it
{
	my $server = shift;

	ok( $server->log_contains(qr/another server has taken over the sherman indexes of this one/)
		  || $server->poll_query_until('postgres', q{SELECT bool_or(reason LIKE '%used since by a server with another history%') FROM sherman_stat_memory_nodes}),
		$server->name . ' says who has the indexes');
	return;
}

sub rewind_to
{
	my ($server, $source) = @_;
	my $port = $server->port;
	my $conf = slurp_file($server->data_dir . '/postgresql.conf');

	$source->safe_psql('postgres', 'CHECKPOINT');
	command_ok([ 'pg_rewind', '--source-server', $source->connstr('postgres'), '--target-pgdata', $server->data_dir, '--no-sync' ], $server->name . ' is rewound to ' . $source->name);
	# It has the source's files now.
	unlink $server->data_dir . '/postgresql.conf', $server->data_dir . '/postgresql.auto.conf';
	append_to_file($server->data_dir . '/postgresql.conf', $conf);
	follow($server, $source);
	return;
}

sub follow
{
	my ($server, $source) = @_;

	$server->append_conf('postgresql.conf', "primary_conninfo = '" . $source->connstr . ' application_name=' . $server->name . "'\nrecovery_target_timeline = latest\n");
	$server->set_standby_mode;
	$server->start;
	wait_noted($source);
	$source->wait_for_catchup($server);
	return;
}

change_rows($old, 1);
$old->wait_for_catchup($standby{$_}) foreach @names;
reads($standby{one}, 'at the beginning');

# What follows is in the trees, and in no standby.
foreach my $name (@names)
{
	$standby{$name}->safe_psql('postgres', q{ALTER SYSTEM SET primary_conninfo = ''});
	$standby{$name}->reload;
	$standby{$name}->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_stat_wal_receiver') or die 'still receiving';
}
change_rows($old, 2, 'without VACUUM');
right($standby{one}, 'behind the primary');
$old->stop('immediate');

#
# The first one that is promoted has looked at the memory node when the second one takes it.
#
my ($one, $two, $three) = @standby{@names};

# It notes that it takes over, and that its own epoch begins, before.
$one->append_conf('postgresql.conf', "sherman.debug_process = 'sherman launcher'\nsherman.debug_action = pause\nsherman.debug_step = 5\n");
$one->reload;
$one->promote;
$one->wait_for_log(qr/sherman\.debug_step: pause at step 5, /);
ok($one->log_contains(qr/pause at step 5, before attach/), 'the first one has looked');
for my $try (1 .. 100)
{
	last if -e "$archive/00000002.history";
	select(undef, undef, undef, 0.1);
}
$two->promote;
wait_attached($two);
release_launcher($one);
$one->poll_query_until('postgres', q{SELECT NOT pg_is_in_recovery()}) or die 'not promoted';
lost_it($one);
wait_attached($two);
is(taken_over($two), 1, 'the other one has taken them over');
has_indexes($two, 'promoted beside another one');
right($one, 'promoted beside another one');
my ($status, $out, $error) = $one->psql('postgres', "\\set VERBOSITY verbose\nINSERT INTO rows VALUES (1)");
like($error, qr/08006.*another history, which has taken the indexes over/s, 'and a change says why it cannot be');

# Started anew, it has memory and indexes of its own.
change_rows($two, 3);
$one->restart;
wait_attached($one);
is(states($one), 'broken', 'and its own indexes are broken when it was started anew');
change_rows($one, 4);
right($one, 'started anew');
has_indexes($two, 'beside one that was started anew');

#
# The third one comes later, and finds a timeline of the number that the one with the indexes has.
#
$three->append_conf('postgresql.conf', "restore_command = ''\n");
$three->restart;
system_or_bail('cp', "$archive/00000002.history", $three->data_dir . '/pg_wal/');
$three->promote;
wait_attached($three);
is(states($three), 'broken', 'one that comes later has no indexes');
lost_it($three);
is(join(' ', map { $_->safe_psql('postgres', 'CHECKPOINT; SELECT timeline_id FROM pg_control_checkpoint()') } $two, $three), '3 3', 'though its timeline has the same number');
change_rows($three, 3);
right($three, 'later');
has_indexes($two, 'beside one that comes later');

#
# The old primary is started by mistake.
#
$old->start;
wait_attached($old);
is(states($old), 'broken', 'the old primary has no indexes any more');
lost_it($old);
right($old, 'the old primary');
change_rows($old, 5);
has_indexes($two, 'beside the old primary');
$old->stop('immediate');

#
# All who have lost are rewound, and read again; the old primary is the next one.
#
change_rows($two, 6);
$_->stop foreach $one, $three;
rewind_to($one, $two);
rewind_to($old, $two);
reads($one, 'rewound');
reads($old, 'rewound');
change_rows($two, 7);
$two->wait_for_catchup($_) foreach $one, $old;
right($one, 'following');
# It is a standby from now on.
$two->safe_psql('postgres', 'ALTER SYSTEM RESET primary_conninfo');
$two->stop;
$old->promote;
wait_attached($old);
has_indexes($old, 'switchover');
follow($two, $old);
$one->adjust_conf('postgresql.conf', 'primary_conninfo', "'" . $old->connstr . " application_name=one'");
$one->restart;
change_rows($old, 8);
foreach my $server ($one, $two)
{
	$old->wait_for_catchup($server);
	reads($server, 'behind the switchover');
}
unlike(slurp_file($_->logfile), qr/PANIC|TRAP|terminated by signal/, $_->name . ' has not crashed') foreach $old, $one, $two, $three;
$_->stop foreach $one, $two, $old;
done_testing();

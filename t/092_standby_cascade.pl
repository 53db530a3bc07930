
# Copies of servers that read: a standby that is made of a base backup of another standby, which goes on when that one is promoted; a standby that is meant to
# be behind; a restore to a point in time beside the living primary, which reads nothing and takes nothing.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Sherman;
use StandbyLoad;
use Takeover;
use Test::More;

my $msd = Msd->new('a', size => 128, transport => 'tls');
my $primary = new_cluster('primary',
	allows_streaming => 1,
	conf => "sherman.operation_timeout = 5s\nsherman.attach_timeout = 60s\nsherman.take_over = auto\n"
	  . "sherman.memory_nodes = '" . $msd->address . "'\n"
	  . Msd::configuration()
	  . "wal_keep_size = 512MB\nmax_standby_streaming_delay = 100ms\nrecovery_target_timeline = latest\n");

prepare_rows($primary);

sub copy_of
{
	my ($name, $source, %options) = @_;
	my $copy = PostgreSQL::Test::Cluster->new($name);

	$source->backup($options{backup} // $name) if !$options{made};
	$copy->init_from_backup($source, $options{backup} // $name, has_streaming => $options{standby} // 1);
	$copy->append_conf('postgresql.conf', $options{conf} // '');
	$copy->set_recovery_mode if !($options{standby} // 1);
	$copy->start;
	return $copy;
}

# Its answers are right; so many are given that the test is one: on a standby that is not held up, all.
sub right
{
	my ($server, $what, $canceled_too) = @_;
	my ($done, $canceled, $bad) = compare_all($server);

	is($bad, '', $what . ': ' . $server->name . ' answers rightly');
	is($done + $canceled, 18, $what . ': or cancels');
	is($canceled, 0, $what . ': ' . $server->name . ' cancels nothing') if !$canceled_too;
	return $canceled;
}

sub reads
{
	my ($server, $what) = @_;

	ok($server->poll_query_until('postgres', q{SELECT bool_and(state = 'ok') FROM sherman_stat_indexes}), $what . ': ' . $server->name . ' reads the indexes');
	ok(uses_index($server, 'rows_id', 'SELECT * FROM rows WHERE id = 500'), "$what: and uses them");
	right($server, $what);
	return;
}

sub is_healthy
{
	my ($server, $what) = @_;

	is($server->safe_psql('postgres', q{SELECT string_agg(DISTINCT state, ' ') FROM sherman_stat_indexes}), 'ok', $what . ': ' . $server->name . ' has its indexes');
	is($server->safe_psql('postgres', q{SELECT sum(sherman_check(indexrelid, true)) FROM sherman_stat_indexes}), '0', "$what: they are whole");
	return;
}

#
# A standby of a backup of a standby.
#
my $upper = copy_of('upper', $primary);
wait_noted($primary);
change_rows($primary, 1);
$primary->wait_for_catchup($upper);
my $lower = copy_of('lower', $upper);
change_rows($primary, 2);
$primary->wait_for_catchup($upper);
$upper->wait_for_catchup($lower, 'replay', $primary->lsn('flush'));
reads($_, 'a cascade') foreach $upper, $lower;

#
# A restore to a point in time, beside all of them.
#
$primary->backup('past');
change_rows($primary, 3, 'without VACUUM');
$primary->safe_psql('postgres', q{SELECT pg_create_restore_point('there')});
change_rows($primary, 4);
$primary->safe_psql('postgres', 'SELECT pg_switch_wal()');
my $epochs = $primary->safe_psql('postgres', 'SELECT max(epoch) FROM sherman_epochs');
my $past = copy_of('past', $primary, backup => 'past', made => 1, standby => 0,
	conf => "restore_command = 'cp \"" . $primary->data_dir . "/pg_wal/%f\" \"%p\"'\nrecovery_target_name = 'there'\nrecovery_target_action = 'pause'\n");
$past->poll_query_until('postgres', q{SELECT pg_get_wal_replay_pause_state() = 'paused'}) or die 'recovery has not come to its target';
is($past->safe_psql('postgres', q{SELECT string_agg(DISTINCT state, ' ') FROM sherman_stat_indexes}), 'hidden', 'paused at its target it hides the indexes');
is($past->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'sherman reader'}), '0', 'and has no reader');
right($past, 'paused at its target');
$past->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
wait_attached($past);
is($past->safe_psql('postgres', q{SELECT string_agg(DISTINCT state, ' ') FROM sherman_stat_indexes}), 'broken', 'restored, its indexes are broken');
unlike(slurp_file($past->logfile), qr/are taken over as they were/, 'it takes nothing over');
change_rows($past, 5);
$past->safe_psql('postgres', 'REINDEX TABLE rows; SELECT sherman_collect()');
right($past, 'restored');
change_rows($primary, 5);
$primary->wait_for_catchup($upper);
$upper->wait_for_catchup($lower, 'replay', $primary->lsn('flush'));
is_healthy($primary, 'beside a restored backup');
is($primary->safe_psql('postgres', 'SELECT max(epoch) FROM sherman_epochs'), $epochs, 'and has noticed nothing');
reads($_, 'beside a restored backup') foreach $upper, $lower;
$past->stop;

#
# A standby that is meant to be behind: what is removed at once it may see still.
#
my $late = copy_of('late', $primary, conf => "recovery_min_apply_delay = 1h\n");
reads($late, 'behind by an hour, of which nothing has passed');
change_rows($primary, 6, 'without VACUUM');
right($late, 'behind by changes', 'or canceled');
$primary->safe_psql('postgres', 'DELETE FROM rows WHERE id % 3 = 0; VACUUM (TRUNCATE off) rows; INSERT INTO rows SELECT g, md5(g::text), g % 10 FROM generate_series(1, 5000, 3) g');
cmp_ok(right($late, 'behind by removals', 'or canceled'), '>', 0, 'where rows were removed it cancels');
$late->append_conf('postgresql.conf', "sherman.standby_reads = off\n");
$late->restart;
is($late->safe_psql('postgres', q{SELECT string_agg(DISTINCT state, ' ') FROM sherman_stat_indexes}), 'hidden', 'one that does not read hides them');
right($late, 'behind, and by the table');
$late->stop;

#
# The upper standby is promoted: the lower one follows its timeline.
#
wait_noted($primary);
$primary->wait_for_catchup($upper);
$primary->stop('immediate');
my $session = $lower->background_psql('postgres', on_error_stop => 0);
$session->query_safe('SET enable_seqscan = off; SELECT count(*) FROM rows WHERE id < 100');
$upper->promote;
wait_attached($upper);
right($lower, 'while it does not know who has them', 'or canceled');
change_rows($upper, 1);
$upper->wait_for_catchup($lower);
reads($lower, 'behind a promotion');
my $answer = eval { $session->query('SELECT count(*) FROM rows WHERE id BETWEEN 1 AND 99') } // '';
ok($answer eq $lower->safe_psql('postgres', 'SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; SELECT count(*) FROM rows WHERE id BETWEEN 1 AND 99') || $answer eq '',
	'a session of before is right, or is told');
eval { $session->quit };
$upper->safe_psql('postgres', q{SELECT sherman_heal(indexrelid) FROM sherman_stat_indexes});
is_healthy($upper, 'promoted');
change_rows($upper, 2);
$upper->wait_for_catchup($lower);
reads($lower, 'behind a promotion, and healing');
like($lower->safe_psql('postgres', 'SELECT received_tli FROM pg_stat_wal_receiver'), qr/^2$/, 'in the new timeline');
$lower->stop;

#
# A standby that lags: its primary attaches the memory node anew behind what it has.  Promoted, it does not believe what is there; but it has the memory
# node, and its rows go on.
#
my $lagging = copy_of('lagging', $upper);
wait_noted($upper);
$upper->wait_for_catchup($lagging);
reads($lagging, 'in time');
$lagging->safe_psql('postgres', q{ALTER SYSTEM SET primary_conninfo = ''});
$lagging->reload;
$lagging->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_stat_wal_receiver') or die 'still receiving';
$upper->restart;
wait_attached($upper);
change_rows($upper, 7);
right($lagging, 'behind an attach', 'or canceled');
$upper->stop('immediate');
$lagging->promote;
wait_attached($lagging);
is($lagging->safe_psql('postgres', q{SELECT string_agg(DISTINCT state, ' ') FROM sherman_stat_indexes}), 'broken', 'what it does not know of is broken');
change_rows($lagging, 3);
right($lagging, 'behind an attach, promoted');
$lagging->safe_psql('postgres', 'REINDEX TABLE rows');
is_healthy($lagging, 'rebuilt');

unlike(slurp_file($_->logfile), qr/PANIC|TRAP|terminated by signal/, $_->name . ' has not crashed') foreach $primary, $upper, $lower, $past, $late, $lagging;
$lagging->stop;
done_testing();

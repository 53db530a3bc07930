
# Crash points (am/base/crash_points.c): the same statement on as many tables in the same state as it has steps, each held up at another one.  Then
# the server ends, and behind that every index must find what its table has.  One end serves many steps, as the tables have nothing
# to do with each other; with SHERMAN_CRASH_POINTS=each there is one end for each, by SIGKILL of the process.

package CrashPoints;

use strict;
use warnings;

use Answers;
use IPC::Run;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;
use Time::HiRes qw(usleep);

# A step that nobody gets to: only counts.
my $never = 1_000_000;

# Sessions that are held up at once.
my $at_once = 60;

# How often all steps are gone through for those that must be met: on a busy machine others may get there first.
my $rounds_most = 3;

sub new
{
	my ($class, %options) = @_;

	need_steps();
	my $node = new_cluster('points',
		memory => 512,
		conf => "max_connections = 120\nmax_prepared_transactions = 80\nfsync = off\nsynchronous_commit = off\nwal_writer_delay = 10s\n"
		  . "bgwriter_lru_maxpages = 0\nsherman.operation_timeout = 10s\nsherman.autoheal = off\nsherman.collect_interval = 1s\n" . ($options{conf} // ''));
	my $self = bless { node => $node, each => ($ENV{SHERMAN_CRASH_POINTS} // '') eq 'each', points => 0, names => {}, wrong => 0 }, $class;

	Answers::install($node);
	return $self;
}

# A statement's text for table number `number`: T stands for its name.
sub for_table
{
	my ($text, $number) = @_;

	return $text =~ s/\bT(?![A-Z])/p$number/gr;
}

sub for_tables
{
	my ($text, @numbers) = @_;

	return join("\n", map { for_table($text, $_) } @numbers);
}

# The steps that a session takes with the statement, alone.
sub count_steps
{
	my ($self, $act, $number) = @_;
	my (undef, $out, $err) = $self->{node}->psql('postgres',
		"SET sherman.debug_step = $never;\n" . for_table($act, $number) . ";\nSHOW sherman.debug_passed", on_error_stop => 1);

	# Of a statement with results their last line.
	my ($steps) = (($out // '') =~ /(\d+)\z/) or die "no steps: $act";
	return $steps;
}

# Brings so many tables into the state in which the statement finds them.
sub prepare
{
	my ($self, $what, @numbers) = @_;
	my $node = $self->{node};

	$what->{ready}->() if defined $what->{ready};
	# That is there behind the end, whatever it takes away of the statement.
	$node->safe_psql('postgres', "SET synchronous_commit = on;\n" . for_tables("$what->{prepare};", @numbers));
	# What a session of its own sees as long past.
	$node->safe_psql('postgres', for_tables("$what->{then};", @numbers)) if defined $what->{then};
	if (defined $what->{lost})
	{
		lose($node, for_tables("$what->{lost};", @numbers));
		start_again($node);
	}
	elsif (defined $what->{restart})
	{
		$node->append_conf('postgresql.conf', $what->{conf} // '');
		$node->stop($what->{restart});
		start_again($node);
	}
	$what->{before}->() if defined $what->{before};
	return;
}

# One session with the statement, to be held up or ended at a step; it says in the log when it is through.
sub session
{
	my ($self, $act, $number, $step, $action) = @_;
	my @command = (
		'psql', '-X', '-q', '-d', $self->{node}->connstr('postgres'),
		'-c', "SET sherman.debug_action = $action",
		'-c', "SET sherman.debug_step = $step");
	my $output = '';

	push @command, '-c', for_table($_, $number) foreach split /;\n/, $act;
	push @command, '-c', "DO 'BEGIN RAISE LOG ''test: through with $number''; END'";
	return IPC::Run::start(\@command, '<', \undef, '>', \$output, '2>&1');
}

# Sessions that wait for one that is held up, as VACUUM does for its turn at the database's oldest transaction.
sub waiting
{
	my ($self) = @_;

	# The server may be about to end.
	return eval { $self->{node}->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'}) } // 0;
}

# Waits until the log has so many lines like that since the offset, those left out whose sessions wait; returns what it says since.
sub wait_for_lines
{
	my ($self, $offset, $pattern, $count) = @_;

	for my $try (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		my $log = slurp_file($self->{node}->logfile, $offset);
		my @lines = $log =~ /$pattern/g;

		return $log if @lines >= $count || ($try % 10 == 0 && @lines + $self->waiting >= $count);
		usleep(50_000);
	}
	die "the log has less than $count lines like $pattern";
}

# What must hold of all indexes, whatever has happened.
sub verify
{
	my ($self, $name, $states) = @_;
	my %figures = Answers::compare($self->{node}, $name, $states);

	$self->{wrong} += $figures{wrong};
	return;
}

# Ends prepared transactions, half of them by a commit.
sub end_prepared
{
	my ($self) = @_;
	my $commands = $self->{node}->safe_psql('postgres',
		q{SELECT CASE row_number() OVER (ORDER BY gid) % 2 WHEN 0 THEN 'COMMIT' ELSE 'ROLLBACK' END || ' PREPARED ' || quote_literal(gid) || ';' FROM pg_prepared_xacts});

	$self->{node}->safe_psql('postgres', $commands) if $commands ne '';
	return;
}

# Behind the end: looks as it was left, looks again when the statement was run once more and doubts are ended.
sub look
{
	my ($self, $what, @numbers) = @_;
	my $node = $self->{node};
	my $state = $what->{state} // 'ok|healing';

	$self->verify("$what->{name}, at once", $state);
	$self->end_prepared;
	$node->psql('postgres', for_tables("$what->{act};", @numbers), on_error_stop => 0);
	$self->end_prepared;
	is($node->safe_psql('postgres', q{SELECT coalesce(sum(sherman_heal(i)), 0) FROM indexes_to_compare WHERE state <> 'broken'}), '0', "$what->{name}: all is healed");
	$self->verify("$what->{name}, again", $what->{state} // 'ok');
	$what->{after}->($what->{name}) if defined $what->{after};
	return;
}

sub drop_tables
{
	my ($self) = @_;
	my $node = $self->{node};

	$self->end_prepared;
	my $commands = $node->safe_psql('postgres', q{SELECT 'DROP TABLE ' || oid::regclass || ';' FROM pg_class WHERE relname ~ '^p\d+$'});

	$node->safe_psql('postgres', $commands) if $commands ne '';
	return;
}

# The steps that are looked at, of so many: all, or those evenly spread that the situation asks for, twice as many in each further round, which is
# for those that must be met.
sub chosen_steps
{
	my ($self, $what, $steps, $round) = @_;
	my $most = $ENV{SHERMAN_CRASH_POINTS} ? $steps : ($what->{most} // $steps) * 2**($round - 1);

	$most = $steps if $most > $steps;
	my %chosen = map { (1 + int(($_ - 1) * $steps / $most)) => 1 } 1 .. $most;

	return sort { $a <=> $b } keys %chosen;
}

# All steps of a statement, each on a table of its own, with one end of the server for all.
sub hang_at_all
{
	my ($self, $what, $meanwhile, @steps) = @_;
	my $node = $self->{node};
	my $offset;

	$self->prepare($what, @steps);
	$offset = -s $node->logfile;
	my @sessions = map { $self->session($what->{act}, $_, $_, 'hang') } @steps;
	my $log = $self->wait_for_lines($offset, qr/sherman\.debug_step: hang at|LOG:  test: through/, scalar @steps);

	$self->{names}{$what->{name}}{$_} = 1 foreach $log =~ /hang at step \d+, (.*)/g;
	$self->{points} += () = $log =~ /hang at step/g;
	$meanwhile->($self, $what, @steps) if defined $meanwhile;
	if ($what->{orphans})
	{
		$node->kill9;
	}
	else
	{
		$node->stop('immediate', fail_ok => 1);
	}
	$what->{between}->() if defined $what->{between};
	start_again($node);
	eval { IPC::Run::finish($_) } foreach @sessions;
	$self->look($what, @steps);
	$self->drop_tables;
	return;
}

# One end for one step: the process that is there is killed.
sub crash_at
{
	my ($self, $what, $step) = @_;
	my $node = $self->{node};
	my $offset;

	$self->prepare($what, $step);
	$offset = -s $node->logfile;
	my $session = $self->session($what->{act}, $step, $step, 'crash');
	my $log = $self->wait_for_lines($offset, qr/sherman\.debug_step: crash at|LOG:  test: through/, 1);

	$self->{names}{$what->{name}}{$_} = 1 foreach $log =~ /crash at step \d+, (.*)/g;
	$self->{points} += () = $log =~ /crash at step/g;
	$node->stop('immediate', fail_ok => 1) if $log !~ /crash at step/;
	eval { IPC::Run::finish($session) };
	$what->{between}->() if defined $what->{between};
	start_again($node);
	$self->look({ %$what, name => "$what->{name}, step $step" }, $step);
	$self->drop_tables;
	return;
}

# A command canceled at each of its steps is an error, or is done, and no more: no end of the server.
sub cancel_at_all
{
	my ($self, $what, @steps) = @_;
	my $script = '';

	$self->prepare($what, @steps);
	foreach my $step (@steps)
	{
		$script .= "SET sherman.debug_step = $step;\n" . for_table($what->{act}, $step) . ";\nSET sherman.debug_step = 0;\n";
	}
	$self->{node}->psql('postgres', "SET sherman.debug_action = cancel;\n$script", on_error_stop => 0);
	$self->look({ %$what, name => "$what->{name}, canceled" }, @steps);
	$self->drop_tables;
	return;
}

# Whether the situation is among those that are asked for, by an expression in SHERMAN_CRASH_ONLY.
sub is_wanted
{
	my ($what) = @_;
	my $only = $ENV{SHERMAN_CRASH_ONLY} // '.';

	return $what->{name} =~ /$only/;
}

# The server ends at each of the steps: once for each of them, or once for some together.
sub end_at_all
{
	my ($self, $what, @steps) = @_;

	if ($self->{each})
	{
		$self->crash_at($what, $_) foreach @steps;
		return;
	}
	while (my @some = splice(@steps, 0, $at_once))
	{
		$self->hang_at_all($what, $what->{meanwhile}, @some);
	}
	return;
}

# enumerate(situation): name, prepare, then, lost, restart, conf, act, orphans (the end is that of the postmaster alone), steps that must be met, most, cancel, meanwhile,
# state; and what is called: ready (before tables are made), before (the statement), between (the server's end and its start), after (all was looked at).
sub enumerate
{
	my ($self, %what) = @_;

	return unless is_wanted(\%what);
	$self->prepare(\%what, 0);
	my $steps = $self->count_steps($what{act}, 0);
	$self->drop_tables;

	$self->cancel_at_all(\%what, $self->chosen_steps(\%what, $steps, 1)) if $what{cancel};
	foreach my $round (1 .. $rounds_most)
	{
		my @steps = $self->chosen_steps(\%what, $steps, $round);

		note("$what{name}: " . scalar(@steps) . " of $steps steps");
		$self->end_at_all(\%what, @steps);
		last if !grep { !$self->{names}{ $what{name} }{$_} } @{ $what{met} // [] };
	}
	foreach my $name (@{ $what{met} // [] })
	{
		ok($self->{names}{ $what{name} }{$name}, "$what{name}: it was met $name") or note(join(', ', sort keys %{ $self->{names}{ $what{name} } }));
	}
	return;
}

# A setting of the server, from now on also in new sessions.
sub set
{
	my ($self, $name, $value) = @_;

	$self->{node}->adjust_conf('postgresql.conf', $name, $value);
	$self->{node}->reload;
	$self->{node}->poll_query_until('postgres', "SELECT current_setting('$name') = '$value'") or die "$name is not $value";
	return;
}

# While sessions are held up at their steps another one works in the same leaves: it is through, or has an error, before long.  Then
# some of those that are held up go on, canceled, and others stay where they are until the server ends.
sub work_beside
{
	my ($self, $what, @steps) = @_;
	my $node = $self->{node};
	my @tables = map { "p$_" } grep { $_ % 3 == 0 } @steps;
	my $act = $what->{act} =~ s/\bT(?![A-Z])/~/gr;
	my $offset = -s $node->logfile;

	$self->set('sherman.operation_timeout', '500ms');
	my $states = $node->safe_psql('postgres', q{
		CREATE TEMP TABLE seen (state text);
		SET enable_seqscan = off;
		SET enable_bitmapscan = off;
		DO $$ DECLARE t text; command text; BEGIN
			FOREACH t IN ARRAY ARRAY[} . join(', ', map { "'$_'" } @tables) . q{] LOOP
				FOREACH command IN ARRAY ARRAY['SELECT count(*) FROM ~ WHERE k > 0', $act$} . $act . q{$act$] LOOP
					BEGIN
						EXECUTE replace(command, '~', t);
						INSERT INTO seen VALUES ('through');
					EXCEPTION WHEN OTHERS THEN
						INSERT INTO seen VALUES (SQLSTATE);
					END;
				END LOOP;
			END LOOP;
		END $$;
		SELECT state, count(*) FROM seen GROUP BY 1 ORDER BY 1});
	my @wrong = grep { !/^(through|08|55|57)/ } split /\n/, $states;

	is("@wrong", '', "$what->{name}: who works beside is through or has waited long enough");
	like($states, qr/^55P03/m, "$what->{name}: somebody waited for a lock");
	note(join(', ', split(/\n/, $states)));
	$self->set('sherman.operation_timeout', '10s');
	my $canceled = $node->safe_psql('postgres', q{SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE query ~ '^INSERT INTO p\d*[02468] '});

	$self->wait_for_lines($offset, qr/LOG:  test: through/, $canceled);
	return;
}

# ends_of_process(name, process, act => what has it work, done => what the log says when it is through with that, every => steps): a
# background process is killed at every so-manieth step until it is through before that.  With it the server ends.
sub ends_of_process
{
	my ($self, %what) = @_;
	my $node = $self->{node};
	my $every = $ENV{SHERMAN_CRASH_POINTS} ? 1 : $what{every};
	my $ended = 1;

	return unless is_wanted(\%what);
	for (my $step = 1; $ended; $step += $every)
	{
		my $offset;

		$self->prepare({ prepare => $what{prepare} }, 0, 1);
		$node->append_conf('postgresql.conf', "sherman.debug_process = '$what{process}'\nsherman.debug_step = $step\n");
		$offset = -s $node->logfile;
		$what{act}->($node);
		my $log = $self->wait_for_lines($offset, qr/sherman\.debug_step: crash at|$what{done}/, 1);

		$ended = $log =~ /crash at step \d+, (.*)/;
		$self->{names}{ $what{name} }{$1} = 1 if $ended;
		$self->{points}++ if $ended;
		$node->append_conf('postgresql.conf', "sherman.debug_step = 0\nsherman.debug_process = ''\n");
		$node->stop('immediate', fail_ok => 1);
		start_again($node);
		$self->verify("$what{name}, step $step", 'ok|healing');
		$self->drop_tables;
		# As many steps the next time: trees that nobody uses any more are some.
		ok(wait_until_used($node, 0), "$what{name}, step $step: no memory is lost");
	}
	note("$what{name}: " . join(', ', sort keys %{ $self->{names}{ $what{name} } }));
	ok($self->{names}{ $what{name} }, "$what{name}: it was ended");
	return;
}

# Starts the server, which may be gone before anybody has seen that it was there.
sub start_to_crash
{
	my ($self) = @_;
	my $node = $self->{node};

	system_log('pg_ctl', '-w', '-D', $node->data_dir, '-l', $node->logfile, '-o', '--cluster-name=' . $node->name, 'start');
	$node->_update_pid(-1);
	return;
}

# The insert, counted from 1, of those that `insert` makes (G is the number), at which so many at least have been made and a leaf is split.
sub insert_with_most_steps
{
	my ($self, $prepare, $insert, $from, $to) = @_;
	my $node = $self->{node};
	my $loop = for_table($insert, 0) =~ s/\bG\b/i/gr;

	$node->safe_psql('postgres', for_table($prepare, 0));
	my $found = $node->safe_psql('postgres', <<"SQL");
SET sherman.debug_step = $never;
CREATE TEMP TABLE counted (i int, steps int);
DO \$\$ DECLARE before int; BEGIN
	FOR i IN 1 .. $to LOOP
		before := current_setting('sherman.debug_passed');
		$loop;
		INSERT INTO counted VALUES (i, current_setting('sherman.debug_passed')::int - before);
	END LOOP;
END \$\$;
SELECT i FROM counted WHERE i >= $from ORDER BY steps DESC, i LIMIT 1;
SQL
	$self->drop_tables;
	return $found;
}

1;


# Faults in the middle of everything, and what must hold behind each: no index is broken, none is rebuilt, and by every index the same
# rows are found as without it.

package CrashLoop;

use strict;
use warnings;

use Answers;
use IPC::Run;
use Msd;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;
use Time::HiRes qw(usleep);

# What a cycle may end by: of every server, and of one whose memory nodes are processes of their own.
my @ways = qw(immediate backend postmaster launcher node worker database_worker full);
my @ways_of_nodes = qw(msd partition immediate both full postmaster backend worker);

# How long anybody waits for a memory node; and in cycles with a partition, which is longer.
my $patience = '10s';
my $short_patience = '1s';
my $partition_us = 1_500_000;

# A table does not grow beyond so many rows.
my $most_rows = 4000;

# Scripts of the load and their weights.
my %scripts = (
	'mix@12' => q{
		\set key random(1, 500)
		SET synchronous_commit = off;
		INSERT INTO mix (key, word, state, amount) SELECT :key, md5(random()::text), 'open', random() FROM generate_series(1, 5);
		UPDATE mix SET key = key + 1, word = md5(random()::text) WHERE id IN (SELECT id FROM mix WHERE key = :key LIMIT 3);
		UPDATE mix SET state = 'shut' WHERE id IN (SELECT id FROM mix WHERE key = :key + 5 AND state = 'open' LIMIT 2);
		DELETE FROM mix WHERE id IN (SELECT id FROM mix WHERE key = :key + 7 LIMIT 4);
		SELECT count(*) FROM mix WHERE key BETWEEN :key AND :key + 3;
	},
	'durable@2' => q{
		\set key random(1, 500)
		SET synchronous_commit = on;
		INSERT INTO mix (key, word, state, amount) VALUES (:key, md5(random()::text), 'open', :key / 3.0);
		UPDATE mix SET word = md5(random()::text) WHERE id IN (SELECT id FROM mix WHERE key = :key LIMIT 2);
	},
	'subtransactions@2' => q{
		\set key random(1, 500)
		SET synchronous_commit = off;
		BEGIN;
		INSERT INTO mix (key, word, state, amount) VALUES (:key, md5(random()::text), 'open', :key / 7.0);
		SAVEPOINT one;
		UPDATE mix SET word = md5(random()::text) WHERE id IN (SELECT id FROM mix WHERE key = :key LIMIT 2);
		ROLLBACK TO one;
		INSERT INTO mix (key, word, state, amount) VALUES (:key + 1, md5(random()::text), 'shut', :key);
		COMMIT;
	},
	'rollback@2' => q{
		\set key random(1, 500)
		BEGIN;
		INSERT INTO mix (key, word, state, amount) SELECT :key, md5(random()::text), 'open', :key FROM generate_series(1, 9);
		ROLLBACK;
	},
	'vacuum@1' => 'VACUUM mix;',
	# Its rows are its own: what stays prepared locks nobody out.
	'prepared@2' => q{
		\set key random(1, 500)
		\set name random(1, 1000000000)
		\set left random(1, 4)
		SET synchronous_commit = off;
		BEGIN;
		INSERT INTO pair (key, word) SELECT :key, md5(random()::text) FROM generate_series(1, 3);
		UPDATE pair SET key = -key WHERE id = currval('pair_id_seq');
		PREPARE TRANSACTION 'loop:name';
		\if :left = 1
		ROLLBACK PREPARED 'loop:name';
		\elif :left < 4
		COMMIT PREPARED 'loop:name';
		\endif
	},
	# Each client has an index of its own.
	'indexes@2' => q{
		\set key random(1, 500)
		SET synchronous_commit = off;
		INSERT INTO side VALUES (:key, md5(random()::text)), (:key + 1, 'again');
		CREATE INDEX IF NOT EXISTS side_:client_id ON side USING sherman (word);
		DELETE FROM side WHERE key = :key - 1;
		DROP INDEX side_:client_id;
	},
	'unlogged@1' => q{
		\set key random(1, 500)
		INSERT INTO loose SELECT :key + g, 'loose' FROM generate_series(1, 4) g;
		DELETE FROM loose WHERE key = :key;
	});

sub seed
{
	my $seed = $ENV{SHERMAN_CRASH_SEED} // (time ^ $$);

	note("SHERMAN_CRASH_SEED=$seed");
	srand($seed);
	return $seed;
}

# prepare(name, nodes => how many memory nodes are processes of their own, conf): a server with tables and their indexes.
sub prepare
{
	my ($class, $name, %options) = @_;
	my @msd = map { Msd->new("$name$_", size => 12) } 1 .. $options{nodes} // 0;
	my $nodes = @msd ? "sherman.memory_nodes = '" . join(', ', map { $_->address } @msd) . "'\n" : '';
	my $node = new_cluster($name,
		memory => 20,
		conf => "fsync = off\nmax_prepared_transactions = 500\nwal_writer_delay = 2s\nsherman.collect_interval = 1s\n"
		  . "sherman.operation_timeout = $patience\nsherman.connection_workers = 0\n" . Msd::configuration() . $nodes . ($options{conf} // ''));
	my $self = bless {
		node => $node, msd => \@msd, ways => @msd ? \@ways_of_nodes : \@ways, scripts => [], faults => {},
		cycles => 0, rebuilds => 0, looks => 0, rows => 0, healing => 0, wrong => 0,
	}, $class;

	Answers::install($node);
	$node->safe_psql(
		'postgres', q{
		CREATE TABLE mix (id bigserial, key int, word text, state text, amount numeric);
		INSERT INTO mix (key, word, state, amount) SELECT g % 500, md5(g::text), 'open', g / 10.0 FROM generate_series(1, 3000) g;
		CREATE UNIQUE INDEX mix_pkey ON mix USING sherman (id);
		CREATE INDEX mix_key ON mix USING sherman (key);
		CREATE INDEX mix_word ON mix USING sherman (word);
		CREATE INDEX mix_wide ON mix USING sherman (repeat(word, 8));
		CREATE INDEX mix_part ON mix USING sherman (key) WHERE state = 'open';
		CREATE INDEX mix_amount ON mix USING sherman (amount) INCLUDE (word);
		CREATE INDEX mix_only ON mix USING sherman (key, id);
		CREATE TABLE pair (id bigserial, key int, word text);
		CREATE UNIQUE INDEX pair_pkey ON pair USING sherman (id);
		CREATE INDEX pair_key ON pair USING sherman (key);
		CREATE TABLE side (key int, word text);
		CREATE INDEX side_key ON side USING sherman (key);
		CREATE UNLOGGED TABLE loose (key int, word text);
		CREATE INDEX loose_key ON loose USING sherman (key);
		CREATE TABLE fat (key text);
	});
	# Each node twice.
	$node->safe_psql('postgres', 'CREATE INDEX mix_twice ON mix USING sherman (key, word) WITH (replicas = 1)') if @msd > 1;
	foreach my $script (sort keys %scripts)
	{
		my ($title, $weight) = split /@/, $script;
		my $file = $node->basedir . "/$title.sql";

		append_to_file($file, $scripts{$script});
		push @{ $self->{scripts} }, '-f', "$file\@$weight";
	}
	return $self;
}

# A process of that kind, at random; 0: there is none now.
sub process
{
	my ($self, $condition) = @_;
	my $pid = $self->{node}->safe_psql('postgres',
		"SELECT pid FROM pg_stat_activity WHERE $condition AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1");

	return $pid =~ /^([1-9]\d+)$/ ? $1 : 0;
}

# A worker that is in a database for a moment: the collector, and the healer where there is one.
sub database_worker
{
	my ($self) = @_;

	for my $try (1 .. 20)
	{
		my $pid = $self->process(q{backend_type IN ('sherman collector', 'sherman healer')});

		return $pid if $pid;
		usleep(20_000);
	}
	return 0;
}

sub memory_used
{
	my ($self) = @_;

	return $self->{node}->safe_psql('postgres', 'SELECT sum(used_bytes) FROM sherman_stat_memory_nodes');
}

# Fills the memory up; the table is emptied when all is over.
sub fill
{
	my ($self) = @_;

	my (undef, undef, $error) = $self->{node}->psql('postgres',
		q{\set VERBOSITY verbose
		CREATE INDEX fat_key ON fat USING sherman (key);
		DO $$ DECLARE long text := (SELECT string_agg(md5(s::text), '') FROM generate_series(1, 70) s); BEGIN FOR i IN 1 .. 200 LOOP
			INSERT INTO fat SELECT g || long FROM generate_series(i * 100, i * 100 + 99) g;
			COMMIT;
		END LOOP; END $$});

	return $error =~ /53200/;
}

# Each way of trouble that the server may live through; returns how it is called in the summary.
my %faults = (
	backend => sub { my $self = shift; return $self->process(q{query ~ 'mix|pair|side'}); },
	launcher => sub { my $self = shift; return $self->process(q{backend_type = 'sherman launcher'}); },
	worker => sub { my $self = shift; return $self->process(q{backend_type IN ('sherman connection worker', 'checkpointer', 'walwriter', 'background writer')}); },
	database_worker => sub { my $self = shift; return $self->database_worker; },
	node => sub { my $self = shift; return node_pid($self->{node}); });

# The load's memory nodes end, or do not answer for longer than anybody waits, and are back.
sub trouble_nodes
{
	my ($self, $way) = @_;
	my $msd = $self->{msd}[ rand @{ $self->{msd} } ];

	if ($way eq 'partition')
	{
		kill 'STOP', $msd->{pid};
		usleep($partition_us);
		kill 'CONT', $msd->{pid};
	}
	else
	{
		$msd->crash;
		usleep(int(rand(200_000)));
		$msd->start;
	}
	return;
}

# Trouble, and the server's end where it lives on.  Returns what happened.
sub fault
{
	my ($self, $way) = @_;
	my $node = $self->{node};

	if ($way eq 'full')
	{
		$way = 'not full' unless $self->fill;
	}
	elsif ($way =~ /^(msd|partition|both)$/)
	{
		$self->trouble_nodes($way);
		return $way if $way ne 'both';
	}
	elsif ($way eq 'postmaster')
	{
		$node->kill9;
	}
	elsif (exists $faults{$way})
	{
		my $pid = eval { $faults{$way}->($self) } // 0;

		$way = $pid && kill('KILL', $pid) ? $way : "no $way";
	}
	$node->stop('immediate', fail_ok => 1);
	return $way;
}

# What must hold whatever has happened.
sub verify
{
	my ($self, $what, $states) = @_;
	my %figures = Answers::compare($self->{node}, $what, $states);

	$self->{$_} += $figures{$_} foreach qw(rows healing wrong);
	$self->{looks}++;
	return;
}

# What no catalog names any more is given back by the collector.
sub wait_for_collector
{
	my ($self) = @_;

	$self->{node}->poll_query_until('postgres', q{SELECT sum(used_bytes) < 0.2 * sum(total_bytes) + (SELECT sum(total_bytes) FROM sherman_stat_indexes)
		FROM sherman_stat_memory_nodes}) or die "the memory does not come back\n" . situation($self->{node});
	return;
}

# The load needs room. Each end of the server loses free blocks of long keys: they come back by REINDEX only.
sub make_room
{
	my ($self) = @_;
	my $node = $self->{node};

	$self->wait_for_collector;
	return if $node->safe_psql('postgres', q{SELECT sum(total_bytes) < (SELECT sum(total_bytes) / 2 FROM sherman_stat_memory_nodes) FROM sherman_stat_indexes}) eq 't';
	# One at a time: the new one lies beside the old one.
	foreach my $index (split /\n/, $node->safe_psql('postgres', 'SELECT indexrelid::regclass FROM sherman_stat_indexes WHERE total_bytes > 0'))
	{
		$node->safe_psql('postgres', "REINDEX INDEX $index");
		$self->wait_for_collector;
	}
	$self->{rebuilds}++;
	return;
}

# Prepared transactions that were left are committed or rolled back, and what has grown is cut.
sub tidy
{
	my ($self) = @_;
	my $node = $self->{node};
	my $commands = $node->safe_psql('postgres',
		q{SELECT CASE WHEN random() < 0.5 THEN 'COMMIT' ELSE 'ROLLBACK' END || ' PREPARED ' || quote_literal(gid) || ';' FROM pg_prepared_xacts});

	$node->safe_psql('postgres', $commands . qq{
		DROP INDEX IF EXISTS fat_key;
		TRUNCATE fat;
		DELETE FROM mix WHERE id < (SELECT max(id) - $most_rows FROM mix);
		DELETE FROM pair WHERE id < (SELECT max(id) - $most_rows FROM pair);
		DELETE FROM side WHERE key % 2 = 0;
	});
	# It has two copies again, for the next time.
	$node->safe_psql('postgres', 'REINDEX INDEX mix_twice')
	  if $node->safe_psql('postgres', q{SELECT count(*) FROM sherman_stat_indexes WHERE replicas = 'one'}) ne '0';
	$self->make_room;
	return;
}

sub set_patience
{
	my ($self, $value) = @_;
	my $node = $self->{node};

	$node->adjust_conf('postgresql.conf', 'sherman.operation_timeout', $value);
	$node->reload;
	$node->poll_query_until('postgres', "SELECT current_setting('sherman.operation_timeout') = '$value'") or die 'the setting does not arrive';
	return;
}

sub wait_until_attached
{
	my ($self) = @_;

	$self->{node}->poll_query_until('postgres', q{SELECT count(*) > 0 AND bool_and(state = 'attached') FROM sherman_stat_memory_nodes})
	  or die "not attached\n" . situation($self->{node});
	$self->{node}->poll_query_until('postgres', q{SELECT count(*) = 0 FROM sherman_stat_indexes WHERE state IN ('attaching', 'unreachable')})
	  or die "not reachable\n" . situation($self->{node});
	return;
}

sub start_load
{
	my ($self, $out) = @_;

	return IPC::Run::start(
		[ 'pgbench', '-n', '-c', '4', '-T', '300', '--random-seed', int(rand(2**31)), @{ $self->{scripts} }, $self->{node}->connstr('postgres') ],
		'<', \undef, '>', $out, '2>&1');
}

# Load that changes indexes. A client ends at its first error: one and the other may, all may not, unless it is for want of patience.
sub load
{
	my ($self, $out, $patient) = @_;
	my $bench = $self->start_load($out);
	my $begin = time;

	while (time - $begin < $PostgreSQL::Test::Utils::timeout_default)
	{
		return $bench if $self->{node}->safe_psql('postgres', 'SELECT sum(inserts) > 50 FROM sherman_stat_indexes') eq 't';
		IPC::Run::pump_nb($bench) if IPC::Run::pumpable($bench);
		if (!IPC::Run::pumpable($bench))
		{
			die "the load has ended: $$out\n" . situation($self->{node}) if $patient || $$out !~ /memory node/;
			IPC::Run::finish($bench);
			$bench = $self->start_load($out);
		}
		usleep(50_000);
	}
	die "no load: $$out\n" . situation($self->{node});
}

# One cycle: load, the fault, the start, the looks.
sub cycle
{
	my ($self, $number) = @_;
	my $node = $self->{node};
	my $way = $self->{ways}[ $number % @{ $self->{ways} } ];
	my $out = '';

	$self->set_patience($short_patience) if $way eq 'partition';
	my $bench = $self->load(\$out, $way ne 'partition');

	usleep(int(rand(300_000)));
	my $fault = $self->fault($way);
	my $lives = $fault =~ /^(msd|partition)$/;

	$self->set_patience($patience) if $way eq 'partition';
	$bench->signal('TERM') if $lives;
	IPC::Run::finish($bench);
	if (!$lives)
	{
		# The healer is at work beside the looks of every other cycle, and in the next one's load.
		$node->adjust_conf('postgresql.conf', 'sherman.autoheal', $number % 2 ? 'off' : 'on');
		# In some a memory node that is away for a moment is given up by the index that does without.
		$node->adjust_conf('postgresql.conf', 'sherman.failover_after', $number % 3 ? '5s' : '20ms');
		# Some runs go over connection workers.
		$node->adjust_conf('postgresql.conf', 'sherman.connection_workers', int(rand(3)) == 0 ? 2 : 0);
		start_again($node);
	}
	$self->wait_until_attached;
	$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pgbench'})
	  or die "the load does not end\n" . situation($node);
	$self->{cycles}++;
	$self->{faults}{$fault}++;
	$self->verify("cycle $number, $fault", 'ok|healing');
	$self->tidy;
	# Some go into the next crash healed, others in doubt.
	if ($number % 4 == 0)
	{
		$node->poll_query_until('postgres', q{SELECT coalesce(sum(sherman_heal(indexrelid)), 0) = 0 FROM sherman_stat_indexes WHERE state = 'healing'});
		$self->verify("cycle $number, healed", 'ok');
	}
	return;
}

# Lines of the logs that tell of somebody who failed by himself: not by our faults.
sub own_failures
{
	my ($self) = @_;
	my @failures;

	foreach my $log ($self->{node}->logfile, map { $_->{log} } @{ $self->{msd} })
	{
		open(my $in, '<', $log) or die "$log: $!";
		while (my $line = <$in>)
		{
			push @failures, $line if $line =~ /PANIC: |TRAP: |Assertion .* failed|terminated by signal (6|11):/;
		}
		close $in;
	}
	return @failures;
}

sub summary
{
	my ($self) = @_;
	my $faults = join(', ', map { "$_ $self->{faults}{$_}" } sort keys %{ $self->{faults} });

	note($self->memory_used . " bytes of memory used in the end; $self->{rebuilds} times indexes were rebuilt for room");
	note("$self->{cycles} cycles; faults: $faults; $self->{looks} times all indexes compared, $self->{rows} rows; "
		  . "$self->{healing} indexes found in doubt; $self->{wrong} wrong");
	is(join('', $self->own_failures), '', 'nobody has failed by himself');
	return;
}

1;

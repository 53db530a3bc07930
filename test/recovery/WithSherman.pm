
# PostgreSQL's own recovery tests over sherman (script/test long recovery): loaded before a test, which is not changed.
#
# Each cluster that a test makes has the extension, memory nodes of its own across TCP with a key, and sherman in btree's place: the two change
# names in pg_am, so each index and constraint of the test is sherman's.  Beside the test's tables there is one of ours with four indexes, whose rows
# change all the time on each server that is not in recovery, unless $SHERMAN_RECOVERY_QUIET says that the test does not bear that.  Before a
# server is stopped, and at the end of the test, every sherman index of it must find what its table has, in one snapshot.

package WithSherman;

use strict;
use warnings;

use FindBin;
use Msd;
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More ();
use Time::HiRes qw(sleep);

# Tries of a comparison that a standby cancels, as it may.
my $tries = 3;

# Servers that were made, by name; the processes that change rows, by server; what was compared, and what was wrong.
my (%nodes, %load, $ended);
my @figures = qw(servers standbys indexes unused unusable canceled);
my %figures = map { $_ => 0 } @figures;
my @wrong;

# wrap(method, code): code gets the original method, and its arguments.
sub wrap
{
	my ($name, $code) = @_;
	my $original = PostgreSQL::Test::Cluster->can($name) or die "no method $name";

	no strict 'refs';
	no warnings 'redefine';
	*{"PostgreSQL::Test::Cluster::$name"} = sub { return $code->($original, @_) };
	return;
}

# SQL in a database, by psql; returns whether it went well, what it printed, and what it complained of.
sub ask
{
	my ($node, $database, $sql) = @_;
	my ($out, $errors) = ('', '');

	local %ENV = $node->_get_env();
	my $good = IPC::Run::run([ $node->installed_command('psql'), '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr($database), '-f', '-' ],
		'<', \$sql, '>', \$out, '2>', \$errors);
	chomp $out;
	return ($good, $out, $errors);
}

# ---- clusters

# The extension in btree's place, in the databases that others are made of, too; its views are out of the way of tests that list views.
my $change_names = q{
	SET allow_system_table_mods = on;
	CREATE EXTENSION sherman SCHEMA pg_catalog;
	CREATE SCHEMA sherman;
	SELECT format('ALTER VIEW pg_catalog.%I SET SCHEMA sherman', relname) FROM pg_class JOIN pg_depend d ON d.objid = pg_class.oid
		WHERE relkind = 'v' AND relname LIKE 'sherman%' AND deptype = 'e' \\gexec
	UPDATE pg_am SET amname = 'btree_core' WHERE amname = 'btree';
	UPDATE pg_am SET amname = 'btree' WHERE amname = 'sherman';
};
my $make_rows = q{
	CREATE TABLE sherman.rows (id int PRIMARY KEY, word text, part int, filler text) WITH (fillfactor = 70);
	CREATE INDEX rows_word ON sherman.rows (word);
	CREATE INDEX rows_pair ON sherman.rows (part, id);
	CREATE INDEX rows_part ON sherman.rows (id) WHERE part = 3;
	INSERT INTO sherman.rows SELECT g, md5(g::text), g % 10, repeat('x', 50) FROM generate_series(1, 1000) g;
};

wrap(init => sub {
	my ($init, $node, @parameters) = @_;

	$init->($node, @parameters);
	my $msd = Msd->new($node->name . '_' . scalar(keys %nodes), size => 1024, transport => 'tls');

	# In front of what the test sets.
	$node->append_conf('postgresql.conf',
		"shared_preload_libraries = 'sherman'\nsherman.memory_nodes = '" . $msd->address . "'\n" . Msd::configuration()
		  . "sherman.take_over = auto\nsherman.cache_size = 4MB\nsherman.attach_timeout = 30s\nmax_standby_streaming_delay = 3s\n");
	my @server = ('pg_ctl', '-w', '-s', '-D', $node->data_dir, '-l', $node->logfile . '.init');

	{
		local %ENV = $node->_get_env(PGAPPNAME => undef);
		system_or_bail(@server, '-o', '-c autovacuum=off', 'start');
	}
	foreach my $step ([ 'postgres', 'ALTER DATABASE template0 ALLOW_CONNECTIONS true' ], (map { [ $_, $change_names ] } qw(template0 template1 postgres)),
		[ 'postgres', 'ALTER DATABASE template0 ALLOW_CONNECTIONS false' ], [ 'postgres', $make_rows ])
	{
		my ($good, undef, $errors) = ask($node, @$step);

		Test::More::BAIL_OUT("no extension: $errors") unless $good;
	}
	system_or_bail('pg_ctl', '-w', '-s', '-D', $node->data_dir, 'stop');
	return;
});

# ---- the load

my $changes = q{
	\set a random(1, 1200)
	\set b random(1, 10)
	BEGIN;
	DELETE FROM sherman.rows WHERE id BETWEEN :a AND :a + :b;
	INSERT INTO sherman.rows SELECT g, md5(g::text), g % 10, repeat('y', 50) FROM generate_series(:a, :a + :b) g ON CONFLICT DO NOTHING;
	COMMIT;
	UPDATE sherman.rows SET filler = repeat('z', 40) WHERE id BETWEEN :a + 100 AND :a + 103;
	UPDATE sherman.rows SET part = (part + 1) % 10 WHERE id = :a + 200;
};

# Changes rows of a server as long as that lives and this process is let; a server in recovery is waited for.
sub change_rows
{
	my $node = shift;
	my $script = "$PostgreSQL::Test::Utils::tmp_check/changes_$$.pgbench";

	append_to_file($script, $changes);
	while (kill(0, $node->{_pid}))
	{
		my ($good, $in_recovery) = ask($node, 'postgres', 'SELECT pg_is_in_recovery()');

		if ($good && $in_recovery eq 'f')
		{
			my $said;

			ask($node, 'postgres', 'VACUUM (TRUNCATE off) sherman.rows');
			IPC::Run::run([ 'pgbench', '-n', '-c', 1, '-R', 40, '-T', 3, '-f', $script, $node->connstr('postgres') ], '>', \$said, '2>&1');
		}
		sleep 0.5;
	}
	return;
}

sub begin_load
{
	my $node = shift;

	end_load($node);
	return if $ENV{SHERMAN_RECOVERY_QUIET};
	my $pid = fork // die "fork: $!";

	if ($pid == 0)
	{
		setpgrp;
		open STDOUT, '>', '/dev/null';
		open STDERR, '>', '/dev/null';
		eval { change_rows($node) };
		POSIX::_exit(0);
	}
	$load{ $node->name } = $pid;
	return;
}

sub end_load
{
	my $node = shift;
	my $pid = delete $load{ $node->name } // return;

	kill 'KILL', -$pid, $pid;
	waitpid($pid, 0);
	return;
}

# ---- comparisons

# Each sherman index of a database by the table, by the index and by the index alone, in one snapshot; the structure, too, where that is possible.
# A line of each: its name, its state, whether an index scan took place, what was found.
my $compare = q{
	SET statement_timeout = '300s';
	SET client_min_messages = notice;
	BEGIN ISOLATION LEVEL REPEATABLE READ;
	DO $$
	DECLARE
		i record;
		line text;
		rows_of text;
		keys_of text;
		by_table text;
		keys_by_table text;
		by_index text;
		keys_by_index text;
		used bool;
		problems bigint;
	BEGIN
		FOR i IN SELECT x.indexrelid AS oid, p.indrelid::regclass AS t, x.state, x.reason, pg_get_indexdef(x.indexrelid, 1, true) AS k,
				coalesce('WHERE ' || pg_get_expr(indpred, indrelid), '') AS condition, c.relname
			FROM sherman.sherman_stat_indexes x JOIN pg_index p ON p.indexrelid = x.indexrelid JOIN pg_class c ON c.oid = x.indexrelid
			WHERE indisvalid AND relpersistence <> 't' AND NOT (relpersistence = 'u' AND pg_is_in_recovery()) ORDER BY 1
		LOOP
			rows_of := format('SELECT count(*) || '' '' || coalesce(sum(hashtext(r::text)), 0) FROM (SELECT r FROM %s r %s ORDER BY %s) s', i.t, i.condition, i.k);
			keys_of := format('SELECT count(*) || '' '' || coalesce(sum(hashtext(k::text)), 0) FROM (SELECT %3$s AS k FROM %1$s r %2$s ORDER BY %3$s) s', i.t, i.condition, i.k);
			PERFORM set_config('enable_' || way, 'off', true) FROM unnest(ARRAY['indexscan', 'indexonlyscan', 'bitmapscan']) way;
			PERFORM set_config('enable_' || way, 'on', true) FROM unnest(ARRAY['seqscan', 'sort']) way;
			EXECUTE rows_of INTO by_table;
			EXECUTE keys_of INTO keys_by_table;
			PERFORM set_config('enable_' || way, 'on', true) FROM unnest(ARRAY['indexscan', 'indexonlyscan']) way;
			PERFORM set_config('enable_' || way, 'off', true) FROM unnest(ARRAY['seqscan', 'sort']) way;
			EXECUTE rows_of INTO by_index;
			EXECUTE keys_of INTO keys_by_index;
			used := false;
			FOR line IN EXECUTE 'EXPLAIN ' || rows_of LOOP
				used := used OR line LIKE '%Index %Scan using ' || quote_ident(i.relname) || ' on %';
			END LOOP;
			problems := CASE WHEN NOT pg_is_in_recovery() AND i.state IN ('ok', 'healing') THEN sherman_check(i.oid, true) ELSE 0 END;
			RAISE NOTICE 'compared|%|%|%|%|%|%', i.oid::regclass, i.state, used, problems,
				by_table = by_index AND keys_by_table = keys_by_index, concat_ws(', ', by_table, by_index, keys_by_table, keys_by_index) || ' ' || coalesce(i.reason, '');
		END LOOP;
	END $$;
	COMMIT;
};

# Whoever is not in recovery waits for the memory node before.
my $settled = q{SELECT pg_is_in_recovery(), bool_and(state <> 'attaching') FROM sherman.sherman_stat_memory_nodes};

# Compares all that a server has, if it can be asked.
sub compare_server
{
	my ($node, $when) = @_;

	return unless defined $node->{_pid} && kill(0, $node->{_pid});
	my ($good, $state) = ask($node, 'postgres', $settled);

	for (my $i = 0; $good && $state eq 'f|f' && $i < 300; $i++)
	{
		sleep 0.1;
		($good, $state) = ask($node, 'postgres', $settled);
	}
	return unless $good;
	my ($listed, $databases) = ask($node, 'postgres', 'SELECT datname FROM pg_database WHERE datallowconn AND NOT datistemplate AND datconnlimit <> -2');

	$figures{servers}++;
	$figures{standbys}++ if $state =~ /^t/;
	compare_database($node, $_, "$when: " . $node->name . ", database $_", $state =~ /^t/) foreach $listed ? split(/\n/, $databases) : ();
	return;
}

sub compare_database
{
	my ($node, $database, $what, $in_recovery) = @_;

	for my $try (1 .. $tries)
	{
		my ($good, undef, $said) = ask($node, $database, $compare);

		if ($good)
		{
			judge($node, $what, $in_recovery, split(/\n/, $said));
			return;
		}
		if ($said !~ /conflict with recovery|does not exist|could not open relation|could not serialize/)
		{
			# Somebody else may just be ending it.
			push @wrong, "$what: $said" if kill(0, $node->{_pid}) && $said !~ /is (starting up|shutting down)|administrator command|connection to server/;
			return;
		}
		sleep 0.5;
	}
	$figures{canceled}++;
	return;
}

# All that a server has logged.
sub log_of
{
	my $node = shift;

	return join('', map { slurp_file($_) } glob("$node->{_logfile_base}*.log"));
}

# Whether another server of the test has taken the memory nodes over.
sub is_fenced
{
	my $node = shift;

	return scalar grep { $_ != $node && log_of($_) =~ /sherman indexes are taken over as they were/ } values %nodes;
}

sub judge
{
	my ($node, $what, $in_recovery, @lines) = @_;

	foreach my $line (@lines)
	{
		next unless $line =~ /NOTICE:  compared\|(.*)/;
		my ($index, $state, $used, $problems, $equal, $answers) = split(/\|/, $1);

		$figures{indexes}++;
		$figures{unused}++ if $used ne 't';
		push @wrong, "$what: $index is $state, $problems problems, by table, index: $answers" if $equal ne 't' || $problems > 0;
		next if $state =~ /^(ok|healing)$/;
		if ($in_recovery || ($state eq 'unreachable' && is_fenced($node)))
		{
			$figures{unusable}++;
			next;
		}
		push @wrong, "$what: $index is $state: $answers" if $state ne 'broken' || !$ENV{SHERMAN_RECOVERY_LOSES};
	}
	return;
}

# ---- what a test calls

wrap(new => sub {
	my ($new, $class, $name, @parameters) = @_;
	my $node = $new->($class, $name, @parameters);

	$nodes{$name} = $node;
	return $node;
});

wrap(start => sub {
	my ($start, $node, @parameters) = @_;
	my $started = $start->($node, @parameters);

	begin_load($node) if $started;
	return $started;
});

wrap(stop => sub {
	my ($stop, $node, @parameters) = @_;

	compare_server($node, 'before a stop') if !$ended;
	end_load($node);
	return $stop->($node, @parameters);
});

wrap(restart => sub {
	my ($restart, $node, @parameters) = @_;

	compare_server($node, 'before a restart');
	end_load($node);
	$restart->($node, @parameters);
	begin_load($node);
	return;
});

wrap(kill9 => sub {
	my ($kill, $node, @parameters) = @_;

	$kill->($node, @parameters);
	end_load($node);
	return;
});

# Lines of a server's log that tell of what no test wants: crashes, and indexes that were lost.
sub misfortunes
{
	my $node = shift;
	my $log = log_of($node);

	return ($log =~ /^.*(?:TRAP: |was terminated by signal (?:4|6|7|8|11)\b).*$/mg,
		$ENV{SHERMAN_RECOVERY_LOSES} ? () : $log =~ /^.*sherman indexes must be rebuilt.*$/mg);
}

{
	no warnings 'redefine';
	my $done = \&Test::More::done_testing;

	*Test::More::done_testing = sub {
		compare_server($nodes{$_}, 'at the end') foreach sort keys %nodes;
		end_load($nodes{$_}) foreach sort keys %nodes;
		$ended = 1;
		push @wrong, map { misfortunes($_) } values %nodes;
		Test::More::diag($_) foreach @wrong;
		Test::More::is(scalar(@wrong), 0, 'sherman: every index finds what its table has, none is lost, and no process has crashed');
		Test::More::note('sherman: ' . join(', ', map { "$figures{$_} $_" } grep { $figures{$_} > 0 } @figures));
		return $done->(@_);
	};
}

END
{
	my $status = $?;

	$ended = 1;
	end_load($_) foreach grep { exists $load{ $_->name } } values %nodes;
	$? = $status;
}

1;


# What the TAP tests of sherman share: clusters with the extension preloaded, whose memory lies in a directory of the test's
# own, and figures read from the views.

package Sherman;

use strict;
use warnings;

use Exporter 'import';
use File::Basename qw(basename);
use File::Temp ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More ();

our @EXPORT = qw(new_cluster memory_directory memory_files used state_of trees wait_until_used uses_index check_index node_pid lose situation start_again index_agrees sessions_with has_steps need_steps make_held_at);

# What a test dies of would be in its own log only, which is gone when it has ended, and prove show a number.
$SIG{__DIE__} = sub {
	# Not what an eval catches, nor what the compiler tries.
	Test::More::diag("died: $_[0]") if defined $^S && !$^S;
};

# A mutation is noticed by the first failure: what comes behind it mostly waits for what does not come (script/test long mutations-server).
if ($ENV{SHERMAN_TEST_STOPS})
{
	no warnings 'redefine';
	my $ok = \&Test::Builder::ok;

	*Test::Builder::ok = sub {
		local $Test::Builder::Level = $Test::Builder::Level + 1;
		my $passed = $ok->(@_);

		Test::More::BAIL_OUT('one failure is enough') unless $passed;
		return $passed;
	};
}

my %directories;

# A directory for memory segments, on tmpfs where there is one: removed when the test ends.
sub memory_directory
{
	my $node = shift;
	my $parent = $ENV{SHERMAN_TEST_MEMORY} // (-w '/dev/shm' ? '/dev/shm' : $PostgreSQL::Test::Utils::tmp_check);

	$directories{ $node->name } //= File::Temp->newdir('sherman_test_XXXXXX', DIR => $parent);
	return $directories{ $node->name }->dirname;
}

# Does the installed library have crash points?  Only a build for tests does (make ASSERTS=1).
sub has_steps
{
	my ($directory) = run_command([ 'pg_config', '--pkglibdir' ]);

	return index(slurp_file("$directory/sherman.so"), 'sherman.debug_step') >= 0;
}

# For tests that are about nothing else, in front of all else.
sub need_steps
{
	Test::More::plan(skip_all => 'the installed library has no crash points (make ASSERTS=1)') unless has_steps();
	return;
}

# Paths of the memory segments that are there, but for those that were set aside.
sub memory_files
{
	my $node = shift;

	return grep { !/\.lock$|\.kept-/ } glob(memory_directory($node) . '/sherman.*');
}

# new_cluster(name, memory => MB, conf => text, start => 0|1, allows_streaming => 0|1, extra => [ flags of initdb ], install_path => of another PostgreSQL):
# with the extension in "postgres".  Nothing happens there by itself: no autovacuum, and nobody heals or rebuilds.
sub new_cluster
{
	my ($name, %options) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name, install_path => $options{install_path});
	my $memory = $options{memory} // 256;

	$node->init(allows_streaming => $options{allows_streaming} // 0, extra => $options{extra} // []);
	$node->append_conf('postgresql.conf',
			"shared_preload_libraries = 'sherman'\n"
		  . "sherman.embedded_directory = '" . memory_directory($node) . "'\n"
		  . "sherman.embedded_memory = ${memory}MB\n"
		  . "sherman.cache_size = 8MB\n"
		  . "autovacuum = off\n"
		  . "sherman.autoheal = off\n"
		  . "sherman.auto_rebuild = off\n"
		  . "log_min_messages = debug1\n"
		  . ($options{conf} // ''));
	if ($options{start} // 1)
	{
		$node->start;
		$node->safe_psql('postgres', 'CREATE EXTENSION sherman');
	}
	return $node;
}

# Bytes that trees have taken at the memory node.
sub used
{
	my $node = shift;

	return $node->safe_psql('postgres', 'SELECT used_bytes FROM sherman_stat_memory_nodes');
}

# Waits until that many bytes are used; false after the time of poll_query_until().
sub wait_until_used
{
	my ($node, $bytes) = @_;

	return $node->poll_query_until('postgres', "SELECT used_bytes = $bytes FROM sherman_stat_memory_nodes");
}

# State of an index, once the launcher has attached.
sub state_of
{
	my ($node, $index, $database) = @_;
	# A state other than ok has a reason.
	my $state = "SELECT state || CASE WHEN state <> 'ok' AND coalesce(reason, '') = '' THEN ' without a reason' ELSE '' END FROM sherman_stat_indexes WHERE indexrelid = '$index'::regclass";

	$database //= 'postgres';
	$node->poll_query_until($database, "SELECT ($state) NOT LIKE 'attaching%'") or die "$index is still attaching";
	return $node->safe_psql($database, $state);
}

# Sessions that $begin opens, of which the last one gives this answer to a query that tells of its place: up to 15 that of a session that has gone
# is the next one's, from 16 on all other free places have their turn before.
sub sessions_with
{
	my ($begin, $query, $answer) = @_;

	for (1 .. 5)
	{
		my @sessions;

		for (1 .. 50)
		{
			push @sessions, $begin->();
			return @sessions if $sessions[-1]->query_safe($query) eq $answer;
		}
		$_->quit foreach @sessions;
	}
	die "no session answers $query with $answer";
}

sub trees
{
	my ($node, $database) = @_;

	return $node->safe_psql($database // 'postgres', 'SELECT count(tree) FROM sherman_stat_indexes');
}

# Whether the plan of a query uses this index, if the planner has the choice between it and nothing else.
sub uses_index
{
	my ($node, $index, $query) = @_;
	my $plan = $node->safe_psql('postgres', "SET enable_seqscan = off; SET client_min_messages = error; EXPLAIN $query");

	return $plan =~ /\b$index\b/;
}

# Number of problems that sherman_check() finds, table included.
sub check_index
{
	my ($node, $index, $database) = @_;

	return $node->safe_psql($database // 'postgres', "SELECT sherman_check('$index', true)");
}

# Process id of the embedded node: it has no entry in pg_stat_activity, but it is the postmaster's child.
sub node_pid
{
	my $node = shift;
	my $postmaster = slurp_file($node->data_dir . '/postmaster.pid');

	$postmaster =~ /^(\d+)/ or die 'no postmaster.pid';
	my $parent = $1;
	foreach my $file (glob('/proc/[0-9]*/stat'))
	{
		my $stat = eval { slurp_file($file) } // next;
		next unless $stat =~ /^(\d+) \(.*\) \S (\d+) / && $2 == $parent;
		my $pid = $1;
		my $title = eval { slurp_file("/proc/$pid/cmdline") } // '';
		return $pid if $title =~ /sherman memory node/;
	}
	die 'no memory node';
}

# lose(node, sql, ...): runs the statements, which write little and commit asynchronously, and ends the server before any of their WAL
# is written. Nobody else may write meanwhile, and bgwriter_lru_maxpages be 0. Indexes must have been changed in this run before: the
# first change flushes WAL. Returns the last answer.
sub lose
{
	my ($node, @statements) = @_;
	my $writer = $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'});

	$writer =~ /^[1-9]\d+$/ or die 'no WAL writer';
	kill 'STOP', $writer;
	my @answers = map { $node->safe_psql('postgres', $_) } @statements;
	# It writes nothing more; everybody else is ended for that.
	kill 'KILL', $writer;
	$node->stop('immediate', fail_ok => 1);
	return $answers[-1];
}

# index_agrees(node, what): what a query over table rows (id, word) says by the index, if it can be used, and without it.
sub index_agrees
{
	my ($node, $what) = @_;
	my $query = 'SELECT count(*), sum(id), sum(hashtext(word)) FROM rows WHERE id > 0';
	my $table = $node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; $query");

	Test::More::is($node->safe_psql('postgres', "SET client_min_messages = error; SET enable_seqscan = off; $query"),
		$table, "$what: index and table say the same");
	return;
}

# Of a log so many bytes are looked at, and so many lines shown.
my $log_bytes = 4 * 1024 * 1024;
my $log_lines = 60;

# What the server and the memory nodes of this test have said last, but for statements: a poll's fill a log.
sub ends_of_logs
{
	my $test = basename($0, '.pl');
	my @ends;

	foreach my $log (glob("$PostgreSQL::Test::Utils::log_path/${test}_*.log"))
	{
		my $size = -s $log // 0;
		my @lines = grep { !/LOG:  statement: / } split /\n/, slurp_file($log, $size > $log_bytes ? $size - $log_bytes : 0);

		push @ends, "--- $log", @lines > $log_lines ? @lines[ -$log_lines .. -1 ] : @lines;
	}
	return @ends;
}

# The test's processes, memory nodes among them, and the server's: who lives, and who sleeps where.
sub processes
{
	my ($node) = @_;
	my ($postmaster) = (eval { slurp_file($node->data_dir . '/postmaster.pid') } // '') =~ /^(\d+)/;
	my $parents = join(',', $$, $postmaster // ());

	return `ps -o pid,ppid,stat,etime,time,wchan:24,args --ppid $parents 2>&1`;
}

# Who does what, who waits for whom, what there is of memory, and what was said last: for messages.
sub situation
{
	my ($node) = @_;
	my @questions = (
		q{SELECT pid, backend_type, state, wait_event_type, wait_event, pg_blocking_pids(pid), left(query, 100) FROM pg_stat_activity WHERE pid <> pg_backend_pid()},
		'SELECT * FROM pg_prepared_xacts', 'SELECT * FROM sherman_stat_memory_nodes', 'SELECT * FROM sherman_stat_indexes');

	return join("\n", (map { $_, eval { $node->safe_psql('postgres', $_) } // $@ } @questions), processes($node), ends_of_logs());
}

# Starts the server, perhaps behind an end that others saw to, and waits until its memory nodes are attached: all, or only so many while
# the others are not waited for any more.
sub start_again
{
	my ($node, $attached) = @_;
	my $file = $node->data_dir . '/postmaster.pid';

	# It may be about to end.
	for my $try (1 .. 300)
	{
		my ($pid) = -e $file ? (eval { slurp_file($file) } // '') =~ /^(\d+)/ : ();

		last unless $pid && kill(0, $pid);
		select(undef, undef, undef, 0.1);
	}
	for my $try (1 .. 300)
	{
		$node->_update_pid(-1);
		# Refused as long as an orphan is attached to the old shared memory.
		last if $node->start(fail_ok => 1);
		select(undef, undef, undef, 0.1);
	}
	$attached //= 'count(*)';
	$node->poll_query_until('postgres',
		"SELECT count(*) > 0 AND count(*) FILTER (WHERE state = 'attached') = $attached AND bool_and(state <> 'attaching') FROM sherman_stat_memory_nodes")
	  or die "not attached\n" . situation($node);
	return;
}

# psql that finds no server may be gone before it has read its query; IPC::Run dies of that (EPIPE), though the server may be there
# at the next try, which is what a poll is for.
{
	no warnings 'redefine';
	my $poll = \&PostgreSQL::Test::Cluster::poll_query_until;

	*PostgreSQL::Test::Cluster::poll_query_until = sub {
		my @arguments = @_;

		for my $try (1 .. 100)
		{
			my $result = eval { $poll->(@arguments) };

			return $result if $@ eq '';
			die $@ if $@ !~ /Broken pipe/;
			select(undef, undef, undef, 0.1);
		}
		return 0;
	};
}

# Makes held_at(i, at), which returns i: at one of them it waits as long as another session has the advisory lock 1.
sub make_held_at
{
	my $node = shift;

	$node->safe_psql('postgres', q{
		CREATE FUNCTION held_at(i int, at int) RETURNS int LANGUAGE plpgsql AS $$
		BEGIN
			IF i = at THEN
				PERFORM pg_advisory_lock(1);
				PERFORM pg_advisory_unlock(1);
			END IF;
			RETURN i;
		END $$;
	});
	return;
}

1;

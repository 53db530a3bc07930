
# Several servers on one memory node, each a tenant, and a partitioned table over both by postgres_fdw: doc/operate/partitions.md.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use HTTP::Tiny;
use IPC::Run;
use Msd;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;
use Time::HiRes qw(time usleep);

my ($share) = run_command([ 'pg_config', '--sharedir' ]);
plan(skip_all => 'postgres_fdw is not installed') unless -e "$share/extension/postgres_fdw.control";

# Rows of a partition, of which there are four: two at each server.
my $part = 20000;
my ($stdout, $stderr);

#
# One memory node, two tenants.
#
my $tmp = $PostgreSQL::Test::Utils::tmp_check;
my %key = map { $_ => Msd::random_key() } qw(first second);
my %key_file = map { $_ => "$tmp/partitions_${_}_$$" } qw(first second);
my $keys = "$tmp/partitions_keys_$$";
my $settings = "$tmp/partitions_settings_$$";

END { unlink $keys, $settings, values %key_file }

sub set_quotas
{
	my (%quota) = @_;

	unlink $settings;
	append_to_file($settings, join('', map { "tenant-quota = $_ $quota{$_}\n" } sort keys %quota));
	return;
}

Msd::write_keys($keys, %key);
Msd::write_keys($key_file{$_}, $_ => $key{$_}) foreach keys %key;
set_quotas(first => '16M', second => '16M');

my $msd = Msd->new('pool', transport => 'tls', keys => $keys, flags => [ '--config', $settings, '--metrics', '127.0.0.1:0' ]);
my ($metrics) = slurp_file($msd->{log}) =~ /metrics at port (\d+)/ or die 'msd serves no metrics';

# A figure of each tenant, as the memory node has it, not before it is asked: "first second".
sub by_tenant
{
	my ($figure) = @_;
	my $asked = time;
	my ($page, $age, $sent);

	do
	{
		usleep(50_000) if defined $page;
		$sent = time;
		$page = HTTP::Tiny->new(timeout => 30, http_proxy => undef)->get("http://127.0.0.1:$metrics/metrics")->{content};
		($age) = $page =~ /^sherman_msd_figures_age_seconds ([\d.]+)$/m or die $page;
	} until $sent - $asked > $age + 0.001;
	my %value = $page =~ /^sherman_msd_tenant_$figure\{tenant="(\w+)"\} (\d+)$/mg;

	return map { $value{$_} // 0 } qw(first second);
}

# Waits until the memory node says so of both tenants.
sub wait_for_tenants
{
	my ($condition) = @_;

	foreach my $i (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return 1 if $condition->(by_tenant('memory_bytes'));
		usleep(100_000);
	}
	return 0;
}

#
# Two servers. In each a database has the rows, and another one, which has none, the whole as a partitioned table.
#
my %server = map { $_ => new_cluster($_, start => 0, conf => "sherman.memory_nodes = '" . $msd->address . "'\nsherman.key_file = '$key_file{$_}'\nsherman.attach_timeout = 10s\n") } qw(first second);
my ($first, $second) = @server{qw(first second)};

$_->start foreach values %server;

# The table of a partition, where its rows are.
sub make_part
{
	my ($node, $number) = @_;
	my ($from, $to) = (($number - 1) * $part, $number * $part);

	$node->safe_psql('postgres', "CREATE TABLE events_$number (id bigint PRIMARY KEY WITH (sherman), kind int, note text, CHECK (id >= $from AND id < $to));
		CREATE INDEX events_${number}_kind ON events_$number USING sherman (kind, id);
		GRANT SELECT, INSERT, UPDATE, DELETE ON events_$number TO app");
	return;
}

# The statement that makes it a partition of the whole.
sub foreign_part
{
	my ($server, $number) = @_;
	my ($from, $to) = (($number - 1) * $part, $number * $part);

	return "CREATE FOREIGN TABLE events_$number PARTITION OF events FOR VALUES FROM ($from) TO ($to) SERVER $server;";
}

foreach my $node ($first, $second)
{
	$node->safe_psql('postgres', 'CREATE EXTENSION sherman');
	$node->safe_psql('postgres', 'CREATE ROLE app LOGIN; CREATE DATABASE whole');
	$node->safe_psql(
		'whole', 'CREATE EXTENSION postgres_fdw;' . join('', map {
				"CREATE SERVER $_ FOREIGN DATA WRAPPER postgres_fdw
					OPTIONS (host '" . $server{$_}->host . "', port '" . $server{$_}->port . "', dbname 'postgres', async_capable 'true', fetch_size '1000', batch_size '1000', parallel_commit 'true');
				CREATE USER MAPPING FOR PUBLIC SERVER $_ OPTIONS (user 'app');"
		} qw(first second)) . 'CREATE TABLE events (id bigint, kind int, note text) PARTITION BY RANGE (id);'
		  . foreign_part('first', 1) . foreign_part('first', 2) . foreign_part('second', 3) . foreign_part('second', 4));
}
make_part($first, $_) foreach 1, 2;
make_part($second, $_) foreach 3, 4;

sub whole { return $first->safe_psql('whole', $_[0]); }

# Runs SQL over the whole that must fail; returns the error.
sub fails
{
	my ($sql, $what) = @_;
	my $status = $first->psql('whole', "\\set VERBOSITY verbose\n$sql", stdout => \$stdout, stderr => \$stderr);

	isnt($status, 0, $what);
	return $stderr;
}

#
# Rows go where they belong; the same ones are in a plain table with btree's indexes.
#
whole(qq{
	CREATE TABLE plain (id bigint PRIMARY KEY, kind int, note text);
	CREATE INDEX ON plain (kind, id);
	INSERT INTO plain SELECT (i * 7919::bigint) % (4 * $part), i % 100, 'note ' || i FROM generate_series(0, 4 * $part - 1) i WHERE i % 10 <> 0;
	INSERT INTO events SELECT * FROM plain;
	ANALYZE plain;
});
$first->safe_psql('postgres', 'ANALYZE');
$second->safe_psql('postgres', 'ANALYZE');
whole("ANALYZE events_$_") foreach 1 .. 4;
$second->safe_psql('whole', "ANALYZE events_$_") foreach 1 .. 4;

sub rows_at
{
	my ($node, @numbers) = @_;

	return join(' ', map { $node->safe_psql('postgres', "SELECT count(*) FROM events_$_") } @numbers);
}
is(rows_at($first, 1, 2), whole("SELECT count(*) FILTER (WHERE id < $part) || ' ' || count(*) FILTER (WHERE id >= $part AND id < 2 * $part) FROM plain"),
	'rows are inserted at the first server');
is(rows_at($second, 3, 4), whole("SELECT count(*) FILTER (WHERE id >= 2 * $part AND id < 3 * $part) || ' ' || count(*) FILTER (WHERE id >= 3 * $part) FROM plain"),
	'and at the second one');

my @queries = (
	'SELECT * FROM TABLE WHERE id BETWEEN 15000 AND 65000',
	'SELECT * FROM TABLE WHERE id BETWEEN 39900 AND 40100 ORDER BY id',
	'SELECT * FROM TABLE WHERE id BETWEEN 15000 AND 65000 ORDER BY id DESC',
	'SELECT kind, id FROM TABLE WHERE kind BETWEEN 7 AND 11 ORDER BY kind, id',
	'SELECT kind, id FROM TABLE WHERE kind > 90 ORDER BY kind DESC, id DESC LIMIT 100',
	'SELECT kind, count(*), min(id), max(id) FROM TABLE WHERE id > 1000 GROUP BY kind ORDER BY kind',
	'SELECT * FROM TABLE WHERE id = ANY (ARRAY[5, 25000, 45001, 79999]) ORDER BY id',
	'SELECT count(*), sum(a.id) FROM TABLE a JOIN TABLE b ON b.id = a.id + 30000 WHERE a.kind = 3');

# What the queries say of a table, one text each. The order counts where the query has one.
sub answers
{
	my ($node, $table) = @_;
	my @answers = split /^next\n/m, $node->safe_psql('whole', join("\n\\echo next\n", map { s/\bTABLE\b/$table/gr . ';' } @queries)) . "\n";

	return map { $queries[$_] =~ /ORDER BY/ ? $answers[$_] : join("\n", sort split /\n/, $answers[$_]) } 0 .. $#queries;
}

# What queries over the whole say, from either server, and over the plain table.
sub same_answers
{
	my ($what) = @_;
	my @plain = answers($first, 'plain');
	my %whole = (first => [ answers($first, 'events') ], second => [ answers($second, 'events') ]);

	ok(!(grep { $_ !~ /\d/ } @plain), "$what: there are answers");
	foreach my $name (qw(first second))
	{
		my @wrong = grep { $whole{$name}[$_] ne $plain[$_] } 0 .. $#queries;

		is(join("\n", @queries[@wrong]), '', "$what: the $name server says what btree says");
	}
	return;
}

sub whole_indexes
{
	my ($what) = @_;

	foreach my $name (qw(first second))
	{
		is( $server{$name}->safe_psql('postgres', "SELECT count(*) FROM sherman_stat_indexes WHERE state <> 'ok' OR sherman_check(indexrelid, true) <> 0"),
			'0', "$what: the indexes of the $name server are whole");
	}
	return;
}

same_answers('inserted');

#
# Range scans over both at once, each by its index.
#
my $range = 'SELECT * FROM events WHERE id BETWEEN 15000 AND 65000 AND note > \'note 2\'';
my $plan = whole("EXPLAIN (VERBOSE, COSTS OFF) $range");
is(() = $plan =~ /Async Foreign Scan on public\.events_\d/g, 4, 'the servers are asked at the same time');
$plan = whole("SET enable_async_append = off; EXPLAIN (VERBOSE, COSTS OFF) $range");
is(() = $plan =~ /Async/g, 0, 'unless that is switched off');

# What each server does with what it is sent.
sub remote_plan_uses
{
	my ($query, %index) = @_;
	my $sent = whole("EXPLAIN (VERBOSE, COSTS OFF) $query");
	my %sent = map { /FROM public\.(events_\d)/ ? ($1 => $_) : () } $sent =~ /Remote SQL: (.*)$/mg;

	is(join(' ', sort keys %sent), join(' ', sort keys %index), "$query is sent for these partitions");
	foreach my $table (sort keys %index)
	{
		my $node = $table =~ /[12]$/ ? $first : $second;

		like($node->safe_psql('postgres', "EXPLAIN $sent{$table}"), qr/\b$index{$table}\b/, "$table: it is done by $index{$table}");
	}
	return;
}
remote_plan_uses('SELECT * FROM events WHERE id BETWEEN 39000 AND 41000', events_2 => 'events_2_pkey', events_3 => 'events_3_pkey');
remote_plan_uses('SELECT count(*) FROM events WHERE kind = 5', map { ("events_$_" => "events_${_}_kind") } 1 .. 4);
my $counts = join(' UNION ALL ', map { "SELECT count(*) AS n FROM events_$_ WHERE kind = 5" } 1 .. 4);
remote_plan_uses("SELECT sum(n) FROM ($counts) parts", map { ("events_$_" => "events_${_}_kind") } 1 .. 4);
$plan = whole("EXPLAIN (VERBOSE, COSTS OFF) SELECT sum(n) FROM ($counts) parts");
is(() = $plan =~ /Async Foreign Scan\n.*\n *Relations: Aggregate on \(public\.events_\d\)/g, 4, 'each server counts its own, at the same time, where the partitions are asked');
remote_plan_uses('SELECT * FROM events WHERE id = 70000', events_4 => 'events_4_pkey');

# How often an index was searched, as PostgreSQL counts it, and as sherman does.
sub searches
{
	my ($node, $index) = @_;

	return $node->safe_psql('postgres', "SELECT idx_scan || ' ' || lookups FROM pg_stat_user_indexes JOIN sherman_stat_indexes USING (indexrelid) WHERE indexrelid = '$index'::regclass");
}
my %before = (events_2_pkey => searches($first, 'events_2_pkey'), events_3_pkey => searches($second, 'events_3_pkey'));
whole('SELECT count(*) FROM events WHERE id BETWEEN 39000 AND 41000');
foreach my $index (sort keys %before)
{
	my ($scans, $lookups) = split / /, $before{$index};

	ok( ($index =~ /_2_/ ? $first : $second)->poll_query_until('postgres',
			"SELECT idx_scan > $scans AND lookups > $lookups FROM pg_stat_user_indexes JOIN sherman_stat_indexes USING (indexrelid) WHERE indexrelid = '$index'::regclass"),
		"$index is searched for a range over both servers");
}

#
# Changes.
#
foreach my $table ('plain', 'events')
{
	whole("UPDATE $table SET kind = kind + 1, note = note || '!' WHERE id BETWEEN 38000 AND 42000;
		DELETE FROM $table WHERE id BETWEEN 35000 AND 36000 OR kind = 50;
		INSERT INTO $table SELECT i, 200, 'again' FROM generate_series(35000, 35100) i");
}
same_answers('changed');
like(fails('INSERT INTO events VALUES (35000, 1)', 'a key that is there is refused'), qr/ERROR:  23505: .*"events_2_pkey"/, 'by the index of its partition');
is(whole("INSERT INTO events VALUES (35000, 1, 'again'), (0, 1, 'new') ON CONFLICT DO NOTHING; DELETE FROM events WHERE id = 0 RETURNING note"), 'new', 'or left out, with ON CONFLICT');
like(fails('UPDATE events SET id = 60500 WHERE id = 35000', 'a row does not move to another partition'), qr/ERROR:  23514: .*check constraint/,
	'and the constraint of its table keeps it from staying with a key that is not its');
fails('CREATE UNIQUE INDEX ON events (id)', 'a unique index over all is refused');
like($stderr, qr/ERROR:  \w+: cannot create unique index on partitioned table "events"/, 'by PostgreSQL');
like(fails('INSERT INTO events VALUES (80000, 1)', 'a row of no partition is refused'), qr/ERROR:  23514: no partition of relation "events"/, 'as ever');
$first->safe_psql('postgres', 'VACUUM events_1, events_2');
$second->safe_psql('postgres', 'VACUUM events_3, events_4');
whole_indexes('changed');

#
# Tenants: each has its own memory, and knows of no other.
#
sub own_figures
{
	my ($what) = @_;
	my @at_node = by_tenant('memory_bytes');

	foreach my $name (qw(first second))
	{
		my $node = $server{$name};
		my $bytes = shift @at_node;

		is($node->safe_psql('postgres', 'SELECT sum(used_bytes) FROM sherman_stat_memory_nodes'), $bytes, "$what: the $name server sees what it has");
		is($node->safe_psql('postgres', 'SELECT sum(total_bytes) FROM sherman_stat_indexes'), $bytes, "$what: it is that of its indexes");
	}
	return;
}
$_->safe_psql('postgres', 'SELECT sherman_collect()') foreach values %server;
own_figures('two partitions each');
is(join(' ', by_tenant('trees')), '4 4', 'each tenant has four trees');

# Another's key opens nothing.
Msd::write_keys($key_file{second}, first => $key{first});
isnt($second->psql('postgres', "\\set VERBOSITY verbose\nINSERT INTO events_3 VALUES (40000, 0, 'foreign')", stderr => \$stderr), 0, "with another tenant's key a session is not let in");
like($stderr, qr/ERROR:  28000: .*permission denied/s, 'and told so');
Msd::write_keys($key_file{second}, second => $key{second});
whole("INSERT INTO $_ VALUES (40000, 0, 'own')") foreach 'plain', 'events';
pass('with its own it is');

#
# A partition moves from the first server to the second one, as the page says.
#
my @before = by_tenant('memory_bytes');
my $moved = $first->safe_psql('postgres', "SELECT sherman_table_size('events_2')");

$first->safe_psql('postgres', 'BEGIN; REVOKE INSERT, UPDATE, DELETE ON events_2 FROM app; LOCK TABLE events_2 IN SHARE MODE; COMMIT');
like(fails('UPDATE events SET kind = 0 WHERE id = 25000', 'it is not changed meanwhile'), qr/ERROR:  42501: permission denied for table events_2/, 'who tries is told');
is(whole('SELECT count(*) FROM events WHERE id BETWEEN 25000 AND 25010'), whole('SELECT count(*) FROM plain WHERE id BETWEEN 25000 AND 25010'), 'but read');

sub move
{
	return IPC::Run::run([ 'pg_dump', '--table=events_2', '-d', $first->connstr('postgres') ], '|',
		[ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-v', 'VERBOSITY=verbose', '--single-transaction', '-d', $second->connstr('postgres') ], '>', \$stdout, '2>', \$stderr);
}

# Where it goes there has to be room.
set_quotas(first => '16M', second => int($before[1] / 1024) + 512 . 'K');
$msd->reload;
ok(!move(), 'without room in the quota of the other tenant it is not moved');
like($stderr, qr/ERROR:  53200: quota at the memory node is used up.*HINT: .*tenant-quota/s, '53200, and a hint at the quota');
is($second->safe_psql('postgres', "SELECT to_regclass('events_2') IS NULL"), 't', 'nothing of it is there');
$second->safe_psql('postgres', 'SELECT sherman_collect()');
ok(wait_for_tenants(sub { return $_[1] == $before[1]; }), 'nor at the memory node');
set_quotas(first => '16M', second => '12M');
$msd->reload;
like(slurp_file($msd->{log}), qr/tenant "second" has a quota of 12288 KB now, it was \d+ KB/, 'the quota is raised by a reload');
ok(move(), 'and it is moved') or diag($stderr);
$second->safe_psql('postgres', 'ANALYZE events_2');
$_->safe_psql('whole', 'BEGIN; DROP FOREIGN TABLE events_2;' . foreign_part('second', 2) . 'COMMIT') foreach $first, $second;
$second->safe_psql('postgres', 'GRANT SELECT, INSERT, UPDATE, DELETE ON events_2 TO app');
$first->safe_psql('postgres', 'DROP TABLE events_2');
ok(wait_for_tenants(sub { return $_[0] == $before[0] - $moved; }), 'its memory is given back by the one tenant');
is((by_tenant('memory_bytes'))[1] - $before[1], $second->safe_psql('postgres', "SELECT sherman_table_size('events_2')"), 'and taken by the other one');
set_quotas(first => '4M', second => '12M');
$msd->reload;
is(join(' ', by_tenant('quota_bytes')), join(' ', map { $_ * 1024 * 1024 } 4, 12), 'the quotas follow');
own_figures('one partition, and three');
same_answers('moved');
whole_indexes('moved');
whole("$_; " . $_ =~ s/events/plain/r) foreach 'INSERT INTO events SELECT i, 300, \'moved\' FROM generate_series(35101, 35200) i WHERE i % 10 = 0', 'UPDATE events SET kind = 301 WHERE id BETWEEN 35000 AND 45000 AND id % 7 = 0';
same_answers('moved, changed');

# A quota that is used up while rows come through the whole.
$first->safe_psql('postgres', 'CREATE INDEX events_1_note ON events_1 USING sherman (note)');
my $long = join(' || ', map { "encode(sha512(int8send(id + $_)), 'hex')" } 1 .. 10);
like(fails("UPDATE events SET note = $long WHERE id < 5000", 'a quota bounds what comes through the whole'),
	qr/ERROR:  53200: quota at the memory node is used up.*HINT: .*tenant-quota/s, 'whose error is that of the server');
$first->safe_psql('postgres', 'DROP INDEX events_1_note');
same_answers('a quota used up');

#
# Transactions over both. There is no two-phase commit: what a server refuses at its commit others may have committed.
#
$second->safe_psql('postgres', q{
	CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused at the commit'; END $$;
	CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON events_4 DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse();
});
like(fails("BEGIN; INSERT INTO events VALUES (0, 400, 'both'), (79990, 400, 'both'); ROLLBACK; SELECT 1 / count(*) FROM events WHERE kind = 400", 'a transaction over both is rolled back'),
	qr/division by zero/, 'in both');
like(fails("INSERT INTO events VALUES (0, 400, 'both'), (79990, 400, 'both')", 'a server refuses at the commit'), qr/refused at the commit/, 'with its error');
like(whole("SELECT string_agg(id::text, ' ') FROM events WHERE kind = 400"), qr/^0?$/, 'what is at the other one is committed, or not');
$second->safe_psql('postgres', 'DROP TRIGGER refuse ON events_4');
whole('DELETE FROM events WHERE kind = 400');

# The same with a server that dies before.
my $session = $first->background_psql('whole', on_error_stop => 0);
$session->query("BEGIN; INSERT INTO events VALUES (0, 400, 'both'), (79990, 400, 'both')");
is($session->{stderr}, '', 'another transaction over both');
$second->stop('immediate');
$session->query('COMMIT');
like($session->{stderr}, qr/ERROR: /, 'it fails with a server that is gone');
$session->quit;

#
# With one server away its partitions are, and no others.
#
like(fails('SELECT count(*) FROM events', 'the whole cannot be read'), qr/ERROR:  08001: could not connect to server "second"/, 'and the error names the server');
like(fails('SELECT * FROM events WHERE id = 50000', 'nor its partitions'), qr/ERROR:  08001: could not connect to server "second"/, 'likewise');
like(fails("INSERT INTO events VALUES (79990, 1, '')", 'nor changed'), qr/ERROR:  08001: could not connect to server "second"/, 'likewise');
is(whole('SELECT count(*) FROM events WHERE id BETWEEN 1000 AND 15000'), whole('SELECT count(*) FROM plain WHERE id BETWEEN 1000 AND 15000'),
	'what lies at the other one is read');
is(whole('PREPARE of_key(bigint) AS SELECT kind FROM events WHERE id = $1; SET plan_cache_mode = force_generic_plan; EXECUTE of_key(1001)'),
	whole('SELECT kind FROM plain WHERE id = 1001'), 'also where the partition is chosen when it runs');
like(whole("SELECT count(*) FROM events WHERE id < $part AND kind = 400"), qr/^[01]$/, 'what was in doubt is committed there, or not');
whole("DELETE FROM events WHERE id < $part AND kind = 400");
whole("INSERT INTO $_ VALUES (10, 500, 'alone')") foreach 'plain', 'events';

start_again($second);
is($second->safe_psql('postgres', 'SELECT count(*) FROM events_4 WHERE kind = 400'), '0', 'at the one that died it is not');
same_answers('both again');
is($second->safe_psql('postgres', 'SELECT sum(sherman_heal(indexrelid)) FROM sherman_stat_indexes'), '0', 'its indexes are healed');
whole_indexes('both again');

#
# The page's own statements, in databases of the names that it gives them.
#
my ($of_server, $of_whole, $count, $end_writing, $switch) = slurp_file("$FindBin::RealBin/../doc/operate/partitions.md") =~ /^ *```sql\n(.*?)^ *```$/msg;

$of_server =~ s/^CREATE ROLE .*\n//m or die 'the page makes no role';
$of_whole =~ s/host '192\.0\.2\.21'/"host '" . $first->host . "', port '" . $first->port . "'"/e or die 'the page has no pg1';
$of_whole =~ s/host '192\.0\.2\.22'/"host '" . $second->host . "', port '" . $second->port . "'"/e or die 'the page has no pg2';
$_->safe_psql('postgres', 'CREATE DATABASE shop') foreach $first, $second;
$first->safe_psql('postgres', 'CREATE DATABASE everything');
foreach my $number (1 .. 4)
{
	my $statements = $of_server =~ s/events_1/events_$number/gr =~ s/id >= 0 AND id < 1000000/'id >= ' . ($number - 1) * 1000000 . ' AND id < ' . $number * 1000000/er;

	$statements =~ s/^CREATE EXTENSION .*\n//m if $number % 2 == 0;
	($number < 3 ? $first : $second)->safe_psql('shop', $statements);
}
$first->safe_psql('everything', $of_whole . 'INSERT INTO events SELECT i * 1000, i % 10 FROM generate_series(0, 3999) i; ANALYZE events_1, events_2, events_3, events_4');
is($first->safe_psql('everything', $count), '400', "the page's servers count");
$first->safe_psql('shop', $end_writing);
ok( IPC::Run::run([ 'pg_dump', '--table=events_2', '-d', $first->connstr('shop') ], '|',
		[ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '--single-transaction', '-d', $second->connstr('shop') ], '>', \$stdout, '2>', \$stderr),
	'its partition is copied') or diag($stderr);
$first->safe_psql('everything', $switch);
$first->safe_psql('shop', 'DROP TABLE events_2');
is($first->safe_psql('everything', $count), '400', 'moved, they count the same');
is($second->safe_psql('shop', q{SELECT string_agg(indexrelname, ' ' ORDER BY indexrelname) FROM sherman_stat_indexes WHERE relname = 'events_2' AND state = 'ok'}), 'events_2_kind events_2_pkey',
	'with its indexes');

$_->stop foreach values %server;
done_testing();

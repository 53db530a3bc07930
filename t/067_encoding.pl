
# How an index's keys are encoded depends on its collations: on whether they order bytes, which the operating system's locales may
# change.  What the index was built by is noted with it, and a process that would encode them otherwise does not use it.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use File::Copy qw(copy);
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $work = $PostgreSQL::Test::Utils::tmp_check;
my $locales = "$work/locales";
my $codepoints = '/usr/lib/locale/C.utf8';

# A locale of our own, "tt": that of C.UTF-8, or with the digits and letters in another order.
sub make_locales
{
	mkdir $locales;
	append_to_file("$work/small.map",
		"<code_set_name> UTF-8\n<comment_char> %\n<escape_char> /\n<mb_cur_min> 1\n<mb_cur_max> 6\nCHARMAP\n"
		  . join('', map { sprintf("<U%04X> /x%02x DIGIT\n", $_, $_) } 0x30 .. 0x39)
		  . "END CHARMAP\n");
	append_to_file("$work/backward.src",
		"LC_COLLATE\norder_start forward\n" . join('', map { sprintf("<U%04X>\n", 0x39 - $_) } 0 .. 9) . "order_end\nEND LC_COLLATE\n");
	system('localedef', '--no-archive', '-c', '-i', "$work/backward.src", '-f', "$work/small.map", "$work/backward.out");
	-e "$work/backward.out/LC_COLLATE" or die 'no locale was made';
	system_or_bail('cp', '-rL', $codepoints, "$locales/tt");
}

# The locale's order from now on, for processes that start: a new file, as an upgrade of the system makes it.
sub order
{
	my ($which) = @_;
	my $file = "$locales/tt/LC_COLLATE";

	copy($which eq 'codepoints' ? "$codepoints/LC_COLLATE" : "$work/backward.out/LC_COLLATE", "$file.new") or die $!;
	rename("$file.new", $file) or die $!;
}

make_locales();
$ENV{LOCPATH} = $locales;
my $node = new_cluster('encoding', extra => [ '--locale=C', '--encoding=UTF8' ], conf => "sherman.auto_rebuild = off\nmax_parallel_maintenance_workers = 2\n");

sub sql { return $node->safe_psql('postgres', "SET client_min_messages = error; $_[0]"); }

# What the server says of a statement: the message of its error, or 'ok'.
sub outcome
{
	my ($status, $out, $error) = $node->psql('postgres', "SET client_min_messages = error; $_[0]");

	return $status == 0 ? "ok$out" : $error =~ /ERROR:  (.*)/ ? $1 : $error;
}

sub found { return sql('SET enable_seqscan = off; SELECT count(*) FROM t a WHERE EXISTS (SELECT FROM t b WHERE (b.u, b.v) = (a.u, a.v))'); }

sub check_both
{
	my ($what) = @_;

	for my $index ('t_u_v', 'plain', 'numbers')
	{
		is(state_of($node, $index), 'ok', "$what: $index is ok");
		is(check_index($node, $index), '0', "$what: $index is whole");
	}
	is(found(), sql('SELECT count(*) FROM t'), "$what: all rows are found");
	like(outcome("INSERT INTO t SELECT * FROM t WHERE n = 5"), qr/duplicate key value/, "$what: duplicates are refused");
}

sql(q{
	CREATE COLLATION tt (provider = libc, locale = 'tt');
	CREATE TABLE t (u uuid, v text COLLATE tt, n int, amount numeric);
	INSERT INTO t SELECT md5((i / 11)::text)::uuid, i::text, i, i / 7.0 FROM generate_series(1, 121) i;
	CREATE UNIQUE INDEX t_u_v ON t USING sherman (u, v);
	CREATE INDEX plain ON t USING sherman (v);
	CREATE INDEX numbers ON t USING sherman (n, amount);
});
check_both('at first');

for my $to ('backward', 'codepoints')
{
	# While the server is down.
	$node->stop;
	order($to);
	$node->start;
	for my $index ('t_u_v', 'plain')
	{
		is(state_of($node, $index), 'broken', "$to: $index is broken");
		like(sql("SELECT reason FROM sherman_stat_indexes WHERE indexrelid = '$index'::regclass"), qr/the order of a collation is another one/, 'and the view says why');
	}
	is(state_of($node, 'numbers'), 'ok', 'an index without such columns is not');
	is(found(), '121', 'all rows are found');
	ok(!uses_index($node, 'plain', "SELECT * FROM t WHERE v = '5'"), 'the planner does not use it');
	like(outcome('INSERT INTO t SELECT * FROM t WHERE n = 5'), qr/index "t_u_v" is broken/, 'no duplicate goes in');
	is(sql('SELECT count(*) FROM t'), '121', 'no row more');
	sql('REINDEX INDEX t_u_v; REINDEX INDEX plain');
	check_both("$to, rebuilt");
}

# Back and forth while nothing was changed costs nothing.
$node->stop;
order('backward');
$node->start;
is(state_of($node, 't_u_v'), 'broken', 'another order');
$node->stop;
order('codepoints');
$node->start;
check_both('the old order again');

# While the server runs: who has the old order goes on, who starts with the other one does not mix with them.
sql('CREATE TABLE loose (v text COLLATE tt); INSERT INTO loose SELECT generate_series(1, 3000)::text; CREATE INDEX loose_v ON loose USING sherman (v)');
my $session = $node->background_psql('postgres', on_error_stop => 0);

sub ask { return $session->query($_[0]); }

is(ask(q{SET client_min_messages = error; SET enable_seqscan = off; SELECT count(*) FROM loose WHERE v = '1000'}), '1', 'a session with the old order');
# It keeps a plan, which no transaction that commits makes invalid.
ask(q{SET plan_cache_mode = force_generic_plan; SET enable_bitmapscan = off; PREPARE kept(text) AS SELECT count(*) FROM loose WHERE v = $1});
like(ask(q{EXPLAIN EXECUTE kept('1000')}), qr/using loose_v/, 'it has a plan by the index');
order('backward');
is(ask(q{EXECUTE kept('2000')}), '1', 'it goes on');
is(state_of($node, 'loose_v'), 'broken', 'for a session with the other order the index is broken');
is(sql(q{SET enable_seqscan = off; SELECT count(*) FROM loose WHERE v = '2000'}), '1', 'which finds its rows without it');
is(ask(q{INSERT INTO loose VALUES ('3001'); SELECT count(*) FROM loose WHERE v = '3001'}), '1', 'the first one changes it');
is(outcome(q{INSERT INTO loose VALUES ('3002')}), 'ok', 'the other one passes it over');
is(ask(q{EXECUTE kept('3002')}), '1', 'of which the first one knows, though it kept its plan');
like(outcome(q{INSERT INTO t SELECT * FROM t WHERE n = 7}), qr/index "t_u_v" is broken/, 'a unique one is not passed over');
is(ask(q{SELECT state FROM sherman_stat_indexes WHERE indexrelid = 'loose_v'::regclass}), 'broken', 'it is broken for all');
# Workers are new processes.
like(ask(q{ALTER TABLE loose SET (parallel_workers = 2); SET min_parallel_table_scan_size = 0; SET maintenance_work_mem = '256MB';
	CREATE INDEX mixed ON loose USING sherman (v); SELECT coalesce(max(state), 'none') FROM sherman_stat_indexes WHERE indexrelid::regclass::text = 'mixed'}), qr/^none$/, 'a build does not mix orders');
$session->quit;
sql('REINDEX INDEX loose_v');
is(check_index($node, 'loose_v'), '0', 'rebuilt, it has all');
order('codepoints');
$node->stop;
$node->start;

# A locale that the system has lost.
$node->stop;
rename("$locales/tt", "$locales/aside") or die $!;
$node->start;
is(sql('SELECT count(*) FROM t WHERE n = 5'), '1', 'without the locale the table is there');
is(state_of($node, 't_u_v'), 'broken', 'the index is broken');
$node->stop;
rename("$locales/aside", "$locales/tt") or die $!;
$node->start;
check_both('with it again');

# Another version of the library's collations, without another order of bytes: a warning, as core's.
sql('CREATE TABLE words (w text COLLATE "tt")');
order('backward');
$node->stop;
$node->start;
sql(q{INSERT INTO words SELECT generate_series(1, 500)::text; CREATE INDEX words_w ON words USING sherman (w)});
append_to_file("$work/version.c", "const char *gnu_get_libc_version(void) { return \"99.1\"; }\n");
system_or_bail($ENV{CC} // 'cc', '-shared', '-fPIC', "$work/version.c", '-o', "$work/version.so");
$node->stop;
{
	local $ENV{LD_PRELOAD} = "$work/version.so";
	$node->start;
}
{
	my ($status, $answer, $said) = $node->psql('postgres', q{SET enable_seqscan = off; SELECT count(*) FROM words WHERE w = '5'; SELECT count(*) FROM words WHERE w = '6'});

	is($answer, "1\n1", 'another version: the index is used');
	my @warnings = $said =~ /WARNING:  index "words_w" was built with another version of collation "tt"/g;
	is(scalar @warnings, 1, 'with one warning a session');
	like($said, qr/provides version 99\.1/, 'that tells the version');
	sql('REINDEX INDEX words_w');
	($status, $answer, $said) = $node->psql('postgres', q{SET enable_seqscan = off; SELECT count(*) FROM words WHERE w = '5'});
	unlike($said, qr/another version/, 'none when it was rebuilt');
}
is(sql(q{SELECT state FROM sherman_stat_indexes WHERE indexrelid = 'words_w'::regclass}), 'ok', 'it is ok');
$node->stop;

done_testing();

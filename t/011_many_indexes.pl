
# More indexes than sherman.max_indexes: sessions that use them one after another, and idle ones, do not fill the table.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('main', conf => "sherman.max_indexes = 16\n");
my ($status, $stdout, $stderr);

$node->safe_psql('postgres', join '', map
	{
		"CREATE TABLE t$_ (a int); CREATE INDEX t${_}_a ON t$_ USING sherman (a); INSERT INTO t$_ VALUES ($_);\n"
	} 1 .. 40);
is(trees($node), 40, 'one session makes more indexes than may be in use at once');

# A session that used many of them, and now is idle.
my $idle = $node->background_psql('postgres');
$idle->query_safe("SELECT count(*) FROM t$_ WHERE a > 0") for 1 .. 16;

my $selects = join '', map { "SELECT count(*) FROM t$_ WHERE a > 0;\n" } 1 .. 40;
is($node->safe_psql('postgres', "SET enable_seqscan = off;\n$selects"), join("\n", (1) x 40),
	'another session reads all of them');

# In one transaction they are in use at once.
$status = $node->psql('postgres', "\\set VERBOSITY verbose\nBEGIN;\n"
	  . join('', map { "INSERT INTO t$_ VALUES (0);\n" } 1 .. 40), stdout => \$stdout, stderr => \$stderr,
	on_error_stop => 1);
like($stderr, qr/ERROR:  53200: .*HINT: .*sherman\.max_indexes/s, 'too many at once: an error that names the setting');
is($node->safe_psql('postgres', join '', map { "INSERT INTO t$_ VALUES (0);\n" } 1 .. 40), '',
	'the table of indexes is free again');
is(check_index($node, "t$_"."_a"), 0, "index $_ is whole") for (1, 20, 40);
$idle->quit;
$node->stop;

done_testing();

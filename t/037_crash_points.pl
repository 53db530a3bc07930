
# Ends at every step between two operations at a memory node, or between one and WAL, of everything that changes an index: behind
# each the index finds what its table has.  With SHERMAN_CRASH_POINTS=all no step is left out, with "each" each has an end of its own
# (script/test long crash).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use CrashPoints;
use Sherman;
use Test::More;

my $points = CrashPoints->new;
my $node = $points->{node};

# Ten rows and an index; keys that come in no order.
my $table = q{CREATE TABLE T (k int, w text); INSERT INTO T SELECT g * 10, 'first' FROM generate_series(1, 10) g};
my $base = "$table; CREATE INDEX T_k ON T USING sherman (k)";
my $one = q{INSERT INTO T VALUES (G * 7919 % 10007, 'more')};
my $root_split = $points->insert_with_most_steps($base, $one, 20, 80);
my $leaf_split = $points->insert_with_most_steps($base, $one, 81, 160);

sub nth
{
	my ($n) = @_;

	return $one =~ s/\bG\b/$n/r;
}

sub filled
{
	my ($n) = @_;

	return "$base; INSERT INTO T SELECT g * 7919 % 10007, 'more' FROM generate_series(1, $n - 1) g";
}

# The server's own processes.
$points->ends_of_process(
	name => 'attach behind a crash',
	process => 'sherman launcher',
	prepare => $base,
	act => sub { $_[0]->stop('immediate'); $points->start_to_crash; },
	done => 'attached to memory node',
	every => 5);
$points->ends_of_process(
	name => 'collector',
	process => 'sherman collector',
	prepare => $base,
	act => sub { $_[0]->reload; eval { $_[0]->psql('postgres', 'DROP INDEX p0_k') }; },
	done => 'sherman collector: freed tree',
	every => 5);
$points->enumerate(name => 'insert', prepare => $base, act => q{INSERT INTO T VALUES (55, 'new')}, cancel => 1);
# Sessions go on when their postmaster is gone, and soon are gone, too: no server could be started beside them.
$points->set('sherman.operation_timeout', '1h');
$points->enumerate(name => 'insert of orphans', prepare => $base, act => q{INSERT INTO T VALUES (55, 'new')}, orphans => 1);
$points->set('sherman.operation_timeout', '10s');
$points->enumerate(name => 'split of the root', prepare => filled($root_split), act => nth($root_split), cancel => 1);
$points->enumerate(
	name => 'split of a leaf',
	prepare => filled($leaf_split),
	act => nth($leaf_split),
	meanwhile => \&CrashPoints::work_beside,
	cancel => 1);
$points->enumerate(
	name => 'room in a full leaf',
	prepare => filled($root_split) . '; DELETE FROM T WHERE k % 2 = 0',
	then => 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(w) FROM T WHERE k >= 0',
	act => nth($root_split),
	met => [ 'before flush of WAL', 'after flush of WAL', 'after call UPDATE' ],
	cancel => 1);
$points->enumerate(
	name => 'entries of one statement',
	prepare => $base,
	act => q{INSERT INTO T SELECT g * 7919 % 10007, 'more' FROM generate_series(1, 90) g},
	most => 40,
	cancel => 1);
$points->enumerate(
	name => 'entries of one statement, behind which its transaction prepares',
	prepare => "$base; CREATE INDEX T_w ON T USING sherman (w)",
	act => q{BEGIN; INSERT INTO T SELECT g * 7919 % 10007, 'more' || g FROM generate_series(1, 5) g; UPDATE T SET k = k + 1 WHERE k < 60; PREPARE TRANSACTION 'T'},
	met => [ 'before prepare', 'after prepare' ]);
$points->enumerate(
	name => 'overflow key',
	prepare => q{CREATE TABLE T (k text); CREATE INDEX T_k ON T USING sherman (k); INSERT INTO T SELECT repeat(md5(g::text), 8) FROM generate_series(1, 9) g},
	act => q{INSERT INTO T VALUES (repeat('new', 90))},
	cancel => 1);
$points->enumerate(
	name => 'entries of one statement, of a unique index',
	prepare => "$table; CREATE UNIQUE INDEX T_k ON T USING sherman (k)",
	act => q{INSERT INTO T SELECT g * 7919 % 10007, 'more' FROM generate_series(1, 90) g},
	most => 40,
	cancel => 1);
$points->enumerate(
	name => 'entries of one statement with ON CONFLICT, announced',
	prepare => "$table; CREATE UNIQUE INDEX T_k ON T USING sherman (k)",
	act => q{INSERT INTO T SELECT g * 7919 % 10007, 'more' FROM generate_series(1, 90) g ON CONFLICT DO NOTHING},
	most => 40,
	cancel => 1);
$points->enumerate(
	name => 'unique insert',
	prepare => "$table; CREATE UNIQUE INDEX T_k ON T USING sherman (k); DELETE FROM T WHERE k = 50",
	act => q{INSERT INTO T VALUES (50, 'new')},
	cancel => 1);
$points->enumerate(
	name => 'subtransactions',
	prepare => $base,
	act => q{BEGIN; SAVEPOINT a; INSERT INTO T VALUES (51, 'back'); ROLLBACK TO a; UPDATE T SET k = k + 1 WHERE k = 20; COMMIT});
$points->enumerate(
	name => 'two-phase commit',
	prepare => $base,
	act => q{BEGIN; INSERT INTO T VALUES (51, 'new'); DELETE FROM T WHERE k = 20; PREPARE TRANSACTION 'T'},
	met => [ 'before prepare', 'after prepare' ]);
$points->enumerate(name => 'first change of an epoch', prepare => $base, restart => 'fast', act => q{INSERT INTO T VALUES (55, 'new')}, met => ['after call UPDATE']);
$points->enumerate(
	name => 'lazily made tree',
	prepare => $base =~ s/CREATE TABLE/CREATE UNLOGGED TABLE/r,
	restart => 'immediate',
	act => q{INSERT INTO T VALUES (55, 'new')},
	met => [ 'after call CREATE', 'before metapage', 'after metapage' ]);
$points->enumerate(name => 'CREATE INDEX', prepare => $table, act => 'CREATE INDEX T_k ON T USING sherman (k)', met => [ 'before call CREATE', 'after metapage', 'before commit' ], cancel => 1);
$points->enumerate(name => 'CREATE INDEX, unlogged', prepare => $table =~ s/CREATE TABLE/CREATE UNLOGGED TABLE/r, act => 'CREATE INDEX T_k ON T USING sherman (k)', met => ['after init fork']);
$points->enumerate(name => 'REINDEX', prepare => $base, act => 'REINDEX INDEX T_k', cancel => 1);
$points->enumerate(name => 'TRUNCATE', prepare => $base, act => 'TRUNCATE T');
$points->enumerate(name => 'DROP INDEX', prepare => $base, act => 'DROP INDEX T_k');
$points->enumerate(
	name => 'VACUUM',
	prepare => filled(30) . '; DELETE FROM T WHERE k % 2 = 0',
	act => 'VACUUM T',
	met => [ 'before flush of WAL', 'after flush of WAL' ],
	cancel => 1);
$points->enumerate(
	name => 'VACUUM that merges',
	prepare => "$base; INSERT INTO T SELECT g, 'more' FROM generate_series(1, 300) g; DELETE FROM T WHERE k BETWEEN 40 AND 260",
	act => 'VACUUM T',
	most => 40,
	cancel => 1);
$points->enumerate(
	name => 'healing',
	prepare => $base,
	lost => q{INSERT INTO T SELECT g, 'lost' FROM generate_series(1, 9) g},
	act => q{SELECT sherman_heal('T_k')},
	met => [ 'before flush of WAL', 'after flush of WAL', 'before call UPDATE', 'after call UPDATE' ]);
$points->enumerate(
	name => 'index that breaks',
	prepare => $base,
	conf => "sherman.heal = off\n",
	restart => 'immediate',
	state => 'broken',
	act => q{INSERT INTO T VALUES (55, 'new')},
	# Its metapage says so before that, if the collector is the first to find out.
	met => [ 'before flush of WAL', 'after flush of WAL' ]);
$node->append_conf('postgresql.conf', "sherman.heal = on\n");
$node->restart;

ok(wait_until_used($node, $node->safe_psql('postgres', 'SELECT coalesce(sum(total_bytes), 0) FROM sherman_stat_indexes')), 'the memory of what was given up comes back');
note("$points->{points} points");
is($points->{wrong}, 0, 'nothing is wrong');
$node->stop;
done_testing();

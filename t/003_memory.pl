
# The memory itself, without snapshots: full, removed, replaced by an older copy, and a copy of the data directory.

use strict;
use warnings;

use File::Copy;
use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('main', memory => 8, conf => "sherman.embedded_snapshot = off\n");
my ($stdout, $stderr, $status);

# Runs SQL that must fail; returns the error.
sub fails
{
	my ($sql, $what) = @_;

	$status = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql", stdout => \$stdout, stderr => \$stderr);
	isnt($status, 0, $what);
	return $stderr;
}

# Full: an error with a hint, and nothing lost or half done.
$node->safe_psql('postgres', 'CREATE TABLE big (id int, pad text); CREATE INDEX big_pad ON big USING sherman (pad)');
my $rounds = 0;
while ($rounds < 200)
{
	$status = $node->psql('postgres',
		"\\set VERBOSITY verbose\nINSERT INTO big SELECT g, repeat(md5(g::text), 6) FROM generate_series(1, 2000) g",
		stdout => \$stdout, stderr => \$stderr);
	last if $status != 0;
	$rounds++;
}
like($stderr, qr/ERROR:  53200: .*HINT:/s, 'a full memory node gives 53200 and a hint');
cmp_ok($rounds, '>', 0, 'it was not full at once');
is($node->safe_psql('postgres', 'SELECT count(*) FROM big'), 2000 * $rounds, 'the table has the rows of what ended well');
is(check_index($node, 'big_pad'), '0', 'the index is whole');
$node->safe_psql('postgres', 'VACUUM big');
is(check_index($node, 'big_pad'), '0', 'also after VACUUM');
like(fails('CREATE INDEX big_id ON big USING sherman (id, pad)', 'no room for another index'), qr/ERROR:  53200/, 'same error');
$node->safe_psql('postgres', 'SELECT sherman_collect()');
is(trees($node), '1', 'nothing is left of the failed build');
$node->safe_psql('postgres', 'DROP INDEX big_pad');
ok(wait_until_used($node, 0), 'the memory comes back');
$node->safe_psql('postgres', 'TRUNCATE big; CREATE INDEX big_id ON big USING sherman (id)');
$node->safe_psql('postgres', 'INSERT INTO big SELECT g FROM generate_series(1, 1000) g');
is(check_index($node, 'big_id'), '0', 'and can be used again');

# Removed while the server is down.
my ($memory) = memory_files($node);
$node->stop;
unlink $memory or die "could not remove $memory";
$node->start;
is(state_of($node, 'big_id'), 'broken', 'without its memory the index is broken');
like($node->safe_psql('postgres', q{SELECT reason FROM sherman_stat_indexes WHERE indexrelid = 'big_id'::regclass}),
	qr/memory/, 'the view says why');
$node->safe_psql('postgres', 'INSERT INTO big VALUES (5000)');
$node->safe_psql('postgres', 'REINDEX INDEX big_id');
is(check_index($node, 'big_id'), '0', 'REINDEX heals it');

# An older copy is put back: it was closed clean, and yet it is not what the tables belong to.
$node->stop;
($memory) = memory_files($node);
# With its holes: the file is far longer than the memory.
system('cp', '--sparse=always', $memory, "$memory.copy") == 0 or die "could not copy $memory";
$node->start;
is(state_of($node, 'big_id'), 'ok', 'good after a clean restart');
$node->safe_psql('postgres', 'INSERT INTO big SELECT generate_series(6000, 6100)');
$node->stop;
chmod 0600, "$memory.copy";
move("$memory.copy", $memory) or die "could not move $memory.copy";
$node->start;
is(state_of($node, 'big_id'), 'broken', 'an older copy of the memory is not believed');
$node->safe_psql('postgres', 'REINDEX INDEX big_id');
is(check_index($node, 'big_id'), '0', 'REINDEX heals it');

# A copy of the data directory, state file included, does not touch the original's memory.
$node->stop;
my $copy = PostgreSQL::Test::Cluster->new('copy');
$node->backup_fs_cold('cold');
$copy->init_from_backup($node, 'cold');
$copy->append_conf('postgresql.conf', "sherman.embedded_directory = '" . memory_directory($copy) . "'\n");
copy($node->data_dir . '/pg_dynshmem/sherman.state', $copy->data_dir . '/pg_dynshmem/sherman.state')
  or die 'could not copy the state file';
$copy->start;
is(state_of($copy, 'big_id'), 'broken', 'the index is broken in the copy');
$copy->safe_psql('postgres', 'INSERT INTO big VALUES (7000); DELETE FROM big WHERE id < 10; VACUUM big');
$copy->append_conf('postgresql.conf', "sherman.embedded_directory = '" . memory_directory($node) . "'\n");
$copy->stop;
copy($node->data_dir . '/pg_dynshmem/sherman.state', $copy->data_dir . '/pg_dynshmem/sherman.state')
  or die 'could not copy the state file';
$copy->start;
is(state_of($copy, 'big_id'), 'broken', 'also with the original\'s directory');
$copy->stop;
$node->start;
is(state_of($node, 'big_id'), 'ok', 'and good in the original');
is(check_index($node, 'big_id'), '0', 'and whole');

# No memory node at all: the table can be read; changes are refused, or break the index if so wished.
$node->safe_psql('postgres', 'CREATE TABLE small (id int, EXCLUDE USING sherman (id WITH =)); INSERT INTO small VALUES (1)');
$node->append_conf('postgresql.conf', "sherman.embedded_memory = 0\n");
$node->restart;
is(state_of($node, 'big_id'), 'unreachable', 'without a memory node the index is unreachable');
is($node->safe_psql('postgres', 'SELECT count(*) FROM big WHERE id = 6000'), '1', 'queries go on without it');
like(fails('INSERT INTO big VALUES (1)', 'an insert is refused'), qr/ERROR:  08006/, 'with 08006');
like(fails('CREATE INDEX another ON big USING sherman (id)', 'a build too'), qr/ERROR:  08006/, 'with 08006');
$node->append_conf('postgresql.conf', "sherman.embedded_memory = 16MB\n");
$node->restart;
is(state_of($node, 'big_id'), 'ok', 'nothing was skipped: the index is good again');
is(check_index($node, 'big_id'), '0', 'and whole');
$node->append_conf('postgresql.conf', "sherman.embedded_memory = 0\nsherman.on_unavailable = break\n");
$node->restart;
$node->safe_psql('postgres', 'INSERT INTO big VALUES (8000)');
is(state_of($node, 'big_id'), 'broken', 'on_unavailable = break breaks it and goes on');
like(fails('INSERT INTO small VALUES (2)', 'but not with a constraint'), qr/ERROR:  08006/, 'with 08006');
$node->append_conf('postgresql.conf', "sherman.embedded_memory = 16MB\n");
$node->restart;
is(state_of($node, 'big_id'), 'broken', 'broken is final');
is(state_of($node, 'small_id_excl'), 'ok', 'the constraint was not touched');
$node->safe_psql('postgres', 'REINDEX INDEX big_id; INSERT INTO small VALUES (2)');
is(check_index($node, 'big_id'), '0', 'REINDEX heals it');

# The launcher finds no place: the wait for it ends, and nothing else depends on it.
$node->append_conf('postgresql.conf', "max_worker_processes = 0\nsherman.attach_timeout = 2s\nsherman.on_unavailable = error\n");
$node->restart;
is($node->safe_psql('postgres', 'SELECT count(*) FROM big WHERE id = 6000'), '1', 'queries wait, and go on without the index');
like(fails('INSERT INTO big VALUES (1)', 'inserts are refused'), qr/ERROR:  08006/, 'with 08006');
$node->append_conf('postgresql.conf', "max_worker_processes = 8\nsherman.attach_timeout = 60s\n");
$node->restart;
is(state_of($node, 'big_id'), 'ok', 'the index is good when the launcher has its place');

$node->stop;
done_testing();

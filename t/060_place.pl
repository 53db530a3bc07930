
# Where a data directory lies is no part of what it is: on another device, moved, its indexes are what they were.  A copy of it is found
# out all the same, whether the original is there still, has used the memory since, or comes back behind the copy.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Msd;
use PostgreSQL::Test::Utils;
use Rows;
use Sherman;
use Test::More;


# The log from here on.
sub log_since
{
	my ($node, $offset) = @_;

	return slurp_file($node->logfile, $offset);
}

sub is_broken
{
	my ($node, $when, $expected) = @_;

	# A copy that finds out what it is attaches at the next try.
	$node->poll_query_until('postgres', q{SELECT bool_and(state = 'attached') FROM sherman_stat_memory_nodes}) or die 'not attached';
	is(state_of($node, 't_id'), 'broken', "$when: the index is broken");
	is($node->safe_psql('postgres', "SELECT count(*) FROM t WHERE id BETWEEN 1 AND 1000000"), $expected, 'the answer is right');
	return;
}

# put(from, to): moves a directory, to another device perhaps: file by file, then.
sub put
{
	my ($from, $to) = @_;

	system('mv', $from, $to) == 0 or die "could not move $from";
	return;
}

my $node = new_cluster('embedded', memory => 16);
my $data = $node->data_dir;
my $elsewhere = memory_directory($node) . '/data';

make_table($node, 3000);

# ---- another device: with the memory, and by the snapshot ----
$node->stop;
put($data, $elsewhere);
symlink $elsewhere, $data or die "symlink: $!";
SKIP:
{
	skip 'there is one file system only', 1 if (stat($elsewhere))[0] == (stat($node->basedir))[0];
	isnt((stat($elsewhere))[0], (stat($node->basedir))[0], 'the data directory is on another device');
}
my $offset = -s $node->logfile;
$node->start;
is_whole($node, 'on another device');
like(log_since($node, $offset), qr/LOG:  the data directory was moved from/, 'the log says that it was moved');
insert($node, 100);
$node->stop;
unlink $data;
put($elsewhere, $data);
lose_memory($node);
$node->start;
is_whole($node, 'moved again, behind a restart of the machine');
insert($node, 100);

# ---- a copy, of which the original is there ----
$node->stop;
my $copy = PostgreSQL::Test::Cluster->new('copy');
mkdir $copy->basedir;
system('cp', '-a', $data, $copy->data_dir) == 0 or die 'could not copy';
$copy->append_conf('postgresql.conf', 'port = ' . $copy->port . "\nunix_socket_directories = '" . $copy->host . "'\n");
$copy->start;
is_broken($copy, 'a copy, while the original is there', row_count());
like(slurp_file($copy->logfile), qr/WARNING:  this data directory is a copy of "\Q$data\E"/, 'the log says why');
$copy->stop;
$node->start;
is_whole($node, 'the original, behind its copy');

# ---- a copy that the original gives way to, and then comes back ----
$node->stop;
system('rm', '-rf', $copy->data_dir);
system('cp', '-a', $data, $copy->data_dir) == 0 or die 'could not copy';
$copy->append_conf('postgresql.conf', 'port = ' . $copy->port . "\nunix_socket_directories = '" . $copy->host . "'\n");

# The original goes on by its snapshot, and its memory goes with a restart of the machine.
lose_memory($node);
$node->start;
insert($node, 100);
$node->stop;
my $expected = row_count();
lose_memory($node);
put($data, $elsewhere);

# So does the copy, in as many epochs, and leaves its memory.
$copy->start;
is(state_of($copy, 't_id'), 'ok', 'in place of the original, by the snapshot of that moment');
$copy->safe_psql('postgres', 'CREATE TABLE u (id int); CREATE INDEX u_id ON u USING sherman (id); INSERT INTO u VALUES (1)');
$copy->stop;
put($copy->data_dir, memory_directory($node) . '/copy');
put($elsewhere, $data);
$node->start;
is_broken($node, 'the memory that a copy made in as many epochs', $expected);
$node->safe_psql('postgres', 'REINDEX TABLE t');
is_whole($node, 'behind REINDEX');
$node->stop;

# ---- memory nodes of their own: a copy whose place tells nothing, on another machine perhaps ----
my $msd = Msd->new('a', size => 64);
my $owner = new_cluster('owner', allows_streaming => 1, conf => "sherman.memory_nodes = '" . $msd->address . "'\nsherman.embedded_memory = 0\n" . Msd::configuration());

$data = $owner->data_dir;
make_table($owner, 1000);
$owner->stop;
my $other = PostgreSQL::Test::Cluster->new('other');
mkdir $other->basedir;
system('cp', '-a', $data, $other->data_dir) == 0 or die 'could not copy';
$other->append_conf('postgresql.conf', 'port = ' . $other->port . "\nunix_socket_directories = '" . $other->host . "'\n");
put($data, $elsewhere);
symlink $elsewhere, $data or die "symlink: $!";
$owner->start;
is_whole($owner, 'moved, at a memory node of its own');
insert($owner, 10);

# The path that the copy knows leads nowhere while it starts, as on another machine.
unlink $data;
$other->start;
is_broken($other, 'a copy elsewhere', 1000);
like(slurp_file($other->logfile), qr/WARNING:  this data directory is a copy: its sherman indexes are broken/, 'the log says why');
$other->safe_psql('postgres', 'REINDEX TABLE t; INSERT INTO t VALUES (2000)');
is(check_index($other, 't_id'), '0', 'it has indexes of its own behind REINDEX');
symlink $elsewhere, $data or die "symlink: $!";
insert($owner, 10);
is_whole($owner, 'the original was not disturbed');
unlike(slurp_file($owner->logfile), qr/another server with this one's identity/, 'nor fenced');
$other->stop;

# ---- a backup by hand of a server that runs, with its state file: it has attached to nothing since, so its memory nodes would tell nothing ----
foreach my $made ('standby', 'restored')
{
	my $server = PostgreSQL::Test::Cluster->new($made);
	my $directory = $server->data_dir;

	mkdir $server->basedir;
	# Files may come and go meanwhile.
	my ($label) = $owner->safe_psql('postgres', "SELECT pg_backup_start('by hand', true);\n\\! cp -a $elsewhere $directory\nSELECT labelfile FROM pg_backup_stop(false)") =~ /(START WAL.*)/s;
	system('cp', '-a', "$elsewhere/pg_wal", $directory) == 0 or die 'could not copy WAL';
	unlink "$directory/postmaster.pid";
	append_to_file("$directory/backup_label", "$label\n");
	$server->append_conf('postgresql.conf', 'port = ' . $server->port . "\nunix_socket_directories = '" . $server->host . "'\n");
	$server->enable_streaming($owner) if $made eq 'standby';
	my $session = $owner->background_psql('postgres', on_error_stop => 0);
	$session->query_safe('BEGIN; INSERT INTO t VALUES (0); ROLLBACK');
	rename $elsewhere, "$elsewhere.aside" or die "rename: $!";
	$server->start;
	rename "$elsewhere.aside", $elsewhere or die "rename: $!";
	$server->promote if $made eq 'standby';
	is_broken($server, "$made elsewhere", row_count());
	like(slurp_file($server->logfile), qr/LOG:  the state of sherman indexes came with a copy of "\Q$elsewhere\E"/, 'the log says why');
	$session->query_safe('BEGIN; INSERT INTO t VALUES (0); ROLLBACK');
	$session->quit;
	insert($owner, 10);
	is_whole($owner, "the original beside $made");
	unlike(slurp_file($owner->logfile), qr/another server with this one's identity/, 'it was not fenced');
	$server->stop;
}
$owner->stop;
$msd->stop;
done_testing();

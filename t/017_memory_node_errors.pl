
# What a session is told when a memory node across the network cannot be used: why, and what to do about it.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Msd;
use OtherVersion;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my ($stdout, $stderr, $status);
my $key = Msd::random_key();
my $file = "$PostgreSQL::Test::Utils::tmp_check/key_$$";
my $known = "$PostgreSQL::Test::Utils::tmp_check/known_$$";

END { unlink $file, $known }

Msd::write_keys($known, main => $key);
Msd::write_keys($file, main => Msd::random_key());

my $msd = Msd->new('guarded', transport => 'tls', keys => $known, flags => [ '--tenant-quota', 'main 4M' ]);
my $node = new_cluster('main',
	conf => "sherman.memory_nodes = '" . $msd->address . "'\nsherman.key_file = '$file'\nsherman.attach_timeout = 1s\n");

sub wait_for_reason
{
	my $reason = shift;

	return $node->poll_query_until('postgres',
		"SELECT bool_or(state = 'unreachable' AND reason ~ '$reason') FROM sherman_stat_memory_nodes");
}

# An index cannot be built now: the error, with its code.
sub build_fails
{
	my $what = shift;

	$status = $node->psql('postgres', "\\set VERBOSITY verbose\nCREATE INDEX ON t USING sherman (id, pad)", stdout => \$stdout, stderr => \$stderr);
	isnt($status, 0, $what);
	return $stderr;
}

sub attached
{
	return $node->poll_query_until('postgres', "SELECT every(state = 'attached') FROM sherman_stat_memory_nodes");
}

sub use_node
{
	$node->adjust_conf('postgresql.conf', 'sherman.memory_nodes', "'$_[0]'");
	$node->reload;
	return;
}

sub use_key
{
	$node->adjust_conf('postgresql.conf', 'sherman.key_file', "'$_[0]'");
	$node->reload;
	return;
}

$node->safe_psql('postgres', "CREATE TABLE t AS SELECT g AS id, md5(g::text) AS pad FROM generate_series(1, 1000) g");

# Keys: wrong, readable by others, none, and at last the right one; the server looks again by itself.
ok(wait_for_reason('denied'), 'with a wrong key the memory node is not attached');
like(build_fails('nothing can be built'), qr/ERROR:  28000: .*HINT: .*sherman\.key_file/s, '28000, and a hint at the key file');
like($stderr, qr/DETAIL: .*does not know our key/s, 'and says so');
use_key('');
ok(wait_for_reason('only clients with a key'), 'nor with none');
like(build_fails('nothing can be built'), qr/ERROR:  28000: .*DETAIL: .*only clients with a key.*HINT: .*sherman\.key_file/s, '28000, and says so');
use_key($file);

# A key that is not wanted; a memory node of another version.
my $open = Msd->new('open', transport => 'tcp', size => 1);
use_node($open->address);
ok(wait_for_reason('it has no keys'), 'a memory node without keys does not take one');
like(build_fails('nothing can be built'), qr/ERROR:  28000: .*DETAIL: .*no keys.*HINT: .*sherman\.key_file/s, '28000, and a hint at the key file');
$open->stop;
my $other = OtherVersion->new;
use_key('');
use_node($other->address);
ok(wait_for_reason('version 99'), 'nor is one of another version attached');
like(build_fails('nothing can be built'), qr/ERROR:  08P01: .*DETAIL: .*speaks version 99.*HINT: .*same version/s, '08P01, and says so');
$other->stop;
use_node($msd->address);
use_key($file);

Msd::write_keys($file, main => $key);
ok(attached(), 'with the right key in the file it is attached');
$node->safe_psql('postgres', 'CREATE INDEX t_id ON t USING sherman (id)');
is(check_index($node, 't_id'), '0', 'an index is built');

# A key that is changed under the server: new sessions are not let in, though the launcher's connection stays. The views say so.
Msd::write_keys($file, main => Msd::random_key());
isnt($node->psql('postgres', 'SET enable_seqscan = off; SELECT * FROM t WHERE id = 5', stderr => \$stderr), 0, 'with another key queries fail');
is($node->safe_psql('postgres', q{SELECT state, reason ~ 'does not let this session in: permission denied: .*does not know our key' FROM sherman_stat_memory_nodes}), 'unreachable|t',
	'the view says of the memory node why');
is($node->safe_psql('postgres', q{SELECT state, reason ~ '"tcp:.*does not let this session in: permission denied: .*does not know our key' FROM sherman_stat_indexes}), 'unreachable|t',
	'and of the index');
is($node->safe_psql('postgres', q{CREATE ROLE nobody; SET ROLE nobody; SELECT state, reason FROM sherman_stat_indexes}),
	'unreachable|memory node 0 does not let this session in', 'to others without address and key');
Msd::write_keys($file, main => $key);
is($node->safe_psql('postgres', q{SELECT state, reason FROM sherman_stat_indexes}), 'ok|', 'with the key all is well');
chmod 0644, $file;
$node->restart;
ok(wait_for_reason('denied'), 'a key file that others can read is not used');
is(state_of($node, 't_id'), 'unreachable', 'the index is unreachable');
$node->psql('postgres', 'SELECT sherman_rebuild_all()', stderr => \$stderr);
like($stderr, qr/WARNING:  no memory node is attached: indexes are rebuilt when one is.*DETAIL: .*denied.*HINT: .*sherman_stat_memory_nodes/s,
	'who wants indexes rebuilt is told that none can be now');
unlink $file;
ok(wait_for_reason('key'), 'nor one that is not there');
Msd::write_keys($file, main => $key);
ok(attached(), 'it is attached again');

# The quota.
$status = $node->psql('postgres',
	"\\set VERBOSITY verbose\nCREATE TABLE big AS SELECT g AS id, repeat(md5(g::text), 8) AS pad FROM generate_series(1, 30000) g; CREATE INDEX ON big USING sherman (pad)",
	stdout => \$stdout, stderr => \$stderr);
isnt($status, 0, 'a tenant cannot have more than its quota');
like($stderr, qr/ERROR:  53200: .*quota.*HINT: .*tenant-quota/s, '53200, and a hint at the quota');
is(check_index($node, 't_id'), '0', 'its index is whole');
# What the failed build has taken is given back, or there is no room for others.
$node->safe_psql('postgres', 'SELECT sherman_collect()');

# Nobody there; no such name; another protocol.
my $address = $msd->address;
my $bare = $address =~ s/^\w+:(?=.*:)//r;
$node->safe_psql('postgres', 'CREATE ROLE anybody LOGIN; CREATE ROLE watcher LOGIN IN ROLE pg_monitor; GRANT SELECT, INSERT ON t TO PUBLIC;'
	. 'CREATE TABLE own (id int); ALTER TABLE own OWNER TO anybody; GRANT anybody TO watcher; GRANT CREATE ON SCHEMA public TO PUBLIC');
$msd->stop;
ok(wait_for_reason('unreachable'), 'nobody listens');
like(build_fails('nothing can be built'), qr/ERROR:  08006: .*DETAIL: .*refused.*HINT: /s, '08006, and says so');
use_node('tcp:no-such-host.invalid:7400');
ok(wait_for_reason('no address'), 'a name that means nothing');
like(build_fails('nothing can be built'), qr/ERROR:  08006: .*DETAIL: .*no-such-host/s, '08006, and says so');

# Where memory nodes are is for pg_monitor and the log.
sub told
{
	my ($role, $query) = @_;
	my $offset = -s $node->logfile;

	$status = $node->psql('postgres', $query, extra_params => [ '-U', $role ], stdout => \$stdout, stderr => \$stderr);
	isnt($status, 0, "$role: \"$query\" fails");
	like(substr(slurp_file($node->logfile), $offset), qr/DETAIL:  .*(no-such-host|\Q$bare\E)/, 'the log has the address');
	return $stderr;
}

for my $query ("INSERT INTO t VALUES (-3, '')", 'CREATE INDEX ON own USING sherman (id)')
{
	unlike(told('anybody', $query), qr/no-such-host|\Q$bare\E/, 'anybody is told none');
	like($stderr, qr/ERROR: .*memory node/, 'but what is wrong');
	like(told('watcher', $query), qr/DETAIL:  .*(no-such-host|\Q$bare\E)/, 'a member of pg_monitor is');
}
$node->safe_psql('postgres', "CREATE FUNCTION put() RETURNS void LANGUAGE sql SECURITY DEFINER AS \$\$INSERT INTO t VALUES (-3, '')\$\$");
unlike(told('anybody', 'SELECT put()'), qr/no-such-host|\Q$bare\E/, 'nor by a function of a superuser');
use_node($address);
$msd->start;
ok(attached(), 'everything is as before');
is(check_index($node, 't_id'), '0', 'the index is whole');

# It does not answer: who meets that waits no longer than the setting says, and what needs no memory node goes on.
$node->safe_psql('postgres', 'CREATE TABLE gone (id int); CREATE INDEX gone_id ON gone USING sherman (id); INSERT INTO gone VALUES (1)');
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query("\\set VERBOSITY verbose");
$session->query("BEGIN; INSERT INTO t VALUES (-1, '')");
kill 'STOP', $msd->{pid};
ok($node->poll_query_until('postgres', "SELECT every(state = 'unreachable') FROM sherman_stat_memory_nodes"), 'it does not answer');
$session->query('COMMIT');
is($session->{stderr}, '', 'a transaction that has used it commits');
$session->query("INSERT INTO t VALUES (-2, '')");
like($session->{stderr}, qr/ERROR:  08006/, 'the next insert fails');
$session->quit;
is($node->safe_psql('postgres', 'SELECT count(*) FROM t WHERE id = -1'), '1', 'its row is there');
$node->safe_psql('postgres', 'DROP TABLE gone');
pass('an index is dropped');
$node->stop;
pass('the server stops');
$node->start;
kill 'CONT', $msd->{pid};
ok(attached(), 'it answers again');
is(state_of($node, 't_id'), 'ok', 'the index is good');
is(check_index($node, 't_id'), '0', 'and whole');
$node->safe_psql('postgres', 'SELECT sherman_collect()');
is(trees($node), '1', 'the other one is gone');
$node->stop;
done_testing();

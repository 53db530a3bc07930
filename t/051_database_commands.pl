
# Commands that need a database for themselves send our workers away from it, if whoever gives them has the right to them, and from
# nowhere else.  What a rebuild that is sent away has begun does not get into a copy of the database.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $node = new_cluster('main');

sub set
{
	my ($setting, $value) = @_;

	$node->append_conf('postgresql.conf', "$setting = $value\n");
	$node->reload;
	return;
}

# Waits until a worker is in the middle of a database's index, and returns its process.
sub worker_in
{
	my ($type) = @_;
	my $query = "SELECT pid FROM pg_stat_activity WHERE backend_type = '$type' AND datname = 'visited' AND wait_event = 'PgSleep'";

	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM ($query) q") or die "no $type";
	return $node->safe_psql('postgres', $query);
}

# Queries of workers have no text: only there the function waits.
$node->safe_psql('postgres', q{CREATE ROLE evil LOGIN; CREATE ROLE maker LOGIN CREATEDB; CREATE ROLE holder LOGIN; CREATE DATABASE visited; CREATE DATABASE held OWNER holder});
$node->safe_psql('visited', q{
	CREATE EXTENSION sherman; CREATE TABLE waiting (k int); INSERT INTO waiting SELECT generate_series(10, 10000, 10);
	CREATE FUNCTION waits(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
	BEGIN IF current_query() IS NULL AND k = 5000 THEN PERFORM pg_sleep(600); END IF; RETURN k; END $$;
	CREATE INDEX waiting_k ON waiting USING sherman (waits(k));
	CHECKPOINT;
	INSERT INTO waiting SELECT generate_series(15, 10005, 10)});
$node->stop('immediate');
start_again($node);
is(state_of($node, 'waiting_k', 'visited'), 'healing', 'an index is in doubt');
set('sherman.autoheal', 'on');
my $healer = worker_in('sherman healer');

# ---- Who has no right, or does something that needs no database alone, or another one.
foreach my $attempt (
	[ 'evil', 'CREATE DATABASE one', 'permission denied to create database' ],
	[ 'evil', 'CREATE DATABASE one TEMPLATE visited', 'permission denied to create database' ],
	[ 'evil', 'DROP DATABASE IF EXISTS nosuch', 'does not exist, skipping' ],
	[ 'evil', 'DROP DATABASE visited', 'must be owner of database visited' ],
	[ 'evil', 'DROP DATABASE visited WITH (FORCE)', 'must be owner of database visited' ],
	[ 'evil', 'ALTER DATABASE visited RENAME TO other', 'must be owner of database visited' ],
	[ 'evil', 'ALTER DATABASE visited SET TABLESPACE pg_default', 'must be owner of database visited' ],
	[ 'evil', 'ALTER DATABASE visited CONNECTION LIMIT 7', 'must be owner of database visited' ],
	[ 'maker', 'CREATE DATABASE one TEMPLATE visited', 'permission denied to copy database' ],
	[ 'maker', 'DROP DATABASE visited', 'must be owner of database visited' ],
	[ 'maker', 'CREATE DATABASE two', '' ],
	[ 'maker', 'CREATE DATABASE two TEMPLATE visited', 'permission denied|already exists' ],
	[ 'maker', 'ALTER DATABASE two RENAME TO three', '' ],
	[ 'holder', 'ALTER DATABASE held RENAME TO kept', 'permission denied to rename database' ],
	[ 'holder', 'ALTER DATABASE held SET TABLESPACE pg_default', 'permission denied for tablespace' ],
	[ 'holder', 'DROP DATABASE held', '' ],
	[ 'postgres', 'ALTER DATABASE visited CONNECTION LIMIT 7', '' ],
	[ 'postgres', "BEGIN;\nDROP DATABASE visited", 'cannot run inside a transaction block' ],
	[ 'postgres', 'CREATE DATABASE three TEMPLATE visited', 'already exists' ],
	[ 'postgres', 'ALTER DATABASE visited RENAME TO three', 'already exists' ],
	[ 'postgres', 'ALTER DATABASE visited SET TABLESPACE nosuch', 'does not exist' ])
{
	my ($role, $command, $error) = @$attempt;
	my $errors;

	$node->psql('postgres', "SET ROLE $role;\n$command", stderr => \$errors);
	like($errors, $error eq '' ? qr/^$/ : qr/$error/, "$role: $command");
	is($node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE pid = $healer"), '1', 'the healer goes on');
}

# ---- Who has the right.
$node->safe_psql('postgres', 'CREATE DATABASE one TEMPLATE visited');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE pid = $healer"), '0', 'a superuser who copies it sends the healer away');
set('sherman.autoheal', 'off');
$node->safe_psql('postgres', 'DROP DATABASE one');

# ---- A rebuild that is sent away: nothing that it has begun is in the copy, or stays.
my $left = q{SELECT count(*) FROM pg_class WHERE relname LIKE '%_ccnew%'};
$node->safe_psql('visited', 'DROP INDEX waiting_k; CREATE INDEX waiting_k ON waiting USING sherman (waits(k))');
$node->stop('immediate');
unlink memory_files($node);
start_again($node);
is(state_of($node, 'waiting_k', 'visited'), 'broken', 'an index is broken');
set('sherman.auto_rebuild', 'on');
my $rebuilder = worker_in('sherman rebuild');
is($node->safe_psql('visited', $left), '1', 'it is being rebuilt');
$node->safe_psql('postgres', 'CREATE DATABASE four TEMPLATE visited');
is($node->safe_psql('four', $left), '0', 'a copy has nothing of that');
# Its own index is another database's, and is rebuilt, too.
$node->safe_psql('postgres', 'DROP DATABASE four');
isnt(worker_in('sherman rebuild'), $rebuilder, 'it is rebuilt again');
is($node->safe_psql('postgres', q{SELECT tries FROM sherman_stat_progress_rebuild WHERE datname = 'visited'}), '1', 'and that was no try');
set('sherman.auto_rebuild', 'off');
$node->safe_psql('postgres', 'ALTER DATABASE visited RENAME TO moved');
is($node->safe_psql('moved', $left), '0', 'nothing is left when it is given up');

# ---- A database whose DROP was interrupted: nobody goes there, and its memory is freed when it is dropped.
$node->safe_psql('postgres', 'CREATE DATABASE cut');
$node->safe_psql('cut', q{CREATE EXTENSION sherman; CREATE TABLE t AS SELECT generate_series(1, 1000) AS k; CREATE INDEX t_k ON t USING sherman (k); CREATE INDEX t_l ON t USING sherman (k); DROP INDEX t_k});
# Nobody is on the way there.
$node->safe_psql('postgres', 'SELECT sherman_collect()');
$node->safe_psql('postgres', q{UPDATE pg_database SET datconnlimit = -2 WHERE datname = 'cut'});
$node->safe_psql('postgres', 'SELECT sherman_collect()') foreach 1 .. 2;
$node->stop('immediate');
start_again($node);
set('sherman.autoheal', 'on');
$node->safe_psql('postgres', 'SELECT sherman_collect()');
unlike(slurp_file($node->logfile), qr/cannot connect to invalid database/, 'no worker tries to go into an invalid database');
cmp_ok(used($node), '>', 0, 'its memory stays');
$node->safe_psql('postgres', 'DROP DATABASE cut; DROP DATABASE moved');
ok(wait_until_used($node, 0), 'until it is dropped');

$node->stop;
done_testing();

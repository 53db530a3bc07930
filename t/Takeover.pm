
# Servers that go on with the indexes of others.

package Takeover;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

our @EXPORT = qw(standby_of wait_attached wait_noted is_whole);

# A standby of a server, made of a backup of now and started, with settings of its own.
sub standby_of
{
	my ($primary, $name, $conf) = @_;
	my $standby = PostgreSQL::Test::Cluster->new($name, install_path => $primary->install_path);

	$primary->backup($name);
	$standby->init_from_backup($primary, $name, has_streaming => 1);
	$standby->append_conf('postgresql.conf', $conf) if defined $conf;
	$standby->start;
	return $standby;
}

sub wait_attached
{
	my $server = shift;

	$server->poll_query_until('postgres', q{SELECT NOT pg_is_in_recovery() AND (SELECT bool_or(state = 'attached') FROM sherman_stat_memory_nodes)}) or die 'not attached';
	return;
}

# A checkpoint that the primary's launcher has noted, in its log behind the offset: the WAL tells a standby then where the primary's run ends.
sub wait_noted
{
	my ($server, $offset) = @_;

	$offset //= -s $server->logfile;
	my $redo = $server->safe_psql('postgres', 'CHECKPOINT; SELECT redo_lsn FROM pg_control_checkpoint()');

	$server->wait_for_log(qr/sherman: a checkpoint has begun at \Q$redo\E/, $offset);
	return;
}

# An index rows_id that was taken over, healed first.
sub is_whole
{
	my ($server, $what) = @_;

	isnt(state_of($server, 'rows_id'), 'broken', "$what: the index is not broken");
	index_agrees($server, $what);
	is($server->safe_psql('postgres', q{SELECT sherman_heal('rows_id')}), '0', "$what: it is healed");
	is(check_index($server, 'rows_id'), '0', "$what: it is whole");
	return;
}

1;

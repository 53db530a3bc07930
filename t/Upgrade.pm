
# pg_upgrade from one cluster to another: of the same version, or of that which is installed in $oldinstall (script/test long pg-upgrade).

package Upgrade;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Sherman;

our @EXPORT = qw(old_cluster upgraded_cluster pg_upgrade);

# Whether pages have checksums has to be the same, and is not by itself from 18 on.
my @initdb = ('--data-checksums');

# A cluster that is to be upgraded, with options of new_cluster().
sub old_cluster
{
	my ($name, %options) = @_;

	return new_cluster($name, %options, install_path => $ENV{oldinstall}, extra => \@initdb);
}

# One that it is upgraded to: not started.
sub upgraded_cluster
{
	my ($name, %options) = @_;

	return new_cluster($name, %options, start => 0, extra => \@initdb);
}

# The command, which leaves files in the current directory.
sub pg_upgrade
{
	my ($old, $new, @flags) = @_;

	chdir $PostgreSQL::Test::Utils::tmp_check or die;
	return [ 'pg_upgrade', '--no-sync', '-d', $old->data_dir, '-D', $new->data_dir, '-b', $old->config_data('--bindir'), '-B', $new->config_data('--bindir'),
		'-s', $new->host, '-p', $old->port, '-P', $new->port, @flags ];
}

1;

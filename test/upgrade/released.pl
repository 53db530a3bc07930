
# From the released 1.0, which is installed in $oldinstall, to this one, with data: a server with two memory nodes, which are replaced one after the other
# before the server or behind it; and one with the embedded memory node, shut down or crashed.  No index is lost.  For script/test long upgrade.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../../t";
use Msd;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $released = $ENV{oldinstall};

# by_released CODE: what it starts is of 1.0.
sub by_released
{
	local $ENV{PATH} = "$released/bin:$ENV{PATH}";

	return $_[0]->();
}

# A server of 1.0 with indexes of several kinds: a constraint, text, uuid, several columns.
sub server_of_released
{
	my ($name, $conf) = @_;
	my $node = new_cluster($name, install_path => $released, conf => $conf);

	$node->safe_psql(
		'postgres', q{
		CREATE TABLE k (id int PRIMARY KEY WITH (sherman), mail text);
		INSERT INTO k SELECT g, 'user ' || g FROM generate_series(1, 3000) g;
		CREATE UNIQUE INDEX k_mail ON k USING sherman (mail);
		CREATE TABLE t (id uuid, n int, word text);
		INSERT INTO t SELECT md5(g::text)::uuid, g % 100, md5((g + 1)::text) FROM generate_series(1, 20000) g;
		CREATE INDEX t_id ON t USING sherman (id);
		CREATE INDEX t_n ON t USING sherman (n, word) INCLUDE (id);
		DELETE FROM t WHERE n = 7;
		VACUUM t;
	});
	is($node->safe_psql('postgres', 'SELECT sherman_version() || (SELECT extversion FROM pg_extension WHERE extname = $$sherman$$)'), '1.01.0', "$name: 1.0");
	return $node;
}

# What queries with and without indexes find.
sub answers
{
	my $node = shift;

	return join(
		' ',
		map {
			$node->safe_psql('postgres', join('', map { "SET enable_$_ = off;" } @$_)
				  . q{SELECT count(*), md5(string_agg(word, ',' ORDER BY word)) FROM t WHERE n BETWEEN 5 AND 9; SELECT count(*) FROM k WHERE mail > 'user 2'})
		} ([ 'seqscan', 'bitmapscan' ], [ 'seqscan', 'indexscan', 'indexonlyscan' ], [ 'indexscan', 'indexonlyscan', 'bitmapscan' ]));
}

# The server goes on with this version's library, and no index is lost.
sub goes_on
{
	my ($node, $what, $answers, $mode) = @_;
	my $state = $mode eq 'immediate' ? 'healing' : 'ok';

	$node->stop($mode);
	$node->{_install_path} = undef;
	$node->start;
	return sub {
		ok($node->poll_query_until('postgres', q{SELECT bool_and(state = 'attached') FROM sherman_memory_nodes}), "$what: the memory nodes are attached");
		is($node->safe_psql('postgres', 'SELECT sherman_version() || (SELECT extversion FROM pg_extension WHERE extname = $$sherman$$)'), '1.11.0', "$what: the library of 1.1");
		is($node->safe_psql('postgres', q{SELECT string_agg(index || ' ' || state, ', ' ORDER BY index::text) FROM sherman_indexes}),
			join(', ', map { "$_ $state" } qw(k_mail k_pkey t_id t_n)), "$what: no index is lost");
		is(answers($node), $answers, "$what: answers as before");
		$node->safe_psql('postgres', 'ALTER EXTENSION sherman UPDATE');
		$node->safe_psql('postgres', q{SELECT sherman_heal(indexrelid) FROM sherman_stat_indexes});
		$node->safe_psql('postgres', q{INSERT INTO k SELECT g, 'user ' || g FROM generate_series(5000, 5999) g;
			INSERT INTO t SELECT md5(g::text)::uuid, g % 100, md5((g + 1)::text) FROM generate_series(30000, 34999) g; DELETE FROM t WHERE n = 8});
		$node->safe_psql('postgres', 'VACUUM t');
		like(($node->psql('postgres', q{INSERT INTO k VALUES (9000, 'user 5')}))[2], qr/duplicate key value violates unique constraint "k_mail"/, "$what: uniqueness holds");
		is($node->safe_psql('postgres', q{SELECT string_agg(state || sherman_check(indexrelid, true), ' ') FROM sherman_stat_indexes}), 'ok0 ok0 ok0 ok0', "$what: all are whole");
		$node->stop;
	};
}

foreach my $first ('msd', 'server')
{
	my %msd = map { my $transport = $_; ($_ => by_released(sub { Msd->new("$first$transport", size => 128, transport => $transport) })) } ('shm', 'tls');
	my $addresses = join(', ', map { $msd{$_}->address } sort keys %msd);
	my $node = server_of_released("${first}_first", "sherman.memory_nodes = '$addresses'\nsherman.embedded_memory = 0\nsherman.operation_timeout = 5s\n" . Msd::configuration());
	my $answers = answers($node);
	my $replace = sub {
		foreach my $msd (values %msd)
		{
			is($msd->stop, 0, "$first first: a memory node stops");
			$msd->start;
		}
	};

	$replace->() if $first eq 'msd';
	is((split ' ', $node->safe_psql('postgres', q{SELECT count(*) FROM k}))[0], '3000', "$first first: the table is read meanwhile") if $first eq 'msd';
	my $rest = goes_on($node, "$first first", $answers, 'fast');
	if ($first eq 'server')
	{
		is($node->safe_psql('postgres', q{SELECT bool_or(state = 'broken') FROM sherman_indexes}), 'f', 'server first: nothing is broken for want of memory nodes that speak its protocol');
		$replace->();
	}
	$rest->();
	$_->stop foreach values %msd;
}

foreach my $mode ('fast', 'immediate')
{
	my $node = server_of_released("embedded_$mode", '');

	goes_on($node, "embedded, $mode", answers($node), $mode)->();
}

done_testing();

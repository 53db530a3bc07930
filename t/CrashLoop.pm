
# Crashes in the middle of everything, and what must hold behind each: no index is broken, none is rebuilt, and by every index the same
# rows are found as without it.

package CrashLoop;

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;
use Time::HiRes qw(usleep);

# Index, and the expression that it is of.
my %indexes = (
	mix_pkey => 'id',
	mix_key => 'key',
	mix_word => 'word',
	mix_wide => 'repeat(word, 8)',
	mix_part => 'key',
	mix_amount => 'amount',
	mix_only => 'key');
# Equal ones may be written in several ways.
my %texts = (mix_amount => 'trim_scale(k)::text');
my %conditions = (mix_part => "WHERE state = 'open'");

# What a cycle may end by.
my @ways = qw(immediate backend node postmaster);

# prepare(name, conf): a server with a table and its indexes.
sub prepare
{
	my ($class, $name, $conf) = @_;
	my $node = new_cluster($name,
		conf => "synchronous_commit = off\nfsync = off\nmax_prepared_transactions = 20\nwal_writer_delay = 2s\n" . ($conf // ''));
	my $self = bless { node => $node, script => $node->basedir . '/mix.sql', rows => 0, healed => 0 }, $class;

	$node->safe_psql(
		'postgres', q{
		CREATE TABLE mix (id bigserial, key int, word text, state text, amount numeric);
		INSERT INTO mix (key, word, state, amount) SELECT g % 500, md5(g::text), 'open', g / 10.0 FROM generate_series(1, 3000) g;
		CREATE UNIQUE INDEX mix_pkey ON mix USING sherman (id);
		CREATE INDEX mix_key ON mix USING sherman (key);
		CREATE INDEX mix_word ON mix USING sherman (word);
		CREATE INDEX mix_wide ON mix USING sherman (repeat(word, 8));
		CREATE INDEX mix_part ON mix USING sherman (key) WHERE state = 'open';
		CREATE INDEX mix_amount ON mix USING sherman (amount) INCLUDE (word);
		CREATE INDEX mix_only ON mix USING sherman (key, id);
	});
	append_to_file($self->{script}, q{
		\set key random(1, 500)
		\set how random(1, 20)
		\if :how = 1
		SET synchronous_commit = on;
		\elif :how = 2
		VACUUM mix;
		\elif :how < 5
		BEGIN;
		INSERT INTO mix (key, word, state, amount) VALUES (:key, md5(random()::text), 'open', :key / 7.0);
		SAVEPOINT one;
		UPDATE mix SET word = md5(random()::text) WHERE id IN (SELECT id FROM mix WHERE key = :key LIMIT 2);
		ROLLBACK TO one;
		INSERT INTO mix (key, word, state, amount) VALUES (:key + 1, md5(random()::text), 'shut', :key);
		COMMIT;
		\elif :how < 7
		BEGIN;
		INSERT INTO mix (key, word, state, amount) SELECT :key, md5(random()::text), 'open', :key FROM generate_series(1, 9);
		ROLLBACK;
		\else
		INSERT INTO mix (key, word, state, amount) SELECT :key, md5(random()::text), 'open', random() FROM generate_series(1, 5);
		UPDATE mix SET key = key + 1, word = md5(random()::text) WHERE id IN (SELECT id FROM mix WHERE key = :key LIMIT 3);
		UPDATE mix SET state = 'shut' WHERE id IN (SELECT id FROM mix WHERE key = :key + 5 AND state = 'open' LIMIT 2);
		DELETE FROM mix WHERE id IN (SELECT id FROM mix WHERE key = :key + 7 LIMIT 4);
		SELECT count(*) FROM mix WHERE key BETWEEN :key AND :key + 3;
		\endif
	});
	return $self;
}

# Ends the server at any moment, and starts it again.
sub crash
{
	my ($self, $way) = @_;
	my $node = $self->{node};

	if ($way eq 'postmaster')
	{
		$node->kill9;
	}
	elsif ($way ne 'immediate')
	{
		my $pid = $way eq 'node' ? node_pid($node) : $node->safe_psql('postgres',
			q{SELECT pid FROM pg_stat_activity WHERE query ~ 'mix' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1});

		kill 'KILL', $pid if $pid =~ /^[1-9]\d+$/;
	}
	$node->stop('immediate', fail_ok => 1);
	return;
}

# Answers by this index, or without it: rows, their sum, and the keys in order, to and fro, whole rows and keys alone.
sub answers
{
	my ($self, $index, $settings) = @_;
	my $key = $indexes{$index};
	my $condition = $conditions{$index} // '';
	my $text = $texts{$index} // 'k::text';
	my @queries;

	foreach my $order ('ASC', 'DESC')
	{
		push @queries,
		  "SELECT count(*), sum(hashtext(m::text)::bigint), md5(string_agg($text, ',')) FROM (SELECT mix AS m, $key AS k FROM mix $condition ORDER BY $key $order) s",
		  "SELECT count(*), md5(string_agg($text, ',')) FROM (SELECT $key AS k FROM mix $condition ORDER BY $key $order) s";
	}

	return $self->{node}->safe_psql('postgres', join(';', "SET client_min_messages = error; $settings", @queries));
}

# What must hold whatever has happened.  Returns the rows that there are.
sub verify
{
	my ($self, $what) = @_;
	my $node = $self->{node};
	my $wrong = 0;

	foreach my $index (sort keys %indexes)
	{
		my $state = state_of($node, $index);
		my $expected = $self->answers($index, 'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off');
		my $got = $self->answers($index, 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off');
		my $problems = check_index($node, $index);

		$self->{healed}++ if $state eq 'healing';
		next if $state =~ /^(ok|healing)$/ && $expected eq $got && $problems eq '0';
		$wrong++;
		diag("$what: $index is $state, $problems problems; by the table:\n$expected\nby the index:\n$got");
	}
	$self->{rows} += $node->safe_psql('postgres', 'SET enable_indexonlyscan = off; SELECT count(*) FROM mix');
	is($wrong, 0, "$what: every index is whole");
	return;
}

# One cycle: load, the end, the start, the looks.
sub cycle
{
	my ($self, $number) = @_;
	my $node = $self->{node};
	my $way = $ways[ $number % @ways ];
	my $out = '';
	my $bench = IPC::Run::start([ 'pgbench', '-n', '-c', '4', '-T', '60', '-f', $self->{script}, $node->connstr('postgres') ], '>', \$out, '2>&1');

	$node->poll_query_until('postgres', q{SELECT sum(inserts) > 50 FROM sherman_counters}) or die "no load: $out";
	usleep(int(rand(700_000)));
	$self->crash($way);
	IPC::Run::finish($bench);
	start_again($node);
	$self->verify("cycle $number, $way");
	# Some go into the next crash healed, others in doubt.
	if ($number % 3 == 0)
	{
		# The healer may be at it, too: a leaf that it has healed first is left.
		ok($node->poll_query_until('postgres', 'SELECT sum(sherman_heal(index)) = 0 FROM sherman_indexes'), "cycle $number: everything is healed");
		is($node->safe_psql('postgres', q{SELECT count(*) FROM sherman_indexes WHERE state <> 'ok'}), '0', "cycle $number: nothing is in doubt");
		$self->verify("cycle $number, healed");
	}
	return;
}

1;

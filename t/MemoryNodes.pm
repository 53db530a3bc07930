
# What a server does with memory nodes of their own, over whatever transport: an index lies on two and then three of them, each of
# which comes and goes.

package MemoryNodes;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run;
use Load;
use Msd;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

our @EXPORT = qw(memory_nodes_test);

my ($stdout, $stderr, $status);
my ($node, @msd);

sub set_nodes
{
	my $list = join(', ', @_);

	$node->adjust_conf('postgresql.conf', 'sherman.memory_nodes', "'$list'");
	$node->reload;
	return;
}

# SQL: one column of the view for all positions in order, as "a|b".
sub column_of_nodes
{
	my $column = shift;

	return "(SELECT string_agg(coalesce(($column)::text, '-'), '|' ORDER BY position) FROM sherman_stat_memory_nodes)";
}

sub nodes
{
	return $node->safe_psql('postgres', 'SELECT ' . column_of_nodes(@_));
}

sub wait_for
{
	my ($column, $value) = @_;

	return $node->poll_query_until('postgres', 'SELECT ' . column_of_nodes($column) . " = '$value'");
}

sub wait_for_state
{
	my ($index, $state, $database) = @_;

	return $node->poll_query_until($database // 'postgres', "SELECT state = '$state' FROM sherman_stat_indexes WHERE indexrelid = '$index'::regclass");
}

# Makes a copy of "rows" with an index whose home, which is drawn by lot, is the memory node at that position.
sub index_at_home
{
	my ($table, $home) = @_;

	$node->safe_psql('postgres', "CREATE TABLE $table AS SELECT * FROM rows WHERE false");
	foreach my $attempt (1 .. 200)
	{
		$node->safe_psql('postgres', "CREATE INDEX ${table}_id ON $table USING sherman (id)");
		last if lies_on("${table}_id") eq "{$home}";
		$node->safe_psql('postgres', "DROP INDEX ${table}_id");
	}
	$node->safe_psql('postgres', "INSERT INTO $table SELECT * FROM rows");
	return;
}

sub lies_on
{
	my $index = shift;

	return $node->safe_psql('postgres', "SELECT memory_nodes FROM sherman_stat_indexes WHERE indexrelid = '$index'::regclass");
}

# Runs SQL that must fail; returns the error.
sub fails
{
	my ($sql, $what) = @_;

	$status = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql", stdout => \$stdout, stderr => \$stderr);
	isnt($status, 0, $what);
	return $stderr;
}

# What a query says by the index and without it.
sub same_answers
{
	my ($what) = @_;
	my $query = 'SELECT count(*), sum(hashint8(id)), min(id), max(id) FROM rows WHERE id >= 0';
	my $heap = $node->safe_psql('postgres', "SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; $query");

	is($node->safe_psql('postgres', "SET enable_seqscan = off; $query"), $heap, "$what: index and table have the same rows");
	is(check_index($node, 'rows_id'), '0', "$what: the index is whole");
	return;
}

# memory_nodes_test(transport of the first, of the second, of the third memory node): as Msd->new() takes them.
sub memory_nodes_test
{
	my @transports = @_;

	@msd = (Msd->new('a', transport => $transports[0]), Msd->new('b', transport => $transports[1]));
	$node = new_cluster('main', conf => "sherman.attach_timeout = 2s\nsherman.operation_timeout = 10s\nsherman.heal = off\n" . Msd::configuration(), start => 0);

	#
	# Setting up.
	#
	$node->append_conf('postgresql.conf', "sherman.memory_nodes = ''\n");
	$node->adjust_conf('postgresql.conf', 'sherman.memory_nodes', "'" . $msd[0]->address . ', ' . $msd[1]->address . "'");
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION sherman');
	ok(wait_for('state', 'attached|attached'), 'both memory nodes are attached');
	is(nodes('address'), join('|', map { $_->address } @msd), 'in the order of the list');
	is(nodes('transport'), join('|', map { $_->scheme } @msd), 'the transport is shown');
	my $agreed = qr/operations atomic, lines atomic, .* lock words in the host's memory/;
	like(nodes('capabilities'), qr/^$agreed\|$agreed$/, 'and what it can do');
	like(slurp_file($node->logfile), qr/LOG:  attached to memory node $_ at "[^"]*": epoch \d+: $agreed$/m, 'in one line of the log, too')
	  foreach 0, 1;
	is(scalar(memory_files($node)), 0, 'there is no embedded memory node');

	foreach my $bad ('host', 'host:', ':5', 'host:0', 'host:70000', 'ho st:5', 'tcp:', 'udp:h:5', 'shm:relative', 'a:1,,b:2', 'a:1, tcp:a:1', '[::1:5')
	{
		like(fails("ALTER SYSTEM SET sherman.memory_nodes = '$bad'", "'$bad' is refused"), qr/ERROR:  22023: .*DETAIL: /s, 'with a reason');
	}
	foreach my $good ('', 'host:1', ' tcp:host.domain:65535 , shm:/a/path,[::1]:7000, verbs:h:1', '10.0.0.1:7000')
	{
		$node->safe_psql('postgres', "ALTER SYSTEM SET sherman.memory_nodes = '$good'");
		pass("'$good' is taken");
	}
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET sherman.memory_nodes');

	#
	# Work.
	#
	$node->safe_psql(
		'postgres', q{
		CREATE TABLE rows (id bigint, word text);
		INSERT INTO rows SELECT (g * 7919) % 200003, md5(g::text) FROM generate_series(1, 200000) g;
		CREATE INDEX rows_id ON rows USING sherman (id);
		CREATE INDEX rows_word ON rows USING sherman (word);
		ANALYZE rows;
	});
	is(lies_on('rows_id'), '{0,1}', 'an index lies on both');
	is(lies_on('rows_word'), '{0,1}', 'the other one too');
	is($node->safe_psql('postgres', 'SELECT max(used_bytes) <= 1.25 * avg(used_bytes) AND min(used_bytes) >= 0.75 * avg(used_bytes) FROM sherman_stat_memory_nodes'),
		't', 'each memory node has its part');
	same_answers('after the build');
	$node->safe_psql('postgres', 'INSERT INTO rows SELECT 390000 + g, md5(g::text) FROM generate_series(1, 20000) g');
	$node->safe_psql('postgres', 'DELETE FROM rows WHERE id % 3 = 0; VACUUM rows');
	same_answers('after inserts and VACUUM');
	is(check_index($node, 'rows_word'), '0', 'the other one is whole');

	$node->restart;
	is(state_of($node, 'rows_id'), 'ok', 'good after a restart');
	same_answers('after a restart');

	# The order of the list means nothing.
	set_nodes($msd[1]->address, $msd[0]->address);
	$node->restart;
	is(state_of($node, 'rows_id'), 'ok', 'good with the list the other way round');
	is(nodes('address'), join('|', map { $_->address } @msd), 'positions stay with their memory');
	same_answers('with the list the other way round');
	set_nodes($msd[0]->address, $msd[1]->address);

	#
	# A memory node ends and comes back while sessions write and read.
	#
	foreach my $way ('stop', 'crash')
	{
		my $what = $way eq 'stop' ? 'after SIGTERM' : 'after SIGKILL';
		my $postmaster = slurp_file($node->data_dir . '/postmaster.pid');
		my $load = Load->start($node, 3);

		$load->wait_for(200);
		if ($way eq 'stop')
		{
			is($msd[1]->stop, 0, "$what: msd ends with status 0");
		}
		else
		{
			$msd[1]->crash;
		}
		ok(wait_for('state', 'attached|unreachable'), "$what: it is unreachable");
		is(state_of($node, 'rows_id'), 'unreachable', "$what: so is the index");
		like(fails('INSERT INTO rows VALUES (-1)', "$what: an insert is refused"), qr/ERROR:  08006: .*HINT:/s, "$what: with 08006");
		is($node->safe_psql('postgres', 'SELECT count(*) FROM rows WHERE id = 400000'), '1', "$what: a query does without the index");
		ok(!uses_index($node, 'rows_id', 'SELECT count(*) FROM rows WHERE id = 400000'), "$what: as its plan says");
		$msd[1]->start;
		ok(wait_for('state', 'attached|attached'), "$what: it is attached again by itself");
		is(state_of($node, 'rows_id'), 'ok', "$what: the index is good");
		$load->wait_for(200);
		$load->stop;
		is($node->safe_psql('postgres', "SELECT count(*) FROM rows WHERE word = 'load'"), $load->{inserted}, "$what: every row that was acknowledged is there, and no other");
		is($load->{wrong}, 0, "$what: no answer was wrong");
		like($load->{errors}, qr/08006/, "$what: sessions have noticed");
		unlike($load->{errors}, qr/ERROR:  (?!08006)/, "$what: and had no other error");
		same_answers($what);
		is(check_index($node, 'rows_word'), '0', "$what: the other index is whole");
		is(slurp_file($node->data_dir . '/postmaster.pid'), $postmaster, "$what: the server runs on");
		$node->safe_psql('postgres', "DELETE FROM rows WHERE word = 'load'; VACUUM rows");
	}

	#
	# Away at the start.
	#
	$node->stop;
	$msd[1]->stop;
	$node->start;
	is(state_of($node, 'rows_id'), 'unreachable', 'with a memory node away at the start the index is unreachable');
	is(nodes('state'), 'attached|unreachable', 'the other memory node is attached');
	is(nodes('used_bytes > 0'), 'true|-', 'and shows its figures');
	isnt(nodes('reason'), '-|-', 'the view says why');
	is($node->safe_psql('postgres', 'SELECT count(*) FROM rows WHERE id = 400000'), '1', 'queries go on without it');
	$node->safe_psql('postgres', 'DELETE FROM rows WHERE id < 1000');
	like(fails('VACUUM (INDEX_CLEANUP ON) rows', 'VACUUM is refused'), qr/08006/, 'with 08006');
	$node->safe_psql('postgres', 'CREATE TABLE small (id int); CREATE INDEX small_id ON small USING sherman (id); INSERT INTO small VALUES (1)');
	is(lies_on('small_id'), '{0}', 'another index is built where there is a memory node');
	$node->restart;
	is(state_of($node, 'rows_id'), 'unreachable', 'the same after another restart');
	is(state_of($node, 'small_id'), 'ok', 'the index on the other one is good');
	$msd[1]->start;
	ok(wait_for('state', 'attached|attached'), 'it is attached when it comes');
	ok(wait_for_state('rows_id', 'ok'), 'and the index is good');
	same_answers('away at the start');

	# At another address it is the same memory node.
	my $uuid = nodes('uuid');
	$msd[1]->stop;
	$msd[1]->move;
	$msd[1]->start;
	set_nodes($msd[0]->address, $msd[1]->address);
	ok(wait_for('state', 'attached|attached'), 'it is found at another address');
	is(nodes('uuid'), $uuid, 'and has its position');
	is(nodes('address'), join('|', map { $_->address } @msd), 'with the new address');
	same_answers('at another address');

	#
	# Another one is appended, without a restart.
	#
	push @msd, Msd->new('c', transport => $transports[2]);
	set_nodes(map { $_->address } @msd);
	ok(wait_for('state', 'attached|attached|attached'), 'a memory node is appended');
	$node->safe_psql('postgres', 'INSERT INTO rows SELECT 1000000 + (g * 7919) % 200003, md5(g::text) FROM generate_series(1, 30000) g');
	is(lies_on('rows_id'), '{0,1,2}', 'an index grows onto it');
	$node->safe_psql('postgres', 'CREATE INDEX rows_both ON rows USING sherman (word, id)');
	is(lies_on('rows_both'), '{0,1,2}', 'a new one lies on all');
	same_answers('appended');
	$node->restart;
	is(state_of($node, 'rows_id'), 'ok', 'good after a restart');
	same_answers('appended, restarted');

	# One is taken off the list, and put back.
	set_nodes($msd[0]->address, $msd[2]->address);
	ok(wait_for_state('rows_id', 'unreachable'), 'taken off the list, it makes its index unreachable');
	like(fails('INSERT INTO rows VALUES (-1)', 'an insert is refused'), qr/08006: .*DETAIL: .*not in "sherman.memory_nodes"/s, 'and says why');
	like(nodes('reason'), qr/not in "sherman.memory_nodes"/, 'so does the view');
	is(state_of($node, 'small_id'), 'ok', 'an index elsewhere is good');
	$node->restart;
	is(state_of($node, 'rows_id'), 'unreachable', 'the same after a restart');
	set_nodes(map { $_->address } @msd);
	ok(wait_for('state', 'attached|attached|attached'), 'put back, it is attached');
	same_answers('put back');

	#
	# Dropped while a memory node is away: what lies elsewhere is freed, unless the index had its home there.
	#
	foreach my $home (0, 2)
	{
		$node->safe_psql('postgres', 'SELECT sherman_collect()');
		my $kept = nodes('used_bytes');
		index_at_home('goes', $home);
		is(lies_on('goes_id'), '{0,1,2}', "an index with its home at $home lies on all memory nodes");
		$msd[2]->crash;
		ok(wait_for('state', 'attached|attached|unreachable'), 'one goes away');
		$node->safe_psql('postgres', 'DROP TABLE goes');
		pass('its index can be dropped');
		if ($home != 2)
		{
			$kept =~ /^(.*)\|.*$/;
			ok($node->poll_query_until('postgres', "SELECT string_agg(used_bytes::text, '|' ORDER BY position) = '$1' FROM sherman_stat_memory_nodes WHERE position < 2"),
				'what lies elsewhere is freed');
		}
		$msd[2]->start;
		ok(wait_for('used_bytes', $kept), 'the rest is freed when it is back');
		ok(wait_for('state', 'attached|attached|attached'), 'all are attached');
	}

	#
	# Memory is lost.
	#
	my $before = nodes('uuid');
	$msd[1]->crash;
	$msd[1]->lose_memory;
	$msd[1]->start;
	ok($node->poll_query_until('postgres', 'SELECT ' . column_of_nodes('uuid') . " <> '$before'"), 'the view shows that its memory is new');
	ok(wait_for('state', 'attached|attached|attached'), 'with new memory it is attached');
	is(state_of($node, 'rows_id'), 'broken', 'an index that had a part there is broken');
	is(state_of($node, 'small_id'), 'ok', 'one that had not is good');
	$node->safe_psql('postgres', 'INSERT INTO rows VALUES (-1)');
	$node->restart;
	is(state_of($node, 'rows_id'), 'broken', 'broken is final');
	is(state_of($node, 'small_id'), 'ok', 'and the other one good');
	$node->safe_psql('postgres', 'REINDEX TABLE rows; REINDEX TABLE small');
	same_answers('rebuilt');
	is(lies_on('rows_id'), '{0,1,2}', 'it lies on all of them again');
	$node->safe_psql('postgres', 'SELECT sherman_collect()');
	is($node->safe_psql('postgres', 'SELECT sum(used_bytes) = (SELECT sum(total_bytes) FROM sherman_stat_indexes) FROM sherman_stat_memory_nodes'), 't',
		'nothing is left of the broken ones');

	# An older copy of one part is put in place.
	$node->safe_psql('postgres', 'CREATE TABLE second AS SELECT * FROM rows; CREATE INDEX second_id ON second USING sherman (id)');
	$node->stop;
	$msd[2]->stop;
	system_or_bail('cp', '--sparse=always', $msd[2]->{memory}, "$msd[2]->{memory}.copy");
	$msd[2]->start;
	$node->start;
	is(state_of($node, 'rows_id'), 'ok', 'good before');
	$node->safe_psql('postgres', 'INSERT INTO rows SELECT 2000000 + g FROM generate_series(1, 1000) g');
	$node->stop;
	$msd[2]->stop;
	rename("$msd[2]->{memory}.copy", $msd[2]->{memory}) or die "$msd[2]->{memory}: $!";
	$msd[2]->start;
	$node->start;
	is(state_of($node, 'rows_id'), 'broken', 'with an older copy of a part of its memory an index is broken');
	is(state_of($node, 'second_id'), 'broken', 'each that has a part there, changed or not');
	$node->safe_psql('postgres', 'REINDEX TABLE rows; REINDEX TABLE second');
	$node->restart;
	same_answers('rebuilt');
	is(check_index($node, 'second_id'), '0', 'the other one is whole');
	$node->safe_psql('postgres', 'DROP TABLE second');

	#
	# on_unavailable = break: inserts go on, at the price of the index.
	#
	$msd[0]->crash;
	ok(wait_for_state('rows_id', 'unreachable'), 'away again');
	$node->safe_psql('postgres', 'SET sherman.on_unavailable = break; INSERT INTO rows VALUES (-2)');
	is(state_of($node, 'rows_id'), 'broken', 'with on_unavailable = break an insert breaks the index');
	$msd[0]->start;
	ok(wait_for('state', 'attached|attached|attached'), 'back again');
	is(state_of($node, 'rows_id'), 'broken', 'it stays broken');
	$node->safe_psql('postgres', 'REINDEX TABLE rows');
	same_answers('rebuilt again');

	#
	# A crash of the server while a memory node is away: what it means for that one is known when it is back.
	#
	$node->safe_psql('postgres', 'CREATE TABLE quiet AS SELECT * FROM rows; CREATE INDEX quiet_id ON quiet USING sherman (id)');
	$node->restart;
	$node->safe_psql('postgres', 'INSERT INTO rows VALUES (-3)');
	$msd[0]->stop;
	ok(wait_for_state('rows_id', 'unreachable'), 'one is away');
	$node->stop('immediate');
	$node->start;
	$node->restart;
	isnt(state_of($node, 'rows_id'), 'ok', 'not good while it is away');
	isnt(state_of($node, 'quiet_id'), 'ok', 'nor the one that was not changed');
	$msd[0]->start;
	ok(wait_for('state', 'attached|attached|attached'), 'it is back');
	is(state_of($node, 'rows_id'), 'broken', 'changed before the crash: broken');
	is(state_of($node, 'quiet_id'), 'ok', 'not changed: good');
	is(check_index($node, 'quiet_id'), '0', 'and whole');
	$node->safe_psql('postgres', 'REINDEX TABLE rows');

	#
	# Two servers use the same memory nodes.
	#
	my $other = new_cluster('other', conf => Msd::configuration() . "sherman.memory_nodes = '" . join(', ', map { $_->address } @msd) . "'\n");
	$other->safe_psql('postgres',
		'CREATE TABLE theirs AS SELECT g AS id FROM generate_series(1, 50000) g; CREATE INDEX theirs_id ON theirs USING sherman (id)');
	is(state_of($other, 'theirs_id'), 'ok', 'another server has an index there, too');
	is($other->safe_psql('postgres', 'SELECT count(*) FROM sherman_stat_indexes'), '1', 'and sees no other');
	$other->safe_psql('postgres', 'SELECT sherman_collect()');
	$other->stop('immediate');
	is(check_index($node, 'rows_id'), '0', 'its end does not touch ours');
	$other->start;
	$other->safe_psql('postgres', 'REINDEX TABLE theirs');
	$msd[1]->crash;
	$msd[1]->start;
	ok(wait_for('state', 'attached|attached|attached'), 'a memory node comes back');
	ok($other->poll_query_until('postgres', "SELECT every(state = 'attached') FROM sherman_stat_memory_nodes"), 'to both');
	is(check_index($node, 'rows_id'), '0', 'our index is whole');
	is(check_index($other, 'theirs_id'), '0', 'and so is theirs');
	$node->safe_psql('postgres', 'SELECT sherman_collect()');
	$node->restart;
	is(check_index($other, 'theirs_id'), '0', 'whatever we do');
	same_answers('in company');
	$other->stop;
	$node->stop;
	return;
}

1;

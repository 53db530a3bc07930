
# Logical replication: into tables with sherman indexes, rows found by a sherman index where it is the replica identity, and out of
# tables with such an identity.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use PostgreSQL::Test::Utils;
use Sherman;
use Test::More;

my $conf = "wal_retrieve_retry_interval = 100ms\nmax_worker_processes = 12\nmax_prepared_transactions = 10\n";
my $publisher = new_cluster('publisher', allows_streaming => 'logical', conf => $conf);
my $subscriber = new_cluster('subscriber', allows_streaming => 'logical', conf => "${conf}sherman.heal = off\n");

sub publish { return $publisher->safe_psql('postgres', "SET client_min_messages = error; $_[0]"); }
sub subscribe { return $subscriber->safe_psql('postgres', "SET client_min_messages = error; $_[0]"); }

# Both have the same rows, once what is committed has arrived; and the subscriber's indexes are whole.
sub same
{
	my ($what) = @_;

	$publisher->wait_for_catchup('sub');
	for my $table ('plain', 'identified', 'keyed', 'whole')
	{
		my $rows = "SELECT count(*), md5(string_agg(x::text, ',' ORDER BY x::text)) FROM $table x";

		is(subscribe($rows), publish($rows), "$what: $table");
	}
	is(subscribe("SELECT count(*) FROM sherman_stat_indexes WHERE state <> 'ok' OR sherman_check(indexrelid, true) <> 0"), '0', "$what: all indexes are whole");
}

my $tables = q{
	CREATE TABLE plain (id int PRIMARY KEY, v text);
	CREATE TABLE identified (id int NOT NULL, v text);
	CREATE TABLE whole (id int, v text);
	ALTER TABLE whole REPLICA IDENTITY FULL;
	SET sherman.constraints = on;
	CREATE TABLE keyed (id int, part int, v text, PRIMARY KEY (id, part));
};

# At the publisher the identity is a unique sherman index, and a sherman primary key.
publish($tables . q{
	CREATE UNIQUE INDEX identified_id ON identified USING sherman (id);
	ALTER TABLE identified REPLICA IDENTITY USING INDEX identified_id;
	INSERT INTO plain SELECT i, 'v' || i FROM generate_series(1, 500) i;
	INSERT INTO identified SELECT i, 'v' || i FROM generate_series(1, 500) i;
	INSERT INTO whole SELECT i % 50, 'v' || i % 7 FROM generate_series(1, 500) i;
	INSERT INTO keyed SELECT i, i % 3, 'v' || i FROM generate_series(1, 500) i;
	CREATE PUBLICATION pub FOR TABLE plain, identified, keyed, whole;
});
subscribe($tables . q{
	CREATE UNIQUE INDEX identified_id ON identified USING sherman (id);
	ALTER TABLE identified REPLICA IDENTITY USING INDEX identified_id;
	CREATE INDEX plain_v ON plain USING sherman (v) INCLUDE (id);
	CREATE INDEX identified_v ON identified USING sherman (v);
	CREATE INDEX whole_id ON whole USING sherman (id);
	CREATE INDEX keyed_v ON keyed USING sherman (v);
});
subscribe("CREATE SUBSCRIPTION sub CONNECTION '" . $publisher->connstr . " dbname=postgres' PUBLICATION pub WITH (two_phase = true)");
$subscriber->poll_query_until('postgres', q{SELECT count(*) = 4 AND bool_and(srsubstate IN ('r', 's')) FROM pg_subscription_rel})
  or die 'the tables were not copied';
same('copied');

# 17 looks for rows by btree and hash indexes alone: it fails and says so, and goes on when there is one.
if ($subscriber->pg_version >= 17 && $subscriber->pg_version < 18)
{
	publish(q{UPDATE identified SET v = v || '!' WHERE id % 3 = 0; DELETE FROM keyed WHERE id % 7 = 0});
	$subscriber->wait_for_log(qr/missing operator.*HINT:  In PostgreSQL 17 a subscriber finds rows by btree indexes/s);
	pass('the log says which index it wants');
	subscribe(q{
		CREATE UNIQUE INDEX identified_btree ON identified (id);
		CREATE UNIQUE INDEX keyed_btree ON keyed (id, part);
		ALTER TABLE identified REPLICA IDENTITY USING INDEX identified_btree;
		ALTER TABLE keyed REPLICA IDENTITY USING INDEX keyed_btree;
	});
	same('changed');
	$_->stop foreach $subscriber, $publisher;
	done_testing();
	exit;
}

# Rows found by their identity: its columns changed, others changed, deleted, and put there again.
publish(q{
	UPDATE plain SET v = v || '!' WHERE id % 3 = 0;
	UPDATE identified SET v = v || '!' WHERE id % 3 = 0;
	UPDATE identified SET id = id + 10000 WHERE id % 5 = 0;
	UPDATE keyed SET part = part + 10 WHERE id % 4 = 0;
	UPDATE whole SET v = v || '!' WHERE id % 10 = 0;
	DELETE FROM plain WHERE id % 7 = 0;
	DELETE FROM identified WHERE id % 7 = 0;
	DELETE FROM keyed WHERE id % 7 = 0;
	DELETE FROM whole WHERE id % 7 = 0;
});
same('changed');
ok($subscriber->poll_query_until('postgres', "SELECT idx_scan > 0 FROM pg_stat_user_indexes WHERE indexrelname = 'identified_id'"),
	'rows are found by the sherman index');
publish(q{
	INSERT INTO identified SELECT i, 'again' FROM generate_series(7, 499, 7) i WHERE i % 5 <> 0;
	INSERT INTO keyed SELECT i, i % 3, 'again' FROM generate_series(7, 497, 7) i;
	BEGIN;
	DELETE FROM identified WHERE id % 2 = 0;
	INSERT INTO identified SELECT i, 'in one transaction' FROM generate_series(2, 100, 2) i;
	SAVEPOINT s;
	DELETE FROM identified;
	ROLLBACK TO s;
	COMMIT;
});
same('again');
subscribe('VACUUM (INDEX_CLEANUP ON) identified, keyed, plain, whole');
publish('UPDATE identified SET v = id::text; UPDATE keyed SET v = id::text');
same('after VACUUM');

# While the apply worker waits for a row's lock, or for a row whose insertion is in progress, its scan is open. That keeps neither
# ON CONFLICT nor, in the first case, VACUUM. What hangs all the same is ended by the time limits.
sub apply_waits
{
	$subscriber->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity
		WHERE backend_type ~ 'logical replication (apply )?worker' AND wait_event_type = 'Lock' AND wait_event = 'transactionid'})
	  or die 'the apply worker does not wait';
	return;
}
my $holder = $subscriber->background_psql('postgres');
$holder->query_safe('BEGIN; SELECT 1 FROM identified WHERE id = 2 FOR UPDATE');
publish("UPDATE identified SET v = 'waits' WHERE id = 2");
apply_waits();
subscribe("SET statement_timeout = '60s'; DELETE FROM identified WHERE id = 4; INSERT INTO identified VALUES (4, 'there again')");
is($subscriber->psql('postgres', "SET statement_timeout = '60s'; VACUUM (INDEX_CLEANUP ON) identified"), 0, 'VACUUM goes past an apply worker that waits for a row');
is(subscribe("SET statement_timeout = '60s'; INSERT INTO identified VALUES (6, 'no'), (1000006, 'yes') ON CONFLICT DO NOTHING RETURNING id"),
	'1000006', 'and so does ON CONFLICT');
apply_waits();
$holder->query_safe('COMMIT');
subscribe('DELETE FROM identified WHERE id = 1000006');
publish("UPDATE identified SET v = 'there again' WHERE id = 4");
same('when the row is free');

publish("UPDATE identified SET id = 2000001 WHERE id = 6");
$publisher->wait_for_catchup('sub');
subscribe('DELETE FROM identified WHERE id = 2000001');
$holder->query_safe("BEGIN; INSERT INTO identified VALUES (2000001, 'in progress')");
publish("UPDATE identified SET v = 'found when it is there' WHERE id = 2000001");
apply_waits();
subscribe('DELETE FROM identified WHERE id = 8');
my $vacuum = $subscriber->background_psql('postgres', on_error_stop => 0);
$vacuum->query_until(qr/begins/, "\\echo begins\nVACUUM (INDEX_CLEANUP ON) identified;\n");
$subscriber->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_locks WHERE objsubid = 21321 AND classid = 'identified_id'::regclass AND NOT granted})
  or die 'VACUUM does not wait';
is(subscribe("SET statement_timeout = '60s'; INSERT INTO identified VALUES (10, 'no'), (1000006, 'yes') ON CONFLICT DO NOTHING RETURNING id"),
	'1000006', 'ON CONFLICT goes past VACUUM that waits for an apply worker');
$holder->query_safe('COMMIT');
$vacuum->quit;
$holder->quit;
subscribe("DELETE FROM identified WHERE id = 1000006; INSERT INTO identified SELECT 8, 'there again'");
publish("UPDATE identified SET v = 'there again' WHERE id = 8");
same('when the row is there');

# A row that the subscriber has of its own is a violation, as with btree: replication waits until it is gone.
subscribe("INSERT INTO identified VALUES (77777, 'in the way')");
my $log = -s $subscriber->logfile;
publish("INSERT INTO identified VALUES (77777, 'published')");
ok(
	$subscriber->poll_query_until('postgres', "SELECT apply_error_count > 0 FROM pg_stat_subscription_stats WHERE subname = 'sub'"),
	'a violation is noticed');
like(slurp_file($subscriber->logfile, $log), qr/(duplicate key value violates unique constraint|Key already exists in unique index) "identified_id"/, 'by the sherman index');
subscribe('DELETE FROM identified WHERE id = 77777');
same('when it is gone');

# An index that is rebuilt meanwhile, and TRUNCATE.
subscribe('REINDEX INDEX CONCURRENTLY identified_id');
publish('UPDATE identified SET v = v || v WHERE id < 100; TRUNCATE plain, whole');
same('rebuilt and truncated');

# The apply worker executes no statements: entries of a transaction wait for its end, for PREPARE, or for a scan; and for no tree that
# TRUNCATE has left.
publish(q{
	BEGIN;
	INSERT INTO plain SELECT i, 'w' || i FROM generate_series(300001, 300200) i;
	UPDATE plain SET v = v || '!' WHERE id % 2 = 0;
	INSERT INTO whole SELECT i, 'w' || i FROM generate_series(1, 100) i;
	TRUNCATE whole;
	INSERT INTO whole SELECT i, 'w' || i FROM generate_series(101, 200) i;
	UPDATE whole SET v = v || '!' WHERE id % 10 = 0;
	COMMIT;
});
same('in one transaction, with TRUNCATE');
publish(q{
	BEGIN;
	INSERT INTO plain SELECT i, 'p' || i FROM generate_series(310001, 310200) i;
	INSERT INTO identified SELECT i, 'p' || i FROM generate_series(310001, 310200) i;
	PREPARE TRANSACTION 'applied';
});
$publisher->wait_for_catchup('sub');
is(subscribe('SELECT count(*) FROM pg_prepared_xacts'), '1', 'a transaction is prepared there, too');
publish("COMMIT PREPARED 'applied'");
same('prepared');

# Restarts: what was confirmed stays, what was not comes again.
$subscriber->stop;
publish("INSERT INTO identified SELECT i, 'meanwhile' FROM generate_series(200001, 200100) i; DELETE FROM keyed WHERE id < 50");
$subscriber->start;
$subscriber->poll_query_until('postgres', "SELECT bool_and(state = 'ok') FROM sherman_stat_indexes") or die 'not attached';
same('restarted');

# A broken identity finds no rows: replication waits until it is rebuilt.
publish('UPDATE identified SET v = v WHERE id < 100');
same('before the crash');
$subscriber->stop('immediate');
$subscriber->start;
$log = -s $subscriber->logfile;
is(state_of($subscriber, 'identified_id'), 'broken', 'broken by a crash');
publish("UPDATE identified SET v = 'found' WHERE id = 1");
ok(
	$subscriber->poll_query_until('postgres', "SELECT apply_error_count > 0 FROM pg_stat_subscription_stats WHERE subname = 'sub'"),
	'replication cannot go on');
like(slurp_file($subscriber->logfile, $log), qr/ERROR:  index "identified_id" .*broken/, 'and says why');
subscribe("REINDEX TABLE $_") for ('plain', 'identified', 'keyed', 'whole');
same('rebuilt');

subscribe('DROP SUBSCRIPTION sub');
$subscriber->stop;
$publisher->stop;

done_testing();

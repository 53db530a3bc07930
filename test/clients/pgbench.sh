# pgbench's TPC-B, its keys over sherman indexes and a history with one: sums that have to agree. Foreign keys up to PostgreSQL 17 say what to do.
export PGOPTIONS='-c sherman.constraints=on'
pgbench -q -i -s 2
fails_with 'sherman = off' pgbench -q -i -s 1 --foreign-keys
unset PGOPTIONS
pgbench -q -i -s 2 -I dtgvp
is 'keys of pgbench -I without the setting' "$(sql "SELECT count(*) FROM sherman_stat_indexes")" 0
PGOPTIONS='-c sherman.constraints=on' pgbench -q -i -s 2
sql "CREATE INDEX history_aid ON pgbench_history USING sherman (aid)" "CREATE INDEX accounts_balance ON pgbench_accounts USING sherman (abalance, bid)"
for mode in simple extended prepared; do pgbench -n -c 6 -j 2 -T 5 -M $mode; done
is 'balances, the history, tellers and branches' "$(sql "SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(delta) FROM pgbench_history), (SELECT sum(tbalance) FROM pgbench_tellers) = (SELECT sum(bbalance) FROM pgbench_branches), (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(bbalance) FROM pgbench_branches)")" 't|t|t'
verify 5

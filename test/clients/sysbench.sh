# sysbench: its table with a sherman key and secondary index, read and written by four threads, point lookups, and inserts.
export PGOPTIONS='-c sherman.constraints=on'
options=(--db-driver=pgsql --pgsql-host=/tmp --pgsql-port=5432 --pgsql-user=postgres --pgsql-password= --pgsql-db="$PGDATABASE" --tables=2 --table-size=5000 --threads=4)
sysbench oltp_read_write "${options[@]}" --create_secondary=off prepare
sql "CREATE INDEX k_1 ON sbtest1 USING sherman (k)" "CREATE INDEX k_2 ON sbtest2 USING sherman (k, c)"
for load in oltp_read_write oltp_update_index oltp_delete oltp_insert select_random_ranges oltp_point_select; do
	sysbench $load "${options[@]}" --time=5 --db-ps-mode=auto run | grep -E 'transactions:|ignored errors|FATAL'
done
verify 4

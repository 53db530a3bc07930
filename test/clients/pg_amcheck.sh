# pg_amcheck: it looks at tables and at btree indexes alone, and says nothing of others: the queries of doc/operate/clients.md do. They are run as the page has them.
sql "CREATE EXTENSION amcheck" "CREATE TABLE t (id int PRIMARY KEY WITH (sherman), k text)" "CREATE INDEX t_k ON t USING sherman (k)" "CREATE INDEX t_b ON t (k)" \
	"INSERT INTO t SELECT n, md5(n::text) FROM generate_series(1, 3000) n"
pg_amcheck -d "$PGDATABASE" --heapallindexed --progress
fails_with 'no btree indexes to check matching "t_k"' pg_amcheck -d "$PGDATABASE" -i t_k
fails_with 'only B-Tree indexes are supported as targets' sql "SELECT bt_index_check('t_k')"
page=$HERE/../../doc/operate/clients.md
while IFS= read -r command; do
	bash -euo pipefail -c "${command//-d orders/-X}"
done < <(sed -n '/^## pg_amcheck/,$p' "$page" | sed -nE '/^    psql/,/^$/{/^$/d; s/^    //; p}' | awk '/^psql/ && NR > 1 { printf "\n" } { printf "%s ", $0 } END { print "" }')
is 'problems' "$(sql "SELECT sum(sherman_check(indexrelid, heapallindexed => true)) FROM sherman_stat_indexes")" 0
verify 2

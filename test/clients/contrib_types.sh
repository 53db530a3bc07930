# The types of contrib (citext, hstore, ltree, isn, cube, seg, uuid-ossp's values, lo) and of core beside them: an index over each, and lookups, ranges and ORDER BY by it.
for extension in citext hstore ltree isn cube seg uuid-ossp lo intarray; do sql "CREATE EXTENSION \"$extension\""; done
# add NAME TYPE EXPRESSION [OPERATOR]: a table of values of n, some of them null or equal; the operator is its "greater".
add()
{
	sql "CREATE TABLE of_$1 (id int, k $2)" "INSERT INTO of_$1 SELECT n, CASE WHEN n % 50 > 0 THEN ($3)::$2 END FROM generate_series(1, 2000) n" \
		"CREATE INDEX $1_k ON of_$1 USING sherman (k)" "CREATE INDEX $1_d ON of_$1 USING sherman (k DESC NULLS LAST, id)" \
		"INSERT INTO of_$1 SELECT n + 2000, ($3)::$2 FROM generate_series(1, 1000) n" "DELETE FROM of_$1 WHERE id % 7 = 0" "UPDATE of_$1 SET id = -id WHERE id % 11 = 0"
	is "$1, equality" "$(sql "SET enable_seqscan = off" "SELECT count(*) FROM of_$1 WHERE k = (SELECT k FROM of_$1 WHERE id = 1)")" \
		"$(sql "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off" "SELECT count(*) FROM of_$1 WHERE k = (SELECT k FROM of_$1 WHERE id = 1)")"
	is "$1, a range" "$(sql "SET enable_seqscan = off" "SELECT count(*) FROM of_$1 WHERE k ${4:->} (SELECT k FROM of_$1 WHERE id = 1)")" \
		"$(sql "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off" "SELECT count(*) FROM of_$1 WHERE k ${4:->} (SELECT k FROM of_$1 WHERE id = 1)")"
}
add citext citext "CASE WHEN n % 2 = 0 THEN upper(md5((n % 300)::text)) ELSE md5((n % 300)::text) END"
add hstore hstore "hstore(ARRAY['a', 'b'], ARRAY[(n % 30)::text, md5((n % 7)::text)])" '#>#'
add ltree ltree "concat_ws('.', 'top', n % 10, 'x' || n % 100, n)"
add cube cube "format('(%s, %s), (%s, 3)', n % 20, n % 31, n % 5)"
add seg seg "format('%s .. %s', n % 50, n % 50 + 3)"
add uuid uuid "CASE WHEN n % 2 = 0 THEN uuid_generate_v4() ELSE uuid_generate_v5(uuid_ns_url(), (n % 90)::text) END"
add lo lo "(n % 400)::oid"
# Numbers of goods, books, music and magazines: the last digit is a check of the twelve before it.
sql "CREATE FUNCTION with_check(twelve text) RETURNS text IMMUTABLE LANGUAGE sql AS \$\$
	SELECT twelve || (10 - sum(substr(twelve, i, 1)::int * (1 + 2 * (1 - i % 2))) % 10) % 10 FROM generate_series(1, 12) i \$\$"
add ean13 ean13 "with_check('40' || lpad((n % 500)::text, 10, '0'))"
for kind in isbn isbn13; do add $kind $kind "with_check('978' || lpad((n % 500)::text, 9, '0'))"; done
for kind in ismn ismn13; do add $kind $kind "with_check('9790' || lpad((n % 500)::text, 8, '0'))"; done
for kind in issn issn13; do add $kind $kind "with_check('977' || lpad((n % 500)::text, 7, '0') || '00')"; done
add upc upc "with_check('0' || lpad((n % 500)::text, 11, '0'))"
add intarray 'int[]' "ARRAY[n % 10, n % 100, n]"
add jsonb jsonb "jsonb_build_object('a', n % 40, 'b', ARRAY[n % 3])"
add inet inet "format('10.%s.%s.%s', n % 5, n % 200, n % 250)"
add macaddr8 macaddr8 "macaddr8 '08:00:2b:01:02:03:04:05'"
add numeric numeric "n % 100 * 1.37"
add interval interval "n % 100 * interval '1 hour 3 seconds'"
add int8range int8range "int8range(n % 40, n % 40 + n % 9)"
add money money "n % 500"
add bit 'bit varying' "(n % 256)::bit(8)"
add name name "md5((n % 256)::text)"
add pg_lsn pg_lsn "format('0/%s', to_hex(n % 700))"
add xid8 xid8 "(n % 700)::text"
add tsvector tsvector "format('a:%s b%s:2', n % 20 + 1, n % 9)"
# Unique, where equality is not that of bytes.
fails_with 'duplicate key value violates unique constraint "u_k_key"' sql "CREATE TABLE u (k citext UNIQUE WITH (sherman))" "INSERT INTO u VALUES ('Name'), ('nAME')"
verify 57

-- Every sherman index of the database: its state, sherman_check() with all rows, and the first column in its order by the index and by a sequential
-- scan and a sort. Prints how many there are.
CREATE FUNCTION pg_temp.first_column_in_order(index regclass) RETURNS text LANGUAGE sql AS $$
	SELECT format('SELECT array_agg(key%6$s) FROM (SELECT %1$s AS key FROM ONLY %2$s WHERE %3$s ORDER BY %1$s %4$s NULLS %5$s) s',
		pg_get_indexdef(indexrelid, 1, true), indrelid::regclass, coalesce(pg_get_expr(indpred, indrelid), 'true'),
		CASE WHEN pg_index_column_has_property(indexrelid, 1, 'desc') THEN 'DESC' ELSE 'ASC' END,
		CASE WHEN pg_index_column_has_property(indexrelid, 1, 'nulls_first') THEN 'FIRST' ELSE 'LAST' END,
		-- Arrays of arrays are all of one length.
		(SELECT CASE typcategory WHEN 'A' THEN '::text' ELSE '' END FROM pg_attribute a JOIN pg_type t ON t.oid = atttypid WHERE attrelid = indexrelid AND attnum = 1))
	FROM pg_index WHERE indexrelid = $1 $$;

CREATE FUNCTION pg_temp.compare(index regclass) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	query text := pg_temp.first_column_in_order(index);
	line text;
	used boolean := false;
	same boolean;
BEGIN
	-- Others of the table are out of the planner's sight; the exception below undoes that.
	UPDATE pg_index SET indisvalid = (indexrelid = index) WHERE indrelid = (SELECT indrelid FROM pg_index WHERE indexrelid = index) AND indisvalid;
	PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true), set_config('enable_bitmapscan', 'off', true);
	FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
		used := used OR line LIKE '% using ' || (SELECT quote_ident(relname) FROM pg_class WHERE oid = index) || ' on %';
	END LOOP;
	EXECUTE format('CREATE TEMP TABLE by_index ON COMMIT DROP AS %s', query);
	PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_sort', 'on', true), set_config('enable_indexscan', 'off', true),
		set_config('enable_indexonlyscan', 'off', true);
	EXECUTE format('CREATE TEMP TABLE by_scan ON COMMIT DROP AS %s', query);
	SELECT i.array_agg IS NOT DISTINCT FROM s.array_agg INTO same FROM by_index i, by_scan s;
	RAISE SQLSTATE 'UNDO1';
EXCEPTION WHEN SQLSTATE 'UNDO1' THEN
	IF NOT same THEN RAISE EXCEPTION 'index and sequential scan differ: %', index; END IF;
	RETURN used;
END $$;

DO $$
DECLARE
	found record;
BEGIN
	FOR found IN SELECT indexrelid::regclass AS index, state, reason FROM sherman_stat_indexes LOOP
		IF found.state <> 'ok' THEN RAISE EXCEPTION '% is %: %', found.index, found.state, found.reason; END IF;
		IF sherman_check(found.index, true) <> 0 THEN RAISE EXCEPTION '% is not whole', found.index; END IF;
		IF NOT pg_temp.compare(found.index) THEN RAISE EXCEPTION 'no plan uses %', found.index; END IF;
	END LOOP;
END $$;
SELECT count(*) FROM sherman_stat_indexes;

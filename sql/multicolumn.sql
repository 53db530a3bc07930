--
-- Several columns: order, bounds, residual quals, NULLs, directions; every query compared with a sequential scan.
--
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/compare.psql'
SET client_min_messages = warning;
SET jit = off;
CREATE SCHEMA test_multicolumn;
SET search_path = test_multicolumn, public;
\i :include

-- Columns of all sorts with few distinct values, so that every prefix has ties; one value in eight is NULL.
CREATE TABLE m (id int, a int4, b text COLLATE "C", c int8, d float8, e date, f numeric, g uuid, h text COLLATE "en-x-icu",
				i timestamp, j int2, k interval, l inet);
CREATE FUNCTION fill(low int, high int) RETURNS void LANGUAGE sql AS $$
	INSERT INTO m
	SELECT n, CASE WHEN x[1] < 7 THEN x[1] - 3 END, CASE WHEN x[2] < 7 THEN repeat('ab', x[2]) END,
		CASE WHEN x[3] < 7 THEN (x[3] - 3) * 5000000000 END,
		CASE WHEN x[4] < 7 THEN (ARRAY['-Infinity', '-0', '0', '1.5', 'NaN', 'Infinity', '-1'])[x[4] + 1]::float8 END,
		CASE WHEN x[5] < 7 THEN '2020-01-01'::date + x[5] END, CASE WHEN x[6] < 7 THEN (x[6] - 3) / 7.0 END,
		CASE WHEN x[7] < 7 THEN md5(x[7]::text)::uuid END,
		CASE WHEN x[8] < 7 THEN (ARRAY['a', 'A', 'b', 'B', 'é', 'eee', ''])[x[8] + 1] END,
		CASE WHEN x[1] > 0 THEN '2020-01-01'::timestamp + x[3] * '1 day'::interval END,
		CASE WHEN x[2] > 0 THEN x[4] - 2 END, CASE WHEN x[3] > 0 THEN x[5] * '8 hours'::interval END,
		CASE WHEN x[4] > 0 THEN '10.0.0.0'::inet + x[6] END
	FROM generate_series(low, high) n,
		LATERAL (SELECT array_agg(('x' || substr(md5(n::text || y), 1, 4))::bit(16)::int % 8) AS x FROM generate_series(1, 8) y) r
$$;
SELECT fill(1, 500);

-- One index at a time; conditions use the index's columns under the names in `names`.
CREATE FUNCTION try_index(columns text[], names text[], OUT queries int, OUT same int, OUT by_index boolean) LANGUAGE plpgsql AS $$
DECLARE
	forward text := array_to_string(columns, ', ');
	backward text;
	flipped text[];
	condition text;
	conditions text[] := '{true}';
	samples text[];
	one text[];
BEGIN
	DROP INDEX IF EXISTS m_index;
	EXECUTE format('CREATE INDEX m_index ON m USING sherman (%s)', forward);
	SELECT array_agg(CASE WHEN c LIKE '% DESC NULLS LAST' THEN replace(c, 'DESC NULLS LAST', 'ASC NULLS FIRST')
						  WHEN c LIKE '% DESC' THEN replace(c, ' DESC', ' ASC NULLS LAST')
						  WHEN c LIKE '% NULLS FIRST' THEN replace(c, ' NULLS FIRST', ' DESC NULLS LAST')
						  ELSE c || ' DESC' END ORDER BY o)
		INTO flipped FROM unnest(columns) WITH ORDINALITY u (c, o);
	backward := array_to_string(flipped, ', ');

	FOR one IN EXECUTE format('SELECT ARRAY[%s] FROM m WHERE id %% 150 = 7 ORDER BY id',
							  (SELECT string_agg(format('quote_nullable(%I::text)', n), ', ' ORDER BY o) FROM unnest(names) WITH ORDINALITY u (n, o)))
	LOOP
		-- equality on a prefix and each operator behind it
		FOR bound IN 1..cardinality(names) LOOP
			FOR operator IN 1..7 LOOP
				SELECT string_agg(
					CASE WHEN o < bound AND one[o] = 'NULL' THEN format('%I IS NULL', n)
						 WHEN o < bound THEN format('%I = %s', n, one[o])
						 WHEN operator = 6 THEN format('%I IS NULL', n)
						 WHEN operator = 7 THEN format('%I IS NOT NULL', n)
						 ELSE format('%I %s %s', n, (ARRAY['<', '<=', '=', '>=', '>'])[operator], one[o]) END, ' AND ')
					INTO condition FROM unnest(names) WITH ORDINALITY u (n, o) WHERE o <= bound;
				conditions := conditions || condition;
			END LOOP;
		END LOOP;
		-- gaps, ranges on several columns, two sides, redundant and contradictory quals
		conditions := conditions || ARRAY[
			format('%I = %s', names[2], one[2]),
			format('%I > %s', names[2], one[2]),
			format('%I >= %s AND %I <= %s', names[1], one[1], names[2], one[2]),
			format('%I < %s AND %I > %s', names[1], one[1], names[cardinality(names)], one[cardinality(names)]),
			format('%I >= %s AND %I <= %s', names[1], one[1], names[1], one[1]),
			format('%I > %s AND %I < %s', names[1], one[1], names[1], one[1]),
			format('%I >= %s AND %I > %s AND %I = %s', names[1], one[1], names[1], one[1], names[2], one[2]),
			format('%I = %s AND %I >= %s', names[1], one[1], names[1], one[1]),
			format('%I = %s AND %I < %s', names[1], one[1], names[1], one[1]),
			format('%I IS NULL AND %I = %s', names[1], names[1], one[1]),
			format('%I IS NULL AND %I IS NOT NULL', names[1], names[1]),
			format('%I IS NOT NULL AND %I IS NULL', names[1], names[2])];
	END LOOP;

	queries := 0;
	same := 0;
	FOREACH condition IN ARRAY conditions LOOP
		queries := queries + 3;
		same := same + compare('m', condition, forward, forward || ', ctid')::int +
			compare('m', condition, backward, backward || ', ctid DESC')::int + compare_bitmap('m', condition)::int;
	END LOOP;
	by_index := planned_as('Index Scan', format('SELECT id FROM m WHERE %s ORDER BY %s', condition, forward)) AND
		planned_as('Index Scan Backward', format('SELECT id FROM m WHERE %s ORDER BY %s', condition, backward));
END $$;

CREATE TABLE layouts (nr int, columns text[], names text[]);
INSERT INTO layouts VALUES
	(1, '{a,c}', '{a,c}'),								-- 32-byte cells, lossless
	(2, '{j,e}', '{j,e}'),								-- 16-byte cells, lossless
	(3, '{a DESC,e,j NULLS FIRST,c DESC NULLS LAST}', '{a,e,j,c}'),	-- lossless, all orders
	(4, '{g,i DESC,c,a,j}', '{g,i,c,a,j}'),				-- 64-byte cells, lossless
	(5, '{a,b}', '{a,b}'),								-- a prefix of the second column
	(6, '{b DESC,a}', '{b,a}'),
	(7, '{h,a DESC}', '{h,a}'),							-- no normalization first
	(8, '{a,h NULLS FIRST,c}', '{a,h,c}'),				-- or in the middle
	(9, '{d,a}', '{d,a}'),								-- -0.0 = 0.0
	(10, '{f DESC NULLS LAST,b}', '{f,b}'),
	(11, '{k,d DESC,a}', '{k,d,a}'),
	(12, '{e,f,h}', '{e,f,h}'),
	(13, '{l,a}', '{l,a}'),
	(14, '{g,g,g,a}', '{g,g,g,a}');						-- more than a cell holds
SELECT nr, columns, r.queries, r.queries = r.same AS same, r.by_index FROM layouts, try_index(columns, names) r ORDER BY nr;

-- Rows that were inserted into the index, and rows that are gone.
CREATE INDEX m_keep ON m USING sherman (a, b DESC, e);
DROP INDEX m_index;
SELECT fill(501, 1500);
DELETE FROM m WHERE id % 5 = 0;
UPDATE m SET a = -a, e = e + 1 WHERE id % 7 = 0;
SELECT bool_and(compare('m', c, 'a, b DESC, e', 'a, b DESC, e, ctid') AND
				compare('m', c, 'a DESC, b, e DESC', 'a DESC, b, e DESC, ctid DESC') AND compare_bitmap('m', c)) AS same
FROM unnest('{true,a = 1,a < 0,a IS NULL AND b > ''ab'',a = 2 AND b = ''abab'' AND e > ''2020-01-02'',a > -2 AND e = ''2020-01-04''}'::text[]) c;
VACUUM m;
SELECT bool_and(compare('m', c, 'a, b DESC, e', 'a, b DESC, e, ctid') AND
				compare('m', c, 'a DESC, b, e DESC', 'a DESC, b, e DESC, ctid DESC') AND compare_bitmap('m', c)) AS same
FROM unnest('{true,a = 1,a < 0,a IS NULL AND b > ''ab'',a = 2 AND b = ''abab'' AND e > ''2020-01-02'',a > -2 AND e = ''2020-01-04''}'::text[]) c;

-- An equality with an argument that cannot be normalized, before columns that are.
SET timezone = 'Europe/Berlin';
DROP INDEX m_keep;
CREATE INDEX m_dates ON m USING sherman (e, b, d);
SELECT bool_and(compare('m', c, 'e, b, d', 'e, b, d, ctid') AND
				compare('m', c, 'e DESC, b DESC, d DESC', 'e DESC, b DESC, d DESC, ctid DESC')) AS same
FROM (SELECT format('e = %L::timestamptz AND b %s %L', e, o, b) FROM m, unnest('{<,<=,=,>=,>}'::text[]) o WHERE id % 50 = 1
	  UNION ALL
	  SELECT format('e = %L::timestamptz AND b = %L AND d %s %L', e, b, o, d) FROM m, unnest('{<,<=,=,>=,>}'::text[]) o WHERE id % 50 = 2) q (c);

-- Scroll cursors: the direction changes in the middle, also far away from the leaf where it began.
CREATE FUNCTION scroll(query text, exact text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	moves int[] := '{1,5,-3,10,-8,200,-150,100,-1,1,-400,30,2000,-1,-30,10,-2000,1,3}';
	cursor refcursor;
	expected int[];
	place int := 0;
	got int;
	step int;
	move int;
BEGIN
	PERFORM set_config('enable_indexscan', 'off', true), set_config('enable_seqscan', 'on', true),
		set_config('enable_sort', 'on', true);
	EXECUTE 'SELECT array_agg(id) FROM (' || exact || ') s' INTO expected;
	PERFORM set_config('enable_indexscan', 'on', true), set_config('enable_seqscan', 'off', true),
		set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true);
	OPEN cursor SCROLL FOR EXECUTE query;
	FOREACH move IN ARRAY moves LOOP
		step := sign(move);
		FOR i IN 1..abs(move) LOOP
			IF step > 0 THEN
				FETCH NEXT FROM cursor INTO got;
			ELSE
				FETCH PRIOR FROM cursor INTO got;
			END IF;
			place := greatest(0, least(cardinality(expected) + 1, place + step));
			IF got IS DISTINCT FROM expected[place] THEN
				RAISE WARNING 'at % after %: got %, expected %', place, move, got, expected[place];
				RETURN false;
			END IF;
			EXIT WHEN got IS NULL;
		END LOOP;
	END LOOP;
	CLOSE cursor;
	RETURN true;
END $$;
SELECT scroll('SELECT id FROM m ORDER BY e, b, d', 'SELECT id FROM m ORDER BY e, b, d, ctid');
SELECT scroll('SELECT id FROM m ORDER BY e DESC, b DESC, d DESC', 'SELECT id FROM m ORDER BY e DESC, b DESC, d DESC, ctid DESC');
SELECT scroll('SELECT id FROM m WHERE e > ''2020-01-02'' AND d < 1 ORDER BY e, b, d',
			  'SELECT id FROM m WHERE e > ''2020-01-02'' AND d < 1 ORDER BY e, b, d, ctid');

-- Mark and restore: merge joins over duplicates, in a leaf and across leaves.
CREATE TABLE outer_side (id int, v int4);
CREATE TABLE inner_side (id int, v int4);
INSERT INTO outer_side SELECT i, i / 3 FROM generate_series(1, 60) i;
INSERT INTO inner_side SELECT i, i / 150 FROM generate_series(1, 3000) i;
CREATE INDEX outer_v ON outer_side USING sherman (v);
CREATE INDEX inner_v ON inner_side USING sherman (v);
ANALYZE outer_side, inner_side;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_seqscan = off;
SET enable_sort = off;
SET enable_material = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(o.id::int8 * i.id) FROM outer_side o JOIN inner_side i USING (v);
SELECT count(*), sum(o.id::int8 * i.id) FROM outer_side o JOIN inner_side i USING (v);
RESET ALL;
SET client_min_messages = warning;
SET search_path = test_multicolumn, public;
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SELECT count(*), sum(o.id::int8 * i.id) FROM outer_side o JOIN inner_side i USING (v);
RESET enable_indexscan;
RESET enable_bitmapscan;

-- Nested loops: many rescans of one scan.
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SET enable_memoize = off;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(i.id) FROM generate_series(-5, 30) g LEFT JOIN inner_side i ON i.v = g AND i.id % 2 = 0;
SELECT count(*), sum(i.id) FROM generate_series(-5, 30) g LEFT JOIN inner_side i ON i.v = g AND i.id % 2 = 0;
SELECT count(*), sum(i.id) FROM generate_series(-5, 30) g LEFT JOIN inner_side i ON i.v = g::int8 * 100000000 AND i.id % 2 = 0;

-- EXCLUDE looks with a dirty snapshot.
CREATE TABLE excluded (v int4, w text COLLATE "C", EXCLUDE USING sherman (v WITH =, w WITH =));
INSERT INTO excluded VALUES (1, 'a'), (1, 'b'), (2, 'a'), (NULL, 'a'), (NULL, 'a');
INSERT INTO excluded VALUES (1, 'b');
INSERT INTO excluded VALUES (1, 'b'), (3, 'a') ON CONFLICT DO NOTHING;
SELECT * FROM excluded ORDER BY v, w;

-- CLUSTER reads in index order with SnapshotAny.
CLUSTER inner_side USING inner_v;
SELECT count(*) FROM (SELECT v, lag(v) OVER (ORDER BY ctid) AS before FROM inner_side) s WHERE v < before;

SET client_min_messages = error;
DROP SCHEMA test_multicolumn CASCADE;

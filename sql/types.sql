--
-- Every operator class of btree's: boundary values, NULLs, both orders, each query compared with a sequential scan.
--
\getenv abs_srcdir PG_ABS_SRCDIR
\set include :abs_srcdir '/sql/include/compare.psql'
SET client_min_messages = warning;
SET jit = off;
CREATE SCHEMA test_types;
SET search_path = test_types, public;
\i :include

\set include :abs_srcdir '/sql/include/samples.psql'
\i :include

-- What later versions have beside: oid8 came with 19.
CREATE TABLE later (LIKE samples);
INSERT INTO later VALUES ('oid8_ops', 'oid8', '{0,1,255,256,4294967295,4294967296,9223372036854775807,9223372036854775808,18446744073709551615}');
-- Nothing is left out.
SELECT opcname FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod
WHERE a.amname = 'sherman' AND opcname::text NOT IN (SELECT class FROM samples UNION SELECT class FROM later);
SELECT count(*) FILTER (WHERE opcname::text NOT IN (SELECT class FROM later)) AS classes, bool_and(amvalidate(c.oid)) AS valid
FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod WHERE a.amname = 'sherman';

-- Fills a table for one sample: half of the rows before the index is built, half after; each value 12 times.
CREATE FUNCTION fill(sample samples, index_column text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	DROP TABLE IF EXISTS t;
	EXECUTE format('CREATE TABLE t (id int, v %s)', sample.type);
	EXECUTE format('INSERT INTO t SELECT i, $1[1 + (i * 7919 %% (cardinality($1) + 1))]::%s FROM generate_series(1, 6 * (cardinality($1) + 1)) i',
				   regexp_replace(sample.type, ' COLLATE.*', '')) USING sample.lits;
	EXECUTE format('CREATE INDEX t_v ON t USING sherman (v %s %s)', sample.class, index_column);
	EXECUTE format('INSERT INTO t SELECT i + 1000, $1[1 + (i * 104729 %% (cardinality($1) + 1))]::%s FROM generate_series(1, 6 * (cardinality($1) + 1)) i',
				   regexp_replace(sample.type, ' COLLATE.*', '')) USING sample.lits;
END $$;

-- All operators of the class with all values, in the index's order and backwards; NULL tests; bitmap scans.
CREATE FUNCTION try_class(sample samples, index_column text, OUT queries int, OUT same int, OUT by_index boolean)
LANGUAGE plpgsql AS $$
DECLARE
	operators text[];
	operator text;
	forward text;
	backward text;
	conditions text[] := '{"true","v IS NULL","v IS NOT NULL"}';
	condition text;
	type text := regexp_replace(sample.type, ' COLLATE.*', '');
	collated text := coalesce(substring(sample.type FROM ' COLLATE.*'), '');
	literal text;
BEGIN
	PERFORM fill(sample, index_column);
	SELECT array_agg(format('OPERATOR(pg_catalog.%s)', o.oprname) ORDER BY amopstrategy) INTO operators
	FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod
		JOIN pg_amop m ON m.amopfamily = c.opcfamily AND amoplefttype = opcintype AND amoprighttype = opcintype
		JOIN pg_operator o ON o.oid = amopopr
	WHERE a.amname = 'sherman' AND c.opcname = sample.class;
	forward := 'v USING ' || operators[CASE WHEN index_column ~ 'DESC' THEN 5 ELSE 1 END] ||
		CASE WHEN index_column ~ 'FIRST' THEN ' NULLS FIRST' ELSE ' NULLS LAST' END;
	backward := 'v USING ' || operators[CASE WHEN index_column ~ 'DESC' THEN 1 ELSE 5 END] ||
		CASE WHEN index_column ~ 'FIRST' THEN ' NULLS LAST' ELSE ' NULLS FIRST' END;
	FOREACH literal IN ARRAY sample.lits LOOP
		FOREACH operator IN ARRAY operators LOOP
			conditions := conditions || format('v %s %L::%s%s', operator, literal, type, collated);
		END LOOP;
	END LOOP;

	queries := 0;
	same := 0;
	FOREACH condition IN ARRAY conditions LOOP
		queries := queries + 3;
		same := same + compare('t', condition, forward, forward || ', ctid')::int +
			compare('t', condition, backward, backward || ', ctid DESC')::int +
			compare_bitmap('t', condition)::int;
	END LOOP;
	condition := format('v %s %L::%s%s', operators[2], sample.lits[1], type, collated);
	by_index := planned_as('Index Scan', format('SELECT id FROM t WHERE %s ORDER BY %s', condition, forward)) AND
		planned_as('Index Scan Backward', format('SELECT id FROM t WHERE %s ORDER BY %s', condition, backward)) AND
		planned_as('Bitmap Index Scan', format('SELECT id FROM t WHERE %s', condition));
END $$;

SELECT class, type, r.queries, r.same = r.queries AS same, r.by_index
FROM samples s, try_class(s, 'ASC NULLS LAST') r ORDER BY class COLLATE "C", type COLLATE "C";
SELECT class, type, r.queries, r.same = r.queries AS same, r.by_index
FROM samples s, try_class(s, 'DESC NULLS LAST') r ORDER BY class COLLATE "C", type COLLATE "C";
SELECT count(*), sum(r.queries) AS queries, bool_and(r.same = r.queries) AS same, bool_and(r.by_index) AS by_index
FROM samples s, try_class(s, 'ASC NULLS FIRST') r;
SELECT count(*), sum(r.queries) AS queries, bool_and(r.same = r.queries) AS same, bool_and(r.by_index) AS by_index
FROM samples s, try_class(s, 'DESC NULLS FIRST') r;
SELECT coalesce(bool_and(r.same = r.queries AND r.by_index), true) AS same
FROM later l, unnest('{ASC NULLS LAST,DESC NULLS FIRST}'::text[]) d, try_class(ROW(l.class, l.type, l.lits)::samples, d) r WHERE to_regtype(l.type) IS NOT NULL;

--
-- Arguments of another type of the family, also beyond the column's range.
--
CREATE FUNCTION try_arguments(column_type text, lits text[], arguments text[], index_column text, OUT queries int, OUT same int)
LANGUAGE plpgsql AS $$
DECLARE
	operator text;
	argument text;
	condition text;
	forward text := 'v ' || index_column;
	backward text := CASE index_column WHEN 'ASC' THEN 'v DESC' ELSE 'v ASC' END;
BEGIN
	PERFORM fill(ROW((SELECT opcname FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod
					  WHERE amname = 'sherman' AND opcdefault AND opcintype = split_part(column_type, ' ', 1)::regtype),
					 column_type, lits)::samples, index_column);
	queries := 0;
	same := 0;
	FOREACH argument IN ARRAY arguments LOOP
		FOREACH operator IN ARRAY '{<,<=,=,>=,>}'::text[] LOOP
			condition := format('v %s %s', operator, argument);
			queries := queries + 2;
			same := same + compare('t', condition, forward, forward || ', ctid')::int +
				compare('t', condition, backward, backward || ', ctid DESC')::int;
		END LOOP;
		condition := format('v >= %s AND v < %s', argument, arguments[1 + queries % cardinality(arguments)]);
		queries := queries + 1;
		same := same + compare('t', condition, forward, forward || ', ctid')::int;
	END LOOP;
END $$;

SELECT c.*, d AS direction, queries, queries = same AS same
FROM (VALUES ('int2', 'int4'), ('int2', 'int8'), ('int4', 'int2'), ('int4', 'int8'), ('int8', 'int2'), ('int8', 'int4')) c (v, argument),
	unnest('{ASC,DESC}'::text[]) d,
	try_arguments(v, CASE v WHEN 'int2' THEN '{-32768,-1,0,1,32767}'::text[]
							WHEN 'int4' THEN '{-2147483648,-32769,-32768,-1,0,1,32767,32768,2147483647}'
							ELSE '{-9223372036854775808,-2147483649,-32769,-1,0,1,32768,2147483648,9223372036854775807}' END,
				  CASE argument WHEN 'int2' THEN '{(-32768)::int2,0::int2,32767::int2}'::text[]
								WHEN 'int4' THEN '{(-2147483648)::int4,(-32769)::int4,(-32768)::int4,0::int4,32767::int4,32768::int4,2147483647::int4}'
								ELSE '{(-9223372036854775808)::int8,(-2147483649)::int8,(-2147483648)::int8,(-32769)::int8,0::int8,32768::int8,2147483648::int8,9223372036854775807::int8}' END, d);
SELECT c.*, d AS direction, queries, queries = same AS same
FROM (VALUES ('float4', 'float8'), ('float8', 'float4')) c (v, argument), unnest('{ASC,DESC}'::text[]) d,
	try_arguments(v, '{-Infinity,-1.1,-0,0,1e-40,1.1,3e38,Infinity,NaN}',
				  CASE argument WHEN 'float4' THEN '{''-Infinity''::float4,1.1::float4,0::float4,''-0''::float4,''NaN''::float4,''Infinity''::float4}'::text[]
								ELSE '{1.1::float8,(-1.1)::float8,1e300::float8,-1e300::float8,1e-300::float8,''-0''::float8,''NaN''::float8,''Infinity''::float8}' END, d);
SET timezone = 'Europe/Berlin';
SELECT c.*, d AS direction, queries, queries = same AS same
FROM (VALUES ('date', 'timestamp'), ('date', 'timestamptz'), ('timestamp', 'date'), ('timestamp', 'timestamptz'),
	  ('timestamptz', 'date'), ('timestamptz', 'timestamp')) c (v, argument), unnest('{ASC,DESC}'::text[]) d,
	try_arguments(v, CASE v WHEN 'date' THEN '{-infinity,infinity,2020-03-28,2020-03-29,2020-03-30,5874897-12-31}'::text[]
							ELSE '{-infinity,infinity,"2020-03-28 22:00","2020-03-29 00:00","2020-03-29 01:30","2020-03-29 23:00"}' END,
				  CASE argument WHEN 'date' THEN '{''-infinity''::date,''infinity''::date,''2020-03-28''::date,''2020-03-29''::date,''5874897-12-31''::date}'::text[]
								WHEN 'timestamp' THEN '{''-infinity''::timestamp,''infinity''::timestamp,''2020-03-28 22:00''::timestamp,''2020-03-29 00:00''::timestamp}'
								ELSE '{''-infinity''::timestamptz,''infinity''::timestamptz,''2020-03-28 22:00''::timestamptz,''2020-03-29 00:00''::timestamptz}' END, d);
SELECT c.*, d AS direction, queries, queries = same AS same
FROM (VALUES ('text COLLATE "C"', 'name'), ('name', 'text')) c (v, argument), unnest('{ASC,DESC}'::text[]) d,
	try_arguments(v, '{"",a,A,abcdefg,abcdefgh,abcdefghi,abcdefghj,abcdefghabcdefgh}',
				  CASE argument WHEN 'name' THEN '{''''::name,''a''::name,''abcdefgh''::name,''abcdefghi''::name,''zz''::name}'::text[]
								ELSE '{''''::text,''a''::text,''abcdefgh''::text,''abcdefghi''::text,''zz''::text}' END, d);

--
-- numeric's normalized form, hard: neighbors in every digit.
--
CREATE TABLE numbers (id int GENERATED ALWAYS AS IDENTITY, v numeric);
INSERT INTO numbers (v)
SELECT sign * (mantissa * (10::numeric ^ e) + d * (10::numeric ^ (e - f)))
FROM generate_series(-1, 1, 2) sign, unnest('{1,9,1234,9999,10000,12345678,99999999999}'::numeric[]) mantissa,
	unnest('{-13,-12,-5,-4,-1,0,1,3,4,8}'::int[]) e, unnest('{-1,0,1}'::int[]) d, unnest('{1,4,13}'::int[]) f;
CREATE INDEX numbers_v ON numbers USING sherman (v);
SELECT count(*) AS rows, bool_and(compare('numbers', c, 'v', 'v, ctid')) AS same
FROM (SELECT 'true' UNION ALL SELECT format('v %s %s', o, v) FROM numbers, unnest('{=,<,>=}'::text[]) o WHERE id % 37 = 0) q (c);

--
-- A collation where different strings are equal: = finds them all, pattern operators are refused as with btree.
--
CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE blind (id int, v text COLLATE blind);
INSERT INTO blind SELECT i, (ARRAY['a', 'A', 'b', 'B', 'é', 'É', 'e'])[1 + i % 7] FROM generate_series(1, 70) i;
CREATE INDEX blind_pattern ON blind USING sherman (v text_pattern_ops);
CREATE INDEX blind_v ON blind USING sherman (v);
SELECT c, compare('blind', c, 'v', 'v, ctid') AS same FROM unnest('{v = ''A'',v > ''a'',v <= ''E'',"v = ANY (ARRAY[''a'', ''A'', ''B''])",true}'::text[]) c;

--
-- Long keys: up to the limit, and beyond it.
--
CREATE TABLE long (id int, v text COLLATE "C");
ALTER TABLE long ALTER v SET STORAGE EXTERNAL;
CREATE INDEX long_v ON long USING sherman (v);
INSERT INTO long SELECT i, repeat(chr(97 + i % 3), 8) || repeat(chr(97 + i % 7), i * 13) FROM generate_series(1, 200) i;
SELECT bool_and(compare('long', c, 'v', 'v, ctid')) AS same
FROM (SELECT 'true' UNION ALL SELECT format('v %s %L', o, v) FROM long, unnest('{=,<,>=}'::text[]) o WHERE id % 10 = 0) q (c);
INSERT INTO long VALUES (1000, repeat('x', 2690));
INSERT INTO long VALUES (1001, repeat('x', 2695));
ALTER TABLE long ALTER v SET STORAGE EXTENDED;
INSERT INTO long SELECT 1002, string_agg(md5(i::text), '') FROM generate_series(1, 100) i;
INSERT INTO long VALUES (1003, repeat('x', 100000));
SELECT id FROM long WHERE v = repeat('x', 100000);

SET client_min_messages = error;
DROP SCHEMA test_types CASCADE;

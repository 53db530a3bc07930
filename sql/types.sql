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

CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
ALTER TYPE mood ADD VALUE 'bored' BEFORE 'ok';
CREATE TYPE pair AS (a int, b text);

-- What to store for each class: a column type with its collation, and values.
CREATE TABLE samples (class text, type text, lits text[]);
INSERT INTO samples VALUES
	('array_ops', 'int[]', '{"{}","{1}","{1,2}","{1,NULL}","{2}","{-5,7,8}","{{1,2},{3,4}}","{NULL}"}'),
	('array_ops', 'text[] COLLATE "C"', '{"{}","{a}","{a,b}","{A}","{aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,b}"}'),
	('bit_ops', 'bit(12)', '{000000000000,111111111111,101010101010,000000000001,100000000000}'),
	('bool_ops', 'bool', '{t,f}'),
	('bpchar_ops', 'char(12) COLLATE "C"', '{"","a","a b","ab","abcdefghijkl","abcdefgh","abcdefghi","Z","é"}'),
	('bpchar_ops', 'char(30) COLLATE "en-x-icu"', '{"","a","a b","ab","B","abcdefghijklmnopqrstuvwxyz","é","É"}'),
	('bpchar_pattern_ops', 'char(12)', '{"","a","a b","ab","abcdefghijkl","abcdefgh","abcdefghi","Z","é"}'),
	('bytea_ops', 'bytea', '{"","\\\\x00","\\\\x0000","\\\\x01","\\\\xff","\\\\x0102030405060708","\\\\x010203040506070800","\\\\x010203040506070801","\\\\xffffffffffffffffffffffffffffffffffff"}'),
	('char_ops', '"char"', '{"",a,b,A,~,é}'),
	('cidr_ops', 'cidr', '{10.0.0.0/8,10.0.0.0/16,10.1.0.0/16,::/0,0.0.0.0/0,ffff::/16,192.168.1.1/32}'),
	('date_ops', 'date', '{-infinity,infinity,"4713-01-01 BC",5874897-12-31,2000-01-01,1999-12-31,2000-01-02}'),
	('enum_ops', 'mood', '{sad,bored,ok,happy}'),
	('float4_ops', 'float4', '{-Infinity,-3.4e38,-1,-1e-45,-0,0,1e-45,1,1.5,3.4e38,Infinity,NaN}'),
	('float8_ops', 'float8', '{-Infinity,-1.7e308,-1,-4.9e-324,-0,0,4.9e-324,0.1,1,1.7e308,Infinity,NaN}'),
	('inet_ops', 'inet', '{10.0.0.1,10.0.0.1/8,10.0.0.2/8,10.0.0.2,10.0.0.2/9,10.128.0.2/9,10.128.0.2/8,10.128.0.2/10,10.0.0.3/31,10.0.0.2/31,10.0.0.2/0,::1,::,::/0,255.255.255.255,ffff::1/16,ffff::1/17,ffff::2/16,ffff:8000::1/17,fe80::1:2:3,fe80::1:2:4/127,0.0.0.0,0.0.0.0/0}'),
	('int2_ops', 'int2', '{-32768,-32767,-256,-1,0,1,255,256,32766,32767}'),
	('int4_ops', 'int4', '{-2147483648,-65536,-1,0,1,255,256,65535,2147483647}'),
	('int8_ops', 'int8', '{-9223372036854775808,-4294967296,-1,0,1,255,4294967295,4294967296,9223372036854775807}'),
	('interval_ops', 'interval', '{0,"1 day","24 hours","1 mon","30 days","29 days","-1 mon","-178000000 years","178000000 years","1 us","-1 us","2000000000 days","-2000000000 days 1 us"}'),
	('jsonb_ops', 'jsonb', '{"null","1","1.0","true","\"a\"","[]","[1,2]","{}","{\"a\":1}","{\"a\":2,\"b\":[1,2,3,4,5,6,7,8,9]}"}'),
	('macaddr8_ops', 'macaddr8', '{00:00:00:00:00:00:00:00,ff:ff:ff:ff:ff:ff:ff:ff,08:00:2b:01:02:03:04:05,7f:ff:ff:ff:00:00:00:00,80:00:00:00:00:00:00:00,00:00:00:00:80:00:00:00}'),
	('macaddr_ops', 'macaddr', '{00:00:00:00:00:00,ff:ff:ff:ff:ff:ff,08:00:2b:01:02:03,08:00:2b:81:02:03,80:00:00:00:00:00,00:00:00:00:00:01}'),
	('money_ops', 'money', '{-92233720368547758.08,-0.01,0,0.01,1,92233720368547758.07}'),
	('multirange_ops', 'int4multirange', '{"{}","{[1,2)}","{[1,2),[5,9)}","{(,)}","{[3,)}"}'),
	('name_ops', 'name', '{"",a,ab,B,abcdefgh,abcdefghi,abcdefghij,zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz,é}'),
	('name_ops', 'name COLLATE "en-x-icu"', '{"",a,ab,B,abcdefgh,abcdefghi,é,É}'),
	('numeric_ops', 'numeric', '{NaN,Infinity,-Infinity,0,0.00,1,1.0,1.000000000000000000000001,-1,-1.000000000000000000000001,1e-20,-1e-20,9999,10000,10001,-9999,-10000,0.0001,0.00010001,12345678901234567890.123456789,12345678901234567890.123456788,-12345678901234567890.123456789,1e1000,-1e1000,1e-1000,-1e-1000,1e70000,-1e70000,2e70000}'),
	('oid_ops', 'oid', '{0,1,2147483647,2147483648,4294967295}'),
	('oidvector_ops', 'oidvector', '{"","1","1 2","2","4294967295 0","1 2 3 4 5 6 7 8"}'),
	('pg_lsn_ops', 'pg_lsn', '{0/0,0/1,0/FFFFFFFF,1/0,FFFFFFFF/FFFFFFFF,7FFFFFFF/FFFFFFFF,80000000/0}'),
	('range_ops', 'int4range', '{empty,"[1,2)","[1,5)","(,)","(,3)","[3,)"}'),
	('range_ops', 'numrange', '{empty,"[1.0,2)","[1,2]","[1.00,2.0]","(,)","(0.1,3)"}'),
	('record_image_ops', 'pair', '{"(1,a)","(1,)","(,a)","(-1,b)","(2,aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa)"}'),
	('record_ops', 'pair', '{"(1,a)","(1,)","(,a)","(-1,b)","(2,aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa)"}'),
	('text_ops', 'text COLLATE "C"', '{"",a,A,ab,abcdefg,abcdefgh,abcdefghi,abcdefghj,abcdefghabcdefghabcdefghabcdefgh,abcdefghabcdefghabcdefghabcdefgi,é,zzz," a"}'),
	('text_ops', 'text COLLATE "en-x-icu"', '{"",a,A,b,B,é,É,"a b",ab,abcdefghabcdefghabcdefghabcdefgh,abcdefghabcdefghabcdefghabcdefgi,abcdefghabcdefghabcdefghabcdefghabcdefghabcdefgh}'),
	('text_ops', 'text', '{"",a,A,b,B,é,É,"a b",ab,abcdefghabcdefghabcdefghabcdefgh,abcdefghabcdefghabcdefghabcdefgi}'),
	('text_pattern_ops', 'text', '{"",a,A,b,B,é,É,"a b",ab,abcdefgh,abcdefghi,abcdefghabcdefghabcdefghabcdefgi}'),
	('tid_ops', 'tid', '{"(0,0)","(0,1)","(1,0)","(4294967295,65535)","(2147483648,1)","(2147483647,65535)"}'),
	('time_ops', 'time', '{00:00,24:00,23:59:59.999999,12:00,00:00:00.000001}'),
	('timestamp_ops', 'timestamp', '{-infinity,infinity,"4713-01-01 BC","294276-12-31 23:59:59.999999","2000-01-01","1999-12-31 23:59:59.999999"}'),
	('timestamptz_ops', 'timestamptz', '{-infinity,infinity,"4713-01-02 BC +0","294276-12-30 23:59:59.999999+0","2000-01-01","1999-12-31 23:59:59.999999"}'),
	('timetz_ops', 'timetz', '{00:00+0,24:00-12,12:00+1,12:00+2,11:00+1,23:59:59.999999+15}'),
	('tsquery_ops', 'tsquery', '{"","a","a & b","a | b","!a","aaaaaaaaaaaaa <-> bbbbbbbbbbbbbbbbbbbbbbbb"}'),
	('tsvector_ops', 'tsvector', '{"","a","a b","a:1","a:1A b:2","aaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbb"}'),
	('uuid_ops', 'uuid', '{00000000-0000-0000-0000-000000000000,ffffffff-ffff-ffff-ffff-ffffffffffff,00000000-0000-0000-0000-000000000001,80000000-0000-0000-8000-000000000000,7fffffff-ffff-ffff-ffff-ffffffffffff}'),
	('varbit_ops', 'varbit', '{"",0,1,00,01,10,11111111,111111110,11111111111111111111111111111111111111111111111111111}'),
	('varchar_ops', 'varchar(40) COLLATE "C"', '{"",a,A,ab,abcdefgh,abcdefghi,abcdefghj}'),
	('varchar_pattern_ops', 'varchar', '{"",a,A,ab,abcdefgh,abcdefghi,abcdefghj,é}'),
	('xid8_ops', 'xid8', '{0,1,4294967296,9223372036854775807,9223372036854775808,18446744073709551615}');

-- Nothing is left out.
SELECT opcname FROM pg_opclass c JOIN pg_am a ON a.oid = c.opcmethod
WHERE a.amname = 'sherman' AND opcname::text NOT IN (SELECT class FROM samples);
SELECT count(*) AS classes, bool_and(amvalidate(c.oid)) AS valid
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

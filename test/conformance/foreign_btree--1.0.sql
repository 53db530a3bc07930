CREATE FUNCTION foreign_btree_handler(internal) RETURNS index_am_handler AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

CREATE ACCESS METHOD foreign_btree TYPE INDEX HANDLER foreign_btree_handler;

-- Its operator classes are btree's, member by member, as those of sherman are (am/keys/mirror.c).
CREATE FUNCTION foreign_btree_mirror_opfamily(family_schema name, family_name name)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $mirror$
DECLARE
	own_schema name := family_schema;
	source oid;
	target oid;
	class record;
	members text;
BEGIN
	IF family_schema = 'pg_catalog' THEN
		SELECT n.nspname INTO own_schema
		FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
		WHERE e.extname = 'foreign_btree';
	END IF;

	SELECT f.oid INTO source
	FROM pg_opfamily f JOIN pg_am a ON a.oid = f.opfmethod JOIN pg_namespace n ON n.oid = f.opfnamespace
	WHERE a.amname = 'btree' AND n.nspname = family_schema AND f.opfname = family_name;
	IF source IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'undefined_object',
			MESSAGE = format('operator family "%s.%s" does not exist for access method "btree"', family_schema, family_name);
	END IF;

	FOR i IN 1..2 LOOP
		SELECT f.oid INTO target
		FROM pg_opfamily f JOIN pg_am a ON a.oid = f.opfmethod JOIN pg_namespace n ON n.oid = f.opfnamespace
		WHERE a.amname = 'foreign_btree' AND n.nspname = own_schema AND f.opfname = family_name;
		EXIT WHEN target IS NOT NULL;
		EXECUTE format('CREATE OPERATOR FAMILY %I.%I USING foreign_btree', own_schema, family_name);
	END LOOP;

	-- One class after the other, each with the members of its own type; then the members of two types.
	FOR class IN
		SELECT c.opcname, c.opcintype, c.opcdefault FROM pg_opclass c
		WHERE c.opcfamily = source
			AND NOT EXISTS (SELECT FROM pg_opclass o WHERE o.opcfamily = target AND o.opcname = c.opcname)
		UNION ALL
		SELECT NULL, NULL, NULL
		ORDER BY 2 NULLS LAST, 3 DESC, 1
	LOOP
		SELECT string_agg(item, ', ') INTO members
		FROM (
			SELECT format('OPERATOR %s %I.%s (%s, %s)', amopstrategy, n.nspname, o.oprname,
						  amoplefttype::regtype, amoprighttype::regtype) AS item
			FROM pg_amop m JOIN pg_operator o ON o.oid = m.amopopr JOIN pg_namespace n ON n.oid = o.oprnamespace
			WHERE m.amopfamily = source
				AND (class.opcname IS NULL OR (amoplefttype = class.opcintype AND amoprighttype = class.opcintype))
				AND NOT EXISTS (
					SELECT FROM pg_amop t
					WHERE t.amopfamily = target AND t.amopstrategy = m.amopstrategy
						AND t.amoplefttype = m.amoplefttype AND t.amoprighttype = m.amoprighttype)
			UNION ALL
			SELECT format('FUNCTION %s (%s, %s) %s', amprocnum, amproclefttype::regtype, amprocrighttype::regtype,
						  amproc::oid::regprocedure)
			FROM pg_amproc m
			WHERE m.amprocfamily = source
				AND (class.opcname IS NULL OR (amproclefttype = class.opcintype AND amprocrighttype = class.opcintype))
				AND NOT EXISTS (
					SELECT FROM pg_amproc t
					WHERE t.amprocfamily = target AND t.amprocnum = m.amprocnum
						AND t.amproclefttype = m.amproclefttype AND t.amprocrighttype = m.amprocrighttype)) s;

		IF class.opcname IS NOT NULL THEN
			-- A class that shares its type with an earlier one (varchar_ops, text_ops) finds its members there.
			EXECUTE format('CREATE OPERATOR CLASS %I.%I %s FOR TYPE %s USING foreign_btree FAMILY %I.%I AS %s',
						   own_schema, class.opcname, CASE WHEN class.opcdefault THEN 'DEFAULT' ELSE '' END,
						   class.opcintype::regtype, own_schema, family_name,
						   coalesce(members, format('STORAGE %s', class.opcintype::regtype)));
		ELSIF members IS NOT NULL THEN
			EXECUTE format('ALTER OPERATOR FAMILY %I.%I USING foreign_btree ADD %s', own_schema, family_name, members);
		END IF;
	END LOOP;
END
$mirror$;

DO $classes$
BEGIN
	PERFORM @extschema@.foreign_btree_mirror_opfamily(n.nspname, f.opfname)
	FROM pg_catalog.pg_opfamily f
		JOIN pg_catalog.pg_am a ON a.oid = f.opfmethod
		JOIN pg_catalog.pg_namespace n ON n.oid = f.opfnamespace
	WHERE a.amname = 'btree' AND n.nspname = 'pg_catalog';
END
$classes$;

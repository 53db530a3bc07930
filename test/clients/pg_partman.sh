# pg_partman: sherman indexes of a partitioned table and of its template, maintenance that makes partitions and drops old ones, and data moved into them.
sql "CREATE SCHEMA partman" "CREATE EXTENSION pg_partman SCHEMA partman" \
	"CREATE TABLE measure (at timestamptz NOT NULL, sensor int NOT NULL, number uuid DEFAULT gen_random_uuid(), value float8) PARTITION BY RANGE (at)" \
	"CREATE INDEX measure_sensor ON measure USING sherman (sensor, at)" "CREATE INDEX measure_number ON measure USING sherman (number)" \
	"CREATE TABLE template (LIKE measure)" "CREATE UNIQUE INDEX template_u ON template USING sherman (number, at)" \
	"SELECT partman.create_parent('public.measure', 'at', 'native', 'daily', p_premake := 3, p_template_table := 'public.template', p_start_partition := (now() - interval '10 days')::text)"
sql "INSERT INTO measure (at, sensor, value) SELECT now() - n * interval '2 minutes', n % 40, random() FROM generate_series(1, 6000) n"
sql "INSERT INTO measure (at, sensor) VALUES (now() + interval '30 days', 1), (now() + interval '31 days', 2)"
verify 46
# What went into the default partition goes into one of its own.
sql "CALL partman.partition_data_proc('public.measure')" "CALL partman.run_maintenance_proc()"
verify 40+
sql "UPDATE partman.part_config SET retention = '5 days', retention_keep_table = false, premake = 5, infinite_time_partitions = true" "CALL partman.run_maintenance_proc()"
is 'rows behind the retention' "$(sql "SELECT count(*) FROM measure WHERE at < now() - interval '7 days'")" 0
verify 20+
is 'methods of all indexes of partitions' "$(sql "SELECT string_agg(DISTINCT amname, ',') FROM pg_inherits JOIN pg_index ON indrelid = inhrelid JOIN pg_class i ON i.oid = indexrelid JOIN pg_am a ON a.oid = relam WHERE inhparent = 'measure'::regclass")" sherman
sql "CREATE TABLE target (LIKE measure INCLUDING INDEXES)" "SELECT partman.undo_partition('public.measure', p_batch_count := 20, p_target_table := 'public.target', p_keep_table := false)"
is 'rows of partitions that were undone' "$(sql "SELECT count(*) > 1000 FROM target")" t
verify 2
# A primary key of the template, which pg_partman makes anew in each partition, without its options.
sql "CREATE TABLE log (no bigint NOT NULL, at timestamptz NOT NULL) PARTITION BY RANGE (at)" "CREATE TABLE log_template (LIKE log, PRIMARY KEY (no) WITH (sherman))" \
	"SELECT partman.create_parent('public.log', 'at', 'native', 'daily', p_premake := 1, p_template_table := 'public.log_template')"
is 'methods of keys of partitions' "$(sql "SELECT string_agg(DISTINCT amname, ',') FROM pg_inherits JOIN pg_index ON indrelid = inhrelid JOIN pg_class i ON i.oid = indexrelid JOIN pg_am a ON a.oid = relam WHERE inhparent = 'log'::regclass")" btree
verify 3

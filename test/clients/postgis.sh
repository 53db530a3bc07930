# PostGIS: geometry and geography by their classes of btree, which sherman mirrors, beside GiST indexes; what has no such class is refused as by btree.
sql "CREATE EXTENSION postgis" "CREATE TABLE place (id int PRIMARY KEY WITH (sherman), at geometry(Point, 4326), around geography, name text)" \
	"INSERT INTO place SELECT n, ST_SetSRID(ST_MakePoint(n % 180, n % 90), 4326), ST_SetSRID(ST_MakePoint(n % 90, n % 45), 4326)::geography, 'place ' || n FROM generate_series(1, 3000) n" \
	"CREATE INDEX place_at ON place USING sherman (at)" "CREATE INDEX place_around ON place USING sherman (around)" "CREATE INDEX place_gist ON place USING gist (at)" \
	"CREATE INDEX place_x ON place USING sherman (ST_X(at), ST_Y(at))" "UPDATE place SET at = ST_SetSRID(ST_MakePoint(id % 11, 1), 4326) WHERE id % 5 = 0" "ANALYZE place"
is 'points by sherman and by GiST' "$(sql "SET enable_seqscan = off" "SELECT count(*) FROM place WHERE at = 'SRID=4326;POINT(5 1)'")" "$(sql "SELECT count(*) FROM place WHERE ST_AsText(at) = 'POINT(5 1)'")"
is 'a search by distance beside them' "$(sql "SELECT count(*) > 0 FROM place WHERE at && ST_MakeEnvelope(0, 0, 10, 10, 4326)")" t
is 'places in order' "$(sql "SET enable_seqscan = off; SET enable_sort = off" "SELECT md5(string_agg(a, ',')) FROM (SELECT ST_AsText(at) a FROM place ORDER BY at, id) s" )" \
	"$(sql "SET enable_indexscan = off; SET enable_indexonlyscan = off" "SELECT md5(string_agg(a, ',')) FROM (SELECT ST_AsText(at) a FROM place ORDER BY at, id) s")"
fails_with 'operator class "gist_geometry_ops_2d" does not exist for access method "sherman"' sql "CREATE INDEX ON place USING sherman (at gist_geometry_ops_2d)"
fails_with 'data type box2d has no default operator class for access method "sherman"' sql "CREATE INDEX ON place USING sherman (box2d(at))"
is 'distinct places' "$(sql "SELECT count(DISTINCT at) FROM place")" "$(sql "SELECT count(DISTINCT ST_AsText(at)) FROM place")"
verify 4

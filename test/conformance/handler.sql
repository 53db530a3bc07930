CREATE FUNCTION foreign_btree_handler(internal) RETURNS index_am_handler AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

CREATE ACCESS METHOD foreign_btree TYPE INDEX HANDLER foreign_btree_handler;


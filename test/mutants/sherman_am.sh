# Mutants of sherman_am.c: its safeguards, removed one at a time (test/README). Sourced.

mutate no_order sql/plans shermanhandler \
	's/amcanorder = true/amcanorder = false/'
mutate no_arrays sql/arrays shermanhandler \
	's/amsearcharray = true/amsearcharray = false/'
mutate no_search_for_null sql/plans shermanhandler \
	's/amsearchnulls = true/amsearchnulls = false/'
mutate no_leading_column_no_use sql/plans shermanhandler \
	's/amoptionalkey = true/amoptionalkey = false/'
mutate no_included_columns sql/index_only shermanhandler \
	's/amcaninclude = true/amcaninclude = false/'
mutate no_clustering sql/ddl shermanhandler \
	's/amclusterable = true/amclusterable = false/'
mutate no_predicate_locks specs/serializable shermanhandler \
	's/ampredlocks = true/ampredlocks = false/'
mutate no_parallel_scan sql/parallel shermanhandler \
	's/amcanparallel = true/amcanparallel = false/'

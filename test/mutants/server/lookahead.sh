# Safeguards of reading ahead in nested loops. Sourced by script/test long mutations-server.

mutate locked_rows_read_ahead t/078_lookahead may_be_read_ahead \
	's/\t\tcase T_LockRows:\n//'
mutate volatile_rows_read_ahead t/078_lookahead may_be_read_ahead \
	's/return !contain_volatile_functions\(\(Node \*\) plan->targetlist\) &&/return/'
mutate rows_ahead_outlive_a_rescan t/078_lookahead lookahead_rescan \
	's/\tlookahead_restart\(\(Lookahead \*\) node\);\n//'
mutate many_rows_read_for_one t/078_lookahead lookahead_restart \
	's/state->wanted = 1;/state->wanted = LOOKAHEAD_ROWS_MAX;/'
mutate leaves_ahead_not_fetched t/078_lookahead read_rows \
	's/\t\tsherman_prefetch_go\(state->prefetch\);\n//'
mutate lookahead_fetches_one_leaf t/078_lookahead sherman_prefetch_note \
	's/\tprefetch->count\+\+;/\tprefetch->count = 1;/'
mutate lookahead_notes_for_ever t/078_lookahead sherman_prefetch_go \
	's/\tprefetch->count = 0;\n\}/}/'

# Safeguards of reading ahead in nested loops. Sourced by script/test long mutations-server.

mutate locked_rows_read_ahead t/078_lookahead am/planner/lookahead_plan.c \
	's/\t\tcase T_LockRows:\n//'
mutate volatile_rows_read_ahead t/078_lookahead am/planner/lookahead_plan.c \
	's/return !contain_volatile_functions\(\(Node \*\) plan->targetlist\) &&/return/'
mutate rows_ahead_outlive_a_rescan t/078_lookahead am/planner/lookahead.c \
	's/\tlookahead_restart\(\(Lookahead \*\) node\);\n//'
mutate many_rows_read_for_one t/078_lookahead am/planner/lookahead.c \
	's/state->wanted = 1;/state->wanted = LOOKAHEAD_ROWS_MAX;/'
mutate leaves_ahead_not_fetched t/078_lookahead am/planner/lookahead.c \
	's/\t\tsherman_prefetch_go\(state->prefetch\);\n//'
mutate lookahead_fetches_one_leaf t/078_lookahead am/access/prefetch.c \
	's/\tprefetch->count\+\+;/\tprefetch->count = 1;/'
mutate lookahead_notes_for_ever t/078_lookahead am/access/prefetch.c \
	's/\tprefetch->count = 0;\n\}/}/'

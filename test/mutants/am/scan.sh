# Mutants of am/scan: its safeguards, removed one at a time (test/README). Sourced.

mutate nothing_is_skipped sql/skip scan_skip_look \
	's/skip->jump = !last && skip->run >= skip->patience;/skip->jump = last \&\& false;/'
mutate elements_are_skipped sql/skip go_behind \
	's/skip->element\[column\] \+ step/skip->element[column] + 2 * step/'
mutate other_values_taken_for_the_same sql/skip same_values \
	's/return false;/break;/'
mutate searches_not_counted sql/skip am/scan/scan.c:seek \
	's/\t\tcompat_count_search\(scan\);\n//'
mutate bitmap_begins_with_one_leaf t/082_explain scan.c:seek \
	's/state->tids != NULL && state->skip == NULL/state->tids != NULL \&\& state->tids == NULL/'

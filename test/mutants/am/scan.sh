# Mutants of am/scan: its safeguards, removed one at a time (test/README). Sourced.

mutate nothing_is_skipped sql/skip scan_skip_look \
	's/skip->jump = !last && skip->run >= skip->patience;/skip->jump = last \&\& false;/'
mutate elements_are_skipped sql/skip go_behind \
	's/skip->element\[column\] \+ step/skip->element[column] + 2 * step/'
mutate other_values_taken_for_the_same sql/skip same_values \
	's/return false;/break;/'
mutate searches_not_counted sql/skip count_search \
	's/\t\tcompat_count_search\(scan\);/\t\t;/'
mutate bitmap_begins_with_one_leaf t/082_explain scan.c:seek \
	's/state->tids != NULL && state->skip == NULL/state->tids != NULL \&\& state->tids == NULL/'
mutate neighbors_count_as_searches sql/spans count_search \
	's/state->search && !next/state->search/'
mutate leaf_that_goes_on_not_fetched t/082_explain am/scan/scan.c:next_batch \
	's/if \(!state->search\)/if (false)/'
mutate one_key_a_leaf sql/spans am/scan/scan_span.c:scan_span_reach \
	's/while \(reach_in_array/while (false && reach_in_array/'
mutate span_ends_with_its_leaf t/086_spans am/scan/scan_span.c:scan_span_widen \
	's/\tif \(!span->many\)\n/\tspan->many = false;\n\tif (!span->many)\n/'
mutate between_keys_untested sql/spans am/scan/scan_span.c:scan_span_holds \
	's/return false;/break;/'
mutate between_integers_untested sql/spans scan_match_batch \
	's/match->matches\[i\] = column == columns;/match->matches[i] = true;/'
mutate rest_of_span_untested sql/spans scan_match_batch \
	's/match->matches\[i\] = column == columns;/match->matches[i] = column == columns || i > batch->count \/ 2;/'
mutate span_passes_by_constants sql/spans scan_span_holds \
	's/condition = column_condition\(keys, column\);/condition = column_condition(keys, column);\n\t\tif (column > span->from)\n\t\t\tbreak;/'
mutate match_passes_by_constants sql/spans scan_match_batch \
	's/match->matches\[i\] = column == columns;/match->matches[i] = column > from;/'
mutate placed_where_the_span_ends sql/spans scan_set_place \
	's/!state->span->many\)/state->span->many || !state->span->many)/'
mutate place_before_the_entry sql/spans find_combination \
	's/holds \? place : place - 1/place - 1/'
mutate nulls_taken_for_elements sql/spans column_matches \
	's/\t\treturn false;/\t\treturn flag;/'
mutate open_end_taken_in sql/spans take_range \
	's/ && made->low\+\+ == most/ \&\& made->low == most/'
mutate announced_any_is_next sql/arrays is_fetched \
	's/return ScanDirectionIsForward\(direction\) == \(keys->array\[i\]->current < ahead->last\[i\]\);/return true;/'
mutate shared_before_what_was_taken sql/spans scan.c:take_leaves \
	's/\tscan_keys_save\(state->keys, place.arrays\);/\tif (state->span == NULL || !state->span->many)\n\t\tscan_keys_save(state->keys, place.arrays);/'
mutate shared_behind_what_was_taken sql/spans tree_scan_take_to \
	's/\tbehind->ended = is_end\(scan, behind->want\);\n//'
mutate taken_in_behind_its_entries sql/spans tree_scan_reaches \
	's/scan->begun && search_far_fence/false \&\& search_far_fence/'
mutate snapshot_of_the_standby_scans_indexes t/098_promotion_unfollowed scan_open.c:scan_begin \
	's/\telse if \(unlikely\(sherman_snapshot_is_of_standby\(scan->xs_snapshot\)\)\)\n[^;]*;\n//'

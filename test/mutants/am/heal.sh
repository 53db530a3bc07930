# Mutants of am/heal: its safeguards, removed one at a time (test/README). Sourced.

mutate rows_lose_their_entries t/031_heal look_up_keys \
	's/if \(finding == UNVERIFIED_NO_ROW\)/if (finding != UNVERIFIED_CHANGED)/'
mutate leaf_with_an_error_is_healed t/033_healer look_up_guarded \
	's/\treturn error == NULL;/\treturn true;/'
mutate rest_of_an_index_passed_over t/033_healer heal.c:walk \
	's/healing->ended = behind.ended;/healing->ended = true;/'
mutate healing_forgotten t/031_heal note_healed \
	's/\tsherman_trees_healed\(record.tree\);\n//'
mutate healed_without_comparing t/040_replicas note_healed \
	's/\tsherman_replicas_repair\(healer->index, healer->opened, &counts\);\n/\t(void) counts;\n/'
mutate healed_although_leaves_are_left t/033_healer heal_opened \
	's/healing->ended \&\& healing->left == 0\)/healing->ended)/'
mutate place_of_progress_not_given_back t/033_healer heal_progress.c:give_back \
	's/\tshown->pid = 0;\n//'
mutate owners_code_run_in_a_readers_session t/050_owners_code unverified_rows_make \
	's/rows->evaluates = rows->code == 0 \|\| rows->maintains;/rows->evaluates = true;/' \
	unverified_row_find \
	's/if \(!owner_maintains\(rows->heap\)\)/if (false)/'
mutate columns_of_the_key_not_compared t/031_heal same_columns \
	's/int i = keys->exact \? keys->columns : 0;/int i = keys->columns;/'
mutate any_row_will_do t/031_heal judge_evaluated \
	's/if \(same_columns\(rows, entry, values, isnull\)\)/if (same_columns(rows, entry, values, isnull) || true)/'
mutate entries_of_other_values_go t/050_owners_code judge_evaluated \
	's/return !rows->maintains \|\| has_own_entry/return true || has_own_entry/'
mutate entries_of_other_values_stay t/050_owners_code judge_evaluated \
	's/has_own_entry\(rows, entry, values, isnull\) \? UNVERIFIED_NO_ROW/(has_own_entry(rows, entry, values, isnull) \&\& false) ? UNVERIFIED_NO_ROW/'
mutate predicate_taken_for_immutable t/050_owners_code judge_evaluated \
	's/\(rows->code & OWNER_CODE_PREDICATE\) != 0 \? UNVERIFIED_CHANGED : UNVERIFIED_NO_ROW/UNVERIFIED_NO_ROW/'
mutate blocks_not_looked_for t/031_heal unverified_block_is_there \
	's/return block < rows->blocks;/return true;/'
mutate first_member_of_a_chain_alone t/031_heal judge_chain \
	's/\} while \(finding != UNVERIFIED_ROW && again\);/} while (false \&\& finding != UNVERIFIED_ROW \&\& again);/'

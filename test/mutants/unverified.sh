# Safeguards of leaves that a crash has left unverified. Sourced by test/mutations.

mutate doubt_covered_up test_unverified insert_set_wal_position \
	's/if \(unverified == 0 && leaf_is_unverified/if (false \&\& leaf_is_unverified/'
mutate old_doubt_forgotten test_unverified leaf_is_unverified \
	's/return leaf_unverified_since\(node\) != 0 \|\|/return/'
mutate wal_positions_of_the_future test_unverified tree_wal_position_is_proven \
	's/return i < ends->count && lsn <= ends->limit\[i\];/return i >= ends->count || lsn <= ends->limit[i];/'
mutate void_marks_believed test_unverified batch_begin \
	's/if \(leaf_marks_void\(&scan->tree->geometry, scan->leaf\)\)\n\t\tleaf_revive/if (false)\n\t\tleaf_revive/'
mutate void_marks_proven test_unverified leaf_dead_proven \
	's/return !leaf_marks_void\(g, node\);/return true;/'
mutate void_marks_covered_up test_unverified mark_some \
	's/ && !leaf_is_unverified\(g, node\) &&\s+!leaf_marks_void\(g, node\)//'
mutate heal_of_another_generation test_unverified heal_inside \
	's/node_level\(node\) != 0 \|\| node\[HEADER_GENERATION\] != leaf->generation/node_level(node) != 0/'
mutate healed_without_a_wal_position test_unverified image_heal \
	's/\tnode\[HEADER_EPOCH\] = wal->epoch;\n//'
mutate marks_stay_void test_unverified image_heal \
	's/\t\tleaf_revive\(g, node\);\n//'
mutate table_asked_about_unverified test_unverified room_is_asked \
	's/ \|\| leaf_is_unverified\(&tree->geometry, node\)//'
mutate part_taken_for_whole test_unverified batch_fill \
	's/\tif \(start != NULL \|\| stop != NULL\)\n\t\tscan->batch.whole = false;\n//'
mutate doubt_lost_in_a_rewrite test_unverified node_begin_like \
	's/node\[HEADER_EPOCH\] = old\[HEADER_EPOCH\];/node[HEADER_EPOCH] = (uint32_t) old[HEADER_EPOCH];/'

# Safeguards of dead marks. Sourced by test/mutations.

mutate mark_without_generation test_dead mark_some \
	's/node\[HEADER_GENERATION\] == leaf->generation &&/true \&\&/'
mutate dead_removed_unproven test_dead leaf_dead_proven \
	's/return epoch == proven->epoch &&[^;]*;/return true;/'
mutate vacuum_passes_marked_over test_dead vacuum_choose \
	's/leaf_keeps\(cell\[0\], false\) && is_dead/leaf_keeps(cell[0], true) && is_dead/'
mutate dead_unit_not_raised test_dead dead_chain \
	's/\tdead_set_wal_position\(node, wal\);\n//'
mutate dead_blocks_freed_early test_dead leaf_free_blocks \
	's/leaf_keeps\(cell\[0\], proven\)\)/leaf_keeps(cell[0], true || proven))/'
mutate room_of_another_generation test_dead insert_delete_dead \
	's/node_level\(node\) != 0 \|\| node\[HEADER_GENERATION\] != full.leaf.generation/node_level(node) != 0/'
mutate room_not_asked_for test_dead room_is_asked \
	's/return tree->full_always \|\| .*?;/return false;/'
mutate room_for_one_is_enough test_dead REWRITE_LIVE_NUMERATOR \
	's/#define REWRITE_LIVE_NUMERATOR 15/#define REWRITE_LIVE_NUMERATOR 16/' \
	leaf_worth_rewrite \
	's/kept \* REWRITE_LIVE_DENOMINATOR <= /kept * REWRITE_LIVE_DENOMINATOR < /'
mutate churn_cut_in_the_middle test_churn insert_wanted_cut \
	's/return in->tree->full_always \? insert_churn_cut\(g, cells\) : cells->count \/ 2;/(void) insert_churn_cut;\n\treturn cells->count \/ 2;/'
mutate newest_by_offset test_churn room_duplicate \
	's/tid_order\(cell_block\(other\[0\]\), cell_offset\(other\[0\]\)\) < tid/cell_offset(other[0]) < (tid \& 0xffff)/'

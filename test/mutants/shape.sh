# Safeguards against nodes that make no sense. Sourced by test/mutations.

mutate shape_not_looked_at test_wild_nodes 'node_check node_check_locked' \
	's/ && !node_has_shape\(g, node\)//'
mutate ways_lead_anywhere test_node pointer_leads \
	's/ && pointer_memory_node\(pointer\) < g->memory_nodes//'
mutate postings_stray test_node leaf_has_shape \
	's/ \|\| !leaf_posting_stray\(g, node\)/ || leaf_posting_stray != NULL/'
mutate images_are_anywhere test_node overflow_leads \
	's/return reference.memory_node < g->memory_nodes &&/return/'
mutate levels_without_end test_node inner_has_shape \
	's/node_level\(node\) >= LEVELS_MAX \|\| //'
mutate tid_of_no_row test_wild_nodes scan_next \
	's/if \(!batch_has_tids\(&scan->batch\)\)/if (false \&\& !batch_has_tids(\&scan->batch))/'
mutate right_link_and_fence test_node fences_have_shape \
	's/return right == POINTER_NONE;/return true;/'
mutate replicas_in_a_ring test_replicas level_compare \
	's/if \(!walk_goes_on\(&walk, pointer\)\)/if (false \&\& !walk_goes_on(\&walk, pointer))/'

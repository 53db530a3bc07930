# Mutants of tree/handle: its safeguards, removed one at a time (test/README). Sourced.

mutate check_ignores_fences test_check check_fences \
	's/if \(!check->first && !separator_equal\(g, low, check->high\)\)/if (false)/'
mutate check_ignores_order test_check check_order \
	's/if \(low < 0 \|\| high >= 0\)/if (false)/'
mutate claimed_order_not_checked test_check check_base \
	's/if \(before != NULL && cell < before\)/if (false)/'
mutate check_ignores_parents test_check check_parent \
	's/if \(!separator_equal\(g, cell \+ 1, check->node \+ g->low_word\)\)/if (false)/'
mutate check_reads_nothing_ahead test_scan_wave check_read_first \
	's/if \(check->level == 0 && is_named\(check\) &&/if (false \&\& is_named(check) \&\&/'
mutate check_believes_what_was_read_ahead test_check check_read_first \
	's/if \(ahead->verdicts\[i\] != NODE_GOOD\)/if (false)/'
mutate postings_estimated_as_cells test_estimate estimate_from_root \
	's/\(sampled > usual \? sampled : usual\)/usual/'
mutate estimate_without_a_leaf test_estimate estimate_nodes \
	's/if \(statistics->leaves == 0\)/if (false)/'
mutate plan_asks_for_the_memory test_estimate tree_estimate_nodes \
	's/\tstatus = estimate_nodes\(handle, statistics\);/\tstatus = estimate_nodes(handle, statistics);\n\tif (status == TREE_OK \&\& statistics->extent_bytes == 0)\n\t{\n\t\tTreeRecord record;\n\n\t\tstatus = tree_record_read(handle->client, handle->tree, tree_home(handle->root), \&record);\n\t}/'
mutate too_many_memory_nodes test_many_nodes open.c:options_valid \
	's/ \|\| options->nodes > TREE_MAX_NODES//'
mutate copy_not_repaired test_replicas node_settle \
	's/if \(compare->repair\)/if (false)/'
mutate replicas_in_a_ring test_replicas level_compare \
	's/if \(!walk_goes_on\(&walk, pointer, 0\)\)/if (false \&\& !walk_goes_on(\&walk, pointer, 0))/'
mutate doubt_ended_by_looking test_replicas tree_replicas_compare \
	's/if \(status == TREE_OK && repair\)/if (status == TREE_OK)/'
mutate images_outlive_their_incarnation test_leaf_writes tree_shared_reset \
	's/\tleaf_cache_shared_reset\(shared\);\n//'
mutate images_outlive_their_node test_leaf_cache tree_node_open \
	's/\tleaf_cache_forget\(client->shared, node\);\n//'
mutate left_lock_stays test_nodes tree_node_open \
	's/lock_node_fenced\(client, node\);//'
mutate reader_heeds_marks test_reader open.c:tree_open \
	's/\tt->geometry.ignores_marks = client->options.reader;\n//'

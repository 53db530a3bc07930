# Mutants of am/sql: its safeguards, removed one at a time (test/README). Sourced.

mutate check_not_made_again t/047_replicas_upkeep sql/check.c:check_tree \
	's/\} while \(sherman_try_again/} while (false \&\& sherman_try_again/'
mutate resync_without_a_copy sql/replicas sherman_resync \
	's/ \|\| tree_replicas_get\(opened->tree\) != TREE_REPLICAS_BOTH\)/)/'
mutate refused_is_attached t/017_memory_node_errors put_node \
	's/!ask_node\(position, values, nulls\) &&/!ask_node(position, values, nulls) \&\& false \&\&/'
mutate foreign_index_has_a_size sql/views open_ours \
	's/if \(!sherman_is_ours\(oid\)\)/if (false)/'
mutate forgotten_nodes_are_named t/070_forget is_member \
	's/\treturn sherman_shared->node\[position\]\.member == member;/\treturn true;/'
mutate broken_at_is_shown_of_all sql/views sherman_index_info \
	's/nulls\[3\] = \(meta\.flags & SHERMAN_META_BROKEN\) == 0;/nulls[3] = false;/'
mutate inner_nodes_not_counted sql/views sherman_index_info \
	's/\(size\.leaves \+ size\.inner_nodes\)/size.leaves/'
mutate own_counts_outlive_a_reset sql/views sherman_stat_reset_index \
	's/\t\t\ttree_count_flush\(opened->tree\);/\t\t\t(void) opened;/'
mutate size_is_of_nodes_alone sql/views sherman_relation_size \
	's/PG_RETURN_INT64\(\(int64\) size\.extent_bytes\);/PG_RETURN_INT64(0);/'

# Safeguards of trees with copies. Sourced by test/mutations.

mutate copy_written_behind_home test_replicas=--network replicas_execute \
	's/status = replica_write\(tree, ops, count\);\s+break;/status = access_execute_at(tree, memory_node, ops, count);\nreturn status == TREE_OK ? replica_write(tree, ops, count) : status;/s'
mutate copy_not_written test_replicas replicas_execute \
	's/status = replica_write\(tree, ops, count\);\s+break;/break;/s' \
	replica_write \
	's/static TreeStatus\nreplica_write/static TreeStatus __attribute__((unused))\nreplica_write/'
mutate lost_chain_leaves_replicas_apart test_replicas writes_settle \
	's/status = replicas_restore\(tree, pointer, bytes\);/status = TREE_OK;/'
mutate copy_not_repaired test_replicas node_settle \
	's/if \(compare->repair\)/if (false)/'
mutate doubt_ended_by_looking test_replicas tree_replicas_compare \
	's/if \(status == TREE_OK && repair\)/if (status == TREE_OK)/'
mutate record_not_copied test_replicas call_update \
	's/\(\(slot->record\.flags & TREE_RECORD_SHARE\) != 0 && !tree_record_replica\(&slot->record, &copy\)\)/(slot->record.flags \& TREE_RECORD_SHARE) != 0/'
mutate extent_without_copy test_replicas replicas_extend \
	's/if \(replicas_state\(tree\) != TREE_REPLICAS_BOTH\)\s+return TREE_OK;\s+for/if (done_never())\nreturn TREE_OK;\nfor/s; s/TreeStatus\nreplicas_extend/static bool done_never(void) { return true; }\n\nTreeStatus\nreplicas_extend/'
mutate second_copy_of_an_extent test_replicas replica_find \
	's/ && copy->offset == offset\)/ \&\& copy->offset == offset + 1)/'
mutate given_up_comes_back test_replicas state_replicas_set \
	's/\(void\) replicas_change\(state, TREE_REPLICAS_BOTH, replicas\);/__atomic_store_n(\&state->replicas, replicas, __ATOMIC_RELEASE);/'
mutate leaf_sums_by_its_pointer_alone test_replicas leaf_needs_sum \
	's/\tif \(\(nodes & g->twins\) != 0\)\n\t\tnodes \|= g->twins;\n//'
mutate root_of_replicas_without_sum test_replicas directory.c:root_write \
	's/\t\tgeometry.twins = [^;]*;\n/\t\t;\n/'
mutate leaked_lock_is_forgotten test_replicas state_node_fenced \
	's/\t\tif \(__atomic_exchange_n\(&state->locks_leaked, 0, __ATOMIC_ACQ_REL\) != 0\)\n\t\t\tstate_replicas_note_doubt\(state\);\n//'
mutate leaked_lock_blocks test_replicas=--network lock_and_read \
	's/if \(status == TREE_UNREACHABLE && tree->replicas != NULL && lock_handle_abandon\(client\)\)/if (false \&\& lock_handle_abandon(client))/'
mutate new_nodes_at_lost_home test_replicas replicas_source \
	's/return replicas_state\(tree\) == TREE_REPLICAS_SECOND \? tree->replicas->node : tree->replicas->home;/return tree->replicas->home;/'
mutate closed_home_is_a_doubt test_replicas lock_handle_fail \
	's/(TreeStatus freed = word_free\(tree, lock\);\n)/$1\n\t\tstate_replicas_doubt(tree->client->shared, tree->tree);/'
mutate fenced_lock_is_forgotten test_replicas lock_handle_leak \
	's/\t\tstate_replicas_doubt\(client->shared, table_waiter\([^;]*;\n//'
mutate redo_image_without_header torture=switches-replicas-64 writes_together \
	's/\? REDO_OPS : 1;/? REDO_OPS - 1 : 1;/'

# Safeguards of trees with copies. Sourced by test/mutations.

mutate copy_written_behind_home test_replicas=--network tree/client/replicas.c \
	's/status = replica_write\(tree, ops, count\);\s+break;/status = access_execute_at(tree, memory_node, ops, count);\nreturn status == TREE_OK ? replica_write(tree, ops, count) : status;/s'
mutate copy_not_written test_replicas tree/client/replicas.c \
	's/status = replica_write\(tree, ops, count\);\s+break;/break;/s; s/static TreeStatus\nreplica_write/static TreeStatus __attribute__((unused))\nreplica_write/'
mutate lost_chain_leaves_replicas_apart test_replicas tree/lock/lock_release.c \
	's/status = replicas_restore\(tree, pointer, bytes\);/status = TREE_OK;/'
mutate copy_not_repaired test_replicas tree/handle/replicas_compare.c \
	's/if \(compare->repair\)/if (false)/'
mutate doubt_ended_by_looking test_replicas tree/handle/replicas_compare.c \
	's/if \(status == TREE_OK && repair\)/if (status == TREE_OK)/'
mutate record_not_copied test_replicas tree/service/service_calls.c \
	's/\(\(slot->record\.flags & TREE_RECORD_SHARE\) != 0 && !tree_record_replica\(&slot->record, &copy\)\)/(slot->record.flags \& TREE_RECORD_SHARE) != 0/'
mutate extent_without_copy test_replicas tree/client/replicas.c \
	's/if \(replicas_state\(tree\) != TREE_REPLICAS_BOTH\)\s+return TREE_OK;\s+for/if (done_never())\nreturn TREE_OK;\nfor/s; s/TreeStatus\nreplicas_extend/static bool done_never(void) { return true; }\n\nTreeStatus\nreplicas_extend/'
mutate second_copy_of_an_extent test_replicas tree/service/service_replicas.c \
	's/ && copy->offset == offset\)/ \&\& copy->offset == offset + 1)/'
mutate given_up_comes_back test_replicas tree/shared/state.c \
	's/\(void\) replicas_change\(state, TREE_REPLICAS_BOTH, replicas\);/__atomic_store_n(\&state->replicas, replicas, __ATOMIC_RELEASE);/'
mutate leaf_sums_by_its_pointer_alone test_replicas tree/node/node.h \
	's/\tif \(\(nodes & g->twins\) != 0\)\n\t\tnodes \|= g->twins;\n//'
mutate root_of_replicas_without_sum test_replicas tree/client/directory.c \
	's/\t\tgeometry.twins = [^;]*;\n/\t\t;\n/'
mutate leaked_lock_is_forgotten test_replicas tree/shared/doubts.c \
	's/\t\tif \(__atomic_exchange_n\(&state->locks_leaked, 0, __ATOMIC_ACQ_REL\) != 0\)\n\t\t\tstate_replicas_note_doubt\(state\);\n//'
mutate leaked_lock_blocks test_replicas=--network tree/lock/lock.c \
	's/if \(status == TREE_UNREACHABLE && tree->replicas != NULL && lock_handle_abandon\(client\)\)/if (false \&\& lock_handle_abandon(client))/'
mutate new_nodes_at_lost_home test_replicas tree/client/replicas.c \
	's/return replicas_state\(tree\) == TREE_REPLICAS_SECOND \? tree->replicas->node : tree->replicas->home;/return tree->replicas->home;/'
mutate closed_home_is_a_doubt test_replicas tree/lock/lock_handle.c \
	's/(TreeStatus freed = word_free\(tree, lock\);\n)/$1\n\t\tstate_replicas_doubt(tree->client->shared, tree->tree);/'
mutate fenced_lock_is_forgotten test_replicas tree/lock/lock_handle.c \
	's/\t\tstate_replicas_doubt\(client->shared, table_waiter\([^;]*;\n//'
mutate redo_image_without_header torture=switches-replicas-64 tree/lock/lock_release.c \
	's/\? REDO_OPS : 1;/? REDO_OPS - 1 : 1;/'

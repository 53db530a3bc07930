# Safeguards of trees with copies. Sourced by test/mutations.

mutate copy_written_behind_home test_copies=--network tree/client/copies.c \
	's/status = copy_write\(tree, ops, count\);\s+break;/status = access_execute_at(tree, memory_node, ops, count);\nreturn status == TREE_OK ? copy_write(tree, ops, count) : status;/s'
mutate copy_not_written test_copies tree/client/copies.c \
	's/status = copy_write\(tree, ops, count\);\s+break;/break;/s; s/static TreeStatus\ncopy_write/static TreeStatus __attribute__((unused))\ncopy_write/'
mutate lost_chain_leaves_copies_apart test_copies tree/lock/lock_release.c \
	's/status = copies_restore\(tree, pointer, bytes\);/status = TREE_OK;/'
mutate copy_not_repaired test_copies tree/handle/copies_compare.c \
	's/if \(compare->repair\)/if (false)/'
mutate doubt_ended_by_looking test_copies tree/handle/copies_compare.c \
	's/if \(status == TREE_OK && repair\)/if (status == TREE_OK)/'
mutate record_not_copied test_copies tree/service/service_calls.c \
	's/\(\(slot->record\.flags & TREE_RECORD_SHARE\) != 0 && !tree_record_copy\(&slot->record, &copy\)\)/(slot->record.flags \& TREE_RECORD_SHARE) != 0/'
mutate extent_without_copy test_copies tree/client/copies.c \
	's/if \(copies_state\(tree\) != TREE_COPIES_BOTH\)\s+return TREE_OK;\s+for/if (done_never())\nreturn TREE_OK;\nfor/s; s/TreeStatus\ncopies_extend/static bool done_never(void) { return true; }\n\nTreeStatus\ncopies_extend/'
mutate second_copy_of_an_extent test_copies tree/service/service_copies.c \
	's/ && copy->offset == offset\)/ \&\& copy->offset == offset + 1)/'
mutate given_up_comes_back test_copies tree/shared/state.c \
	's/\(void\) copies_change\(state, TREE_COPIES_BOTH, copies\);/__atomic_store_n(\&state->copies, copies, __ATOMIC_RELEASE);/'
mutate leaf_sums_by_its_pointer_alone test_copies tree/node/node.h \
	's/\tif \(\(nodes & g->twins\) != 0\)\n\t\tnodes \|= g->twins;\n//'
mutate root_of_copies_without_sum test_copies tree/client/directory.c \
	's/\t\tgeometry.twins = [^;]*;\n/\t\t;\n/'
mutate leaked_lock_is_forgotten test_copies tree/shared/doubts.c \
	's/\t\tif \(__atomic_exchange_n\(&state->copies_stranded, 0, __ATOMIC_ACQ_REL\) != 0\)\n\t\t\tstate_copies_unverified\(state\);\n//'
mutate leaked_lock_blocks test_copies=--network tree/lock/lock.c \
	's/if \(status == TREE_UNREACHABLE && tree->copies != NULL && lock_handle_abandon\(client\)\)/if (false \&\& lock_handle_abandon(client))/'
mutate new_nodes_at_lost_home test_copies tree/client/copies.c \
	's/return copies_state\(tree\) == TREE_COPIES_SECOND \? tree->copies->node : tree->copies->home;/return tree->copies->home;/'
mutate closed_home_is_a_doubt test_copies tree/lock/lock_handle.c \
	's/(TreeStatus freed = word_free\(tree, lock\);\n)/$1\n\t\tstate_copies_doubt(tree->client->shared, tree->tree);/'
mutate fenced_lock_is_forgotten test_copies tree/lock/lock_handle.c \
	's/\t\tstate_copies_doubt\(client->shared, table_waiter\([^;]*;\n//'
mutate redo_image_without_header torture=switches-copies-64 tree/lock/lock_release.c \
	's/\? REDO_OPS : 1;/? REDO_OPS - 1 : 1;/'

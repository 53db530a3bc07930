# Safeguards that the simulator alone is asked about: test/mutations --sim. Sourced.

mutate unlock_before_the_writes sim_torture write_and_swap \
	's/status = access_execute\(tree, lock->memory_node, writes, count \+ 1\);/status = access_execute(tree, lock->memory_node, &writes[count], 1);\n\t\tif (status == TREE_OK && count > 0)\n\t\t\tstatus = access_execute(tree, lock->memory_node, writes, count);/'
mutate read_before_lock sim_torture word_try \
	's/status = access_execute\(tree, lock->memory_node, ops, with_read \? 2 : 1\);/if (with_read)\n\t\t(void) access_execute(tree, lock->memory_node, &ops[1], 1);\n\tstatus = access_execute(tree, lock->memory_node, ops, 1);/'
mutate lost_unlock_taken_for_landed sim_torture unlock_settle \
	's/if \(word == lock->word\) \/\* it did not/if (false) \/* it did not/'
mutate lost_other_word_taken_for_landed sim_torture write_and_renew \
	's/if \(word != next\) /if (false) /'
mutate doubt_not_ended sim_torture access_settle \
	's/fabric = fabric_reset\(client->options.endpoints\[memory_node\]\);/fabric = FABRIC_OK;/'
mutate generation_not_raised_by_split sim_torture halves_begin \
	's/uint64_t left_generation = old\[HEADER_GENERATION\] \+ 1;/uint64_t left_generation = old[HEADER_GENERATION];/'
mutate locks_freed_while_channels_live sim_torture request_continue_attach \
	's/if \(instance_kill_channels\(server, instance_number\(server, instance\)\)\)/if (true)/'
mutate parent_before_sibling sim_torture sibling_add \
	's/\A/static bool sibling_late;\n\n/; s/(assert\(split->count < SPLIT_CHAIN_OPS\);\n)/$1\tif (sibling_late)\n\t\treturn TREE_OK;\n/' \
	split_leaf \
	's/status = split_write\(tree, lock, pointer, split\);\n\tsplit_over/static uint64_t late[NODE_MAX_BYTES \/ 8];\n\tFabricOp op = {.opcode = FABRIC_WRITE, .region = FABRIC_NODES, .length = g->leaf_bytes, .offset = pointer_offset(split->right), .buffer = late};\n\n\tsibling_late = !split->root;\n\tnode_seal(g, tree->client->image_right);\n\tmemcpy(late, tree->client->image_right, g->leaf_bytes);\n\tstatus = split_write(tree, lock, pointer, split);\n\tif (sibling_late && status == TREE_OK)\n\t{\n\t\t(void) downlink_insert(tree, 0, split->left, split->separator, split->right, NULL);\n\t\t(void) access_execute(tree, pointer_memory_node(split->right), &op, 1);\n\t}\n\tsibling_late = false;\n\tsplit_over/'
mutate slot_used_again_in_generation sim_explore leaf_rewrite_image \
	's/old\[HEADER_GENERATION\] \+ 1\);/old[HEADER_GENERATION]);/'
mutate dead_marked_in_another_generation sim_explore mark_some \
	's/node_level\(node\) == 0 && node\[HEADER_GENERATION\] == leaf->generation &&/node_level(node) == 0 \&\&/'
mutate healed_in_another_epoch sim_explore tree_heal_leaf \
	's/if \(critical_same_epoch\(handle, leaf\)\)/if (true)/'

# What steps tell, of which the explorer thinks that their order matters.
mutate written_words_told_as_read sim_explore=compare queue.c:report_part \
	's/bool changes = memory\[from \/ 8\] != buffer\[from \/ 8\];/bool changes = false;/; s/if \(changes != \(memory\[next \/ 8\] != buffer\[next \/ 8\]\)\)/if (false)/'
mutate code_tells_of_no_changes sim_explore=compare mode_of \
	's/\? EXPLORER_WRITE : EXPLORER_READ/? EXPLORER_READ : EXPLORER_READ/'
mutate reads_behind_any_swap_are_nobodys sim_explore atomic_go_on \
	's/chain->vain = op->result != op->compare;/chain->vain = true;/'
mutate lost_lock_read_all_the_same sim_explore word_try \
	's/\*won = \*read = false;/*won = false;/; s/\*read = \*won && with_read;/*read |= with_read;/'
mutate marks_not_told sim_explore=compare 'test/support/sim_work.c:mark_end test/support/sim_work.c:sim_mark' \
	's/\texplorer_access\(EXPLORER_HISTORY, [^;]*, EXPLORER_WRITE\);\n//'
